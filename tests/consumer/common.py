"""Shared by the checks of consumer projects: runs commands that must succeed, checks expectations, gives each verb a scratch folder."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
HERE = pathlib.Path(__file__).resolve().parent
# -8 ... 7.75 in steps of 0.25, so the scale is 8; bytes 0, 8, 16 and 24 have the codes of -1 and -0.97, -0.5 and -0.47,
# 0 and 0.03, 0.5 and 0.53.
RESULT = "minimal: success, scale 8, codes 00 22 77 dc\n"
# Output of `kiln init`'s program: the rounding of the weights and the error of the product, both computed on the host.
INIT_RESULT = """weights: 262144, of which 4 bits each and 4096 scales remain; none moved by more than 0.1517
C[4][512]: first element 11.5625, largest error 0.017, 0.15 of the bound
right
"""
failed = []


def expect(condition, message):
    if not condition:
        failed.append(message)
        print("FAILED:", message)


def skip(why):
    print("SKIPPED:", why)
    sys.exit(SKIPPED)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip(f"there is no {program}")


def run(*command, fails=False, **options):
    done = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **options)
    if (done.returncode != 0) != fails:
        print("FAILED:", *command, "\n", done.stdout)
        sys.exit(1)
    return done.stdout


def main(verbs, name):
    with tempfile.TemporaryDirectory() as scratch:
        {f.__name__: f for f in verbs}[name](pathlib.Path(scratch).resolve())
    sys.exit(1 if failed else 0)
