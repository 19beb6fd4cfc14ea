#!/usr/bin/env python3
"""The functions that nvcc compiled: PTX kept beside the sources that it was made from.

usage: refresh.py make     compile source/*.c anew (needs nvcc 13)
       refresh.py check    is every file of ptx/ made from today's sources and this table?
"""
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
COMMAND = "nvcc --ptx -x cu --fmad=false -std=c++17"
OPTIONS = {"nvcc-sm_75": "-arch=compute_75", "nvcc-sm_90": "-arch=compute_90", "nvcc-lineinfo": "-arch=compute_90 -lineinfo",
           "nvcc-debug": "-arch=compute_75 -G"}
HEADERS = "device.h", "device_nvcc.h"

# The functions in each file of ptx/: those that clang cannot compile (library, packed), and those whose copy by nvcc has an
# instruction form that no copy by clang has, or reaches code of the emulated driver that none reaches.
FUNCTIONS = {
    "atomics.nvcc-sm_90": "atomic_increment atomic_aggregated atomic_wide_swap",
    "control.nvcc-sm_90": "control_indirect_calls control_interpreter control_out_arguments control_struct_calls",
    "float.nvcc-sm_90": "float_compare",
    "half.nvcc-sm_90": "half_compare half_largest",
    "integer.nvcc-sm_90": "int_wide_bits int_count_bits int_extremes",
    "library.nvcc-sm_75": "library_expf library_logf library_sinf library_tanhf library_cbrtf library_erff library_roundf"
                          " library_exp library_log library_sin library_powf library_fmodf library_hypotf",
    "memory.nvcc-sm_90": "memory_local_array memory_tables memory_struct_argument memory_sort_local",
    "packed.nvcc-sm_90": "packed_half_arithmetic packed_half_fused packed_half_extremes bfloat_arithmetic bfloat_fused"
                         " bfloat_compare bfloat_extremes bfloat_convert packed_bfloat_fused",
    "reductions.nvcc-sm_90": "reduce_last_block",
    "redux.nvcc-lineinfo": "redux_halves",
    "scans.nvcc-sm_90": "tile_stencil sort_odd_even",
    "warp.nvcc-debug": "warp_match warp_exchange",
    "warp.nvcc-sm_90": "warp_shuffle_wide warp_shuffle_xor warp_shuffle_down warp_votes",
}
KEPT, LEFT_OUT = 'extern "C" __global__', "static __device__ __attribute__((unused))"


def header(file):
    """The lines that check compares: all except the compiler's version."""
    subject, kind = file.split(".")
    sha = hashlib.sha256(FUNCTIONS[file].encode())
    for name in (f"{subject}.c", *HEADERS):
        sha.update((HERE / "source" / name).read_bytes())
    return (f"// Made by refresh_compiled from {subject}.c, its headers and refresh.py, sha256 {sha.hexdigest()[:32]}\n"
            f"// {COMMAND} {OPTIONS[kind]} {subject}.c\n")


def compile_one(file, folder):
    subject, kind = file.split(".")
    functions = re.findall(r"^F\(\w+, (\w+)", (HERE / "functions.def").read_text(), re.M)
    kept = FUNCTIONS[file].split()
    (folder / "kept.h").write_text("".join(f"#define KEPT_{f} {KEPT if f in kept else LEFT_OUT}\n" for f in functions))
    out = folder / "out.ptx"
    subprocess.run([*COMMAND.split(), *OPTIONS[kind].split(), f"{subject}.c", "-o", str(out)], cwd=folder, check=True)
    text = re.sub(r'(\.file\s+\d+\s+")[^"]*/', r"\1", out.read_text())  # names, not places of this machine
    text = re.sub(r"(\.section\s.*\n\s*\{\n(?:.*\n){9})(?:[^}].*\n)*?(\s*\})", r"\1\2", text)  # the driver skips the rest
    version = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout.splitlines()
    return f"{header(file)}// {next(line for line in version if 'release' in line)}\n{text}"


def make():
    if not shutil.which("nvcc"):
        sys.exit("nvcc cannot be found")
    folder = pathlib.Path(tempfile.gettempdir()) / "kiln_compiled"  # debug information holds it: the same everywhere
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / "source", folder)
    for old in (HERE / "ptx").glob("*.ptx"):
        old.unlink()
    for file in FUNCTIONS:
        (HERE / "ptx" / f"{file}.ptx").write_text(compile_one(file, folder))
    shutil.rmtree(folder)
    print(f"{len(FUNCTIONS)} files made: read the difference before committing it")


def check():
    wanted, there = set(FUNCTIONS), {p.stem for p in (HERE / "ptx").glob("*.ptx")}
    wrong = [f"{file}: {'is missing' if file in wanted else 'is not in the table'}" for file in sorted(there ^ wanted)]
    for file in sorted(there & wanted):
        if not (HERE / "ptx" / f"{file}.ptx").read_text().startswith(header(file)):
            wrong.append(f"{file}: was not made from today's source, headers, functions and command")
    rows = re.findall(r"^F\((library|packed), (\w+)", (HERE / "functions.def").read_text(), re.M)
    listed = " ".join(FUNCTIONS.values()).split()
    wrong += [f"{name}: no compiler compiles it" for _, name in rows if name not in listed]
    if wrong:
        sys.exit("\n".join(wrong) + "\nninja refresh_compiled makes them anew")
    print(f"{len(wanted)} files are made from today's sources")


if sys.argv[1:] not in (["make"], ["check"]):
    sys.exit(__doc__)
make() if sys.argv[1] == "make" else check()
