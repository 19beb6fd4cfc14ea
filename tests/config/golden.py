#!/usr/bin/env python3
"""Runs the generator on configurations and compares its messages byte by byte.

usage: golden.py KILN errors | every_message | commands | output_fails | readme | rebase

errors.txt    cases (tests/cases.py): NAME.yaml is a configuration, NAME.txt its diagnostics; the status is 1. NAME is a row of
              generator/support/messages.h, or a row, '-' and a description. NAME.lock.yaml is its lock file, ptx/ has the PTX
              that configurations embed, tuned/ the times that they use.
commands.txt  commands ("$ kiln ..."), each followed by its output, and by its exit status unless that is 0.
rebase        rewrites both files and prints the changes; a new NAME.yaml gets its NAME.txt.
"""
import difflib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import cases  # noqa: E402
ERRORS = HERE / "errors.txt"
COMMANDS = HERE / "commands.txt"
ACCEPTED = HERE / "accepted.txt"
MESSAGES = HERE.parent.parent / "generator" / "support" / "messages.h"
PAGE = HERE.parents[1] / "generator" / "README.md"
LOCALES = "C", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8"
LEAK_OPTIONS = {"ASAN_OPTIONS": "detect_leaks=1"}

# Fake ptxas: one rejects all input, one succeeds without writing a cubin, one writes the same cubin for any input.
VERSION = 'echo "Cuda compilation tools, release 13.0, V13.0.48"'
IF_ASKED = f'if [ "$1" = --version ]; then {VERSION}; exit 0; fi\n'
WRITES = IF_ASKED + 'echo cubin > "$3"'
PTXAS = {"ptxas_refused": IF_ASKED + """
echo "ptxas application ptx input, line 9; error   : Not a name of any known instruction: 'frob'"
echo "ptxas fatal   : Ptx assembly aborted due to errors"
exit 255""", "ptxas_not_run": VERSION, "over_driver_cubins": WRITES, "cubins_unused": WRITES}


def messages():
    """Returns {name: pattern} of the table, with its strings joined; each %... matches any text."""
    text = MESSAGES.read_text()
    table = text[text.index("#define MESSAGES"):text.index("#define M(")]
    rows = {}
    for name, strings in re.findall(r'\bM\((\w+),((?:[\s\\]*"(?:[^"\\]|\\.)*")+)\)', table):
        joined = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', strings))
        rows[name] = "(?:.*)".join(re.escape(part) for part in re.split(r"%[0-9]*[a-z]+", joined))
    return rows


def errors():
    """Returns the input files and the expected texts of errors.txt, by NAME. A NAME.txt without a NAME.yaml is for a missing
    file."""
    files = cases.read(ERRORS)[1]
    expected = {pathlib.PurePath(file).stem: data.decode() for file, data in files.items() if file.endswith(".txt")}
    return {file: data for file, data in files.items() if not file.endswith(".txt")}, expected


def is_config(file):
    return file.endswith(".yaml") and not file.endswith(".lock.yaml") and "/" not in file


def exit_line(done, usual):
    return "" if done.returncode == usual else f"[exit {done.returncode}]\n"


def run_error(kiln, folder, name):
    """Returns the generator's messages; it must write no files. If a case needs a toolkit, PATH has a fake one, else none."""
    environment = {"PATH": str(folder), **LEAK_OPTIONS}
    if name == "no_folder":
        environment["TMPDIR"] = "/nowhere"
    if name == "compress_missing":
        kiln += "_without_zstd"
    with tempfile.TemporaryDirectory() as output, tempfile.TemporaryDirectory() as toolkit:
        if name in PTXAS:
            environment["PATH"] = toolkit
            ptxas = pathlib.Path(toolkit, "ptxas")
            ptxas.write_text(f"#!/bin/sh\n{PTXAS[name]}\n")
            ptxas.chmod(0o755)
        scratch = pathlib.Path(output, "tmp")
        scratch.mkdir()
        done = subprocess.run([kiln, "generate", name + ".yaml", "--output", output], cwd=folder, capture_output=True,
                              env={"TMPDIR": str(scratch), **environment})
        scratch.rmdir()  # it stays empty
        written = "".join(f"[wrote {path.name}]\n" for path in sorted(pathlib.Path(output).iterdir()))
    return f"{done.stdout.decode()}{done.stderr.decode()}{written}{exit_line(done, 1)}"


def run_errors(kiln, names):
    """Returns {name: diagnostics}."""
    with tempfile.TemporaryDirectory() as folder:
        cases.fill(folder, errors()[0])
        return {name: run_error(kiln, folder, name) for name in names}


def run_commands(kiln, locale):
    """Returns commands.txt with the current output of each command, run in a copy of the accepted configurations."""
    result = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        cases.unpack(ACCEPTED, folder / "configs")
        (folder / "bin").mkdir()
        (folder / "bin" / "kiln").symlink_to(kiln)
        environment = {"PATH": f"{folder}/bin:/usr/bin:/bin", "LC_ALL": locale, **LEAK_OPTIONS}
        for line in COMMANDS.read_text().splitlines():
            if line.startswith("#"):
                result.append(line + "\n")
            if not line.startswith("$ "):
                continue
            done = subprocess.run(["sh", "-c", line[2:]], cwd=folder / "configs", env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            result.append(f"{line}\n{done.stdout.decode()}{exit_line(done, 0)}\n")
    return "".join(result)


def differ(what, expected, found):
    if expected == found:
        return 0
    lines = (text.splitlines(keepends=True) for text in (expected, found))
    sys.stdout.writelines(difflib.unified_diff(*lines, f"{what}: expected", "found", n=8))
    return 1


def test_errors(kiln):
    expected = errors()[1]
    found = run_errors(kiln, expected)
    return sum(differ(name, text, found[name]) for name, text in expected.items())


def test_every_message(_kiln):
    """Each row of messages.h has an example, each example a row, and each configuration its messages."""
    failed, rows = 0, messages()
    files, texts = errors()
    for name, pattern in rows.items():
        examples = [n for n in texts if n.partition("-")[0] == name]
        is_of_option = re.search(rf"^--\w+ \(.*\): (?:error|warning): {pattern}$", COMMANDS.read_text(), re.M)
        if not examples and not is_of_option:
            failed += differ(name, "an example in tests/config/errors.txt, or of an option in commands.txt\n", "none\n")
        for example in examples:
            if not re.search(rf"^({re.escape(example)}(?:\.lock)?\.yaml|ptx/\w+\.ptx|tuned/\w+\.yaml)(?::\d+:\d+)?: (?:error|warning): {pattern}$", texts[example], re.M):
                failed += differ(example, pattern + "\n", texts[example])
    for name in texts:
        if name.partition("-")[0] not in rows:
            failed += differ(name, "a row of generator/support/messages.h\n", "none\n")
    for file in files:
        if is_config(file) and file[:-5] not in texts:
            failed += differ(file, "its .txt: build the target rebase_config\n", "none\n")
    if len(rows) < 30:
        failed += differ("messages.h", "a table that this test can read\n", f"{len(rows)} rows\n")
    return failed


def test_commands(kiln):
    """The messages are the same in each installed locale."""
    expected = COMMANDS.read_text()
    installed = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=True).stdout.lower().replace("-", "").split()
    here = [l for l in LOCALES if l.lower().replace("-", "") in installed]
    return sum(differ(f"commands.txt in locale {l}", expected, run_commands(kiln, l)) for l in here)


def test_output_fails(kiln):
    """A full disk is an error. A closed pipe ends the program by a signal as usual, unless the signal is ignored."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        cases.unpack(ACCEPTED, folder)
        for verb in (["families", "--json"], ["list", "several.yaml"], ["--help"], ["--version"]):
            read_end, write_end = os.pipe()
            os.close(read_end)
            said = "kiln: error: cannot write the output: %s\n[exit 1]\n"
            for stdout, is_ignored, expected in ((write_end, False, f"[exit {-signal.SIGPIPE}]\n"), (write_end, True, said % "Broken pipe"),
                                                 (open("/dev/full", "wb"), False, said % "No space left on device")):
                done = subprocess.run([kiln, *verb], cwd=folder, stdout=stdout, stderr=subprocess.PIPE,
                                      restore_signals=not is_ignored)
                failed += differ(" ".join(verb), expected, f"{done.stderr.decode()}[exit {done.returncode}]\n")
            os.close(write_end)
    return failed


def test_readme(kiln):
    """The wrong configuration in generator/README.md gives the diagnostics shown there."""
    section = PAGE.read_text().partition("\n## Diagnostics\n")[2]
    config = re.search(r"^```yaml\n(.*?)^```", section, re.M | re.S)[1]
    command, expected = re.search(r"^    \$ kiln (.+)\n((?:    .+\n)+)", section, re.M).groups()
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "kernels.yaml").write_text(config)
        done = subprocess.run([kiln, *command.split()], cwd=folder, capture_output=True, text=True, env=LEAK_OPTIONS)
    expected = re.sub("^    ", "", expected, flags=re.M)
    found = f"{done.stdout}{done.stderr}[exit {done.returncode}]\n"
    return differ(str(PAGE), f"{expected}[exit 1]\n", found) + differ(f"the rebuild of {PAGE}", "", rebuild(kiln))


def rebuild(kiln):
    """The page's comparison with a rebuild works for the first page's configuration, and reports differences."""
    first = (HERE.parent.parent / "README.md").read_text()
    config = textwrap.dedent(re.search(r"^```yaml\n(.*?)^```", first, re.M | re.S)[1])
    command = re.search(r"^    (kiln generate .* && cmp .*)$", PAGE.read_text(), re.M)[1]
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "kernels.yaml").write_text(config)
        pathlib.Path(folder, "kiln").symlink_to(kiln)
        done = subprocess.run(["sh", "-c", f"PATH=$PWD:$PATH; kiln generate kernels.yaml && {command}"], cwd=folder,
                              capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{command}: {done.stdout}{done.stderr}\n"


def rebase(kiln):
    """Writes the current output, and prints the differences for a person to read."""
    before = {path: path.read_text().splitlines(True) for path in (ERRORS, COMMANDS)}
    comment, files = cases.read(ERRORS)
    names = [file.rpartition(".")[0] for file in files if is_config(file) or file.endswith(".txt")]
    found = run_errors(kiln, dict.fromkeys(names))
    result = {}
    for file, data in files.items():
        name, _, kind = file.rpartition(".")
        if kind != "txt":
            result[file] = data
        if name in found:
            result[name + ".txt"] = found[name].encode()
    cases.write(ERRORS, comment, result)
    COMMANDS.write_text(run_commands(kiln, "C"))
    for path, old in before.items():
        sys.stdout.writelines(difflib.unified_diff(old, path.read_text().splitlines(True), path.name, path.name))
    return 0


def main():
    actions = {"errors": test_errors, "every_message": test_every_message, "commands": test_commands,
               "output_fails": test_output_fails, "readme": test_readme, "rebase": rebase}
    sys.exit(1 if actions[sys.argv[2]](str(pathlib.Path(sys.argv[1]).resolve())) else 0)


main()
