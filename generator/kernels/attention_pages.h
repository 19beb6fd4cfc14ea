/* Page tables: where the rows of a tile of keys are. A page has a multiple of eight rows, so the eight keys of an octet lie
 * together. For each octet of a tile shared memory has where its rows of K and V begin. There is room for two tiles: one is
 * laid out while the other is copied, and the pages of the tile after that are on their way from the table. Without pages all
 * this emits nothing. */
#ifndef KERNELS_ATTENTION_PAGES_H
#define KERNELS_ATTENTION_PAGES_H

#include "attention.h"

typedef struct attention_pages {
    attention *a;
    ptx_val octets; /* in shared memory; U32 */
    uint32_t warp_octets;
    ptx_val page; /* variable: of this thread's octet of the next tile */
} attention_pages;

/* Bytes of static shared memory. */
uint32_t attention_pages_bytes(const attention *a);

/* Lays out the first tile, and turns to it: copies may follow. Of each warp the first `warp_octets` lanes lay out octets, those
 * of the warp's own keys; 0: the first threads do, an octet each. */
attention_pages attention_init_pages(attention *a, uint32_t warp_octets);

/* The copies that follow are of the tile that begins at a counted key. */
void attention_turn_pages(attention_pages *p, ptx_val counted);

/* Lays out the tile behind the one that begins at a counted key. A barrier must come before, behind the copies of the tile
 * in front of that one, and one after, in front of the copies of what is laid out. */
void attention_lay_out_next(attention_pages *p, ptx_val counted);

/* Bytes in front of the octet that a row is in. The octet of a row that is `rows` behind it, a multiple of eight, is a
 * constant away. */
ptx_val attention_octet_at(const attention *a, ptx_val row);
ptx_val attention_load_octet(const attention *a, const attention_matrix *m, ptx_val octet, uint32_t rows);

#endif
