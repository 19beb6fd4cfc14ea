/* Estimates the time of a launch; dispatch compares variants by it. Generated functions and `kiln explain` call this
 * function.
 *
 * UNIT. Clock cycles of a multiprocessor, without the fixed cost of a launch.
 *
 * MODEL. Thread blocks spread evenly, so the busiest multiprocessor has ceil(blocks / multiprocessors) of them, of
 * which `resident` run at once. The largest of these terms counts in full:
 *   pipes    instructions of all its warps. A multiprocessor has four issue slots per cycle, two of integers below sm_100;
 *            shared memory and the L1 cache give one wavefront of 128 bytes; tensor cores take the device's mma_cycles,
 *            mma_s8_cycles and mma_fp4_cycles. A warp takes the busiest of these pipes and a quarter of the others
 *   waiting  thread blocks that run one after the other, each as long as a single warp takes: in the main loop an instruction
 *            every LOOP_CYCLES; elsewhere, where each needs the preceding one, every WARP_CYCLES; and in each trip of the loop
 *            the cycles in which it waits for loads
 *   caches   bytes that the busiest multiprocessor reads from the L2 cache, CACHE_BYTES per cycle
 *   memory   bytes that the whole launch moves, device->memory_cycles per MiB
 * and a quarter of each other term, since they overlap only in part; three eighths if a multiprocessor has one thread
 * block at a time, because it is idle while that block's warps wait for each other. The constants are round figures for
 * devices from Turing to Blackwell, checked against the times of an H100 and an H200 (tools/bench/README.md): an
 * estimate ranks variants of one family, it does not predict times.
 *
 * Instructions are counted by the generator in PTX, per warp: in a trip of the kernel's main loop, and outside of it.
 */
#ifndef KILN_ESTIMATE_H
#define KILN_ESTIMATE_H

#include <stddef.h>
#include <stdint.h>

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Instructions and products of one warp. */
typedef struct kiln_warp_code {
    uint32_t issues;     /* issue slots */
    uint32_t integers;   /* issue slots of integer instructions, conversions and moves */
    uint32_t wavefronts; /* of 128 bytes */
    /* On tensor cores: 256 multiply-adds of 16-bit types, 1024 of 8-bit integers, 2048 of block-scaled e2m1. */
    uint32_t products, s8_products, fp4_products;
} kiln_warp_code;

/* A kernel's instructions: in a trip of the main loop, in a trip of a side loop, and in the rest. */
typedef struct kiln_code {
    kiln_warp_code loop, side, rest;
    uint32_t warps;       /* of a thread block */
    uint32_t trip;        /* a warp's work in a trip, in the unit of kiln_work.length */
    uint32_t loop_warps;  /* warps that share the main loop's trips */
    uint32_t loop_groups; /* groups of loop_warps warps in a thread block */
} kiln_code;

/* The work of a launch. */
typedef struct kiln_work {
    uint64_t blocks;      /* thread blocks */
    uint64_t resident;    /* thread blocks that fit on a multiprocessor */
    uint64_t length;      /* of the main loop */
    uint64_t repeats;     /* runs of the main loop in a thread block */
    uint64_t side_trips;  /* trips of the side loops */
    uint64_t wait;        /* cycles per trip that loads stall */
    uint64_t block_bytes; /* bytes that a thread block reads from the L2 cache */
    uint64_t bytes;       /* least bytes that the launch reads and writes */
    uint64_t extra;       /* additional cycles */
} kiln_work;

/* Inline at -O2 too: most of an estimate is constant if kiln_code is. */
#define KILN_INLINE static inline __attribute__((always_inline))

KILN_INLINE uint64_t kiln_more(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

KILN_INLINE uint64_t kiln_warp_slots(const kiln_device *device, const kiln_warp_code *code)
{
    const uint64_t integers = (uint64_t)code->integers * (device->sm < 100 ? 2 : 1);
    const uint64_t issues = kiln_more(code->issues, integers), wavefronts = 4 * (uint64_t)code->wavefronts,
                   products = (uint64_t)code->products * device->mma_cycles +
                              (uint64_t)code->s8_products * device->mma_s8_cycles +
                              (uint64_t)code->fp4_products * device->mma_fp4_cycles;
    const uint64_t busiest = kiln_more(issues, kiln_more(wavefronts, products));
    return busiest + (issues + wavefronts + products - busiest) / 4;
}

/* 32-bit division: 64-bit division is several times slower. */
KILN_INLINE uint32_t kiln_divide_up(uint32_t n, uint32_t by)
{
    return (n + by - 1) / by;
}

/* Clamps to 31 bits: no launch has more thread blocks or trips. */
KILN_INLINE uint32_t kiln_31_bits(uint64_t n)
{
    return n < UINT32_MAX / 2 ? (uint32_t)n : UINT32_MAX / 2;
}

KILN_INLINE uint64_t kiln_estimate(const kiln_device *device, const kiln_code *code, const kiln_work *work)
{
    enum { SLOTS = 4, LOOP_CYCLES = 2, WARP_CYCLES = 4, CACHE_BYTES = 28 };
    const uint32_t multiprocessors = device->multiprocessors ? device->multiprocessors : 1;
    const uint32_t most = kiln_divide_up(kiln_31_bits(work->blocks), multiprocessors);
    const uint32_t waves = kiln_divide_up(most, work->resident ? (uint32_t)work->resident : 1);
    const uint32_t trips = kiln_divide_up(kiln_31_bits(work->length), code->trip); /* of all warps together */
    const uint64_t most_trips = work->repeats * kiln_divide_up(trips, code->loop_warps);

    const uint64_t outside =
        kiln_warp_slots(device, &code->rest) + work->side_trips * kiln_warp_slots(device, &code->side);
    const uint64_t inside = work->repeats * trips * kiln_warp_slots(device, &code->loop);
    const uint64_t once = code->rest.issues + work->side_trips * code->side.issues;
    const uint64_t alone = WARP_CYCLES * once + LOOP_CYCLES * most_trips * code->loop.issues;
    const uint64_t pipes = most * (code->warps * outside + code->loop_groups * inside) / SLOTS,
                   waiting = waves * (alone + (most_trips + 1) * work->wait),
                   caches = most * work->block_bytes / CACHE_BYTES,
                   memory = (work->bytes >> 10) * device->memory_cycles >> 10;
    const uint64_t longest = kiln_more(kiln_more(pipes, waiting), kiln_more(caches, memory));
    const uint64_t others = pipes + waiting + caches + memory - longest;
    const uint64_t eighths = most > 1 && work->resident > 1 ? 2 : 3;
    return longest + others * eighths / 8 + work->extra;
}

#ifdef __cplusplus
}
#endif

#endif
