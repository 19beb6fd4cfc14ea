/* Page tables: addresses of the rows of a tile of keys. A page has a multiple of eight rows, so the eight keys of an octet
 * are contiguous. For each octet of a tile shared memory has the offsets of its rows of K and V. There is room for two tiles:
 * one is built while the other is copied, and the pages of the tile after that are in flight from the table. Without pages
 * all this emits nothing. */
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

/* Builds the first tile's entries and selects them: copies may follow. The first `warp_octets` lanes of each warp build an
 * octet's entry each, of the warp's own keys; 0: the first threads of the thread block do. */
attention_pages attention_init_pages(attention *a, uint32_t warp_octets);

/* Selects the tile that begins at a counted key, for the copies that follow. */
void attention_select_pages(attention_pages *p, ptx_val counted);

/* Builds the entries of the tile after the one that begins at a counted key. It needs a barrier after the copies of the tile
 * before that one, and another before the copies of its own tile. */
void attention_build_pages(attention_pages *p, ptx_val counted);

/* The address of a row's entry; and the offset of the octet `rows` rows after that one, a multiple of eight. */
ptx_val attention_octet_at(const attention *a, ptx_val row);
ptx_val attention_load_octet(const attention *a, const attention_matrix *m, ptx_val octet, uint32_t rows);

#endif
