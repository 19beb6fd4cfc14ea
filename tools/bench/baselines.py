"""What PyTorch, and bitsandbytes, take for the work of kiln's kernels: one JSON line per line of standard input.

usage: baselines.py DEVICE < LINES        (each a {"id", "baseline", "sizes", "parameters"} that tools/bench/gpu makes)

Timed like kiln-bench does it: events around batches, after a warm-up, over tensors that rotate past the L2 cache.
"""
import importlib
import json
import math
import sys

SAMPLES, BATCH_US, MOST_BATCH, MOST_SETS = 30, 1000, 256, 64
ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2}
L2_TWICE = 256 << 20  # bytes; no L2 cache of today passes half of it


# ---- the baselines: each returns (what it is, bytes moved, [a function per set of tensors]) --------------------------

def torch_copy(torch, job):
    source, target = [job.random(torch) for _ in range(job.sets)], [job.random(torch) for _ in range(job.sets)]
    return ("torch copy", 2 * job.n * job.element_bytes, [lambda a=a, b=b: b.copy_(a) for a, b in zip(source, target)])


def torch_cast(torch, job, source_type, target_type):
    pairs = job.n // 2
    source = [torch.zeros(pairs, dtype=source_type, device=job.device) for _ in range(job.sets)]
    target = [torch.empty(pairs, dtype=target_type, device=job.device) for _ in range(job.sets)]
    return ("torch cast", pairs * (2 * job.element_bytes + 1),
            [lambda a=a, b=b: b.copy_(a) for a, b in zip(source, target)])


def torch_narrow(torch, job):
    """Reads what quantising reads, writes a byte per two elements: a cast of integers as wide as two elements."""
    return torch_cast(torch, job, job.two_elements(torch), torch.uint8)


def torch_widen(torch, job):
    """Reads a byte per two elements, writes what unpacking writes."""
    return torch_cast(torch, job, torch.uint8, job.two_elements(torch))


def torch_embedding(torch, job):
    """The same rows of a tensor that is dequantised already."""
    rows = job.sizes["tensor_rows"]
    table = job.random(torch, rows * job.k).view(rows, job.k)
    index = [torch.randint(0, rows, (job.n,), dtype=torch.int32, device=job.device) for _ in range(job.sets)]
    return ("torch embedding", 2 * job.n * job.k * job.element_bytes,
            [lambda i=i: torch.nn.functional.embedding(i, table) for i in index])


def torch_range(torch, job):
    """The largest magnitude, or the smallest and the largest, of each group."""
    source = [job.random(torch).view(-1, job.group) for _ in range(job.sets)]
    outputs = 2 if job.mode == "asym" else 1
    moved = job.n * job.element_bytes + outputs * job.n // job.group * job.element_bytes
    if job.mode == "asym":
        return "torch.aminmax", moved, [lambda a=a: torch.aminmax(a, dim=1) for a in source]
    norm = torch.linalg.vector_norm
    return "torch vector_norm(inf)", moved, [lambda a=a: norm(a, float("inf"), dim=1) for a in source]


def bitsandbytes_quantize(torch, job):
    import bitsandbytes.functional as functional
    source = [job.random(torch) for _ in range(job.sets)]
    return ("bitsandbytes", job.n * job.element_bytes + job.n // 2 + 4 * job.n // job.group,
            [lambda a=a: functional.quantize_4bit(a, blocksize=job.group, quant_type="nf4") for a in source])


def bitsandbytes_dequantize(torch, job):
    import bitsandbytes.functional as functional
    made = [functional.quantize_4bit(job.random(torch), blocksize=job.group, quant_type="nf4") for _ in range(job.sets)]
    target = [torch.empty(job.n, dtype=job.dtype(torch), device=job.device) for _ in range(job.sets)]
    return ("bitsandbytes", job.n * job.element_bytes + job.n // 2 + 4 * job.n // job.group,
            [lambda q=q, s=s, b=b: functional.dequantize_4bit(q, s, out=b) for (q, s), b in zip(made, target)])


# ---- products: a job's weights are n rows of k; the transposed product sums over n -----------------------------------

def operands(torch, job, weight_bytes):
    """[(A, C)] of each set."""
    outer, inner = (job.k, job.n) if job.is_transposed else (job.n, job.k)
    sets = min(MOST_SETS, L2_TWICE // weight_bytes + 2)
    return [(job.random(torch, job.m * inner).view(job.m, inner), job.random(torch, job.m * outer).view(job.m, outer))
            for _ in range(sets)]


def multiply(torch, job, a, weights, c):
    return torch.matmul(a, weights if job.is_transposed else weights.t(), out=c)


def torch_matmul(torch, job):
    """With weights that are dequantised already, in A's type: what people run where memory is plenty."""
    made = operands(torch, job, job.n * job.k * job.element_bytes)
    weights = [job.random(torch, job.n * job.k).view(job.n, job.k) for _ in made]
    return ("torch.matmul, dequantised", (job.n * job.k + job.m * (job.n + job.k)) * job.element_bytes,
            [lambda a=a, w=w, c=c: multiply(torch, job, a, w, c) for (a, c), w in zip(made, weights)])


def torch_lookup_matmul(torch, job):
    """Each byte of codes by a table of pairs, times the scales, then the product."""
    made = operands(torch, job, job.n * job.k // 2)
    pairs = job.random(torch, 512).view(256, 2)
    packed = [torch.randint(0, 256, (job.n, job.k // 2), dtype=torch.uint8, device=job.device) for _ in made]
    scale = [job.random(torch, job.n * job.k // 64).view(job.n, job.k // 64, 1) for _ in made]

    def call(a, codes, scales, c):
        values = torch.nn.functional.embedding(codes.int(), pairs).view(job.n, job.k // 64, 64)
        return multiply(torch, job, a, (values * scales).view(job.n, job.k), c)
    return ("torch: table lookup, scale, matmul", job.nf4_bytes,
            [lambda a=a, p=p, s=s, c=c: call(a, p, s, c) for (a, c), p, s in zip(made, packed, scale)])


def bitsandbytes_matmul(torch, job):
    """Forward: matmul_4bit, which has a kernel for one row; the transposed product is what its backward pass does."""
    import bitsandbytes
    functional = bitsandbytes.functional
    made = operands(torch, job, job.n * job.k // 2)
    packed = [functional.quantize_4bit(job.random(torch, job.n * job.k).view(job.n, job.k), blocksize=64, quant_type="nf4")
              for _ in made]
    if job.is_transposed:
        call = lambda a, q, s, c: torch.matmul(a, functional.dequantize_4bit(q, s), out=c)
    else:
        call = lambda a, q, s, c: bitsandbytes.matmul_4bit(a, q.t(), quant_state=s)
    return ("bitsandbytes", job.nf4_bytes, [lambda a=a, q=q, s=s, c=c: call(a, q, s, c) for (a, c), (q, s) in zip(made, packed)])


def torch_norm_matmul(torch, job):
    """The norm in x's type, then the product with dequantised weights in 16 bits, whatever x has."""
    weight_type = torch.bfloat16 if job.type == "bf16" else torch.float16
    sets = min(MOST_SETS, L2_TWICE // (2 * job.n * job.k) + 2)
    x = [job.random(torch, job.batch * job.k).view(job.batch, job.k) for _ in range(sets)]
    weights = [torch.randn(job.n * job.k, dtype=weight_type, device=job.device).view(job.n, job.k) for _ in x]
    gamma = job.random(torch, job.k)

    def call(x, w):
        h = torch.nn.functional.rms_norm(x, (job.k,), gamma, 1e-5) if job.parameters["norm"] == "rms" else x
        return torch.matmul(h.to(weight_type), w.t())
    moved = 2 * job.n * job.k + job.batch * (job.n + job.k) * job.element_bytes
    return "torch rms_norm, matmul, dequantised 16-bit", moved, [lambda x=x, w=w: call(x, w) for x, w in zip(x, weights)]


def torch_bmm(torch, job):
    """cuBLAS: products of matrices and one vector each, dequantised already to c's type."""
    m, k, l = (job.sizes[name] for name in "mkl")
    sets = min(MOST_SETS, L2_TWICE // (l * m * k * job.element_bytes) + 2)
    made = [[job.random(torch, l * rows * columns).view(l, rows, columns) for rows, columns in ((m, k), (k, 1), (m, 1))]
            for _ in range(sets)]
    return ("torch.bmm, dequantised", l * (m * k + k + m) * job.element_bytes,
            [lambda a=a, b=b, c=c: torch.bmm(a, b, out=c) for a, b, c in made])


def torch_sdpa(backend):
    """scaled_dot_product_attention, by one backend alone; batch, row, head in memory. Where lengths differ its causal mask
    is not ours; one query sees all keys, with a mask and without. EFFICIENT_ATTENTION knows no grouped heads: it gets K
    and V with their heads repeated."""
    def run(torch, job):
        kernels, sizes = importlib.import_module("torch.nn.attention"), job.sizes
        is_causal = job.parameters["causal"] == "true" and sizes["q_length"] > 1
        if is_causal and sizes["q_length"] != sizes["k_length"]:
            raise ValueError("PyTorch aligns the causal mask at the first key")
        is_grouped = sizes["q_heads"] != sizes["kv_heads"]
        are_repeated = is_grouped and backend == "EFFICIENT_ATTENTION"
        kv_heads = sizes["q_heads" if are_repeated else "kv_heads"]
        dim = int(job.parameters["head_dim"])
        shapes = [(sizes["batch"], sizes["q_length"], sizes["q_heads"], dim)]
        shapes += [(sizes["batch"], sizes["k_length"], kv_heads, dim)] * 2
        counts = [math.prod(shape) for shape in shapes]
        moved = (sum(counts) + counts[0]) * job.element_bytes
        made = [[job.random(torch, count).view(*shape).transpose(1, 2) for count, shape in zip(counts, shapes)]
                for _ in range(min(MOST_SETS, L2_TWICE // moved + 2))]
        enable_gqa = is_grouped and not are_repeated

        def attend(tensors):
            with kernels.sdpa_kernel([getattr(kernels.SDPBackend, backend)]):
                torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=is_causal, enable_gqa=enable_gqa)
        name = f"torch SDPA, {backend}{', K and V repeated' if are_repeated else ''}"
        return name, moved, [lambda t=t: attend(t) for t in made]
    run.__name__ = f"torch_sdpa_{backend.lower()}"
    return run


SDPA_BACKENDS = "FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION", "MATH"
BASELINES = {f.__name__: f for f in (torch_copy, torch_narrow, torch_widen, torch_embedding, torch_range,
                                     bitsandbytes_quantize, bitsandbytes_dequantize, torch_matmul,
                                     torch_lookup_matmul, bitsandbytes_matmul, torch_norm_matmul, torch_bmm,
                                     *map(torch_sdpa, SDPA_BACKENDS))}


class Job:
    """A line of input, and what the baselines ask of it."""

    def __init__(self, line, device):
        self.sizes, self.parameters, self.device = line["sizes"], line["parameters"], device
        self.is_transposed = line["id"].startswith("nf4_gemm_transposed/")

    m = property(lambda self: self.sizes["m"])
    n = property(lambda self: self.sizes["n"])
    k = property(lambda self: self.sizes["k"])
    batch = property(lambda self: int(self.parameters["batch"]))
    mode = property(lambda self: self.parameters.get("mode"))
    element_bytes = property(lambda self: ELEMENT_BYTES[self.type])
    nf4_bytes = property(lambda self: self.n * self.k // 2 + self.n * self.k // 16 +
                         self.m * (self.n + self.k) * self.element_bytes)
    type = property(lambda self: next(self.parameters[name] for name in ("type", "a", "x", "c") if name in self.parameters))
    sets = property(lambda self: min(MOST_SETS, L2_TWICE // (self.n * self.element_bytes) + 2))

    @property
    def group(self):
        group = self.parameters["group"]
        return self.sizes["group_size"] if group == "any" else int(group)

    def dtype(self, torch):
        return {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[self.type]

    def two_elements(self, torch):
        return {4: torch.int64, 2: torch.int32}[self.element_bytes]

    def random(self, torch, count=None):
        return torch.randn(count or self.n, dtype=self.dtype(torch), device=self.device)


# ---- timing ----------------------------------------------------------------------------------------------------------

def time_batch(torch, calls, turn, batch):
    """Microseconds per call."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for i in range(turn, turn + batch):
        calls[i % len(calls)]()
    end.record()
    end.synchronize()
    return 1000 * start.elapsed_time(end) / batch


def measure(torch, calls):
    turn, batch = 0, 1
    us = time_batch(torch, calls, turn, batch)
    while (us := time_batch(torch, calls, turn, batch)) * batch < BATCH_US and batch < MOST_BATCH:
        turn, batch = turn + batch, 2 * batch
    samples = []
    for _ in range(SAMPLES):
        samples.append(round(time_batch(torch, calls, turn, batch), 4))
        turn += batch
    return samples


def answer(torch, line, device):
    """A baseline that fails says why, and the others go on."""
    if line["parameters"].get("type") == "f64":
        return {"id": line["id"], "baseline": line["baseline"], "skipped": "there is none for f64"}
    try:
        name, moved, calls = BASELINES[line["baseline"]](torch, Job(line, device))
        return {"id": line["id"], "baseline": name, "bytes": moved, "us": measure(torch, calls)}
    except ImportError as missing:
        return {"id": line["id"], "baseline": line["baseline"], "skipped": str(missing)}
    except Exception as failure:  # pylint: disable=broad-except; whatever another library may raise
        return {"id": line["id"], "baseline": line["baseline"], "skipped": f"{type(failure).__name__}: {failure}"[:500]}


def main():
    try:
        import torch
    except ImportError as missing:
        sys.exit(f"no baselines: {missing}")
    if not torch.cuda.is_available():
        sys.exit("no baselines: this PyTorch has no GPU")
    device = torch.device("cuda", int(sys.argv[1]))
    torch.cuda.set_device(device)
    for text in sys.stdin:
        print(json.dumps(answer(torch, json.loads(text), device)), flush=True)
    print(f"PyTorch {torch.__version__}", file=sys.stderr)


if __name__ == "__main__":
    main()
