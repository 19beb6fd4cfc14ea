"""Computes the page's figures from the inputs, without markup."""
import math
import re
from typing import NamedTuple

import devices


class Image(NamedTuple):
    target: str
    is_cubin: bool
    bytes: int       # in the bundle
    text_bytes: int  # uncompressed
    min_driver: int


class Variant(NamedTuple):
    id: str
    family: str
    params: dict
    sizes: set         # the names in its cost formula
    images: list
    owner: str         # the variant that has the images: kernels of one external PTX share them, and bytes count once
    threads: int       # 0: unknown
    shared_bytes: int  # the maximum of a launch
    registers: dict    # by target
    times: dict        # by target: milliseconds that ptxas took

    @property
    def bytes(self):
        return sum(i.bytes for i in self.images) if self.owner == self.id else 0


class Point(NamedTuple):
    """A variant's place in a device's roofline."""
    variant: Variant
    work: float
    bytes: float
    limit: str
    seconds: float


class Count(NamedTuple):
    """A launch's counts; tools/emulator/count/count.h defines them."""
    blocks: int
    instructions: int  # of warps
    wavefronts: int
    multiply_adds: int
    bytes: int         # of distinct sectors


def count_of(launch):
    kinds = "read", "write", "atomic"
    return Count(math.prod(launch["grid"]), launch["warp_instructions"], sum(launch["shared"][kind]["wavefronts"] for kind in kinds),
                 launch["tensor"]["multiply_adds"], 32 * sum(a[kind]["distinct_sectors"] for a in launch["allocations"] for kind in kinds))


class Report:
    """All figures. `counts` and `times` are empty if nothing was counted or timed."""
    def __init__(self, manifest, registers, counts, times, verifications, shown):
        self.manifest, self.counts, self.times, self.verifications, self.devices = manifest, counts, times, verifications, shown
        self.has_registers = bool(registers)
        registers, times = by_variant(registers), by_variant(times)
        self.variants = [variant_of(v, registers.get(v["id"], {}), times.get(v["id"], {})) for v in manifest["variants"]]
        self.families = list(dict.fromkeys(v.family for v in self.variants))
        used = {i.target for v in self.variants for i in v.images}
        self.targets = sorted(used, key=lambda t: (int(devices.TARGET.match(t)[1]), t))

    def of_family(self, family):
        return [v for v in self.variants if v.family == family]

    # ---- bytes ----

    def bytes_by(self):
        """{family: {target: bytes}}."""
        found = {f: {} for f in self.families}
        for v in self.variants:
            for i in v.images if v.owner == v.id else ():
                found[v.family][i.target] = found[v.family].get(i.target, 0) + i.bytes
        return found

    def differing(self, family):
        """Returns the parameters in which its variants differ."""
        of = [v.params for v in self.of_family(family)]
        return [name for name in of[0] if len({p.get(name) for p in of}) > 1]

    def values_of(self, family):
        """{parameter that differs: [(value, variants, bytes)]}, the most bytes first."""
        found = {}
        for name in self.differing(family):
            values = {}
            for v in self.of_family(family):
                values.setdefault(v.params.get(name, "-"), []).append(v.bytes)
            found[name] = sorted(((value, len(of), sum(of)) for value, of in values.items()), key=lambda row: -row[2])
        return found

    # ---- devices ----

    def registers_on(self, variant, device):
        target = devices.preferred(variant.registers, device)
        return variant.registers.get(target)

    def occupancy(self, variant, device):
        """Returns None if no image runs there, or its threads are unknown."""
        if not variant.threads or not devices.taken(variant.images, device):
            return None
        return devices.occupancy(device, variant.threads, variant.shared_bytes, self.registers_on(variant, device))

    def points(self, device):
        """Returns a point per variant that runs on the device and was counted."""
        for v in self.variants:
            if v.id in self.counts and devices.taken(v.images, device):
                point = limited(v, device, self.counts[v.id])
                if point.work and point.bytes:
                    yield point

    def milliseconds(self, variant, device):
        """Returns ptxas's time for the image that the device takes; None if it is unknown, or for a cubin, which is not compiled."""
        image = devices.taken(variant.images, device)
        return variant.times.get(image.target) if image and not image.is_cubin else None

    # ---- verifications ----

    def results(self, verification):
        return {row["id"]: row for row in verification["variants"]}


def by_variant(found):
    """{id: {target: value}}."""
    result = {}
    for (identity, target), value in found.items():
        result.setdefault(identity, {})[target] = value
    return result


def variant_of(v, registers, times):
    launch, block = v["launch"], v["launch"]["block"]
    images = [Image(i["target"], i.get("format") == "cubin", stored(i), i["bytes"], i["min_driver"]) for i in v["images"]]
    costs = " ".join(text for text in (v.get("cost") or {}).values() if isinstance(text, str))
    return Variant(v["id"], v["family"], v["params"], set(re.findall(r"[A-Za-z_]\w*", costs)), images, v.get("module") or v["id"], math.prod(block),
                   launch["static_shared_bytes"] + launch["max_shared_bytes"], registers, times)


def limited(v, device, launch):
    """In issue slots, including those that tensor-core products and shared-memory wavefronts occupy."""
    c = count_of(launch)
    slots = {"instructions": c.instructions, "shared memory": devices.SCHEDULERS * c.wavefronts,
             "tensor cores": sum(devices.product_cycles(device, s["name"], s["multiply_adds"]) for s in launch["tensor"]["shapes"])}
    limit = max(slots, key=slots.get)
    times = {"memory": c.bytes / device.bytes_per_second, limit: slots[limit] / device.slots_per_second}
    return Point(v, slots[limit], c.bytes, *max(times.items(), key=lambda t: t[1]))


def limits_of(rows):
    """Returns {argument: limit} over some variants' results: the largest number that the rules compare the argument with."""
    found = {}
    for row in rows:
        for name, limit in (row.get("limits") or {}).items():
            found[name] = max(found.get(name, 0), limit)
    return found


def ranges_of(rows):
    """Returns {argument: (least, most)}: the smallest and largest values over some variants' results."""
    found = {}
    for row in rows:
        for name, (least, most) in (row.get("ranges") or {}).items():
            before = found.get(name, (least, most))
            found[name] = min(before[0], least), max(before[1], most)
    return found


# ---- what changed -----------------------------------------------------------------------------------------------------------

class Change(NamedTuple):
    id: str
    what: list  # texts
    before: int # bytes
    after: int


class Changes(NamedTuple):
    bundle: list    # (what, before, after)
    families: list  # (family, bytes before, bytes after, what changed in its interface)
    added: list     # (id, bytes)
    removed: list
    changed: list   # Change
    moved: list     # Change: the same images for other targets
    alike: int


def stored(image):
    return image.get("stored_bytes") or image["bytes"]


def bytes_of(variant):
    return sum(map(stored, variant["images"])) if variant.get("module") in (None, variant["id"]) else 0


def differing(old, new, but=()):
    return [name for name in dict.fromkeys([*old, *new]) if name not in but and old.get(name) != new.get(name)]


def member_changes(old, new, path=""):
    """Returns the names of members that differ, except images; with both values if they are short."""
    for name in differing(old, new, ["images"]):
        a, b = old.get(name), new.get(name)
        if isinstance(a, dict) and isinstance(b, dict):
            yield from member_changes(a, b, f"{path}{name}.")
        else:
            a, b = shown(a), shown(b)
            yield f"{path}{name}" + (f": {a} -> {b}" if max(len(a), len(b)) <= MOST_LETTERS and "{" not in a + b else "")


MOST_LETTERS = 80


def shown(value):
    if isinstance(value, list):
        return " ".join(map(shown, value))
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def images_of(variant):
    return {(i["target"], i.get("format", "ptx")): i for i in variant["images"]}


def moves(old, new):
    """{old key: new key} of images whose bytes now belong to another target."""
    was, now = images_of(old), images_of(new)
    came = {(i["xxh3_128"], key[1]): key for key, i in now.items() if key not in was}
    return {key: came[i["xxh3_128"], key[1]] for key, i in was.items() if key not in now and (i["xxh3_128"], key[1]) in came}


def has_moved(old, new):
    """Returns whether only the targets of images differ."""
    moved, was = moves(old, new), images_of(old)
    there = {moved.get(key, key): {**i, "target": moved.get(key, key)[0]} for key, i in was.items()}
    return not differing(old, new, ["images"]) and there == images_of(new)


def image_changes(old, new):
    was, now = images_of(old), images_of(new)
    moved = moves(old, new)
    for key in dict.fromkeys([*was, *now]):
        name = key[0] + (" cubin" if key[1] == "cubin" else "")
        if key in moved:
            others = differing(was[key], now[moved[key]], ["target"])
            yield "; ".join([f"{name}: moved to {moved[key][0]}, {stored(was[key]):,} bytes", *others])
        elif key in moved.values():
            continue
        elif key not in now:
            yield f"{name}: removed, {stored(was[key]):,} bytes"
        elif key not in was:
            yield f"{name}: added, {stored(now[key]):,} bytes"
        elif was[key]["xxh3_128"] != now[key]["xxh3_128"]:
            yield f"{name}: {stored(was[key]):,} -> {stored(now[key]):,} bytes"
        elif was[key] != now[key]:
            yield f"{name}: {', '.join(differing(was[key], now[key]))}"


def changes(old, new):
    was, now = ({v["id"]: v for v in m["variants"]} for m in (old, new))
    changed, moved = [], []
    for identity in now:
        if identity in was and was[identity] != now[identity]:
            what = [*member_changes(was[identity], now[identity]), *image_changes(was[identity], now[identity])]
            change = Change(identity, what, bytes_of(was[identity]), bytes_of(now[identity]))
            (moved if has_moved(was[identity], now[identity]) else changed).append(change)
    members = [(name, old.get(name), new.get(name)) for name in differing(old, new, ["families", "variants"])]
    before, after = ({f["name"]: f for f in m["families"]} for m in (old, new))
    families = []
    for name in dict.fromkeys([*before, *after]):
        sums = [sum(bytes_of(v) for v in m["variants"] if v["family"] == name) for m in (old, new)]
        in_both = name in before and name in after
        families.append((name, *sums, differing(before[name], after[name]) if in_both else []))
    return Changes(members, families, [(i, bytes_of(now[i])) for i in now if i not in was],
                   [(i, bytes_of(was[i])) for i in was if i not in now], changed, moved,
                   sum(i in was and was[i] == now[i] for i in now))
