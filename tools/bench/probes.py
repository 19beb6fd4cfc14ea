#!/usr/bin/env python3
"""Measures what the design of kernels depends on: layouts, rates, latencies, bandwidths, launches.

usage: probes.py OUT.jsonl [--set SET ...] [--driver PATH] [--seconds S] [--small] [--only NAME ...] [--known FILE]
       probes.py --plan

Each line of OUT.jsonl is one measurement, written at once: {"probe", its parameters, "value", "unit"}, or
"failed" in place of the value. Probes run in order of importance (--plan), each in its own process. A case that takes too
long or ends its process loses only its own result: a new process measures the next case. No probe begins after --seconds
(default: 50). --small is a quick test of the whole path, with a few cases and short loops. Probes that --known lists for
this card, driver and kernel text are skipped.
"""
import argparse
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import known
from card import Card
from probes import SETS, TABLE
from probes.driver import Gpu, NotAvailable

CASE_SECONDS = 6     # the limit of one case
SMALL_CASE_SECONDS = 600  # with --small, on a machine that may be busy
START_SECONDS = 20   # the limit of the driver's start
LOST = 3             # exit status of a child whose context may be lost; the case's line is written
PROCESSES = 4        # at most, for one probe
SMALL_CASES = 3


def options():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("out", nargs="?")
    parser.add_argument("--driver", default="libcuda.so.1")
    parser.add_argument("--seconds", type=float, default=50)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--set", nargs="+", choices=SETS, default=list(SETS), metavar="SET")
    parser.add_argument("--known", metavar="FILE")
    parser.add_argument("--only", nargs="+", choices=TABLE, default=list(TABLE), metavar="NAME")
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--from-case", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def cases_of(probe, small):
    return probe.cases[::-(-len(probe.cases) // SMALL_CASES)] if small else probe.cases


def write(path, **line):
    with open(path, "a") as out:
        out.write(json.dumps(line) + "\n")


def child(args):
    """Measures the cases of one probe, beginning with --from-case, and announces each on stdout."""
    probe = TABLE[args.only[0]]
    try:
        gpu = Gpu(args.driver, args.small)
    except (OSError, RuntimeError) as error:
        write(args.out, probe=probe.name, failed=str(error))
        print("end", flush=True)
        leave(0)
    for number, case in list(enumerate(cases_of(probe, args.small)))[args.from_case:]:
        print("case", number, flush=True)
        try:
            write(args.out, probe=probe.name, **case, **probe.measure(gpu, **case), unit=probe.unit)
        except NotAvailable as error:
            if "NOT_SUPPORTED" in str(error) and number == 0:
                write(args.out, probe=probe.name, failed=f"not available: {error}")
                break
            write(args.out, probe=probe.name, **case, failed=str(error))
        except Exception as error:  # any failure is one line; then the next case
            write(args.out, probe=probe.name, **case, failed=f"{type(error).__name__}: {error}")
            if "CUDA_ERROR" in str(error):
                leave(LOST)
    print("end", flush=True)
    leave(0)


def leave(status):
    """Exits without the driver's cleanup, which may wait for a hung kernel."""
    sys.stdout.flush()
    os._exit(status)


def watch(process, first, deadline, args):
    """Returns (the next case to measure, None or why the process ended early), and (None, None) after the last case."""
    lines, at, said = queue.Queue(), first, ""

    def read():
        for line in process.stdout:
            lines.put(line.strip())
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        seconds = SMALL_CASE_SECONDS if args.small else CASE_SECONDS if said.startswith("case") else START_SECONDS
        try:
            line = lines.get(timeout=seconds)
        except queue.Empty:
            return at + 1, "killed: the case took too long"
        if line == "end":
            return None, None
        if line is None:
            status = process.wait()
            return at + 1, None if status == LOST else f"the process ended with {status}: {said}"
        said = line or said
        if line.startswith("case "):
            at = int(line.removeprefix("case "))
            if at > first and time.monotonic() > deadline:
                return at, None


def run(name, args, deadline):
    """Runs a probe, with a new process after each case that ended one. Writes a line for each case that did not run. Returns
    whether all ran."""
    cases, first = cases_of(TABLE[name], args.small), 0
    for _ in range(PROCESSES):
        process = subprocess.Popen(
            [sys.executable, "-B", __file__, args.out, "--driver", args.driver, "--only", name, "--from-case", str(first),
             *["--small"] * args.small], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        try:
            first, why = watch(process, first, deadline, args)
        finally:
            process.kill()
        if first is None:
            return True
        if why:
            write(args.out, probe=name, **cases[first - 1], failed=why)
        if first >= len(cases):
            return True
        if time.monotonic() > deadline:
            break
    write(args.out, probe=name, failed=f"{len(cases) - first} cases are left: "
          + ("no time" if time.monotonic() > deadline else f"{PROCESSES} processes ended early"))
    return False


def main():
    args = options()
    if args.from_case is not None:
        child(args)
    if args.plan:
        for set_, probes in SETS.items():
            print(f"{set_}: {sum(probe.seconds for probe in probes.values()):.1f} s")
            for probe in probes.values():
                print(f"{probe.seconds:7.1f} s  {len(probe.cases):3} cases  {probe.name}")
        return
    if not args.out:
        sys.exit("probes.py: a file for the results is missing")
    begin = time.monotonic()
    results = known.load(args.known) if args.known else {}
    write(args.out, probe="begin", unit="s", value=0, python=sys.version.split()[0], driver=args.driver,
          kernel_driver=Card().driver())
    chosen = {name for set_ in args.set for name in SETS[set_]} & set(args.only)
    for name in (name for name in TABLE if name in chosen):
        if time.monotonic() - begin > args.seconds:
            write(args.out, probe=name, failed="no time was left")
            continue
        text, folder = known.text_of(TABLE[name]), None
        if not TABLE[name].cases or (folder := results.get((*known.identity(args.out), name, text))):
            write(args.out, probe=name, skipped=f"measured in {folder}" if folder else "only the kit has its kernels")
            continue
        probe_begin = time.monotonic()
        is_whole = run(name, args, begin + args.seconds) and not args.small
        write(args.out, probe="took", name=name, value=round(time.monotonic() - probe_begin, 2), unit="s",
              text=text if is_whole else None)


if __name__ == "__main__":
    main()
