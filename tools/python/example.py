#!/usr/bin/env python3
"""Quantises a layer's weights to NF4, dequantises them, and multiplies by them.

usage: example.py MANIFEST [DRIVER]      a bundle with nf4_quantize, nf4_unpack and nf4_gemm; default: the GPU's driver
"""
import array
import math
import pathlib
import struct
import sys

sys.path.append(str(pathlib.Path(sys.argv[1]).parent))  # kiln.py is next to the manifest
import kiln  # noqa: E402

INPUTS, OUTPUTS = 256, 64


def main():
    with kiln.load(sys.argv[1], driver=sys.argv[2] if sys.argv[2:] else None) as k:
        # Weights, one output after another: K x N in the manifest's terms.
        weights = array.array("f", [math.sin(i) / (1 + i % 7) for i in range(INPUTS * OUTPUTS)])
        count = len(weights)

        # Four bits each, and a scale for each 64.
        packed, scale = k.alloc(count // 2), k.alloc(count // 64 * 4)
        with k.upload(weights) as given:
            k.nf4_quantize(in_=given, packed=packed, scale=scale, n=count)
        print(f"{count} weights: {4 * count} bytes became {len(packed) + len(scale)}")

        # The largest error is half the widest step of NF4, times the group's scale.
        with k.alloc(4 * count) as out:
            k.nf4_unpack(packed=packed, scale=scale, out=out, n=count)
            restored = k.download(out, "f")
        scales = k.download(scale, "f")
        worst = max(abs(r - w) / scales[i // 64] for i, (r, w) in enumerate(zip(restored, weights)))
        print(f"largest error: {worst:.4f} of the group's scale")

        # y = x W for one token in f16, with the variant that suits the device.
        x = [((i * 37) % 101 - 50) / 50 for i in range(INPUTS)]
        sizes = {"m": 1, "n": OUTPUTS, "k": INPUTS, "a": "f16"}
        with k.upload(struct.pack(f"{INPUTS}e", *x)) as token, k.alloc(2 * OUTPUTS) as y:
            product = {"in_": token, "packed": packed, "scale": scale, "out": y, **sizes}
            print("variant:", k.nf4_gemm.pick(**product))
            k.nf4_gemm(**product)
            found = struct.unpack(f"{OUTPUTS}e", k.download(y))
            wanted = [sum(x[i] * restored[j * INPUTS + i] for i in range(INPUTS)) for j in range(OUTPUTS)]
            worst = max(abs(f - w) for f, w in zip(found, wanted))
            print("y:", *(f"{value:.3f}" for value in found[:4]), "...", "right" if worst < 0.01 else f"wrong by {worst}")

            try:  # a mistake raises an exception that explains it
                k.nf4_gemm(**product | {"k": 100})
            except kiln.Error as error:
                print(f"{error.status.name}: {error}")


if __name__ == "__main__":
    main()
