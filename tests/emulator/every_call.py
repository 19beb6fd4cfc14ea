#!/usr/bin/env python3
"""Checks that every entry point of the emulated driver returns CUDA_ERROR_NOT_INITIALIZED before cuInit, and in a child forked
after it.

usage: every_call.py DRIVER
"""
import ctypes
import os
import subprocess
import sys

NOT_INITIALIZED = 3
WITHOUT_INIT = {"cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString", "cuGetExportTable", "cuGetProcAddress",
                "cuGetProcAddress_v2"}
ARGUMENTS = [ctypes.c_uint64(0)] * 11  # cuLaunchKernel has the most


def differing(driver, state, names):
    wrong = {name: result for name in names if (result := getattr(driver, name)(*ARGUMENTS)) != NOT_INITIALIZED}
    for name, result in wrong.items():
        print(f"{state}: {name} returned {result}, expected {NOT_INITIALIZED}", flush=True)
    return len(wrong)


def main(path):
    lines = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout.splitlines()
    names = sorted({line.split()[-1].partition("@")[0] for line in lines if " T cu" in line} - WITHOUT_INIT)
    if len(names) < 100:
        sys.exit(f"expected more than 100 entry points, found {len(names)}")
    driver = ctypes.CDLL(path)
    wrong = differing(driver, "before cuInit", [name for name in names if name != "cuInit"])
    if driver.cuInit(0) != 0:
        sys.exit("cuInit failed")
    child = os.fork()
    if child == 0:
        os._exit(differing(driver, "in a forked child", names) != 0)
    wrong += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(f"{len(names)} entry points")
    sys.exit(wrong != 0)


if len(sys.argv) != 2:
    sys.exit(__doc__)
main(sys.argv[1])
