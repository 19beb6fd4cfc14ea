"""Tests the phase "language model" of tools/bench/gpu on the emulated driver, with a small model.

usage: lm_test.py ROOT KILN_BENCH KILN KILN_LM EMULATOR
"""
import contextlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
sys.path[:0] = [str(ROOT / "tools/bench"), str(ROOT / "tests/lm")]
import committed
import lm
import lm_model
import records
import small_header

GOLDENS = ROOT / "tests/lm/goldens_synthetic_small.txt"
WRONG = 'token 3 is {0}, 0.5 below float64\'s best, 7; allowed 0.0042'


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, expected {wanted!r}")


def pack(room, programs):
    build = room / "build"
    (build / "bin").mkdir(parents=True)
    (build / "tools/bench").mkdir(parents=True)
    for program, name in zip(programs, ("kiln-bench", "kiln", "kiln-lm")):
        shutil.copy(program, build / "bin" / name)
    (build / "tools/bench/sets.json").write_text("{}")
    lm_model.make(small_header.small_header(), room / "small.gguf")
    done = subprocess.run([sys.executable, "-B", ROOT / "tools/bench/gpu", "pack", "--build", build, "--model", room / "small.gguf",
                           room / "kit"], capture_output=True, text=True)
    expect("pack", (done.returncode, done.stderr), (0, ""))
    shutil.rmtree(build)


def measure(room, name, goldens, *phases):
    """Runs phases with these goldens in the kit. Returns (exit status, rows of the phase, rows of the run)."""
    (room / "kit/lm/goldens.txt").write_text(goldens, encoding="utf-8")
    out = room / "results" / name
    only = [word for phase in (*phases, lm.PHASE) for word in ("--only", phase)]
    done = subprocess.run([sys.executable, "-B", room / "kit/gpu", "measure", out, "--driver", sys.argv[5], "--small", "1", *only],
                          env={"PATH": os.environ["PATH"], "TMPDIR": str(room), "KILN_EMU_DEVICE": "sm_90"}, capture_output=True, text=True)
    rows = [row for row in records.read(out, "times") if row.get("phase") == lm.PHASE]
    if done.returncode:
        print(done.stdout[-1000:] + done.stderr[-1000:])
    return done.returncode, rows, [row for row in records.read(out, "run") if row.get("phase") == lm.PHASE]


def with_step(goldens, step, line):
    """Returns the goldens with this step's line replaced; {0} stands for its token."""
    lines = goldens.splitlines()
    at = next(i for i, text in enumerate(lines) if text.startswith("float64")) + 1 + step
    token = lines[at].split()[0]
    lines[at] = line.format(token)
    return "\n".join(lines) + "\n", token


def main():
    right = GOLDENS.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as room:
        room = pathlib.Path(room)
        pack(room, sys.argv[2:5])
        status, rows, _ = measure(room, "right", right, "facts")
        expect("results", (status, [(row["graphs"], row["result"]) for row in rows]), (0, [(True, "ok"), (False, "ok")]))
        expect("tokens without graphs", rows[1]["tokens"], rows[0]["tokens"])
        expect("tokens that were compared", ["32 tokens checked" in row["detail"] for row in rows], [True, True])
        expect("rates", [row[name] > 0 for row in rows for name in ("prompt_tokens_per_second", "answer_tokens_per_second")], [True] * 4)
        print(f"{len(rows[0]['tokens'])} tokens: {rows[0]['detail']}")

        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            lm.print_results(room / "results/right")
        expect("what judge prints", [line.split(":")[0] for line in said.getvalue().splitlines()],
               ["kiln-lm with graphs", "kiln-lm without graphs"])

        goldens, token = with_step(right, 3, "  7 0.0021 0.05 7:0 {0}:0.5")
        status, rows, _ = measure(room, "wrong", goldens)
        expect("a wrong token", (status, [(row["result"], row["detail"]) for row in rows]), (0, [("WRONG", WRONG.format(token))] * 2))
        goldens, _ = with_step(right, 3, "  7 0.0021 0.05 7:0 {0}:0.004")
        status, rows, _ = measure(room, "near", goldens)
        expect("a near tie", (status, [(row["result"], row["detail"][:33]) for row in rows]),
               (0, [("ok", "the first 4 of 32 tokens checked,")] * 2))

        status, rows, run = measure(room, "other", re.sub(r"(?m)^model \w+$", "model 0123", right))
        expect("another model", (status, rows, [row["failed"][:31] for row in run if "failed" in row]),
               (1, [], ["Refused: the model has SHA-256 "]))

        about = json.loads((room / "kit/lm/about.json").read_text(encoding="utf-8"))
        measured = committed.machines(room / "results", "times", lm.PHASE, about["kernels"])
        expect("machines with other kernels", committed.machines(room / "results", "times", lm.PHASE, "0"), [])
        (room / "kit/lm/about.json").write_text(json.dumps({**about, "measured": measured}))
        status, rows, run = measure(room, "again", right, "facts")
        expect("a phase whose results are committed", (status, rows, [row["skipped"] for row in run if "skipped" in row]),
               (0, [], ["results of this card, driver and kernel text are committed"]))


main()
