"""New connections, idle connections, and memory during large transfers."""

import time

from account import Process
from fault import Fault
from scenario import CONNECTIONS, PEAK, Bar, Measure, Scenario

AHC = "async-http-client"
CPU_PER_CONNECTION = Measure("cpu", "CPU µs each", 1e6, 1)
RESUMED = Measure("resumed", "resumed %", 100, 1)
GROWTH = Measure("growth", "KB each", 1 / 1024, 1)
TRIMMED = Measure("trimmed", "trimmed KB each", 1 / 1024, 1)
RESIDENT = Measure("resident", "resident MB", 1e-6, 1)


def measure_idle(bench, words, count, kept_connections):
    """Runs a contender that leaves connections idle, and returns its figures for each connection.

    `kept_connections` returns their number at the server.
    """
    with Process(bench.account, words) as process:
        process.line()
        before = process.resident_bytes()
        process.go_on()
        said = process.line()
        if said != f"open {count}":
            raise Fault(f"{words[0]} said '{said}'")
        time.sleep(0.5)
        after = process.resident_bytes()
        kept = kept_connections()
        process.go_on()
        process.line()
        trimmed = process.resident_bytes()
        process.go_on()
        usage = process.finish()
    if kept < count * 0.9:
        raise Fault(f"{words[0]} keeps only {kept} connections")
    return {"growth": (after - before) / kept, "trimmed": (trimmed - before) / kept, "resident": after,
            "peak": usage.peak_bytes}


def scenarios(bench):
    """Yields the connection scenarios."""
    server = bench.server
    peers = ["bare-loop", "bare-pool", AHC, "go", "curl", "martlet"]
    measures = [CONNECTIONS, CPU_PER_CONNECTION, PEAK]
    for name, port, label, more, bars in [
            ("plain", "plain_close", "plain", [], [Bar("rate", "≥", 1.5, AHC)]),
            ("tls", "tls_full", "TLS, full handshake", [RESUMED], [Bar("rate", "≥", 1.0, AHC)]),
            ("tls-resumed", "tls_resumed", "TLS, resumed", [RESUMED],
             [Bar("rate", "≥", 1.5, AHC), Bar("rate", "≥", 0.9, "go")])]:
        yield Scenario(
            f"connect-{name}", f"new connections, 64 at a time, {label}", [*measures, *more],
            {peer: lambda peer=peer, port=port: bench.requests(peer, server.url(port), 64) for peer in peers}, bars,
            note="bare-loop: a C program with the same system calls" + (", and with Martlet's OpenSSL" if more else "")
                 + "; bare-pool: the same, with each ready socket handed to one of two threads.")

    count = min(2000 if bench.quick else 5000, (server.descriptors - 500) // 2)

    def idle(contender, port):
        words = bench.command(contender, "idle", server.url(port, "/held"), connections=count)
        return measure_idle(bench, words, count, server.active_connections)

    for port, label, limit in [("plain", "plain", 10), ("tls", "TLS", 40)]:
        yield Scenario(
            f"idle-{port}", f"{count:,} idle connections, {label}", [GROWTH, TRIMMED, RESIDENT, PEAK],
            {name: lambda name=name, port=port: idle(name, port) for name in [AHC, "go", "martlet"]},
            [Bar("growth", "≤", limit, unit="", scale=1 / 1024)], rounds=1 if bench.quick else 3,
            note="Growth of resident memory per connection, from before the first request until all are idle; trimmed: after "
            "malloc returned its unused memory to the system.")

    size = 10_000_000_000

    def stream(contender):
        url = server.url("plain", "/files/endless")
        with Process(bench.account, bench.command(contender, "discard", url)) as process:
            samples = []
            while process.child.poll() is None:
                try:
                    samples.append(process.resident_bytes())
                except (Fault, OSError):
                    break
                time.sleep(0.05)
            usage = process.finish()
        if usage.outcome()["bytes"] != size:
            raise Fault("the body was truncated")
        # The first quarter is the warm-up.
        settled = samples[len(samples) // 4:] or samples
        return {"peak": usage.peak_bytes, "grown": max(settled) - settled[0],
                "rate": size / usage.outcome()["seconds"]}

    yield Scenario(
        "stream", "10 GB streamed: resident memory", [PEAK, Measure("grown", "grown by MB", 1e-6, 1),
                                                      Measure("rate", "GB/s", 1e-9, 2)],
        {name: lambda name=name: stream(name) for name in [AHC, "go", "martlet"]},
        [Bar("peak", "≤", 32, unit="", scale=1e-6), Bar("grown", "≤", 1, unit="", scale=1e-6)], rounds=1,
        prepare=lambda: server.make_file("endless", size, sparse=True),
        note="Grown: the maximum resident memory minus that after a quarter of the time.")
