/* NVFP4's codes and scales, shared by nvfp4_gemv's strategies. */
#include "nvfp4.h"

#include "device/codes.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/scale_tiles.h"
#include "device/shared.h"
#include "device/tail.h"

enum { NAN_MARKS = 0x40004000 };

/* ---- e2m1 --------------------------------------------------------------------------------------------------------- */

/* prmt picks a byte of the table by the low three bits of each selector nibble. The fourth bit replicates that byte's sign,
 * which is 0: so codes with the other sign give 0. */
static ptx_val magnitudes(ptx_fn *f, ptx_val selector)
{
    return ptx_prmt(f, ptx_u32(0x03020100), 0x0c080604, selector);
}

void nvfp4_split(ptx_fn *f, ptx_val word, ptx_val bytes[2][2])
{
    ptx_val flipped = ptx_xor(f, word, 0x88888888);
    ptx_val word_high = ptx_shr(f, word, 16);
    ptx_val flipped_high = ptx_shr(f, flipped, 16);
    bytes[0][0] = magnitudes(f, word);
    bytes[1][0] = magnitudes(f, flipped);
    bytes[0][1] = magnitudes(f, word_high);
    bytes[1][1] = magnitudes(f, flipped_high);
}

/* One of the two words as signed bytes, negated if is_opposite: 128 + positive - negative never borrows from the next byte. */
static ptx_val signed_bytes(ptx_fn *f, ptx_val bytes[2][2], uint32_t half, bool is_opposite)
{
    ptx_val raised = ptx_or(f, bytes[is_opposite][half], 0x80808080);
    ptx_val difference = ptx_sub(f, raised, bytes[!is_opposite][half]);
    return ptx_xor(f, difference, 0x80808080);
}

void nvfp4_halves(ptx_fn *f, ptx_val word, ptx_val pairs[4])
{
    ptx_val bytes[4];
    ptx_unpack(f, PTX_B8, 4, bytes, word);
    for (uint32_t i = 0; i < 4; i++)
        pairs[i] = ptx_f16x2_from_e2m1x2(f, bytes[i]);
}

void nvfp4_store_block(const nvfp4_rows *g, const ptx_val word[2], ptx_val at, uint32_t apart,
                       bool with_opposites)
{
    ptx_fn *f = g->f;
    const uint32_t vectors = g->is_hardware || with_opposites ? 2 : 1;
    ptx_val value[2][4], bytes[2][2];
    for (uint32_t w = 0; w < 2; w++) {
        if (g->is_hardware) {
            nvfp4_halves(f, word[w], value[w]);
            continue;
        }
        nvfp4_split(f, word[w], bytes);
        for (uint32_t half = 0; half < 2; half++)
            for (uint32_t i = 0; i < vectors; i++)
                value[i][2 * w + half] = signed_bytes(f, bytes, half, i == 1);
    }
    for (uint32_t i = 0; i < vectors; i++) {
        for (uint32_t j = 0; j < 4; j++)
            value[i][j] = ptx_as(f, PTX_U32, value[i][j]);
        ptx_store_vec(f, 4, ptx_at_bytes(f, at, apart * i), value[i], PTX_PLAIN);
    }
}

/* ---- e4m3 --------------------------------------------------------------------------------------------------------- */

/* Two scales, from the low bytes of a U32, as F16X2. Below sm_89 they are scaled by 2^-8, and a NaN becomes 480 * 2^-8: for each
 * NaN, `marks` then has one of NAN_MARKS set, among other bits. From sm_89 on `marks` is poison. */
static ptx_val widen_scales(ptx_fn *f, ptx_val raw, ptx_val *marks)
{
    *marks = (ptx_val){0};
    if (ptx_has_sm(f, 89))
        return ptx_f16x2_from_e4m3x2(f, ptx_as(f, PTX_B16, ptx_cvt(f, PTX_U16, raw)));
    ptx_val magnitudes, pair = codes_small_e4m3(f, PTX_F16, raw, CODES_FIRST_TWO, &magnitudes);
    *marks = ptx_add(f, magnitudes, 0x00800080);
    return pair;
}

ptx_val nvfp4_vector_scales(ptx_fn *f, ptx_val raw)
{
    ptx_val marks, pair = widen_scales(f, raw, &marks);
    ptx_val factor = ptx_number(PTX_F16X2, ptx_has_sm(f, 89) ? 0.25 : 0x1p14);
    ptx_val scaled = ptx_as(f, PTX_U32, ptx_mul(f, pair, factor));
    if (ptx_has_sm(f, 89))
        return scaled;
    ptx_val marked = ptx_and(f, marks, NAN_MARKS); /* the highest exponent bits of two f16 */
    ptx_val spread = ptx_mul(f, ptx_shr(f, marked, 14), 0x7fff);
    return ptx_or(f, scaled, spread);
}

/* ---- rows --------------------------------------------------------------------------------------------------------- */

nvfp4_rows nvfp4_init(ptx_fn *f, const kiln_variant *v)
{
    const bool is_simt = kiln_is(v, "strategy", "simt");
    nvfp4_rows g = {.f = f,
                    .c_type = kiln_type(v, "c"),
                    .rows = kiln_int(v, "rows"),
                    .k_warps = kiln_int(v, "k_warps"),
                    .is_hardware = kiln_is(v, "decode", "hardware"),
                    .has_alpha = kiln_bool(v, "global_scale"),
                    .is_tiled = kiln_is(v, "scale_layout", "tiles_128x4")};
    g.pass_rows = NVFP4_WARPS / g.k_warps * g.rows;
    g.neighbours = is_simt ? g.rows : 2;
    g.a = ptx_param_ptr(f, PTX_U8, "a");
    g.sfa = ptx_param_ptr(f, PTX_U8, "sfa");
    g.b = ptx_param_ptr(f, PTX_U8, "b");
    g.sfb = ptx_param_ptr(f, PTX_U8, "sfb");
    g.c = ptx_param_ptr(f, g.c_type, "out");
    g.m = ptx_param(f, PTX_U32, "m");
    g.k = ptx_param(f, PTX_U32, "k");
    g.l = ptx_param(f, PTX_U32, "l");
    ptx_val given = ptx_param(f, PTX_U32, "b_rows");
    ptx_val is_default = ptx_eq(f, given, 0);
    g.b_rows = ptx_select(f, is_default, 128, given);
    if (g.has_alpha)
        g.alpha = ptx_param(f, PTX_F32, "alpha");
    g.tid = ptx_tid_x(f);
    g.lane = ptx_laneid(f);
    g.warp = ptx_warpid_x(f);
    g.slice = ptx_and(f, g.warp, g.k_warps - 1);
    g.row_bytes = ptx_cvt(f, PTX_U64, ptx_shr(f, g.k, 1));
    g.first_batch = ptx_ctaid_y(f);
    g.batches = ptx_special(f, PTX_NCTAID_Y);
    if (g.is_tiled) {
        /* A row of tiles has the scales of 128 rows. */
        g.tiles = scale_tiles_down(f, g.m);
        ptx_val across = scale_tiles_across(f, ptx_shr(f, g.k, 4));
        g.tile_row_bytes = ptx_mul_wide(f, across, SCALE_TILE_BYTES);
    }
    /* Shares are balanced to the rows that are loaded together, however many rows a pass has: memory traffic is even. */
    const uint32_t together = is_simt || g.is_tiled ? g.neighbours : 1;
    ptx_val all = g.is_tiled ? ptx_mul(f, g.tiles, SCALE_TILE_ROWS) : g.m;
    ptx_val blocks = ptx_nctaid_x(f);
    ptx_val raised = ptx_add(f, all, ptx_sub(f, blocks, 1));
    ptx_val share = ptx_div(f, raised, blocks);
    if (together > 1)
        share = ptx_and(f, ptx_add(f, share, together - 1), ~(together - 1));
    ptx_val thread_block = ptx_ctaid_x(f);
    g.first = ptx_mul(f, thread_block, share);
    g.end = ptx_min(f, ptx_add(f, g.first, share), all);
    return g;
}

ptx_val nvfp4_first_of_warp(const nvfp4_rows *g, ptx_val first_of_pass)
{
    ptx_val of_rows = ptx_shr(g->f, g->warp, lanes_log2(g->k_warps));
    return ptx_mad(g->f, of_rows, g->rows, first_of_pass);
}

void nvfp4_start_pass(nvfp4_rows *g, ptx_val first)
{
    g->first_of_pass = first;
    g->first_of_warp = nvfp4_first_of_warp(g, first);
}

void nvfp4_start_batch(nvfp4_rows *g, ptx_val batch)
{
    ptx_fn *f = g->f;
    g->batch = batch;
    ptx_val row = ptx_mul_wide(f, batch, g->b_rows);
    ptx_val byte = ptx_mul(f, row, g->row_bytes);
    g->b_at = ptx_add(f, ptx_address(f, g->b), byte);
    ptx_val scales;
    if (g->is_tiled) {
        ptx_val tile = ptx_mul_wide(f, batch, scale_tiles_down(f, g->b_rows));
        scales = ptx_mul(f, tile, g->tile_row_bytes);
    } else {
        scales = ptx_shr(f, byte, 3);
    }
    g->sfb_at = ptx_add(f, ptx_address(f, g->sfb), scales);
}

ptx_val nvfp4_share_of_warp(const nvfp4_rows *g, ptx_val first_of_warp, ptx_val length)
{
    ptx_fn *f = g->f;
    ptx_val has_rows = ptx_lt(f, first_of_warp, g->end);
    if (g->is_tiled) { /* the warp's first place has its first row */
        ptx_val in_matrix = ptx_lt(f, scale_tiles_row(f, first_of_warp), g->m);
        has_rows = ptx_and(f, has_rows, in_matrix);
    }
    return ptx_select(f, has_rows, length, 0);
}

ptx_val nvfp4_decodes(const nvfp4_rows *g)
{
    ptx_val is_first = ptx_eq(g->f, g->first_of_pass, g->first);
    ptx_val is_long = ptx_gt(g->f, g->k, NVFP4_DEPTH);
    return ptx_or(g->f, is_first, is_long);
}

/* The scales of a place in its first tile; for neighbours, the scales of the first. */
static ptx_val tiled_scales(const nvfp4_rows *g, ptx_val place)
{
    ptx_fn *f = g->f;
    ptx_val together = ptx_and(f, place, ~(g->neighbours - 1));
    ptx_val tile = ptx_shr(f, together, 7);
    ptx_val in_tile = ptx_and(f, together, SCALE_TILE_ROWS - 1);
    ptx_val index = ptx_mad_wide(f, g->batch, g->tiles, ptx_cvt(f, PTX_U64, tile));
    ptx_val from = ptx_mul(f, index, g->tile_row_bytes);
    ptx_val byte = ptx_mad_wide(f, in_tile, SCALE_TILE_BLOCKS, from);
    return ptx_add(f, ptx_address(f, g->sfa), byte);
}

void nvfp4_find_row(const nvfp4_rows *g, ptx_val row, ptx_val *codes, ptx_val *scales)
{
    ptx_fn *f = g->f;
    ptx_val present = tail_clamp(f, row, g->end), of_matrix = present;
    if (g->is_tiled) {
        ptx_val last = ptx_sub(f, g->m, 1);
        of_matrix = ptx_min(f, scale_tiles_row(f, present), last);
    }
    ptx_val index = ptx_mad_wide(f, g->batch, g->m, ptx_cvt(f, PTX_U64, of_matrix));
    ptx_val byte = ptx_mul(f, index, g->row_bytes);
    *codes = ptx_add(f, ptx_address(f, g->a), byte);
    *scales =
        g->is_tiled ? tiled_scales(g, present) : ptx_add(f, ptx_address(f, g->sfa), ptx_shr(f, byte, 3));
}

ptx_val nvfp4_scales_at(const nvfp4_rows *g, ptx_val scales, ptx_val group, uint32_t blocks)
{
    ptx_fn *f = g->f;
    const uint32_t groups = SCALE_TILE_BLOCKS / blocks; /* in a tile */
    if (!g->is_tiled)
        return ptx_mad_wide(f, group, blocks, scales);
    ptx_val tile = ptx_shr(f, group, lanes_log2(groups));
    ptx_val from = ptx_mad_wide(f, tile, SCALE_TILE_BYTES, scales);
    return ptx_mad_wide(f, ptx_and(f, group, groups - 1), blocks, from);
}

void nvfp4_start_row(nvfp4_rows *g, uint32_t r)
{
    g->sum[r] = ptx_var(g->f, ptx_f32(0));
    if (!ptx_has_sm(g->f, 89))
        g->marks[r] = ptx_var(g->f, ptx_u32(0));
}

ptx_val nvfp4_multiply_scales(nvfp4_rows *g, uint32_t r, ptx_val raw, ptx_val of_b)
{
    ptx_val marks, pair = widen_scales(g->f, raw, &marks);
    if (!ptx_has_sm(g->f, 89))
        ptx_or_to(g->f, g->marks[r], marks);
    return ptx_mul(g->f, pair, of_b);
}

ptx_val nvfp4_finish(const nvfp4_rows *g, uint32_t r)
{
    ptx_fn *f = g->f;
    if (g->is_hardware)
        return ptx_mul(f, g->sum[r], 4);
    if (ptx_has_sm(g->f, 89))
        return g->sum[r];
    ptx_val marked = ptx_and(f, g->marks[r], NAN_MARKS);
    ptx_val is_nan = ptx_ne(f, marked, 0);
    return ptx_select(f, is_nan, ptx_bits(PTX_F32, 0x7fffffff), g->sum[r]);
}

static void store_sum(const nvfp4_rows *g, ptx_val sum, ptx_val row, ptx_val is_here)
{
    ptx_fn *f = g->f;
    ptx_val in_share = ptx_lt(f, row, g->end);
    ptx_val stores = ptx_and(f, in_share, is_here);
    if (g->is_tiled) {
        row = scale_tiles_row(f, row);
        ptx_val in_matrix = ptx_lt(f, row, g->m);
        stores = ptx_and(f, in_matrix, stores);
    }
    ptx_val index = ptx_mad_wide(f, g->batch, g->m, ptx_cvt(f, PTX_U64, row));
    ptx_val at = ptx_at(f, g->c, index);
    if (g->has_alpha)
        sum = ptx_mul(f, sum, g->alpha);
    narrow_store_where(f, g->c_type, PTX_F32, at, sum, stores);
}

/* One thread per row of the pass adds. At the end all have read, and the next pass may store. */
static void join_warps(const nvfp4_rows *g, const ptx_val sums[], const ptx_val row_in_warp[], uint32_t count,
                       ptx_val is_first)
{
    ptx_fn *f = g->f;
    ptx_val partial = ptx_shared(f, PTX_F32, NVFP4_WARPS * g->rows, 16);
    ptx_val mine[4];
    for (uint32_t i = 0; i < count; i++)
        mine[i] = ptx_at(f, partial, ptx_mad(f, g->warp, g->rows, row_in_warp[i]));
    PTX_WHEN (f, is_first) {
        for (uint32_t i = 0; i < count; i++)
            ptx_store(f, mine[i], sums[i]);
    }
    ptx_barrier(f);
    ptx_val is_here = ptx_lt(f, g->tid, g->pass_rows);
    PTX_IF (f, is_here) {
        ptx_val of_warps = ptx_shr(f, g->tid, lanes_log2(g->rows));
        ptx_val in_warps = ptx_and(f, g->tid, g->rows - 1);
        ptx_val from = ptx_at(f, partial, ptx_mad(f, of_warps, g->k_warps * g->rows, in_warps));
        ptx_val total = shared_sum(f, from, g->k_warps, 4 * g->rows);
        store_sum(g, total, ptx_add(f, g->first_of_pass, g->tid), is_here);
    }
    ptx_barrier(f);
}

void nvfp4_store_sums(const nvfp4_rows *g, const ptx_val sums[], const ptx_val row_in_warp[], uint32_t count,
                      ptx_val is_first)
{
    if (g->k_warps > 1) {
        join_warps(g, sums, row_in_warp, count, is_first);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        store_sum(g, sums[i], ptx_add(g->f, g->first_of_warp, row_in_warp[i]), is_first);
}
