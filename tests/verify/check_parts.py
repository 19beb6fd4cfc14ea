#!/usr/bin/env python3
"""Tests a run in merged parts, a killed run that resumes, and the errors of both.

usage: check_parts.py PROGRAM DRIVER VERIFY EMULATOR SPREAD

PROGRAM has three kernels on DRIVER, which runs on the host. VERIFY has the default bundle. SPREAD is the folder of scripts.
"""
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAM, DRIVER, VERIFY, EMULATOR = sys.argv[1:5]
SPREAD = pathlib.Path(sys.argv[5])
failed = []


def expect(condition, what, *shown):
    if not condition:
        failed.append(what)
        print("FAILED:", what, *shown, sep="\n")


def call(*command, fault="", **options):
    return subprocess.run([str(c) for c in command], env=dict(os.environ, KILN_FAULT=fault), text=True, capture_output=True,
                          check=False, **options)


def run(*arguments, fault=""):
    return call(PROGRAM, "--driver", DRIVER, "--max-elements", "8192", "--inputs", "1", *arguments, fault=fault)


def without_times(path):
    return path.read_text().split('\n  "times": ')[0]


def make_parts(folder, count, *arguments, fault=""):
    parts = [folder / f"{number}.json" for number in range(1, count + 1)]
    for number, part in enumerate(parts, 1):
        done = run("--part", f"{number}/{count}", "--json", part, *arguments, fault=fault)
        wrong = '"WRONG"' in part.read_text()
        expect(done.returncode == int(wrong), f"part {number} of {count}", done.stdout + done.stderr)
    return parts


# ---- merging ---------------------------------------------------------------------------------------------------------

def check_union(folder):
    """The merged parts equal the whole run: for a right bundle, with a wrong kernel, in any order, with empty parts."""
    for fault, status in (("", 0), ("stopped-at-4096", 1), ("lacks-on-emulator", 1)):
        whole = folder / "whole.json"
        done = run("--json", whole, fault=fault)
        expect(done.returncode == status and not list(folder.glob("*.journal")), "the whole run", done.stdout + done.stderr)
        for count in (2, 5):
            parts = make_parts(folder, count, fault=fault)
            merged = call(PROGRAM, "merge", *reversed(parts), "-o", folder / "merged.json")
            expect(merged.returncode == status and without_times(folder / "merged.json") == without_times(whole),
                   f"{count} parts, {fault or 'no fault'}", merged.stdout + merged.stderr)
    expect("nothing was verified: on the host, emulated all variants were skipped" in merged.stderr, "all are skipped", merged.stderr)
    again = call(PROGRAM, "merge", whole, "-o", "-")
    expect(again.stdout == whole.read_text(), "a whole run is its only part", again.stderr)
    for same in (whole, folder / "." / ".." / folder.name / whole.name):
        kept = whole.read_bytes()
        again = call(PROGRAM, "merge", whole, "-o", same)
        expect(again.returncode == 2 and again.stderr == f"kiln-verify: merge: -o {same} would overwrite the part {whole}\n" and
               whole.read_bytes() == kept, "a part is the output", again.stderr)


def check_bytes(folder):
    whole, merged = folder / "whole.json", folder / "merged.json"
    run("--no-times", "--json", whole)
    parts = make_parts(folder, 2, "--no-times")
    expect('"times"' not in whole.read_text(), "--no-times")
    call(PROGRAM, "merge", *parts, "-o", merged)
    expect(merged.read_bytes() == whole.read_bytes(), "the bytes of a merged run without times")
    check_ranges(folder, whole)
    run("--part", "2/2", "--json", parts[1])
    call(PROGRAM, "merge", *parts, "-o", merged)
    expect(merged.read_bytes() == whole.read_bytes(), "a part without times")


def check_ranges(folder, whole):
    """The report has the smallest and largest launched sizes (axpy launches without elements), or only the requested size."""
    for row in json.loads(whole.read_text())["variants"]:
        least, most = row["ranges"]["n"]
        expect(all(limit > row["ranges"][name][1] for name, limit in row["limits"].items()), f"the limits of {row['id']}", row)
        expect(least == (row["id"] != "axpy") and f"n={most}" in row["largest"].split() and 2 <= row["sizes"] <= row["cases"], f"the sizes of {row['id']}", row)
    done = run("--json", folder / "one.json", "--size", "n=192")
    said = "\nshapes   1 of 2 of the configuration are within the sizes that ran: axpy 0 of 1; --size runs others\n"
    expect(said in done.stdout, said, done.stdout)
    done = run("--filter", "nf4_quantize")
    expect("\nshapes   1 of 1 of the configuration are within the sizes that ran\n" in done.stdout, "all shapes", done.stdout)
    expect([row["ranges"]["n"] for row in json.loads((folder / "one.json").read_text())["variants"]] == [[192, 192]] * 3, "one size")


# A change in the first of two parts (a text, its replacement): the message.
CHANGES = {
    ('"seed": 1', '"seed": 2'): '{1}: seed is "1", that of {0} is "2"',
    ('"options": "--max-elements 8192 --inputs 1"', '"options": ""'): '{1}: options is "--max-elements 8192 --inputs 1", that of {0} is ""',
    ('"device": "', '"device": "no '): '{1}: device is "the host in disguise", that of {0} is "no the host in disguise"',
    ('"manifest_xxh3_128": "', '"manifest_xxh3_128": "x'): '{0}: manifest_xxh3_128 is "x{hash}", that of this program is "{hash}"',
    ('"verifier": "', '"verifier": "un'): '{0}: verifier is "unkiln-verify {version}", that of this program is "kiln-verify {version}"',
    ('"part": "1/2"', '"part": "1/3"'): "{1}: part 2/2, where the first file has one of 3",
    ('"part": "1/2"', '"part": "2/2"'): "{1}: part 2/2, as {0} has",
    ('"part": "1/2"', '"part": "0/2"'): "{0}: '0/2' is no part",
    ('"id": "axpy"', '"id": "axpi"'): "{0}, axpi: this run has no such variant",
    ('"id": "axpy"', '"id": "{other}"'): "{0}, {other}: a second result of this variant",
    ('"cases": ', '"cases": -'): "'cases' is '-{cases}', no number",
    ('"result": "ok"', '"result": "fine"'): "{0}, axpy: no such result: 'fine'",
    ('"worst_error_over_bound": {ratio}', '"worst_error_over_bound": 7.5'): '{0}, {bounded}: result is "ok", but worst_error_over_bound is 7.5, not at most 1',
    ('"run_variants": 3', '"run_variants": 4'): '{1}: run_variants is "3", that of {0} is "4"',
    ('"part_variants": ', '"part_variants": 9'): "{0}: part_variants is 9{count}, found {count}; run this part again with --resume",
    ('"part_variants": ', '"part_variants": -'): "{0}: 'part_variants' is '-{count}', no number",
    ('"bundle": ', '"bund": '): "{0}: 'bundle' is missing",
    ('"variants": [', '"variants": 7, "x": ['): "{0}: 'variants' is not an array",
    ('"ranges": {', '"ranges": 7, "x": {'): "{0}, axpy: expected an object with 'n'",
    ('"n": [{least}, ', '"n": ['): "{0}, axpy: 'n' is no range of two numbers",
    ('"n": [{least}, ', '"n": [-{least}, '): "{0}, axpy: 'n' is '-{least}', no number",
    ("{", "["): "{0}, line 2: ",
}


def check_changes(folder):
    parts = make_parts(folder, 2)
    texts = [part.read_text() for part in parts]
    if '"id": "axpy"' in texts[1]:  # the one with axpy comes first
        texts = [t.replace(f'"part": "{a}/2"', f'"part": "{b}/2"') for t, a, b in zip(reversed(texts), (2, 1), (1, 2))]
    parts[1].write_text(texts[1])
    facts = {"hash": re.search(r'_128": "(\w+)"', texts[0])[1], "version": re.search(r'verifier": "\S+ (.*)"', texts[0])[1],
             "other": re.search(r'"id": "([^"]+)"', texts[1])[1],
             "cases": re.search(r'"cases": (\d+)', texts[0])[1], "count": re.search(r'part_variants": (\d+)', texts[0])[1]}
    facts["least"] = re.search(r'"n": \[(\d+), ', texts[0])[1]
    facts["bounded"], facts["ratio"] = re.search(r'"id": "([^"]+)", "result": "ok".*"worst_error_over_bound": ([0-9.e-]+)', texts[0]).groups()
    for (text, other), words in CHANGES.items():
        first, second = parts
        text = text.replace("{ratio}", facts["ratio"]).replace("{least}", facts["least"])
        parts[0].write_text(texts[0].replace(text, other.replace("{other}", facts["other"]).replace("{least}", facts["least"]), 1))
        said = words.format(*parts, **facts)
        if "a second result" in words:
            said = said.replace(str(first), str(second))
        done = call(PROGRAM, "merge", *parts, "-o", folder / "none.json")
        expect(done.returncode == 2 and said in done.stderr and not (folder / "none.json").exists(), f"{text} -> {other}", said,
               done.stderr, done.stdout)
    for length in (0, 1, 100, len(texts[0]) // 2, len(texts[0]) - 3):
        parts[0].write_text(texts[0][:length])
        done = call(PROGRAM, "merge", *parts)
        expect(done.returncode == 2 and re.search(rf"{parts[0]}(, line \d+)?: ", done.stderr), f"cut at {length}", done.stderr)


def check_missing(folder):
    parts = make_parts(folder, 9)
    for given, words in (((1, 3, 7, 8), "parts 2, 4-6, 9 of 9 are missing"), (range(1, 9), "part 9 of 9 is missing")):
        done = call(PROGRAM, "merge", *(parts[i - 1] for i in given), "-o", folder / "none.json")
        expect(done.returncode == 2 and done.stderr == f"kiln-verify: {words}\n" and not (folder / "none.json").exists(), words, done.stderr)


def check_lacking(folder):
    """A part that lacks some or all variants, with and without a header that says so."""
    parts = make_parts(folder, 2)
    for number, part in enumerate(parts):
        text = part.read_text()
        found = re.search(r'(?s)"variants": \[(.*?)\n  \]', text)
        count = found[1].count('"id"')
        for left in (0, count - 1):
            rows = ",".join(found[1].split(",\n    {")[:1][:left] + [",\n    {" + row for row in found[1].split(",\n    {")[1:left]])
            lacking = text.replace(found[0], f'"variants": [{rows}]')
            words = f"{part}: part_variants is {count}, found {left}; run this part again with --resume"
            for written, said in ((lacking, words), (lacking.replace(f'"part_variants": {count}', f'"part_variants": {left}'),
                                                     f"run_variants is 3, found {3 - count + left} in all parts")):
                part.write_text(written)
                done = call(PROGRAM, "merge", *parts, "-o", folder / "none.json")
                expect(done.returncode == 2 and done.stderr == f"kiln-verify: {said}\n" and not (folder / "none.json").exists(), said,
                       done.stderr)
            part.write_text(lacking)
            done = run("--resume", "--part", f"{number + 1}/2", "--json", part)
            expect(f"resumed  {left} of {count} " in done.stdout and without_times(part) == text.split('\n  "times": ')[0], "a part is completed",
                   done.stdout + done.stderr)
        part.write_text(text)


# ---- resuming --------------------------------------------------------------------------------------------------------

def check_killed(folder):
    whole, out = folder / "whole.json", folder / "out.json"
    journal = folder / "out.json.journal"
    run("--no-times", "--json", whole)
    flags = ("--no-times", "--json", out)
    done = run(*flags, fault="killed")
    expect(done.returncode == -9 and not out.exists() and journal.read_text().count("\n") == 3, "killed", done)
    kept = journal.read_text()
    done = run("--resume", *flags, "--seed", "2")
    expect(done.returncode == 2 and f'--resume: {journal}, line 1: seed is "1", this run\'s is "2"; remove the file to begin anew' in
           done.stderr and journal.read_text() == kept, "a journal of another seed", done.stderr)
    lines = kept.splitlines(keepends=True)
    for text, count in (("", 0), (lines[0][:-1], 0), (lines[0], 0), (lines[0] + lines[1], 1), (lines[0] + lines[2][:-2], 0), (kept + "\0" * 99, 2)):
        journal.write_text(text)
        done = run("--resume", *flags)
        expect(done.returncode == 0 and f"resumed  {count} of 3 " in done.stdout and
               out.read_bytes() == whole.read_bytes() and not journal.exists(), f"a journal with {text!r}", done.stdout + done.stderr)
        out.unlink()
    for text, place in ((lines[0] + "nonsense\n" + lines[1], ", line 2: "), (lines[0] + lines[1][:40] + lines[2], ", line 2"),
                        (lines[0] + "\n" + lines[1], ", line 2: "), ("nonsense\n" + kept, ", line 1: "), (lines[1] + lines[2], ", line 1: 'bundle' is missing"),
                        (kept + lines[1], ", line 4, axpy: a second result of this variant")):
        journal.write_text(text)
        done = run("--resume", *flags)
        expect(done.returncode == 2 and f"--resume: {journal}{place}" in done.stderr and "; remove the file to begin anew\n" in done.stderr
               and journal.read_text() == text and not out.exists(), f"a journal with {text!r}", done.stderr)
    for tail in ("", '{"id": "nf4_unp', kept.splitlines()[-1][:-1]):  # the incomplete line
        journal.write_text(kept + tail)
        done = run("--resume", *flags, fault="nibbles-swapped")  # a second run of nf4_quantize would show it
        expect(done.returncode == 0 and "resumed  2 of 3 variants have run before" in done.stdout and
               out.read_bytes() == whole.read_bytes() and not journal.exists(), f"resumed after {tail}", done.stdout + done.stderr)
    done = run("--resume", *flags, fault="killed")
    expect(done.returncode == 0 and out.read_bytes() == whole.read_bytes() and not journal.exists(), "all of it has run",
           done.stdout + done.stderr)
    done = run("--resume", *flags, "--part", "1/2")
    expect(done.returncode == 2 and f'--resume: {out}: part is "1/1", this run\'s is "1/2"' in done.stderr and not journal.exists(),
           "a file of another part", done.stderr)
    journal.write_text(kept.replace('"axpy"', '"axpi"'))
    done = run("--resume", *flags)
    expect(done.returncode == 2 and f"{journal}, line 2, axpi: this run has no such variant" in done.stderr, "another variant", done.stderr)
    journal.write_text(kept + "nonsense\n")
    done = run("--resume", *flags)
    expect(done.returncode == 2 and f"{journal}, line 4" in done.stderr, "nonsense", done.stderr)
    os.truncate(journal, 1 << 28)
    done = run("--resume", *flags)
    expect(done.returncode == 2 and done.stderr == f"kiln-verify: --resume: cannot read {journal}: File too large\n" and
           journal.stat().st_size == 1 << 28, "a journal that is too large", done.stderr)
    journal.unlink()
    out.unlink()
    mine = folder / "notes.txt"
    for text in ("a note\n", "a note"):
        mine.write_text(text)
        journal.symlink_to(mine)
        for options in (flags, ("--resume", *flags)):
            done = run(*options)
            expect(done.returncode == 2 and not out.exists() and mine.read_text() == text, "a file of mine", done.stderr)
        expect(text[-1] == "\n" or f"cannot write {journal}: kiln-verify did not write this file" in done.stderr, "its message", done.stderr)
        journal.unlink()
    mine.write_text(text)
    mine.rename(folder / "out.json.tmp")
    done = run(*flags)
    expect(done.returncode == 0 and (folder / "out.json.tmp").read_text() == text and len(list(folder.glob("*.tmp"))) == 1,
           "a temporary file of mine", done.stderr)
    journal.write_text(text)
    done = run("--force", *flags)
    expect(done.returncode == 0 and not journal.exists(), "--force", done.stderr)
    out.unlink()
    with open(journal, "w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = run(*flags)
        expect(done.returncode == 2 and f"another run is writing {journal}" in done.stderr, "two runs", done.stderr)
    done = run(*flags)
    expect(done.returncode == 0 and out.read_bytes() == whole.read_bytes() and not journal.exists(), "without --resume", done.stderr)
    done = run("--json", "/dev/stdout", "--no-times")
    expect(whole.read_text() in done.stdout and not pathlib.Path("/dev/stdout.journal").exists(), "no plain file", done.stderr)


# ---- the default bundle, the terminal, the scripts ----------------------------------------------------------------------

def listed(*arguments):
    done = call(VERIFY, "--driver", EMULATOR, "--list", "--filter", "nf4_", *arguments)
    expect(done.returncode == 0, f"--list {arguments}", done.stderr)
    return done.stdout.splitlines()


def check_list():
    whole = sorted(listed())
    for count in (2, 5, len(whole) + 2):
        parts = [listed("--part", f"{number}/{count}") for number in range(1, count + 1)]
        expect(sorted(sum(parts, [])) == whole and (count > len(whole) or all(parts)), f"{count} parts of the default bundle")


def check_terminal():
    """A terminal shows the progress; the table and the results do not contain it."""
    host, guest = pty.openpty()
    done = subprocess.run([PROGRAM, "--driver", DRIVER, "--max-elements", "64"], stdout=subprocess.PIPE, stderr=guest, check=False)
    os.close(guest)
    said = b""
    try:
        while more := os.read(host, 65536):
            said += more
    except OSError:  # all of it was read
        pass
    expect(re.search(rb"\r\x1b\[K0 of 3 variants; 0 cases of axpy", said) and
           re.search(rb"\r\x1b\[K2 of 3 variants, about 0 s left; \d+ cases of nf4_unpack", said) and b"\x1b" not in done.stdout,
           "a terminal", said[-400:])


def check_scripts(folder):
    for script in SPREAD.glob("*.sh"):
        done = call("bash", "-n", script)
        expect(done.returncode == 0, script, done.stderr)
    if not shutil.which("parallel"):
        print("parallel.sh was left out: there is no GNU parallel")
        return
    run("--no-times", "--json", folder / "whole.json")
    out = folder / "spread out.json"
    command = [SPREAD / "parallel.sh", 4, 2, out, PROGRAM, "--driver", DRIVER, "--max-elements", "8192", "--inputs", "1", "--no-times"]
    done = call(*command, fault="killed")
    expect(done.returncode == 2 and re.search(rf"cannot read {out}.\d: No such file", done.stderr) and not out.exists(),
           "parallel.sh, a part dies each time", done)
    done = call(*command)
    left = sorted(p.name for p in folder.glob("spread*"))
    expect(done.returncode == 0 and left == [out.name] and out.read_bytes() == (folder / "whole.json").read_bytes(),
           "parallel.sh goes on", done, left)


def main():
    for check in (check_union, check_bytes, check_changes, check_missing, check_lacking, check_killed, check_scripts):
        with tempfile.TemporaryDirectory() as folder:
            check(pathlib.Path(folder))
    check_list()
    check_terminal()
    print(f"{len(failed)} failed")
    sys.exit(1 if failed else 0)


main()
