"""Responses from the cache, and the cost of storing them."""

import tempfile

from scenario import BYTES, CPU_PER_BYTE, CPU_PER_REQUEST, PEAK, REQUESTS, Bar, Scenario

MEASURES = [REQUESTS, CPU_PER_REQUEST, PEAK]
SIZES = [("1k", "1 KB", 1000, 2.0), ("100k", "100 KB", 100_000, 2.0), ("100m", "100 MB", 100_000_000, None)]


def scenarios(bench):
    """Yields the cache scenarios."""
    server = bench.server

    def get(contender, url, cache=None, scenario="get", **values):
        """Sends consecutive requests; the first one fills the cache if there is one."""
        if cache is None:
            return bench.requests(contender, url, 1, scenario, **values)
        if cache == "memory":
            return bench.requests(contender, url, 1, scenario, cache=cache, **values)
        with tempfile.TemporaryDirectory(dir=server.directory) as folder:
            return bench.requests(contender, url, 1, scenario, cache=f"{folder}/cache", **values)

    small = server.url("plain", "/cached")
    yield Scenario(
        "cache-memory", "small GET from memory, one at a time", MEASURES,
        {"network": lambda: get("martlet", small),
         "martlet": lambda: get("martlet", small, "memory"),
         "urlcache": lambda: get("urlsession", small, "memory"),
         "wrk": lambda: get("wrk", small)},
        [Bar("rate", "≥", 10, "network"), Bar("cpu", "≤", 5, unit="µs", scale=1e6)],
        note="network: the same client without a cache; urlcache: URLSession with URLCache; wrk: the maximum of nginx.")
    for name, shown, size, limit in SIZES:
        # Bodies that are too large to collect are streamed.
        scenario = "get" if limit else "pass"

        def contend(contender, path, cache=None, name=name, scenario=scenario):
            return lambda: get(contender, server.url("plain", f"{path}/{name}"), cache, scenario)

        yield Scenario(
            f"cache-disk-{name}", f"{shown} from disk, one at a time", MEASURES,
            {"network": contend("martlet", "/cached"), "nginx": contend("martlet", "/shared"),
             "martlet": contend("martlet", "/cached", "disk"), "urlcache": contend("urlsession", "/cached", "disk")},
            [Bar("rate", "≥", limit, "network")] if limit else [],
            prepare=lambda name=name, size=size: server.make_file(name, size),
            note="network: the same client without a cache; nginx: the same with a cache of nginx. The cache's "
                 "directory is that of the server's files, in memory if there is room.")

    def store(cache=None, contender="martlet", **values):
        url = server.url("plain", "/cached/1m")
        if cache and contender == "martlet":
            values["mode"] = "reload"
        outcome = get(contender, url, cache, **values)
        return {"rate": outcome["rate"] * 1_000_000, "cpu": outcome["cpu"] / 1_000_000, "peak": outcome["peak"]}

    for name, line, values in [
            ("cache-store", "over loopback", {}), ("cache-store-gigabit", "at 1 Gb/s", {"line": 125_000_000})]:
        yield Scenario(
            name, f"bodies of 1 MB stored as they come, {line}", [BYTES, CPU_PER_BYTE, PEAK],
            {"network": lambda values=values: store(**values),
             "martlet": lambda values=values: store("disk", **values),
             "martlet-memory": lambda values=values: store("memory", **values),
             **({} if values else {"bare": lambda: store(contender="storing"),
                                   "bare-disk": lambda: store("disk", "storing")})},
            [Bar("rate", "≥", 0.85, "network") if values else Bar("rate", "≥", 0.9, "bare-disk")],
            prepare=lambda: server.make_file("1m", 1_000_000),
            note="Each body is requested again (Cache-Control: no-cache) and replaces the previous one. The line is a "
                 "limit of the session (SessionConfiguration.bandwidth). bare: a loop of recv; bare-disk: the same, with each "
                 "body written to a new file that replaces the previous one, which is the minimum cost of storing.")
