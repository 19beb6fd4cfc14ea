#!/usr/bin/env python3
"""Tests kiln-verify --mutate: the drawn mutants, the ones that it finds, and its report on survivors.

usage: check_mutants.py DRIVER PROGRAM VERIFY PTX REAL_PROGRAM REAL_DRIVER

PROGRAM has the kernel of PTX, and no reference; VERIFY the default bundle; the last two a driver that is not emulated.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

KINDS = {"operation", "comparison", "operand", "register", "immediate", "address", "guard", "dropped", "barrier", "fence",
         "wait", "lanes", "rounding", "qualifier", "branch"}
SMALL = ["--max-elements", "512", "--inputs", "1"]

# The fate of a change, in any draw: its kind, the changed line, the result, a word of the reason.
KNOWN = [
    ("barrier", "", "killed", "CUDA_ERROR"),
    ("fence", "", "lives", ""),
    ("wait", "cp.async.wait_group 1;", "killed", "CUDA_ERROR"),
    ("dropped", "", "killed", "CUDA_ERROR_LAUNCH_TIMEOUT"),  # the step of the loop's counter
    ("operation", "min.f32 %f5, %f3, %f4;", "lives", ""),  # values are not checked
    ("address", "st.global.f32 [%rd6+4], %f5;", "killed", "CUDA_ERROR_ILLEGAL_ADDRESS"),
]


class Checker:
    def __init__(self, driver):
        self.driver, self.failed = driver, 0

    def expect(self, is_so, what):
        self.failed += not is_so
        if not is_so:
            print(f"FAILED: {what}")

    def run(self, program, *arguments, driver=None, has_ptxas=False):
        path = os.environ["PATH"] if has_ptxas else "/nonexistent"
        environment = {"KILN_EMU_DEVICE": "sm_80", **os.environ, "PATH": path}
        return subprocess.run([program, "--driver", driver or self.driver, *arguments], env=environment, text=True,
                              capture_output=True, check=False)

    def report(self, program, *arguments, has_ptxas=False):
        done = self.run(program, "--json", "-", *arguments, has_ptxas=has_ptxas)
        self.expect(done.returncode == 0, f"{arguments}: status {done.returncode}\n{done.stderr}")
        return json.loads(done.stdout)


def check_tally(checker, report):
    for rows, member in (report["families"], None), (report["kinds"], "kind"), ([report], None):
        for row in rows:
            mutants = [m for m in report["mutants"] if member is None or m[member] == row[member]]
            tally = {r: sum(m["result"] == r for m in mutants) for r in ("killed", "lives", "same code")}
            drawn, killed, same = len(mutants), tally["killed"], tally["same code"]
            wanted = (drawn, killed, same, round(100 * killed / drawn, 2), round(100 * killed / (drawn - same), 2))
            row = tuple(row[k] for k in ("drawn", "killed", "same_code", "raw_percent", "net_percent"))
            checker.expect(row == wanted, f"tally {row}, expected {wanted}")
    checker.expect(sum(k["drawn"] for k in report["kinds"]) == report["drawn"], "kinds do not add up")


def check_lines(checker, report, ptx):
    lines = pathlib.Path(ptx).read_text(encoding="utf-8").split("\n")
    for m in report["mutants"]:
        good = lines[m["line"] - 1].strip().partition(" /*")[0] == m["before"] != m["after"] and m["target"] == "sm_80"
        checker.expect(good and m["id"] == "smooth", f"line {m['line']}: {m}")
        checker.expect(m["before"] != "mov.f32 %v1, 0f40000000;", "a function that is not called was changed")
    checker.expect(len({(m["line"], m["after"]) for m in report["mutants"]}) == len(report["mutants"]), "drawn twice")


def check_kinds(checker, program, ptx):
    """Runs all mutants."""
    arguments = ["--mutate", "100000", "--seed", "3", "--size", "n=64", "--inputs", "1"]
    report = checker.report(program, *arguments)
    checker.expect(300 < report["drawn"] < 600 and report["asked"] == 100000, f"{report['drawn']} were drawn")
    checker.expect({k["kind"] for k in report["kinds"]} == KINDS, "a kind was not drawn")
    checker.expect(report["crashed"] == 0 and report["ptxas"] == "" and report["same_code"] == 0, "crashed, or ptxas")
    check_tally(checker, report)
    check_lines(checker, report, ptx)
    for kind, after, result, why in KNOWN:
        found = [m for m in report["mutants"] if m["kind"] == kind and m["after"] == after and why in m["detail"]]
        checker.expect(found and all(m["result"] == result for m in found), f"{kind} {after}: {found}")


def check_repeatable(checker, program):
    first = [checker.report(program, "--mutate", "30", "--seed", "5", "--jobs", jobs, *SMALL) for jobs in ("1", "2", "7")]
    checker.expect(first[0] == first[1] == first[2], "it depends on the number of processes")
    other = checker.report(program, "--mutate", "30", "--seed", "6", *SMALL)
    checker.expect(first[0]["mutants"] != other["mutants"], "two seeds draw the same")


def check_text(checker, program):
    done = checker.run(program, "--mutate", "30", "--seed", "5", *SMALL)
    report = checker.report(program, "--mutate", "30", "--seed", "5", *SMALL)
    for m in report["mutants"]:
        listed = f"{m['number']}: smooth\n  sm_80 line {m['line']}, {m['kind']}: {m['before']}\n        -> {m['after'] or '(nothing)'}\n"
        checker.expect((listed in done.stdout) == (m["result"] == "lives"), f"listed, or not: {listed}")
    words = f"{report['killed']} of 30 mutants killed, {report['raw_percent']:.1f} %; there is no ptxas on the PATH"
    checker.expect(words in done.stdout, f"'{words}' not in\n{done.stdout}")
    least = int(report["net_percent"])
    for percent, status in (least, 0), (least + 1, 1):
        done = checker.run(program, "--mutate", "30", "--seed", "5", "--mutate-least", str(percent), *SMALL)
        said = f"--mutate-least asks for {percent}" in done.stderr
        checker.expect(done.returncode == status and said == bool(status), f"{percent}: status {done.returncode}")
    done = checker.run(program, "--mutate", "4000", "--seed", "5", "--filter", "nothing")
    checker.expect(done.returncode == 2, f"no such variant: status {done.returncode}")


def check_again(checker, program):
    """Runs single mutants by number."""
    arguments = ["--mutate", "30", "--seed", "5", *SMALL]
    every = checker.report(program, *arguments)["mutants"]
    asked = every[3:20:4]
    again = checker.report(program, *arguments, "--mutants", ",".join(str(m["number"]) for m in asked))["mutants"]
    done = checker.run(program, *arguments, "--mutants", "5,100000")
    checker.expect(done.returncode == 2 and "100000 is none of the mutants" in done.stderr, done.stderr)
    checker.expect(len({m["number"] for m in every}) == 30 and again == asked, f"again: {again}, expected {asked}")


def check_reference(checker, verify):
    """A reference finds most mutants, and fewer at a size that is too small. Survivors are reported."""
    arguments = ["--filter", "nf4_scale/type=f32", "--mutate", "45", "--seed", "1", "--inputs", "2"]
    enough = checker.report(verify, *arguments, "--max-elements", "9000")
    weak = checker.report(verify, *arguments, "--size", "n=1")
    key = [(m["line"], m["after"]) for m in enough["mutants"]]
    checker.expect(key == [(m["line"], m["after"]) for m in weak["mutants"]], "sizes change what is drawn")
    checker.expect(enough["raw_percent"] > 80 > 60 > weak["raw_percent"], f"{enough['raw_percent']}, {weak['raw_percent']}")
    by_value = [m for m in enough["mutants"] if "elements are wrong" in m["detail"]]
    checker.expect(len(by_value) > 10 and all(m["result"] == "killed" for m in by_value), f"{len(by_value)} by value")


def check_same_code(checker, program):
    if not shutil.which("ptxas"):
        print("skipped: there is no ptxas on the PATH")
        return
    without = checker.report(program, "--mutate", "120", "--seed", "3", *SMALL)
    report = checker.report(program, "--mutate", "120", "--seed", "3", *SMALL, has_ptxas=True)
    checker.expect(report["ptxas"].startswith("release "), report["ptxas"])
    same = [m for m in report["mutants"] if m["result"] == "same code"]
    checker.expect(0 < len(same) < report["drawn"] - report["killed"], f"{len(same)} have the same code")
    checker.expect(report["killed"] == without["killed"], "ptxas changes what is killed")
    check_tally(checker, report)


def check_turns(checker, verify):
    """If each size takes one input, another device begins with another input."""
    names = set()
    for target in ("sm_75", "sm_80", "sm_90", "sm_120"):
        os.environ["KILN_EMU_DEVICE"] = target
        report = checker.report(verify, "--filter", "nf4_scale/type=f32", "--mutate", "8", "--size", "n=65", "--inputs", "1")
        found = {m["detail"].partition('input "')[2].partition('"')[0] for m in report["mutants"]} - {""}
        checker.expect(1 <= len(found) <= 2, f"{target}: inputs {found}")  # a second kind if the first has equal elements
        names |= found
    del os.environ["KILN_EMU_DEVICE"]
    checker.expect(len(names) > 2, f"the first input of four devices is one of {names}")


def check_refused(checker, verify, driver):
    done = checker.run(verify, "--mutate", "5", driver=driver)
    said = "--mutate is for the emulated driver: on the host in disguise a wrong kernel may hang"
    checker.expect(done.returncode == 2 and said in done.stderr, f"status {done.returncode}: {done.stderr}")


def check_not_begun(checker, program, verify, driver):
    """A kernel that cannot run the requested sizes has no mutants, and neither does a text without instructions."""
    done = checker.run(program, "--mutate", "5", "--size", "n=63")
    checker.expect(done.returncode == 1 and "smooth has no mutants: not applicable where n is 63" in done.stderr, done.stderr)
    os.environ["KILN_FAULT"] = "lacks-on-emulator"
    done = checker.run(verify, "--mutate", "5", driver=driver)
    del os.environ["KILN_FAULT"]
    said = "nothing could be changed in what was asked for"
    checker.expect(done.returncode == 1 and said in done.stderr, f"status {done.returncode}: {done.stderr}")


def main():
    driver, program, verify, ptx, real_program, real_driver = sys.argv[1:]
    checker = Checker(driver)
    check_kinds(checker, program, ptx)
    check_repeatable(checker, program)
    check_text(checker, program)
    check_again(checker, program)
    check_reference(checker, verify)
    check_same_code(checker, program)
    check_turns(checker, verify)
    check_refused(checker, real_program, real_driver)
    check_not_begun(checker, program, real_program, real_driver)
    print("all as expected" if not checker.failed else f"{checker.failed} failed")
    sys.exit(checker.failed != 0)


main()
