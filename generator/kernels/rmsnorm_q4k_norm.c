/* rmsnorm_q4k_gemv's norm: 1 / sqrt(mean(x^2) + eps) of each vector, once per thread block.
 *
 * Squares of f32 and bf16 leave f32's range where |x| is above 2^64 or below 2^-63. So a sum that is infinite, or so small
 * that its lost terms could matter, is made again, with x times a power of two. That puts the larger of |x| and the square
 * root of eps between 1/2 and 4, except for denormals. It is rare: a loop over the vectors skips those whose first sums
 * were fine. For denormal x and an eps of 0 the factor itself may exceed f32. Then a part of its power of two, `rest`, stays
 * in shared memory until y is stored; else the rest is 1. f16 needs none of this.
 *
 * An infinity in x makes its own h a NaN and the others 0; vectors of zeros without an eps are 0 / 0, NaNs.
 */
#include "device/narrow.h"
#include "rmsnorm_q4k.h"

/* A mean of squares loses at most 2^-150, which is below 2^-50 of this. */
#define LEAST_MEAN 0x1p-100f
#define MOST_MEAN  0x1.fffffep127f

enum { BLOCK_ELEMENTS = 4 * GEMV_THREADS };

/* Powers of two, as exponents of f32 with their bias. */
enum { BIAS = 127, TWICE_BIAS = 2 * BIAS, LEAST_EARLY = BIAS - 116, MOST_EARLY = BIAS + 90 };

void gemv_load_four(gemv *g, ptx_val at, ptx_val x[4])
{
    ptx_fn *f = g->f;
    ptx_val words[2];
    if (g->x_type == PTX_F32) {
        ptx_load_vec(f, 4, x, at, PTX_NC);
        return;
    }
    ptx_load_vec(f, 2, words, ptx_cast_ptr(f, at, PTX_U32), PTX_NC);
    widen_pair(f, g->x_type, words[0], &x[0]);
    widen_pair(f, g->x_type, words[1], &x[2]);
}

/* ---- sums of a vector --------------------------------------------------------------------------------------------- */

/* This warp's share of the sum of squares, in each of its lanes. `by`, where not null, multiplies x. */
static ptx_val sum_squares(gemv *g, ptx_val vector, const ptx_val *by)
{
    ptx_fn *f = g->f;
    ptx_val start = ptx_shl(f, ptx_tid_x(f), ptx_u32(2));
    ptx_val sum = ptx_var(f, ptx_f32(0));
    PTX_FOR (f, i, start, g->k, ptx_u32(BLOCK_ELEMENTS)) {
        ptx_val x[4];
        gemv_load_four(g, ptx_at(f, vector, i), x);
        for (uint32_t e = 0; e < 4; e++) {
            if (by)
                x[e] = ptx_mul(f, x[e], *by);
            ptx_fma_to(f, sum, x[e], x[e]);
        }
    }
    return ptx_reduce_lanes(f, PTX_OP_ADD, 32, sum);
}

/* This warp's share of the largest magnitude; NaNs do not count. */
static ptx_val find_most(gemv *g, ptx_val vector)
{
    ptx_fn *f = g->f;
    ptx_val start = ptx_shl(f, ptx_tid_x(f), ptx_u32(2));
    ptx_val most = ptx_var(f, ptx_f32(0));
    PTX_FOR (f, i, start, g->k, ptx_u32(BLOCK_ELEMENTS)) {
        ptx_val x[4];
        gemv_load_four(g, ptx_at(f, vector, i), x);
        for (uint32_t e = 0; e < 4; e++) {
            ptx_val size = ptx_abs(f, x[e]);
            ptx_max_to(f, most, size);
        }
    }
    return ptx_reduce_lanes(f, PTX_OP_MAX, 32, most);
}

/* ---- what all warps know ------------------------------------------------------------------------------------------ */

/* Reduces all warps' shares, after a barrier: all have read the last ones. */
static ptx_val share_and_join(gemv *g, ptx_val partials, ptx_val value, ptx_op op)
{
    ptx_barrier(g->f);
    shared_store_warp(g->f, g->lane, g->warp, partials, 0, value);
    ptx_barrier(g->f);
    return shared_join_warps(g->f, op, partials, 0, GEMV_WARPS);
}

/* ---- out of reach of plain squares -------------------------------------------------------------------------------- */

/* 2 to the power of an exponent with its bias, S32, from 1 to 254. */
static ptx_val power(gemv *g, ptx_val biased)
{
    return ptx_as(g->f, PTX_F32, ptx_shl(g->f, biased, ptx_u32(23)));
}

/* Makes the factor and the rest of vector `number`, U32; after a barrier all threads may read them. */
static void find_scaled(gemv *g, ptx_val number, ptx_val elements)
{
    ptx_fn *f = g->f;
    ptx_val vector = ptx_at(f, g->x[0], ptx_mul_wide(f, number, g->k));
    ptx_val partials = ptx_mad(f, number, ptx_u32(4 * GEMV_WARPS), g->partials);
    ptx_val of_x = share_and_join(g, partials, find_most(g, vector), PTX_OP_MAX);
    ptx_val most = ptx_max(f, of_x, ptx_sqrt_approx(f, g->eps));
    ptx_val exponent = ptx_as(f, PTX_S32, ptx_shr(f, ptx_as(f, PTX_U32, most), ptx_u32(23)));
    ptx_val inverse = ptx_sub(f, ptx_s32(TWICE_BIAS - 1), exponent);
    ptx_val up = ptx_max(f, inverse, ptx_s32(1));
    ptx_val by = power(g, up);
    ptx_val sum = share_and_join(g, partials, sum_squares(g, vector, &by), PTX_OP_ADD);
    ptx_val mean = ptx_div(f, sum, elements);
    ptx_val eps = ptx_mul(f, ptx_mul(f, g->eps, by), by);
    ptx_val inverse_rms = ptx_rsqrt_approx(f, ptx_add(f, mean, eps));
    ptx_val not_tiny = ptx_max(f, up, ptx_s32(LEAST_EARLY));
    ptx_val early = ptx_min(f, not_tiny, ptx_s32(MOST_EARLY));
    ptx_val late = ptx_sub(f, up, early);
    ptx_val pair[2];
    pair[0] = ptx_mul(f, inverse_rms, power(g, early));
    pair[1] = power(g, ptx_add(f, late, ptx_s32(BIAS)));
    ptx_val to = ptx_mad(f, number, ptx_u32(8), g->units);
    ptx_val is_first = ptx_eq(f, ptx_tid_x(f), ptx_u32(0));
    PTX_WHEN (f, is_first) {
        ptx_store_vec(f, 2, shared_at(f, PTX_F32, to, 8 * g->batch), pair, PTX_PLAIN);
    }
}

static void find_all_scaled(gemv *g, ptx_val elements)
{
    ptx_fn *f = g->f;
    PTX_FOR (f, number, ptx_u32(0), ptx_u32(g->batch), ptx_u32(1)) {
        find_scaled(g, number, elements);
    }
    ptx_barrier(f);
    for (uint32_t b = 0; b < g->batch; b++)
        ptx_set(f, g->factor[b], ptx_load(f, shared_at(f, PTX_F32, g->units, 8 * g->batch + 8 * b)));
}

static void store_no_rest(gemv *g)
{
    ptx_fn *f = g->f;
    ptx_val thread = ptx_tid_x(f);
    ptx_val has_vector = ptx_lt(f, thread, ptx_u32(g->batch));
    ptx_val to = ptx_mad(f, thread, ptx_u32(8), g->units);
    PTX_WHEN (f, has_vector) {
        ptx_store(f, shared_at(f, PTX_F32, to, 8 * g->batch + 4), ptx_f32(1));
    }
}

ptx_val gemv_load_rest(gemv *g, uint32_t vector)
{
    return ptx_load(g->f, shared_at(g->f, PTX_F32, g->units, 8 * g->batch + 8 * vector + 4));
}

/* ---- the factors -------------------------------------------------------------------------------------------------- */

void gemv_find_factors(gemv *g)
{
    ptx_fn *f = g->f;
    for (uint32_t b = 0; b < g->batch; b++)
        shared_store_warp(g->f, g->lane, g->warp, g->partials, 4 * GEMV_WARPS * b,
                          sum_squares(g, g->x[b], NULL));
    ptx_barrier(f);
    ptx_val elements = ptx_cvt(f, PTX_F32, g->k), most = ptx_f32(0), least = ptx_f32(0);
    for (uint32_t b = 0; b < g->batch; b++) {
        ptx_val sum = shared_join_warps(g->f, PTX_OP_ADD, g->partials, 4 * GEMV_WARPS * b, GEMV_WARPS);
        ptx_val mean = ptx_div(f, sum, elements);
        ptx_val raised = ptx_add(f, mean, g->eps);
        ptx_set(f, g->factor[b], ptx_rsqrt_approx(f, raised));
        most = b == 0 ? raised : ptx_max(f, most, raised);
        least = b == 0 ? raised : ptx_min(f, least, raised);
    }
    if (!g->has_rest)
        return;
    store_no_rest(g);
    ptx_val is_beyond = ptx_gt(f, most, ptx_f32(MOST_MEAN));
    ptx_val is_below = ptx_lt(f, least, ptx_f32(LEAST_MEAN));
    ptx_val is_out = ptx_or(f, is_beyond, is_below);
    PTX_IF (f, ptx_uniform(f, is_out)) {
        ptx_rarely(f);
        find_all_scaled(g, elements);
    }
}
