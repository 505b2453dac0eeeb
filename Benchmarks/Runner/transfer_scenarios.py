"""Large bodies: discarded, to a file, from a file."""

import os
import tempfile

from programs import BENCHMARKS
from scenario import BYTES, CPU_PER_BYTE, PEAK, Bar, Scenario

MEASURES = [BYTES, CPU_PER_BYTE, PEAK]
AHC = "async-http-client"


def rate(limit, beside):
    """A bar for bytes per second."""
    return Bar("rate", "≥", limit, beside)


def cpu(limit, beside):
    """A bar for CPU time."""
    return Bar("cpu", "≤", limit, beside)


def scenarios(bench):
    """Yields the transfer scenarios."""
    server = bench.server
    size = 250_000_000 if bench.quick else 1_000_000_000
    shown = "250 MB" if bench.quick else "1 GB"
    name = "large"

    def transfer(contender, scenario, url, **values):
        usage = bench.run(contender, scenario, url, **values)
        outcome = usage.outcome()
        count = size * outcome["count"]
        if scenario == "discard" and outcome["bytes"] != count:
            raise AssertionError(f"{contender} got {outcome['bytes']} bytes of {count}")
        return {"rate": count / outcome["seconds"], "cpu": outcome["cpu"] / count, "peak": usage.peak_bytes}

    def discard(contender, port):
        return transfer(contender, "discard", server.url(port, f"/files/{name}"))

    def save(contender, port, directory, **values):
        with tempfile.TemporaryDirectory(dir=directory) as folder:
            return transfer(
                contender, "save", server.url(port, f"/files/{name}"), file=f"{folder}/{name}", **values)

    def upload(contender, port):
        try:
            return transfer(
                contender, "upload", server.url(port, f"/uploads/{contender}"), file=server.file(name))
        finally:
            if os.path.exists(f"{server.directory}/uploads/{contender}"):
                os.remove(f"{server.directory}/uploads/{contender}")

    def contend(action, names, *arguments, **values):
        return {each: lambda each=each: action(each, *arguments, **values) for each in names}

    def prepare():
        server.make_file(name, size)

    place = "in memory" if server.is_in_memory else "on the disk of temporary files"
    for port, label in [("plain", "plain"), ("tls", "TLS")]:
        bars = [rate(0.95, "bare"), cpu(1.15, "bare")] if port == "plain" else [cpu(1.1, "bare"), cpu(1.1, AHC)]
        others = ["urlsession"] if port == "plain" else []
        note = ("bare: a loop of recv." if port == "plain" else
                "bare: a loop of SSL_read. URLSession takes no authority of its own on Linux, so it is left out.")
        yield Scenario(
            f"discard-{port}", f"{shown} discarded, {label}", MEASURES,
            contend(discard, ["bare", "curl", AHC, "go", *others, "martlet"], port), bars, prepare=prepare,
            note=note)
    for port, label in [("plain", "plain"), ("tls", "TLS")]:
        yield Scenario(
            f"file-{port}", f"{shown} to a file {place}, {label}", MEASURES,
            contend(save, ["curl", AHC, "go", "martlet"], port, server.directory),
            [rate(1.1, "curl"), cpu(0.9, "curl")], prepare=prepare,
            note="Martlet syncs the file and renames it; the others do neither.")
    os.makedirs(f"{BENCHMARKS}/.build", exist_ok=True)
    yield Scenario(
        "file-disk", f"{shown} to a file on a disk, synced, plain", MEASURES,
        contend(save, ["curl", "martlet"], "plain", f"{BENCHMARKS}/.build", sync=1), prepare=prepare,
        note="Both sync the file: the disk is the limit, and there is no target.")
    for port, label in [("plain", "plain"), ("tls", "TLS")]:
        yield Scenario(
            f"upload-{port}", f"{shown} uploaded from a file {place}, {label}", MEASURES,
            contend(upload, ["curl", AHC, "go", "martlet"], port), [rate(1.0, "curl")], prepare=prepare)
