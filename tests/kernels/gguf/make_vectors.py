#!/usr/bin/env python3
"""Makes tests/data/gguf_vectors.bin: quantised blocks, and the elements that the GGUF reference package decodes from them.

usage: make_vectors.py make WEIGHTS VECTORS               (needs numpy and gguf; the tests need neither)
       make_vectors.py run PROGRAM DRIVER [BLOCKS [SEED]]  runs gguf_vectors on random blocks; 77 without the package

WEIGHTS is tests/data/minilm_l6_ffn_512x384.f32. VECTORS gets a section for each format: its name in 8 bytes, elements and bytes
of a block and their number, u32 each; the blocks; their elements, f32. All are little-endian. The blocks are
    of random bits, every second block with finite factors
    with factors at the ends of their range, and all other bits 0, 1 or random
    for Q4_K also 24 of real weights, quantised here (the package only decodes Q4_K)
"""
import itertools
import struct
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy
except ImportError:
    if sys.argv[1:2] == ["run"]:
        print("skipped: python3 has no numpy and gguf")
        sys.exit(77)
    raise

# Where the f16 factors of a block are. MXFP4's is its first byte.
FACTORS = {"q4_0": [0], "q4_1": [0, 2], "q5_0": [0], "q5_1": [0, 2], "q8_0": [0], "q2_k": [80, 82], "q3_k": [108],
           "q4_k": [0, 2], "q5_k": [0, 2], "q6_k": [208], "iq4_nl": [0], "iq4_xs": [0], "mxfp4": [], "tq2_0": [64]}

ZERO, LEAST, LARGEST_DENORMAL, LEAST_NORMAL, ONE, MOST = 0x0000, 0x0001, 0x03FF, 0x0400, 0x3C00, 0x7BFF
MINUS = 0x8000
EXTREMES = [(MOST, MOST), (MOST, MINUS | MOST), (MINUS | MOST, LEAST), (LEAST, LEAST), (LEAST, MINUS | LARGEST_DENORMAL),
            (LARGEST_DENORMAL, LEAST_NORMAL), (MINUS | ZERO, ZERO), (ZERO, MINUS | ONE)]


def pack(d, dmin, scales, minima, codes):
    """Packs super-blocks from their fields: f16[n], f16[n], u8[n, 8], u8[n, 8], u8[n, 256]."""
    s = numpy.concatenate([scales[:, :4] | scales[:, 4:] >> 4 << 6, minima[:, :4] | minima[:, 4:] >> 4 << 6,
                           scales[:, 4:] & 15 | (minima[:, 4:] & 15) << 4], axis=1)
    halves = codes.reshape(-1, 4, 2, 32)
    nibbles = (halves[:, :, 0] | halves[:, :, 1] << 4).reshape(-1, 128)
    factors = numpy.stack([d, dmin], axis=1).view(numpy.uint8).reshape(-1, 4)
    return numpy.concatenate([factors, s, nibbles], axis=1)


def quantize(x):
    """Quantises each sub-block of 32, from its least element (at most 0) to its largest."""
    x = x.reshape(-1, 8, 32).astype(numpy.float64)
    offset = -numpy.minimum(x.min(axis=2), 0)
    step = (x.max(axis=2) + offset) / 15
    d, dmin = ((v.max(axis=1) / 63).astype(numpy.float16) for v in (step, offset))
    wide_d, wide_dmin = (v.astype(numpy.float64)[:, None] for v in (d, dmin))
    scales = numpy.clip(numpy.rint(step / wide_d), 0, 63)
    minima = numpy.clip(numpy.rint(offset / wide_dmin), 0, 63)
    codes = numpy.rint((x + (wide_dmin * minima)[:, :, None]) / (wide_d * scales)[:, :, None])
    return pack(d, dmin, *(v.astype(numpy.uint8) for v in (scales, minima, numpy.clip(codes, 0, 15).reshape(-1, 256))))


def with_factors(name, blocks, factors):
    """Returns the blocks with these bits as factors; MXFP4 has the extreme factors 0, 1, 254 and 255."""
    for column, at in enumerate(FACTORS[name]):
        blocks[:, at:at + 2] = numpy.array(factors, dtype="<u2")[:, column:column + 1].copy().view(numpy.uint8)
    if name == "mxfp4":
        blocks[:, 0] = numpy.resize([0, 1, 254, 255], len(blocks))
    return blocks


def finite(random, count):
    return random.integers(0, 0x7C00, (count, 2)) | random.integers(0, 2, (count, 2)) * MINUS


def section(name, random, count, ends, more):
    """Returns blocks of random bits, blocks with extreme factors, and more, with their elements."""
    kind = getattr(gguf.GGMLQuantizationType, name.upper())
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    bits = random.integers(0, 256, (count, size), dtype=numpy.uint8)
    if name != "mxfp4":
        bits[::2] = with_factors(name, bits[::2], finite(random, len(bits[::2])))
    extreme = random.integers(0, 256, (ends, size), dtype=numpy.uint8)
    extreme[:ends // 4], extreme[ends // 2:ends // 4 * 3] = 0xFF, 0
    extreme = with_factors(name, extreme, list(itertools.islice(itertools.cycle(EXTREMES), ends)))
    blocks = numpy.concatenate([more, bits, extreme]) if len(more) else numpy.concatenate([bits, extreme])
    with numpy.errstate(all="ignore"):
        numbers = gguf.quants.dequantize(blocks, kind).astype("<f4")
    return name.encode().ljust(8, b"\0") + struct.pack("<3I", elements, size, len(blocks)) + blocks.tobytes() + numbers.tobytes()


def make(weights, vectors):
    real = quantize(numpy.fromfile(weights, dtype="<f4")[:24 * 256])
    with open(vectors, "wb") as file:
        for seed, name in enumerate(FACTORS):
            is_small = gguf.GGML_QUANT_SIZES[getattr(gguf.GGMLQuantizationType, name.upper())][0] == 32
            count, ends = (16, 16) if is_small else (4, 4)
            if name == "q4_k":
                count, ends = 8, 16
            file.write(section(name, numpy.random.default_rng(seed), count, ends, real if name == "q4_k" else []))


def run(program, driver, blocks="400", seed="1"):
    with tempfile.NamedTemporaryFile() as file:
        for number, name in enumerate(FACTORS):
            file.write(section(name, numpy.random.default_rng([int(seed), number]), int(blocks), 16, []))
        file.flush()
        sys.exit(subprocess.run([program, driver, file.name], check=False).returncode)


{"make": make, "run": run}[sys.argv[1]](*sys.argv[2:])
