/* How a tile of rows lies in shared memory, so that lanes which load or store at once are in different banks: tests/device proves
 * it of the layouts that kernels use.
 *
 * A row is units: of 16 bytes, of more where they are widened on the way, or of 4 for sums. Unit u of row r is at place u; set
 * bits of r may flip bits of u. Rows follow each other, with a unit of padding behind some; or strips do: two units of every row,
 * then the next two.
 */
#ifndef DEVICE_LAYOUT_H
#define DEVICE_LAYOUT_H

#include <kiln/author/ptx.h>

enum { UNIT_BYTES = 16 /* the most that a lane loads or stores at once */, LAYOUT_MOST_TURNS = 3 };

/* Bit row_bit of a row's number flips bit unit_bit of its units' places. */
typedef struct layout_turn {
    uint32_t row_bit, unit_bit;
} layout_turn;

typedef struct layout {
    uint32_t start;     /* byte of the first row, from a base that several tiles have */
    uint32_t row_bytes; /* from a row to the next */
    uint32_t unit_bytes;
    uint32_t padded_rows; /* a unit of padding follows so many rows; 0: none does */
    uint32_t strip_bytes; /* from a strip to the next; 0: there are none */
    uint32_t turn_count;
    layout_turn turns[LAYOUT_MOST_TURNS];
} layout;

/* Rows of 2, 4 or 8 units that ldmatrix reads: those with one number of eight rows are in different banks. */
layout layout_of_matrices(uint32_t units);

/* ---- known when the kernel is made: bytes ------------------------------------------------------------------------- */

/* Where a unit of a row is, from the base. */
uint32_t layout_byte(const layout *l, uint32_t row, uint32_t unit);

/* From a row to the one `rows` below, if their turns are alike; from the base to a unit of row 0, with strips an even one; from
 * the base to a tile's end. */
uint32_t layout_rows(const layout *l, uint32_t rows);
uint32_t layout_unit(const layout *l, uint32_t unit);
uint32_t layout_end(const layout *l, uint32_t rows, uint32_t units);

/* ---- known on the device: U32 ------------------------------------------------------------------------------------- */

/* From the first row to another. */
ptx_val layout_row_at(ptx_fn *f, const layout *l, ptx_val row);

/* The place of a unit in its row. */
ptx_val layout_place(ptx_fn *f, const layout *l, ptx_val row, ptx_val unit);

/* From the first row to a unit of a row. */
ptx_val layout_at(ptx_fn *f, const layout *l, ptx_val row, ptx_val unit);

#endif
