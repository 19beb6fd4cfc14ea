#!/usr/bin/env python3
"""Proves that kiln-verify finds wrong kernels: plants one mistake at a time, and expects an error in the right variant for the
right reason.

usage: check_faults.py PROGRAM DRIVER
"""
import json
import os
import re
import subprocess
import sys
import tempfile

QUANTIZE = "nf4_quantize/type=f32,group=64,nibbles=low"
UNPACK = "nf4_unpack/type=f32,group=64,nibbles=high"

# fault: the variants that it makes wrong, the message for the first, and options of kiln-verify
FAULTS = {
    # the kernel computes something else
    "nibbles-swapped": ([QUANTIZE], r"elements are wrong.*\n\s*packed\[0\] is"),
    "tail-dropped": ([QUANTIZE], r"^n=1, .*elements are wrong.*\n\s*packed\[0\] is 0xff"),
    "reciprocal": ([QUANTIZE], r"elements are wrong.*\n\s*packed\["),
    "threshold-included": ([QUANTIZE], r'input "thresholds".*elements are wrong', "--input", "thresholds"),
    "smallest-scale": ([QUANTIZE], r"scale\[0\] is .*expected 9.99999996e-13 "),
    "signed-maximum": ([QUANTIZE], r"elements are wrong.*\n\s*scale\[0\] is"),
    "int4-scale": ([QUANTIZE], r"elements are wrong.*\n\s*scale\[0\] is"),
    "absent-nibble": ([QUANTIZE], r"^n=1, .*1 of 2 elements are wrong.*packed\[0\] is 0x1(.); expected 0x0\1"),
    "last-scale-lost": ([QUANTIZE], r"^n=65, .*1 of 35 elements are wrong.*\n\s*scale\[1\] is nan \(0xffffffff\)"),
    "table-entry": ([UNPACK], r"elements are wrong.*\n\s*out\["),
    "group-shifted": ([UNPACK], r"^n=65, .*elements are wrong.*\n\s*out\[63\] is"),
    "denormals-flushed": ([UNPACK], r'input "(denormal|any-bits|uniform)".*elements are wrong'),
    "stopped-at-4096": ([UNPACK], r"^n=409[79], .* of 409[79] elements are wrong.*\n\s*out\[409[678]\] is 0 "),
    # the reference of a kernel outside kiln's families
    "axpy-sign": (["axpy"], r"elements are wrong.*\n\s*y\[0\] is .*; expected "),
    "axpy-neighbour": (["axpy"], r"1 of [0-9]+ elements are wrong.*\n\s*y\[1\] is|elements are wrong; the first:\n\s*y\["),
    "axpy-norm": (["axpy"], r" 1 of [0-9]+ elements are wrong; the first:\n\s*norm\[0\] is "),
    # it accesses forbidden memory
    "write-past-end": ([QUANTIZE], r"the kernel wrote outside packed"),
    "write-before": ([QUANTIZE], r"the kernel wrote outside scale"),
    "one-too-many": ([UNPACK], r"^n=1024, .*\n\s*the kernel wrote outside out"),
    "input-changed": ([QUANTIZE], r"the kernel changed its input in, first at byte [0-3]"),
    "chance": ([QUANTIZE], r"elements are wrong|two runs differ: packed, byte 0"),
    # it does not run at all
    "kernel-fails": (["axpy", QUANTIZE, UNPACK],
                     r"the kernel failed: CUDA_ERROR_ILLEGAL_ADDRESS \(700\): an illegal memory access"),
    "load-fails": (["axpy", QUANTIZE, UNPACK], r"\n      .*cuModuleLoadDataEx"),
    "lacks": (["axpy", QUANTIZE, UNPACK], r"\n      .*cuModuleLoadDataEx.*'wgmma' is not emulated"),
    "launch-fails": (["axpy", QUANTIZE, UNPACK], r"\n      .*cuLaunchKernel"),
    "optional-required": (["axpy"], r"optional outputs null, seed 1:\n      the kernel failed"),
    "empty-read": (["axpy"], r"^a=[0-9.-]+ n=0, .*second run, arrays without elements null, seed 1:\n      the kernel failed"),
    # its launcher is wrong
    "empty-refused": (["axpy"], r"^a=[0-9.-]+ n=0, .*arrays without elements null, seed 1:\n      a required pointer is null"),
    "rule-unchecked": ([QUANTIZE], r'^rule "n must be at most 2\^40" broken \(n=1099511627777\): got "success" and 1 launches'),
    "aligned-rule-unchecked": (["axpy"], r'^rule "x must be aligned to 16 bytes for 100 elements or more" broken, with x '
                               r'aligned to 8 bytes \(a=[0-9.-]+ n=100\): got "success" and 1 launches'),
    "null-unchecked": ([QUANTIZE, UNPACK], r'^in null \(n=1\): got "success" and 1 launches'),
    "alignment-unchecked": ([QUANTIZE, UNPACK], r'^scale misaligned by 1 \(n=1\): got "success" and 1 launches'),
    "empty-launches": ([QUANTIZE, UNPACK], r"^n=0, .*\n\s*1 launches; expected 0"),
    "one-block-more": ([QUANTIZE, UNPACK], r"launched with grid.x 2, .*the manifest says 1, "),
    "dispatch": ([QUANTIZE], r"through the family's function, seed 1:\n      0 launches; expected 1"),
}


def run(program, driver, fault, arguments=()):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        environment = dict(os.environ, KILN_FAULT=fault)
        done = subprocess.run([program, "--driver", driver, "--json", path, *arguments], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        report = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
    return done.returncode, done.stdout, report


def fail(fault, why, output):
    print(f"FAILED: {fault or 'no fault'}: {why}\n{output}")
    return 1


def check_fault(program, driver, fault):
    wanted, pattern, *options = FAULTS[fault]
    status, output, report = run(program, driver, fault, ["--max-elements", "20000", *options])
    wrong = {v["id"]: v["detail"] for v in report.get("variants", []) if v["result"] == "WRONG"}
    if status != 1 or list(wrong) != wanted:
        return fail(fault, f"status {status}, wrong variants {list(wrong)}", output)
    if not re.search(pattern, wrong[wanted[0]], re.DOTALL):
        return fail(fault, f"'{pattern}' does not match", output)
    return 0


def check_healthy(program, driver):
    status, output, report = run(program, driver, "")
    if status != 0:
        return fail("", f"status {status}", output)
    failed = 0
    for v in report["variants"]:
        if v["result"] != "ok" or v["cases"] < 30 or v["elements"] < 20000 or v["refusals"] < 4:
            failed += fail("", f"unexpected: {v}", output)
    again = run(program, driver, "")[2]
    del report["times"], again["times"]
    if report != again:
        failed += fail("", "two runs report differently", "")
    return failed


def check_command_line(program, driver):
    missing = "/nonexistent/libcuda.so.1"
    rows = [(["--help"], 0), (["--list"], 0), (["--list", "--filter", "nothing of this kind"], 2), (["--what"], 2),
            (["--input", "thresholds"], 0), (["--input", "nothing of this kind"], 2), (["--seed"], 2), (["--seed", "x"], 2), (["--device", "5"], 1), (["--filter", "axpy"], 0),
            (["--driver", missing], 1)]
    failed = 0
    for arguments, wanted in rows:
        if "--driver" not in arguments:
            arguments = ["--driver", driver, *arguments]
        status = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                check=False).returncode
        if status != wanted:
            failed += fail("", f"{arguments}: status {status}, expected {wanted}", "")
    return failed


def check_all_skipped(program, driver):
    """A requested driver that runs no variant is an error; a driver found by default is not."""
    failed = 0
    rows = [(["--driver", driver], "all variants were", 1),
            (["--driver", driver, "--filter", "axpy"], "the only variant was", 1),
            (["--device", "0"], "all variants were", 1), ([], "all variants were", 77)]
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(driver, os.path.join(folder, "libcuda.so.1"))
        environment = dict(os.environ, KILN_FAULT="device-too-old", LD_LIBRARY_PATH=folder)
        for arguments, skipped, wanted in rows:
            done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, check=False)
            said = f"nothing was verified: on the host in disguise {skipped} skipped; the table says why\n"
            if done.returncode != wanted or said not in done.stderr:
                failed += fail("device-too-old", f"{arguments}: status {done.returncode}, expected {wanted}",
                               done.stdout + done.stderr)
    return failed


def check_sizes(program, driver):
    """Any size that rules allow can be run, with the plan's other sizes. Otherwise the reason is reported."""
    rows = [("n=1234", QUANTIZE, 0, "ok", "", 20 + 617), ("n=1000001", UNPACK, 0, "ok", "", 1000001),
            ("n=1234", "axpy", 0, "ok", "", 1234 + 1),
            ("n=1235", "axpy", 1, "skipped", "not applicable where n is 1235: n must be even", 0),
            ("n=5000000000", "axpy", 1, "skipped", "not applicable where n is 5000000000: it does not fit the argument's type", 0),
            ("n=5000000000", UNPACK, 1, "skipped", "too large: where n is 5000000000 all buffers together have more than "
             "4294967296 elements, 16384 times --max-elements, which raises that limit", 0),
            ("n=0", UNPACK, 1, "skipped", "where n is 0 it has nothing to do", 0)]
    failed = 0
    for size, variant, wanted, result, said, elements in rows:
        status, output, report = run(program, driver, "", ["--filter", variant, "--size", size])
        v = report["variants"][0]
        good = (status, v["result"]) == (wanted, result) and said in v.get("detail", "")
        good = good and (v["largest"].split()[-1:] == [size] if elements else v["largest"] == "")
        good = good and (v["elements"] > 0 and v["elements"] % elements == 0 if elements else v["elements"] == 0)
        failed += 0 if good else fail("", f"--size {size}: status {status}, expected {wanted}, {result}: {v}", output)
    return failed


def check_lacks(program, driver):
    """A feature that the emulated driver lacks does not count as a kernel's mistake."""
    status, output, report = run(program, driver, "lacks-on-emulator")
    said = {"the emulated driver cannot execute it: line 7: error: 'wgmma' is not emulated"}
    variants = report.get("variants", [])
    if status != 1 or {v["result"] for v in variants} != {"skipped"} or {v["detail"] for v in variants} != said:
        return fail("lacks-on-emulator", f"status {status}", output)
    status, output, report = run(program, driver, "refused-on-emulator")
    variants = {v["id"]: v for v in report.get("variants", [])}
    refused = variants.pop("axpy", {})
    if status != 0 or refused.get("result") != "skipped" or {refused.get("detail")} != said or not variants or \
            {v["result"] for v in variants.values()} != {"ok"}:
        return fail("refused-on-emulator", f"status {status}", output)
    return 0


def main():
    program, driver = sys.argv[1:]
    failed = check_healthy(program, driver) + check_command_line(program, driver) + check_all_skipped(program, driver)
    failed += check_lacks(program, driver) + check_sizes(program, driver)
    found = 0
    for fault in FAULTS:
        one = check_fault(program, driver, fault)
        found += 1 - one
        failed += one
    print(f"{found} of {len(FAULTS)} planted faults were found")
    sys.exit(1 if failed else 0)


main()
