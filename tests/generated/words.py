#!/usr/bin/env python3
"""Checks the numbers of words in the default bundle's argument structs. Callers compile them in, so they must never change.

usage: words.py generated/kiln_default.json words.txt

words.txt has a line per parameter, "FAMILY PARAMETER WORD=NUMBER ...", in order of number. Words may be added. Any other
change of a line breaks programs that were compiled before.
"""
import json
import pathlib
import sys

manifest = json.loads(pathlib.Path(sys.argv[1]).read_text())
found = []
for family in manifest["families"]:
    for param in family["params"]:
        if "numbers" not in param:
            continue
        numbers = dict(zip(param["words"].split(), param["numbers"], strict=True))
        assert len(set(numbers.values())) == len(numbers), f"{family['name']} {param['name']}: a number is given twice"
        words = " ".join(f"{word}={numbers[word]}" for word in sorted(numbers, key=numbers.get))
        found.append(f"{family['name']} {param['name']} {words}")
wanted = pathlib.Path(sys.argv[2]).read_text().splitlines()
for line in sorted(set(wanted) - set(found)):
    print("-", line)
for line in sorted(set(found) - set(wanted)):
    print("+", line)
sys.exit(sorted(found) != sorted(wanted))
