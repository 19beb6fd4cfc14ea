#!/usr/bin/env python3
"""Checks the runtime's undefined symbols and its size.

usage: check_symbols.py SOURCE_DIR ARCHIVE

Reads the undefined symbols of every member of the archive, and of the runtime's sources compiled at -O3 and -Os; with
KILN_TESTS_FULL=1, by each compiler at each level of optimisation, since compilers turn loops into calls of their own (memmove among
them) at some levels only. At -Os on x86-64 the runtime has limits.
"""
import pathlib
import platform
import re
import sys
import tempfile

from compilers import IS_FULL, c_compilers, compile_runtime, run

ALLOWED_EVERYWHERE = {"memcpy", "memset", "memcmp", "strlen", "strcmp", "_GLOBAL_OFFSET_TABLE_"}
ALLOWED_IN = {"driver_dlopen": {"dlopen", "dlsym", "dlclose"}, "wait": {"sched_yield"}}
WITH_HASH = {"find_name", "verify"}
INSTRUMENTED = re.compile(r"__(asan|ubsan|tsan|msan|sanitizer|gcov|llvm)_")
MOST_BYTES, MOST_WITHOUT_HASH = 12 * 1024, 8 * 1024  # bytes of text and constants, at -Os on x86-64
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")


def symbols(path):
    """Returns member -> (defined, undefined) for an archive or an object."""
    members, member = {}, pathlib.Path(path).stem
    for line in run(["nm", "-g", path]).splitlines():
        if line.endswith(":"):
            member = line[:-1].split(".")[0]
        fields = line.split()
        if len(fields) >= 2 and len(fields[-2]) == 1:
            defined, undefined = members.setdefault(member, (set(), set()))
            (undefined if fields[-2] in "Uw" else defined).add(fields[-1])
    return members


def violations(members):
    own = set().union(*(defined for defined, _ in members.values()))
    for member, (_, undefined) in sorted(members.items()):
        for symbol in sorted(undefined - own - ALLOWED_EVERYWHERE - ALLOWED_IN.get(member, set())):
            yield f"{member} refers to {symbol}"


def text_bytes(objects):
    lines = run(["size", *objects]).splitlines()[1:]
    return {pathlib.Path(line.split()[-1]).stem: int(line.split()[0]) for line in lines}


def check_sizes(compiler, sizes):
    """Prints the symbols. Returns the mistakes."""
    total = sum(sizes.values())
    plain = total - sum(size for member, size in sizes.items() if member in WITH_HASH)
    print(f"{compiler} -Os: text {total} bytes, {plain} without find_name and verify:",
          ", ".join(f"{member} {size}" for member, size in sizes.items()))
    if platform.machine() == "x86_64" and (total > MOST_BYTES or plain > MOST_WITHOUT_HASH):
        yield f"{compiler} -Os: larger than {MOST_BYTES} bytes, or {MOST_WITHOUT_HASH} without find_name and verify"


def main():
    source_dir, archive = pathlib.Path(sys.argv[1]), sys.argv[2]
    failures = []
    members = symbols(archive)
    if any(INSTRUMENTED.match(symbol) for _, undefined in members.values() for symbol in undefined):
        print("the archive is instrumented: its symbols are not looked at")
    else:
        failures += [f"archive: {violation}" for violation in violations(members)]
    print(run(["size", "-t", archive]))
    for compiler in c_compilers():
        for level in LEVELS if IS_FULL else LEVELS[-2:]:
            with tempfile.TemporaryDirectory() as out:
                objects = compile_runtime(compiler, level, source_dir, pathlib.Path(out))
                members = {}
                for path in objects:
                    members.update(symbols(path))
                failures += [f"{compiler} {level}: {violation}" for violation in violations(members)]
                if level == "-Os":
                    failures += check_sizes(compiler, text_bytes(objects))
    print(*failures, sep="\n")
    return 1 if failures else 0


sys.exit(main())
