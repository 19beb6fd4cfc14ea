#!/usr/bin/env python3
"""Checks that the generator's memory does not grow with its output.

usage: peak.py KILN CONFIG MOST_MB
"""
import os
import pathlib
import subprocess
import sys
import tempfile


def main():
    kiln, config, most = sys.argv[1:]
    with tempfile.TemporaryDirectory() as out:
        process = subprocess.Popen([kiln, "generate", config, "--output", out, "--jobs", "2"])
        _, status, used = os.wait4(process.pid, 0)
        written = sum(path.stat().st_size for path in pathlib.Path(out).iterdir())
    print(f"{written / 1e6:.1f} MB written, {used.ru_maxrss / 1024:.1f} MB taken at the most, of {most}")
    sys.exit(status != 0 or written == 0 or used.ru_maxrss > int(most) * 1024)


main()
