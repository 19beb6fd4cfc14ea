/* Rows of Q, K and V into shared memory, by all threads of a block, 16 bytes at a time. */
#ifndef KERNELS_ATTENTION_COPY_H
#define KERNELS_ATTENTION_COPY_H

#include "attention.h"

/* Copies 16 bytes of global memory; zeros where they are not to be read. `exists` is null where they all are. */
typedef void attention_copy_unit(const attention *a, ptx_val from, ptx_val to, const ptx_val *exists);

typedef struct attention_copier {
    const attention *a;
    attention_copy_unit *copy;
    uint32_t threads;
    uint32_t bytes; /* of an element in shared memory */
    ptx_val tid;
} attention_copier;

/* Some elements of each row of a matrix, and where they go. */
typedef struct attention_panel {
    const attention_copier *by;
    uint32_t elements, row_bytes; /* of a row; from row to row in shared memory */
    ptx_val from, stride, to;     /* the whole panel's; `to` is U32 */
    ptx_val row, at, place, step; /* this thread's first unit, and how many bytes it is to its next */
} attention_panel;

attention_panel attention_open_panel(const attention_copier *by, ptx_val from, ptx_val stride,
                                     uint32_t elements, ptx_val to, uint32_t row_bytes);

/* Rows [row, row + rows), from `element` on; rows from `end` on are zeros. */
void attention_copy_rows(const attention_panel *p, ptx_val row, uint32_t rows, ptx_val end, ptx_val element);

/* 16 bytes of global memory in registers, as words; zeros where they are not to be read. */
void attention_load_unit(ptx_fn *f, ptx_val from, const ptx_val *exists, ptx_val words[4]);

#endif
