"""A Conan 2 recipe of kiln, from its source archive: KILN_ARCHIVE=/path/kiln-VERSION.tar.gz conan create tools/cmake/conan

The archive becomes part of the recipe, so another archive makes another revision. The package finds kiln's own kilnConfig.cmake:
find_package(kiln) gives kiln_add_bundle, as everywhere.
"""
import os
import re
import shutil

from conan import ConanFile
from conan.errors import ConanException
from conan.tools.build import cross_building
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import unzip
from conan.tools.system.package_manager import Apt


class Kiln(ConanFile):
    name = "kiln"
    license = "MIT"
    description = "GPU kernels generated at build time: a generator of PTX in C, and a small runtime"
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"tools": [True, False],  # the emulated driver, kiln-verify and kiln-profile
               "zstd": [True, False]}   # compressed images
    default_options = {"tools": False, "zstd": False}
    languages = "C"

    def set_version(self):
        """The version in the archive's name."""
        self.version = self.version or self._archive_match()[1]

    def export_sources(self):
        shutil.copy(self._archive_match()[0], os.path.join(self.export_sources_folder, "kiln.tar.gz"))

    @staticmethod
    def _archive_match():
        archive = os.environ.get("KILN_ARCHIVE", "")
        match = re.fullmatch(r".*?kiln-(\d[\w.]*)\.tar\.gz", archive)
        if not match or not os.path.isfile(archive):
            raise ConanException(f"expected the path of a file kiln-VERSION.tar.gz in KILN_ARCHIVE, found '{archive}'")
        return match

    def layout(self):
        cmake_layout(self)

    def system_requirements(self):
        needs = ["libxxhash-dev"]
        if not cross_building(self):
            needs.append("libfyaml-dev")  # the generator
        if self.options.zstd:
            needs.append("libzstd-dev")
        Apt(self).install(needs, check=True)

    def source(self):
        unzip(self, "kiln.tar.gz", strip_root=True)  # the archive that export_sources put here

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["KILN_TESTS"] = False
        toolchain.cache_variables["KILN_TOOLS"] = bool(self.options.tools)
        toolchain.cache_variables["KILN_ZSTD"] = bool(self.options.zstd)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")  # kiln's own configuration has its functions too
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "kiln")]
        self.cpp_info.libs = ["kiln_runtime"]
        self.cpp_info.system_libs = ["dl"]
