#!/usr/bin/env python3
"""Tests references and the UNCOMPARED list: what is compared, what fails a run, and the messages about mistakes.

usage: check_references.py DRIVER COMPARED LISTED UNLISTED CARELESS WRONG

Five programs of one bundle, whose kernel axpy is outside kiln's families: with its reference, with axpy listed as UNCOMPARED,
with neither, with a reference that makes mistakes, and with invalid references and lists.
"""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
DRIVER, COMPARED, LISTED, UNLISTED, CARELESS, WRONG = sys.argv[1:]
failed = []


def run(program, *arguments, fault=""):
    done = subprocess.run([program, "--driver", DRIVER, "--json", "-", "--filter", "axpy", *arguments], text=True,
                          capture_output=True, env=dict(os.environ, KILN_FAULT=fault), check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else done.stdout, done.stderr


def expect(condition, what, *shown):
    if not condition:
        failed.append(what)
        print("FAILED:", what, *shown, sep="\n")


def line_of(file, text):
    with open(os.path.join(HERE, file), encoding="utf-8") as lines:
        return next(number for number, line in enumerate(lines, 1) if text in line)


# mistake: the variant's message after the place of KILN_REFERENCE
MISTAKES = {
    "plan-argument": "plan of the reference of axpy: the kernel has no argument 'm'; it has x, y, norm, a, n",
    "plan-real": "plan of the reference of axpy: 'a' is no integer scalar",
    "make-output": "make of the reference of axpy: 'norm' is no input, which make could fill",
    "make-index": "make of the reference of axpy: 'x' has 10 elements, there is no [10]",
    "make-integer": "make of the reference of axpy: 'n' is no scalar of a float type",
    "make-expects": "make of the reference of axpy: 'y' gets an expectation outside of expect",
    "argument": "expect of the reference of axpy: the kernel has no argument 'z'; it has x, y, norm, a, n",
    "parameter": "expect of the reference of axpy: axpy has no parameter 'type'",
    "index": "expect of the reference of axpy: 'y' has 10 elements, there is no [10]",
    "bound": "expect of the reference of axpy: the bound of y[3] is -1",
    "any-bound": "expect of the reference of axpy: the bound of y[3] is inf",
    "input": "expect of the reference of axpy: 'x' is no output",
    "scalar": "expect of the reference of axpy: 'n' is a scalar, not a buffer",
    "reads-output": "expect of the reference of axpy: 'norm' is no input: nothing is there to be read",
    "sets-input": "expect of the reference of axpy: 'x' is set outside of make",
    "dimension": "expect of the reference of axpy: 'x' has 1 dimensions, there is no dimension 1",
    "kinds": "expect of the reference of axpy: 'y' has expectations of two kinds",
    "unsaid": "expect of the reference of axpy: no expectation for y[9]; kiln_expect_nothing is for outputs that may be anything",
    "unsaid-output": "expect of the reference of axpy: no expectation for norm[0]; kiln_expect_nothing",
}


def check_lists():
    status, report, said = run(COMPARED)
    (variant,) = report["variants"]
    expect(status == 0 and variant["result"] == "ok" and variant["elements"] > 10000 and
           0.1 < variant["worst_error_over_bound"] <= 1 and report["uncompared"] == [], "compared", variant, said)

    status, report, said = run(LISTED)
    expect(status == 0 and report["uncompared"] == [{"family": "axpy", "is_listed": True}] and
           said.endswith("\nrun under all checks, and not compared:\n  axpy\n"), "listed", status, report, said)

    status, report, said = run(UNLISTED)
    expect(status == 1 and report["uncompared"] == [{"family": "axpy", "is_listed": False}] and
           report["variants"][0]["result"] == "executed, not compared" and
           "not compared:\n  axpy, which is not listed as UNCOMPARED\nkiln-verify: 1 kernel was not compared: write a reference of "
           "it (kiln/reference.h) and give it to kiln_add_verify as REFERENCES, or list it there as UNCOMPARED\n" in said,
           "neither", status, report, said)
    status, listing, said = run(UNLISTED, "--list")
    expect(status == 0 and re.search(r"  -          axpy\n", listing), "--list", listing, said)
    status, listing, said = run(COMPARED, "--list")
    expect(status == 0 and re.search(r"  reference  axpy\n", listing), "--list", listing, said)


def check_mistakes():
    place = f"careless_reference.c:{line_of('careless_reference.c', 'KILN_REFERENCE(axpy')}: "
    status, report, said = run(CARELESS)
    expect(status == 0 and report["variants"][0]["result"] == "ok", "no mistake", report, said)
    for mistake, words in MISTAKES.items():
        status, report, said = run(CARELESS, fault=mistake)
        (variant,) = report["variants"]
        expect(status == 1 and variant["result"] == "WRONG" and place + words in variant["detail"], mistake, status, variant, said)
    status, report, said = run(CARELESS, fault="nothing")
    expect(status == 1 and report["variants"][0]["detail"] == "its reference compared nothing" and
           report["uncompared"] == [{"family": "axpy", "is_listed": False}], "a reference that expects nothing", report, said)
    status, report, said = run(CARELESS, fault="plan-illegal")
    expect(status == 1 and report["variants"][0]["result"] == "WRONG" and
           "no sizes were found that its rules allow" in report["variants"][0]["detail"], "a plan of illegal sizes", report, said)


def check_start():
    status, report, said = run(WRONG)
    families = "; it has nf4_quantize, nf4_unpack, axpy"
    at = "wrong_references.c:{}: error: ".format
    first = f"axpy_reference.c:{line_of('axpy_reference.c', 'KILN_REFERENCE(axpy')}"
    wanted = (at(line_of("wrong_references.c", "(axpi")) + "the bundle verify_fixture has no family or kernel 'axpi'" + families,
              at(line_of("wrong_references.c", "(nf4_unpack")) + "kiln has a reference of nf4_unpack, its own family",
              at(line_of("wrong_references.c", "(axpy")) + "a second reference of axpy; the first is at ",
              "kiln-verify: error: UNCOMPARED nothing: the bundle verify_fixture has no family or kernel of that name" + families,
              "kiln-verify: error: UNCOMPARED axpy: it is compared, with the reference at ",
              "kiln-verify: error: UNCOMPARED nf4_quantize: it is compared, with the reference ")
    expect(status == 1 and report == "" and all(w in said for w in wanted) and said.count(first) == 2 and
           said.count("error: ") == 7, "mistakes at the start", status, report, said)


check_lists()
check_mistakes()
check_start()
sys.exit(1 if failed else 0)
