/* Scales of NF4's quantised blocks that are quantised themselves, as bitsandbytes stores them (QLoRA, section 3: double
 * quantisation): code[index] * absmax + offset, each operation rounded to f32. Every 256 quantised blocks, counted over the
 * whole tensor, share an absmax. */
#ifndef DEVICE_NF4_NESTED_H
#define DEVICE_NF4_NESTED_H

#include <stdbool.h>
#include <stdint.h>

#include <kiln/author/ptx.h>

enum {
    NF4_NESTED_BYTES = 1024, /* of `code` in shared memory */
    NF4_NESTED_AT_ONCE = 8
};

typedef struct nf4_nested {
    ptx_fn *f;
    ptx_val index, code, absmax; /* pointers: to U8, F32 [256], F32 */
    ptx_val offset;              /* F32 */
    ptx_val table;               /* address of a copy of `code` in shared memory; poison: none */
} nf4_nested;

/* nf4_nested_pointers declares scale_index, nested_code and nested_absmax; nf4_nested_offset declares a later argument,
 * nested_offset. */
nf4_nested nf4_nested_pointers(ptx_fn *f);
void nf4_nested_offset(nf4_nested *s);

/* Copies `code` to `table` in shared memory, where later lookups go. All threads of the thread block fill it, and wait at a
 * barrier. */
void nf4_nested_fill(nf4_nested *s, ptx_val table, ptx_val tid);

/* Loads the scales of `count` quantised blocks, at most NF4_NESTED_AT_ONCE, by their numbers in the tensor, U64. Out of
 * bounds nothing is read and the scale is 0; null: all are in bounds. */
void nf4_nested_load(const nf4_nested *s, uint32_t count, const ptx_val number[], const ptx_val in_bounds[],
                     ptx_val out[]);

#endif
