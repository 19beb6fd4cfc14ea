#!/usr/bin/env python3
"""Tests kiln.py on the emulated driver with two devices: errors of wrong calls, accepted arrays, and leaks.

usage: calls.py FOLDER DRIVER STATUS_H [TEST...]
"""
import array
import contextlib
import copy
import ctypes
import gc
import inspect
import json
import os
import pathlib
import pickle
import pydoc
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

FOLDER, DRIVER, STATUS_H = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
MANIFEST = FOLDER / "kiln_default.json"
sys.path.insert(0, str(FOLDER))
import kiln  # noqa: E402

cuda = ctypes.CDLL(DRIVER)
N = 256


def check(result):
    assert result == 0, result


def free_bytes():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    check(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
    return free.value


def current_context():
    context = ctypes.c_void_p()
    check(cuda.cuCtxGetCurrent(ctypes.byref(context)))
    return context.value


@contextlib.contextmanager
def own_context(device):
    context = ctypes.c_void_p()
    check(cuda.cuInit(0))
    check(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
    yield context.value
    check(cuda.cuCtxDestroy_v2(context))


def primary_is_active(device=0):
    flags, active = ctypes.c_uint(), ctypes.c_int()
    check(cuda.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active)))
    return bool(active.value)


class Integer:
    """An integer that is no int, as NumPy's are."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Like:
    """A device array like CuPy's or PyTorch's."""

    def __init__(self, buffer, shape, typestr, strides=None, stream=None, version=3, read_only=False, **more):
        self.__cuda_array_interface__ = {"data": (int(buffer), read_only), "shape": shape, "typestr": typestr,
                                         "strides": strides, "stream": stream, "version": version, **more}


class Opened(unittest.TestCase):
    def setUp(self):
        self.k = kiln.load(MANIFEST, driver=DRIVER)
        self.addCleanup(self.k.close)
        self.x = self.k.upload(array.array("f", [8 * (i % 17 - 8) / 8 for i in range(N)]))
        self.scale, self.packed, self.out = self.k.alloc(N // 64 * 4), self.k.alloc(N // 2), self.k.alloc(N * 4)

    def quantize(self, **changes):
        arguments = {"in_": self.x, "scale": self.scale, "packed": self.packed, "n": N} | changes
        self.k.nf4_quantize(**{name: value for name, value in arguments.items() if value is not ...})
        return self.k.download(self.scale, "f")

    def refused(self, kind, text, **changes):
        with self.assertRaises(kind) as caught:
            self.quantize(**changes)
        self.assertEqual(str(caught.exception), "nf4_quantize: " + text)

    def fails(self, status, text, function, **arguments):
        with self.assertRaises(kiln.Error) as caught:
            function(**arguments)
        self.assertEqual((caught.exception.status, str(caught.exception)), (status, text))
        return caught.exception


class Hook(unittest.TestCase):
    def test_launches(self):
        seen = []
        with kiln.load(MANIFEST, driver=DRIVER, launch_hook=seen.append) as k:
            x, scale, packed = k.zeros(4 * 1024), k.alloc(4 * 16), k.alloc(512)
            k.nf4_quantize(in_=x, scale=scale, packed=packed, n=1024)
            k.nf4_quantize.pick(in_=x, scale=scale, packed=packed, n=1024)
            with self.assertRaises(kiln.Error):
                k.nf4_quantize(in_=int(x) + 2, scale=scale, packed=packed, n=1024)
            picked = k.nf4_quantize.pick(in_=x, scale=scale, packed=packed, n=1024)
        self.assertEqual([launch.result for launch in seen], [None, 0])
        before = seen[0]
        self.assertEqual((before.id, before.sizes, before.shared_bytes, before.stream), (picked, {"n": 1024}, 0, 0))
        self.assertEqual((before.grid[1:], before.block[1:]), ((1, 1), (1, 1)))
        self.assertEqual(before._replace(result=0), seen[1])

    def test_refused(self):
        with self.assertRaisesRegex(TypeError, "^launch_hook: expected a function, found int$"):
            kiln.load(MANIFEST, driver=DRIVER, launch_hook=3)
        self.assertFalse(primary_is_active())

    def test_exception(self):
        """The error is reported, and the call goes on."""
        def hook(launch):
            raise ValueError(launch.id)
        with mock.patch("sys.unraisablehook") as told, kiln.load(MANIFEST, driver=DRIVER, launch_hook=hook) as k:
            k.nf4_quantize(in_=k.zeros(4 * 1024), scale=k.alloc(4 * 16), packed=k.alloc(512), n=1024)
            self.assertEqual(told.call_count, 2)


class Arguments(Opened):
    def test_names(self):
        self.refused(TypeError, "unknown argument 'scales'; did you mean 'scale'?", scales=self.scale)
        self.refused(TypeError, "unknown argument 'xyzzy'; there are in, scale, packed, n, group_size, type, group, nibbles",
                     xyzzy=1)
        self.quantize(in_=..., **{"in": self.x})

    def test_missing(self):
        self.refused(TypeError, "missing argument 'n': u64: elements", n=...)
        self.refused(ValueError, "expected u64 for n, found None", n=None)
        self.refused(TypeError, "missing argument 'packed': out, u8[ceil_div(n, 2)], aligned to 16 bytes: two codes per byte; for "
                     "an odd n the last byte's second code is 0", packed=...)
        self.quantize(n=0, in_=..., scale=..., packed=...)
        with self.assertRaisesRegex(TypeError, "^attention_single_head: missing argument 'seq_len': u32: rows of each matrix"):
            self.k.attention_single_head(q=self.x, k=self.x, v=self.x, out=self.out, type="bf16")
        with self.assertRaisesRegex(TypeError, r"^attention: missing argument 'q': in, type\[batch, q_length, q_heads, 128\] or "
                                    r"\[sequences_q_rows, q_heads, 128\], aligned to 16 bytes: Q$"):
            self.k.attention(batch=1, q_heads=1, q_length=1)

    def test_values(self):
        self.refused(ValueError, "expected a value of type, found 'f17'; did you mean 'f16'?", type="f17")
        self.refused(ValueError, "expected a value of group, found '96'; there are 32, 64, 128, 256, any", group=96)
        self.refused(ValueError, "expected u64 for n, found -1", n=-1)
        self.refused(ValueError, "expected u64 for n, found 256.0", n=256.0)
        self.refused(ValueError, f"expected u64 for n, found {1 << 64}", n=1 << 64)
        with self.assertRaisesRegex(ValueError, "attention: expected True or False for causal, found 2"):
            self.k.attention(causal=2)
        for value in -1, 1 << 32, 1.5:
            with self.assertRaisesRegex(ValueError, f"attention: expected u32 for head_dim, found {value}$"):
                self.k.attention.pick(head_dim=value)
        with self.assertRaisesRegex(ValueError, "attention: expected u32 for head_dim, found '128'"):
            self.k.attention(head_dim="128")
        with self.assertRaisesRegex(ValueError, "rope: expected f32 for magnitude, found 'one'"):
            self.k.rope(magnitude="one")

    def test_integers(self):
        """Sizes are checked, and strides computed, with integers of any type."""
        self.refused(ValueError, f"in: expected f32[n], {8 * N} bytes, found {4 * N}", n=Integer(2 * N))
        self.assertEqual(list(self.quantize(n=Integer(N))), list(self.quantize()))
        sizes = {"q_heads": 8, "kv_heads": 4, "batch": 2, "q_length": 3, "k_length": 5}
        wanted = self.k.attention.set_contiguous(**sizes, type="bf16", causal=True)
        found = self.k.attention.set_contiguous(**{name: Integer(n) for name, n in sizes.items()}, type="bf16", causal=True)
        self.assertEqual(wanted, {**found, **sizes})
        with self.assertRaisesRegex(ValueError, "attention: expected u32 for batch, found 2.0"):
            self.k.attention.set_contiguous(**{**sizes, "batch": 2.0}, type="bf16", causal=True)

    def test_rules(self):
        self.fails(kiln.Status.NO_VARIANT, "no variant for these arguments: nf4_quantize: group differs; the bundle has type f32 "
                   "f16 bf16, group 64, nibbles low high", self.quantize, group=256, scale=self.scale.ptr)
        error = self.fails(kiln.Status.BAD_ARGUMENT, "bad argument: nf4_quantize: n must be at most 2^40", self.quantize,
                           n=1 << 41, in_=int(self.x), scale=int(self.scale), packed=int(self.packed))
        self.assertEqual((error.subject, error.detail), ("nf4_quantize", "n must be at most 2^40"))
        self.fails(kiln.Status.MISALIGNED, "misaligned pointer: nf4_quantize: in must be aligned to 16 bytes", self.quantize,
                   in_=int(self.x) + 4)
        self.fails(kiln.Status.NULL_POINTER, "a required pointer is null: nf4_quantize: packed is null", self.quantize, packed=None)
        of_variant = self.k["nf4_unpack/type=f16,group=64,nibbles=low"]
        with self.assertRaises(kiln.Error) as caught:
            of_variant(packed=self.packed, scale=self.scale, out=self.out, n=N, type="f32")
        self.assertEqual(caught.exception.status, kiln.Status.NO_VARIANT)

    def test_no_function(self):
        with self.assertRaisesRegex(AttributeError, "no function 'nf4_quantise' in kiln_default; did you mean 'nf4_quantize'"):
            self.k.nf4_quantise
        with self.assertRaisesRegex(KeyError, "no function 'rop'.*did you mean 'rope'"):
            self.k["rop"]
        with self.assertRaisesRegex(KeyError, "expected a family or a variant's id, found 'nf4'; did you mean"):
            self.k.preload("nf4")

    def test_queries(self):
        arguments = {"in_": self.x, "scale": self.scale, "packed": self.packed}
        self.assertEqual(self.k.nf4_quantize.pick(n=N, **arguments), "nf4_quantize/type=f32,group=64,nibbles=low")
        self.assertIsNone(self.k.nf4_quantize.pick(n=0, **arguments))
        product = {"in_": 256, "packed": 256, "scale": 256, "out": 256, "n": 64, "a": "f16"}
        found = {c.id: c for c in self.k.nf4_gemm.candidates(m=1, k=128, **product)}
        self.assertEqual(set(found), {i for i in self.k.nf4_gemm.variants if "/a=f16," in i})
        self.assertGreater(max(c.cycles for c in found.values()), 0)
        self.assertIn("split_k 0", " ".join(c.why_not for c in self.k.nf4_gemm.candidates(m=1, k=0, **product) if c.why_not))
        size, counters = self.k.nf4_gemm.workspace_max(m=64, n=256, k=4096, a="f16")
        self.assertEqual((size > 0, size // 4 // 32 * 4 >= counters > 0), (True, True))
        self.assertLessEqual(self.k.nf4_gemm.workspace(m=64, n=256, k=4096, a="f16"), (size, counters))
        self.k.preload("rope", "nf4_unpack/type=f32,group=64,nibbles=low")
        self.k.preload()

    def test_streams(self):
        handle = ctypes.c_void_p()
        with self.k._core.current():
            check(cuda.cuStreamCreate(ctypes.byref(handle), 1))
        wanted = list(self.quantize())
        for stream in (handle.value, mock.Mock(spec=["ptr"], ptr=handle.value), mock.Mock(spec=["cuda_stream"], cuda_stream=0), 2):
            self.assertEqual(list(self.quantize(stream=stream)), wanted)
        self.assertEqual(kiln._stream(type("Stream", (), {"__cuda_stream__": lambda self: (0, 5)})()), 5)
        with self.assertRaisesRegex(TypeError, "stream: expected an int or an object with __cuda_stream__"):
            self.quantize(stream="fast")

    def test_streams_refused(self):
        """Refuses a stream that is not a handle, and 2^64 - 1, which is KILN_NO_LAUNCH: the call would succeed without a launch."""
        for handle in (-1, (1 << 64) - 1, 1 << 64, -(1 << 64), True):
            for stream in (handle, mock.Mock(spec=["ptr"], ptr=handle), mock.Mock(spec=["cuda_stream"], cuda_stream=handle),
                           type("Stream", (), {"__cuda_stream__": lambda self: (0, handle)})()):
                with self.assertRaises(ValueError) as caught:
                    self.quantize(stream=stream)
                self.assertEqual(str(caught.exception), f"stream: expected a stream's handle, found {handle}")

    def test_graph(self):
        """A capture may record preloaded kernels, with arrays of the capturing stream."""
        self.k.preload("nf4_quantize")
        stream, graph, recorded = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        zeros = self.k.zeros(4 * N // 64)
        with self.k._core.current():
            check(cuda.cuStreamCreate(ctypes.byref(stream), 1))
            check(cuda.cuStreamBeginCapture_v2(stream, 0))
            given = Like(self.x, (N,), "<f4", stream=stream.value)
            self.k.nf4_quantize(in_=given, scale=zeros, packed=self.packed, n=N, stream=stream.value)
            check(cuda.cuStreamEndCapture(stream, ctypes.byref(graph)))
            self.assertEqual(list(self.k.download(zeros, "f")), [0] * (N // 64))
            check(cuda.cuGraphInstantiateWithFlags(ctypes.byref(recorded), graph, ctypes.c_uint64(0)))
            check(cuda.cuGraphLaunch(recorded, stream))
        self.assertEqual(list(self.k.download(zeros, "f")), list(self.quantize()))

    def test_contiguous(self):
        sizes = {"batch": 2, "q_heads": 8, "kv_heads": 4, "q_length": 3, "k_length": 5, "head_dim": 64}
        call = self.k.attention.set_contiguous(**sizes, type="bf16", causal=True)
        self.assertEqual({name: value for name, value in call.items() if name not in sizes},
                         {"type": "bf16", "causal": True, "q_row_stride": 512, "q_head_stride": 64, "q_batch_stride": 1536,
                          "k_row_stride": 256, "k_head_stride": 64, "k_batch_stride": 1280, "v_row_stride": 256,
                          "v_head_stride": 64, "v_batch_stride": 1280, "out_row_stride": 512, "out_head_stride": 64,
                          "out_batch_stride": 1536})
        paged = self.k.attention.set_contiguous(q_heads=8, kv_heads=4, pages_size=16, layout="paged")
        self.assertEqual((paged["k_batch_stride"], paged["q_head_stride"], "q_batch_stride" in paged), (16 * 4 * 128, 128, False))
        with self.assertRaisesRegex(TypeError, "unknown argument 'q_head'; did you mean 'q_heads'?"):
            self.k.attention.set_contiguous(q_head=8)

    def test_texts(self):
        for name in [*self.k.families, "attention_single_head"]:
            for parameter in inspect.signature(self.k[name]).parameters:
                self.assertRegex(self.k[name].__doc__, rf"\n    {parameter}: |\nNot read by [^.]*\b{parameter}\b", name)
        self.assertIn("group: 128, 32 (not in this bundle: 64, 256, any);", self.k.int4_quantize.__doc__)
        self.assertIn("\nNot read by this bundle, leave them out: group_size.\n", self.k.int4_quantize.__doc__)
        self.assertNotIn("softcap must", self.k.attention.__doc__)
        text = pydoc.plain(pydoc.render_doc(self.k.nf4_unpack))
        self.assertRegex(text, r"nf4_unpack\(\s*\*,\s*packed,\s*scale=None,")
        self.assertIn("Turn NF4 codes and scales back into a tensor.", text)
        self.assertIn("n must be at most 2^40.", text)
        self.assertIn("int4_quantize", repr(self.k))
        self.assertTrue(all(name.isidentifier() for name in dir(self.k)))
        self.assertIn("attention_single_head", dir(self.k))

    def test_statuses(self):
        rows = re.findall(r"^    KILN_(?:ERROR_)?(\w+) =\s+(\d+)", STATUS_H.read_text(), re.M)
        self.assertEqual({name: int(number) for name, number in rows}, {s.name: s.value for s in kiln.Status})


class Arrays(Opened):
    def test_interface(self):
        wanted = list(self.quantize())
        for given in (Like(self.x, (N,), "<f4"), Like(self.x, (16, 16), "<f4", strides=(64, 4)), Like(self.x, (N,), "<V4"),
                      Like(self.x, (1, N), "<f4", strides=(4, 4)), Like(self.x, (N,), "<f4", version=2, stream=0),
                      Like(self.x, (N,), "<f4", read_only=True), self.x, int(self.x)):
            self.assertEqual(list(self.quantize(in_=given)), wanted)
        self.k.nf4_quantize(in_=Like(0, (0,), "<f4"), scale=self.scale, packed=self.packed, n=0)

    def test_interface_refused(self):
        for kind, text, given in (
                (ValueError, "expected a C-contiguous array, found shape (16, 16) with strides (4, 64); make a contiguous copy of it",
                 Like(self.x, (16, 16), "<f4", strides=(4, 64))),
                (ValueError, "expected f32[n], 1024 bytes, found 1020", Like(self.x, (N - 1,), "<f4")),
                (TypeError, "expected elements of f32, found typestr '<f8'", Like(self.x, (N,), "<f8")),
                (TypeError, "expected elements of f32, found typestr '<i4'", Like(self.x, (N,), "<i4")),
                (TypeError, "expected a little-endian type as '<f4' for 'typestr' of its __cuda_array_interface__, found '>f4'",
                 Like(self.x, (N,), ">f4")),
                (ValueError, "expected an array without a mask", Like(self.x, (N,), "<f4", mask=self.x)),
                (ValueError, "its __cuda_array_interface__ has stream 0, which may be either default stream: 1 or 2",
                 Like(self.x, (N,), "<f4", stream=0)),
                (TypeError, "expected a Buffer, an object with __cuda_array_interface__ or a device address, found bytes; upload() "
                 "makes a Buffer of memory of the host", b"host"),
                (ValueError, "expected a device address, found -1", -1)):
            self.refused(kind, "in: " + text, in_=given)
        for name, expected, values in (
                ("version", "2 or 3", (1, 4, None)), ("shape", "a tuple of extents", (None, 5, (4096.0,), (-1,))),
                ("typestr", "a little-endian type as '<f4'", (None, "zz", "<f", ">f4", ">u2", 5)),
                ("data", "an address and whether it is read-only", (None, (5,), (-4, False), (1 << 64, False), ("x", False))),
                ("stream", "a stream's handle", ("x", -1, True, (1 << 64) - 1))):
            for value in values:
                given = Like(self.x, (N,), "<f4")
                given.__cuda_array_interface__[name] = value
                self.refused(TypeError, f"in: expected {expected} for '{name}' of its __cuda_array_interface__, found {value!r}",
                             in_=given)
        for given in 5, {}:
            self.refused(TypeError, "in: expected 2 or 3 for 'version' of its __cuda_array_interface__, found none",
                         in_=type("Bare", (), {"__cuda_array_interface__": given})())
        self.refused(ValueError, "in: expected a device address, found True", in_=True)
        for wrong in (lambda: self.k[5], lambda: self.k.preload(5)):
            self.assertRaisesRegex(KeyError, "found 5|no function 5", wrong)
        self.assertRaisesRegex(ValueError, "expected a typecode of array.array", self.k.download, self.x, "zz")
        self.refused(ValueError, "scale: expected an array that can be written, found a read-only one",
                     scale=Like(self.scale, (4,), "<f4", read_only=True))

    def test_types(self):
        for typestr, types in {"<f2": "f16 b16", "<u2": "u16 i16 f16 bf16 b16", "<V2": "u16 i16 f16 bf16 b16", "|u1": "u8 i8 b8",
                               "|i1": "u8 i8 b8", "|b1": "u8 i8 b8", "<i4": "u32 i32 b32", "<f4": "f32 b32", "<f8": "f64 b64",
                               ">f4": "", "<c8": "b64"}.items():
            taken = [t for t in "u8 i8 b8 u16 i16 f16 bf16 b16 u32 i32 f32 b32 f64 b64".split() if kiln._typestr_fits(typestr, t)]
            self.assertEqual(types.split(), taken, typestr)

    def test_streams(self):
        """A launch waits for the array's stream once, unless both streams are the same."""
        waited = []
        with mock.patch.object(self.k._core, "wait_for", waited.append):
            for theirs, ours, wanted in ((1, None, []), (1, 0, []), (2, None, [2]), (2, 2, []), (None, 7, []), (64, None, [64])):
                given = Like(self.x, (N,), "<f4", stream=theirs)
                with contextlib.suppress(kiln.Error):  # 7 and 64 are no streams
                    self.quantize(in_=given, stream=ours)
                self.assertEqual(waited, wanted, (theirs, ours))
                waited.clear()
        self.quantize(in_=Like(self.x, (N,), "<f4", stream=2))
        with self.assertRaisesRegex(kiln.Error, "cuStreamSynchronize: CUDA_ERROR_"):
            self.quantize(in_=Like(self.x, (N,), "<f4", stream=64))

    def test_exported(self):
        interface = self.x.__cuda_array_interface__
        self.assertEqual(interface, {"shape": (N,), "typestr": "<f4", "data": (int(self.x), False), "version": 3, "strides": None,
                                     "stream": None})
        self.quantize(stream=2)
        self.assertEqual(self.packed.__cuda_array_interface__["stream"], 2)
        self.quantize()
        self.assertEqual(self.packed.__cuda_array_interface__["stream"], 1)
        self.refused(TypeError, "in: expected elements of f32, found typestr '<f8'", in_=self.k.alloc(N * 8, "<f8"))

    def test_another_device(self):
        with kiln.load(MANIFEST, driver=DRIVER, device=1) as other:
            there = other.upload(array.array("f", [1.0] * N))
            for memory in (there, Like(there, (N,), "<f4")):
                self.refused(ValueError, "in: expected memory of device 0, found memory of device 1", in_=memory)
                with self.assertRaisesRegex(ValueError, "download: expected memory of device 0, found memory of device 1"):
                    self.k.download(memory)
                with self.assertRaisesRegex(ValueError, "upload: into: expected memory of device 0, found memory of device 1"):
                    self.k.upload(b"x", into=memory)
            with self.assertRaisesRegex(kiln.Error, "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE"):
                kiln.load(MANIFEST, driver=DRIVER, device=2)
        for device in ("x", -1, 1.5, True, 1 << 31, 1 << 32):
            with self.assertRaises(ValueError) as caught:
                kiln.load(MANIFEST, driver=DRIVER, device=device)
            self.assertEqual(str(caught.exception), f"device: expected the ordinal of a device, found {device!r}")

    def test_gradient(self):
        class Tensor:
            @property
            def __cuda_array_interface__(self):
                raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")
        self.refused(TypeError, "in: Can't get __cuda_array_interface__ on Variable that requires grad.", in_=Tensor())


class Copies(Opened):
    def test_host_memory(self):
        data = bytes(range(256))
        for source in (data, bytearray(data), memoryview(data), array.array("I", data), ctypes.create_string_buffer(data, 256)):
            with self.k.upload(source) as buffer:
                self.assertEqual(self.k.download(buffer), data)
                self.assertEqual(self.k.download(buffer, "I"), array.array("I", data))
                into = bytearray(100)
                self.assertIs(self.k.download(buffer, into), into)
                self.assertEqual(into, data[:100])
        with self.k.upload(memoryview(data)[100:]) as part:
            self.assertEqual(self.k.download(part), data[100:])
        with self.k.upload(b"") as empty, self.k.zeros(0) as none:
            self.assertEqual((self.k.download(empty), self.k.download(none), len(empty)), (b"", b"", 0))
        with self.k.zeros(8) as eight:
            self.assertIs(self.k.upload(b"\1\2\3", into=eight), eight)
            self.assertEqual(self.k.download(eight), b"\1\2\3\0\0\0\0\0")
            self.k.upload(b"\7", into=int(eight) + 7)
            self.assertEqual(self.k.download(Like(eight, (4,), "<u2"))[6:], b"\0\7")

    def test_refused(self):
        with self.assertRaisesRegex(ValueError, "expected contiguous memory"):
            self.k.upload(memoryview(bytes(8))[::2])
        with self.assertRaisesRegex(TypeError, "upload: expected bytes, an array .* found list"):
            self.k.upload([1.0])
        with self.assertRaisesRegex(ValueError, "upload: into: expected at least 9 bytes of device memory, found 8"):
            self.k.upload(bytes(9), into=self.k.alloc(8))
        with self.assertRaisesRegex(ValueError, "download: expected at least 1025 bytes of device memory, found 1024"):
            self.k.download(self.x, bytearray(1025))
        with self.assertRaisesRegex(TypeError, "download: into: expected memory that can be written, found bytes"):
            self.k.download(self.x, bytes(4))
        with self.assertRaisesRegex(TypeError, "download: an address has no size"):
            self.k.download(int(self.x))
        for nbytes in -1, 1 << 64:
            with self.assertRaisesRegex(ValueError, f"expected a count of bytes, found {nbytes}"):
                self.k.alloc(nbytes)
        for typestr in (">f4", "f4", "", "|V0", 5):
            with self.assertRaisesRegex(ValueError, "alloc: expected a little-endian type as '<f4', found "):
                self.k.alloc(8, typestr)
        with self.assertRaisesRegex(ValueError, "download: expected a multiple of 4 bytes for 'f', found 6"):
            self.k.download(self.k.alloc(6), "f")
        with self.assertRaisesRegex(TypeError, "upload: expected numbers, found format '.*O': memory has only the addresses of Python objects"):
            self.k.upload((ctypes.py_object * 2)(1, None)) # as numpy.array([1, None], object)
        self.k.upload((ctypes.c_int * 2)(1, 2))

    def test_big_endian(self):
        """Like numpy.zeros(2, ">f4") in the buffer protocol: its bytes would be copied without swapping."""
        class Pair(ctypes.BigEndianStructure):
            _fields_ = [("first", ctypes.c_float), ("second", ctypes.c_float)]
        with self.assertRaisesRegex(TypeError, "upload: expected little-endian elements, found format '.*>f"):
            self.k.upload(Pair(1, 2))
        with self.assertRaisesRegex(TypeError, "download: into: expected little-endian elements, found format"):
            self.k.download(self.x, Pair())
        with self.assertRaisesRegex(TypeError, "upload: into: expected a little-endian type"):
            self.k.upload(b"12345678", into=Like(self.x, (2,), ">f4"))
        with self.assertRaisesRegex(TypeError, "download: expected a little-endian type"):
            self.k.download(Like(self.x, (2,), ">f4"))
        with self.assertRaisesRegex(kiln.Error, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: .* \\(2\\)"):
            self.k.alloc(1 << 60)

    def test_numpy(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("NumPy is not installed")
        x = numpy.arange(N, dtype=numpy.float16)
        with self.k.upload(x) as buffer:
            back = numpy.empty_like(x)
            self.assertTrue((self.k.download(buffer, back) == x).all())
            self.assertEqual(buffer.typestr, "<f2")


class Lifetimes(unittest.TestCase):
    def test_a_buffer_has_no_copies(self):
        """A copy would free the memory of the original."""
        with own_context(0), kiln.load(MANIFEST, driver=DRIVER) as k:
            kept = k.upload(b"1234")
            for duplicate in copy.copy, copy.deepcopy, pickle.dumps:
                with self.assertRaisesRegex(TypeError, "a Buffer cannot be copied or pickled: the copy would free the same memory"):
                    duplicate(kept)
            gc.collect()
            self.assertEqual(k.download(kept), b"1234")

    def test_memory_is_freed(self):
        with own_context(0) as context, kiln.load(MANIFEST, driver=DRIVER) as k:
            before = free_bytes()
            kept = k.alloc(1 << 20)
            self.assertLessEqual(free_bytes(), before - (1 << 20))
            kept.free()
            kept.free()
            self.assertEqual(free_bytes(), before)
            with k.alloc(1 << 20):
                pass
            dropped = k.alloc(1 << 20)
            self.assertLess(free_bytes(), before)
            del dropped
            gc.collect()
            self.assertEqual(free_bytes(), before)
            with self.assertRaisesRegex(ValueError, "the buffer is freed"):
                kept.ptr
            k.alloc(1 << 20)
            left = k.alloc(1 << 20)
            k.close()
            self.assertEqual((free_bytes(), current_context()), (before, context))
            self.assertEqual(repr(left), "<kiln.Buffer of 1048576 bytes freed>")
            k.close()

    def test_reused_address(self):
        """A driver may give a freed address to the next buffer. The emulated one does not, so the test adds the address itself."""
        with kiln.load(MANIFEST, driver=DRIVER) as k:
            freed = k.alloc(64)
            address = freed.ptr
            freed.free()
            k._core.allocations.add(address)
            with self.assertRaisesRegex(ValueError, "the buffer is freed"):
                freed.ptr
            self.assertEqual(repr(freed), "<kiln.Buffer of 64 bytes freed>")
            freed.free()
            del freed
            gc.collect()
            self.assertIn(address, k._core.allocations)
            k._core.allocations.remove(address)

    def test_closed(self):
        k = kiln.load(MANIFEST, driver=DRIVER)
        k.close()
        k.close()
        for use in (lambda: k.alloc(1), k.synchronize, k.preload, lambda: k.nf4_quantize(n=0)):
            with self.assertRaisesRegex(kiln.Error, "^the bundle is closed$") as caught:
                use()
            self.assertEqual(caught.exception.status, kiln.Status.CLOSED)
        self.assertIn("closed", repr(k))

    def test_contexts(self):
        """A context is retained only if none is current. After each call the thread's own context is current again."""
        check(cuda.cuInit(0))
        self.assertIsNone(current_context())
        with kiln.load(MANIFEST, driver=DRIVER) as k:
            self.assertTrue(primary_is_active())
            buffer = k.upload(b"abc")
            self.assertEqual((k.download(buffer), current_context()), (b"abc", None))
            with own_context(1) as other:
                self.assertEqual((k.download(buffer), current_context()), (b"abc", other))
        self.assertFalse(primary_is_active())
        with own_context(1) as own, kiln.load(MANIFEST, driver=DRIVER) as k:
            self.assertEqual((k._core.context, k._core.device), (own, 1))
            self.assertFalse(primary_is_active(1))

    def test_dropped(self):
        """Nothing leaks without a close: a buffer keeps its loader alive."""
        k = kiln.load(MANIFEST, driver=DRIVER)
        buffer = k.upload(b"abc")
        del k
        gc.collect()
        self.assertTrue(primary_is_active())
        del buffer
        gc.collect()
        self.assertFalse(primary_is_active())

    def test_threads(self):
        wrong = []
        with kiln.load(MANIFEST, driver=DRIVER) as k:
            def work(number):
                x = k.upload(array.array("f", [float(number)] * N))
                scale, packed, out = k.alloc(N // 64 * 4), k.alloc(N // 2), k.alloc(4 * N)
                for _ in range(5):
                    k.nf4_quantize(in_=x, scale=scale, packed=packed, n=N)
                    k.nf4_unpack(packed=packed, scale=scale, out=out, n=N)
                    wrong.extend(v for v in k.download(out, "f") if v != number)
            threads = [threading.Thread(target=work, args=(i,)) for i in range(1, 5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])

    def test_exit(self):
        """A program that closes nothing exits without messages. The linker finds the driver."""
        code = f"import kiln\nk = kiln.load({str(MANIFEST)!r})\nb = k.upload(b'abc')\nprint(k.download(b))"
        done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(FOLDER), "LD_LIBRARY_PATH": str(
            pathlib.Path(DRIVER).parent)}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "b'abc'\n", ""))


FORKING = """
import multiprocessing
import sys

import kiln

MANIFEST, DRIVER = sys.argv[1:]


def tell(what, function):
    try:
        print(what, function(), flush=True)
    except kiln.Error as error:
        print(what, error, flush=True)


def load():
    with kiln.load(MANIFEST, driver=DRIVER) as k:
        return launch(k)


def launch(k):
    packed = k.zeros(512)
    k.nf4_quantize(in_=k.zeros(4 * 1024), scale=k.zeros(4 * 16), packed=packed, n=1024)
    return len(k.download(packed))


def child(inherited):
    tell("loaded", load)
    if inherited:
        tell("inherited", lambda: launch(inherited))


def start(method, inherited=None):
    process = multiprocessing.get_context(method).Process(target=child, args=(inherited,))
    process.start()
    process.join()
    print(method, process.exitcode, flush=True)


if __name__ == "__main__":
    start("fork")
    with kiln.load(MANIFEST, driver=DRIVER) as k:
        tell("parent", lambda: launch(k))
        start("fork", k)
        start("spawn")
        tell("parent", lambda: launch(k))
"""


class Processes(unittest.TestCase):
    def test_multiprocessing(self):
        """Only a child forked after cuInit cannot use CUDA; its error says why."""
        told = ("CUDA_ERROR_NOT_INITIALIZED: cuInit has not run in this process: the process was forked after cuInit; start it "
                "with multiprocessing's 'spawn', or fork before cuInit (3)\n")
        with tempfile.TemporaryDirectory() as scratch:
            program = pathlib.Path(scratch, "forking.py")
            program.write_text(FORKING)
            done = subprocess.run([sys.executable, "-W", "ignore", program, MANIFEST, DRIVER], capture_output=True, text=True,
                                  env=os.environ | {"PYTHONPATH": str(FOLDER), "KILN_EMU_THREADS": "4"}, timeout=300)
        expected = ("loaded 512\nfork 0\nparent 512\n" f"loaded cuInit: {told}inherited cuCtxGetCurrent: {told}fork 0\n"
                    "loaded 512\nspawn 0\nparent 512\n")
        self.assertEqual((done.stdout, done.stderr, done.returncode), (expected, "", 0))


class Files(unittest.TestCase):
    def expect(self, kind, text, *arguments, **keywords):
        with self.assertRaises(kind) as caught:
            kiln.load(*arguments, **keywords)
        self.assertRegex(str(caught.exception), text)
        return caught.exception

    def test_files(self):
        error = self.expect(kiln.Error, "^driver library not found: /nowhere/libcuda.so.1: cannot open", MANIFEST, driver="/nowhere/libcuda.so.1")
        self.assertEqual(error.status, kiln.Status.DRIVER_NOT_FOUND)
        library = FOLDER / "kiln_default_python.so"
        error = self.expect(kiln.Error, "^driver library lacks an entry point: cu", MANIFEST, driver=library)
        self.assertEqual(error.status, kiln.Status.DRIVER_SYMBOL)
        self.expect(FileNotFoundError, "nothing.json", "nothing.json")
        self.expect(kiln.Error, "^driver library not found: /nowhere", os.fsencode(MANIFEST), driver="/nowhere/libcuda.so.1")
        with tempfile.TemporaryDirectory() as scratch:
            changed = pathlib.Path(scratch, "kiln_default.json")
            whole = json.loads(MANIFEST.read_text())
            without_families = json.dumps({key: value for key, value in whole.items() if key != "families"})
            for text in ("[]", "{", '{"bundle": "kiln_default"}', without_families, json.dumps(whole | {"bundle": 5}), b"\xff\xfe"):
                if isinstance(text, bytes):
                    changed.write_bytes(text)
                    self.expect(ValueError, "kiln_default.json: expected a bundle's manifest", changed)
                    continue
                changed.write_text(text)
                self.expect(ValueError, "kiln_default.json: expected a bundle's manifest", changed)
            changed.write_text(MANIFEST.read_text())
            self.expect(FileNotFoundError, r"kiln_default_python.so: there is no such library; kiln_add_bundle\(kiln_default ", changed)
            self.expect(ValueError, "not the library of this manifest, it has no kiln_default_manifest_crc", MANIFEST, DRIVER)

    def test_other_manifests(self):
        """Refuses another build's manifest, because calls use its structs and arguments."""
        def swap(manifest):
            first, second = manifest["families"][-1]["args"][:2]
            first["offset"], second["offset"] = second["offset"], first["offset"]
        library = FOLDER / "kiln_default_python.so"
        with tempfile.TemporaryDirectory() as scratch:
            changed = pathlib.Path(scratch, "kiln_default.json")
            for change in (swap, lambda m: m["variants"][-1].update(key="0" * 16), lambda m: m["families"][-1].update(args_bytes=8),
                           lambda m: m["structs"]["kiln_loader"].update(bytes=8), lambda m: m.update(layout_version=1),
                           lambda m: m["config"].update(xxh3_128="0" * 32)):
                manifest = json.loads(MANIFEST.read_text())
                change(manifest)
                changed.write_text(json.dumps(manifest))
                self.expect(ValueError, "not the library of this manifest, which was changed or is of another build", changed, library,
                            DRIVER)
            changed.write_bytes(MANIFEST.read_bytes())
            kiln.load(changed, library, DRIVER).close()
        self.assertFalse(primary_is_active())


unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=1)
