#!/usr/bin/env python3
"""Tests projects that use kiln_add_bundle: they build, rebuild only what changed, and report mistakes.

usage: check.py CMAKE SOURCE_DIR DRIVER KILN VERB

Each project has kiln as a subfolder, and its program runs on DRIVER, the emulated driver. Some projects build the generator,
the others use the executable KILN.
"""
import json
import pathlib
import re
import shutil
import sys
import textwrap

from common import HERE, INIT_RESULT, RESULT, expect, main, need, run, skip

CMAKE = sys.argv[1]
SOURCE_DIR, DRIVER, KILN = (pathlib.Path(a).resolve() for a in sys.argv[2:5])
WITH_KILN = "-DKILN_GENERATOR=OFF", f"-DKILN_HOST_EXECUTABLE={KILN}"


def configure(project, *options, fails=False):
    return run(CMAKE, "-S", project, "-B", project / "build", f"-DKILN_SOURCE_DIR={SOURCE_DIR}", *options, fails=fails)


def build(project, target="app"):
    return run(CMAKE, "--build", project / "build", "--target", target, "-j2")


# The CMake code of the README's first steps, with the names of its other bundles.
FIRST_STEPS = """```cmake
add_subdirectory(kiln)
kiln_add_bundle(adapter CONFIG kernels.yaml)
target_link_libraries(app PRIVATE adapter)
```
"""
GENERATES, COMPILES = re.compile("Generating the kernels of minimal"), re.compile("Building C object.*minimal.c.o")


def minimal(scratch, tool, generator, *options):
    need(tool)
    project = scratch / "a project"  # users' paths contain spaces
    shutil.copytree(HERE / "minimal", project)
    configure(project, "-G", generator, *options)
    config = project / "kernels.yaml"

    output = build(project)
    expect(GENERATES.search(output) and COMPILES.search(output), f"the first build makes the bundle:\n{output}")
    expect(run(project / "build/app", DRIVER) == RESULT, "the program runs")
    output = build(project)
    expect(not GENERATES.search(output) and not COMPILES.search(output), f"a second build does nothing:\n{output}")

    config.touch()
    output = build(project)
    expect(GENERATES.search(output), "a touched configuration runs the generator")
    expect(not COMPILES.search(output), "a touched configuration recompiled what did not change")

    config.write_text(config.read_text().replace("[sm_75, sm_90]", "[sm_80]"))
    output = build(project)
    expect(GENERATES.search(output) and COMPILES.search(output), "a changed configuration makes the bundle anew")
    expect('"targets": ["sm_80"]' in (project / "build/minimal.json").read_text(), "the manifest is the new one")

    config.write_text(config.read_text() + "  - family: nf4_quantise\n")
    output = run(CMAKE, "--build", project / "build", "--target", "app", fails=True)
    expect(f"{config}:6:" in output and "nf4_quantize" in output, f"a mistake is shown with its place:\n{output}")


def minimal_ninja(scratch):
    minimal(scratch, "ninja", "Ninja")


def minimal_make(scratch):
    minimal(scratch, "make", "Unix Makefiles", *WITH_KILN)


SHAPES = """bundle: minimal
targets: [sm_80]
kernels:
  - {family: nf4_gemm, a: f16, shapes: [{m: 1, n: 512, k: 512}]}
"""


def locks(scratch, tool, generator):
    """A lock file is added, changed and removed. A second target of the same bundle has its own lock file."""
    need(tool)
    project = scratch / "[a] project"  # characters that are special in globs
    project.mkdir()
    config, lock = project / "kernels.yaml", project / "kernels.lock.yaml"
    config.write_text(SHAPES)
    lists = project / "CMakeLists.txt"
    lists.write_text("cmake_minimum_required(VERSION 3.22)\nproject(locks LANGUAGES C)\nadd_subdirectory(${KILN_SOURCE_DIR} kiln)\n"
                     "kiln_add_bundle(minimal CONFIG kernels.yaml)\n")

    def builds(what, made, target="minimal"):
        output = build(project, target)
        expect(("Generating the kernels" in output) == made, f"{what}:\n{output}")
        return output
    configure(project, "-G", generator, *WITH_KILN)
    expect("warning: no " in builds("the first build", True), "a warning that there is no lock")
    builds("a second build", False)
    run(KILN, "choose", config, "-q")
    expect("warning" not in builds("a lock that appears", True), "no warning with a lock")
    builds("a build with the lock", False)
    lock.write_text(lock.read_text() + "  - {family: nf4_gemm, a: f16}\n")
    builds("a lock that changes", True)
    expect(json.loads((project / "build/minimal.json").read_text())["lock"]["bytes"] == lock.stat().st_size, "the manifest names the lock")
    lock.unlink()
    expect("warning: no " in builds("a lock that goes", True), "a warning again")
    if tool != "make":  # CMake's makefiles keep a deleted input, and run the generator at every build
        builds("a build without the lock", False)

    run(KILN, "choose", config, "-q", "--candidates", "5", "-o", project / "wide.lock.yaml")
    lists.write_text(lists.read_text() + "kiln_add_bundle(wide CONFIG kernels.yaml LOCK wide.lock.yaml PACK)\n")
    configure(project)
    builds("another target of the bundle", True, "wide_pack")
    builds("which is there", False, "wide_pack")
    counts = [len(json.loads((project / "build" / path).read_text())["variants"]) for path in ("minimal.json", "wide/minimal.json")]
    expect(counts[0] < counts[1], f"fewer variants without candidates than with them: {counts}")
    expect((project / "build/wide/minimal_pack.so").exists(), "a pack of the bundle's name in the target's folder")
    (project / "wide.lock.yaml").unlink()
    output = run(CMAKE, "--build", project / "build", "--target", "wide", fails=True)
    expect("wide.lock.yaml" in output, f"a lock that is missing is named:\n{output}")


def locks_ninja(scratch):
    locks(scratch, "ninja", "Ninja")


def locks_make(scratch):
    locks(scratch, "make", "Unix Makefiles")


def write_readme_project(scratch, steps):
    """Writes the files of the README's steps, and adds the program's target."""
    example = {"yaml": "", "cmake": "cmake_minimum_required(VERSION 3.22)\nproject(app LANGUAGES C)\n", "c": ""}
    for language, code in re.findall(r"^ *```(yaml|cmake|c)\n(.*?)^ *```", steps, re.M | re.S):
        example[language] += textwrap.dedent(code)
    app = "add_executable(app app.c)\ntarget_compile_options(app PRIVATE -Wall -Wextra -Werror)\n"
    (scratch / "kiln").symlink_to(SOURCE_DIR)
    (scratch / "kernels.yaml").write_text(example["yaml"])
    (scratch / "app.c").write_text(example["c"])
    (scratch / "CMakeLists.txt").write_text(example["cmake"].replace("target_link", app + "target_link", 1))


def same_lines(block, text):
    """Whether the text contains the block's lines in sequence, at any indentation."""
    return "\n".join(line.strip() for line in block.strip().splitlines()) in "\n".join(line.strip() for line in text.splitlines())


def readme(scratch):
    """The first page's project, unchanged: in C and C++ it prints what the page says, and its bundle verifies."""
    page = (SOURCE_DIR / "README.md").read_text()
    folder = HERE / "first_page"
    blocks = {}
    for language, code in re.findall(r"^```(\w+)\n(.*?)^```", page, re.M | re.S):
        blocks.setdefault(language, []).append(code)
    for language, file in (("yaml", "kernels.yaml"), ("cmake", "CMakeLists.txt"), ("c", "main.c"), ("cpp", "main.cpp")):
        (block,) = blocks[language]
        expect(same_lines(block, (folder / file).read_text()), f"README.md's block of {language} is in {folder / file}")
    for name in "c", "cpp":
        project = scratch / name
        shutil.copytree(folder, project)
        (project / "kiln").symlink_to(SOURCE_DIR)
        if name == "cpp":
            lists = project / "CMakeLists.txt"
            lists.write_text(lists.read_text().replace("LANGUAGES C)", "LANGUAGES CXX)").replace("main.c)", "main.cpp)"))
        configure(project, "-G", "Ninja", *WITH_KILN, "-DCMAKE_CXX_FLAGS=-std=c++17 -Wall -Wextra -Werror")
        build(project)
        output = run("env", f"LD_LIBRARY_PATH={DRIVER.parent}", project / "build/app")
        expect([output] == blocks["text"], f"the program in {name} prints what the page says: {output}")

    project = scratch / "c"
    _, verification = blocks["sh"]
    add_verify = re.search(r"`(kiln_add_verify\(.+?\))`", page)[1]
    lists = project / "CMakeLists.txt"
    lists.write_text(f"{lists.read_text()}{add_verify}\n")
    configure(project, "-DKILN_TOOLS=ON")
    build(project, "app_verify")
    checks, device, program, option, driver = verification.splitlines()[1].split()
    output = run("env", checks, device, project / program, option, project / driver)  # app_verify built the driver too
    ends = re.search(r"Its last lines are `(.+?)`", page)[1]
    expect(f"\n{ends};" in output, f"the verification ends with '{ends}':\n{output}")
    expect("(default: 1)" in run(project / program, "--help"), "one kind of input at each size is the default")
    configure(project, "-DKILN_VERIFY_INPUTS=0")
    build(project, "app_verify")
    expect("(default: all)" in run(project / program, "--help"), "KILN_VERIFY_INPUTS changes the default")


def readme_products(scratch):
    """The longer example of runtime/README.md: its products are right under all checks, with variants that use a workspace."""
    section = (SOURCE_DIR / "runtime/README.md").read_text().partition("\n## A longer example, with a workspace\n")[2]
    write_readme_project(scratch, FIRST_STEPS + section.partition("\n## ")[0])
    configure(scratch, "-G", "Ninja", *WITH_KILN)
    build(scratch)
    for device in "sm_80", "sm_90":
        report = scratch / device
        output = run("env", f"LD_LIBRARY_PATH={DRIVER.parent}", "KILN_EMU_CHECK=all", f"KILN_EMU_DEVICE={device}",
                     f"KILN_EMU_REPORT={report}", scratch / "build/app")
        expect(output == "y 6800, dx 6000\n", f"the products are right on {device}: {output}")
        entries = [json.loads(line)["kernel"] for line in report.read_text().splitlines()]
        expect(entries == ["nf4_quantize_f32_64_low", "nf4_gemm_f16_f32_low_mma_8_32_8_compact_2_1",
                           "nf4_gemm_transposed_f16_f32_low_mma_8_8_8_8_compact_any"], f"what ran on {device}: {entries}")


def init_c(scratch):
    """The project that `kiln init` writes, built with kiln's sources in another folder and an existing generator."""
    project = scratch / "a project"
    run(KILN, "init", project, "--targets", "sm_80")
    configure(project, "-G", "Ninja", "-DKILN_TOOLS=OFF", *WITH_KILN)
    output = build(project)
    expect("warning" not in output, f"the first build warns of nothing:\n{output}")
    output = run("env", f"LD_LIBRARY_PATH={DRIVER.parent}", "KILN_EMU_DEVICE=sm_80", "KILN_EMU_CHECK=all", project / "build/app")
    expect(output == INIT_RESULT, f"the program is right: {output}")


def init_cxx(scratch):
    """Like init_c, in C++ only: kiln and its tools in a folder beside it, built with the commands that `kiln init` prints."""
    project = scratch / "project"
    output = run(KILN, "init", project, "--cxx", "--targets", "sm_80")
    (project / "kiln").symlink_to(SOURCE_DIR)
    commands = re.findall(r"^  (cmake .*)$", output, re.M)
    expect(len(commands) == 3, f"three commands: {output}")
    commands[0] = commands[0].replace("-DKILN_SOURCE_DIR=KILN", f"-G Ninja -DCMAKE_C_COMPILER_LAUNCHER={HERE / 'unoptimised'}")
    for command in commands:
        output = run("bash", "-c", command)
    expect(INIT_RESULT in output and re.search(r"\n(\d+) variants: \1 right, 0 executed", output), f"the program and its kernels are right: {output}")


ADD_VERIFY = "include(${KILN_SOURCE_DIR}/tools/cmake/KilnAddVerify.cmake)\nadd_library(x INTERFACE)\n"
ADD_TUNE = ADD_VERIFY.replace("Verify", "Tune")


SHOW_TWIN = """kiln_add_bundle(x CONFIG k.yaml GENERATOR k.yaml)
get_target_property(twin x KILN_PTX_BUNDLE)
message(FATAL_ERROR "twin: ${twin}")
"""


def messages(scratch):
    cases = (("kiln_add_bundle(a-b CONFIG k.yaml)", "", "the name of a bundle is a C identifier"),
             ("kiln_add_bundle(x)", "", "CONFIG file.yaml is missing"),
             ("kiln_add_bundle()", "", "kiln_add_bundle: the bundle's name is missing; it is called as kiln_add_bundle(NAME"),
             ("kiln_add_bundle(x CONFIG k.yaml TARGETS 80 sm90)", "", "TARGETS lists 'sm90'; a target is written as in sm_80 or 80"),
             ("kiln_add_ptx()", "", "kiln_add_ptx: the name is missing; it is called as kiln_add_ptx(NAME"),
             (ADD_VERIFY.replace("Verify", "Generator") + "kiln_add_generator()", "", "the name is missing; it is called as"),
             (ADD_VERIFY + "kiln_add_verify()", "", "kiln_add_verify(): TARGET and BUNDLE are needed; it is called as"),
             (ADD_VERIFY + "kiln_add_verify(v)", "", "kiln_add_verify(v): TARGET and BUNDLE are needed; it is called as"),
             (ADD_TUNE + "kiln_add_tune(v)", "", "kiln_add_tune(v): TARGET and BUNDLE are needed; it is called as"),
             ("kiln_add_bundle(x CONFIG k.yaml TYPO)", "", "unknown argument 'TYPO'"),
             ("kiln_add_bundle(x CONFIG k.yaml SHARDS)", "", "nothing stands after SHARDS"),
             ("kiln_add_bundle(x CONFIG k.yaml LOCK)", "", "nothing stands after LOCK"),
             ("kiln_add_bundle(x CONFIG k.yaml LOCK no.lock.yaml)", "bundle: x\n", "no.lock.yaml` writes it"),
             ("kiln_add_bundle(x CONFIG k.yaml PTX y)", "", "there is no y, which PTX names; kiln_add_ptx makes it"),
             ("kiln_add_ptx(x SOURCES k.yaml)", "", "ARCHS is missing"),
             ("kiln_add_ptx(x ARCHS 80)", "", "SOURCES is missing"),
             ("kiln_add_ptx(x SOURCES k.yaml ARCHS sm80)", "", "ARCHS lists 'sm80'; an architecture is written as in 80 or sm_80"),
             ("kiln_add_ptx(x SOURCES k.yaml ARCHS 80 sm_80)", "", "two sources are called k, or sm_80"),
             ("kiln_add_ptx(x-y SOURCES k.yaml ARCHS 80)", "", "the name is an identifier"),
             ("kiln_add_ptx(x SOURCES k.cu ARCHS 80 COMPILER clang)", "", "there is no "),
             ("kiln_add_ptx(x SOURCES k.yaml ARCHS 80 COMPILER icc)", "", "COMPILER is nvcc, clang or the path of either"),
             ("kiln_add_ptx(x SOURCES k.yaml ARCHS 80 COMPILER /nowhere/nvcc)", "", "there is no /nowhere/nvcc here"),
             ("kiln_add_bundle(x CONFIG k.yaml SHARDS 0)", "", "SHARDS is a number from 1 to 99, found '0'"),
             ("kiln_add_bundle(x CONFIG k.yaml VERIFY)", "", "this kiln is without: configure kiln with -DKILN_TOOLS=ON"),
             ("set_property(GLOBAL PROPERTY KILN_TOOLS_LACK libfyaml-dev)\nkiln_add_bundle(x CONFIG k.yaml VERIFY)", "",
              "kiln's tools are linked with: install libfyaml-dev"),
             ("kiln_add_bundle(x CONFIG k.yaml REFERENCES r.c)", "", "are for the program of VERIFY, which is not asked for"),
             (ADD_VERIFY + "kiln_add_verify(v y)", "", "kiln_add_verify(v y): there is no bundle y; kiln_add_bundle makes it"),
             (ADD_VERIFY + "kiln_add_verify(v x REFERENCE r.c)", "", "unknown argument 'REFERENCE;r.c'; it is called as"),
             (ADD_VERIFY + "kiln_add_verify(v x UNCOMPARED)", "", "nothing stands after UNCOMPARED"),
             (ADD_TUNE + "kiln_add_tune(v y)", "", "kiln_add_tune(v y): there is no bundle y; kiln_add_bundle makes it"),
             (ADD_TUNE + "kiln_add_tune(v x MANIFEST r)", "", "unknown argument 'MANIFEST;r'; it is called as"),
             (ADD_VERIFY + "kiln_add_verify(v x UNCOMPARED a/type=f32)", "", "UNCOMPARED lists 'a/type=f32'; a family's or an"),
             ("kiln_add_bundle(x CONFIG k.yaml)", "bundle: x\n", "there is no generator; a cross build"),
             ("kiln_add_bundle(x CONFIG k.yaml GENERATOR no)", "bundle: x\n", "neither a target nor a program: "),
             ("kiln_add_bundle(x CONFIG k.yaml GENERATOR k.yaml)", "bundle: x\ncompress: zstd\n",
              "there is no kiln::zstd, which expands them: install libzstd-dev, with which kiln builds it"),
             ("kiln_add_bundle(x CONFIG k.yaml GENERATOR k.yaml)", "bundle: x\n'compress' :\n  zstd\n", "there is no kiln::zstd"),
             (SHOW_TWIN, "bundle: x\nimages:\n# why\n\n  - cubin\n", "twin: x_ptx"),
             (SHOW_TWIN, "bundle: x\n\"images\" :\n  [\n cubin]\n", "twin: x_ptx"),
             (SHOW_TWIN, "bundle: x\nimages: # cubin\n- ptx\n\ntargets: [cubin]\n", "twin: twin-NOTFOUND"),
             (SHOW_TWIN, "\ufeff%YAML 1.2\r\n--- # why\r\nbundle: x\r\nimages:\r\n- cubin\r\n...\r\n", "twin: x_ptx"),
             (SHOW_TWIN, "\"bundle\" :\r  'x'\rimages: ['cubin']\r", "twin: x_ptx"),
             (SHOW_TWIN, "bundle: x\ncompressed: 1\nkernels:\n  - {compress: 1, images: [cubin]}\n", "twin: twin-NOTFOUND"),
             ("kiln_add_bundle(x CONFIG k.yaml IMAGES sass)", "", "IMAGES lists 'sass'; there are ptx and cubin"),
             ("kiln_add_bundle(x COMMITTED . SHARDS 2)", "", "the files of COMMITTED say how many there are"),
             ("kiln_add_bundle(x COMMITTED nowhere)", "", "nowhere/x.json, which COMMITTED needs; `kiln generate` writes it"),
             ("kiln_add_bundle(x COMMITTED nowhere CONFIG k.yaml LOCK l.yaml)", "bundle: y\n", "the two names must be the same, except"),
             (ADD_VERIFY + "set_target_properties(x PROPERTIES KILN_PTX_BUNDLE x_ptx)\nkiln_add_verify(v x)", "",
              "the images of x are cubins alone, and the program runs the PTX that they are made of"),
             ("kiln_add_bundle(x CONFIG \"\" SHARDS 2)", "", "nothing stands after CONFIG"),
             ("kiln_add_bundle(x CONFIG k.yaml TARGETS \"80;sm90\")", "", "TARGETS lists 'sm90'"),
             ("kiln_add_bundle(x CONFIG none.yaml)", "", "there is no "),
             ("kiln_add_bundle(x CONFIG k.yaml)", "targets: [sm_75]\n", "has no line 'bundle: x'"),
             *((SHOW_TWIN, config, f"k.yaml:{line}: expected a key at the start of the line, as in 'bundle: x'")
               for line, config in ((1, "{bundle: x, targets: [sm_75], images: [cubin]}\n"),
                                    (3, "# why\n\n--- {bundle: x, images: [cubin]}\n"),
                                    (2, "\n  bundle: x\n  images: [cubin]\n"),
                                    (3, "bundle: x\ntargets: [sm_75]\n? images\n: [cubin]\n"),
                                    (2, "bundle: x\n\"\\x69mages\": [cubin]\n"))),
             ("kiln_add_bundle(x CONFIG k.yaml)", "bundle: y # why\n", "says 'bundle: y'; the two names must be the"),
             ("add_library(x INTERFACE)\nkiln_add_bundle(x CONFIG k.yaml)", "", "a target of that name already"),
             ("kiln_add_bundle(x CONFIG k.yaml GENERATOR k.yaml SHARDS 2)\nfile(WRITE y.yaml \"bundle: x_2\")\n"
              "kiln_add_bundle(x_2 CONFIG y.yaml GENERATOR k.yaml)", "bundle: x\n", "x_2.c: rename one, or call kiln_add_bundle in another"),
             ("function(f)\nkiln_add_bundle(x CONFIG k.yaml GENERATOR k.yaml)\nendfunction()\nf()", "bundle: x\n",
              "a bundle is C, which f() cannot enable for its caller"))
    for number, (call, config, says) in enumerate(cases):
        project = scratch / str(number)
        project.mkdir()
        (project / "k.yaml").write_bytes(config.encode())
        (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.22)\nproject(x LANGUAGES NONE)\n"
                                                "include(${KILN_SOURCE_DIR}/tools/cmake/KilnAddBundle.cmake)\n"
                                                "include(${KILN_SOURCE_DIR}/tools/cmake/KilnAddPtx.cmake)\n" + call)
        output = " ".join(configure(project, fails=True).split())
        expect(says in output, f"{call}: expected '{says}' in: {output}")


def cuda_subfolder(scratch):
    """CUDA sources where kiln is a subfolder, and in two folders of one project."""
    need("nvcc")
    shutil.copytree(HERE / "cuda_sources", scratch / "x")
    lists = scratch / "x/CMakeLists.txt"
    text = re.sub(r"(cmake_minimum|project|find_package).*\n", "", lists.read_text())
    lists.write_text(text.replace(" app ", " first_app ").replace("(app ", "(first_app "))
    shutil.copytree(scratch / "x", scratch / "y")
    y = scratch / "y"
    for file in (y / "CMakeLists.txt", y / "kernels.yaml", y / "app.c"):
        file.write_text(file.read_text().replace("encoder", "other").replace("ENCODER", "OTHER").replace(
            "cuda_kernels", "other_sources").replace("first_app", "second_app"))
    (scratch / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.22)\nproject(both LANGUAGES C)\n"
                                            "add_subdirectory(${KILN_SOURCE_DIR} kiln)\nadd_subdirectory(x)\nadd_subdirectory(y)\n")
    configure(scratch, "-G", "Ninja", "-DARCHS=75", *WITH_KILN)
    for app in ("x/first_app", "y/second_app"):
        build(scratch, pathlib.Path(app).name)
        output = run(scratch / "build" / app, DRIVER)
        expect(output.count(", right\n") == 2, f"{app} is right: {output}")


def toolchains(scratch):
    """Configuring kiln names a machine or a C library that the runtime does not support."""
    no_libc = 'set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\nset(CMAKE_EXE_LINKER_FLAGS_INIT "-nostdlib")\n'
    narrow = 'set(CMAKE_C_FLAGS_INIT "-U__SIZEOF_POINTER__ -D__SIZEOF_POINTER__=4")\n'
    cannot = "cannot make programs with kiln's runtime, which needs C11 and dlopen on a 64-bit little-endian machine:"
    for name, text, *says in (
            ("no_libc", no_libc, cannot, "undefined reference to `dlopen'"),
            ("narrow", narrow, cannot, "#error kiln needs a 64-bit little-endian machine with 64-bit long and 32-bit int"),
            ("no_processor", "set(CMAKE_SYSTEM_NAME Linux)\n", "the toolchain file has to set CMAKE_SYSTEM_PROCESSOR")):
        file = scratch / f"{name}.cmake"
        file.write_text(text)
        output = run(CMAKE, "-S", SOURCE_DIR, "-B", scratch / name, "-G", "Ninja", f"-DCMAKE_TOOLCHAIN_FILE={file}", fails=True)
        for part in says:
            expect(part in " ".join(output.split()), f"{name}: expected '{part}' in:\n{output}")


def nvtx(scratch):
    """Each launch has an NVTX range inside the program's range. NVTX loads a library in place of a profiler, which prints them."""
    need("nvcc", "cc")
    toolkit = pathlib.Path(shutil.which("nvcc")).resolve().parent.parent
    headers = [folder for folder in (toolkit / "include", *toolkit.glob("targets/*/include")) if (folder / "nvtx3/nvToolsExt.h").exists()]
    if not headers:
        skip(f"{toolkit} has no nvtx3/nvToolsExt.h")
    project = scratch / "project"
    shutil.copytree(HERE / "nvtx", project)
    shutil.copy(HERE / "minimal/kernels.yaml", project)
    configure(project, "-G", "Ninja", *WITH_KILN)
    build(project)
    variant = re.search(r'"id": "(nf4_quantize/[^"]+)"', (project / "build/minimal.json").read_text())[1]
    ranges = scratch / "ranges.so"
    run("cc", "-shared", "-fPIC", "-isystem", headers[0], HERE / "nvtx_ranges.c", "-o", ranges)
    output = run("env", f"NVTX_INJECTION64_PATH={ranges}", project / "build/app", DRIVER)
    launches = "".join(f"    nf4_quantize n={n} grid {(n + 4095) // 4096} block 256 shared 0 {variant}\n    end\n" for n in (64, 128))
    expect(output == f"step\n{launches}end\nsuccess\n", f"the ranges:\n{output}")
    expect(run(project / "build/app", DRIVER) == "success\n", "without a profiler")


def missing_package(scratch):
    """An error names each missing component, and the command that installs it."""
    output = run(CMAKE, "-S", SOURCE_DIR, "-B", scratch / "build", "-DCMAKE_FIND_ROOT_PATH=/nonexistent",
                 "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY", fails=True)
    says = "kiln needs xxhash.h, which is not installed. Debian and Ubuntu: apt-get install libxxhash-dev"
    expect(says in " ".join(output.split()), f"expected '{says}' in:\n{output}")


main((init_c, init_cxx, minimal_ninja, minimal_make, locks_ninja, locks_make, readme, readme_products, messages, toolchains, missing_package, cuda_subfolder, nvtx), sys.argv[5])
