#!/usr/bin/env python3
"""Asks every variant of a configuration on every emulated device whether it is usable, and compares that with a launch.

usage: usable.py REPOSITORY CONFIG KILN CC FULL_USABLE EMULATOR
"""
import os
import pathlib
import subprocess
import sys
import tempfile

DEVICES = "sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_100 sm_103 sm_110 sm_120 sm_121".split()
TARGETS = "sm_75,sm_80,sm_120f"  # every variant runs on one of these targets, and each device uses an image for one of them


def main():
    repository, config, kiln, compiler, program, emulator = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run([kiln, "generate", config, "--targets", TARGETS, "--output", folder], check=True)
        source = next(folder.glob("*.c"))
        pack, manifest = source.with_suffix(".so"), source.with_suffix(".json")
        subprocess.run([compiler, "-O0", "-shared", "-fPIC", f"-I{repository}/include", source, "-o", pack], check=True)
        command = [program, pack, f"{source.stem}_index", manifest, emulator]
        environment = dict(os.environ, KILN_EMU_DEVICE=",".join(DEVICES), KILN_EMU_CHECK="none")
        sys.exit(subprocess.run(command, env=environment).returncode)


main()
