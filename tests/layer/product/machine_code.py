#!/usr/bin/env python3
"""Tests the machine code of the product on wgmma: ptxas neither spills nor serialises (its notes C7508 to C7519), and does not write
to a register of a product in flight, which it does not report. Prints the instructions of a warp for 64 elements along k.

usage: machine_code.py KILN CONFIG VARIANT [FOLDER]

Exits 77 without ptxas. Without nvdisasm (from a CUDA toolkit, or the package nvidia-cuda-nvdisasm of PyPI installed with
`pip install --target FOLDER`) it says so, and does not test the registers in flight.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
TARGET = "sm_90a"
PRODUCT = re.compile(r"R(\d+), (?:R(\d+), )?")
WAIT = re.compile(r"gsb0, (0x[0-9a-f]+)")


def find_disassembler(folders):
    """Finds nvdisasm on the PATH, or in a PyPI package in one of the folders or of this interpreter."""
    found = [shutil.which("nvdisasm")]
    found += [path for base in folders + sys.path for path in pathlib.Path(base or ".").glob("nvidia/*/bin/nvdisasm")]
    return next((str(path) for path in found if path and os.access(path, os.X_OK)), None)


def read_code(listing):
    """Returns ([(operation, operands)], {label: its index})."""
    code, labels = [], {}
    for line in listing.splitlines():
        label = re.match(r"\s*(\.L_x_\d+):", line)
        found = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s*(.*?);", line)
        if label:
            labels[label[1]] = len(code)
        elif found:
            code.append(found.groups())
    return code, labels


def is_product(instruction):
    return instruction[0].startswith("HGMMA")


def main_loop(code, labels):
    """Returns the loop with the most products."""
    loops = []
    for end, (operation, operands) in enumerate(code):
        target = re.search(r"\.L_x_\d+", operands) if operation.startswith("BRA") else None
        if target and labels[target[0]] <= end:
            loops.append(code[labels[target[0]]:end + 1])
    return max(loops, key=lambda loop: sum(map(is_product, loop)), default=[])


def product_registers(operation, operands):
    """Returns the registers of A and of the accumulators, of which a lane has n / 2."""
    d, a = PRODUCT.match(operands).groups()
    n = int(re.search(r"\.64x(\d+)x", operation)[1])
    return set(range(int(d), int(d) + n // 2)) | (set(range(int(a), int(a) + 4)) if a else set())


def written(operation, operands):
    first = re.match(r"R(\d+)", operands)
    width = 4 if ".128" in operation else 2 if ".64" in operation or "WIDE" in operation else 1
    return set(range(int(first[1]), int(first[1]) + width)) if first else set()


def writes_in_flight(loop):
    """Returns the instructions of two trips that write to registers of groups that have not been waited for."""
    groups, issued, wrong = [], set(), []
    for operation, operands in loop * 2:
        if is_product((operation, operands)):
            issued |= product_registers(operation, operands)
            if "gsb0" in operands:
                groups, issued = groups + [issued], set()
        elif operation.startswith("WARPGROUP.DEPBAR"):
            pending = int(WAIT.search(operands)[1], 16)
            groups = groups[len(groups) - pending:] if pending else []
        elif written(operation, operands) & set().union(issued, *groups):
            wrong.append(f"{operation} {operands}")
    return wrong


def main():
    kiln, config, variant, *folders = sys.argv[1:]
    if not shutil.which("ptxas"):
        print("skipped: there is no ptxas")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = pathlib.Path(folder) / "k.ptx", pathlib.Path(folder) / "k.cubin"
        source.write_text(subprocess.run([kiln, "show", config, variant, "-t", TARGET], check=True, capture_output=True, text=True).stdout)
        said = subprocess.run(["ptxas", "-v", f"-arch={TARGET}", source, "-o", cubin], check=True, capture_output=True, text=True).stderr
        nvdisasm = find_disassembler(folders)
        listing = nvdisasm and subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True).stdout
    print(said.strip())
    failed = "C75" in said or "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" not in said
    if not nvdisasm:
        print("not tested, as there is no nvdisasm: writes to registers of products in flight")
        return failed
    loop = main_loop(*read_code(listing))
    products = sum(map(is_product, loop))
    wrong = writes_in_flight(loop)
    print(f"{products} products in the main loop, {len(loop) * 4 / products:g} instructions of a warp for 64 elements along k"
          if products else "no products in a loop")
    print("\n".join(f"writes to a register in flight: {line}" for line in wrong))
    return bool(failed or wrong or not products)


if __name__ == "__main__":
    sys.exit(main())
