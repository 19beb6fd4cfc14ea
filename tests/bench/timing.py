"""Tests kiln-bench's input and output lines on the emulated device. The times mean nothing there.

usage: timing.py KILN-BENCH DRIVER
"""
import json
import os
import subprocess
import sys

BENCH, DRIVER = sys.argv[1:]
SAMPLES = 3
EXIT_LOST, EXIT_HUNG = 4, 5


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, expected {wanted!r}")


def listing():
    done = subprocess.run([BENCH, "--list"], check=True, capture_output=True, text=True)
    return [line.split() for line in done.stdout.splitlines()]


IDS = [name for name, *_ in listing()]


def find(beginning):
    """Returns the id of the only variant with this beginning."""
    found = [name for name in IDS if name.startswith(beginning)]
    expect(f"variants {beginning}", len(found), 1)
    return found[0]


SCALE, PRODUCT, GGUF_ROWS, ROPE = map(find, ("int4_scale", "nf4_gemm/", "gguf_rows", "rope"))
PAGED, RAGGED = (next(name for name in IDS if name.endswith(f"layout={layout}")) for layout in ("paged", "ragged"))
ROWS = {rows: find(f"rmsnorm_q4k_gemv/norm=rms,x=f32,activation=q8,batch=1,y=f32,rows={rows}") for rows in (1, 4)}


def bench(plan, *options, **environment):
    """Returns the exit status, the first line, and the other lines."""
    done = subprocess.run([BENCH, "--driver", DRIVER, "--samples", str(SAMPLES), "--copy-bytes", str(5 << 20), *options],
                          input="\n".join(plan) + "\n", capture_output=True, text=True, env=dict(os.environ, **environment))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if not lines or "device" not in lines[0]:
        sys.exit(f"no first line: {done.stdout}{done.stderr}")
    return done.returncode, lines[0], lines[1:]


def check_times(what, task, is_graph):
    expect(f"{what}: samples", (len(task["us"]), min(task["us"]) > 0), (SAMPLES, True))
    expect(f"{what}: graph", (task["graph"], task.get("graph_error")), (is_graph, None))
    expect(f"{what}: batch", 1 <= task["batch"] <= 1024, True)


def first_line():
    status, first, rows = bench([])
    expect("an empty plan", (status, rows), (0, []))
    expect("the first line", list(first), ["device", "empty_kernel", "copies"])
    expect("the device", (first["device"]["sm"], first["device"]["emulated"]), (90, True))
    check_times("the empty kernel", first["empty_kernel"]["plain"], is_graph=False)
    check_times("the empty kernel in a graph", first["empty_kernel"]["graph"], is_graph=True)
    expect("its batch", first["empty_kernel"]["graph"]["batch"] >= 200, True)
    expect("copies", [copy["bytes"] for copy in first["copies"]], [1 << 20, 4 << 20, 5 << 20])


def sizes():
    """Lines may have numbers, expressions and unnamed sizes. Errors give the number of a wrong or forbidden line."""
    strides = [f"{name}_row_stride={heads}*head_dim" for name, heads in
               (("q", "q_heads"), ("k", "kv_heads"), ("v", "kv_heads"), ("out", "q_heads"))]
    strides += [f"{name}_head_stride=head_dim" for name in ("q", "k", "v", "out")]
    pages = ["q_batch_stride=q_length*q_row_stride", "out_batch_stride=q_length*out_row_stride",
             "k_batch_stride=pages_size*k_row_stride", "v_batch_stride=pages_size*v_row_stride", "sequences_q_rows=batch*q_length",
             "pages_stride=3", "pages_entries=batch*pages_stride", "pages_count=6", "pages_size=16"]
    heads = ["batch=2", "q_heads=4", "kv_heads=2", "q_length=5", "k_length=40"]
    plan = [f"{SCALE} n=32*2", "", f"{PRODUCT} m=2 n=48 k=n+16", f"{PRODUCT} m=2 n=48 k=63",
            f"{PRODUCT} m=2 n=48", f"{PRODUCT} m=2 n=48 k=64 z=1", f"{PRODUCT} m=2 n=48 k=64 n=9", f"{PRODUCT} m=2 n=(3 k=64",
            f"{PRODUCT} m=2 n= k=64", f"{PRODUCT} m=2 n=4294967296 k=64", f"{PRODUCT} m=0 n=48 k=64", "nothing/x=1 n=1",
            f"{PRODUCT} m=1 n=16777216 k=1048576",
            " ".join([PAGED, *heads, *strides, *pages]),
            " ".join([RAGGED, *heads, *strides, *(stride.replace("pages_size", "k_length") for stride in pages[:5]),
                      "sequences_k_rows=batch*k_length"]),
            f"{GGUF_ROWS} n=2048 k=32 tensor_rows=128256",
            f"{ROPE} n=300 q_heads=4 k_heads=2 v_heads=2 rotary_dim=head_dim pages=19 page_size=16 q_row_stride=8*head_dim "
            "k_row_stride=8*head_dim v_row_stride=8*head_dim out_row_stride=4*head_dim q_head_stride=head_dim "
            "k_head_stride=head_dim v_head_stride=head_dim out_head_stride=head_dim cache_head_stride=head_dim "
            "cache_row_stride=2*head_dim cache_page_stride=32*head_dim scale_head_stride=1 scale_row_stride=2 "
            "scale_page_stride=32"]
    status, _, rows = bench(plan)
    expect("exit status", status, 0)
    expect("lines", [row["line"] for row in rows], [0, *range(2, len(plan))])
    expect("ids", [row["id"] for row in rows], [plan[row["line"]].split()[0] for row in rows])
    timed = {row["line"]: row["sizes"] for row in rows if "sizes" in row}
    expect("an expression", timed.get(0), {"n": 64})
    expect("a size that is not named", timed.get(2), {"m": 2, "n": 48, "k": 64, "workspace_size": 0})
    why = {row["line"]: (row.get("skipped"), row.get("error")) for row in rows if "sizes" not in row}
    expect("a rule", why[3], ("k must be a multiple of 64", None))
    expect("a size that buffers depend on", why[4], (None, "the shape does not give k"))
    expect("a size of no variant", why[5], (None, "no variant of the family has a size 'z'"))
    expect("a size twice", why[6], (None, "the shape repeats 'n'"))
    expect("no expression", why[7][0], None)
    expect("no value", why[8], (None, "expected SIZE=VALUE, found 'n='"))
    expect("too large a number", why[9], (None, "n is a 32-bit number"))
    expect("nothing to do", why[10], (None, "there is nothing to launch"))
    expect("no variant", why[11], (None, "the bundle has no such variant"))
    expect("memory", (why[12][0] or "").endswith("are free"), True)
    expect("indices", [row["line"] for row in rows if row["line"] > 12 and "sizes" not in row], [])
    paged = timed.get(13) or sys.exit(f"pages: {rows[-1]}")
    expect("strides", (paged["q_row_stride"], paged["q_batch_stride"], paged["k_batch_stride"], paged["out_head_stride"]),
           (256, 1280, 2048, 64))
    expect("sizes that no buffer depends on", (paged["workspace_size"], paged["window_left"], paged["splits"]), (0, 0, 0))


def row():
    """The members of a row, and the variant that dispatch would have launched."""
    status, first, rows = bench([f"{ROWS[rows]} n={n} k=256" for n in (4, 8192) for rows in (1, 4)] + [f"{SCALE} n=1024"])
    expect("exit status", status, 0)
    for r in rows:
        check_times(r["id"], r, is_graph=r["graph"])  # depends on this machine's speed
        expect(f"{r['id']}: keys", list(r), ["line", "id", "sizes", "bytes_read", "bytes_written", "elements", "set_bytes",
                                             "sets", "pick", "batch", "graph", "us", "load_ms", "seconds"])
        expect(f"{r['id']}: seconds", r["seconds"] * 1e3 > r["load_ms"] >= 0, True)
        expect(f"{r['id']}: sets", r["sets"] * r["set_bytes"] > 2 * first["device"]["l2_bytes"] or r["sets"] == 1024, True)
    picks = [(r["sizes"]["n"], r["pick"]) for r in rows[:4]]
    expect("one pick per call", len(set(picks)), 2)
    expect("picks", [pick in ROWS.values() for _, pick in picks], [True] * 4)
    expect("few rows", picks[0][1], ROWS[1])
    expect("many rows", picks[2][1], ROWS[4])
    scale = rows[4]
    expect("bytes", (scale["bytes_read"], scale["bytes_written"], scale["elements"], scale["pick"]),
           (4096, 128, 1024, SCALE))


def endings():
    """A device that does not answer, and a kernel that fails: the last line and the exit status."""
    plan = [f"{SCALE} n=32", f"{PRODUCT} m=64 n=4096 k=4096", f"{SCALE} n=64"]
    status, _, rows = bench(plan, "--launch-seconds", "1", KILN_EMU_CHECK="all")
    expect("exit status of a hang", status, EXIT_HUNG)
    expect("lines before a hang", (len(rows), rows[0]["line"]), (2, 0))
    expect("a hang", rows[1], {"line": 1, "id": PRODUCT, "error": "no end after 1 s", "hung": True})
    status, _, rows = bench([f"{SCALE} n=x", f"{PRODUCT} m=1 n=16 k=4096", f"{SCALE} n=64"], KILN_EMU_JUMPS="1",
                            KILN_EMU_VERBOSE="0")
    expect("exit status of a failure", status, EXIT_LOST)
    expect("lines up to a failure", [(row["line"], "error" in row) for row in rows], [(0, True), (1, True)])

    for option in "--help", "--list":
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([BENCH, option], stdout=full, stderr=subprocess.PIPE, text=True)
        expect(f"{option} to a full device", (done.returncode, "cannot write standard output" in done.stderr), (1, True))


first_line()
sizes()
row()
endings()
