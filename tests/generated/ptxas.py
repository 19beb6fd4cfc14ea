#!/usr/bin/env python3
"""ptxas takes every image of a configuration for the target it was made for, and spills nothing.

usage: ptxas.py KILN CONFIG; exits 77 where no ptxas is on the PATH.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def main():
    kiln, config = sys.argv[1:3]
    ptxas = shutil.which("ptxas")
    if not ptxas:
        print("SKIPPED: no ptxas on the PATH")
        sys.exit(77)
    failed = images = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([kiln, "generate", config, "--output", folder], check=True)
        manifest = json.loads(next(pathlib.Path(folder).glob("*.json")).read_text())
        targets = manifest["targets"]
        for variant in manifest["variants"]:
            # An image also serves the listed targets above it, so it is assembled for each.
            for target in targets:
                text = pathlib.Path(folder) / "image.ptx"
                shown = subprocess.run([kiln, "show", config, variant["id"], "--target", target], capture_output=True, text=True)
                text.write_text(shown.stdout)
                run = subprocess.run([ptxas, "-v", f"-arch={target}", "-o", "/dev/null", text], capture_output=True, text=True)
                images += 1
                registers = re.search(r"Used (\d+) registers", run.stderr)
                spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", run.stderr)
                good = shown.returncode == 0 and run.returncode == 0 and spills and spills[1] == spills[2] == "0"
                failed += not good
                print(f"{'ok  ' if good else 'FAIL'} {target:8} {registers[1] if registers else '?':>4} registers  {variant['id']}")
                if not good:
                    print(shown.stderr + run.stdout + run.stderr)
    print(f"{images} assemblies, {failed} failed")
    sys.exit(1 if failed or not images else 0)


main()
