"""Reads the GPU's clocks, power and temperature from NVML. Values that NVML does not give are left out."""
import ctypes

SM_CLOCK, MEMORY_CLOCK = 1, 2  # nvmlClockType_t


class Card:
    def __init__(self, ordinal=0):
        self.nvml, self.handle = None, ctypes.c_void_p()
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
            is_open = nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(ordinal, ctypes.byref(self.handle)) == 0
            self.nvml = nvml if is_open else None
        except (OSError, AttributeError):
            pass

    def number(self, function, *arguments):
        value = ctypes.c_uint()
        result = getattr(self.nvml, function)(self.handle, *arguments, ctypes.byref(value))
        return value.value if result == 0 else None

    def read(self):
        """{"sm_mhz", "memory_mhz", "watts", "celsius"}, as far as they can be read."""
        if not self.nvml:
            return {}
        milliwatts = self.number("nvmlDeviceGetPowerUsage")
        values = {"sm_mhz": self.number("nvmlDeviceGetClockInfo", SM_CLOCK),
                  "memory_mhz": self.number("nvmlDeviceGetClockInfo", MEMORY_CLOCK),
                  "watts": milliwatts and round(milliwatts / 1000),
                  "celsius": self.number("nvmlDeviceGetTemperature", 0)}
        return {name: value for name, value in values.items() if value is not None}

    def driver(self):
        """The driver's version, such as "580.159.04", or None."""
        text = ctypes.create_string_buffer(80)
        return text.value.decode() if self.nvml and self.nvml.nvmlSystemGetDriverVersion(text, 80) == 0 else None
