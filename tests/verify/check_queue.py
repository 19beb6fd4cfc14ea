#!/usr/bin/env python3
"""Tests --queue: a feeder requests variants one by one. Also launches under a lock, and launches that do not end.

usage: check_queue.py PROGRAM DRIVER

PROGRAM has three kernels on DRIVER, which runs on the host.
"""
import fcntl
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile

PROGRAM, DRIVER = sys.argv[1:]
IDS = ["nf4_unpack/type=f32,group=64,nibbles=high", "axpy", "nf4_quantize/type=f32,group=64,nibbles=low"]
OPTIONS = ["--driver", DRIVER, "--max-elements", "8192", "--inputs", "1"]
LOST, HUNG = 4, 5
failed = []


def expect(condition, what, *shown):
    if not condition:
        failed.append(what)
        print("FAILED:", what, *shown, sep="\n")


def environment(fault, **variables):
    return dict(os.environ, KILN_FAULT=fault, **variables)


def run(*arguments, fault="", **options):
    return subprocess.run([PROGRAM, *OPTIONS, *arguments], env=environment(fault), text=True, capture_output=True, check=False, **options)


def queue(ids, *arguments, fault=""):
    done = run("--queue", *arguments, fault=fault, input="".join(i + "\n" for i in ids))
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def without_times(path):
    return path.read_text().split('\n  "times": ')[0]


def check_lines(folder):
    """The lines are a journal: with them, a run with the same options has nothing left to do."""
    whole, fed = folder / "whole.json", folder / "fed.json"
    run("--json", whole)
    done, lines = queue(IDS)
    rows = {row["id"]: row for row in json.loads(whole.read_text())["variants"]}
    expect(done.returncode == 0 and done.stderr == "" and [{k: v for k, v in row.items() if k != "seconds"} for row in lines[1:]] ==
           [rows[i] for i in IDS], "a line per variant, in the order of the ids", done.stdout + done.stderr)
    pathlib.Path(f"{fed}.journal").write_text(done.stdout)
    done = run("--json", fed, "--resume", fault="killed")
    expect(done.returncode == 0 and without_times(fed) == without_times(whole), "the lines as a journal", done.stdout + done.stderr)


def check_wrong():
    done, lines = queue(["axpi", "", IDS[1], IDS[1] + "\r"])
    expect(done.returncode == 0 and [row["id"] for row in lines[1:]] == ["axpi", "", "axpy", "axpy"] and
           [row["result"] for row in lines[1:]] == ["WRONG", "WRONG", "ok", "ok"] and
           lines[1]["detail"].startswith("no such variant: the bundle lacks it") and
           lines[1]["worst_error_over_bound"] is None and lines[3]["worst_error_over_bound"] is not None, "ids", done.stdout + done.stderr)
    done, lines = queue(IDS, fault="axpy-sign")
    expect(done.returncode == 0 and [row["result"] for row in lines[1:]] == ["ok", "WRONG", "ok"], "a wrong variant", done.stdout)
    done, lines = queue(IDS, fault="lacks")
    expect(done.returncode == 0 and [row["result"] for row in lines[1:]] == ["WRONG"] * 3 and
           all("cuModuleLoadDataEx" in row["detail"] and "\nline 7: error: 'wgmma' is not emulated" in row["detail"] for row in lines[1:]),
           "modules that do not load, with the log", done.stdout)
    done, lines = queue(IDS, fault="kernel-fails")
    expect(done.returncode == LOST and [row["id"] for row in lines[1:]] == IDS[:1] and lines[1]["result"] == "WRONG" and
           "CUDA_ERROR_ILLEGAL_ADDRESS" in lines[1]["detail"], "the context is lost", done.stdout + done.stderr)


def next_line(process, seconds):
    """Returns a line, or None if there is none in this time."""
    return json.loads(process.stdout.readline()) if select.select([process.stdout], [], [], seconds)[0] else None


def check_lock(folder):
    """Each line comes as soon as its variant has run. Only kernels wait for the lock."""
    lock = folder / "lock"
    with open(lock, "w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with subprocess.Popen([PROGRAM, *OPTIONS, "--queue", "--launch-lock", lock], env=environment(""), bufsize=0,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            facts = next_line(process, 60)
            process.stdin.write(b"axpy\n")
            early = next_line(process, 0.5)
            fcntl.flock(held, fcntl.LOCK_UN)
            row = next_line(process, 60)
            process.stdin.close()
    expect(facts["bundle"] and early is None and row["result"] == "ok" and process.returncode == 0, "a lock that is held", facts, early, row)
    done = subprocess.run([PROGRAM, *OPTIONS, "--launch-lock", lock, "--launch-seconds", "60"], env=environment("", KILN_LOCK=str(lock)),
                          text=True, capture_output=True, check=False)
    expect(done.returncode == 0, "when the lock is held", done.stdout + done.stderr)


def check_hung(folder):
    """Each line is complete. Without --queue there is a message. With --resume the other variants are kept."""
    for lock in ([], ["--launch-lock", folder / "lock"]):
        done, lines = queue([IDS[1]], "--launch-seconds", "1", *lock, fault="hangs")
        expect(done.returncode == HUNG and done.stdout.endswith("\n") and lines[1:] ==
               [{"id": "axpy", "result": "hung", "worst_error_over_bound": None, "elements": 0, "launches": 0, "detail": "no end after 1 s"}],
               "a launch that does not end", done.stdout + done.stderr)
    done = run("--launch-seconds", "1", fault="hangs")
    expect(done.returncode == HUNG and done.stderr == "kiln-verify: axpy: a launch has not ended after 1 s\n" and
           "bundle" in done.stdout, "in a plain run", done.stdout + done.stderr)


def main():
    check_wrong()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_lines(folder)
        check_lock(folder)
        check_hung(folder)
    print(f"{len(failed)} failed")
    sys.exit(1 if failed else 0)


main()
