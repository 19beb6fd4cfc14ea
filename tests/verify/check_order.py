#!/usr/bin/env python3
"""Tests what a single run leaves out: another order of thread blocks, and images of other targets.

usage: check_order.py DRIVER PROGRAM VERIFY

PROGRAM has the kernel of order.ptx for sm_75, and no reference. Only the second run, from the last block to the first, shows that its
result depends on which block comes first. VERIFY has the default bundle.
"""
import json
import os
import subprocess
import sys

# KILN_EMU_ORDER; the result of the kernel
CASES = (({}, "WRONG", "two runs differ: y"), ({"KILN_EMU_ORDER": "forward"}, "executed, not compared", ""))

# a filter; KILN_EMU_DEVICE and KILN_EMU_DRIVER; the targets that are not run, without images that need a newer driver
VARIANT = "nvfp4_gemv/c=bf16,decode=software,strategy=simt,lane_codes=16"
TARGETS = (("nf4_scale/type=f32", "sm_90", "13000", []), (VARIANT, "sm_90", "13000", ["sm_75", "sm_80"]),
           (VARIANT, "sm_87", "13000", ["sm_75", "sm_90"]), (VARIANT, "sm_90", "10010", []))

# options; the status and messages of a run in which --own-images leaves nothing; an empty part is no failure
NOTHING = ("kiln-verify: nothing was verified: no chosen variant has an image for kiln emulated sm_80 itself; without --own-images "
           "they run images of lower targets\n")
OWN = ([], (1, NOTHING)), (["--mutate", "1"], (1, NOTHING)), (["--part", "1/2"], (0, ""))


def run(driver, program, *arguments, **variables):
    environment = dict(os.environ, KILN_EMU_THREADS="1", **variables)
    done = subprocess.run([program, "--driver", driver, "--json", "-", *arguments], env=environment, text=True,
                          capture_output=True, check=False)
    return json.loads(done.stdout), done.stderr


def judge(driver, program, **variables):
    report, _ = run(driver, program, **variables)
    row, = report["variants"]
    return row["result"], " ".join(row.get("detail", "").split())


def names_targets(driver, verify, name, device, version, targets):
    report, table = run(driver, verify, "--filter", name, "--max-elements", "64", KILN_EMU_DEVICE=device, KILN_EMU_DRIVER=version)
    line = f"not run   images for {', '.join(targets)}: KILN_EMU_DEVICE={(targets or ['-'])[0]} runs those for {(targets or ['-'])[0]}\n"
    return report["targets_not_run"] == targets and (line in table if targets else "not run   " not in table)


def own_images(driver, program, *arguments):
    """Returns the status and messages of a run on a target without images of its own."""
    done = subprocess.run([program, "--driver", driver, "--own-images", *arguments], text=True, capture_output=True, check=False,
                          env=dict(os.environ, KILN_EMU_DEVICE="sm_80"))
    return done.returncode, done.stderr


def main():
    failed = 0
    driver, program, verify = sys.argv[1:]
    for arguments, wanted in OWN:
        found = own_images(driver, program, *arguments)
        failed += found != wanted
        print(f"{'ok  ' if found == wanted else 'FAIL'} --own-images {' '.join(arguments)}: {found}")
    for variables, verdict, words in CASES:
        result, detail = judge(driver, program, **variables)
        is_good = result == verdict and words in detail
        failed += not is_good
        print(f"{'ok  ' if is_good else 'FAIL'} {variables or 'both orders'}: {result} {detail}")
    for row in TARGETS:
        is_good = names_targets(driver, verify, *row)
        failed += not is_good
        print(f"{'ok  ' if is_good else 'FAIL'} targets not run: {row}")
    sys.exit(failed != 0)


main()
