#!/usr/bin/env python3
"""Compares rope.c's tables of frequencies with the definitions of Hugging Face's transformers (modeling_rope_utils), computed with
50 digits. The relative error of frequencies is at most 2^-48 plus half a unit in the last place; of magnitudes 2^-50.

usage: check_rope.py PROGRAM
"""
import decimal
import subprocess
import sys
from decimal import Decimal as D

decimal.getcontext().prec = 50
PI = D("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")

# kind, rotary_dim, theta, factor, original length, low and high factors, or yarn's beta_slow and beta_fast; then, if not USUAL,
# mscale and mscale_all_dim, and whether yarn's ramp begins and ends at whole pairs
USUAL = (0, 0, "whole")
MODELS = [
    ("default", 128, 10000, 1, 4096, 0, 0),       # Llama 2
    ("default", 128, 500000, 1, 8192, 0, 0),      # Llama 3
    ("default", 32, 10000, 1, 2048, 0, 0),        # part of a head: Phi 2
    ("linear", 128, 10000, 4, 4096, 0, 0),
    ("llama3", 128, 500000, 8, 8192, 1, 4),       # Llama 3.1
    ("llama3", 64, 500000, 32, 8192, 1, 4),       # Llama 3.2 1B
    ("yarn", 128, 1000000, 4, 32768, 1, 32),      # Qwen 2.5
    ("yarn", 64, 10000, 40, 4096, 1, 32, D("0.707"), D("0.707")),  # DeepSeek V2
    ("yarn", 64, 10000, 40, 4096, 1, 32, 1, 1),                    # DeepSeek V3
    ("yarn", 64, 10000, 40, 4096, 1, 32, 1, D("0.5")),
    ("yarn", 64, 10000, 40, 4096, 1, 32, 1),                       # mscale alone is ignored
    ("yarn", 64, 150000, 32, 4096, 1, 32, 0, 0, "fractions"),      # gpt-oss
    ("yarn", 16, 10000, 16, 32, 1, 32),           # the ramp is clamped at its start
]


def llama3(inverse, factor, length, low, high):
    wavelength = 2 * PI / inverse
    if wavelength < length / D(high):
        return inverse
    if wavelength > length / D(low):
        return inverse / factor
    smooth = (length / wavelength - low) / (high - low)
    return (1 - smooth) * inverse / factor + smooth * inverse


def yarn(pair, inverse, dim, theta, factor, length, slow, fast, ends):
    def dimension(rotations):
        return dim * (D(length) / (rotations * 2 * PI)).ln() / (2 * D(theta).ln())
    first, last = dimension(fast), dimension(slow)
    if ends == "whole":
        first, last = first.to_integral_value(decimal.ROUND_FLOOR), last.to_integral_value(decimal.ROUND_CEILING)
    first, last = max(first, D(0)), min(last, D(dim - 1))
    if first == last:
        last += D("0.001")
    ramp = min(max((pair - first) / (last - first), D(0)), D(1))
    return inverse / factor * ramp + inverse * (1 - ramp)


def magnitude_of(kind, factor, mscale, all_dim):
    def scaled(by):
        return by * D(factor).ln() / 10 + 1 if kind == "yarn" and factor > 1 else D(1)
    return scaled(mscale) / scaled(all_dim) if mscale and all_dim else scaled(1)


def expected(kind, dim, theta, factor, length, low, high, ends):
    for pair in range(dim // 2):
        inverse = 1 / D(theta) ** (D(2 * pair) / dim)
        yield {"default": lambda: inverse, "linear": lambda: inverse / factor,
               "llama3": lambda: llama3(inverse, factor, length, low, high),
               "yarn": lambda: yarn(pair, inverse, dim, theta, factor, length, low, high, ends)}[kind]() / (2 * PI) * 2 ** 64


def main():
    wrong = 0
    for given in MODELS:
        model = given + USUAL[len(given) - 7:]
        lines = subprocess.run([sys.argv[1], "table", *map(str, model)], check=True, capture_output=True, text=True).stdout.split()
        wanted = list(expected(*model[:7], model[9]))
        worst = max(abs(int(line) - value) / (value * D(2) ** -48 + D("0.5")) for line, value in zip(lines[1:], wanted))
        magnitude = magnitude_of(model[0], model[3], model[7], model[8])
        is_right = len(lines) == 1 + len(wanted) and worst <= 1 and abs(D(lines[0]) - magnitude) <= D(2) ** -50
        wrong += not is_right
        print("right" if is_right else "WRONG", *model, f"{worst:.4f} of the bound")
    sys.exit(wrong != 0)


main()
