#!/usr/bin/env python3
"""Tests behaviour for a GPU, on a disguised emulated driver: one copy each way per execution, and overlapping launches.

usage: check_disguise.py DISGUISE VERIFY OVERLAP PROGRAM DRIVER

DISGUISE is the driver library of disguise.c. VERIFY has the default bundle, OVERLAP has kernels that wait for the preceding
launch, PROGRAM has three kernels on DRIVER, which runs on the host.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

DISGUISE, VERIFY, OVERLAP, PROGRAM, DRIVER = sys.argv[1:]
failed = []


def expect(condition, what, *shown):
    if not condition:
        failed.append(what)
        print("FAILED:", what, *shown, sep="\n")


def run(folder, program, *arguments, **variables):
    """Returns the program's standard error, the rows of its report by id, and its number of calls by name."""
    report, calls = folder / "report.json", folder / "calls"
    environment = dict(os.environ, KILN_EMU_DEVICE="sm_90", KILN_EMU_CHECK="memory", KILN_DISGUISE_CALLS=str(calls))
    environment.update(variables)
    done = subprocess.run([program, "--driver", DISGUISE, "--inputs", "1", "--json", report, *arguments], env=environment, text=True,
                          capture_output=True, check=False)
    expect(report.exists() and calls.exists(), "it ends", done.stdout + done.stderr)
    rows = {row["id"]: row for row in json.loads(report.read_text())["variants"]}
    return done.stderr, rows, {name: int(number) for name, number in (line.split() for line in calls.read_text().splitlines())}


def check_copies(folder):
    """Each execution copies once each way, from one allocation, without fills."""
    _, rows, calls = run(folder, VERIFY, "--max-elements", "1024", "--filter", "type=f32,group=64,nibbles=low")
    executions = calls["ctx_synchronize"]
    expect(len(rows) == 3 and {row["result"] for row in rows.values()} == {"ok"}, "all right", rows)
    expect(executions >= sum(row["launches"] for row in rows.values()) > 0 and
           calls["memcpy_htod"] == calls["memcpy_dtoh"] <= executions and
           (calls["memset_d8"], calls["mem_alloc"], calls["mem_free"]) == (0, 1, 1), "one copy each way per execution", calls)


def check_large_guards():
    """A buffer of more than 64 MiB has its own allocation, and guards."""
    done = subprocess.run([PROGRAM, "--driver", DRIVER, "--inputs", "1", "--filter", "nf4_unpack", "--max-elements", "2048", "--size", "n=17825792"],
                          env=dict(os.environ, KILN_FAULT="one-too-many"), text=True, capture_output=True, check=False)
    expect(done.returncode == 1 and re.search(r"n=17825792, .*\n\s*the kernel wrote outside out", done.stdout), "a large buffer's guard",
           done.stdout + done.stderr)


def check_overlap(folder):
    sizes = ("--max-elements", "4096")
    _, rows, calls = run(folder, OVERLAP, *sizes)
    expect({row["result"] for row in rows.values()} == {"ok"} and len(rows) == 2 and calls["launch_kernel_ex"] == 0, "without --overlap", rows, calls)
    launches = sum(row["launches"] for row in rows.values())
    said, rows, calls = run(folder, OVERLAP, *sizes, "--overlap", KILN_EMU_CHECK="all")
    expect({row["result"] for row in rows.values()} == {"ok"} and said == "" and
           calls["launch_kernel_ex"] == calls["launch_kernel"] == launches and calls["memcpy_htod"] == calls["ctx_synchronize"],
           "with --overlap, each behind a writer, and no more copies", said, rows, calls, launches)
    _, rows, _ = run(folder, OVERLAP, *sizes, KILN_DISGUISE_EARLY="1", KILN_DISGUISE_WORST="1")
    expect({row["result"] for row in rows.values()} == {"ok"}, "no preceding launch", rows)
    _, rows, _ = run(folder, OVERLAP, *sizes, "--overlap", KILN_DISGUISE_EARLY="1", KILN_DISGUISE_WORST="1")
    expect({row["result"] for row in rows.values()} == {"WRONG"} and
           all(re.search("elements are wrong", row["detail"]) for row in rows.values()), "kernels that do not wait", rows)
    lock = folder / "lock"
    said, rows, _ = run(folder, OVERLAP, *sizes, "--overlap", "--launch-lock", lock, KILN_LOCK=str(lock))
    expect({row["result"] for row in rows.values()} == {"ok"}, "locked from the writer to the synchronisation, and not to load", said, rows)
    said, rows, calls = run(folder, OVERLAP, *sizes, "--overlap", KILN_EMU_DEVICE="sm_80")
    expect({row["result"] for row in rows.values()} == {"ok"} and calls["launch_kernel_ex"] == 0 and
           said == "kiln-verify: --overlap does nothing on a device in disguise: launches overlap from sm_90 on\n", "an old device", said, rows)


def main():
    check_large_guards()
    with tempfile.TemporaryDirectory() as name:
        check_copies(pathlib.Path(name))
        check_overlap(pathlib.Path(name))
    print(f"{len(failed)} failed")
    sys.exit(1 if failed else 0)


main()
