#!/usr/bin/env python3
"""Writes the Unicode tables behind Martlet's host names.

Needs two packages of the same Unicode version: `idna` (UTS #46 mapping, joining types) and `unicodedata2`
(canonical composition, combining classes, general categories, bidirectional classes).

    pip install idna==3.13 unicodedata2==17.0.0
    Scripts/generate-idna-tables.py Sources/MartletURL/IDNA

Every number is written as a variable-length quantity: groups of five bits, lowest first, each one character of
the alphabet below, bit 32 saying that another group follows. Signed numbers are zigzag-coded first.
"""

import pathlib
import sys
import textwrap

import idna.idnadata
import idna.uts46data
import unicodedata2 as unicode_data

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
LAST = 0x10FFFF

# The order is the raw value of the Swift enumerations that read the tables.
BIDI = ["L", "R", "AL", "AN", "EN", "ES", "CS", "ET", "ON", "BN", "NSM"]
# ContextJ (RFC 5892, appendix A.1) names these four; join-causing (C) and non-joining (U) are as good as absent.
JOINING = {"T": 1, "L": 2, "R": 3, "D": 4}


def number(value):
    text = ""
    while True:
        group, value = value & 31, value >> 5
        text += ALPHABET[group | (32 if value else 0)]
        if not value:
            return text


def signed(value):
    return number(value << 1 if value >= 0 else (-value << 1) - 1)


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
    # idna 3.13 folds the two joiners into one row; both are deviations, kept, and checked by ContextJ.
    statuses[0x200C] = statuses[0x200D] = ("V", "")
    return statuses


def mapping_table():
    statuses = mapping_statuses()
    text, previous_end, code = "", 0, 0

    def offset(at):
        status, mapped = statuses[at] if at <= LAST else ("X", "")
        return ord(mapped) - at if status == "M" and len(mapped) == 1 else None

    while code <= LAST:
        status, mapped = statuses[code]
        if status == "X":
            code += 1
            continue
        end = code + 1
        payload = ""
        if status in "VI":
            kind = 0 if status == "V" else 1
            while end <= LAST and statuses[end][0] == status:
                end += 1
        # Capitals and small letters by turns: one row for the whole stretch.
        elif offset(code) == 1 and statuses[code + 1][0] == "V" and offset(code + 2) == 1:
            kind = 4
            end = code
            while offset(end) == 1 and end + 1 <= LAST and statuses[end + 1][0] == "V":
                end += 2
        elif offset(code) is not None:
            kind = 2
            while offset(end) == offset(code):
                end += 1
            payload = signed(offset(code))
        else:
            kind = 3
            while end <= LAST and statuses[end] == statuses[code]:
                end += 1
            payload = number(len(mapped))
            last = code
            for character in mapped:
                payload += signed(ord(character) - last)
                last = ord(character)
        text += number(code - previous_end) + number((end - code - 1) * 8 + kind) + payload
        previous_end = code = end
    return text


def range_table(value_of):
    """Runs of equal value other than 0, as gap, length - 1, value."""
    text, previous_end, code = "", 0, 0
    while code <= LAST:
        value = value_of(code)
        if value == 0:
            code += 1
            continue
        end = code + 1
        while end <= LAST and value_of(end) == value:
            end += 1
        text += number(code - previous_end) + number(end - code - 1) + number(value)
        previous_end = code = end
    return text


def composition_table():
    """Primary composites as gap, first, second (both relative to the composite); Hangul is arithmetic."""
    text, previous = "", 0
    for code in range(LAST + 1):
        decomposition = unicode_data.decomposition(chr(code))
        if not decomposition or decomposition.startswith("<"):
            continue
        parts = [int(part, 16) for part in decomposition.split()]
        if len(parts) != 2 or unicode_data.normalize("NFC", chr(code)) != chr(code):
            continue
        text += number(code - previous) + signed(parts[0] - code) + signed(parts[1] - code)
        previous = code
    return text


def swift_literal(text):
    lines = textwrap.wrap(text, 100)
    return "\\\n".join("        " + line for line in lines)


def write(folder, name, summary, text):
    source = f'''// Generated by Scripts/generate-idna-tables.py from Unicode {idna.idnadata.__version__}. Do not edit.

extension IDNATables {{
    /// {summary}
    static let {name} = """
{swift_literal(text)}
        """
}}
'''
    path = folder / f"IDNATables+{name[0].upper()}{name[1:]}.swift"
    path.write_text(source)
    print(f"{path.name}: {len(text)} characters")


def main():
    if unicode_data.unidata_version != idna.idnadata.__version__:
        sys.exit(f"unicodedata2 has {unicode_data.unidata_version}, idna has {idna.idnadata.__version__}")
    folder = pathlib.Path(sys.argv[1])
    joining = idna.idnadata.joining_types
    joining = joining() if callable(joining) else joining
    joining = {code: JOINING.get(chr(kind) if isinstance(kind, int) else kind, 0) for code, kind in joining.items()}
    bidi = {name: index + 1 for index, name in enumerate(BIDI)}
    write(folder, "mapping", "UTS #46 statuses and mappings.", mapping_table())
    write(folder, "composition", "Primary composites and what they are made of.", composition_table())
    write(folder, "combiningClasses", "Canonical combining classes other than 0.",
          range_table(lambda code: unicode_data.combining(chr(code))))
    write(folder, "marks", "Code points of general category Mark.",
          range_table(lambda code: int(unicode_data.category(chr(code)).startswith("M"))))
    write(folder, "joiningTypes", "Joining types T, L, R and D.", range_table(lambda code: joining.get(code, 0)))
    write(folder, "bidiClasses", "Bidirectional classes that the Bidi rule allows or names.",
          range_table(lambda code: bidi.get(unicode_data.bidirectional(chr(code)), 0)))


if __name__ == "__main__":
    main()
