"""Tests faulty_driver.c: kiln-verify reports each fault as on a real device, and other kernels stay right.

usage: check_faulty_driver.py FAULTY DRIVER KILN_VERIFY
       check_faulty_driver.py FAULTY graph      launch a captured kernel and print what each wait gives
"""
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

FAULTY, DRIVER = sys.argv[1:3]
F32_SYM, OTHERS = "int4_pack/type=f32,mode=sym,", {"int4_pack/type=f32,mode=asym,", "int4_pack/type=f16,mode=sym,",
                                                  "int4_pack/type=f16,mode=asym,"}
H100 = "NVIDIA H100 80GB HBM3"

PTX = b""".version 6.3
.target sm_75
.address_size 64
.visible .entry spoilt(.param .u64 to) {
    .reg .u64 %a;
    ld.param.u64 %a, [to];
    st.global.u32 [%a], 7;
    ret;
}
"""


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, expected {wanted!r}")


def graph():
    """A captured kernel fails when its graph is launched, not before."""
    cuda = ctypes.CDLL(FAULTY)
    device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    stream, recorded, launchable, at = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    value = ctypes.c_uint32(1)
    for done in (cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0),
                 cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), cuda.cuCtxSetCurrent(context),
                 cuda.cuModuleLoadData(ctypes.byref(module), PTX),
                 cuda.cuModuleGetFunction(ctypes.byref(function), module, b"spoilt"),
                 cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(4)),
                 cuda.cuMemcpyHtoD_v2(at, ctypes.byref(value), ctypes.c_size_t(4)),
                 cuda.cuStreamCreate(ctypes.byref(stream), 1), cuda.cuStreamBeginCapture_v2(stream, 0)):
        expect("a call before the launch", done, 0)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(at))
    for done in (cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, None),
                 cuda.cuStreamEndCapture(stream, ctypes.byref(recorded)),
                 cuda.cuGraphInstantiateWithFlags(ctypes.byref(launchable), recorded, ctypes.c_ulonglong(0))):
        expect("a call of the capture", done, 0)
    print(cuda.cuStreamSynchronize(stream), cuda.cuGraphLaunch(launchable, stream), cuda.cuStreamQuery(stream), flush=True)
    print(cuda.cuStreamSynchronize(stream), cuda.cuMemcpyDtoH_v2(ctypes.byref(value), at, ctypes.c_size_t(4)), value.value,
          cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(4)), cuda.cuDriverGetVersion(ctypes.byref(device)),
          hasattr(cuda, "cuMemcpy"), flush=True)


def settings(faults, name="", counts=""):
    given = dict(KILN_FAULTY_DRIVER_FOR=DRIVER, KILN_FAULTY=faults, KILN_EMU_DEVICE="sm_90", KILN_FAULTY_NAME=name,
                 KILN_FAULTY_COUNT=counts)
    return dict(os.environ, **{name: value for name, value in given.items() if value})


def run(command, faults, name="", counts=""):
    """Returns its exit status and output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=settings(faults, name, counts))
    return done.returncode, done.stdout


def hangs(command, faults, last):
    """The program prints the last line, and then nothing until a signal ends it."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=settings(faults)) as running:
        while running.stdout.readline() not in (last, ""):
            pass
        time.sleep(1)
        expect(f"{command[0]} has ended with {faults!r}", running.poll(), None)
        running.terminate()
        expect(f"what it still printed with {faults!r}", running.stdout.read(), "")
        expect(f"what ended it with {faults!r}", running.wait(), -signal.SIGTERM)


def verify(faults, name="", texts=(), results=None):
    """Runs int4_pack and expects its status, each variant's result and the texts in the report."""
    command = [sys.argv[3], "--driver", FAULTY, "--filter", "int4_pack", "--inputs", "1", "--max-elements", "4096"]
    status, report = run(command, faults, name)
    expect(f"exit status with {faults!r}", status, 1 if results else 0)
    lines = [line.split() for line in report.splitlines() if line.endswith((": ok", ": WRONG"))]
    got = {line[5].rpartition("group")[0]: line[6] for line in lines}
    expect(f"variants with {faults!r}", got, dict({variant: "ok" for variant in OTHERS | {F32_SYM}}, **(results or {})))
    for text in texts:
        expect(f"{text!r} in the report with {faults!r}:\n{report}", text in report, True)


def main():
    verify("", texts=["kiln emulated sm_90", "exact buffers"])
    verify("hang:no_such_kernel,lost:nor_this", H100, [H100, "guard bytes around every buffer"])
    wrong = ["packed[0] is 0xff; expected 0x"]
    verify("wrong:pack_f32_sym", "", wrong, {F32_SYM: "WRONG"})
    verify("wrong:pack_f32_sym", H100, wrong + ["guard bytes around every buffer"], {F32_SYM: "WRONG"})
    verify("lost:nothing,unloadable:pack_f32_sym", "", ["CUDA_ERROR_INVALID_PTX (218)", "entry 'int4_pack_f32_sym_128_low'"],
           {F32_SYM: "WRONG"})
    verify("lost:pack_f32_sym", "", ["the kernel failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)",
                                     "the device is lost: cuDevicePrimaryCtxRetain: CUDA_ERROR_ILLEGAL_ADDRESS (700)"],
           {F32_SYM: "WRONG"})
    only = [sys.argv[3], "--driver", FAULTY, "--filter", F32_SYM, "--inputs", "1"]
    hangs(only, "hang:pack_f32_sym", " cases  refused     elements   worst  seconds  variant\n")
    expect("exit status with an unknown fault", run(only, "hangs:pack_f32_sym")[0], 1)

    this = [sys.executable, "-B", __file__, FAULTY, "graph"]
    for faults, wanted in (("", "0 0 0\n0 0 7 0 0 False\n"), ("wrong:spoilt", "0 0 0\n0 0 1 0 0 False\n"),
                           ("lost:spoilt", "0 0 700\n700 700 1 700 0 False\n")):
        expect(f"results of a graph with {faults!r}", run(this, faults), (0, wanted))
    hangs(this, "hang:spoilt", "0 0 600\n")
    with tempfile.TemporaryDirectory() as folder:
        counts = pathlib.Path(folder, "counts")
        run(this, "lost:spoilt", counts=str(counts))
        lines = dict(line.split() for line in counts.read_text().splitlines())
        expect("calls", [lines[name] for name in ("cuStreamSynchronize", "cuMemAlloc_v2", "cuCtxSynchronize")], ["2", "2", "0"])


graph() if DRIVER == "graph" else main()
