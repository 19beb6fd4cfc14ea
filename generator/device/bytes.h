/* Words from any byte of memory on: GGUF's quantised blocks begin wherever the one before ends. */
#ifndef DEVICE_BYTES_H
#define DEVICE_BYTES_H

#include <kiln/author/ptx.h>

/* How words are read from addresses that are alike modulo 4. */
typedef struct byte_order {
    uint32_t alignment;  /* that the addresses are known to be multiples of */
    uint32_t phase;      /* words begin at bytes that are 0, or this, modulo 4 */
    ptx_val selector[2]; /* prmt's for the one and the other; poison where words are aligned */
} byte_order;

/* The order for addresses like this pointer's, in global or shared memory. `alignment` is 1, 2 or a multiple of 4. */
byte_order bytes_order(ptx_fn *f, ptx_val pointer, uint32_t alignment, uint32_t phase);

/* The pointer rounded down to a multiple of 4, as what the functions below take for it. */
ptx_val bytes_round(ptx_fn *f, ptx_val pointer, uint32_t alignment);

/* `count` U32 from byte `byte` behind a rounded pointer, which is a multiple of `alignment` where words are aligned: then
 * with as few loads as that allows. Else count + 1 words are loaded: up to three bytes before the first byte, and behind the
 * last, must be readable. */
void bytes_load(ptx_fn *f, const byte_order *order, ptx_val rounded, uint32_t alignment, uint32_t byte,
                uint32_t count, ptx_val words[]);

/* The one or two bytes at `byte`, a multiple of 4, which do not cross a multiple of 4: the low ones of a U32 whose others may
 * be any. */
ptx_val bytes_load_low(ptx_fn *f, const byte_order *order, ptx_val rounded, uint32_t byte);

#endif
