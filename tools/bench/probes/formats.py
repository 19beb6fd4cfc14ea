"""Element formats and the layouts of tensor-core operands: fragments, and the canonical layouts of shared memory."""
import math
import struct

BYTES = {"f16": 2, "e4m3": 1}


def e4m3(byte):
    exponent, mantissa = byte >> 3 & 15, byte & 7
    value = mantissa * 2.0 ** -9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)
    return math.nan if byte & 127 == 127 else -value if byte & 128 else value


E4M3 = {e4m3(byte): byte for byte in reversed(range(256))}


def encode(kind, values):
    return struct.pack(f"<{len(values)}e", *values) if kind == "f16" else bytes(map(E4M3.__getitem__, values))


def fragment_a(kind, value):
    """The four registers of A in each of 128 threads (16 rows per warp), from value(row, k)."""
    per = 4 // BYTES[kind]
    return encode(kind, [value(16 * (thread >> 5) + (thread >> 2 & 7) + 8 * (r & 1),
                               per * (thread & 3) + i + 4 * per * (r >> 1))
                         for thread in range(128) for r in range(4) for i in range(per)])


def unpack_d(data, n):
    """D[row][column] from registers d0... of 128 threads."""
    words = struct.unpack(f"<{64 * n}f", data)
    return [[words[(32 * (row >> 4) + 4 * (row & 7) + (column >> 1 & 3)) * (n // 2)
                   + 4 * (column >> 3) + 2 * (row >> 3 & 1) + (column & 1)] for column in range(n)] for row in range(64)]


def swizzled(address, swizzle):
    """XORs bits 4 and up, one per doubling of 16 bytes, with bits 7 and up."""
    return address ^ (address >> 7 & swizzle // 16 - 1) << 4 if swizzle else address


def canonical(kind, major, swizzle, lbo, sbo, row, k):
    """Byte offset of element (row, k) from a matrix descriptor's address, unswizzled (PTX ISA, CuTe's GMMA layouts)."""
    size, unit = BYTES[kind], 16 // BYTES[kind]
    if major == "K":
        inner = k // unit * (16 if swizzle else lbo) + k % unit * size
        return row % 8 * max(swizzle, 16) + row // 8 * sbo + inner
    if swizzle == 0:
        return row % unit * size + row // unit * sbo + k % 8 * 16 + k // 8 * lbo
    panel = swizzle // size
    return row % panel * size + row // panel * lbo + k % 8 * swizzle + k // 8 * sbo
