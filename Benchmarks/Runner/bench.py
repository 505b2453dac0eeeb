"""The shared parts of all scenarios: the server, the programs, and the durations."""

import re

from account import run
from fault import Fault
from programs import Programs


class Bench:
    """A run of the benchmarks."""

    def __init__(self, server, quick, seconds=None):
        self.server = server
        self.programs = Programs()
        self.quick = quick
        self.seconds = seconds or (0.5 if quick else 2.0)
        self.warm = 0.15 if quick else 0.4

    @property
    def account(self):
        """The program that accounts for others."""
        return self.programs.c("account")

    def words(self, contender):
        """The call of a contender: its program and the additions to its command line."""
        if contender == "martlet":
            return [self.programs.swift(".", "martlet-contender")], []
        if contender == "martlet-loop":
            return [self.programs.swift(".", "martlet-contender")], ["executor=loop"]
        if contender == "async-http-client":
            return [self.programs.swift("Peers", "async-http-client-contender")], []
        if contender == "urlsession":
            return [self.programs.swift("Peers", "urlsession-contender")], []
        if contender == "go":
            return [self.programs.go()], []
        if contender == "curl":
            return [self.programs.c("libcurl", "-lcurl")], []
        if contender == "bare":
            return [self.programs.c("bare", "-lssl", "-lcrypto")], []
        if contender in ("bare-loop", "bare-pool"):
            pool = ["pool=2"] if contender == "bare-pool" else []
            return [self.programs.c("requests", "-lssl", "-lcrypto", "-pthread")], pool
        if contender == "storing":
            return [self.programs.c("storing")], []
        raise Fault(f"no contender is called {contender}")

    def command(self, contender, scenario, url, **values):
        """The complete command line of a contender."""
        program, more = self.words(contender)
        if url.startswith("https:"):
            values["authority"] = self.server.authority
        return [*program, scenario, url, *more, *(f"{name}={value}" for name, value in values.items())]

    def run(self, contender, scenario, url, **values):
        """Runs a contender once."""
        return run(self.account, self.command(contender, scenario, url, **values))

    def requests(self, contender, url, connections, scenario="get", **values):
        """Sends requests for a time, as many concurrently as there are connections."""
        if contender == "wrk":
            return self.wrk(url, connections)
        usage = self.run(contender, scenario, url, connections=connections, seconds=self.seconds, warm=self.warm, **values)
        outcome = usage.outcome()
        return {
            "rate": outcome["count"] / outcome["seconds"], "cpu": outcome["cpu"] / outcome["count"],
            "peak": usage.peak_bytes, "resumed": outcome["resumed"] / outcome["count"],
        }

    def wrk(self, url, connections):
        """Runs wrk with one thread, with which it is fastest for a server with one thread."""
        seconds = max(1, round(self.seconds))
        usage = run(self.account, ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", url])
        if re.search("Non-2xx|Socket errors", usage.output):
            raise Fault("wrk: " + usage.output)
        count = int(re.search(r"(\d+) requests in", usage.output).group(1))
        rate = float(re.search(r"Requests/sec:\s*([\d.]+)", usage.output).group(1))
        return {"rate": rate, "cpu": usage.processor_seconds / count, "peak": usage.peak_bytes}
