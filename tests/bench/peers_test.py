"""Tests tools/bench/peers.py with a fake PyTorch that measures nothing.

usage: peers_test.py ROOT
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(sys.argv[1])
FAKES = pathlib.Path(__file__).resolve().parent / "fake_torch"
COMMAND = [sys.executable, "-B", str(ROOT / "tools/bench/peers.py")]
# Rows of each process; SDPA has two.
SDPA, MATMUL, BITSANDBYTES, INT4, TRITON, OTHER = 42, 66, 32, 36, 4, 8
ROWS = 2 * SDPA + MATMUL + BITSANDBYTES + INT4 + TRITON + OTHER


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, expected {wanted!r}")


def environment(faults="", path=FAKES):
    return dict(os.environ, PYTHONPATH=str(path), FAKE_FAULTS=faults)


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def peers(*options, **given):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.jsonl"
        done = subprocess.run([*COMMAND, str(out), *options], capture_output=True, text=True, env=environment(**given))
        expect("exit status and output", (done.returncode, done.stdout, done.stderr), (0, "", ""))
        return lines_of(out)


def list_rows():
    """Returns the descriptions of --list and its summary line."""
    *rows, total = subprocess.run([*COMMAND, "--list"], check=True, capture_output=True, text=True).stdout.splitlines()
    return rows, total


def every_row():
    versions, *lines = peers()
    listed, total = list_rows()
    expect("rows", (len(lines), len(listed), total.split(",")[0]), (ROWS, ROWS, f"{ROWS} rows in 7 processes"))
    expect("versions", versions["versions"]["torch"] + " " + versions["versions"]["cuda"], "fake 13.0")
    for line, row in zip(lines, listed):
        expect("keys", set(line) - {"tflops"}, {"peer", "work", "us", "graph", "bytes"})
        described = " ".join([line["work"].pop("family"), *(f"{name}={value}".lower() for name, value in line["work"].items())])
        expect("order", row, f"{line['peer'].removesuffix(', K and V repeated')} {described}")
        line["row"] = described
        us = line["us"]
        expect("times", us, dict.fromkeys(("median", "least", "p10", "p90"), us["median"]) | {"samples": 11})
    return {(line["peer"], line["row"]): line for line in lines}


def values(lines):
    """Bytes, operations and kinds of timing equal numbers computed by hand. A batch of the fake takes 1000 us."""
    def of(peer, row):
        line = lines[peer, row]
        return line["us"]["median"], line["graph"], line["bytes"], line.get("tflops")
    heads = "attention type=f16 head_dim=128 causal="
    prefill = " batch=4 q_heads=16 kv_heads=16 q_length=4096 k_length=4096"
    expect("prefill", of("torch sdpa flash", heads + "false" + prefill), (1000.0, False, 2**27 * 2, 549.76))
    expect("causal", of("triton attention", heads + "true" + prefill), (1000.0, False, 2**27 * 2, 274.95))
    decode = " batch=8 q_heads=32 kv_heads=8 q_length=1 k_length=8192"
    expect("decode", of("torch sdpa cudnn, K and V repeated", heads + "false" + decode),
           (1000.0, False, 2 * 8 * (32 + 8 * 8192) * 128 * 2, 1.07))
    # 256 MiB of rotated buffers are 8 sets of 32 MiB, so 8 calls take 1000 us, and so does a graph of 8.
    expect("product", of("torch.matmul", "matmul type=f16 m=1 n=4096 k=4096"), (125.0, True, 2**25 + 16384, 0.27))
    # 9 MiB give 29 sets.
    expect("NF4 product", of("bitsandbytes gemv_4bit", "nf4_gemm type=f16 group=64 m=1 n=4096 k=4096"),
           (34.483, True, 2**23 + 2**20 + 16384, 0.97))
    expect("int4 product", of("torch _weight_int4pack_mm", "int4_gemm type=bf16 group=128 m=64 n=4096 k=4096"),
           (37.037, True, 2**23 + 2**19 + 2**20, 57.98))
    expect("quantise", of("bitsandbytes quantize_4bit", "nf4_quantize type=f16 group=64 n=67108864"),
           (500.0, False, 2**27 + 2**25 + 2**22, None))
    expect("bmm", of("torch.bmm", "bmm type=f16 m=4096 k=7168 l=8"),
           (1000.0, False, 2 * 8 * (4096 * 7168 + 4096 + 7168), 0.47))
    expect("copy", of("torch copy_", "copy type=f32 n=67108864"), (1000.0, False, 2**29, None))


def faults():
    """A peer that hangs or dies gives one line; rows that raise give a line each; the other peers go on."""
    _, *lines = peers("--patience", "3", faults="cudnn=hang,flash=die,bmm=raise")
    failures = [(line["peer"], line["failed"]) for line in lines if "failed" in line]
    expect("failures", failures, [("torch sdpa cudnn", f"killed after 3 s; {SDPA - 1} more rows were not run"),
                                  ("torch sdpa flash", f"the process ended with 9; {SDPA - 1} more rows were not run"),
                                  *[("torch.bmm", "RuntimeError: planted in two lines")] * 3])
    expect("lines", len(lines), ROWS - 2 * (SDPA - 1))
    expect("place", lines[0]["work"]["head_dim"], 64)
    _, line = peers("--only", "torch.matmul matmul type=f16 m=1 n=4096", faults="capture=raise")
    expect("a call that no graph takes", (line["us"]["median"], line["graph"]), (125.0, False))
    expect("a GPU whose name kills", peers(faults="versions=die"), [{"failed": "versions: the process ended with 9"}])


def missing():
    """Each missing library gives one line. Without PyTorch or a GPU, the output is one line."""
    with tempfile.TemporaryDirectory() as folder:
        for name in "bitsandbytes", "triton":
            (pathlib.Path(folder) / f"{name}.py").write_text(f"raise ImportError('no {name}')", encoding="utf-8")
        (pathlib.Path(folder) / "torch.py").symlink_to(FAKES / "torch.py")
        _, *lines = peers(path=folder)
        failures = {line["peer"]: line["failed"] for line in lines if "failed" in line}
        expect("without bitsandbytes and Triton", failures,
               {"bitsandbytes quantize_4bit": f"no bitsandbytes; {BITSANDBYTES - 1} more rows need it",
                "triton attention": f"no triton; {TRITON - 1} more rows need it"})
        (pathlib.Path(folder) / "torch.py").unlink()
        (pathlib.Path(folder) / "torch.py").write_text("raise ImportError('no such library')", encoding="utf-8")
        expect("without PyTorch", peers(path=folder), [{"failed": "no PyTorch: no such library"}])
    expect("without a GPU", peers(faults="gpu=none"), [{"failed": "this PyTorch sees no GPU"}])


def chosen():
    _, *lines = peers("--only", "bmm type=f16 m=7168")
    expect("--only", [line["work"]["k"] for line in lines], [16384, 2048])
    _, *lines = peers("--seconds", "0")
    expect("--seconds 0", [line["failed"] for line in lines],
           [f"no time left for this row and {n - 1} more" for n in (SDPA, SDPA, MATMUL, BITSANDBYTES, INT4, TRITON, OTHER)])


def killed():
    """Finished rows stay complete, and no child process outlives the parent."""
    finished = 1 + 2 * SDPA + MATMUL + BITSANDBYTES
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.jsonl"
        parent = subprocess.Popen([*COMMAND, str(out)], env=environment("int4=hang"), start_new_session=True)
        try:
            wait_until("finished rows", lambda: len(lines_of(out)) == finished)
            parent.kill()
            parent.wait()
            wait_until("the child's end", lambda: not is_alive(parent.pid))
            expect("lines after a kill", (len(lines_of(out)), out.read_text(encoding="utf-8")[-1]), (finished, "\n"))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)


def wait_until(what, is_so):
    end = time.monotonic() + 60
    while not is_so():
        if time.monotonic() > end:
            sys.exit(f"waited in vain for {what}")
        time.sleep(0.05)


def is_alive(process_group):
    """Whether a process of the group runs. Zombies do not count."""
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, group = path.read_text(encoding="utf-8").rpartition(")")[2].split()[:3]
            if int(group) == process_group and state != "Z":
                return True
    return False


values(every_row())
faults()
missing()
chosen()
killed()
