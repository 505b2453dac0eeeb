"""Downloads: the program `martlet` compared with curl, wget2, aria2 and axel, each called as by its users."""

import os
import shutil
import subprocess
import tempfile
import time

from account import run
from fault import Fault
from scenario import BYTES, CPU_PER_BYTE, CPU_PER_REQUEST, PEAK, Bar, Measure, Scenario

MEASURES = [BYTES, CPU_PER_BYTE, PEAK]
FILES = Measure("rate", "files/s")
CONNECTIONS = 4


def scenarios(bench):
    """Yields the download scenarios."""
    server = bench.server
    size = 250_000_000 if bench.quick else 1_000_000_000
    shown = "250 MB" if bench.quick else "1 GB"
    throttled_size = 60_000_000 if bench.quick else 100_000_000
    count = 200 if bench.quick else 1000

    def words(contender, url, path, connections=CONNECTIONS):
        """The command line of a contender for one file."""
        folder, name = os.path.split(path)
        authority = server.authority if url.startswith("https:") else None
        if contender in ("martlet", "one"):
            return [bench.programs.martlet(), "download", "--progress", "none", "-o", path,
                    "--segments", 1 if contender == "one" else connections,
                    *(["--cacert", authority] if authority else []), url]
        program = "aria2c" if contender == "aria2" else contender
        if shutil.which(program) is None:
            raise Fault(f"no '{program}' in PATH: Scripts/install.sh bench installs it")
        if contender == "curl":
            return ["curl", "-sf", "-C", "-", "-o", path, *(["--cacert", authority] if authority else []), url]
        if contender == "wget2":
            return ["wget2", "-q", "-c", "-O", path, *([f"--ca-certificate={authority}"] if authority else []), url]
        if contender == "aria2":
            return ["aria2c", "-q", "-c", "--no-conf", f"-x{connections}", f"-s{connections}", "-k1M", "-d", folder,
                    "-o", name, *([f"--ca-certificate={authority}"] if authority else []), url]
        if contender == "axel":
            # It does not accept another certificate authority.
            return ["axel", "-q", f"-n{connections}", *(["-k"] if authority else []), "-o", path, url]
        raise Fault(f"no contender is called {contender}")

    def check(path, expected):
        """Checks that the file has the expected contents."""
        if not os.path.exists(path) or os.path.getsize(path) != expected:
            raise Fault(f"{path} is not {expected} bytes long")

    def fetch(contender, url, expected):
        """Downloads a file once."""
        with tempfile.TemporaryDirectory(dir=server.directory) as folder:
            path = f"{folder}/file"
            # Built before the measurement: the first use of a program builds it.
            command = words(contender, url, path)
            began = time.monotonic()
            usage = run(bench.account, command, timeout=120)
            seconds = time.monotonic() - began
            check(path, expected)
        return {"rate": expected / seconds, "cpu": usage.processor_seconds / expected, "peak": usage.peak_bytes}

    def resume(contender, url, expected):
        """Starts a download, kills it in the middle, and measures the rest."""
        with tempfile.TemporaryDirectory(dir=server.directory) as folder:
            path = f"{folder}/file"
            command = words(contender, url, path, 1)
            with subprocess.Popen(list(map(str, command))) as first:
                # At 100 MB a second.
                time.sleep(expected / 100e6 / 2)
                first.kill()
            began = time.monotonic()
            usage = run(bench.account, command, timeout=120)
            seconds = time.monotonic() - began
            check(path, expected)
        return {"rate": expected / seconds, "cpu": usage.processor_seconds / expected, "peak": usage.peak_bytes}

    def many(contender):
        """Downloads many small files, eight at a time."""
        urls = [server.url("plain", f"/files/small/{index}") for index in range(count)]
        with tempfile.TemporaryDirectory(dir=server.directory) as folder:
            names = f"{folder}/list"
            target = f"{folder}/files"
            os.mkdir(target)
            with open(names, "w", encoding="ascii") as file:
                if contender == "curl":
                    file.writelines(f'url = "{url}"\noutput = "{target}/{index}"\n' for index, url in enumerate(urls))
                else:
                    file.writelines(f"{url}\n" for url in urls)
            def martlet(*options):
                return [bench.programs.martlet(), "download", "--progress", "none", "--dir", target,
                        "--max-files", 8, "--max-per-host", 8, *options, "-i", names]

            def bare(sync):
                return [bench.programs.c("files", "-pthread"), "save", server.url("plain", "/files/small/"),
                        f"count={count}", f"directory={target}", f"sync={sync}"]

            command = {
                "martlet": martlet,
                "martlet-no-sync": lambda: martlet("--no-sync"),
                "bare": lambda: bare(sync=1),
                "bare-no-sync": lambda: bare(sync=0),
                "curl": lambda: ["curl", "-sf", "--parallel", "--parallel-immediate", "--parallel-max", "8", "-K", names],
                "wget2": lambda: ["wget2", "-q", "--max-threads=8", "-P", target, "-nd", "-i", names],
                "aria2": lambda: ["aria2c", "-q", "--no-conf", "-j8", "-x1", "-d", target, "-i", names],
            }[contender]()
            began = time.monotonic()
            usage = run(bench.account, command, timeout=120)
            seconds = time.monotonic() - began
            if len(os.listdir(target)) != count:
                raise Fault(f"{contender}: {len(os.listdir(target))} files of {count} came")
        return {"rate": count / seconds, "cpu": usage.processor_seconds / count, "peak": usage.peak_bytes}

    def prepare_many():
        os.makedirs(server.file("small"), exist_ok=True)
        for index in range(count):
            with open(server.file(f"small/{index}"), "wb") as file:
                file.write(os.urandom(10_000))

    def contend(action, names, *arguments):
        return {each: lambda each=each: action(each, *arguments) for each in names}

    peers = ["curl", "wget2", "aria2", "axel"]
    fast = [Bar("rate", "≥", 1.0, peer) for peer in peers]
    frugal = [Bar("cpu", "≤", 1.0, peer) for peer in ["aria2", "axel"]]
    for port, label in [("plain", "plain"), ("tls", "TLS")]:
        yield Scenario(
            f"download-{port}", f"{shown} downloaded, {label}", MEASURES,
            contend(fetch, [*peers, "martlet"], server.url(port, "/files/large"), size), [*fast, *frugal],
            prepare=lambda: server.make_file("large", size),
            note="martlet, aria2 and axel over up to four connections. Martlet syncs the file and renames it; the others "
                 "do neither. axel does not verify the certificate.")
    yield Scenario(
        "download-throttled", f"{throttled_size // 1_000_000} MB at 5 MB/s each connection", MEASURES,
        contend(fetch, ["one", *peers, "martlet"], server.url("plain", "/throttled/throttled"), throttled_size),
        [Bar("rate", "≥", 3.5, "one"), *fast, *frugal],
        prepare=lambda: server.make_file("throttled", throttled_size), rounds=3,
        note="one: martlet over one connection.")
    yield Scenario(
        "download-many", f"{count} files of 10 KB, eight at a time", [FILES, CPU_PER_REQUEST, PEAK],
        contend(many, ["bare", "bare-no-sync", "curl", "wget2", "aria2", "martlet", "martlet-no-sync"]),
        [Bar("rate", "≥", 0.6, "curl"), Bar("rate", "≥", 0.8, "curl", "martlet-no-sync"), fast[2], frugal[0]],
        prepare=prepare_many,
        note="axel accepts one URL. Martlet syncs each file and renames it; aria2 syncs it, too. The others do neither. "
             "With --no-sync Martlet only renames. bare: a C program that receives, syncs and renames on eight threads.")
    yield Scenario(
        "download-resume", "the rest of a download that was killed at its half, at 100 MB/s", MEASURES,
        contend(resume, [*peers, "martlet"], server.url("plain", "/steady/large"), size), [*fast, *frugal],
        prepare=lambda: server.make_file("large", size), rounds=3,
        note="The rate is the size of the whole file divided by the time of the second run.")
