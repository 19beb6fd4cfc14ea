"""The default bundle's kernels on the device: their registers and resident thread blocks, and split_k's counters under load.

The kernels are those in bundle.json.gz, which `gpu pack` puts beside probes.py; without it there are no cases.
"""
import ctypes
import gzip
import json
import pathlib
import random
import re
import struct
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python"))  # in the kit kiln.py is beside probes.py
from kiln import _evaluate
from probes.probe import Probe
from probes.text import plain

KERNELS = pathlib.Path(__file__).resolve().parents[1] / "bundle.json.gz"
BUNDLE = json.loads(gzip.decompress(KERNELS.read_bytes())) if KERNELS.exists() else {"ptxas": None, "variants": []}
VARIANTS = {v["id"]: v for v in BUNDLE["variants"]}
LOCAL_BYTES, REGISTERS = 3, 4  # CU_FUNC_ATTRIBUTE_


def bundle_text(variant, **_):
    return VARIANTS[variant]["text"]


def load(gpu, v):
    function = gpu.load(v["text"], v["entry"])
    gpu.allow_shared(function, v["shared_bytes"])
    return function


def measure_resources(gpu, variant):
    """`value`: the kernel's registers, from the driver. `modelled`: the resident thread blocks that dispatch assumes. `right`: at
    least as many are resident as .minnctapersm promises, or as threads and shared memory allow, if that is less."""
    v = VARIANTS[variant]
    function, threads, number = load(gpu, v), v["block"][0] * v["block"][1] * v["block"][2], ctypes.c_int()

    def attribute(which):
        gpu.call("cuFuncGetAttribute", ctypes.byref(number), which, function)
        return number.value

    registers, local = attribute(REGISTERS), attribute(LOCAL_BYTES)
    gpu.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(number), function, threads,
             ctypes.c_size_t(v["shared_bytes"]))
    found = re.search(r"\.minnctapersm (\d+)", v["text"])
    promised = found and min(int(found[1]), gpu.facts["sm_threads"] // threads,
                             gpu.facts["sm_shared_bytes"] // (v["shared_bytes"] + 1024))
    return {"value": registers, "local_bytes": local, "resident": number.value, "promised": promised,
            "modelled": modelled_blocks(gpu, v),
            "ptxas": v["ptxas"] and {**v["ptxas"], "version": BUNDLE["ptxas"]},
            "right": promised is None or number.value >= promised}


RESOURCES = Probe("resources", 10, "registers", [dict(variant=name) for name in VARIANTS], bundle_text, measure_resources)


# split_k's counters: after each product, a kernel compares each word of the output with the first launch's, checks that the
# counters are zero again, and overwrites the output, so that a launch that writes nothing is noticed.

POISON = 0x7fff7fff
STREAMS, IN_GRAPH = 4, 50
THREADS = 256
SIZES = {"nf4_gemm": dict(m=16, n=256, k=4096), "nf4_gemm_transposed": dict(m=8, n=512, k=1024, normal_scales=1)}
KIND_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "u8": 1, "u32": 4}


def check_text(**_):
    """`data`: the output, `n` words; `x`: the expected words; `y`: the number of counters. `out`: the numbers of wrong words
    and of counters that are not zero, and the counters' address."""
    return plain(f"""
mad.lo.u32 r10, cta, {THREADS}, tid; mov.b64 {{r12, r13}}, y_;
LOOP:
setp.ge.u32 p0, r10, n; @p0 bra COUNTERS;
mul.wide.u32 q4, r10, 4; add.u64 q5, data_, q4; add.u64 q6, x_, q4;
ld.global.u32 r14, [q5]; ld.global.u32 r15, [q6]; mov.u32 r16, {POISON}; st.global.u32 [q5], r16;
setp.ne.u32 p1, r14, r15; mov.u32 r17, 1; @p1 red.global.add.u32 [out_], r17;
mad.lo.u32 r10, ctas, {THREADS}, r10; bra LOOP;
COUNTERS:
setp.ne.u32 p0, cta, 0; @p0 bra END;
mov.u32 r10, tid; ld.global.u64 q7, [out_+8];
COUNTER:
setp.ge.u32 p0, r10, r12; @p0 bra END;
mul.wide.u32 q4, r10, 4; add.u64 q4, q4, q7; ld.global.u32 r14, [q4]; setp.ne.u32 p1, r14, 0; mov.u32 r17, 1;
@p1 red.global.add.u32 [out_+4], r17; add.u32 r10, r10, {THREADS}; bra COUNTER;
END:""", directives=f".maxntid {THREADS}, 1, 1")


def device_names(gpu):
    return {"multiprocessors": gpu.sms, "multiprocessor_threads": gpu.facts["sm_threads"],
            "multiprocessor_shared_bytes": gpu.facts["sm_shared_bytes"], "sm": 10 * gpu.facts["major"] + gpu.facts["minor"]}


def modelled_blocks(gpu, v):
    """The resident thread blocks that dispatch assumes; None if it does not estimate the variant or they depend on the call."""
    try:
        return v["resident"] and _evaluate(v["resident"], device_names(gpu))
    except KeyError:
        return None


def sizes_of(gpu, v):
    """The product's sizes, with the smallest workspace that the variant accepts."""
    names = {**SIZES[v["id"].partition("/")[0]], **device_names(gpu)}
    least = next(rule["condition"] for rule in v["rules"] if rule["condition"].startswith("workspace_size >= "))
    return names | {"workspace_size": _evaluate(least.partition(">= ")[2], names)}


def elements(arg, names):
    count = 1
    for size in arg["shape"]:
        count *= _evaluate(size, names)
    return count


def input_bytes(kind, count):
    """Random bytes that decode to numbers of about 1 in any type."""
    numbers = random.Random(count)
    if kind == "u8":
        return numbers.randbytes(count)
    values = [numbers.uniform(0.5, 1.0) * numbers.choice((-1, 1)) for _ in range(min(count, 4099))]
    data = struct.pack(f"<{len(values)}{'f' if kind in ('f32', 'bf16') else 'e'}", *values)
    data = b"".join(data[at + 2:at + 4] for at in range(0, len(data), 4)) if kind == "bf16" else data
    return (data * (count // len(values) + 1))[:count * KIND_BYTES[kind]]


class Product:
    """A variant's arguments on one stream: all streams share the inputs; each has its own output, workspace and counters."""

    def __init__(self, gpu, v, number):
        self.gpu, self.v, self.names = gpu, v, sizes_of(gpu, v)
        self.stream, self.buffers = ctypes.c_void_p(), {}
        gpu.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        arguments = []
        for arg in v["args"]:
            kind = arg["type"]
            if arg["direction"] == "value":
                arguments.append((ctypes.c_uint64 if kind == "u64" else ctypes.c_uint32)(self.names[arg["name"]]))
                continue
            count = elements(arg, self.names)
            name = f"{v['id']} {arg['name']}" + (f" {number}" if arg["direction"] != "in" else "")
            is_new = name not in gpu.buffers
            address = gpu.buffer(name, count * KIND_BYTES[kind])
            if arg["direction"] == "in" and is_new:
                gpu.upload(address, input_bytes(kind, count))
            self.buffers[arg["name"]] = address, count * KIND_BYTES[kind]
            arguments.append(ctypes.c_uint64(address))
        self.arguments = arguments
        self.grid = tuple(_evaluate(size, self.names) for size in v["grid"])
        self.function, self.check = load(gpu, v), gpu.load(check_text())
        counters, bytes_ = self.buffers["tile_counters"]
        self.mistakes, self.counters = gpu.buffer(f"mistakes {number}", 16), bytes_ // 4
        gpu.upload(self.mistakes, struct.pack("<IIQ", 0, 0, counters))

    def on_stream(self, enqueue):
        """Calls enqueue() with this product's stream."""
        kept, self.gpu.stream = self.gpu.stream, self.stream
        try:
            return enqueue()
        finally:
            self.gpu.stream = kept

    def multiply(self):
        self.gpu.launch(self.function, self.grid, self.v["block"][0], self.arguments, self.v["shared_bytes"])

    def multiply_and_check(self, expected):
        address, bytes_ = self.buffers["out"]
        self.multiply()
        self.gpu.launch(self.check, min(self.gpu.sms, -(-bytes_ // 4 // THREADS)), THREADS,
                        [ctypes.c_uint64(self.mistakes), ctypes.c_uint64(address), ctypes.c_uint64(expected),
                         ctypes.c_uint64(self.counters), ctypes.c_uint32(bytes_ // 4)])


def measure_counters(gpu, variant, way, launches):
    """`value`: launches. `right`: each gave the bits of the first launch, which ran alone, and left the counters zero."""
    v = VARIANTS[variant]
    products = [Product(gpu, v, number) for number in range(2 if gpu.small else STREAMS)]
    in_graph = 2 if gpu.small else IN_GRAPH
    rounds = 1 if gpu.small else launches // (in_graph * len(products))
    address, bytes_ = products[0].buffers["out"]
    products[0].on_stream(products[0].multiply)
    gpu.synchronize()
    first = gpu.download(address, bytes_)
    expected = gpu.buffer(f"{variant} expected", bytes_)
    gpu.upload(expected, first)
    batch = lambda product: [product.multiply_and_check(expected) for _ in range(in_graph)]
    runs = [product.on_stream(lambda: gpu.graph(lambda: batch(product))) if way == "graph" else lambda product=product: batch(product)
            for product in products]
    for _ in range(rounds):
        for product, run in zip(products, runs):
            product.on_stream(run)
    gpu.synchronize()
    found = [struct.unpack("<II", gpu.download(product.mistakes, 8)) for product in products]
    return {"value": rounds * in_graph * len(products), "streams": len(products), "thread_blocks": products[0].grid,
            "wrong_words": sum(words for words, _ in found), "counters_not_zero": sum(counters for _, counters in found),
            "right": not any(map(any, found)) and any(first)}


def counter_cases():
    """The split_k variants of the families in SIZES; the first of each family also without a graph."""
    shared = {family: [name for name in VARIANTS if re.match(rf"{family}/.*split_k=(0|[2-9]|\d\d)(,|$)", name)] for family in SIZES}
    return [dict(variant=names[0], way="stream", launches=10000) for names in shared.values() if names] \
        + [dict(variant=name, way="graph", launches=100000) for names in shared.values() for name in names]


COUNTERS = Probe("split_k_counters", 12, "launches", counter_cases(), check_text, measure_counters)
