#!/usr/bin/env python3
"""Checks the house rules: top-level names, and which folder may include which.

usage: rules.py ROOT | rules.py --self-test
"""
import pathlib
import re
import sys
import tempfile

TOP_LEVEL = set("""CMakeLists.txt CMakePresets.json LICENSE README.md CHANGELOG.md .clang-format .clang-tidy .gitattributes
                   .gitignore .ci .git .github generator runtime include generated tests tools""".split())
TOP_LEVEL_IGNORED = re.compile(r"build(-.*)?$|\.cache$|compile_commands\.json$")

C_LIBRARY = set("""assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign
                   stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar
                   wchar wctype""".split())
FREESTANDING = set("stddef stdint stdbool stdarg string".split())

# room: (quoted and <kiln/...> includes it may have, as patterns on the path from the root; system headers it may have)
# The first row whose folder holds the file applies.
ANY = None
ROOMS = [
    ("include/kiln", [r"include/kiln/"], C_LIBRARY - {"stdio", "stdlib"}),
    ("runtime/zstd", [r"include/kiln/zstd\.h$"], FREESTANDING | {"zstd"}),
    ("runtime", [r"include/kiln/(kiln|bundle|driver)\.h$", r"runtime/"], FREESTANDING | {"dlfcn", "sched", "stdlib", "xxhash"}),
    ("generator/support", [r"generator/support/"], ANY),
    ("generator/target", [r"include/kiln/kiln\.h$", r"generator/(support|target)/"], ANY),
    ("generator/model", [r"generator/(support|model)/"], ANY),
    ("generator/ptx", [r"include/kiln/author/ptx\.h$", r"generator/(support|target|ptx)/"], C_LIBRARY),
    ("generator/device", [r"include/kiln/author/(ptx|tile)\.h$", r"generator/device/"], C_LIBRARY - {"stdio"}),
    ("generator/kernels", [r"include/kiln/author/(ptx|family|families)\.h$", r"generator/(device|kernels)/"], C_LIBRARY - {"stdio"}),
    ("generator/expression", [r"include/kiln/author/family\.h$", r"generator/(support|target|expression)/",
                              r"generator/family/(family|variant)\.h$"], ANY),
    ("generator/family", [r"include/kiln/author/family\.h$", r"generator/(support|target|expression|family)/",
                          r"generator/ptx/builder\.h$"], ANY),
    ("generator/external", [r"include/kiln/author/family\.h$", r"generator/(support|target|expression|family|external)/",
                            r"generator/ptx/builder\.h$"], ANY),
    ("generator/plan", [r"include/kiln/(author/family|driver)\.h$", r"generator/(support|target|expression|family|external|plan)/"], ANY),
    ("generator", [r"include/kiln/", r"generator/", r"project_texts\.h$"], ANY),  # the build makes it
    ("tools/emulator/support", [r"tools/emulator/support/"], ANY),
    ("tools/emulator/front", [r"tools/emulator/(support|front)/"], ANY),
    ("tools/emulator/core", [r"tools/emulator/(support|front|core)/"], ANY),
    ("tools/emulator/exec", [r"tools/emulator/(support|front|core|exec)/"], ANY),
    ("tools/emulator/decode", [r"tools/emulator/(support|front|core|exec|decode)/"], ANY),
    ("tools/emulator/check", [r"tools/emulator/(support|front|core|exec|check)/"], ANY),
    ("tools/emulator/count", [r"tools/emulator/(support|front|core|count)/"], ANY),
    ("tools/emulator/driver", [r"tools/emulator/"], ANY),
    ("tools/verify/families", [r"tools/verify/"], ANY),
    ("tools", [r"include/kiln/(kiln|bundle|driver|reference)\.h$", r"tools/(?!emulator/)"], ANY),
    ("generated", [r"include/kiln/(kiln|bundle|choose)\.h$", r"generated/"], FREESTANDING),
]
# A system header that only one file may include.
ALONE = {"dlfcn": "runtime/driver_dlopen.c", "sched": "runtime/wait.c", "xxhash": "runtime/hash.h",
         "stdlib": "runtime/hash.h"}
# A header of ours that only these files may include.
FEW = {"runtime/hash.h": ("runtime/find_name.c", "runtime/verify.c")}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def resolve(root, file, quote, name):
    """Returns an include's path from the root; None for a system header."""
    beside = (file.parent / name).resolve()
    if quote == '"' and beside.exists() and root in beside.parents:
        return beside.relative_to(root).as_posix()
    if name.startswith("kiln/"):
        return "include/" + name
    if quote == '"':
        for base in (root, root / file.relative_to(root).parts[0], root / "tools/verify"):
            if (base / name).exists():
                return (base / name).relative_to(root).as_posix()
        return name
    return None


def file_errors(root, file):
    place = file.relative_to(root).as_posix()
    room = next((r for r in ROOMS if place.startswith(r[0] + "/")), None)
    if room is None:
        return
    for match in INCLUDE.finditer(file.read_text(encoding="utf-8", errors="replace")):
        line = file.read_text(encoding="utf-8", errors="replace").count("\n", 0, match.start(1)) + 1
        target = resolve(root, file, match[1], match[2])
        if target is None:
            header = match[2].removesuffix(".h")
            if room[2] is not ANY and header not in room[2]:
                yield f"{place}:{line}: {room[0]}/ may not include <{match[2]}>"
            elif place.startswith("runtime/") and header in ALONE and place != ALONE[header]:
                yield f"{place}:{line}: only {ALONE[header]} may include <{match[2]}>"
        elif place not in FEW.get(target, (place,)):
            yield f"{place}:{line}: only {' and '.join(FEW[target])} may include {target}"
        elif not any(re.match(p, target) for p in room[1]):
            yield f"{place}:{line}: {room[0]}/ may not include {target}"


def errors(root):
    for entry in sorted(root.iterdir()):
        if entry.name not in TOP_LEVEL and not TOP_LEVEL_IGNORED.match(entry.name):
            yield f"{entry.name}: not one of the top-level names"
    for room in ("include", "runtime", "generator", "tools", "generated"):
        for file in sorted((root / room).rglob("*.[ch]")):
            yield from file_errors(root, file)


def self_test():
    """Finds each broken line below, and none of the good ones."""
    cases = [
        ("runtime/load.c", "#include <stdlib.h>", True), ("runtime/load.c", "#include <kiln/kiln.h>", False),
        ("runtime/load.c", "#include <sched.h>", True), ("runtime/wait.c", "#include <sched.h>", False),
        ("runtime/load.c", "#include <kiln/author/ptx.h>", True), ("tools/emulator/driver/a.c", '#include "../../../runtime/x.h"', True),
        ("tools/emulator/core/a.c", "#include <kiln/driver.h>", True), ("tools/emulator/core/a.c", "#include <pthread.h>", False),
        ("tools/emulator/core/a.c", '#include "../check/x.h"', True), ("tools/emulator/check/a.c", '#include "../core/x.h"', False),
        ("tools/emulator/exec/a.c", '#include "../count/x.h"', True), ("tools/emulator/driver/a.c", '#include "../check/x.h"', False),
        ("runtime/load.c", '#include "hash.h"', True), ("runtime/verify.c", '#include "hash.h"', False),
        ("generator/ptx/a.c", '#include "plan/plan.h"', True), ("generator/family/a.c", '#include "plan/plan.h"', True),
        ("generator/model/a.c", '#include "plan/plan.h"', True), ("generator/bundle/a.c", '#include "plan/plan.h"', False), ("generator/kernels/a.c", "#include <stdio.h>", True),
        ("generator/kernels/a.c", "#include <kiln/author/family.h>", False),
        ("generator/kernels/a.c", '#include "device/d.h"', False), ("generator/device/a.c", '#include "d.h"', False),
        ("generator/device/a.c", "#include <kiln/author/family.h>", True), ("generator/device/a.c", '#include "kernels/t.h"', True),
        ("generator/ptx/a.c", '#include "device/d.h"', True), ("generator/a.c", '#include "../runtime/x.h"', True),
        ("tools/verify/families/a.c", '#include "../../../generator/kernels/t.h"', True),
        ("generated/a.c", "#include <kiln/kiln.h>", False), ("include/kiln/a.h", "#include <cuda.h>", True),
        ("include/kiln/a.h", "#include <stdio.h>", True),
    ]
    failed = 0
    for place, line, broken in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for header in ("runtime/x.h", "runtime/hash.h", "generator/plan/plan.h", "generator/kernels/t.h", "generator/device/d.h",
                           "tools/emulator/core/x.h", "tools/emulator/check/x.h", "tools/emulator/count/x.h"):
                (root / header).parent.mkdir(parents=True, exist_ok=True)
                (root / header).write_text("")
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).write_text(line + "\n")
            if bool(list(file_errors(root, root / place))) != broken:
                print(f"{place}: {line}: expected {'an error' if broken else 'no error'}")
                failed += 1
    return failed


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    found = list(errors(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "every include and every top-level name is where it may be")
    sys.exit(1 if found else 0)


main()
