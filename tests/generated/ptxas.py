#!/usr/bin/env python3
"""ptxas takes every image of a configuration for each listed target that runs the variant, and spills nothing.

usage: ptxas.py KILN CONFIG; exits 77 where no ptxas is on the PATH.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def assemble(kiln, config, folder, variant, target):
    """Whether it is good, its registers, and a text to print."""
    text = pathlib.Path(folder) / f"{variant['key']}.{target}.ptx"
    shown = subprocess.run([kiln, "show", config, variant["id"], "--target", target], capture_output=True, text=True)
    text.write_text(shown.stdout)
    run = subprocess.run(["ptxas", "-v", f"-arch={target}", "-o", "/dev/null", text], capture_output=True, text=True)
    text.unlink()
    registers = re.search(r"Used (\d+) registers", run.stderr)
    spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", run.stderr)
    good = shown.returncode == 0 and run.returncode == 0 and spills and spills[1] == spills[2] == "0"
    line = f"{'ok  ' if good else 'FAIL'} {target:8} {registers[1] if registers else '?':>4} registers  {variant['id']}"
    return good, int(registers[1]) if registers else 0, line + ("" if good else "\n" + shown.stderr + run.stdout + run.stderr)


def main():
    kiln, config = sys.argv[1:3]
    if not shutil.which("ptxas"):
        print("SKIPPED: no ptxas on the PATH")
        sys.exit(77)
    failed = images = most = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        subprocess.run([kiln, "generate", config, "--output", folder], check=True)
        manifest = json.loads(next(pathlib.Path(folder).glob("*.json")).read_text())
        listed = subprocess.run([kiln, "list", config], check=True, capture_output=True, text=True).stdout
        targets = {key: where.split(",") for key, _, where in map(str.split, listed.splitlines())}
        jobs = [pool.submit(assemble, kiln, config, folder, variant, target)
                for variant in manifest["variants"] for target in targets[variant["key"]]]
        for job in jobs:
            good, registers, line = job.result()
            images, failed, most = images + 1, failed + (not good), max(most, registers)
            print(line)
    print(f"{images} assemblies, {failed} failed, 0 spill bytes in the others; at most {most} registers")
    sys.exit(1 if failed or not images else 0)


main()
