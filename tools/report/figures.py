"""Plain numbers, from what was read: what the page shows, and no markup."""
import math
from typing import NamedTuple

import devices
import expression
from inputs import fail

# What sizes are where nobody says: a matrix of 4096 x 4096, a step of a decoder with 16 sequences.
SIZES = {"m": 16, "nvfp4_gemv.m": 4096, "fp4_quantize.m": 4096, "batch": 16, "l": 1, "q_heads": 32, "kv_heads": 8, "k_heads": 8,
         "v_heads": 8, "q_length": 1, "sequences_q_rows": 16, "sequences_k_rows": 65536, "pages_count": 4096, "pages_size": 16,
         "group_size": 64, "rotary_dim": 16}
OTHER_SIZE, ONLY_SIZE = 4096, 4096 * 4096


class Image(NamedTuple):
    target: str
    is_cubin: bool
    bytes: int       # that the bundle holds of it
    text_bytes: int  # before it was compressed
    min_driver: int


class Variant(NamedTuple):
    id: str
    family: str
    entry: str
    images: list
    owner: str       # of the images: of external PTX another kernel may be; what is not owned adds no bytes
    threads: int     # 0: not known
    shared_bytes: int
    cost: tuple      # (elements, bytes) at the stated sizes, or None
    why: str         # there is none
    registers: dict  # by target

    @property
    def bytes(self):
        return sum(i.bytes for i in self.images) if self.owner == self.id else 0


class Point(NamedTuple):
    """What a variant needs of a device: its place in the roofline."""
    variant: Variant
    work: float
    bytes: float
    limit: str
    seconds: float


class Count(NamedTuple):
    """Of a launch; tools/emulator/count/count.h defines each."""
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
    """All of it. `counts` is None where nothing was counted."""
    def __init__(self, manifest, path, sizes, registers, counts, verifications, shown):
        self.manifest, self.counts, self.verifications, self.devices = manifest, counts, verifications, shown
        self.has_registers = bool(registers)
        self.sizes = {}  # family -> {name: number}, those that its costs name
        self.names = set()  # of all sizes, with their families and without
        by_id = {}
        for (identity, target), count in registers.items():
            by_id.setdefault(identity, {})[target] = count
        self.variants = [self.variant(f"{path}: variants[{i}]", v, sizes, by_id.get(v["id"], {}))
                         for i, v in enumerate(manifest["variants"])]
        self.families = list(dict.fromkeys(v.family for v in self.variants))
        used = {i.target for v in self.variants for i in v.images}
        self.targets = sorted(used, key=lambda t: (int(devices.TARGET.match(t)[1]), t))

    def variant(self, place, v, sizes, registers):
        launch, cost = v["launch"], v.get("cost") or {}
        nodes = {name: parse(text, f"{place}.cost.{name}") for name, text in cost.items() if isinstance(text, str)}
        rules = [(parse(r["condition"], f"{place}.rules[{k}].condition"), r["text"]) for k, r in enumerate(v.get("rules") or [])]
        named = set().union(*map(expression.names, nodes.values())) & {a["name"] for a in v["args"] if a["direction"] == "value"}
        own = self.sizes_of(v["family"], named, nodes.get("elements"), sizes)
        self.names.update(named, (f"{v['family']}.{name}" for name in named))
        why, values = broken(rules, own), {}
        if not why:
            for name, node in nodes.items():
                try:
                    values[name] = expression.evaluate(node, own)
                except (expression.Wrong, RecursionError) as error:
                    why = f"{cost[name]}: {error}"
        known = None
        if not why and {"elements", "bytes_read", "bytes_written"} <= values.keys():
            known = values["elements"], values["bytes_read"] + values["bytes_written"]
            self.sizes.setdefault(v["family"], {}).update((n, own[n]) for n in sorted(named))
        return Variant(v["id"], v["family"], v["entry"],
                       [Image(i["target"], i.get("format") == "cubin", stored(i), i["bytes"], i["min_driver"]) for i in v["images"]],
                       v.get("module") or v["id"], threads_of(launch["block"]), shared_of(launch, own, place), known, why, registers)

    def sizes_of(self, family, named, elements, given):
        only = {elements} if isinstance(elements, str) else set()
        return {name: given.get(f"{family}.{name}", given.get(name, SIZES.get(f"{family}.{name}", SIZES.get(
            name, ONLY_SIZE if name in only else OTHER_SIZE)))) for name in sorted(named)}

    # ---- bytes ----

    def bytes_by(self):
        """{family: {target: bytes}}."""
        found = {f: {} for f in self.families}
        for v in self.variants:
            for i in v.images if v.owner == v.id else ():
                found[v.family][i.target] = found[v.family].get(i.target, 0) + i.bytes
        return found

    # ---- devices ----

    def registers_on(self, variant, device):
        target = devices.preferred(variant.registers, device)
        return variant.registers.get(target)

    def occupancy(self, variant, device):
        """None: nothing of it runs there, or its threads are not known."""
        if not variant.threads or not devices.preferred([i.target for i in variant.images], device):
            return None
        return devices.occupancy(device, variant.threads, variant.shared_bytes, self.registers_on(variant, device))

    def points(self, device):
        """Of each variant that runs on the device and whose work is known."""
        for v in self.variants:
            if devices.preferred([i.target for i in v.images], device):
                point = self.counted(v, device) if self.counts is not None else self.stated(v, device)
                if point and point.work and point.bytes:
                    yield point

    def peak(self, device):
        """Work per second: issue slots that were counted; or the elements of the costs, of which none takes less than a
        multiply-add of the tensor cores."""
        return device.slots_per_second if self.counts is not None else device.multiply_adds_per_second

    def counted(self, v, device):
        if v.id not in self.counts:
            return None
        c = count_of(self.counts[v.id])
        slots = {"instructions": c.instructions, "shared memory": devices.SCHEDULERS * c.wavefronts,
                 "tensor cores": c.multiply_adds / devices.MULTIPLY_ADDS * device.mma_cycles}
        limit = max(slots, key=slots.get)
        return self.limited(v, device, slots[limit], c.bytes, limit)

    def stated(self, v, device):
        return self.limited(v, device, *v.cost, "tensor cores") if v.cost else None

    def limited(self, v, device, work, moved, limit):
        times = {"memory": moved / device.bytes_per_second, limit: work / self.peak(device)}
        limit = max(times, key=times.get)
        return Point(v, work, moved, limit, times[limit])

    # ---- verifications ----

    def results(self, verification):
        return {row["id"]: row for row in verification["variants"]}


def parse(text, place):
    try:
        return expression.parse(text)
    except (expression.Wrong, RecursionError) as error:
        fail(place, str(error))


def broken(rules, own):
    """The text of a rule that the sizes break; rules that name anything else (strides, workspaces, the device) do not count."""
    for condition, text in rules:
        try:
            if expression.names(condition) <= own.keys() and not expression.evaluate(condition, own):
                return text
        except (expression.Wrong, RecursionError):
            pass
    return ""


def threads_of(block):
    return block[0] * block[1] * block[2]


def shared_of(launch, own, place):
    """With what a launch of the stated sizes asks for; where that is not known, the least."""
    dynamic = launch["min_shared_bytes"]
    if launch.get("shared_bytes"):
        node = parse(launch["shared_bytes"], f"{place}.launch.shared_bytes")
        try:
            dynamic = expression.evaluate(node, own)
        except (expression.Wrong, RecursionError):
            pass
    return launch["static_shared_bytes"] + dynamic


# ---- what changed -----------------------------------------------------------------------------------------------------------

class Change(NamedTuple):
    id: str
    what: list  # texts
    before: int # bytes
    after: int


class Changes(NamedTuple):
    bundle: list    # (what, before, after)
    families: list  # (family, bytes before, bytes after, what changed in how it is called)
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
    """Of all members but images: with both values, where they are short."""
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
    """Whether only the targets of images differ."""
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
