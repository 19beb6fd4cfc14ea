/* Memory: structs, bytes, vectors, tables, arrays of a thread's own, grids of two and three dimensions. */
#include "device.h"

struct triple {
    uint32_t x, y, z;
};

KERNEL(memory_structs, struct triple, uint32_t, uint32_t)
{
    EACH(i);
    struct triple t = {a[i], b[i], i};
    out[i] = t;
    out[i].y += out[i].x;
}

struct padded {
    uint8_t kind;
    uint16_t size;
    u64 value;
    uint8_t tail;
};

/* Copies with holes in them. */
KERNEL(memory_padding, struct padded, uint32_t, uint32_t)
{
    EACH(i);
    struct padded p = {(uint8_t)a[i], (uint16_t)b[i], (u64)a[i] * b[i], (uint8_t)i};
    struct padded q = p;
    q.value ^= p.size;
    out[i].kind = q.kind;
    out[i].size = q.size;
    out[i].value = q.value;
    out[i].tail = q.tail;
}

KERNEL_WITH(memory_struct_argument, uint32_t, uint32_t, uint32_t, struct mixture)
{
    EACH(i);
    out[i] = a[i] * with.scale + with.bytes[b[i] % 5] + (uint32_t)with.offset + (uint32_t)(with.big >> 17) +
             (uint32_t)(with.factor * 4.0f);
}

typedef struct __attribute__((aligned(16))) four {
    uint32_t v[4];
} four;

KERNEL(memory_vectors, four, four, four)
{
    EACH(i);
    four x = a[i], y = b[i], z;
    for (int k = 0; k < 4; k++)
        z.v[k] = x.v[k] + y.v[3 - k];
    out[i] = z;
}

KERNEL(memory_bytes, uint8_t, uint8_t, uint8_t)
{
    EACH(i);
    uint32_t other = (i + b[i]) % n;
    out[i] = (uint8_t)(a[other] + (a[i] << 1));
}

KERNEL(memory_gather, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    const uint16_t *halves = (const uint16_t *)(const void *)a;
    out[i] = a[b[i] % n] + halves[(b[i] >> 3) % (2 * n)];
}

KERNEL(memory_chase, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t at = i;
    for (uint32_t k = 0; k < 10; k++)
        at = a[at];
    out[i] = at;
}

KERNEL(memory_local_array, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t counts[16];
    for (int k = 0; k < 16; k++)
        counts[k] = 0;
    for (uint32_t x = a[i]; x; x >>= 2)
        counts[(x ^ b[i]) & 15] += x & 0xff;
    uint32_t best = 0;
    for (uint32_t k = 1; k < 16; k++)
        best = counts[k] > counts[best] ? k : best;
    out[i] = best << 24 | (counts[best] & 0xffffff);
}

KERNEL(memory_sort_local, u64, uint32_t, uint32_t)
{
    EACH(i);
    uint8_t v[8];
    for (int k = 0; k < 8; k++)
        v[k] = (uint8_t)((k < 4 ? a[i] : b[i]) >> 8 * (k & 3));
    for (int k = 1; k < 8; k++) {
        uint8_t x = v[k];
        int j = k;
        for (; j > 0 && v[j - 1] > x; j--)
            v[j] = v[j - 1];
        v[j] = x;
    }
    u64 r = 0;
    for (int k = 0; k < 8; k++)
        r = r << 8 | v[k];
    out[i] = r;
}

CONSTANT uint16_t primes[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
CONSTANT struct triple corners[4] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}};

KERNEL(memory_tables, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    const uint8_t steps[6] = {1, 2, 4, 8, 16, 32};
    out[i] = primes[a[i] & 15] * corners[b[i] & 3].y + steps[a[i] % 6] + corners[1].z;
}

KERNEL(memory_search, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    uint32_t low = 0, high = 16, key = a[i] % 60;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (primes[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    out[i] = low;
}

KERNEL(memory_pun, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    union {
        u64 whole;
        uint16_t parts[4];
        uint8_t bytes[8];
    } u;
    u.whole = (u64)a[i] << 32 | b[i];
    u.parts[1] = (uint16_t)(u.parts[1] + u.bytes[7]);
    u.bytes[a[i] & 7] ^= 0xff;
    out[i] = (uint32_t)(u.whole ^ u.whole >> 32);
}

KERNEL(memory_volatile, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    volatile uint32_t *mine = &out[i];
    *mine = a[i];
    *mine = *mine + b[i];
    *mine = *mine ^ (*mine >> 4);
}

KERNEL(memory_unaligned, u64, uint8_t, uint8_t)
{
    EACH(i);
    u64 word = 0;
    for (uint32_t k = 0; k < 8 && i + k < n; k++)
        word |= (u64)a[i + k] << 8 * k;
    out[i] = word;
}

/* Each thread many elements, a grid apart. */
KERNEL(memory_stride, uint32_t, uint32_t, uint32_t)
{
    for (uint32_t i = GLOBAL; i < n; i += blockDim.x * gridDim.x)
        out[i] = a[i] * 2 + b[i];
}

KERNEL(memory_grid_2d, uint32_t, uint32_t, uint32_t)
{
    uint32_t width = gridDim.x * blockDim.x;
    uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    uint32_t i = y * width + x;
    if (i < n)
        out[i] = a[i] + (x << 8) + (y << 20) + b[n - 1 - i];
}

KERNEL(memory_grid_3d, uint32_t, uint32_t, uint32_t)
{
    uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    uint32_t z = blockIdx.z * blockDim.z + threadIdx.z;
    uint32_t i = (z * gridDim.y * blockDim.y + y) * gridDim.x * blockDim.x + x;
    if (i < n)
        out[i] = x ^ y << 6 ^ z << 12 ^ a[i];
}

KERNEL(memory_copy, uint32_t, uint32_t, uint32_t)
{
    EACH(i);
    struct triple local[2] = {{a[i], b[i], 3}, {4, 5, 6}}, copy[2];
    memcpy(copy, local, sizeof copy);
    copy[b[i] & 1].x += 1;
    out[i] = copy[0].x * 3 + copy[1].x * 5 + copy[a[i] & 1].z;
}
