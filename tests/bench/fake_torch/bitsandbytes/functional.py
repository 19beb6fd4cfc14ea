import torch


def quantize_4bit(tensor, blocksize, quant_type):
    assert blocksize == 64 and quant_type == "nf4" and tensor.dtype == torch.float16
    return torch.Tensor((tensor.count // 2, 1), torch.uint8), tensor.shape


def dequantize_4bit(packed, state, out):
    assert packed.shape == (out.count // 2, 1) and state == out.shape


def gemv_4bit(a, packed, state):
    assert a.shape[0] == 1
    check_product(a, packed, state)


def check_product(a, packed, state):
    n, k = state
    assert a.shape[1] == k and packed.shape == (n * k // 2, 1)
