#!/usr/bin/env python3
"""Writes the Unicode tables for Martlet's host names.

Needs two packages of the same Unicode version: `idna` (UTS #46 mapping, joining types) and `unicodedata2`
(canonical composition, bidirectional classes).

    pip install idna==3.13 unicodedata2==17.0.0
    Scripts/generate-idna-tables.py Sources/MartletURL/IDNA/IDNATables+Generated.swift

Every number is written as a variable-length quantity: groups of five bits, lowest first, each one character of
the alphabet below, bit 32 saying that another group follows. Signed numbers are zigzag-coded first.

All tables but the composites are runs of code points from U+0000 to U+10FFFF, each written as
(length - 1) * 8 + kind, and what the kind needs.
"""

import pathlib
import sys

import idna.idnadata
import idna.uts46data
import unicodedata2 as unicode_data

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
LAST = 0x10FFFF

# The values are the raw values of the Swift enumerations that read the tables. The Bidi rule treats R and AL alike, and
# also all classes that it allows in addition to letters and numbers.
BIDI = {"L": 1, "R": 2, "AL": 2, "AN": 3, "EN": 4, "NSM": 6} | dict.fromkeys(["ES", "CS", "ET", "ON", "BN"], 5)
# ContextJ (RFC 5892, appendix A.1) names these four; join-causing (C) and non-joining (U) are not needed.
JOINING = {"T": 1, "L": 2, "R": 3, "D": 4}
# Kinds of the mapping's runs.
DISALLOWED, VALID, IGNORED, LISTED, ALTERNATING, SHIFTED = range(6)


def number(value):
    text = ""
    while True:
        group, value = value & 31, value >> 5
        text += ALPHABET[group | (32 if value else 0)]
        if not value:
            return text


def zigzag(value):
    return value << 1 if value >= 0 else (-value << 1) - 1


def run(start, end, kind):
    return number((end - start - 1) * 8 + kind)


def mapping_statuses():
    """One (status, mapping) per code point: V valid, I ignored, M mapped, X disallowed."""
    rows = idna.uts46data.uts46data
    statuses = [("X", "")] * (LAST + 1)
    for index, row in enumerate(rows):
        end = rows[index + 1][0] if index + 1 < len(rows) else LAST + 1
        # Non-transitional processing keeps the deviation characters.
        status = "V" if row[1] == "D" else row[1]
        mapped = row[2] if status == "M" else ""
        for code in range(row[0], end):
            statuses[code] = (status, mapped)
    # idna 3.13 folds the two joiners into one row; both are deviations that are retained and checked by ContextJ.
    statuses[0x200C] = statuses[0x200D] = ("V", "")
    return statuses


STATUSES = mapping_statuses()


def mapping_table():
    def offset(at):
        status, mapped = STATUSES[at] if at <= LAST else ("X", "")
        return ord(mapped) - at if status == "M" and len(mapped) == 1 else None

    def alternates(at):
        """Whether this is a capital letter followed by its small letter."""
        return offset(at) == 1 and STATUSES[at + 1][0] == "V"

    def run_end(at, same):
        end = at + 1
        while end <= LAST and same(end):
            end += 1
        return end

    text, code = "", 0
    while code <= LAST:
        status = STATUSES[code][0]
        if status != "M":
            end = run_end(code, lambda at: STATUSES[at][0] == status)
            text += run(code, end, {"X": DISALLOWED, "V": VALID, "I": IGNORED}[status])
        elif alternates(code) and offset(code + 2) == 1:
            end = code
            while alternates(end):
                end += 2
            text += run(code, end, ALTERNATING)
        elif offset(code) is not None and offset(code + 1) == offset(code):
            end = run_end(code, lambda at: offset(at) == offset(code))
            text += run(code, end, SHIFTED) + number(zigzag(offset(code)))
        else:
            # Single mappings, up to the start of one of the above. Each scalar is relative to the previous one in the run;
            # the lowest bit marks that another scalar of the same code point follows.
            end = run_end(
                code, lambda at: STATUSES[at][0] == "M"
                and not (alternates(at) and offset(at + 2) == 1)
                and not (offset(at) is not None and offset(at + 1) == offset(at) == offset(at + 2)))
            text += run(code, end, LISTED)
            last = code
            for at in range(code, end):
                scalars = [ord(character) for character in STATUSES[at][1]]
                for index, scalar in enumerate(scalars):
                    text += number(zigzag(scalar - last) << 1 | (index + 1 < len(scalars)))
                    last = scalar
        code = end
    return text


def range_table(value_of):
    """Runs of equal value. Only valid code points are looked up: the others belong to any run."""
    values = {code: value_of(code) for code in range(LAST + 1) if STATUSES[code][0] == "V"}
    text, start, current = "", 0, 0
    for code, value in values.items():
        if value != current:
            text += run(start, code, current) if code > start else ""
            start, current = code, value
    return text + run(start, LAST + 1, current)


def composition_table():
    """Primary composites as gap, first, second (both relative to the composite); Hangul is arithmetic.

    Left out are those that neither stand in a mapped name nor come of one: most have a part that is mapped, such as a
    capital letter.
    """
    composites = {}
    for code in range(LAST + 1):
        decomposition = unicode_data.decomposition(chr(code))
        if not decomposition or decomposition.startswith("<"):
            continue
        parts = [int(part, 16) for part in decomposition.split()]
        if len(parts) == 2 and unicode_data.normalize("NFC", chr(code)) == chr(code):
            composites[code] = parts
    needed = {code for code in composites if STATUSES[code][0] == "V"}
    while True:
        inner = {part for code in needed for part in composites[code] if part in composites}
        made = {
            code for code, parts in composites.items()
            if all(STATUSES[part][0] == "V" or part in needed for part in parts)
        }
        if inner | made <= needed:
            break
        needed |= inner | made
    text, previous = "", 0
    for code in sorted(needed):
        first, second = composites[code]
        text += number(code - previous) + number(zigzag(first - code)) + number(zigzag(second - code))
        previous = code
    return text


def main():
    if unicode_data.unidata_version != idna.idnadata.__version__:
        sys.exit(f"unicodedata2 has {unicode_data.unidata_version}, idna has {idna.idnadata.__version__}")
    joining = idna.idnadata.joining_types
    joining = joining() if callable(joining) else joining
    joining = {code: JOINING.get(chr(kind) if isinstance(kind, int) else kind, 0) for code, kind in joining.items()}
    tables = {
        "packedMapping": ("UTS #46 statuses and mappings.", mapping_table()),
        "packedComposites": ("Primary composites and their parts.", composition_table()),
        "packedJoiningTypes": ("Joining types T, L, R and D.", range_table(lambda code: joining.get(code, 0))),
        "packedBidiClasses": (
            "Bidirectional classes that the Bidi rule allows or names.",
            range_table(lambda code: BIDI.get(unicode_data.bidirectional(chr(code)), 0))),
    }
    source = f"// Generated by Scripts/generate-idna-tables.py from Unicode {idna.idnadata.__version__}. Do not edit.\n"
    source += "\nextension IDNATables {\n"
    members = []
    for name, (summary, text) in tables.items():
        lines = "\\\n".join("        " + text[index:index + 200] for index in range(0, len(text), 200))
        members.append(f'    /// {summary}\n    static let {name} = """\n{lines}\n        """\n')
        print(f"{name}: {len(text)} characters")
    pathlib.Path(sys.argv[1]).write_text(source + "\n".join(members) + "}\n")


if __name__ == "__main__":
    main()
