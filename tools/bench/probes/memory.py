"""Bandwidth of L2 and DRAM by kind of load and bytes in flight, and latencies."""
from probes.probe import Probe
from probes.rates import mma, mma_setup, mma_sink
from probes.text import (address_bits, bulk_copy, descriptor, each, expect, fill_shared, listed, plain, seeds, timed,
                         wait, wgmma, zeros)

L2_BYTES, DRAM_BYTES, SMALL_BYTES = 16 << 20, 2 << 30, 1 << 20
THREADS, PER_THREAD = 256, 4                    # of 16 bytes
CHUNK = THREADS * PER_THREAD * 16               # bytes that a thread block reads at once
NEXT_CHUNK = """mul.wide.u32 q4, r10, {chunk}; and.b64 q4, q4, x_; add.u64 q4, q4, data_; add.u32 r10, r10, ctas;
"""


def read_text(way, stages, chunk, cluster):
    if way == "bulk":
        return bulk_text(stages, chunk, cluster)
    step = NEXT_CHUNK.format(chunk=CHUNK) + "add.u64 q4, q4, q5;\n"
    setup = "mov.u32 r10, cta; mul.wide.u32 q5, tid, 16; mov.u32 r11, 0;\n"
    if way == "ld.global":
        body = step + each(PER_THREAD, lambda i: f"ld.global.cg.v4.b32 {listed('r', 16 + 4 * i, 4)}, [q4+{16 * THREADS * i}];") \
            + "\n" + each(4 * PER_THREAD, lambda i: f"xor.b32 r11, r11, r{i};", 16)
        return timed(body, setup, sink=["r11"])
    copy = each(PER_THREAD, lambda i: f"cp.async.cg.shared.global [r12+{16 * THREADS * i}], [q4+{16 * THREADS * i}], 16;")
    body = step + copy + f"""
cp.async.commit_group;
cp.async.wait_group {stages - 1};
add.u32 r12, r12, {CHUNK}; setp.ge.u32 p1, r12, r13; @p1 sub.u32 r12, r12, {CHUNK * stages};"""
    setup += f"shl.b32 r12, tid, 4; add.u32 r12, r12, base; add.u32 r13, base, {CHUNK * stages};"
    return timed(body, setup, drain="cp.async.wait_group 0;")


def bulk_text(stages, chunk, cluster):
    """One thread reads chunks; in a cluster each reads its part of the cluster's chunk for all (multicast).

    Barriers after the stages: `full` of each stage, then `empty`, at which every reader of the cluster arrives before
    the stage is written again.
    """
    end = stages * chunk
    part = chunk // cluster
    release = each(cluster, lambda i: f"mapa.shared::cluster.u32 r15, r14, {i}; mbarrier.arrive.shared::cluster.b64 _, [r15];")
    together = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" if cluster > 1 else ""
    multicast = str((1 << cluster) - 1) if cluster > 1 else ""
    body = f"""
mov.u32 r20, 0; mov.u32 r16, %cluster_ctarank; mov.u32 r17, 0;
setp.ne.u32 p0, tid, 0; @p0 bra READY;
{each(stages, lambda i: f"mbarrier.init.shared::cta.b64 [base+{end + 8 * i}], 1; mbarrier.init.shared::cta.b64 [base+{end + 64 + 8 * i}], {cluster};")}
fence.mbarrier_init.release.cluster;
READY:
bar.sync 0; {together}
mov.u64 begin, %clock64;
@p0 bra JOIN;
div.u32 r10, cta, {cluster}; div.u32 r18, ctas, {cluster}; add.u32 r19, n, {stages};
mov.u32 r21, 0; mov.u32 r22, 1; mul.lo.u32 r25, r16, {part};
STEP:
mad.lo.u32 r12, r21, 8, base; add.u32 r13, r12, {end}; add.u32 r14, r12, {end + 64};
setp.lt.u32 p1, r20, {stages}; @p1 bra ISSUE;
{wait("r13", "r22", "FULL", "JOIN")}
{release if cluster > 1 else ""}
ISSUE:
setp.ge.u32 p2, r20, n; @p2 bra NEXT;
{"@p1 bra FREE;" + wait("r14", "r22", "EMPTY", "JOIN") + "FREE:" if cluster > 1 else ""}
{expect("r13", chunk)}
mul.wide.u32 q4, r10, {chunk}; and.b64 q4, q4, x_; add.u64 q4, q4, data_; add.u32 r10, r10, r18;
cvt.u64.u32 q5, r25; add.u64 q4, q4, q5; mad.lo.u32 r24, r21, {chunk}, base; add.u32 r24, r24, r25;
{"mov.b16 h0, " + multicast + ";" if multicast else ""}
{bulk_copy("r24", "q4", part, "r13", "h0" if multicast else "")}
NEXT:
add.u32 r20, r20, 1; add.u32 r21, r21, 1; setp.eq.u32 p3, r21, {stages}; @p3 mov.u32 r21, 0; @p3 xor.b32 r22, r22, 1;
setp.lt.u32 p3, r20, r19; @p3 bra STEP;
JOIN:
bar.warp.sync 0xffffffff; {together}
mov.u64 end, %clock64; sub.u64 q1, end, begin; mul.wide.u32 q0, cta, 16; add.u64 q0, q0, out_;
@p0 bra END;
st.global.u64 [q0], q1; st.global.u32 [q0+8], failed; st.global.u32 [q0+12], extra;
END:"""
    shape = f".reqntid 32, 1, 1\n.reqnctapercluster {cluster}, 1, 1" if cluster > 1 else ".reqntid 32, 1, 1"
    return plain(body, target="sm_90a", directives=shape)


def measure_read(gpu, way, stages, chunk, cluster, blocks, memory):
    bytes_ = SMALL_BYTES if gpu.small else L2_BYTES if memory == "L2" else DRAM_BYTES
    # Clusters of four do not fill every GPC: launch only as many as are sure to run at once.
    grid, block = gpu.sms * blocks * (7 if cluster == 4 else 8) // 8 // cluster * cluster, 32 if way == "bulk" else THREADS
    chunk_bytes = chunk if way == "bulk" else CHUNK
    received = (1 << 30) if memory == "L2" else DRAM_BYTES
    count = 2 if gpu.small else received // cluster // (grid // cluster * chunk_bytes)
    shared = {"bulk": stages * chunk + 128, "cp.async": CHUNK * stages, "ld.global": 0}[way]
    # Thread blocks of one multiprocessor share 227 KB with 1 KB each for the system.
    if blocks * (shared + 1024) > 228 << 10:
        raise RuntimeError("the thread blocks do not fit together")
    data = gpu.buffer(memory, bytes_)
    text = read_text(way, stages, chunk, cluster)
    seconds = gpu.seconds(lambda: gpu.run(text, grid, block, count, data, bytes_ - 1, shared_bytes=shared), 2)
    clocks, _ = gpu.clocks(grid)
    read = grid * count * chunk_bytes
    return {"value": round(read / seconds / 1e9, 1), "read_gbs": round(read / cluster / seconds / 1e9, 1),
            "bytes_per_clock_sm": round(blocks * count * chunk_bytes / clocks, 1),
            "kb_in_flight_sm": (CHUNK if way == "ld.global" else shared) * blocks >> 10}


def read_case(memory, way, stages, blocks, chunk=16384, cluster=1):
    return locals()


READS = [read_case("L2", "bulk", 4, 1), read_case("L2", "bulk", 8, 1), read_case("L2", "bulk", 4, 1, cluster=2),
         read_case("L2", "bulk", 8, 1, cluster=2), read_case("L2", "bulk", 4, 1, 32768, 4), read_case("L2", "cp.async", 4, 2),
         read_case("L2", "cp.async", 3, 4), read_case("L2", "ld.global", 1, 4), read_case("L2", "ld.global", 1, 8),
         read_case("L2", "bulk", 6, 1, 32768), read_case("L2", "bulk", 6, 1, 32768, 2), read_case("L2", "bulk", 4, 3),
         read_case("DRAM", "bulk", 2, 1), read_case("DRAM", "bulk", 4, 1), read_case("DRAM", "bulk", 8, 1),
         read_case("DRAM", "bulk", 6, 1, 32768), read_case("DRAM", "bulk", 6, 1, 32768, 2), read_case("DRAM", "bulk", 8, 4, 4096),
         read_case("DRAM", "cp.async", 2, 1), read_case("DRAM", "cp.async", 4, 1), read_case("DRAM", "cp.async", 2, 4),
         read_case("DRAM", "cp.async", 4, 3), read_case("DRAM", "cp.async", 6, 2), read_case("DRAM", "ld.global", 1, 2),
         read_case("DRAM", "ld.global", 1, 4), read_case("DRAM", "ld.global", 1, 8)]


def read_text_of(way, stages, chunk, cluster, **_):
    return read_text(way, stages, chunk, cluster)


BANDWIDTH = Probe("bandwidth", 4, "GB/s received", READS, read_text_of, measure_read)


# Latency: chains of one kind of instruction in one warp.

def chain_of_wgmma(n, length):
    return "wgmma.fence.sync.aligned;\n" + "\n".join([wgmma(n, "da", "db")] * length) \
        + "\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;"


MAPPED = "mov.u64 da, {0}; mov.u64 db, da;\n".format(descriptor(128, 16, 1024)) + address_bits("da", "base") + address_bits("db", "base")
CHAINS = {  # name: (body, links per body, threads)
    "ffma": ("\n".join(["fma.rn.f32 d8, d8, d9, d10;"] * 16), 16, 32),
    "hfma2": ("\n".join(["fma.rn.f16x2 r24, r24, a1, a2;"] * 16), 16, 32),
    "imad": ("\n".join(["mad.lo.u32 r24, r24, a1, a2;"] * 16), 16, 32),
    "lop3, prmt": ("\n".join(["lop3.b32 r24, r24, a1, a2, 0x6a; prmt.b32 r24, r24, a1, a2;"] * 8), 16, 32),
    "dp4a": ("\n".join(["dp4a.s32.s32 r24, r24, a1, a2;"] * 16), 16, 32),
    "shfl": ("\n".join(["shfl.sync.bfly.b32 r24, r24, 1, 31, -1;"] * 16), 16, 32),
    "ex2": ("\n".join(["ex2.approx.ftz.f32 d8, d8;"] * 16), 16, 32),
    "ld.shared": ("\n".join(["ld.volatile.shared.u32 r26, [r26+4096];"] * 16), 16, 32),
    **{f"bar.sync of {threads} threads": ("\n".join(["bar.sync 0;"] * 16), 16, threads) for threads in (64, 128, 256, 512)},
    **{f"mma {form}": ("\n".join([mma(form, 0)] * 16), 16, 32) for form in ("f16 to f32", "f16 to f16", "s8 to s32")},
    **{f"wgmma n{n} x {length}": (chain_of_wgmma(n, length), 1, 128) for n in (8, 64, 128, 256) for length in (1, 4, 8)}}


def chain_text(chain, **_):
    body, _, threads = CHAINS[chain]
    is_wgmma = chain.startswith("wgmma")
    target = "sm_90a" if is_wgmma else "sm_80"
    setup = mma_setup() + seeds("r", 24, 1) + (zeros(128) + fill_shared(40960, threads) + MAPPED if is_wgmma else seeds("d", 8, 3)) \
        + "\nmov.u32 r26, base; st.shared.u32 [base+4096], base;"
    return timed(body, setup, sink=[f"d{i}" for i in range(128)] if is_wgmma else ["r24", "r26", "d8"] + (
        mma_sink(chain[4:], 1) if chain.startswith("mma") else []), target=target, directives=f".maxntid {threads}, 1, 1")


def measure_chain(gpu, chain):
    _, links, threads = CHAINS[chain]
    count = 2 if gpu.small else 1000
    for _ in range(2):
        gpu.run(chain_text(chain), 1, threads, count, shared_bytes=40960)
    return {"value": round(gpu.clocks(1)[0] / links / count, 2)}


def chains(is_wgmma):
    return [dict(chain=chain) for chain in CHAINS if chain.startswith("wgmma") == is_wgmma]


LATENCY = Probe("latency", 1.2, "clocks", chains(False), chain_text, measure_chain)
WGMMA_LATENCY = Probe("wgmma_latency", 1.2, "clocks", chains(True), chain_text, measure_chain)


# A pointer chase through zeros: the next line is pseudo-random (a linear congruential generator), plus the loaded 0.
# "none" is the chase without the load, to be subtracted.

L2_KIB = 32 << 10  # a chase over at most this much stays in L2


def chase_text(load, **_):
    read = {"ld.global.cg": "ld.global.cg.u32 r12, [q4];", "none": "cvt.u32.u64 r12, q4; and.b32 r12, r12, r14;"}[load]
    body = f"""mad.lo.u32 r10, r10, 1664525, 1013904223; and.b32 r11, r10, r13; mul.wide.u32 q4, r11, 128; add.u64 q4, q4, data_;
{read} add.u32 r10, r10, r12;"""
    return timed(body, "mov.u32 r10, 1; cvt.u32.u64 r13, x_; cvt.u32.u64 r14, y_;", sink=["r10"], directives=".maxntid 32, 1, 1")


def measure_chase(gpu, load, kib):
    kib = min(kib, SMALL_BYTES >> 10) if gpu.small else kib
    lines = kib * 8
    bytes_ = SMALL_BYTES if gpu.small else DRAM_BYTES
    data = gpu.buffer("DRAM", bytes_)
    count = 64 if gpu.small else min(4 * lines, 30000)
    # Reading the lines brings them into L2; reading the whole buffer evicts them.
    read = bytes_ if kib > L2_KIB else kib << 10
    passes = 1 + 2 * read // CHUNK // gpu.sms if kib <= L2_KIB else read // CHUNK // gpu.sms
    for _ in range(2):
        gpu.run(read_text("ld.global", 1, CHUNK, 1), gpu.sms, THREADS, max(passes, 1), data, read - 1)
        gpu.run(chase_text(load), 1, 32, count, data, lines - 1)
        gpu.synchronize()
    return {"value": round(gpu.clocks(1)[0] / count, 1)}


CHASE = Probe("chase", 1.5, "clocks", [dict(load="none", kib=16)] + [
    dict(load="ld.global.cg", kib=kib) for kib in (16, 128, 1024, 8192, 16384, 32768, 65536, 262144, 1048576, 2097152)],
    chase_text, measure_chase)


# Near and far L2: the latency of each of 64 lines from one multiprocessor.

LINES = 64


def distance_text(**_):
    return plain(f"""
mov.u64 q4, out_; mov.u32 r10, 0;
LINE:
mul.wide.u32 q5, r10, 4096; add.u64 q5, q5, data_; mov.u32 r11, n; ld.global.cg.u32 r12, [q5];
mov.u32 r14, 0; add.u32 r14, r14, r12; mov.u64 begin, %clock64;
LOOP:
cvt.u64.u32 q6, r14; add.u64 q6, q6, q5; ld.global.cg.u32 r14, [q6];
sub.u32 r11, r11, 1; setp.ne.u32 p0, r11, 0; @p0 bra LOOP;
add.u32 r14, r14, 0; cvt.u64.u32 q6, r14; mov.u64 end, %clock64; sub.u64 q7, end, begin; add.u64 q7, q7, q6; cvt.u32.u64 r15, q7;
st.global.u32 [q4], r15; add.u64 q4, q4, 4; add.u32 r10, r10, 1; setp.lt.u32 p0, r10, {LINES}; @p0 bra LINE;""", directives=".maxntid 32, 1, 1")


def measure_distance(gpu):
    count, text = 2 if gpu.small else 256, distance_text()
    data = gpu.buffer("L2", SMALL_BYTES if gpu.small else L2_BYTES)
    for _ in range(2):
        gpu.run(text, 1, 32, count, data)
    gpu.synchronize()
    clocks = [c // count for c in memoryview(gpu.download(gpu.out, 4 * LINES)).cast("I")]
    return {"value": min(clocks), "lines": clocks}


DISTANCE = Probe("l2_distance", 0.7, "clocks", [{}], distance_text, measure_distance)


# From the issue of a bulk copy to the end of the wait for its mbarrier.

def bulk_latency_text(bytes_, **_):
    return timed(f"""
@p5 bra JOIN;
{expect("r10", bytes_)}
{bulk_copy("base", "data_", bytes_, "r10")}
{wait("r10", "r11", "W", "JOIN")}
xor.b32 r11, r11, 1;""", f"""
setp.ne.u32 p5, tid, 0; add.u32 r10, base, {bytes_}; mov.u32 r11, 0; @!p5 mbarrier.init.shared::cta.b64 [r10], 1; fence.mbarrier_init.release.cluster;""",
                 target="sm_90", directives=".maxntid 32, 1, 1")


def measure_bulk_latency(gpu, bytes_):
    count = 200
    for _ in range(2):
        gpu.run(bulk_latency_text(bytes_), 1, 32, count, gpu.buffer("L2", L2_BYTES), shared_bytes=bytes_ + 8)
    return {"value": round(gpu.clocks(1)[0] / count, 1)}


BULK_LATENCY = Probe("bulk_latency", 0.7, "clocks", [dict(bytes_=b) for b in (16, 128, 1024, 4096, 16384, 32768, 65536)],
                     bulk_latency_text, measure_bulk_latency)
