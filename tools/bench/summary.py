"""Makes README.md's table from committed results: the fastest variant for common work, beside the peers' times."""
import pathlib
from typing import NamedTuple

import peers_rows
import records
from records import about, microseconds

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
NOTHING = "No measurement on a GPU yet.\n"


class Line(NamedTuple):
    name: str
    variants: str  # prefix of the ids
    sizes: dict    # sizes that the row must have
    peers: dict    # {name: (peer, the members of its work that must match)}
    counts: str = "bytes"  # the unit of the rate: "bytes" or "operations"


# The rows of the front page, and their names there.
FIRST_PAGE = {
    "nf4_quantize f16, 67.1M elements": "quantise 67.1M elements to NF4",
    "nf4_gemm f16, 14336 x 4096, 1 row": "NF4 weights 14336 x 4096, 1 row",
    "nf4_gemm f16, 14336 x 4096, 16 rows": "the same, 16 rows",
    "nf4_gemm f16, 14336 x 4096, 512 rows": "the same, 512 rows",
    "rmsnorm_q4k_gemv f16, 14336 x 4096": "RMSNorm, then GGUF Q4_K weights 14336 x 4096, 1 row",
    "nvfp4_gemv f16, 4096 x 7168 x 8": "8 NVFP4 matrices 4096 x 7168, each times a vector",
    "attention bf16, head_dim 128, causal, batch 4, heads 16/16, 4096 queries, 4096 keys": "attention, causal, 4 prompts of 4096, 16 heads of 128",
    "attention bf16, head_dim 128, batch 8, heads 32/8, 1 query, 8192 keys": "attention, 8 sequences, 1 query, 8192 keys, heads 32/8",
}


def product(title, variants, n, k, rows, peers):
    return [Line(f"{title}, {n} x {k}, {m} {'row' if m == 1 else 'rows'}", variants, dict(m=m, n=n, k=k),
                 {name: (peer, dict(work, m=m, n=n, k=k)) for name, (peer, work) in peers.items()},
                 "bytes" if m <= 8 else "operations") for m in rows]


def attention(kind, head_dim, causal, batch, q_heads, kv_heads, q_length, k_length):
    sizes = dict(batch=batch, q_heads=q_heads, kv_heads=kv_heads, q_length=q_length, k_length=k_length)
    work = dict(sizes, family="attention", type=kind, head_dim=head_dim, causal=causal)
    what = f"{q_length} queries" if q_length > 1 else "1 query"
    return Line(f"attention {kind}, head_dim {head_dim}{', causal' if causal else ''}, batch {batch}, heads {q_heads}/{kv_heads}, {what}, "
                f"{k_length} keys", f"attention/type={kind},head_dim={head_dim},causal={str(causal).lower()},strategy=", sizes,
                {"cuDNN": ("torch sdpa cudnn", work), "FlashAttention-2": ("torch sdpa flash", work)},
                "operations" if q_length > 1 else "bytes")


F16 = {"family": "matmul", "type": "f16"}
NF4 = {"family": "nf4_gemm", "type": "f16"}
NF4_PEERS = {"bitsandbytes": ("bitsandbytes matmul_4bit", NF4), "cuBLAS f16": ("torch.matmul", F16)}
LINES = [
    Line("nf4_quantize f16, 67.1M elements", "nf4_quantize/type=f16,group=64", {"n": 1 << 26},
         {"bitsandbytes": ("bitsandbytes quantize_4bit", {"family": "nf4_quantize"})}),
    Line("nf4_unpack f16, 67.1M elements", "nf4_unpack/type=f16,group=64", {"n": 1 << 26},
         {"bitsandbytes": ("bitsandbytes dequantize_4bit", {"family": "nf4_unpack"})}),
    Line("int4_quantize f16 sym, 67.1M elements", "int4_quantize/type=f16,mode=sym,group=128", {"n": 1 << 26}, {}),
    *product("nf4_gemm f16", "nf4_gemm/a=f16,acc=f32,nibbles=low,strategy=", 4096, 4096, (1, 16, 64, 512), NF4_PEERS),
    *product("nf4_gemm f16", "nf4_gemm/a=f16,acc=f32,nibbles=low,strategy=", 14336, 4096, (1, 16, 64, 512), NF4_PEERS),
    *product("linear Q4_K, x f16", "linear/format=q4_k,norm=none,", 14336, 4096, (1, 8, 512), {"cuBLAS f16": ("torch.matmul", F16)}),
    *(Line(f"rmsnorm_q4k_gemv f16, {n} x 4096", "rmsnorm_q4k_gemv/norm=rms,x=f16,activation=q8,batch=1,y=f16", dict(n=n, k=4096),
           {"rms_norm, cuBLAS f16": ("torch rms_norm, matmul", {"n": n})}) for n in (4096, 14336, 128256)),
    *(Line(f"nvfp4_gemv f16, {m} x {k} x {l}", "nvfp4_gemv/c=f16,decode=", dict(m=m, k=k, l=l),
           {"cuBLAS f16": ("torch.bmm", dict(m=m, k=k, l=l))}) for m, k, l in ((7168, 16384, 1), (4096, 7168, 8), (7168, 2048, 4))),
    attention("bf16", 128, False, 4, 16, 16, 4096, 4096), attention("bf16", 128, True, 4, 16, 16, 4096, 4096),
    attention("f16", 64, False, 4, 16, 16, 4096, 4096), attention("bf16", 128, False, 8, 32, 8, 1, 8192),
    attention("bf16", 128, False, 8, 32, 8, 1, 32768), attention("bf16", 128, False, 1, 8, 1, 1, 131072),
]


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def rate(line, row, us):
    if line.counts == "operations":
        work = next(iter(line.peers.values()))[1]
        return f"{peers_rows.COSTS[work['family']][1](work) / us / 1e6:.0f} TFLOP/s"
    return f"{(row['bytes_read'] + row['bytes_written']) / us / 1e3:.0f} GB/s"


def find(rows, line):
    fitting = [row for row in rows if row["id"].startswith(line.variants) and line.sizes.items() <= row["sizes"].items()]
    return min(fitting, key=microseconds, default=None)


def beside(peers, line, us):
    for name, (peer, work) in line.peers.items():
        for row in peers:
            if row["peer"] == peer and "us" in row and work.items() <= row["work"].items():
                yield f"{name} {number(microseconds(row))} us ({us / microseconds(row):.2f})"
                break


def verdicts_of(folder):
    """{id: result} of all calls with results for this folder's device and commit."""
    key = lambda row: row and (row["first"]["device"]["name"], row["commit"])
    alike = [other for other in sorted(folder.parent.glob("*/")) if key(about(other)) == key(about(folder))]
    return {row["id"]: row["result"] for other in alike for row in records.read(other, "verify")}


def of_folder(folder):
    run, verdicts = about(folder), verdicts_of(folder)
    right = sum(result == "ok" for result in verdicts.values())
    device, empty = run["first"]["device"]["name"], run["first"]["empty_kernel"]["graph"]
    largest = max(run["first"]["copies"], key=lambda copy: copy["bytes"])
    text = (f"{device}, driver {run['kernel_driver']}, {run['date']}, commit {run['commit'][:12]}: {right} of {len(verdicts)} variants "
            f"right; a copy of 1 GiB {2 * largest['bytes'] / microseconds(largest) / 1e3:.0f} GB/s, an empty kernel in a graph "
            f"{microseconds(empty):.2f} us. The SM clock stood at {clocks(folder)} MHz.\n\n"
            "| what | us | rate | beside it (kiln's time over its) |\n| --- | ---: | ---: | --- |\n")
    rows = [row for row in records.read(folder, "times") if "us" in row and "id" in row]
    peers = [row for row in records.read(folder, "peers") if "peer" in row]
    for line in LINES:
        row = find(rows, line)
        if row:
            us = microseconds(row)
            text += f"| {line.name} | {number(us)} | {rate(line, row, us)} | {'; '.join(beside(peers, line, us))} |\n"
    return text


def clocks(folder):
    seen = sorted({row["sm_mhz"] for row in records.read(folder, "times") if "sm_mhz" in row})
    return f"{seen[0]}" if len(seen) == 1 else f"{seen[0]} to {seen[-1]}"


def newest_folders(results):
    """{device: folder} of the newest results of `measure`, by the folders' names."""
    newest = {}
    for folder in sorted(results.glob("*/")):
        if any(row.get("phase") == "times shipped" for row in records.read(folder, "run")) and about(folder):
            newest[about(folder)["first"]["device"]["name"]] = folder
    return newest


def markdown(results=RESULTS):
    newest = newest_folders(results)
    return "\n".join(of_folder(newest[name]) for name in sorted(newest)) or NOTHING


def first_page(device="NVIDIA H100 80GB HBM3", results=RESULTS):
    """A table of a few rows of one device: kiln's time and the peers'."""
    folder = newest_folders(results)[device]
    rows = [row for row in records.read(folder, "times") if "us" in row and "id" in row]
    peers = [row for row in records.read(folder, "peers") if "peer" in row]
    lines = {line.name: line for line in LINES}
    versions = next(row["versions"] for row in records.read(folder, "peers") if "versions" in row)
    text = "| on an H100, in microseconds | kiln | others (kiln's time over theirs) |\n| --- | ---: | --- |\n"
    for name, shown in FIRST_PAGE.items():
        us = microseconds(find(rows, lines[name]))
        text += f"| {shown} | {number(us)} | {'; '.join(beside(peers, lines[name], us)).replace(' us (', ' (')} |\n"
    return (f"{text}\n{about(folder)['date']}, driver {about(folder)['kernel_driver']}; PyTorch {versions['torch']}, bitsandbytes "
            f"{versions['bitsandbytes']}.\n")
