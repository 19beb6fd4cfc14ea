#!/usr/bin/env python3
"""Plants the mistakes of faults.py, as tests/q4k does with its own.

usage: check_faults.py KILN CONFIG VERIFY FAULTY_DRIVER [WORD]        (with a word, only the faults whose line holds it)
"""
import pathlib
import runpy

CHECK = pathlib.Path(__file__).resolve().parent.parent / "q4k" / "check_faults.py"

runpy.run_path(str(CHECK), run_name="__main__")  # the faults module that it imports is the one beside this file
