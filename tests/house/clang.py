#!/usr/bin/env python3
"""Runs clang-format and clang-tidy on our C files, with .clang-format and .clang-tidy at the root.

usage: clang.py format ROOT | clang.py tidy ROOT BUILD [--full]

format names the source files with another layout. tidy checks files that differ from the last release: the newest few, or with
--full all that this build compiles. A clone of one commit or a source archive has no history, so tidy checks the runtime there.
A finding that tidy_known.txt lacks is an error, and so is a listed finding that no longer occurs.
"""
import concurrent.futures
import json
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/cmake"))
from packages import source_files  # noqa: E402

VERSION = 14  # other versions format some files differently, and find other things
NEWEST = 4    # files that tidy checks without --full: up to 6 s each
NOT_OURS = re.compile(r"generated/|tests/data/")
FINDING = re.compile(r"(?:error|warning): .*\[([\w.-]+)(?:,[^]]*)?\]$", re.M)
SKIPPED = 77


def skip(why):
    print("SKIPPED:", why)
    sys.exit(SKIPPED)


def tool(name):
    """Returns the program of the required version."""
    for program in (f"{name}-{VERSION}", name):
        if shutil.which(program):
            said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            if re.search(rf"version {VERSION}\.", said):
                return program
    skip(f"{name} {VERSION} is not installed (Debian: {name}-{VERSION})")


def git(root, *arguments):
    done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        skip(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def c_files(root):
    return [file for file in source_files(root) if file.endswith(".c")]


def ours(files):
    return [file for file in files if not NOT_OURS.match(file)]


def check_format(root):
    program, files = tool("clang-format"), ours(file for file in source_files(root) if file.endswith((".c", ".h")))
    done = subprocess.run([program, "--dry-run", "--Werror", *files], cwd=root, capture_output=True, text=True)
    differ = sorted(set(re.findall(r"^(\S+):\d+:\d+: error: code should be clang-formatted", done.stderr, re.M)))
    print(*differ, sep="\n")
    print(f"{len(files)} files, {len(differ)} of them not as clang-format lays them out: clang-format -i FILE")
    return done.returncode != 0


def known_findings(root):
    """Returns file -> its checks, from lines FILE CHECK..."""
    lines = (pathlib.Path(root) / "tests/house/tidy_known.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {file: set(checks) for file, *checks in rows}


def changed(root):
    """Returns the C files that differ from the last release, newest first; how many to check; and a description of them."""
    runtime = [file for file in c_files(root) if file.startswith("runtime/")]
    if not (pathlib.Path(root) / ".git").exists():
        return runtime, None, "of the runtime"
    files = git(root, "diff", "--name-only", "HEAD", "--", "*.c")
    if len(git(root, "rev-list", "--max-count=2", "HEAD")) == 1:
        return files + runtime, None, "of the runtime, or changed since the only commit"
    tags = git(root, "tag", "--merged", "HEAD", "--sort=-creatordate", "--list", "v*")
    commits, since = (f"{tags[0]}..HEAD", f"since {tags[0]}") if tags else ("HEAD", "ever, as there is no release")
    files += git(root, "log", "--format=", "--name-only", commits, "--", "*.c")
    return files, NEWEST, "changed " + since


def check_tidy(root, build, full):
    program, database = tool("clang-tidy"), pathlib.Path(build) / "compile_commands.json"
    if not database.exists():
        skip(f"no {database}: CMake writes it with CMAKE_EXPORT_COMPILE_COMMANDS, as the presets do")
    compiled = {entry["file"] for entry in json.loads(database.read_text())}
    files, most, which = (c_files(root), None, "of ours") if full else changed(root)
    files = [file for file in ours(dict.fromkeys(files)) if str(pathlib.Path(root) / file) in compiled]
    print(f"clang-tidy over {len(files[:most])} of {len(files)} files {which}")

    def tidy(file):
        return subprocess.run([program, "--quiet", "-p", build, file], cwd=root, capture_output=True, text=True)
    known = known_findings(root)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = zip(files[:most], pool.map(tidy, files[:most]))
        results = [judge(file, result, known.get(file, set())) for file, result in done]
    missing = [file for file in known if not (pathlib.Path(root) / file).exists()]
    for file in missing:
        print(f"{file}: there is no such file, take it out of tidy_known.txt")
    return not all(results) or bool(missing)


def judge(file, done, known):
    """Prints a file's findings. Returns whether they are the known ones."""
    found = set(FINDING.findall(done.stdout)) or ({"no finding, but an error"} if done.returncode != 0 else set())
    if not found <= known:
        print(done.stdout, done.stderr)
    print(file)
    for check in sorted(found | known):
        print(f"    {check}:", "no longer found, take it out of tidy_known.txt" if check not in found
              else "known" if check in known else "NEW")
    return found == known


def main():
    verb, root, *more = sys.argv[1:]
    if (pathlib.Path(root) / ".git").exists() and not shutil.which("git"):
        skip("git is not installed: it tells which files of a clone are ours")
    try:
        sys.exit(check_format(root) if verb == "format" else check_tidy(root, more[0], "--full" in more))
    except subprocess.CalledProcessError as error:
        skip(f"git does not list the files: {error}")


main()
