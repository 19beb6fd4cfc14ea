#!/usr/bin/env python3
"""Runs nf4::linear and its gradient, and compares both with PyTorch in float64.

usage: run.py nf4_ops.so
"""
import sys

import torch

NF4 = torch.tensor([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
                    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
                    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0], dtype=torch.float64)
N, K = 96, 320

torch.ops.load_library(sys.argv[1])
torch.manual_seed(1)
device = "cuda" if torch.cuda.is_available() else "cpu"

weight = torch.randn(N, K)
packed, scale = torch.ops.nf4.quantize(weight.to(device))
codes = torch.stack((packed & 15, packed >> 4), dim=2).reshape(N, K).cpu().long()
exact = NF4[codes] * scale.cpu().double().repeat_interleave(64, dim=1)
assert torch.equal(scale.cpu(), weight.reshape(N, K // 64, 64).abs().amax(dim=2))
# Each weight gets the nearest code. The widest gap between codes is 0.304.
assert ((exact - weight.double()).abs() <= 0.153 * scale.cpu().double().repeat_interleave(64, dim=1)).all()


def worst(result, left, right, unit):
    """Returns the largest error of result = left * right, relative to the rounding bound."""
    bound = left.double().abs() @ right.abs() * unit
    return ((result.double() - left.double() @ right).abs() / bound).max().item()


for dtype, unit in (torch.float16, 2**-10), (torch.bfloat16, 2**-7):
    for shape in (1, K), (2, 9, K), (70, K):
        x = torch.randn(shape).to(device, dtype).requires_grad_()
        y = torch.ops.nf4.linear(x, packed, scale)
        assert y.shape == (*shape[:-1], N) and y.dtype == dtype, (y.shape, y.dtype)
        dy = torch.randn(y.shape).to(device, dtype)
        y.backward(dy)
        for ratio in worst(y.detach().cpu(), x.detach().cpu(), exact.T, unit), worst(x.grad.cpu(), dy.cpu(), exact, unit):
            assert ratio <= 1, (dtype, shape, ratio)

x = torch.randn(3, K).to(device, torch.float16)
assert torch.ops.nf4.linear(x[:0], packed, scale).shape == (0, N)
assert torch.ops.nf4.linear(x.to("meta"), packed.to("meta"), scale.to("meta")).shape == (3, N)
if hasattr(torch.library, "opcheck"):  # torch.compile needs the schema, the Meta functions, autograd and tracing
    torch.library.opcheck(torch.ops.nf4.linear, (x.requires_grad_(), packed, scale))
    torch.library.opcheck(torch.ops.nf4.quantize, (weight.to(device),))
try:
    torch.ops.nf4.linear(torch.zeros(1, 256, dtype=torch.float16, device=device), packed, scale)
    sys.exit("x of another k was taken")
except RuntimeError as error:
    assert "expected a last dimension of 320, found [1, 256]" in str(error), error
print(f"nf4::linear and its gradient on {device}: in bounds")
