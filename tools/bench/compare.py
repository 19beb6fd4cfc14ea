"""Compares a launch's results in memory with the emulated driver's.

    equal       every byte is equal
    nan         equal, except for the bits of NaNs; `nans` counts the pairs of bits
    ulps        the results of one approximate instruction, within the error that the PTX ISA states
    unjudged    the ISA states no bound: several approximate instructions, or special registers of the machine
    unordered   the same values in another order, or sums of floats in another order
    differs     anything else: `at`, `expected` and `got` are the first difference
"""
import collections
import re
import struct
from typing import NamedTuple


class Format(NamedTuple):
    bytes: int
    code: str      # struct's code for the bits
    fraction: int  # its bits
    exponent: int  # all ones: the bits of infinity

    def values(self, data):
        count = len(data) // self.bytes
        return struct.unpack_from(f"<{count}{self.code}", data)

    def is_nan(self, bits):
        """All ones do not count: they are more likely -1 or a mask."""
        return self.exponent < bits & ~self.sign and bits != 2 * self.sign - 1

    @property
    def sign(self):
        return 1 << 8 * self.bytes - 1

    def rank(self, bits):
        """Neighbouring numbers have neighbouring ranks; -0 and +0 have one rank."""
        return -(bits & ~self.sign) if bits & self.sign else bits

    def value(self, bits):
        if self.code != "H" or self.fraction == 10:
            return struct.unpack("<" + {"I": "f", "Q": "d", "H": "e"}[self.code], struct.pack("<" + self.code, bits))[0]
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]  # bf16

    def ulp(self, value):
        rank = struct.unpack("<q", struct.pack("<d", abs(value)))[0] >> 52
        lowest = {52: -1022, 23: -126, 10: -14, 7: -126}[self.fraction]
        return 2.0 ** (max(rank - 1023, lowest) - self.fraction)


FORMATS = {"f64": Format(8, "Q", 52, 0x7ff << 52), "f32": Format(4, "I", 23, 0xff << 23), "f16": Format(2, "H", 10, 0x1f << 10),
           "bf16": Format(2, "H", 7, 0xff << 7)}
WORD = Format(4, "I", 23, 0xff << 23)

APPROXIMATE = re.compile(rb"\b((?:ex2|lg2|sin|cos|tanh|rcp|sqrt|rsqrt|div)\.(?:approx|full)[.\w]*)")
FLOAT = re.compile(rb"\.(f64|f32|f16|bf16)(?:x2)?\b")
MACHINE = re.compile(rb"%(?:clock|globaltimer|smid|nsmid|warpid|nwarpid|gridid|envreg|pm\d)")
ATOMIC = re.compile(rb"\b(?:atom|red)\.")

# The largest errors that the PTX ISA states: relative, absolute, in ulps. For sin and cos it states one only near 0, and the
# inputs are not known here.
ERRORS = {
    "ex2.approx.f32": (0, 0, 2), "lg2.approx.f32": (2**-22, 2**-22, 0), "tanh.approx.f32": (2**-11, 0, 0),
    "rcp.approx.f32": (0, 0, 1), "sqrt.approx.f32": (2**-23, 0, 0), "rsqrt.approx.f32": (2**-22.9, 0, 0),
    "div.approx.f32": (0, 0, 2), "div.full.f32": (0, 0, 2), "tanh.approx.f16": (0, 2**-10.987, 0),
    "tanh.approx.bf16": (0, 2**-8, 0), "ex2.approx.f16": (2**-9.9, 0, 0), "ex2.approx.bf16": (2**-7, 0, 0),
}


def plain(instruction):
    """Strips .ftz, and reduces a packed type to its element's."""
    return instruction.replace(".ftz", "").removesuffix("x2")


class Text:
    """The properties of a PTX text that decide how its results are compared."""

    def __init__(self, text):
        found = sorted({plain(name.decode()) for name in APPROXIMATE.findall(text)})
        self.approximate = found
        formats = [name.rpartition(".")[2] for name in found] + [name.decode() for name in FLOAT.findall(text)]
        self.formats = [FORMATS[name] for name in dict.fromkeys(formats) if name in FORMATS]
        self.is_machine = MACHINE.search(text) is not None
        self.is_atomic = ATOMIC.search(text) is not None


def allowed(instruction, format_, wanted):
    """The ISA's error, plus one ulp for the emulated driver's own error; None: the ISA states none."""
    if instruction not in ERRORS:
        return None
    relative, absolute, ulps = ERRORS[instruction]
    ulp = format_.ulp(wanted)
    return max(relative * abs(wanted), absolute, ulps * ulp) + ulp


class Comparison:
    """The comparison of one launch: add() compares a block, row() returns the result."""

    ORDER = "equal", "nan", "ulps", "unordered", "unjudged", "differs"

    def __init__(self, text, order=False):
        self.text, self.order = text, order
        self.worst, self.first = "equal", None
        self.nans, self.ulps = collections.Counter(), collections.Counter()

    def note(self, kind):
        self.worst = max(self.worst, kind, key=self.ORDER.index)

    def add(self, number, wanted, got, undefined=()):
        for first, end in undefined:
            got = got[:first] + wanted[first:end] + got[end:]
        if got == wanted:
            return
        if self.order and self.is_reordered(wanted, got):
            self.note("unordered")
            return
        formats = [f for f in self.text.formats if len(wanted) % f.bytes == 0]
        for format_ in formats:
            found = self.explain(format_, wanted, got)
            if found:
                kind, nans, ulps = found
                self.note(kind)
                self.nans += nans
                self.ulps += ulps
                return
        self.note("unjudged" if self.text.is_machine else "differs")
        if not self.first:
            width = formats[0].bytes if formats else 4
            at = next(i for i in range(len(wanted)) if wanted[i] != got[i]) // width * width
            self.first = {"block": number, "at": at, "expected": wanted[at:at + width][::-1].hex(),
                          "got": got[at:at + width][::-1].hex(),
                          "bytes": sum(a != b for a, b in zip(wanted, got))}

    def explain(self, format_, wanted, got):
        """(kind, NaNs, ulps) if all differences are allowed for elements of this format; else None."""
        nans, ulps, kind = collections.Counter(), collections.Counter(), "nan"
        one = self.text.approximate[0] if len(self.text.approximate) == 1 else None
        for a, b in zip(format_.values(wanted), format_.values(got)):
            if a == b:
                continue
            if format_.is_nan(a) and format_.is_nan(b):
                nans[f"{a:0{2 * format_.bytes}x} {b:0{2 * format_.bytes}x}"] += 1
                continue
            if not self.text.approximate or format_.is_nan(a) or format_.is_nan(b):
                return None
            limit = one and allowed(one, format_, format_.value(a))
            if limit is None:
                kind = "unjudged"
            elif abs(format_.value(a) - format_.value(b)) > limit:
                return None
            else:
                kind = max(kind, "ulps", key=self.ORDER.index)
            ulps[bucket(abs(format_.rank(a) - format_.rank(b)))] += 1
        return kind, nans, ulps

    def is_reordered(self, wanted, got):
        """Whether the words are permuted, or the floats are sums that differ by the rounding of another order."""
        if sorted(WORD.values(wanted)) == sorted(WORD.values(got)):
            return True
        for format_ in self.text.formats:
            pairs = [(format_.value(a), format_.value(b)) for a, b in zip(format_.values(wanted), format_.values(got)) if a != b]
            if pairs and all(abs(a - b) <= 64 * format_.ulp(max(abs(a), abs(b))) for a, b in pairs):
                return True
        return False

    def row(self):
        row = {"result": self.worst}
        if self.first:
            row["first"] = self.first
        if self.nans:
            row["nans"] = dict(self.nans.most_common(4))
        if self.ulps:
            row["ulps"] = dict(self.ulps)
            row["instruction"] = " ".join(self.text.approximate)
        return row


def bucket(ulps):
    """The smallest power of two that is at least `ulps`."""
    return 1 << (ulps - 1).bit_length() if ulps else 0
