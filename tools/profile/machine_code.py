"""Assembles a kernel and reads its machine code (SASS), with the PTX line of each instruction.

ptxas -lineinfo notes these lines, and does not change the code.
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

Instruction = collections.namedtuple("Instruction", "guard op operands line stall sets frees waits")
"""guard: such as "@!P0", or "". line: of the PTX, or 0. The others are what ptxas tells the scheduler. stall: cycles until the
warp's next instruction. sets: the scoreboard that the result releases; frees: the one that the operands release when they are read;
7: none. waits: a bit for each scoreboard to wait for."""

MEMORY = "LDG", "STG", "LD", "ST", "LDS", "STS", "LDSM", "STSM", "LDGSTS", "ATOM", "ATOMG", "ATOMS", "RED", "SHFL"
ONE_TO_ONE = (*MEMORY, "BAR", "HMMA", "IMMA", "QMMA", "OMMA")  # ptxas translates their PTX one to one, and keeps them in their loop
IDLE = "@!PT"  # the guard of instructions that do nothing, which ptxas puts before cp.async
JUMPS = "BRA", "EXIT", "RET", "KILL"
UNKNOWN = re.compile(r"HGMMA|IGMMA|QGMMA|UTC|UBLK|UTMA|SYNCS|USETMAXREG|BRX|JMX")


class NoPrediction(Exception):
    """Why there is no prediction: a wrong argument, or a kernel that the model does not know."""


class MissingTool(NoPrediction):
    """A program is not installed."""


def base(op):
    return op.split(".")[0]


def is_jump(i):
    """A call with a guard is a jump too far for a branch; one without, to a division's slow path, returns."""
    return base(i.op) in JUMPS or bool(i.guard) and base(i.op) == "CALL"


def is_exact(i):
    return base(i.op) in ONE_TO_ONE and i.guard != IDLE


def find_disassembler(folders=()):
    """Finds nvdisasm on the PATH, or in a PyPI package in one of the folders or of this interpreter."""
    found = [shutil.which("nvdisasm")]
    found += [path for place in [*folders, *sys.path] for path in pathlib.Path(place or ".").glob("nvidia/*/bin/nvdisasm")]
    return next((str(path) for path in found if path and os.access(path, os.X_OK)), None)


def assemble(ptx, arch, folders=()):
    """Returns (the listing, registers per thread)."""
    disassembler = find_disassembler(folders)
    if not shutil.which("ptxas"):
        raise MissingTool("there is no ptxas on the PATH; the CUDA toolkit has it")
    if not disassembler:
        raise MissingTool("there is no nvdisasm on the PATH; the CUDA toolkit has it, or `pip install nvidia-cuda-nvdisasm`")
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = pathlib.Path(folder) / "k.ptx", pathlib.Path(folder) / "k.cubin"
        source.write_text(ptx)
        assembled = run("ptxas", "-v", "-lineinfo", f"-arch={arch}", source, "-o", cubin)
        listing = run(disassembler, "-c", "-gp", "-hex", cubin).stdout
    return listing, int(re.search(r"Used (\d+) registers", assembled.stderr)[1])


def run(tool, *arguments):
    done = subprocess.run([tool, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise NoPrediction(f"{pathlib.Path(tool).name} {' '.join(map(str, arguments))} failed:\n{done.stderr.strip()}")
    return done


def read(listing):
    """Returns ([Instruction], {label: the index of its instruction})."""
    code, labels, line = [], {}, 0
    for text in listing.splitlines():
        if place := re.match(r'\s*//## File ".*", line (\d+)', text):
            line = int(place[1])
        elif label := re.match(r"\s*(\.L_x_\d+):", text):
            labels[label[1]] = len(code)
        elif found := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;", text):
            code.append(Instruction(found[1] or "", found[2], found[3], line, 1, 7, 7, 0))
        elif word := re.match(r"\s*/\* 0x([0-9a-f]{16}) \*/\s*$", text):  # the high word of an instruction's encoding
            control = int(word[1], 16) >> 41
            code[-1] = code[-1]._replace(stall=control & 15, sets=control >> 5 & 7, frees=control >> 8 & 7,
                                         waits=control >> 11 & 63)
    if unknown := next((i.op for i in code if UNKNOWN.match(i.op)), None):
        raise NoPrediction(f"the kernel has the instruction {unknown}: kernels with wgmma, bulk copies, mbarriers or indirect "
                           "branches cannot be predicted; choose another variant")
    return code, labels
