#!/usr/bin/env python3
"""Compares the emulated driver's exact counts of every kernel, executed and moved, with the committed ones: a file per family,
a row per image, at a size of whole tiles and at a size slightly larger than a tile.

usage: counts.py check  KILN PROFILE CONFIG... [--family NAME]...
       counts.py rebase KILN PROFILE CONFIG... [--family NAME]...
  check   fails if a variant of CONFIG lacks a row or its counts differ
  rebase  rewrites the files for the variants of all CONFIGs, so name all of them; prints what became more and less expensive

An intended change of a kernel rebases in the same commit, so that a reviewer sees its price.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import counters

HERE = pathlib.Path(__file__).parent
HEADING = "variant\ttarget\t" + "\t".join(f"{column} {size}" for size in ("whole", "ragged")
                                         for column in ("instructions", "sectors", "wavefronts"))
COLUMNS = ["instructions", "sectors", "wavefronts"] * 2


# ---- sizes ----------------------------------------------------------------------------------------------------------

def quantiser(params):
    group = ",group_size=96" if params.get("group") == "any" else ""
    return [f"n={n}{group}" for n in (65536, 70001)]


def dequantize(_):
    return ["n=65536", "n=69888"]


def gguf_rows(_):
    """Rows of two tiles, and of slightly more than one tile, at every offset modulo 16 bytes."""
    return ["n=16,k=4096,tensor_rows=100", "n=23,k=2304,tensor_rows=100"]


def product(params):
    tile_m, split_k = int(params["tile_m"]), params["split_k"] != "1"
    strides = ",a_stride={},c_stride={}" if params.get("rows") == "strided" else ""
    return [f"m={m},n={n},k={k},workspace_size={split_k * 16 * (m + 64) * (n + 128)}" + strides.format(k + 8, n + 8)
            for m, n, k in ((tile_m, 256, 2048), (tile_m + 1, 200, 2112))]


def transposed(params):
    tile_m, split_k = int(params["tile_m"]), params["split_k"] != "1"
    return [f"m={m},n={n},k={k},workspace_size={split_k * 32 * (m + 32) * (k + 512)},"
            f"normal_scales={int(params['scales'] == 'normal')}"
            for m, n, k in ((tile_m, 1024, 512), (tile_m + 1, 1040, 576))]


def gguf(params):
    """Chooses K so that h fits into the shared memory of the smallest device."""
    rows, batch = int(params["rows"]), int(params["batch"])
    room = 101376 if rows == 4 else 65536
    stage = 9216 * rows
    stages = stage * max(2, (9216 if batch > 4 else 18432) // stage + 1)
    share = batch * (80 if params["activation"] == "q8" else 272) | 16
    most = (room - stages - 1056 * batch - 32) // (4 * share)  # blocks of k
    eps = ",eps=1e-5" if params["norm"] == "rms" else ""
    return [f"n={n},k={k}{eps}" for n, k in ((256, 256 * min(most, 8)), (100, 256 * (min(most, 15))))]


def linear(params):
    """Chooses K so that the vectors fit into the shared memory of the smallest device."""
    count = int(params.get("matrices", 1))
    scales = ["w_scale", "w_scale_2", "w_scale_3"][:count] + ["gate_scale"] * params["epilogue"].endswith("glu")
    beside = "".join(f",{name}=0.5" for name in scales if params.get("scale") == "tensor")
    beside += "".join(f",n_{i}=40" for i in range(2, count + 1))
    if params.get("split_k", "1") != "1":
        beside += ",workspace_size=4000000"
    if params["strategy"] != "simt":
        return [f"m={m},n={n},k={k}{beside}" for m, n, k in ((int(params["tile_m"]), 256, 1024), (int(params["tile_m"]) + 1, 99, 768))]
    vectors = int(params["vectors"])
    k = (2048, 768) if vectors <= 2 and params["activation"] == "q8" else (256, 512) if vectors <= 2 else (256, 256)
    eps = ",eps=1e-5" if params["norm"] == "rms" else ""
    return [f"m={m},n={n},k={k}{eps}{beside}" for m, n, k in ((vectors, 256, k[0]), (vectors + 1, 99, k[1]))]


def nvfp4(_):
    return [f"m={m},k={k},l={l},b_rows=1" for m, k, l in ((128, 4096, 1), (100, 5120, 2))]


def fp4_gemm(params):
    scales = (["alpha"] + ["gate_alpha"] * params["epilogue"].endswith("glu")) * (params["format"] == "nvfp4")
    beside = "".join(f",{name}=0.5" for name in scales) + ",workspace_size=4000000" * (params["split_k"] != "1")
    return [f"m={m},n={n},k={k}{beside}" for m, n, k in ((int(params["tile_m"]), 256, 1024), (int(params["tile_m"]) + 1, 99, 736))]


def fp4_quantize(params):
    scale = ",global_scale=100" if params["format"] == "nvfp4" else ""
    return [f"m={m},k={k}{scale}" for m, k in ((128, 4096), (37, 2912))]


def q8_quantize(params):
    eps = ",eps=1e-5" if params["norm"] == "rms" else ""
    return [f"m={m},k={k}{eps}" for m, k in ((8, 4096), (3, 2080))]


def attention(params):
    """Pages have 16 rows, a mask has one row for all queries, and keys split on request are in three parts."""
    dim, split_k, layout = int(params["head_dim"]), int(params["split_k"]), params.get("layout", "dense")
    dim_v = int(params.get("head_dim_v", 0)) or dim
    for q_heads, kv_heads, q, k in ((2, 1, 128, 256), (2, 1, 5, 333)):
        rows, pages = 16 if layout == "paged" else k, -(-k // 16)
        sizes = {"batch": 1, "q_heads": q_heads, "kv_heads": kv_heads, "q_length": q, "k_length": k, "scale": "1e-4",
                 "splits": 0 if split_k else 3,
                 "workspace_size": q_heads * q * split_k * (dim_v + 8) if split_k else max(512 * 128, q_heads * q * 256) * (dim_v + 8)}
        for name, heads, count, width in (("q", q_heads, q, dim), ("k", kv_heads, rows, dim), ("v", kv_heads, rows, dim_v),
                                          ("out", q_heads, q, dim_v)):
            sizes |= {f"{name}_{of}_stride": width * size for of, size in (("row", 1), ("head", count), ("batch", count * heads))}
        if layout != "dense":
            sizes["sequences_q_rows"] = q
        if layout == "ragged":
            sizes["sequences_k_rows"] = 0
        if layout == "paged":
            sizes |= {"pages_entries": pages, "pages_stride": pages, "pages_count": pages, "pages_size": 16}
        if params.get("kv") == "int8_token":
            sizes |= {"scale_row_stride": 1, "scale_head_stride": rows, "scale_batch_stride": rows * kv_heads}
        if params.get("score") == "mask":
            sizes |= {"mask_row_stride": 0, "mask_head_stride": 0, "mask_batch_stride": 0}
        yield ",".join(f"{name}={value}" for name, value in sizes.items())


def rope(params):
    """Q, K and V are parts of a row and go to pages of 16; head sizes leave some lanes idle."""
    dim = int(params["head_dim"])
    for n, q_heads, heads in ((16, 16, 8), (5, 7, 3)):
        strides = "".join(f",{of}_row_stride={dim * (q_heads + 2 * heads)},{of}_head_stride={dim}" for of in "qkv")
        scales = f",scale_page_stride={16 * heads},scale_row_stride={heads},scale_head_stride=1"
        yield (f"n={n},q_heads={q_heads},k_heads={heads},v_heads={heads},rotary_dim={dim},magnitude=1,pages=1,page_size=16{strides},"
               f"out_row_stride={dim * q_heads},out_head_stride={dim},cache_page_stride={16 * heads * dim},"
               f"cache_row_stride={heads * dim},cache_head_stride={dim}" + scales * (params["cache"] == "int8_token"))


SIZES = {
    "int4": quantiser, "nf4": quantiser, "gguf_dequantize": dequantize, "gguf_rows": gguf_rows, "q4k_dequantize": dequantize, "nf4_gemm": product,
    "nf4_gemm_transposed": transposed, "rmsnorm_q4k_gemv": gguf, "linear": linear, "nvfp4_gemv": nvfp4, "attention": attention,
    "fp4_gemm": fp4_gemm, "fp4_quantize": fp4_quantize, "q8_quantize": q8_quantize, "rope": rope,
}


FILES = {"gguf_rows": "gguf_dequantize", "rope": "attention", "q8_quantize": "linear"}  # families whose rows are in another family's file


def sizes_of(variant):
    family = variant["family"]
    return SIZES.get(family) or SIZES[family.partition("_")[0]]


# ---- counting -------------------------------------------------------------------------------------------------------

def count(profile, manifest, variant, target, size):
    counted = counters.run(profile, manifest, variant, target, size)
    wavefronts = sum(counted.profile["shared"][kind]["wavefronts"] for kind in counters.KINDS)
    return [counted.executed, counted.total("sectors"), wavefronts]


def count_all(options, config, folder):
    """Returns {(family, variant, target): counts} of a configuration's images."""
    subprocess.run([options.kiln, "generate", config, "--output", folder], check=True)
    (manifest,) = pathlib.Path(folder).glob("*.json")
    variants = json.loads(manifest.read_text(encoding="utf-8"))["variants"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        running = {}
        for v in variants:
            if options.family and v["family"] not in options.family:
                continue
            params = {name: str(value) for name, value in counters.parameters(v["id"]).items()}
            for image in v["images"]:
                running[v["family"], v["id"], image["target"]] = [
                    pool.submit(count, options.profile, manifest, v["id"], image["target"], size)
                    for size in sizes_of(v)(params)]
        return {key: sum((size.result() for size in sizes), []) for key, sizes in running.items()}


def committed():
    rows = {}
    for path in sorted(HERE.glob("*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            variant, target, *counts = line.split("\t")
            rows[variant.partition("/")[0], variant, target] = list(map(int, counts))
    return rows


# ---- verbs ----------------------------------------------------------------------------------------------------------

def print_changes(before, after):
    """Returns a line for each changed count, the largest increase first."""
    changes = [(new / old if old else float("inf"), key, COLUMNS[i], "whole" if i < 3 else "ragged", old, new)
               for key, counts in after.items() if key in before
               for i, (old, new) in enumerate(zip(before[key], counts)) if old != new]
    for ratio, (_, variant, target), column, size, old, new in sorted(changes, key=lambda c: (-c[0], c[1:])):
        print(f"{ratio:8.4f}  {column:12} {old:>12} -> {new:>12}  {size:6}  {target:7} {variant}")
    return len(changes)


def check(counted):
    kept = committed()
    missing = sorted(counted.keys() - kept.keys())
    for _, variant, target in missing:
        print(f"no row: {variant} {target}")
    changed = print_changes(kept, counted)
    print(f"{len(counted)} images, {changed} counts changed, {len(missing)} images without a row"
          + ("; counts.py rebase writes them" if changed or missing else ""))
    return bool(changed or missing)


def rebase(counted, families):
    kept = committed()
    print_changes(kept, counted)
    remade = set(families or {key[0] for key in counted})
    rows = {key: counts for key, counts in kept.items() if key[0] not in remade} | counted
    for name in {FILES.get(family, family) for family in remade}:
        of_file = sorted([variant, target, *map(str, counts)] for (family, variant, target), counts in rows.items()
                         if FILES.get(family, family) == name)
        text = "".join("\t".join(row) + "\n" for row in of_file)
        (HERE / f"{name}.tsv").write_text(f"{HEADING}\n{text}", encoding="utf-8")
    print(f"{len(counted)} images, {len(counted.keys() - kept.keys())} of them new")
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["check", "rebase"])
    parser.add_argument("kiln")
    parser.add_argument("profile")
    parser.add_argument("configs", nargs="+")
    parser.add_argument("--family", action="append")
    options = parser.parse_args()
    counted = {}
    for config in options.configs:
        with tempfile.TemporaryDirectory() as folder:
            counted |= count_all(options, config, folder)
    return check(counted) if options.verb == "check" else rebase(counted, options.family)


if __name__ == "__main__":
    sys.exit(main())
