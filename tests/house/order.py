#!/usr/bin/env python3
"""Checks that no call in the kernels has two arguments that emit: C leaves their order open, so gcc and clang would make
different PTX. The builder itself checks its own functions' arguments, which are left out here.

usage: order.py ROOT | order.py --self-test
"""
import pathlib
import re
import sys

FOLDERS = ("generator/kernels", "generator/device")
# They make an operand, and emit nothing.
SILENT = set("""ptx_u32 ptx_s32 ptx_u64 ptx_f32 ptx_bits ptx_number ptx_type ptx_block_x ptx_pointer ptx_cast_ptr ptx_at_const
                ptx_at_bytes shared_at""".split())
WORDS = set("if for while switch return sizeof".split())
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\])*"', re.S)
MAKES_VALUE = re.compile(r"^(?:static )?(?:inline )?ptx_val (\w+)\(", re.M)
CALL = re.compile(r"\b([a-z_]\w*)\(")


def blank(text):
    return COMMENT_OR_STRING.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def calls(text):
    """Yields each call's name, offset and arguments."""
    for call in CALL.finditer(text):
        depth, arguments, start = 0, [], call.end()
        for at in range(call.end() - 1, len(text)):
            depth += (text[at] in "([{") - (text[at] in ")]}")
            if depth == 0 or depth == 1 and text[at] == ",":
                arguments.append(text[start:at].strip())
                start = at + 1
            if depth == 0:
                yield call[1], call.start(), arguments
                break


def emits(argument, makers):
    return any(name in makers or name.startswith("ptx_") and name not in SILENT for name, _, _ in calls(argument))


def errors(texts):
    texts = {place: blank(text) for place, text in texts.items()}
    makers = {name for text in texts.values() for name in MAKES_VALUE.findall(text)} - SILENT
    for place, text in texts.items():
        for name, at, arguments in calls(text):
            if name in WORDS or name.startswith("ptx_"):
                continue
            emitting = [argument for argument in arguments if emits(argument, makers)]
            if len(emitting) > 1:
                yield f"{place}:{text.count(chr(10), 0, at) + 1}: two arguments of {name} emit; give them names before the call"


def self_test():
    helper = "ptx_val shift(ptx_fn *f, ptx_val x)\n{\n"
    right = ["copy(x, ptx_add(f, a, 1), shared_at(f, t, b, 4));", "copy(x, /* ptx_add(f, a) */ ptx_add(f, b, 1), c);",
             "ptx_mad(f, ptx_add(f, a, 1), shift(f, b), c);", "a = ptx_add(f, shift(f, b), 1);"]
    wrong = ["copy(x, ptx_add(f, a, 1), ptx_shr(f, b, 4));", "copy(x, shift(f, a),\n     i ? b : ptx_shr(f, b, 4));",
             "copy(ptx_at_const(f, ptx_at(f, a, b), 1), shift(f, c));"]
    for lines, expected in ((right, 0), (wrong, 1)):
        for line in lines:
            found = list(errors({"x.c": helper + line}))
            if len(found) != expected:
                sys.exit(f"{line}: found {found}")
    print(f"{len(right)} right calls pass, {len(wrong)} wrong ones are found")


def main():
    if sys.argv[1] == "--self-test":
        self_test()
        return
    root = pathlib.Path(sys.argv[1])
    files = [file for folder in FOLDERS for file in sorted((root / folder).glob("*.[ch]"))]
    found = list(errors({file.relative_to(root).as_posix(): file.read_text() for file in files}))
    print("\n".join(found) or f"{len(files)} files, no call with two arguments that emit")
    sys.exit(1 if found else 0)


main()
