#!/usr/bin/env python3
"""NF4 of 65,536 standard normal samples, to the device and back, has a relative RMSE of 0.092.

usage: normal_samples.py DEMO DRIVER
"""
import array
import pathlib
import random
import re
import subprocess
import sys
import tempfile


def main():
    demo, driver = sys.argv[1:3]
    source = random.Random(1)
    samples = array.array("f", (source.gauss(0, 1) for _ in range(65536)))
    if sys.byteorder == "big":
        samples.byteswap()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "normal.f32"
        file.write_bytes(samples.tobytes())
        run = subprocess.run([demo, file, "--driver", driver], capture_output=True, text=True)
    print(run.stdout + run.stderr)
    error = re.search(r"^device +relative RMSE ([0-9.]+)", run.stdout, re.M)
    sys.exit(0 if run.returncode == 0 and error and abs(float(error[1]) - 0.092) < 0.001 else 1)


main()
