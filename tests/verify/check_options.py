#!/usr/bin/env python3
"""Tests the errors of kiln-verify's command line.

usage: check_options.py VERIFY
"""
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

KEPT = "cannot write main.c: kiln-verify did not write this file, so it stays: write elsewhere, or replace it with --force"
CASES = [  # arguments, exit status, words on stderr or stdout
    ("--help", 0, "usage: kiln-verify"),
    ("--list", 0, "reference"),
    ("--list --part 1/1", 0, "reference"),
    ("--listing", 2, "unknown option '--listing'; --help lists them"),
    ("--jsn=x", 2, "unknown option '--jsn=x'; did you mean '--json'?"),
    ("--list=all", 2, "--list=all: no value is expected"),
    ("-o x", 2, "unknown option '-o'; --help lists them"),
    ("axpy", 2, "'axpy' is one argument too many"),
    ("--seed", 2, "--seed needs a value"),
    ("--seed -1", 2, "--seed: '-1' is no number"),
    ("--seed 1x", 2, "--seed: '1x' is no number"),
    ("--seed 99999999999999999999", 2, "is no number"),
    ("--inputs 0100", 2, "--inputs: '0100' is not from 1 to 64"),
    ("--inputs 0", 2, "--inputs: '0' is not from 1 to 64"),
    ("--max-elements 0", 2, "--max-elements: '0' is not from 64 to 4294967296"),
    ("--big 4294967297", 2, "is not from 0 to 4294967296"),
    ("--device 1024", 2, "is not from 0 to 1023"),
    ("--part 1", 2, "--part: '1' is not I/N"),
    ("--part 3/2", 2, "--part: '3/2' is not I/N with I from 1 to N"),
    ("--part 0/2", 2, "--part: '0' is not from 1 to 65536"),
    ("--part 1/65537", 2, "--part: '65537' is not from 1 to 65536"),
    ("--part a/2", 2, "--part: 'a' is no number"),
    ("--mutate 5 --part 1/2", 2, "--part, --resume and --no-times are not for --mutate"),
    ("--mutate 5 --json x --resume", 2, "--part, --resume and --no-times are not for --mutate"),
    ("--resume", 2, "--resume goes on with the journal of --json FILE: it needs one, and a plain file"),
    ("--resume --json -", 2, "--resume goes on with the journal of --json FILE: it needs one, and a plain file"),
    ("--no-times", 2, "--no-times is for --json and --junit"),
    ("--json x --junit x", 2, "--json and --junit name the same file"),
    ("--json x --junit ./x", 2, "--json and --junit name the same file"),
    ("--json - --junit -", 2, "--json and --junit name the same file"),
    ("--mutate 5 --junit x", 2, "--junit is not for --mutate"),
    ("--junit /nonexistent/x", 2, "cannot write /nonexistent/x"),
    ("merge", 2, "merge: no parts are named; it is called as kiln-verify merge PART.json... [-o FILE]"),
    ("merge -o", 2, "-o needs a value"),
    ("merge --what", 2, "merge: unknown option '--what'"),
    ("''", 2, "an argument is empty"),
    ("merge ''", 2, "merge: an argument is empty"),
    ("merge no_such_part.json", 2, "cannot read no_such_part.json: No such file or directory"),
    ("--size k=1 --size k=2", 2, "--size: 'k=2' names a size that has a value already"),
    (" ".join(f"--size s{i}=1" for i in range(17)), 2, "--size: 's16=1' is one too many"),
    ("--size colums=4", 2, "--size: no variant has 'colums'; there are n"),
    ("--input nope", 2, "--input: no variant has 'nope'; there are normal, "),
    ("--json /nonexistent/x", 2, "cannot write /nonexistent/x"),
    ("--size k", 2, "--size: 'k' is not NAME=N"),
    ("--size =1", 2, "is not NAME=N"),
    ("--size k=x", 2, "--size: 'x' is no number"),
    ("--mutate 0", 2, "--mutate: '0' is not from 1 to 1000000"),
    ("--mutate some", 2, "--mutate: 'some' is no number"),
    ("--mutate 5 --mutate-least 101", 2, "--mutate-least: '101' is not from 0 to 100"),
    ("--mutate 5 --jobs 0", 2, "--jobs: '0' is not from 1 to 256"),
    ("--mutate-least 95", 2, "--mutants, --mutate-least and --jobs are for --mutate"),
    ("--jobs 2", 2, "--mutants, --mutate-least and --jobs are for --mutate"),
    ("--mutants 2", 2, "--mutants, --mutate-least and --jobs are for --mutate"),
    ("--mutate 5 --mutants 2,", 2, "--mutants: '2,' is no list of numbers with commas between"),
    ("--mutate 5 --mutants 2;3", 2, "--mutants: '2;3' is no list of numbers with commas between"),
    ("--filter no_such_variant", 2, "no such variant"),
    ("--json main.c", 2, KEPT),
    ("--junit main.c", 2, KEPT),
    ("--mutate 5 --json main.c", 2, KEPT),
    ("merge part.json -o main.c", 2, KEPT),
    ("merge part.json --junit main.c", 2, KEPT),
    ("--json main.c --force --driver no_such_driver.so", 1, "no_such_driver.so"),
    ("--json empty --driver no_such_driver.so", 1, "no_such_driver.so"),
    ("--data no_such_file", 2, "cannot read no_such_file: No such file or directory"),
    ("--data main.c", 2, "cannot read main.c: it has 18 bytes, no whole number of float32"),
    ("--filter axpy --filter scale", 2, "--filter is given twice"),
    ("--json ''", 2, "--json needs a value"),
    ("--filter ''", 2, "--filter needs a value"),
    ("merge part.json -o ''", 2, "-o needs a value"),
    ("merge part.json --junit ''", 2, "--junit needs a value"),
    ("--data /dev/null", 2, "cannot read /dev/null: it is empty"),
    ("--data /dev/zero", 2, "cannot read /dev/zero: File too large"),
    ("--data /", 2, "cannot read /: Is a directory"),
    *((f"--queue {other}", 2, "--part, --resume, --json, --junit, --mutate and --list are not for it")
      for other in ("--part 1/2", "--json x", "--junit x", "--json x --resume", "--mutate 5", "--list")),
    ("--mutate 5 --launch-seconds 5", 2, "--launch-lock and --launch-seconds are not for --mutate"),
    ("--mutate 5 --launch-lock x", 2, "--launch-lock and --launch-seconds are not for --mutate"),
    ("--launch-seconds 0", 2, "--launch-seconds: '0' is not from 1 to 86400"),
    ("--launch-lock /nonexistent/x", 2, "cannot write /nonexistent/x"),
    ("--device 0 --driver no_such_driver.so", 1, "no_such_driver.so"),
    ("--driver no_such_driver.so", 1, "no_such_driver.so"),
]


def main():
    failed = 0
    os.chdir(sys.argv[2])
    pathlib.Path("main.c").write_text("int main(void) {}\n")
    pathlib.Path("empty").write_text("")
    for arguments, status, words in CASES:
        run = subprocess.run([sys.argv[1], *shlex.split(arguments)], capture_output=True, text=True)
        good = run.returncode == status and words in run.stderr + run.stdout
        failed += not good
        if not good:
            print(f"{arguments}: exit status {run.returncode}, wanted {status}; wanted \"{words}\" in\n{run.stderr}{run.stdout}")
    if pathlib.Path("main.c").read_text() != "int main(void) {}\n":
        failed += print("main.c has changed") is None
    print(f"{len(CASES) - failed} passed, {failed} failed")
    sys.exit(failed != 0)


with tempfile.TemporaryDirectory() as folder:
    sys.argv = [sys.argv[0], os.path.abspath(sys.argv[1]), folder]
    main()
