"""As much of PyTorch as tools/bench/baselines.py calls. It computes nothing but shapes; a batch takes a millisecond."""
import contextlib
import math
import sys

__version__ = "fake"
uint8, int32, int64, float16, float32, bfloat16 = "uint8", "int32", "int64", "float16", "float32", "bfloat16"


class Tensor:
    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype

    count = property(lambda self: math.prod(self.shape))

    def copy_(self, other):
        assert self.count == other.count

    def view(self, *shape):
        rest = math.prod(n for n in shape if n != -1)
        assert self.count % rest == 0
        whole = tuple(self.count // rest if n == -1 else n for n in shape)
        assert math.prod(whole) == self.count
        return Tensor(whole, self.dtype)

    def t(self):
        assert len(self.shape) == 2
        return Tensor(self.shape[::-1], self.dtype)

    def int(self):
        return Tensor(self.shape, int32)

    def to(self, dtype):
        return Tensor(self.shape, dtype)

    def __mul__(self, other):
        assert self.dtype == other.dtype and self.shape[:-1] == other.shape[:-1] and other.shape[-1] == 1
        return self

    def transpose(self, one, other):
        assert (one, other) == (1, 2)
        a, b, c, d = self.shape
        return Tensor((a, c, b, d), self.dtype)


def empty(shape, dtype, device):
    assert device == ("cuda", 0)
    return Tensor(shape if isinstance(shape, tuple) else (shape,), dtype)


zeros = randn = empty


def randint(least, most, shape, dtype, device):
    assert least == 0 and (most, dtype) in ((256, uint8), (16, int32))
    return empty(shape, dtype, device)


def aminmax(tensor, dim):
    assert len(tensor.shape) == 2 and dim == 1


def matmul(a, b, out=None):
    assert a.dtype == b.dtype and a.shape[1] == b.shape[0]
    assert out is None or (out.dtype, out.shape) == (a.dtype, (a.shape[0], b.shape[1]))


def bmm(a, b, out):
    assert a.dtype == b.dtype == out.dtype and len(a.shape) == 3
    assert a.shape[2] == b.shape[1] and out.shape == (*a.shape[:2], b.shape[2])
    assert a.shape[0] == b.shape[0]


class nn:
    class functional:
        @staticmethod
        def embedding(indices, table):
            assert indices.dtype == int32 and len(table.shape) == 2
            return Tensor((*indices.shape, table.shape[1]), table.dtype)

        @staticmethod
        def rms_norm(x, shape, weight, eps):
            assert x.shape[-1:] == shape == weight.shape and x.dtype == weight.dtype and eps > 0
            return x

        @staticmethod
        def scaled_dot_product_attention(q, k, v, is_causal, enable_gqa):
            assert q.dtype == k.dtype == v.dtype and k.shape == v.shape and q.shape[3] == k.shape[3]
            assert q.shape[0] == k.shape[0] and q.shape[1] % k.shape[1] == 0
            assert isinstance(is_causal, bool) and isinstance(enable_gqa, bool)
            assert not is_causal or q.shape[2] == k.shape[2]
            assert enable_gqa == (q.shape[1] != k.shape[1])
            assert not (enable_gqa and nn.attention.backend == nn.attention.SDPBackend.EFFICIENT_ATTENTION)

    class attention:
        class SDPBackend:
            FLASH_ATTENTION, CUDNN_ATTENTION, EFFICIENT_ATTENTION, MATH = range(4)

        backend = None

        @staticmethod
        def sdpa_kernel(backends):
            nn.attention.backend, = backends
            return contextlib.nullcontext()


class linalg:
    @staticmethod
    def vector_norm(tensor, order, dim):
        assert len(tensor.shape) == 2 and order == float("inf") and dim == 1


sys.modules["torch.nn"], sys.modules["torch.nn.attention"] = nn, nn.attention


def device(kind, ordinal):
    return (kind, ordinal)


class cuda:
    @staticmethod
    def is_available():
        return True

    @staticmethod
    def set_device(which):
        assert which == ("cuda", 0)

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
