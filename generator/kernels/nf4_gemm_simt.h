/* What the files of the narrow tiles of nf4_gemm's strategy simt share; nf4_gemm_simt.c says how they work. */
#ifndef KERNELS_NF4_GEMM_SIMT_H
#define KERNELS_NF4_GEMM_SIMT_H

#include <stdint.h>

#include <kiln/author/ptx.h>

#include "device/nf4_pairs.h"

enum {
    WARP_LANES = 32,
    COLUMN_LANES = 8,
    GROUPS = WARP_LANES / COLUMN_LANES,
    LANE_K = 32,                     /* codes that a lane takes with one load */
    STRETCH = COLUMN_LANES * LANE_K, /* along K, for a warp */
    BLOCK_K = 64,                    /* a quantised block: weights that share a scale */
    SCALES = 128,                    /* of a column, in shared memory at once */
    SCALES_STRIDE = SCALES + 4,      /* so that neighbouring columns are in different banks */
    RESERVED_BYTES = 1024,           /* the most shared memory that is not the kernel's to use */
    UNIT_BYTES = 16,
    MOST_ROWS = 8,
    MOST_COLUMNS = 8,
    MOST_LOADS = 4 /* of A, per lane and stage */
};

/* A variant while it is emitted. */
typedef struct gemm {
    ptx_fn *f;
    ptx_type type, wide;                     /* of A and C; of arithmetic */
    uint32_t rows, columns, tile_n, k_warps; /* columns: of a lane */
    bool has_sm_80, has_sm_110;
    uint32_t depth, stage_row_bytes;
    uint32_t vector, pieces, loads; /* elements of A in a load; loads in a lane's share; loads per lane */

    nf4_pairs pairs;
    ptx_val in, packed, scale, out, m, n, k; /* arguments */
    ptx_val lane, group, member, k_warp;     /* in the warp; of 4 in the warp; of 8 in the group; the warp */
    ptx_val blocks;                          /* quantised blocks of a column */
    ptx_val last_share, full_until;          /* k of the last 32 in bounds; of the ragged stretch */
    ptx_val has_aligned_scales;              /* each column's start at a multiple of 16 bytes */
    ptx_val tile;                            /* its first column */
    ptx_val stages, stage, stage_to, stage_from; /* addresses in shared memory */
    ptx_val scales_to, scales_from;
    ptx_val a_at[MOST_LOADS], a_k; /* where this lane's loads of A start, and their k */
    ptx_val codes_at[MOST_COLUMNS];
    ptx_val sum[MOST_ROWS][MOST_COLUMNS];
} gemm;

/* Finds this lane's loads of A and its part of the stage. */
void simt_init_stage(gemm *g, ptx_val first_row);

/* Copies `depth` elements of each lane's share of the stretch at k, of all rows, into the warp's stage. */
void simt_stage_rows(gemm *g, ptx_val k, ptx_val is_full, uint32_t round);

/* Copies the scales of quantised block `first` of each column and of the 127 after it into shared memory. */
void simt_stage_scales(gemm *g, ptx_val first);

static inline uint32_t wide_bytes(const gemm *g)
{
    return g->wide == PTX_F64 ? 8 : 4;
}

static inline uint32_t unit_stride(const gemm *g)
{
    return 8 + 32 / g->depth;
}

/* Clamps a row or column to the last one: what is out of bounds is calculated, but not stored. */
static inline ptx_val clamp(ptx_fn *f, ptx_val index, ptx_val count)
{
    ptx_val last = ptx_sub(f, count, ptx_u32(1));
    return ptx_min(f, index, last);
}

static inline ptx_val shared_at(const gemm *g, ptx_val address, uint32_t bytes)
{
    ptx_val at = ptx_pointer(g->f, PTX_SHARED, g->wide, address);
    return ptx_at_bytes(g->f, at, bytes);
}

#endif
