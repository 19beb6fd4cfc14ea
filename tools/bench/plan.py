"""Which variants are timed at which shapes, the most important first, since time may run out.

A shape gives sizes of its family as numbers or as expressions over the other sizes and the variant's parameters.
kiln-bench gives every other size the least value that the rules allow, and skips a shape that the rules forbid.
"""
from typing import NamedTuple


class Group(NamedTuple):
    """The variants of a family that compete at these shapes."""
    family: str
    shapes: list
    where: dict = {}    # {parameter: the values to time; None: only variants whose id does not name it}
    only_set: tuple = ()  # the variants' bundles, as join.py names them; empty: any


CONFIGS = ("generated/default.yaml", "tests/consumer/language_model/kernels.yaml", "tests/full.yaml", "tests/choose/hand_written.yaml",
           "tests/wide.yaml")
SHIPPED = ("kiln_default", "lm_kernels")
WIDE = "kiln_wide"
NK = (4096, 4096), (14336, 4096), (6912, 6912), (2560, 2560), (6912, 2560), (2560, 6912)
FEW_ROWS = 1, 4, 8, 16, 32, 64
LARGE = 1 << 26  # elements to quantise, larger than any L2 cache


def products(nk, rows, **sizes):
    return [dict(m=m, n=n, k=k, **sizes) for n, k in nk for m in rows]


def attention(batch, q_heads, q_length, k_length=None, kv_heads=None):
    """Memory order batch, row, head, as projections write it."""
    shape = {"batch": batch, "q_heads": q_heads, "kv_heads": kv_heads or q_heads, "q_length": q_length,
             "k_length": k_length or q_length, "splits": 0}
    for name, heads, rows in ("q", "q_heads", "q_length"), ("k", "kv_heads", "k_length"), ("v", "kv_heads", "k_length"), \
                             ("out", "q_heads", "q_length"):
        shape[f"{name}_row_stride"] = f"{heads}*head_dim"
        shape[f"{name}_head_stride"] = "head_dim"
        shape[f"{name}_batch_stride"] = f"{rows}*{name}_row_stride"
    return shape


def rope(n, q_heads, heads):
    """Q, K and V interleaved in each row, and a cache with pages of 16 tokens."""
    row = q_heads + 2 * heads
    shape = {"n": n, "q_heads": q_heads, "k_heads": heads, "v_heads": heads, "rotary_dim": "head_dim",
             "pages": -(-n // 16), "page_size": 16}
    for name in "qkv":
        shape |= {f"{name}_row_stride": f"{row}*head_dim", f"{name}_head_stride": "head_dim"}
    return shape | {"out_row_stride": "q_heads*head_dim", "out_head_stride": "head_dim",
                    "cache_page_stride": f"{16 * heads}*head_dim", "cache_row_stride": f"{heads}*head_dim",
                    "cache_head_stride": "head_dim"}


PREFILL = [attention(4, 16, 4096), attention(1, 24, 4608), attention(1, 32, 2048, kv_heads=8)]
DECODE = [attention(8, 32, 1, 32768, 8), attention(8, 32, 1, 8192, 8), attention(1, 8, 1, 131072, 1)]
NVFP4 = [dict(m=m, k=k, l=l, b_rows=1) for m, k, l in ((7168, 16384, 1), (4096, 7168, 8), (7168, 2048, 4))]
# SmolLM2-135M: QKV, output and down projections, gate and up, and the head.
LM = [dict(m=m, n=n, k=k, n_2="n/3", n_3="n/3") for m in (1, 4) for n, k in ((960, 576), (576, 576), (1536, 576), (576, 1536), (49152, 576))]
QUANTISERS = ("int4_quantize", "int4_unpack", "nf4_quantize", "nf4_unpack", "int4_scale", "int4_pack", "nf4_scale",
              "nf4_pack")
DENSE = {"layout": None, "score": None, "head_dim_v": None, "kv": None}
NF4 = {"acc": ["f32"], "nibbles": ["low"], "scale_type": None, "rows": None}
LINEAR = {"epilogue": ["none"], "matrices": None, "scale": None, "norm": ["none"]}

SHIPPED_GROUPS = [
    *(Group(family, [dict(n=LARGE)], only_set=SHIPPED) for family in QUANTISERS),
    Group("nf4_gemm", products(NK, (1, 8, 16, 64, 128, 512)), only_set=SHIPPED),
    Group("nf4_gemm_transposed", products(NK[:3], (1, 16, 64, 512), normal_scales="1"), only_set=SHIPPED),
    Group("q4k_dequantize", [dict(n=LARGE)], only_set=SHIPPED),
    Group("rmsnorm_q4k_gemv", [dict(n=n, k=k) for n, k in ((4096, 4096), (14336, 4096), (28672, 4096), (128256, 4096),
                                                           (8960, 1536))], only_set=SHIPPED),
    Group("nvfp4_gemv", NVFP4, only_set=SHIPPED),
    Group("attention", PREFILL + DECODE, DENSE, only_set=SHIPPED),
    Group("rope", [rope(8192, 32, 8), rope(64, 32, 8)], only_set=SHIPPED),
    Group("linear", products(NK[:2], (1, 4, 16, 64, 512)), {"format": ["q4_k"]}, only_set=SHIPPED),
    Group("linear", LM, {"format": ["q4_1", "q8_0"]}, only_set=SHIPPED),
]

COMPETING_GROUPS = [
    Group("attention", PREFILL[:2], DENSE | {"type": ["f16"], "head_dim": ["64", "128", "256"]}),
    Group("attention", DECODE, DENSE | {"type": ["f16", "bf16"], "head_dim": ["64", "128"], "tile_q": ["16", "32"]}),
    Group("nf4_gemm", products(NK[:2], FEW_ROWS), NF4 | {"a": ["f16"]}),
    Group("linear", products(NK[:2], FEW_ROWS), LINEAR | {"format": ["q4_k", "q8_0", "q4_0", "q6_k"]}),
    Group("nvfp4_gemv", NVFP4, {"scale_layout": None, "global_scale": None}),
    Group("nf4_gemm", products(NK[2:4], FEW_ROWS), NF4 | {"a": ["f16"]}),
    Group("nf4_gemm", products(NK[:3], (128, 512, 2048)), NF4 | {"a": ["f16", "bf16"], "strategy": ["mma", "tiles"]}),
    Group("linear", products(NK[:2], (128, 512, 2048)), LINEAR | {"strategy": ["mma", "tiles"]}),
    Group("linear", products(NK[:2], (1, 4, 8)), LINEAR),
    Group("nf4_gemm_transposed", products(NK[:2], (1, 16, 64, 512), normal_scales="scales==normal"),
          {"acc": ["f32"], "nibbles": ["low"], "a": ["f16", "bf16"]}),
    Group("rmsnorm_q4k_gemv", [dict(n=14336, k=4096), dict(n=4096, k=4096)], {"norm": ["rms"]}),
    Group("nf4_gemm", products(NK[:1], (1, 8, 64, 512)), NF4 | {"a": ["f32"]}),
    Group("attention", PREFILL[:1], DENSE | {"type": ["f32", "bf16"]}),
    *(Group(family, [dict(n=LARGE, group_size=64)], {"nibbles": ["low"], "scale_type": None}) for family in QUANTISERS),
    Group("gguf_dequantize", [dict(n=LARGE)], {"type": ["f16"]}),
    Group("gguf_rows", [dict(n=2048, k=4096, tensor_rows=128256)], {"type": ["f16"]}),
    Group("fp4_gemm", [dict(m=m, n=8192, k=8192) for m in (1, 16, 64, 256, 2048)], {"x": ["f16", "nvfp4"], "y": ["f16"]}),
    Group("fp4_quantize", [dict(m=16384, k=4096)]),
    Group("q8_quantize", [dict(m=8, k=4096), dict(m=4096, k=4096)]),
    Group("rope", [rope(8192, 32, 8), rope(64, 32, 8)]),
]

# Every legal combination of the tuning parameters of some contracts (tests/wide.yaml), to judge `kiln choose` by.
TOKENS = 1, 4, 8, 16, 32, 64, 128, 512, 2048
HALF = LINEAR | {"x": ["f16"], "y": ["f16"], "activation": ["half"]}
Q8 = LINEAR | {"format": ["q4_k"], "y": ["f16"], "x": ["f16", "s8"], "activation": ["q8"], "overlap": ["false"]}
SWEEP_GROUPS = [
    Group("nf4_gemm", products(NK[:1], TOKENS), NF4 | {"a": ["f16"]}),
    Group("linear", products(NK[:1], TOKENS), HALF | {"format": ["q4_k"], "overlap": ["false"]}),
    Group("attention", PREFILL[2:] + DECODE[1:] + PREFILL[:1],
          DENSE | {"type": ["f16"], "head_dim": ["64", "128"], "strategy": ["mma"]}),
    Group("linear", products(NK[:1], TOKENS[:7]), Q8),
    Group("nf4_gemm_transposed", products(NK[:1], (1, 16, 64, 512), normal_scales="scales==normal"),
          {"acc": ["f32"], "nibbles": ["low"], "a": ["f16"]}),
    Group("nvfp4_gemv", NVFP4, {"scale_layout": None, "global_scale": None, "c": ["f16"]}),
    Group("rmsnorm_q4k_gemv", [dict(n=n, k=4096) for n in (4096, 14336, 128256)],
          {"norm": ["rms"], "x": ["f16"], "y": ["f16"], "activation": ["q8"]}),
    Group("nf4_gemm", products(NK[1:2], TOKENS), NF4 | {"a": ["f16"]}),
    Group("linear", products(NK[1:2], TOKENS), HALF | {"format": ["q4_k", "q8_0"], "overlap": ["false"]}),
    Group("nf4_gemm", products(NK[3:4], TOKENS[:6]), NF4 | {"a": ["f16"]}),
]


def parameters(variant):
    """{"type": "f32", ...} of "family/type=f32,..."."""
    pairs = variant.partition("/")[2]
    return dict(pair.split("=") for pair in pairs.split(",")) if pairs else {}


def is_chosen(group, variant, bundle):
    given = parameters(variant)
    return (variant.partition("/")[0] == group.family and (not group.only_set or bundle in group.only_set) and
            all(given.get(name) is None if values is None else given.get(name, values[0]) in values
                for name, values in group.where.items()))


def is_apt(variant, shape):
    """Whether the variant can be close to the fastest at this many rows: W is read once per tile of rows, and a tile much larger
    than m computes rows that do not exist. The variants left out are the slowest, and dispatch would never pick them."""
    given = parameters(variant)
    if "m" not in shape or not {"tile_m", "vectors"} & set(given):
        return True
    is_vectors = given.get("strategy") == "simt" and "vectors" in given
    rows = int(given["vectors" if is_vectors else "tile_m"])
    return (shape["m"] <= 8 * rows or rows >= 64) and rows <= max(16, 4 * shape["m"])


def measured(sets):
    """The variants that `measure` verifies and times: all except those that only `sweep` does."""
    return {variant: bundle for variant, bundle in sets.items() if bundle != WIDE}


def cap(value, most):
    return min(value, most) if most and isinstance(value, int) else value


def rows(groups, sets, sizes=None, most=None):
    """Plan lines for kiln-bench without repeats: "ID m=1 n=4096 k=4096". `sets` is join.py's. `sizes` has the names of each
    variant's sizes; a size that the variant lacks is dropped from the shape. `most` caps sizes, for rehearsals."""
    lines = {}
    for group in groups:
        for shape in group.shapes:
            for variant, bundle in sets.items():
                if not is_chosen(group, variant, bundle) or not is_apt(variant, shape):
                    continue
                words = [f"{name}={cap(value, most)}" for name, value in shape.items() if sizes is None or name in sizes[variant]]
                lines[" ".join([variant, *words])] = None
    return list(lines)
