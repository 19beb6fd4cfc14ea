#!/usr/bin/env python3
"""Verifies variants of the bundles below that verified.txt lacks: those whose PTX or reference changed since they were verified.

The record verified.txt has a row for each verified variant: its key, and a hash of its images' PTX and of kiln-verify's reference
files for its family. A row means that the variant was right under all checks on each target with an image of its own, and that
ptxas, where it was on the PATH, assembled it for every target without a spill.

usage: changed.py check BUILD SECONDS               verifies a fixed sample, then the most different variants without a row
       changed.py more BUILD SECONDS [FAMILY]...    verifies variants without a row, of these families, and adds their rows
       changed.py record BUILD SECONDS              rewrites the record after a full run of SECONDS that passed
BUILD is a build folder; its kiln is built first. check and more start no further variant after SECONDS of processor time; more may
be repeated until no variant is left, and stopped at any time.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
RECORD = REPOSITORY / "tests/full/verified.txt"
CONFIGS = "tests/full.yaml", "tests/sample.yaml", "generated/default.yaml"
OPTIONS = "--inputs 1 --max-elements 8192 --own-images".split()
SHARE = 499  # one variant in 499 is in the fixed sample
BATCH = 32   # variants that are built together
MOST = 16    # variants that a commit verifies at most
SKIPPED = 77 # ptxas.py's exit status if there is no ptxas
CALLS = ("a", "acc", "nibbles", "type", "head_dim", "causal", "format", "x", "y", "epilogue", "matrices", "scale",
         "activation")  # parameters that callers name, for families with split_k


def family_of(variant):
    return variant.partition("/")[0]


def values(variant):
    return dict(pair.split("=") for pair in variant.partition("/")[2].split(","))


def targets():
    """Returns the verified bundle's targets, as kiln's --targets takes them."""
    return re.search(r"^targets: \[(.*)\]$", (REPOSITORY / CONFIGS[0]).read_text(encoding="utf-8"), re.M)[1].replace(" ", "")


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)


def build_target(build, target):
    run(["cmake", "--build", build, "--target", target])


# ---- hashes of PTX and references ----

def reference_files(folder, family):
    """Returns the files in `folder` that name the family, and the files that they include; not the list of all families."""
    every = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.[ch]")) if path.stem != "families"}
    found, left = set(), [name for name, text in every.items() if re.search(rf'"{family}"|ROW\({family},', text)]
    if not left:
        sys.exit(f"changed.py: no file of {folder} has the reference of {family}")
    while left:
        name = left.pop()
        if name in every and name not in found:
            found.add(name)
            left += [name[:-2] + ".c", *re.findall(r'#include "([\w.]+)"', every[name])]
    return [" ".join(re.sub(r"/\*.*?\*/", " ", every[name], flags=re.S).split()) for name in sorted(found)]  # without comments


def hashes(build):
    """Returns {variant: (key, devices, hash)} of all configurations, by a kiln of the present sources, like the programs."""
    build_target(build, "kiln")
    rows, references = {}, {}
    for config in CONFIGS:
        with tempfile.TemporaryDirectory() as folder:
            run([build / "bin/kiln", "generate", "-q", REPOSITORY / config, "--targets", targets(), "--output", folder])
            manifest = json.loads(next(pathlib.Path(folder).glob("*.json")).read_text(encoding="utf-8"))
        for v in manifest["variants"]:
            family = v["family"]
            if family not in references:
                references[family] = reference_files(REPOSITORY / "tools/verify/families", family)
            images = [f"{image['target']} {image['xxh3_128']}" for image in v["images"]]
            whole = "\n".join([*images, *references[family]])
            devices = [image["target"].rstrip("af") for image in v["images"]]
            rows.setdefault(v["id"], (v["key"], devices, hashlib.sha256(whole.encode()).hexdigest()[:16]))
    return rows


def read_record():
    """Returns the lines of the head, and {key: hash}."""
    head, record = [], {}
    for number, line in enumerate(RECORD.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if line.startswith("#"):
            head.append(line)
        elif re.fullmatch("[0-9a-f]{16} [0-9a-f]{16}", line):
            record.update([line.split()])
        else:
            sys.exit(f"{RECORD}:{number}: error: expected a key and a hash, found '{line}'")
    return head, record


def write_record(head, record):
    new = RECORD.with_suffix(".new")
    new.write_text("".join(line + "\n" for line in [*head, *(f"{key} {digest}" for key, digest in sorted(record.items()))]))
    new.replace(RECORD)


# ---- their bundle ----

def unsplit(rows, variant):
    """Returns the first variant for the same calls without split_k. A family's function falls back to it if the workspace is too
    small, so a bundle with split_k needs one too."""
    def calls(other):
        return family_of(other), [values(other).get(name) for name in CALLS]
    return [v for v in rows if calls(v) == calls(variant) and values(v).get("split_k", "1") == "1"][:1]


def with_others(rows, wanted):
    """Returns `wanted` and its companions: for each variant with split_k one without, and for each family without a variant on
    some target the first variant that runs on all."""
    every = list(wanted)
    for variant in wanted:
        if values(variant).get("split_k", "1") != "1":
            every += [v for v in unsplit(rows, variant) if v not in every]
    for family in dict.fromkeys(map(family_of, every)):
        if not any("sm_75" in rows[v][1] for v in every if family_of(v) == family):
            every += [v for v in rows if family_of(v) == family and "sm_75" in rows[v][1]][:1]
    return every


def build_programs(build, rows, wanted):
    items = []
    for variant in with_others(rows, wanted):
        params = variant.partition("/")[2].split(",")
        items.append(f"  - {{{', '.join(['family: ' + family_of(variant), *(p.replace('=', ': ') for p in params)])}}}\n")
    (build / "tests/full/changed.yaml").write_text(f"bundle: changed\ntargets: [{targets()}]\nkernels:\n{''.join(items)}",
                                                   encoding="utf-8")
    build_target(build, "changed_programs")


# ---- verification ----

def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def is_right(build, variant, devices):
    """Verifies the variant on these devices; prints the output where it is wrong."""
    wrong, begin = [], processor_seconds()
    command = [build / "bin/changed_verify", "--driver", build / "lib/emulator/libcuda.so.1", *OPTIONS, "--filter", variant]
    for device in devices:
        environment = dict(os.environ, KILN_EMU_DEVICE=device)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            wrong.append(device)
            print(done.stdout + done.stderr)
    outcome = f"WRONG on {' '.join(wrong)}" if wrong else f"right on {' '.join(devices)}"
    print(f"{processor_seconds() - begin:6.1f} s  {variant}  {outcome}", flush=True)
    return not wrong


def is_assembled(build, variant):
    """Assembles the variant for every target; prints the output if ptxas refuses it or spills. True without ptxas."""
    command = [sys.executable, "-B", REPOSITORY / "tests/generated/ptxas.py", "check", build / "bin/kiln",
               build / "tests/full/changed.yaml", "--filter", variant]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, SKIPPED):
        print(done.stdout + done.stderr)
    return done.returncode in (0, SKIPPED)


def verified(build, rows, wanted, seconds):
    """Yields each variant that is right, and None for one that is wrong, until the processor time is used up."""
    for i in range(0, len(wanted), BATCH):
        if processor_seconds() < seconds:
            build_programs(build, rows, wanted[i:i + BATCH])
        for variant in wanted[i:i + BATCH]:
            if processor_seconds() < seconds:
                yield variant if is_right(build, variant, rows[variant][1]) else None


def without_row(rows, record):
    """Returns the variants that the record lacks, in the order of their hashes."""
    left = [v for v, (key, _, digest) in rows.items() if record.get(key) != digest]
    print(f"{len(left)} of {len(rows)} variants differ from verified.txt")
    return sorted(left, key=lambda v: rows[v][2])


def facts(variant):
    return {(family_of(variant), name, value) for name, value in values(variant).items()}


def most_different(variants, count):
    """Returns `count` of the variants: one of each family first, then those with the most values that no chosen one has."""
    left, chosen, families, seen = {v: facts(v) for v in variants}, [], set(), set()
    while left and len(chosen) < count:
        best = max(left, key=lambda v: (family_of(v) not in families, len(left[v] - seen)))
        chosen.append(best)
        families.add(family_of(best))
        seen |= left.pop(best)
    return chosen


def check(build, seconds):
    record, rows = read_record()[1], hashes(build)
    sample = [v for v, (key, _, _) in rows.items() if int(key, 16) % SHARE == 0]
    changed = [v for v in without_row(rows, record) if v not in sample]
    results = list(verified(build, rows, sample + most_different(changed, MOST - len(sample)), seconds))
    print(f"{len(results)} were verified; {len(set(changed) - set(results))} are left for tests/full/changed.py more")
    return None in results


def more(build, seconds, *families):
    (head, record), rows = read_record(), hashes(build)
    every = set(map(family_of, rows))
    if unknown := [f for f in families if f not in every]:
        sys.exit(f"changed.py: no variant is of the family {unknown[0]}; there are {' '.join(sorted(every))}")
    record = {key: record[key] for key, _, _ in rows.values() if key in record}
    write_record(head, record)  # an unwritable record fails here, not after a variant
    left = without_row(rows, record)
    order = families or sorted(set(map(family_of, left)))
    wanted = sorted((v for v in left if family_of(v) in order), key=lambda v: order.index(family_of(v)))
    all_right = True
    for variant in verified(build, rows, wanted, seconds):
        is_kept = variant is not None and is_assembled(build, variant)
        if is_kept:
            key, _, digest = rows[variant]
            head, record = read_record()  # another folder's changed.py may have added rows
            record[key] = digest
            write_record(head, record)
        all_right &= is_kept
    return not all_right


def record_all(build, seconds):
    commit = subprocess.run(["git", "-C", REPOSITORY, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    head = ["# Each verified variant's key, and a hash of its PTX and reference (changed.py). On every target with an image of its own",
            f"# it was right under all checks with at least the cases of kiln-verify {' '.join(OPTIONS)}.",
            f"# last full run: commit {commit.stdout.strip() or 'unknown'}, passed, {seconds:.0f} s"]
    write_record(head, {key: digest for key, _, digest in hashes(build).values()})
    return 0


COMMANDS = {"check": check, "more": more, "record": record_all}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[2].removeprefix("usage: "))
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("build", type=lambda name: pathlib.Path(name).resolve())
    parser.add_argument("seconds", type=float)
    parser.add_argument("families", nargs="*")
    options = parser.parse_args()
    if options.families and options.command != "more":
        parser.error(f"{options.command} takes no family")
    if not (options.build / "CMakeCache.txt").is_file():
        parser.error(f"{options.build} is not a build folder")
    try:
        return COMMANDS[options.command](options.build, options.seconds, *options.families)
    except OSError as e:
        return f"changed.py: {e}"
    except KeyboardInterrupt:
        return 130  # the rows so far are in the record


if __name__ == "__main__":
    sys.exit(main())
