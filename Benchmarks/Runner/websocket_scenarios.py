"""WebSocket connections: small, large and compressed messages to an echo server, and idle connections."""

import json
import os
import random
import subprocess

from account import run
from connection_scenarios import GROWTH, TRIMMED, measure_idle
from programs import BENCHMARKS
from scenario import CPU_PER_BYTE, PEAK, Measure, Scenario

MESSAGES = Measure("rate", "messages/s")
CPU_PER_MESSAGE = Measure("cpu", "CPU µs each", 1e6, 1)
MEGABYTES = Measure("rate", "MB/s", 1e-6)


def record(generator):
    """A JSON text of 1,024 bytes with the usual repetitions: names, words, numbers."""
    words = "bid ask last open close volume symbol exchange trade price size time order book level".split()
    entries = [{"symbol": generator.choice("ABCDEFGH") * 3, "field": generator.choice(words),
                "value": round(generator.random() * 1000, 4)} for _ in range(30)]
    text = json.dumps({"channel": "ticker", "sequence": generator.randrange(10**9), "updates": entries})
    return text[:1024].ljust(1024)


class EchoServer:
    """The echo server, a process of its own that ends with this one, and the files with the messages."""

    def __init__(self, bench):
        self.bench = bench
        self.process = None
        self.others = 0
        self.files = {}

    def start(self):
        """Starts the server once, and writes the files."""
        if self.process:
            return
        self.process = subprocess.Popen([self.bench.programs.c("websocket", "-lcrypto"), "serve", "-"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = f"ws://127.0.0.1:{int(self.process.stdout.readline() or 0)}"
        # Before the first connection: later, connections of the previous contender may not be closed yet.
        self.others = self.descriptors()
        generator = random.Random(1)
        contents = {"echo": "".join(f"a message of 32 bytes {index:010}\n" for index in range(64)).encode(),
                    "large": generator.randbytes(64 << 10),
                    "deflate": "".join(record(generator) + "\n" for _ in range(256)).encode()}
        for name, content in contents.items():
            self.files[name] = f"{self.bench.programs.directory}/websocket-{name}"
            with open(self.files[name], "wb") as file:
                file.write(content)

    def connections(self):
        """The number of the server's connections."""
        return self.descriptors() - self.others

    def descriptors(self):
        """The number of the server's descriptors."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def command(self, contender, scenario, file, **values):
        """The command line of a contender."""
        programs = self.bench.programs
        if contender == "martlet":
            program = [programs.swift(".", "websocket-contender")]
        elif contender == "go":
            program = [programs.go()]
        elif contender == "bare":
            program = [programs.c("websocket", "-lcrypto")]
        else:
            program = [f"{BENCHMARKS}/../.build/httpbin/bin/python", f"{BENCHMARKS}/Python/websocket_contender.py"]
        values = {"file": self.files[file], "kind": "binary" if file == "large" else "text", **values}
        return [*program, scenario, self.url, *(f"{name}={value}" for name, value in values.items())]


def scenarios(bench):
    """Yields the WebSocket scenarios."""
    server = EchoServer(bench)

    def exchange(contender, file, connections, each=1, **values):
        outcome = run(bench.account, server.command(
            contender, "get", file, connections=connections, seconds=bench.seconds, warm=bench.warm, **values))
        peak, outcome = outcome.peak_bytes, outcome.outcome()
        count = outcome["count"] * each
        return {"rate": count / outcome["seconds"], "cpu": outcome["cpu"] / count, "peak": peak}

    def contend(names, *arguments, **values):
        return {name: lambda name=name: exchange(name, *arguments, **values) for name in names}

    peers = ["bare", "websockets", "go", "martlet"]
    for connections in [1, 64]:
        label = "connection" if connections == 1 else "connections"
        yield Scenario(
            f"websocket-echo-{connections}", f"32-byte texts sent and returned, {connections} {label}",
            [MESSAGES, CPU_PER_MESSAGE, PEAK], contend(peers, "echo", connections), prepare=server.start,
            note="Each connection sends a message after the reply to the previous one.")
    yield Scenario(
        "websocket-large", "64 KiB messages sent and returned, 1 connection", [MEGABYTES, CPU_PER_BYTE, PEAK],
        contend(peers, "large", 1, each=64 << 10), prepare=server.start, note="Bytes in one direction.")
    yield Scenario(
        "websocket-deflate", "1 KiB of JSON sent and returned, compressed, 64 connections",
        [MESSAGES, CPU_PER_MESSAGE, PEAK], contend(peers[1:], "deflate", 64, deflate=1), prepare=server.start,
        note="The server returns the compressed bytes. Each contender has its own defaults: Martlet a window of 32 KiB "
        "and the level 6, websockets a window of 4 KiB and the level 6, Go the level 1 without the context of previous "
        "messages.")

    each = min(2000 if bench.quick else 10_000, bench.server.descriptors - 500) // 100
    count = each * 100

    def idle(contender):
        words = server.command(contender, "idle", "echo", connections=100, each=each, hosts=4)
        return measure_idle(bench, words, count, server.connections)

    yield Scenario(
        "websocket-idle", f"{count:,} idle WebSocket connections", [GROWTH, TRIMMED, PEAK],
        {name: lambda name=name: idle(name) for name in peers[1:]}, rounds=1 if bench.quick else 3,
        prepare=server.start,
        note="Growth of resident memory per connection, each after one message; trimmed: after malloc returned its "
        "unused memory to the system.")
