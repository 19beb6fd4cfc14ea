/* Copies rows of Q, K and V into shared memory: all threads of a thread block, 16 bytes at a time. */
#ifndef KERNELS_ATTENTION_COPY_H
#define KERNELS_ATTENTION_COPY_H

#include "attention.h"

/* Copies 16 bytes of global memory, or zeros where they are out of bounds. A null `in_bounds` is always true. */
typedef void attention_copy_unit(const attention *a, ptx_val from, ptx_val to, const ptx_val *in_bounds);

typedef struct attention_copier {
    const attention *a;
    attention_copy_unit *copy;
    uint32_t threads;
    uint32_t bytes; /* of an element in shared memory */
    ptx_val tid;
} attention_copier;

/* Layout of rows in shared memory: 16 bytes of padding after every `padded` rows; 0: no padding. */
typedef struct attention_lines {
    uint32_t bytes, padded;
} attention_lines;

/* Bytes that `rows` rows take; a multiple of padded. */
uint32_t attention_lines_bytes(attention_lines lines, uint32_t rows);

/* Bytes from the first row to row `row`. */
ptx_val attention_line(ptx_fn *f, attention_lines lines, ptx_val row);

/* A panel: some columns of some rows of a matrix, and its destination. */
typedef struct attention_panel {
    const attention_copier *by;
    attention_matrix from;
    uint32_t rows, elements;
    attention_lines lines;
    ptx_val row, column, at,
        to; /* this thread's first unit: its row, its column in units, its source, its destination */
} attention_panel;

attention_panel attention_init_panel(const attention_copier *by, attention_matrix from, uint32_t rows,
                                     uint32_t elements, ptx_val to, attention_lines lines);

/* Copies the panel whose first row is `row` and whose first column is `element`; rows from `end` on are zeros. */
void attention_copy_rows(const attention_panel *p, ptx_val row, ptx_val end, ptx_val element);

/* Loads 16 bytes of global memory as words, or zeros where they are out of bounds. */
void attention_load_unit(ptx_fn *f, ptx_val from, const ptx_val *in_bounds, ptx_val words[4]);

#endif
