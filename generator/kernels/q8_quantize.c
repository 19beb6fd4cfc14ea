/* q8_quantize: quantises rows of activations to signed bytes with a scale for each 32 neighbours, once for all products that share
 * them; applies a norm first, if any. linear takes the bytes as x s8.
 *
 * GEOMETRY. A thread takes 16 bytes of a row at once, so the lanes of a block of 32 are 8 or 4 neighbours. Without a norm a
 * thread block has a stretch of a row. With one it has a whole row: codes do not depend on the norm's factor, which divides
 * out, and scales wait in shared memory until all squares are summed. So x is read once.
 *
 * RANGE. The squares of f32 and bf16 may leave the range of f32, or x * gamma may although h does not. So if the mean is not
 * between 2^-16 and 2^40, the row is read again, with x times a power of two that puts the larger of |x| and the square root
 * of eps between 1/2 and 4 (except for denormals); the power divides out. f16 needs none of this.
 */
#include "descriptor.h"
#include <kiln/author/families.h>

#include "device/codes.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/shared.h"
#include "device/tail.h"

enum {
    WARPS = 8,
    THREADS = WARP_LANES * WARPS,
    BLOCK = 32, /* elements under one scale */
    MOST_RUN = 8,
    MOST_STEPS = 4,
    BIAS = 127,
    ROUND = 0x4B400000, /* bits of 1.5 * 2^23: adding it leaves an integer in the low bits */
};

#define LEAST_MEAN 0x1p-16f
#define MOST_MEAN  0x1p40f

/* A variant during emission. */
typedef struct quantizer {
    ptx_fn *f;
    ptx_type type;
    bool has_norm, may_scale;
    uint32_t run;          /* elements that a thread takes at once */
    uint32_t lanes, steps; /* lanes of a block; steps whose loads are issued together */
    ptx_val in, gamma, codes, scale, k, eps;
    ptx_val tid, lane, warp;
    ptx_val row;                    /* a pointer to the row of x */
    ptx_val first;                  /* the number of the row's first element in x, U64 */
    ptx_val partials, most, scales; /* addresses in shared memory */
    ptx_val by, squares;            /* variables: the factor for x; the sum */
} quantizer;

/* ---- elements ----------------------------------------------------------------------------------------------------- */

/* 16 bytes of the row from an element on, as in memory; zeros if out of bounds. */
typedef ptx_val chunk[4];

static void load_chunk(quantizer *q, ptx_val element, ptx_val in_bounds, chunk c)
{
    tail_load(q->f, PTX_U32, 4, c, ptx_at(q->f, q->row, element), &in_bounds, PTX_NC);
}

/* Multiplies by gamma, after adding up the squares. */
static void normalise(quantizer *q, ptx_val element, ptx_val in_bounds, ptx_val h[MOST_RUN])
{
    ptx_fn *f = q->f;
    ptx_val gamma[MOST_RUN];
    for (uint32_t i = 0; i < q->run; i += 4) {
        ptx_val at = ptx_at_bytes(f, ptx_at(f, q->gamma, element), 4 * i);
        tail_load(f, PTX_F32, 4, &gamma[i], at, &in_bounds, PTX_NC);
    }
    for (uint32_t i = 0; i < q->run; i++) {
        if (q->may_scale)
            h[i] = ptx_mul(f, h[i], q->by);
        ptx_fma_to(f, q->squares, h[i], h[i]);
        h[i] = ptx_mul(f, h[i], gamma[i]);
    }
}

static void store_codes(quantizer *q, ptx_val element, const ptx_val h[MOST_RUN], ptx_val raise)
{
    ptx_fn *f = q->f;
    ptx_val words[2], code[MOST_RUN];
    for (uint32_t i = 0; i < q->run; i++)
        code[i] = ptx_as(f, PTX_U32, ptx_fma(f, h[i], raise, ptx_bits(PTX_F32, ROUND)));
    for (uint32_t i = 0; i < q->run; i += CODES)
        words[i / CODES] = codes_join(f, &code[i]);
    ptx_val at = ptx_at(f, q->codes, ptx_add(f, q->first, ptx_cvt(f, PTX_U64, element)));
    ptx_store_vec(f, (int)(q->run / CODES), ptx_cast_ptr(f, at, PTX_U32), words, PTX_PLAIN);
}

/* ---- scales ------------------------------------------------------------------------------------------------------- */

/* Stores 20 bits of a scale, so that 1.5 * 2^23 times it is exact. An infinite one becomes a NaN. */
static void store_scale(quantizer *q, ptx_val block, ptx_val scale)
{
    ptx_fn *f = q->f;
    ptx_val before = ptx_shr(f, q->first, lanes_log2(BLOCK));
    ptx_val number = ptx_fma(f, scale, 0, scale);
    ptx_val bits = ptx_and(f, ptx_as(f, PTX_U32, number), 0xfffffff0);
    ptx_store(f, ptx_at(f, q->scale, ptx_add(f, before, ptx_cvt(f, PTX_U64, block))),
              ptx_as(f, PTX_F32, bits));
}

static void keep_scale(quantizer *q, ptx_val block, ptx_val scale)
{
    if (q->has_norm)
        ptx_store(q->f, shared_at(q->f, PTX_F32, ptx_mad(q->f, block, 4, q->scales), 0), scale);
    else
        store_scale(q, block, scale);
}

static void quantize_chunk(quantizer *q, const chunk c, ptx_val element, ptx_val in_bounds)
{
    ptx_fn *f = q->f;
    ptx_val h[MOST_RUN];
    widen_words(f, q->type, 4, c, h);
    if (q->has_norm)
        normalise(q, element, in_bounds, h);
    ptx_val most = codes_absmax(f, h, q->run, q->lanes), raise = ptx_mul(f, ptx_rcp_approx(f, most), 127);
    ptx_val lane = ptx_and(f, q->lane, q->lanes - 1);
    PTX_IF (f, in_bounds) {
        store_codes(q, element, h, raise);
        PTX_IF (f, ptx_eq(f, lane, 0)) {
            ptx_val block = ptx_shr(f, element, lanes_log2(BLOCK));
            keep_scale(q, block, ptx_mul(f, most, 1.0f / 127));
        }
    }
}

/* ---- the norm ----------------------------------------------------------------------------------------------------- */

/* The mean of the scaled squares, and eps. Begins with a barrier. */
static ptx_val find_mean(quantizer *q)
{
    ptx_fn *f = q->f;
    ptx_val of_warp = ptx_reduce_lanes(f, PTX_OP_ADD, WARP_LANES, q->squares);
    ptx_barrier(f);
    shared_store_warp(f, q->lane, q->warp, q->partials, 0, of_warp);
    ptx_barrier(f);
    ptx_val sum = shared_join_warps(f, PTX_OP_ADD, q->partials, 0, WARPS), eps = q->eps;
    if (q->may_scale)
        eps = ptx_mul(f, ptx_mul(f, eps, q->by), q->by);
    return ptx_fma(f, sum, ptx_rcp_approx(f, ptx_cvt(f, PTX_F32, q->k)), eps);
}

/* Makes codes and scales of the whole row; returns the mean. */
static ptx_val quantize_row(quantizer *q)
{
    ptx_fn *f = q->f;
    const uint32_t step = THREADS * q->run;
    q->squares = ptx_var(f, ptx_f32(0));
    PTX_FOR (f, first, 0, q->k, q->steps * step) {
        ptx_val element[MOST_STEPS], in_bounds[MOST_STEPS];
        chunk c[MOST_STEPS];
        element[0] = ptx_mad(f, q->tid, q->run, first);
        for (uint32_t s = 0; s < q->steps; s++) {
            element[s] = s == 0 ? element[0] : ptx_add(f, element[0], s * step);
            in_bounds[s] = ptx_lt(f, element[s], q->k);
            load_chunk(q, element[s], in_bounds[s], c[s]);
        }
        for (uint32_t s = 0; s < q->steps; s++)
            quantize_chunk(q, c[s], element[s], in_bounds[s]);
    }
    return find_mean(q);
}

/* A power of two, from the exponent of the row's largest magnitude or of the square root of eps; NaNs do not count. */
static ptx_val find_power(quantizer *q)
{
    ptx_fn *f = q->f;
    ptx_val start = ptx_mul(f, q->tid, q->run), most = ptx_var(f, ptx_sqrt_approx(f, q->eps));
    PTX_FOR (f, element, start, q->k, THREADS * q->run) {
        chunk c;
        ptx_val x[MOST_RUN];
        load_chunk(q, element, ptx_lt(f, element, q->k), c);
        widen_words(f, q->type, 4, c, x);
        for (uint32_t i = 0; i < q->run; i++)
            ptx_max_to(f, most, ptx_abs(f, x[i]));
    }
    ptx_val of_warp = ptx_reduce_lanes(f, PTX_OP_MAX, WARP_LANES, most);
    shared_store_warp(f, q->lane, q->warp, q->most, 0, of_warp);
    ptx_barrier(f);
    ptx_val all = shared_join_warps(f, PTX_OP_MAX, q->most, 0, WARPS);
    ptx_val exponent = ptx_as(f, PTX_S32, ptx_shr(f, ptx_as(f, PTX_U32, all), 23));
    ptx_val biased = ptx_max(f, ptx_sub(f, 2 * BIAS - 1, exponent), 1);
    return ptx_as(f, PTX_F32, ptx_shl(f, biased, 23));
}

/* Calls quantize_row; if the mean is out of range, calls it again with x times a power of two. */
static ptx_val quantize_in_range(quantizer *q)
{
    ptx_fn *f = q->f;
    ptx_val mean = ptx_var(f, ptx_f32(0)), is_first = ptx_var(f, ptx_u32(1));
    q->by = ptx_var(f, ptx_f32(1));
    PTX_LOOP (f) {
        ptx_set(f, mean, quantize_row(q));
        ptx_val is_above = ptx_gt(f, mean, MOST_MEAN), is_below = ptx_lt(f, mean, LEAST_MEAN);
        ptx_val is_out = ptx_or(f, is_above, is_below);
        ptx_val is_again = ptx_uniform(f, ptx_and(f, ptx_ne(f, is_first, 0), is_out));
        ptx_set(f, is_first, 0);
        PTX_IF (f, is_again) {
            ptx_rarely(f);
            ptx_set(f, q->by, find_power(q));
        }
        ptx_repeat_if(f, is_again);
    }
    return mean;
}

static void quantize_normalised(quantizer *q)
{
    ptx_fn *f = q->f;
    ptx_val mean = (q->may_scale ? quantize_in_range : quantize_row)(q);
    ptx_val factor = ptx_fma(f, mean, 0, ptx_rsqrt_approx(f, mean)),
            blocks = ptx_shr(f, q->k, lanes_log2(BLOCK));
    PTX_FOR (f, block, q->tid, blocks, THREADS) {
        ptx_val scale = ptx_load(f, shared_at(f, PTX_F32, ptx_mad(f, block, 4, q->scales), 0));
        store_scale(q, block, ptx_mul(f, scale, factor));
    }
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

static void emit(ptx_fn *f, const kiln_variant *v)
{
    quantizer of = {.f = f, .type = kiln_type(v, "type"), .has_norm = kiln_is(v, "norm", "rms")}, *q = &of;
    q->run = q->type == PTX_F32 ? 4 : 8;
    q->lanes = BLOCK / q->run;
    q->steps = MOST_STEPS * 4 / q->run;
    q->may_scale = q->type != PTX_F16;
    q->in = ptx_param_ptr(f, q->type, "in");
    if (q->has_norm)
        q->gamma = ptx_param_ptr(f, PTX_F32, "gamma");
    q->codes = ptx_param_ptr(f, PTX_S8, "codes");
    q->scale = ptx_param_ptr(f, PTX_F32, "scale");
    ptx_param(f, PTX_U32, "m");
    q->k = ptx_param(f, PTX_U32, "k");
    if (q->has_norm)
        q->eps = ptx_param(f, PTX_F32, "eps");
    if (kiln_has_sm(v, 90))
        ptx_grid_launch_next(f); /* a product that waits for the end prefetches its weights meanwhile */
    q->tid = ptx_tid_x(f);
    q->lane = ptx_laneid(f);
    q->first = ptx_mul_wide(f, q->has_norm ? ptx_ctaid_x(f) : ptx_ctaid_y(f), q->k);
    q->row = ptx_at(f, q->in, q->first);
    if (q->has_norm) {
        q->warp = ptx_warpid_x(f);
        q->partials = ptx_address(f, ptx_shared_dynamic(f, PTX_U32));
        q->most = ptx_add(f, q->partials, 4 * WARPS);
        q->scales = ptx_add(f, q->most, 4 * WARPS);
        quantize_normalised(q);
        return;
    }
    ptx_val thread = ptx_global_thread_x(f), element = ptx_mul(f, thread, q->run);
    ptx_val in_bounds = ptx_lt(f, element, q->k);
    chunk c;
    load_chunk(q, element, in_bounds, c);
    quantize_chunk(q, c, element, in_bounds);
}

enum { MOST_K = 262144 /* with a norm */ };

static void shape(kiln_shape *s, const kiln_variant *v)
{
    s->block[0] = THREADS;
    if (kiln_is(v, "norm", "rms")) {
        s->shared_bytes = 8 * WARPS + 4 * MOST_K / BLOCK;
        s->least_shared_bytes = 8 * WARPS + 4;
    }
}

/* ---- the family --------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const kiln_param params[] = {
    PARAM(WORD, CONTRACT, "type", "f32 f16 bf16", "f16", "element type of x; gamma is f32"),
    PARAM(WORD, CONTRACT, "norm", "none rms", "none",
          "what x goes through first\nnone: h = x; rms: h = x * rsqrt(mean(x^2) + eps) * gamma", .numbers = "1 2"),
    {.name = NULL},
};

static const kiln_arg args[] = {
    {"in", KILN_ARG_IN, "$type", "m, k", 16, NULL, "x: the rows of activations"},
    {"gamma", KILN_ARG_IN, "f32", "k", 16, "norm == rms", "factors of the elements"},
    {"codes", KILN_ARG_OUT, "s8", "m, k", 16, NULL, "from -127 to 127"},
    {"scale", KILN_ARG_OUT, "f32", "m, k / 32", 0, NULL, "the factor of the codes of each 32 elements"},
    {"m", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows"},
    {"k", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements of a row"},
    {"eps", KILN_ARG_VALUE, "f32", NULL, 0, "norm == rms", "added to the mean of the squares; at least 0 and finite"},
    {.name = NULL},
};
/* clang-format on */

static const kiln_rule rules[] = {
    {"k % 32 == 0", "k must be a multiple of 32"},
    {"k >= 32 && k <= 1048576", "k must be from 32 to 2^20"},
    {"norm != rms || k <= 262144", "with norm rms k must be at most 2^18"},
    {"m <= 65535", "m must be at most 65535"},
    {"norm != rms || (!negative(eps) && finite(eps))", "eps must be at least 0 and finite"},
    {NULL, NULL},
};

static const kiln_value example[] = {{"m", "4"}, {"k", "1024"}, {"eps", "1e-5"}, {.arg = NULL}};

const kiln_family q8_quantize_family = {
    .name = "q8_quantize",
    .summary = "quantise activations to bytes",
    .source = "RMSNorm (arXiv:1910.07467); blocks as GGUF's Q8_0 has them, with scales in f32",
    .accuracy =
        "h is x, or with the norm x * gamma * f with f = 1 / sqrt(mean(x^2) + eps). a is the largest |h| of a block of 32, and "
        "at least 2^-118 (with the norm 2^-118 * f). If mean(x^2) + eps is outside 2^-16 to 2^40, x in f32 or bf16 is first scaled by a "
        "power of two to about 1; f is then that of the scaled x. The scale is a / 127 with an error of at most "
        "(2^-19 + e) * a / 127, and has at most 20 significant bits. A code is an integer at most 1/2 + 2^-10 from h * 127 / a. "
        "e is 2^-24, or with the norm 2^-22 + (L_n / 2 + 4) * 2^-24 with L_n = 4 * ceil(k / 1024) + 13. This holds for finite x "
        "if |h| is at most 2^100; an |h| below 2^-90 may count as 0, and a block of such |h| has any scale up to 2^-90 / 127",
    .nonfinite =
        "a NaN or an infinity in h makes the scale of its block a NaN; its codes are then undefined. With norm rms, "
        "a NaN or an infinity in x, or a row of zeros with eps 0, does this to the whole row",
    .params = params,
    .args = args,
    .rules = rules,
    .example = example,
    .empty = "m == 0",
    .shape = shape,
    .grid = {"select(norm == rms, m, ceil_div(k, select(type == f32, 1024, 2048)))",
             "select(norm == rms, 1, m)"},
    .shared_bytes = "select(norm == rms, 64 + k / 8, 0)",
    .cost = {.bytes_read = "m * k * select(type == f32, 4, 2) + select(norm == rms, 4 * k, 0)",
             .bytes_written = "m * k + m * (k / 8)",
             .elements = "m * k"},
    .min_sm = 75,
    .emit = emit,
};
