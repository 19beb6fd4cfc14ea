/* Checks that kernels may replace the quotient of a 16-bit element and its group's scale by one operation: the codes are the same.
 * NF4 multiplies by the scale's inverse. Symmetric INT4 also adds 24 and rounds once; its inverse is adjusted if m / scale is
 * not 7 (quant_code.c, LIFTING). Neither holds for f32 elements.
 *
 * The test tries all pairs of an element x and a group's largest magnitude m >= |x|, both with 11 significant bits as in f16 or 8
 * as in bf16, and elements in a group with the least range, 1e-12. Powers of two cancel within the normal range of f32: scales
 * stay in it, and a quotient below 2^-6 of the largest is far from every threshold. So a pair is two significands, a difference
 * of exponents, and a sign. INT4 uses this method only up to 2^120. NF4 uses it for all numbers, so the test also tries bf16
 * scales whose inverses are subnormal.
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

/* Returns the inverse of m / 7 for symmetric codes. */
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

/* Tries elements of `bits` significant bits in a group with largest magnitude m. */
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
