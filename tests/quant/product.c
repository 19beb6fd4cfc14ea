/* 16-bit elements by the scale of their group: the product with its inverse, rounded twice, gives the same NF4 code as
 * the quotient, which is rounded once. The kernels count on it; for f32 elements it does not hold.
 *
 * All pairs are tried of an element x and a magnitude s >= |x|, both of 11 significant bits as in f16 or of 8 as in
 * bf16; and of elements with the least scale, 1e-12. Powers of two cancel as long as nothing leaves the normal range of
 * f32: scales are no less, kernels take this way up to 2^120 only, and a quotient below 2^-6 is far from every
 * threshold. So a pair is two significands, a difference of exponents, and a sign.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "families/nf4.h"

enum { MOST_DIFFERENCE = 6 };

typedef struct tally {
    uint64_t pairs, different;
} tally;

/* Elements of `bits` significant bits by one scale. */
static void try_scale(float scale, int bits, tally *t)
{
    float inverse = 1 / scale;
    for (int difference = 0; difference <= MOST_DIFFERENCE; difference++) {
        for (int m = 1 << (bits - 1); m < 1 << bits; m++) {
            float x = ldexpf((float)m, ilogbf(scale) - (bits - 1) - difference);
            for (int sign = 0; sign < 2 && fabsf(x) <= scale; sign++, x = -x) {
                float quotient = x / scale, product = x * inverse;
                t->pairs++;
                t->different +=
                    nf4_code(ELEMENT_F32, (double)quotient) != nf4_code(ELEMENT_F32, (double)product);
            }
        }
    }
}

int main(void)
{
    static const int significant[] = {11, 8};
    tally t = {0};
    for (int i = 0; i < 2; i++) {
        int bits = significant[i];
        for (int s = 1 << (bits - 1); s < 1 << bits; s++)
            try_scale((float)s, bits, &t);
        try_scale(1e-12f, bits, &t);
    }
    printf("%llu of %llu pairs have another code\n", (unsigned long long)t.different,
           (unsigned long long)t.pairs);
    return t.different != 0;
}
