#!/usr/bin/env python3
"""Tests projects that call a bundle from another framework, and packages of kiln. They use the kiln that installed.py installs.

usage: frameworks.py CMAKE BUILD_DIR PREFIX VERB
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

from common import HERE, RESULT, expect, main, need, run, skip
from installed import CMAKE, GENERATOR, PREFIX, SOURCE_DIR, build, configure, driver, project


def need_header(header, variable, default="/usr"):
    """Skips the test if the header is neither in the folder that the variable names nor in the default folder."""
    roots = os.environ.get(variable, default), "/usr"
    if not any(list(pathlib.Path(root, "include").glob(pattern)) for root in roots for pattern in (header, f"*-linux-gnu/{header}")):
        skip(f"there is no {header}: {variable}=FOLDER names the folder that has include/{header}")


def launched(report):
    """The kernels that the emulated driver ran."""
    return {json.loads(line)["kernel"] for line in report.read_text().splitlines()}


def tensorrt_plugin(scratch):
    """The plugin compiles against TensorRT's headers, and its methods run on the emulated driver without TensorRT."""
    need("c++")
    need_header("NvInfer.h", "TENSORRT_ROOT")
    need_header("cuda_runtime_api.h", "CUDA_PATH", "/usr/local/cuda")
    folder = project(scratch, "tensorrt_plugin")
    configure(folder)
    build(folder)
    plugin, report = folder / "build/nf4_linear_plugin.so", folder / "report"
    output = run("env", f"LD_LIBRARY_PATH={driver().parent}", "KILN_EMU_CHECK=all", f"KILN_EMU_REPORT={report}", folder / "build/app", plugin)
    expect(output == "Nf4Linear: 16 calls of enqueue in 2 contexts, the largest error is in bounds\n", f"the program says: {output}")
    expect(launched(report) == {"nf4_gemm_f16_f32_low_mma_8_32_8_compact_2_4"}, f"what ran, with a workspace: {launched(report)}")
    shown = {line.split()[-1] for line in run("nm", "-D", "--defined-only", plugin).splitlines()}
    expect({"getCreators", "setLoggerFinder"} <= shown and not [name for name in shown if name.startswith(("kiln_", "layers_"))],
           f"what the plugin shows: {shown}")


def need_modules(*modules):
    for module in modules:
        if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False).returncode != 0:
            skip(f"{sys.executable} has no module {module}")


def onnxruntime_op(scratch):
    """The operator runs in ONNX Runtime's CPU provider and agrees with NumPy."""
    need("c++")
    need_header("onnxruntime_c_api.h", "ONNXRUNTIME_ROOT")
    need_modules("numpy", "onnx", "onnxruntime")
    folder = project(scratch, "onnxruntime_op")
    configure(folder)
    build(folder)
    operators, report = folder / "build/nf4_operators.so", folder / "report"
    output = run("env", f"LD_LIBRARY_PATH={driver().parent}", "KILN_EMU_CHECK=all", f"KILN_EMU_REPORT={report}",
                 sys.executable, folder / "run.py", operators)
    expect(output == "Nf4MatMul on CPUExecutionProvider: in bounds\n", f"the model says: {output}")
    expect(launched(report) == {"nf4_gemm_f16_f32_low_mma_8_32_8_compact_2_1"}, f"what ran: {launched(report)}")
    shown = [line.split()[-1] for line in run("nm", "-D", "--defined-only", operators).splitlines()]
    expect([name for name in shown if not name.startswith("_Z")] == ["RegisterCustomOps"], f"what the library shows: {shown}")


def pytorch_op(scratch):
    """The operator and its gradient run on CPU tensors and agree with PyTorch's product in float64."""
    need("c++")
    need_modules("torch")
    folder = project(scratch, "pytorch_op")
    configure(folder, f"-DPython3_EXECUTABLE={sys.executable}")
    build(folder)
    report = folder / "report"
    output = run("env", f"LD_LIBRARY_PATH={driver().parent}", "KILN_EMU_CHECK=all", f"KILN_EMU_REPORT={report}",
                 sys.executable, folder / "run.py", folder / "build/nf4_ops.so")
    expect(output.endswith("nf4::linear and its gradient on cpu: in bounds\n"), f"the program says: {output}")
    expect(launched(report) == {"nf4_quantize_f32_64_low", *(f"nf4_gemm_{kind}" for kind in (
        "f16_f32_low_mma_8_32_8_compact_2_4", "bf16_f32_low_mma_8_32_8_compact_2_4",
        "transposed_f16_f32_low_mma_8_8_8_8_compact_any", "transposed_bf16_f32_low_mma_8_8_8_8_compact_any"))},
        f"what ran: {launched(report)}")


def colcon(scratch):
    """A ROS 2 workspace: one package makes a bundle, another one uses its library."""
    need("colcon")
    path = f"/usr/bin:{os.environ['PATH']}"  # Debian's Python has ament
    if "--cmake-args" not in run("colcon", "build", "--help"):
        skip("colcon lacks its extension for CMake (Debian: python3-colcon-cmake, python3-colcon-ros)")
    if not pathlib.Path("/usr/share/ament_cmake").exists():
        skip("there is no ament_cmake (Debian: ament-cmake)")
    workspace = scratch / "workspace"
    shutil.copytree(HERE / "colcon", workspace / "src")
    shutil.copy(HERE / "minimal/kernels.yaml", workspace / "src/robot_kernels")
    shutil.copy(HERE / "minimal/app.c", workspace / "src/robot_app")
    run("env", f"PATH={path}", f"CMAKE_PREFIX_PATH={PREFIX}", "colcon", "build", cwd=workspace)
    expect((workspace / "install/robot_kernels/include/minimal.h").exists(), "robot_kernels exports the header")
    output = run(workspace / "install/robot_app/lib/robot_app/app", driver())
    expect(output == RESULT, f"the program says: {output}")
    with tarfile.open(source_archive(scratch)) as kiln:
        kiln.extractall(workspace / "src")
    run("env", f"PATH={path}", "colcon", "build", "--packages-skip-regex", ".*", cwd=workspace)  # kiln has no dependencies


def source_archive(folder):
    """Returns the path of kiln-VERSION.tar.gz, which the target `packages` makes."""
    sys.path.insert(0, str(SOURCE_DIR / "tools/cmake"))
    import packages as release
    version = run(GENERATOR, "--version").split()[1]
    archive = folder / f"kiln-{version}.tar.gz"
    archive.write_bytes(release.source_archive(SOURCE_DIR, f"kiln-{version}", 0))
    return archive


def conan(scratch):
    """Conan packages the source archive without a remote, and its test package runs."""
    need("conan", "c++")
    recipe = scratch / "recipe"
    shutil.copytree(SOURCE_DIR / "tools/cmake/conan", recipe)  # Conan builds the test package beside it
    environment = {**os.environ, "CONAN_HOME": str(scratch / "home"), "KILN_ARCHIVE": str(source_archive(scratch)),
                   "KILN_DRIVER": str(driver())}
    if shutil.which("ccache"):
        environment |= {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": str(scratch), "CCACHE_NOHASHDIR": "1"}
    run("conan", "profile", "detect", env=environment)
    run("conan", "remote", "disable", "*", env=environment)
    output = run("conan", "create", recipe, env=environment)
    expect("\nsuccess, scale 8\n" in output, f"the test package runs: {output}")
    wrong = run("conan", "create", recipe, env={**environment, "KILN_ARCHIVE": "/nowhere/kiln-1.tar.gz"}, fails=True)
    expect("expected the path of a file kiln-VERSION.tar.gz in KILN_ARCHIVE, found '/nowhere/kiln-1.tar.gz'" in wrong, f"conan says: {wrong}")


def vcpkg(scratch):
    """vcpkg builds its port from the source archive, and a project finds the installed kiln."""
    need("vcpkg", "patchelf")  # vcpkg would download patchelf
    if not os.environ.get("VCPKG_ROOT"):
        skip("VCPKG_ROOT names no folder of vcpkg")
    ports = scratch / "ports"
    shutil.copytree(SOURCE_DIR / "tools/cmake/vcpkg", ports)
    shutil.copy(source_archive(scratch), ports / "kiln")
    (ports / "xxhash").mkdir()  # the system's tools, so that vcpkg downloads nothing
    (ports / "xxhash/vcpkg.json").write_text('{ "name": "xxhash", "version": "0" }')
    (ports / "xxhash/portfile.cmake").write_text("set(VCPKG_POLICY_EMPTY_PACKAGE enabled)\n")
    folders = [f"--x-{name}-root={scratch / name}" for name in ("buildtrees", "packages", "install")]
    output = run("env", "VCPKG_FORCE_SYSTEM_BINARIES=1", "vcpkg", "install", "kiln", "--classic", f"--overlay-ports={ports}", *folders,
                 "--binarysource=clear", "--downloads-root", scratch / "downloads")
    expect("warning:" not in output, f"vcpkg's checks of the package find nothing: {output}")
    folder = project(scratch, "find_package", "app.c", "kernels.yaml")
    lists = folder / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace(" GENERATOR ${GENERATOR} VERIFY", ""))
    prefix = next((scratch / "install").glob("*/share/kiln")).parents[1]
    run(CMAKE, "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
    build(folder)
    output = run(folder / "build/app", driver())
    expect(output == RESULT, f"the program says: {output}")


main((tensorrt_plugin, onnxruntime_op, pytorch_op, colcon, conan, vcpkg), sys.argv[4])
