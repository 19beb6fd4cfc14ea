#!/usr/bin/env python3
"""Tests tuned files: a bundle's picks near a measured shape, far from it and on other devices. Also runs the program of
kiln_add_tune on an emulated device, where times mean nothing, and checks the picks by its file.

usage: check_tuned.py picks|program KILN DRIVER TUNE RUNTIME INCLUDE CC [FLAG...]
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
VERB, KILN, DRIVER, TUNE, RUNTIME, INCLUDE, *CC = sys.argv[1:]
CONFIG = """bundle: tuned
targets: [sm_80, sm_90]
kernels:
  - {family: rmsnorm_q4k_gemv, activation: q8, rows: [1, 2, 4]}
  - {family: nf4_gemm, a: f16, strategy: mma, tile_m: 8, tile_n: 32, split_k: [1, 4]}
  - {family: nf4_gemm_transposed, a: f16, strategy: mma, tile_m: 8, vector: 8, scales: [any, normal]}
"""
VARIANTS = {
    "rows": "rmsnorm_q4k_gemv/norm=rms,x=f32,activation=q8,batch=1,y=f32,rows={},chunk=65536",
    "split": "nf4_gemm/a=f16,acc=f32,nibbles=low,strategy=mma,tile_m=8,tile_n=32,k_warps=8,table=compact,stages=2,split_k={}",
    "scales": "nf4_gemm_transposed/a=f16,acc=f32,nibbles=low,strategy=mma,tile_m=8,k_warps=8,split_k=1,vector=8,table=compact,"
              "scales={}",
}


def variant(name):
    """For example rows=1, split=4, scales=any."""
    key, _, value = name.partition("=")
    return VARIANTS[key].format(value)


def tuned_file(capability, multiprocessors, *shapes):
    """Returns a tuned file from (sizes, {variant: nanoseconds})."""
    lines = [f"compute_capability: {capability}", f"multiprocessors: {multiprocessors}", "times:"]
    for sizes, times in shapes:
        family = variant(next(iter(times))).partition("/")[0]
        lines += [f"  - family: {family}", f"    shape: {{{sizes}}}", "    nanoseconds:"]
        lines += [f"      {variant(name)}: {time}" for name, time in times.items()]
    return "\n".join(lines) + "\n"


# The estimates prefer rows=4 or 2, split=1 and scales=normal at all of these shapes; the measured times invert that.
FILES = {
    "h100.yaml": tuned_file("9.0", 132, ("n: 8192, k: 4096", {"rows=2": 5000, "rows=1": 1000}),
                            ("n: 32768, k: 4096", {"rows=1": 2000, "rows=2": 1000, "rows=4": 3000})),
    "h100_products.yaml": tuned_file("9.0", 132, ("m: 8, n: 4096, k: 4096", {"split=1": 200, "split=4": 100}),
                                     ("m: 8, n: 4096, k: 4096, normal_scales: 1", {"scales=any": 100, "scales=normal": 200})),
    "h100_pcie.yaml": tuned_file("9.0", 114, ("n: 4096, k: 4096", {"rows=2": 1})),
    "a100.yaml": tuned_file("8.0", 108, ("n: 4096", {"rows=1": 7})),
}
FAR = None  # only estimates compete
H100 = [
    ("rmsnorm_q4k_gemv m=1 n=8192 k=4096", "rows=1"),
    ("rmsnorm_q4k_gemv m=1 n=4096 k=8192", "rows=1"),   # half and twice are near
    ("rmsnorm_q4k_gemv m=1 n=4095 k=4096", FAR),
    ("rmsnorm_q4k_gemv m=1 n=8192 k=8448", FAR),
    ("rmsnorm_q4k_gemv m=1 n=16384 k=4096", "rows=1"),   # equally near to both: the first
    ("rmsnorm_q4k_gemv m=1 n=16385 k=4096", "rows=2"),
    ("rmsnorm_q4k_gemv m=1 n=65536 k=2048", "rows=2"),
    ("rmsnorm_q4k_gemv m=1 n=65537 k=4096", FAR),
    ("nf4_gemm m=8 n=4096 k=4096 workspace_size=9999999", "split=4"),
    ("nf4_gemm m=8 n=4096 k=4096 workspace_size=0", "split=1"),   # the fastest breaks a rule
    ("nf4_gemm m=16 n=8192 k=2048 workspace_size=9999999", "split=4"),
    ("nf4_gemm m=17 n=4096 k=4096 workspace_size=9999999", FAR),
    ("nf4_gemm_transposed m=8 n=4096 k=4096 normal_scales=1", "scales=any"),
    ("nf4_gemm_transposed m=8 n=4096 k=4096 normal_scales=0", FAR),  # a flag: 0 is not near 1
]
A100 = [
    ("rmsnorm_q4k_gemv m=1 n=4096 k=4096", "rows=1"),
    ("rmsnorm_q4k_gemv m=1 n=8000 k=1024", "rows=1"),   # k is not named: any value matches
    ("rmsnorm_q4k_gemv m=1 n=10000 k=4096", FAR),
    ("nf4_gemm m=8 n=4096 k=4096 workspace_size=9999999", FAR),
]


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, expected {wanted!r}")


def run(*command, status=0, **more):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **more)
    if done.returncode != status:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def make(folder, files):
    """Builds the bundle with these tuned files, and the program that calls it."""
    (folder / "tuned.yaml").write_text(CONFIG + (f"tuned: [{', '.join(files)}]\n" if files else ""))
    made = run(KILN, "generate", "tuned.yaml", cwd=folder)
    run(*CC, "-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror", "-O1", f"-I{INCLUDE}", f"-I{folder}", folder / "tuned.c",
        HERE / "tuned_calls.c", RUNTIME, "-ldl", "-o", folder / "calls")
    return made.stderr


def called(folder, calls, target):
    """Returns for each call the pick, and {variant: (kind, number)}."""
    out = run(folder / "calls", DRIVER, input="".join(call + "\n" for call in calls),
              env={**os.environ, "KILN_EMU_DEVICE": target}).stdout
    found = []
    for line in out.splitlines():
        if line.startswith("pick "):
            found.append((line[5:], {}))
        else:
            kind, number, name = line.split()
            found[-1][1][name] = (kind, int(number))
    return found


def explained(folder, call, target):
    """Returns the same from `kiln explain`."""
    family, *sizes = call.split()
    sizes = [size for size in sizes if family != "rmsnorm_q4k_gemv" or not size.startswith("m=")]
    heading, *lines = run(KILN, "explain", "tuned.yaml", family, "-t", target, "--long", *sizes, cwd=folder).stdout.splitlines()
    kind, found = "measured" if ": measured" in heading else "estimated", {}
    for line in lines:
        number, _, name = line.strip().partition("  ")
        if line.startswith("not measured there"):
            kind = "estimated"
        elif number == "-":
            found[name.partition(":")[0]] = ("ruled_out", 0)
        else:
            found[name] = (kind, int(number))
    return next(iter(found)), found


def picks():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make(folder, [])
        for target, calls in ("sm_90", H100), ("sm_80", A100):
            for (call, wanted), (pick, _) in zip(calls, called(folder, [call for call, _ in calls], target)):
                if wanted not in (FAR, "split=1"):
                    expect(f"{call} on {target}: estimates have another first", pick != variant(wanted), True)
        for file, text in FILES.items():
            (folder / file).write_text(text)
        expect("messages", make(folder, FILES), "")
        for target, calls in ("sm_90", H100), ("sm_80", A100):
            for (call, wanted), (pick, candidates) in zip(calls, called(folder, [call for call, _ in calls], target)):
                kinds = {kind for kind, _ in candidates.values()} - {"ruled_out"}
                expect(f"{call} on {target}: explain", explained(folder, call, target), (pick, candidates))
                if wanted is FAR:
                    expect(f"{call} on {target}: what competes", kinds, {"estimated"})
                    usable = {name: cycles for name, (kind, cycles) in candidates.items() if kind == "estimated"}
                    expect(f"{call} on {target}", pick, min(usable, key=usable.get))
                else:
                    expect(f"{call} on {target}", (pick, candidates[pick][0]), (variant(wanted), "measured"))
        print(f"{len(H100) + len(A100)} calls")


SHAPES = """- family: rmsnorm_q4k_gemv
  shape: {n: [32, 200], k: 512}
- {family: nf4_gemm, shape: {m: 3, n: 64, k: "4 * n"}}
"""
FILTERS = "rows=2,chunk", "a=f16,acc=f32,nibbles=low,strategy=mma,tile_m=8,tile_n=32"


def tune(folder, output, *options, status=0):
    return run(TUNE, "shapes.yaml", "-o", output, "--driver", DRIVER, "--repeat", "1", *options, cwd=folder, status=status).stdout


def times_of(path):
    """Returns {(shape, variant): nanoseconds} in the order of the file."""
    shape, times = None, {}
    for line in path.read_text().splitlines():
        if line.startswith("    shape: "):
            shape = line[11:]
        elif re.match(r"      \S+: \d+$", line):
            name, _, time = line.strip().partition(": ")
            times[shape, name] = int(time)
    return times


def program():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "shapes.yaml").write_text(SHAPES)
        for one in FILTERS:
            tune(folder, "whole.yaml", "--filter", one)
        whole = times_of(folder / "whole.yaml")
        expect("shapes", {shape for shape, _ in whole}, {"{n: 32, k: 512}", "{n: 200, k: 512}", "{m: 3, n: 64, k: 256}"})
        expect("times are numbers", all(time > 0 for time in whole.values()), True)

        # An interrupt right after it prints the device; a second run goes on, and keeps the first run's times.
        running = subprocess.Popen([TUNE, "shapes.yaml", "-o", "parts.yaml", "--driver", DRIVER, "--repeat", "1", "--filter", FILTERS[0]],
                                   cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        running.stdout.readline()
        running.send_signal(signal.SIGINT)
        said = running.stdout.read()
        expect("status of an interrupted run", running.wait(), 130)
        expect("what an interrupted run says last", "the same command continues from there" in said, True)
        before = times_of(folder / "parts.yaml") if (folder / "parts.yaml").exists() else {}
        tune(folder, "parts.yaml", "--filter", "rows=2,chunk=65536")
        first = times_of(folder / "parts.yaml")
        said = tune(folder, "parts.yaml", "--filter", FILTERS[0]) + tune(folder, "parts.yaml", "--filter", FILTERS[1])
        parts = times_of(folder / "parts.yaml")
        expect("entries of a run in parts", set(parts), set(whole))
        expect("its first times", {key: parts[key] for key in {**before, **first}}, {**before, **first})
        expect("a run with nothing to do", tune(folder, "parts.yaml", "--filter", FILTERS[0]).splitlines()[-1].partition(",")[0], "0 measured")
        expect("what is left beside", sorted(path.name for path in folder.iterdir()), ["parts.yaml", "shapes.yaml", "whole.yaml"])

        # A launch that does not end excludes only its variant.
        (folder / "shapes.yaml").write_text("- {family: rmsnorm_q4k_gemv, shape: {n: 32, k: 512}}\n")
        done = run(TUNE, "shapes.yaml", "-o", "fails.yaml", "--driver", DRIVER, "--repeat", "1", "--filter", "activation=q8,batch=4",
                   cwd=folder, status=1, env={**os.environ, "KILN_EMU_JUMPS": "3"})
        expect("what is left", [name[-18:] for _, name in times_of(folder / "fails.yaml")], ["rows=2,chunk=65536"])
        expect("why", "rows=1,chunk=65536 at {n: 32, k: 512}: CUDA_ERROR_LAUNCH_TIMEOUT (702): the launch did not end\n" in done.stderr, True)
        expect("the count", "\n1 measured, 0 measured before, 0 ruled out by rules or the device, 1 failed; " in done.stdout, True)

        # kiln-tune does not replace special files, and writes a link's target, not the link.
        os.mkfifo(folder / "pipe")
        for name, end in ("to_null", "/dev/null"), ("to_pipe", "pipe"), ("to_nowhere", "nowhere"):
            (folder / name).symlink_to(end)
        for output in "/dev/full", ".", "to_null", "to_pipe", "to_nowhere":
            said = run(TUNE, "shapes.yaml", "-o", output, "--driver", DRIVER, cwd=folder, status=1).stderr
            expect(f"-o {output}", said, f"{output}: error: expected a regular file, or a new one, found a folder, pipe, device or broken link\n")
        expect("the links", [(folder / name).is_symlink() for name in ("to_null", "to_pipe", "to_nowhere")], [True] * 3)
        expect("a file at the target of a broken link", (folder / "nowhere").exists(), False)
        (folder / "there").mkdir()
        (folder / "there/real.yaml").write_bytes((folder / "fails.yaml").read_bytes())
        (folder / "link.yaml").symlink_to("there/real.yaml")
        tune(folder, "link.yaml", "--filter", FILTERS[0])
        expect("a link", ((folder / "link.yaml").is_symlink(), len(times_of(folder / "there/real.yaml")) > 1,
                          [path.name for path in (folder / "there").iterdir()]), (True, True, ["real.yaml"]))

        # Files of another device and wrong files stay unchanged.
        other = folder / "other.yaml"
        other.write_text(FILES["a100.yaml"])
        tune(folder, "other.yaml", status=1)
        expect("another device's file", other.read_text(), FILES["a100.yaml"])
        (folder / "wrong.yaml").write_text("- family: nf4_gem\n  shape: {m: 1}\n- family: nf4_gemm\n  shape: {mm: [1, x], n: 4 +}\n- 5\n"
                                           "- {family: nf4_gemm, shape: {m: 1, n: 64}}\n- {family: nvfp4_gemv, shap: {m: 1}}\n")
        said = run(TUNE, "wrong.yaml", "-o", "x.yaml", "--driver", DRIVER, cwd=folder, status=1).stderr
        families = "nf4_gemm, nf4_gemm_transposed, rmsnorm_q4k_gemv, nvfp4_gemv, attention"
        expect("diagnostics of wrong shapes", said.replace("wrong.yaml:", ""), f"""\
1:3: error: expected a family of the bundle, found 'nf4_gem'; there are {families}
4:11: error: expected an integer argument of nf4_gemm, found 'mm'; there are m, n, k, workspace_size
4:23: error: expected a number, a list of numbers or an expression for 'n', found '4 +': '4 +', character 4: expected a number, a name or '('
5:3: error: expected a mapping with 'family' and 'shape', found a value
6:22: error: expected 'k: NUMBER' in the shape of nf4_gemm, found no such key
7:24: error: expected a key of a shape, found 'shap'; there are family shape nanoseconds
""")

        # Its file in a bundle with fewer variants: the pick is the fastest.
        told = make(folder, ["parts.yaml"])
        expect("messages", re.fullmatch(r"parts\.yaml:3:10: warning: these times come from the emulated driver .*\n"
                                            r"parts\.yaml:\d+:7: warning: \d+ times ignored, of variants that the bundle lacks; "
                                            r"the first is of rmsnorm_q4k_gemv/\S+\n", told) is not None, True)
        (pick, candidates), = called(folder, ["nf4_gemm m=3 n=64 k=256 workspace_size=9999999"], "sm_90")
        times = {split: parts["{m: 3, n: 64, k: 256}", variant(split)] for split in ("split=1", "split=4")}
        expect("the times", candidates, {variant(split): ("measured", time) for split, time in times.items()})
        expect("the pick", times[f"split={pick[-1]}"], min(times.values()))
        (pick, candidates), = called(folder, ["rmsnorm_q4k_gemv m=1 n=40 k=512"], "sm_90")
        expect("the one that was measured", (pick, candidates[pick][0]), (variant("rows=2"), "measured"))
        expect("explain", explained(folder, "rmsnorm_q4k_gemv m=1 n=40 k=512", "sm_90"), (pick, candidates))
        print(f"{len(whole)} times")


picks() if VERB == "picks" else program()
