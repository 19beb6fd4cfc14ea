/* Copies rows of Q, K and V into shared memory, and rows of O from it, 16 bytes at a time. */
#ifndef KERNELS_ATTENTION_COPY_H
#define KERNELS_ATTENTION_COPY_H

#include "attention.h"
#include "device/layout.h"

typedef struct attention_copier {
    const attention *a;
    uint32_t threads;
    bool widens; /* elements to F32, in registers; else copies are asynchronous if possible */
    ptx_val tid;
} attention_copier;

/* Lays out a tile for tensor cores, rows of `units` units each, which `threads` threads copy; returns its end. It has strips: rows
 * 4 to 7 of every eight have the two units of a strip swapped, and a gap may follow a strip. A lane finds its row once; from strip
 * to strip it adds a constant. An odd number of units has no strips: such rows have no bank conflicts anyway. */
uint32_t attention_strips(layout *lines, uint32_t start, uint32_t rows, uint32_t units, uint32_t threads);

/* Moves `at` to a row, which may be in a page of the tile being copied. */
ptx_val attention_line_at(const attention *a, const attention_matrix *m, ptx_val at, ptx_val row);

enum { MOST_SLOTS = 4 };

/* A panel: some columns of some rows of a matrix, and its destination. A round copies a unit per thread, from round_rows rows.
 * `parts` teams share a row of a round. A team of an odd number of threads has one per unit of the row, and a round has whole
 * octets of rows, so that rounds share no sectors if the matrix has no gaps. If a round then has more units than threads, a
 * thread has several slots: units whose numbers differ by the number of threads. */
typedef struct attention_panel {
    attention_copier by;
    attention_matrix from;
    uint32_t rows;
    uint32_t unit_elements, row_units; /* elements of 16 bytes; such units of a row */
    uint32_t team, round_rows, parts, slots;
    uint32_t busy; /* threads with a unit */
    layout lines;
    /* Row, source and destination of this thread's first units. */
    ptx_val row[MOST_SLOTS], at[MOST_SLOTS], to[MOST_SLOTS];
} attention_panel;

attention_panel attention_init_panel(const attention_copier *by, attention_matrix from, uint32_t rows,
                                     uint32_t elements, ptx_val to, layout lines);

/* Copies the panel whose first row is `row`, and whose first column is `element`, or 0; rows past the matrix's end are zeros. */
void attention_copy_part(const attention_panel *p, ptx_val row, ptx_val element);
#define attention_copy_rows(p, row) attention_copy_part(p, row, ptx_u32(0))

/* Copies the scales of K, of `rows` rows from `row` on, and after them those of V, if keys have scales. Past the end they are
 * 0. */
void attention_copy_scales(const attention_copier *by, uint32_t rows, ptx_val to, ptx_val row);

/* Stores `rows` rows of O from shared memory, from the tile's row `first` on. `threads` threads share them, of which this is
 * number `thread`. */
void attention_store_rows(const attention *a, layout lines, ptx_val shared, ptx_val first, uint32_t rows,
                          ptx_val thread, uint32_t threads);

/* ---- pages ----------------------------------------------------------------------------------------------------------- */

/* A page has a multiple of eight rows, so the eight keys of an octet are contiguous. Shared memory has an entry for each octet of
 * a tile: the offsets of its rows of K and V. It has room for two tiles: one tile's entries are built while the other tile is
 * copied, and loads of page numbers for the tile after that are in flight. Without pages all this emits nothing. */

/* Bytes of static shared memory. */
uint32_t attention_pages_bytes(const attention *a);

/* Builds the first tile's entries and selects them: copies may follow. Each of the first `warp_octets` lanes of a warp builds
 * the entry of an octet of the warp's own keys; 0: the first threads of the thread block build all entries. */
void attention_init_pages(attention *a, uint32_t warp_octets);

/* Selects the tile that begins at a counted key, for the copies that follow. */
void attention_select_pages(attention *a, ptx_val counted);

/* Builds the entries of the tile after the one that begins at `counted`. There must be a barrier between the copies of the tile
 * before `counted` and this call, and another between this call and the copies of the new tile. */
void attention_build_pages(attention *a, ptx_val counted);

/* The address of a row's entry; the offset of the octet that is `rows` rows, a multiple of eight, after an entry's
 * octet. */
ptx_val attention_octet_at(const attention *a, ptx_val row);
ptx_val attention_load_octet(const attention *a, const attention_matrix *m, ptx_val octet, uint32_t rows);

#endif
