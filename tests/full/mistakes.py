#!/usr/bin/env python3
"""Mistakes in calls of changed.py, and in its record: the message, and that the record is unchanged. And that comments and lines do
not change what it hashes of a reference.

usage: mistakes.py BUILD
"""
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile

build = str(pathlib.Path(sys.argv[1]).resolve())
ROW = "0123456789abcdef 0123456789abcdef\n"
CASES = (  # the record, arguments, exit status, the last line of what is printed
    (ROW, "", 2, "the following arguments are required: command, build, seconds, families"),
    (ROW, "chekc BUILD 1", 2, "argument command: invalid choice: 'chekc'"),
    (ROW, "check BUILD", 2, "the following arguments are required: seconds"),
    (ROW, "more BUILD rope", 2, "argument seconds: invalid float value: 'rope'"),
    (ROW, "check BUILD 1 rope", 2, "check takes no family"),
    (ROW, "more nowhere 1", 2, "/nowhere is not a build folder"),
    ("# head\n" + ROW + "<<<<<<< HEAD\n", "more BUILD 1", 1,
     "/tests/full/verified.txt:3: error: expected a key and a hash, found '<<<<<<< HEAD'"),
    (ROW + ROW[:20], "check BUILD 1", 1, "verified.txt:2: error: expected a key and a hash, found '0123456789abcdef 012'"),
    (None, "check BUILD 1", 1, "changed.py: [Errno 2] No such file or directory: "),
)

failed = 0
with tempfile.TemporaryDirectory() as room:
    script = pathlib.Path(room) / "tests/full/changed.py"
    script.parent.mkdir(parents=True)
    shutil.copy(pathlib.Path(__file__).with_name("changed.py"), script)
    record = script.with_name("verified.txt")
    for text, arguments, status, message in CASES:
        record.unlink(missing_ok=True)
        if text is not None:
            record.write_text(text, encoding="utf-8")
        words = [build if word == "BUILD" else word for word in arguments.split()]
        done = subprocess.run([sys.executable, "-B", script, *words], cwd=room, capture_output=True, text=True, check=False)
        printed = (done.stdout + done.stderr).strip().splitlines() or [""]
        kept = record.read_text(encoding="utf-8") if record.exists() else None
        if done.returncode != status or message not in printed[-1] or kept != text:
            failed += 1
            print(f"changed.py {arguments}: status {done.returncode}\n" + "\n".join(printed))
    spec = importlib.util.spec_from_file_location("changed", script)
    changed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(changed)
    hashed = set()
    for text in ('f("rope", 1); g();', '/* One. */ f("rope", 1);\n\n  /* Two. */\ng(); /* three */', 'f("rope", 2); g();'):
        (pathlib.Path(room) / "reference.c").write_text(text, encoding="utf-8")
        hashed.add(tuple(changed.reference_files(pathlib.Path(room), "rope")))
    if len(hashed) != 2:
        failed += 1
        print("changed.py: a comment changes what is hashed of a reference, or a number does not")
sys.exit(failed > 0)
