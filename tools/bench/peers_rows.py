"""The rows that tools/bench/peers.py times: each peer's work, and the minimum bytes and operations."""
from typing import NamedTuple

ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2}


# ---- the work: its parameters, bytes and operations ------------------------------------------------------------------

def attention_work(kind, head_dim, causal, batch, q_heads, kv_heads, q_length, k_length):
    return {"family": "attention", "type": kind, "head_dim": head_dim, "causal": causal, "batch": batch,
            "q_heads": q_heads, "kv_heads": kv_heads, "q_length": q_length, "k_length": k_length}


def product_work(family, kind, m, n, k, **more):
    return {"family": family, "type": kind, **more, "m": m, "n": n, "k": k}


def attention_bytes(w):
    rows = w["q_heads"] * w["q_length"] + w["kv_heads"] * w["k_length"]
    return 2 * w["batch"] * rows * w["head_dim"] * ELEMENT_BYTES[w["type"]]


def product_bytes(w):
    return (w["n"] * w["k"] + w["m"] * (w["n"] + w["k"])) * ELEMENT_BYTES[w["type"]]


def group_product_bytes(w):
    """4-bit weights with 4 bytes a group: an f32 scale, or a bf16 scale and zero."""
    weights = w["n"] * w["k"] // 2 + 4 * w["n"] * w["k"] // w["group"]
    return weights + w["m"] * (w["n"] + w["k"]) * ELEMENT_BYTES[w["type"]]


def quantised_bytes(w):
    return w["n"] * ELEMENT_BYTES[w["type"]] + w["n"] // 2 + 4 * w["n"] // w["group"]


def product_operations(w):
    return 2 * w["m"] * w["n"] * w["k"]


def attention_operations(w):
    q, k = w["q_length"], w["k_length"]
    scores = q * (q + 1) // 2 if w["causal"] else q * k
    return 4 * w["batch"] * w["q_heads"] * scores * w["head_dim"]


# family: (bytes, operations or None)
COSTS = {
    "attention":       (attention_bytes, attention_operations),
    "matmul":          (product_bytes, product_operations),
    "nf4_quantize":    (quantised_bytes, None),
    "nf4_unpack":      (quantised_bytes, None),
    "nf4_gemm":        (group_product_bytes, product_operations),
    "int4_gemm":       (group_product_bytes, product_operations),
    "copy":            (lambda w: 2 * w["n"] * ELEMENT_BYTES[w["type"]], None),
    "rms_norm_matmul": (lambda w: product_bytes(w) + w["k"] * ELEMENT_BYTES[w["type"]], product_operations),
    "bmm":             (lambda w: w["l"] * product_bytes(dict(w, n=1)), lambda w: w["l"] * product_operations(dict(w, n=1))),
}


# ---- the peers: each returns (a note, [a call per set of buffers]) ---------------------------------------------------

def sdpa(backend):
    """Attention by one backend only. If it refuses grouped heads, K and V are passed with their heads repeated."""
    def run(bench, w):
        torch = bench.torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        def tensor(heads, length):
            return bench.random(w["type"], w["batch"], length, heads, w["head_dim"]).transpose(1, 2)

        def attend(q, k, v, is_grouped):
            with sdpa_kernel([getattr(SDPBackend, backend)]):
                torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=w["causal"], enable_gqa=is_grouped)

        sets = [(tensor(w["q_heads"], w["q_length"]), tensor(w["kv_heads"], w["k_length"]),
                 tensor(w["kv_heads"], w["k_length"])) for _ in bench.sets(attention_bytes(w))]
        group, note = w["q_heads"] // w["kv_heads"], ""
        if group > 1:
            try:
                attend(*sets[0], True)
            except RuntimeError:
                sets = [(q, *(repeat_heads(t, group) for t in (k, v))) for q, k, v in sets]
                group, note = 1, "K and V repeated"
        return note, [lambda s=s: attend(*s, group > 1) for s in sets]
    return run


def repeat_heads(tensor, group):
    """Keeps the memory order batch, row, head, dim."""
    return tensor.transpose(1, 2).repeat_interleave(group, dim=2).transpose(1, 2)


def product_sets(bench, w):
    """[(A, W)]"""
    weight_bytes = w["n"] * w["k"] * ELEMENT_BYTES[w["type"]]
    return [(bench.random(w["type"], w["m"], w["k"]), bench.random(w["type"], w["n"], w["k"]))
            for _ in bench.sets(weight_bytes)]


def matmul(bench, w):
    return "", [lambda a=a, b=b: bench.torch.matmul(a, b.t()) for a, b in product_sets(bench, w)]


def rms_norm_matmul(bench, w):
    torch, gamma = bench.torch, bench.random(w["type"], w["k"])
    norm = lambda x: torch.nn.functional.rms_norm(x, (w["k"],), gamma, 1e-5)
    return "", [lambda x=x, b=b: torch.matmul(norm(x), b.t()) for x, b in product_sets(bench, w)]


def bmm(bench, w):
    m, k, l = w["m"], w["k"], w["l"]
    sets = [(bench.random(w["type"], l, m, k), bench.random(w["type"], l, k, 1)) for _ in bench.sets(COSTS["bmm"][0](w))]
    return "", [lambda a=a, b=b: bench.torch.bmm(a, b) for a, b in sets]


def copy(bench, w):
    sets = [(bench.random(w["type"], w["n"]), bench.random(w["type"], w["n"])) for _ in bench.sets(COSTS["copy"][0](w))]
    return "", [lambda a=a, b=b: b.copy_(a) for a, b in sets]


def quantise(functional, w, tensor):
    return functional.quantize_4bit(tensor, blocksize=w["group"], quant_type="nf4")


def nf4_quantize(bench, w):
    from bitsandbytes import functional
    sets = [bench.random(w["type"], w["n"]) for _ in bench.sets(quantised_bytes(w))]
    return "", [lambda a=a: quantise(functional, w, a) for a in sets]


def nf4_unpack(bench, w):
    from bitsandbytes import functional
    sets = [(*quantise(functional, w, bench.random(w["type"], w["n"])), bench.random(w["type"], w["n"]))
            for _ in bench.sets(quantised_bytes(w))]
    return "", [lambda q=q, s=s, b=b: functional.dequantize_4bit(q, s, out=b) for q, s, b in sets]


def nf4_gemm(name):
    def run(bench, w):
        import bitsandbytes
        from bitsandbytes import functional
        sets = [(bench.random(w["type"], w["m"], w["k"]), *quantise(functional, w, bench.random(w["type"], w["n"], w["k"])))
                for _ in bench.sets(group_product_bytes(w))]
        if name == "gemv_4bit":
            return "", [lambda a=a, q=q, s=s: functional.gemv_4bit(a, q, state=s) for a, q, s in sets]
        return "", [lambda a=a, q=q, s=s: bitsandbytes.matmul_4bit(a, q, quant_state=s) for a, q, s in sets]
    return run


def int4_gemm(bench, w):
    torch, inner_k_tiles = bench.torch, 8
    n, k, group = w["n"], w["k"], w["group"]
    codes = lambda: torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, device=bench.device)
    sets = [(bench.random(w["type"], w["m"], k), torch.ops.aten._convert_weight_to_int4pack(codes(), inner_k_tiles),
             bench.random(w["type"], k // group, n, 2)) for _ in bench.sets(group_product_bytes(w))]
    return "", [lambda a=a, q=q, s=s: torch.ops.aten._weight_int4pack_mm(a, q, group, s) for a, q, s in sets]


def triton_attention(bench, w):
    import peers_triton
    shape = w["batch"], w["q_length"], w["q_heads"], w["head_dim"]
    sets = [[bench.random(w["type"], *shape) for _ in range(4)] for _ in bench.sets(attention_bytes(w))]
    return "", [lambda s=s: peers_triton.attend(*s, w["causal"]) for s in sets]


# ---- the rows --------------------------------------------------------------------------------------------------------

class Row(NamedTuple):
    peer: str
    work: dict
    run: object
    can_capture: bool = True


class Group(NamedTuple):
    seconds: float  # estimate per row on an H100
    rows: list


NK = (2560, 2560), (6912, 2560), (2560, 6912), (6912, 6912), (4096, 4096), (14336, 4096)
#           batch, q_heads, kv_heads, q_length, k_length
PREFILL = (4, 16, 16, 4096, 4096), (1, 16, 16, 16384, 16384), (1, 24, 24, 4608, 4608), (1, 32, 8, 2048, 2048)
DECODE = [(batch, *heads, 1, length) for batch, length in ((8, 8192), (8, 32768), (1, 131072))
          for heads in ((32, 8), (8, 1))]


def sdpa_rows(name):
    """PyTorch aligns the causal mask at the first key, so decoding has none: its query sees all keys."""
    kinds = ("f16", 64), ("f16", 128), ("bf16", 128)
    works = [attention_work(*kind, causal, *shape) for kind in kinds for shape in PREFILL for causal in (False, True)]
    works += [attention_work(*kind, False, *shape) for kind in kinds for shape in DECODE]
    return [Row(f"torch sdpa {name}", w, sdpa(f"{name.upper()}_ATTENTION")) for w in works]


def matmul_rows():
    shapes = [(kind, m, n, k) for kind, nks in (("f16", NK), ("bf16", NK[-2:])) for n, k in nks
              for m in (1, 8, 16, 32, 64, 128, 512, 2048)] + [(kind, 8192, 8192, 8192) for kind in ("f16", "bf16")]
    return [Row("torch.matmul", product_work("matmul", *shape), matmul) for shape in shapes]


def bitsandbytes_rows():
    large = {"type": "f16", "group": 64, "n": 1 << 26}
    # bitsandbytes quantises on the default stream, which a graph cannot capture.
    yield Row("bitsandbytes quantize_4bit", dict(family="nf4_quantize", **large), nf4_quantize, can_capture=False)
    yield Row("bitsandbytes dequantize_4bit", dict(family="nf4_unpack", **large), nf4_unpack)
    for n, k in NK:
        for name, m in ("gemv_4bit", 1), ("matmul_4bit", 1), ("matmul_4bit", 4), ("matmul_4bit", 16), ("matmul_4bit", 64):
            yield Row(f"bitsandbytes {name}", product_work("nf4_gemm", "f16", m, n, k, group=64), nf4_gemm(name))


def int4_rows():
    return [Row("torch _weight_int4pack_mm", product_work("int4_gemm", "bf16", m, n, k, group=group), int4_gemm)
            for n, k in NK for group in (64, 128) for m in (1, 16, 64)]


def triton_rows():
    return [Row("triton attention", attention_work("f16", head_dim, causal, *PREFILL[0]), triton_attention)
            for head_dim in (64, 128) for causal in (False, True)]


def other_rows():
    yield Row("torch copy_", {"family": "copy", "type": "f32", "n": 1 << 26}, copy)
    for n in 4096, 14336, 28672, 128256:
        yield Row("torch rms_norm, matmul", product_work("rms_norm_matmul", "f16", 1, n, 4096), rms_norm_matmul)
    for m, k, l in (7168, 16384, 1), (4096, 7168, 8), (7168, 2048, 4):
        yield Row("torch.bmm", {"family": "bmm", "type": "f16", "m": m, "k": k, "l": l}, bmm)


def make_groups(only):
    """The groups of rows; each runs in one process."""
    groups = [Group(0.3, sdpa_rows("cudnn")), Group(0.08, sdpa_rows("flash")), Group(0.06, matmul_rows()),
              Group(0.1, bitsandbytes_rows()), Group(0.06, int4_rows()), Group(2.5, triton_rows()), Group(0.1, other_rows())]
    chosen = [Group(g.seconds, [row for row in g.rows if only in describe(row)]) for g in groups]
    return [group for group in chosen if group.rows]


def describe(row):
    return " ".join([row.peer, row.work["family"], *(f"{name}={value}".lower() for name, value in list(row.work.items())[1:])])
