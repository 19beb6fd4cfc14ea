"""Tests kiln-profile's output and errors.

usage: output.py kiln-profile CONFIG BUNDLE_FOLDER README SAMPLE_FOLDER
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

VARIANT = "nf4_unpack/type=f16,group=64,nibbles=low"
LIMITS = ["memory", "issue", "integer", "float", "double", "special", "shared", "tensor"]
CLASSES = ["integer", "float", "double", "half", "conversion", "special", "move", "global", "shared", "local", "const",
           "param", "generic", "control", "warp", "tensor"]
ACCESS = {"requests": int, "sectors": int, "distinct_sectors": int, "bytes": int, "bytes_used": int,
          "sector_use": (float, int, type(None)), "moved_over_compulsory": (float, int, type(None))}
WAVES = {"requests": int, "bytes": int, "wavefronts": int, "ideal_wavefronts": int,
         "wavefronts_over_ideal": (float, int, type(None))}
NUMBER = (float, int)
SHAPE = {
    "variant": str, "target": str, "image": str, "args": dict,
    "cost": {"elements": int, "bytes_read": int, "bytes_written": int,
             "read_over_compulsory": NUMBER, "written_over_compulsory": NUMBER},
    "registers": dict,
    "instructions": {"thread": int, "warp": int, "lane_slots": int, "thread_per_element": NUMBER,
                     "active_lanes": NUMBER,
                     "classes": {c: {"thread": int, "warp": int, "thread_per_element": NUMBER} for c in CLASSES},
                     "branches": int, "divergent_branches": int, "barriers": int, "products": int,
                     "multiply_adds": int},
    "allocations": [{"name": str, "is_argument": bool, "bytes": int,
                     "read": ACCESS, "write": ACCESS, "atomic": ACCESS}],
    "shared": {"read": WAVES, "write": WAVES, "atomic": WAVES},
    "wavefronts": {"threads": int, "products": int, "bulk": int},
    "roofline": [{"gpu": str, "gigabytes_per_second": NUMBER, "multiprocessors": int, "megahertz": NUMBER,
                  "integer_lanes": int, "float_lanes": int, "double_lanes": int, "tensor_teraflops": NUMBER,
                  "s8_teraops": NUMBER, "fp4_teraflops": NUMBER, "source": str,
                  "microseconds": {k: NUMBER for k in LIMITS}, "limit": str}],
    "report": dict,
}


class Checks:
    def __init__(self, tool):
        self.tool, self.failed = tool, 0

    def expect(self, holds, what):
        if not holds:
            print("FAILED:", what)
            self.failed += 1

    def run(self, *args, **options):
        return subprocess.run([self.tool, *args], capture_output=True, text=True, timeout=300, **options)

    def refuses(self, args, status, *texts):
        got = self.run(*args)
        self.expect(got.returncode == status, f"{args}: status {got.returncode}, expected {status}")
        self.expect(got.stdout == "", f"{args}: printed {got.stdout[:200]!r}")
        for text in texts:
            self.expect(text in got.stderr, f"{args}: no {text!r} in {got.stderr!r}")


def misshapen(value, shape, place="$"):
    if isinstance(shape, dict):
        if list(value) != list(shape):
            yield f"{place} has {list(value)}, expected {list(shape)}"
        for key in set(value) & set(shape):
            yield from misshapen(value[key], shape[key], f"{place}.{key}")
    elif isinstance(shape, list):
        for i, item in enumerate(value):
            yield from misshapen(item, shape[0], f"{place}[{i}]")
    elif not isinstance(value, shape) or (isinstance(value, bool) and shape is not bool):
        yield f"{place} is {value!r}, expected {shape}"


def check_json(c, config, folder):
    """8192 elements of f16 unpacked from 4096 bytes of codes and 128 scales: the counts are known by hand."""
    run = c.run(folder, "--variant", VARIANT, "--target", "sm_90", "--args", "n=8192", "--json")
    c.expect(run.returncode == 0, run.stderr)
    p = json.loads(run.stdout)
    for problem in misshapen(p, SHAPE):
        c.expect(False, problem)
    c.expect((p["variant"], p["target"], p["image"], p["args"]) == (VARIANT, "sm_90", "sm_80", {"n": 8192}), "what ran")
    c.expect(p["cost"]["elements"] == 8192 and p["cost"]["bytes_read"] == 4608 and p["cost"]["bytes_written"] == 16384,
             f"cost {p['cost']}")
    c.expect(p["cost"]["read_over_compulsory"] == p["cost"]["written_over_compulsory"] == 1, f"cost {p['cost']}")
    rows = {row["name"]: row for row in p["allocations"] if row["is_argument"]}
    for name, kind, sectors in ("packed", "read", 128), ("scale", "read", 16), ("out", "write", 512):
        a = rows[name][kind]
        c.expect((a["sectors"], a["distinct_sectors"], a["bytes_used"], rows[name]["bytes"]) ==
                 (sectors, sectors, 32 * sectors, 32 * sectors), f"{name}: {a}")
        c.expect((a["sector_use"], a["moved_over_compulsory"]) == (1, 1), f"{name}: {a}")
    c.expect(rows["out"]["read"]["sector_use"] is None, "nothing is read from out")
    i = p["instructions"]
    c.expect(i["thread"] == sum(k["thread"] for k in i["classes"].values()) == p["report"]["thread_instructions"],
             "the classes are all of the instructions")
    c.expect(i["thread_per_element"] == round(i["thread"] / 8192, 5), "instructions per element")
    for g in p["roofline"]:
        us = g["microseconds"]
        clocks = g["multiprocessors"] * g["megahertz"]
        distinct = sum(a[k]["distinct_sectors"] for a in p["allocations"] for k in ("read", "write", "atomic"))
        expected = {"memory": 32 * distinct / g["gigabytes_per_second"] / 1e3, "issue": i["warp"] / 4 / clocks,
                    "integer": i["classes"]["integer"]["thread"] / g["integer_lanes"] / clocks,
                    "float": i["classes"]["float"]["thread"] / g["float_lanes"] / clocks}
        for k, v in expected.items():
            c.expect(abs(us[k] - v) <= 1e-4 * v, f"{g['gpu']}: {k} {us[k]}, expected {v}")
        c.expect(us[g["limit"]] == max(us.values()) and g["source"], f"{g['gpu']}: {g['limit']}")
    # A configuration and its bundle have the same kernels.
    again = json.loads(c.run(config, "--variant", VARIANT, "--args", "n=8192", "--json").stdout)
    for q in p, again:
        del q["report"]  # it has addresses
    c.expect(p == again, "CONFIG and BUNDLE differ")
    return p


def check_lines(c, folder):
    """The counters of the PTX's lines add up to the kernel's, and name the allocations that they touch."""
    p = json.loads(c.run(folder, "--variant", VARIANT, "--target", "sm_90", "--args", "n=8192", "--json", "--lines").stdout)
    lines, text = p["report"]["lines"], p["ptx"].splitlines()
    c.expect(sum(line["thread"] for line in lines) == p["instructions"]["thread"], "the lines are all of the instructions")
    allocations = p["report"]["allocations"]
    stores = [line for line in lines if line["text"].startswith("st.global")]
    c.expect(stores and all("st.global" in text[line["line"] - 1] for line in stores), "the lines of stores")
    touched = [allocations[n]["parameters"] for line in stores for n in line["touched"]]
    c.expect(touched == [[2]] * len(stores), f"stores touch the parameters {touched}")


def check_registers(c, folder, p):
    """Prints ptxas' figures, or that ptxas is missing."""
    if shutil.which("ptxas"):
        c.expect(p["registers"]["target"] == "sm_80" and 8 <= p["registers"]["count"] <= 255 and
                 p["registers"]["spill_store_bytes"] == p["registers"]["spill_load_bytes"] == 0, str(p["registers"]))
    else:
        print("no ptxas on the PATH: its figures are not tested")
    args = [folder, "--variant", VARIANT, "--args", "n=64"]
    bare = json.loads(c.run(*args, "--json", env={**os.environ, "PATH": "/nonexistent"}).stdout)
    c.expect(bare["registers"] == {"missing": "no ptxas on the PATH"}, str(bare["registers"]))
    with tempfile.TemporaryDirectory() as fake:
        tool = pathlib.Path(fake) / "ptxas"
        tool.write_text("#!/bin/sh\necho 'ptxas info    : Function properties for k\n"
                        "    24 bytes stack frame, 16 bytes spill stores, 8 bytes spill loads\n"
                        "ptxas info    : Used 40 registers, used 1 barriers' >&2\n")
        tool.chmod(0o755)
        spilled = c.run(*args, env={**os.environ, "PATH": f"{fake}:{os.environ['PATH']}"}).stdout
        c.expect("registers (ptxas, sm_80): 40; spilled: 16 bytes stored, 8 loaded; stack 24 bytes\n" in spilled,
                 spilled)
        tool.write_text("#!/bin/sh\nexit 1\n")
        refused = json.loads(c.run(*args, "--json", env={**os.environ, "PATH": fake + ":/bin"}).stdout)
        c.expect(refused["registers"] == {"missing": "ptxas does not take the image"}, str(refused["registers"]))


def check_table(c, folder, p):
    out = c.run(folder, "--variant", VARIANT, "--args", "n=8192").stdout
    c.expect(out.startswith(f"{VARIANT} on sm_90 (image sm_80), n=8192\n"), out[:100])
    c.expect(re.search(r"^out +write +\d+ +512 +512 +16384 +1\.000 +1\.000$", out, re.M), out)
    c.expect(f"thread instructions {p['instructions']['thread']:>15} " in out, out)
    for g in p["roofline"]:
        c.expect(re.search(rf"^{re.escape(g['gpu'])} .*  {g['limit']}$", out, re.M), g["gpu"])


def check_readme(c, readme):
    """Prints the example of tools/profile/README.md; only registers depend on the installed ptxas."""
    lines = iter(pathlib.Path(readme).read_text(encoding="utf-8").splitlines())
    command = next(line for line in lines if line.startswith("    $ build/bin/kiln-profile "))
    said = []
    for line in lines:
        if line and not line.startswith("    "):
            break
        said.append(line[4:])
    got = c.run(*command.split()[2:], cwd=pathlib.Path(__file__).resolve().parents[2]).stdout.splitlines()
    keep = lambda text: [line for line in text if not line.startswith("registers (ptxas")]
    c.expect(keep(got) == keep(said[:len(got)]) and not any(said[len(got):]),
             "the example of tools/profile/README.md; it should be\n    " + "\n    ".join(got))


CONFLICT = """.version 7.4
.target sm_75
.address_size 64
.visible .entry conflict(.param .u32 n) .reqntid 32
{
.reg .u32 %r<5>;
.shared .align 128 .b8 s[32768];
mov.u32 %r0, %tid.x;
mov.u32 %r1, s;
mad.lo.u32 %r2, %r0, 128, %r1;
st.shared.u32 [%r2], %r0;
ld.shared.u32 %r3, [%r2];
ret;
}
"""
CONFLICT_CONFIG = """bundle: conflicts
targets: [sm_75]
kernels:
  - ptx: conflict.ptx
    entries:
      conflict: {args: [n], grid: n}
"""


VARIANTS = """  - ptx:
      - {file: conflict.ptx, values: {part: 1}, when: n > 1}
      - {file: conflict.ptx, values: {part: 2}}
    args: [n]
    grid: n
"""


def check_shared(c):
    """Wavefronts over ideal, in a kernel of external PTX: 32 lanes that store to and load from one bank."""
    with tempfile.TemporaryDirectory() as scratch:
        config = pathlib.Path(scratch, "kernels.yaml")
        config.write_text(CONFLICT_CONFIG)
        pathlib.Path(scratch, "conflict.ptx").write_text(CONFLICT)
        run = c.run(config, "--variant", "conflict", "--target", "sm_75", "--args", "n=2", "--json")
        c.expect(run.returncode == 0, run.stderr)
        shared = json.loads(run.stdout)["shared"] if run.returncode == 0 else {}
        for kind in ("write", "read") if shared else ():
            c.expect(shared[kind]["wavefronts_over_ideal"] == 32, f"{kind}: {shared[kind]}")


PRODUCT = """.version 8.0
.target sm_90a
.address_size 64
.global .align 16 .b8 g[512];
.visible .entry product(.param .u32 n) .reqntid 128
{
.reg .u32 %r<4>; .reg .u64 %x<2>; .reg .f32 %f<8>; .reg .pred %p<2>;
.shared .align 1024 .b8 s[2560];
mov.u32 %r0, %tid.x; mov.u32 %r1, s; shl.b32 %r2, %r0, 4; add.u32 %r2, %r2, %r1; setp.lt.u32 %p0, %r0, 32; setp.eq.u32 %p1, %r0, 0;
st.shared.v4.u32 [%r2], {0, 0, 0, 0};
@%p0 st.shared.v4.u32 [%r2+2048], {0, 0, 0, 0};
fence.proxy.async; bar.sync 0;
cvt.u64.u32 %x0, %r1; shr.u64 %x0, %x0, 4; or.b64 %x0, %x0, 0x1000080000; add.u64 %x1, %x0, 128;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, %x0, %x1, 0, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
@!%p1 ret;
mov.u64 %x0, g;
cp.async.bulk.global.shared::cta.bulk_group [%x0], [%r1], 512;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
ret;
}
"""


def check_products(c):
    """Who uses shared memory, by hand: each block stores 160 vectors of 16 bytes, multiplies 2560 bytes and copies 512 in bulk."""
    with tempfile.TemporaryDirectory() as scratch:
        config = pathlib.Path(scratch, "kernels.yaml")
        config.write_text(CONFLICT_CONFIG.replace("conflict", "product").replace("sm_75", "sm_90a"))
        pathlib.Path(scratch, "product.ptx").write_text(PRODUCT)
        args = config, "--variant", "product", "--target", "sm_90a", "--args", "n=2"
        run = c.run(*args, "--json")
        c.expect(run.returncode == 0, run.stderr)
        if run.returncode:
            return
        p, table = json.loads(run.stdout), c.run(*args).stdout
        c.expect(p["wavefronts"] == {"threads": 40, "products": 40, "bulk": 8}, f"wavefronts {p['wavefronts']}")
        shape = p["report"]["tensor"]["shapes"][0]
        c.expect((shape["name"], shape["products"], shape["shared"]["bytes"]) ==
                 ("wgmma.m64n16k16.f32.f16.f16", 8, 5120), str(shape))
        for g in p["roofline"]:
            expected = 88 / (g["multiprocessors"] * g["megahertz"])
            c.expect(abs(g["microseconds"]["shared"] - expected) <= 1e-4 * expected, f"{g['gpu']}: {g['microseconds']}")
        for line in (r"wgmma\.m64n16k16\.f32\.f16\.f16 +8 products, +32768 multiply-adds, +5120 bytes of shared memory",
                     r"bulk store +2 copies, +1024 bytes of global memory, 1024 of shared memory",
                     r"tests of mbarriers 0, passed 0; waits for bulk groups 2",
                     r"wavefronts of shared memory: threads 40, operands of products 40, bulk copies 8"):
            c.expect(re.search(f"^{line}$", table, re.M), f"{line} in\n{table}")


RATES = """.version 8.8
.target sm_120f
.address_size 64
.visible .entry rates(.param .u32 n) .reqntid 32
{
.reg .b32 %r<9>; .reg .s32 %s<4>; .reg .f32 %f<4>; .reg .b16 %h<2>;
mov.b32 %r0, 0; mov.u32 %s0, 0; mov.u32 %s1, 0; mov.u32 %s2, 0; mov.u32 %s3, 0; mov.u16 %h0, 0;
mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r0, %r0, %r0, %r0}, {%r0, %r0}, {%f0, %f1, %f2, %f3};
mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r0, %r0, %r0, %r0}, {%r0, %r0}, {%f0, %f1, %f2, %f3};
mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%f0, %f1, %f2, %f3}, {%r0, %r0, %r0, %r0}, {%r0, %r0}, {%f0, %f1, %f2, %f3};
mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%s0, %s1, %s2, %s3}, {%r0, %r0, %r0, %r0}, {%r0, %r0}, {%s0, %s1, %s2, %s3};
mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3
    {%f0, %f1, %f2, %f3}, {%r0, %r0, %r0, %r0}, {%r0, %r0}, {%f0, %f1, %f2, %f3}, {%r0}, {%h0, %h0}, {%r0}, {%h0, %h0};
ret;
}
"""


def check_rates(c):
    """The time of one product of each type, calculated by hand. Without block-scaled e2m1 a GPU has the rate of f16 for it."""
    with tempfile.TemporaryDirectory() as scratch:
        config = pathlib.Path(scratch, "kernels.yaml")
        config.write_text(CONFLICT_CONFIG.replace("conflict", "rates").replace("sm_75", "sm_120f"))
        pathlib.Path(scratch, "rates.ptx").write_text(RATES)
        run = c.run(config, "--variant", "rates", "--target", "sm_120f", "--args", "n=1", "--json")
        c.expect(run.returncode == 0, run.stderr)
        for g in json.loads(run.stdout)["roofline"] if run.returncode == 0 else ():
            f16, s8, fp4 = g["tensor_teraflops"], g["s8_teraops"], g["fp4_teraflops"] or g["tensor_teraflops"]
            expected = 2 * 16 * 8 / 1e6 * (16 / f16 + 8 / (f16 / 2) + 32 / (2 * f16) + 32 / s8 + 64 / fp4)
            c.expect(abs(g["microseconds"]["tensor"] - expected) <= 1e-4 * expected, f"{g['gpu']}: {g['microseconds']}, {expected}")


def check_variants(c):
    """Several variants of external PTX behind one function share the image of their file."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "conflict.ptx").write_text(CONFLICT)
        (folder / "kernels.yaml").write_text(CONFLICT_CONFIG.partition("  - ")[0] + VARIANTS)
        for part in ("1", "2"):
            run = c.run(folder / "kernels.yaml", "--variant", f"conflict/part={part}", "--target", "sm_75", "--args", "n=2", "--json")
            c.expect(run.returncode == 0, f"part={part}: {run.stderr}")


def check_wrong_manifest(c, folder):
    """Notices a file that does not belong to its source, by length or by hash."""
    with tempfile.TemporaryDirectory() as copy:
        for file in pathlib.Path(folder).glob("kiln_default.*"):
            shutil.copy(file, copy)
        manifest = pathlib.Path(copy, "kiln_default.json")
        m = json.loads(manifest.read_text())
        image = next(v for v in m["variants"] if v["id"] == VARIANT)["images"][-1]
        hashed, size = image["xxh3_128"], image["bytes"]
        for change in ({"bytes": size + 1}, {"bytes": size, "xxh3_128": hashed[:-1] + format(int(hashed[-1], 16) ^ 1, "x")}):
            image.update(change)
            manifest.write_text(json.dumps(m))
            c.refuses([copy, "--variant", VARIANT, "--args", "n=64"], 1, "do not have the image of",
                      "that the manifest names")


def check_sample(c, sample):
    """Kernels with several scalars, floats, shared memory and images, from the sample bundle of tests/bundle."""
    axpy = json.loads(c.run(sample, "--variant", "axpy", "--args", "a=2.5,n=1000", "--json").stdout)
    c.expect(axpy["args"] == {"n": 1000, "a": 2.5}, str(axpy["args"]))
    c.expect([(row["name"], row["read"]["sectors"], row["write"]["sectors"]) for row in axpy["allocations"]] ==
             [("x", 125, 0), ("y", 125, 125)], "sectors of axpy")
    c.expect(axpy["instructions"]["divergent_branches"] == 2, "the last warp that has elements parts, at both branches")
    wide = "blend/type=f32,acc=f32,width=64,clamp=false,strategy=wide"
    args = ["--args", "rows=100,stride=128,factor=inf", "--json"]
    for target, image in ("sm_80", "sm_80"), ("sm_89", "sm_80"), ("sm_90", "sm_90"), ("sm_120", "sm_90"):
        p = json.loads(c.run(sample, "--variant", wide, "--target", target, *args).stdout)
        c.expect(p["image"] == image, f"{target}: {p['image']}")
        c.expect(p["args"] == {"factor": "inf", "rows": 100, "stride": 128}, str(p["args"]))
    c.refuses([sample, "--variant", wide, "--target", "sm_75", *args], 1, "runs on sm_75; it has sm_80, sm_90")
    c.refuses([sample, "--variant", wide, "--args", "rows=4294967296,stride=128"], 2, "expected u32 for rows, found '4294967296'")
    c.refuses([sample, "--variant", wide, "--args", "rows=4"], 2, "--args lacks stride (u64)")
    c.refuses([sample, "--variant", wide, "--args", "rows=4,stride=72"], 1, "stride must be a multiple of 16")
    for real in "two", "1e39", "-1e39":
        c.refuses([sample, "--variant", "axpy", "--args", f"n=4,a={real}"], 2, f"expected f32 for a, found '{real}'")


def check_refusals(c, config, folder):
    bundle = [folder, "--variant", VARIANT]
    for args, status, *texts in (
            ([], 2, "a configuration or bundle is missing", "usage:"),
            ([folder], 2, "--variant is missing", "usage:"),
            ([*bundle, "--fast"], 2, "unknown option '--fast'; --help lists them"),
            ([*bundle, "--args"], 2, "--args needs a value"),
            (["", "--variant", VARIANT], 2, "an argument is empty"),
            ([*bundle, "other"], 2, "'other' is one argument too many"),
            (["/nonexistent.yaml", "--variant", VARIANT], 1, "there is no /nonexistent.yaml"),
            ([__file__, "--variant", VARIANT], 1, "the generator took no bundle from"),
            ([os.path.dirname(__file__), "--variant", VARIANT], 1, "holds no manifest"),
            ([folder, "--variant", "nf4_unpack/type=f16,group=65,nibbles=low"], 1,
             "has no variant nf4_unpack/type=f16,group=65", f"the nearest are: {VARIANT}\n"),
            ([config, "--variant", ""], 1, "has no variant"),
            ([folder, "--variant", "nf4_gem/tile_m=1"], 1, "the nearest are: nf4_gemm/"),
            ([folder, "--variant", "int4_scale"], 1, "the nearest are: int4_scale/"),
            ([*bundle, "--args", "n=64", "--target", "sm_50"], 1, "runs on sm_50; it has sm_75, sm_80"),
            ([*bundle, "--args", "n=64", "--target", "sm_90a"], 1, "runs on sm_90a; it has sm_75, sm_80"),
            ([*bundle, "--args", "n=64", "--target", "sm_999"], 1, "has no device for sm_999"),
            ([*bundle, "--args", "n=64", "--target", "ampere"], 2, "--target: 'ampere' is not a target"),
            ([*bundle, "--args", "n=64", "--target", "sm_90x"], 2, "--target: 'sm_90x' is not a target"),
            ([*bundle], 2, "--args lacks n (u64)"),
            ([*bundle, "--args", "n"], 2, "expected NAME=VALUE, found 'n'"),
            ([*bundle, "--args", "n=64,m=3"], 2, "has no scalar 'm'; it has n (u64)"),
            ([*bundle, "--args", "n=64,out=3"], 2, "has no scalar 'out'"),
            ([*bundle, "--args", "n=64,n=65"], 2, "n is there twice"),
            ([*bundle, "--args", "n=many"], 2, "expected u64 for n, found 'many'"),
            ([*bundle, "--args", "n="], 2, "expected u64 for n, found ''"),
            ([*bundle, "--args", "n=-1"], 2, "expected u64 for n, found '-1'"),
            ([*bundle, "--args", "n=1.5"], 2, "expected u64 for n, found '1.5'"),
            ([*bundle, "--args", "n=99999999999999999999"], 2, "expected u64 for n, found '99999999999999999999'"),
            ([*bundle, "--args", "n=0"], 1, "n=0 launches nothing: n == 0"),
            ([*bundle, "--args", "n=0x20000000000"], 1, "breaks a rule: n must be at most 2^40"),
            ([*bundle, "--args", "n=0x10000000000"], 1, "too much to emulate"),
            ([*bundle, "--args", "n=64", "--driver", "/nonexistent.so"], 1, "cannot load the driver /nonexistent.so"),
    ):
        c.refuses(args, status, *texts)
    c.expect(c.run("--help").returncode == 0, "--help")


def check_full_device(c, folder):
    """Output that cannot be written is an error."""
    for args in (["--help"], [folder, "--variant", VARIANT, "--args", "n=64"],
                 [folder, "--variant", VARIANT, "--args", "n=64", "--json"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            got = subprocess.run([c.tool, *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
        c.expect(got.returncode == 3 and got.stderr == "kiln-profile: cannot write the output: No space left on device\n",
                 f"{args} to a full device: status {got.returncode}, {got.stderr!r}")


def check_large(c):
    """A kernel needs more shared memory than the device has: prints both figures, with and without an image for the device."""
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "large.yaml")
        config.write_text("bundle: large\ntargets: [sm_80]\nkernels:\n  - {family: nf4_gemm, strategy: mma, tile_m: 64, "
                          "tile_n: 128, k_warps: 2, table: aligned}\n")
        listed = subprocess.run([str(pathlib.Path(c.tool).with_name("kiln")), "list", str(config)], capture_output=True,
                                text=True, check=True).stdout
        key, variant, _ = listed.split()
        sizes = ["--args", "m=1,n=64,k=64,workspace_size=0"]
        for name in variant, key:
            c.refuses([str(config), "--variant", name, "--target", "sm_86", *sizes], 1,
                      f"{variant} takes 134144 bytes of shared memory, sm_86 has 101376")
        c.refuses([str(config), "--variant", key, "--target", "sm_75", *sizes], 1, "runs on sm_75; it has sm_80",
                  "it takes up to 134144 bytes of shared memory, sm_75 has 65536")


def check_folders(c, config):
    """Leaves no temporary files, even after a signal."""
    for n, number in (64, None), (0, None), (300_000_000, signal.SIGTERM):
        with tempfile.TemporaryDirectory() as place:
            run = subprocess.Popen([c.tool, config, "--variant", VARIANT, "--args", f"n={n}"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env={**os.environ, "TMPDIR": place})
            while number and run.poll() is None and not os.listdir(place):
                time.sleep(0.01)
            if number:
                run.send_signal(number)
            status = run.wait(timeout=300)
            c.expect(not number or status == 128 + number, f"status {status} after signal {number}")
            c.expect(not os.listdir(place), f"n={n}: {os.listdir(place)} remain")


def main():
    tool, config, folder, readme, sample = sys.argv[1:]
    c = Checks(tool)
    p = check_json(c, config, folder)
    check_lines(c, folder)
    check_registers(c, folder, p)
    check_table(c, folder, p)
    check_readme(c, readme)
    check_shared(c)
    check_products(c)
    check_rates(c)
    check_variants(c)
    check_wrong_manifest(c, folder)
    check_sample(c, sample)
    check_refusals(c, config, folder)
    check_full_device(c, folder)
    check_large(c)
    check_folders(c, config)
    return c.failed != 0


sys.exit(main())
