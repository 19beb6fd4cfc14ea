#!/usr/bin/env python3
"""Checks that each public header compiles alone, in C11 and C++17, and before and after <cuda.h>.

usage: check_headers.py alone SOURCE_DIR
       check_headers.py cuda SOURCE_DIR
       check_headers.py cxx SOURCE_DIR

"cuda" also compares the type of every row of the driver table with the declaration of its entry point in cuda.h, and the
runtime's numbers with cuda.h's. It is skipped without a toolkit.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from compilers import SKIPPED, c_compilers, cxx_compiler, run

HEADERS = ("kiln/as_int.h", "kiln/status.h", "kiln/driver.h", "kiln/bundle.h", "kiln/kiln.h", "kiln/estimate.h", "kiln/choose.h", "kiln/tuned.h",
           "kiln/trace.h", "kiln/tensor_map.h", "kiln/reference.h")
TABLES = (("kiln_driver", "include/kiln/driver.h"), ("driver_tools", "tools/tune/driver_tools.h"))
WARNINGS = ("-Wall", "-Wextra", "-pedantic", "-Wshadow", "-Wconversion", "-Werror")

COMPARE_HEAD = """
#include <cuda.h>
#include <type_traits>
#include <kiln/kiln.h>
#include "runtime/internal.h"
#include "tools/tune/driver_tools.h"
/* cuda.h's enumerations are int in the table. */
template <class T> struct plain { using type = std::conditional_t<std::is_enum_v<T>, int, T>; };
template <class T> struct plain<T *> { using type = std::conditional_t<std::is_enum_v<T>, int, T> *; };
template <class R, class... A> struct plain<R (*)(A...)> {
    using type = typename plain<R>::type (*)(typename plain<A>::type...);
};
#define SAME_PLACE(ours, my, theirs, member) \\
    static_assert(offsetof(ours, my) == offsetof(theirs, member), #member)
SAME_PLACE(launch_config, grid, CUlaunchConfig, gridDimX);
SAME_PLACE(launch_config, block, CUlaunchConfig, blockDimX);
SAME_PLACE(launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_PLACE(launch_config, stream, CUlaunchConfig, hStream);
SAME_PLACE(launch_config, attributes, CUlaunchConfig, attrs);
SAME_PLACE(launch_config, attribute_count, CUlaunchConfig, numAttrs);
SAME_PLACE(launch_attribute, id, CUlaunchAttribute, id);
SAME_PLACE(launch_attribute, value.is_allowed, CUlaunchAttribute, value.programmaticStreamSerializationAllowed);
static_assert(sizeof(launch_config) == sizeof(CUlaunchConfig) && sizeof(launch_attribute) == sizeof(CUlaunchAttribute));
#define SAME(table, member, function) \\
    static_assert(std::is_same_v<decltype(table::member), plain<decltype(&function)>::type>, #member)
"""

NUMBERS = {
    "DEVICE_CLOCK_RATE": "CU_DEVICE_ATTRIBUTE_CLOCK_RATE",
    "DEVICE_MEMORY_CLOCK_RATE": "CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE",
    "DEVICE_MEMORY_BUS_BITS": "CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH",
    "DEVICE_MULTIPROCESSOR_THREADS": "CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR",
    "DEVICE_MULTIPROCESSOR_SHARED_BYTES": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "DEVICE_MULTIPROCESSOR_COUNT": "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
    "DEVICE_COMPUTE_CAPABILITY_MAJOR": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
    "DEVICE_COMPUTE_CAPABILITY_MINOR": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
    "DEVICE_MAX_SHARED_BYTES_OPTIN": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "FUNCTION_MAX_DYNAMIC_SHARED_BYTES": "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
    "PROGRAMMATIC_STREAM_SERIALIZATION": "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION",
    "JIT_ERROR_LOG_BUFFER": "CU_JIT_ERROR_LOG_BUFFER",
    "JIT_ERROR_LOG_BUFFER_BYTES": "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES",
}


def compile_text(source_dir, text, languages=("c", "c++")):
    for c_compiler in c_compilers():
        for language in languages:
            compiler = c_compiler if language == "c" else cxx_compiler(c_compiler)
            if not compiler:
                continue
            with tempfile.TemporaryDirectory() as folder:
                source = pathlib.Path(folder) / ("header." + {"c": "c", "c++": "cc"}[language])
                source.write_text(text + "\nint header_compiles;\n")
                run([compiler, "-std=" + {"c": "c11", "c++": "c++17"}[language], *WARNINGS,
                     "-I", source_dir / "include", "-I", source_dir, "-isystem", "/usr/local/cuda/include",
                     "-fsyntax-only", source])


def include(*headers):
    return "".join(f"#include <{header}>\n" for header in headers)


def check_alone(source_dir):
    for header in HEADERS:
        compile_text(source_dir, include(header))
        compile_text(source_dir, include(header, header))
    compile_text(source_dir, include("tests/runtime/mini.h"))  # in the form of a generated header


def check_cxx(source_dir, emulator=None):
    """Builds hpp_test.cc without exceptions and run-time type information, and runs it on the scripted and the emulated driver."""
    runtime = source_dir / "tests/runtime"
    sources = [*sorted((source_dir / "runtime").glob("*.c")), runtime / "mini.c", runtime / "fake_driver.c"]
    with tempfile.TemporaryDirectory() as folder:
        objects = [pathlib.Path(folder) / f"{source.stem}.o" for source in sources]
        for source, made in zip(sources, objects):
            run([c_compilers()[0], "-std=gnu11", "-I", source_dir / "include", "-I", runtime, "-c", source, "-o", made])
        compilers = [c for c in map(cxx_compiler, c_compilers()) if c]
        for compiler in compilers:
            for standard in "c++17", "c++20":
                command = [compiler, f"-std={standard}", *WARNINGS, "-fno-exceptions", "-fno-rtti", "-I", source_dir / "include"]
                run([*command, runtime / "hpp_test.cc", *objects, "-ldl", "-o", f"{folder}/hpp"])
                run([f"{folder}/hpp", *filter(None, [emulator])])
                forgotten = "#include <kiln/kiln.hpp>\nkiln::status g();\nvoid f() { g(); }\n"
                said = subprocess.run([*command, "-xc++", "-fsyntax-only", "-"], input=forgotten, text=True, capture_output=True)
                assert said.returncode != 0 and "nodiscard" in said.stderr, said.stderr
    if not compilers:
        print("SKIPPED: there is no C++ compiler")
    return 0 if compilers else SKIPPED


def has_toolkit(source_dir):
    probe = ["-xc", "-fsyntax-only", "-isystem", "/usr/local/cuda/include", "-"]
    text = "#include <cuda.h>\nCUcontext context;\n"  # the kernel's headers hold another cuda.h
    return subprocess.run([c_compilers()[0], *probe], input=text, text=True, capture_output=True,
                          check=False).returncode == 0


def table_rows(source_dir):
    rows = [(table, *row) for table, header in TABLES
            for row in re.findall(r'X\((\w+),\s*"(\w+)"', (source_dir / header).read_text())]
    assert len(rows) == len(set(rows)) and len(rows) >= 30
    return rows


def check_cuda(source_dir):
    if not has_toolkit(source_dir):
        print("SKIPPED: no <cuda.h>: the table was not compared with it")
        return SKIPPED
    for header in HEADERS:
        compile_text(source_dir, include("cuda.h", header))
        compile_text(source_dir, include(header, "cuda.h"))
    rows = table_rows(source_dir)
    same = "".join(f"SAME({table}, {member}, {symbol});\n" for table, member, symbol in rows)
    same += "".join(f"static_assert((int){ours} == (int){theirs});\n" for ours, theirs in NUMBERS.items())
    compile_text(source_dir, COMPARE_HEAD + same, ("c++",))
    print(f"{len(rows)} rows have the types of cuda.h")
    return 0


def main():
    mode, source_dir = sys.argv[1], pathlib.Path(sys.argv[2])
    return {"alone": check_alone, "cuda": check_cuda, "cxx": check_cxx}[mode](source_dir, *sys.argv[3:])


sys.exit(main())
