"""The functions of the sweeps: the approximate ones that kernels call, and conversions.

Each has its PTX, an exact result in f64 as PTX, and the error that kiln's bounds assume. The PTX takes an input's bits in r10 and
leaves those of the result in r16. Registers: r10 to r19 belong to the instruction, r40 to r49 to decode().
"""
import math
import struct
from typing import NamedTuple


class Format(NamedTuple):
    """A binary floating-point format. `has_infinity`: the highest exponent means infinities and NaNs; otherwise only the highest
    code is a NaN, if `has_nan`."""
    exponent: int
    fraction: int
    has_infinity: bool = True
    has_nan: bool = True

    @property
    def least(self):
        """The exponent of the smallest normal number."""
        return 2 - (1 << self.exponent - 1)

    @property
    def most(self):
        """The largest finite number."""
        field = (1 << self.exponent) - 1 - self.has_infinity
        fraction = (1 << self.fraction) - 1 - (self.has_nan and not self.has_infinity)
        return (1 + fraction / (1 << self.fraction)) * 2.0 ** (field + self.least - 1)


FORMATS = {"f32": Format(8, 23), "tf32": Format(8, 10), "f16": Format(5, 10), "bf16": Format(8, 7), "e4m3": Format(4, 3, False),
           "e2m1": Format(2, 1, False, False)}
INTEGERS = {"s32": (-2.0 ** 31, 2.0 ** 31 - 1), "u32": (0.0, 2.0 ** 32 - 1)}


class Function(NamedTuple):
    code: str              # PTX: r10 to r16
    takes: str = "f32"     # the input's format or integer type, in the low bits of r10 (`shift` bits up)
    gives: str = "f32"
    exact: str = ""        # PTX: from f64 `given` to f64 `exact`; empty: the same number
    ulps: float = 0.0      # allowed error of a result that is not correctly rounded, in ulps
    relative: float = 0.0  # or this error relative to the result, if that is more
    least: int = None      # results below 2^least have its ulp; default: the smallest normal number
    flushes: bool = False  # subnormal inputs and results are zeros
    saturates: bool = False
    rounds: str = "rni"    # rni, rzi, or rna: ties away from zero
    shift: int = 0
    bits: int = 32         # bits of an input
    target: str = "sm_80"

    @property
    def unit_least(self):
        if self.least is not None:
            return self.least
        return FORMATS[self.gives].least if self.gives in FORMATS else None


def f64(value):
    """A PTX literal."""
    return "0d" + struct.pack(">d", value).hex().upper()


def horner(to, by, coefficients):
    """PTX: `to` = c0 + by * (c1 + by * (c2 ...))"""
    *rest, last = map(f64, coefficients)
    return f"mov.f64 {to}, {last};\n" + "\n".join(f"fma.rn.f64 {to}, {to}, {by}, {c};" for c in reversed(rest)) + "\n"


LN2 = 0.6931471805599453
# 2^x: the nearest integer and the series of e^(f ln 2), |f| <= 1/2; the first term left out is below 2^-57.
EXACT_EX2 = f"""min.f64 t0, given, {f64(400.0)}; max.f64 t0, t0, {f64(-400.0)};
cvt.rni.f64.f64 t1, t0; sub.f64 t2, t0, t1; mul.f64 t2, t2, {f64(LN2)};
{horner("exact", "t2", [1 / math.factorial(n) for n in range(14)])}
cvt.rni.s32.f64 r20, t1; add.s32 r20, r20, 1023; shl.b32 r20, r20, 20; mov.b32 r21, 0; mov.b64 t3, {{r21, r20}};
mul.f64 exact, exact, t3;
setp.nan.f64 p1, given, given; @p1 mov.f64 exact, given;
"""
# log2 x: exponent k and m from sqrt(1/2) to sqrt(2), then the series of atanh t, t = (m - 1) / (m + 1), |t| < 0.172.
EXACT_LG2 = f"""mov.b64 {{r20, r21}}, given;
sub.s32 r22, r21, {0x3fe6a09e}; shr.s32 r22, r22, 20; shl.b32 r23, r22, 20; sub.s32 r21, r21, r23; mov.b64 t0, {{r20, r21}};
sub.f64 t1, t0, {f64(1.0)}; add.f64 t2, t0, {f64(1.0)}; div.rn.f64 t1, t1, t2; mul.f64 t2, t1, t1;
{horner("t3", "t2", [1 / (2 * n + 1) for n in range(13)])}
mul.f64 t3, t3, t1; cvt.rn.f64.s32 t4, r22; fma.rn.f64 exact, t3, {f64(2 / LN2)}, t4;
setp.eq.f64 p1, given, {f64(0.0)}; @p1 mov.f64 exact, {f64(-math.inf)};
setp.eq.f64 p1, given, {f64(math.inf)}; @p1 mov.f64 exact, given;
setp.geu.f64 p1, given, {f64(0.0)}; @!p1 mov.f64 exact, {f64(math.nan)}; setp.nan.f64 p1, given, given; @p1 mov.f64 exact, given;
"""
EXACT_RCP = "rcp.rn.f64 exact, given;\n"
EXACT_SQRT = "sqrt.rn.f64 exact, given;\n"
EXACT_RSQRT = "sqrt.rn.f64 t0, given; rcp.rn.f64 exact, t0;\n"


def unary(instruction):
    return f"mov.b32 f0, r10; {instruction} f1, f0; mov.b32 r16, f1;"


def approximate(name, **about):
    """The instruction with and without .ftz."""
    return {f"{name}.approx{ftz}.f32": Function(unary(f"{name}.approx{ftz}.f32"), flushes=bool(ftz), **about)
            for ftz in ("", ".ftz")}


# The other number of a pair differs from the input, so that swapped halves are noticed.
PAIR = "mov.b32 f0, r10; xor.b32 r11, r10, 0x2a5a5; mov.b32 f2, r11; "


def packed(instruction, gives, width=32, **about):
    """A conversion of two f32 to a register of `width` bits: tests the low half, and the high half."""
    to, widen = ("r16", "") if width == 32 else ("h0", "cvt.u32.u16 r16, h0; ")
    return {f"{instruction} low": Function(f"{PAIR}{instruction} {to}, f2, f0; {widen}", gives=gives, **about),
            f"{instruction} high": Function(f"{PAIR}{instruction} {to}, f0, f2; {widen}shr.u32 r16, r16, {width // 2};",
                                            gives=gives, **about)}


def unpacked(instruction, takes, bits, code, **about):
    """A conversion of two narrow numbers to f16x2, with every pair."""
    return {f"{instruction} low": Function(code, takes, "f16", bits=2 * bits, **about),
            f"{instruction} high": Function(f"{code} shr.u32 r16, r16, 16;", takes, "f16", bits=2 * bits, shift=bits, **about)}


BYTE = "{{ .reg .b8 pair; {0} }}".format
# The errors are those that the PTX ISA states (9.7.3): ex2 2 ulps, rcp 1 ulp, sqrt 2^-23, rsqrt 2^-22.9, lg2 2^-22.
FUNCTIONS = (
    approximate("ex2", exact=EXACT_EX2, ulps=2.0) | approximate("rcp", exact=EXACT_RCP, ulps=1.0)
    | approximate("sqrt", exact=EXACT_SQRT, relative=2.0 ** -23) | approximate("rsqrt", exact=EXACT_RSQRT, relative=2.0 ** -22.9)
    | approximate("lg2", exact=EXACT_LG2, relative=2.0 ** -22, least=0)
    | {f"cvt.rn.{gives}.f32": Function(f"mov.b32 f0, r10; cvt.rn.{gives}.f32 h0, f0; cvt.u32.u16 r16, h0;", gives=gives)
       for gives in ("f16", "bf16")}
    | packed("cvt.rn.f16x2.f32", "f16") | packed("cvt.rn.bf16x2.f32", "bf16")
    | {"cvt.rna.tf32.f32": Function("mov.b32 f0, r10; cvt.rna.tf32.f32 r16, f0; shr.u32 r16, r16, 13;", gives="tf32", rounds="rna"),
       "cvt.rn.f32.s32": Function("cvt.rn.f32.s32 f1, r10; mov.b32 r16, f1;", "s32"),
       "cvt.rn.f32.u32": Function("cvt.rn.f32.u32 f1, r10; mov.b32 r16, f1;", "u32"),
       "cvt.rni.s32.f32": Function("mov.b32 f0, r10; cvt.rni.s32.f32 r16, f0;", gives="s32"),
       "cvt.rzi.u32.f32": Function("mov.b32 f0, r10; cvt.rzi.u32.f32 r16, f0;", gives="u32", rounds="rzi"),
       "cvt.f32.f16": Function("cvt.u16.u32 h0, r10; cvt.f32.f16 f1, h0; mov.b32 r16, f1;", "f16", bits=16)}
    | packed("cvt.rn.satfinite.e4m3x2.f32", "e4m3", 16, saturates=True, target="sm_89")
    | unpacked("cvt.rn.f16x2.e4m3x2", "e4m3", 8, "cvt.u16.u32 h0, r10; cvt.rn.f16x2.e4m3x2 r16, h0;", target="sm_89")
    | {f"cvt.rn.satfinite.e2m1x2.f32 {half}": Function(
        PAIR + BYTE(f"cvt.rn.satfinite.e2m1x2.f32 pair, {numbers}; cvt.u32.u8 r16, pair;") + end, gives="e2m1", saturates=True,
        target="sm_100a") for half, numbers, end in (("low", "f2, f0", ""), ("high", "f0, f2", " shr.u32 r16, r16, 4;"))}
    | unpacked("cvt.rn.f16x2.e2m1x2", "e2m1", 4, BYTE("cvt.u8.u32 pair, r10; cvt.rn.f16x2.e2m1x2 r16, pair;"), target="sm_100a"))


def decode(to, bits, kind, shift=0):
    """PTX: the exact value in f64 of a number in any format."""
    if kind == "f32":
        return f"mov.b32 f3, {bits}; cvt.f64.f32 {to}, f3;\n"
    if kind in INTEGERS:
        return f"cvt.rn.f64.{kind} {to}, {bits};\n"
    form = FORMATS[kind]
    width, field = form.exponent + form.fraction, (1 << form.exponent) - 1
    special = ""
    infinity = field << form.fraction
    if form.has_infinity:
        special = f"""setp.eq.u32 p1, r40, {infinity}; @p1 mov.f64 {to}, {f64(math.inf)};
setp.gt.u32 p1, r40, {infinity}; @p1 mov.f64 {to}, {f64(math.nan)};
"""
    elif form.has_nan:
        special = f"setp.eq.u32 p1, r40, {(1 << width) - 1}; @p1 mov.f64 {to}, {f64(math.nan)};\n"
    return f"""shr.u32 r47, {bits}, {shift}; and.b32 r40, r47, {(1 << width) - 1};
and.b32 r41, r40, {(1 << form.fraction) - 1}; shr.u32 r42, r40, {form.fraction};
setp.ne.u32 p1, r42, 0; @p1 or.b32 r41, r41, {1 << form.fraction}; max.u32 r42, r42, 1;
add.u32 r42, r42, {1023 + form.least - 1 - form.fraction}; shl.b32 r42, r42, 20; mov.b32 r43, 0; mov.b64 t5, {{r43, r42}};
cvt.rn.f64.u32 {to}, r41; mul.f64 {to}, {to}, t5;
{special}mov.b64 {{r43, r44}}, {to}; shl.b32 r45, r47, {31 - width}; and.b32 r45, r45, 0x80000000; or.b32 r44, r44, r45;
mov.b64 {to}, {{r43, r44}};
"""
