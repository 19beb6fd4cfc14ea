/* What the kernels that read GGUF's Q4_K share: the header of a super-block. */
#ifndef KERNELS_Q4K_H
#define KERNELS_Q4K_H

#include <kiln/author/ptx.h>

enum {
    Q4K_BLOCK_BYTES = 144,
    Q4K_BLOCK_WORDS = 36,
    Q4K_HEADER_WORDS = 4,
    Q4K_BLOCK_ELEMENTS = 256,
    Q4K_TILE_BLOCKS = 8, /* super-blocks: whole sectors, and two sub-blocks for each lane */
    Q4K_CODES = 4        /* in each half of the nibbles of a word */
};

/* d * scale and -dmin * minimum, F32, of two neighbouring sub-blocks. */
typedef struct q4k_numbers {
    ptx_val scale[2], minimum[2];
} q4k_numbers;

/* The numbers of sub-blocks 2k and 2k + 1, k = lane % 4, from the words of the header that the four lanes share. */
q4k_numbers q4k_decode_header(ptx_fn *f, ptx_val lane, const ptx_val word[Q4K_HEADER_WORDS]);

/* The low, or high, nibbles of a word of codes, one in each byte. */
ptx_val q4k_nibbles(ptx_fn *f, ptx_val word, uint32_t half);

/* The code in byte i as F32. */
ptx_val q4k_code(ptx_fn *f, ptx_val nibbles, uint32_t i);

#endif
