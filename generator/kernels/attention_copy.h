/* Copies rows of Q, K and V into shared memory, and rows of O out of it, 16 bytes at a time. */
#ifndef KERNELS_ATTENTION_COPY_H
#define KERNELS_ATTENTION_COPY_H

#include "attention.h"

typedef struct attention_copier {
    const attention *a;
    uint32_t threads;
    uint32_t bytes;     /* of an element in shared memory: those of 16 bits may be widened to F32 */
    bool in_background; /* from sm_80 on; not for wider elements */
    ptx_val tid;
} attention_copier;

/* Where the rows of a tile lie in shared memory: one after the other, or, on tensor cores, in strips of two units of every
 * row. Rows 4 to 7 of every eight have the two of a strip in the other order, and a gap follows each strip: neither eight
 * rows of a matrix of ldmatrix nor eight units of a row that eight lanes copy have a bank conflict. A lane finds its row
 * once; from strip to strip it is a constant. */
typedef struct attention_lines {
    uint32_t row_bytes, unit_bytes;
    uint32_t strip_bytes; /* from strip to strip; 0: no strips */
    uint32_t start;       /* of the first row; addresses in a kernel count from a base that all tiles have */
} attention_lines;

/* Strips of so many rows, of `units` units of 16 bytes each, that so many threads copy. An odd number of units has no
 * strips: such rows have no bank conflict anyway. */
attention_lines attention_strips(uint32_t start, uint32_t rows, uint32_t units, uint32_t threads);

/* Where the last row ends. */
uint32_t attention_lines_end(attention_lines lines, uint32_t rows, uint32_t units);

/* Bytes from a row's first unit to another, with strips one of an even number; and the start. */
uint32_t attention_unit_bytes(attention_lines lines, uint32_t unit);

/* Bytes from the first unit of the first row to some unit of some row, without the start. */
ptx_val attention_unit_at(ptx_fn *f, attention_lines lines, ptx_val row, ptx_val unit);

/* `at`, moved to a row, which may be in a page of the tile that copies are for. */
ptx_val attention_line_at(const attention *a, const attention_matrix *m, ptx_val at, ptx_val row);

/* A panel: some columns of some rows of a matrix, and its destination. */
typedef struct attention_panel {
    const attention_copier *by;
    attention_matrix from;
    uint32_t rows, elements;
    uint32_t unit_elements, row_units; /* elements of 16 bytes; such units of a row */
    attention_lines lines;
    ptx_val row, column; /* of this thread's first unit; the column in units */
    ptx_val at, to;      /* its source, its destination */
} attention_panel;

attention_panel attention_init_panel(const attention_copier *by, attention_matrix from, uint32_t rows,
                                     uint32_t elements, ptx_val to, attention_lines lines);

/* Copies the panel whose first row is `row` and whose first column is `element`; rows from `end` on are zeros. */
void attention_copy_rows(const attention_panel *p, ptx_val row, ptx_val end, ptx_val element);

/* With a scale for each key: copies those of K, of so many rows from `row` on, and behind them those of V. From `end` on they are 0. */
void attention_copy_scales(const attention_copier *by, uint32_t rows, ptx_val to, ptx_val row, ptx_val end);

/* Stores `rows` rows of O from shared memory, from the tile's row `first` on: so many threads, of which this is number
 * `thread`. */
void attention_store_rows(const attention *a, attention_lines lines, ptx_val shared, ptx_val first,
                          uint32_t rows, ptx_val thread, uint32_t threads);

#endif
