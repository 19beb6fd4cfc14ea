/* GGUF's Q4_K, from the format's definition: a super-block is 256 elements in 144 bytes.
 *
 *     byte 0: d, f16.  2: dmin, f16.  4: twelve bytes s, with a 6-bit scale and a 6-bit minimum for each of 8 sub-blocks of
 *     32 elements.  16: 128 bytes of codes; sub-blocks 2p and 2p + 1 are the low and the high nibbles of bytes 32p to 32p + 31
 *     sub-block j < 4:  scale = s[j] & 63,  minimum = s[j + 4] & 63
 *     else              scale = s[j + 4] & 15 with bits 6, 7 of s[j - 4] above,  minimum = s[j + 4] >> 4 with those of s[j]
 *     x = d * scale * code - dmin * minimum
 */
#ifndef VERIFY_Q4K_H
#define VERIFY_Q4K_H

#include "families.h"
#include "gguf_blocks.h"

enum { Q4K_BLOCK_BYTES = 144, Q4K_BLOCK_ELEMENTS = 256, Q4K_SUB_BLOCKS = 8, Q4K_SUB_ELEMENTS = 32 };

/* The fields of a super-block, unpacked. */
typedef struct q4k_block {
    uint16_t d, dmin; /* bits of f16 numbers */
    unsigned char scale[Q4K_SUB_BLOCKS], minimum[Q4K_SUB_BLOCKS];
    unsigned char code[Q4K_BLOCK_ELEMENTS];
} q4k_block;

void q4k_read(q4k_block *b, const unsigned char bytes[Q4K_BLOCK_BYTES]);
void q4k_write(const q4k_block *b, unsigned char bytes[Q4K_BLOCK_BYTES]);

/* Returns element i: exact if d and dmin are finite, since the terms have 21 and 17 bits and are multiples of
 * 2^-24. */
double q4k_value(const q4k_block *b, unsigned i);

/* Quantises 256 elements: the range of each sub-block is from its smallest element, or 0 if that is positive, to
 * its largest. */
void q4k_quantize(q4k_block *b, const double x[Q4K_BLOCK_ELEMENTS]);

/* Kinds of super-blocks: gguf_blocks.h's; from Q4K_NUMBERS on, numbers of a kind of inputs.h. */
enum { Q4K_NUMBERS = GGUF_NONFINITE + 1 };

void q4k_fill(argument *packed, int kind, random_stream s);

#endif
