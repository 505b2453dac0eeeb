"""Builds the contenders, each on its first use."""

import os
import shutil
import subprocess

from fault import Fault

BENCHMARKS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = f"{BENCHMARKS}/.build/programs"


def build(words, **options):
    """Runs a build and shows its output if it fails."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode != 0:
        raise Fault(f"{' '.join(words)} failed:\n{done.stdout[-6000:]}")
    return done.stdout


class Programs:
    """The paths of the programs, which are built on first use."""

    directory = BUILD

    def __init__(self):
        self.paths = {}
        os.makedirs(BUILD, exist_ok=True)

    def _once(self, name, make):
        if name not in self.paths:
            self.paths[name] = make()
        return self.paths[name]

    def swift(self, package, product, *options):
        """Returns an executable of one of the packages in this directory."""
        def make():
            print(f"building {product} …", flush=True)
            path = ["--package-path", f"{BENCHMARKS}/{package}", "-c", "release"]
            build(["swift", "build", *path, "--product", product, *options])
            return build(["swift", "build", *path, "--show-bin-path"]).splitlines()[-1] + "/" + product
        return self._once(product, make)

    def martlet(self):
        """Returns the program `martlet` of the parent package, built as by `make release`."""
        return self.swift("..", "martlet", "--static-swift-stdlib")

    def c(self, name, *options):
        """Returns a C program of one file."""
        def make():
            path = f"{BUILD}/{name}"
            build(["cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", path, f"{BENCHMARKS}/C/{name}.c",
                   *options])
            return path
        return self._once(name, make)

    def go(self):
        """The contender in Go."""
        def make():
            if shutil.which("go") is None:
                raise Fault("no 'go' in PATH: Scripts/install.sh bench installs it")
            path = f"{BUILD}/go-contender"
            build(["go", "build", "-o", path, "."], cwd=f"{BENCHMARKS}/Go",
                  env={**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": "",
                       "CGO_ENABLED": "0", "GOCACHE": f"{BENCHMARKS}/.build/go"})
            return path
        return self._once("go", make)
