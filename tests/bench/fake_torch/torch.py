"""As much of PyTorch as tools/bench/baselines.py calls. It computes nothing; a batch takes a millisecond."""
import contextlib
import sys

__version__ = "fake"
uint8, int32, int64, float16, float32, bfloat16 = 1, 4, 8, 2, 4, 2


class Tensor:
    def __init__(self, count, dtype):
        self.count, self.dtype = count, dtype

    def copy_(self, other):
        assert self.count == other.count

    def view(self, *shape):
        assert self.count % shape[-1] == 0
        return self

    def t(self):
        return self

    def transpose(self, one, other):
        assert (one, other) == (1, 2)
        return self


def empty(count, dtype, device):
    assert device == ("cuda", 0)
    return Tensor(count, dtype)


zeros = randn = empty


def aminmax(tensor, dim):
    assert isinstance(tensor, Tensor) and dim == 1


def matmul(a, b, out):
    assert a.dtype == b.dtype == out.dtype


class linalg:
    @staticmethod
    def vector_norm(tensor, order, dim):
        assert isinstance(tensor, Tensor) and order == float("inf") and dim == 1


class nn:
    class functional:
        @staticmethod
        def scaled_dot_product_attention(q, k, v, is_causal, enable_gqa):
            assert q.dtype == k.dtype == v.dtype and k.count == v.count
            assert isinstance(is_causal, bool) and isinstance(enable_gqa, bool)

    class attention:
        class SDPBackend:
            FLASH_ATTENTION, CUDNN_ATTENTION, EFFICIENT_ATTENTION, MATH = range(4)

        @staticmethod
        def sdpa_kernel(backends):
            assert len(backends) == 1
            return contextlib.nullcontext()


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
