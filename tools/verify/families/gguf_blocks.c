/* Reads and makes GGUF's quantised blocks. */
#include "gguf_blocks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inputs.h"

static double half_at(const unsigned char *p)
{
    return number_decode(ELEMENT_F16, (uint64_t)(p[0] | p[1] << 8));
}

static void set_all(gguf_block *b, double scale, double minimum)
{
    for (int s = 0; s < GGUF_MOST_ELEMENTS / GGUF_SUB_ELEMENTS; s++) {
        b->scale[s] = scale;
        b->minimum[s] = minimum;
    }
}

/* Returns bits first to first + count - 1 of a byte. */
static int bits(unsigned char byte, int first, int count)
{
    return byte >> first & ((1 << count) - 1);
}

static int signed_byte(unsigned char byte)
{
    return byte < 128 ? byte : byte - 256;
}

/* ---- blocks of 32 ------------------------------------------------------------------------------------------------- */

static int nibble(const unsigned char *codes, int i)
{
    return bits(codes[i % 16], i / 16 * 4, 4);
}

static void read_small(gguf_block *b, const unsigned char *p, bool has_minimum, int bits_at, int codes_at,
                       int offset)
{
    set_all(b, half_at(p), has_minimum ? half_at(p + 2) : 0);
    b->has_minimum = has_minimum;
    for (int i = 0; i < 32; i++) {
        int fifth = bits_at ? bits(p[bits_at + i / 8], i % 8, 1) : 0;
        b->code[i] = nibble(p + codes_at, i) + 16 * fifth - offset;
    }
}

static void read_q4_0(gguf_block *b, const unsigned char *p)
{
    read_small(b, p, false, 0, 2, 8);
}

static void read_q4_1(gguf_block *b, const unsigned char *p)
{
    read_small(b, p, true, 0, 4, 0);
}

static void read_q5_0(gguf_block *b, const unsigned char *p)
{
    read_small(b, p, false, 2, 6, 16);
}

static void read_q5_1(gguf_block *b, const unsigned char *p)
{
    read_small(b, p, true, 4, 8, 0);
}

static void read_q8_0(gguf_block *b, const unsigned char *p)
{
    set_all(b, half_at(p), 0);
    for (int i = 0; i < 32; i++)
        b->code[i] = signed_byte(p[2 + i]);
}

static const int iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const int e2m1_twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static void read_iq4_nl(gguf_block *b, const unsigned char *p)
{
    set_all(b, half_at(p), 0);
    for (int i = 0; i < 32; i++)
        b->code[i] = iq4_values[nibble(p + 2, i)];
}

static void read_mxfp4(gguf_block *b, const unsigned char *p)
{
    set_all(b, ldexp(1, p[0] - 128), 0);
    for (int i = 0; i < 32; i++)
        b->code[i] = e2m1_twice[nibble(p + 1, i)];
}

/* ---- super-blocks of 256 ------------------------------------------------------------------------------------------ */

static void read_q2_k(gguf_block *b, const unsigned char *p)
{
    double d = half_at(p + 80), dmin = half_at(p + 82);
    b->has_minimum = true;
    for (int s = 0; s < 16; s++) {
        b->scale[s] = d * bits(p[s], 0, 4);
        b->minimum[s] = -(dmin * bits(p[s], 4, 4));
    }
    for (int i = 0; i < 256; i++)
        b->code[i] = bits(p[16 + i / 128 * 32 + i % 32], i % 128 / 32 * 2, 2);
}

static void read_q3_k(gguf_block *b, const unsigned char *p)
{
    const unsigned char *s = p + 96;
    double d = half_at(p + 108);
    for (int i = 0; i < 16; i++)
        b->scale[i] = d * (bits(s[i % 8], i / 8 * 4, 4) + 16 * bits(s[8 + i % 4], i / 4 * 2, 2) - 32);
    for (int i = 0; i < 256; i++)
        b->code[i] =
            bits(p[32 + i / 128 * 32 + i % 32], i % 128 / 32 * 2, 2) + 4 * bits(p[i % 32], i / 32, 1) - 4;
}

/* Reads scales and minima of Q4_K and Q5_K. */
static void read_header(gguf_block *b, const unsigned char *p)
{
    const unsigned char *s = p + 4;
    double d = half_at(p), dmin = half_at(p + 2);
    b->has_minimum = true;
    for (int i = 0; i < 16; i++) {
        int j = i / 2;
        int scale = j < 4 ? bits(s[j], 0, 6) : bits(s[j + 4], 0, 4) + 16 * bits(s[j - 4], 6, 2);
        int minimum = j < 4 ? bits(s[j + 4], 0, 6) : bits(s[j + 4], 4, 4) + 16 * bits(s[j], 6, 2);
        b->scale[i] = d * scale;
        b->minimum[i] = -(dmin * minimum);
    }
}

static void read_q4_k(gguf_block *b, const unsigned char *p)
{
    read_header(b, p);
    for (int i = 0; i < 256; i++)
        b->code[i] = bits(p[16 + i / 64 * 32 + i % 32], i / 32 % 2 * 4, 4);
}

static void read_q5_k(gguf_block *b, const unsigned char *p)
{
    read_header(b, p);
    for (int i = 0; i < 256; i++)
        b->code[i] =
            bits(p[48 + i / 64 * 32 + i % 32], i / 32 % 2 * 4, 4) + 16 * bits(p[16 + i % 32], i / 32, 1);
}

static void read_q6_k(gguf_block *b, const unsigned char *p)
{
    double d = half_at(p + 208);
    for (int s = 0; s < 16; s++)
        b->scale[s] = d * signed_byte(p[192 + s]);
    for (int i = 0; i < 256; i++)
        b->code[i] = bits(p[i / 128 * 64 + i % 64], i % 128 / 64 * 4, 4) +
                     16 * bits(p[128 + i / 128 * 32 + i % 32], i % 128 / 32 * 2, 2) - 32;
}

static void read_iq4_xs(gguf_block *b, const unsigned char *p)
{
    double d = half_at(p);
    for (int i = 0; i < 16; i++) {
        int j = i / 2;
        b->scale[i] = d * (bits(p[4 + j / 2], j % 2 * 4, 4) + 16 * bits(p[2 + j / 4], j % 4 * 2, 2) - 32);
    }
    for (int i = 0; i < 256; i++)
        b->code[i] = iq4_values[nibble(p + 8 + i / 32 * 16, i % 32)];
}

static void read_tq2_0(gguf_block *b, const unsigned char *p)
{
    set_all(b, half_at(p + 64), 0);
    for (int i = 0; i < 256; i++)
        b->code[i] = bits(p[i / 128 * 32 + i % 32], i % 128 / 32 * 2, 2) - 1;
}

/* clang-format off */
static const gguf_format formats[] = {
    {"q4_0",    32,  18, {0, -1},    read_q4_0},
    {"q4_1",    32,  20, {0, 2},     read_q4_1},
    {"q5_0",    32,  22, {0, -1},    read_q5_0},
    {"q5_1",    32,  24, {0, 2},     read_q5_1},
    {"q8_0",    32,  34, {0, -1},    read_q8_0},
    {"q2_k",   256,  84, {80, 82},   read_q2_k},
    {"q3_k",   256, 110, {108, -1},  read_q3_k},
    {"q4_k",   256, 144, {0, 2},     read_q4_k},
    {"q5_k",   256, 176, {0, 2},     read_q5_k},
    {"q6_k",   256, 210, {208, -1},  read_q6_k},
    {"iq4_nl",  32,  18, {0, -1},    read_iq4_nl},
    {"iq4_xs", 256, 136, {0, -1},    read_iq4_xs},
    {"mxfp4",   32,  17, {-1, -1},   read_mxfp4}, /* the factor is its first byte */
    {"tq2_0",  256,  66, {64, -1},   read_tq2_0},
};
/* clang-format on */

const gguf_format *gguf_at(size_t i)
{
    return i < sizeof formats / sizeof formats[0] ? &formats[i] : NULL;
}

const gguf_format *gguf_find(const char *name)
{
    size_t i = 0;
    while (gguf_at(i) && strcmp(formats[i].name, name) != 0)
        i++;
    return gguf_at(i);
}

const gguf_format *gguf_of(const problem *p)
{
    const char *name = manifest_param_value(p->variant, "format");
    const gguf_format *found = name ? gguf_find(name) : NULL;
    if (!found) {
        fprintf(stderr, "kiln-verify: %s: gguf_blocks.c has no reference for format %s\n", p->variant->id,
                name ? name : "(none)");
        exit(3);
    }
    return found;
}

void gguf_read(const gguf_format *f, gguf_block *b, const unsigned char *bytes)
{
    b->has_minimum = false;
    f->read(b, bytes);
}

double gguf_value(const gguf_block *b, unsigned i)
{
    unsigned s = i / GGUF_SUB_ELEMENTS;
    double product = b->scale[s] * b->code[i];
    return b->has_minimum ? product + b->minimum[s] : product;
}

/* ---- making ------------------------------------------------------------------------------------------------------- */

/* Returns the bits of an f16 factor. */
static uint16_t make_factor(int kind, random_stream s, uint64_t i)
{
    uint16_t sign = (uint16_t)(random_bits(random_fork(s, 1), i) & 0x8000), any = (uint16_t)random_bits(s, i);
    switch (kind) {
    case GGUF_TIES: /* 1 to 31 units of 2^-8: products are ties of f16 and bf16 */
        return (uint16_t)number_encode(ELEMENT_F16, ldexp((double)(1 + any % 31), -8));
    case GGUF_DENORMAL:
        return sign | any % 0x400;
    case GGUF_LARGEST:
        return sign | (any % 4 ? 0x7bff : 0x7bff - any % 64);
    case GGUF_ZERO:
        return sign;
    case GGUF_ANY_BITS:
        return sign | any % 0x7c00;
    case GGUF_NONFINITE:
        return any % 4 == 0 ? sign | 0x7c00 : any % 4 == 1 ? sign | 0x7e00 : any;
    default:
        return (uint16_t)number_encode(ELEMENT_F16, random_normal(s, i) / 512);
    }
}

/* Returns the exponent of an MXFP4 block. */
static unsigned char make_exponent(int kind, random_stream s, uint64_t i)
{
    unsigned char any = (unsigned char)random_bits(s, i);
    switch (kind) {
    case GGUF_TIES:
    case GGUF_RANDOM:
        return (unsigned char)(120 + any % 4);
    case GGUF_DENORMAL:
        return any % 6;
    case GGUF_LARGEST:
        return (unsigned char)(255 - any % 6);
    case GGUF_ZERO:
        return 0;
    default:
        return any;
    }
}

void gguf_fill(const gguf_format *f, argument *packed, int kind, random_stream s)
{
    inputs_fill_bytes(packed, random_fork(s, 1));
    unsigned char *bytes = packed->host;
    for (size_t block = 0; block < packed->bytes / f->bytes; block++, bytes += f->bytes) {
        if (f->factor[0] < 0)
            bytes[0] = make_exponent(kind, random_fork(s, 2), block);
        for (size_t i = 0; i < 2 && f->factor[i] >= 0; i++)
            element_set_bits(ELEMENT_F16, bytes + f->factor[i], 0,
                             make_factor(kind, random_fork(s, 2), 2 * block + i));
    }
}
