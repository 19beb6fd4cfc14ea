"""Calls kernels of a kiln bundle from Python; needs only the standard library, and no compiler.

    import array, kiln

    with kiln.load("appkernels.json") as k:                   # next to appkernels_python.so
        x = k.upload(array.array("f", [0.25] * 4096))
        scale, packed = k.alloc(4096 // 64 * 4), k.alloc(4096 // 2)
        k.nf4_quantize(in_=x, scale=scale, packed=packed, n=4096)
        codes = k.download(packed)

The functions are made from the manifest, NAME.json: one per family and one per variant, with the manifest's names as
keywords. NAME_python.so, which kiln_add_bundle(NAME ... PYTHON) makes, has the kernels and kiln's runtime.

A device array is a Buffer, an object with __cuda_array_interface__ (CuPy, PyTorch, Numba), or an address, an int.
Functions launch and return: keep arrays alive until the stream has done its work. download() waits for it.

Threads: all functions may be called from any thread at once, except close(). The bundle's context is current during a
call; afterwards the thread's own is restored. If two threads fail at once, an error's text may be the other's; its
status is always its own.
"""
import array
import atexit
import binascii
import collections
import contextlib
import ctypes
import difflib
import enum
import functools
import inspect
import json
import keyword
import math
import operator
import os
import re
import struct
import textwrap
import weakref

__all__ = ["load", "Bundle", "Buffer", "Candidate", "Error", "Launch", "Status"]


class Status(enum.IntEnum):
    """kiln_status (kiln/status.h); the numbers never change."""
    OK = 0
    NULL_POINTER = 10
    BAD_ARGUMENT = 11
    MISALIGNED = 12
    GRID_TOO_LARGE = 13
    TOO_FEW_SLOTS = 14
    CLOSED = 15
    ALREADY_OPEN = 16
    SCRATCH_TOO_SMALL = 17
    LAYOUT = 30
    NOT_FOUND = 31
    NO_VARIANT = 32
    NO_IMAGE = 33
    CORRUPT_IMAGE = 34
    DRIVER_NOT_FOUND = 50
    DRIVER_SYMBOL = 51
    DRIVER_TOO_OLD = 52
    NO_CONTEXT = 53
    WRONG_CONTEXT = 54
    LOAD = 55
    LAUNCH = 56
    DRIVER = 57


class Error(Exception):
    """A failure of the runtime or the driver; its text is the runtime's. `status` is a Status, `driver_result` the
    CUresult or 0, `subject` what was asked for, `detail` the rule that was broken, `needed` and `present` versions or
    counts, `log` the driver's log of a failed load."""

    def __init__(self, text, status, **details):
        super().__init__(text)
        self.status = Status(status)
        self.driver_result = details.get("driver_result", 0)
        self.subject, self.detail = details.get("subject", ""), details.get("detail", "")
        self.needed, self.present = details.get("needed", 0), details.get("present", 0)
        self.log = details.get("log", "")


Candidate = collections.namedtuple("Candidate", "id cycles why_not")
Candidate.__doc__ = "A variant that dispatch looked at: its id, its estimate, and why it was ruled out, or None."

Launch = collections.namedtuple("Launch", "id sizes grid block shared_bytes stream result")
Launch.__doc__ = """One launch, for load's launch_hook: the variant's id, its integers by name without strides, thread blocks and
threads as three numbers each, dynamic shared memory, the stream's handle, and the CUresult, None before the launch."""


def load(manifest, library=None, driver=None, *, device=None, ptx_only=False, overlap_launches=False, check_images=False,
         launch_hook=None):
    """Opens the bundle of a manifest, NAME.json. See Bundle.

    library           what kiln_add_bundle(NAME ... PYTHON) makes; default: NAME_python.so beside the manifest
    driver            the driver library; default: libcuda.so.1. The emulated one: .../emulator/libcuda.so.1
    device            the ordinal of the device whose primary context is used; default: the context that is current on
                      this thread, else the primary one of device 0
    ptx_only          skips cubins, for the emulated driver
    overlap_launches  as in kiln_options
    check_images      compares each image with its hash before it is loaded
    launch_hook       called with a Launch before and after each launch, on the thread that launches; it must not call
                      functions of this bundle. An exception in it goes to sys.unraisablehook
    """
    options = {"ptx_only": ptx_only, "overlap_launches": overlap_launches, "check_images": check_images,
               "launch_hook": launch_hook}
    return Bundle(manifest, library, driver, device, options)


# ---- expressions of the manifest ------------------------------------------------------------------------------------


class _Word(str):
    """A parameter's word, which can only be compared."""
    __slots__ = ()
    __add__ = __radd__ = __mul__ = __rmul__ = __mod__ = None


class _Unknown:
    """A value that only the runtime knows: of a parameter that the call leaves open."""
    __hash__ = None

    def __eq__(self, other):
        raise TypeError("unknown")

    __ne__ = __bool__ = __eq__


class _Values(dict):
    """Values of arguments and parameters; every other name is a word."""

    def __missing__(self, name):
        return _Word(name)


_FUNCTIONS = {
    "ceil_div": lambda a, b: -(-a // b), "min": min, "max": max, "select": lambda condition, a, b: a if condition else b,
    "aligned": lambda address, count: address % count == 0, "given": lambda address: address != 0,
    "negative": lambda x: not x >= 0, "finite": math.isfinite}
_NAME = re.compile(r"(?<!\w)[A-Za-z_]\w*")


@functools.lru_cache(maxsize=None)
def _code(text):
    text = _NAME.sub(lambda m: m[0] if m[0] in _FUNCTIONS else f"v[{m[0]!r}]", text)
    text = re.sub(r"!(?!=)", "not ", text.replace("&&", " and ").replace("||", " or ").replace("/", "//"))
    return compile(text, "<manifest>", "eval")


def _evaluate(text, values):
    """Returns a number; None if it cannot be known here."""
    try:
        value = eval(_code(text), {"__builtins__": {}, **_FUNCTIONS}, {"v": values})
    except (TypeError, ZeroDivisionError):
        return None
    return int(value) if isinstance(value, (int, bool)) else None


def _plain(value):
    """Returns a parameter's value for use in expressions."""
    text = str(value)
    return int(value) if isinstance(value, bool) or text.isdigit() else _Word(text)


def _suggest(name, names):
    nearest = [] if name.isdigit() else difflib.get_close_matches(name, names, 1, 0.5)
    return f"; did you mean '{nearest[0]}'?" if nearest else f"; there are {', '.join(names)}"


# ---- arrays ---------------------------------------------------------------------------------------------------------

_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}
_FORMATS = {"b": "|i1", "B": "|u1", "c": "|u1", "?": "|b1", "h": "<i2", "H": "<u2", "e": "<f2", "i": "<i4", "I": "<u4",
            "l": "<i8", "L": "<u8", "q": "<i8", "Q": "<u8", "f": "<f4", "d": "<f8"}


def _element_bytes(type_name):
    return _BYTES[re.search(r"\d+$", type_name)[0]]


def _typestr_fits(typestr, type_name):
    """Whether elements have the same size and kind; raw bits (V, and unsigned where Python has no type) match any kind."""
    kind, count = typestr[1], int(typestr[2:])
    if count != _element_bytes(type_name) or (typestr[0] == ">" and count > 1):
        return False
    if kind == "V" or type_name[0] == "b" and type_name != "bf16":
        return True
    if type_name[0] == "f":
        return kind == "f" or (type_name == "f16" and kind == "u")
    return kind in ("u" if type_name == "bf16" else "iub")


class _Array:
    """Device memory as a call sees it; nbytes and typestr are None if unknown."""
    __slots__ = ("address", "nbytes", "typestr", "is_read_only", "stream", "buffer")

    def __init__(self, address, nbytes=None, typestr=None, is_read_only=False, stream=None, buffer=None):
        self.address, self.nbytes, self.typestr = address, nbytes, typestr
        self.is_read_only, self.stream, self.buffer = is_read_only, stream, buffer


def _is_contiguous(shape, strides, size):
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent > 1 and stride != size:
            return False
        size *= extent
    return True


def _typestr(text):
    """Parses a type of the CUDA Array Interface. Refuses big-endian types, since copies do not swap bytes."""
    kind, count = re.fullmatch(r"[<>|=]([biufcV])([1-9][0-9]*)", text).groups()
    if text[0] == ">" and int(count) > 1 and kind != "V":
        raise ValueError(text)
    return text


def _extent(value):
    number = operator.index(value)
    if number < 0:
        raise ValueError(number)
    return number


def _address(value):
    number = _extent(value)
    if isinstance(value, bool) or number >= 1 << 64:
        raise ValueError(number)
    return number


def _from_interface(interface, what):
    """An object of CuPy, PyTorch, Numba and so on (CUDA Array Interface, versions 2 and 3)."""
    def take(name, expected, convert):
        try:
            return convert(interface[name])
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError):
            found = repr(interface[name]) if isinstance(interface, dict) and name in interface else "none"
            raise TypeError(f"{what}: expected {expected} for '{name}' of its __cuda_array_interface__, found {found}") from None

    version = take("version", "2 or 3", lambda number: (2, 3)[(2, 3).index(number)])
    shape = take("shape", "a tuple of extents", lambda extents: tuple(_extent(extent) for extent in extents))
    typestr = take("typestr", "a little-endian type as '<f4'", _typestr)
    address, is_read_only = take("data", "an address and whether it is read-only", lambda data: (_address(data[0] or 0), data[1]))
    strides = interface.get("strides") and take("strides", "a tuple of bytes", lambda all_: tuple(map(operator.index, all_)))
    size = int(typestr[2:])
    count = math.prod(shape)
    if interface.get("mask") is not None:
        raise ValueError(f"{what}: expected an array without a mask")
    if strides is not None and count and not _is_contiguous(shape, strides, size):
        raise ValueError(f"{what}: expected a C-contiguous array, found shape {tuple(shape)} with strides {tuple(strides)}; "
                         "make a contiguous copy of it")
    stream = None
    if version == 3 and interface.get("stream") is not None:
        stream = take("stream", "a stream's handle", _stream_handle)
    if stream == 0:
        raise ValueError(f"{what}: its __cuda_array_interface__ has stream 0, which may be either default stream: 1 or 2")
    return _Array(address, count * size, typestr, bool(is_read_only), stream)


def _array(value, what):
    if isinstance(value, Buffer):
        return _Array(value.ptr, value.nbytes, value.typestr, False, None, value)
    try:
        interface = getattr(value, "__cuda_array_interface__", None)
    except (TypeError, RuntimeError) as error:  # PyTorch: a tensor that requires a gradient
        raise TypeError(f"{what}: {error}") from error
    if interface is not None:
        return _from_interface(interface, what)
    try:
        return _Array(_address(value))
    except TypeError:
        raise TypeError(f"{what}: expected a Buffer, an object with __cuda_array_interface__ or a device address, found "
                        f"{type(value).__name__}; upload() makes a Buffer of memory of the host") from None
    except ValueError:
        raise ValueError(f"{what}: expected a device address, found {value}") from None


def _stream_handle(value):
    """Accepts handles below 2^64 - 1, which is KILN_NO_LAUNCH: a call with it would check its arguments and launch nothing."""
    number = _address(value)
    if number == (1 << 64) - 1:
        raise ValueError(number)
    return number


def _stream(value):
    """The handle of None, an int, or a stream of PyTorch (cuda_stream), CuPy (ptr) or cuda-core (__cuda_stream__)."""
    if value is None:
        return 0
    handle = value
    if hasattr(value, "__cuda_stream__"):
        handle = value.__cuda_stream__()[1]
    else:
        for name in "ptr", "cuda_stream":
            handle = getattr(value, name, handle)
    try:
        return _stream_handle(handle)
    except TypeError:
        raise TypeError(f"stream: expected an int or an object with __cuda_stream__, cuda_stream or ptr, found "
                        f"{type(value).__name__}") from None
    except ValueError:
        raise ValueError(f"stream: expected a stream's handle, found {handle}") from None


def _host(value, what, is_written=False):
    """The bytes of anything with the buffer protocol, as a memoryview."""
    try:
        view = memoryview(value)
    except TypeError:
        raise TypeError(f"{what}: expected bytes, an array or another object with the buffer protocol, found "
                        f"{type(value).__name__}") from None
    if not view.c_contiguous:
        raise ValueError(f"{what}: expected contiguous memory")
    if view.itemsize > 1 and re.search("[>!]", view.format):
        raise TypeError(f"{what}: expected little-endian elements, found format '{view.format}'; the device would read other numbers")
    if "O" in re.sub(":[^:]*:", "", view.format): # without the names of fields
        raise TypeError(f"{what}: expected numbers, found format '{view.format}': memory has only the addresses of Python objects")
    if is_written and view.readonly:
        raise TypeError(f"{what}: expected memory that can be written, found {type(value).__name__}")
    return view


def _host_pointer(view):
    """Returns the memory for ctypes; keeps it alive."""
    if view.nbytes == 0:
        return None
    if isinstance(view.obj, bytes) and view.nbytes == len(view.obj):
        return ctypes.c_char_p(view.obj)
    if view.readonly:
        return ctypes.c_char_p(view.tobytes())
    return (ctypes.c_char * view.nbytes).from_buffer(view.cast("B"))


class Buffer:
    """Device memory of a bundle, of alloc(), zeros() or upload(). free() frees it, as do the end of a `with`, the last
    reference to it, and closing the bundle."""
    __slots__ = ("_core", "_address", "_stream", "nbytes", "typestr", "__weakref__")

    def __init__(self, core, nbytes, typestr=None):
        self._core, self._address, self._stream = core, 0, None
        self.nbytes, self.typestr = operator.index(nbytes), typestr
        if typestr is not None:
            try:
                _typestr(typestr)
            except (TypeError, ValueError, AttributeError):
                raise ValueError(f"alloc: expected a little-endian type as '<f4', found {typestr!r}") from None
        if not 0 <= self.nbytes < 1 << 64:
            raise ValueError(f"expected a count of bytes, found {self.nbytes}")
        self._address = core.allocate(self.nbytes)

    @property
    def ptr(self):
        """The device address."""
        if self._address not in self._core.allocations:
            raise ValueError("the buffer is freed")
        return self._address

    __index__ = __int__ = lambda self: self.ptr

    @property
    def __cuda_array_interface__(self):
        typestr = self.typestr or "|u1"
        return {"shape": (self.nbytes // int(typestr[2:]),), "typestr": typestr, "data": (self.ptr, False), "version": 3,
                "strides": None, "stream": self._stream}

    def __len__(self):
        return self.nbytes

    def __repr__(self):
        state = f"at {self._address:#x}" if self._address in self._core.allocations else "freed"
        return f"<kiln.Buffer of {self.nbytes} bytes {state}>"

    def __reduce__(self):
        raise TypeError("a Buffer cannot be copied or pickled: the copy would free the same memory; download() copies the bytes")

    def free(self):
        """Waits for the kernels that use it, as cuMemFree does. Freeing it again does nothing."""
        address, self._address = self._address, 0  # the driver may give the address to another buffer
        self._core.free(address)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.free()

    def __del__(self):
        if getattr(self, "_address", 0):
            with contextlib.suppress(Error):
                self.free()


# ---- the library and the driver -------------------------------------------------------------------------------------

_POINTER, _INT, _SIZE, _U64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_uint64
_DRIVER = {  # the rows of kiln/driver.h that are called here
    "init": ("cuInit", ctypes.c_uint), "device_get": ("cuDeviceGet", _POINTER, _INT),
    "device_primary_ctx_retain": ("cuDevicePrimaryCtxRetain", _POINTER, _INT),
    "device_primary_ctx_release": ("cuDevicePrimaryCtxRelease", _INT), "ctx_get_current": ("cuCtxGetCurrent", _POINTER),
    "ctx_set_current": ("cuCtxSetCurrent", _POINTER), "ctx_get_device": ("cuCtxGetDevice", _POINTER),
    "ctx_synchronize": ("cuCtxSynchronize",), "mem_alloc": ("cuMemAlloc", _POINTER, _SIZE), "mem_free": ("cuMemFree", _U64),
    "memcpy_htod": ("cuMemcpyHtoD", _U64, _POINTER, _SIZE), "memcpy_dtoh": ("cuMemcpyDtoH", _POINTER, _U64, _SIZE),
    "memset_d8": ("cuMemsetD8", _U64, ctypes.c_ubyte, _SIZE), "get_error_name": ("cuGetErrorName", _INT, _POINTER),
    "get_error_string": ("cuGetErrorString", _INT, _POINTER)}
_RUNTIME = {
    "kiln_driver_load": (_POINTER, ctypes.c_char_p, _POINTER), "kiln_driver_close": (_POINTER,),
    "kiln_open": (_POINTER, _POINTER, _POINTER, _POINTER, _SIZE, _POINTER), "kiln_close": (_POINTER,),
    "kiln_preload": (_POINTER, _POINTER, _SIZE), "kiln_usable": (_POINTER, _POINTER), "kiln_last_error": (_POINTER, _POINTER),
    "kiln_describe_error": (_POINTER, _POINTER, _POINTER, ctypes.c_char_p, _SIZE), "kiln_status_string": (_INT,)}
_RESULTS = {"kiln_driver_close": None, "kiln_describe_error": _SIZE, "kiln_status_string": ctypes.c_char_p}
_LOG_BYTES = 8192
_HOOK = ctypes.CFUNCTYPE(None, _POINTER, _POINTER)
_cores = weakref.WeakSet()


def _open_library(path, name, manifest):
    """Loads the library that was built with this manifest. With another one, offsets would differ, and kernels would get wrong
    arguments."""
    library = ctypes.CDLL(path)
    try:
        crc = ctypes.c_uint32.in_dll(library, name + "_manifest_crc").value
    except ValueError:
        raise ValueError(f"{path}: not the library of this manifest, it has no {name}_manifest_crc; build it again") from None
    if crc != binascii.crc32(manifest):
        raise ValueError(f"{path}: not the library of this manifest, which was changed or is of another build")
    return library


def _ordinal(device):
    try:
        number = _extent(device)
        if isinstance(device, bool) or number > 0x7fffffff:
            raise ValueError(number)
    except (TypeError, ValueError):
        raise ValueError(f"device: expected the ordinal of a device, found {device!r}") from None
    return number


class _Core:
    """A library, a driver, a context and a loader: all of kiln's storage, at fixed addresses."""

    def __init__(self, manifest, library, driver, device, options):
        self.is_open, self.allocations, self.retained, self.extra = False, set(), None, None
        self.structs = manifest["structs"]
        self.library = library
        for name, types in _RUNTIME.items():
            function = getattr(self.library, name)
            function.argtypes, function.restype = types, _RESULTS.get(name, _INT)
        self.driver, self.loader = self._storage("kiln_driver"), self._storage("kiln_loader")
        missing = ctypes.c_char_p()
        path = None if driver is None else os.fsencode(driver)
        status = self.library.kiln_driver_load(self.driver, path, ctypes.byref(missing))
        if status:
            what = missing.value.decode() if missing.value else self._why_not_opened(driver or "libcuda.so.1")
            raise Error(f"{self._status_text(status)}: {what}", status, subject=str(what))
        self.table = {name: self._entry(name, types) for name, (_, *types) in _DRIVER.items()}
        try:
            self.drive("init", 0)
            self.context = self._find_context(device)
            with self.current():
                self._open(manifest["bundle"], options)
        except Exception:
            self._leave()
            raise
        self.is_open = True
        _cores.add(self)

    @staticmethod
    def _why_not_opened(path):
        try:
            ctypes.CDLL(os.fspath(path))
        except OSError as error:  # the loader's own text, with the path
            return str(error)
        return path

    def _storage(self, name, count=1):
        return ctypes.create_string_buffer(max(1, count * self.structs[name]["bytes"]))

    def _offset(self, name, member):
        return self.structs[name]["offsets"][member]

    def _entry(self, name, types):
        address = struct.unpack_from("Q", self.driver, self._offset("kiln_driver", name))[0]
        return ctypes.CFUNCTYPE(_INT, *types)(address) if address else None

    def _find_context(self, device):
        context = _POINTER()
        if device is None:
            self.drive("ctx_get_current", ctypes.byref(context))
        if not context.value:
            handle = _INT()
            self.drive("device_get", ctypes.byref(handle), device or 0)
            self.drive("device_primary_ctx_retain", ctypes.byref(context), handle)
            self.retained = handle.value
        return context.value

    def _open(self, name, options):
        handle = _INT()
        self.drive("ctx_get_device", ctypes.byref(handle))
        self.device = handle.value
        bundle = ctypes.addressof(ctypes.c_char.in_dll(self.library, name + "_bundle"))
        count = ctypes.c_uint32.from_address(bundle + self._offset("kiln_bundle", "slot_count")).value
        scratch = _U64.from_address(bundle + self._offset("kiln_bundle", "scratch_bytes")).value
        self.slots = self._storage("kiln_slot", count)
        self.log = ctypes.create_string_buffer(_LOG_BYTES)
        self.scratch = ctypes.create_string_buffer(scratch + 16)
        check = ctypes.cast(self.library.kiln_check_image, _POINTER).value if options.pop("check_images") else 0
        hook = options.pop("launch_hook")
        if hook is not None and not callable(hook):
            raise TypeError(f"launch_hook: expected a function, found {type(hook).__name__}")
        self.hook = _HOOK(lambda _, event: hook(self._launch(event))) if hook else _HOOK()
        given = {"launch_hook": ctypes.cast(self.hook, _POINTER).value or 0, "check_image": check, "log": ctypes.addressof(self.log), "log_bytes": _LOG_BYTES,
                 "scratch": -(-ctypes.addressof(self.scratch) // 16) * 16, "scratch_bytes": scratch}
        storage = self._storage("kiln_options")
        for member, value in given.items():
            struct.pack_into("Q", storage, self._offset("kiln_options", member), value)
        for member, value in options.items():
            struct.pack_into("i", storage, self._offset("kiln_options", member), bool(value))
        self.check(self.library.kiln_open(self.loader, self.driver, bundle, self.slots, count, storage))

    def _member(self, struct_name, member, code, address):
        at = address + self._offset(struct_name, member)
        return struct.unpack(code, ctypes.string_at(at, struct.calcsize(code)))[0]

    def _launch(self, event):
        def of_event(member, code="Q"):
            return self._member("kiln_launch_event", member, code, event)
        kernel, params = of_event("kernel"), of_event("params")
        texts = self._member("kiln_kernel", "sizes", "Q", kernel)
        sizes = {}
        for text in ctypes.string_at(texts).decode().split() if texts else ():
            param, name, type_name = text.split(":")
            value = ctypes.string_at(_U64.from_address(params + 8 * int(param)).value, int(type_name[1:]) // 8)
            sizes[name] = int.from_bytes(value, "little", signed=type_name[0] == "s")
        return Launch(ctypes.string_at(self._member("kiln_kernel", "id", "Q", kernel)).decode(), sizes,
                      struct.unpack("3Q", ctypes.string_at(of_event("grid"), 24)),
                      struct.unpack("3I", ctypes.string_at(of_event("block"), 12)), of_event("shared_bytes", "I"),
                      of_event("stream"), of_event("driver_result", "i") if of_event("is_after", "i") else None)

    # errors

    def _status_text(self, status):
        return self.library.kiln_status_string(status).decode()

    def check(self, status, kernel=None):
        if status:
            raise self._error(status, kernel)

    def _error(self, status, kernel):
        storage, text = self._storage("kiln_error"), ctypes.create_string_buffer(4096)
        self.library.kiln_last_error(self.loader, storage)

        def member(name, code):
            return struct.unpack_from(code, storage, self._offset("kiln_error", name))[0]
        if member("status", "i") != status:  # another thread's error came between
            return Error(self._status_text(status), status)
        self.library.kiln_describe_error(self.loader, storage, kernel, text, len(text))
        log = self.log.value.decode(errors="replace") if member("log_bytes", "Q") else ""
        texts = {name: ctypes.string_at(member(name, "Q")).decode() for name in ("subject", "detail")}
        return Error(text.value.decode(errors="replace") + (f"\n{log}" if log else ""), status, log=log, **texts,
                     driver_result=member("driver_result", "i"), needed=member("needed", "I"), present=member("present", "I"))

    def _driver_error(self, name, result):
        words = []
        for entry in "get_error_name", "get_error_string":
            text = ctypes.c_char_p()
            if self.table[entry] and self.table[entry](result, ctypes.byref(text)) == 0 and text.value:
                words.append(text.value.decode())
        if result == 34:  # CUDA_ERROR_STUB_LIBRARY: it returns this from every call
            words = ["the CUDA toolkit's stub library"]
        if result == 3:  # CUDA_ERROR_NOT_INITIALIZED: load has called cuInit
            words.append("the process was forked after cuInit; start it with multiprocessing's 'spawn', or fork before cuInit")
        return Error(f"{name}: {': '.join(words) or 'failed'} ({result})", Status.DRIVER, driver_result=result, subject=name)

    # the driver

    def drive(self, name, *arguments):
        result = self.table[name](*arguments)
        if result:
            raise self._driver_error(_DRIVER[name][0], result)

    def beyond_table(self, name, *arguments):
        """Calls a function of the driver library that is not in the table; returns its CUresult, or None if it does not exist."""
        if self.extra is None:
            handle = struct.unpack_from("Q", self.driver, self._offset("kiln_driver", "library"))[0]
            self.extra = ctypes.CDLL(None, handle=handle)
        function = getattr(self.extra, name, None)
        return None if function is None else function(*arguments)

    @contextlib.contextmanager
    def current(self):
        """Makes the bundle's context current inside, and restores the thread's own afterwards."""
        before = _POINTER()
        self.drive("ctx_get_current", ctypes.byref(before))
        if before.value == self.context:
            yield
            return
        self.drive("ctx_set_current", self.context)
        try:
            yield
        finally:
            self.drive("ctx_set_current", before)

    @contextlib.contextmanager
    def using(self):
        if not self.is_open:
            raise Error("the bundle is closed", Status.CLOSED)
        with self.current():
            yield

    def allocate(self, nbytes):
        address = _U64()
        with self.using():
            self.drive("mem_alloc", ctypes.byref(address), max(1, nbytes))
        self.allocations.add(address.value)
        return address.value

    def free(self, address):
        try:
            self.allocations.remove(address)
        except KeyError:
            return
        with self.using():
            self.drive("mem_free", address)

    def wait_for(self, stream):
        result = self.beyond_table("cuStreamSynchronize", _POINTER(stream))
        if result is None:
            self.drive("ctx_synchronize")
        elif result:
            raise self._driver_error("cuStreamSynchronize", result)

    def device_of(self, address):
        """Returns the ordinal; None if the driver does not know the address."""
        ordinal = _INT()
        device_ordinal = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        result = self.beyond_table("cuPointerGetAttribute", ctypes.byref(ordinal), device_ordinal, _U64(address))
        return ordinal.value if result == 0 else None

    def check_device(self, given, what):
        """Refuses memory of another device: no kernel of this context may use it, and waiting for this context's work is not
        waiting for that device's."""
        if not given.nbytes:
            return
        device = given.buffer._core.device if given.buffer is not None else self.device_of(given.address)
        if device not in (None, self.device):
            raise ValueError(f"{what}: expected memory of device {self.device}, found memory of device {device}")

    # the end

    def close(self):
        """Frees memory, modules, context and driver, in this order. Raises the first error at the end."""
        if not self.is_open:
            return
        errors = []
        with contextlib.ExitStack() as stack:
            stack.callback(self._leave)
            with self.current():
                for address in list(self.allocations):
                    try:
                        self.free(address)
                    except Error as error:
                        errors.append(error)
                status = self.library.kiln_close(self.loader)
                if status:
                    errors.append(self._error(status, None))
            self.is_open = False
        if errors:
            raise errors[0]

    def _leave(self):
        self.is_open = False
        self.allocations.clear()
        if self.retained is not None:
            self.table["device_primary_ctx_release"](self.retained)
            self.retained = None
        self.library.kiln_driver_close(self.driver)

    def __del__(self):
        with contextlib.suppress(Exception):
            self.close()


@atexit.register
def _close_all():
    """Runs while the interpreter is still intact."""
    for core in list(_cores):
        with contextlib.suppress(Error):
            core.close()


# ---- functions ------------------------------------------------------------------------------------------------------

_CODES = {"uint8_t": "B", "int8_t": "b", "uint16_t": "H", "int16_t": "h", "uint32_t": "I", "int32_t": "i", "uint64_t": "Q",
          "int64_t": "q", "float": "f", "double": "d"}
_WRITTEN = ("out", "inout", "optional_out", "scratch")
_NEEDED = ("in", "out", "inout")


def _python_name(name):
    return name + "_" if keyword.iskeyword(name) else name


class _Signature:
    """A function's keywords, and their places in its argument struct."""

    def __init__(self, name, family, args, offsets, args_bytes, settled):
        self.name, self.args_bytes, self.offsets = name, args_bytes, offsets
        self.args = {arg["name"]: arg for arg in args}
        self.params = {p["name"]: p for p in family["params"]}
        self.settled = settled
        self.empty = family["empty"] if args is family["args"] else None
        texts = [self.empty or ""] if args is family["args"] else [t for arg in args for t in arg.get("shape", [])]
        self.sizes = [n for n in _NAME.findall(" ".join(texts)) if self.args.get(n, {}).get("direction") == "value"]
        self.names = [*self.args, *self.offsets]
        self.plain_names = {_python_name(name): name for name in self.names}

    def _wrong(self, name, expected, found):
        return ValueError(f"{self.name}: expected {expected} for {name}, found {found!r}")

    def _missing(self, name):
        text = self._describe(self.args[name])
        return TypeError(f"{self.name}: missing argument '{name}': " + re.sub(r"\[[^]]{60,}\]", "[...]", text))

    def _check_names(self, keywords):
        for name in keywords:
            if name not in self.args and name not in self.offsets:
                raise TypeError(f"{self.name}: unknown argument '{name}'{_suggest(name, self.names)}")

    def _number(self, param, value):
        if param["type"] == "bool":
            if value not in (0, 1, "false", "true"):
                raise self._wrong(param["name"], "True or False", value)
            return int(value in (1, "true"))
        if param["type"] == "int":
            try:
                return struct.unpack("I", struct.pack("I", operator.index(value)))[0]
            except (struct.error, TypeError):
                raise self._wrong(param["name"], "u32", value) from None
        words = param["words"].split()
        if str(value) not in words:
            raise ValueError(f"{self.name}: expected a value of {param['name']}, found '{value}'{_suggest(str(value), words)}")
        return param["numbers"][words.index(str(value))]

    def _plain_number(self, arg, value):
        """Returns a value for use in expressions: integers of other types, as NumPy's, are no ints and may wrap."""
        if value is None or arg.get("bytes") or _CODES[arg["c_type"]] in "fd":
            return 0 if value is None else value
        try:
            return operator.index(value)
        except TypeError:
            raise self._wrong(arg["name"], arg["type"].strip("$"), value) from None

    def _pack(self, storage, arg, value):
        if arg.get("bytes"):
            data = bytes(value)
            if len(data) != arg["bytes"]:
                raise self._wrong(arg["name"], f"{arg['bytes']} bytes", value)
            struct.pack_into(f"{len(data)}s", storage, arg["offset"], data)
            return
        code = _CODES[arg["c_type"]]
        try:
            struct.pack_into(code, storage, arg["offset"], value if code in "fd" else operator.index(value))
        except (struct.error, TypeError, OverflowError):
            raise self._wrong(arg["name"], arg["type"].strip("$"), value) from None

    @staticmethod
    def _takes_array(arg, value):
        """Handles external PTX, whose pointers have no description: addresses, and 64-bit numbers that may be addresses."""
        return arg["direction"] != "value" or arg["type"] == "address" or (
            arg["c_type"] == "uint64_t" and hasattr(value, "__cuda_array_interface__"))

    def bind(self, core, keywords, stream=None, needs_arrays=True):
        """Returns the argument struct, and the arrays that it points to."""
        keywords = {self.plain_names.get(name, name): value for name, value in keywords.items()}
        self._check_names(keywords)
        storage, values, arrays = ctypes.create_string_buffer(max(1, self.args_bytes)), _Values(self.settled), {}
        for name, offset in self.offsets.items():
            if keywords.get(name) is not None:
                param, number = self.params[name], self._number(self.params[name], keywords[name])
                struct.pack_into("I", storage, offset, number)
                values[name] = _plain(keywords[name]) if param["type"] == "word" else number
        for name, arg in self.args.items():
            value = keywords.get(name)
            if value is None and name in keywords and not self._takes_array(arg, value):
                raise self._wrong(name, arg["type"].strip("$"), None)
            if self._takes_array(arg, value):
                arrays[name] = _Array(0) if value is None else _array(value, f"{self.name}: {name}")
                values[name] = arrays[name].address
                struct.pack_into("Q", storage, arg["offset"], arrays[name].address)
                values[name] = arrays[name].address
            else:
                values[name] = self._plain_number(arg, value)
                if value is not None:
                    self._pack(storage, arg, value)
        self._check_sizes_given(keywords, values)
        for name, array_ in arrays.items():
            self._check_array(core, name, array_, values, needs_arrays and name not in keywords)
        if needs_arrays:
            self._order(core, arrays, stream)
        return storage

    def _values(self, keywords):
        """Returns the scope of expressions: the call's numbers and words, and what it leaves open."""
        values = _Values(self.settled, **{name: 0 for name in self.args})
        for name, value in keywords.items():
            param = self.params.get(name)
            if param and value is not None:
                number = self._number(param, value)
                value = _plain(value) if param["type"] == "word" else number
            elif name in self.args and not self._takes_array(self.args[name], value):
                value = self._plain_number(self.args[name], value)
            values[name] = 0 if value is None else value
        return values

    def set_contiguous(self, rows, keywords):
        keywords = {self.plain_names.get(name, name): value for name, value in keywords.items()}
        self._check_names(keywords)
        values, strides = self._values(keywords), {}
        for row in rows:
            if _evaluate(row.get("when", "1"), values) != 1:
                continue
            for name, value in row["strides"].items():
                arg = self.args[name]
                if not arg.get("unread") and _evaluate(arg.get("when", "1"), values) == 1:
                    strides[name] = _evaluate(value, values)
        missing = next((name for name, value in strides.items() if value is None), None)
        if missing:
            raise self._wrong(missing, "numbers and a contract", "too few keywords")
        return {_python_name(name): value for name, value in {**keywords, **strides}.items()}

    def _check_sizes_given(self, keywords, values):
        """Reports missing sizes: a forgotten size is 0, and the call would do nothing."""
        missing = next((name for name in self.sizes if name not in keywords), None)
        if missing and (self.empty is None or _evaluate(self.empty, values)):
            raise self._missing(missing)

    def _element_type(self, arg, values):
        """Returns None if the call leaves it open, or it has no description."""
        if arg["direction"] == "value":
            return None
        param, *choice = arg["type"].split(":")
        if param[0] != "$":
            return param
        value = values[param[1:]]
        if not isinstance(value, _Word):
            return None
        return value if not choice else choice[0] if value == choice[0] else choice[1]

    def _check_array(self, core, name, given, values, is_missing):
        arg = self.args[name]
        if arg.get("when") and _evaluate(arg["when"], values) != 1 and not given.address:
            return
        extents = [_evaluate(extent, values) for extent in arg.get("shape", ["unknown"])]
        count = None if None in extents else math.prod(extents)
        what = f"{self.name}: {name}"
        if is_missing and arg["direction"] in _NEEDED and count:
            raise self._missing(name)
        if given.is_read_only and arg["direction"] in _WRITTEN:
            raise ValueError(f"{what}: expected an array that can be written, found a read-only one")
        type_name = self._element_type(arg, values)
        if type_name is None:
            return
        if given.typestr and not _typestr_fits(given.typestr, type_name):
            raise TypeError(f"{what}: expected elements of {type_name}, found typestr '{given.typestr}'")
        needed = count and count * _element_bytes(type_name)
        if needed and given.nbytes is not None and given.nbytes < needed:
            raise ValueError(f"{what}: expected {type_name}[{', '.join(arg['shape'])}], {needed} bytes, found {given.nbytes}")
        core.check_device(given, what)

    def _order(self, core, arrays, stream):
        """Waits for the streams that are still writing arrays, and notes where ours are written."""
        own = stream or 1  # CU_STREAM_LEGACY
        for other in {array_.stream for array_ in arrays.values()} - {None, own}:
            core.wait_for(other)
        for array_ in arrays.values():
            if array_.buffer is not None:
                array_.buffer._stream = own

    # help()

    def _describe(self, arg):
        return arg["about"] + (f": {arg['summary']}" if arg.get("summary") else "")

    def _describe_param(self, param, present):
        lacking = [word for word in param.get("words", "").split() if word not in present]
        values = " or ".join(["False", "True"] if len(present) > 1 else [str(present[0] == "true")]) \
            if param["type"] == "bool" else ", ".join(present)
        values += f" (not in this bundle: {', '.join(lacking)})" if lacking else ""
        zero = self.settled.get(param["name"])
        default = "none" if isinstance(zero, _Unknown) else bool(zero) if param["type"] == "bool" else zero
        return f"{values}; default {default}" + (f": {param['summary']}" if param.get("summary") else "")

    def doc(self, summary, family):
        unread = [_python_name(name) for name, arg in self.args.items() if arg.get("unread")]
        ignored = [_python_name(name) for name, arg in self.args.items() if arg.get("ignored")]
        rows = [(name, self._describe(arg)) for name, arg in self.args.items() if not arg.get("unread") and not arg.get("ignored")]
        rows += [(name, self._describe_param(self.params[name], family["present"][name])) for name in self.offsets]
        rows.append(("stream", "an int, or a stream of PyTorch, CuPy or cuda-core; None: the default stream"))
        text = summary[:1].upper() + summary[1:] + ".\n"
        for name, row in rows:
            text += "\n" + textwrap.fill(f"{_python_name(name)}: {row}", 100, initial_indent="    ",
                                         subsequent_indent="        ", break_long_words=False)
        for title, names in ("Not read by this bundle, leave them out", unread), ("Not read by this bundle, ignored", ignored):
            text += "\n\n" + textwrap.fill(f"{title}: {', '.join(names)}.", 100) if names else ""
        if self.name != family["name"]:
            return f"{text}\n\nRules and accuracy: help of {family['name']}.\n"
        rules = [f"{rule['text']}." for rule in family["rules"]]
        sections = [("Rules, else kiln.Error BAD_ARGUMENT:", rules)] if rules else []
        bounds = [f"{row['where']}: {row['text']}." for row in family.get("bounds", [])]
        sections += [(title, [family[key] + "."] + (bounds if key == "accuracy" else [])) for title, key in
                     (("Accuracy:", "accuracy"), ("NaN and infinity:", "nonfinite"), ("Source:", "source")) if family.get(key)]
        for title, lines in sections:
            text += f"\n\n{title}" + "".join("\n" + textwrap.fill(line, 100, initial_indent="    ", subsequent_indent="    ")
                                             for line in lines)
        return text + "\n"

    def python_signature(self):
        needed = inspect.Parameter.empty

        def default(arg):
            is_needed = arg["direction"] in _NEEDED and not arg.get("when") or arg["name"] in self.sizes
            return needed if is_needed else 0 if arg["direction"] == "value" else None
        parameters = [inspect.Parameter(_python_name(name), inspect.Parameter.KEYWORD_ONLY, default=default(arg))
                      for name, arg in self.args.items()]
        parameters += [inspect.Parameter(_python_name(name), inspect.Parameter.KEYWORD_ONLY, default=None)
                       for name in (*self.offsets, "stream")]
        return inspect.Signature(parameters)


# ---- bundles --------------------------------------------------------------------------------------------------------


class Bundle:
    """A bundle on a device, returned by load(). Close it with close(), or use it in a `with`.

    A family is called as k.nf4_gemm(...), one of its variants as k.nf4_gemm_f16_f32_low_simt_1_16_8_compact_2_1(...) or
    k["nf4_gemm/a=f16,..."](...): help(k.nf4_gemm) has the arguments. A family's function picks a variant for the arguments
    and the device. It has

        .pick(...)            the id of the variant that a call would launch, or None where there is nothing to do
        .candidates(...)      a list of Candidate: what dispatch looked at, and why it was not taken
        .workspace(...)       (bytes, bytes of counters) that this call takes; of families that have a workspace
        .workspace_max(...)   those that are enough for smaller sizes too
        .set_contiguous(...)  a call's keywords, and the strides of contiguous arrays; of families that have strides
        .variants             its variants' ids

    `families` has their names. Keywords are the manifest's names; one that Python keeps for itself has an underscore (in_).
    """

    def __init__(self, manifest, library, driver, device, options):
        path = os.fsdecode(manifest)
        with open(path, "rb") as file:
            contents = file.read()
        try:
            self.manifest = json.loads(contents)
            kinds = {"bundle": str, "structs": dict, "families": list, "variants": list}
            if not all(isinstance(self.manifest[key], kind) for key, kind in kinds.items()):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path}: expected a bundle's manifest, of this kiln or a newer one") from None
        self.name = self.manifest["bundle"]
        device = None if device is None else _ordinal(device)
        if library is None:
            library = os.path.join(os.path.dirname(path), f"{self.name}_python.so")
        if not os.path.exists(library):
            raise FileNotFoundError(f"{os.fspath(library)}: there is no such library; "
                                    f"kiln_add_bundle({self.name} ... PYTHON) makes it")
        self._core = None
        opened = _open_library(os.path.abspath(library), self.name, contents)
        self._core, self._functions = _Core(self.manifest, opened, driver, device, options), {}
        self._kernels = {ctypes.addressof(ctypes.c_char.in_dll(opened, variant["function"] + "_kernel")): variant["id"]
                         for variant in self.manifest["variants"]}
        self.families = [family["name"] for family in self.manifest["families"]]
        for family in self.manifest["families"]:
            self._add_family(family)
        for name, function in self._functions.items():
            if name.isidentifier() and not hasattr(type(self), name) and name not in self.__dict__:
                setattr(self, name, function)

    def _add_family(self, family):
        variants = [v for v in self.manifest["variants"] if v["family"] == family["name"]]
        family["present"] = {p["name"]: list(dict.fromkeys(str(v["params"][p["name"]]).lower() if p["type"] == "bool" else
                                                           str(v["params"][p["name"]]) for v in variants)) for p in family["params"]}
        offsets = {p["name"]: p["offset"] for p in family["params"] if "offset" in p}
        open_values = {p["name"]: self._when_zero(p, variants) for p in family["params"]}
        signature = _Signature(family["name"], family, family["args"], offsets, family["args_bytes"], open_values)
        function = self._add(family["function"], signature, signature.doc(family["summary"], family))
        function.variants = [v["id"] for v in variants]
        if family["params"]:
            self._add_queries(function, family, signature)
        if "dense" in family:
            function.set_contiguous = lambda **keywords: signature.set_contiguous(family["dense"], keywords)
            function.set_contiguous.__doc__ = "The keywords of a call, and the strides of contiguous arrays."
        for call in family.get("calls", []):
            of_call = _Signature(f"{family['name']}_{call['name']}", family, call["args"], call["params"], call["args_bytes"],
                                 open_values)
            self._add(call["function"], of_call, of_call.doc(call["summary"], family))
        for variant in variants:
            if variant["function"] == family["function"]:
                self._functions[variant["id"]] = function
                continue
            settled = {name: _plain(value) for name, value in variant["params"].items()}
            of_variant = _Signature(variant["entry"], family, family["args"], offsets, family["args_bytes"], settled)
            text = f"{variant['id']}, whatever dispatch would choose.\n\nArguments, rules and accuracy: help of {family['name']}."
            added = self._add(variant["function"], of_variant, text, variant["function"] + "_kernel")
            self._functions[variant["id"]] = added

    @staticmethod
    def _when_zero(param, variants):
        """Returns the value of a parameter that a call does not name: the bundle's only value, or the family's default; False for a bool."""
        values = {str(v["params"][param["name"]]).lower() for v in variants}
        if param["role"] != "contract":
            return _plain(values.pop()) if len(values) == 1 and param["type"] != "bool" else _Unknown()
        if param["type"] == "bool":
            return 0
        if len(values) == 1:
            return _plain(values.pop())
        return _plain(param["default"]) if param["default"] in values else _Unknown()

    def _entry(self, name, *types):
        entry = getattr(self._core.library, name)
        entry.argtypes, entry.restype = types, _INT
        return entry

    def _add(self, c_name, signature, doc, kernel_name=None):
        core, entry = self._core, self._entry(c_name, _POINTER, _POINTER, _POINTER)
        kernel = ctypes.addressof(ctypes.c_char.in_dll(core.library, kernel_name)) if kernel_name else None

        def function(*, stream=None, **keywords):
            stream = _stream(stream)
            with core.using():
                core.check(entry(core.loader, stream, signature.bind(core, keywords, stream)), kernel)
        name = c_name.removeprefix(self.name + "_")
        function.__name__ = function.__qualname__ = name
        function.__doc__, function.__signature__ = doc, signature.python_signature()
        self._functions[name] = function
        return function

    def _add_queries(self, function, family, signature):
        core, kernels = self._core, self._kernels
        pick_entry = self._entry(family["function"] + "_pick", _POINTER, _POINTER, _POINTER)
        list_entry = self._entry(family["function"] + "_candidates", _POINTER, _POINTER, _POINTER, _SIZE, _POINTER)

        def pick(**keywords):
            """Returns the id of the variant that this call would launch, or None if there is nothing to do."""
            kernel = _POINTER()
            with core.using():
                core.check(pick_entry(core.loader, signature.bind(core, keywords), ctypes.byref(kernel)))
            return kernels[kernel.value] if kernel.value else None

        def candidates(**keywords):
            """Returns the variants that dispatch considers for this call: a list of Candidate."""
            layout = core.structs["kiln_candidate"]
            capacity, count = len(function.variants), _SIZE()
            storage = ctypes.create_string_buffer(capacity * layout["bytes"])
            with core.using():
                arguments = signature.bind(core, keywords)
                core.check(list_entry(core.loader, arguments, storage, capacity, ctypes.byref(count)))

            def member(i, name):
                return struct.unpack_from("Q", storage, i * layout["bytes"] + layout["offsets"][name])[0]
            return [Candidate(kernels[member(i, "kernel")], member(i, "cycles"),
                              ctypes.string_at(member(i, "why_not")).decode() if member(i, "why_not") else None)
                    for i in range(count.value)]

        def add_workspace(name, doc):
            entry = self._entry(f"{family['function']}_{name}", _POINTER, _POINTER, _POINTER, _POINTER)

            def workspace(**keywords):
                sizes = _U64(), _U64()
                with core.using():
                    arguments = signature.bind(core, keywords, needs_arrays=False)
                    core.check(entry(core.loader, arguments, *map(ctypes.byref, sizes)))
                return sizes[0].value, sizes[1].value
            workspace.__name__ = workspace.__qualname__ = name
            workspace.__doc__ = doc
            setattr(function, name, workspace)
        function.pick, function.candidates = pick, candidates
        if "workspace" in family:
            add_workspace("workspace", "The bytes of workspace and of counters, zeros, that this call takes.")
            add_workspace("workspace_max", "Those that are enough at these sizes and at all that are not larger in any.")

    # memory

    def alloc(self, nbytes, typestr=None):
        """Returns a Buffer of uninitialised device memory. typestr, such as "<f4", is for users of its
        __cuda_array_interface__; arguments of another type are then rejected."""
        return Buffer(self._core, nbytes, typestr)

    def zeros(self, nbytes, typestr=None):
        """Returns a Buffer of zeros."""
        buffer = self.alloc(nbytes, typestr)
        with self._core.using():
            self._core.drive("memset_d8", buffer.ptr, 0, buffer.nbytes)
        return buffer

    def upload(self, source, into=None):
        """Copies bytes, an array.array, a memoryview or a NumPy array to the device: into a new Buffer, or into a device array
        of at least that size. Returns the Buffer or the array."""
        view = _host(source, "upload")
        if into is None:
            is_raw = isinstance(view.obj, (bytes, bytearray))
            into = self.alloc(view.nbytes, None if is_raw else _FORMATS.get(view.format))
        to = _array(into, "upload: into")
        if to.is_read_only:
            raise ValueError("upload: into: expected an array that can be written, found a read-only one")
        self._check_room("upload: into", view.nbytes, to.nbytes)
        with self._core.using():
            self._core.check_device(to, "upload: into")
            if view.nbytes:
                self._core.drive("ctx_synchronize")  # a kernel may still use it
                self._core.drive("memcpy_htod", to.address, _host_pointer(view), view.nbytes)
        return into

    def download(self, source, into=None):
        """Waits for all work in the context, and copies a device array to the host. into: None for bytes, a typecode of
        array.array ("f") for such an array, or writable memory, whose size says how much to copy."""
        given = _array(source, "download")
        if into is None or isinstance(into, str):
            if given.nbytes is None:
                raise TypeError("download: an address has no size: say into which memory")
            if into is not None and into not in array.typecodes:
                raise ValueError(f"download: expected a typecode of array.array ({array.typecodes}), found '{into}'")
            result = array.array(into or "B")
            if given.nbytes % result.itemsize:
                raise ValueError(f"download: expected a multiple of {result.itemsize} bytes for '{into}', found {given.nbytes}")
            result.frombytes(bytes(given.nbytes))
        else:
            result = into
        view = _host(result, "download: into", is_written=True)
        self._check_room("download", view.nbytes, given.nbytes)
        with self._core.using():
            self._core.check_device(given, "download")
            self._core.drive("ctx_synchronize")
            if view.nbytes:
                self._core.drive("memcpy_dtoh", _host_pointer(view), given.address, view.nbytes)
        return bytes(result) if into is None else result

    @staticmethod
    def _check_room(what, needed, present):
        if present is not None and needed > present:
            raise ValueError(f"{what}: expected at least {needed} bytes of device memory, found {present}")

    def synchronize(self):
        """Waits for all work in the context; raises the errors of kernels."""
        with self._core.using():
            self._core.drive("ctx_synchronize")

    # kernels

    def preload(self, *names):
        """Loads these variants, and those variants of these families (without names: of all) that the device can run. Later
        launches load nothing."""
        wanted = {}
        for name in names or self.families:
            found = {address: i for address, i in self._kernels.items() if name in (i, i.partition("/")[0])}
            if not found:
                raise KeyError(f"expected a family or a variant's id, found {name!r}{_suggest(str(name), self.families)}")
            wanted.update((address, None) for address, i in found.items()
                          if name == i or self._core.library.kiln_usable(self._core.loader, address))
        with self._core.using():
            self._core.check(self._core.library.kiln_preload(
                self._core.loader, (_POINTER * len(wanted))(*wanted), len(wanted)))

    def __getitem__(self, name):
        """Returns a function by its name, or by a variant's id."""
        try:
            return self._functions[name]
        except KeyError:
            raise KeyError(f"no function {name!r} in {self.name}{_suggest(str(name), self.families)}") from None

    def __getattr__(self, name):
        if name.startswith("_") or "families" not in self.__dict__:
            raise AttributeError(name)
        raise AttributeError(f"no function '{name}' in {self.name}{_suggest(name, self.families)}")

    def __repr__(self):
        state = "" if self._core.is_open else ", closed"
        return f"<kiln.Bundle {self.name}: {', '.join(self.families)}{state}>"

    # the end

    def close(self):
        """Frees all buffers, unloads the kernels, releases the primary context if load() retained it, and closes the driver.
        No thread may be in a call, and no kernel may still run. Closing it again does nothing."""
        if self._core:
            self._core.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """After a kernel's fault closing fails too, but the first error must be shown."""
        with contextlib.suppress(*([Error] if kind else [])):
            self.close()
