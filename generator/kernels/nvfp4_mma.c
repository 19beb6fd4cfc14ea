/* c = A * b in NVFP4 on tensor cores, for k that is a multiple of 512.
 *
 * GEOMETRY. `k_warps` of a thread block's 8 warps share `rows` rows (16 or 32) of one batch. They step along k by super-steps
 * of 512 codes; each warp takes every k_warps-th. With g = lane / 4 and t = lane % 4 a lane has rows g and g + 8 of each 16,
 * and the four chunks of 32 codes 8 * (t / 2) + 2 * s + t % 2 of a super-step, with s = 0 to 3. So each load of a
 * warp takes whole sectors of codes, and 16 bytes of scales serve all four chunks. A thread block decodes b once into shared
 * memory, up to NVFP4_DEPTH codes at a time. A warp's loads are one super-step ahead of its products, starting before b is
 * decoded and through all passes, so that memory is never idle.
 *
 * ARITHMETIC. The order along k is free as long as A and B agree, so a lane's codes of two quantised blocks are directly its
 * fragments of A. Column n of B is zero except in the rows along k of the lane that owns block n. So column n of the result
 * is the sum of block n alone, and a lane gets the results of its own rows and blocks. Lanes that own no part of a column
 * read zeros. software: int8 products of doubled codes; magnitudes of positive codes multiply b, those of negative codes
 * -b. hardware: f16. Both are exact, as are the products of scales; see nvfp4_simt.c.
 */
#include "device/fragment.h"
#include "device/scale_tiles.h"
#include "device/shared.h"
#include "device/tail.h"
#include "nvfp4.h"

enum {
    SUPER_CODES = 512, /* codes of a row in a super-step */
    STEPS = 4,         /* steps of a super-step */
    SUPER_SCALES = SUPER_CODES / NVFP4_BLOCK,
    HALF_CHUNKS = 8,   /* chunks of 32 codes in half a super-step */
    PLANE_BYTES = 128, /* of b: 16 bytes of each such chunk */
    BLOCK_BYTES = 2 * PLANE_BYTES,
    SCALES_AT = 2 * BLOCK_BYTES, /* two scales of a chunk, in 4 bytes */
    HALF_BYTES = SCALES_AT + 64, /* so that a warp's reads of the two halves have no bank conflicts */
    SUPER_BYTES = 2 * HALF_BYTES,
    ZERO_BYTES = 512,                     /* before the first super-step */
    ZERO_APART = 32,                      /* so that zeros and lanes' own data are in different banks */
    LOAD_HINTS = PTX_NC | PTX_NO_ALLOCATE /* for codes and scales of A */
};

/* A lane's part of a row in a super-step: variables. */
typedef struct piece {
    ptx_val word[STEPS][4], scales[STEPS];
} piece;

/* A variant during emission. */
typedef struct gemv {
    nvfp4_rows of;
    uint32_t tiles;
    uint32_t scales_apart; /* from a super-step's scales in memory to the next one's */
    fragment_lane at;
    ptx_val first_row;     /* the lane's first row among its warp's */
    ptx_val block_at[2];   /* this lane's two blocks of b, or zeros: addresses in the first super-step */
    ptx_val block_step[2]; /* from one super-step to the next */
    ptx_val scales_at;
    ptx_val half_shift; /* shift to the lane's two scales in a word of four */
    ptx_val shared;
    ptx_val supers;           /* of a row */
    ptx_val has_more;         /* whether the warp has rows in the pass after this one */
    piece p[NVFP4_MOST_ROWS]; /* this super-step's; of.a_at and of.sfa_at are variables, for the next loads */
} gemv;

/* ---- b ------------------------------------------------------------------------------------------------------------ */

/* Decodes the chunks from `first` on, one per thread. */
static void decode_vector(gemv *g, ptx_val first, ptx_val chunks)
{
    ptx_fn *f = g->of.f;
    PTX_FOR (f, chunk, g->of.tid, chunks, NVFP4_THREADS) {
        ptx_side_loop(f);
        ptx_val word[4];
        ptx_val index = ptx_add(f, first, chunk);
        ptx_val from = ptx_mad_wide(f, index, 16, g->of.b_at);
        ptx_load_vec(f, 4, word, ptx_pointer(f, PTX_GLOBAL, PTX_U32, from), PTX_NC);
        ptx_val scales_from = nvfp4_scales_at(&g->of, g->of.sfb_at, index, 2);
        ptx_val raw = ptx_load_as(f, PTX_U32, ptx_pointer(f, PTX_GLOBAL, PTX_U16, scales_from), PTX_NC);
        ptx_val half = ptx_shr(f, chunk, 3);
        ptx_val in_half = ptx_and(f, chunk, HALF_CHUNKS - 1);
        ptx_val half_at = ptx_mad(f, half, HALF_BYTES, g->shared);
        ptx_val at = ptx_mad(f, in_half, 16, half_at);
        ptx_val to = shared_at(f, PTX_U32, at, ZERO_BYTES);
        for (uint32_t block = 0; block < 2; block++)
            nvfp4_store_block(&g->of, &word[2 * block], ptx_at_bytes(f, to, BLOCK_BYTES * block), PLANE_BYTES,
                              true);
        ptx_val scales_at = ptx_mad(f, in_half, 4, half_at);
        ptx_store(f, shared_at(f, PTX_U32, scales_at, ZERO_BYTES + SCALES_AT), nvfp4_vector_scales(f, raw));
    }
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

/* Adds the products of two rows with a block, of two words each, to `sums`. */
static void multiply_bytes(gemv *g, const ptx_val *word[2], ptx_val value[2][4], ptx_val sums[4])
{
    ptx_fn *f = g->of.f;
    for (uint32_t w = 0; w < 2; w++) {
        ptx_val upper[2][2], lower[2][2], next[4];
        nvfp4_split(f, word[0][w], upper);
        nvfp4_split(f, word[1][w], lower);
        for (uint32_t i = 0; i < 2; i++) { /* positive codes, then negative ones */
            const ptx_val bytes[4] = {upper[i][0], lower[i][0], upper[i][1], lower[i][1]};
            ptx_mma(f, PTX_MMA_M16N8K32_U8S8_S32, i == 0 ? next : sums, bytes, &value[i][2 * w],
                    i == 0 ? sums : next);
        }
    }
}

static void multiply_halves(gemv *g, const ptx_val *word[2], ptx_val value[2][4], ptx_val sums[4])
{
    ptx_fn *f = g->of.f;
    for (uint32_t w = 0; w < 2; w++) {
        ptx_val upper[4], lower[4];
        nvfp4_halves(f, word[0][w], upper);
        nvfp4_halves(f, word[1][w], lower);
        for (uint32_t i = 0; i < 4; i += 2) {
            const ptx_val pairs[4] = {upper[i], lower[i], upper[i + 1], lower[i + 1]};
            ptx_val next[4];
            ptx_mma(f, PTX_MMA_M16N8K16_F16_F32, next, pairs, &value[w][i], sums);
            for (uint32_t j = 0; j < 4; j++)
                sums[j] = next[j];
        }
    }
}

/* Adds the block sums of a row, times their scales. */
static void add_blocks(gemv *g, uint32_t row, ptx_val scales, const ptx_val block[2])
{
    ptx_fn *f = g->of.f;
    ptx_val halves[2];
    ptx_unpack(f, PTX_F16, 2, halves, scales);
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val total = g->of.is_hardware ? block[i] : ptx_cvt(f, PTX_F32, block[i]);
        ptx_fma_to(f, g->of.sum[row], ptx_cvt(f, PTX_F32, halves[i]), total);
    }
}

static void multiply_step(gemv *g, uint32_t s, ptx_val block_at[2], const ptx_val scales[],
                          const ptx_val zero[4])
{
    ptx_fn *f = g->of.f;
    ptx_val value[2][2][4];
    for (uint32_t block = 0; block < 2; block++)
        for (uint32_t i = 0; i < 2; i++)
            ptx_load_vec(f, 4, value[block][i], ptx_at_bytes(f, block_at[block], 32 * s + PLANE_BYTES * i),
                         PTX_PLAIN);
    for (uint32_t tile = 0; tile < g->tiles; tile++) {
        const piece *upper = &g->p[2 * tile], *lower = &g->p[2 * tile + 1];
        ptx_val sums[4] = {zero[0], zero[1], zero[2], zero[3]};
        for (uint32_t block = 0; block < 2; block++) {
            const ptx_val *word[2] = {&upper->word[s][2 * block], &lower->word[s][2 * block]};
            (g->of.is_hardware ? multiply_halves : multiply_bytes)(g, word, value[block], sums);
        }
        for (uint32_t half = 0; half < 2; half++)
            add_blocks(g, 2 * tile + half, scales[2 * tile + half], &sums[2 * half]);
    }
}

/* ---- loads -------------------------------------------------------------------------------------------------------- */

static void load_words(gemv *g, uint32_t s)
{
    ptx_fn *f = g->of.f;
    for (uint32_t r = 0; r < 2 * g->tiles; r++)
        tail_set(f, 4, g->p[r].word[s],
                 ptx_at_bytes(f, ptx_pointer(f, PTX_GLOBAL, PTX_U32, g->of.a_at[r]), 32 * s), LOAD_HINTS);
}

/* In tiles the scales of two rows in neighbouring places are adjacent, four per step. */
static void load_scales(gemv *g)
{
    ptx_fn *f = g->of.f;
    for (uint32_t r = 0; r < 2 * g->tiles; r += g->of.is_tiled ? 2 : 1) {
        ptx_val pointer = ptx_pointer(f, PTX_GLOBAL, PTX_U32, g->of.sfa_at[r]);
        if (!g->of.is_tiled)
            tail_set(f, STEPS, g->p[r].scales, pointer, LOAD_HINTS);
        for (uint32_t s = 0; s < STEPS && g->of.is_tiled; s++) {
            ptx_val both[2] = {g->p[r].scales[s], g->p[r + 1].scales[s]};
            tail_set(f, 2, both, ptx_at_bytes(f, pointer, SCALE_TILE_BYTES * s), LOAD_HINTS);
        }
    }
}

/* Distance of a lane's r-th row from its first. In tiles a lane's two rows of each 16 are in neighbouring places. */
static uint32_t row_after(const gemv *g, uint32_t r)
{
    return g->of.is_tiled ? 16 * (r / 2) + r % 2 : 8 * r;
}

/* Sets the addresses to this warp's first super-step of the pass with these rows. */
static void find_rows(gemv *g, ptx_val first_of_warp)
{
    ptx_fn *f = g->of.f;
    ptx_val upper = ptx_shr(f, g->at.t, 1);
    ptx_val odd = ptx_and(f, g->at.t, 1);
    ptx_val chunk = ptx_mad(f, upper, 8, odd);
    ptx_val chunk_at = ptx_mul(f, chunk, 16);
    ptx_val code_offset = ptx_mad_wide(f, g->of.slice, SUPER_CODES / 2, ptx_cvt(f, PTX_U64, chunk_at));
    ptx_val half_at = ptx_mul_wide(f, upper, g->scales_apart / 2);
    ptx_val scale_offset = ptx_mad_wide(f, g->of.slice, g->scales_apart, half_at);
    ptx_val row = ptx_add(f, first_of_warp, g->first_row);
    for (uint32_t r = 0; r < 2 * g->tiles; r++) {
        ptx_val codes, scales;
        nvfp4_find_row(&g->of, r == 0 ? row : ptx_add(f, row, row_after(g, r)), &codes, &scales);
        ptx_set(f, g->of.a_at[r], ptx_add(f, codes, code_offset));
        ptx_set(f, g->of.sfa_at[r], ptx_add(f, scales, scale_offset));
    }
}

/* Loads a warp's first piece of a batch. */
static void begin_batch(gemv *g)
{
    ptx_fn *f = g->of.f;
    for (uint32_t r = 0; r < 2 * g->tiles; r++) {
        g->of.a_at[r] = ptx_declare(f, PTX_U64);
        g->of.sfa_at[r] = ptx_declare(f, PTX_U64);
        for (uint32_t s = 0; s < STEPS; s++) {
            g->p[r].scales[s] = ptx_var(f, ptx_u32(0));
            for (uint32_t i = 0; i < 4; i++)
                g->p[r].word[s][i] = ptx_var(f, ptx_u32(0));
        }
    }
    ptx_val first = nvfp4_first_of_warp(&g->of, g->of.first);
    find_rows(g, first);
    ptx_val has_any = ptx_lt(f, g->of.slice, nvfp4_share_of_warp(&g->of, first, g->supers));
    PTX_IF (f, has_any) {
        load_scales(g);
        for (uint32_t s = 0; s < STEPS; s++)
            load_words(g, s);
    }
}

/* ---- main loop ---------------------------------------------------------------------------------------------------- */

/* Advances to this warp's next super-step, after the last to its first of the next pass. Returns whether there is one. */
static ptx_val step_addresses(gemv *g, ptx_val super, ptx_val next_first)
{
    ptx_fn *f = g->of.f;
    for (uint32_t r = 0; r < 2 * g->tiles; r++) {
        ptx_add_to(f, g->of.a_at[r], g->of.k_warps * SUPER_CODES / 2);
        ptx_add_to(f, g->of.sfa_at[r], g->of.k_warps * g->scales_apart);
    }
    ptx_val next = ptx_add(f, super, g->of.k_warps);
    ptx_val is_last = ptx_ge(f, next, g->supers);
    ptx_val goes_on = ptx_and(f, is_last, g->has_more);
    PTX_IF (f, goes_on) {
        ptx_rarely(f);
        find_rows(g, next_first);
    }
    ptx_val in_row = ptx_lt(f, next, g->supers);
    return ptx_or(f, in_row, g->has_more);
}

/* Multiplies this warp's share of the super-steps; `first` is the first of them in the row. */
static void multiply_chunk(gemv *g, ptx_val first, ptx_val supers, ptx_val next_first)
{
    ptx_fn *f = g->of.f;
    ptx_val zero[4];
    for (uint32_t i = 0; i < 4; i++)
        zero[i] = ptx_var(f, g->of.is_hardware ? ptx_f32(0) : ptx_s32(0));
    PTX_FOR (f, super, g->of.slice, supers, g->of.k_warps) {
        ptx_main_loop(f);
        ptx_val block_at[2], scales[STEPS][NVFP4_MOST_ROWS];
        for (uint32_t i = 0; i < 2; i++) {
            ptx_val at = ptx_mad(f, super, g->block_step[i], g->block_at[i]);
            block_at[i] = shared_at(f, PTX_B32, at, 0);
        }
        ptx_val of_super = ptx_mad(f, super, SUPER_BYTES, g->scales_at);
        ptx_val scales_at = shared_at(f, PTX_U32, of_super, 0);
        for (uint32_t s = 0; s < STEPS; s++) {
            ptx_val of_b = ptx_as(f, PTX_F16X2, ptx_load(f, ptx_at_bytes(f, scales_at, 8 * s)));
            for (uint32_t r = 0; r < 2 * g->tiles; r++)
                scales[s][r] =
                    nvfp4_multiply_scales(&g->of, r, ptx_shr(f, g->p[r].scales[s], g->half_shift), of_b);
        }
        ptx_val has_next = step_addresses(g, ptx_add(f, first, super), next_first);
        PTX_WHEN (f, has_next) {
            load_scales(g);
        }
        for (uint32_t s = 0; s < STEPS; s++) {
            multiply_step(g, s, block_at, scales[s], zero);
            PTX_WHEN (f, has_next) {
                load_words(g, s);
            }
        }
    }
}

/* ---- rows --------------------------------------------------------------------------------------------------------- */

static void end_rows(gemv *g)
{
    ptx_fn *f = g->of.f;
    ptx_val sum[NVFP4_MOST_ROWS], row_in_warp[NVFP4_MOST_ROWS];
    for (uint32_t r = 0; r < 2 * g->tiles; r++) {
        ptx_val own = nvfp4_finish(&g->of, r);
        sum[r] = ptx_reduce_lanes(f, PTX_OP_ADD, 4, own);
        row_in_warp[r] = r == 0 ? g->first_row : ptx_add(f, g->first_row, row_after(g, r));
    }
    ptx_val is_first = ptx_eq(f, g->at.t, 0);
    nvfp4_store_sums(&g->of, sum, row_in_warp, 2 * g->tiles, is_first);
}

static void multiply_rows(gemv *g)
{
    ptx_fn *f = g->of.f;
    for (uint32_t r = 0; r < 2 * g->tiles; r++)
        nvfp4_start_row(&g->of, r);
    ptx_val next_pass = ptx_add(f, g->of.first_of_pass, g->of.pass_rows);
    ptx_val next_first = nvfp4_first_of_warp(&g->of, next_pass);
    g->has_more = ptx_ne(f, nvfp4_share_of_warp(&g->of, next_first, ptx_u32(1)), 0);
    PTX_FOR (f, first, 0, g->of.k, NVFP4_DEPTH) {
        ptx_val left = ptx_sub(f, g->of.k, first);
        ptx_val codes = ptx_min(f, left, NVFP4_DEPTH);
        ptx_val first_chunk = ptx_shr(f, first, 5);
        PTX_IF (f, nvfp4_decodes(&g->of)) {
            ptx_barrier(f);
            decode_vector(g, first_chunk, ptx_shr(f, codes, 5));
            ptx_barrier(f);
        }
        ptx_val first_super = ptx_shr(f, first, 9);
        ptx_val supers = ptx_shr(f, codes, 9);
        multiply_chunk(g, first_super, nvfp4_share_of_warp(&g->of, g->of.first_of_warp, supers), next_first);
    }
    end_rows(g);
}

/* Finds this lane's part of b: it owns column 2t + i of block i, if that is g. */
static void init_offsets(gemv *g)
{
    ptx_fn *f = g->of.f;
    ptx_val upper = ptx_shr(f, g->at.t, 1);
    ptx_val odd = ptx_and(f, g->at.t, 1);
    ptx_val half_at = ptx_mad(f, upper, HALF_BYTES, g->shared);
    ptx_val own = ptx_mad(f, odd, 16, half_at);
    ptx_val zeros = ptx_add(f, g->shared, ZERO_APART);
    ptx_val column = ptx_shl(f, g->at.t, 1);
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val of_block = i == 0 ? column : ptx_add(f, column, 1);
        ptx_val owns = ptx_eq(f, of_block, g->at.g);
        ptx_val there = ptx_add(f, own, ZERO_BYTES + BLOCK_BYTES * i);
        g->block_at[i] = ptx_select(f, owns, there, zeros);
        g->block_step[i] = ptx_select(f, owns, ptx_u32(SUPER_BYTES), 0);
    }
    ptx_val scales = ptx_mad(f, odd, 4, half_at);
    g->scales_at = ptx_add(f, scales, ZERO_BYTES + SCALES_AT);
    g->half_shift = ptx_shl(f, odd, 4);
}

nvfp4_chunk nvfp4_mma_chunk(const kiln_variant *v)
{
    (void)v;
    return (nvfp4_chunk){
        .zero_bytes = ZERO_BYTES, .part_bytes = SUPER_BYTES, .part_codes = SUPER_CODES, .trip = SUPER_CODES};
}

void nvfp4_emit_mma(ptx_fn *f, const kiln_variant *v)
{
    gemv g = {.of = nvfp4_init(f, v)};
    g.tiles = g.of.rows / 16;
    g.scales_apart = SUPER_SCALES * (g.of.is_tiled ? SCALE_TILE_ROWS : 1);
    g.at = fragment_find_lane(f, g.of.lane);
    g.first_row = g.of.is_tiled ? ptx_shl(f, g.at.g, 1) : g.at.g;
    g.shared = ptx_address(f, ptx_shared_dynamic(f, PTX_U8));
    g.supers = ptx_shr(f, g.of.k, 9);
    init_offsets(&g);
    /* The zeros for lanes that own no part of a column. */
    ptx_val is_here = ptx_lt(f, g.of.tid, ZERO_BYTES / 16);
    ptx_val at = ptx_mad(f, g.of.tid, 16, g.shared);
    PTX_WHEN (f, is_here) {
        ptx_val zero[4] = {ptx_u32(0), ptx_u32(0), ptx_u32(0), ptx_u32(0)};
        ptx_store_vec(f, 4, shared_at(f, PTX_U32, at, 0), zero, PTX_PLAIN);
    }
    PTX_FOR (f, batch, g.of.first_batch, g.of.l, g.of.batches) {
        nvfp4_start_batch(&g.of, batch);
        begin_batch(&g);
        PTX_FOR (f, first, g.of.first, g.of.end, g.of.pass_rows) {
            nvfp4_start_pass(&g.of, first);
            multiply_rows(&g);
        }
    }
}
