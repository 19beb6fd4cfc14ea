"""The part of PyTorch that tools/bench/peers.py calls. It computes only shapes; a batch takes a millisecond.

FAKE_FAULTS="bmm=raise,cudnn=hang,flash=die" plants faults; "gpu=none" takes the GPU away."""
import contextlib
import math
import os
import sys
import time

__version__ = "fake"
uint8, float16, float32, bfloat16 = "uint8", "float16", "float32", "bfloat16"
inference_mode = contextlib.nullcontext
FAULTS = dict(pair.split("=") for pair in os.environ.get("FAKE_FAULTS", "").split(",") if pair)


def fault(name):
    kind = FAULTS.get(name)
    if kind == "raise":
        raise RuntimeError("planted\n  in two lines")
    if kind == "die":
        os._exit(9)
    if kind == "hang":
        time.sleep(600)


class Tensor:
    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), dtype

    count = property(lambda self: math.prod(self.shape))

    def copy_(self, other):
        assert (self.shape, self.dtype) == (other.shape, other.dtype)

    def t(self):
        assert len(self.shape) == 2
        return Tensor(self.shape[::-1], self.dtype)

    def transpose(self, one, other):
        assert (one, other) == (1, 2)
        a, b, c, d = self.shape
        return Tensor((a, c, b, d), self.dtype)

    def repeat_interleave(self, count, dim):
        shape = list(self.shape)
        shape[dim] *= count
        return Tensor(shape, self.dtype)


def randn(shape, dtype, device):
    assert device == ("cuda", 0) and dtype in (float16, float32, bfloat16)
    return Tensor(shape, dtype)


def randint(least, most, shape, dtype, device):
    assert (least, most, dtype, device) == (0, 256, uint8, ("cuda", 0))
    return Tensor(shape, dtype)


def matmul(a, b):
    fault("matmul")
    assert a.dtype == b.dtype and a.shape[1] == b.shape[0]


def bmm(a, b):
    fault("bmm")
    assert a.dtype == b.dtype and a.shape[2] == b.shape[1] and a.shape[0] == b.shape[0]


class nn:
    class functional:
        @staticmethod
        def rms_norm(x, shape, weight, eps):
            assert x.shape[-1:] == shape == weight.shape and x.dtype == weight.dtype and eps > 0
            return x

        @staticmethod
        def scaled_dot_product_attention(q, k, v, is_causal, enable_gqa):
            backend = nn.attention.backend
            fault(backend)
            assert q.dtype == k.dtype == v.dtype and k.shape == v.shape and q.shape[3] == k.shape[3]
            assert q.shape[0] == k.shape[0] and enable_gqa == (q.shape[1] != k.shape[1])
            assert not is_causal or q.shape[2] == k.shape[2]
            if enable_gqa and backend == "cudnn":
                raise RuntimeError("No available kernel. Aborting execution.")

    class attention:
        class SDPBackend:
            FLASH_ATTENTION, CUDNN_ATTENTION = "flash", "cudnn"

        backend = None

        @staticmethod
        def sdpa_kernel(backends):
            nn.attention.backend, = backends
            return contextlib.nullcontext()


class ops:
    class aten:
        @staticmethod
        def _convert_weight_to_int4pack(codes, inner_k_tiles):
            n, half = codes.shape
            assert codes.dtype == uint8 and n % 8 == 0 and 2 * half % (16 * inner_k_tiles) == 0
            return Tensor((n // 8, 2 * half // (16 * inner_k_tiles), 32, inner_k_tiles // 2), "int32")

        @staticmethod
        def _weight_int4pack_mm(a, packed, group, scales):
            fault("int4")
            n, k = packed.shape[0] * 8, packed.shape[1] * packed.shape[3] * 32
            assert a.dtype == scales.dtype == bfloat16 and a.shape[1] == k and scales.shape == (k // group, n, 2)


sys.modules["torch.nn"], sys.modules["torch.nn.attention"] = nn, nn.attention


def device(kind, ordinal):
    return (kind, ordinal)


class version:
    cuda = "13.0"


class backends:
    class cudnn:
        version = staticmethod(lambda: 91900)


class cuda:
    is_available = staticmethod(lambda: FAULTS.get("gpu") != "none")

    default_stream = staticmethod(lambda: "default stream")

    @staticmethod
    def get_device_name(which):
        fault("versions")
        return f"fake GPU {which}"

    @staticmethod
    def set_stream(which):
        assert which == "default stream"

    @staticmethod
    def set_device(which):
        assert which == ("cuda", 0)

    class CUDAGraph:
        def replay(self):
            pass

    @staticmethod
    def graph(graph):
        assert isinstance(graph, cuda.CUDAGraph)
        fault("capture")
        return contextlib.nullcontext()

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            pass

        def synchronize(self):
            pass

        def elapsed_time(self, end):
            assert isinstance(end, cuda.Event)
            return 1.0
