#!/usr/bin/env python3
"""Makes a language model from another's header (tokenizer, shapes, formats), with weights from a seed. So a kit carries only the
small header. The bytes are the same on every machine.

usage: lm_model.py header MODEL.gguf OUT.gz     keeps what comes before the weights
       lm_model.py make HEADER.gz OUT.gguf
"""
import gzip
import hashlib
import math
import pathlib
import struct
import sys
from typing import NamedTuple

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}  # GGUF's value types
STRING, ARRAY = 8, 9


class Format(NamedTuple):
    """A tensor's format: blocks of random bits, with factors that scale the elements."""
    elements: int     # per block
    bytes: int
    factors: tuple    # (offset, struct's type code, multiple of the scale)
    deviation: float  # the elements' standard deviation at scale 1


FORMATS = {0: Format(1, 4, ((0, "<f", 1),), 1),                                       # F32
           3: Format(32, 20, ((0, "<e", 1), (2, "<e", -7.5)), math.sqrt(255 / 12)),    # Q4_1
           8: Format(32, 34, ((0, "<e", 1),), math.sqrt(65535 / 12))}                  # Q8_0
SPREAD = [0.5 + i / 256 for i in range(256)]  # the values of norms, and of block scales
MEAN_SQUARE = sum(x * x for x in SPREAD) / len(SPREAD)


class Refused(Exception):
    pass


class Tensor(NamedTuple):
    name: str
    dims: tuple
    format: int
    offset: int  # from the end of the header


# ---- the header ------------------------------------------------------------------------------------------------------


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, kinds):
        values = struct.unpack_from(f"<{kinds}", self.data, self.at)
        self.at += struct.calcsize(f"<{kinds}")
        return values

    def text(self):
        size, = self.take("Q")
        self.at += size
        return self.data[self.at - size:self.at]

    def value(self, kind):
        """A number or a text; None for an array, which is skipped."""
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            return self.take(SCALARS[kind])[0]
        kind, count = self.take("IQ")
        if kind == STRING:
            for _ in range(count):
                self.text()
        else:
            self.at += count * struct.calcsize(SCALARS[kind])
        return None


def read_header(data):
    """(size of what comes before the weights, tensors)"""
    reader, alignment = Reader(data), 32
    magic, version, tensor_count, key_count = reader.take("4sIQQ")
    if magic != b"GGUF" or version != 3:
        raise Refused(f"expected GGUF of version 3, found {magic} of version {version}")
    for _ in range(key_count):
        name = reader.text()
        value = reader.value(*reader.take("I"))
        if name == b"general.alignment":
            alignment = value
    tensors = []
    for _ in range(tensor_count):
        name, (rank,) = reader.text().decode(), reader.take("I")
        tensor = Tensor(name, reader.take(f"{rank}Q"), *reader.take("IQ"))
        if tensor.format not in FORMATS:
            raise Refused(f"tensor {name}: format {tensor.format} is none of {', '.join(map(str, FORMATS))}")
        tensors.append(tensor)
    return -(-reader.at // alignment) * alignment, tensors


def keep_header(model):
    """The packed header of a model's file."""
    data = pathlib.Path(model).read_bytes()
    return gzip.compress(data[:read_header(data)[0]], 9, mtime=0)


# ---- the weights -----------------------------------------------------------------------------------------------------


def weights(tensor):
    """The scale makes a matrix preserve a vector's size. sqrt is correctly rounded everywhere, unlike most of libm."""
    form = FORMATS[tensor.format]
    blocks = math.prod(tensor.dims) // form.elements
    data = bytearray(hashlib.shake_128(tensor.name.encode()).digest(blocks * form.bytes))
    scale = 1 / math.sqrt(tensor.dims[0] * MEAN_SQUARE) / form.deviation if len(tensor.dims) > 1 else 1  # norms are vectors
    chosen = data[::form.bytes]  # a random byte of each block chooses its scale
    for offset, kind, multiple in form.factors:
        packed = [struct.pack(kind, multiple * scale * x) for x in SPREAD]
        for i in range(len(packed[0])):
            data[offset + i::form.bytes] = chosen.translate(bytes(value[i] for value in packed))
    return data


def make(header, path):
    """Writes the model with this unpacked header. Returns the file's SHA-256."""
    size, tensors = read_header(header)
    digest = hashlib.sha256()
    with open(path, "wb") as out:
        for at, data in [(0, header), *((size + tensor.offset, tensor) for tensor in tensors)]:
            piece = bytes(at - out.tell()) + (weights(data) if isinstance(data, Tensor) else data)
            digest.update(piece)
            out.write(piece)
    return digest.hexdigest()


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("header", "make"):
        sys.exit(__doc__)
    _, verb, source, path = sys.argv
    try:
        if verb == "header":
            pathlib.Path(path).write_bytes(keep_header(source))
        else:
            print(make(gzip.decompress(pathlib.Path(source).read_bytes()), path))
    except Refused as refused:
        sys.exit(f"{source}: {refused}")


if __name__ == "__main__":
    main()
