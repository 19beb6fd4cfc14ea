/* Many numbers to one, by shared memory and by shuffles. Blocks of 256 threads unless it says otherwise. */
#include "device.h"

KERNEL(reduce_tree, uint32_t, uint32_t, uint32_t)
{
    __shared__ uint32_t part[256];
    part[THREAD] = GLOBAL < n ? a[GLOBAL] : 0;
    __syncthreads();
    for (uint32_t step = blockDim.x / 2; step; step /= 2) {
        if (THREAD < step)
            part[THREAD] += part[THREAD + step];
        __syncthreads();
    }
    if (THREAD == 0)
        out[blockIdx.x] = part[0];
}

/* Neighbours first: the order that conflicts, and sums of floats depend on it. */
KERNEL(reduce_neighbours, float, float, float)
{
    __shared__ float part[256];
    part[THREAD] = GLOBAL < n ? a[GLOBAL] : 0.0f;
    __syncthreads();
    for (uint32_t step = 1; step < blockDim.x; step *= 2) {
        if (THREAD % (2 * step) == 0)
            part[THREAD] += part[THREAD + step];
        __syncthreads();
    }
    if (THREAD == 0)
        out[blockIdx.x] = part[0];
}

DEVICE uint32_t warp_sum(uint32_t v)
{
    for (uint32_t by = 16; by; by /= 2)
        v += __shfl_down_sync(FULL_WARP, v, by, 32);
    return v;
}

KERNEL(reduce_warps, uint32_t, uint32_t, uint32_t)
{
    __shared__ uint32_t sums[32];
    uint32_t v = warp_sum(GLOBAL < n ? a[GLOBAL] : 0);
    if (LANE == 0)
        sums[THREAD / 32] = v;
    __syncthreads();
    if (THREAD < 32) {
        v = warp_sum(LANE < blockDim.x / 32 ? sums[LANE] : 0);
        if (LANE == 0)
            out[blockIdx.x] = v;
    }
}

KERNEL(reduce_float_xor, float, float, float)
{
    float v = a[GLOBAL];
    for (uint32_t by = 1; by < 32; by *= 2)
        v += __shfl_xor_sync(FULL_WARP, v, by, 32);
    out[GLOBAL] = v;
}

struct place {
    int32_t value;
    uint32_t at;
};

/* The least value and where it is first. */
KERNEL(reduce_least, uint32_t, int32_t, uint32_t)
{
    __shared__ struct place part[128];
    struct place mine = {INT32_MAX, 0xffffffffu};
    for (uint32_t i = THREAD; i < n; i += blockDim.x)
        if (a[i] < mine.value || (a[i] == mine.value && i < mine.at)) {
            mine.value = a[i];
            mine.at = i;
        }
    part[THREAD] = mine;
    __syncthreads();
    for (uint32_t step = blockDim.x / 2; step; step /= 2) {
        if (THREAD < step) {
            struct place other = part[THREAD + step];
            if (other.value < part[THREAD].value ||
                (other.value == part[THREAD].value && other.at < part[THREAD].at))
                part[THREAD] = other;
        }
        __syncthreads();
    }
    if (THREAD == 0) {
        out[0] = (uint32_t)part[0].value;
        out[1] = part[0].at;
    }
}

KERNEL(reduce_dot, float, float, float)
{
    __shared__ float part[128];
    float sum = 0.0f;
    for (uint32_t i = GLOBAL; i < n; i += blockDim.x * gridDim.x)
        sum += a[i] * b[i];
    part[THREAD] = sum;
    for (uint32_t step = blockDim.x / 2; step; step /= 2) {
        __syncthreads();
        if (THREAD < step)
            part[THREAD] += part[THREAD + step];
    }
    if (THREAD == 0)
        out[blockIdx.x] = part[0];
}

KERNEL(reduce_dynamic, u64, u64, u64)
{
    DYNAMIC_SHARED(u64, dynamic_sums);
    dynamic_sums[THREAD] = a[GLOBAL] ^ b[GLOBAL];
    __syncthreads();
    for (uint32_t left = blockDim.x; left > 1;) { /* any block size */
        uint32_t half_up = (left + 1) / 2;
        if (THREAD < left / 2)
            dynamic_sums[THREAD] = dynamic_sums[THREAD] * 3 + dynamic_sums[THREAD + half_up];
        __syncthreads();
        left = half_up;
    }
    if (THREAD == 0)
        out[blockIdx.x] = dynamic_sums[0];
}

KERNEL(reduce_counts, uint32_t, uint32_t, uint32_t)
{
    uint32_t odd = (uint32_t)__syncthreads_count((int)(a[GLOBAL] & 1));
    uint32_t all = (uint32_t)(__syncthreads_and(a[GLOBAL] != 5) != 0),
             any = (uint32_t)(__syncthreads_or(b[GLOBAL] == 7) != 0);
    out[GLOBAL] = odd << 2 | all << 1 | any;
}

/* Warps add into one word of shared memory, blocks into one of global memory. */
KERNEL(reduce_atomic, uint32_t, uint32_t, uint32_t)
{
    __shared__ uint32_t sum;
    if (THREAD == 0)
        sum = 0;
    __syncthreads();
    if (GLOBAL < n)
        atomicAdd(&sum, a[GLOBAL]);
    __syncthreads();
    if (THREAD == 0)
        atomicAdd(&out[0], sum);
}

/* The last block to end adds up what all have left. */
KERNEL(reduce_last_block, uint32_t, uint32_t, uint32_t)
{
    __shared__ uint32_t part[128];
    __shared__ volatile bool
        is_last; /* or clang 14 reads it ahead of the barrier, as if no other thread could write it */
    volatile uint32_t *sums = out + 2;
    part[THREAD] = GLOBAL < n ? a[GLOBAL] : 0;
    for (uint32_t step = blockDim.x / 2; step; step /= 2) {
        __syncthreads();
        if (THREAD < step)
            part[THREAD] += part[THREAD + step];
    }
    if (THREAD == 0) {
        sums[blockIdx.x] = part[0];
        __threadfence();
        is_last = atomicInc(&out[1], gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (is_last && THREAD == 0) {
        uint32_t total = 0;
        for (uint32_t i = 0; i < gridDim.x; i++)
            total = total * 7 + sums[i];
        out[0] = total;
    }
}

KERNEL(reduce_rows, float, float, float)
{
    __shared__ float part[8][32];
    uint32_t row = blockIdx.x * 8 + threadIdx.y;
    float most = -INFINITY;
    for (uint32_t column = threadIdx.x; column < n / (8 * gridDim.x); column += 32)
        most = fmaxf(most, a[row * (n / (8 * gridDim.x)) + column]);
    part[threadIdx.y][threadIdx.x] = most;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (uint32_t k = 1; k < 32; k++)
            most = fmaxf(most, part[threadIdx.y][k]);
        out[row] = most;
    }
}
