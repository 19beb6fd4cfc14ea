/* Atomic operations, where the order of threads leaves no mark in the result. */
#include "device.h"

KERNEL(atomic_add, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    atomicAdd(&out[b[i] % 16], a[i]);
    atomicSub(&out[16], a[i]);
}

KERNEL(atomic_extremes, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    atomicMax(&out[0], a[i]);
    atomicMin(&out[1], ~a[i]);
    atomicMax((int32_t *)&out[2], (int32_t)b[i]);
    atomicMin((int32_t *)&out[3], (int32_t)b[i]);
}

KERNEL(atomic_logic, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    atomicOr(&out[0], 1u << (a[i] & 31));
    atomicXor(&out[1], a[i]);
    if (i == 0)
        atomicExch(&out[2], 0xffffffffu);
    atomicAnd(&out[3 + i % 4], a[i]);
}

KERNEL(atomic_increment, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    atomicInc(&out[0], 999);
    atomicDec(&out[1], 76);
    atomicInc(&out[2 + a[i] % 4], 6);
}

KERNEL(atomic_wide, u64, u64, u64)
{
    EACH(i);
    atomicAdd(&out[a[i] % 8], b[i]);
    atomicMax(&out[8], a[i]);
    atomicXor(&out[9], b[i]);
}

/* Small integers: their sum is exact in any order. */
KERNEL(atomic_float, float, float, float)
{
    EACH(i);
    atomicAdd(&out[i % 8], a[i]);
}

KERNEL(atomic_float_largest, uint32_t, float, float)
{
    EACH(i);
    uint32_t old = *(volatile uint32_t *)out, assumed;
    do {
        assumed = old;
        float now = bits_float(assumed);
        old = atomicCAS(&out[0], assumed, a[i] > now ? float_bits(a[i]) : assumed);
    } while (old != assumed);
}

KERNEL(atomic_wide_swap, u64, u64, u64)
{
    EACH(i);
    u64 old = atomicAdd(&out[0], 0ull), assumed;
    do {
        assumed = old;
        old = atomicCAS(&out[0], assumed, assumed + (a[i] ^ b[i]));
    } while (old != assumed);
}

KERNEL(atomic_histogram, uint32_t, uint8_t, uint8_t)
{
    __shared__ uint32_t counts[256];
    for (uint32_t k = THREAD; k < 256; k += blockDim.x)
        counts[k] = 0;
    __syncthreads();
    for (uint32_t i = GLOBAL; i < n; i += blockDim.x * gridDim.x)
        atomicAdd(&counts[a[i]], 1u);
    __syncthreads();
    for (uint32_t k = THREAD; k < 256; k += blockDim.x)
        atomicAdd(&out[k], counts[k]);
}

/* Every ticket is drawn once. */
KERNEL(atomic_tickets, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t ticket = atomicAdd(&out[0], 1u);
    atomicAdd(&out[1 + ticket], 1u);
    atomicAdd(&out[n + 1], ticket);
}

KERNEL(atomic_exchange, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t before = atomicExch(&out[0], i + 1); /* each value is taken out once, except the last */
    atomicXor(&out[1], before);
    atomicXor(&out[1], i + 1);
    __threadfence();
    if (atomicAdd(&out[2], 1u) == n - 1) {
        atomicXor(&out[1], atomicExch(&out[0], 0u));
        out[3] = atomicAdd(&out[1], 0u);
    }
}

KERNEL(atomic_spin_lock, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    volatile uint32_t *sum = &out[1];
    bool done = false;
    while (!done)
        if (atomicCAS(&out[0], 0u, 1u) == 0) {
            __threadfence();
            *sum = *sum + a[i];
            __threadfence();
            atomicExch(&out[0], 0u);
            done = true;
        }
}

/* One thread of the lanes that are together adds for all of them. */
KERNEL(atomic_aggregated, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    if (a[i] & 1) {
        uint32_t together = __activemask(), first = (uint32_t)__ffs((int)together) - 1, base = 0;
        if (LANE == first)
            base = atomicAdd(&out[0], (uint32_t)__popc(together));
        base = __shfl_sync(together, base, first, 32);
        uint32_t place = base + (uint32_t)__popc(together & ((1u << LANE) - 1));
        atomicAdd(&out[1 + place], 1u);
        atomicXor(&out[n + 1], a[i]);
    }
}

/* The first thread to claim a place holds it; all count. */
KERNEL(atomic_claims, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t *slot = &out[2 * (a[i] % 32)];
    if (atomicCAS(slot, 0u, 1u) == 0)
        atomicAdd(slot + 1, 0x10000u);
    atomicAdd(slot + 1, 1u);
}

/* Open addressing: keys find their places in any order; what is counted does not depend on it. */
KERNEL(atomic_hash_table, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t *table = out + 2, key = a[i] % 100 + 1;
    for (uint32_t at = key * 2654435761u % 256;; at = (at + 1) % 256) {
        uint32_t found = atomicCAS(&table[at], 0u, key);
        if (found == 0)
            atomicAdd(&out[0], key);
        if (found == 0 || found == key)
            break;
    }
    atomicAdd(&out[1], key);
}
