#!/usr/bin/env python3
"""Records the launches of the emulated driver's own tests, or of any program, for replay.py to repeat on a GPU.

usage: record.py OUT [--build DIR] [--target T] [--jobs N] [--only TEST ...] [--conformance FILE] [--launches FILE.jsonl ...]

The tests run with KILN_EMU_RECORD; --launches names the files of programs that have already run with it. Each launch is then
repeated on an emulated device of the target; its results there are expected of the GPU. It runs twice more:

- with the thread blocks in reverse: bytes that differ depend on their order, and are undefined unless there are atomics
- with the check for uninitialised values, where registers and local memory begin as NaNs: bytes that differ are undefined

A text for a newer target, or for the features of another one (sm_120a), becomes one for this target. A launch is left out, and
listed with the reason, if the target lacks its instructions, if only a check makes it fail, if its results are undefined, or if
it repeats another launch. A large launch is cut to its first thread blocks and their share of the inputs.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import replay
from compare import Text
from recording import Recording, Writer, changed, hash_of, replaced

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("api", "async", "cluster", "compare", "convert", "count", "count_memory", "float", "half", "integer", "load", "matrix",
            "memory", "mma", "mma_sums", "narrow", "numbers", "source", "sync", "warp")
MORE = {"compiled": ["tests/test_compiled", ROOT / "tests/emulator/compiled/ptx"],
        "compiled_by_clang": ["tests/test_compiled", "tests/emulator/compiled/clang"],
        "correct": ["tests/test_corpus", "correct", "tests/emulator/correct"],
        "conformance": ["tests/test_conformance", ROOT.parent / "shared/conformance/ptx_instructions.json"]}  # if it exists
SKIPPED = 77
REPORTED = {716: b"", 717: b"", 719: b"trap"}  # errors that a GPU reports too, misaligned and trap: a word of the PTX
KEPT_BYTES = 8 << 10                  # per large launch
SECONDS = 3600
IN_ORDER = {"KILN_EMU_THREADS": "1"}  # otherwise the order of thread blocks is random
PASSES = {"expected": {"KILN_EMU_CHECK": "memory"}, "reverse": {"KILN_EMU_CHECK": "none", "KILN_EMU_ORDER": "reverse"},
          "poisoned": {"KILN_EMU_CHECK": "init"}}


# ---- the tests' launches ---------------------------------------------------------------------------------------------

def run_tests(build, room, only):
    """Yields (test, path of a process' lines)."""
    commands = {name: [f"tests/test_{name}"] for name in PROGRAMS} | MORE
    for test in only or commands:
        program, *arguments = commands[test]
        arguments = [str(build / a if isinstance(a, str) and "/" in a else a) for a in arguments]
        environment = {**os.environ, **IN_ORDER, "KILN_EMU_RECORD": str(room / test)}
        done = subprocess.run([build / program, *arguments], env=environment, capture_output=True, text=True)
        if done.returncode == SKIPPED:
            print(f"{test}: {done.stdout.strip()}")
        elif done.returncode:
            sys.exit(f"record.py: {test} fails: {done.stdout[-500:]} {done.stderr[-500:]}")
        for lines in sorted(room.glob(f"{test}.*.jsonl")):
            yield test, lines


def cut(launch):
    """Cuts a large one-dimensional launch to its first thread blocks. Returns the share that is kept."""
    bytes_ = sum(block["bytes"] for block in launch["blocks"])
    grid = launch["grid"][0]
    if bytes_ <= 2 * KEPT_BYTES or grid < 2 or launch["grid"][1:] != [1, 1] or launch["result"] or launch.get("cluster"):
        return 1
    launch["grid"][0] = max(1, grid * KEPT_BYTES // bytes_)
    return launch["grid"][0] / grid


def retargeted(text, target):
    """Returns the text with this target, unless its own is older, or has this one's features (sm_90a)."""
    number = int(target.removeprefix("sm_"))

    def choose(match):
        of_text = int(match[2])
        return match[0] if of_text == number or (of_text < number and not match[3]) else match[1] + target.encode()
    return re.sub(rb"(\.target\s+)sm_(\d+)([a-z]?)\b", choose, text, count=1)


def identity(launch):
    """Returns a key that is equal for launches of the same kernel on equal memory, at any addresses."""
    def placed(data, pointers):
        words = {offset: int.from_bytes(data[offset:offset + 8], "little") for offset in pointers}
        return [(offset, *next((i, word - b["at"]) for i, b in enumerate(launch["blocks"]) if 0 <= word - b["at"] <= b["bytes"]))
                for offset, word in words.items()]

    parameters = bytes.fromhex(launch["parameters"])
    others = [byte for i, byte in enumerate(parameters) if not any(p <= i < p + 8 for p in launch["pointers"])]
    names = ("text", "entry", "grid", "block", "shared_bytes", "dependent", "cluster", "result")
    return json.dumps([launch.get(name) for name in names] + [others] +
                      [placed(parameters, launch["pointers"])] +
                      [[block["bytes"], block.get("name"), block["before"], block["pointers"]] for block in launch["blocks"]])


def draft(raw, target, writer, test, seen):
    """Adds the launches of a process to a recording. seen: the identities of earlier ones."""
    with raw.open(encoding="utf-8") as lines, raw.with_suffix(".bytes").open("rb") as file:
        def read(place):
            file.seek(place[0])
            return file.read(place[1])

        for line in lines:
            launch = {"test": test, **json.loads(line)}
            text = retargeted(read(launch["text"]), target)
            launch["text"] = writer.put(text)
            if launch["result"] and REPORTED.get(launch["result"], text + b"?") not in text:
                launch["left_out"] = f"error {launch['result']}, which a GPU may not report"
            share = cut(launch) if "blocks" in launch else 1
            for block in launch.get("blocks", ()):
                before = read(block["before"])
                if share < 1:
                    if not block["pointers"]:
                        before = before[:max(4096, -(-int(len(before) * share) // 256) * 256)]
                    launch["cut"] = True
                block["before"] = writer.put(before.rstrip(b"\0"))
                if "after" in block:  # compared only if the launch is not cut
                    block["after"] = writer.put(b"" if share < 1 else read(block["after"]))
            if "left_out" not in launch:
                key = identity(launch)
                if key in seen:
                    launch["left_out"] = "repeats another launch"
                seen.add(key)
            writer.add(launch)


# ---- the expected results --------------------------------------------------------------------------------------------

def repeat(recording, numbers, driver, jobs, room, settings):
    """Repeats launches on an emulated device. Returns each launch's row."""
    rows, reasons = {}, [f"{SECONDS} s are over"]

    def lose(line, why):
        if line is None:  # no process started
            reasons.append(why)
        else:
            rows[int(line)] = {"result": "lost", "why": why}
    os.environ.update(settings)
    left = replay.feed_shards(replay.command(recording.folder, str(driver), "--child", "--capture", str(room)),
                              replay.shards_of(recording, numbers, jobs), time.monotonic() + SECONDS,
                              lambda line, row: rows.update({int(line): row}), lose, lambda first: None)
    for name in settings:
        del os.environ[name]
    if left:
        sys.exit(f"record.py: {len(left)} launches did not run: {reasons[-1]}")
    return rows


def contents(recording, launch, row):
    """Yields each block's bytes after a pass."""
    with open(row["file"], "rb") as file:
        for block, (first, at, bytes_) in zip(launch["blocks"], row["after"]):
            file.seek(at)
            yield replaced(recording.before(block), first, file.read(bytes_))


def differences(number, one, other):
    """The words that differ, as [block, first byte, end]."""
    found = []
    if one == other:
        return found
    for at in range(0, len(one), 4):
        if one[at:at + 4] != other[at:at + 4]:
            if found and found[-1][2] == at:
                found[-1][2] = at + 4
            else:
                found.append([number, at, min(at + 4, len(one))])
    return found


def judge(recording, launch, rows):
    """Judges a launch by its passes: why it is left out, or how it is compared."""
    expected, reverse, poisoned = (rows[name] for name in PASSES)
    if expected["result"] == "unloadable":
        return {"left_out": re.sub(r"^line \d+: error: | \d+ \|.*", "", expected["log"]) or f"error {expected['code']}"}
    if expected["result"] == "fails":
        if expected["code"] == launch["result"]:
            return {}
        return {"left_out": f"error {expected['code']} on this target"}
    if expected["result"] == "lost":
        return {"left_out": expected["why"]}
    if launch["result"]:
        return {"left_out": f"error {launch['result']}, from a check only"}
    if poisoned["result"] != "ran":
        return {"left_out": "uses uninitialised values"}
    if reverse["result"] != "ran":
        return {"left_out": "fails with the thread blocks in reverse"}
    is_of_target = not launch.get("cut") and launch["device"] == rows["device"]
    order, undefined = False, []
    results = (contents(recording, launch, row) for row in (expected, reverse, poisoned))
    for number, (block, want, back, nans) in enumerate(zip(launch["blocks"], *results)):
        if is_of_target and want != recording.after(block):
            return {"left_out": "gives other results when repeated"}
        undefined += differences(number, want, nans)
        if want != back and Text(recording.text(launch)).is_atomic:
            order = True
        else:
            undefined += differences(number, want, back)
    return {"undefined": undefined, "order": order}


def finish(recording, launch, row, writer):
    """Completes a launch with its results on the target."""
    launch["resident_blocks"] = row.get("resident_blocks")
    launch["text"] = writer.put(recording.text(launch))
    after = contents(recording, launch, row) if row["result"] == "ran" else map(recording.before, launch["blocks"])
    for block, got in zip(launch["blocks"], after):
        before = recording.before(block)
        first, part = changed(before, got)
        block |= {"before": writer.put(before.rstrip(b"\0")), "first": first, "after": writer.put(part)}


def record(out, build, target, jobs, only=(), raw=()):
    """Makes a recording. raw: (test, file) of launches that were already written; they replace the tests'."""
    driver = build / "lib/emulator/libcuda.so.1"
    with tempfile.TemporaryDirectory(prefix="kiln-record-") as room:
        room = pathlib.Path(room)
        writer, seen = Writer(room / "draft"), set()
        for test, lines in raw or run_tests(build, room, only):
            draft(lines, target, writer, test, seen)
            if not raw:
                lines.unlink()
                lines.with_suffix(".bytes").unlink()
        writer.close()
        recording, passes = Recording(room / "draft"), {}
        numbers = replay.repeated(recording)
        for name, settings in PASSES.items():
            settings = {"KILN_EMU_DEVICE": target, "KILN_EMU_VERBOSE": "0", **IN_ORDER, **settings}
            passes[name] = repeat(recording, numbers, driver, jobs, room, settings)
            numbers = [number for number in numbers if passes["expected"][number]["result"] == "ran"]
        writer = Writer(out)
        for number, launch in enumerate(recording.launches):
            if "left_out" not in launch:
                rows = {name: passes[name].get(number) for name in PASSES} | {"device": int(target.removeprefix("sm_"))}
                launch |= {name: value for name, value in judge(recording, launch, rows).items() if value}
            if "left_out" in launch:
                launch = {name: launch[name] for name in ("test", "target", "entry", "left_out")}
            else:
                finish(recording, launch, rows["expected"], writer)
            writer.add(launch)
        writer.close()


def report(out):
    """Prints how many launches of each test are recorded, and why others are not."""
    recording = Recording(out)
    tests = collections.defaultdict(list)
    for launch in recording.launches:
        tests[launch["test"]].append(launch)
    for test, launches in tests.items():
        reasons = collections.Counter(launch.get("left_out") for launch in launches)
        print(f"{test}: {reasons.pop(None, 0)} launches" +
              "".join(f"; {count} left out: {why[:100]}" for why, count in reasons.items()))
    kept = [launch for launch in recording.launches if "left_out" not in launch]
    texts = len({tuple(launch["text"]) for launch in kept})
    print(f"{len(kept)} of {len(recording.launches)} launches, {texts} texts, {recording.bytes.stat().st_size / 2**20:.1f} MiB; "
          f"{hash_of(out)}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="+", default=(), choices=[*PROGRAMS, *MORE], metavar="TEST")
    parser.add_argument("--conformance", type=pathlib.Path, default=MORE["conformance"][1])
    parser.add_argument("--launches", nargs="+", type=pathlib.Path, default=())
    options = parser.parse_args()
    if not re.fullmatch(r"sm_\d+", options.target):
        parser.error(f"argument --target: expected a base target such as sm_90, found '{options.target}'")
    if missing := [str(path) for path in (options.build / "lib/emulator/libcuda.so.1", *options.launches) if not path.exists()]:
        parser.error(f"there is no {missing[0]}")
    MORE["conformance"][1] = options.conformance.resolve()
    record(options.out, options.build, options.target, options.jobs, options.only,
           [(file.name.split(".")[0], file) for file in options.launches])
    report(options.out)


if __name__ == "__main__":
    main()
