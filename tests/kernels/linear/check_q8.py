#!/usr/bin/env python3
"""Compares the emulated driver's counts of q8_quantize and linear with x s8 with the manifest's cost.

usage: check_q8.py PROFILE MANIFEST WORD...    (variants whose id contains a word)

The quantiser moves each byte of x, codes and scales once, by whole sectors. A product reads each byte of the weights once, except
sectors shared by two stages, and the codes and scales of x once per thread block.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import counters

M, N, K = 8, 128, 4096
# Copies of scales are 32 bytes apart in shared memory. Rows of q8_0 begin at any even byte, so two of their words share a bank.
MOST_WAVEFRONTS = {"q8_0": 1.75}, 1.4
WARP_ELEMENTS = 256  # elements of a stage per warp, with strategy mma
LONG_BLOCKS = "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs", "tq2_0"  # of 256 elements
SHARED = {"mma": (1.1, 1.3), "tiles": (1.25, 1.5)}  # bytes read and moved if stages share sectors; tiles have shorter stages
# From sm_80 on, every other one of eight weight rows is shifted by 16 bytes to reach other banks, so its sectors are read twice.
SPLIT_ROWS = 1.5
MOST_MOVED_OF_SCALES = 1.03  # a warp's f32 scales are half a sector


def sizes(params):
    eps = ",eps=1e-5" if params.get("norm") == "rms" else ""
    yield f"m={M},k={K}{eps}" + (f",n={N}" if "format" in params else "")


def stage_elements(params):
    if params["strategy"] == "mma":
        return WARP_ELEMENTS * int(params["k_warps"])
    return 256 if params["format"] in LONG_BLOCKS or params.get("group") == "256" else 128


def judge(count):
    is_product = "format" in count.params
    streamed = ["w"] if is_product else ["in", "codes", "scale"]
    compulsory = sum(count.arguments[name]["bytes"] for name in streamed)
    of_row = count.arguments["w"]["bytes"] // N if is_product else 0
    is_whole = not is_product or of_row * stage_elements(count.params) // K % 32 == 0
    most_read, shared = (1, counters.MOST_MOVED) if is_whole else SHARED[count.params["strategy"]]
    most_moved = (MOST_MOVED_OF_SCALES if not is_product else
                  shared * (1 if count.case[3] == "sm_75" else SPLIT_ROWS))
    x_bytes = count.blocks * (M * K + M * K // 8)
    of_format, of_others = MOST_WAVEFRONTS
    written = ["out"] if is_product else ["codes", "scale"]
    return [
        counters.at_least("all", count.total("bytes_used", streamed) / compulsory, 1),
        counters.at_most("once", count.total("bytes_used", streamed) / compulsory, most_read),
        counters.at_most("moved", count.moved_over(compulsory, streamed), most_moved),
        counters.equal("x", count.total("bytes_used", ["in", "in_scale"]) if is_product else x_bytes, x_bytes),
        counters.at_most("wavefronts", count.wavefronts_over_ideal(), of_format.get(count.params.get("format"), of_others)),
        counters.equal("cost's bytes", count.cost["bytes_written"], sum(count.arguments[name]["bytes"] for name in written)),
    ]


def main():
    profile, manifest, *words = sys.argv[1:]
    counters.check(profile, manifest, words, sizes, judge)


main()
