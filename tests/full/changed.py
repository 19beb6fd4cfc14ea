#!/usr/bin/env python3
"""Verifies the variants of a commit: those of the bundles below whose PTX or reference differs from verified.txt, the record of
the last full run, and a fixed sample. The record has a row for each variant: its key, and a hash of its images' PTX and of
kiln-verify's reference files for its family.

usage: changed.py build REPOSITORY KILN CONFIG CMAKE BUILD_DIR   writes the variants to CONFIG, and builds their programs
       changed.py verify VERIFY EMULATOR                         runs them under all checks, where an image is new
       changed.py record REPOSITORY KILN RESULT SECONDS          rewrites verified.txt after a full run that passed
"""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

RECORD = pathlib.Path(__file__).resolve().parent / "verified.txt"
CONFIGS = "tests/full.yaml", "tests/sample.yaml", "generated/default.yaml"
SHARE = 149  # one variant in 149 is in the fixed sample
MOST = 48    # most changed variants to verify: those with the least hashes
CALLS = ("a", "acc", "nibbles", "type", "head_dim", "causal", "format", "x", "y", "epilogue", "matrices", "scale",
         "activation")  # parameters that callers name, in families with split_k
TARGETS = "sm_75 sm_80 sm_90 sm_100 sm_120".split()


def values(variant):
    return dict(pair.split("=") for pair in variant.partition("/")[2].split(","))


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
    return [re.sub(r"/\*.*?\*/|\s+", " ", every[name], flags=re.S) for name in sorted(found)]  # without comments


def hashes(repository, kiln):
    """Returns {variant: (key, images, hash)} of all configurations."""
    rows, references = {}, {}
    for config in CONFIGS:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([kiln, "generate", "-q", repository / config, "--output", folder], check=True)
            manifest = json.loads(next(pathlib.Path(folder).glob("*.json")).read_text(encoding="utf-8"))
        for v in manifest["variants"]:
            family = v["family"]
            if family not in references:
                references[family] = reference_files(repository / "tools/verify/families", family)
            images = [f"{image['target']} {image['xxh3_128']}" for image in v["images"]]
            whole = "\n".join([*images, *references[family]])
            rows.setdefault(v["id"], (v["key"], images, hashlib.sha256(whole.encode()).hexdigest()[:16]))
    return rows


def read_record():
    lines = RECORD.read_text(encoding="utf-8").splitlines()
    return dict(line.split() for line in lines if not line.startswith("#"))


# ---- their configuration ----

def unsplit(rows, variant):
    """Returns the first variant for the same calls without split_k. A family's function falls back to it if the workspace is too
    small, so a bundle with split_k needs one too."""
    def calls(other):
        return other.partition("/")[0], [values(other).get(name) for name in CALLS]
    return [v for v in rows if calls(v) == calls(variant) and values(v).get("split_k", "1") == "1"][:1]


def with_others(rows, wanted):
    """Returns `wanted` and its companions: for each variant with split_k one without, and for each family without a variant on
    some target the first variant that runs on all."""
    every = list(wanted)
    for variant in wanted:
        if values(variant).get("split_k", "1") != "1":
            every += [v for v in unsplit(rows, variant) if v not in every]
    targets = {variant: {image.split()[0] for image in images} for variant, (_, images, _) in rows.items()}
    for family in dict.fromkeys(variant.partition("/")[0] for variant in every):
        if not any("sm_75" in targets[v] for v in every if v.partition("/")[0] == family):
            every += [v for v in rows if v.partition("/")[0] == family and "sm_75" in targets[v]][:1]
    return every


def choose(rows, record):
    """Returns the changed variants, up to MOST, and the fixed sample."""
    changed = sorted((digest, v) for v, (key, _, digest) in rows.items() if record.get(key) != digest)
    sample = [v for v, (key, _, _) in rows.items() if int(key, 16) % SHARE == 0]
    print(f"{len(changed)} of {len(rows)} variants differ from verified.txt; {len(sample)} are of the fixed sample")
    if len(changed) > MOST:
        print(f"{MOST} of those that differ are verified: ./tools/test --full verifies all")
    return list(dict.fromkeys([v for _, v in changed[:MOST]] + sample))


def build(repository, kiln, config, cmake, build_dir):
    repository, config = pathlib.Path(repository), pathlib.Path(config)
    rows = hashes(repository, kiln)
    items = []
    for variant in with_others(rows, choose(rows, read_record())):
        family, _, params = variant.partition("/")
        items.append(f"  - {{{', '.join([f'family: {family}', *(p.replace('=', ': ') for p in params.split(','))])}}}\n")
    targets = re.search("^targets: .*$", (repository / CONFIGS[0]).read_text(encoding="utf-8"), re.M)[0]
    text = f"bundle: changed\n{targets}\nkernels:\n{''.join(items)}"
    if config.read_text(encoding="utf-8") != text:
        config.write_text(text, encoding="utf-8")
    sys.stdout.flush()
    return subprocess.run([cmake, "--build", build_dir, "--target", "changed_programs"], check=False).returncode


def verify(program, emulator):
    command = [program, "--driver", emulator, "--inputs", "1", "--max-elements", "8192", "--own-images"]
    results = {}
    for target in TARGETS:
        print(f"\n{target}", flush=True)
        results[target] = subprocess.run(command, env=dict(os.environ, KILN_EMU_DEVICE=target), check=False).returncode
    wrong = {target: result for target, result in results.items() if result not in (0, 77)} # 77: no image is new there
    print(f"wrong: {wrong}" if wrong or all(results.values()) else "right on all targets")
    return 1 if wrong or all(results.values()) else 0


def record(repository, kiln, result, seconds):
    repository = pathlib.Path(repository)
    told = subprocess.run(["git", "-C", repository, "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout
    rows = sorted(f"{key} {digest}" for key, _, digest in hashes(repository, kiln).values())
    head = ("# Each variant's key, and a hash of its PTX and reference, at the last full run (changed.py).\n"
            f"# commit: {told.strip() or 'none'}\n# result: {result}\n# seconds: {seconds}\n")
    RECORD.write_text(head + "".join(row + "\n" for row in rows), encoding="utf-8")
    return 0


sys.exit({"build": build, "verify": verify, "record": record}[sys.argv[1]](*sys.argv[2:]))
