"""Runs a function on the device at every input and compares with exact results in f64, as a histogram of errors.

The kernel counts each input in one bin: a special result (BINS), correctly rounded, or the error in quarters of an ulp. For each
bin it keeps the input with the largest error. Each thread counts in its own column of shared memory, so the loop has hardly any
atomics. An input takes at most 215 machine instructions, 51 of them in f64: all 2^32 inputs take less than 0.1 s on an H100.
"""
import json
import math
import pathlib
import struct

from probes.functions import FORMATS, FUNCTIONS, INTEGERS, decode, f64
from probes.probe import Probe
from probes.text import plain

THREADS, BLOCKS = 256, 4  # per thread block; thread blocks per multiprocessor
QUARTERS = 32
BINS = (*(f"{quarter / 4:g} to {(quarter + 1) / 4:g}" for quarter in range(QUARTERS)), "more", "rounded", "zero", "infinity", "NaN",
        "flushed", "wrong kind", "beyond")
BIN = {name: number for number, name in enumerate(BINS)}  # "beyond" also counts each error that is more than allowed
SHARED_BYTES = len(BINS) * (4 * THREADS + 8)
SAMPLE = 1 << 14  # inputs with --small
EMULATED = pathlib.Path(__file__).with_name("emulated.json")


def round_text(about):
    """PTX: f64 `wanted`, the result that `exact` rounds to; `scale`, ulps per unit of the result; `allowed`, in ulps."""
    if about.gives in INTEGERS:
        least, most = map(f64, INTEGERS[about.gives])
        return f"""// the nearest number of the type, 0 for a NaN, and no -0
setp.nan.f64 p1, exact, exact; @p1 mov.f64 exact, {f64(0.0)}; max.f64 exact, exact, {least}; min.f64 exact, exact, {most};
cvt.{about.rounds}.f64.f64 wanted, exact; add.f64 wanted, wanted, {f64(0.0)};
mov.f64 scale, {f64(1.0)}; mov.f64 allowed, {f64(about.ulps)};
"""
    form = FORMATS[about.gives]
    return f"""{saturate_text(form) if about.saturates else ""}// r31, the exponent; wanted = round(exact * scale) / scale
mov.b64 {{r34, r30}}, exact; shr.u32 r31, r30, 20; and.b32 r31, r31, 0x7ff; sub.s32 r31, r31, 1023; mov.b32 r34, 0;
{scale_text(form, form.least)}mul.f64 t0, exact, scale;
{"cvt.rni.f64.f64 t1, t0;" if about.rounds == "rni" else
 f"abs.f64 t1, t0; add.f64 t1, t1, {f64(0.5)}; cvt.rmi.f64.f64 t1, t1; copysign.f64 t1, t0, t1;"}
add.s32 r33, r32, {1023 - form.fraction}; shl.b32 r33, r33, 20; mov.b64 t2, {{r34, r33}}; mul.f64 wanted, t1, t2;
// beyond the largest number: infinity
abs.f64 t3, wanted; setp.gt.f64 p1, t3, {f64(form.most)};
mov.f64 t3, {f64(math.inf)}; copysign.f64 t3, wanted, t3; @p1 mov.f64 wanted, t3;
{scale_text(form, about.unit_least) if about.unit_least != form.least else ""}// a share of the result, or ulps
abs.f64 t0, exact; max.f64 t0, t0, {f64(2.0 ** about.unit_least)};
mul.f64 t0, t0, scale; mul.f64 t0, t0, {f64(about.relative)}; max.f64 allowed, t0, {f64(about.ulps)};
"""


def scale_text(form, least):
    """PTX: `scale` = 2^(fraction - exponent), with an exponent (r32) of at least `least`."""
    return f"""max.s32 r32, r31, {least}; sub.s32 r33, {1023 + form.fraction}, r32; shl.b32 r33, r33, 20; mov.b64 scale, {{r34, r33}};
"""


def saturate_text(form):
    """PTX: clamps `exact` to the format's numbers. In a format without NaNs, a NaN becomes the largest number."""
    nan = "" if form.has_nan else f"setp.nan.f64 p1, exact, exact; @p1 mov.f64 exact, {f64(form.most)};"
    return f"""abs.f64 t3, exact; setp.gt.f64 p1, t3, {f64(form.most)};
mov.f64 t3, {f64(form.most)}; copysign.f64 t3, exact, t3; @p1 mov.f64 exact, t3; {nan}
"""


def bin_text(about):
    """PTX: r50, the bin; f64 `error`, in ulps; p4, whether the error is more than allowed. Later lines override earlier ones."""
    smallest = f64(2.0 ** FORMATS[about.gives].least if about.gives in FORMATS else 0.0)
    return f"""sub.f64 error, got, exact; abs.f64 error, error; mul.f64 error, error, scale; setp.gt.f64 p4, error, allowed;
// quarters
mul.f64 t0, error, {f64(4.0)}; min.f64 t0, t0, {f64(QUARTERS + 1.0)}; cvt.rpi.s32.f64 r50, t0; sub.s32 r50, r50, 1; max.s32 r50, r50, 0;
// a zero for a subnormal number
abs.f64 t0, wanted; setp.lt.f64 p1, t0, {smallest}; setp.eq.and.f64 p1, got, {f64(0.0)}, p1; setp.ne.and.f64 p1, wanted, {f64(0.0)}, p1;
@p1 mov.b32 r50, {BIN["flushed"]}; {"@p1 setp.ne.u32 p4, 0, 0;" if about.flushes else ""}
// correctly rounded; infinity; zero, with the right sign
setp.eq.f64 p1, got, wanted; @p1 mov.b32 r50, {BIN["rounded"]}; @p1 setp.ne.u32 p4, 0, 0;
setp.eq.and.f64 p2, t0, {f64(math.inf)}, p1; @p2 mov.b32 r50, {BIN["infinity"]};
mov.b64 {{r51, r52}}, got; mov.b64 {{r51, r53}}, wanted; xor.b32 r52, r52, r53;
setp.eq.and.f64 p2, t0, {f64(0.0)}, p1; @p2 mov.b32 r50, {BIN["zero"]}; setp.lt.and.s32 p2, r52, 0, p2; @p2 mov.b32 r50, {BIN["wrong kind"]};
// both are NaNs, or one is
setp.nan.f64 p1, got, got; setp.nan.f64 p3, wanted, wanted; and.pred p5, p1, p3; xor.pred p6, p1, p3;
@p5 mov.b32 r50, {BIN["NaN"]}; @p5 setp.ne.u32 p4, 0, 0; @p6 mov.b32 r50, {BIN["wrong kind"]};
setp.nan.f64 p1, error, error; @p1 mov.f64 error, {f64(0.0)};
setp.eq.u32 p1, r50, {BIN["wrong kind"]}; or.pred p4, p4, p1;
"""


def count_text(number):
    """PTX: counts the input in bin `number`, and keeps it if its error (the high half of q6) is the bin's largest."""
    return f"""mad.lo.u32 r54, {number}, {4 * THREADS}, r60; ld.shared.u32 r55, [r54]; add.u32 r55, r55, 1; st.shared.u32 [r54], r55;
mad.lo.u32 r54, {number}, 8, r61; ld.shared.u64 q7, [r54]; setp.gt.u64 p1, q6, q7; @p1 red.shared.max.u64 [r54], q6;
"""


def apply_text(about):
    """PTX: from the input in r10 to f64 `given`, `exact` and `got`."""
    flush = f"abs.f64 t0, given; setp.lt.f64 p1, t0, {f64(2.0 ** -126)}; @p1 mul.f64 given, given, {f64(0.0)};\n"
    return about.code + "\n" + decode("given", "r10", about.takes, about.shift) + (flush if about.flushes else "") \
        + (about.exact or "mov.f64 exact, given;\n") + decode("got", "r16", about.gives)


def sweep_text(function, is_raw=False):
    """PTX over the inputs start + step * i, i < `x`; `y` has start and step. Writes a count and an input per bin to `data`; with
    `is_raw`, for tests, each result's bits."""
    about = FUNCTIONS[function]
    count = f"""{apply_text(about)}{round_text(about)}{bin_text(about)}
cvt.rn.f32.f64 f4, error; mov.b32 r56, f4; mov.b64 q6, {{r10, r56}};
{count_text("r50")}@!p4 bra NEXT;
{count_text(str(BIN["beyond"]))}NEXT:"""
    store = f"{about.code}\nshl.b64 q6, q4, 2; add.u64 q6, q6, data_; st.global.u32 [q6], r16;"
    clear = "\n".join([f"st.shared.u32 [r60+{4 * THREADS * number}], 0;" for number in range(len(BINS))])
    total = f"""bar.sync 0;
setp.ge.u32 p1, tid, {len(BINS)}; @p1 bra END;
mov.u32 r50, 0; mov.u64 q6, 0; mad.lo.u32 r51, tid, {4 * THREADS}, base;
.pragma "nounroll";
TOTAL:
add.u32 r52, r50, tid; and.b32 r52, r52, {THREADS - 1}; mad.lo.u32 r52, r52, 4, r51;
ld.shared.u32 r53, [r52]; cvt.u64.u32 q7, r53; add.u64 q6, q6, q7;
add.u32 r50, r50, 1; setp.lt.u32 p1, r50, {THREADS}; @p1 bra TOTAL;
mul.wide.u32 q7, tid, 16; add.u64 q7, q7, data_; red.global.add.u64 [q7], q6;
mad.lo.u32 r52, tid, 8, r61; ld.shared.u64 q6, [r52]; red.global.max.u64 [q7+8], q6;
END:"""
    return plain(f"""
.reg .f64 given, exact, got, wanted, scale, allowed, error, t<6>;
mad.lo.u32 r60, tid, 4, base; add.u32 r61, base, {len(BINS) * 4 * THREADS}; mad.lo.u32 r62, tid, 8, r61;
{"" if is_raw else clear}
setp.lt.u32 p1, tid, {len(BINS)}; mov.u64 q6, 0; @p1 st.shared.u64 [r62], q6; bar.sync 0;
mad.lo.u32 r63, cta, {THREADS}, tid; cvt.u64.u32 q4, r63; mul.wide.u32 q5, ctas, {THREADS}; mov.b64 {{r64, r65}}, y_;
setp.ge.u64 p0, q4, x_; @p0 bra DONE;
LOOP:
cvt.u32.u64 r10, q4; mad.lo.u32 r10, r10, r65, r64;
{store if is_raw else count}
add.u64 q4, q4, q5; setp.lt.u64 p0, q4, x_; @p0 bra LOOP;
DONE:
{"" if is_raw else total}""", target=about.target, directives=f".maxntid {THREADS}, 1, 1")


def sample(function, count):
    """(count, start, step): all inputs, or `count` multiples of the golden ratio, which spread evenly over all bits."""
    inputs = 1 << FUNCTIONS[function].bits
    return (inputs, 0, 1) if count >= inputs else (count, 0, 0x9e3779b1)


def launch(gpu, function, inputs, data, is_raw=False):
    count, start, step = inputs
    blocks = min(gpu.sms * BLOCKS, -(-count // THREADS))
    gpu.run(sweep_text(function, is_raw), blocks, THREADS, 1, data, count, start | step << 32, SHARED_BYTES)


def histogram(gpu, function, inputs):
    """{bin: (count, the input with the largest error, that error)}, without empty bins."""
    data, bytes_ = gpu.buffer("bins", 16 * len(BINS)), 16 * len(BINS)
    gpu.upload(data, bytes(bytes_))
    launch(gpu, function, inputs, data)
    gpu.synchronize()
    found = struct.iter_unpack("<QIf", gpu.download(data, bytes_))
    return {name: (count, worst, error) for name, (count, worst, error) in zip(BINS, found) if count}


def emulated(function):
    """The committed histogram of a sample on the emulated driver."""
    table = json.loads(EMULATED.read_text(encoding="utf-8")) if EMULATED.exists() else {}
    return table.get(function)


def row(function, inputs, found):
    """A histogram as a row of results."""
    about = FUNCTIONS[function]
    finite = [found[name] for name in BINS[:BIN["zero"]] if name in found]
    worst = max(finite, key=lambda bin_: bin_[2], default=(0, 0, 0.0))
    ulps = lambda error: float(f"{error:.4g}") if math.isfinite(error) else None
    return {"value": ulps(worst[2]), "worst_input": f"{worst[1]:08x}", "inputs": inputs[0], "step": inputs[2],
            "right": "beyond" not in found, "allowed": {"ulps": about.ulps, "relative": about.relative},
            "bins": {name: [count, f"{at:08x}", ulps(error)] for name, (count, at, error) in found.items()}}


def runs_on(target, gpu):
    """Whether the device runs code for the target; an `a` target runs only on its own device."""
    number, device = int(target.strip("sm_a")), 10 * gpu.facts["major"] + gpu.facts["minor"]
    return device == number if target.endswith("a") else device >= number


def measure_sweep(gpu, function):
    target = FUNCTIONS[function].target
    if not runs_on(target, gpu):
        return {"value": None, "skipped": f"needs {target}"}
    inputs = sample(function, SAMPLE if gpu.small else 1 << 32)
    gpu.load(sweep_text(function))
    return {**row(function, inputs, histogram(gpu, function, inputs)), "emulated": emulated(function)}


SWEEPS = Probe("sweep", 8, "ulps", [dict(function=function) for function in FUNCTIONS], sweep_text, measure_sweep)
