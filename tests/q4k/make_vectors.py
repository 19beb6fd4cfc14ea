#!/usr/bin/env python3
"""Makes tests/data/q4k_vectors.bin: Q4_K super-blocks, and what the GGUF reference package makes of them.

usage: make_vectors.py WEIGHTS VECTORS        (needs numpy and gguf; the tests need neither)

WEIGHTS is tests/data/minilm_l6_ffn_512x384.f32. VECTORS gets N super-blocks of 144 bytes, then N * 256 little-endian f32:
    24 of real weights, rounded to Q4_K here (the package decodes Q4_K and does not make it)
    24 of random bits, with a finite d and dmin
    16 with d and dmin at the ends of their range, and all other bits 0, 1 or random
"""
import itertools
import sys

import gguf
import numpy

ZERO, LEAST, LARGEST_DENORMAL, LEAST_NORMAL, ONE, MOST = 0x0000, 0x0001, 0x03FF, 0x0400, 0x3C00, 0x7BFF
MINUS = 0x8000
EXTREMES = [(MOST, MOST), (MOST, MINUS | MOST), (MINUS | MOST, LEAST), (LEAST, LEAST), (LEAST, MINUS | LARGEST_DENORMAL),
            (LARGEST_DENORMAL, LEAST_NORMAL), (MINUS | ZERO, ZERO), (ZERO, MINUS | ONE)]


def pack(d, dmin, scales, minima, codes):
    """Super-blocks from their fields: f16[n], f16[n], u8[n, 8], u8[n, 8], u8[n, 256]."""
    s = numpy.concatenate([scales[:, :4] | scales[:, 4:] >> 4 << 6, minima[:, :4] | minima[:, 4:] >> 4 << 6,
                           scales[:, 4:] & 15 | (minima[:, 4:] & 15) << 4], axis=1)
    halves = codes.reshape(-1, 4, 2, 32)
    nibbles = (halves[:, :, 0] | halves[:, :, 1] << 4).reshape(-1, 128)
    factors = numpy.stack([d, dmin], axis=1).view(numpy.uint8).reshape(-1, 4)
    return numpy.concatenate([factors, s, nibbles], axis=1)


def quantize(x):
    """Each sub-block of 32 from its least element, or 0 when that is more, to its largest."""
    x = x.reshape(-1, 8, 32).astype(numpy.float64)
    offset = -numpy.minimum(x.min(axis=2), 0)
    step = (x.max(axis=2) + offset) / 15
    d, dmin = ((v.max(axis=1) / 63).astype(numpy.float16) for v in (step, offset))
    wide_d, wide_dmin = (v.astype(numpy.float64)[:, None] for v in (d, dmin))
    scales = numpy.clip(numpy.rint(step / wide_d), 0, 63)
    minima = numpy.clip(numpy.rint(offset / wide_dmin), 0, 63)
    codes = numpy.rint((x + (wide_dmin * minima)[:, :, None]) / (wide_d * scales)[:, :, None])
    return pack(d, dmin, *(v.astype(numpy.uint8) for v in (scales, minima, numpy.clip(codes, 0, 15).reshape(-1, 256))))


def with_factors(blocks, factors):
    """The super-blocks with these bits for d and dmin."""
    blocks[:, :4] = numpy.array(factors, dtype="<u2").view(numpy.uint8).reshape(-1, 4)
    return blocks


def main():
    weights, vectors = sys.argv[1:]
    random = numpy.random.default_rng(4)
    real = quantize(numpy.fromfile(weights, dtype="<f4")[:24 * 256])
    bits = random.integers(0, 256, (24, 144), dtype=numpy.uint8)
    signs = random.integers(0, 2, (24, 2)) * MINUS
    bits = with_factors(bits, random.integers(0, 0x7C00, (24, 2)) | signs)
    ends = random.integers(0, 256, (16, 144), dtype=numpy.uint8)
    ends[:4], ends[8:12] = 0xFF, 0
    blocks = numpy.concatenate([real, bits, with_factors(ends, list(itertools.chain(EXTREMES, EXTREMES)))])
    numbers = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.Q4_K)
    with open(vectors, "wb") as file:
        file.write(blocks.tobytes() + numbers.astype("<f4").tobytes())


main()
