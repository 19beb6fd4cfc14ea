"""GPUs: their sizes and rates (generator/target/devices.def, which the program contains), the image that each takes, occupancy,
and the roofline."""
import pkgutil
import re
from typing import NamedTuple

from inputs import TARGET

ROW = re.compile(r'^DEVICE\("([^"]+)",\s*([\d,\s]+)\)', re.M)
WARP, SCHEDULERS, REGISTERS = 32, 4, 65536  # per multiprocessor, on all of them
# (types in a product's name, multiply-adds, member): a scheduler's tensor core takes the member's cycles for these multiply-adds
# (include/kiln/kiln.h). As in kiln's estimates, 8-bit floats take half the cycles of 16-bit ones, tf32 takes twice as many, and
# 4-bit integers take half the cycles of 8-bit ones.
PRODUCTS = ((r"kind::mxf4", 2048, "mma_fp4_cycles"), (r"\.[su]8\b", 1024, "mma_s8_cycles"), (r"\.[su]4\b", 2048, "mma_s8_cycles"),
            (r"\.e[2345]m[123]\b", 512, "mma_cycles"), (r"\.tf32\b", 128, "mma_cycles"), ("", 256, "mma_cycles"))


class Device(NamedTuple):
    name: str
    sm: int
    multiprocessors: int
    shared_kb: int
    multiprocessor_shared_kb: int
    threads: int
    blocks: int
    mhz: int
    gb_per_s: int
    mma_cycles: int
    mma_s8_cycles: int
    mma_fp4_cycles: int

    @property
    def bytes_per_second(self):
        return self.gb_per_s * 1e9

    @property
    def slots_per_second(self):
        """Returns the warp instructions that all schedulers issue."""
        return SCHEDULERS * self.multiprocessors * self.mhz * 1e6


def read_devices():
    text = pkgutil.get_data("devices", "devices.def").decode("utf-8")
    return [Device(name, *map(int, numbers.split(","))) for name, numbers in ROW.findall(text)]


DEVICES = read_devices()


def find_device(name):
    """Finds a device by its target, or by words of its name; otherwise returns the list of names."""
    words = name.lower().split()
    exact = [d for d in DEVICES if name.lower() in (d.name.lower(), f"sm_{d.sm}")]
    some = [d for d in DEVICES if words and set(words) <= set(d.name.lower().split())]
    if exact or len(some) == 1:
        return (exact or some)[0]
    return [d.name for d in some or DEVICES]


def standing_for(targets):
    """Returns the first device of each target's number."""
    numbers = {int(TARGET.match(t)[1]) for t in targets if TARGET.match(t)}
    return [next(d for d in DEVICES if d.sm == sm) for sm in sorted(numbers & {d.sm for d in DEVICES})]


def runs_on(target, device, is_cubin=False):
    number, kind = TARGET.match(target).groups()
    number = int(number)
    if is_cubin or kind == "a":
        return number == device.sm
    return number <= device.sm and (kind != "f" or number // 10 == device.sm // 10)


def rank(target):
    """Architecture- and family-specific targets come first, then the newest."""
    number, kind = TARGET.match(target).groups()
    return kind != "", int(number), kind == "a"


def preferred(targets, device):
    """Returns the target that the device takes; None if it takes none."""
    return max((t for t in targets if runs_on(t, device)), key=rank, default=None)


def taken(images, device):
    """Returns the image that the runtime picks (runtime/select.c), whatever the driver's version; None if it takes none."""
    return max((i for i in images if runs_on(i.target, device, i.is_cubin)), key=lambda i: (i.is_cubin, rank(i.target)), default=None)


def product_cycles(device, name, multiply_adds):
    """Returns the cycles of one scheduler's tensor core for products of a shape that the emulated driver names."""
    unit, member = next((unit, member) for types, unit, member in PRODUCTS if re.search(types, name))
    return multiply_adds / unit * getattr(device, member)


def occupancy(device, threads, shared_bytes, registers):
    """Returns resident warps in percent of the maximum, as CUDA's occupancy calculator does. Without registers this is an
    upper bound. 0: not even one thread block fits."""
    if shared_bytes > device.shared_kb * 1024:
        return 0
    warps = -(-threads // WARP)
    reserved = 1024 if device.sm >= 80 else 0
    blocks = min(device.blocks, device.threads // (warps * WARP))
    if shared_bytes or reserved:
        blocks = min(blocks, device.multiprocessor_shared_kb * 1024 // (-(-shared_bytes // 128) * 128 + reserved))
    if registers:
        of_warp = -(-registers * WARP // 256) * 256
        blocks = min(blocks, REGISTERS // SCHEDULERS // of_warp * SCHEDULERS // warps)
    return 100 * blocks * warps * WARP / device.threads
