/* GGUF's Q4_K on the host: 256 numbers in 144 bytes. Eight sub-blocks of 32 have 6-bit multiples of d for a step and of
 * dmin for an offset; a number is d * scale * code - dmin * minimum. */
#include "layer.h"

#include <math.h>
#include <string.h>

enum { SUB_BLOCKS = Q4K_ELEMENTS / Q4K_SUB_ELEMENTS, SCALES_AT = 4, CODES_AT = 16 };

/* ---- fields ------------------------------------------------------------------------------------------------------ */

typedef struct fields {
    double d, dmin;
    unsigned scale[SUB_BLOCKS], minimum[SUB_BLOCKS];
} fields;

static void put_number(unsigned char *at, unsigned bits)
{
    at[0] = (unsigned char)bits;
    at[1] = (unsigned char)(bits >> 8);
}

/* Scales and minima have six bits each. The first four of each kind are in the low bits of a byte. Of the other four, the low
 * four bits of scale and minimum share a byte, and the high two bits are in the high bits of the first bytes. */
static void put_scales(unsigned char s[12], const fields *b)
{
    for (int j = 0; j < 4; j++) {
        s[j] = (unsigned char)(b->scale[j] | b->scale[j + 4] >> 4 << 6);
        s[j + 4] = (unsigned char)(b->minimum[j] | b->minimum[j + 4] >> 4 << 6);
        s[j + 8] = (unsigned char)((b->scale[j + 4] & 15) | (b->minimum[j + 4] & 15) << 4);
    }
}

static fields get_fields(const unsigned char *block)
{
    const unsigned char *s = block + SCALES_AT;
    fields b = {.d = half_value((unsigned)(block[0] | block[1] << 8)),
                .dmin = half_value((unsigned)(block[2] | block[3] << 8))};
    for (int j = 0; j < 4; j++) {
        b.scale[j] = s[j] & 63;
        b.minimum[j] = s[j + 4] & 63;
        b.scale[j + 4] = (unsigned)((s[j + 8] & 15) | s[j] >> 6 << 4);
        b.minimum[j + 4] = (unsigned)(s[j + 8] >> 4 | s[j + 4] >> 6 << 4);
    }
    return b;
}

/* Two sub-blocks share 32 bytes: the even one has the low nibbles. */
static unsigned char *code_byte(unsigned char *block, int i)
{
    return &block[CODES_AT + i / (2 * Q4K_SUB_ELEMENTS) * Q4K_SUB_ELEMENTS + i % Q4K_SUB_ELEMENTS];
}

static int code_shift(int i)
{
    return i / Q4K_SUB_ELEMENTS % 2 ? 4 : 0;
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

static unsigned nearest(double value, unsigned most)
{
    const double rounded = nearbyint(value);
    return rounded <= 0 ? 0 : rounded >= most ? most : (unsigned)rounded;
}

void q4k_pack(const float values[Q4K_ELEMENTS], unsigned char block[Q4K_BYTES])
{
    double step[SUB_BLOCKS], offset[SUB_BLOCKS], most_step = 0, most_offset = 0;
    for (int j = 0; j < SUB_BLOCKS; j++) {
        double least = 0, most = 0;
        for (int i = j * Q4K_SUB_ELEMENTS; i < (j + 1) * Q4K_SUB_ELEMENTS; i++) {
            least = fmin(least, (double)values[i]);
            most = fmax(most, (double)values[i]);
        }
        offset[j] = -least;
        step[j] = (most - least) / 15;
        most_step = fmax(most_step, step[j]);
        most_offset = fmax(most_offset, offset[j]);
    }
    const unsigned d = half_bits(most_step / 63), dmin = half_bits(most_offset / 63);
    fields b = {.d = half_value(d), .dmin = half_value(dmin)};
    memset(block, 0, Q4K_BYTES);
    for (int j = 0; j < SUB_BLOCKS; j++) {
        b.scale[j] = b.d > 0 ? nearest(step[j] / b.d, 63) : 0;
        b.minimum[j] = b.dmin > 0 ? nearest(offset[j] / b.dmin, 63) : 0;
        const double unit = b.d * b.scale[j], below = b.dmin * b.minimum[j];
        for (int i = j * Q4K_SUB_ELEMENTS; i < (j + 1) * Q4K_SUB_ELEMENTS; i++) {
            const unsigned code = unit > 0 ? nearest(((double)values[i] + below) / unit, 15) : 0;
            *code_byte(block, i) |= (unsigned char)(code << code_shift(i));
        }
    }
    put_number(block, d);
    put_number(block + 2, dmin);
    put_scales(block + SCALES_AT, &b);
}

void q4k_unpack(const unsigned char block[Q4K_BYTES], double values[Q4K_ELEMENTS], double sizes[Q4K_ELEMENTS])
{
    const fields b = get_fields(block);
    unsigned char bytes[Q4K_BYTES];
    memcpy(bytes, block, Q4K_BYTES);
    for (int i = 0; i < Q4K_ELEMENTS; i++) {
        const int j = i / Q4K_SUB_ELEMENTS;
        const double code = *code_byte(bytes, i) >> code_shift(i) & 15;
        values[i] = b.d * b.scale[j] * code - b.dmin * b.minimum[j];
        sizes[i] = fabs(b.d) * b.scale[j] * code + fabs(b.dmin) * b.minimum[j];
    }
}
