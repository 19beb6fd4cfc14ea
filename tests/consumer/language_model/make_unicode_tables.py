#!/usr/bin/env python3
"""Writes unicode_tables.c: the letters and numbers of Unicode, as ranges.

usage: make_unicode_tables.py > unicode_tables.c

The data comes from PyPI's unicodedata2==15.1.0: llama.cpp's tables have this version, and the tokenizer gives llama.cpp's tokens.
"""
import sys

import unicodedata2 as unicodedata

if unicodedata.unidata_version != "15.1.0":
    sys.exit(f"expected unicodedata2 with the data of Unicode 15.1.0, found {unicodedata.unidata_version}")


def ranges(category):
    """Returns the first and last of each run of code points whose general category begins with this letter."""
    runs = []
    for code in range(0x110000):
        if unicodedata.category(chr(code))[0] == category:
            if runs and runs[-1][1] == code - 1:
                runs[-1][1] = code
            else:
                runs.append([code, code])
    return runs


def table(name, category):
    cells = ["{0x%x, 0x%x}," % tuple(run) for run in ranges(category)]
    lines, line = [], "   "
    for cell in cells:
        if len(line) + 1 + len(cell) > 110:
            lines.append(line)
            line = "   "
        line += " " + cell
    body = "\n".join(lines + [line])
    return (f"const unicode_range {name}[] = {{\n{body}\n}};\n"
            f"const size_t {name.replace('unicode_', 'unicode_count_of_')} = {len(cells)};\n")


def main():
    print(f"/* Written by make_unicode_tables.py from the data of Unicode {unicodedata.unidata_version}. */")
    print('#include "unicode_tables.h"\n\n// clang-format off')
    print(table("unicode_letters", "L") + "\n" + table("unicode_numbers", "N"), end="")


main()
