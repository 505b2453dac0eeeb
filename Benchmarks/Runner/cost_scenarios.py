"""The cost of a request, a head and a program, counted where possible."""

import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

from account import run
from fault import Fault
from programs import BENCHMARKS, build
from scenario import Bar, Measure, Scenario

AHC = "async-http-client"
INSTRUCTIONS = Measure("instructions", "instructions each", 1, 0)


def percentile(histogram, share):
    """The percentile of durations in seconds."""
    left = share * sum(histogram.values())
    for bucket, count in sorted((int(bucket), count) for bucket, count in histogram.items()):
        left -= count
        if left <= 0:
            shift = max(0, bucket // 128 - 1)
            return ((bucket - shift * 128 + 0.5) * (1 << shift)) * 1e-9
    return 0


def scenarios(bench):
    """Yields the cost scenarios."""
    url = bench.server.url("plain")

    def latency(contender):
        rate = bench.requests(contender, url, 64)["rate"] / 2
        usage = bench.run(contender, "pace", url, connections=64, rate=int(rate), seconds=bench.seconds)
        outcome = usage.outcome()
        figures = {name: percentile(outcome["histogram"], share)
                   for name, share in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)]}
        return {"rate": outcome["count"] / outcome["seconds"], **figures}

    yield Scenario(
        "latency", "latency at half load: small GET, 64 connections, each contender at half of its own rate",
        [Measure("rate", "req/s"), Measure("p50", "p50 µs", 1e6), Measure("p99", "p99 µs", 1e6),
         Measure("p999", "p99.9 µs", 1e6)],
        {name: lambda name=name: latency(name) for name in ["go", AHC, "martlet", "martlet-loop"]},
        note="A request that is late because of a slow predecessor is measured from its scheduled time.")

    def allocations(contender):
        if contender == "go":
            outcome = bench.run(contender, "get", url, count=1000, warm=0.1).outcome()
            return {"allocations": outcome["mallocs"] / outcome["count"]}
        library = bench.programs.c("allocations", "-shared", "-fPIC")
        numbers = []
        for count in [200, 1200]:
            with tempfile.NamedTemporaryFile() as file:
                run(bench.account, ["env", f"LD_PRELOAD={library}", f"ALLOCATIONS={file.name}",
                                    *bench.command(contender, "get", url, count=count)])
                numbers.append(int(file.read()))
        # The rest of a process makes some tens more or less in each run.
        return {"allocations": round((numbers[1] - numbers[0]) / 1000, 1)}

    yield Scenario(
        "allocations", "allocations for each small GET, 1 connection", [Measure("allocations", "each", 1, 1)],
        {name: lambda name=name: allocations(name) for name in ["curl", "go", AHC, "martlet", "martlet-loop"]},
        [Bar("allocations", "≤", 8)], rounds=1,
        note="Counted at malloc and related functions, 1,200 requests minus 200; Go's by its own count.")

    def callgrind(words):
        if shutil.which("valgrind") is None:
            raise Fault("no valgrind")
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *map(str, words)],
            capture_output=True, text=True, check=False, timeout=300)
        collected = re.search(r"Collected : (\d+)", done.stderr)
        if done.returncode != 0 or not collected:
            raise Fault(f"callgrind of {words[0]}: {done.stderr[-500:]}")
        return int(collected.group(1))

    def stripped(path):
        copy = f"{bench.programs.directory}/{os.path.basename(path)}-stripped"
        build(["strip", "-o", copy, path])
        return copy

    def instructions(contender):
        numbers = []
        for count in [100, 300]:
            words = bench.command(contender, "get", url, count=count)
            numbers.append(callgrind([stripped(words[0]), *words[1:]]))
        return {"instructions": (numbers[1] - numbers[0]) / 200}

    yield Scenario(
        "instructions", "instructions for each small GET, 1 connection", [INSTRUCTIONS],
        {name: lambda name=name: instructions(name) for name in ["curl", AHC, "martlet", "martlet-loop"]},
        [Bar("instructions", "≤", 20_000)], rounds=1,
        note="Counted by callgrind outside the kernel, 300 requests minus 100. Go's runtime does not support valgrind.")

    def parse(count):
        return json.loads(run(
            bench.account, [bench.programs.swift("Wire", "head-parsing"), count]).output)

    def heads():
        figures = parse(1_000_000 if bench.quick else 4_000_000)
        return {"rate": figures["size"] * figures["count"] / figures["seconds"],
                "each": figures["seconds"] / figures["count"]}

    def head_instructions():
        program = bench.programs.swift("Wire", "head-parsing")
        return {"instructions": (callgrind([program, 3000]) - callgrind([program, 1000])) / 2000}

    yield Scenario(
        "head", "parser of heads alone: a typical head of 422 bytes with 12 fields",
        [Measure("rate", "GB/s", 1e-9, 2), Measure("each", "ns each", 1e9, 0)], {"martlet": heads},
        [Bar("rate", "≥", 1.5, unit="", scale=1e-9)])
    yield Scenario(
        "head-instructions", "instructions to parse that head", [INSTRUCTIONS], {"martlet": head_instructions},
        rounds=1, note="Counted by callgrind, 3,000 heads minus 1,000.")

    # Linked by lld, with a section for each function, compact relocations and no dynamic symbol table: the page
    # Performance recommends these options for all programs. They are the same for all contenders.
    SMALL = ["-Xswiftc", "-use-ld=lld", "-Xswiftc", "-Xfrontend", "-Xswiftc", "-function-sections",
             "-Xlinker", "-z", "-Xlinker", "pack-relative-relocs",
             "-Xlinker", "--no-export-dynamic", "-Xlinker", "--icf=safe"]

    def hello(package, product, is_clean):
        """Builds a program with Swift's libraries, from scratch if the build is timed."""
        path = f"{BENCHMARKS}/.build/{product}"
        if is_clean:
            shutil.rmtree(path, ignore_errors=True)
        options = ["--package-path", f"{BENCHMARKS}/{package}", "--scratch-path", path]
        print(f"building {product} …", flush=True)
        build(["swift", "package", *options, "resolve"])
        began = time.monotonic()
        build(["swift", "build", *options, "-c", "release", "--static-swift-stdlib", *SMALL, "--product", product])
        seconds = time.monotonic() - began
        program = f"{path}/release/{product}"
        build(["strip", "-o", f"{program}-stripped", program])
        return f"{program}-stripped", seconds

    def size(package, product):
        program, seconds = hello(package, product, is_clean=not bench.quick)
        figures = {"size": os.path.getsize(program)}
        if not bench.quick:
            figures["build"] = seconds
        return figures

    # Sizes are of stripped programs. Times are of clean builds, compared within a run.
    bars = [Bar("size", "≤", 18, of="hello-core", unit="MB", scale=1e-6),
            Bar("size", "≤", 22, unit="MB", scale=1e-6)]
    if not bench.quick:
        bars += [Bar("build", "≤", 0.4, AHC, of="hello-core"), Bar("build", "≤", 0.6, AHC)]
    yield Scenario(
        "hello", "the smallest program: stripped, with Swift's libraries in it",
        [Measure("size", "size MB", 1e-6, 1), Measure("build", "clean release build s", 1, 0)],
        {"dependencies": lambda: size("Dependencies", "dependencies"),
         "hello-core": lambda: size("Hello", "hello-core"),
         "martlet": lambda: size("Hello", "hello"),
         AHC: lambda: size("HelloPeer", "hello-peer")},
        bars, rounds=1, note="hello-core: with the product MartletCore; martlet: with Martlet. dependencies: with all that"
        " Martlet depends on, and without Martlet. All are linked as the page Performance recommends for small programs."
        + (" A quick run builds incrementally and does not time builds." if bench.quick else ""))

    def start(words):
        """Measures from before the start of the program until its first byte arrives."""
        times = []
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(20)
            address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
            for _ in range(10):
                began = time.monotonic()
                with subprocess.Popen(
                        [address if word == "URL" else word for word in words], stdout=subprocess.DEVNULL) as child:
                    try:
                        connection, _ = listener.accept()
                        with connection:
                            connection.recv(1)
                            times.append(time.monotonic() - began)
                            connection.recv(65536)
                            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                            if child.wait(20) != 0:
                                raise Fault(f"{words[0]} failed")
                    except OSError as error:
                        raise Fault(f"{words[0]}: {error}") from error
                    finally:
                        if child.poll() is None:
                            child.kill()
        return {"first": statistics.median(times)}

    def starting(contender):
        if contender == "martlet":
            return start([hello("Hello", "hello", is_clean=False)[0], "URL"])
        if contender == "curl":
            return start(["curl", "-s", "URL"])
        program, more = bench.words(contender)
        return start([*program, "discard" if contender == "bare" else "get", "URL", *more, "count=1"])

    yield Scenario(
        "start", "from the start of a program to its first byte on the wire", [Measure("first", "ms", 1e3, 1)],
        {name: lambda name=name: starting(name) for name in ["bare", "curl", "go", AHC, "martlet"]},
        [Bar("first", "≤", 10, unit="", scale=1e3)],
        note="bare: the minimum for a program. Martlet: the smallest program, as above; curl: Debian's program.")
