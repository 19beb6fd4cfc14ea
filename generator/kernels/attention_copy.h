/* Copies rows of Q, K and V into shared memory: all threads of a thread block, 16 bytes at a time. */
#ifndef KERNELS_ATTENTION_COPY_H
#define KERNELS_ATTENTION_COPY_H

#include "attention.h"
#include "device/shared.h"

typedef struct attention_copier {
    const attention *a;
    uint32_t threads;
    uint32_t bytes;     /* of an element in shared memory: those of 16 bits may be widened to F32 */
    bool in_background; /* from sm_80 on; not for wider elements */
    ptx_val tid;
} attention_copier;

/* A panel: some columns of some rows of a matrix, and its destination. */
typedef struct attention_panel {
    const attention_copier *by;
    attention_matrix from;
    uint32_t rows, elements;
    shared_rows lines;
    ptx_val row, column; /* of this thread's first unit; the column in units */
    ptx_val at, to;      /* its source, its destination */
} attention_panel;

attention_panel attention_init_panel(const attention_copier *by, attention_matrix from, uint32_t rows,
                                     uint32_t elements, ptx_val to, shared_rows lines);

/* Copies the panel whose first row is `row` and whose first column is `element`; rows from `end` on are zeros. */
void attention_copy_rows(const attention_panel *p, ptx_val row, ptx_val end, ptx_val element);

#endif
