/* Loads words at any byte of shared memory: GGUF's quantised blocks need no alignment. */
#ifndef DEVICE_BYTES_H
#define DEVICE_BYTES_H

#include <kiln/author/ptx.h>

/* How words are read from addresses with equal remainders modulo 4. */
typedef struct byte_order {
    uint32_t alignment;  /* known alignment of the addresses */
    ptx_val selector[2]; /* prmt's, for words at 0 and at `phase` modulo 4; poison if words are aligned */
} byte_order;

/* Returns the order for addresses that equal this pointer to shared memory modulo 4. `alignment` is 1, 2 or a multiple of 4. Words
 * begin at bytes that equal 0 or `phase` modulo 4. */
byte_order bytes_order(ptx_fn *f, ptx_val pointer, uint32_t alignment, uint32_t phase);

/* Rounds a pointer down to a multiple of 4, for the functions below. */
ptx_val bytes_round(ptx_fn *f, ptx_val pointer, uint32_t alignment);

/* Loads `count` U32 from `byte` after a rounded pointer. If words are aligned, `byte` is a multiple of `alignment`, and loads
 * are as wide as that allows. Otherwise count + 1 words are loaded: up to three bytes before the first byte, and after the
 * last, must be readable. */
void bytes_load(ptx_fn *f, const byte_order *order, ptx_val rounded, uint32_t alignment, uint32_t byte,
                uint32_t count, ptx_val words[]);

/* Loads the one or two bytes at `byte`, a multiple of 4, which do not cross a multiple of 4: the low bytes of a U32, whose
 * other bytes are undefined. */
ptx_val bytes_load_low(ptx_fn *f, const byte_order *order, ptx_val rounded, uint32_t byte);

#endif
