#!/usr/bin/env python3
"""Tests the JUnit XML of runs: a right bundle, wrong kernels, merged parts. The file is written completely or not at all.

usage: check_junit.py DRIVER PROGRAM LISTED UNLISTED

PROGRAM has three kernels on DRIVER, which runs on the host. In LISTED and UNLISTED one of them lacks a reference; only LISTED
lists it as UNCOMPARED.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

DRIVER, PROGRAM, LISTED, UNLISTED = sys.argv[1:]
failed = []


def expect(condition, what, *shown):
    if not condition:
        failed.append(what)
        print("FAILED:", what, *shown, sep="\n")


def run(program, *arguments, fault=""):
    return subprocess.run([program, "--driver", DRIVER, "--max-elements", "8192", "--inputs", "1", *map(str, arguments)], text=True,
                          capture_output=True, check=False, env=dict(os.environ, KILN_FAULT=fault))


def merge(*arguments):
    return subprocess.run([PROGRAM, "merge", *map(str, arguments)], text=True, capture_output=True, check=False)


OUTCOMES = {"ok": None, "skipped": "skipped", "WRONG": "failure"}


def check_against_json(tree, results, uncompared=None):
    """Each variant is a test case with its result, each family is a suite with the run's facts, and the counts are right."""
    suites = list(tree)
    expect(tree.tag == "testsuites" and [s.get("name") for s in suites] == [f["family"] for f in results["families"]], "suites")
    for suite in suites:
        facts = {p.get("name"): p.get("value") for p in suite.find("properties")}
        wanted = {name: value for name, value in results.items() if not isinstance(value, (list, dict))}
        expect(facts == {name: value if isinstance(value, str) else json.dumps(value) for name, value in wanted.items()},
               "properties", facts, wanted)
        expect(all(facts.get(name) for name in ("bundle", "device", "driver_version", "sm", "seed", "manifest_xxh3_128")), "facts")
    cases = {case.get("name"): case for case in tree.iter("testcase")}
    expect(list(cases) == [v["id"] for v in results["variants"]], "cases", cases)
    outcomes = {"executed, not compared": uncompared, **OUTCOMES}
    for variant in results["variants"]:
        case = cases[variant["id"]]
        tags = [child.tag for child in case if child.tag != "system-out"]
        wanted = outcomes[variant["result"]]
        expect(tags == ([wanted] if wanted else []), "the outcome", variant, tags)
        expect(case.get("classname") == f"{results['bundle']}.{variant['id'].split('/')[0]}", "classname", case.attrib)
        expect(case.find("system-out").text.startswith(
            f"{variant['cases']} cases, {variant['launches']} launches, {variant['refusals']} refused calls, "), "system-out")
        for failure in case.findall("failure"):
            expect(failure.get("type") == variant["result"] and failure.text == failure.get("message"), "a failure", failure.attrib)
            expect(failure.text == variant.get("detail", failure.text), "the detail", failure.text)
    for element in [tree, *suites]:
        inside = [c for c in element.iter("testcase")]
        counts = [len(inside), sum(c.find("failure") is not None for c in inside), sum(c.find("skipped") is not None for c in inside)]
        expect([int(element.get(name)) for name in ("tests", "failures", "skipped")] == counts, "counts", element.attrib, counts)


def check_runs(folder):
    results, junit = folder / "results.json", folder / "junit.xml"
    for program, fault, status, uncompared, tags in (
            (PROGRAM, "", 0, None, 0), (PROGRAM, "stopped-at-4096", 1, None, 1), (PROGRAM, "lacks-on-emulator", 1, None, 1),
            (LISTED, "", 0, "skipped", 1), (UNLISTED, "", 1, "failure", 1)):
        done = run(program, "--json", results, "--junit", junit, fault=fault)
        expect(done.returncode == status and "seconds" in done.stdout, "a run", fault, done.stdout + done.stderr)
        tree = xml.etree.ElementTree.parse(junit).getroot()
        check_against_json(tree, json.loads(results.read_text()), uncompared)
        marked = [e for e in tree.iter() if e.tag in ("failure", "skipped")]
        expect(len(marked) >= tags and bool(marked) == bool(tags), "what is marked", fault, marked)
        expect(all(float(case.get("time")) >= 0 for case in tree.iter("testcase")), "times")


def check_bytes(folder):
    """Except for times, two runs and a merge of parts write the same, and standard output has nothing else."""
    files = [folder / f"{i}.xml" for i in range(3)]
    for file in files[:2]:
        run(PROGRAM, "--junit", file, "--no-times")
    parts = [folder / f"{number}.json" for number in (1, 2)]
    for number, part in enumerate(parts, 1):
        run(PROGRAM, "--json", part, "--part", f"{number}/2")
    done = merge(*parts, "--junit", files[2], "--no-times")
    whole = files[0].read_text()
    expect(done.returncode == 0 and whole == files[1].read_text() == files[2].read_text(), "the same bytes", done.stderr)
    expect(" time=" not in whole and whole.endswith("</testsuites>\n"), "no times", whole)
    expect(run(PROGRAM, "--junit", "-", "--no-times").stdout == whole, "standard output")
    expect(merge(*parts, "--junit", "-", "--no-times").stdout == whole, "standard output of merge")


def check_refused(folder):
    part = folder / "1.json"
    run(PROGRAM, "--json", part)
    before = part.read_text()
    for arguments, text in (((part, "--junit", part), f"merge: --junit {part} would overwrite the part {part}"),
                            ((part, "-o", folder / "x", "--junit", folder / "x"), "merge: -o and --junit name the same file"),
                            ((part, "-o", folder / "x", "--junit", f"{folder}/./x"), "merge: -o and --junit name the same file"),
                            ((part, "--junit"), "--junit needs a value")):
        done = merge(*arguments)
        expect(done.returncode == 2 and text in done.stderr and part.read_text() == before, text, done.stderr)
    done = merge(part, "--junit", folder / "no/such")
    expect(done.returncode == 2 and "cannot write" in done.stderr, "a file that cannot be written", done.stderr)
    done = run(PROGRAM, "--junit", "/dev/full")
    expect(done.returncode == 1 and "cannot write /dev/full" in done.stderr, "a full disk", done.stderr)
    expect(sorted(p.name for p in folder.iterdir()) == ["1.json"], "the files in the folder", list(folder.iterdir()))


for check in (check_runs, check_bytes, check_refused):
    with tempfile.TemporaryDirectory() as scratch:
        check(pathlib.Path(scratch))
sys.exit(bool(failed))
