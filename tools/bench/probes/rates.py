"""Rates per clock of a multiprocessor: tensor cores, issue, shared memory. Every warp runs one loop between two barriers."""
from probes.probe import Probe, product
from probes.text import address_bits, bulk_copy, descriptor, each, expect, fill_shared, listed, seeds, timed, wait, wgmma, zeros

# wgmma

OPERANDS = 57344        # bytes of B (256 rows of 64 f16) and of A for three warpgroups
COPIED = 65536          # bytes per phase of the concurrent copies: four of 16 KB in flight
STOP_AT = OPERANDS + COPIED
STEPS = 4               # products of k16 in a group


def copies(threads):
    """One lane copies 64 KB at a time into shared memory until the consumers have raised the flag."""
    barrier, to = "r20", "r21"
    issue = "\n".join(f"add.u32 {to}, base, {OPERANDS + 16384 * i}; add.u64 q5, q4, {16384 * i};\n"
                      + bulk_copy(to, "q5", 16384, barrier) for i in range(4))
    return f"""setmaxnreg.dec.sync.aligned.u32 24;
setp.ne.u32 p1, tid, {threads}; @p1 bra ASIDE_JOIN;
add.u32 {barrier}, base, {STOP_AT + 8}; mov.u32 r22, 0; mul.wide.u32 q4, cta, {COPIED}; add.u64 q4, q4, data_;
PHASE:
{expect(barrier, COPIED)}
{issue}
{wait(barrier, "r22", "W", "ASIDE_JOIN")}
xor.b32 r22, r22, 1; add.u32 extra, extra, 1;
ld.volatile.shared.u32 r23, [base+{STOP_AT}]; setp.eq.u32 p1, r23, 0; @p1 bra PHASE;
"""


def wgmma_text(n, a, consumers, beside, kind, **_):
    threads = 128 * consumers
    load, _, per_k64 = beside.partition(" x ")
    width = {"lds.32": 1, "lds.128": 4}.get(load, 0)

    def loads():
        """Loads up to 16 registers at a time and uses them: ptxas drops even volatile loads whose registers are overwritten."""
        if not width:
            return ""
        to = (lambda i: f"r{24 + i % 16}") if width == 1 else (lambda i: listed("r", 24 + 4 * i % 16, 4))
        vector, count, window = ".v4" if width == 4 else "", int(per_k64), 16 // width
        one = lambda i: f"ld.volatile.shared{vector}.b32 {to(i)}, [r16+{128 * width * i}];"
        use = each(16, lambda i: f"xor.b32 r17, r17, r{i};", 24)
        return "".join(f"{each(min(window, count - first), one, first)}\n{use}\n" for first in range(0, count, window))

    def group(first):
        """One group is in flight while A of the next is written: ptxas would copy registers that never change each time."""
        write = each(4 * STEPS, lambda i: f"xor.b32 a{i}, a{i}, n;", first) if a == "registers" else ""
        multiply = each(STEPS, lambda i: f"add.u64 q3, db, {2 * i}; "
                        + wgmma(n, first + 4 * i if a == "registers" else "da", "q3", kind))
        return f"{write}\nwgmma.fence.sync.aligned;\n{multiply}\nwgmma.commit_group.sync.aligned;\n{loads()}" \
               "wgmma.wait_group.sync.aligned 1;\n"

    setup = f"""
setp.ne.u32 p0, tid, 0; @p0 bra START;
st.shared.u32 [base+{STOP_AT}], 0; mbarrier.init.shared::cta.b64 [base+{STOP_AT + 8}], 1; fence.mbarrier_init.release.cluster;
START:
""" + fill_shared(OPERANDS, threads + 128 * (beside == "copies"))
    enter = "setmaxnreg.inc.sync.aligned.u32 240;\n" if beside == "copies" else ""
    enter += seeds("a", 0, 8 * STEPS) + zeros(n // 2) + f"""
shl.b32 r16, lane, {2 if width < 4 else 4}; add.u32 r16, r16, base; mov.u32 r17, 0;
{each(16, lambda i: f"mov.u32 r{i}, 0;", 24)}
mov.u64 da, {descriptor(128, 16, 1024)}; mov.u64 db, da; shr.u32 r3, warp, 2; mad.lo.u32 r3, r3, 8192, base; add.u32 r3, r3, 32768;
""" + address_bits("da", "r3") + address_bits("db", "base")
    drain = f"wgmma.wait_group.sync.aligned 0;\nst.volatile.shared.u32 [base+{STOP_AT}], 1;"
    return timed(group(0) + group(4 * STEPS), setup, drain, enter=enter, sink=[f"d{i}" for i in range(n // 2)] + ["r17"],
                 aside=copies(threads) if beside == "copies" else "", first_aside_warp=4 * consumers, target="sm_90a",
                 directives=f".maxntid {threads + 128 * (beside == 'copies')}, 1, 1\n.minnctapersm 1")


def measure_wgmma(gpu, n, a, consumers, beside, blocks, kind):
    text, grid = wgmma_text(n, a, consumers, beside, kind), gpu.sms if blocks == "all" else 1
    count, threads = 2 if gpu.small else 12288 // (n // 64) // consumers, 128 * consumers + 128 * (beside == "copies")
    data = gpu.buffer("copied", COPIED * 256)
    seconds = gpu.seconds(lambda: gpu.run(text, grid, threads, count, data, shared_bytes=STOP_AT + 16), 2)
    clocks, phases = gpu.clocks(grid)
    flop = 2 * 64 * n * (32 if kind == "e4m3" else 16) * 2 * STEPS * count * consumers
    return {"value": round(flop / clocks, 1), "tflops": round(flop * grid / seconds / 1e12, 2),
            "copied_bytes_per_clock": round(phases * COPIED / clocks, 2)}


# Three warpgroups have 168 registers per thread: N 256 with A in registers would be serialised. Shared memory's port takes 128 bytes
# per clock: operands fill it at N 64 with A in shared memory, and at N 128 beside lds.128 x 4. Copies, or more loads, then slow products
# down if they use the same port: beside lds.128 x 16 to 4 / 7 of the rate, beside copies of 30 bytes per clock to 4 / 5.
WGMMA_CASES = [case for case in product(kind=["f16"], blocks=["all"], beside=["none"], consumers=[2, 1, 3],
                                        n=[256, 128, 64, 192], a=["registers", "shared"])
               if (case["consumers"], case["n"], case["a"]) != (3, 256, "registers")] \
    + product(kind=["f16"], blocks=["all"],
              beside=["copies", "lds.32 x 8", "lds.32 x 16", "lds.128 x 4", "lds.128 x 8", "lds.128 x 16"], consumers=[2], n=[256, 128], a=["registers", "shared"]) \
    + product(kind=["f16"], blocks=["all"], beside=["copies"], consumers=[2], n=[64], a=["shared"]) \
    + product(kind=["f16"], blocks=["one"], beside=["none"], consumers=[1, 2], n=[256, 64], a=["registers", "shared"]) \
    + product(kind=["e4m3"], blocks=["all"], beside=["none"], consumers=[2], n=[256, 128], a=["registers", "shared"])
WGMMA = Probe("wgmma_rate", 9, "FLOP/clock/SM", WGMMA_CASES, wgmma_text, measure_wgmma)


# mma.sync: 8 independent sums per warp of distinct products: e4m3 multiplies onto zero and adds, so equal products merge

FORMS = {"f16 to f32": ("m16n8k16", "f32.f16.f16.f32", "sm_80"), "bf16 to f32": ("m16n8k16", "f32.bf16.bf16.f32", "sm_80"),
         "f16 to f16": ("m16n8k16", "f16.f16.f16.f16", "sm_80"), "tf32 to f32": ("m16n8k8", "f32.tf32.tf32.f32", "sm_80"),
         "s8 to s32": ("m16n8k32", "s32.s8.s8.s32", "sm_80"),
         "e4m3 to f32": ("m16n8k32", "f32.e4m3.e4m3.f32", "sm_89")}


def mma(form, sums, step=0):
    shape, types, _ = FORMS[form]
    words = 2 if types.startswith("f16") else 4
    d = listed("d" if types.startswith("f32") else "r", words * sums + (0 if types.startswith("f32") else 16), words)
    return f"mma.sync.aligned.{shape}.row.col.{types} {d}, {listed('a', 4 * step, 4)}, {listed('a', 16 + 2 * sums, 2)}, {d};"


def mma_sink(form, sums=8):
    types = FORMS[form][1]
    return [f"d{i}" for i in range(4 * sums)] if types.startswith("f32") else \
        [f"r{16 + i}" for i in range((2 if types.startswith("f16") else 4) * sums)]


def mma_setup():
    return seeds("a", 0, 32) + zeros(32) + each(32, lambda i: f"mov.u32 r{i}, 0;", 16)


def mma_text(form, **_):
    return timed("\n".join(mma(form, i % 8, i // 8) for i in range(16)), mma_setup(), sink=mma_sink(form), target=FORMS[form][2],
                 directives=".maxntid 512, 1, 1\n.minnctapersm 1")


def measure_mma(gpu, form, warps):
    count, depth = 2 if gpu.small else 2000, int(FORMS[form][0].split("k")[1])
    text = mma_text(form)
    seconds = gpu.seconds(lambda: gpu.run(text, gpu.sms, 32 * warps, count), 2)
    flop = 2 * 16 * 8 * depth * 16 * count * warps
    return {"value": round(flop / gpu.clocks(gpu.sms)[0], 1), "tops": round(flop * gpu.sms / seconds / 1e12, 2)}


MMA = Probe("mma_rate", 2, "operations/clock/SM", product(form=list(FORMS), warps=[16, 4, 8, 12, 1, 2]), mma_text, measure_mma)


# Issue: 64 instructions in 8 independent chains. The operands differ by lane, so that nothing folds or goes uniform.

OPERATIONS = {
    "prmt": "prmt.b32 r{i}, r{i}, a{j}, a{k};", "lop3": "lop3.b32 r{i}, r{i}, a{j}, a{k}, 0x6a;",
    "imad": "mad.lo.u32 r{i}, r{i}, a{j}, a{k};", "add": "add.u32 r{i}, r{i}, r{next};",
    "iadd": "add.u32 r{i}, r{i}, a{j}; xor.b32 r{i}, r{i}, a{k};",
    "shf": "shf.l.wrap.b32 r{i}, r{i}, a{j}, a{k};", "ffma": "fma.rn.f32 d{i}, d{i}, d{j}, d{k};",
    "dfma": "fma.rn.f64 z{z}, z{z}, z8, z9;", "hfma2": "fma.rn.f16x2 r{i}, r{i}, a{j}, a{k};", "dp4a": "dp4a.s32.s32 r{i}, a{j}, a{k}, r{i};",
    "dp4a chained": "dp4a.s32.s32 r{i}, r{i}, a{k}, a{j};", "ex2": "ex2.approx.ftz.f32 d{i}, d{i};",
    "rcp": "rcp.approx.ftz.f32 d{i}, d{i}; add.f32 d{i}, d{i}, d{j};",  # ptxas drops the reciprocal of a reciprocal
    "shfl": "shfl.sync.bfly.b32 r{i}, r{i}, 1, 31, -1;", "cvt.f16x2": "cvt.rn.f16x2.f32 r{i}, d{i}, d{j}; mov.b32 d{i}, r{i};",
    "i2f": "cvt.rn.f32.s32 d{i}, r{i}; mov.b32 r{i}, d{i};"}
PAIRS = {"iadd": 2}
MIXES = {name: [name] for name in OPERATIONS} | {
    "prmt + ffma": ["prmt", "ffma"], "lop3 + imad": ["lop3", "imad"], "ffma + ex2 x 1/8": ["ffma"] * 7 + ["ex2"],
    "dp4a + ffma": ["dp4a", "ffma"], "dp4a + lop3": ["dp4a", "lop3"],
    "Q4_K": ["lop3", "dp4a", "ffma", "prmt", "imad", "lop3", "dp4a", "ffma"], "NF4": ["prmt", "ffma", "prmt", "hfma2"]}


def issue_text(mix, **_):
    names = MIXES[mix]
    body = "\n".join(OPERATIONS[names[i % len(names)]].format(i=24 + i % 8, j=8 + i % 4, k=12 + i % 3, next=24 + (i + 1) % 8,
                                                                  z=i % 8) for i in range(64))
    doubles = ".reg .f64 z<10>;\n" + each(10, lambda i: f"cvt.f64.f32 z{i}, d{8 + i};") if "dfma" in names else ""
    sum_ = each(8, lambda i: f"cvt.rn.f32.f64 d8, z{i}; add.f32 d24, d24, d8;") if "dfma" in names else ""
    return timed(body, seeds("a", 0, 16, "0x3fffffff") + seeds("r", 24, 8) + seeds("d", 8, 24) + doubles, sum_,
                 sink=[f"r{24 + i}" for i in range(8)] + [f"d{24 + i}" for i in range(8)])


def measure_issue(gpu, mix, warps):
    count = 2 if gpu.small else 500
    for _ in range(2):
        gpu.run(issue_text(mix), gpu.sms, 32 * warps, count)
    per = sum(PAIRS.get(name, 1) for name in MIXES[mix]) / len(MIXES[mix])
    return {"value": round(64 * per * count * warps / gpu.clocks(gpu.sms)[0], 3)}


ISSUE = Probe("issue", 2, "warp instructions/clock/SM", product(mix=list(MIXES), warps=[4, 8, 16, 1, 32]), issue_text, measure_issue)


# Shared loads are volatile, so that none is merged or dropped; eight are in flight.

def shared_loads(load):
    loads = {"lds.32": "ld.volatile.shared.b32 r{r}, [r10+{at}];",
             "lds.64": "ld.volatile.shared.v2.b32 {{r{r}, r{s}}}, [r10+{at}];",
             "lds.128": "ld.volatile.shared.v4.b32 {{r{r}, r{s}, r{t}, r{u}}}, [r10+{at}];",
             "ldmatrix.x4": "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{r{r}, r{s}, r{t}, r{u}}}, [r10+{at}];",
             "ldmatrix.x4.trans": "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{r{r}, r{s}, r{t}, r{u}}}, [r10+{at}];"}
    return "\n".join(loads[load].format(r=16 + 4 * i, s=17 + 4 * i, t=18 + 4 * i, u=19 + 4 * i, at=1024 * i) for i in range(8))


BYTES = {"lds.32": 4, "lds.64": 8, "lds.128": 16, "ldmatrix.x4": 16, "ldmatrix.x4.trans": 16}


def shared_text(load, pattern, **_):
    width = BYTES[load]
    place = {"lanes in order": f"mul.lo.u32 r10, lane, {width};", "a quad at one address": f"shr.u32 r10, lane, 2; mul.lo.u32 r10, r10, {width};",
             "quads apart by 128": "shr.u32 r10, lane, 2; shl.b32 r10, r10, 7;", "all at one address": "mov.u32 r10, 0;",
             "rows apart by 128": "and.b32 r10, lane, 7; shl.b32 r10, r10, 7;",
             "rows apart by 144": "mul.lo.u32 r10, lane, 144;"}[pattern]
    xors = each(8, lambda i: f"xor.b32 r11, r11, r{16 + 4 * i};")
    setup = fill_shared(16384, 256).replace("fence.proxy.async;\n", "") + place + " add.u32 r10, r10, base; mov.u32 r11, 0;"
    return timed(shared_loads(load) + "\n" + xors, setup, sink=["r11"])


def measure_shared(gpu, load, pattern, warps):
    count = 2 if gpu.small else 500
    for _ in range(2):
        gpu.run(shared_text(load, pattern), gpu.sms, 32 * warps, count, shared_bytes=16384)
    return {"value": round(gpu.clocks(gpu.sms)[0] / (8 * count * warps), 3)}


SHARED_CASES = [dict(load=load, pattern=pattern, warps=warps) for warps in (8, 16) for load, pattern in [
    ("lds.32", "lanes in order"), ("lds.64", "lanes in order"), ("lds.128", "lanes in order"), ("ldmatrix.x4", "lanes in order"),
    ("ldmatrix.x4.trans", "lanes in order"), ("ldmatrix.x4", "rows apart by 144"), ("ldmatrix.x4", "rows apart by 128"),
    ("lds.128", "a quad at one address"), ("lds.128", "quads apart by 128"), ("lds.128", "rows apart by 144"),
    ("lds.64", "a quad at one address"), ("lds.32", "a quad at one address"), ("lds.32", "rows apart by 128"),
    ("lds.128", "all at one address")]]
SHARED = Probe("shared_loads", 1.5, "clocks/instruction/SM", SHARED_CASES, shared_text, measure_shared)
