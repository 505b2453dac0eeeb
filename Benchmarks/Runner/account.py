"""Runs a program and reports the resources that the operating system accounts for it."""

import contextlib
import json
import os
import subprocess
import threading
from dataclasses import dataclass

from fault import Fault


@dataclass
class Usage:
    """The output and the used resources of a process from its start to its end."""

    output: str
    processor_seconds: float
    peak_bytes: int

    def outcome(self):
        """The line of JSON that every contender prints at its end."""
        return json.loads(self.output.splitlines()[-1])


@dataclass
class Process:
    """A running program, started by the small program that accounts for it."""

    account: str
    words: list
    errors: bool = False
    timeout: float = 60

    def __enter__(self):
        reading, writing = os.pipe()
        self.child = subprocess.Popen(
            [self.account, str(writing), *map(str, self.words)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if self.errors else None, text=True, pass_fds=[writing])
        os.close(writing)
        self.report = os.fdopen(reading)
        self.timer = threading.Timer(self.timeout, self.child.kill)
        self.timer.start()
        self.id = int(self.report.readline() or 0)
        return self

    def __exit__(self, *_):
        self.timer.cancel()
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()
        self.child.stdout.close()
        self.report.close()

    def line(self):
        """Reads the next line of its output."""
        line = self.child.stdout.readline()
        if not line:
            raise self.ended_early()
        return line.strip()

    def go_on(self):
        """Sends the line that the program waits for."""
        try:
            self.child.stdin.write("\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            raise self.ended_early() from None

    def resident_bytes(self):
        """The current resident memory."""
        try:
            with open(f"/proc/{self.id}/status", encoding="ascii") as status:
                for line in status:
                    if line.startswith("VmRSS:"):
                        return int(line.split()[1]) * 1024
        except (FileNotFoundError, ProcessLookupError):
            pass
        raise self.ended_early()

    def ended_early(self):
        """The fault of a program that ended before it was told to."""
        return Fault(f"{self.words[0]} ended early")

    def finish(self):
        """Waits for the end of the program."""
        output = self.child.stdout.read()
        self.child.wait()
        report = self.report.readline().split()
        if len(report) != 4:
            raise Fault(f"no answer within {self.timeout} s: {' '.join(map(str, self.words))}\n{output}")
        if report[3] != "0":
            raise Fault(f"exit status {report[3]} of {' '.join(map(str, self.words))}\n{output[-2000:]}")
        return Usage(output, float(report[0]) + float(report[1]), int(report[2]) * 1024)


def run(account, words, **options):
    """Runs a program to its end."""
    with Process(account, words, **options) as process:
        return process.finish()
