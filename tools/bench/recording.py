"""A recording of launches: launches.jsonl has a line per launch, and launches.bytes the texts and memory that they share.

A place, [first byte, bytes], points into launches.bytes. A launch has the members that the emulated driver writes with
KILN_EMU_RECORD (tools/emulator/driver/record.c), and

    test        the test that launched it
    left_out    why it is not repeated; such a launch is only listed
    order       the results of its atomics depend on the order of thread blocks
    undefined   [block, first byte, end] of bytes that may hold anything: they depend on uninitialised values or on races
"""
import gzip
import hashlib
import json
import pathlib
import shutil

FILES = "launches.jsonl", "launches.bytes"


class Recording:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        lines, self.bytes = (self.folder / name for name in FILES)
        with lines.open(encoding="utf-8") as text:
            self.launches = [json.loads(line) for line in text]
        self.file = self.bytes.open("rb")

    def read(self, place):
        self.file.seek(place[0])
        return self.file.read(place[1])

    def text(self, launch):
        return self.read(launch["text"])

    def before(self, block):
        """A recording keeps the first bytes of a block; the rest is zero."""
        return self.read(block["before"]).ljust(block["bytes"], b"\0")

    def after(self, block):
        whole = self.before(block)
        return replaced(whole, block["first"], self.read(block["after"])) if "after" in block else whole


def replaced(whole, first, middle):
    return whole[:first] + middle + whole[first + len(middle):]


def changed(before, after, step=256):
    """(first, bytes): the part of `after` from the first to the last difference."""
    at = [i for i in range(0, len(after), step) if before[i:i + step] != after[i:i + step]]
    return (at[0], after[at[0]:at[-1] + step]) if at else (0, b"")


class Writer:
    """Writes equal bytes only once."""

    def __init__(self, folder):
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        lines, bytes_ = (pathlib.Path(folder) / name for name in FILES)
        self.lines, self.bytes = lines.open("w", encoding="utf-8"), bytes_.open("wb")
        self.places = {}

    def put(self, data):
        key = hashlib.blake2b(data, digest_size=16).digest()
        if key not in self.places:
            self.places[key] = [self.bytes.tell(), len(data)]
            self.bytes.write(data)
        return self.places[key]

    def add(self, launch):
        self.lines.write(json.dumps(launch) + "\n")

    def close(self):
        self.lines.close()
        self.bytes.close()


def pack(folder, kit):
    """Compresses a recording into a kit. Returns its size there, in bytes."""
    kit.mkdir()
    for name in FILES:
        with (pathlib.Path(folder) / name).open("rb") as source, gzip.GzipFile(kit / f"{name}.gz", "wb", 6, mtime=0) as packed:
            shutil.copyfileobj(source, packed)
    return sum(path.stat().st_size for path in kit.iterdir())


def unpack(kit, folder):
    folder.mkdir()
    for name in FILES:
        with gzip.open(kit / f"{name}.gz") as packed, (folder / name).open("wb") as out:
            shutil.copyfileobj(packed, out)


def hash_of(folder):
    """A recording's name: it changes with any text, input or expected result."""
    name = hashlib.blake2b(digest_size=8)
    for file in FILES:
        with (pathlib.Path(folder) / file).open("rb") as source:
            for piece in iter(lambda: source.read(1 << 20), b""):
                name.update(piece)
    return name.hexdigest()
