#!/usr/bin/env python3
"""Tests kiln inside a parent project's build: the parent's settings, several kilns, multi-configuration generators.

usage: guest.py CMAKE BUILD_DIR PREFIX VERB
"""
import os
import pathlib
import re
import shutil
import sys
import time

from common import HERE, RESULT, expect, main, need, run
from installed import CMAKE, GENERATOR, MINIMAL, PREFIX, SOURCE_DIR, build, configure, driver, project, runs

# The installed generator makes the bundle; the tools are configured but not built.
SUBFOLDER = f"-DKILN_SOURCE_DIR={SOURCE_DIR}", f"-DKILN_HOST_EXECUTABLE={GENERATOR}", "-DKILN_TOOLS=ON"
BUNDLE = "minimal.c", "minimal_1.c", "minimal_2.c", "minimal.h", "minimal.json"


def guest(scratch, *options, settings="", policies="3.22", **keywords):
    """Writes and configures the project."""
    folder = project(scratch, "guest", *MINIMAL)
    lists = folder / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("VERSION 3.22", f"VERSION {policies}"))
    (folder / "beside.c").write_text("int beside_app(void);\nint beside_app(void)\n{\n    return 0;\n}\n")
    (folder / "settings.cmake").write_text(settings)
    (folder / "bin").mkdir()
    for program in "nvcc", "ptxas", "checker", "plog-converter":  # they succeed
        (folder / "bin" / program).touch(0o755)
        (folder / "bin" / program).write_text("#!/bin/sh\n")
    configure(folder, "-DCMAKE_BUILD_TYPE=Debug", *options, **keywords)
    return folder


def exported(library):
    return {line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()}


def calls_from_python(folder):
    """Whether Python can load and call the bundle from the folder that has the library, the manifest and kiln.py."""
    code = f"import kiln\nwith kiln.load('{folder}/minimal.json', driver={str(driver())!r}) as k:\n    print(k.zeros(4) is not None)\n"
    return run(sys.executable, "-B", "-c", code, env=os.environ | {"PYTHONPATH": str(folder)}) == "True\n"


# ---- what a parent project sets -------------------------------------------------------------------------------------

EVERYBODY = {"app", "minimal", "runtime", "generator", "tools"}
KILN = EVERYBODY - {"app"}
TOOLS = "CLANG_TIDY", "CPPCHECK", "CPPLINT", "ICSTAT", "INCLUDE_WHAT_YOU_USE", "PVS_STUDIO"


class Made:
    """Returns the commands and outputs of a configured build folder."""

    def __init__(self, folder):
        self.folder, self.build = folder, folder / "build"
        self.commands = run("ninja", "-C", self.build, "-t", "commands", "all").splitlines()
        outputs = run("ninja", "-C", self.build, "-t", "targets", "all").replace("../", f"{folder}/")  # CMake 3.22 writes relative paths
        self.outputs = set(re.findall(r"^(.+): (?!phony)", outputs, re.M))

    def having(self, text):
        """Returns the targets whose compile commands all contain the text."""
        found = {}
        for command in self.commands:
            place = re.search(r" -o (?:CMakeFiles/(app|minimal)[.]dir|kiln/(runtime|generator|tools))/\S+ -c ", command)
            if place:
                found.setdefault(place[1] or place[2], set()).add(text in command)
        expect(set(found) == EVERYBODY, f"targets that compile: {set(found)}")
        return {who for who, has in found.items() if has == {True}}


def shown(made):
    """Returns the symbols that the bundle's shared objects export, in any folder."""
    (pack,) = made.folder.rglob("minimal_pack.so")
    expect(exported(pack) == {"minimal_index"}, f"the pack exports {exported(pack)}")
    python = exported(made.build / "minimal_python.so")
    expect({"minimal_nf4_quantize", "kiln_open"} <= python, f"the library for Python exports {python}")


def in_folders(made):
    """The parent's folder has these outputs, but not the emulated driver: a program would load it in place of the GPU's."""
    there = {output.removeprefix(f"{made.folder}/out/") for output in made.outputs if output.startswith(f"{made.folder}/out/")}
    expect(there == {"app", "libminimal.a", "minimal_pack.so"}, f"outputs in the parent's folder: {there}")


def names(made, library="libminimal.a"):
    """Files that other programs open keep their names."""
    opened = {"kiln/lib/libkiln_runtime.a", "kiln/lib/emulator/libcuda.so.1", "kiln/bin/kiln", "minimal_pack.so", "minimal_python.so"}
    libraries = sorted(output for output in made.outputs if re.search(r"[.](a|so|so[.]1)$", output))
    expect(opened | {library} <= made.outputs, f"names: {libraries}")


def prefixed(made):
    names(made, "myminimal.a")


def static(made):
    names(made)
    shared = [output for output in made.outputs if re.search(r"/lib(minimal|kiln)\w*[.]so", output)]
    expect(not shared, f"shared libraries: {shared}")


def not_installed(made):
    expect(not (made.build / "kiln/cmake_install.cmake").exists(), "there is a script that installs kiln")


def of_this_machine(made):
    edges = (made.build / "build.ninja").read_text().replace("$ ", " ").replace("../", f"{made.folder}/")
    for program in "nvcc", "ptxas":
        expect(f"{made.folder}/bin/{program}" in edges, f"{program} is not looked for on this machine")


def not_fatal(made):
    """A parent's setting that makes linker warnings errors affects only the parent."""
    fatal = [command for command in made.commands if "--fatal-warnings" in command and " -o app " not in command]
    expect(not fatal, f"warnings are errors: {fatal}")


def unlinked(made):
    """kiln's programs do not link the parent's library, which may itself need a bundle."""
    linked = [command for command in made.commands if "libparents.a" in command and " -o kiln/" in command]
    expect(not linked, f"linked with the parent's library: {linked}")


def sets(value, *names):
    return "".join(f"set({name} {value})\n" for name in names)


def flags(more):
    return f'string(APPEND CMAKE_C_FLAGS " {more}")\n'


def out(suffix):
    return sets("${CMAKE_SOURCE_DIR}/out", *(f"CMAKE_{kind}_OUTPUT_DIRECTORY{suffix}" for kind in ("ARCHIVE", "LIBRARY", "RUNTIME")))


SHORT_ENUMS = flags("-fshort-enums")
NEW_CMAKE = [int(n) for n in re.search(r"(\d+)[.](\d+)", run(CMAKE, "--version")).groups()] >= [3, 24]
# The README's variables; the parent's settings; {text in compile commands: targets that have it}; an additional check.
ROWS = (
    ("UNITY_BUILD", sets("ON", "CMAKE_UNITY_BUILD"), {"/Unity/": {"app"}}, None),
    ("INTERPROCEDURAL_OPTIMIZATION", sets("ON", "CMAKE_INTERPROCEDURAL_OPTIMIZATION"), {" -flto": EVERYBODY}, None),
    ("POSITION_INDEPENDENT_CODE", sets("OFF", "CMAKE_POSITION_INDEPENDENT_CODE"), {" -fPIC ": {"minimal", "runtime"}}, None),
    ("C_VISIBILITY_PRESET, VISIBILITY_INLINES_HIDDEN", sets("hidden", "CMAKE_C_VISIBILITY_PRESET") + sets("ON", "CMAKE_VISIBILITY_INLINES_HIDDEN"),
     {" -fvisibility=hidden ": {"app"}, " -fvisibility=default ": KILN}, None),
    ("*_OUTPUT_DIRECTORY", out(""), {}, in_folders),
    ("*_OUTPUT_DIRECTORY_<CONFIG>", out("_DEBUG"), {}, in_folders),
    ("<CONFIG>_POSTFIX", sets("-d", "CMAKE_DEBUG_POSTFIX"), {}, names),
    ("*_PREFIX", sets("my", "CMAKE_STATIC_LIBRARY_PREFIX", "CMAKE_SHARED_LIBRARY_PREFIX", "CMAKE_SHARED_MODULE_PREFIX"), {}, prefixed),
    ("C_STANDARD, C_EXTENSIONS", sets("99", "CMAKE_C_STANDARD") + sets("OFF", "CMAKE_C_EXTENSIONS"),
     {" -std=c99 ": {"app"}, " -std=c11 ": {"minimal"}, " -std=gnu11 ": KILN - {"minimal"}}, None),
    ("COMPILE_WARNING_AS_ERROR, LINK_WARNING_AS_ERROR", sets("ON", "CMAKE_COMPILE_WARNING_AS_ERROR", "CMAKE_LINK_WARNING_AS_ERROR"),
     {" -Werror ": {"app"} if NEW_CMAKE else set()}, not_fatal),
    ("LINK_LIBRARIES_ONLY_TARGETS", sets("ON", "CMAKE_LINK_LIBRARIES_ONLY_TARGETS"), {}, None),
    ("C_CLANG_TIDY, C_CPPCHECK, C_CPPLINT, C_ICSTAT, C_INCLUDE_WHAT_YOU_USE, C_PVS_STUDIO", sets("${CMAKE_SOURCE_DIR}/bin/checker", *(f"CMAKE_C_{tool}" for tool in TOOLS)),
     {" __run_co_compile ": {"app"}}, None),
    ("C_COMPILER_LAUNCHER", sets("/usr/bin/env LAUNCHED=1", "CMAKE_C_COMPILER_LAUNCHER"), {"/usr/bin/env LAUNCHED=1 ": EVERYBODY}, None),
    ("BUILD_SHARED_LIBS", sets("ON", "BUILD_SHARED_LIBS"), {}, static),
    ("SKIP_INSTALL_RULES", sets("ON", "CMAKE_SKIP_INSTALL_RULES", "KILN_INSTALL"), {}, not_installed),
    ("FIND_ROOT_PATH_MODE_*", sets("ONLY", "CMAKE_FIND_ROOT_PATH_MODE_PROGRAM") + sets("/nowhere", "CMAKE_FIND_ROOT_PATH") +
     sets("ON", "WITH_CUDA") + sets("${CMAKE_SOURCE_DIR}/bin:$ENV{PATH}", "ENV{PATH}"), {}, of_this_machine),
    ("-fshort-enums in C_FLAGS", SHORT_ENUMS, {" -fshort-enums ": EVERYBODY}, None),
    ("add_definitions, include_directories, link_libraries",
     "add_definitions(-DPARENTS)\ninclude_directories(parents)\nadd_library(parents STATIC beside.c)\nlink_libraries(parents)\n",
     {" -DPARENTS ": {"app", "minimal"}, "/parents": {"app", "minimal"}}, unlinked),
    ("-std=c99 of add_compile_options", "add_compile_options(-std=c99 -pedantic-errors)\n", {" -std=gnu11 ": KILN}, None),
    ("-Werror in C_FLAGS", flags("-Werror"), {" -Werror ": EVERYBODY, " -Wno-error ": KILN}, None),
    ("-ffast-math, -Ofast in C_FLAGS", flags("-ffast-math"), {" -ffast-math ": EVERYBODY, " -fno-fast-math ": KILN}, None))


def parent_variables(scratch):
    """With kiln as a subfolder, each setting affects the listed targets. The bundle still works and has the same bytes."""
    page = (SOURCE_DIR / "tools/cmake/README.md").read_text().partition("\n## What your project sets\n")[2].partition("\n## ")[0]
    documented = [row.replace("`", "") for row in re.findall(r"^\| (`.*?) \|", page, re.M)]
    expect(documented == [row[0] for row in ROWS], f"the README's table has {documented}")
    folder = guest(scratch, *SUBFOLDER)
    first = None
    for name, settings, words, look in (("nothing", "", {" -flto": set(), " -std=gnu11 ": KILN}, names), *ROWS):
        print(f"with {name}")
        shutil.rmtree(folder / "out", ignore_errors=True)
        for old in (folder / "build/kiln/cmake_install.cmake", folder / "build/minimal_pack.so"):
            old.unlink(missing_ok=True)
        (folder / "settings.cmake").write_text(settings)
        build(folder, "guest")
        made = Made(folder)
        for text, who in words.items():
            expect(made.having(text) == who, f"'{text}' is in the commands of {made.having(text)}")
        if look:
            look(made)
        shown(made)
        app = "out/app" if "OUTPUT" in name else "build/app"
        expect(run(folder / app, driver()) == RESULT, "the program runs")
        expect(calls_from_python(folder / "build"), "Python calls the bundle")
        files = [(folder / "build" / file).read_bytes() for file in BUNDLE]
        first = first or files
        expect(files == first, "the bundle has other bytes")


def short_enums(scratch):
    """The project has -fshort-enums, the installed kiln does not: enumerations have the same size, and the program runs."""
    folder = guest(scratch, settings=SHORT_ENUMS)
    build(folder, "app")
    runs(folder)
    include = PREFIX / "include"
    every = sorted((include / "kiln").rglob("*.h"))
    for compiler, suffix, check, headers in (
            ("cc", "c", "_Static_assert", every),
            ("c++", "cc", "static_assert", [header for header in every if header.name in ("status.h", "kiln.h", "reference.h")])):
        names = [name for header in headers for name in re.findall(r"^typedef enum .*?\} ?(\w+);", header.read_text(), re.M | re.S)]
        expect({"kiln_status", "kiln_fit", "kiln_fill_kind"} <= set(names), f"enumerations: {names}")
        source = folder / f"sizes.{suffix}"
        source.write_text("".join(f"#include <{header.relative_to(include)}>\n" for header in headers) +
                          "".join(f'{check}(sizeof({name}) == sizeof(int), "{name} has the size of int");\n' for name in names))
        run(compiler, "-fshort-enums", "-fsyntax-only", f"-I{include}", source)


def root_path(scratch):
    """FIND_ROOT_PATH_MODE_LIBRARY and _PACKAGE decide where libraries and packages are found; check.py tests headers."""
    packages = sets("ONLY", "CMAKE_FIND_ROOT_PATH_MODE_PACKAGE")
    folder = guest(scratch, settings=packages + sets(f'"{PREFIX}"', "CMAKE_FIND_ROOT_PATH"))
    shutil.rmtree(folder / "build")
    (folder / "settings.cmake").write_text(packages + sets("/nowhere", "CMAKE_FIND_ROOT_PATH"))
    output = configure(folder, fails=True)
    expect('provided by "kiln"' in output, f"a package outside the root: {output}")
    (folder / "settings.cmake").write_text(sets("ONLY", "CMAKE_FIND_ROOT_PATH_MODE_LIBRARY") + sets("/nowhere", "CMAKE_FIND_ROOT_PATH"))
    output = " ".join(configure(folder, *SUBFOLDER, fails=True).split())
    expect("kiln needs fyaml, which is not installed" in output, f"a library outside the root: {output}")


def old_policies(scratch):
    """A project with CMake 3.0's policies: kiln's functions keep their own."""
    folder = guest(scratch, "-DCMAKE_POLICY_VERSION_MINIMUM=3.5", "-Wno-deprecated", policies="3.0", settings=flags("-fvisibility=hidden") +
                   sets("ON", "WITH_CUDA") + sets("${CMAKE_SOURCE_DIR}/bin:$ENV{PATH}", "ENV{PATH}"))
    build(folder, "guest")
    shown(Made(folder))
    runs(folder)


def exported_from_build(scratch):
    """A parent with kiln as a subfolder exports a bundle from its build folder, and installs a component `runtime` of its own."""
    folder = guest(scratch, *SUBFOLDER, "-DKILN_INSTALL=ON", "-DKILN_TOOLS=OFF")
    lists = folder / "CMakeLists.txt"
    lists.write_text(lists.read_text() + "export(TARGETS minimal NAMESPACE guest:: FILE guest.cmake)\ninstall(TARGETS app COMPONENT runtime)\n")
    build(folder, "guest")
    run(CMAKE, "--install", folder / "build", "--prefix", folder / "prefix", "--component", "runtime")
    expect([file.name for file in (folder / "prefix").rglob("*") if file.is_file()] == ["app"], "what the component has")
    user = project(scratch, "minimal")
    (user / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.22)\nproject(user LANGUAGES C)\n"
                                         f'include("{folder}/build/kiln/kilnTargets.cmake")\ninclude("{folder}/build/guest.cmake")\n'
                                         "add_executable(app app.c)\ntarget_link_libraries(app PRIVATE guest::minimal)\n")
    configure(user)
    build(user)
    runs(user)


def emulated_generator(scratch):
    """A cross build builds the generator and runs it with CMAKE_CROSSCOMPILING_EMULATOR."""
    folder = guest(scratch, f"-DKILN_SOURCE_DIR={SOURCE_DIR}", "-DKILN_GENERATOR=ON", "-DCMAKE_SYSTEM_NAME=Linux",
                   "-DCMAKE_CROSSCOMPILING_EMULATOR=/usr/bin/env;EMULATED=1")
    command = run("ninja", "-C", folder / "build", "-t", "commands", "minimal.c")
    expect(f"/usr/bin/env EMULATED=1 {folder}/build/kiln/bin/kiln generate " in command.replace('"', ""), f"the generator's command: {command}")


# ---- several kilns, several configurations --------------------------------------------------------------------------


def two_kilns(scratch):
    """A subfolder and find_package, in either order, and two subfolders share one kiln. Two different kilns are an error."""
    library, folder = project(scratch, "reexport/library", "kernels.yaml"), project(scratch, "reexport/app", "app.c")
    configure(library)
    build(library)
    run(CMAKE, "--install", library / "build", "--prefix", scratch / "shipped")
    copies = []
    for copy in ("a copy", "newer", "of another layout"):  # only the files that state its version
        copies.append(scratch / copy)
        shutil.copytree(SOURCE_DIR / "include", copies[-1] / "include")
        shutil.copytree(SOURCE_DIR / "tools/cmake", copies[-1] / "tools/cmake")
        shutil.copy(SOURCE_DIR / "CMakeLists.txt", copies[-1])
    for copy, header, name in ((copies[1], "kiln.h", "KILN_VERSION_PATCH"), (copies[2], "bundle.h", "KILN_LAYOUT_VERSION")):
        file = copy / "include/kiln" / header
        file.write_text(re.sub(rf"(#define {name} +)\d+", r"\g<1>99", file.read_text()))
    version = re.search(r"kiln (\S+)", run(GENERATOR, "--version"))[1]
    layout = re.search(r"KILN_LAYOUT_VERSION (\d+)", (SOURCE_DIR / "include/kiln/bundle.h").read_text())[1]
    package = next(PREFIX.rglob("kilnConfig.cmake")).parent
    kiln, other = (f'add_subdirectory("{source}" {name})\n' for source, name in ((SOURCE_DIR, "kiln"), (copies[0], "other")))
    again = kiln.replace(" kiln)", " again)")
    shipped, found = "find_package(quantizers REQUIRED)\n", "find_package(kiln REQUIRED)\n"
    app = "add_executable(app app.c)\ntarget_link_libraries(app PRIVATE quantizers::minimal)\n"
    own = "kiln_add_bundle(own CONFIG own.yaml VERIFY)\n"
    (folder / "own.yaml").write_text((HERE / "minimal/kernels.yaml").read_text().replace("minimal", "own"))

    def configured(text, error="", **keywords):
        shutil.rmtree(folder / "build", ignore_errors=True)
        (folder / "CMakeLists.txt").write_text(f"cmake_minimum_required(VERSION 3.22)\nproject(app LANGUAGES C)\n{text}")
        output = configure(folder, f"-DCMAKE_PREFIX_PATH={PREFIX};{scratch}/shipped", "-DCMAKE_BUILD_TYPE=Debug",
                           "-DKILN_GENERATOR=OFF", f"-DKILN_HOST_EXECUTABLE={GENERATOR}", fails=bool(error), **keywords)
        expect(" ".join(error.split()) in " ".join(output.split()), f"{text}:\nexpected '{error}' in:\n{output}")
        return output
    for text in (kiln + shipped, shipped + kiln, kiln + found + shipped + other + again):
        configured(text + app + own.replace(" VERIFY", ""))
        build(folder, "app")
        runs(folder)
    configured(found + kiln + shipped + app + own)  # the first configuration has the tools
    output = configured(kiln + "find_package(kiln REQUIRED COMPONENTS generator tools)\n",
                        f"component tools: this build uses the kiln in {SOURCE_DIR}: configure that one with -DKILN_TOOLS=ON")
    expect("component generator" not in output, f"a generator is named: {output}")
    for copy, a, b in ((copies[1], version.rsplit(".", 1)[0] + ".99", layout), (copies[2], version, "99")):
        newer = f'add_subdirectory("{copy}" newer)\n'
        here, there = f"{version} of layout {layout}", f"{a} of layout {b} in {copy}"
        differ = "one build has two kilns that differ: "
        configured(kiln + newer, f"{differ}{here} in {SOURCE_DIR}, and {there}. Leave one out, or make both the same")
        configured(found + newer, f"{differ}{here} in {package}, and {there}.")
    text = (package / "kilnConfig.cmake").read_text()
    shutil.copytree(PREFIX, scratch / "old prefix")
    old = scratch / "old prefix" / package.relative_to(PREFIX)
    (old / "kilnConfig.cmake").write_text(text.replace(f" {version} {layout} ", f" {version} 1 "))
    configured(kiln + f'set(kiln_DIR "{old}")\n' + shipped, f"one build has two kilns that differ: {version} of layout {layout} in {SOURCE_DIR}, "
               f"and {version} of layout 1 in {old}. Leave one out, or make both the same")


def multi_config(scratch):
    """Each configuration has Python's library, the manifest and kiln.py in one folder, even if the parent sets a folder for one of them."""
    folder = guest(scratch, generator="Ninja Multi-Config", settings=sets("${CMAKE_SOURCE_DIR}/out", "CMAKE_LIBRARY_OUTPUT_DIRECTORY_DEBUG"))
    for name in ("Debug", "Release"):
        run(CMAKE, "--build", folder / "build", "--config", name)
        expect(run(folder / "build" / name / "app", driver()) == RESULT, f"{name} runs")
        expect(calls_from_python(folder / "build" / name), f"Python calls {name}")
    config = folder / "kernels.yaml"
    config.write_text(config.read_text() + "  - family: nf4_unpack\n")
    run(CMAKE, "--build", folder / "build", "--config", "Release")
    manifests = {name: (folder / "build" / name / "minimal.json").read_bytes() for name in ("Debug", "Release", ".")}
    expect(manifests["Release"] == manifests["."] != manifests["Debug"], "a new manifest comes with its library")
    expect([file.name for file in (folder / "out").iterdir()] == ["minimal_pack.so"], "the pack is in the parent's folder")


def deleted(scratch, tool, generator):
    """A deleted generated file is made again, and unchanged files are not compiled again."""
    need(tool)
    folder = guest(scratch, generator=generator)
    build(folder)
    for name in BUNDLE:
        time.sleep(0.02)  # file times have a coarse resolution
        text = (folder / "build" / name).read_bytes()
        (folder / "build" / name).unlink()
        output = build(folder)
        expect("Generating the kernels of minimal" in output, f"{name} is generated: {output}")
        expect((folder / "build" / name).read_bytes() == text, f"{name} is unchanged")
        compiled = set(re.findall(r"Building C object \S+/(\w+[.]c)[.]o", output))
        expect(compiled <= ({"app.c", "minimal.c", "minimal_1.c", "minimal_2.c"} if name == "minimal.h" else {name}), f"{name}: {compiled}")
        output = build(folder)
        expect("Generating" not in output and "Building" not in output, f"a build after {name} does nothing: {output}")


def deleted_ninja(scratch):
    deleted(scratch, "ninja", "Ninja")


def deleted_make(scratch):
    deleted(scratch, "make", "Unix Makefiles")


# ---- CUDA sources in two folders ------------------------------------------------------------------------------------

NAMES = """// names that nvcc derives from the source's path
namespace {
__device__ int table[4] = {1, 2, 3, 4};
__device__ __noinline__ int pick(int i) { return table[i & 3]; }
}
static __device__ __noinline__ int twice(int i) { return 2 * i; }
extern "C" __global__ void NAME(int *y, int n)
{
    int i = threadIdx.x;
    if (i < n)
        atomicAdd(y + i, pick(i) + twice(i)); // inlined: -lineinfo has the name of a static function
}
"""
CUDA = """kiln_add_ptx(sources SOURCES first.cu "sub folder/second.cu" ${KILN_SOURCE}/third.cu ARCHS 80 OPTIONS ${OPTIONS})
kiln_add_bundle(kernels CONFIG kernels.yaml PTX sources)
"""


def cuda_folders(scratch):
    """The PTX is the same in two folders, including names derived from the path, with and without -lineinfo and -rdc."""
    need("nvcc")
    bytes_of = []
    for place in ("one", "another place"):
        folder = scratch / place
        for name in ("first", "sub folder/second", "outside/third"):
            file = folder / "project" / f"{name}.cu" if "outside" not in name else folder / f"{name}.cu"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(NAMES.replace("NAME", pathlib.Path(name).name))
        (folder / "project/CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.22)\nproject(cuda LANGUAGES C)\n"
                                                       f"find_package(kiln REQUIRED)\n{CUDA}")
        (folder / "project/kernels.yaml").write_text("bundle: kernels\ntargets: [sm_80]\nkernels:\n  - ptx: sources\n")
        made = []
        for options in ("-O3", "-lineinfo", "-rdc=true"):
            configure(folder / "project", f"-DOPTIONS={options}", f"-DKILN_SOURCE={folder}/outside")
            build(folder / "project", "kernels")
            made += [file.read_text() for name in ("sources/*.ptx", "kernels.[ch]", "kernels.json")
                     for file in sorted((folder / "project/build").glob(name))]
        bytes_of.append(made)
    expect(len(bytes_of[0]) == 18 and any("_INTERNAL_" in text for text in bytes_of[0]), "nvcc makes such names")
    expect(bytes_of[0] == bytes_of[1], "the bytes differ from folder to folder")

    strict = scratch / "nvcc"
    strict.write_text("#!/bin/sh\ncase \"$*\" in *orig_src_path_name*) exit 1;; esac\n")
    strict.chmod(0o755)
    folder = scratch / "one/project"
    (folder / "CMakeLists.txt").write_text((folder / "CMakeLists.txt").read_text().replace("ARCHS", "COMPILER ${COMPILER} ARCHS"))
    output = configure(folder, f"-DCOMPILER={strict}")
    expect(output.count(f"kiln_add_ptx: {strict} hashes the folder of a source into the names") == 1, f"an nvcc without it: {output}")
    expect("-Xcicc" not in (folder / "build/build.ninja").read_text(), "and the option is not passed")


if __name__ == "__main__":
    main((parent_variables, short_enums, root_path, old_policies, exported_from_build, emulated_generator, two_kilns, multi_config, deleted_ninja, deleted_make, cuda_folders), sys.argv[4])
