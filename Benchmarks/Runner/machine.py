"""The machine and the versions of a run."""

import datetime
import os
import platform
import re
import shutil
import subprocess

from programs import BENCHMARKS


def said(words, pattern=r"(.+)"):
    """The version that a program prints."""
    path = shutil.which(words[0], path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if path is None:
        return "none"
    done = subprocess.run([path, *words[1:]], capture_output=True, text=True, check=False, cwd=BENCHMARKS)
    found = re.search(pattern, done.stdout + done.stderr)
    return found.group(1).strip() if found else "unknown"


def line_of(path, pattern):
    """Returns the first match in a system file."""
    with open(path, encoding="utf-8") as file:
        found = re.search(pattern, file.read(), re.MULTILINE)
    return found.group(1).strip() if found else "unknown"


def describe():
    """Returns the machine, the versions and the date."""
    memory = int(line_of("/proc/meminfo", r"^MemTotal:\s*(\d+)")) / 1024 / 1024
    processor = line_of("/proc/cpuinfo", r"^model name\s*:\s*(.+)$")
    system = line_of("/etc/os-release", r'^PRETTY_NAME="?([^"\n]+)')
    changed = said(["git", "status", "--porcelain", "--", "../Sources"], r"(.+)") not in ("none", "unknown")
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processors": f"{os.cpu_count()} × {processor}",
        "memory": f"{memory:.0f} GiB",
        "system": f"{system}, Linux {platform.release()}",
        "load": f"{os.getloadavg()[0]:.2f} at the start",
        "Martlet": said(["git", "rev-parse", "--short", "HEAD"]) + (", changed" if changed else ""),
        "Swift": said(["swift", "--version"], r"Swift version (\S+)"),
        "async-http-client": "1.37.0",
        "Go": said(["go", "version"], r"go(\d\S+)"),
        "libcurl": said(["curl", "--version"], r"libcurl/(\S+)"),
        "wrk": said(["wrk", "-v"], r"wrk (\S+)"),
        "nginx": said(["nginx", "-v"], r"nginx/(\S+)"),
        "OpenSSL": said(["openssl", "version"], r"OpenSSL (\S+)"),
    }
