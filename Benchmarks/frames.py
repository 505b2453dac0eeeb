"""Prints the frame sizes of a program's asynchronous functions: each call that waits in one holds that many bytes.

    python3 Benchmarks/frames.py .build/release/martlet CallRunner 'HTTPSession.*collect'

It prints sizes and names of the functions that match a pattern, largest first; without a pattern all above 1 KiB.
"""

import re
import struct
import subprocess
import sys


def loaded_sections(program):
    """Yields address, file offset and length of each loaded section."""
    listing = subprocess.run(["readelf", "-SW", program], check=True, capture_output=True, text=True).stdout
    pattern = re.compile(r"\]\s+(\S+)\s+(\S+)\s+([0-9a-f]+)\s+([0-9a-f]+)\s+([0-9a-f]+)")
    for _, kind, address, offset, size in pattern.findall(listing):
        if int(address, 16) and kind != "NOBITS":
            yield int(address, 16), int(offset, 16), int(size, 16)


def frames(program):
    """Yields frame sizes and mangled names: an asynchronous function pointer contains an offset and the frame size."""
    sections = list(loaded_sections(program))
    with open(program, "rb") as file:
        content = file.read()
    symbols = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    for line in symbols.splitlines():
        words = line.split()
        if len(words) != 3 or not words[2].startswith("$s") or not words[2].endswith("Tu"):
            continue
        address = int(words[0], 16)
        for start, offset, size in sections:
            if start <= address < start + size:
                yield struct.unpack_from("<iI", content, offset + address - start)[1], words[2]


def main(program, patterns):
    """Prints the matching functions."""
    found = sorted(frames(program), reverse=True)
    names = subprocess.run(
        ["swift", "demangle", "--compact", "--simplified"], input="\n".join(name for _, name in found),
        check=True, capture_output=True, text=True).stdout.splitlines()
    for (size, _), name in zip(found, names):
        name = name.replace("async function pointer to ", "")
        if any(re.search(each, name) for each in patterns) if patterns else size > 1024:
            print(f"{size:7,} {name}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
