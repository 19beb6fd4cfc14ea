/* c = A * b in NVFP4 on CUDA cores.
 *
 * GEOMETRY. A thread block has 8 warps: `k_warps` of them share `rows` rows of one batch, and each takes every k_warps-th
 * step along k. In a step a lane has the 32 (or 16) codes of one 16-byte (or 8-byte) load of each row, and a warp's loads
 * are consecutive. A thread block decodes b once into shared memory, up to NVFP4_DEPTH codes at a time. Each step has
 * planes of 16 bytes per lane, so that reads have no bank conflicts, and then each lane's scales. Lanes beyond the end of a
 * row read its last codes again, and their scale of b is 0.
 *
 * ARITHMETIC. software: bytes of twice the codes; dp4a adds 16 products, which gives four times a quantised block's sum.
 * hardware: pairs of f16; each half adds 8 products exactly, and the result is multiplied by 4 at the end. A quarter of the
 * product of two scales is exact in f16, and so is its product with a block's sum in f32. Only the sum over the blocks
 * rounds.
 */
#include "device/lanes.h"
#include "device/scale_tiles.h"
#include "device/shared.h"
#include "nvfp4.h"

enum { MOST_UNROLL = 4, MOST_WORDS = 4, PLANE_BYTES = 16 * WARP_LANES };

/* A variant during emission. */
typedef struct gemv {
    nvfp4_rows of;
    uint32_t lane_codes;
    uint32_t unroll;       /* steps whose loads are issued together */
    uint32_t words;        /* words of a row's codes per lane and step */
    uint32_t blocks;       /* quantised blocks of 16 in these words */
    uint32_t planes;       /* planes of b's decoded codes */
    uint32_t step_bytes;   /* of b in shared memory */
    ptx_val codes, scales; /* this lane's codes and scales of the first step: addresses in shared memory */
    ptx_val last_group;    /* a row's last group; a group is what a lane loads at once */
} gemv;

/* A lane's codes and scales of one row and step. */
typedef struct piece {
    ptx_val word[MOST_WORDS], scales;
} piece;

/* A lane's piece of b, decoded. */
typedef struct vector_piece {
    ptx_val value[4 * MOST_WORDS]; /* per word of codes two words of bytes, or four pairs */
    ptx_val scales;                /* F16X2 */
} vector_piece;

/* ---- loads -------------------------------------------------------------------------------------------------------- */

static void load_codes(gemv *g, ptx_val codes, ptx_val group, int hints, ptx_val word[])
{
    ptx_fn *f = g->of.f;
    ptx_val at = ptx_mad_wide(f, group, g->lane_codes / 2, codes);
    ptx_load_vec(f, (int)g->words, word, ptx_pointer(f, PTX_GLOBAL, PTX_U32, at), hints);
}

/* Loads a piece of the row at these addresses. */
static piece load_piece(gemv *g, ptx_val codes, ptx_val scales, ptx_val group, int hints)
{
    ptx_fn *f = g->of.f;
    piece p;
    load_codes(g, codes, group, hints, p.word);
    ptx_val scales_at = nvfp4_scales_at(&g->of, scales, group, g->blocks);
    ptx_val pointer = ptx_pointer(f, PTX_GLOBAL, g->blocks == 2 ? PTX_U16 : PTX_U8, scales_at);
    p.scales = ptx_load_as(f, PTX_U32, pointer, hints);
    return p;
}

/* Loads a piece of each row. In tiles a row has four scales in a word, and the words of all rows are neighbours. */
static void load_rows(gemv *g, ptx_val group, piece p[])
{
    ptx_fn *f = g->of.f;
    const int hints = PTX_NC | PTX_NO_ALLOCATE;
    if (!g->of.is_tiled) {
        for (uint32_t r = 0; r < g->of.rows; r++)
            p[r] = load_piece(g, g->of.a_at[r], g->of.sfa_at[r], group, hints);
        return;
    }
    const uint32_t groups = SCALE_TILE_BLOCKS / g->blocks;
    ptx_val word[NVFP4_MOST_ROWS];
    for (uint32_t r = 0; r < g->of.rows; r++)
        load_codes(g, g->of.a_at[r], group, hints, p[r].word);
    ptx_val tile = ptx_shr(f, group, lanes_log2(groups));
    ptx_val at = ptx_mad_wide(f, tile, SCALE_TILE_BYTES, g->of.sfa_at[0]);
    ptx_load_vec(f, (int)g->of.rows, word, ptx_pointer(f, PTX_GLOBAL, PTX_U32, at), PTX_NC);
    ptx_val bits = ptx_mul(f, ptx_and(f, group, groups - 1), 8 * g->blocks);
    for (uint32_t r = 0; r < g->of.rows; r++) {
        p[r].scales = ptx_shr(f, word[r], bits);
        if (g->blocks == 1)
            p[r].scales = ptx_and(f, p[r].scales, 0xff);
    }
}

/* ---- b ------------------------------------------------------------------------------------------------------------ */

/* The shared memory address in another step. */
static ptx_val at_step(gemv *g, ptx_val address, ptx_val step)
{
    return shared_at(g->of.f, PTX_U32, ptx_mad(g->of.f, step, g->step_bytes, address), 0);
}

/* Decodes the steps from `first_group` on, rounded up to a whole iteration of all warps: extra ones repeat the last codes
 * with a scale of 0. */
static void decode_vector(gemv *g, ptx_val first_group, ptx_val steps)
{
    ptx_fn *f = g->of.f;
    uint32_t iteration = g->of.k_warps * g->unroll;
    ptx_val end = steps;
    if (iteration > 1) {
        ptx_val raised = ptx_add(f, steps, iteration - 1);
        end = ptx_and(f, raised, ~(iteration - 1));
    }
    PTX_FOR (f, step, g->of.warp, end, NVFP4_WARPS) {
        ptx_side_loop(f);
        ptx_val group = ptx_mad(f, step, 32, first_group);
        ptx_val present = ptx_min(f, group, g->last_group);
        piece p = load_piece(g, g->of.b_at, g->of.sfb_at, present, PTX_NC);
        ptx_val in_bounds = ptx_le(f, group, g->last_group);
        ptx_val raw = ptx_select(f, in_bounds, p.scales, 0);
        ptx_val codes = at_step(g, g->codes, step);
        for (uint32_t i = 0; i < g->blocks; i++) {
            ptx_val at = ptx_at_bytes(f, codes, PLANE_BYTES * (g->planes / g->blocks) * i);
            nvfp4_store_block(&g->of, &p.word[2 * i], at, PLANE_BYTES, false);
        }
        ptx_val scales = nvfp4_vector_scales(f, raw);
        ptx_val scales_at = at_step(g, g->scales, step);
        ptx_store(f, g->blocks == 2 ? scales_at : ptx_cast_ptr(f, scales_at, PTX_U16), scales);
    }
}

static vector_piece load_vector(gemv *g, ptx_val at, ptx_val scales_at)
{
    ptx_fn *f = g->of.f;
    vector_piece v;
    for (uint32_t i = 0; i < g->planes; i++)
        ptx_load_vec(f, 4, &v.value[4 * i], ptx_at_bytes(f, at, PLANE_BYTES * i), PTX_PLAIN);
    ptx_val scales = g->blocks == 2 ? ptx_load(f, ptx_cast_ptr(f, scales_at, PTX_U32))
                                    : ptx_load_as(f, PTX_U32, ptx_cast_ptr(f, scales_at, PTX_U16), PTX_PLAIN);
    v.scales = ptx_as(f, PTX_F16X2, scales);
    return v;
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

/* Adds the products of a block, whose codes are in two words. */
static void add_bytes(gemv *g, ptx_val sum, const ptx_val word[2], const ptx_val value[4], ptx_val scale)
{
    ptx_fn *f = g->of.f;
    ptx_val bytes[2][2], positive = ptx_s32(0), negative = ptx_s32(0);
    for (uint32_t w = 0; w < 2; w++) {
        nvfp4_split(f, word[w], bytes);
        for (uint32_t half = 0; half < 2; half++) {
            ptx_val of_b = ptx_as(f, PTX_S32, value[2 * w + half]);
            positive = ptx_dp4a_us(f, bytes[0][half], of_b, positive);
            negative = ptx_dp4a_us(f, bytes[1][half], of_b, negative);
        }
    }
    ptx_val whole = ptx_sub(f, positive, negative);
    ptx_val total = ptx_cvt(f, PTX_F32, whole);
    ptx_fma_to(f, sum, ptx_cvt(f, PTX_F32, scale), total);
}

static void add_halves(gemv *g, ptx_val sum, const ptx_val word[2], const ptx_val value[8], ptx_val scale)
{
    ptx_fn *f = g->of.f;
    ptx_val pairs[8], total, halves[2];
    for (uint32_t w = 0; w < 2; w++)
        nvfp4_halves(f, word[w], &pairs[4 * w]);
    for (uint32_t i = 0; i < 8; i++) {
        ptx_val of_b = ptx_as(f, PTX_F16X2, value[i]);
        total = i == 0 ? ptx_mul(f, pairs[i], of_b) : ptx_fma(f, pairs[i], of_b, total);
    }
    ptx_unpack(f, PTX_F16, 2, halves, total);
    ptx_val of_first = ptx_fma_mixed(f, halves[0], scale, ptx_f32(0));
    ptx_val of_pair = ptx_fma_mixed(f, halves[1], scale, of_first); /* exact: scale times the block's sum */
    ptx_add_to(f, sum, of_pair);
}

static void multiply(gemv *g, uint32_t r, const piece *p, const vector_piece *v)
{
    ptx_val halves[2];
    ptx_unpack(g->of.f, PTX_F16, 2, halves, nvfp4_multiply_scales(&g->of, r, p->scales, v->scales));
    for (uint32_t i = 0; i < g->blocks; i++) {
        if (g->of.is_hardware)
            add_halves(g, g->of.sum[r], &p->word[2 * i], &v->value[8 * i], halves[i]);
        else
            add_bytes(g, g->of.sum[r], &p->word[2 * i], &v->value[4 * i], halves[i]);
    }
}

/* ---- rows --------------------------------------------------------------------------------------------------------- */

/* Multiplies this warp's share of the steps from `first_group` on. */
static void multiply_chunk(gemv *g, ptx_val first_group, ptx_val steps)
{
    ptx_fn *f = g->of.f;
    PTX_FOR (f, step, g->of.slice, steps, g->of.k_warps * g->unroll) {
        ptx_main_loop(f);
        piece p[MOST_UNROLL][NVFP4_MOST_ROWS];
        ptx_val group = ptx_mad(f, step, 32, first_group);
        for (uint32_t u = 0; u < g->unroll; u++) {
            ptx_val ahead = u == 0 ? group : ptx_add(f, group, 32 * g->of.k_warps * u);
            ptx_val present = ptx_min(f, ahead, g->last_group);
            load_rows(g, present, p[u]);
        }
        ptx_val codes_at = at_step(g, g->codes, step);
        ptx_val scales_at = at_step(g, g->scales, step);
        for (uint32_t u = 0; u < g->unroll; u++) {
            int64_t bytes = u * g->of.k_warps * g->step_bytes;
            vector_piece v =
                load_vector(g, ptx_at_bytes(f, codes_at, bytes), ptx_at_bytes(f, scales_at, bytes));
            for (uint32_t r = 0; r < g->of.rows; r++)
                multiply(g, r, &p[u][r], &v);
        }
    }
}

/* If all warps share rows, each lane multiplies only codes that it has decoded itself, so no warp waits. */
static void wait_for_warps(gemv *g)
{
    if (g->of.k_warps < NVFP4_WARPS)
        ptx_barrier(g->of.f);
}

static void multiply_rows(gemv *g)
{
    ptx_fn *f = g->of.f;
    const uint32_t shift = lanes_log2(g->lane_codes);
    /* Finds the rows, clamped to the last. Prefetches their first lines before b is decoded. */
    ptx_val offset = ptx_mad(f, g->of.slice, 32, g->of.lane);
    for (uint32_t r = 0; r < g->of.rows; r++) {
        ptx_val row = r == 0 ? g->of.first_of_warp : ptx_add(f, g->of.first_of_warp, r);
        nvfp4_find_row(&g->of, row, &g->of.a_at[r], &g->of.sfa_at[r]);
        ptx_val line = ptx_mad_wide(f, offset, g->lane_codes / 2, g->of.a_at[r]);
        ptx_prefetch_l2(f, ptx_pointer(f, PTX_GLOBAL, PTX_U8, line));
        nvfp4_start_row(&g->of, r);
    }
    PTX_FOR (f, first, 0, g->of.k, NVFP4_DEPTH) {
        ptx_val left = ptx_sub(f, g->of.k, first);
        ptx_val codes = ptx_min(f, left, NVFP4_DEPTH);
        ptx_val raised = ptx_add(f, codes, 32 * g->lane_codes - 1);
        ptx_val steps = ptx_shr(f, raised, shift + 5);
        ptx_val skipped = ptx_shr(f, first, shift);
        ptx_val first_group = ptx_add(f, skipped, g->of.lane);
        PTX_IF (f, nvfp4_decodes(&g->of)) {
            wait_for_warps(g);
            decode_vector(g, first_group, steps);
            wait_for_warps(g);
        }
        multiply_chunk(g, first_group, nvfp4_share_of_warp(&g->of, g->of.first_of_warp, steps));
    }
    for (uint32_t r = 0; r < g->of.rows; r++)
        g->of.sum[r] = nvfp4_finish(&g->of, r);
    lanes_join(f, PTX_OP_ADD, WARP_LANES, g->of.rows, g->of.lane, g->of.sum);
    ptx_val row_in_warp = ptx_shr(f, g->of.lane, 5 - lanes_log2(g->of.rows));
    ptx_val in_row = ptx_and(f, g->of.lane, 32 / g->of.rows - 1);
    ptx_val is_first = ptx_eq(f, in_row, 0);
    nvfp4_store_sums(&g->of, &g->of.sum[0], &row_in_warp, 1, is_first);
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

/* The members that the shape depends on. */
static gemv plan(const kiln_variant *v)
{
    const uint32_t row_warps = kiln_int(v, "rows") * kiln_int(v, "k_warps");
    gemv g = {.lane_codes = kiln_int(v, "lane_codes")};
    g.unroll = row_warps < MOST_UNROLL ? MOST_UNROLL / row_warps : 1;
    g.words = g.lane_codes / 8;
    g.blocks = g.lane_codes / NVFP4_BLOCK;
    g.planes = kiln_is(v, "decode", "hardware") ? 2 * g.blocks : g.blocks;
    g.step_bytes = PLANE_BYTES * g.planes + 64 * g.blocks;
    return g;
}

/* Whole iterations of all warps. */
nvfp4_chunk nvfp4_simt_chunk(const kiln_variant *v)
{
    const gemv g = plan(v);
    const uint32_t k_warps = kiln_int(v, "k_warps"), trip = 32 * g.lane_codes * g.unroll;
    return (nvfp4_chunk){
        .part_bytes = k_warps * g.unroll * g.step_bytes, .part_codes = k_warps * trip, .trip = trip};
}

void nvfp4_emit_simt(ptx_fn *f, const kiln_variant *v)
{
    gemv g = plan(v);
    g.of = nvfp4_init(f, v);
    ptx_val shared = ptx_address(f, ptx_shared_dynamic(f, PTX_U8));
    g.codes = ptx_mad(f, g.of.lane, 16, shared);
    ptx_val scales = ptx_add(f, shared, PLANE_BYTES * g.planes);
    g.scales = ptx_mad(f, g.of.lane, 2 * g.blocks, scales);
    ptx_val groups = ptx_shr(f, g.of.k, lanes_log2(g.lane_codes));
    g.last_group = ptx_sub(f, groups, 1);
    PTX_FOR (f, batch, g.of.first_batch, g.of.l, g.of.batches) {
        nvfp4_start_batch(&g.of, batch);
        PTX_FOR (f, first, g.of.first, g.of.end, g.of.pass_rows) {
            nvfp4_start_pass(&g.of, first);
            multiply_rows(&g);
        }
    }
}
