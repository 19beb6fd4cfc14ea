"""What tools/bench/gpu times: one row per family. A family of tests/full.yaml without a row fails tests/bench."""
from typing import NamedTuple


class Row(NamedTuple):
    timed: dict      # parameter: its values that are timed; one that is not named is timed with all of its values
    shown: dict      # likewise, and sizes: of those, what README.md's table shows; baselines run for these parameters
    shapes: list     # each names every size that any of the variants takes; a function makes one of the parameters
    quick: dict      # the shape of --quick, which an emulated device gets through in a moment
    baselines: list  # functions of baselines.py
    fits: object = lambda parameters, shape: True   # whether the variant is for this shape
    workspace: object = lambda parameters, shape: 1  # its size, of a variant that takes one


NK = (2560, 2560), (6912, 2560), (2560, 6912), (6912, 6912), (4096, 4096), (14336, 4096)
ROWS = 1, 2, 4, 8, 16, 32, 64, 128, 512
CONTRACT = "format", "type", "mode", "group", "nibbles", "a", "acc", "norm", "x", "activation", "batch", "y", "c", "head_dim", "causal", "scale_layout", "global_scale"


def quantiser(*baselines):
    """4-bit quantisation in groups: 67.1 million elements, past any L2 cache."""
    return Row(timed={"nibbles": ["low"]}, shown={"type": ["f32", "f16", "bf16"], "group": ["64"]},
               shapes=[{"n": 1 << 26, "group_size": 64}], quick={"n": 20000, "group_size": 64},
               baselines=list(baselines))


def fits_rows(tiles):
    """Of tiles of 1, 2, 4, ... rows the one that dispatch takes: the least that holds them, or the largest there is. All
    shapes have columns by eights, which mma takes at once."""
    def fits(parameters, shape):
        if parameters["strategy"] == "mma" and parameters.get("vector") == "1":
            return False
        kind = parameters["a"] if parameters["strategy"] == "simt" else parameters["strategy"]
        least, largest = tiles[kind]
        return int(parameters["tile_m"]) == max(least, min(1 << (shape["m"] - 1).bit_length(), largest))
    return fits


def partial_sums(tile_n, columns):
    """A workspace for the sums of all tiles, of as many parts as share one."""
    def size(parameters, shape):
        p = {name: int(value) for name, value in parameters.items() if value.isdigit()}
        width = p.get("tile_n", tile_n)
        tiles = -(-shape["m"] // p["tile_m"]) * -(-shape[columns] // width)
        parts = tiles * p["split_k"] if p.get("split_k", 1) else 2 * min(8 * tiles, 320)
        return parts * p["tile_m"] * width
    return size


def product(workspace, fits):
    """NF4 weights, past any L2 cache where that is what takes time. bf16 is left out: it takes what f16 does."""
    def shape(m, n, k):
        return {"m": m, "n": n, "k": k, "normal_scales": lambda parameters: int(parameters.get("scales") == "normal")}
    return Row(timed={"nibbles": ["low"], "acc": ["f32"], "a": ["f32", "f16"]}, shown={"a": ["f16"], "m": ["1", "16", "64"], "n": ["2560", "6912"]},
               shapes=[shape(m, n, k) for n, k in NK for m in ROWS], quick=shape(3, 67, 2560),
               fits=fits, workspace=workspace,
               baselines=["torch_matmul", "torch_lookup_matmul", "bitsandbytes_matmul"])


def q4k_dequantize():
    """Beside a cast that reads 0.5 bytes per element, where this reads 0.5625."""
    return Row(timed={}, shown={}, shapes=[{"n": 1 << 26}], quick={"n": 20480}, baselines=["torch_widen"])


def gguf_dequantize():
    """All formats; those that models are mostly in are shown."""
    return Row(timed={"type": ["f16"]}, shown={"format": ["q4_0", "q8_0", "q4_k", "q6_k", "mxfp4"]},
               shapes=[{"n": 1 << 26}], quick={"n": 20480}, baselines=["torch_widen"])


def gguf_rows():
    """An embedding's rows for a token, and for a prompt. The index is copied from a smaller problem's, so it names few rows,
    which stay in the L2 cache: what is timed is decoding and writing."""
    shapes = [{"n": n, "k": 4096, "tensor_rows": 128256} for n in (1, 2048)]
    return Row(timed={"type": ["f16"]}, shown={"format": ["q4_k", "q6_k"]}, shapes=shapes,
               quick={"n": 40, "k": 512, "tensor_rows": 64},
               baselines=["torch_embedding"])


def rmsnorm_q4k_gemv():
    """Nothing in PyTorch reads Q4_K: beside it stands what takes 3.6 times the bytes."""
    shapes = (8960, 1536), (4096, 4096), (14336, 4096), (28672, 4096), (128256, 4096)
    return Row(timed={"batch": ["1"], "chunk": ["65536"]}, shown={"norm": ["rms"], "x": ["f16"], "y": ["f16"]},
               shapes=[{"n": n, "k": k} for n, k in shapes], quick={"n": 256, "k": 512}, baselines=["torch_norm_matmul"])


def linear():
    """A decoder's layers: one token, and a few. Beside it stands what takes up to seven times the bytes."""
    shapes = (4096, 4096), (14336, 4096), (4096, 14336), (128256, 4096)
    return Row(timed={"x": ["f16"], "y": ["f16"], "epilogue": ["none"], "norm": ["none"], "matrices": ["1"], "scale": ["none"]},
               shown={"format": ["q4_0", "q8_0", "q4_k", "q6_k", "mxfp4"], "activation": ["q8"]},
               shapes=[{"m": m, "n": n, "k": k} for n, k in shapes for m in (1, 4, 8)],
               quick={"m": 3, "n": 256, "k": 512}, baselines=["torch_matmul"])


def nvfp4_gemv():
    """The shapes that the published kernels are compared by; vectors without padding."""
    shapes = [{"m": m, "k": k, "l": l, "b_rows": 1} for m, k, l in ((7168, 16384, 1), (4096, 7168, 8), (7168, 2048, 4))]
    return Row(timed={"lane_codes": ["32"]}, shown={}, shapes=shapes,
               quick={"m": 128, "k": 2048, "l": 1, "b_rows": 1}, baselines=["torch_bmm"])


def fp4_quantize():
    """Activations of a prompt."""
    return Row(timed={"scale_layout": ["tiles_128x4"]}, shown={"type": ["f16", "bf16"]}, shapes=[{"m": 16384, "k": 4096}],
               quick={"m": 37, "k": 512}, baselines=[])


def q8_quantize():
    """Activations of a few tokens, and of a prompt."""
    return Row(timed={"type": ["f16"]}, shown={"norm": ["none", "rms"]}, shapes=[{"m": 8, "k": 4096}, {"m": 4096, "k": 4096}],
               quick={"m": 37, "k": 512}, baselines=[])


def attention_shape(batch, heads, length, k_length=None, kv_heads=None):
    """Batch, row, head, as projections leave them."""
    def stride(heads, rows=1):
        return lambda parameters: int(parameters["head_dim"]) * heads * rows
    k_length, kv_heads = k_length or length, kv_heads or heads
    keys = kv_heads, k_length
    strides = {"q": (heads, length), "k": keys, "v": keys, "out": (heads, length)}
    return {"batch": batch, "q_heads": heads, "kv_heads": kv_heads, "q_length": length, "k_length": k_length,
            **{f"{name}_row_stride": stride(of) for name, (of, _) in strides.items()},
            **{f"{name}_head_stride": stride(1) for name in strides},
            **{f"{name}_batch_stride": stride(*sizes) for name, sizes in strides.items()},
            **dict.fromkeys(("window_left", "window_right", "first_keys", "causal_offset", "splits"), 0)}


def attention_workspace(parameters, shape):
    """With split_k 0 at most 512 thread blocks share the work of few tiles, 256 that of one."""
    rows, split_k, tile_q = shape["batch"] * shape["q_heads"] * shape["q_length"], int(parameters["split_k"]), int(parameters["tile_q"])
    return (rows * split_k if split_k else max(rows * 256, 512 * tile_q)) * (int(parameters["head_dim"]) + 8)


def attention():
    """Prefill; one query for each of eight sequences against 32768 keys."""
    shapes = [attention_shape(*sizes) for sizes in ((4, 16, 4096), (1, 16, 16384), (1, 24, 4608), (8, 32, 1, 32768, 8))]
    return Row(timed={"head_dim": ["64", "128", "256"], "tile_k": ["64"]}, shown={"type": ["f32", "f16", "bf16"]},
               shapes=shapes, quick=attention_shape(2, 4, 5, 1500, 2),
               baselines=["torch_sdpa_flash_attention", "torch_sdpa_cudnn_attention", "torch_sdpa_efficient_attention",
                          "torch_sdpa_math"],
               workspace=attention_workspace)


def rope_shape(n, q_heads, heads):
    """Q, K and V as parts of a row; pages of 16 tokens."""
    def stride(count):
        return lambda parameters: int(parameters["head_dim"]) * count
    row = q_heads + 2 * heads
    return {"n": n, "q_heads": q_heads, "k_heads": heads, "v_heads": heads, "rotary_dim": stride(1), "pages": -(-n // 16),
            "page_size": 16, **{f"{name}_row_stride": stride(row) for name in "qkv"}, "out_row_stride": stride(q_heads),
            **{f"{name}_head_stride": stride(1) for name in ("q", "k", "v", "out", "cache")},
            "cache_page_stride": stride(16 * heads), "cache_row_stride": stride(heads), "scale_page_stride": 16 * heads,
            "scale_row_stride": heads, "scale_head_stride": 1}


def rope():
    """A prompt, and a token of each of 64 sequences."""
    return Row(timed={}, shown={"type": ["f16", "bf16"]}, shapes=[rope_shape(n, 32, 8) for n in (8192, 64)],
               quick=rope_shape(5, 4, 2), baselines=[])


FAMILIES = {
    "int4_scale":          quantiser("torch_range"),
    "int4_pack":           quantiser("torch_narrow"),
    "int4_quantize":       quantiser("torch_narrow"),
    "int4_unpack":         quantiser("torch_widen"),
    "nf4_scale":           quantiser("torch_range"),
    "nf4_pack":            quantiser("torch_narrow"),
    "nf4_quantize":        quantiser("torch_narrow", "bitsandbytes_quantize"),
    "nf4_unpack":          quantiser("torch_widen", "bitsandbytes_dequantize"),
    "nf4_gemm":            product(partial_sums(None, "n"), fits_rows({"f32": (1, 32), "f16": (1, 8), "mma": (1, 64), "tiles": (64, 128)})),
    "nf4_gemm_transposed": product(partial_sums(512, "k"), fits_rows({"f32": (1, 8), "f16": (1, 8), "mma": (8, 64)})),
    "gguf_dequantize":     gguf_dequantize(),
    "gguf_rows":           gguf_rows(),
    "q4k_dequantize":      q4k_dequantize(),
    "rmsnorm_q4k_gemv":    rmsnorm_q4k_gemv(),
    "linear":              linear(),
    "nvfp4_gemv":          nvfp4_gemv(),
    "fp4_quantize":        fp4_quantize(),
    "q8_quantize":         q8_quantize(),
    "rope":                rope(),
    "attention":           attention(),
}


def parameters(variant):
    """{"type": "f32", ...} of "family/type=f32,..."."""
    pairs = variant.partition("/")[2]
    return dict(pair.split("=") for pair in pairs.split(",")) if pairs else {}


def selects(selection, variant, sizes=None):
    given = dict(parameters(variant), **{name: str(size) for name, size in (sizes or {}).items()})
    return all(given[name] in values for name, values in selection.items() if name in given)


def sizes_of(shape, names, variant):
    values = {name: shape[name] for name in names}
    return {name: value(parameters(variant)) if callable(value) else value for name, value in values.items()}


def work(variant, sizes):
    """"nf4_gemm/a=f16 m=1 n=64 k=64": what is the same for all tiles and strategies, and for a baseline."""
    given = [f"{name}={value}" for name, value in parameters(variant).items() if name in CONTRACT]
    shape = [f"{name}={size}" for name, size in sizes.items() if name not in ("workspace_size", "normal_scales")]
    return " ".join([variant.partition("/")[0] + "/" + ",".join(given), *shape])


def operations(variant, sizes):
    """Additions and multiplications of a product, or of attention's two, over the keys that its queries see; else None."""
    if {"m", "n", "k"} <= set(sizes):
        return 2 * sizes["m"] * sizes["n"] * sizes["k"]
    if not {"q_length", "k_length"} <= set(sizes):
        return None
    queries, keys, given = sizes["q_length"], sizes["k_length"], parameters(variant)
    seen = queries * keys
    if given["causal"] == "true":
        seen = sum(max(0, i + 1 + keys - queries) for i in range(queries))
    return 4 * sizes["batch"] * sizes["q_heads"] * seen * int(given["head_dim"])


def plan(variants, is_quick):
    """[(variant, sizes)] to time, of {variant: names of its sizes}; with is_quick the first variant of each family."""
    chosen, seen = [], set()
    for variant, names in variants.items():
        family = variant.partition("/")[0]
        row = FAMILIES.get(family)
        if not row or not selects(row.timed, variant) or (is_quick and family in seen):
            continue
        seen.add(family)
        fitting = [shape for shape in row.shapes if row.fits(parameters(variant), shape)]
        for shape in [row.quick] if is_quick else fitting:
            whole = dict(shape, workspace_size=row.workspace(parameters(variant), shape))
            chosen.append((variant, sizes_of(whole, names, variant)))
    return chosen
