#!/usr/bin/env python3
"""Tests projects that find an installed kiln. Each is built in its own folder.

usage: installed.py CMAKE BUILD_DIR PREFIX VERB

The verb `install` installs BUILD_DIR's kiln and moves it to PREFIX. Each other verb is a project.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import time

from common import HERE, INIT_RESULT, RESULT, expect, main, need, run, skip

CMAKE, BUILD_DIR, PREFIX = sys.argv[1], *(pathlib.Path(a).resolve() for a in sys.argv[2:4])
SOURCE_DIR = HERE.parent.parent
GENERATOR = PREFIX / "bin/kiln"
MINIMAL = ("app.c", "kernels.yaml")


def driver():
    return next(PREFIX.rglob("libcuda.so.1"))


def install(scratch):
    """Installs kiln into one folder and moves it to another: no installed file contains its own path."""
    shutil.rmtree(PREFIX, ignore_errors=True)
    run(CMAKE, "--install", BUILD_DIR, "--prefix", scratch / "prefix")
    shutil.move(scratch / "prefix", PREFIX)
    texts = [f for f in PREFIX.rglob("*") if f.suffix in (".cmake", ".pc", ".h")]
    expect(len(texts) > 10, f"what is installed: {texts}")
    for text in texts:
        for folder in (scratch, SOURCE_DIR, BUILD_DIR):
            expect(str(folder) not in text.read_text(), f"{text} names {folder}")
    expect(run(GENERATOR, "--help").splitlines()[-1] == f"emulated driver: {driver()}", "kiln --help has the emulated driver's path")
    config = HERE / "minimal/kernels.yaml"
    variant = run(GENERATOR, "list", config).split()[1]
    output = run(PREFIX / "bin/kiln-profile", config, "--variant", variant, "--target", "sm_90", "--args", "n=4096")
    expect("thread instructions" in output, f"kiln-profile finds the generator and the emulated driver: {output}")
    run(GENERATOR, "generate", config, "--output", scratch)
    output = run(PREFIX / "bin/kiln-report", next(scratch.glob("*.json")), "-o", "-")
    expect(f"<code>{variant.replace('/', '/<wbr>').replace(',', ',<wbr>')}</code>" in output, "kiln-report shows the bundle")


def components(scratch):
    """Each installed component is found. A missing one is an error that says what to do, unless it is optional."""
    prefix, folder = scratch / "prefix", scratch / "app"
    shutil.copytree(PREFIX, prefix)
    folder.mkdir()
    package = next(prefix.rglob("kilnConfig.cmake")).parent

    def found(words, error="", languages="C"):
        (folder / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.22)\nproject(app LANGUAGES {languages})\n"
                                               f"find_package(kiln 0.3 REQUIRED {words})\n"
                                               "message(STATUS \"tools are here: ${kiln_tools_FOUND}\")\n")
        output = configure(folder, f"-DCMAKE_PREFIX_PATH={prefix}", fails=bool(error))
        expect(error in " ".join(output.split()), f"find_package(kiln {words}) of {languages}:\n{output}")
        return output
    found("")
    found("", languages="CXX")
    expect("tools are here: TRUE" in found("COMPONENTS runtime generator tools"), "tools are found")
    found("COMPONENTS tools tuning", "component tuning: there is no such component; there are runtime, generator, tools and zstd")
    (package / "kilnToolsTargets.cmake").unlink()
    found("COMPONENTS generator")
    expect("tools are here: FALSE" in found("OPTIONAL_COMPONENTS tools tuning"), "optional tools are not found")
    tools = "component tools: install the package kiln-tools, or configure kiln with -DKILN_TOOLS=ON and install it again"
    found("COMPONENTS runtime tools", tools)
    (package / "kilnGeneratorTargets.cmake").unlink()
    (package / "kilnZstdTargets.cmake").unlink(missing_ok=True)
    found("COMPONENTS runtime")
    found("COMPONENTS generator tools zstd", "component generator: install the package kiln, or configure kiln with -DKILN_GENERATOR=ON "
          f"and install it again {tools} component zstd: kiln was built without libzstd.a: install libzstd-dev")
    shutil.rmtree(folder / "build")
    next(prefix.rglob("libkiln_runtime.a")).write_bytes(b"!<arch>\n")
    output = found("COMPONENTS runtime", f"do not link with the kiln in {package}, whose runtime is for ")
    expect("undefined reference to `kiln_version'" in output, f"what the linker said: {output}")


def project(scratch, name, *of_minimal):
    """Copies a project, and adds ../app.h and the files of ../minimal that it lacks."""
    folder = scratch / "a project" / name
    shutil.copytree(HERE / name, folder)
    shutil.copy(HERE / "app.h", folder)
    for file in of_minimal:
        shutil.copy(HERE / "minimal" / file, folder)
    return folder


def configure(folder, *options, generator="Ninja", **keywords):
    return run(CMAKE, "-S", folder, "-B", folder / "build", "-G", generator, f"-DCMAKE_PREFIX_PATH={PREFIX}", *options,
               **keywords)


def build(folder, target="all", **keywords):
    return run(CMAKE, "--build", folder / "build", "--target", target, **keywords)


def runs(folder, expected=RESULT):
    output = run(folder / "build/app", driver())
    expect(output == expected, f"the program says: {output}")


def explains(folder, *arguments):
    """The program explains why it cannot run: without a driver, and with the CUDA toolkit's stub library."""
    symbols = re.findall(r'X\(\w+, "(\w+)"', (PREFIX / "include/kiln/driver.h").read_text())
    source, stub = folder / "stub.c", folder / "libstub.so"
    source.write_text("".join(f"int {symbol}(void) {{ return 34; }}\n" for symbol in symbols))
    run("cc", "-shared", "-fPIC", "-w", "-fno-builtin", source, "-o", stub)
    for library, why in (("/nowhere/libcuda.so.1", "driver library not found: /nowhere/libcuda.so.1"),
                         (stub, "driver call failed: cuInit: the CUDA toolkit's stub library (34)")):
        done = subprocess.run([folder / "build/app", *arguments, library], capture_output=True, text=True, check=False)
        expect(done.stdout.startswith(why), f"with {library} the program says: {done}")


def guide(folder):
    """Returns the page's code blocks by language, in order. Each block must be part of one of the project's files."""
    blocks = {}
    for language, code in re.findall(r"^```(\w+)\n(.*?)^```", (folder / "README.md").read_text(), re.M | re.S):
        blocks.setdefault(language, []).append(code)
    sources = [f.read_text() for f in folder.iterdir() if f.is_file() and f.suffix != ".md"]
    for code in sum((blocks.get(language, []) for language in ("yaml", "cmake", "c", "cpp", "cuda")), []):
        expect(any(code in source for source in sources), f"the guide has what no file has:\n{code}")
    return blocks


def shell(folder, commands, fails=False, **environment):
    return run("bash", "-ec", commands, fails=fails, cwd=folder, env={**os.environ, **environment})


# ---- what ninja did -------------------------------------------------------------------------------------------------


def log(folder):
    """Returns the log's lines: start, end, time of the output, output, command. CMake makes ninja rewrite them in another order."""
    return set((folder / "build/.ninja_log").read_text().splitlines()[1:])


def objects_built(folder, before):
    """Returns the names of the objects compiled since then, from ninja's log."""
    outputs = {line.split("\t")[3] for line in log(folder) - before}
    return sorted(pathlib.Path(o).name.removesuffix(".o") for o in outputs if o.endswith(".o"))


RAN = "my generator ran"


def write_generator(folder):
    """A custom generator: kiln with one more input, which its depfile names."""
    depfile = str(folder / "build/minimal.d").replace(" ", "\\ ")
    extra = str(folder / "extra.txt").replace(" ", "\\\\ ")
    generator = folder / "my generator"
    generator.write_text(f"""#!/bin/sh
echo "{RAN}"
"{GENERATOR}" "$@" || exit
sed -i '$s|$| {extra}|' {depfile}
""")
    generator.chmod(0o755)
    (folder / "extra.txt").touch()
    return generator


def find_package(scratch):
    """TARGETS, SHARDS, GENERATOR and VERIFY, and what is rebuilt after each change."""
    folder = project(scratch, "find_package", "app.c")
    config = folder / "kernels.yaml"
    generator = write_generator(folder)
    configure(folder, f"-DGENERATOR={generator}")
    expect(RAN in build(folder), "GENERATOR is the program that runs")
    runs(folder)
    explains(folder)
    manifest = json.loads((folder / "build/minimal.json").read_text())
    expect(manifest["targets"] == ["sm_80", "sm_90a"], "TARGETS take the place of the configuration's")
    output = run(folder / "build/minimal_verify", "--driver", driver(), "--max-elements", "4096")
    expect("\n2 variants: 2 right, 0 executed" in output, f"VERIFY: {output}")

    before = log(folder)
    config.touch()
    expect(RAN in build(folder), "a touched configuration runs the generator")
    expect(objects_built(folder, before) == [], "a touched configuration recompiles nothing")
    before = log(folder)
    expect(RAN not in build(folder), "the generator ran again for nothing")
    expect(log(folder) == before, "a build after that does nothing")
    (folder / "extra.txt").touch()
    expect(RAN in build(folder), "what the depfile names runs the generator")

    config.write_text(config.read_text().replace("group: 64", "group: [64, 32]"))
    before = log(folder)
    build(folder)
    built = objects_built(folder, before)
    expect(built == ["app.c", "minimal.c", "minimal_2.c", "minimal_verify_main.c"],
           f"a change of the second family recompiles its shard, the index and who includes minimal.h: {built}")

    before = log(folder)
    generator.write_text('#!/bin/sh\necho "no kernels today" >&2\nexit 3\n')
    output = build(folder, fails=True)
    expect("no kernels today" in output, f"a failing generator's message: {output}")
    expect(objects_built(folder, before) == [], "a failing generator stops the build")


# ---- other ways in --------------------------------------------------------------------------------------------------


def init(scratch):
    """Projects that `kiln init` writes build with the commands that it prints, and verify their bundle: in C, in C++ only, for a model."""
    sys.path.insert(0, str(SOURCE_DIR / "tests/init"))
    import models
    model = models.make(scratch, "qwen2")[0]
    for name, *options in (("in C",), ("in C++", "--cxx"), ("of a model", "--model", model)):
        folder = scratch / name
        output = run(GENERATOR, "init", folder, "--targets", "sm_80", *options)
        commands = re.findall(r"^  (cmake .*)$", output, re.M)
        expect(len(commands) == 3 and f"-DCMAKE_PREFIX_PATH='{PREFIX}'" in commands[0].replace("'-DCMAKE_PREFIX_PATH=", "-DCMAKE_PREFIX_PATH='"),
               f"three commands, the first with this prefix: {output}")
        for command in commands:
            output = run("bash", "-c", command, env=os.environ | {"CMAKE_GENERATOR": "Ninja"})
        expect((INIT_RESULT if "--model" not in options else "\n15 calls, 0 wrong\n") in output and
               re.search(r"\n(\d+) variants: \1 right, 0 executed", output), f"{name}: runs and verifies: {output}")


def makefiles(scratch):
    """With make, too, the depfile and options work, and a second build does nothing."""
    need("make")
    folder = project(scratch, "find_package", "app.c")
    config = folder / "kernels.yaml"
    configure(folder, f"-DGENERATOR={write_generator(folder)}", generator="Unix Makefiles")
    for change, expected in ((lambda: None, True), (lambda: None, False), (config.touch, True), (lambda: None, False),
                             ((folder / "extra.txt").touch, True), (lambda: None, False)):
        time.sleep(0.02)  # file times have a coarse resolution
        change()
        output = build(folder, "app")
        expect((RAN in output) == expected, f"{change}: the generator {'did not run' if expected else 'ran'}:\n{output}")
    expect("minimal_2.c.o" not in output, "nothing is compiled again")
    lists = folder / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("sm_90a", "sm_90"))
    output = build(folder, "app")
    expect(RAN in output, "another option runs the generator")
    expect(json.loads((folder / "build/minimal.json").read_text())["targets"] == ["sm_80", "sm_90"], "TARGETS changed")
    runs(folder)


def pkg_config(scratch):
    need("make", "pkg-config")
    folder = project(scratch, "pkg_config", *MINIMAL)
    environment = {**os.environ, "PKG_CONFIG_PATH": str(next(PREFIX.rglob("kiln.pc")).parent)}
    run("make", "-C", folder, env=environment)
    expect(run(folder / "app", driver()) == RESULT, "the program runs")
    expect("up to date" in run("make", "-C", folder, env=environment), "make has nothing to do then")
    path = run("pkg-config", "--variable=emulator", "kiln", env=environment).strip()
    expect(pathlib.Path(path.replace("\\ ", " ")).resolve() == driver(), f"the emulated driver's path: {path}")


def language_model(scratch):
    """The language model builds on its own. ../lm tests its output."""
    folder = project(scratch, "language_model")
    for name in ("gguf.c", "gguf.h"):
        shutil.copy(HERE.parents[1] / "generator/model" / name, folder)
    configure(folder)
    build(folder)
    output = run(folder / "build/kiln-lm", "no such.gguf", "--prompt", "Hello", fails=True)
    expect("kiln-lm: no such.gguf: " in output, f"the program says: {output}")


def cxx(scratch):
    folder = project(scratch, "cxx", "kernels.yaml")
    configure(folder)
    build(folder)
    runs(folder, "success, scale 3\ndriver library not found: /nowhere/libcuda.so.1\n")
    explains(folder)


def reexport(scratch):
    """The user's package is installed, moved, and used by a project without a generator."""
    library, app = project(scratch, "reexport/library", "kernels.yaml"), project(scratch, "reexport/app", "app.c")
    configure(library)
    build(library)
    run(CMAKE, "--install", library / "build", "--prefix", scratch / "prefix")
    (scratch / "prefix").rename(scratch / "moved")
    configure(app, f"-DCMAKE_PREFIX_PATH={PREFIX};{scratch}/moved")
    build(app)
    runs(app)


OWN_MISTAKES = (
    ("saxpy.c", "ptx_fma(f, a, xi, yi)", "ptx_fma(f, n, xi, yi)", "saxpy.c:"),
    ("saxpy.c", "ptx_val at = ", "ptx_val none = {0}; ptx_mul(f, n, none); ptx_val at = ", "mul: operand 2 was never given a value"),
    ("saxpy.c", '"2 * n *', '"2 * m *', "kiln: error: family saxpy: expression \"2 * m * select(type == f64, 8, 4)\": 'm' is no parameter"),
    ("saxpy.c", 's->block[0] = 256', 's->block[0] = 2048', "kiln: error: saxpy/type=f32: 2048 threads along x"),
    ("halve.c", '{"x", "4 * vector"}', '{"x", "3 * vector"}',
     'kiln: error: halve/vector=1: argument x: the alignment "3 * vector" is 3, no power of two up to 256'),
    ("halve.c", '{"x", "4 * vector"}', '{"x", "512"}',
     'kiln: error: halve/vector=1: argument x: the alignment "512" is 512, no power of two up to 256'),
    ("halve.c", '{"x", "4 * vector"}', '{"x", "4 * n"}',
     'kiln: error: family halve: expression "4 * n" cannot use arguments in its place'),
    ("product.c", "WARP_TILE / 8)", "WARP_TILE)", "error: tile_sums_open: row_tiles * column_tiles must be 1 to 32, and column_tiles even"),
    ("product.c", "DEPTH = 32", "DEPTH = 24", "error: tile_pipeline_open: a stage must have 16, 32 or 64 elements"),
    ("product.c", "THREADS = 128", "THREADS = 120", "error: tile_pipeline_open: a thread block must be whole warps"),
    ("product.c", "tile_columns(&p, w_tile", "tile_rows(&p, w_tile", "error: tile_multiply: the first operand must be of tile_rows"),
    ("product.c", "    tile_pipeline_start(&p);", "", "error: tile_pipeline_next: the pipeline has not started"),
    ("product.c", "&in, row, TILE", "&in, row, WARP_TILE / 2", "error: tile_multiply: the sums have more rows or columns"),
    ("product.c", 'ptx_param_ptr(f, type, "y")', 'ptx_param_ptr(f, PTX_F32, "y")', "error: tile_store: y must be of f16 or bf16"),
)


def same_code(a, b):
    """Returns the text without comments and layout."""
    return "".join(re.sub(r"/\*.*?\*/", "", a, flags=re.S).split()) == "".join(re.sub(r"/\*.*?\*/", "", b, flags=re.S).split())


def tune_own_family(folder):
    """kiln-tune measures the family with several variants, and its file changes the dispatch."""
    (folder / "shapes.yaml").write_text("- {family: halve, shape: {n: [96, 3000]}}\n")
    expect(run(folder / "build/mine_tune", "--template").endswith("- family: halve\n  shape: {n: 1}\n- family: product\n  shape: {m: 1, n: 1, k: 1}\n"
                                                                  "# nf4_quantize: no variants to choose from\n"), "a template")
    output = run(folder / "build/mine_tune", folder / "shapes.yaml", "-o", folder / "measured.yaml", "--driver", driver(), "--repeat", "1")
    expect("\n6 measured, 0 measured before, 0 ruled out by rules or the device, 0 failed" in output, f"what was measured: {output}")
    kernels = (folder / "kernels.yaml").read_text()
    (folder / "kernels.yaml").write_text(kernels + "tuned: [measured.yaml]\n")
    build(folder)
    manifest = json.loads((folder / "build/mine.json").read_text())
    expect([file["file"] for file in manifest["tuned"]] == ["measured.yaml"], f"the manifest names the file: {manifest['tuned']}")
    output = run(folder / "build/mykiln", "explain", folder / "kernels.yaml", "halve", "-t", "sm_90", "n=100", "--long")
    expect("measured nanoseconds at n=96 (measured.yaml); the first is launched" in output and output.count(" halve/vector=") == 3,
           f"what explain says: {output}")
    runs(folder, "mine: success, 1 3 1999\n")
    (folder / "kernels.yaml").write_text(kernels)


def count_product(folder):
    """The tiled product does no redundant work and has no bank conflicts."""
    m, n, k, tile = 256, 256, 512, 64
    for variant in "product/type=f16,stages=2", "product/type=bf16,stages=4":
        counts = json.loads(run(PREFIX / "bin/kiln-profile", folder / "build/mine.json", "--variant", variant, "--target", "sm_90",
                                "--args", f"m={m},n={n},k={k}", "--json"))
        expect(counts["instructions"]["multiply_adds"] == m * n * k, f"{variant}: {counts['instructions']}")
        for way in "read", "write":
            expect(counts["shared"][way]["wavefronts_over_ideal"] == 1, f"{variant}: {counts['shared'][way]}")
        sectors = {a["name"]: a["read"]["sectors"] + a["write"]["sectors"] for a in counts["allocations"]}
        wanted = {"x": m * k * (n // tile), "w": n * k * (m // tile), "y": m * n}
        expect(all(sectors[name] == elements * 2 // 32 for name, elements in wanted.items()), f"{variant}: {sectors}")


def own_family(scratch):
    """A generator with one more family: its own reference verifies it, and mistakes are reported."""
    folder = project(scratch, "own_family")
    configure(folder)
    build(folder)
    runs(folder, "mine: success, 1 3 1999\n")
    explains(folder)
    output = run(folder / "build/mykiln", "families")
    expect("saxpy" in output and "nf4_gemm" in output, f"mykiln has its own families and kiln's: {output}")
    verify = (folder / "build/mine_verify", "--driver", driver(), "--max-elements", "4096")
    output = run(*verify)
    expect("\n10 variants: 10 right, 0 executed" in output, f"verification: {output}")
    shown = re.findall(r"^```c\n(.*?)^```", (SOURCE_DIR / "include/kiln/README.md").read_text(), re.M | re.S)
    for file in "saxpy.c", "saxpy_reference.c", "product.c":
        expect(any(same_code(code, (folder / file).read_text()) for code in shown), f"include/kiln/README.md has {file}")
    source = folder / "saxpy.c"
    header = (folder / "build/mine.h").read_text()
    said = " ".join(header.replace("*", " ").split())
    expect("Pointers are device addresses, aligned to an element's size or as a comment states" in said, f"alignment: {header}")
    expect("aligned to 4 * vector bytes, 4 to 16: what" in header, f"alignment by variant: {header}")
    output = run(folder / "build/mykiln", "families", "halve")
    expect(re.search(r"^ *x +in +4 \* vector +f32\[n\]", output, re.M), f"alignment by variant: {output}")
    output = json.loads(run(folder / "build/mykiln", "families", "halve", "--json"))
    expect([a.get("variant_alignment") for a in output[0]["args"]] == ["4 * vector", "4 * vector", None], output)
    manifest = json.loads((folder / "build/mine.json").read_text())
    expect([v["args"][0]["alignment"] for v in manifest["variants"] if v["family"] == "halve"] == [4, 8, 16], manifest)
    count_product(folder)
    tune_own_family(folder)
    text = source.read_text()
    source.write_text(text.replace("ptx_fma(f, a, xi, yi)", "ptx_fma(f, xi, a, xi)"))
    build(folder)
    output = run(*verify, fails=True)
    expect("2 wrong" in output and "elements are wrong; the first:\n      y[0] is " in output,
           f"a wrong kernel is found by its own reference: {output}")
    source.write_text(text)

    halve = folder / "halve.c"
    right = halve.read_text()
    halve.write_text(right.replace('{"x", "4 * vector"}', '{"x", "4"}'))
    build(folder)
    output = run(*verify, fails=True)
    expect("2 wrong" in output and "pointers of the least alignment, seed 1:\n      the kernel failed: CUDA_ERROR_MISALIGNED"
           in output, f"a variant that wants more than its family says: {output}")
    halve.write_text(right)

    lists = folder / "CMakeLists.txt"
    said = lists.read_text()
    lists.write_text(said.replace("saxpy_reference.c ", ""))
    build(folder)
    output = run(*verify, fails=True)
    expect("10 variants: 8 right, 2 executed" in output and "not compared:\n  saxpy, which is not listed" in output,
           f"without a reference: {output}")
    lists.write_text(said.replace("product_reference.c", "product_reference.c UNCOMPARED saxpy"))
    build(folder)
    place = f"saxpy_reference.c:{(folder / 'saxpy_reference.c').read_text().partition('KILN_REFERENCE')[0].count(chr(10)) + 1}"
    output = run(*verify, fails=True)
    expect("UNCOMPARED saxpy: it is compared, with the reference at " in output and place in output, f"both: {output}")
    lists.write_text(said)
    for file, right, wrong, told in OWN_MISTAKES:
        source = folder / file
        text = source.read_text()
        expect(right in text, f"{file} has '{right}'")
        source.write_text(text.replace(right, wrong))
        said = build(folder, fails=True)
        expect(told in said and "internal error" not in said, f"the mistake '{wrong}' is reported as its author's: {said}")
        source.write_text(text)


EXTERNAL_RESULT = """saxpy: success
nothing: success
no y: a required pointer is null: y is null
bounded_sums: success
block: bad argument: block_x * block_y * block_z must be at most 128, the kernel's .maxntid
shared: bad argument: more dynamic shared memory than the kernel declares
grid: bad argument: grid_x must be at least 1
transpose: success
no columns: success
no matrices: a required pointer is null: out is null
fewer: bad argument: rows must be at least 0
transpose_rows/threads=32: success
transpose_rows/threads=64: success
a variant's own: bad argument: columns <= 32 must hold, with threads=32
candidates: success
  transpose_rows/threads=64: columns > 32 && columns <= 4096 must hold
  transpose_rows/threads=32: columns <= 32 must hold
none: bad argument: columns > 32 && columns <= 4096 must hold, with threads=64
softmax: success
columns: bad argument: columns <= 512 must hold
right
"""


def external_ptx(scratch):
    """PTX from nvcc, clang and Triton is launched, verified and rebuilt when a file changes. Mistakes are reported."""
    folder = project(scratch, "external_ptx")
    configure(folder)
    build(folder)
    runs(folder, EXTERNAL_RESULT)
    explains(folder)
    environment = {**os.environ, "KILN_EMU_CHECK": "all"}
    output = run(folder / "build/external_verify", "--driver", driver(), "--max-elements", "4096", env=environment)
    expect("9 variants: 6 right, 1 executed but not compared, 2 skipped, 0 wrong" in output, f"verification: {output}")
    expect(output.endswith("not compared:\n  fill_f32\n"), f"the list: {output}")
    expect("says no more of its args than their names" in output and "gives no args" in output, f"why: {output}")
    output = run(PREFIX / "bin/kiln-profile", folder / "build", "--variant", "saxpy", "--target", "sm_90", "--args",
                 "n=1000,a=1")
    expect("thread instructions" in output, f"kiln-profile: {output}")

    config = folder / "kernels.yaml"
    said = config.read_text()
    config.write_text(said.replace("        when: columns <= 32\n", ""))
    build(folder)
    output = run(folder / "build/external_verify", "--driver", driver(), "--filter", "transpose_rows", fails=True)
    expect("2 variants: 1 right" in output and "1 wrong" in output, f"a variant without its condition: {output}")
    config.write_text(said)
    build(folder)

    ptx = folder / "ptx/nvcc.ptx"
    text = ptx.read_text()
    before = log(folder)
    ptx.touch()
    build(folder)
    expect(objects_built(folder, before) == [], "a touched PTX file recompiles nothing")
    ptx.write_text(text.replace("fma.rn.f32", "fma.rz.f32", 1))
    before = log(folder)
    build(folder)
    expect("external.c" in objects_built(folder, before), "a changed PTX file is embedded again")
    ptx.write_text(text.replace(".param .u32 bounded_sums_param_0", ".param .texref bounded_sums_param_0"))
    output = build(folder, fails=True)
    expect("nvcc.ptx:57:9: error: expected a number, a pointer or bytes as parameter, found '.texref'" in output,
           f"a mistake is reported with its place: {output}")
    expect("fma.rz" in (folder / "build/external.c").read_text(), "what was generated before is there still")


def cuda_sources(scratch, compiler, *options):
    """CUDA sources: the guide's commands work, a change recompiles only what depends on it, and no output has a path of this machine."""
    folder = project(scratch, "cuda_sources")
    configure(folder, f"-DCOMPILER={compiler}", *options)
    blocks = guide(folder)
    (build_it, verify), (shown,) = blocks["sh"], blocks["text"]
    shell(folder, build_it, HOST=str(PREFIX))
    runs(folder, shown)
    explains(folder)
    output = shell(folder, verify, HOST=str(PREFIX))
    expect("\n2 variants: 2 right, 0 executed" in output, f"verification: {output}")
    files = sorted((folder / "build/cuda_kernels").glob("*.ptx"))
    expect(len(files) == 4, f"two sources for two architectures: {files}")
    for file in [*files, folder / "build/encoder.c", folder / "build/encoder.h", folder / "build/encoder.json"]:
        expect(str(scratch) not in file.read_text() and "/usr" not in file.read_text(), f"{file} has a path of this machine")
    expect("no work to do" in build(folder), "a second build does nothing")

    header = folder / "include/common.h"
    header.write_text(header.read_text().replace("CUBE 0.044715f", "CUBE 0.05f"))
    build(folder)
    output = run(folder / "build/app", driver(), fails=True)
    expect(re.search(r"vector=4: .*, wrong", output), f"a changed header: {output}")
    output = shell(folder, verify, fails=True, HOST=str(PREFIX))
    expect("\n2 variants: 0 right" in output and "2 wrong" in output, f"a wrong kernel is found: {output}")
    configure(folder, "-DARCHS=90a" if compiler == "nvcc" else "-DARCHS=80")
    output = build(folder, fails=True)
    expect(f"expected a PTX file that runs on sm_75, found sm_{'90a' if compiler == 'nvcc' else 80}" in output, f"a target without PTX: {output}")


def cuda_sources_nvcc(scratch):
    need("nvcc")
    cuda_sources(scratch, "nvcc", "-DOPTIONS=-lineinfo")


def cuda_sources_clang(scratch):
    need("clang")
    cuda_sources(scratch, "clang", "-DOPTIONS=-nocudainc;-nocudalib;-Wno-unknown-cuda-version;-gline-tables-only")


def cuda_runtime(scratch):
    """A program of the CUDA runtime compiles and links with a bundle, and runs if there is a GPU."""
    need("nvcc")
    folder = project(scratch, "cuda_runtime", "kernels.yaml")
    configure(folder)
    build(folder)
    done = subprocess.run([folder / "build/app"], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        skip(f"it was built and not run, as there is no GPU: {done.stdout}")
    expect((done.returncode, done.stdout) == (0, "success, scale 8\n"), f"the program: {done}")


def two_bundles(scratch):
    folder = project(scratch, "two_bundles")
    configure(folder)
    build(folder)
    runs(folder, "success, -2 2 0\n")
    explains(folder)


def pack(scratch):
    """A bundle in a shared object exports only its index. A bundle of another layout is refused."""
    folder = project(scratch, "pack")
    configure(folder)
    build(folder)
    shared = folder / "build/extra_pack.so"
    output = run(folder / "build/app", shared, driver())
    expect(output == "nf4_unpack/type=f32,group=64,nibbles=low\nextra: 3 kernels, success, -2 0 2\n", f"the program says: {output}")
    explains(folder, shared)
    shown = [line.split()[-1] for line in run("nm", "-D", "--defined-only", shared).splitlines()]
    expect(shown == ["extra_index"], f"what the pack shows: {shown}")
    expect("extra_index" not in run("nm", folder / "build/app"), "the program has no kernels of its own")
    source = folder / "build/extra.c"
    text = source.read_text()
    expect(".layout_version = 4," in text, "where a bundle says its layout")
    newer = folder / "newer.c"
    newer.write_text(text.replace(".layout_version = 4,", ".layout_version = 5,"))
    run("cc", "-shared", "-fPIC", f"-I{PREFIX}/include", f"-I{folder}/build", newer, *folder.glob("build/extra_?.c"), "-o",
        folder / "newer.so", next(PREFIX.rglob("libkiln_runtime.a")))
    output = run(folder / "build/app", folder / "newer.so", driver(), fails=True)
    expect("layout" in output, f"a pack of another layout: {output}")


def python(scratch):
    """The steps of tools/python/README.md, with the driver that the linker finds and with a named driver."""
    text = (SOURCE_DIR / "tools/python/README.md").read_text()
    call, code = (textwrap.dedent(re.search(rf"^ *```{kind}\n(.*?)^ *```", text, re.M | re.S)[1]) for kind in ("cmake", "python"))
    (scratch / "kernels.yaml").write_text("bundle: appkernels\ntargets: [sm_80]\nkernels:\n  - family: nf4_quantize\n"
                                          "  - family: nf4_unpack\n")
    (scratch / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.22)\nproject(x LANGUAGES C)\n"
                                            f"find_package(kiln REQUIRED)\n{call}"
                                            "kiln_add_bundle(external CONFIG external_ptx/kernels.yaml PYTHON SHARDS 2)\n")
    shutil.copytree(HERE / "external_ptx", scratch / "external_ptx")
    configure(scratch)
    build(scratch)
    (scratch / "app.py").write_text(code)
    (scratch / "named.py").write_text(code.replace('.json")', f'.json", driver={str(driver())!r})'))
    here = os.environ | {"PYTHONPATH": "build"}
    for program, environment in (("app.py", {"LD_LIBRARY_PATH": str(driver().parent)}), ("named.py", {})):
        output = run(sys.executable, "-B", program, cwd=scratch, env=here | environment)
        expect(output == "array('f', [0.25, 0.25])\n", f"{program} says: {output}")
    output = run(sys.executable, "-B", HERE.parent / "python/external.py", "build/external.json", driver(), cwd=scratch, env=here)
    expect(output == "columns: u32\n", f"external PTX: {output}")
    shown = run("nm", "-D", "--defined-only", scratch / "build/appkernels_python.so")
    names = [line.split()[-1] for line in shown.splitlines()]
    expect({"appkernels_nf4_unpack", "kiln_open", "kiln_describe_error"} <= set(names), f"what the library shows: {names}")
    expect(all(name.startswith(("appkernels_", "kiln_")) for name in names), f"what the library shows: {names}")


def compressed(scratch):
    """../minimal's program with compressed images: by CMake, by pkg-config, as a pack, verified, and with mutants."""
    folder = project(scratch, "find_package", *MINIMAL)
    lists = folder / "CMakeLists.txt"
    text = re.sub(r"find_package\(.*", "find_package(kiln REQUIRED COMPONENTS zstd)", lists.read_text())
    lists.write_text(re.sub(r"kiln_add_bundle\(.*", "kiln_add_bundle(minimal CONFIG kernels.yaml PACK VERIFY)", text))
    if not list(PREFIX.rglob("libkiln_zstd.a")):
        output = " ".join(configure(folder, fails=True).split())
        expect("this kiln was built without libzstd.a" in output, f"the message of a build without libzstd.a: {output}")
        skip("this kiln was built without libzstd.a")
    need("make", "pkg-config")
    config, app = folder / "kernels.yaml", folder / "app.c"
    config.write_text(config.read_text().replace("bundle: minimal\n", "bundle: minimal\ncompress: zstd\n"))
    app.write_text(app.read_text().replace("slots, MINIMAL_SLOTS, NULL)", "slots, MINIMAL_SLOTS, &options)").replace(
        "static kiln_loader", "static _Alignas(16) char scratch[MINIMAL_SCRATCH_BYTES];\n"
        "static const kiln_options options = {.scratch = scratch, .scratch_bytes = sizeof scratch};\nstatic kiln_loader"))
    configure(folder)
    expect("warning: compressed images save" in build(folder), "a bundle this small is warned of")
    runs(folder)
    output = run(folder / "build/minimal_verify", "--driver", driver(), "--max-elements", "4096")
    expect(re.search(r"\n(\d+) variants?: \1 right, 0 executed", output), f"VERIFY: {output}")
    output = run(folder / "build/minimal_verify", "--driver", driver(), "--max-elements", "2048", "--mutate", "12")
    expect("\n12 of 12 mutants killed" in output, f"--mutate changes the expanded text: {output}")
    variant = run(GENERATOR, "list", config).split()[1]
    output = run(PREFIX / "bin/kiln-profile", folder / "build/minimal.json", "--variant", variant, "--target", "sm_90",
                 "--args", "n=4096", fails=True)
    expect("are compressed: profile a bundle that is configured without 'compress'" in output, f"kiln-profile says why: {output}")
    expect("ZSTD_decompressDCtx" in run("nm", folder / "build/app"), "the program has the decoder")
    shown = [line.split()[-1] for line in run("nm", "-D", "--defined-only", folder / "build/minimal_pack.so").splitlines()]
    expect(shown == ["minimal_index"], f"what the pack shows: {shown}")

    shutil.copy(HERE / "pkg_config/Makefile", folder)
    environment = {**os.environ, "PKG_CONFIG_PATH": str(next(PREFIX.rglob("kiln.pc")).parent)}
    libraries = run("pkg-config", "--libs", "kiln_zstd", env=environment).strip()
    run("make", "-C", folder, f"LDLIBS={libraries}", env=environment)
    expect(run(folder / "app", driver()) == RESULT, "the program that make built runs")


PTXAS = """#!/bin/sh
if [ "$1" = --version ]; then echo "release 13.0, V13.0.88"; exit; fi
{ printf '\\177ELF%s ' "$1"; cat "$4"; } > "$3"
"""


def cubins(scratch):
    """A bundle with only cubins, from a script in place of ptxas: their PTX is verified, and tools name what they lack."""
    folder = project(scratch, "find_package", *MINIMAL)
    config, lists, app = folder / "kernels.yaml", folder / "CMakeLists.txt", folder / "app.c"
    config.write_text(config.read_text().replace("images: [ptx]\n", "images:\n  - cubin  # alone, not ptx\n"))
    lists.write_text(re.sub(r"kiln_add_bundle\(.*", "kiln_add_bundle(minimal CONFIG kernels.yaml VERIFY PACK PYTHON)", lists.read_text()))
    toolkit = scratch / "toolkit"
    toolkit.mkdir()
    (toolkit / "ptxas").write_text(PTXAS)
    (toolkit / "ptxas").chmod(0o755)
    environment = os.environ | {"PATH": f"{toolkit}:{os.environ['PATH']}"}
    configure(folder, env=environment)
    build(folder)
    manifest = folder / "build/minimal.json"
    images = [i for v in json.loads(manifest.read_text())["variants"] for i in v["images"]]
    expect(images and all(i.get("format") == "cubin" for i in images), f"cubins alone: {images}")
    for device in "sm_75", "sm_90":
        output = run(folder / "build/minimal_verify", "--driver", driver(), "--max-elements", "2048",
                     env=os.environ | {"KILN_EMU_DEVICE": device})
        expect(f"\nships    {len(images)} cubins of ptxas 13.0, V13.0.88, made of the PTX that runs here\n" in output
               and re.search(r"\n(\d+) variants?: \1 right, 0 executed", output), f"VERIFY on {device}: {output}")

    verify = folder / "build/minimal_verify", "--driver", driver(), "--max-elements", "256"
    for device, version, why in ("sm_86", "13010", "; device sm_86; cubin sm_75 is for other devices"), (
            "sm_90", "12080", "cubin sm_90 needs driver 13.0"):
        environment_of = os.environ | {"KILN_EMU_DEVICE": device, "KILN_EMU_DRIVER": version}
        output = run(*verify, "--junit", folder / "junit.xml", fails=True, env=environment_of)
        expect("ships no image for this device: no image runs on this device: nf4_" in output and why in output
               and re.search(r"\n(\d+) variants?: 0 right, 0 executed but not compared, 0 skipped, \1 wrong", output),
               f"no cubin for {device} with driver {version}: {output}")
        report = (folder / "junit.xml").read_text()
        expect(re.search(r'<testsuites[^>]* tests="(\d+)" failures="\1"', report) and "ships no image" in report, f"as JUnit: {report}")
        output = run(*verify, "--own-images", fails=True, env=environment_of)
        expect("nothing was verified: the bundle ships no image for" in output, f"own images: {output}")

    # Another ptxas on the PATH rebuilds the cubins. A ptxas that is only on the build's PATH is ignored.
    other = scratch / "another toolkit"
    other.mkdir()
    (other / "ptxas").write_text(PTXAS.replace("13.0, V13.0.88", "12.6, V12.6.1"))
    (other / "ptxas").chmod(0o755)
    found = os.environ | {"PATH": f"{other}:{os.environ['PATH']}"}
    for path, version in (found, "12.6, V12.6.1"), (environment, "13.0, V13.0.88"):
        configure(folder, env=path)
        build(folder)
        made = manifest.read_text()
        expect(json.loads(made)["ptxas"] == version, f"made by the ptxas that was found when configured: {json.loads(made)['ptxas']}")
        build(folder, env=found)
        expect(manifest.read_text() == made, "and by no other")

    output = run(folder / "build/app", driver(), fails=True)
    expect("the emulated driver takes PTX only: with kiln, set ptx_only of kiln_options\nload failed: nf4_quantize/" in output,
           f"the program, which gives the emulated driver a cubin: {output}")
    app.write_text(app.read_text().replace("slots, MINIMAL_SLOTS, NULL)", "slots, MINIMAL_SLOTS, &options)").replace(
        "static kiln_loader", "static const kiln_options options = {.ptx_only = 1};\nstatic kiln_loader"))
    build(folder, env=environment)
    output = run(folder / "build/app", driver(), fails=True)
    expect("no image runs on this device: nf4_quantize/" in output and "add its target, or ptx, to the configuration" in output,
           f"the error on a device without an image: {output}")
    variant = run(GENERATOR, "list", config).split()[1]
    profile = (PREFIX / "bin/kiln-profile", "--variant", variant, "--target", "sm_90", "--args", "n=4096")
    expect("thread instructions" in run(*profile, config), "kiln-profile makes the PTX of a configuration")
    output = run(*profile, manifest, fails=True)
    expect("are cubins, and the emulated driver runs PTX" in output, f"kiln-profile of the manifest: {output}")
    run(PREFIX / "bin/kiln-report", manifest, "-o", folder / "report.html")
    expect(f"{len(images)} of them cubins" in (folder / "report.html").read_text(), "kiln-report counts them")

    text = manifest.read_text()
    changed = next(i for i in images if i["target"] == "sm_90")["ptx_xxh3_128"]
    wrong = "0" * 32
    at = text.index('"target": "sm_90"')
    manifest.write_text(text[:at] + text[at:].replace(changed, wrong, 1))
    build(folder, env=environment)
    output = run(folder / "build/minimal_verify", "--driver", driver(), fails=True)
    expect(f"{variant}: the cubin for sm_90 is of other PTX than runs here: ptxas 13.0, V13.0.88 made it of {wrong}, this program "
           f"has {changed}\n" in output, f"a cubin of other PTX: {output}")


def committed(scratch):
    """Committed files build like generated ones. A test compares them with the configuration, and files of another layout are
    refused. A missing decoder is an error that gives the scratch bytes."""
    folder = project(scratch, "find_package", *MINIMAL)
    config, lists, made = folder / "kernels.yaml", folder / "CMakeLists.txt", folder / "made"
    text = lists.read_text()
    call = "kiln_add_bundle(minimal COMMITTED made {} PACK PYTHON VERIFY)"
    lists.write_text(re.sub(r"kiln_add_bundle\(.*", "enable_testing()\n" + call.format("CONFIG kernels.yaml"), text))
    output = " ".join(configure(folder, fails=True).split())
    expect("made/minimal.json, which COMMITTED needs; `kiln generate` writes it" in output, f"no files: {output}")
    run(GENERATOR, "generate", config, "--output", made, "--shards", "2", "--quiet")
    configure(folder)
    build(folder)
    runs(folder)
    expect(re.search(r"\n(\d+) variants?: \1 right", run(folder / "build/minimal_verify", "--driver", driver(), "--max-elements", "2048")),
           "VERIFY")
    expect({p.name for p in (folder / "build").glob("minimal*.*")} >= {"minimal_pack.so", "minimal_python.so", "minimal.json"}, "PACK, PYTHON")
    expect(sorted(p.name for p in made.iterdir()) == ["minimal.c", "minimal.d", "minimal.h", "minimal.json", "minimal_1.c", "minimal_2.c"],
           "nothing is written beside the committed files")
    ctest = pathlib.Path(CMAKE).with_name("ctest"), "--test-dir", folder / "build", "--output-on-failure", "-R", "minimal_check"
    expect("100% tests passed" in run(*ctest), "the files are current")
    config.write_text(config.read_text() + "  - {family: nf4_unpack, type: f16}\n")
    output = run(*ctest, fails=True)
    expect("made/minimal.json: differs" in output, f"they are stale: {output}")
    output = run(CMAKE, "--build", folder / "build", "--target", "minimal_check", fails=True)
    expect("made/minimal.c: differs" in output or "made/minimal_1.c: differs" in output, f"the target tells it too: {output}")

    manifest = made / "minimal.json"
    said = manifest.read_text()
    layout = re.search(r'"layout_version": (\d+)', said)[1]
    manifest.write_text(said.replace(f'"layout_version": {layout}', '"layout_version": 1'))
    output = " ".join(configure(folder, fails=True).split())
    expect(f"made/minimal.json is of layout '1', and this kiln's headers are of layout '{layout}': remake it by `kiln generate "
           f"kernels.yaml --output {shlex.quote(str(made))}`" in output, f"another layout: {output}")
    manifest.write_text(said)
    lists.write_text(re.sub(r"kiln_add_bundle\(.*", call.format(""), text))
    configure(folder, "-DKILN_HOST_EXECUTABLE=")
    expect("minimal_check" not in run(CMAKE, "--build", folder / "build", "--target", "help"), "no check without CONFIG")

    if list(PREFIX.rglob("libkiln_zstd.a")):
        without = "-DLIBZSTD_LIBRARY=OFF"
        config.write_text(config.read_text().replace("bundle: minimal\n", "bundle: minimal\ncompress: zstd\n"))
        run(GENERATOR, "generate", config, "--output", made, "--shards", "2", "--quiet")
        scratch_bytes = json.loads(manifest.read_text())["scratch_bytes"]
        for arguments in "COMMITTED made", "CONFIG kernels.yaml":
            lists.write_text(re.sub(r"kiln_add_bundle\(.*", f"kiln_add_bundle(minimal {arguments})", text))
            output = " ".join(configure(folder, without, fails=True).split())
            expect("there is no kiln::zstd, which expands them: install libzstd-dev" in output
                   and f"will need {scratch_bytes} bytes of scratch memory" in output, f"{arguments} without a decoder: {output}")
            expect(not list((folder / "build").glob("*_scratch")), "what told the size is removed")


def no_generator(scratch):
    """Returns ../minimal's program with the default bundle's names."""
    folder = project(scratch, "no_generator")
    text = (HERE / "minimal/app.c").read_text()
    (folder / "app.c").write_text(text.replace("minimal", "kiln_default").replace("MINIMAL", "KILN_DEFAULT"))
    output = configure(folder, f"-DKILN_SOURCE_DIR={SOURCE_DIR}", "-DCMAKE_DISABLE_FIND_PACKAGE_kiln=ON")
    expect("fyaml" not in output and "LIBFYAML" not in (folder / "build/CMakeCache.txt").read_text(), "libfyaml")
    build(folder)
    expect(not list((folder / "build").rglob("bin/kiln")), "no generator was built")
    runs(folder, RESULT.replace("minimal", "kiln_default"))


# ---- another machine ------------------------------------------------------------------------------------------------

CROSS_RESULT = "load PTX, .target sm_75\nfind nf4_quantize_f32_64_low\nlaunch 256 1 1, 256 1 1, in abc00\nsuccess\n"
WHAT_TO_DO = "needs a kiln that runs on this machine: build one there, and set KILN_HOST_EXECUTABLE to its path"


def cross(scratch):
    """Builds for aarch64, and runs with qemu-user. Without a generator for this machine, configuring says what to do."""
    need("aarch64-linux-gnu-gcc", "qemu-aarch64")
    folder = project(scratch, "cross", "kernels.yaml")
    for flags in ("CFLAGS", "LDFLAGS"):
        os.environ.pop(flags, None)  # flags for the build's compiler, not for the cross compiler
    options = (f"-DKILN_SOURCE_DIR={SOURCE_DIR}", f"-DCMAKE_TOOLCHAIN_FILE={folder}/aarch64.cmake")
    expect(WHAT_TO_DO in " ".join(configure(folder, *options, fails=True).split()), "the message says what to do")
    output = " ".join(configure(folder, *options, "-DKILN_HOST_EXECUTABLE=/bin/true", fails=True).split())
    expect("KILN_HOST_EXECUTABLE is no kiln that runs on this machine: `/bin/true --version`" in output, f"another program: {output}")
    configure(folder, *options, f"-DKILN_HOST_EXECUTABLE={GENERATOR}")
    build(folder)
    output = run("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", folder / "build/app")
    expect(output == CROSS_RESULT, f"the program says: {output}")

    # A project for the other machine finds a package for that machine, which by default has no generator.
    run(CMAKE, "-S", SOURCE_DIR, "-B", scratch / "kiln", "-G", "Ninja", options[1])
    packages = (scratch / "kiln/CPackConfig.cmake").read_text()
    expect('set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE "arm64")' in packages, "Debian's name of the machine that packages are for")
    expect('set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libkiln-dev' in packages, "kiln-tools needs no generator that is not built")
    run(CMAKE, "--build", scratch / "kiln")
    run(CMAKE, "--install", scratch / "kiln", "--prefix", scratch / "aarch64")
    library = project(scratch, "reexport/library", "kernels.yaml")
    options = (f"-DCMAKE_PREFIX_PATH={scratch}/aarch64", options[1])
    expect(WHAT_TO_DO in " ".join(configure(library, *options, fails=True).split()), "the message says what to do")
    configure(library, *options, f"-DKILN_HOST_EXECUTABLE={GENERATOR}")
    build(library)
    expect("file format elf64-littleaarch64" in run("aarch64-linux-gnu-objdump", "-a", library / "build/libminimal.a"),
           "the bundle is for the other machine")

    # A project for this machine finds the other machine's package.
    shutil.rmtree(library / "build")
    output = configure(library, options[0], fails=True)
    expect("whose runtime is for aarch64:" in " ".join(output.split()), f"the wrong machine is named: {output}")

    if os.path.isabs(run("aarch64-linux-gnu-gcc", "-print-file-name=libfyaml.a").strip()):
        run(CMAKE, "-S", SOURCE_DIR, "-B", scratch / "tools", "-G", "Ninja", "-DKILN_TOOLS=ON", options[1],
            f"-DKILN_HOST_EXECUTABLE={GENERATOR}")
        run(CMAKE, "--build", scratch / "tools", "--target", "kiln-verify")
        output = run("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", scratch / "tools/bin/kiln-verify", "--list")
        expect("nf4_unpack/" in output, f"kiln-verify reads the manifest that it carries: {output}")


# The CUDA version of each JetPack, an emulated driver for it (CUDA 13.1 at most), and the board.
JETPACKS = (("11.4", 11040, "sm_87"), ("12.2", 12020, "sm_87"), ("12.6", 12060, "sm_87"), ("13.0", 13000, "sm_110"),
            ("13.2", 13010, "sm_87"), ("13.2", 13010, "sm_110"))


def jetpacks(folder, app):
    """The bundle's images load on each JetPack. An older driver is an error that says why."""
    config = folder / "kernels.yaml"
    for cuda, version, device in JETPACKS:
        other = folder / f"jetpack_{cuda}.yaml"
        other.write_text(config.read_text().replace("max_driver: 11.4", f"max_driver: {cuda}"))
        run(GENERATOR, "generate", other, "--lock", folder / "kernels.lock.yaml", "-q", "-o", folder / "jetpack")
        bundle = json.loads((folder / "jetpack/orin.json").read_text())
        drivers = {image["min_driver"] for variant in bundle["variants"] for image in variant["images"]}
        expect(drivers == {11000} and bundle["min_driver"] == 11000, f"for CUDA {cuda}: {drivers}")
        output = run(app, driver(), env={**os.environ, "KILN_EMU_DEVICE": device, "KILN_EMU_DRIVER": str(version)})
        expect(output.endswith("right\n") and f", {device}, driver of CUDA" in output, f"on {device} with CUDA {cuda}: {output}")
    if shutil.which("ptxas"):
        major = int(re.search(r"release (\d+)", run("ptxas", "--version"))[1])
        other.write_text(config.read_text() + "images: [ptx, cubin]\n")
        run(GENERATOR, "generate", other, "--lock", folder / "kernels.lock.yaml", "-q", "-o", folder / "jetpack")
        images = sum((v["images"] for v in json.loads((folder / "jetpack/orin.json").read_text())["variants"]), [])
        drivers = sorted({image["min_driver"] for image in images})
        expect(len(images) == 16 and drivers == sorted({11000, 1000 * major}), f"with cubins: {drivers}, {len(images)} images")
    output = run(app, driver(), fails=True, env={**os.environ, "KILN_EMU_DEVICE": "sm_87", "KILN_EMU_DRIVER": "10020"})
    expect("11.0" in output and "10.2" in output, f"with an older driver the program says: {output}")


def orin(scratch):
    """The guide's commands for this machine, and for arm64 with qemu."""
    need("aarch64-linux-gnu-gcc", "qemu-aarch64", "ninja")
    if not os.path.isabs(run("aarch64-linux-gnu-gcc", "-print-file-name=libfyaml.a").strip()):
        skip("there is no libfyaml for arm64")
    for flags in ("CFLAGS", "CXXFLAGS", "LDFLAGS"):
        os.environ.pop(flags, None)  # flags for the build's compiler, not for the cross compiler
    folder, board = project(scratch, "orin"), scratch / "board prefix"
    paths = {"KILN": str(SOURCE_DIR), "HOST": str(PREFIX), "BOARD": str(board)}
    blocks = guide(folder)
    (install, choose, build_here, build_board, emulate, verify, deploy), (shown,) = blocks["sh"], blocks["text"]
    for commands in (choose, build_here):
        output = shell(folder, commands, **paths)
    expect(output.endswith(shown), f"the program says what the guide shows: {output}")
    output = shell(folder, verify, **paths)
    expect(re.search(r"\n8 variants: 8 right, 0 executed", output), f"verification: {output}")
    jetpacks(folder, folder / "build/orin-layer")

    for commands in (install, build_board):
        shell(folder, commands, **paths)
    expect(shell(folder, emulate, **paths) == shown, "the board's program says the same")
    output = run("qemu-aarch64", "-R", "80G", "-L", "/usr/aarch64-linux-gnu", folder / "build-board/orin_verify", "--driver",
                 next(board.rglob("libcuda.so.1")), "--filter", "rope", "--max-elements", "1024",
                 env={**os.environ, "KILN_EMU_DEVICE": "sm_87", "KILN_EMU_THREADS": "1"})
    expect("\n1 variant: 1 right" in output, f"the board's verifier: {output}")
    output = shell(folder, deploy, **paths)
    needed = set(re.findall(r"\[(\S+)\]", output)) - {"ld-linux-aarch64.so.1"}  # some linkers list it
    expect(needed == {"libc.so.6", "libm.so.6"}, f"what the program needs: {output}")
    size, glibc = (folder / "orin-layer").stat().st_size, output.split()[-1]
    page = (folder / "README.md").read_text()
    expect(size < 600_000 and f"gives `{glibc}`" in page, f"what is put on the board: {size} bytes, {glibc}")

    if shutil.which("ptxas"):
        config = folder / "kernels.yaml"
        config.write_text(config.read_text() + "images: [ptx, cubin]\n")
        output = build(folder)
        expect("warning: the driver of CUDA 11.4 ignores the cubins of ptxas" in output, f"cubins that JetPack 5 does not load: {output}")
        on_orin = os.environ | {"KILN_EMU_DEVICE": "sm_87"}
        expect(run(folder / "build/orin-layer", "--ptx", driver(), env=on_orin) == shown, "with cubins beside the PTX")
        output = run(folder / "build/orin-layer", driver(), fails=True, env=on_orin)
        expect("set ptx_only of kiln_options" in output, f"a cubin for the emulated driver: {output}")

    source = folder / "check.c"
    text = source.read_text()
    source.write_text(text.replace("packed[at + 8] >> 4", "packed[at + 8] >> 5"))
    build(folder)
    output = run(folder / "build/orin-layer", "--ptx", driver(), fails=True)
    expect("WRONG" in output and "right" not in output, f"a reference that differs: {output}")


def by_hand(scratch):
    """The cross project builds for this machine. A build without a generator has a message."""
    folder = project(scratch, "cross", "kernels.yaml")
    options = (f"-DKILN_SOURCE_DIR={SOURCE_DIR}", "-DKILN_GENERATOR=OFF")
    expect(WHAT_TO_DO in " ".join(configure(folder, *options, fails=True).split()), "the message says what to do")
    configure(folder, *options, f"-DIMPORTED_KILN={GENERATOR}")
    build(folder)
    runs(folder, CROSS_RESULT)


if __name__ == "__main__":
    main((install, init, components, find_package, makefiles, pkg_config, language_model, cxx, reexport, own_family, external_ptx,
          cuda_sources_nvcc, cuda_sources_clang, cuda_runtime, pack, python, compressed, cubins, committed, two_bundles, no_generator, cross, orin, by_hand), sys.argv[4])
