"""Which line of a kernel's source emitted each line of its PTX, by `kiln show --source`.

A place is the file and the text of a source line, because line numbers change with every edit above. It is the innermost line
outside the builder: in a helper of generator/device, not the kernel's call of it, because it shows what the instruction is for.
"""
import functools
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


@functools.cache
def source_lines(root, path):
    return (root / path).read_text(encoding="utf-8").split("\n")


@functools.cache
def lines(kiln, config, variant, target, root=ROOT):
    """Returns each line of the variant's PTX, and its place: "kernels/rope.c: text of the source line"."""
    shown = subprocess.run([kiln, "show", config, variant, "--target", target, "--source"], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, check=True).stdout
    found = []
    for line in shown.split("\n"):
        text, _, at = line.rpartition(" // ")
        path, _, number = at.rpartition(":")
        has_place = number.isdigit() and path.endswith((".c", ".h"))
        words = source_lines(root, path)[int(number) - 1].strip() if has_place else line.strip()
        found.append((text if has_place else line, f"{path.removeprefix('generator/')}: {words}"))
    return found


def places(kiln, config, variant, target):
    return [place for _, place in lines(kiln, config, variant, target)]
