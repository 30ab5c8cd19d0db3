# SPDX-License-Identifier: Apache-2.0
"""Recipe for Conan 2: conan create packaging/conan

It builds the tree that it lies in, and takes the version from its CMakeLists.txt.
"""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

required_conan_version = ">=2.0"


class TidegateRecipe(ConanFile):
    name = "tidegate"
    description = "C++23 libraries for Structured Fields, RateLimit, Idempotency-Key and SCIM"
    license = "Apache-2.0"
    topics = ("http", "rate-limit", "idempotency", "structured-fields", "scim")
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"scim": [True, False], "client": [True, False]}
    default_options = {"scim": False, "client": False}

    def _source_tree(self):
        return os.path.normpath(os.path.join(self.recipe_folder, "..", ".."))

    def set_version(self):
        text = load(self, os.path.join(self._source_tree(), "CMakeLists.txt"))
        self.version = re.search(r"^project\(tidegate VERSION ([0-9.]+) ", text, re.M).group(1)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "libs/*", "packaging/tidegate-module.pc.in"):
            copy(self, pattern, self._source_tree(), self.export_sources_folder)

    def configure(self):
        if self.options.client:
            self.options.scim = True

    def requirements(self):
        if self.options.scim:
            self.requires("openssl/[>=3 <4]")
        if self.options.client:
            self.requires("libcurl/[>=7.88 <9]")

    def validate(self):
        check_min_cppstd(self, 23)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        # The modules that these need are added by the build.
        modules = ["ratelimit", "idempotency", "explain"]
        modules += [module for module in ("scim", "client") if self.options.get_safe(module)]
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["TIDEGATE_MODULES"] = ";".join(modules)
        toolchain.cache_variables["TIDEGATE_APPS"] = "OFF"
        toolchain.cache_variables["TIDEGATE_TESTS"] = "OFF"
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        rmdir(self, os.path.join(self.package_folder, "share"))

    def package_info(self):
        # find_package() gets the package that the build installs, with its components.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "tidegate"))
