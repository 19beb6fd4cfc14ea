"""Builds a program with a bundle, and runs it on the driver KILN_DRIVER, or on the package's emulated driver."""
import glob
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class TestKiln(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        package = self.dependencies["kiln"].package_folder
        drivers = [os.environ["KILN_DRIVER"]] if "KILN_DRIVER" in os.environ else \
            glob.glob(os.path.join(package, "lib*", "kiln", "emulator", "libcuda.so.1"))
        if drivers and can_run(self):
            self.run(f'"{os.path.join(self.cpp.build.bindir, "app")}" "{drivers[0]}"')
