/* The matrices in shared memory that wgmma reads, in chunks of 16 bytes. */
#ifndef EMU_EXEC_MATRIX_H
#define EMU_EXEC_MATRIX_H

#include "../core/wgmma.h"
#include "wgmma.h"

/* A warp reads at most 32 chunks of A, and 2 for each column of B. */
enum { CHUNK_BYTES = 16, MOST_CHUNKS = 32 + 2 * 256 };

/* A matrix descriptor (ISA 9.7.15.5.1.2.2). `span`: bytes per row of a swizzle's pattern, which has eight rows; 16 without
   a swizzle. */
typedef struct shared_matrix {
    uint32_t start, leading, stride; /* bytes */
    uint32_t span;
    bool is_mn_major;
} shared_matrix;

static inline shared_matrix matrix_of(uint64_t descriptor, bool is_mn_major)
{
    static const uint32_t spans[] = {16, 128, 64, 32};
    return (shared_matrix){.start = (uint32_t)(descriptor & 0x3fff) << 4,
                           .leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                           .stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4,
                           .span = spans[descriptor >> 62],
                           .is_mn_major = is_mn_major};
}

/* Offset of a 16-byte chunk (ISA 9.7.15.5.1.2.1.3). K-major: half k of row `row`, which has 32 bytes. MN-major: the
   elements of the rows 8 * row to 8 * row + 7 at place k along the sum. */
static inline uint32_t chunk_place(const shared_matrix *m, unsigned row, unsigned k)
{
    uint32_t wide = m->span / CHUNK_BYTES, at = m->start;
    bool is_swizzled = wide > 1;
    if (!m->is_mn_major)
        at += row % 8 * m->span + row / 8 * m->stride + k * (is_swizzled ? CHUNK_BYTES : m->leading);
    else if (is_swizzled)
        at += row % wide * CHUNK_BYTES + row / wide * m->leading + k % 8 * m->span + k / 8 * m->stride;
    else
        at += row * m->stride + k % 8 * CHUNK_BYTES + k / 8 * m->leading;
    return at ^ (at >> 7 & (wide - 1)) * CHUNK_BYTES;
}

/* Lists the offsets of the chunks of these rows, two per row; eight consecutive ones form a core matrix. */
static inline unsigned list_chunks(const shared_matrix *m, unsigned first_row, unsigned rows,
                                   uint32_t *places)
{
    for (unsigned n = 0; n < 2 * rows; n++)
        places[n] = m->is_mn_major ? chunk_place(m, first_row / 8 + n / 16, n % 16)
                                   : chunk_place(m, first_row + n / 16 * 8 + n % 8, n / 8 % 2);
    return 2 * rows;
}

static inline unsigned first_row_of(const emu_warp *w)
{
    return w->id % EMU_WARPGROUP_WARPS * 16;
}

/* Lists the offsets of the chunks that the warp reads, A's before B's. Returns their number; *a_count: A's. Lane n reads the
   chunks n, n + 32 and so on of each matrix. */
static inline unsigned chunks_of(const emu_warp *w, const emu_product *p, unsigned *a_count,
                                 uint32_t places[MOST_CHUNKS])
{
    const emu_wgmma f = emu_wgmma_of(p->op);
    shared_matrix of_a = matrix_of(p->a, f.flags & EMU_WGMMA_A_MN_MAJOR),
                  of_b = matrix_of(p->b, f.flags & EMU_WGMMA_B_MN_MAJOR);
    *a_count = f.flags & EMU_WGMMA_A_REGISTERS ? 0 : list_chunks(&of_a, first_row_of(w), 16, places);
    return *a_count + list_chunks(&of_b, 0, f.n, places + *a_count);
}

#endif
