/* NF4's sixteen values, and a table in shared memory that turns a byte of codes into two of them with one load. Each lane has
 * a copy of its own, so no two lanes conflict. */
#ifndef DEVICE_NF4_PAIRS_H
#define DEVICE_NF4_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include <kiln/author/ptx.h>

/* Quantiles of the standard normal distribution (QLoRA, appendix E), each a float. */
extern const double nf4_values[16];

enum {
    NF4_PAIRS_BYTES = 32768,        /* of the table, 16-byte aligned */
    NF4_PAIRS_ALIGNED_BYTES = 65536 /* aligned table, aligned to its size; half of each 256 bytes is free */
};

/* The user sets the members down to `reserved`, and calls nf4_pairs_plan. */
typedef struct nf4_pairs {
    ptx_fn *f;
    ptx_type type; /* of the values: F32, F64, F16, BF16 */
    bool is_high_first;
    bool is_aligned; /* one instruction per address, not two */
    uint32_t
        reserved; /* most bytes of shared memory before an aligned table, with the system's 1 KB; a multiple of 16 */

    uint32_t words, word_bytes; /* of an entry: two values, or one pair of 16-bit values */
    ptx_type word_type;
    uint32_t stride, skipped; /* bytes from entry to entry; from `start` to the table */
    uint32_t bytes;           /* of dynamic shared memory, including skipped ones */
    /* prmt's selector that moves byte 0 of a word to the second byte of an aligned table's address, or else to the lowest byte of a
     * number; and what each further byte adds to it. */
    uint32_t selector, selector_step;
    ptx_val start; /* in shared memory, U32; an aligned table starts `reserved` bytes after it */
    ptx_val mine;  /* address of this lane's copy of the first entry */
} nf4_pairs;

nf4_pairs nf4_pairs_plan(nf4_pairs p);

/* Sets `start` for a table in dynamic shared memory from `shared` on: to `shared`, or for an aligned table to the first multiple
 * of 64 KB from `shared - reserved` on, which is 0 if `shared` is at most `reserved`. Returns `bytes`. */
uint32_t nf4_pairs_layout(nf4_pairs *p, ptx_val shared);

/* Sets this lane's read address, after the layout. */
void nf4_pairs_find(nf4_pairs *p, ptx_val lane);

/* Fills the table, eight threads to an entry. All threads call it: a power of two, or at least 256. A barrier must follow. */
void nf4_pairs_fill(const nf4_pairs *p, ptx_val tid);

/* Decodes the two values of byte 0 to 3 of a word, in the tensor's order. With 16-bit types out[0] holds the pair, a U32. */
void nf4_pairs_decode(const nf4_pairs *p, ptx_val word, uint32_t byte, ptx_val out[2]);

/* For a byte that is known on the device only, 0 to 3: its selector, U32, and nf4_pairs_decode by it. */
ptx_val nf4_pairs_selector(const nf4_pairs *p, ptx_val byte);
void nf4_pairs_decode_selected(const nf4_pairs *p, ptx_val word, ptx_val selector, ptx_val out[2]);

#endif
