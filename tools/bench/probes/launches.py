"""The cost of launches, dependences between kernels, split-K reductions and atomics."""
from probes.probe import Probe, product
from probes.text import each, plain, timed

CHAIN = 50


def empty_text(**_):
    return plain("")


def measure_empty(gpu, grid, block, shared_kb, way):
    kernels = 2 if gpu.small else 200
    launch = gpu.runner(empty_text(), grid, block, 1, shared_bytes=shared_kb << 10)

    def enqueue():
        for _ in range(kernels):
            launch()

    run = gpu.graph(enqueue) if way == "graph" else enqueue
    return {"value": round(gpu.seconds(run) / kernels * 1e6, 3)}


EMPTY = Probe("empty_launches", 2, "us/kernel", product(way=["graph"], shared_kb=[0, 96], block=[128, 512],
                                                        grid=[1, 132, 264, 1056, 8448, 65536])
              + product(way=["stream"], shared_kb=[0], block=[128], grid=[1, 132, 1056]), empty_text, measure_empty)


# Waves: each thread block waits for a fixed number of clocks, so all of a wave end together; the time beyond is the wave's cost.

SPIN = 20000


def wave_text(**_):
    return plain("""
mov.u64 begin, %clock64; add.u64 q4, begin, x_;
SPIN:
mov.u64 end, %clock64; setp.lt.u64 p0, end, q4; @p0 bra SPIN;""")


def measure_wave(gpu, waves, resident):
    """Shared memory limits the thread blocks per multiprocessor to `resident`. `clocks`: a launch's, at the device's clock."""
    shared = (gpu.facts["sm_shared_bytes"] // resident - 1024) & ~1023
    shared = min(shared, gpu.facts["block_shared_bytes"])
    spin, launches = (200, 1) if gpu.small else (SPIN, 20)
    launch = gpu.runner(wave_text(), gpu.sms * resident * waves, 128, 1, x=spin, shared_bytes=shared)
    seconds = gpu.seconds(lambda: [launch() for _ in range(launches)]) / launches
    return {"value": round(seconds * 1e6, 3), "spin": spin, "clocks": round(seconds * gpu.facts["clock_khz"] * 1e3)}


WAVES = Probe("waves", 1, "us/kernel", product(resident=[1, 2, 4], waves=[1, 2, 3, 4, 8]), wave_text, measure_wave)


# A chain: each kernel adds 1 to the output of the preceding kernel, one word per thread.

def chain_text(dependent, **_):
    return plain(f"""
{"griddepcontrol.launch_dependents;" if dependent == "early" else ""}
mad.lo.u32 r10, cta, 256, tid; mul.wide.u32 q4, r10, 4; add.u64 q4, q4, data_;
{"griddepcontrol.wait;" if dependent != "no" else ""}
ld.global.cg.u32 r11, [q4]; add.u32 r11, r11, 1; st.global.u32 [q4], r11;
{"griddepcontrol.launch_dependents;" if dependent == "late" else ""}""", target="sm_90", directives=".maxntid 256, 1, 1")


def measure_chain(gpu, dependent, way, grid):
    text, kernels, words = chain_text(dependent), 3 if gpu.small else CHAIN, grid * 256
    data = gpu.buffer("chain", 1 << 20)
    add = gpu.runner(text, grid, 256, 1, data, is_dependent=dependent != "no")

    def enqueue():
        for _ in range(kernels):
            add()

    launch = gpu.graph(enqueue) if way == "graph" else enqueue
    gpu.upload(data, bytes(4 * words))
    launch()
    gpu.synchronize()
    counted = set(memoryview(gpu.download(data, 4 * words)).cast("I"))
    return {"value": round(gpu.seconds(launch) / kernels * 1e6, 3), "right": counted == {kernels}}


CHAINS = Probe("dependent_launches", 1.5, "us/kernel",
               [dict(dependent=d, way=way, grid=grid) for way in ("graph", "stream") for d in ("no", "early", "late")
                for grid in (132, 528)], chain_text, measure_chain)


# Split-K: each thread block writes 16 KB of partial sums; the last thread block of a tile adds them.

JOINS = 20


def join_text(**_):
    return plain("""
.shared .b32 last;
cvt.u32.u64 r10, x_; div.u32 r11, cta, r10; mad.lo.u32 r12, cta, 1024, tid;
mul.wide.u32 q4, r12, 16; add.u64 q4, q4, data_; cvt.rn.f32.u32 f0, tid;
st.global.v4.f32 [q4], {f0, f0, f0, f0}; st.global.v4.f32 [q4+4096], {f0, f0, f0, f0};
st.global.v4.f32 [q4+8192], {f0, f0, f0, f0}; st.global.v4.f32 [q4+12288], {f0, f0, f0, f0};
setp.le.u32 p0, r10, 1; @p0 bra END;
fence.acq_rel.gpu; bar.sync 0;
setp.ne.u32 p0, tid, 0; @p0 bra WAIT;
mul.wide.u32 q5, r11, 4; add.u64 q5, q5, y_; sub.u32 r14, r10, 1;
atom.acq_rel.gpu.global.inc.u32 r13, [q5], r14;
st.shared.u32 [last], r13;
WAIT:
bar.sync 0;
ld.shared.u32 r13, [last]; add.u32 r13, r13, 1; setp.ne.u32 p0, r13, r10; @p0 bra END;
fence.acq_rel.gpu;
mul.lo.u32 r12, r11, r10; mad.lo.u32 r12, r12, 1024, tid; mul.wide.u32 q4, r12, 16; add.u64 q4, q4, data_; mov.u64 q6, q4;
mov.f32 d0, 0f00000000; mov.f32 d1, d0; mov.f32 d2, d0; mov.f32 d3, d0;
ADD:
ld.global.cg.v4.f32 {f0, f1, f2, f3}, [q4]; ld.global.cg.v4.f32 {f4, f5, f6, f7}, [q4+4096];
ld.global.cg.v4.f32 {f8, f9, f10, f11}, [q4+8192]; ld.global.cg.v4.f32 {f12, f13, f14, f15}, [q4+12288];
""" + each(16, lambda i: f"add.f32 d{i % 4}, d{i % 4}, f{i};") + """
add.u64 q4, q4, 16384; sub.u32 r10, r10, 1; setp.ne.u32 p0, r10, 0; @p0 bra ADD;
mad.lo.u32 r12, r11, 256, tid; mul.wide.u32 q5, r12, 16; add.u64 q5, q5, out_; st.global.v4.f32 [q5], {d0, d1, d2, d3};
END:""", target="sm_80", directives=".maxntid 256, 1, 1")


def measure_join(gpu, parts, tiles):
    kernels = 2 if gpu.small else JOINS
    data, counters = gpu.buffer("parts", 1 << 25), gpu.buffer("counters", 4096)
    text = join_text()
    join = gpu.runner(text, tiles * parts, 256, 1, data, parts, counters)
    seconds = gpu.seconds(lambda: [join() for _ in range(kernels)])
    right = True
    if parts > 1:
        got = memoryview(gpu.download(gpu.out, 16 * 256 * tiles)).cast("f")
        right = all(got[4 * (256 * tile + thread)] == 4 * parts * thread for tile in range(tiles) for thread in (0, 1, 255))
    return {"value": round(seconds / kernels * 1e6, 3), "right": right}


JOIN = Probe("split_join", 1, "us/kernel", [dict(parts=parts, tiles=tiles) for tiles in (8, 33) for parts in (1, 2, 4, 8, 16)]
             + [dict(parts=parts, tiles=132) for parts in (1, 2, 4)], join_text, measure_join)


# Atomics: 16 per thread, on one word for all, one word per thread block, or one word per thread.

ATOMICS = {"red.add.f32": "red.global.add.f32 [q4], f0;", "red.add.u32": "red.global.add.u32 [q4], r11;",
           "atom.inc.u32": "atom.global.inc.u32 r12, [q4], r13; xor.b32 r11, r11, r12;",  # ptxas combines a warp's atom.add
           "red.add.f16x2": "red.global.add.noftz.f16x2 [q4], r11;"}


def atomic_text(atomic, on, **_):
    at = {"one word": "mov.u32 r10, 0;", "a word of each block": "mul.lo.u32 r10, cta, 64;",
          "a word of each thread": "mad.lo.u32 r10, cta, 256, tid;"}[on]
    return timed("\n".join([ATOMICS[atomic]] * 16), f"{at} mul.wide.u32 q4, r10, 4; add.u64 q4, q4, data_; "
                 "mov.f32 f0, 0f3f800000; and.b32 r11, tid, 1; mov.u32 r13, 0x7fffffff;", sink=["r11"], directives=".maxntid 256, 1, 1")


def measure_atomic(gpu, atomic, on, threads, blocks):
    count, grid = 2, gpu.sms if blocks == "all" else 1
    data = gpu.buffer("words", 1 << 20)
    for _ in range(2):
        gpu.run(atomic_text(atomic, on), grid, threads, count, data)
    return {"value": round(gpu.clocks(grid)[0] / 16 / count, 1)}


ATOMIC = Probe("atomics", 1, "clocks/atomic", [dict(atomic=a, on=on, threads=threads, blocks=blocks) for a in ATOMICS
               for on, threads, blocks in (("one word", 32, "one"), ("one word", 32, "all"), ("a word of each block", 32, "all"),
                                           ("a word of each thread", 256, "all"))], atomic_text, measure_atomic)
