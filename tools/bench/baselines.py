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


def torch_matmul(torch, job):
    """The product with weights that are dequantised already, in A's type: what people run where memory is plenty."""
    m, n, k = (job.sizes[name] for name in "mnk")
    sets = min(MOST_SETS, L2_TWICE // (n * k * job.element_bytes) + 2)
    made = [[job.random(torch, count).view(-1, columns) for count, columns in ((m * k, k), (n * k, k), (m * n, n))]
            for _ in range(sets)]
    return ("torch.matmul, dequantised", (m * k + n * k + m * n) * job.element_bytes,
            [lambda a=a, b=b, c=c: torch.matmul(a, b.t(), out=c) for a, b, c in made])


def torch_sdpa(backend):
    """scaled_dot_product_attention, by one backend alone; batch, row, head in memory. Where lengths differ its causal mask
    is not ours."""
    def run(torch, job):
        kernels, sizes = importlib.import_module("torch.nn.attention"), job.sizes
        is_causal, is_grouped = job.parameters["causal"] == "true", sizes["q_heads"] != sizes["kv_heads"]
        if is_causal and sizes["q_length"] != sizes["k_length"]:
            raise ValueError("PyTorch aligns the causal mask at the first key")
        dim = int(job.parameters["head_dim"])
        shapes = [(sizes["batch"], sizes[f"{of}_length"], sizes[f"{heads}_heads"], dim)
                  for of, heads in (("q", "q"), ("k", "kv"), ("k", "kv"))]
        counts = [math.prod(shape) for shape in shapes]
        moved = (sum(counts) + counts[0]) * job.element_bytes
        made = [[job.random(torch, count).view(*shape).transpose(1, 2) for count, shape in zip(counts, shapes)]
                for _ in range(min(MOST_SETS, L2_TWICE // moved + 2))]

        def attend(tensors):
            with kernels.sdpa_kernel([getattr(kernels.SDPBackend, backend)]):
                torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=is_causal, enable_gqa=is_grouped)
        return f"torch SDPA, {backend}", moved, [lambda t=t: attend(t) for t in made]
    run.__name__ = f"torch_sdpa_{backend.lower()}"
    return run


SDPA_BACKENDS = "FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION", "MATH"
BASELINES = {f.__name__: f for f in (torch_copy, torch_narrow, torch_widen, torch_range,
                                     bitsandbytes_quantize, bitsandbytes_dequantize, torch_matmul,
                                     *map(torch_sdpa, SDPA_BACKENDS))}


class Job:
    """A line of input, and what the baselines ask of it."""

    def __init__(self, line, device):
        self.sizes, self.parameters, self.device = line["sizes"], line["parameters"], device

    n = property(lambda self: self.sizes["n"])
    mode = property(lambda self: self.parameters.get("mode"))
    element_bytes = property(lambda self: ELEMENT_BYTES[self.type])
    type = property(lambda self: self.parameters.get("type") or self.parameters["a"])
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
