#!/usr/bin/env python3
"""Tests the generator's output: bytes, warnings, sections, determinism, and files that it must not touch.

usage: check.py GENERATOR SOURCE_DIR VERB

GENERATOR is kiln with the families of families.c. Verbs are the functions registered below.
"""
import ctypes
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")
C_FLAGS = ("-std=c11", *WARNINGS, "-Wmissing-prototypes", "-Wstrict-prototypes", "-Wvla")
CXX_FLAGS = ("-std=c++17", *WARNINGS)
SECTIONS = ("-Os", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections")

GENERATOR, SOURCE_DIR = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
HERE = SOURCE_DIR / "tests/bundle"
WRITTEN = ("sample.c", "sample.h", "sample.json")
VERBS = {}
failures = 0


def verb(function):
    VERBS[function.__name__] = function
    return function


def expect(condition, message):
    global failures
    if not condition:
        failures += 1
        print("FAILED:", message)


def run(*command, status=0, **options):
    """Returns the command's output. An unexpected exit status ends the test."""
    options.setdefault("stderr", subprocess.STDOUT)
    done = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE, check=False, **options)
    if done.returncode != status:
        print("FAILED:", *command, f"\nexit status {done.returncode}, expected {status}\n", done.stdout)
        sys.exit(1)
    return done.stdout


def show(config, variant, target):
    """Returns the PTX, without the line on stderr for a target other than the PTX's own."""
    return run(GENERATOR, "show", config, variant, "--target", target, stderr=subprocess.DEVNULL)


def generate(folder, config=HERE / "sample.yaml", status=0, **options):
    folder.mkdir(exist_ok=True)
    return run(options.pop("generator", GENERATOR), "generate", config, "--output", folder, *options.pop("options", ()),
               status=status, **options)


def bytes_of(folder, names=WRITTEN):
    return {name: (folder / name).read_bytes() for name in names}


def compilers(*names):
    return [name for name in names if shutil.which(name)]


# ---- what is written -------------------------------------------------------------------------------------------------


@verb
def depfile(scratch):
    folder = scratch / "a b"
    folder.mkdir()
    shutil.copyfile(HERE / "sample.yaml", folder / "x#$.yaml")
    run(GENERATOR, "generate", "x#$.yaml", "--output", "../a b", cwd=folder)
    outputs = " ".join(rf"../a\ b/{name}" for name in WRITTEN)
    inputs = ": \\\n  x\\#$$.yaml\n"
    expect((folder / "sample.d").read_text() == outputs + inputs, "sample.d")
    run(GENERATOR, "generate", "x#$.yaml", "--shards", "2", cwd=folder)
    shards = " ".join(f"./{name}" for name in (*WRITTEN, "sample_1.c", "sample_2.c"))
    expect((folder / "sample.d").read_text() == shards + inputs, "sample.d with shards")
    stamp = folder / "stamp"
    for _ in range(2):
        run(GENERATOR, "generate", "x#$.yaml", "--stamp", "stamp", cwd=folder)
        expect((folder / "sample.d").read_text() == "stamp" + inputs, "sample.d with a stamp")
        expect(stamp.stat().st_mtime_ns > 1, "the stamp is new after every run")
        os.utime(stamp, (0, 0))


@verb
def manifest(scratch):
    """The hashes equal those of xxhsum, if it is installed. An alignment that depends on the variant is in the header."""
    generate(scratch)
    data = json.loads((scratch / "sample.json").read_text())
    expect(len({v["key"] for v in data["variants"]}) == len(data["variants"]), "keys are not distinct")
    images = [(v, i) for v in data["variants"] for i in v["images"]]
    for variant, image in images:
        text = show(HERE / "sample.yaml", variant["id"], image["target"])
        expect(len(text.encode()) == image["bytes"], f"{variant['id']} {image['target']}: bytes")
        expect(f".version {image['ptx_version']}\n.target {image['ptx_target']}\n" in text, "version and target")
        if shutil.which("xxhsum"):
            found = run("xxhsum", "-H2", input=text).split()[0]
            expect(found == image["xxh3_128"], f"{variant['id']} {image['target']}: hash")
        waits = "griddepcontrol.wait;" in text
        expect(image.get("dependent", False) == waits, f"{variant['id']} {image['target']}: dependent")
    header = " ".join((scratch / "sample.h").read_text().replace("*", " ").split())
    expect("norm; / out, may be null, f32[ceil_div(rows, 2)], aligned to select(strategy == wide, 16, 4) bytes, 4 to 16:" in header,
           "the header says how norm must be aligned")
    expect([i["target"] for v, i in images if v["id"] == "axpy"] == ["sm_75", "sm_90"], "axpy for sm_80 is that for sm_75")


def stated(data):
    """Yields each struct of the manifest: its size and its members' offsets."""
    for family in data["families"]:
        of_params = {p["name"]: p["offset"] for p in family["params"] if "offset" in p}
        for function, params in (family, of_params), *((call, call["params"]) for call in family.get("calls", [])):
            members = {arg.get("member", arg["name"]): arg["offset"] for arg in function["args"]}
            yield function["function"] + "_args", (function["args_bytes"], members | params)
    for name, layout in data["structs"].items():
        yield name, (layout["bytes"], layout["offsets"])


@verb
def layout(scratch):
    """The C asserts every size and offset of the manifest, for each machine with an installed compiler."""
    generate(scratch)
    source, wrong = scratch / "sample.c", scratch / "wrong.c"
    text = source.read_text()
    asserted = {name: (int(size), {m: int(o) for m, o in re.findall(r"AT\(([\w.]+), (\d+)\)", rest)}) for name, size, rest in
                re.findall(r"#define STRUCT (\w+)\n_Static_assert\(sizeof\(STRUCT\) == (\d+)(.*?)\);\n#undef", text, re.S)}
    expect(asserted == dict(stated(json.loads((scratch / "sample.json").read_text()))), "the C asserts what the manifest states")
    changed = re.sub(r"(\b(?:a|x|n|library|params|log|status|cycles|slot_count|key|args_bytes), )(\d+)\)", r"\g<1>1\2)", text)
    wrong.write_text(re.sub(r"(kiln_slot|kiln_loader)\n_Static_assert\(sizeof\(STRUCT\) == ", r"\g<0>1", changed))
    for compiler in compilers("gcc", "clang", "aarch64-linux-gnu-gcc"):
        command = [compiler, *C_FLAGS, "-fsyntax-only", f"-I{SOURCE_DIR}/include"]
        run(*command, source)
        output = run(*command, wrong, status=1)
        expect(output.count("error: static") == len(asserted), f"{compiler}: every struct has a wrong number:\n{output}")


# ---- compiling the output --------------------------------------------------------------------------------------------

USE = """#include "sample.h"
kiln_status use(kiln_loader *loader, CUstream stream);
kiln_status use(kiln_loader *loader, CUstream stream)
{
    sample_blend_args args = {};
    args.type = SAMPLE_BLEND_TYPE_F16;
    args.rows = 3;
    return OVERLOAD ? sample_blend(loader, stream, ARGS) : sample_axpy(loader, stream, nullptr);
}
"""


@verb
def warnings(scratch):
    generate(scratch)
    include = (f"-I{SOURCE_DIR}/include", f"-I{scratch}")
    for compiler in compilers("gcc", "clang"):
        for level in ("-O0", "-O2"):
            run(compiler, *C_FLAGS, level, *include, "-c", scratch / "sample.c", "-o", scratch / "sample.o")
    (scratch / "use.cc").write_text(USE.replace("OVERLOAD", "args.rows").replace("ARGS", "args"))
    for compiler in compilers("g++", "clang++"):
        run(compiler, *CXX_FLAGS, *include, "-c", scratch / "use.cc", "-o", scratch / "use.o")


@verb
def subsets(scratch):
    """A bundle compiles with any values of a parameter, with or without the default, and its header says what 0 means."""
    include = (f"-I{SOURCE_DIR}/include", f"-I{scratch}")
    config = scratch / "subset.yaml"
    scratch.mkdir(exist_ok=True)
    for types in ("f16", "f64, f16", "f32, f16", "f32, f64, f16"):
        for accumulators in ("f64", "f32, f64"):
            config.write_text(f"bundle: subset\ntargets: [sm_80]\nkernels:\n"
                              f"  - {{family: blend, type: [{types}], acc: [{accumulators}], clamp: true}}\n")
            generate(scratch, config)
            run("cc", *C_FLAGS, *include, "-fsyntax-only", scratch / "subset.c")
            said = " ".join((scratch / "subset.h").read_text().replace("*", " ").split())
            zero = "none of them" if types == "f64, f16" else types.split(",")[0]
            there_are = types.replace(",", "")
            packed = f"uint32_t type, acc, width; / 0, or the bundle's only values: {types}, {accumulators}, 64 /"
            alone = f"element type of x and y: {there_are}; 0 is {zero} /"
            expect((alone if "," in types + accumulators else packed) in said, f"type: [{types}]: 0 is {zero}")


APPLICATION = """#include "sample.h"
int main(int count, char **words)
{
    (void)words;
    return count > 9 ? (int)FUNCTION(NULL, NULL, NULL) : (int)sample_bundle.slot_count;
}
"""


@verb
def sections(scratch):
    """A program that calls one variant's function links only that variant's texts and names."""
    generate(scratch)
    variants = json.loads((scratch / "sample.json").read_text())["variants"]
    runtime = sorted((SOURCE_DIR / "runtime").glob("*.c"))
    for compiler in compilers("gcc", "clang"):
        for used in variants[:3]:
            (scratch / "main.c").write_text(APPLICATION.replace("FUNCTION", used["function"]))
            run(compiler, "-std=gnu11", *SECTIONS, f"-I{SOURCE_DIR}/include", f"-I{scratch}", scratch / "main.c",
                scratch / "sample.c", *runtime, "-ldl", "-s", "-o", scratch / "main")
            program = (scratch / "main").read_bytes()
            for v in variants:
                for text in (v["id"] + "\0", f".entry {v['entry']}("):
                    if v["id"] != "axpy" or "(" in text:
                        expect((text.encode() in program) == (v is used), f"{compiler}: {used['id']}: {text}")
            others = {v["family"] for v in variants} - {used["family"]}
            expect(not any(f"\0{o}\0".encode() in program for o in others), f"{compiler}: another family's name")
            expect(("stride must be" in program.decode("latin-1")) == (used["family"] == "blend"), "rules")


@verb
def assembles(scratch):
    """ptxas assembles every image for its own target."""
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    if not ptxas:
        print("SKIPPED: there is no ptxas")
        sys.exit(SKIPPED)
    generate(scratch)
    for variant in json.loads((scratch / "sample.json").read_text())["variants"]:
        for target in (image["target"] for image in variant["images"]):
            text = show(HERE / "sample.yaml", variant["id"], target)
            run(ptxas, f"-arch={target}", "-o", scratch / "image.cubin", "-", input=text)


@verb
def shards(scratch):
    """A sharded bundle has the same kernels, in files that compile without a warning. Kernels of other families do not
    change a shard, even if they change slots and the index."""
    generate(scratch / "whole")
    folder = scratch / "shards"
    config = scratch / "sample.yaml"
    written = ("sample_1.c", "sample_2.c")
    shutil.copyfile(HERE / "sample.yaml", config)
    shard = lambda: (generate(folder, config, options=("--shards", "2")), bytes_of(folder, (*written, "sample.c")))[1]
    before = shard()
    expect((folder / "sample.json").read_bytes() == (scratch / "whole/sample.json").read_bytes(), "the manifest")
    kernels = [set(re.findall(r"^const kiln_kernel (\w+)", t.decode(), re.M)) for t in before.values()]
    whole = set(re.findall(r"^const kiln_kernel (\w+)", (scratch / "whole/sample.c").read_text(), re.M))
    expect(kernels[0] | kernels[1] == whole and not kernels[0] & kernels[1] and not kernels[2], f"kernels: {kernels}")
    slots = [int(s) for n in written for s in re.findall(r"^    \.slot = (\d+),$", before[n].decode(), re.M)]
    most = int(re.search(r"SAMPLE_SLOTS +(\d+)", (folder / "sample.h").read_text())[1])
    expect(len(set(slots)) == len(whole) and max(slots) < most <= 2 * len(whole), f"slots of {most}: {slots}")
    for compiler in compilers("gcc", "clang"):
        for name in (*written, "sample.c"):
            run(compiler, *C_FLAGS, f"-I{SOURCE_DIR}/include", f"-I{folder}", "-c", folder / name, "-o", scratch / "o")
    config.write_text(config.read_text().replace("width: 128", "width: 64"))
    changed = [name for name, text in shard().items() if text != before[name]]
    expect(changed == ["sample_2.c", "sample.c"], f"a change of the second family changed {changed}")


@verb
def cubins(scratch):
    """Each target has a cubin, equal to ptxas' output for the PTX that the target runs. The working folder does not matter."""
    if not shutil.which("ptxas"):
        print("SKIPPED: there is no ptxas")
        sys.exit(SKIPPED)
    config = scratch / "sample.yaml"
    config.write_text((HERE / "sample.yaml").read_text().replace("images: [ptx]", "images: [ptx, cubin]"))
    (scratch / "elsewhere").mkdir()
    generate(scratch / "one", config)
    generate(scratch / "two", config, env={**os.environ, "TMPDIR": str(scratch / "elsewhere")})
    expect(bytes_of(scratch / "one") == bytes_of(scratch / "two"), "bytes depend on the folder")
    expect(not list((scratch / "elsewhere").iterdir()), "files were left")
    data = json.loads((scratch / "one" / "sample.json").read_text())
    for variant in data["variants"]:
        made = {i["target"]: i for i in variant["images"] if i.get("format") == "cubin"}
        ptx = [i["target"] for i in variant["images"] if "format" not in i]
        usable = [t for t in data["targets"] if data["targets"].index(t) >= data["targets"].index(ptx[0])]
        expect(list(made) == usable, f"{variant['id']} has cubins for {list(made)}, PTX for {ptx}")
        for target, image in made.items():
            text = show(config, variant["id"], target)
            run("ptxas", f"-arch={target}", "-o", scratch / "image.cubin", "-", input=text)
            expect((scratch / "image.cubin").stat().st_size == image["bytes"], f"{variant['id']} for {target}")
    for compiler in compilers("gcc", "clang"):
        run(compiler, *C_FLAGS, "-c", f"-I{SOURCE_DIR}/include", "-o", scratch / "sample.o", scratch / "one" / "sample.c")
    expect(data["min_driver"] < 13000, "min_driver is that of PTX")


PTXAS = """#!/bin/sh
# A ptxas that is slow for a wide kernel; its cubin is a mark, the target and the PTX.
if [ "$1" = --version ]; then echo "release 13.0, V13.0.88"; exit; fi
if grep -q 'entry .*_wide' "$4"; then i=0; while [ $i -lt 40000 ]; do i=$((i + 1)); done; fi
{ printf '\\177ELF%s ' "$1"; cat "$4"; } > "$3"
"""


def false_ptxas(scratch):
    """Returns an environment with a fake ptxas."""
    folder = scratch / "toolkit"
    folder.mkdir()
    (folder / "ptxas").write_text(PTXAS)
    (folder / "ptxas").chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


@verb
def only_cubins(scratch):
    """Without PTX, each target has a cubin with the hash of its PTX. Everything else equals the bundle with PTX."""
    environment = false_ptxas(scratch)
    config = scratch / "sample.yaml"
    config.write_text((HERE / "sample.yaml").read_text().replace("images: [ptx]", "images: [cubin]"))
    generate(scratch / "cubins", config, env=environment)
    generate(scratch / "ptx", config, options=("--images", "ptx"))
    generate(scratch / "both", config, options=("--images", "ptx,cubin"), env=environment)
    cubins, ptx, both = (json.loads((scratch / name / "sample.json").read_text()) for name in ("cubins", "ptx", "both"))
    expect(cubins["ptxas"] == both["ptxas"] == "13.0, V13.0.88" and "ptxas" not in ptx, "the version of ptxas")
    expect((cubins["min_driver"], both["min_driver"]) == (13000, ptx["min_driver"]), "the drivers")
    for one, text, two in zip(cubins["variants"], ptx["variants"], both["variants"]):
        images, texts = one.pop("images"), text.pop("images")
        expect(one == text, f"{one['id']} differs")
        expect(two["images"] == texts + images, f"{one['id']} has both")
        expect(all(i["format"] == "cubin" and i["min_driver"] == 13000 for i in images), f"{one['id']}: {images}")
        usable = cubins["targets"][cubins["targets"].index(texts[0]["target"]):]
        expect([i["target"] for i in images] == usable, f"{one['id']} has cubins for each target: {images}")
        for image in images:
            own = [t for t in texts if cubins["targets"].index(t["target"]) <= cubins["targets"].index(image["target"])][-1]
            expect(image["ptx_xxh3_128"] == own["xxh3_128"], f"{one['id']} for {image['target']}: the hash of the PTX")
            expect(image["bytes"] == own["bytes"] + len(f"\x7fELF-arch={image['target']} "), f"{image}: of this PTX")
    source = (scratch / "cubins/sample.c").read_text()
    expect("KILN_IMAGE_PTX" not in source and "KILN_IMAGE_CUBIN" in source, "the formats in C")
    expect("--images ptx" in (scratch / "ptx/sample.h").read_text().splitlines()[0], "how to remake it")
    generate(scratch / "cubins", config, options=("--check",), env=environment)
    said = run(GENERATOR, "diff", scratch / "ptx/sample.json", scratch / "cubins/sample.json", status=4)
    expect("sm_75 is gone" in said and "sm_75 cubin is new" in said, f"kiln diff: {said}")


@verb
def times(scratch):
    """Prints ptxas' time for each PTX image, slowest first. The bundle's bytes do not change."""
    environment = false_ptxas(scratch)
    generate(scratch / "one")
    rows = generate(scratch / "two", options=("--times", "--quiet"), env=environment)
    expect(bytes_of(scratch / "one") == bytes_of(scratch / "two"), "times change the bytes")
    heading, *lines = [line.split("\t") for line in rows.splitlines()]
    expect(heading == ["variant", "target", "milliseconds"], f"the heading: {heading}")
    images = {(v["id"], i["target"]) for v in json.loads((scratch / "one/sample.json").read_text())["variants"] for i in v["images"]}
    expect(len(lines) == len(images) and {(v, t) for v, t, _ in lines} == images, f"a row for each image: {lines}")
    taken = [float(ms) for _, _, ms in lines]
    expect(taken == sorted(taken, reverse=True) and taken[-1] > 0, f"slowest first: {taken}")
    wide = sum("wide" in v for v, _, _ in lines)
    expect(wide > 2 and all("wide" in v for v, _, _ in lines[:wide]), f"the slow ones: {lines}")
    said = generate(scratch / "two", options=("--times", "--jobs", "4", "--images", "cubin"), env=environment).splitlines()
    expect(said[0].startswith("sample: ") and said[1] == "\t".join(heading), f"what is printed: {said[:2]}")
    expect({tuple(line.split("\t")[:2]) for line in said[2:-1]} == images, "a bundle without PTX is of the same PTX")
    total = re.fullmatch(rf"total of {len(images)} images: ([0-9.]+) ms, ptxas 13.0, V13.0.88", said[-1])
    summed = sum(float(line.split("\t")[2]) for line in said[2:-1])
    expect(total and abs(float(total[1]) - summed) < 0.06 * len(images), f"the total: {said[-1]}, summed {summed}")
    (scratch / "toolkit/ptxas").write_text(PTXAS.replace("if grep", 'if grep -q "entry .*_wide" "$4"; then echo "fatal: too wide"; exit 1; fi\nif grep'))
    before = sorted(os.listdir(scratch))
    said = generate(scratch / "three", options=("--times",), env=environment, status=1)
    expect("for sm_80, but ptxas reports: fatal: too wide" in said, f"a refusal: {said}")
    expect(sorted(os.listdir(scratch)) == sorted([*before, "three"]) and not list((scratch / "three").iterdir()), "nothing is written")


# ---- determinism -----------------------------------------------------------------------------------------------------


@verb
def compressed(scratch):
    """The manifest, the budget, `kiln diff`, the warning and the linked kernels are right. The bytes are always the same."""
    config = scratch / "packed.yaml"
    config.write_text((HERE / "sample.yaml").read_text().replace("bundle: sample\n", "bundle: sample\ncompress: zstd\n"))
    done = subprocess.run([GENERATOR, "generate", config, "--output", scratch], text=True, capture_output=True, check=False)
    if "built with libzstd" in done.stderr:
        print("SKIPPED: this kiln was built without libzstd")
        sys.exit(SKIPPED)
    data = json.loads((scratch / "sample.json").read_text())
    images = [image for v in data["variants"] for image in v["images"]]
    stored, bytes_of_texts = (sum(image[key] for image in images) for key in ("stored_bytes", "bytes"))
    expect(done.stderr == f"{config}:2:11: warning: compressed images save {bytes_of_texts - stored} bytes, less than the "
           "226120 of the code that expands them\n", f"the warning: {done.stderr}")
    expect(f"images of {bytes_of_texts} bytes, {stored} compressed, drivers from CUDA 11.8; sample.c" in done.stdout, f"the summary: {done.stdout}")
    expect(data["compress"] == "zstd" and re.fullmatch(r"1\.\d+\.\d+", data["libzstd"]), "the manifest says what packed it")
    largest = max(image["bytes"] for image in images)
    expect(data["scratch_bytes"] == 160 * 1024 + (largest | 15) + 1, f"scratch_bytes: {data['scratch_bytes']}")
    header = (scratch / "sample.h").read_text()
    expect(f"#define SAMPLE_SCRATCH_BYTES {data['scratch_bytes']} " in header, "SAMPLE_SCRATCH_BYTES")

    generate(scratch / "plain")
    plain = json.loads((scratch / "plain/sample.json").read_text())
    for a, b in zip(plain["variants"], data["variants"]):
        for x, y in zip(a["images"], b["images"]):
            expect({k: v for k, v in y.items() if not k.startswith("stored_")} == x, f"{a['id']}: all else of an image")
    for jobs in "1", "3":
        generate(scratch / jobs, config, options=("--jobs", jobs))
        expect(bytes_of(scratch / jobs) == bytes_of(scratch), f"--jobs {jobs} gives other bytes")

    exported = [scratch / "exported plain", scratch / "exported"]
    for folder, of in zip(exported, (HERE / "sample.yaml", config)):
        run(GENERATOR, "export", of, "--output", folder)
    texts = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in exported]
    expect(texts[0] == texts[1] and texts[0], "kiln export writes the texts")
    generate(scratch / "shards", config, options=("--shards", "2"))
    for compiler in compilers("gcc", "clang"):
        for source in sorted((scratch / "shards").glob("*.c")):
            run(compiler, *C_FLAGS, "-c", f"-I{SOURCE_DIR}/include", "-o", scratch / "sample.o", source)

    old = json.loads(json.dumps(data))
    old["variants"][0]["images"][0].update(stored_bytes=7, stored_xxh3_128="0" * 32)
    (scratch / "old.json").write_text(json.dumps(old))
    first = images[0]
    expect(run(GENERATOR, "diff", scratch / "old.json", scratch / "sample.json", status=4) ==
           f"~ axpy; {first['target']} is recompressed, 7 -> {first['stored_bytes']} bytes\n"
           f"0 added, 0 removed, 1 changed, {len(data['variants']) - 1} alike; "
           f"images {stored - first['stored_bytes'] + 7} -> {stored} bytes\n", "kiln diff of recompressed images")
    expect("compress: nothing -> zstd\n" in run(GENERATOR, "diff", scratch / "plain/sample.json", scratch / "sample.json",
                                                status=4), "kiln diff of a bundle that is compressed now")

    text = config.read_text()
    config.write_text(text + f"max_bytes: {stored}\n")
    generate(scratch / "budget", config)
    config.write_text(text + f"max_bytes: {stored - 1}\n")
    expect(f"at most {stored - 1} bytes of images of the bundle, found {stored};" in
           generate(scratch / "budget", config, status=1), "a budget is of the bytes stored")
    config.write_text(text)

    library = SOURCE_DIR / "runtime/zstd/zstd.c"
    used, *others = data["variants"]
    (scratch / "main.c").write_text(APPLICATION.replace("FUNCTION", used["function"]))
    for compiler in compilers("gcc", "clang"):
        run(compiler, "-std=gnu11", *SECTIONS, f"-I{SOURCE_DIR}/include", f"-I{scratch}", scratch / "main.c",
            scratch / "sample.c", library, *sorted((SOURCE_DIR / "runtime").glob("*.c")), "-l:libzstd.a", "-ldl", "-g", "-o",
            scratch / "main")
        carried = run("nm", scratch / "main")
        expect(f" {used['entry']}_sm_75\n" in carried, f"{compiler}: the kernel that is used")
        expect(not any(f" {v['entry']}_sm_" in carried for v in others), f"{compiler}: kernels that are not used drop out")


@verb
def deterministic(scratch):
    generate(scratch / "one")
    elsewhere = scratch / "another folder"
    elsewhere.mkdir()
    shutil.copyfile(HERE / "sample.yaml", elsewhere / "sample.yaml")
    environment = {"LC_ALL": "C.utf8", "LANG": "de_DE.UTF-8", "TZ": "Asia/Tokyo", "HOME": "/", "PATH": os.environ["PATH"]}
    run(GENERATOR, "generate", "sample.yaml", cwd=elsewhere, env=environment)
    expect(bytes_of(scratch / "one") == bytes_of(elsewhere), "another folder, locale and environment change the bytes")


@verb
def compiler_independent(scratch):
    """A generator built by another compiler, with another optimisation, writes the same bytes."""
    built_by = run("readelf", "-p", ".comment", GENERATOR)
    other = compilers("gcc" if "clang" in built_by else "clang")
    if not other:
        print("SKIPPED: there is no second compiler")
        sys.exit(SKIPPED)
    sources = [s for s in sorted((SOURCE_DIR / "generator").rglob("*.c")) if s.parent.name != "kernels" and s.name != "main.c"]
    run(other[0], "-std=gnu11", "-O1", "-ffp-contract=off", '-DKILN_EMULATOR_FROM_BIN="."', f"-I{SOURCE_DIR}/include",
        f"-I{SOURCE_DIR}/generator", f"-I{GENERATOR.parents[2]}/generator/init", *sources, HERE / "families.c", HERE.parent / "generator.c", "-lfyaml", "-lm", "-o", scratch / "kiln")
    generate(scratch / "one")
    generate(scratch / "two", generator=scratch / "kiln")
    expect(bytes_of(scratch / "one") == bytes_of(scratch / "two"), f"{other[0]}'s generator writes other bytes")


def seconds(*command):
    """Returns the command's processor time."""
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    expect(status == 0, f"{command}: status {status}")
    return usage.ru_utime


@verb
def many(scratch):
    """Time grows linearly with the entries and parameters of external PTX."""
    head = ".version 7.8\n.target sm_80\n.address_size 64\n.extern .shared .align 4 .b8 x_0[];\n"
    makers = {"entries": lambda n: "".join(f".extern .shared .align 4 .b8 s_{i}[];\n.visible .entry k_{i}(.param .u32 n)\n"
                                           f".reqntid 32\n{{\n mov.u32 %r1, s_{i};\n ret;\n}}\n" for i in range(n)),
              "parameters": lambda n: f".visible .entry k_0({', '.join(f'.param .u32 p_{i}' for i in range(n))})\n.reqntid 32\n{{\n ret;\n}}\n"}
    for what, make in makers.items():
        times = []
        for n in 8000, 32000:
            (scratch / "many.ptx").write_text(head + make(n))
            entries = "".join(f"      k_{i}: {{grid: 1, shared_bytes: 64}}\n" for i in range(n)) if what == "entries" else "      k_0: {grid: 1}\n"
            (scratch / "many.yaml").write_text(f"bundle: many\ntargets: [sm_80]\nkernels:\n  - ptx: many.ptx\n    entries:\n{entries}"
                                               f"max_bytes: {{k_{n - 1 if what == 'entries' else 0}: 100000000}}\n")
            times.append(seconds(GENERATOR, "generate", "-q", scratch / "many.yaml"))
        expect(times[1] < 8 * times[0] + 0.1, f"four times the {what} take {times[1]:.2f} s, not {times[0]:.2f} s")


# ---- files that stay unchanged ---------------------------------------------------------------------------------------

FILES = (*WRITTEN, "sample.d")


def times(folder):
    return {name: (folder / name).stat().st_mtime_ns for name in FILES}


@verb
def unchanged(scratch):
    """Only files whose bytes change are written."""
    folder = scratch / "out"
    config = scratch / "sample.yaml"
    shutil.copyfile(HERE / "sample.yaml", config)
    generate(folder, config)
    for name in FILES:
        os.utime(folder / name, (1, 1))
    before = times(folder)
    generate(folder, config)
    expect(times(folder) == before, "a second run wrote a file again")
    (folder / "sample.h").write_text("")
    generate(folder, config)
    after = times(folder)
    expect({n for n in FILES if after[n] != before[n]} == {"sample.h"}, "only the damaged file is written again")


@verb
def order(scratch):
    """The manifest is written after the files that it describes, and the stamp last. Two concurrent runs leave complete files."""
    IN_MOVED_TO, EVENT = 0x80, struct.Struct("iIII")
    system = ctypes.CDLL(None, use_errno=True)
    watch = system.inotify_init()
    expect(system.inotify_add_watch(watch, bytes(scratch), IN_MOVED_TO) >= 0, "the folder is watched")
    generate(scratch, options=("--shards", "2", "--stamp", scratch / "stamp"))
    events, moved = os.read(watch, 1 << 16), []
    os.close(watch)
    while events:
        length = EVENT.unpack_from(events)[3]
        moved.append(events[EVENT.size:EVENT.size + length].rstrip(b"\0").decode())
        events = events[EVENT.size + length:]
    expect(moved == ["sample.c", "sample.h", "sample_1.c", "sample_2.c", "sample.d", "sample.json", "stamp"], f"the order: {moved}")
    config = scratch / "few.yaml"
    config.write_text((HERE / "sample.yaml").read_text().replace("width: 128", "width: 64"))
    whole = [generate(scratch / of.stem, of) and bytes_of(scratch / of.stem) for of in (HERE / "sample.yaml", config)]
    alone = ("unshare", "-pf")  # each process then has pid 1, as in containers
    if not shutil.which("unshare") or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        alone = ()
    for _ in range(5):
        runs = [subprocess.Popen([*alone, GENERATOR, "generate", of, "-q", "-o", scratch / "both"]) for of in (HERE / "sample.yaml", config) * 2]
        expect(not any([process.wait() for process in runs]), "four runs at once")
        found = bytes_of(scratch / "both")
        expect(all(found[name] in [w[name] for w in whole] for name in WRITTEN), "a file of two runs is neither's")
        expect(sorted(os.listdir(scratch / "both")) == sorted(FILES), "something was left behind")


def no_room():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))


@verb
def failing(scratch):
    """A failed run leaves the old files unchanged, and no new ones."""
    folder = scratch / "out"
    generate(folder)
    before, names = bytes_of(folder, FILES), sorted(os.listdir(folder))
    text = (HERE / "sample.yaml").read_text()
    cases = (("unknown family", text.replace("family: blend", "family: blond"), 1, "blond"),
             ("kernel unlike its descriptor", text + "  - family: broken\n", 3, "parameter n is u32"),
             ("kernel without its map", text + "  - family: unmapped\n", 3, "parameter is missing where the descriptor has the tensor map m"),
             ("time without its loop", text + "  - family: untimed\n", 3, "time has a length, but the kernel has no ptx_main_loop"),
             ("side trips without their loop", text + "  - family: untimed_side\n", 3, "time has side_trips, but the kernel has no ptx_side_loop"),
             ("emit that ends the program", text + "  - family: leaving\n", 3, "leaving for sm_75: its emit ended the program"),
             ("too little shared memory", text + "  - family: cramped\n", 3, "cramped: the kernel uses at least 1 bytes of dynamic shared memory, but its shape's shared_bytes is 0"),
             ("rule about a missing argument", text + "  - family: lacking\n", 3, "'n >= matrices * n_2' names n_2, which the variant lacks"),
             ("name that is the runtime's", text.replace("bundle: sample", "bundle: kiln"), 1, "kiln"),
             ("name that is too long", text.replace("bundle: sample", "bundle: " + "s" * 48), 1, "47"))
    for what, config, status, says in cases:
        (scratch / "bad.yaml").write_text(config)
        output = generate(folder, scratch / "bad.yaml", status=status)
        expect(says in output, f"{what}: the message does not say '{says}': {output}")
        expect(bytes_of(folder, FILES) == before and sorted(os.listdir(folder)) == names, f"{what}: files changed")
    (scratch / "bad.yaml").write_text(text + "  - {family: uncosted, tile: [1, 2]}\n")
    generate(scratch / "uncosted", scratch / "bad.yaml")
    for where, kept in ((folder, names), (scratch / "new", None)):  # a full disk: a new folder is removed
        output = run(GENERATOR, "generate", HERE / "sample.yaml", "--output", where, status=1, preexec_fn=no_room)
        expect("cannot write: File too large" in output, f"no room: the message is: {output}")
        expect((sorted(os.listdir(where)) if where.exists() else None) == kept, f"no room: {where.name} has changed")
    expect(bytes_of(folder, FILES) == before, "no room: files changed")
    (folder / "sample.json").unlink()
    (folder / "sample.json").mkdir()  # cannot be replaced by a file
    (folder / "sample.h").write_text("old")
    generate(folder, status=1)
    expect((folder / "sample.h").read_text() == "old", "one file was written although another could not be")
    expect(sorted(os.listdir(folder)) == names, "something was left behind")


@verb
def straying(scratch):
    """If an emit crashes or never returns, a message names its variant and target."""
    environment = {**os.environ, "ASAN_OPTIONS": "handle_segv=0", "TSAN_OPTIONS": "handle_segv=0"}  # their own reports replace the signal
    config = scratch / "straying.yaml"

    def run_straying(way, jobs):
        config.write_text(f"bundle: x\ntargets: [sm_80]\nkernels: [{{family: axpy}}, {{family: straying, way: {way}}}]\n")
        return subprocess.Popen([GENERATOR, "generate", config, "--jobs", str(jobs), "-o", scratch], env=environment, text=True,
                                stderr=subprocess.PIPE)

    for way, number, says in (("fault", signal.SIGSEGV, "crashed (SIGSEGV)"), ("overflow", signal.SIGSEGV, "crashed (SIGSEGV)"),
                              ("abort", signal.SIGABRT, "called abort")):
        for jobs in (1, 2):
            process = run_straying(way, jobs)
            output = process.communicate()[1]
            expect(process.returncode == -number, f"{way}: the signal is raised again, found {process.returncode}")
            expect(output == f"kiln: error: straying/way={way} for sm_80: its emit {says}\n", f"{way}: the message is: {output}")
    for number in (signal.SIGINT, signal.SIGTERM):
        process = run_straying("loop", 2)
        expect(process.stderr.readline() == "looping\n", "the emit loops")
        process.send_signal(number)
        output = process.communicate()[1]
        expect(process.returncode == -number, f"loop: the signal is raised again, found {process.returncode}")
        expect("kiln: interrupted: straying/way=loop for sm_80: its emit was running\n" in output, f"loop: the message is: {output}")


with tempfile.TemporaryDirectory() as scratch_folder:
    VERBS[sys.argv[3]](pathlib.Path(scratch_folder).resolve())
sys.exit(1 if failures else 0)
