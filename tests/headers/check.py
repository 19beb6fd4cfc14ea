#!/usr/bin/env python3
"""Compares generated headers with the facts.

usage: check.py KILN SOURCE_DIR RUNTIME EMULATOR VERB [--full]

Verbs are the functions registered below. `rebase` rewrites layout.txt; a person then reads the differences, because a moved
member breaks programs that were compiled before.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

KILN, SOURCE_DIR, RUNTIME, EMULATOR = (pathlib.Path(a).resolve() for a in sys.argv[1:5])
HERE = SOURCE_DIR / "tests/headers"
sys.path.insert(0, str(SOURCE_DIR / "tools/python"))
import kiln  # noqa: E402
SKIPPED = 77
LANGUAGES = {"c11": ("c", ("gcc", "clang")), "c++17": ("cc", ("g++", "clang++")), "c++20": ("cc", ("g++", "clang++"))}
# The standards in which the calls run, with environment variables: C++ runs only one thread block, since C computes the values.
# With --full all compilers compile the calls in all standards.
RUN = {"c11": [], "c++17": ["KILN_EMU_BLOCKS=0-0"]}
WARNINGS = ("-Wall", "-Wextra", "-Werror")
MOST_LINES = 60
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


def run(*command):
    done = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        print("FAILED:", *command, "\n", done.stdout)
        sys.exit(1)
    return done.stdout


def bundles():
    """Returns {name: lines of `kernels:`} of bundles.txt."""
    text = re.sub(r"^#.*\n", "", (HERE / "bundles.txt").read_text(), flags=re.M)
    return {name: items for name, items in re.findall(r"^(\w+):\n((?:  .*\n)+)", text, re.M)}


def generate(folder, name, items):
    """Returns the header's text and the manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(f"bundle: {name}\ntargets: [sm_80]\nkernels:\n{items}")
    run(KILN, "generate", folder / f"{name}.yaml", "--output", folder, "--quiet")
    return (folder / f"{name}.h").read_text(), json.loads((folder / f"{name}.json").read_text())


# ---- calls -----------------------------------------------------------------------------------------------------------

DECLARATION = re.compile(r"(/\*(?:(?!\*/).)*?\*/)\n(?:enum .*?\};\n)*(?:typedef struct (?:(?!typedef).)*?\} \w+;\n\s*)?"
                         r"(?:extern const kiln_kernel \w+;\n)?((?:kiln_status|void) (\w+)\([^)]*\);)", re.S)
VARIABLES = ("const kiln_kernel *kernel;\nkiln_candidate list[8];\nsize_t count;\nuint64_t bytes, counters;\n"
             "(void)kernel, (void)list, (void)count, (void)bytes, (void)counters;\n")


def comments(header):
    """Returns (comment, function, type of args) of each declaration with its own comment, in order."""
    for comment, prototype, function in DECLARATION.findall(header):
        yield re.sub(r"\s*\n \* ?", "\n", comment[2:-2]).strip(), function, re.search(r"(\w+_args) \*", prototype)[1]


def calls(header, language):
    """Returns (function, statements that fill its args, call) of each call."""
    mark = r"C: (.*?;)" if language == "c" else r"C\+\+: (.*?;)"
    made = {}
    for comment, function, args in comments(header):
        text = comment.replace("\n", " ")
        setup = re.search(r"C: (\w+ args = \{0\};) +C\+\+: (\w+ args = \{\};) Both: (.*?;)(?= C: )", text)
        if setup:
            made[args] = setup[1 if language == "c" else 2] + "\n" + setup[3].replace("; ", ";\n")
            text = text[setup.end():]
        call = re.search(mark, text)
        if call and f"{function}(" in call[0]:
            yield function, made[args], call[1]


def program(name, header, manifest, language):
    """Returns a C function that makes every call."""
    pointers = {arg["name"] for f in manifest["families"] for arg in [*f["args"], *(a for c in f.get("calls", []) for a in c["args"])]
                if arg["direction"] != "value"}
    text = f'#include <math.h>\n#include "{name}.h"\n#include "harness.h"\nconst kiln_bundle *const bundle = &{name}_bundle;\n' \
           "void make_calls(void)\n{\n"
    for function, made, call in calls(header, language):
        names = set(re.findall(r" = ([a-z]\w*);", made))
        text += "{\n" + VARIABLES
        text += "".join(f"CUdeviceptr {n} = memory();\n" if n in pointers else f"uint32_t {n} = 1u << 18;\n" for n in sorted(names))
        text += made + "\n"
        text += f"{call}\n" if function.endswith("_set_contiguous") else f'report("{function}", {call[:-1]});\n'
        text += "}\n"
    return text + "}\n"


@verb
def calls_(scratch):
    """Every function's comment has a call in C and one in C++, which compile without a warning and succeed."""
    made, harness = 0, scratch / "harness.o"
    run("cc", "-std=c11", *WARNINGS, f"-I{SOURCE_DIR}/include", "-c", HERE / "harness.c", "-o", harness)
    for name, items in bundles().items():
        folder = scratch / name
        header, manifest = generate(folder, name, items)
        include = (f"-I{SOURCE_DIR}/include", f"-I{folder}", f"-I{HERE}")
        declared = set(re.findall(r"^(?:kiln_status|void) (\w+)\(", header, re.M))
        others = {v["function"] for f in manifest["families"] for v in
                  [v for v in manifest["variants"] if v["family"] == f["name"]][1:]}  # called like the first function
        for language in "c", "c++":
            called = [function for function, _, _ in calls(header, language)]
            expect(set(called) == declared - others, f"{name}: {language}: {set(called) ^ (declared - others)}")
        run("cc", "-std=c11", *WARNINGS, "-Wconversion", *include, "-c", folder / f"{name}.c", "-o", folder / "bundle.o")
        for standard, (suffix, compilers) in LANGUAGES.items():
            source = folder / f"calls_{suffix}.{suffix}"
            source.write_text(program(name, header, manifest, "c" if suffix == "c" else "c++"))
            found = [c for c in compilers if shutil.which(c)]
            for i, compiler in enumerate(found if "--full" in sys.argv else found[:1] if standard in RUN else []):
                built = (compiler, f"-std={standard}", *WARNINGS, *include)
                if i > 0 or standard not in RUN:
                    run(*built, "-fsyntax-only", source)
                    continue
                run(*built, "-c", source, "-o", folder / "calls.o")
                run(compiler, folder / "calls.o", harness, folder / "bundle.o", RUNTIME, "-ldl", "-lm", "-lpthread",
                    "-o", folder / "calls")
                print(name, standard, compiler, run("env", *RUN[standard], folder / "calls", EMULATOR), end="")
                made += len(called)
    print(f"\n{made} calls made")


# ---- structs ---------------------------------------------------------------------------------------------------------

def layouts(manifest):
    """Returns a line per argument struct: its bytes, and each member's offset."""
    for family in manifest["families"]:
        of_params = {p["name"]: p["offset"] for p in family["params"] if "offset" in p}
        for name, function, params in [(family["name"], family, of_params),
                                       *((f"{family['name']}_{c['name']}", c, c["params"]) for c in family.get("calls", []))]:
            members = {arg.get("member", arg["name"]): arg["offset"] for arg in function["args"]} | params
            yield f"{name} {function['args_bytes']} " + " ".join(f"{m}={o}" for m, o in members.items())


def all_layouts(scratch):
    return sorted({line for name, items in bundles().items() for line in layouts(generate(scratch / name, name, items)[1])})


@verb
def layout(scratch):
    """A family's structs are equal in every bundle, and never change. NAME.c asserts the manifest's offsets."""
    found, wanted = all_layouts(scratch), (HERE / "layout.txt").read_text().splitlines()
    for line in sorted(set(wanted) - set(found)):
        print("-", line)
    for line in sorted(set(found) - set(wanted)):
        print("+", line)
    expect(found == wanted, "layout.txt has other structs")
    expect(len({line.split()[0] for line in found}) == len(found), "a family's struct differs between bundles")


def rebase(scratch):
    (HERE / "layout.txt").write_text("\n".join(all_layouts(scratch)) + "\n")


@verb
def lines(scratch):
    """In a bundle with one contract the struct is short, and each comment fits on its line."""
    header, _ = generate(scratch, "paged", bundles()["paged"])
    struct = re.search(r"^typedef struct paged_attention_args \{.*?^\} paged_attention_args;", header, re.S | re.M)[0].splitlines()
    section = header[header.index("/* attention:"):header.index("/* attention/")].splitlines()
    print(f"the struct has {len(struct)} lines, the section of its functions {len(section)}")
    expect(len(struct) <= MOST_LINES, f"the struct has {len(struct)} lines")
    expect([line for line in struct if line.strip().startswith("* ")] == [], f"a comment has more lines than one:\n" + "\n".join(struct))
    expect(all(len(line) <= 110 for line in section), "a line is too long")
    for text in ("bf16[sequences.q_rows, q_heads, 128]", "bf16[pages.count, pages.size, kv_heads, 128]"):
        expect(text in header, text)
    expect("select(" not in header and "softcap must" not in header, "a text says what another bundle has")


# ---- members that a bundle does not read -----------------------------------------------------------------------------

@verb
def unread(scratch):
    """A member that no variant reads must be 0, and the error names it. Workspace members are ignored."""
    for name in "paged", "dense", "linear":
        folder = scratch / name
        header, manifest = generate(folder, name, bundles()[name])
        include = (f"-I{SOURCE_DIR}/include", f"-I{folder}", f"-I{HERE}")
        family = manifest["families"][0]
        refused = [a.get("member", a["name"]) for a in family["args"] if a.get("unread")]
        ignored = [a.get("member", a["name"]) for a in family["args"] if a.get("ignored")]
        _, made, call = next(calls(header, "c"))
        pointers = sorted(set(re.findall(r" = ([a-z]\w*);", made)))
        text = f'#include <math.h>\n#include <string.h>\n#include "{name}.h"\n#include "harness.h"\n' \
               f"const kiln_bundle *const bundle = &{name}_bundle;\nvoid make_calls(void)\n{{\n"
        text += "".join(f"CUdeviceptr {n} = memory();\n" for n in pointers) + "kiln_error e;\n" + made + "\n"
        for member in refused:
            text += f"args.{member} = 1;\nif ({call[:-1]} != KILN_ERROR_BAD_ARGUMENT) report(\"{member}\", KILN_ERROR_CLOSED);\n" \
                    f"kiln_last_error(&loader, &e);\nif (strcmp(e.detail, \"{member} must be 0: this bundle does not read it\"))\n" \
                    f"    report(e.detail, KILN_ERROR_CLOSED);\nargs.{member} = 0;\n"
        for member in ignored:
            text += f"args.{member} = 1000;\nreport(\"{member}\", {call[:-1]});\n"
        (folder / "calls.c").write_text(text + "(void)e;\n}\n")
        run("cc", "-std=c11", *include, folder / "calls.c", HERE / "harness.c", folder / f"{name}.c", RUNTIME, "-ldl", "-lm",
            "-lpthread", "-o", folder / "calls")
        run(folder / "calls", EMULATOR)
        print(f"{name}: {len(refused)} members are refused, {len(ignored)} ignored")
        for arg in (a for a in family["args"] if "offset" in a):
            said = explain(folder, name, f"{family['name']} {arg['name']}=1")
            expect((f"{arg['name']} must be 0: this bundle does not read it" in said) == (arg.get("member", arg["name"]) in refused),
                   f"{name} {arg['name']}=1: {said}")
        expect(refused, f"{name} reads everything")
        expect(("splits" in ignored) == (name == "dense"), f"{name} ignores {ignored}")


def explain(folder, name, call):
    return subprocess.run([KILN, "explain", f"{folder}/{name}.yaml", *call.split(), "-t", "sm_80"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout


@verb
def explained(scratch):
    """explain refuses the calls that a launch refuses: it sets optional pointers to null, and fills in values that fit their types."""
    generate(scratch, "paged", bundles()["paged"])
    sizes = "attention q_heads=8 kv_heads=8 q_length=1 --contiguous"
    for call, wanted in (("batch=2 k_length=100 pages_entries=13 pages_stride=7", "pages.table must have entries"),
                         ("batch=2 k_length=100 pages_entries=13 pages_stride=7 pages_starts=4", "is launched"),
                         ("batch=2 k_length=100 pages_entries=14 pages_stride=7", "is launched"),
                         ("batch=65535 k_length=0x40000000", "pages_entries would be 4397979402240, more than a u32 holds")):
        said = explain(scratch, "paged", f"{sizes} {call}")
        expect(wanted in said, f"{call}: {said}")


# ---- strides ---------------------------------------------------------------------------------------------------------

@verb
def contiguous(scratch):
    """With the strides of `dense`, an array's elements are the product of its dimensions, for any sizes."""
    seen = 0
    for name, items in bundles().items():
        manifest = generate(scratch / name, name, items)[1]
        for family in manifest["families"]:
            for variant in [v for v in manifest["variants"] if v["family"] == family["name"]]:
                for seed in range(1, 4):
                    seen += check_dense(family, variant, seed)
    print(f"{seen} arrays")
    expect(seen > 100, "few arrays")


@verb
def strides(scratch):
    """NAME_FAMILY_set_contiguous sets the manifest's strides, for every contract of the bundle."""
    seen = 0
    for name in "layouts", "dense", "caches", "products":
        folder = scratch / name
        _, manifest = generate(folder, name, bundles()[name])
        for family in (f for f in manifest["families"] if "dense" in f):
            seen += check_strides(folder, name, manifest, family)
    print(f"{seen} strides")
    expect(seen > 100, "few strides")


def check_strides(folder, name, manifest, family):
    members = {arg["name"]: arg.get("member", arg["name"]) for arg in family["args"]}
    contract = [p for p in family["params"] if "offset" in p]
    text, wanted = "", []
    for variant in [v for v in manifest["variants"] if v["family"] == family["name"]]:
        values = values_of(family, variant, len(wanted))
        text += f"{{ {family['function']}_args args = {{0}};\n"
        for arg in family["args"]:
            if arg["c_type"] in ("uint32_t", "uint64_t") and not arg.get("unread"):
                text += f"args.{members[arg['name']]} = {values[arg['name']]};\n"
        for param in contract:
            value = variant["params"][param["name"]]
            number = param["numbers"][param["words"].split().index(value)] if param["type"] == "word" else int(value)
            text += f"args.{param['name']} = {number};\n"
        text += f"{family['function']}_set_contiguous(&args);\n"
        strides = {arg: kiln._evaluate(value, values) for row in family["dense"]
                   if kiln._evaluate(row.get("when", "1"), values) for arg, value in row["strides"].items()}
        for arg in family["args"]:
            read = arg["name"] in strides and not arg.get("unread") and kiln._evaluate(arg.get("when", "1"), values)
            if read:
                wanted.append(f"{variant['id']} {arg['name']} {strides[arg['name']]}")
                text += f'printf("{variant["id"]} {arg["name"]} %llu\\n", (unsigned long long)args.{members[arg["name"]]});\n'
        text += "}\n"
    (folder / "strides.c").write_text(f'#include <stdio.h>\n#include "{name}.h"\nint main(void)\n{{\n{text}return 0;\n}}\n')
    run("cc", "-std=c11", f"-I{SOURCE_DIR}/include", f"-I{folder}", folder / "strides.c", folder / f"{name}.c", RUNTIME, "-ldl",
        "-lpthread", "-o", folder / "strides")
    found = run(folder / "strides").splitlines()
    expect(found == wanted, f"{name}: " + ", ".join(f"{f} for {w}" for f, w in zip(found, wanted) if f != w)[:500])
    return len(found)


def values_of(family, variant, seed):
    """Sizes are small primes, so that products differ."""
    sizes = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
    values = kiln._Values({n: kiln._plain(str(v).lower() if isinstance(v, bool) else v) for n, v in variant["params"].items()})
    values.update({n: kiln._plain(int(v)) for n, v in variant["params"].items() if isinstance(v, bool)})
    for i, arg in enumerate(family["args"]):
        values[arg["name"]] = sizes[(i + seed) % len(sizes)] if arg["direction"] == "value" else 0
    return values


def check_dense(family, variant, seed):
    values = values_of(family, variant, seed)
    rows = [row for row in family.get("dense", []) if kiln._evaluate(row.get("when", "1"), values)]
    for row in rows:
        values.update({arg: kiln._evaluate(value, values) for arg, value in row["strides"].items()})
    seen = 0
    for row in rows:
        for arg in family["args"]:
            if arg["name"] not in row["args"].split() or not kiln._evaluate(arg.get("when", "1"), values):
                continue
            extents = [kiln._evaluate(e, values) for e in row["shape"]]
            span = 1
            for extent in arg["shape"]:
                span *= kiln._evaluate(extent, values)
            count = 1
            for extent in extents:
                count *= extent
            is_shared = "max(" in " ".join(row["shape"]) or "k_rows" in " ".join(row["shape"])  # K and V differ, or the call has offsets
            expect(count == span or is_shared, f"{variant['id']}: {arg['name']}: {count} elements, the shape has {span}")
            seen += 1
    return seen


VERBS["calls"] = VERBS.pop("calls_")
with tempfile.TemporaryDirectory() as room:
    {**VERBS, "rebase": rebase}[sys.argv[5]](pathlib.Path(room))
sys.exit(failures != 0)
