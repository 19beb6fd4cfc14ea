#!/usr/bin/env python3
"""Packs many small files into one text file that people can read and compare.

usage: cases.py unpack FILE FOLDER      makes FOLDER hold exactly the cases of FILE
       cases.py pack FOLDER FILE        the reverse; keeps the lines before the first case
       cases.py check FILE FOLDER       checks that packing FOLDER would write FILE
       cases.py --self-test

A case begins with a line "-- NAME --"; NAME may have folders. What follows is the case's bytes: printable ASCII, tabs
and ends of lines unchanged, a backslash doubled, any other byte as \\xHH. A backslash at the end of a line takes
that end away. Lines before the first case are a comment. Lines that many cases share can be written once, before the
cases, after a line "-- @WORD --": a line "@WORD" in a case stands for them.
"""
import pathlib
import random
import re
import shutil
import sys
import tempfile

HEADER = re.compile(r"^-- (\S+) --\n", re.M)
SHARED = re.compile(r"^-- (@\w+) --\n((?:(?!-- ).*\n)*)", re.M)
ESCAPE = re.compile(rb"\\(\\|\n|x[0-9a-f]{2})")
NOT_PLAIN = re.compile(rb"[^\t\n -\x5b\x5d-~]|^-(?=- )|^@(?=\w+$)", re.M)  # also what looks like the start of a case or a @WORD


def escaped(data):
    text = NOT_PLAIN.sub(lambda m: b"\\\\" if m[0] == b"\\" else b"\\x%02x" % m[0][0], data)
    return (text if not text or text.endswith(b"\n") else text + b"\\\n").decode()


def unescaped(text, path, line):
    wrong = re.search(r"\\(?!\\|\n|x[0-9a-f]{2})|[^\t\n -~]", re.sub(r"\\\\", "..", text))
    if wrong:
        sys.exit(f"{path}:{line + text.count(chr(10), 0, wrong.start())}: expected a printable character, \\\\, \\xHH or \\ "
                 f"at the end of the line, found {ascii(text[wrong.start():wrong.start() + 4])}")
    plain = {b"\\": b"\\", b"\n": b""}
    return ESCAPE.sub(lambda m: plain[m[1]] if m[1] in plain else bytes.fromhex(m[1][1:].decode()), text.encode())


def read(path):
    """Returns the comment, and {name: bytes} in the order of the file."""
    text = pathlib.Path(path).read_bytes().decode("utf-8", "surrogateescape")
    heads = [head for head in HEADER.finditer(text) if not head[1].startswith("@")]
    ends = [head.start() for head in heads] + [len(text)]
    cases, shared = {}, dict(SHARED.findall(text[:ends[0]]))
    for head, end in zip(heads, ends[1:]):
        name, line = head[1], text.count("\n", 0, head.start()) + 1
        if name in cases or name.startswith("/") or ".." in name.split("/"):
            sys.exit(f"{path}:{line}: expected a name inside the folder that no other case has, found '{name}'")
        whole = re.sub(r"^(@\w+)\n", lambda m: shared.get(m[1], m[0]), text[head.end():end], flags=re.M)
        cases[name] = unescaped(whole, path, line + 1)
    return text[:ends[0]], cases


def write(path, comment, cases):
    text = ""
    for name, data in cases.items():
        case = escaped(data)
        for word, lines in SHARED.findall(comment):
            case = re.sub("^" + re.escape(lines), word + "\n", case, flags=re.M)
        text += f"-- {name} --\n{case}"
    pathlib.Path(path).write_bytes((comment + text).encode())


def unpack(path, folder):
    fill(folder, read(path)[1])


def fill(folder, cases):
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in cases.items():
        file = pathlib.Path(folder, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def gather(folder):
    """Returns {name: bytes} of a folder, in the order of names."""
    files = (p for p in pathlib.Path(folder).rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(files)}


def pack(folder, path):
    write(path, read(path)[0] if pathlib.Path(path).exists() else "", gather(folder))


def check(path, folder):
    comment, cases = read(path)
    with tempfile.TemporaryDirectory() as scratch:
        copy = pathlib.Path(scratch, "copy")
        write(copy, comment, cases)
        if copy.read_bytes() != pathlib.Path(path).read_bytes():
            sys.exit(f"{path}: not as pack would write it")
    if cases != gather(folder):
        sys.exit(f"{folder}: not the cases of {path}")
    print(f"{len(cases)} cases, the same bytes packed and unpacked")


def self_test():
    """Any bytes survive packing and unpacking. An error gives the place of an invalid case."""
    draw = random.Random(1)
    hard = [b"", b"\n", b"\\", b"\\\n", b"\\x41", b"a\\", b"-- x --\n", b"a\n-- x --\nb", b"\r\n", bytes(range(256)),
            b"@k\n", b"b\na\n\\\nb\n", b"a\n\\\n", b"ba\n\\\n", b"@k\na\n\\\n"]
    hard += [bytes(draw.choice(b"\\\n-x4 \t\0\xff") for _ in range(draw.randrange(40))) for _ in range(1000)]
    cases = {f"{i % 7}/{i}": data for i, data in enumerate(hard)}
    with tempfile.TemporaryDirectory() as scratch:
        folder, path, again = (pathlib.Path(scratch, name) for name in ("folder", "path", "again"))
        write(path, "# a comment\n-- @k --\na\n\\\\\n", cases)
        unpack(path, folder)
        check(path, folder)
        pack(folder, again)
        if gather(folder) != cases or read(again) != ("", cases):
            sys.exit("cases.py: what was packed is not what is read")
        for text, place in (("-- a --\n-- a --\n", 2), ("-- /a --\n", 1), ("-- a/../../b --\n", 1), ("-- a --\nx\n\\y\n", 3),
                            ("#\n-- a --\n\\x0\n", 3), ("-- a --\nn\u00e9\n", 2), ("-- a --\n\r\n", 2)):
            path.write_text(text, encoding="utf-8", newline="")
            try:
                read(path)
            except SystemExit as error:
                if str(error).startswith(f"{path}:{place}: expected "):
                    continue
            sys.exit(f"cases.py: expected an error in line {place} of {text!r}")
    print(f"{len(cases)} cases, the same bytes written and read")


def main():
    verbs = {"unpack": (unpack, 2), "pack": (pack, 2), "check": (check, 2), "--self-test": (self_test, 0)}
    verb, count = verbs.get(sys.argv[1] if sys.argv[1:] else "", (None, 0))
    if verb is None or len(sys.argv) != 2 + count:
        sys.exit(__doc__)
    verb(*sys.argv[2:])


if __name__ == "__main__":
    main()
