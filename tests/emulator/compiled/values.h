/* Inputs of the compiled functions: element types, edge values, and random ones by splitmix64 with a fixed seed. */
#ifndef VALUES_H
#define VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum value_type {
    U8,
    U16,
    U32,
    U64,
    F32,   /* of results only */
    UNIT,  /* f32 in [-1, 1] */
    WHOLE, /* f32, small integers: sums of them are exact in any order */
    INDEX, /* a permutation of 0 to n - 1 */
} value_type;

static const unsigned char value_bytes[] = {
    [U8] = 1, [U16] = 2, [U32] = 4, [U64] = 8, [F32] = 4, [UNIT] = 4, [WHOLE] = 4, [INDEX] = 4};

/* clang-format off */
static const uint64_t edge_values[] = { /* a type takes the low bytes */
    0, 1, 2, 3, 7, 10, 31, 32, 33, 63, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 0x7fffffff,
    0x80000000, 0x80000001, 0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000,
    0x8000000000000001, 0x5555555555555555, 0xaaaaaaaaaaaaaaaa, 0xfffffffffffffff9, 0xfffffffffffffffe,
    0xffffffffffffffff
};
/* clang-format on */

static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline void fill_permutation(uint32_t *order, uint32_t n, uint64_t *random)
{
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)(next_random(random) % i), t = order[i - 1];
        order[i - 1] = order[j];
        order[j] = t;
    }
}

/* Fills n elements: integers with all pairs of edge values, then with random bits. `is_second` selects the second of each
   pair. */
static inline void value_fill(value_type type, void *elements, uint32_t n, bool is_second)
{
    enum { COUNT = sizeof edge_values / sizeof *edge_values };
    uint64_t state = is_second ? 77 : 1;
    if (type == INDEX) {
        fill_permutation(elements, n, &state);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        void *to = (char *)elements + i * value_bytes[type];
        if (type <= U64 && i < (size_t)COUNT * COUNT) {
            memcpy(to, &edge_values[(is_second ? i / COUNT : i) % COUNT], value_bytes[type]);
            continue;
        }
        uint64_t random = next_random(&state);
        float f = type == UNIT ? (float)(int32_t)random * 0x1p-31f : (float)((int32_t)(random % 33) - 16);
        memcpy(to, type <= U64 ? (const void *)&random : &f, value_bytes[type]);
    }
}

#endif
