"""The CUDA driver through ctypes: as much of it as the probes need."""
import ctypes
import statistics

SHARED_OPT_IN = 8      # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
SHARED_CARVEOUT = 9    # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, in percent
CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
DEPENDENT_LAUNCH = 6   # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
RELAXED_CAPTURE = 2
ATTRIBUTES = {"sms": 16, "clock_khz": 13, "memory_khz": 36, "bus_bits": 37, "l2_bytes": 38, "sm_threads": 39, "sm_shared_bytes": 81,
              "block_shared_bytes": 97, "major": 75, "minor": 76}


class NotAvailable(RuntimeError):
    """The driver cannot load the PTX, or lacks an entry point."""


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_uint32 * 16)]


class Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared_bytes", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint)]


class Gpu:
    def __init__(self, path, small):
        self.library, self.small = ctypes.CDLL(path), small
        self.call("cuInit", 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)
        self.facts = {}
        for name, number in ATTRIBUTES.items():
            value = ctypes.c_int()
            self.call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
            self.facts[name] = value.value
        name, version = ctypes.create_string_buffer(100), ctypes.c_int()
        self.call("cuDeviceGetName", name, 100, device)
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.facts.update(name=name.value.decode(), driver_version=version.value)
        self.sms = self.facts["sms"]
        self.stream, self.events = ctypes.c_void_p(), [ctypes.c_void_p(), ctypes.c_void_p()]
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        for event in self.events:
            self.call("cuEventCreate", ctypes.byref(event), 0)
        self.kernels, self.buffers = {}, {}
        self.out = self.buffer("out", 1 << 20)

    def call(self, name, *arguments):
        self.caller(name, *arguments)()

    def caller(self, name, *arguments, kept=()):
        """A function that calls the driver's entry point with these arguments, and keeps what they point to."""
        try:
            function = getattr(self.library, name)
        except AttributeError:
            raise NotAvailable(f"the driver lacks {name}") from None

        def call(_kept=kept):
            status = function(*arguments)
            if status:
                text = ctypes.c_char_p()
                self.library.cuGetErrorName(status, ctypes.byref(text))
                raise RuntimeError(f"{name}: {(text.value or b'error').decode()} ({status})")
        return call

    def buffer(self, name, bytes_):
        """A zeroed buffer, kept under its name."""
        if name not in self.buffers:
            pointer = ctypes.c_uint64()
            self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(bytes_))
            self.call("cuMemsetD8_v2", pointer, ctypes.c_ubyte(0), ctypes.c_size_t(bytes_))
            self.synchronize()
            self.buffers[name] = pointer.value
        return self.buffers[name]

    def upload(self, address, data):
        """Waits for the copy: a stream that does not wait for the default stream would race with it."""
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), data, ctypes.c_size_t(len(data)))
        self.synchronize()

    def download(self, address, bytes_):
        data = ctypes.create_string_buffer(bytes_)
        self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(address), ctypes.c_size_t(bytes_))
        return data.raw

    def load(self, text, entry="k"):
        if text not in self.kernels:
            module, function, log = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(4096)
            options = (ctypes.c_int * 2)(5, 6)  # the error log and its size
            values = (ctypes.c_void_p * 2)(ctypes.addressof(log), 4096)
            try:
                self.call("cuModuleLoadDataEx", ctypes.byref(module), text.encode(), 2, options, values)
                self.call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
            except RuntimeError as error:
                raise NotAvailable(f"{error} {' '.join(log.value.decode(errors='replace').split())[:200]}") from None
            self.kernels[text] = function
        return self.kernels[text]

    def allow_shared(self, function, shared_bytes):
        if shared_bytes > 16 << 10:  # several such thread blocks per multiprocessor need the whole shared memory
            self.call("cuFuncSetAttribute", function, SHARED_OPT_IN, ctypes.c_int(shared_bytes))
            self.call("cuFuncSetAttribute", function, SHARED_CARVEOUT, ctypes.c_int(100))

    def launch(self, function, grid, block, arguments, shared_bytes=0, is_dependent=False):
        self.launcher(function, grid, block, arguments, shared_bytes, is_dependent)()

    def launcher(self, function, grid, block, arguments, shared_bytes=0, is_dependent=False):
        """A function that launches: what Python does for a launch is done once. `grid`: in x, or in all three dimensions."""
        self.allow_shared(function, shared_bytes)
        grid = grid if isinstance(grid, tuple) else (grid, 1, 1)
        pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        if not is_dependent:
            words = [*map(ctypes.c_uint, (*grid, block, 1, 1, shared_bytes)), self.stream, pointers, None]
            return self.caller("cuLaunchKernel", function, *words, kept=arguments)
        attribute = Attribute(DEPENDENT_LAUNCH, 0, (ctypes.c_uint32 * 16)(1))
        config = Config(grid, (block, 1, 1), shared_bytes, self.stream, ctypes.pointer(attribute), 1)
        return self.caller("cuLaunchKernelEx", ctypes.pointer(config), function, pointers, None, kept=arguments)

    def run(self, text, grid, block, count, data=0, x=0, y=0, shared_bytes=0, is_dependent=False):
        """Launches a kernel with the parameters that text.plain() declares."""
        self.runner(text, grid, block, count, data, x, y, shared_bytes, is_dependent)()

    def runner(self, text, grid, block, count, data=0, x=0, y=0, shared_bytes=0, is_dependent=False):
        return self.launcher(self.load(text), grid, block,
                             [ctypes.c_uint64(self.out), ctypes.c_uint64(data), ctypes.c_uint64(x & (1 << 64) - 1),
                              ctypes.c_uint64(y), ctypes.c_uint32(count)], shared_bytes, is_dependent)

    def synchronize(self):
        self.call("cuCtxSynchronize")

    def seconds(self, enqueue, repeats=5):
        """The median time of what `enqueue` launches, after one untimed run."""
        times = []
        for _ in range(1 + (1 if self.small else repeats)):
            self.call("cuEventRecord", self.events[0], self.stream)
            enqueue()
            self.call("cuEventRecord", self.events[1], self.stream)
            self.call("cuEventSynchronize", self.events[1])
            milliseconds = ctypes.c_float()
            self.call("cuEventElapsedTime", ctypes.byref(milliseconds), *self.events)
            times.append(max(milliseconds.value, 1e-6) / 1e3)
        return statistics.median(times[1:])

    def clocks(self, thread_blocks):
        """(median clocks, median extra word) over the thread blocks of the last timed launch."""
        self.synchronize()
        words = memoryview(self.download(self.out, 16 * thread_blocks)).cast("I").tolist()
        if any(words[2::4]):
            raise RuntimeError("a bounded wait for an mbarrier ran out")
        clocks = [low + (high << 32) for low, high in zip(words[0::4], words[1::4])]
        return max(statistics.median(clocks), 1), statistics.median(words[3::4])

    def graph(self, enqueue):
        """A function that launches the graph that `enqueue` was captured into."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuStreamBeginCapture_v2", self.stream, RELAXED_CAPTURE)
        enqueue()
        self.call("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_uint64(0))
        return lambda: self.call("cuGraphLaunch", executable, self.stream)
