#!/usr/bin/env python3
"""Runs the generator on configurations and compares what it says, byte by byte.

usage: golden.py KILN errors | every_message | commands | output_fails | readme | rebase

errors/NAME.yaml, NAME.txt  a configuration and the diagnostics that it gives. NAME is a row of generator/messages.h,
                            or a row, '-' and what is special about it. ptx/ has what the configurations embed.
commands.txt                commands ("$ kiln ..."), each followed by what it prints and by its exit status.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
MESSAGES = HERE.parent.parent / "generator" / "messages.h"
LOCALES = ("C", "POSIX", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8")
LEAK_OPTIONS = {"ASAN_OPTIONS": "detect_leaks=1"}


def messages():
    """{name: pattern} of the table, its strings joined, each %... standing for any text."""
    text = MESSAGES.read_text()
    table = text[text.index("#define MESSAGES"):text.index("#define M(")]
    rows = {}
    for name, strings in re.findall(r'\bM\((\w+),((?:[\s\\]*"(?:[^"\\]|\\.)*")+)\)', table):
        joined = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', strings))
        rows[name] = "(?:.*)".join(re.escape(part) for part in re.split(r"%[0-9]*[a-z]+", joined))
    return rows


def run_error(kiln, name):
    """What it says, and what it wrote, which is nothing. Where a toolkit is asked for there is a false one, else none."""
    toolkits = {"ptxas_refused": "fake_toolkit", "ptxas_not_run": "idle_toolkit"}
    environment = {"PATH": str(HERE / toolkits.get(name, "errors")), **LEAK_OPTIONS}
    if name == "no_folder":
        environment["TMPDIR"] = "/nowhere"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([kiln, "generate", name + ".yaml", "--output", folder], cwd=HERE / "errors",
                              capture_output=True, env=environment)
        written = "".join(f"[wrote {path.name}]\n" for path in sorted(pathlib.Path(folder).iterdir()))
    return f"{done.stdout.decode()}{done.stderr.decode()}{written}[exit {done.returncode}]\n"


def run_commands(kiln, locale):
    """commands.txt with what each command prints now, run in a copy of the accepted configurations."""
    result = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        shutil.copytree(HERE / "accepted", folder / "configs")
        (folder / "bin").mkdir()
        (folder / "bin" / "kiln").symlink_to(kiln)
        environment = {"PATH": f"{folder}/bin:/usr/bin:/bin", "LC_ALL": locale, **LEAK_OPTIONS}
        for line in (HERE / "commands.txt").read_text().splitlines():
            if line.startswith("#"):
                result.append(line + "\n")
            if not line.startswith("$ "):
                continue
            done = subprocess.run(["sh", "-c", line[2:]], cwd=folder / "configs", env=environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            result.append(f"{line}\n{done.stdout.decode()}[exit {done.returncode}]\n\n")
    return "".join(result)


def differ(what, expected, found):
    if expected == found:
        return 0
    print(f"--- {what}: expected\n{expected}--- found\n{found}")
    return 1


def test_errors(kiln):
    goldens = sorted((HERE / "errors").glob("*.txt"))
    return sum(differ(g.name, g.read_text(), run_error(kiln, g.stem)) for g in goldens)


def test_every_message(_kiln):
    """Each row has an example that shows it, each example has a row and each configuration its text."""
    failed, rows = 0, messages()
    names = {g.stem for g in (HERE / "errors").glob("*.txt")}
    for name, pattern in rows.items():
        examples = [n for n in names if n.partition("-")[0] == name]
        if not examples:
            failed += differ(name, "an example in tests/config/errors\n", "none\n")
        for example in examples:
            text = (HERE / "errors" / (example + ".txt")).read_text()
            if not re.search(rf"^({re.escape(example)}\.yaml|ptx/\w+\.ptx):\d+:\d+: error: {pattern}$", text, re.M):
                failed += differ(example, pattern + "\n", text)
    for name in names:
        if name.partition("-")[0] not in rows:
            failed += differ(name, "a row of generator/messages.h\n", "none\n")
    for config in (HERE / "errors").glob("*.yaml"):
        if config.stem not in names:
            failed += differ(config.name, "a .txt beside it\n", "none\n")
    if len(rows) < 30:
        failed += differ("messages.h", "a table that this test can read\n", f"{len(rows)} rows\n")
    return failed


def test_commands(kiln):
    expected = (HERE / "commands.txt").read_text()
    return sum(differ(f"commands.txt in locale {l}", expected, run_commands(kiln, l)) for l in LOCALES)


def test_output_fails(kiln):
    """A closed pipe and a full disk are errors, not silence."""
    failed = 0
    for verb in (["families", "--json"], ["list", "several.yaml"], ["--help"], ["--version"]):
        read_end, write_end = os.pipe()
        os.close(read_end)
        for stdout, reason in ((write_end, "Broken pipe"), (open("/dev/full", "wb"), "No space left on device")):
            done = subprocess.run([kiln, *verb], cwd=HERE / "accepted", stdout=stdout, stderr=subprocess.PIPE)
            found = f"{done.stderr.decode()}[exit {done.returncode}]\n"
            failed += differ(" ".join(verb), f"kiln: error: cannot write the output: {reason}\n[exit 1]\n", found)
        os.close(write_end)
    return failed


def test_readme(kiln):
    """The README's mistaken configuration, and what it says is said of it."""
    section = (HERE.parent.parent / "README.md").read_text().partition("\n## Configuration\n")[2]
    config = re.search(r"^```yaml\n(.*?)^```", section, re.M | re.S)[1]
    command, expected = re.search(r"^    \$ kiln (.+)\n((?:    .+\n)+)", section, re.M).groups()
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "kernels.yaml").write_text(config)
        done = subprocess.run([kiln, *command.split()], cwd=folder, capture_output=True, text=True, env=LEAK_OPTIONS)
    expected = re.sub("^    ", "", expected, flags=re.M)
    found = f"{done.stdout}{done.stderr}[exit {done.returncode}]\n"
    return differ("README.md", f"{expected}[exit 1]\n", found) + differ("README.md's rebuild", "", rebuild(kiln))


def rebuild(kiln):
    """What goes wrong with the README's comparison with a rebuild, of its first configuration."""
    readme = (HERE.parent.parent / "README.md").read_text()
    config = textwrap.dedent(re.search(r"^ +```yaml\n(.*?)^ +```", readme, re.M | re.S)[1])
    command = re.search(r"^    (kiln generate .* && cmp .*)$", readme, re.M)[1]
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "kernels.yaml").write_text(config)
        pathlib.Path(folder, "kiln").symlink_to(kiln)
        done = subprocess.run(["sh", "-c", f"PATH=$PWD:$PATH; kiln generate kernels.yaml && {command}"], cwd=folder,
                              capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{command}: {done.stdout}{done.stderr}\n"


def rebase(kiln):
    """Writes what is printed now; the differences are for a person to read."""
    names = {c.stem for c in (HERE / "errors").glob("*.yaml")} | {g.stem for g in (HERE / "errors").glob("*.txt")}
    for name in sorted(names):
        (HERE / "errors" / (name + ".txt")).write_text(run_error(kiln, name))
    (HERE / "commands.txt").write_text(run_commands(kiln, "C"))
    return 0


def main():
    actions = {"errors": test_errors, "every_message": test_every_message, "commands": test_commands,
               "output_fails": test_output_fails, "readme": test_readme, "rebase": rebase}
    sys.exit(1 if actions[sys.argv[2]](str(pathlib.Path(sys.argv[1]).resolve())) else 0)


main()
