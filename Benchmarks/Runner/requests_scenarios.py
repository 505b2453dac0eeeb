"""Small requests over reused connections."""

from scenario import CPU_PER_REQUEST, PEAK, REQUESTS, Bar, Scenario

MEASURES = [REQUESTS, CPU_PER_REQUEST, PEAK]
AHC = "async-http-client"


def contend(bench, names, *arguments, **options):
    """The contenders that send requests, by name."""
    return {name: lambda name=name: bench.requests(name, *arguments, **options) for name in names}


def rate(limit, beside, of="martlet"):
    """A bar for requests per second."""
    return Bar("rate", "≥", limit, beside, of)


def cpu(limit, beside, of="martlet"):
    """A bar for CPU time."""
    return Bar("cpu", "≤", limit, beside, of)


NOTE = ("bare-loop: a C program with the same system calls; bare-pool: the same, with each response handed to one of two "
        "threads. They show what no client can beat.")


def scenarios(bench):
    """Yields the request scenarios."""
    url, tls = bench.server.url("plain"), bench.server.url("tls")
    peers = ["wrk", "bare-loop", "bare-pool", "go", AHC, "martlet", "martlet-loop"]
    yield Scenario(
        "small-64", "small GET, 64 connections", MEASURES,
        contend(bench, [*peers, "curl", "urlsession"], url, 64),
        [rate(2.0, AHC), rate(1.8, "go"), rate(0.75, "wrk"), cpu(1.5, "wrk"), cpu(0.35, AHC),
         rate(2.5, AHC, "martlet-loop"), rate(2.2, "go", "martlet-loop"), rate(0.9, "wrk", "martlet-loop"),
         cpu(1.2, "wrk", "martlet-loop")], note=NOTE)
    yield Scenario(
        "small-1", "small GET, 1 connection", MEASURES, contend(bench, [*peers, "curl"], url, 1),
        [rate(3, AHC), rate(1.6, "go"), rate(1.2, "wrk")], note=NOTE)
    yield Scenario(
        "small-1000", "small GET, 1,000 connections", MEASURES, contend(bench, peers, url, 1000),
        [rate(3, AHC), rate(1.6, "go"), rate(0.75, "wrk")], note=NOTE)
    yield Scenario(
        "small-tls-64", "small GET over TLS, 64 connections", MEASURES,
        contend(bench, [*peers, "curl"], tls, 64), [rate(1.6, AHC), rate(1.3, "go"), rate(0.65, "wrk")], note=NOTE)
    article = bench.server.url("plain", "/article")
    yield Scenario(
        "json-64", "20 header fields, 1 KB of JSON decoded, 64 connections", MEASURES,
        contend(bench, ["go", AHC, "martlet", "martlet-loop"], article, 64, scenario="decode"), [rate(1.6, AHC)],
        note="The contenders in Swift decode with the same JSONDecoder, and Go with its own.")
