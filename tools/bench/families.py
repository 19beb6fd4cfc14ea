"""What tools/bench/gpu times: one row per family. A family of tests/full.yaml without a row fails tests/bench."""
from typing import NamedTuple


class Row(NamedTuple):
    timed: dict      # parameter: its values that are timed; one that is not named is timed with all of its values
    shown: dict      # likewise, of those: what the README's table shows
    shapes: list     # each names every size that any of the variants takes; a function makes one of the parameters
    quick: dict      # the shape of --quick, which an emulated device gets through in a moment
    baselines: list  # functions of baselines.py


def quantiser(*baselines):
    """4-bit quantisation in groups: 67.1 million elements, past any L2 cache."""
    return Row(timed={"nibbles": ["low"]}, shown={"type": ["f32", "f16", "bf16"], "group": ["64"]},
               shapes=[{"n": 1 << 26, "group_size": 64}], quick={"n": 20000, "group_size": 64},
               baselines=list(baselines))


def product(*baselines):
    """NF4 weights, past any L2 cache where that is what takes time."""
    shapes = [(m, n, k) for n, k in ((2560, 2560), (6912, 2560), (2560, 6912), (6912, 6912), (4096, 4096), (14336, 4096))
              for m in (1, 2, 4, 8, 16, 32, 64, 128, 512)]
    return Row(timed={"nibbles": ["low"], "acc": ["f32"]},
               shown={"a": ["f16", "bf16"], "tile_n": ["16"], "slices": ["4"]},
               shapes=[{"m": m, "n": n, "k": k} for m, n, k in shapes], quick={"m": 3, "n": 67, "k": 2560},
               baselines=list(baselines))


def q4k_dequantize():
    """Beside a cast that reads 0.5 bytes per element, where this reads 0.5625."""
    return Row(timed={}, shown={}, shapes=[{"n": 1 << 26}], quick={"n": 20480}, baselines=["torch_widen"])


def rmsnorm_q4k_gemv():
    """No baseline of PyTorch's reads Q4_K."""
    return Row(timed={"batch": ["1"]}, shown={}, baselines=[], quick={"n": 256, "k": 512},
               shapes=[{"n": n, "k": k} for n, k in ((4096, 4096), (14336, 4096), (8960, 1536), (28672, 4096))])


def attention_shape(batch, heads, length, k_length=None, kv_heads=None):
    """Batch, row, head, as projections leave them."""
    def stride(heads, rows=1):
        return lambda parameters: int(parameters["head_dim"]) * heads * rows
    k_length, kv_heads = k_length or length, kv_heads or heads
    strides = {"q": (heads, length), "kv": (kv_heads, k_length), "out": (heads, length)}
    return {"batch": batch, "q_heads": heads, "kv_heads": kv_heads, "q_length": length, "k_length": k_length,
            **{f"{name}_row_stride": stride(of) for name, (of, _) in strides.items()},
            **{f"{name}_head_stride": stride(1) for name in strides},
            **{f"{name}_batch_stride": stride(*sizes) for name, sizes in strides.items()}}


def attention():
    """Prefill; one query for each of eight sequences against 32768 keys."""
    shapes = [attention_shape(*sizes) for sizes in ((4, 16, 4096), (1, 16, 16384), (1, 24, 4608), (8, 32, 1, 32768, 8))]
    return Row(timed={"head_dim": ["64", "128", "256"], "tile_k": ["64"]}, shown={"type": ["f16", "bf16"], "strategy": ["mma"]},
               shapes=shapes, quick=attention_shape(2, 4, 5, 1500, 2),
               baselines=["torch_sdpa_flash_attention", "torch_sdpa_cudnn_attention", "torch_sdpa_efficient_attention",
                          "torch_sdpa_math"])


FAMILIES = {
    "int4_scale":       quantiser("torch_range"),
    "int4_pack":        quantiser("torch_narrow"),
    "int4_quantize":    quantiser("torch_narrow"),
    "int4_unpack":      quantiser("torch_widen"),
    "nf4_scale":        quantiser("torch_range"),
    "nf4_pack":         quantiser("torch_narrow"),
    "nf4_quantize":     quantiser("torch_narrow", "bitsandbytes_quantize"),
    "nf4_unpack":       quantiser("torch_widen", "bitsandbytes_dequantize"),
    "nf4_gemm":         product("torch_matmul"),
    "q4k_dequantize":   q4k_dequantize(),
    "rmsnorm_q4k_gemv": rmsnorm_q4k_gemv(),
    "attention":        attention(),
}


def parameters(variant):
    """{"type": "f32", ...} of "family/type=f32,..."."""
    pairs = variant.partition("/")[2]
    return dict(pair.split("=") for pair in pairs.split(",")) if pairs else {}


def selects(selection, variant):
    given = parameters(variant)
    return all(given[name] in values for name, values in selection.items() if name in given)


def sizes_of(shape, names, variant):
    values = {name: shape[name] for name in names}
    return {name: value(parameters(variant)) if callable(value) else value for name, value in values.items()}


def plan(variants, is_quick):
    """[(variant, sizes)] to time, of {variant: names of its sizes}; with is_quick the first variant of each family."""
    chosen, seen = [], set()
    for variant, names in variants.items():
        family = variant.partition("/")[0]
        row = FAMILIES.get(family)
        if not row or not selects(row.timed, variant) or (is_quick and family in seen):
            continue
        seen.add(family)
        for shape in [row.quick] if is_quick else row.shapes:
            chosen.append((variant, sizes_of(shape, names, variant)))
    return chosen
