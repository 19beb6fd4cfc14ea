/* Layouts of row tiles in shared memory that avoid bank conflicts: tests/device counts the wavefronts of the kernels' layouts.
 * Rows of quantised weights begin at any byte, and some of their loads conflict: see row_ring.h.
 *
 * A row is a sequence of units: of 16 bytes, of more if the copy widens elements, or of 4 bytes for sums. Unit u of row r is
 * at place u, unless bits of r flip bits of u (swizzle). Rows follow each other, with padding after every few; or strips
 * follow each other: two units of every row, then the next two.
 */
#ifndef DEVICE_LAYOUT_H
#define DEVICE_LAYOUT_H

#include <kiln/author/ptx.h>

enum { UNIT_BYTES = 16 /* the most that a lane loads or stores at once */, LAYOUT_MOST_TURNS = 3 };

/* Bit row_bit of a row's number flips bit unit_bit of the places of its units. */
typedef struct layout_turn {
    uint32_t row_bit, unit_bit;
} layout_turn;

typedef struct layout {
    uint32_t start;     /* byte of the first row, from a base that tiles share */
    uint32_t row_bytes; /* from one row to the next */
    uint32_t unit_bytes;
    uint32_t padded_rows, pad_bytes; /* rows between paddings (0: none); bytes of a padding */
    uint32_t strip_bytes;            /* from one strip to the next; 0: no strips */
    uint32_t turn_count;
    layout_turn turns[LAYOUT_MOST_TURNS];
} layout;

/* Rows of 2, 4 or 8 units that ldmatrix reads: the same unit of eight rows is in different banks. */
layout layout_of_matrices(uint32_t units);

/* Rows of 128 bytes: lanes (g, t) that load 4 or 8 bytes of row g, the t-th of one or two units, access different banks. */
layout layout_of_codes(void);

/* ---- known when the kernel is made: bytes ------------------------------------------------------------------------- */

/* Offset of a unit of a row, from the base. */
uint32_t layout_byte(const layout *l, uint32_t row, uint32_t unit);

/* Offsets: of the row `rows` below, if both have the same swizzle; of a unit of row 0, in strips an even unit; of the end
 * of the tile. */
uint32_t layout_rows(const layout *l, uint32_t rows);
uint32_t layout_unit(const layout *l, uint32_t unit);
uint32_t layout_end(const layout *l, uint32_t rows, uint32_t units);

/* Returns the fields of wgmma's descriptor for rows of layout_of_matrices(units), which go along k. Their swizzle is wgmma's
 * swizzle of as many bytes as a row has (PTX ISA 9.7.15.5.1.2). */
static inline ptx_matrix layout_matrix(uint32_t units)
{
    const uint32_t row_bytes = units * UNIT_BYTES;
    return (ptx_matrix){
        .swizzle_bytes = row_bytes, .stride_bytes = 8 * row_bytes, .leading_bytes = UNIT_BYTES};
}

/* ---- known on the device: U32 ------------------------------------------------------------------------------------- */

/* Offset of a row from the first. */
ptx_val layout_row_at(ptx_fn *f, const layout *l, ptx_val row);

ptx_val layout_place(ptx_fn *f, const layout *l, ptx_val row, ptx_val unit);

/* Offset of a unit of a row from the first row. */
ptx_val layout_at(ptx_fn *f, const layout *l, ptx_val row, ptx_val unit);

#endif
