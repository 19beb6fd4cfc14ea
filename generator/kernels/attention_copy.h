/* Rows of Q, K and V into shared memory, by all threads of a block, 16 bytes at a time. */
#ifndef KERNELS_ATTENTION_COPY_H
#define KERNELS_ATTENTION_COPY_H

#include "attention.h"

/* Copies 16 bytes of global memory; zeros where they are not to be read. `exists` is null where they all are. */
typedef void attention_copy_unit(const attention *a, ptx_val from, ptx_val to, const ptx_val *in_bounds);

typedef struct attention_copier {
    const attention *a;
    attention_copy_unit *copy;
    uint32_t threads;
    uint32_t bytes; /* of an element in shared memory */
    ptx_val tid;
} attention_copier;

/* Where rows lie in shared memory: `padded` of them, then 16 bytes that are nobody's; 0: rows without gaps. */
typedef struct attention_lines {
    uint32_t bytes, padded;
} attention_lines;

/* Bytes from one row to another: `rows` a multiple of padded. */
uint32_t attention_lines_bytes(attention_lines lines, uint32_t rows);

/* Where row `row` begins, in bytes from the first. */
ptx_val attention_line(ptx_fn *f, attention_lines lines, ptx_val row);

/* Some elements of each of some rows of a matrix, and where they go. */
typedef struct attention_panel {
    const attention_copier *by;
    attention_matrix from;
    uint32_t rows, elements;
    attention_lines lines;
    ptx_val row, column, at,
        to; /* this thread's first unit: its column in units; where it lies, where it goes */
} attention_panel;

attention_panel attention_init_panel(const attention_copier *by, attention_matrix from, uint32_t rows,
                                     uint32_t elements, ptx_val to, attention_lines lines);

/* Its rows, counted from `row`, from `element` on; rows from `end` on are zeros. */
void attention_copy_rows(const attention_panel *p, ptx_val row, ptx_val end, ptx_val element);

/* 16 bytes of global memory in registers, as words; zeros where they are not to be read. */
void attention_load_unit(ptx_fn *f, ptx_val from, const ptx_val *in_bounds, ptx_val words[4]);

#endif
