"""Tests tools/bench/gpu without a GPU.

usage: check.py ROOT PROGRAM unit                        supervises programs that misbehave
       check.py ROOT PROGRAM join KILN                   joins variants that only an f target runs
       check.py ROOT PROGRAM plan KILN                   checks each line of the plan with the real configuration's variants
       check.py ROOT PROGRAM regret KILN                 limits dispatch's regret by the committed results
       check.py ROOT PROGRAM rehearsal KILN MANIFEST EMULATOR FAULTY [FAULT]
                                                         makes all calls, in a folder that has only the kit

PROGRAM is a kiln-bench with one variant per family, MANIFEST its bundle's manifest, FAULTY the driver of faulty_driver.c.
"""
import contextlib
import gzip
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT, PROGRAM, VERB = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
sys.path.insert(0, str(ROOT / "tools/bench"))
import judge
import plan
import records
import replay
from supervise import Feed


loader = importlib.machinery.SourceFileLoader("gpu", str(ROOT / "tools/bench/gpu"))
gpu = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu", loader))
loader.exec_module(gpu)


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, expected {wanted!r}")


# ---- substitutes for kiln's programs ----------------------------------------------------------------------------------

STUB = """
import json, os, sys, time
print(json.dumps({"first": 1}), flush=True)
for line in sys.stdin:
    word = line.strip()
    if word == "dies":
        os._exit(9)
    if word == "hangs":
        time.sleep(1000)
    if word == "piece":
        print('{"id": "pie', end="", flush=True)
        os._exit(1)
    print(json.dumps({"id": word, "result": "lost" if word == "lost" else "ok"}), flush=True)
    if word == "lost":
        sys.exit(4)
"""


def feed(lines, seconds, programs=1, line_seconds=1.0, stub=STUB):
    answers, lost = [], []
    f = Feed([sys.executable, "-c", stub], lambda row: row["result"] == "ok", lambda first: None,
             lambda line, row: answers.append((line, row["result"])), lambda line, why: lost.append((line, why)), line_seconds)
    rest = f.run(lines, time.monotonic() + seconds, programs)
    return answers, lost, rest


def unit():
    """A program that dies, hangs or writes half a line loses only its current line."""
    answers, lost, rest = feed(["a", "dies", "b", "hangs", "c", "piece", "d", "lost", "e"], 30)
    expect("answers", answers, [("a", "ok"), ("b", "ok"), ("c", "ok"), ("d", "ok"), ("lost", "lost"), ("e", "ok")])
    expect("lost", lost, [("dies", "ended with 9: "), ("hangs", "no answer in time"), ("piece", "ended with 1: ")])
    expect("rest", rest, [])
    many = [str(i) for i in range(40)] + ["dies"]
    answers, lost, rest = feed(many, 30, programs=4)
    expect("answers of four programs", (sorted(line for line, _ in answers), len(lost), rest), (sorted(many[:40]), 1, []))
    answers, lost, rest = feed(["a", "hangs", "b"], 1, line_seconds=60)
    expect("when time is up", (answers, lost, rest), ([("a", "ok")], [], ["hangs", "b"]))
    answers, lost, rest = feed(["a", "b"], 30, stub="import sys; sys.exit('no driver')")
    expect("programs that do not start", (answers, [why for _, why in lost], rest),
           ([], ["no start: ended with 1: no driver"] * 3, ["a", "b"]))
    files()
    judgement()
    options()


def options():
    """Refused calls give a message and create nothing."""
    with tempfile.TemporaryDirectory() as room:
        room = pathlib.Path(room)
        (room / "file").write_text("mine")
        for words, status, said in ((["smoke", "x", "--jobs", "0"], 2, "--jobs"), (["smoke", "x", "--small", "-1"], 2, "--small"),
                                    (["smoke", "x", "--scale", "nan"], 2, "--scale"),
                                    (["smoke", "x", "--launch-seconds", "0"], 2, "--launch-seconds"),
                                    (["smoke", "x", "--only", "nothing"], 2, "facts"), (["examine", "x"], 2, "--previous"),
                                    (["pack", "x", "--peers", "nowhere"], 2, "nowhere"),
                                    (["pack", "x", "--model", "nowhere"], 2, "nowhere"), (["plan", "x"], 2, "no folder"),
                                    (["measure", "file"], 1, "file: File exists"), (["measure", "file/x"], 1, "Not a directory"),
                                    (["build", "--target", "sm_90a"], 1, "base target")):
            done = subprocess.run([sys.executable, "-B", ROOT / "tools/bench/gpu", *words, "--build", room / "build"], cwd=room,
                                  capture_output=True, text=True)
            expect(" ".join(words), (done.returncode, said in done.stderr, "Traceback" in done.stderr, (room / "x").exists()),
                   (status, True, False, False))


def files():
    """Written lines stay; an incomplete line is left out; a full file takes no more rows."""
    with tempfile.TemporaryDirectory() as folder:
        out = records.Records(folder)
        out.add("verify", {"id": "x", "worst_error_over_bound": None})
        with out.path("verify").open("a", encoding="utf-8") as torn:
            torn.write('{"id": "y", "res')
        expect("rows", [row["id"] for row in records.read(folder, "verify")], ["x"])
        records.Records(folder).add("verify", {"id": "z"})
        expect("rows behind a piece", [row["id"] for row in records.read(folder, "verify")], ["x", "z"])
        whole = out.path("verify").read_bytes()
        out.path("verify").unlink()
        (out.folder / "verify.jsonl.gz").write_bytes(gzip.compress(whole, mtime=0))
        expect("compressed rows", [row["id"] for row in records.read(folder, "verify")], ["x", "z"])
        out.add("verify", {"id": "new"})
        expect("compressed rows and newer ones", [row["id"] for row in records.read(folder, "verify")], ["x", "z", "new"])
        records.MOST_BYTES, limit = 200, records.MOST_BYTES
        for _ in range(50):
            out.add("times", {"id": "z"})
        records.MOST_BYTES = limit
        size = out.path("times").stat().st_size
        expect("a full file", (size <= 200, len(records.read(folder, "times")) > 2), (True, True))


def judgement():
    """Computes regret and rank correlation from kiln-bench's rows. Skipped variants have no error over bound."""
    with tempfile.TemporaryDirectory() as folder:
        out = records.Records(folder)
        for name, us, workspace, pick in (("f/t=a,tile=1", 10, 0, "f/t=a,tile=1"), ("f/t=a,tile=2", 8, 64, "f/t=a,tile=1"),
                                          ("f/t=b,tile=1", 5, 0, None)):
            out.add("times", {"id": name, "sizes": {"m": 1, "workspace_size": workspace}, "us": [us, us + 1, us - 1], "pick": pick,
                              "bytes_read": 10, "bytes_written": 5})
        for name, result, ratio in (("f/t=a,tile=1", "ok", 0.5), ("f/t=b,tile=1", "skipped", None), ("g/t=a", "hung", None)):
            out.add("verify", {"id": name, "result": result, "worst_error_over_bound": ratio, "detail": "no end"})
        contracts = {name: ("f", {"t": name[4]}) for name in ("f/t=a,tile=1", "f/t=a,tile=2", "f/t=b,tile=1")}
        found = judge.calls(judge.timed(folder), contracts)
        expect("calls", [(c.name(), len(c.rows), c.regret) for c in found], [("f t=a m=1", 2, 10 / 8), ("f t=b m=1", 1, None)])
        expect("the best", found[0].best["id"], "f/t=a,tile=2")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            judge.print_family_regret("f", [(found[0], {"f/t=a,tile=1": 7, "f/t=a,tile=2": 6})])
        expect("regret by estimates that have the best first", said.getvalue(), "f: 1 calls, mean 1.250, then 1.000\n")
        out.add("run", {"phase": "shipped", "not_run": 25, "next": "f/t=a,tile=1"})
        judge.print_run(folder)
        judge.print_verification(folder)
        judge.table(folder, found)
    expect("rank correlation", (judge.rank_correlation([(1, 10), (2, 20), (3, 35)]), judge.rank_correlation([(1, 3), (2, 2), (3, 1)])),
           (1.0, -1.0))


def join_family_targets():
    """A variant that only an f form of the target runs is joined, and the f form listed."""
    kiln = sys.argv[4]
    with tempfile.TemporaryDirectory() as room:
        room = pathlib.Path(room)
        for target, targets in (("sm_90", "[sm_90]"), ("sm_120", "[sm_120, sm_120f]")):
            subprocess.run([sys.executable, "-B", ROOT / "tools/bench/join.py", kiln, "joined", target, room / "joined.yaml",
                            room / "sets.json", ROOT / "generated/default.yaml"], check=True)
            config = (room / "joined.yaml").read_text(encoding="utf-8")
            expect(f"targets for {target}", config.split("targets: ")[1].splitlines()[0], targets)
            sets = json.loads((room / "sets.json").read_text(encoding="utf-8"))
            subprocess.run([kiln, "list", room / "joined.yaml"], check=True, stdout=subprocess.DEVNULL)
            expect(f"block-scaled products on {target}", any("strategy=block_scaled" in name for name in sets), target == "sm_120")


# ---- the plan --------------------------------------------------------------------------------------------------------

def plan_():
    """kiln-bench completes every line for the variants of the real configuration, except a few that rules forbid."""
    kiln = sys.argv[4]
    with tempfile.TemporaryDirectory() as room:
        room = pathlib.Path(room)
        configs = [ROOT / path for path in plan.CONFIGS]
        subprocess.run([sys.executable, "-B", ROOT / "tools/bench/join.py", kiln, "kiln_gpu", "sm_90", room / "gpu.yaml",
                        room / "sets.json", *configs], check=True)
        subprocess.run([kiln, "generate", room / "gpu.yaml", "--output", room, "--quiet"], check=True)
        manifest = json.loads((room / "kiln_gpu.json").read_text(encoding="utf-8"))
        sets = json.loads((room / "sets.json").read_text(encoding="utf-8"))
        expect("variants of the joined configuration", [v["id"] for v in manifest["variants"]], list(sets))
        expect("bundles", set(sets.values()), {"kiln_default", "lm_kernels", "kiln_full", "hand_written", "kiln_wide"})
        listing = check("--list", "--check", room / "kiln_gpu.json")
        sizes = {name: words for name, *words in map(str.split, listing.splitlines())}
        expect("variants that are listed", set(sizes), set(sets))
        for groups, of, least in ((plan.SHIPPED_GROUPS, sets, 300), (plan.COMPETING_GROUPS, plan.measured(sets), 2000),
                                  (plan.SWEEP_GROUPS, sets, 10000)):
            lines = plan.rows(groups, of, sizes)
            answers = [json.loads(line) for line in check("--check", room / "kiln_gpu.json", text="\n".join(lines) + "\n").splitlines()]
            expect("answers", len(answers), len(lines))
            expect("lines that are wrong", [(a["id"], a["error"]) for a in answers if "error" in a][:5], [])
            fits = [a for a in answers if "skipped" not in a]
            expect(f"of {len(lines)} lines those that rules allow ({len(fits)}) are at least", len(fits) >= least, True)
            shapes = {(group.family, str(shape)) for group in groups for shape in group.shapes}
            expect("families", {name.partition("/")[0] for name, _ in shapes}, {a["id"].partition("/")[0] for a in fits})
        missing = {name.partition("/")[0] for name in sets} - {group.family for group in plan.SHIPPED_GROUPS + plan.COMPETING_GROUPS}
        expect("families that no group times", missing, set())


def check(*options, text=""):
    done = subprocess.run([PROGRAM, *options], input=text, capture_output=True, text=True)
    expect("kiln-bench --check", (done.returncode, done.stderr), (0, ""))
    return done.stdout


# ---- the cost model ---------------------------------------------------------------------------------------------------

# Limits of the estimates' regret: the geometric mean of each family, and the worst call.
MOST_REGRET = {
    "h100-2026-11-27-second": {"attention": (1.03, 1.45), "linear": (1.02, 1.25), "nf4_gemm": (1.03, 1.30),
                               "nf4_gemm_transposed": (1.03, 1.20), "nvfp4_gemv": (1.03, 1.15), "rmsnorm_q4k_gemv": (1.02, 1.20)},
    "h200-2026-11-27-sweep": {"attention": (1.02, 1.10), "linear": (1.05, 1.20), "nf4_gemm": (1.04, 1.20),
                              "nf4_gemm_transposed": (1.02, 1.10), "nvfp4_gemv": (1.03, 1.05), "rmsnorm_q4k_gemv": (1.02, 1.10)},
}


def regret():
    """The variants that the estimates pick are nearly as fast as the fastest that a GPU timed."""
    kiln, over = sys.argv[4], []
    for name, limits in MOST_REGRET.items():
        results = ROOT / "tools/bench/results" / name
        device = judge.device_of(results)
        found = judge.regrets(judge.calls_of(results, kiln, device), kiln, device)
        for family, (most_mean, most) in limits.items():
            ratios = [call.regret_of(judge.pick_of(call, cycles)) for call, cycles in found[family]]
            line = f"{name}: {family}: {len(ratios)} calls, mean {statistics.geometric_mean(ratios):.3f}, worst {max(ratios):.2f}"
            print(line)
            if statistics.geometric_mean(ratios) > most_mean or max(ratios) > most:
                over.append(f"{line}, expected at most {most_mean} and {most}")
    expect("families whose regret is too large", over, [])


# ---- the rehearsal ---------------------------------------------------------------------------------------------------

FAULTS = {"hang": "hung", "lost": "WRONG", "unloadable": "WRONG", "wrong": "WRONG"}


def pack(room, manifest, kiln, emulator):
    """Makes a build folder for `gpu pack`, and returns {id: bundle}; afterwards only the kit is used."""
    build = room / "build"
    (build / "tools/bench").mkdir(parents=True)
    (build / "bin").mkdir()
    shutil.copy(PROGRAM, build / "bin/kiln-bench")
    shutil.copy(kiln, build / "bin/kiln")
    names = [v["id"] for v in json.loads(pathlib.Path(manifest).read_text(encoding="utf-8"))["variants"]]
    sets = {name: plan.WIDE if i % 6 == 5 else ("kiln_default", "kiln_full")[i % 2] for i, name in enumerate(names)}
    (build / "tools/bench/sets.json").write_text(json.dumps(sets))
    recorded = [sys.executable, "-B", ROOT / "tests/bench/replay_test.py", ROOT, "record", emulator.parents[2], room / "recording"]
    expect("a recording", subprocess.run(recorded).returncode, 0)
    make = [sys.executable, "-B", ROOT / "tools/bench/gpu", "pack", "--build", build, "--recording", room / "recording"]
    (room / "mine").mkdir()
    (room / "mine/thesis").write_text("chapter")
    done = subprocess.run([*make, room / "mine"], capture_output=True, text=True)
    expect("pack into a folder of the user's", (done.returncode, "is no kit" in done.stderr, (room / "mine/thesis").exists()),
           (1, True, True))
    for _ in range(2):
        done = subprocess.run([*make, room / "kit"], capture_output=True, text=True)
        expect("pack", (done.returncode, done.stderr), (0, ""))
    shutil.rmtree(build)
    shutil.rmtree(room / "recording")
    print(done.stdout.strip().partition(": ")[2])
    return sets


def call(room, name, driver, *options, environment=None, kill_after=None, sent=signal.SIGKILL):
    """Calls the kit, outside the tree and without its environment."""
    out = room / f"out-{name}"
    bare = {"PATH": "/usr/bin:/bin", "TMPDIR": str(room), "KILN_EMU_DEVICE": "sm_90", "KILN_EMU_THREADS": "1",
            **(environment or {})}  # one thread runs atomics in the recorded order
    command = [sys.executable, "-B", room / "kit/gpu", name, out, "--driver", driver, "--small", "24", "--jobs", "2",
               "--launch-seconds", "600", *options]  # even on a busy machine only a hang may exceed it
    begin = time.monotonic()
    child = subprocess.Popen(command, cwd=room, env=bare, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             start_new_session=True)
    if kill_after:
        kill_after(out)
        os.killpg(child.pid, sent)
    output, _ = child.communicate()
    files = {path.name: path.stat().st_size for path in out.iterdir()}
    if child.returncode and not kill_after:
        print(output[-3000:])
    expect("files", len(files) <= 6 and all(size < 16 << 20 for size in files.values()), True)
    seconds = ", ".join(f"{row['phase']} {row['seconds']} s" for row in records.read(out, "run") if "seconds" in row)
    print(f"{name}: {time.monotonic() - begin:.1f} s: {seconds}; {sum(files.values())} bytes in {len(files)} files")
    return out, child.returncode, output


def results(out, file="verify"):
    return {row["id"]: row["result"] for row in records.read(out, file) if row.get("id")}


def rehearse(room, sets, emulator):
    """Each call ends on its own, with all its results."""
    out, status, output = call(room, "smoke", emulator, "--scale", "4")
    expect("smoke", (status, set(results(out).values())), (0, {"ok"}))
    out, status, output = call(room, "measure", emulator)
    expect("measure", status, 0)
    expect("variants", set(results(out)), set(plan.measured(sets)))
    expect("verdicts", set(results(out).values()), {"ok"})
    times = [row for row in records.read(out, "times") if "id" in row]
    expect("rows that are wrong", [row for row in times if "error" in row], [])
    expect("rows with a time", len([row for row in times if "us" in row]) >= 20, True)
    failed = [row for row in records.read(out, "run") if "failed" in row]
    expect("phases that failed", failed, [])
    probes = records.read(out, "probes")
    expect("sets of probes", {"wgmma_rate", "issue", "sweep", "resources", "split_k_counters"} - {row["probe"] for row in probes}, set())
    expect("sweeps, kernels and counters that are not right", [row for row in probes if row["probe"] in (
        "sweep", "resources", "split_k_counters") and row.get("right") is False], [])
    expect("launches that were repeated", {row["result"] for row in records.read(out, "replay") if "launch" in row}, {"equal", "left out"})
    expect("probes and peers said something", (len(records.read(out, "probes")) > 3, len(records.read(out, "peers")) > 0), (True, True))
    expect("the summary", re.search(r"^verify: ok \d+$", output, re.MULTILINE) is not None, True)
    measure = out
    skip_known_replay(room, emulator, measure)
    out, status, _ = call(room, "sweep", emulator)
    expect("sweep", (status, results(out)), (0, {name: "ok" for name in sets if name not in plan.measured(sets)}))
    times = [row for row in records.read(out, "times") if "id" in row]
    expect("rows of the sweep", {row["phase"] for row in times if "us" in row and "error" not in row}, {"wide"})
    out, status, _ = call(room, "examine", emulator, "--previous", measure)
    expect("examine", status, 0)
    expect("an illegal address", [row["says"] for row in records.read(out, "run") if "says" in row][-1][:12], "launch, wait")


def skip_known_replay(room, emulator, measure):
    """The phase runs only if no results of this card and driver are committed."""
    path, done = room / "kit/launches/about.json", records.read(measure, "replay")[-1]
    about = json.loads(path.read_text())
    expect("the phase and kernels of the results", (done["phase"], done["kernels"]), (replay.PHASE, about["kernels"]))
    path.write_text(json.dumps({**about, "measured": [[done["device"], done["kernel_driver"]]]}))
    out, status, _ = call(room, "measure", emulator, "--only", "facts", "--only", replay.PHASE)
    skipped = [row["skipped"] for row in records.read(out, "run") if "skipped" in row and row["phase"] == replay.PHASE]
    again = [row for row in records.read(out, "replay") if "recording" in row]
    expect("a replay whose results are committed", (status, len(skipped), len(again)), (0, 1, 1))
    path.write_text(json.dumps(about))


def kill(room, sets, emulator):
    """After a kill halfway, every written line is complete, and the finished phases have their results."""
    def half(out):
        while len(records.read(out, "verify")) < 6 if out.exists() else True:
            time.sleep(0.05)
    out, status, _ = call(room, "measure", emulator, kill_after=half)
    expect("killed", status, -signal.SIGKILL)
    found = results(out)
    expect("what was kept", (len(found) >= 6, set(found.values())), (True, {"ok"}))
    expect("the device", "first" in str(records.read(out, "run")[1]), True)
    print(f"killed: {len(found)} of {len(plan.measured(sets))} verdicts are kept")
    for number in signal.SIGINT, signal.SIGTERM:
        shutil.rmtree(out)
        rooms = set(room.glob("kiln-gpu-*"))
        out, status, output = call(room, "measure", emulator, kill_after=half, sent=number)
        found = results(out)
        expect("interrupted", (status, "Traceback" in output, set(found.values()), len(found) < len(plan.measured(sets))),
               (130, False, {"ok"}, True))
        expect("folders that an interrupted call leaves", set(room.glob("kiln-gpu-*")) - rooms, set())


def misbehave(room, sets, emulator, faulty, fault):
    """A kernel that hangs, destroys the context, does not load or is wrong is named in the results. All others are right."""
    bad = next(name for name in plan.measured(sets) if name.startswith("nf4_quantize/"))
    entry = "nf4_quantize_"
    environment = {"KILN_FAULTY": f"{fault}:{entry}", "KILN_FAULTY_DRIVER_FOR": str(emulator),
                   "KILN_FAULTY_NAME": "NVIDIA H100 80GB HBM3"}
    patience = ["--launch-seconds", "60"] if fault == "hang" else []
    out, status, _ = call(room, "measure", faulty, *patience, "--scale", "20", "--only", "facts",
                          "--only", "verify shipped", "--only", "verify others", "--only", "times shipped", environment=environment)
    expect("measure", status, 0)
    found = results(out)
    expect("variants", set(found), set(plan.measured(sets)))
    expect("the bad kernel", found.pop(bad), FAULTS[fault])
    expect("all others", set(found.values()), {"ok"})
    lost = [row for row in records.read(out, "times") if "us" not in row and "skipped" not in row and "id" in row]
    expect("rows that were lost", {row["id"] for row in lost} - {bad}, set())
    print(f"{fault}: {bad} is {FAULTS[fault]}; of times {len(lost)} rows were lost")


def rehearsal():
    kiln, manifest, emulator, faulty, *fault = sys.argv[4:]
    with tempfile.TemporaryDirectory() as room:
        room = pathlib.Path(room)
        sets = pack(room, manifest, kiln, pathlib.Path(emulator))
        if not fault:
            rehearse(room, sets, emulator)
        elif fault == ["kill"]:
            kill(room, sets, emulator)
        else:
            misbehave(room, sets, emulator, faulty, fault[0])


{"unit": unit, "join": join_family_targets, "plan": plan_, "regret": regret, "rehearsal": rehearsal}[VERB]()
