#!/usr/bin/env python3
"""Every family of the default bundle, called from Python and compared with plain Python.

usage: families.py FOLDER DRIVER      FOLDER has kiln.py, kiln_default.json and kiln_default_python.so
"""
import array
import math
import pathlib
import random
import struct
import sys

FOLDER = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(FOLDER))
import kiln  # noqa: E402

NF4 = (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
       -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
       0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0)
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
E4M3 = tuple((code % 8 + 8 * (code >= 8)) * 2.0 ** (max(code // 8, 1) - 10) for code in range(127))  # the values of codes 0 to 126
draw = random.Random(1)
called = set()
launches = []  # the hook's events


# ---- numbers --------------------------------------------------------------------------------------------------------

def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def halves(values):
    """f16, by struct."""
    return struct.pack(f"{len(values)}e", *values)


def from_halves(data):
    return list(struct.unpack(f"{len(data) // 2}e", data))


def bfloats(values):
    """Rounds to nearest even."""
    bits = struct.unpack(f"{len(values)}I", struct.pack(f"{len(values)}f", *values))
    return array.array("H", [(b + 0x7fff + (b >> 16 & 1)) >> 16 for b in bits])


def from_bfloats(data):
    return list(struct.unpack(f"{len(data) // 2}f", b"".join(b"\0\0" + data[i:i + 2] for i in range(0, len(data), 2))))


def codes_of(packed):
    return [nibble for byte in packed for nibble in (byte & 15, byte >> 4)]


def packed_of(codes):
    return bytes(low | high << 4 for low, high in zip(codes[::2], codes[1::2]))


def nearest(table, x):
    """Returns the code of the nearest number in the table. Between two, it is the even code; beyond the last, the last."""
    return min(range(len(table)), key=lambda code: (abs(table[code] - x), code & 1))


def expect(what, found, wanted, bound=0.0):
    """Compares element by element; with a bound of 0 the numbers must be equal."""
    found, wanted = list(found), list(wanted)
    if len(found) != len(wanted) or not all(abs(f - w) <= bound for f, w in zip(found, wanted)):
        wrong = next((i for i, (f, w) in enumerate(zip(found, wanted)) if not abs(f - w) <= bound), "length")
        sys.exit(f"{what}: wrong at {wrong}: {found[:8]} ... for {wanted[:8]} ..., {len(found)} for {len(wanted)}")


def call(k, name, /, **keywords):
    """Calls the family's function, then the picked variant's own function; the second output counts."""
    picked = k[name].pick(**keywords)
    launches.clear()
    k[name](**keywords)
    k[picked](**keywords)
    called.add(name)
    check_launches(picked, keywords)


def check_launches(picked, keywords):
    """Checks that the hook saw both launches, before and after, with the call's integers except strides."""
    if [(launch.id, launch.result) for launch in launches] != 2 * [(picked, None), (picked, 0)]:
        sys.exit(f"{picked}: the hook saw {launches}")
    sizes = launches[0].sizes
    wrong = {name: value for name, value in sizes.items() if value != keywords.get(name, 0)}
    lacking = {"batch", "n", "m", "k", "l", "rows", "q_heads", "q_length", "k_length"} & set(keywords) - set(sizes)
    lacking -= {name for name in lacking if not isinstance(keywords[name], int)}
    if wrong or lacking or any("stride" in name and name != "pages_stride" for name in sizes):
        sys.exit(f"{picked}: sizes {sizes}, wrong {wrong}, lacking {lacking}")


# ---- INT4, NF4 ------------------------------------------------------------------------------------------------------

def int4(k):
    n, group = 512, 128
    x = [f32(draw.uniform(-4, 4)) for _ in range(n)]
    scale = [f32(f32(max(map(abs, x[i:i + group]))) / f32(7)) for i in range(0, n, group)]
    codes = [min(15, max(0, round(f32(x[i] / scale[i // group])) + 8)) for i in range(n)]
    restored = [f32((codes[i] - 8) * scale[i // group]) for i in range(n)]
    given = k.upload(array.array("f", x))
    sizes = {"n": n, "group": group, "mode": "sym"}
    with k.alloc(4 * n // group) as scales, k.alloc(n // 2) as packed, k.alloc(4 * n) as out:
        call(k, "int4_scale", in_=given, scale=scales, **sizes)
        expect("int4_scale", k.download(scales, "f"), scale)
        call(k, "int4_pack", in_=given, scale=scales, packed=packed, **sizes)
        expect("int4_pack", codes_of(k.download(packed)), codes)
        call(k, "int4_unpack", packed=packed, scale=scales, out=out, **sizes)
        expect("int4_unpack", k.download(out, "f"), restored)
    with k.zeros(4 * n // group) as scales, k.zeros(n // 2) as packed:
        call(k, "int4_quantize", in_=given, scale=scales, packed=packed, **sizes)
        expect("int4_quantize", codes_of(k.download(packed)), codes)
        expect("int4_quantize", k.download(scales, "f"), scale)


def nf4(k):
    n, group = 256, 64
    codes = [draw.randrange(16) for _ in range(n)]
    for i in range(0, n, group):
        codes[i] = 15  # each group has its absmax
    scale = [0.5, 2.0, 8.0, 1.0]
    x = [f32(NF4[code]) * scale[i // group] for i, code in enumerate(codes)]
    given = k.upload(array.array("f", x))
    with k.alloc(4 * n // group) as scales, k.alloc(n // 2) as packed, k.alloc(4 * n) as out:
        call(k, "nf4_scale", in_=given, scale=scales, n=n)
        expect("nf4_scale", k.download(scales, "f"), scale)
        call(k, "nf4_pack", in_=given, scale=scales, packed=packed, n=n)
        expect("nf4_pack", codes_of(k.download(packed)), codes)
        call(k, "nf4_unpack", packed=packed, scale=scales, out=out, n=n)
        expect("nf4_unpack", k.download(out, "f"), x)
    with k.zeros(4 * n // group) as scales, k.zeros(n // 2) as packed:
        call(k, "nf4_quantize", in_=given, scale=scales, packed=packed, n=n)
        expect("nf4_quantize", codes_of(k.download(packed)), codes)
        expect("nf4_quantize", k.download(scales, "f"), scale)


def nf4_products(k):
    """f32, small integers times the table: B[k,n] is stored by column."""
    m, n, depth = 3, 48, 128
    codes = [draw.randrange(16) for _ in range(n * depth)]
    scale = [2.0 ** draw.randrange(-2, 3) for _ in range(n * depth // 64)]
    weight = [NF4[code] * scale[i // 64] for i, code in enumerate(codes)]  # column j, row i at j * depth + i
    a = [float(draw.randrange(-4, 5)) for _ in range(m * depth)]
    packed, scales = k.upload(packed_of(codes)), k.upload(array.array("f", scale))
    with k.upload(array.array("f", a)) as given, k.alloc(4 * m * n) as out:
        call(k, "nf4_gemm", in_=given, packed=packed, scale=scales, out=out, m=m, n=n, k=depth, a="f32")
        wanted = [sum(a[i * depth + p] * weight[j * depth + p] for p in range(depth)) for i in range(m) for j in range(n)]
        expect("nf4_gemm", k.download(out, "f"), wanted, 1e-2)
    dy = [float(draw.randrange(-4, 5)) for _ in range(m * n)]
    with k.upload(array.array("f", dy)) as given, k.alloc(4 * m * depth) as out:
        call(k, "nf4_gemm_transposed", in_=given, packed=packed, scale=scales, out=out, m=m, n=n, k=depth, a="f32")
        wanted = [sum(dy[i * n + j] * weight[j * depth + p] for j in range(n)) for i in range(m) for p in range(depth)]
        expect("nf4_gemm_transposed", k.download(out, "f"), wanted, 1e-2)


# ---- Q4_K, NVFP4 ----------------------------------------------------------------------------------------------------

def q4k_block():
    """Returns a super-block and its 256 weights: d, dmin, eight 6-bit scales and minima in 12 bytes, 64 codes per 32 bytes."""
    d, dmin = 2.0 ** -6, 2.0 ** -5
    scales, minima = ([draw.randrange(64) for _ in range(8)] for _ in range(2))
    codes = [draw.randrange(16) for _ in range(256)]
    six = [scales[i] | (scales[i + 4] >> 4) << 6 for i in range(4)] + [minima[i] | (minima[i + 4] >> 4) << 6 for i in range(4)]
    six += [scales[i + 4] & 15 | (minima[i + 4] & 15) << 4 for i in range(4)]
    nibbles = [codes[64 * chunk + i] | codes[64 * chunk + 32 + i] << 4 for chunk in range(4) for i in range(32)]
    return halves([d, dmin]) + bytes(six + nibbles), [d * scales[i // 32] * c - dmin * minima[i // 32] for i, c in enumerate(codes)]


def q4k(k):
    blocks = [q4k_block() for _ in range(8)]
    packed, weights = b"".join(b for b, _ in blocks), [w for _, ws in blocks for w in ws]
    w = k.upload(packed)
    with k.alloc(4 * len(weights)) as out:
        call(k, "q4k_dequantize", packed=w, out=out, n=len(weights), type="f32")
        expect("q4k_dequantize", k.download(out, "f"), weights)
    rows, depth = 8, 256
    x = [float(draw.choice((-1, 1))) for _ in range(depth)]  # of norm 1, and exact in 8 bits
    gamma = [2.0] * depth
    sums = [sum(x[i] * weights[row * depth + i] for i in range(depth)) for row in range(rows)]
    with k.upload(halves(x)) as given, k.upload(array.array("f", gamma)) as factors, k.alloc(2 * rows) as out:
        call(k, "rmsnorm_q4k_gemv", in_=given, gamma=factors, w=w, out=out, n=rows, k=depth, x="f16", y="f16", activation="exact")
        expect("rmsnorm_q4k_gemv", from_halves(k.download(out)), [2 * s for s in sums], 0.2)
        call(k, "linear", in_=given, w=w, out=out, m=1, n=rows, k=depth, x="f16", y="f16")
        expect("linear", from_halves(k.download(out)), sums, 0.2)


def nvfp4(k):
    m, depth = 5, 64
    a, b = ([draw.randrange(16) for _ in range(count * depth)] for count in (m, 1))
    one, two = 0x38, 0x40  # e4m3
    with k.upload(packed_of(a)) as codes, k.upload(bytes([two]) * (m * depth // 16)) as scales, k.alloc(2 * m) as out, \
            k.upload(packed_of(b)) as vector, k.upload(bytes([one]) * (depth // 16)) as vector_scales:
        call(k, "nvfp4_gemv", a=codes, sfa=scales, b=vector, sfb=vector_scales, out=out, m=m, k=depth, l=1, b_rows=1, c="f16")
        wanted = [sum(2 * E2M1[a[i * depth + p]] * E2M1[b[p]] for p in range(depth)) for i in range(m)]
        expect("nvfp4_gemv", from_halves(k.download(out)), wanted, 0.3)


def fp4_quantize(k):
    """The family's formulas, each operation rounded to f32. With a global scale of 64 the first block's scale is 64, so its codes
    are the nearest to x; six of its numbers are halfway between two codes."""
    m, depth = 5, 64
    x = [0.0, -0.0, 0.25, -0.75, 1.25, -1.75, 2.5, -5.0, 6.0, -6.0] + [0.5] * 6 + [0.0, -0.0] * 8
    x = from_halves(halves(x + [draw.gauss(0, 1) * 2.0 ** draw.randrange(-4, 5) for _ in range(m * depth - len(x))]))
    largest = [max(map(abs, x[i:i + 16])) for i in range(0, m * depth, 16)]
    for global_scale in 64.0, f32(2688 / max(largest)):
        scale = [nearest(E4M3, f32(f32(a * f32(1 / 6)) * global_scale)) for a in largest]
        factors = [f32(global_scale / E4M3[code]) if code else 0.0 for code in scale]
        codes = [nearest(E2M1[:8], f32(abs(v) * factors[i // 16])) | 8 * (math.copysign(1, v) < 0) for i, v in enumerate(x)]
        with k.upload(halves(x)) as given, k.alloc(m * depth // 2) as packed, k.alloc(m * depth // 16) as scales:
            call(k, "fp4_quantize", in_=given, packed=packed, scale=scales, m=m, k=depth, global_scale=global_scale)
            expect("fp4_quantize: scales", k.download(scales), scale)
            expect("fp4_quantize: codes", codes_of(k.download(packed)), codes)


def fp4_gemm(k):
    m, n, depth, alpha = 5, 72, 96, 0.25
    x = [float(draw.randrange(-8, 9)) / 8 for _ in range(m * depth)]
    codes = [draw.randrange(16) for _ in range(n * depth)]
    scale = [draw.randrange(0x28, 0x48) for _ in range(n * depth // 16)]
    weight = [E2M1[code] * E4M3[scale[i // 16]] for i, code in enumerate(codes)]
    terms = [[alpha * x[i * depth + p] * weight[j * depth + p] for p in range(depth)] for i in range(m) for j in range(n)]
    sums = list(map(sum, terms))
    bound = 2 ** -11 * max(map(abs, sums)) + 2 ** -24 * (1 + (5 / 4 * depth + 9) * max(sum(map(abs, of)) for of in terms))
    with k.upload(halves(x)) as given, k.upload(packed_of(codes)) as w, k.upload(bytes(scale)) as scales, k.alloc(2 * m * n) as out:
        call(k, "fp4_gemm", in_=given, w=w, w_scales=scales, out=out, m=m, n=n, k=depth, alpha=alpha, x="f16", y="f16")
        expect("fp4_gemm", from_halves(k.download(out)), sums, bound)


# ---- bytes ----------------------------------------------------------------------------------------------------------

def q8_quantize(k):
    """One block is zeros: a block's absmax counts as at least 2^-118."""
    m, depth, block = 5, 96, 32
    x = from_halves(halves([0.0] * block + [draw.gauss(0, 1) * 2.0 ** draw.randrange(-4, 5) for _ in range(m * depth - block)]))
    largest = [max(2.0 ** -118, *map(abs, x[i:i + block])) for i in range(0, m * depth, block)]
    with k.upload(halves(x)) as given, k.alloc(m * depth) as codes, k.alloc(4 * m * depth // block) as scales:
        call(k, "q8_quantize", in_=given, codes=codes, scale=scales, m=m, k=depth, type="f16", norm="none")
        ratios = [127 * scale / a for scale, a in zip(k.download(scales, "f"), largest)]
        expect("q8_quantize: scales", ratios, [1.0] * len(largest), 2 ** -19 + 2 ** -24)
        expect("q8_quantize: a scale's low bits", [bits & 15 for bits in k.download(scales, "I")], [0] * len(largest))
        wanted = [127 * v / largest[i // block] for i, v in enumerate(x)]
        expect("q8_quantize: codes", k.download(codes, "b"), wanted, 0.5 + 2 ** -10)


# ---- attention, rope ------------------------------------------------------------------------------------------------

def softmax_rows(q, keys, v, dim, scale):
    result = []
    for row in q:
        scores = [scale * sum(x * y for x, y in zip(row, key)) for key in keys]
        weights = [math.exp(s - max(scores)) for s in scores]
        result += [sum(w * value[d] for w, value in zip(weights, v)) / sum(weights) for d in range(dim)]
    return result


def attention(k):
    dim, queries, keys = 128, 8, 24
    q, key, v = ([[float(draw.randrange(-8, 9)) / 8 for _ in range(dim)] for _ in range(count)] for count in (queries, keys, keys))
    wanted = softmax_rows(q, key, v, dim, dim ** -0.5)
    memory = {name: k.upload(bfloats(sum(rows, []))) for name, rows in (("q", q), ("k", key), ("v", v))}
    sizes = {"batch": 1, "q_heads": 1, "kv_heads": 1, "q_length": queries, "k_length": keys, "scale": dim ** -0.5}
    strides = {f"{name}_row_stride": dim for name in ("q", "k", "v", "out")}
    with k.alloc(2 * queries * dim) as out:
        arguments = {**memory, "out": out, **sizes, **strides, "type": "bf16", "head_dim": dim}
        arguments |= {"workspace_size": 0}
        call(k, "attention", **arguments)
        expect("attention", from_bfloats(k.download(out)), wanted, 0.02)
        count, counters = k.attention.workspace(**arguments)
        if count:
            with k.alloc(count) as workspace, k.zeros(counters) as tile_counters:
                call(k, "attention", **arguments | {"workspace": workspace, "tile_counters": tile_counters,
                                                    "workspace_size": count // 4})
                expect("attention with a workspace", from_bfloats(k.download(out)), wanted, 0.02)
    memory = {name: k.upload(bfloats(sum(rows, []))) for name, rows in (("q", q), ("k", key[:queries]), ("v", v[:queries]))}
    with k.alloc(2 * queries * dim) as out:
        k.attention_single_head(**memory, out=out, seq_len=queries, scale=dim ** -0.5, type="bf16")
        wanted = softmax_rows(q, key[:queries], v[:queries], dim, dim ** -0.5)
        expect("attention_single_head", from_bfloats(k.download(out)), wanted, 0.02)


def rope(k):
    """One token of one head at position 3, appended to the second row of a cache."""
    dim, position = 128, 3
    q, key, v = ([float(draw.randrange(-8, 9)) for _ in range(dim)] for _ in range(3))
    turns = [draw.randrange(1 << 64) for _ in range(dim // 2)]

    def rotated(x):
        angles = [2 * math.pi * ((position * turn % (1 << 64)) / 2.0 ** 64) for turn in turns]
        pairs = list(zip(x, x[dim // 2:], angles))
        return [a * math.cos(t) - b * math.sin(t) for a, b, t in pairs] + [a * math.sin(t) + b * math.cos(t) for a, b, t in pairs]
    memory = {name: k.upload(bfloats(x)) for name, x in (("q", q), ("k", key), ("v", v))}
    strides = {f"{name}_{of}_stride": dim for name in ("q", "k", "v", "out") for of in ("row", "head")}
    with k.zeros(2 * 8 * dim) as k_cache, k.zeros(2 * 8 * dim) as v_cache, k.alloc(2 * dim) as q_out, \
            k.upload(array.array("Q", turns)) as frequencies, k.upload(array.array("I", [position])) as positions, \
            k.upload(array.array("q", [1])) as slots:
        call(k, "rope", **memory, frequencies=frequencies, positions=positions, slots=slots, q_out=q_out, k_cache=k_cache,
             v_cache=v_cache, n=1, q_heads=1, k_heads=1, v_heads=1, rotary_dim=dim, magnitude=1, pages=1, page_size=8,
             cache_page_stride=8 * dim, cache_row_stride=dim, cache_head_stride=dim, **strides)
        expect("rope: q", from_bfloats(k.download(q_out)), rotated(q), 0.05)
        zeros = [0.0] * dim
        expect("rope: k", from_bfloats(k.download(k_cache)), zeros + rotated(key) + zeros * 6, 0.05)
        expect("rope: v", from_bfloats(k.download(v_cache)), zeros + v + zeros * 6)


with kiln.load(FOLDER / "kiln_default.json", driver=sys.argv[2], launch_hook=launches.append) as bundle:
    for check in int4, nf4, nf4_products, q4k, nvfp4, fp4_quantize, fp4_gemm, q8_quantize, attention, rope:
        check(bundle)
    if called != set(bundle.families):
        sys.exit(f"not called: {set(bundle.families) - called}")
print(f"{len(called)} families, each by itself and by a variant, have the values of plain Python")
