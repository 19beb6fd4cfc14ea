#!/usr/bin/env python3
"""Checks that KILN_OLDEST_DRIVER is the first CUDA release with all entry points that the runtime requires.

usage: check_oldest_driver.py DRIVER_H

The toolkit's cudaTypedefs.h has the release of each version of an entry point: PFN_cuMemAlloc_v3020 is cuMemAlloc_v2.
"""
import os
import pathlib
import re
import shutil
import sys

nvcc = shutil.which("nvcc")
folders = [os.environ.get("CUDA_HOME"), nvcc and pathlib.Path(nvcc).resolve().parents[1], "/usr/local/cuda"]
header = next((h for h in (pathlib.Path(f) / "include/cudaTypedefs.h" for f in folders if f) if h.exists()), None)
if header is None:
    print("SKIPPED: there is no cudaTypedefs.h; a CUDA toolkit has it")
    sys.exit(77)
typedefs = header.read_text(encoding="utf-8")
driver = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
required = driver.partition("#define KILN_DRIVER_OPTIONAL_FUNCTIONS")[0]


def release(symbol):
    """Returns the releases of an entry point; the n-th one belongs to version n."""
    name, _, version = symbol.partition("_v")
    releases = sorted({int(r) for r in re.findall(rf"PFN_{name}_v(\d+)\)", typedefs)})
    return releases[int(version or 1) - 1]


symbols = re.findall(r'X\(\w+, "(\w+)"', required)
newest = max(symbols, key=release)
stated = int(re.search(r"#define KILN_OLDEST_DRIVER (\d+)", driver)[1])
print(f"the newest of {len(symbols)} required entry points: {newest}, of {release(newest)}; KILN_OLDEST_DRIVER is {stated}")
sys.exit(len(symbols) < 20 or release(newest) != stated)
