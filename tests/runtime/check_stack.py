#!/usr/bin/env python3
"""Compares the stack of the runtime and of generated functions, by the deepest chain of calls, with kiln.h.

usage: check_stack.py SOURCE_DIR

The compilers print each function's stack (-fstack-usage); the objects' relocations give the calls. The generated functions are
the default bundle's. The driver, the callbacks in kiln_options and the C library do not count.
"""
import collections
import pathlib
import re
import sys
import tempfile

from compilers import c_compilers, compile_runtime, run

LEVELS = ("-O2", "-Os")
BUNDLE = "kiln_default_"
CALL_BYTES = 16  # a return address, which some compilers do not count, and alignment
STATED = re.compile(r"Stack: at most (\d+) bytes, or (\d+) including")
SECTION = re.compile(r"RELOCATION RECORDS FOR \[\.text\.([\w.]+)\]")
TARGET = re.compile(r"^[0-9a-f]+ +R_\w+ +(\S+)$")


def plain(symbol):
    """Returns the source's function for a section or symbol, without the compiler's suffixes and the addend."""
    symbol = re.sub(r"^\.text\.", "", re.split(r"[+-]0x", symbol)[0])
    return re.sub(r"^(unlikely|hot|startup|exit)\.", "", symbol).split(".")[0]


def frames(path):
    """Returns function -> bytes for one object."""
    taken = {}
    for line in path.with_suffix(".su").read_text().splitlines():
        place, count, kind = line.split("\t")
        assert kind in ("static", "dynamic,bounded"), line
        name = plain(place.split(":")[-1])
        taken[name] = taken.get(name, 0) + int(count)  # a compiler may split a function
    return taken


def calls(path):
    """Returns function -> the symbols that it refers to, for one object."""
    made, caller = collections.defaultdict(set), None
    for line in run(["objdump", "-r", path]).splitlines():
        section, target = SECTION.match(line), TARGET.match(line)
        if line.startswith("RELOCATION"):
            caller = plain(section[1]) if section else None
        elif caller and target:
            made[caller].add(plain(target[1]))
    return made


def graph(objects):
    """Returns (object, function) -> (bytes, [called]). Searches a name in its own object first."""
    taken = {o: frames(o) for o in objects}
    public = {name: o for o in objects for name in taken[o]}
    nodes = {}
    for o in objects:
        made = calls(o)
        for name, count in taken[o].items():
            called = [(o if other in taken[o] else public[other], other) for other in made[name] if other in public]
            nodes[o, name] = (count, [c for c in called if c != (o, name)])
    return nodes


def add_picked(nodes):
    """Adds calls that relocations do not show: a family's functions run one of its kernels through kernel->run."""
    run_by = {node[1]: node for node in nodes if node[1].startswith("run_")}
    assert run_by
    for (_, name), (_, called) in nodes.items():
        is_kernel = name.replace(BUNDLE, "run_", 1) in run_by
        is_family = name.startswith(BUNDLE) and not name.endswith("_pick") and not is_kernel
        if is_family or name.startswith("call_"):
            called += run_by.values()


def deepest(nodes, node, known, above=()):
    """Returns the bytes and names of the deepest chain from this function."""
    if node in above:
        sys.exit(f"FAILED: {node[1]} calls itself, through {[name for _, name in above]}")
    if node not in known:
        count, called = nodes[node]
        below, names = max((deepest(nodes, c, known, (*above, node)) for c in called), default=(0, []))
        known[node] = count + CALL_BYTES + below, [node[1], *names]
    return known[node]


def report(what, nodes):
    known = {}
    used, names = max(deepest(nodes, node, known) for node in nodes)
    print(f"{what}: {used} bytes:", " > ".join(names))
    return used


def compile_generated(compiler, level, source_dir, out):
    done = [out / (source.stem + ".o") for source in sorted((source_dir / "generated").glob("*.c"))]
    for path in done:
        run([compiler, "-std=gnu11", level, "-w", "-ffunction-sections", "-fstack-usage", "-I", source_dir / "include",
             "-c", source_dir / "generated" / (path.stem + ".c"), "-o", path])
    return done


def main():
    source_dir = pathlib.Path(sys.argv[1])
    stated, stated_typed = map(int, STATED.search((source_dir / "include/kiln/kiln.h").read_text()).groups())
    failed = False
    for compiler in c_compilers():
        for level in LEVELS:
            with tempfile.TemporaryDirectory() as folder:
                out = pathlib.Path(folder)
                objects = compile_runtime(compiler, level, source_dir, out, "-fstack-usage")
                failed |= report(f"{compiler} {level}", graph(objects)) > stated
                nodes = graph([*objects, *compile_generated(compiler, level, source_dir, out)])
                add_picked(nodes)
                failed |= report(f"{compiler} {level}, typed", nodes) > stated_typed
    if failed:
        print(f"FAILED: kiln.h states at most {stated} bytes, {stated_typed} with typed functions")
    return failed


sys.exit(main())
