/* Page tables: where the keys of a tile are. A page holds page_size rows of K and V, a multiple of eight, so that the eight
 * keys of an octet lie together. For each octet of two tiles, shared memory has the offsets of its rows: threads fill those
 * of the next tile while copies read those of this one. */
#ifndef KERNELS_ATTENTION_PAGES_H
#define KERNELS_ATTENTION_PAGES_H

#include "attention.h"

typedef struct attention_pages {
    const attention *a;
    ptx_val page_size, reciprocal; /* U32 */
    ptx_val table;                 /* the sequence's pages */
    ptx_val key;                   /* this thread's of a tile: one in eight has one */
    ptx_val has_key;
    ptx_val octets;        /* in shared memory, U32 */
    ptx_val page, in_page; /* variables: of this thread's key of the next tile that is laid out */
} attention_pages;

/* Bytes of shared memory. */
uint32_t attention_pages_bytes(const attention *a);

/* Lays out the first tile. A barrier must follow before copies. */
attention_pages attention_init_pages(const attention *a, ptx_val tid);

/* Lays out the tile that begins at the key that is counted as `counted`; call it for one after the other. Barriers must be
 * between it and the copies of that tile, and the copies of the tile before the last. */
void attention_lay_out(attention_pages *p, ptx_val counted);

#endif
