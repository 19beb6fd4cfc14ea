#!/usr/bin/env python3
"""Compares the generator's output for a configuration byte for byte with the committed files beside it.

usage: same_bytes.py CASE KILN CONFIG [--work DIR] [--full CONFIG [--targets T,...]]
  folder       from another working folder, under another relative name of the configuration
  locale       in C and in every other installed locale (de_DE.UTF-8 if installed)
  environment  with an empty environment, and with a large one
  jobs         with 1, 2 and 7 threads
  compilers    by a generator that clang builds now; without --targets, or without clang, by one that gcc builds
  aarch64      by generators that they build for aarch64, where char is unsigned, run by qemu (exits 77 without it)
The last two build in --work, and also take a second configuration, --full, for these --targets. It has no committed files:
they compare with KILN's output.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SUFFIXES = (".c", ".h", ".json")
SOURCE = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77


def generate(kiln, *arguments, runner=(), environment=None, cwd=None):
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([*runner, kiln, "generate", *arguments, "--output", out], check=True, env=environment, cwd=cwd)
        return {p.name: p.read_bytes() for p in pathlib.Path(out).iterdir() if p.suffix in SUFFIXES}


def committed(config):
    return {p.name: p.read_bytes() for p in config.parent.iterdir() if p.suffix in SUFFIXES}


def compare(what, made, kept):
    different = [name for name in sorted(made | kept) if made.get(name) != kept.get(name)]
    found = f"DIFFERENT: {' '.join(different)}" if different else "the same"
    print(f"{what}: {len(made)} files, {sum(map(len, made.values()))} bytes, {found}", flush=True)
    return not different and len(made) == len(SUFFIXES)


def folder(options):
    kiln, config = options.kiln, options.config
    kept = committed(config)
    with tempfile.TemporaryDirectory() as other:
        copy = pathlib.Path(other) / "elsewhere.d" / config.name
        copy.parent.mkdir()
        for file in (config, config.with_suffix(".lock.yaml")):
            if file.exists():
                shutil.copy(file, copy.parent)
        yield compare("from its own folder", generate(kiln, config.name, cwd=config.parent), kept)
        yield compare("from a copy elsewhere", generate(kiln, f"elsewhere.d/{config.name}", cwd=other), kept)
        yield compare("by its absolute name", generate(kiln, config, cwd="/"), kept)


def in_environments(options, environments):
    kept = committed(options.config)
    for what, environment in environments.items():
        yield compare(what, generate(options.kiln, options.config, environment=environment), kept)


def locale(options):
    installed = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.split()
    names = sorted({"C", "POSIX", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8", *installed})
    return in_environments(options, {f"LC_ALL={name}": {"LC_ALL": name, "LANG": name} for name in names})


def environment(options):
    large = {f"VARIABLE_{i}": "x" * 500 for i in range(200)} | {"SOURCE_DATE_EPOCH": "1", "TZ": "Asia/Tokyo"}
    return in_environments(options, {"empty environment": {}, "large environment": large})


def jobs(options):
    kept = committed(options.config)
    for count in (1, 2, 7):
        yield compare(f"--jobs {count}", generate(options.kiln, options.config, "--jobs", str(count)), kept)


# ---- other generators -----------------------------------------------------------------------------------------------

# The settings that each compiler needs.
NATIVE = {"gcc": [], "clang": []}
QUICK = ["-DCMAKE_C_FLAGS_RELEASE=-O1"]  # -O3 costs the compiler more time than it saves the generator
CROSS = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", "-DKILN_GENERATOR=ON",
         "-DCMAKE_EXE_LINKER_FLAGS=-static"]  # static, so that qemu needs no libraries of aarch64
AARCH64_GCC = "aarch64-linux-gnu-gcc"
AARCH64 = {AARCH64_GCC: CROSS, "clang": [*CROSS, "-DCMAKE_C_COMPILER_TARGET=aarch64-linux-gnu"]}


def compilers(options):
    in_full = not options.targets  # else one compiler is enough: the other one usually built KILN
    return by_builds(options, NATIVE if in_full or not shutil.which("clang") else {"clang": QUICK})


def aarch64(options):
    missing = list(missing_for_aarch64())
    if missing:
        print("SKIPPED: there is no", ", no ".join(missing))
        sys.exit(SKIPPED)
    in_full = not options.targets  # else one compiler is enough: qemu is slow
    return by_builds(options, AARCH64 if in_full else {AARCH64_GCC: [*CROSS, *QUICK]}, "qemu-aarch64")


def missing_for_aarch64():
    """Returns what is missing, each with its Debian package. The compiler finds out which libraries are installed."""
    for program, package in ((AARCH64_GCC, "gcc-aarch64-linux-gnu"), ("qemu-aarch64", "qemu-user")):
        if not shutil.which(program):
            yield f"{program} ({package})"
    for library, package in (("libc.a", "libc6-dev-arm64-cross"), ("libfyaml.a", "libfyaml-dev:arm64")):
        if shutil.which(AARCH64_GCC) and not os.path.isabs(run(AARCH64_GCC, f"-print-file-name={library}").strip()):
            yield f"{library} for aarch64 ({package})"


def by_builds(options, builds, *runner):
    wanted = [("the default bundle", [options.config], committed(options.config))]
    if options.full:
        full = [options.full, *(["--targets", options.targets] if options.targets else [])]
        on = f"on {options.targets}" if options.targets else "on all its targets"
        wanted.append((f"{options.full.name} {on}", full, generate(options.kiln, *full)))
    for compiler, settings in builds.items():
        if not shutil.which(compiler):
            print(f"{compiler}: not on this machine, its build is SKIPPED")
            continue
        kiln = build(pathlib.Path(options.work) / compiler, compiler, settings)
        for what, arguments, kept in wanted:
            yield compare(f"{what}, built by {compiler}", generate(kiln, *arguments, runner=runner), kept)


def build(folder, compiler, settings):
    run("cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja", f"-DCMAKE_C_COMPILER={compiler}",
        "-DCMAKE_BUILD_TYPE=Release", "-DKILN_TESTS=OFF", "-DKILN_TOOLS=OFF", *settings)
    run("cmake", "--build", folder, "--target", "kiln", "-j2")
    return folder / "bin/kiln"


def run(*command):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"FAILED: {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=["folder", "locale", "environment", "jobs", "compilers", "aarch64"])
    parser.add_argument("kiln", type=os.path.abspath)
    parser.add_argument("config", type=lambda name: pathlib.Path(name).resolve())
    parser.add_argument("--work")
    parser.add_argument("--full", type=pathlib.Path)
    parser.add_argument("--targets")
    options = parser.parse_args()
    results = list(globals()[options.case](options))
    sys.exit(0 if results and all(results) else 1)


main()
