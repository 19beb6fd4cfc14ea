/* Scales of blocks in cuBLAS' and CUTLASS' layout for block-scaled products (cuBLAS, "1D block scaling factors layout").
 *
 * A tile has the bytes of 128 rows and 4 neighbouring blocks of each. Row r and block c of a tile are at byte r % 32 * 16 + r
 * / 32 * 4 + c. Tiles are stored row after row; rows and blocks are padded to whole tiles.
 *
 * So a tile's rows have a second order, that of their scales in memory: place p has row p % 4 * 32 + p / 4, and its scales
 * are at byte 4 * p. Taking rows by place reads and writes scales in sequence. */
#ifndef DEVICE_SCALE_TILES_H
#define DEVICE_SCALE_TILES_H

#include <kiln/author/ptx.h>

enum { SCALE_TILE_ROWS = 128, SCALE_TILE_BLOCKS = 4, SCALE_TILE_BYTES = SCALE_TILE_ROWS * SCALE_TILE_BLOCKS };

/* The row at a place, U32; like rows, places are numbered through all tiles of a column of tiles. */
ptx_val scale_tiles_row(ptx_fn *f, ptx_val place);

/* Tiles for `rows` rows or `blocks` blocks, U32. */
ptx_val scale_tiles_down(ptx_fn *f, ptx_val rows);
ptx_val scale_tiles_across(ptx_fn *f, ptx_val blocks);

#endif
