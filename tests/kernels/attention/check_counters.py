#!/usr/bin/env python3
"""Checks the emulated driver's counts of attention: each argument's bytes follow from the tiles (K and V once per tile of
queries, without keys that no query sees), and shared memory has no conflicts on tensor cores. rope moves each byte of the
tensors once, by whole sectors, and the table once per thread block.

usage: check_counters.py PROFILE MANIFEST BATCH,Q_HEADS,KV_HEADS,Q_LENGTH,K_LENGTH...
       check_counters.py PROFILE MANIFEST rope TOKENS,Q_HEADS,KV_HEADS...
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import counters

SCALE = 1e-4
PAGE = 16
SPLITS = 3  # if the variant leaves the number of splits to the call
HEAD_SCALES = ("k_scale", "v_scale")  # every thread block reads them
CACHES = ("k", "v", "k_codes", "v_codes", "k_scales", "v_scales", *HEAD_SCALES)
STREAMED = ("q", "k", "v", "k_codes", "v_codes")
LEAST_USED = 0.7  # share of the sectors used, if rows share sectors or CUDA cores load parts of them
BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2}


def rows_and_heads(params, args):
    """Returns the rows that are cut into tiles, and how often: a head's queries, or those of all heads that share a K and V head."""
    if params["pack_gqa"] == "true":
        return args["q_length"] * args["q_heads"] // args["kv_heads"], args["batch"] * args["kv_heads"]
    return args["q_length"], args["batch"] * args["q_heads"]


def tiles(params, args):
    """Returns (rows, keys that any of them sees) for each tile of rows."""
    q_length, k_length, tile = args["q_length"], args["k_length"], int(params["tile_q"])
    rows, _ = rows_and_heads(params, args)
    for first in range(0, rows, tile):
        end = min(first + tile, rows)
        last_query = (end - 1) * q_length // rows
        seen = max(last_query + 1 + k_length - q_length, 0) if params["causal"] == "true" else k_length
        yield end - first, seen


def head_dims(params):
    """Returns the elements of a row of Q and K, and of a row of V and O."""
    dim = int(params["head_dim"])
    return dim, int(params.get("head_dim_v", 0)) or dim


def expected_bytes(params, args):
    """Returns {argument: bytes that all thread blocks together read or write}."""
    row, v_row = (BYTES[params["type"]] * dim for dim in head_dims(params))
    kv = params.get("kv", "same")
    rows, heads = rows_and_heads(params, args)
    keys = sum(seen for _, seen in tiles(params, args))
    turns = {"mma": lambda seen: 1, "simt": lambda seen: -(-seen // int(params["tile_k"]))}[params["strategy"]]
    queries = sum(count * turns(seen) for count, seen in tiles(params, args))
    parts, wide = int(params["split_k"]) or SPLITS, max(4, BYTES[params["type"]])
    shared = {}
    if parts > 1:  # each part is written once and read once; a thread block of each part increments a counter, and looks for a Q
        tile_count = sum(1 for _ in tiles(params, args))
        numbers = heads * rows * parts * (head_dims(params)[1] + 2)
        shared = {"workspace": 2 * wide * numbers, "tile_counters": 4 * heads * parts * tile_count}
        queries *= parts if params["strategy"] == "mma" else 1
    if kv == "same":
        cache = {"k": row * heads * keys, "v": v_row * heads * keys}
    else:
        cache = {name: dim * heads * keys for name, dim in zip(("k_codes", "v_codes"), head_dims(params))}
    if kv == "int8_token":  # on CUDA cores each of four warps reads the scales
        cache |= dict.fromkeys(("k_scales", "v_scales"), 4 * heads * keys * (1 if params["strategy"] == "mma" else 4))
    return {**shared, **cache, "q": row * heads * queries, "out": v_row * heads * rows, "lse": wide * heads * rows}


def most_wavefronts(params):
    """Wavefronts over ideal. With tile_q 16, warps finally exchange a shift and a sum per row with conflicts, which is much for
    as few keys as here."""
    return 1.12 if params["tile_q"] == "16" else 1.02 if params["strategy"] == "mma" else 1.05


def layout(params, batch, q_length, k_length):
    """All rows are in one sequence."""
    pages = -(-k_length // PAGE)
    scalars = {"dense": {}, "ragged": {"sequences_q_rows": batch * q_length, "sequences_k_rows": batch * k_length},
               "paged": {"sequences_q_rows": batch * q_length, "pages_entries": batch * pages, "pages_stride": pages,
                         "pages_count": batch * pages, "pages_size": PAGE}}
    return scalars[params.get("layout", "dense")]


def judge(count):
    params, args = count.params, count.args
    tensors = [name for name in count.arguments if not name.startswith(("sequences_", "pages_")) and name not in HEAD_SCALES]
    streamed = [name for name in STREAMED if name in count.arguments]
    is_whole = params["strategy"] == "mma" and all(dim % 16 == 0 for dim in head_dims(params))
    sizes = {name: row["bytes"] for name, row in count.arguments.items()}
    return [
        counters.equal("bytes", {name: count.total("bytes_used", [name]) for name in tensors},
                       expected_bytes(params, args)),
        counters.equal("cost's bytes", (count.cost["bytes_read"], count.cost["bytes_written"]),
                       (sum(sizes.get(name, 0) for name in ("q", *CACHES)), sizes["out"] + sizes["lse"])),
        counters.at_least("use", count.sector_use(streamed, ["read"]), counters.LEAST_USED if is_whole else LEAST_USED),
        counters.at_most("wavefronts", count.wavefronts_over_ideal(), most_wavefronts(params)),
    ]


def rope_sizes(params, shape):
    """Q, K and V are parts of one matrix; pages of 16 tokens."""
    dim, (n, q_heads, kv_heads) = int(params["head_dim"]), map(int, shape.split(","))
    row, pages = dim * (q_heads + 2 * kv_heads), -(-n // 16)
    scalars = {"n": n, "q_heads": q_heads, "k_heads": kv_heads, "v_heads": kv_heads, "rotary_dim": dim, "magnitude": 1,
               "pages": pages, "page_size": 16, "out_row_stride": dim * q_heads,
               **{f"{name}_row_stride": row for name in "qkv"},
               **{f"{name}_head_stride": dim for name in ("q", "k", "v", "out", "cache")},
               "cache_page_stride": 16 * kv_heads * dim, "cache_row_stride": kv_heads * dim}
    if params["cache"] == "int8_token":
        scalars |= {"scale_page_stride": 16 * kv_heads, "scale_row_stride": kv_heads, "scale_head_stride": 1}
    return ",".join(f"{name}={value}" for name, value in scalars.items())


def judge_rope(count):
    params, args = count.params, count.args
    wide = BYTES[params["type"]]
    tensors = ["q", "k", "v", "q_out"] + [name for name in ("k_cache", "v_cache", "k_codes", "v_codes") if name in count.arguments]
    dim, elements = int(params["head_dim"]), args["n"] * int(params["head_dim"])
    heads = args["q_heads"] + 2 * args["k_heads"]
    written = elements * (args["q_heads"] * wide + 2 * args["k_heads"] * (wide if params["cache"] == "same" else 1))
    scales = 8 * args["n"] * args["k_heads"] * (params["cache"] == "int8_token")
    read = elements * heads * wide
    # otherwise the two chunks of some lanes share a sector
    is_whole = dim * (wide if params["cache"] == "same" else 1) % 64 == 0
    return [
        counters.equal("cost's bytes", (count.cost["bytes_read"], count.cost["bytes_written"]),
                       (read + 12 * args["n"] + 4 * dim, written + scales)),
        counters.equal("bytes", count.total("bytes_used", tensors), read + written),
        counters.at_most("moved", count.moved_over(read + written, tensors), counters.MOST_MOVED if is_whole else 2),
        counters.at_least("use", count.sector_use(tensors), counters.LEAST_USED if is_whole else 0.5),
        counters.equal("table's bytes", count.total("bytes_used", ["frequencies"]), 4 * dim * count.blocks),
        counters.at_most("all moved", count.moved_over(read + written), 1.1 if is_whole else 2.1),
        counters.at_most("wavefronts", count.wavefronts_over_ideal(), 2),
    ]


def main():
    if sys.argv[3] == "rope":
        profile, manifest, _, *shapes = sys.argv[1:]
        counters.check(profile, manifest, ["rope/"], lambda params: [rope_sizes(params, shape) for shape in shapes], judge_rope)
    profile, manifest, *shapes = sys.argv[1:]

    def sizes(params):
        # Other variants make the same copies, plus a few loads of slopes or a mask.
        if params.get("score", "plain") != "plain":
            return
        dim, dim_v = head_dims(params)
        is_paged = params.get("layout") == "paged"
        for shape in shapes:
            batch, q_heads, kv_heads, q, k = map(int, shape.split(","))
            together = PAGE if is_paged else k
            strides = {f"{name}_{of}_stride": row * size for name, row, heads, rows in
                       (("q", dim, q_heads, q), ("k", dim, kv_heads, together), ("v", dim_v, kv_heads, together),
                        ("out", dim_v, q_heads, q))
                       for of, size in (("row", 1), ("head", rows), ("batch", rows * heads))}
            if params.get("kv") == "int8_token":
                strides |= {"scale_row_stride": 1, "scale_head_stride": together, "scale_batch_stride": together * kv_heads}
            scalars = {"batch": batch, "q_heads": q_heads, "kv_heads": kv_heads, "q_length": q, "k_length": k,
                       "scale": SCALE, "splits": 0 if int(params["split_k"]) else SPLITS,
                       "workspace_size": batch * q_heads * q * (int(params["split_k"]) or 256) * (dim_v + 8),
                       **strides, **layout(params, batch, q, k)}
            yield ",".join(f"{name}={value}" for name, value in scalars.items())

    counters.check(profile, manifest, ["attention/"], sizes, judge)


main()
