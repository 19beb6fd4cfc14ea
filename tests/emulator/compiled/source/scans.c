/* Prefix sums and what is made with them; sorting; tiles. */
#include "device.h"

KERNEL(scan_hillis_steele, uint32_t, uint32_t, uint32_t)
{
    __shared__ uint32_t turn[2][128];
    uint32_t from = 0;
    turn[0][THREAD] = a[GLOBAL];
    __syncthreads();
    for (uint32_t by = 1; by < blockDim.x; by *= 2) {
        turn[1 - from][THREAD] = turn[from][THREAD] + (THREAD >= by ? turn[from][THREAD - by] : 0);
        from = 1 - from;
        __syncthreads();
    }
    out[GLOBAL] = turn[from][THREAD];
}

KERNEL(scan_blelloch, uint32_t, uint32_t, uint32_t)
{
    __shared__ uint32_t tree[256];
    uint32_t size = 2 * blockDim.x, by = 1;
    tree[2 * THREAD] = a[blockIdx.x * size + 2 * THREAD];
    tree[2 * THREAD + 1] = a[blockIdx.x * size + 2 * THREAD + 1];
    for (uint32_t d = size / 2; d; d /= 2, by *= 2) {
        __syncthreads();
        if (THREAD < d)
            tree[by * (2 * THREAD + 2) - 1] += tree[by * (2 * THREAD + 1) - 1];
    }
    if (THREAD == 0)
        tree[size - 1] = 0;
    for (uint32_t d = 1; d < size; d *= 2) {
        by /= 2;
        __syncthreads();
        if (THREAD < d) {
            uint32_t left = by * (2 * THREAD + 1) - 1, right = by * (2 * THREAD + 2) - 1, t = tree[left];
            tree[left] = tree[right];
            tree[right] += t;
        }
    }
    __syncthreads();
    out[blockIdx.x * size + 2 * THREAD] = tree[2 * THREAD];
    out[blockIdx.x * size + 2 * THREAD + 1] = tree[2 * THREAD + 1];
}

DEVICE uint32_t scan_of_warp(uint32_t v)
{
    for (uint32_t by = 1; by < 32; by *= 2) {
        uint32_t below = __shfl_up_sync(FULL_WARP, v, by, 32);
        v += LANE >= by ? below : 0;
    }
    return v;
}

KERNEL(scan_warp, uint32_t, uint32_t, uint32_t)
{
    out[GLOBAL] = scan_of_warp(a[GLOBAL]);
}

KERNEL(scan_block, uint32_t, uint32_t, uint32_t)
{
    __shared__ uint32_t sums[32];
    uint32_t v = scan_of_warp(a[GLOBAL]);
    if (LANE == 31)
        sums[THREAD / 32] = v;
    __syncthreads();
    if (THREAD < 32)
        sums[LANE] = scan_of_warp(LANE < blockDim.x / 32 ? sums[LANE] : 0);
    __syncthreads();
    out[GLOBAL] = v + (THREAD >= 32 ? sums[THREAD / 32 - 1] : 0);
}

/* Sums that start anew where b is odd. */
KERNEL(scan_segmented, uint32_t, uint32_t, uint32_t)
{
    uint32_t v = a[GLOBAL], starts = b[GLOBAL] & 1;
    for (uint32_t by = 1; by < 32; by *= 2) {
        uint32_t below = __shfl_up_sync(FULL_WARP, v, by, 32),
                 edge = __shfl_up_sync(FULL_WARP, starts, by, 32);
        if (LANE >= by && !starts) {
            v += below;
            starts = edge;
        }
    }
    out[GLOBAL] = v;
}

/* Those above a limit, close together, in their order. */
KERNEL(scan_compact, uint32_t, uint32_t, uint32_t)
{
    __shared__ uint32_t counts[4];
    bool keep = (a[THREAD] & 3) == 1;
    uint32_t kept = __ballot_sync(FULL_WARP, keep), before = (uint32_t)__popc(kept & ((1u << LANE) - 1));
    if (LANE == 0)
        counts[THREAD / 32] = (uint32_t)__popc(kept);
    __syncthreads();
    for (uint32_t w = 0; w < THREAD / 32; w++)
        before += counts[w];
    if (keep)
        out[before] = a[THREAD];
}

/* One pass of a radix sort: zeros before ones, in their order, bit by bit. */
KERNEL(scan_radix_sort, uint32_t, uint32_t, uint32_t)
{
    __shared__ uint32_t keys[128], ones[128];
    keys[THREAD] = a[GLOBAL] & 0xff;
    for (uint32_t bit = 0; bit < 8; bit++) {
        __syncthreads();
        uint32_t key = keys[THREAD], one = key >> bit & 1;
        ones[THREAD] = one;
        __syncthreads();
        uint32_t before = 0, total = 0;
        for (uint32_t k = 0; k < blockDim.x; k++) {
            before += k < THREAD ? ones[k] : 0;
            total += ones[k];
        }
        __syncthreads();
        keys[one ? blockDim.x - total + before : THREAD - before] = key;
    }
    __syncthreads();
    out[GLOBAL] = keys[THREAD];
}

KERNEL(sort_bitonic, uint32_t, uint32_t, uint32_t)
{
    __shared__ uint32_t keys[256];
    keys[THREAD] = a[GLOBAL];
    for (uint32_t size = 2; size <= blockDim.x; size *= 2)
        for (uint32_t by = size / 2; by; by /= 2) {
            __syncthreads();
            uint32_t other = THREAD ^ by;
            bool up = (THREAD & size) == 0;
            if (other > THREAD && (keys[THREAD] > keys[other]) == up) {
                uint32_t t = keys[THREAD];
                keys[THREAD] = keys[other];
                keys[other] = t;
            }
        }
    __syncthreads();
    out[GLOBAL] = keys[THREAD];
}

KERNEL(sort_odd_even, int32_t, int32_t, int32_t)
{
    DYNAMIC_SHARED(int32_t, odd_even_keys);
    odd_even_keys[THREAD] = a[GLOBAL];
    for (uint32_t round = 0; round < blockDim.x; round++) {
        __syncthreads();
        uint32_t left = 2 * THREAD + (round & 1);
        if (left + 1 < blockDim.x && odd_even_keys[left] > odd_even_keys[left + 1]) {
            int32_t t = odd_even_keys[left];
            odd_even_keys[left] = odd_even_keys[left + 1];
            odd_even_keys[left + 1] = t;
        }
    }
    __syncthreads();
    out[GLOBAL] = odd_even_keys[THREAD];
}

/* A square of 64, in tiles of 16 with a column to spare. */
KERNEL(tile_transpose, uint32_t, uint32_t, uint32_t)
{
    __shared__ uint32_t tile[16][17];
    uint32_t width = gridDim.x * 16, x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    for (uint32_t k = 0; k < 16; k += blockDim.y)
        tile[threadIdx.y + k][threadIdx.x] = a[(blockIdx.y * 16 + threadIdx.y + k) * width + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x;
    y = blockIdx.x * 16 + threadIdx.y;
    for (uint32_t k = 0; k < 16; k += blockDim.y)
        out[(y + k) * width + x] = tile[threadIdx.x][threadIdx.y + k];
}

/* C = A B of 32 x 32, by tiles of 8, with fused multiply-adds. */
KERNEL(tile_product, float, float, float)
{
    __shared__ float left[8][8], right[8][8];
    uint32_t width = gridDim.x * 8, column = blockIdx.x * 8 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    float sum = 0.0f;
    for (uint32_t tile = 0; tile < width; tile += 8) {
        left[threadIdx.y][threadIdx.x] = a[row * width + tile + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * width + column];
        __syncthreads();
        for (int k = 0; k < 8; k++)
            sum = fmaf(left[threadIdx.y][k], right[k][threadIdx.x], sum);
        __syncthreads();
    }
    out[row * width + column] = sum;
}

KERNEL(tile_stencil, float, float, float)
{
    __shared__ float line[130];
    uint32_t i = GLOBAL;
    line[THREAD + 1] = i < n ? a[i] : 0.0f;
    if (THREAD == 0)
        line[0] = i ? a[i - 1] : 0.0f;
    if (THREAD == blockDim.x - 1)
        line[THREAD + 2] = i + 1 < n ? a[i + 1] : 0.0f;
    __syncthreads();
    if (i < n)
        out[i] = 0.25f * line[THREAD] + 0.5f * line[THREAD + 1] + 0.25f * line[THREAD + 2];
}
