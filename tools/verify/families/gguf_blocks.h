/* GGUF's quantised blocks, from the formats' definitions. Little-endian; "f16 at 2" is the number in bytes 2 and 3.
 *
 *     Q4_0    32 elements,  18 bytes: d f16 at 0; 16 bytes at 2: element i is the low nibble of byte i, 16 + i the high one;
 *                                     x = d * (code - 8)
 *     Q4_1    32,  20: d at 0, m at 2, codes at 4 as Q4_0's; x = d * code + m
 *     Q5_0    32,  22: d at 0; 32 bits at 2: bit i is bit 4 of code i; the low bits at 6 as Q4_0's; x = d * (code - 16)
 *     Q5_1    32,  24: d at 0, m at 2, bits at 4, low bits at 8; x = d * code + m
 *     Q8_0    32,  34: d at 0, 32 signed bytes at 2; x = d * code
 *     Q2_K   256,  84: sub-blocks of 16; at 0 a byte for each, scale below minimum, 4 bits each; 64 bytes at 16: element
 *                      128 h + 32 q + l is bits 2q, 2q + 1 of byte 32 h + l; d at 80, dmin at 82; x = d * scale * code - dmin * minimum
 *     Q3_K   256, 110: sub-blocks of 16; 32 bytes at 0: bit j of byte l is bit 2 of element 32 j + l's code; 64 bytes at 32: low two
 *                      bits as Q2_K's; 12 bytes s at 96: of scale i the low four bits are nibble i / 8 of s[i % 8], the high two
 *                      are bits 2 (i / 4) of s[8 + i % 4]; d at 108; x = d * (scale - 32) * (code - 4)
 *     Q4_K   256, 144: q4k.h
 *     Q5_K   256, 176: Q4_K's header; 32 bytes at 16: bit j of byte l is bit 4 of element 32 j + l's code; low bits at 48 as Q4_K's
 *     Q6_K   256, 210: sub-blocks of 16; 128 bytes at 0: nibble n of byte 64 h + l is element 128 h + 64 n + l's low four bits; 64
 *                      bytes at 128: the high two as Q2_K's; 16 signed scales at 192; d at 208; x = d * scale * (code - 32)
 *     IQ4_NL  32,  18: as Q4_0, but x = d * value[code], of 16 values
 *     IQ4_XS 256, 136: sub-blocks j of 32; d at 0; 16 bits at 2: bits 2j are the high two of scale j; 4 bytes at 4: nibble j % 2 of
 *                      byte j / 2 is the low four; 16 bytes for each at 8, as IQ4_NL's; x = d * (scale - 32) * value[code]
 *     MXFP4   32,  17: e at 0, codes at 1 as Q4_0's: e2m1; x = 2^(e - 127) * e2m1, that is 2^(e - 128) times twice the number
 *     TQ2_0  256,  66: 64 bytes at 0 as Q2_K's codes; d at 64; x = d * (code - 1)
 */
#ifndef VERIFY_GGUF_BLOCKS_H
#define VERIFY_GGUF_BLOCKS_H

#include "../problem.h"
#include "../random.h"

enum { GGUF_MOST_ELEMENTS = 256, GGUF_MOST_BYTES = 210, GGUF_SUB_ELEMENTS = 16 };

/* An unpacked block: element i is scale * code[i] + minimum, with the scale and minimum of its sub-block of 16. In
 * float64 all of these are exact, and so are products and sums, if they are finite. */
typedef struct gguf_block {
    double scale[GGUF_MOST_ELEMENTS / GGUF_SUB_ELEMENTS], minimum[GGUF_MOST_ELEMENTS / GGUF_SUB_ELEMENTS];
    int code[GGUF_MOST_ELEMENTS]; /* minus the offset, or the table's value */
    bool has_minimum;
} gguf_block;

typedef struct gguf_format {
    const char *name; /* "q4_0" */
    unsigned elements, bytes;
    int factor[2]; /* byte offsets of f16 factors; -1: none */
    void (*read)(gguf_block *b, const unsigned char *bytes);
} gguf_format;

/* Return a format: the i-th, null after the last; the one with this name, null if there is none; the one of the variant's
 * parameter `format`, without which the program ends. */
const gguf_format *gguf_at(size_t i);
const gguf_format *gguf_find(const char *name);
const gguf_format *gguf_of(const problem *p);

void gguf_read(const gguf_format *f, gguf_block *b, const unsigned char *bytes);
double gguf_value(const gguf_block *b, unsigned i);

/* Kinds of blocks: random bits, except the factors. */
enum {
    GGUF_RANDOM, /* weights of a typical size */
    GGUF_TIES,
    GGUF_DENORMAL,
    GGUF_LARGEST,
    GGUF_ZERO,
    GGUF_ANY_BITS, /* finite factors */
    GGUF_NONFINITE
};

/* Fills a u8 argument, which holds whole blocks. */
void gguf_fill(const gguf_format *f, argument *packed, int kind, random_stream s);

#endif
