"""Which elements wgmma and TMA read, and how many bits tensor cores keep in their sums.

A layout is found digit by digit. One operand is the identity matrix, so D shows single elements of the other operand,
whose shared memory holds one digit of each element's own index. Four launches give the index of every element that the
hardware reads, whatever the layout. B is found first, with A in registers; then an identity B is written to that layout.
"""
import ctypes
import functools
import struct

from probes.formats import BYTES, canonical, encode, fragment_a, swizzled, unpack_d
from probes.probe import Probe
from probes.text import address_bits, descriptor, expect, listed, plain, wait, wgmma

WINDOW = 1 << 16          # bytes of each operand's shared memory
DIGITS = 4                # in base 16: both formats hold a digit exactly
C_AT, IMAGE_AT = 2048, 2048 + 128 * 128 * 4
PLAIN_B = dict(major="K", swizzle=128, lbo=16, sbo=1024)


def wgmma_text(kind, n, form, a_major="K", b_major="K"):
    """Loads shared memory, A's registers and C; computes D = A * B + C `count` times. x and y are the descriptors."""
    transposes = int(a_major == "MN"), int(b_major == "MN")
    fours = [(listed("d", 4 * i, 4), 16 * i) for i in range(n // 8)]
    load = "\n".join(f"ld.global.v4.f32 {four}, [q3+{C_AT + at}];" for four, at in fours)
    store = "\n".join(f"st.global.v4.f32 [q3+{at}], {four};" for four, at in fours)
    return plain(f"""
add.u64 q3, data_, {IMAGE_AT}; mul.wide.u32 q4, tid, 16; add.u64 q3, q3, q4; shl.b32 r3, tid, 4; add.u32 r3, r3, base;
mov.u32 r4, {2 * WINDOW // 2048};
COPY:
ld.global.v4.b32 {listed("r", 10, 4)}, [q3]; st.shared.v4.b32 [r3], {listed("r", 10, 4)};
add.u64 q3, q3, 2048; add.u32 r3, r3, 2048; sub.u32 r4, r4, 1; setp.ne.u32 p0, r4, 0; @p0 bra COPY;
fence.proxy.async;
add.u64 q3, data_, q4; ld.global.v4.b32 {listed("a", 0, 4)}, [q3];
mul.wide.u32 q4, tid, {2 * n}; add.u64 q3, data_, q4;
{load}
mov.u64 da, x_; mov.u64 db, y_; add.u32 r3, base, {WINDOW};
{address_bits("da", "base")}{address_bits("db", "r3")}
bar.sync 0;
LOOP:
wgmma.fence.sync.aligned;
{wgmma(n, 0 if form == "registers" else "da", "db", kind, transposes)}
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
sub.u32 n, n, 1; setp.ne.u32 p0, n, 0; @p0 bra LOOP;
add.u64 q3, out_, q4;
{store}""", target="sm_90a", directives=".reqntid 128, 1, 1")


def multiply(gpu, text, kind, n, a=None, a_image=b"", b_image=b"", c=None, x=0, y=0, count=1):
    data = gpu.buffer("operands", IMAGE_AT + 2 * WINDOW)
    gpu.upload(data, (a or bytes(2048)).ljust(C_AT, b"\0") + (c or b"").ljust(IMAGE_AT - C_AT, b"\0")
               + a_image.ljust(WINDOW, b"\0") + b_image.ljust(WINDOW, b"\0"))
    gpu.run(text, 1, 128, count, data, x, y, shared_bytes=2 * WINDOW)
    gpu.synchronize()
    return unpack_d(gpu.download(gpu.out, 256 * n), n)


@functools.lru_cache(None)
def digits(kind, place):
    return encode(kind, [index >> 4 * place & 15 for index in range(WINDOW // BYTES[kind])])


def combined(products, element):
    """The index of an element from its digits; None if one is not a digit."""
    index = [product[i][j] for product in products for i, j in [element]]
    return sum(int(d) << 4 * place for place, d in enumerate(index)) if all(d in range(16) for d in index) else None


def start_and_flags(layout, start):
    return descriptor(layout["swizzle"], layout["lbo"], layout["sbo"]) + (start >> 4)


def read_b(gpu, kind, n, layout, start):
    """{(row, k): index of the element of B}"""
    depth = 32 // BYTES[kind]
    unit = fragment_a(kind, lambda row, k: float(row == k))
    text = wgmma_text(kind, n, "registers", b_major=layout["major"])
    products = [multiply(gpu, text, kind, n, a=unit, b_image=digits(kind, place), y=start_and_flags(layout, start))
                for place in range(DIGITS)]
    return {(row, k): combined(products, (k, row)) for row in range(n) for k in range(depth)}


def read_a(gpu, kind, layout, start, form):
    """Like read_b, for A in shared memory; for A in registers, the element's number among all that the threads hold."""
    n, depth, size = 32, 32 // BYTES[kind], BYTES[kind]
    b_map, one, image = read_b(gpu, kind, n, PLAIN_B, 0), encode(kind, [1.0]), bytearray(WINDOW)
    for k in range(depth):
        image[b_map[k, k] * size:b_map[k, k] * size + size] = one
    text = wgmma_text(kind, n, form, a_major=layout["major"])
    products = [multiply(gpu, text, kind, n, a=digits(kind, place)[:2048], a_image=digits(kind, place),
                         b_image=bytes(image), x=start_and_flags(layout, start), y=start_and_flags(PLAIN_B, 0))
                for place in range(DIGITS)]
    return {(row, k): combined(products, (row, k)) for row in range(64) for k in range(depth)}


def measure_map(gpu, operand, kind, n, start, **layout):
    depth, size = 32 // BYTES[kind], BYTES[kind]
    if operand == "B":
        found = read_b(gpu, kind, n, layout, start)
    else:
        found = read_a(gpu, kind, layout, start, "registers" if operand == "A registers" else "shared")
    rows = n if operand == "B" else 64
    if operand == "A registers":
        order = fragment_order(kind)
        wanted = {element: order[element] for element in found}
    else:
        wanted = {(row, k): swizzled(canonical(kind, row=row, k=k, **layout) + start, layout["swizzle"]) // size
                  for row, k in found}
    powers = lambda end: [0] + [1 << bit for bit in range(end.bit_length()) if 1 << bit < end]
    result = {"value": int(found == wanted), "right": found == wanted,
              "rows": {row: found[row, 0] for row in powers(rows)}, "ks": {k: found[0, k] for k in powers(depth)}}
    if found != wanted:
        result["wrong"] = sum(found[element] != wanted[element] for element in found)
        result["map"] = {"k=0": [found[row, 0] for row in range(rows)], "row=0": [found[0, k] for k in range(depth)],
                         "row=9": [found[9, k] for k in range(depth)]}
    return result


def fragment_order(kind):
    """(row, k) -> the place of the element in the registers of all threads."""
    places = []
    fragment_a(kind, lambda row, k: places.append((row, k)) or 0.0)
    return {element: place for place, element in enumerate(places)}


def map_text(operand, kind, n, major, **_):
    if operand == "B":
        return wgmma_text(kind, n, "registers", b_major=major)
    return wgmma_text(kind, 32, "registers" if operand == "A registers" else "shared", a_major=major)


def map_case(operand, major, swizzle, lbo, sbo, start=0, n=64, kind="f16"):
    return locals()


MAPS = [map_case(*row[:5], **(row[5] if len(row) > 5 else {})) for row in [
    ("B", "K", 128, 16, 1024), ("B", "K", 128, 16, 1024, {"start": 32}), ("B", "MN", 128, 8192, 1024, {"n": 128}),
    ("A registers", "K", 128, 16, 1024), ("A", "K", 128, 16, 1024), ("A", "MN", 128, 8192, 1024),
    ("B", "K", 128, 16, 1024, {"kind": "e4m3"}), ("A", "K", 128, 16, 1024, {"kind": "e4m3"}),
    ("A registers", "K", 128, 16, 1024, {"kind": "e4m3"}), ("B", "K", 128, 16, 1024, {"kind": "e4m3", "start": 32}),
    ("B", "MN", 128, 8192, 1024, {"n": 128, "start": 2048}), ("B", "MN", 128, 1024, 4096, {"n": 256}),
    ("B", "K", 128, 4096, 2048), ("B", "K", 128, 16, 1024, {"start": 512}), ("B", "K", 128, 16, 1024, {"n": 256, "start": 96}),
    ("B", "K", 64, 16, 512), ("B", "K", 64, 16, 512, {"start": 32}), ("B", "K", 32, 16, 256), ("B", "K", 0, 128, 256),
    ("B", "K", 0, 2048, 128), ("B", "MN", 64, 4096, 512), ("B", "MN", 32, 2048, 256), ("B", "MN", 0, 128, 256),
    ("B", "MN", 0, 2048, 128), ("A", "K", 128, 16, 1024, {"start": 64}), ("A", "K", 64, 16, 512), ("A", "K", 32, 16, 256),
    ("A", "K", 0, 128, 256), ("A", "MN", 64, 4096, 512), ("A", "MN", 32, 2048, 256), ("A", "MN", 0, 128, 256),
    ("B", "K", 0, 128, 256, {"kind": "e4m3"}), ("A", "K", 64, 16, 512, {"kind": "e4m3"})]]


# Sums. Every element of B is 1, so D[0][0] is the sum of row 0 of A and of C[0][0].

def mma_text(kind, **_):
    shape, target = ("m16n8k32", "sm_89") if kind == "e4m3" else ("m16n8k16", "sm_80")
    one = 0x38383838 if kind == "e4m3" else 0x3c003c00
    return plain(f"""
mul.wide.u32 q4, tid, 16; add.u64 q3, data_, q4; ld.global.v4.b32 {listed("a", 0, 4)}, [q3];
ld.global.v4.f32 {listed("d", 0, 4)}, [q3+{C_AT}]; mov.b32 a4, {one};
LOOP:
mma.sync.aligned.{shape}.row.col.f32.{kind}.{kind}.f32 {listed("d", 0, 4)}, {listed("a", 0, 4)}, {{a4, a4}}, {listed("d", 0, 4)};
sub.u32 n, n, 1; setp.ne.u32 p0, n, 0; @p0 bra LOOP;
add.u64 q3, out_, q4; st.global.v4.f32 [q3], {listed("d", 0, 4)};""", target=target, directives=".maxntid 32, 1, 1")


def sums_text(by, kind, **_):
    return mma_text(kind) if by == "mma" else wgmma_text(kind, 8, "registers")


def total(gpu, by, kind, terms, c=0.0, count=1):
    text, start = sums_text(by, kind), struct.pack("<f", c)
    a = fragment_a(kind, lambda row, k: terms[k] if row == 0 and k < len(terms) else 0.0)
    if by == "wgmma":
        ones = encode(kind, [1.0]) * (WINDOW // BYTES[kind])
        y = descriptor(128, 16, 1024)
        return multiply(gpu, text, kind, 8, a=a, b_image=ones, c=start, y=y, count=count)[0][0]
    data = gpu.buffer("operands", IMAGE_AT + 2 * WINDOW)
    gpu.upload(data, a[:512].ljust(C_AT, b"\0") + start.ljust(512, b"\0"))
    gpu.run(text, 1, 32, count, data)
    gpu.synchronize()
    return struct.unpack("<f", gpu.download(gpu.out, 4))[0]


def measure_sums(gpu, by, kind, fact):
    add = functools.partial(total, gpu, by, kind)
    top, low = (15, -24) if kind == "f16" else (8, -9)
    X, depth = 2.0 ** top, 32 // BYTES[kind]

    def kept_bits(sum_of):
        """The largest k with X + X * 2^-k - X exact: bits kept below the leading bit of the larger term."""
        kept = [k for k in range(1, top - low + 1) if sum_of(X * 2.0 ** -k) == X * 2.0 ** -k]
        return {"value": max(kept, default=0), "has_gaps": len(kept) != max(kept, default=0), "of": top - low}

    def ulps(got, one):
        return {"value": (got - one) / (abs(one) * 2.0 ** -23), "got": float.hex(got)}

    tiny, third = 2.0 ** low, [2.0 ** low] * 3
    if fact == "bits of products beside a product":
        return kept_bits(lambda x: add([X, x, -X]))
    if fact == "bits of products beside the addend":
        return kept_bits(lambda x: add([x, -X], X))
    if fact == "bits of the addend beside products":
        return kept_bits(lambda x: add([X, -X], x))
    if fact == "bits of the addend beside a zero product":
        return {"value": add([0.0], 1 + 2.0 ** -23), "expected": 1 + 2.0 ** -23}
    if fact == "places of k kept below those bits":
        k = min(kept_bits(lambda x: add([X, x, -X]))["value"] + 1, top - low)
        x = X * 2.0 ** -k
        kept = [i for i in range(2, depth) if add([X, -X] + [0.0] * (i - 2) + [x]) == x]
        return {"value": len(kept), "kept": kept, "below": k}
    if fact.startswith("ulps of"):  # sums that f32 cannot hold: rounded or truncated, per addend or in total
        terms = {"3/2": third, "-3/2": [-t for t in third], "-1/2": [-tiny], "1 in halves": [tiny, tiny], "1/2": [tiny]}
        one, name = 2.0 ** (low + 24), fact[len("ulps of "):]
        return ulps(add(terms[name], one), one)
    if fact == "ulps after 16 instructions of 3/2":
        one = 2.0 ** (low + 24)
        return ulps(add(third, one, count=16), one)
    if fact == "smallest element":
        return {"value": add([tiny]), "expected": tiny}
    return {"value": add([0.0], 2.0 ** -140), "expected": 2.0 ** -140}  # a subnormal addend


FACTS = ["bits of products beside a product", "bits of products beside the addend", "bits of the addend beside products",
         "bits of the addend beside a zero product", "places of k kept below those bits", "ulps of 3/2", "ulps of -3/2",
         "ulps of 1 in halves", "ulps of 1/2", "ulps of -1/2", "ulps after 16 instructions of 3/2", "smallest element",
         "subnormal addend"]
SUMS = {by: [dict(by=by, kind=kind, fact=fact) for kind in ("f16", "e4m3") for fact in FACTS] for by in ("mma", "wgmma")}


# Tensor maps: a box of a matrix in which each element is its own index + 1.

ROWS, ELEMENT = 37, 2
UINT16, PADDED = 1, 0xffff


def tma_text(box_columns, box_rows, **_):
    bytes_ = box_columns * box_rows * ELEMENT
    return plain(f"""
cvt.u32.u64 r10, x_; cvt.u32.u64 r11, y_; add.u32 r12, base, {bytes_};
setp.ne.u32 p0, tid, 0; @p0 bra READY;
mbarrier.init.shared::cta.b64 [r12], 1; fence.mbarrier_init.release.cluster;
{expect("r12", bytes_)}
mov.b64 q3, map; cvta.param.u64 q3, q3;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [base], [q3, {{r10, r11}}], [r12];
READY:
bar.sync 0;
{wait("r12", "0", "W", "END")}
shl.b32 r3, tid, 2;
COPY:
setp.ge.u32 p0, r3, {bytes_}; @p0 bra END;
add.u32 r4, base, r3; ld.shared.b32 r5, [r4]; cvt.u64.u32 q4, r3; add.u64 q4, q4, out_; st.global.b32 [q4], r5;
add.u32 r3, r3, 512; bra COPY;
END:
setp.ne.u32 p0, tid, 0; @p0 bra LEAVE;
st.global.u32 [out_+{1 << 19}], failed;
LEAVE:""", target="sm_90", more=", .param .align 64 .b8 map[128]", directives=".reqntid 128, 1, 1")


def encode_map(gpu, address, columns, pitch, box_columns, box_rows, swizzle):
    room = ctypes.create_string_buffer(256)
    at = (ctypes.addressof(room) + 127) & ~127
    words = ctypes.c_uint64 * 2
    gpu.call("cuTensorMapEncodeTiled", ctypes.c_void_p(at), UINT16, 2, ctypes.c_void_p(address), words(columns, ROWS),
             (ctypes.c_uint64 * 1)(pitch), (ctypes.c_uint32 * 2)(box_columns, box_rows), (ctypes.c_uint32 * 2)(1, 1), 0,
             {0: 0, 32: 1, 64: 2, 128: 3}[swizzle], 0, 0)
    return (ctypes.c_ubyte * 128).from_buffer_copy(ctypes.string_at(at, 128))


def measure_tma(gpu, x, y, columns, pitch, box_columns, box_rows, swizzle):
    matrix = [[PADDED if c >= columns else r * columns + c + 1 for c in range(pitch // 2)] for r in range(ROWS)]
    data, bytes_ = gpu.buffer("matrix", ROWS * 4096), box_columns * box_rows * ELEMENT
    gpu.upload(data, b"".join(struct.pack(f"<{pitch // 2}H", *row) for row in matrix))
    function = gpu.load(tma_text(box_columns, box_rows))
    block = encode_map(gpu, data, columns, pitch, box_columns, box_rows, swizzle)
    arguments = [ctypes.c_uint64(gpu.out), ctypes.c_uint64(0), ctypes.c_uint64(x & 0xffffffff),
                 ctypes.c_uint64(y & 0xffffffff), ctypes.c_uint32(1), block]
    gpu.launch(function, 1, 128, arguments, shared_bytes=bytes_ + 8)
    gpu.synchronize()
    if gpu.download(gpu.out + (1 << 19), 4) != bytes(4):
        raise RuntimeError("the copy never completed its mbarrier")
    found, wanted = struct.unpack(f"<{bytes_ // 2}H", gpu.download(gpu.out, bytes_)), [None] * (bytes_ // 2)
    for r in range(box_rows):
        for c in range(box_columns):
            inside = 0 <= y + r < ROWS and 0 <= x + c < columns
            at = swizzled((r * box_columns + c) * ELEMENT, swizzle) // ELEMENT
            wanted[at] = matrix[y + r][x + c] if inside else 0
    right = list(found) == wanted
    return {"value": int(right), "right": right,
            **({} if right else {"first": found[:16], "wrong": [i for i, f in enumerate(found) if f != wanted[i]][:16],
                                 "by_eights": found[::8][:64]})}


def tma_case(x, y, swizzle, box_columns=64, box_rows=16, columns=200, pitch=416):
    return locals()


# Last: on an H100 a box whose first column is not a multiple of 16 bytes loses the context (CUDA_ERROR_ILLEGAL_INSTRUCTION).
BOXES = [tma_case(*row[:3], **(row[3] if len(row) > 3 else {})) for row in [
    (0, 0, 128), (0, 5, 128), (0, -3, 128), (8, 5, 128), (-8, -3, 128), (-64, 0, 128), (160, 30, 128), (192, 36, 128), (304, 50, 128),
    (0, 5, 0), (8, 3, 0), (0, 0, 128, {"columns": 201, "pitch": 432}), (0, 2, 128, {"columns": 65, "pitch": 144}),
    (0, 1, 64, {"box_columns": 32}), (0, 1, 32, {"box_columns": 16}), (0, 0, 128, {"box_rows": 256}),
    (8, 1, 0, {"box_columns": 8, "box_rows": 1}), (0, 0, 0, {"box_columns": 256, "box_rows": 8}), (8, 1, 128, {"box_columns": 32}),
    (3, 0, 128), (4, 0, 0), (1, 0, 64, {"box_columns": 32})]]

VALUES = Probe("wgmma_values", 4, "right", MAPS, map_text, measure_map)
MMA_SUMS = Probe("mma_sums", 1.5, "", SUMS["mma"], sums_text, measure_sums)
WGMMA_SUMS = Probe("wgmma_sums", 2, "", SUMS["wgmma"], sums_text, measure_sums)
TENSOR_MAPS = Probe("tensor_maps", 1.5, "right", BOXES, tma_text, measure_tma)
