/* rmsnorm_q4k_gemv's h: made once per thread block, or once per chunk of k, in shared memory.
 *
 * LAYOUT. A lane's share is 64 neighbouring elements (sub-blocks 2j and 2j + 1), and the numbers of these sub-blocks:
 *     exact: 64 F32; minus the sum of each sub-block; 8 unused bytes
 *     q8:    64 bytes of codes; the scale of each sub-block and minus its sum. The second scale is divided by 16, since its
 *            codes of W are multiplied while still in the high nibbles.
 *
 * Of the eight shares of two super-blocks, share s is in slot s / 2 + 4 * (s % 2). A warp stores q8 codes of two shares at
 * once; four slots apart they have no bank conflicts.
 *
 * EXACT. A code of W is used without shifting: nibble p of 16 bits, read as a float, is the denormal code * 2^(4p - 149). So
 * an element of h that multiplies nibble p is stored as h * 2^(C - 4p), and all sums are 2^(C - 149) times too large. C is
 * chosen so that the largest |h| of the chunk is raised to between 2^120 and 2^121. So no sum overflows. What falls below
 * the least denormal number is 2^-121 of that largest |h| (not of the result); f32 sums would not keep it either.
 */
#include "rmsnorm_q4k.h"

enum {
    WARP_ELEMENTS = 128, /* 4 per lane */
    BLOCK_ELEMENTS = 4 * GEMV_THREADS,
    LARGEST_EXPONENT = 120,
    BIAS = 127
};

#define LEAST_MOST 0x1p-112f

/* ---- h ------------------------------------------------------------------------------------------------------------ */

/* h of element `element` and the next three. */
static void make_four(gemv *g, uint32_t vector, ptx_val element, const ptx_val gamma[4], ptx_val h[4])
{
    ptx_fn *f = g->f;
    gemv_load_four(g, ptx_at(f, g->x[vector], element), h);
    for (uint32_t i = 0; i < 4 && g->has_norm; i++) {
        ptx_val scaled = ptx_mul(f, h[i], g->factor[vector]);
        h[i] = ptx_mul(f, scaled, gamma[i]);
    }
}

static ptx_val most_of_four(ptx_fn *f, const ptx_val h[4])
{
    ptx_val most = ptx_var(f, ptx_abs(f, h[0]));
    for (uint32_t i = 1; i < 4; i++) {
        ptx_val size = ptx_abs(f, h[i]);
        ptx_max_to(f, most, size);
    }
    return most;
}

ptx_val gemv_share_slot(gemv *g, ptx_val share)
{
    ptx_fn *f = g->f;
    ptx_val pair = ptx_bfe(f, share, ptx_u32(1), ptx_u32(2));
    ptx_val eight = ptx_and(f, share, ptx_u32(~(GEMV_SHARES - 1u)));
    ptx_val odd = ptx_and(f, share, ptx_u32(1));
    ptx_val first = ptx_add(f, eight, pair);
    return ptx_mad(f, odd, ptx_u32(GEMV_SHARES / 2), first);
}

/* The address of this thread's first four elements. */
static ptx_val first_slot(gemv *g, uint32_t element_bytes)
{
    ptx_fn *f = g->f;
    ptx_val slot = gemv_share_slot(g, ptx_shr(f, ptx_tid_x(f), ptx_u32(4)));
    ptx_val share = ptx_mad(f, slot, ptx_u32(g->share_bytes), g->h);
    ptx_val in_share = ptx_and(f, g->lane, ptx_u32(15));
    return ptx_var(f, ptx_mad(f, in_share, ptx_u32(4 * element_bytes), share));
}

static void next_slot(gemv *g, ptx_val slot)
{
    ptx_add_to(g->f, slot, ptx_u32(BLOCK_ELEMENTS / GEMV_SHARE_ELEMENTS * g->share_bytes));
}

static ptx_val vector_at(gemv *g, ptx_val address, uint32_t vector)
{
    return vector == 0 ? address : ptx_mad(g->f, g->h_bytes, ptx_u32(vector), address);
}

/* ---- q8 ----------------------------------------------------------------------------------------------------------- */

/* The largest magnitude of a quantised block of h, or a NaN where it has one. Below sm_80 magnitudes are compared as
 * integers, of which a NaN's is above infinity's. */
static ptx_val most_of_block(gemv *g, const ptx_val h[4])
{
    ptx_fn *f = g->f;
    if (g->has_sm_80) {
        ptx_val most = ptx_abs(f, h[0]);
        for (uint32_t i = 1; i < 4; i++)
            most = ptx_max_nan(f, most, ptx_abs(f, h[i]));
        most = ptx_reduce_lanes(f, PTX_OP_MAX_NAN, 8, most);
        return ptx_max_nan(f, most, ptx_f32(LEAST_MOST));
    }
    ptx_val most = ptx_as(f, PTX_U32, ptx_abs(f, h[0]));
    for (uint32_t i = 1; i < 4; i++)
        most = ptx_max(f, most, ptx_as(f, PTX_U32, ptx_abs(f, h[i])));
    most = ptx_reduce_lanes(f, PTX_OP_MAX, 8, most);
    return ptx_as(f, PTX_F32, ptx_max(f, most, ptx_as(f, PTX_U32, ptx_f32(LEAST_MOST))));
}

/* A scale is at least 2^-112 / 127, so that the scale, its inverse and a 16th of it are normal numbers. Where h is infinite
 * or a NaN, so is the scale, and codes are 0: all products with the block are NaNs. */
static void store_codes(gemv *g, ptx_val codes_at, ptx_val numbers_at, ptx_val high, const ptx_val h[4])
{
    ptx_fn *f = g->f;
    ptx_val code[4];
    ptx_val most = most_of_block(g, h);
    ptx_val inverse = ptx_div_full(f, ptx_f32(127), most);
    for (uint32_t i = 0; i < 4; i++) {
        ptx_val quotient = ptx_mul(f, h[i], inverse);
        code[i] = ptx_as(f, PTX_U32, ptx_cvt_rni(f, PTX_S32, quotient));
    }
    ptx_val low = ptx_prmt(f, code[0], code[1], ptx_u32(0x0040));
    ptx_val upper = ptx_prmt(f, code[2], code[3], ptx_u32(0x0040));
    ptx_val codes = ptx_prmt(f, low, upper, ptx_u32(0x5410));
    ptx_store(f, shared_at(f, PTX_U32, codes_at, 0), codes);
    ptx_val minus_four =
        ptx_dp4a_ss(f, ptx_as(f, PTX_S32, codes), ptx_s32(-1), ptx_s32(0)); /* -1 in each byte */
    ptx_val total = ptx_reduce_lanes(f, PTX_OP_ADD, 8, minus_four);
    ptx_val numbers[2];
    ptx_val scale = ptx_div(f, most, ptx_f32(127));
    numbers[0] = ptx_mul(f, scale, high);
    ptx_val whole = ptx_cvt(f, PTX_F32, total);
    numbers[1] = ptx_mul(f, scale, whole);
    PTX_WHEN (f, g->is_first_of_eight) {
        ptx_store_vec(f, 2, shared_at(f, PTX_F32, numbers_at, GEMV_SHARE_ELEMENTS), numbers, PTX_PLAIN);
    }
}

/* Lanes 8 to 15 and 24 to 31 have odd sub-blocks. */
static ptx_val is_odd_sub_block(gemv *g)
{
    ptx_val bit = ptx_and(g->f, g->lane, ptx_u32(8));
    return ptx_ne(g->f, bit, ptx_u32(0));
}

static void load_gamma(gemv *g, ptx_val element, ptx_val gamma[4])
{
    if (g->has_norm)
        ptx_load_vec(g->f, 4, gamma, ptx_at(g->f, g->gamma, element), PTX_NC);
}

static void make_q8(gemv *g, ptx_val elements)
{
    ptx_fn *f = g->f;
    ptx_val is_odd = is_odd_sub_block(g);
    ptx_val high = ptx_select(f, is_odd, ptx_f32(0x1p-4f), ptx_f32(1));
    ptx_val past_share = ptx_select(f, is_odd, ptx_u32(32 - 8), ptx_u32(0));
    ptx_val start = ptx_mul(f, g->warp, ptx_u32(WARP_ELEMENTS));
    ptx_val codes_at = first_slot(g, 1);
    PTX_FOR (f, first, start, elements, ptx_u32(BLOCK_ELEMENTS)) {
        ptx_side_loop(f);
        ptx_val in_chunk = ptx_mad(f, g->lane, ptx_u32(4), first);
        ptx_val element = ptx_add(f, in_chunk, g->chunk_first);
        ptx_val numbers_at = ptx_sub(f, codes_at, past_share);
        ptx_val gamma[4];
        load_gamma(g, element, gamma);
        for (uint32_t b = 0; b < g->batch; b++) {
            ptx_val h[4];
            make_four(g, b, element, gamma, h);
            ptx_val to = vector_at(g, codes_at, b);
            store_codes(g, to, b == 0 ? numbers_at : vector_at(g, numbers_at, b), high, h);
        }
        next_slot(g, codes_at);
    }
}

/* ---- exact -------------------------------------------------------------------------------------------------------- */

/* Stores h as it is, and each warp's largest magnitude. */
static void store_plain(gemv *g, ptx_val elements)
{
    ptx_fn *f = g->f;
    ptx_val most[GEMV_MOST_BATCH];
    for (uint32_t b = 0; b < g->batch; b++)
        most[b] = ptx_var(f, ptx_f32(0));
    ptx_val start = ptx_mul(f, g->warp, ptx_u32(WARP_ELEMENTS));
    ptx_val at = first_slot(g, 4);
    PTX_FOR (f, first, start, elements, ptx_u32(BLOCK_ELEMENTS)) {
        ptx_side_loop(f);
        ptx_val in_chunk = ptx_mad(f, g->lane, ptx_u32(4), first);
        ptx_val element = ptx_add(f, in_chunk, g->chunk_first);
        ptx_val gamma[4];
        load_gamma(g, element, gamma);
        for (uint32_t b = 0; b < g->batch; b++) {
            ptx_val h[4];
            make_four(g, b, element, gamma, h);
            ptx_val to = vector_at(g, at, b);
            ptx_store_vec(f, 4, shared_at(f, PTX_F32, to, 0), h, PTX_PLAIN);
            ptx_max_to(f, most[b], most_of_four(f, h));
        }
        next_slot(g, at);
    }
    for (uint32_t b = 0; b < g->batch; b++)
        shared_store_warp(g->f, g->lane, g->warp, g->partials, 4 * GEMV_WARPS * b,
                          ptx_reduce_lanes(f, PTX_OP_MAX, 32, most[b]));
}

/* 2 to the power of `exponent`, S32, within the normal numbers. */
static ptx_val power(gemv *g, ptx_val exponent)
{
    ptx_val biased = ptx_add(g->f, exponent, ptx_s32(BIAS));
    ptx_val bits = ptx_shl(g->f, biased, ptx_u32(23));
    return ptx_as(g->f, PTX_F32, bits);
}

/* 2 to the power of `exponent` as a product of two. */
static void split_power(gemv *g, ptx_val exponent, ptx_val factor[2])
{
    ptx_val half = ptx_shr(g->f, exponent, ptx_u32(1));
    ptx_val rest = ptx_sub(g->f, exponent, half);
    factor[0] = power(g, half);
    factor[1] = power(g, rest);
}

/* Finds the factors that raise h, and stores those that lower the sums again in shared memory. */
static void find_units(gemv *g, uint32_t vector, ptx_val raise[2])
{
    ptx_fn *f = g->f;
    ptx_val most = shared_join_warps(g->f, PTX_OP_MAX, g->partials, 4 * GEMV_WARPS * vector, GEMV_WARPS),
            lower[2];
    ptx_val biased = ptx_as(f, PTX_S32, ptx_shr(f, ptx_as(f, PTX_U32, most), ptx_u32(23)));
    ptx_val up = ptx_sub(f, ptx_s32(LARGEST_EXPONENT + BIAS), biased);
    ptx_val down = ptx_sub(f, ptx_s32(GEMV_EXACT_EXPONENT), up);
    split_power(g, up, raise);
    split_power(g, down, lower);
    ptx_val is_first = ptx_eq(f, ptx_tid_x(f), ptx_u32(0));
    PTX_WHEN (f, is_first) {
        ptx_store_vec(f, 2, shared_at(f, PTX_F32, g->units, 8 * vector), lower, PTX_PLAIN);
    }
}

/* Of two neighbouring elements the second multiplies a nibble 8 bits higher up; those of odd sub-blocks are 4 bits higher. */
static void raise_plain(gemv *g, uint32_t vector, ptx_val elements, ptx_val is_odd, ptx_val sum_gap)
{
    ptx_fn *f = g->f;
    ptx_val raise[2], factor[2];
    find_units(g, vector, raise);
    ptx_val high = ptx_select(f, is_odd, ptx_f32(0x1p-4f), ptx_f32(1));
    factor[0] = ptx_mul(f, raise[1], high);
    factor[1] = ptx_mul(f, factor[0], ptx_f32(0x1p-8f));
    ptx_val start = ptx_mul(f, g->warp, ptx_u32(WARP_ELEMENTS));
    ptx_val at = ptx_var(f, vector_at(g, first_slot(g, 4), vector));
    PTX_FOR (f, first, start, elements, ptx_u32(BLOCK_ELEMENTS)) {
        ptx_side_loop(f);
        ptx_val h[4], raised[4];
        ptx_load_vec(f, 4, h, shared_at(f, PTX_F32, at, 0), PTX_PLAIN);
        for (uint32_t i = 0; i < 4; i++) {
            h[i] = ptx_mul(f, h[i], raise[0]);
            raised[i] = ptx_mul(f, h[i], factor[i % 2]);
        }
        ptx_store_vec(f, 4, shared_at(f, PTX_F32, at, 0), raised, PTX_PLAIN);
        ptx_val low = ptx_add(f, h[0], h[1]), upper = ptx_add(f, h[2], h[3]);
        ptx_val total = ptx_reduce_lanes(f, PTX_OP_ADD, 8, ptx_add(f, low, upper));
        ptx_val as_raised = ptx_mul(f, total, raise[1]);
        ptx_val minus_sum = ptx_mul(f, as_raised, ptx_f32(-0x1p-149f));
        ptx_val to = ptx_sub(f, at, sum_gap);
        PTX_WHEN (f, g->is_first_of_eight) {
            ptx_store(f, shared_at(f, PTX_F32, to, 4 * GEMV_SHARE_ELEMENTS), minus_sum);
        }
        next_slot(g, at);
    }
}

static void make_exact(gemv *g, ptx_val elements)
{
    ptx_fn *f = g->f;
    store_plain(g, elements);
    ptx_barrier(f);
    ptx_val is_odd = is_odd_sub_block(g);
    ptx_val sum_gap = ptx_select(f, is_odd, ptx_u32(4 * 32 - 4), ptx_u32(0));
    for (uint32_t b = 0; b < g->batch; b++)
        raise_plain(g, b, elements, is_odd, sum_gap);
}

void gemv_make_h(gemv *g)
{
    ptx_val elements = ptx_mul(g->f, g->chunk_blocks, ptx_u32(Q4K_BLOCK_ELEMENTS));
    ptx_val of_eight = ptx_and(g->f, g->lane, ptx_u32(7));
    g->is_first_of_eight = ptx_eq(g->f, of_eight, ptx_u32(0));
    (g->is_q8 ? make_q8 : make_exact)(g, elements);
}
