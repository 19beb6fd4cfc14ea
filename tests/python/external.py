"""External PTX from Python: described pointers, addresses without a description, a struct by value. external.py MANIFEST DRIVER"""
import array
import math
import struct
import sys

import kiln

N, BLOCKS, COLUMNS = 1024, 8, 64


def softmax(count):
    sums = sum(math.exp(i - (count - 1)) for i in range(count))
    return [math.exp(i - (count - 1)) / sums for i in range(count)]


with kiln.load(sys.argv[1], driver=sys.argv[2]) as k:
    x, y = k.upload(array.array("f", range(N))), k.upload(array.array("f", [1] * N))
    k.saxpy(n=N, a=2, x=x, y=y)
    assert list(k.download(y, "f")) == [2 * i + 1 for i in range(N)]

    sums = k.zeros(4 * BLOCKS)
    bounds = struct.pack("ddi4x", 100, 700, 3)
    k.bounded_sums(n=N, x=x, sums=sums, bounds=bounds, grid_x=BLOCKS, shared_bytes=128 * 4)
    assert sum(k.download(sums, "f")) == 3 * sum(range(100, 701))
    try:
        k.bounded_sums(n=N, x=x, sums=sums, bounds=b"short", grid_x=BLOCKS)
    except ValueError as error:
        assert str(error) == "bounded_sums: expected 24 bytes for bounds, found b'short'", error

    rows = k.upload(array.array("f", [i % COLUMNS for i in range(N)]))
    k.softmax(out=y, x=rows, columns=COLUMNS, grid_x=N // COLUMNS, global_scratch=None, profile_scratch=sums)
    assert all(abs(a - b) < 1e-6 for a, b in zip(k.download(y, "f"), softmax(COLUMNS) * (N // COLUMNS)))
    print(k.softmax.__doc__.splitlines()[4].strip())
