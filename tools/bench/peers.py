#!/usr/bin/env python3
"""Times other libraries at the work of kiln's kernels, on the GPU of this machine, in about a minute.

usage: peers.py OUT.jsonl [--seconds S] [--patience S] [--device N] [--only TEXT]
       peers.py --list [--only TEXT]    prints the rows and their estimated time
       peers.py --pack DIR              downloads bitsandbytes for a machine without a network: copy DIR, add it to PYTHONPATH

Appends one JSON line per row to OUT.jsonl as soon as the row is done. The first line names the versions; then
    {"peer", "work": {"family", ...}, "us": {"median", "least", "p10", "p90", "samples"}, "graph", "bytes", "tflops"}
    {"peer", "work", "failed": why}
"bytes" counts each argument of the work once; only products and attention have "tflops". The rows of each peer run in one
process: if it dies, or finishes no row for --patience seconds, one line says so, and the next peer follows. No row begins
after --seconds. Without PyTorch or a GPU the only line is {"failed": why}.

Inputs are random and rotate, so that no call finds them in the L2 cache. Batches of calls are timed by device events. Calls
that take less than 200 us are captured in a CUDA graph, which excludes the launch cost on the host. "median" is of 11 batches.
"""
import argparse
import ctypes
import importlib.metadata
import itertools
import json
import multiprocessing
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile

import peers_rows

SAMPLES, WARM_UP_US, BATCH_US, MOST_CALLS, GRAPH_BELOW_US = 11, 5000, 1000, 256, 200
ROTATED_BYTES, MOST_SETS = 256 << 20, 64  # twice the L2 cache of any GPU up to now
PR_SET_PDEATHSIG = 1

BITSANDBYTES = "bitsandbytes==0.50.2"  # MIT; needs numpy, packaging and typing_extensions
BITSANDBYTES_PARTS = (".py", "libbitsandbytes_cuda130.so", "METADATA", "LICENSE")


# ---- timing ----------------------------------------------------------------------------------------------------------

class Bench:
    def __init__(self, torch, device):
        self.torch, self.device = torch, torch.device("cuda", device)
        self.types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
        torch.cuda.set_device(self.device)

    def random(self, kind, *shape):
        return self.torch.randn(shape, dtype=self.types[kind], device=self.device)

    def sets(self, set_bytes):
        """As many sets as together exceed the L2 cache."""
        return range(max(1, min(MOST_SETS, -(-ROTATED_BYTES // set_bytes))))

    def measure(self, calls, can_capture):
        """(microseconds per call of each batch, whether a graph launched them)"""
        self.time_batch(calls)  # the first calls load, choose and compile
        warm_us = 0
        while warm_us < WARM_UP_US:
            batch_us = self.time_batch(calls)
            warm_us += batch_us
        us = batch_us / len(calls)
        count = max(1, min(MOST_CALLS, round(BATCH_US / us)))
        whole = calls * -(-count // len(calls))
        graph = self.capture(whole) if can_capture and us < GRAPH_BELOW_US else None
        if graph:
            self.time_batch([graph.replay])
            return [self.time_batch([graph.replay]) / len(whole) for _ in range(SAMPLES)], True
        turns = itertools.cycle(calls)
        return [self.time_batch([next(turns) for _ in range(count)]) / count for _ in range(SAMPLES)], False

    def time_batch(self, calls):
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for call in calls:
            call()
        end.record()
        end.synchronize()
        return 1000 * start.elapsed_time(end)

    def capture(self, calls):
        """None if the calls cannot be captured."""
        try:
            graph = self.torch.cuda.CUDAGraph()
            with self.torch.cuda.graph(graph):
                for call in calls:
                    call()
            return graph
        except RuntimeError:
            self.torch.cuda.set_stream(self.torch.cuda.default_stream())  # a capture that fails leaves its own stream set
            return None


def spread(samples):
    ordered = sorted(samples)
    at = lambda share: round(ordered[round(share * (len(ordered) - 1))], 3)
    return {"median": at(0.5), "least": at(0), "p10": at(0.1), "p90": at(0.9), "samples": len(ordered)}


def time_row(bench, row):
    note, calls = row.run(bench, row.work)
    samples, is_graph = bench.measure(calls, row.can_capture)
    count_bytes, count_operations = peers_rows.COSTS[row.work["family"]]
    line = {"peer": row.peer + (note and f", {note}"), "work": row.work, "us": spread(samples), "graph": is_graph,
            "bytes": count_bytes(row.work)}
    if count_operations:
        line["tflops"] = round(count_operations(row.work) / line["us"]["median"] / 1e6, 2)
    return line


# ---- processes: the parent imports PyTorch but never touches the GPU, so each child can ------------------------------

def write(path, line):
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def failed(row, why):
    return {"peer": row.peer, "work": row.work, "failed": " ".join(why.split())[:400]}


def run_group(progress, torch, options, deadline, rows):
    """Runs in a child process. A row that fails gets its own line; a missing library ends the group."""
    bench = None
    for i, row in enumerate(rows):
        progress.value = i
        if time.monotonic() > deadline:
            write(options.out, failed(row, f"no time left for this row and {len(rows) - i - 1} more"))
            break
        with torch.inference_mode(), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                bench = bench or Bench(torch, options.device)
                line = time_row(bench, row)
            except ImportError as missing:
                write(options.out, failed(row, f"{missing}; {len(rows) - i - 1} more rows need it"))
                break
            except Exception as failure:  # pylint: disable=broad-except; whatever another library may raise
                reasons = dict.fromkeys([f"{type(failure).__name__}: {failure}", *(str(w.message) for w in warned)])
                line = failed(row, "; ".join(reasons))
        write(options.out, line)
    progress.value = len(rows)


def write_versions(progress, torch, options):
    """Runs in a child process, since some calls touch the GPU. Sets progress to 1 if there is a GPU."""
    if not torch.cuda.is_available():
        write(options.out, {"failed": "this PyTorch sees no GPU"})
        return
    versions = {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
                "device": torch.cuda.get_device_name(options.device)}
    for name in "triton", "bitsandbytes":
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError as missing:
            versions[name] = str(missing)
    write(options.out, {"versions": versions})
    progress.value = 1


def supervise(patience, target, *args):
    """Returns (the row that the child was at, None or why it ended early)."""
    fork = multiprocessing.get_context("fork")
    progress = fork.Value("i", 0, lock=False)  # no lock: a child that dies would keep it

    def start():
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # the child must not outlive the parent on the GPU
        target(progress, *args)
    child = fork.Process(target=start)
    child.start()
    at, since = 0, time.monotonic()
    while child.exitcode is None:
        child.join(0.1)
        if progress.value != at:
            at, since = progress.value, time.monotonic()
        elif child.exitcode is None and time.monotonic() - since > patience:
            child.kill()
            child.join()
            return progress.value, f"killed after {patience:g} s"
    return progress.value, f"the process ended with {child.exitcode}" if child.exitcode else None


def run(options):
    deadline = time.monotonic() + options.seconds
    try:
        import torch
    except (ImportError, OSError) as missing:
        write(options.out, {"failed": f"no PyTorch: {missing}"})
        return
    is_ready, why = supervise(options.patience, write_versions, torch, options)
    if why:
        write(options.out, {"failed": f"versions: {why}"})
    if not is_ready:
        return
    for group in peers_rows.make_groups(options.only):
        at, why = supervise(options.patience, run_group, torch, options, deadline, group.rows)
        if why and at < len(group.rows):
            write(options.out, failed(group.rows[at], f"{why}; {len(group.rows) - at - 1} more rows were not run"))


# ---- --list and --pack -----------------------------------------------------------------------------------------------

def show(only):
    """Prints the rows and an estimate: three seconds to start PyTorch, and one per process to set up the device."""
    groups = peers_rows.make_groups(only)
    for group in groups:
        print(*map(peers_rows.describe, group.rows), sep="\n")
    seconds = 3 + sum(1 + group.seconds * len(group.rows) for group in groups)
    print(f"{sum(len(group.rows) for group in groups)} rows in {len(groups)} processes, about {seconds:.0f} s")


def pack(folder):
    with tempfile.TemporaryDirectory() as room:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                        "--platform=manylinux_2_24_x86_64", f"--dest={room}", BITSANDBYTES], check=True)
        with zipfile.ZipFile(next(pathlib.Path(room).glob("*.whl"))) as wheel:
            wheel.extractall(folder, [name for name in wheel.namelist() if name.endswith(BITSANDBYTES_PARTS)])
    size = sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file())
    print(f"{folder}: {BITSANDBYTES}, {size / 2**20:.1f} MiB; add it to PYTHONPATH")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument("out", nargs="?", metavar="OUT.jsonl")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--patience", type=float, default=20)
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--pack", metavar="DIR")
    options = parser.parse_args()
    if options.list:
        show(options.only)
    elif options.pack:
        pack(options.pack)
    elif options.out:
        run(options)
    else:
        parser.error("name OUT.jsonl, --list or --pack DIR")


if __name__ == "__main__":
    main()
