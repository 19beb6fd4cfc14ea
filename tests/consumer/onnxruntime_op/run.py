#!/usr/bin/env python3
"""Runs a model with one Nf4MatMul and compares it with NumPy in float64.

usage: run.py nf4_operators.so
"""
import sys

import numpy
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

NF4 = numpy.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
                   -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
                   0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0])
N, K = 96, 320


def quantize(w):
    """Returns NF4 codes, two per byte, and the scales of groups of 64."""
    groups = w.reshape(N, K // 64, 64)
    scale = numpy.abs(groups).max(axis=2)
    codes = numpy.abs(groups[..., None] / scale[..., None, None] - NF4).argmin(axis=3).reshape(N, K).astype(numpy.uint8)
    return codes[:, 0::2] | codes[:, 1::2] << 4, scale.astype(numpy.float32), codes


draw = numpy.random.default_rng(1)
packed, scale, codes = quantize(draw.standard_normal((N, K)))
weights = NF4[codes] * numpy.repeat(scale.astype(float), 64, axis=1)

graph = helper.make_graph(
    [helper.make_node("Nf4MatMul", ["x", "packed", "scale"], ["y"], domain="kiln")], "layer",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT16, ["batch", "tokens", "k"])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT16, ["batch", "tokens", N])],
    [numpy_helper.from_array(packed, "packed"), numpy_helper.from_array(scale, "scale")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("kiln", 1)], ir_version=8)
options = onnxruntime.SessionOptions()
options.log_severity_level = 4  # hides the warning about two providers, and the error that is expected below
options.register_custom_ops_library(sys.argv[1])
providers = [p for p in ("CUDAExecutionProvider", "CPUExecutionProvider") if p in onnxruntime.get_available_providers()]
session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)

worst = 0
for batch, tokens in (1, 1), (2, 9), (1, 70), (0, 3):
    x = draw.standard_normal((batch, tokens, K)).astype(numpy.float16)
    y = session.run(None, {"x": x})[0]
    assert y.shape == (batch, tokens, N) and y.dtype == numpy.float16, (y.shape, y.dtype)
    exact = x.astype(float) @ weights.T
    bound = numpy.abs(x.astype(float)) @ numpy.abs(weights).T * 2**-10
    worst = max(worst, (numpy.abs(y - exact) / bound).max(initial=0))
assert worst <= 1, worst
try:
    session.run(None, {"x": numpy.zeros((1, 1, 256), numpy.float16)})
    sys.exit("x of another k was taken")
except Exception as error:  # pybind11 has one class per status
    assert "expected x [..., k]" in str(error), error
print(f"Nf4MatMul on {session.get_providers()[0]}: in bounds")
