#!/usr/bin/env python3
"""Tests the packages of a release: their files, identical bytes from another folder, and tests in the source archive.

usage: release.py CMAKE BUILD_DIR FOLDER VERB

The verb `packages` makes the packages twice in FOLDER: from this source folder, and from the source archive in another
environment. `archive` runs quick tests in the unpacked archive. Neither build is optimised, which saves minutes.
"""
import os
import pathlib
import re
import shutil
import sys

from common import HERE, expect, main, need, run

CMAKE, BUILD_DIR, FOLDER = sys.argv[1], *(pathlib.Path(a).resolve() for a in sys.argv[2:4])
SOURCE_DIR = HERE.parent.parent
CACHE = dict(re.findall(r"^(\w+):\w+=(.*)$", (BUILD_DIR / "CMakeCache.txt").read_text(), re.M))
VERSION = CACHE["CMAKE_PROJECT_VERSION"]
NAME = f"kiln-{VERSION}"
BUILD, OTHER_BUILD = FOLDER / "build", FOLDER / "another build"
OPTIONS = ("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", *(f"-D{name}={CACHE[name]}" for name in
           ("CMAKE_C_COMPILER", "CMAKE_C_FLAGS", "KILN_TOOLS", "KILN_ZSTD")))
QUICK = r"^(config|house|readme|sbom)\."


def elsewhere(*command):
    """Runs a command in another environment: without git's folder, with another time zone, locale and umask."""
    other = {**os.environ, "GIT_DIR": "/nowhere", "TZ": "Pacific/Kiritimati", "LC_ALL": "C.UTF-8"}
    return run("sh", "-c", 'umask 077; exec "$@"', "sh", *command, env=other)


def contents(made, scratch):
    """The binary archive has all installed files, each Debian package has its part, and the programs run in place."""
    shutil.unpack_archive(next(made.glob(f"{NAME}-*.tar.gz")), scratch / "archive")
    root = next((scratch / "archive").iterdir())
    files = {p.relative_to(root).as_posix() for p in root.rglob("*") if not p.is_dir()}
    expect(run(root / "bin/kiln", "--version") == f"kiln {VERSION}\n", "the archive's kiln runs")
    found = {}
    for package in made.glob("*.deb"):
        name = run("dpkg-deb", "-f", package, "Package").strip()
        rows = [line.split() for line in run("dpkg-deb", "-c", package).splitlines()]
        found[name] = {row[5].removeprefix("./usr/") for row in rows if not row[0].startswith("d")}
        regular = [row for row in rows if row[0].startswith("-")]
        expect({row[1] for row in rows} == {"root/root"}, f"{package.name}: all is root's")
        run("dpkg-deb", "-R", package, scratch / name)
        sums = (scratch / name / "DEBIAN/md5sums").read_text().splitlines()
        expect(len(sums) == len(regular) and sums == sorted(sums, key=lambda line: line[34:]), f"{package.name}: sums of all files")
        run("md5sum", "--check", "--quiet", "DEBIAN/md5sums", cwd=scratch / name)
    expect(sorted(found) == ["kiln", "kiln-tools", "libkiln-dev"], f"the packages: {sorted(found)}")
    expect(set().union(*found.values()) == files and sum(map(len, found.values())) == len(files),
           f"each file is in one package: {files ^ set().union(*found.values())}")
    for name, file in (("libkiln-dev", "include/kiln/kiln.h"), ("kiln", "bin/kiln"), ("kiln-tools", "bin/kiln-verify"),
                       ("libkiln-dev", "share/doc/kiln/LICENSE"), ("libkiln-dev", "share/doc/kiln/NOTICES")):
        expect(file in found.get(name, ()), f"{name} has {file}")


def packages(scratch):
    need("dpkg-deb", "dpkg-shlibdeps")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    made, made_again = BUILD / "packages", OTHER_BUILD / "packages"
    run(CMAKE, "-S", SOURCE_DIR, "-B", BUILD, *OPTIONS, "-DKILN_TESTS=OFF")
    run(CMAKE, "--build", BUILD, "--target", "packages")
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=made)
    expected = sorted(file.name for file in made.iterdir())
    expect(len(expected) == 6 and f"{NAME}.tar.gz" in expected and "SHA256SUMS" in expected, f"the packages: {expected}")

    elsewhere("tar", "-xzf", made / f"{NAME}.tar.gz", "-C", FOLDER)
    elsewhere(CMAKE, "-S", FOLDER / NAME, "-B", OTHER_BUILD, *OPTIONS)
    elsewhere(CMAKE, "--build", OTHER_BUILD, "--target", "packages")
    expect(sorted(file.name for file in made_again.iterdir()) == expected, "the same packages again")
    for name in expected:
        expect((made / name).read_bytes() == (made_again / name).read_bytes(), f"{name} has the same bytes from another folder")
    contents(made, scratch)


def archive(_scratch):
    elsewhere(CMAKE, "--build", OTHER_BUILD, "--target", "tests/config/all")
    ctest = pathlib.Path(CMAKE).with_name("ctest")
    output = elsewhere(ctest, "--test-dir", OTHER_BUILD, "-R", QUICK, "-LE", "^(slow|full)$", "--no-tests=error")
    expect("100% tests passed" in output, output)


main((packages, archive), sys.argv[4])
