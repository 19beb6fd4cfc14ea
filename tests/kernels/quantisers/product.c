/* 16-bit elements by the scale of their own group: what the kernels make of them in one operation gives the same codes as the
 * quotient. NF4's is the product with the scale's inverse, rounded; symmetric INT4's is that plus 24, rounded once, by an
 * inverse that is moved where m / scale is not 7 (quant_code.c, LIFTING). For f32 elements neither holds.
 *
 * All pairs are tried of an element x and a group's largest magnitude m >= |x|, both of 11 significant bits as in f16 or of 8
 * as in bf16; and of elements in a group with the least range, 1e-12. Powers of two cancel as long as nothing leaves the
 * normal range of f32: scales are no less, and a quotient below 2^-6 of the largest is far from every threshold. So a pair is
 * two significands, a difference of exponents, and a sign. INT4 takes this way up to 2^120 only. NF4 takes it for all numbers:
 * so scales of bf16 whose inverses are subnormal are tried besides.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "families/nf4.h"

enum { MOST_DIFFERENCE = 6 };

typedef struct tally {
    uint64_t pairs, different;
} tally;

/* The inverse of m / 7 that symmetric codes take. */
static float moved_inverse(float m)
{
    const float scale = m / 7, inverse = 1 / scale;
    return fmaf(0x1p4F * (m / scale - 7), inverse, inverse);
}

static int int4_code(float quotient)
{
    return 8 + (int)nearbyintf(quotient);
}

static int lifted_code(float x, float inverse)
{
    const float lifted = fmaf(x, inverse, 24);
    return (int)(lifted + (0x1.8p23F - 16) - 0x1.8p23F);
}

/* Elements of `bits` significant bits in a group of largest magnitude m. */
static void try_group(float m, int bits, tally *nf4, tally *int4)
{
    const float inverse = 1 / m, moved = moved_inverse(m);
    for (int difference = 0; difference <= MOST_DIFFERENCE; difference++) {
        for (int significand = 1 << (bits - 1); significand < 1 << bits; significand++) {
            float x = ldexpf((float)significand, ilogbf(m) - (bits - 1) - difference);
            for (int sign = 0; sign < 2 && fabsf(x) <= m; sign++, x = -x) {
                nf4->pairs++;
                nf4->different +=
                    nf4_code(ELEMENT_F32, (double)(x / m)) != nf4_code(ELEMENT_F32, (double)(x * inverse));
                int4->pairs++;
                int4->different += int4_code(x / (m / 7)) != lifted_code(x, moved);
            }
        }
    }
}

static bool is_right(const char *coder, const tally *t)
{
    printf("%s: %llu of %llu pairs have another code\n", coder, (unsigned long long)t->different,
           (unsigned long long)t->pairs);
    return t->different == 0;
}

int main(void)
{
    static const int significant[] = {11, 8};
    tally nf4 = {0}, int4 = {0};
    for (int i = 0; i < 2; i++) {
        const int bits = significant[i];
        for (int m = 1 << (bits - 1); m < 1 << bits; m++)
            try_group((float)m, bits, &nf4, &int4);
        try_group(1e-12f, bits, &nf4, &int4);
    }
    tally unused = {0};
    for (int m = 1 << 7; m < 1 << 8; m++) {
        try_group(ldexpf((float)m, 119), 8, &nf4, &unused);
        try_group(ldexpf((float)m, 120), 8, &nf4, &unused);
    }
    const bool is_nf4_right = is_right("nf4", &nf4);
    return !is_right("int4", &int4) || !is_nf4_right;
}
