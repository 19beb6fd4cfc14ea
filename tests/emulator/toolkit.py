#!/usr/bin/env python3
"""Compares names of driver functions with a CUDA toolkit, and runs its NVRTC on the emulated driver. Skipped without a toolkit.

usage: toolkit.py symbols DRIVER DRIVER_H    the runtime's table and the emulated driver have NVIDIA's names
       toolkit.py nvrtc DRIVER               the emulated driver runs a kernel that NVRTC compiles
"""
import collections
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
# The second version is new in CUDA 12.8. Older drivers have only the first, so the runtime's table uses it.
OLDER = {"cuEventElapsedTime": "cuEventElapsedTime_v2"}
IN_HEADER = {"cuGetProcAddress_v2_ptsz"}  # an inline function in cuda.h


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def toolkit():
    nvcc = shutil.which("nvcc")
    for root in [os.environ.get("CUDA_HOME"), nvcc and pathlib.Path(nvcc).resolve().parent.parent, "/usr/local/cuda"]:
        if root and (pathlib.Path(root) / "include/cuda.h").exists():
            return pathlib.Path(root)
    return skip("there is no CUDA toolkit")


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].partition("@")[0] for line in lines.splitlines()} - {""}


def base(symbol):
    return re.sub("_v[0-9]+$", "", re.sub("_pt[ds][sz]$", "", symbol))


def mapped(root, bases, *define):
    """Returns {name: the symbol that cuda.h's macros replace it by}."""
    text = "#include <cuda.h>\n" + "".join(f'"{b}" {b}\n' for b in sorted(bases))
    done = subprocess.run(["cc", "-E", "-P", *define, f"-I{root / 'include'}", "-x", "c", "-"], input=text, capture_output=True,
                          text=True, check=True)
    return dict(re.findall(r'^"(cu\w+)" (cu\w+)$', done.stdout, re.M))


def check_names(root, driver, header):
    stub = root / "lib64/stubs/libcuda.so"
    if not stub.exists() or not shutil.which("nm"):
        skip(f"there is no {stub}, or no nm")
    theirs, ours = exported(str(stub)), exported(driver)
    table = re.findall(r'X\(\w+, *"(cu\w+)"', header)
    to = mapped(root, {base(s) for s in ours | set(table)})
    wrong = [f"the runtime's table names {s}, which NVIDIA's library does not have" for s in table if s not in theirs]
    wrong += [f"the emulated driver has {s}, which NVIDIA's library does not have" for s in sorted(ours - theirs)]
    wrong += [f"the runtime's table names {s}, cuda.h {to[base(s)]}" for s in table
              if to[base(s)] not in (s, OLDER.get(s))]
    wrong += [f"the runtime's table names {s}, which the emulated driver does not have" for s in table if s not in ours]
    for define in ([], ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]):
        to = mapped(root, {base(s) for s in ours}, *define)
        wrong += [f"cuda.h makes {s} of {b}, which the emulated driver does not have" for b, s in to.items()
                  if s not in ours and s not in IN_HEADER]
    print(f"{len(table)} names of the runtime's table, {len(ours)} of the emulated driver, {len(theirs)} of NVIDIA's library")
    return wrong, ours


def check_versions(root, driver, ours):
    """Checks cuGetProcAddress for each version in cudaTypedefs.h: the oldest is the plain name, the next _v2, and so on."""
    text = (root / "include/cudaTypedefs.h").read_text()
    versions = collections.defaultdict(set)
    for name, version in re.findall(r"\*PFN_(cu\w+?)_v(\d+)\)", text):
        versions[name].add(int(version))
    cuda = ctypes.CDLL(driver)
    newest, asked, wrong = ctypes.c_int(), 0, []
    cuda.cuDriverGetVersion(ctypes.byref(newest))
    for name in sorted({base(s) for s in ours} & set(versions)):
        steps = sorted(versions[name])
        for n, version in enumerate(steps):
            if version > newest.value:
                continue
            for ask in (version, steps[n + 1] - 10 if n + 1 < len(steps) else newest.value):
                symbol = name if n == 0 else f"{name}_v{n + 1}"
                has_any = any((name if k == 0 else f"{name}_v{k + 1}") in ours for k in range(n + 1))
                found, status = ctypes.c_void_p(), ctypes.c_int(-1)
                result = cuda.cuGetProcAddress_v2(name.encode(), ctypes.byref(found), ask, ctypes.c_uint64(0),
                                                  ctypes.byref(status))
                want = ctypes.cast(getattr(cuda, symbol), ctypes.c_void_p).value if symbol in ours else None
                asked += 1
                if result or (symbol in ours or not has_any) and (found.value != want or status.value != (0 if want else 2)):
                    wrong.append(f"cuGetProcAddress of {name} at {ask}: result {result}, status {status.value}, not {symbol}")
    print(f"{asked} calls of cuGetProcAddress")
    return wrong


def symbols(driver, header):
    root = toolkit()
    wrong, ours = check_names(root, driver, pathlib.Path(header).read_text())
    wrong += check_versions(root, driver, ours)
    print("\n".join(wrong) or "the names are NVIDIA's")
    sys.exit(1 if wrong else 0)


SOURCE = b"""extern "C" __global__ void twice(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= 2;
}
"""


def nvrtc(driver):
    """NVRTC loads libcuda.so.1 itself, so the dynamic linker has to find the emulated one."""
    root = toolkit()
    found = sorted((root / "lib64").glob("libnvrtc.so*"))
    if not found:
        skip(f"there is no NVRTC in {root}")
    folder = str(pathlib.Path(driver).resolve().parent)
    if folder not in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{folder}:{root / 'lib64'}"}
        sys.exit(subprocess.run([sys.executable, "-B", __file__, "nvrtc", driver], env=environment, check=False).returncode)
    cuda, rtc = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(str(found[0]))

    def must(result):
        if result:
            sys.exit(f"a call failed: {result}")

    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    must(rtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE, b"twice.cu", 0, None, None))
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_75")
    must(rtc.nvrtcCompileProgram(program, 1, options))
    must(rtc.nvrtcGetPTXSize(program, ctypes.byref(size)))
    ptx = ctypes.create_string_buffer(size.value)
    must(rtc.nvrtcGetPTX(program, ptx))
    context, module, function, memory = (ctypes.c_void_p() for _ in range(4))
    must(cuda.cuInit(0))
    must(cuda.cuCtxCreate_v4(ctypes.byref(context), None, 0, 0))
    must(cuda.cuModuleLoadData(ctypes.byref(module), ptx))
    must(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"twice"))
    x, n = (ctypes.c_float * 100)(*range(100)), ctypes.c_int(99)
    must(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(400)))
    must(cuda.cuMemcpyHtoD_v2(memory, x, ctypes.c_size_t(400)))
    arguments = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(n))
    must(cuda.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, None, arguments, None))
    must(cuda.cuMemcpyDtoH_v2(x, memory, ctypes.c_size_t(400)))
    if list(x) != [2.0 * i for i in range(99)] + [99.0]:
        sys.exit(f"computed {list(x)}")
    print("NVRTC's kernel ran")


if len(sys.argv) == 4 and sys.argv[1] == "symbols":
    symbols(*sys.argv[2:])
elif len(sys.argv) == 3 and sys.argv[1] == "nvrtc":
    nvrtc(sys.argv[2])
else:
    sys.exit(__doc__)
