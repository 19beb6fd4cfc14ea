#!/usr/bin/env python3
"""Repeats recorded launches on a driver, and compares their results in memory.

usage: replay.py RECORDING OUT.jsonl [--driver PATH] [--seconds S] [--jobs N] [--launch-seconds S]

RECORDING is a folder that record.py made, or a kit's. OUT.jsonl gets a line for the driver, and one per launch as soon as it has
ended. Besides compare.py's results there are

    fails       another error than on the emulated driver, or an error on one of them only
    unloadable  the driver rejects the text; `log` is its log
    hung, died  no answer in time (20 s); the process ended. A new process goes on with the next launch
    left out    not repeated; `why` is the reason

`resident` are the resident thread blocks per multiprocessor on the emulated driver and on this one, if they differ; `local_bytes`
is a thread's local memory, for arrays and spilled registers.

A summary by test follows on stdout.
"""
import argparse
import collections
import concurrent.futures
import ctypes
import json
import math
import os
import pathlib
import re
import struct
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import committed
import recording
from compare import Comparison, Text
from probes.driver import CLUSTER_DIMENSION, Attribute, Config, DEPENDENT_LAUNCH, SHARED_OPT_IN, Gpu
from recording import Recording, changed
from supervise import Feed

PHASE = "replay"
LAUNCH_SECONDS = 20
LOCAL_BYTES = 3  # CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
UNSUPPORTED_PTX_VERSION = 222
VERSIONS = "9.0", "8.8", "8.5", "8.0"  # PTX versions of CUDA 13.0, 12.9, 12.6 and 12.0
GOOD = "equal", "nan", "ulps", "unordered", "unjudged"
KINDS = *GOOD, "differs", "fails", "unloadable", "hung", "died", "left out"


class Failed(Exception):
    """A driver call failed: (where, code, log)."""


class Machine:
    """A driver's first device, and the last module that was loaded."""

    def __init__(self, path):
        self.gpu = Gpu(path, True)
        self.text, self.module = None, ctypes.c_void_p()

    def call(self, where, name, *arguments):
        status = getattr(self.gpu.library, name)(*arguments)
        if status:
            raise Failed(where, status, "")

    def load(self, text):
        if text == self.text:
            return
        if self.text:
            self.gpu.library.cuModuleUnload(self.module)
        self.text = None
        for version in (None, *VERSIONS):
            tried = text if not version else re.sub(rb"\.version\s+[\d.]+", b".version " + version.encode(), text, count=1)
            log = ctypes.create_string_buffer(4096)
            options = (ctypes.c_int * 2)(5, 6)  # the error log and its size
            values = (ctypes.c_void_p * 2)(ctypes.addressof(log), 4096)
            status = self.gpu.library.cuModuleLoadDataEx(ctypes.byref(self.module), tried, 2, options, values)
            if status != UNSUPPORTED_PTX_VERSION:
                break
        if status:
            raise Failed("load", status, " ".join(log.value.decode(errors="replace").split())[:300])
        self.text = text

    def function(self, entry):
        function = ctypes.c_void_p()
        self.call("load", "cuModuleGetFunction", ctypes.byref(function), self.module, entry.encode())
        return function

    def place_of(self, block):
        """The block's address on this device: a variable of the module, or new memory."""
        at, bytes_ = ctypes.c_uint64(), ctypes.c_size_t()
        if "name" in block:
            self.call("load", "cuModuleGetGlobal_v2", ctypes.byref(at), ctypes.byref(bytes_), self.module, block["name"].encode())
        else:
            self.call("allocate", "cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(block["bytes"]))
        return at.value

    def free(self, blocks, places):
        for block, place in zip(blocks, places):
            if "name" not in block:
                self.gpu.library.cuMemFree_v2(ctypes.c_uint64(place))

    def run(self, recorded, launch):
        """Launches. Returns each block's bytes afterwards, with pointers as recorded. Raises Failed."""
        self.load(recorded.text(launch))
        function, blocks, places = self.function(launch["entry"]), launch["blocks"], []
        for block in blocks:
            places.append(self.place_of(block))
        here = [(block["at"], block["bytes"], place) for block, place in zip(blocks, places)]
        there = [(place, bytes_, at) for at, bytes_, place in here]
        for block, place in zip(blocks, places):
            self.gpu.upload(place, moved(recorded.before(block), block["pointers"], here))
        parameters = moved(bytes.fromhex(launch["parameters"]), launch["pointers"], here)
        self.launch(function, launch, parameters)
        self.call("run", "cuCtxSynchronize")
        after = [moved(self.gpu.download(place, block["bytes"]), block.get("pointers_after", block["pointers"]), there)
                 for block, place in zip(blocks, places)]
        self.free(blocks, places)
        return after

    def launch(self, function, launch, parameters):
        if launch["shared_bytes"] > 48 << 10:
            self.call("load", "cuFuncSetAttribute", function, SHARED_OPT_IN, ctypes.c_int(launch["shared_bytes"]))
        bytes_, size = ctypes.create_string_buffer(parameters, max(1, len(parameters))), ctypes.c_size_t(len(parameters))
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(bytes_), 2, ctypes.addressof(size), 0) if parameters else None
        attributes = [Attribute(DEPENDENT_LAUNCH, 0, (ctypes.c_uint32 * 16)(1))] if launch["dependent"] else []
        if launch.get("cluster"):
            attributes.append(Attribute(CLUSTER_DIMENSION, 0, (ctypes.c_uint32 * 16)(*launch["cluster"])))
        if attributes:
            config = Config(tuple(launch["grid"]), tuple(launch["block"]), launch["shared_bytes"], self.gpu.stream,
                            (Attribute * len(attributes))(*attributes), len(attributes))
            self.call("run", "cuLaunchKernelEx", ctypes.byref(config), function, None, extra)
        else:
            self.call("run", "cuLaunchKernel", function, *launch["grid"], *launch["block"], launch["shared_bytes"], None, None,
                      extra)


def moved(data, pointers, ranges):
    """Translates pointers: each range (from, bytes, to) moves."""
    if not pointers:
        return data
    data = bytearray(data)
    for offset in pointers:
        word, = struct.unpack_from("<Q", data, offset)
        inside = [(first, second) for first, bytes_, second in ranges if first <= word < first + bytes_]
        inside += [(first, second) for first, bytes_, second in ranges if word == first + bytes_]
        if inside:
            struct.pack_into("<Q", data, offset, inside[0][1] + word - inside[0][0])
    return bytes(data)


# ---- the process that repeats ----------------------------------------------------------------------------------------

def repeat(machine, recorded, launch):
    """Repeats one launch; returns its row, without the number."""
    try:
        after = machine.run(recorded, launch)
    except Failed as why:
        where, code, log = why.args
        if where == "load":
            return {"result": "unloadable", "code": code, "log": log}
        same = where == "run" and code == launch["result"]
        return {"result": "equal" if same else "fails", "code": code, "expected": launch["result"]}
    if launch["result"]:
        return {"result": "fails", "code": 0, "expected": launch["result"]}
    comparison = Comparison(Text(recorded.text(launch)), launch.get("order"))
    for number, (block, got) in enumerate(zip(launch["blocks"], after)):
        undefined = [(first, end) for of, first, end in launch.get("undefined", ()) if of == number]
        comparison.add(number, recorded.after(block), got, undefined)
    return comparison.row() | resources(machine, launch)


def capture(machine, recorded, launch, out):
    """Repeats one launch; returns its result and, for each block, [first byte, place in the file, bytes] of what changed."""
    try:
        after = machine.run(recorded, launch)
    except Failed as why:
        where, code, log = why.args
        return {"result": "unloadable" if where == "load" else "fails", "code": code, "log": log}
    places = []
    for block, data in zip(launch["blocks"], after):
        first, part = changed(recorded.before(block), data)
        places.append([first, out.tell(), len(part)])
        out.write(part)
    out.flush()
    return {"result": "ran", "file": out.name, "after": places, "resident_blocks": resident_blocks(machine, launch)}


def number_from(machine, name, *arguments):
    value = ctypes.c_int()
    return value.value if getattr(machine.gpu.library, name)(ctypes.byref(value), *arguments) == 0 else None


def resident_blocks(machine, launch):
    return number_from(machine, "cuOccupancyMaxActiveBlocksPerMultiprocessor", machine.function(launch["entry"]),
                       math.prod(launch["block"]), ctypes.c_size_t(launch["shared_bytes"]))


def resources(machine, launch):
    """The kernel's resident thread blocks, if they differ from the emulated driver's, and its local memory."""
    resident = resident_blocks(machine, launch)
    local_bytes = number_from(machine, "cuFuncGetAttribute", LOCAL_BYTES, machine.function(launch["entry"]))
    row = {"resident": [launch["resident_blocks"], resident]} if resident != launch["resident_blocks"] else {}
    return row | ({"local_bytes": local_bytes} if local_bytes else {})


def is_lost(row):
    """Whether the context may be lost: after any error of a launch, or an earlier launch's error that a load reports."""
    return "code" in row and (row["result"] != "unloadable" or row["code"] >= 700)


def child(options):
    """Reads launch numbers, a line each, and answers each with its row. Ends when the context may be lost."""
    machine, recorded = Machine(options.driver), Recording(options.recording)
    print(json.dumps({name: machine.gpu.facts[name] for name in ("name", "driver_version", "major", "minor")}), flush=True)
    out = tempfile.NamedTemporaryFile("wb", dir=options.capture, delete=False) if options.capture else None
    for line in sys.stdin:
        launch = recorded.launches[int(line)]
        row = capture(machine, recorded, launch, out) if out else repeat(machine, recorded, launch)
        print(json.dumps(row), flush=True)
        if is_lost(row):
            break
    sys.stdout.flush()
    os._exit(0)  # skips the driver's cleanup, which may wait for a hung kernel


# ---- the processes ---------------------------------------------------------------------------------------------------

def describe(recorded, launch):
    """The instructions that a launch tests, without those that fetch operands."""
    body = re.sub(rb"//[^\n]*", b"", recorded.text(launch))
    names = dict.fromkeys(re.findall(rb"(?:^|[;{}:\n])\s*(?:@!?%?\w+\s+)?([a-z][a-z0-9]*(?:\.[\w:]+)+)", body))
    addressing = re.compile(rb"ld\.param|ld\.global|st\.global|mov\.|cvta|mad\.lo\.|mad\.wide|mul\.wide|add\.[su]64|setp")
    told = [name for name in names if not addressing.match(name)] or names
    return b" ".join(told).decode()[:160] or launch["entry"]


def feed_shards(command, shards, until, answer, lose, first, launch_seconds=LAUNCH_SECONDS):
    """Gives each shard its own process. Returns the numbers of launches that did not run in time."""
    feeds = [Feed(command, lambda row: not is_lost(row), first, answer, lose, launch_seconds) for _ in shards]
    with concurrent.futures.ThreadPoolExecutor(max(1, len(shards))) as threads:
        runs = [threads.submit(feed.run, [str(n) for n in shard], until) for feed, shard in zip(feeds, shards)]
        try:
            return [int(line) for run in runs for line in run.result()]
        except BaseException:
            for feed in feeds:
                feed.stop()
            raise


def repeated(recorded):
    return [number for number, launch in enumerate(recorded.launches) if "left_out" not in launch]


def count_texts(folder):
    launches = Recording(folder).launches
    return len({tuple(launch["text"]) for launch in launches if "left_out" not in launch})


def shards_of(recorded, numbers, jobs):
    """Splits launches into shards: a text's stay together, and those that end their process come last."""
    texts = collections.defaultdict(list)
    for number in numbers:
        launch = recorded.launches[number]
        texts[bool(launch["result"]), tuple(launch["text"])].append(number)

    def cost(numbers):  # bytes: 64 KiB per launch, plus its copies
        return sum((64 << 10) + sum(block["bytes"] for block in recorded.launches[n]["blocks"]) for n in numbers)

    shards, costs = [[] for _ in range(jobs)], [0] * jobs
    for _, numbers in sorted(texts.items(), key=lambda item: (item[0][0], -cost(item[1]))):
        least = costs.index(min(costs))
        shards[least] += numbers
        costs[least] += cost(numbers)
    return [shard for shard in shards if shard]


def command(folder, driver, *options):
    return [sys.executable, "-B", str(pathlib.Path(__file__).resolve()), str(folder), "--driver", driver, *options]


def replay(folder, driver, jobs, until, add, launch_seconds=LAUNCH_SECONDS, most=0):
    """Repeats a recording, or about `most` of its launches. Several threads call add(row). Returns how many did not run."""
    recorded, begun = Recording(folder), []

    def first(row):
        if not begun:
            begun.append(row)
            add({"recording": recording.hash_of(folder), "launches": len(recorded.launches), **row})

    def answer(line, row):
        launch = recorded.launches[int(line)]
        if row["result"] != "equal":
            row["about"] = describe(recorded, launch)
        add({"launch": int(line), "test": launch["test"], **row})

    def lose(line, why):
        if line is None:
            add({"failed": why})
        else:
            answer(line, {"result": "hung" if why.startswith("no answer") else "died", "why": why})

    for number, launch in enumerate(recorded.launches):
        if "left_out" in launch:
            add({"launch": number, "test": launch["test"], "result": "left out", "why": launch["left_out"]})
    numbers = repeated(recorded)
    chosen = numbers[::max(1, len(numbers) // most)] if most else numbers
    rest = feed_shards(command(folder, driver, "--child"), shards_of(recorded, chosen, jobs), until, answer, lose, first,
                       launch_seconds)
    not_run = len(numbers) - len(chosen) + len(rest)
    add({"not_run": not_run})
    return not_run


# ---- the phase of the kit ---------------------------------------------------------------------------------------------

def pack(folder, kit):
    """Adds a recording to a kit, and the machines on which it was repeated before."""
    recording.pack(folder, kit / "launches")
    kernels = recording.hash_of(folder)
    about = {"kernels": kernels, "measured": committed.machines(HERE / "results", "replay", PHASE, kernels)}
    (kit / "launches/about.json").write_text(json.dumps(about), encoding="utf-8")


def measure(run):
    kit = HERE / "launches"
    if not kit.exists():
        run.note(phase=PHASE, skipped="the kit was packed without --recording")
        return
    about = json.loads((kit / "about.json").read_text(encoding="utf-8"))
    if committed.has_results(run, about["measured"]):
        run.note(phase=PHASE, skipped="results of this card, driver and recording are committed")
        return
    devices, folder = [], pathlib.Path(run.room.name) / "launches"
    recording.unpack(kit, folder)

    def add(row):
        devices.extend([row["name"]] if "name" in row else [])
        run.count("replay", row.get("result", "other rows"))
        run.records.add("replay", row)

    rest = replay(folder, run.options.driver or "libcuda.so.1", run.options.jobs, run.until, add, most=run.options.small)
    if rest:
        run.note(phase=PHASE, not_run=rest)
    elif devices:
        run.records.add("replay", {"phase": PHASE, "kernels": about["kernels"], "device": devices[0], "kernel_driver": run.card.driver()})


# ---- the summary -----------------------------------------------------------------------------------------------------

def summarise(rows):
    """Yields lines of text: each test's results and first difference, and the distances of approximations."""
    tests, ulps, nans = collections.defaultdict(list), collections.defaultdict(collections.Counter), collections.Counter()
    for row in rows:
        if "launch" in row:
            tests[row["test"]].append(row)
            for bucket, count in row.get("ulps", {}).items():
                ulps[row["instruction"]][int(bucket)] += count
            nans.update(row.get("nans", {}))
    for test, its in sorted(tests.items()):
        counts = collections.Counter(row["result"] for row in its)
        yield f"{test}: {len(its)} launches: " + ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
        bad = next((row for row in its if row["result"] not in (*GOOD, "left out")), None)
        if bad:
            yield "  first: " + json.dumps({name: value for name, value in bad.items() if name not in ("test", "at")})
    for instruction, buckets in sorted(ulps.items()):
        yield f"{instruction}: " + ", ".join(f"{count} within {bucket} ulps" for bucket, count in sorted(buckets.items()))
    for bits, count in nans.most_common(8):
        yield "NaN, expected and got: " + bits + f": {count}"


def read_options():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("recording", type=pathlib.Path)
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--driver", default="libcuda.so.1")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--launch-seconds", type=float, default=LAUNCH_SECONDS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--capture", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = read_options()
    if options.child:
        return child(options)
    with tempfile.TemporaryDirectory(prefix="kiln-replay-") as room:
        folder = options.recording
        if (folder / "launches.jsonl.gz").exists():
            folder = pathlib.Path(room) / "launches"
            recording.unpack(options.recording, folder)
        rows, lock = [], threading.Lock()
        with options.out.open("a", encoding="utf-8") as out:
            def add(row):
                with lock:
                    rows.append(row)
                    out.write(json.dumps(row) + "\n")
                    out.flush()
            replay(folder, options.driver, options.jobs, time.monotonic() + options.seconds, add,
                   options.launch_seconds)
    print("\n".join(summarise(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
