/* linear's shares: the vectors in shared memory, in the order in which groups of weights need them, and the norm.
 *
 * LAYOUT of a share: for each vector the elements of a group, part by part, and two numbers for each part.
 *     exact elements in F32; if the format has minima they are times a power of two, and the numbers are that power's
 *     inverse, and the sum of the elements
 *     q8     elements as signed bytes, code = rint(h * 127 / max|h|) of 32 neighbours; the scale, and where the format has
 *            minima scale * sum of codes, else the S32 that a sum of products starts from
 *
 * A sum of products starts from 0x4B400000, the bits of 1.5 * 2^23: so it always has a float's bits, and the float minus 1.5
 * * 2^23 is the sum. If codes of W have an offset, the sum starts lower, by the vector's codes times the offset.
 *
 * EXACT products of a format with minima use a code's bits as a denormal, code * 2^-149, which saves a subtraction per
 * weight. So the elements are scaled as high as possible: a power of four puts the largest of 32 between 2^123 and 2^125.
 * They are multiplied twice by its root, since no float is as large.
 *
 * NORM. h is x * gamma here; the factor 1 / sqrt(mean(x^2) + eps) multiplies the sums when they are stored. The squares are
 * summed in the pass that makes the shares. Those of f32 and bf16 may leave the range of f32, or x * gamma may although h
 * does not. So if some mean is not between 2^-16 and 2^40, the pass is repeated, with x times a power of two that puts the
 * larger of |x| and the square root of eps between 1/2 and 4 (except for denormals); the power divides out. f16 needs none
 * of this.
 *
 * LOADS. A thread takes four neighbouring elements. All loads of a trip are issued before the first is used: those of
 * several trips if there are few vectors.
 */
#include "device/codes.h"
#include "device/narrow.h"
#include "device/tail.h"
#include "linear_simt.h"

enum {
    RUN = 4, /* elements that a lane loads at once: those of a warp fill whole sectors */
    WARP_ELEMENTS = RUN * WARP_LANES,
    SCALE_LANES = 32 / RUN, /* lanes that share a scale */
    MOST_STEPS = 4,
    NUMBER_BYTES = 8, /* of a part */
    BIAS = 127
};

#define LEAST_MEAN 0x1p-16f
#define MOST_MEAN  0x1p40f

uint32_t linear_vector_bytes(const weight_format *format, bool is_q8)
{
    const uint32_t bytes = (is_q8 ? 1 : 4) * format_group_elements(format) + NUMBER_BYTES * format->parts;
    return (bytes + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
}

static void join_vectors(linear_simt *g, ptx_op op, uint32_t lanes, ptx_val value[])
{
    for (uint32_t b = g->of.vectors; b < g->of.joined; b++)
        value[b] = value[g->of.vectors - 1];
    lanes_join(g->f, op, lanes, g->of.joined, g->l->lane, value);
}

/* How many lanes have a part's elements. */
static uint32_t part_lanes(const linear_simt *g)
{
    return format_part_elements(g->of.format) / RUN;
}

/* Where this thread stores: the offset of its elements in the first vector's part of a share; and the offset of the numbers
 * of their part that this lane stores, for `vector` and the next vectors. */
typedef struct slot {
    ptx_val elements, numbers, vector;
} slot;

/* The slot of the first trip. In formats with four parts a group is 16 neighbours of each of four runs of 32. */
static slot first_slot(linear_simt *g)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    const uint32_t element_bytes = g->of.is_q8 ? 1 : 4;
    const uint32_t part_elements = format_part_elements(format);
    slot s;
    ptx_val element = ptx_mul(f, g->l->tid, RUN);
    ptx_val part, share;
    if (format->parts == 4) {
        part = ptx_bfe(f, element, 5, 2);
        ptx_val of_128 = ptx_shr(f, element, 7), of_16 = ptx_bfe(f, element, 4, 1);
        share = ptx_mad(f, of_128, 2, of_16);
    } else {
        share = ptx_div(f, element, format_group_elements(format));
        ptx_val of_part = ptx_div(f, element, part_elements);
        part = ptx_and(f, of_part, format->parts - 1);
    }
    ptx_val at = ptx_mad(f, share, g->of.share_bytes, g->shares);
    ptx_val of_part = ptx_mad(f, part, part_elements * element_bytes, at);
    ptx_val in_part = ptx_and(f, element, part_elements - 1);
    s.elements = ptx_var(f, ptx_mad(f, in_part, element_bytes, of_part));
    s.vector = lanes_first(f, part_lanes(g), g->of.joined, g->l->lane);
    ptx_val of_vector = ptx_mad(f, s.vector, g->of.vector_bytes, at);
    ptx_val numbers = ptx_mad(f, part, NUMBER_BYTES, of_vector);
    s.numbers = ptx_var(f, ptx_add(f, numbers, format_group_elements(format) * element_bytes));
    return s;
}

/* ---- elements ----------------------------------------------------------------------------------------------------- */

/* A run's elements. Elements of 16 bits are loaded as words of two. */
typedef ptx_val run[RUN];

static uint32_t run_words(ptx_type type)
{
    return type == PTX_F32 ? RUN : RUN / 2;
}

/* Zeros if out of bounds. */
static void load_run(linear_simt *g, ptx_type type, ptx_val vector, ptx_val element, ptx_val in_bounds,
                     run words)
{
    const ptx_type word = type == PTX_F32 ? PTX_F32 : PTX_U32;
    ptx_val at = ptx_cast_ptr(g->f, ptx_at(g->f, vector, element), word);
    tail_load(g->f, word, run_words(type), words, at, &in_bounds, PTX_NC);
}

/* ---- shares ------------------------------------------------------------------------------------------------------- */

/* The absmax of 32 elements of this lane's vector. A NaN is above all numbers; below sm_80 the comparison is of integers. */
static ptx_val find_absmax(linear_simt *g, run h[])
{
    ptx_fn *f = g->f;
    const bool has_max_nan = ptx_has_sm(f, 80);
    const ptx_type type = has_max_nan ? PTX_F32 : PTX_U32;
    ptx_val most[LINEAR_MOST_VECTORS], least = ptx_as(f, type, ptx_f32(INT8_LEAST_ABSMAX));
    for (uint32_t b = 0; b < g->of.vectors; b++) {
        most[b] = ptx_as(f, type, ptx_abs(f, h[b][0]));
        for (int i = 1; i < RUN; i++) {
            ptx_val size = ptx_as(f, type, ptx_abs(f, h[b][i]));
            most[b] = has_max_nan ? ptx_max_nan(f, most[b], size) : ptx_max(f, most[b], size);
        }
    }
    join_vectors(g, has_max_nan ? PTX_OP_MAX_NAN : PTX_OP_MAX, SCALE_LANES, most);
    return has_max_nan ? ptx_max_nan(f, most[0], least) : ptx_as(f, PTX_F32, ptx_max(f, most[0], least));
}

/* A lane's factor for h, and its inverse. In exact, multiply twice by the factor; linear.c applies the rest of the inverse,
 * 2^LINEAR_DENORMAL. */
static void find_scaling(linear_simt *g, ptx_val most, ptx_val *raise, ptx_val *lower)
{
    enum { RAISED = 124, DENORMAL = 149, MANTISSA_BITS = 23, LOWER = DENORMAL - LINEAR_DENORMAL + BIAS };
    ptx_fn *f = g->f;
    if (g->of.is_q8) {
        *lower = ptx_mul(f, most, 1.0f / 127);
        *raise = ptx_mul(f, ptx_rcp_approx(f, most), 127);
        return;
    }
    ptx_val exponent = ptx_shr(f, ptx_as(f, PTX_U32, most), MANTISSA_BITS);
    ptx_val up = ptx_shr(f, ptx_sub(f, RAISED + 3 * BIAS, exponent), 1);
    ptx_val down = ptx_sub(f, LOWER + 2 * BIAS, ptx_mul(f, up, 2));
    *raise = ptx_as(f, PTX_F32, ptx_shl(f, up, MANTISSA_BITS));
    *lower = ptx_as(f, PTX_F32, ptx_shl(f, down, MANTISSA_BITS));
}

/* Stores a run of a vector, and returns its sum; in q8, the sum of its codes. */
static ptx_val store_run(linear_simt *g, ptx_val at, run h, const ptx_val *raise)
{
    ptx_fn *f = g->f;
    if (g->of.is_q8) { /* adding 1.5 * 2^23 leaves the rounded integer in the low bits */
        ptx_val code[RUN];
        for (int i = 0; i < RUN; i++)
            code[i] = ptx_as(f, PTX_U32, ptx_fma(f, h[i], *raise, ptx_bits(PTX_F32, LINEAR_SUM_START)));
        ptx_val low = ptx_prmt(f, code[0], code[1], 0x0040);
        ptx_val high = ptx_prmt(f, code[2], code[3], 0x0040);
        ptx_val codes = ptx_prmt(f, low, high, 0x5410);
        ptx_store(f, ptx_cast_ptr(f, at, PTX_U32), codes);
        return ptx_dp4a_ss(f, ptx_as(f, PTX_S32, codes), ptx_s32(0x01010101), ptx_s32(0));
    }
    ptx_val low = ptx_add(f, h[0], h[1]), high = ptx_add(f, h[2], h[3]);
    for (int i = 0; i < RUN && raise; i++)
        h[i] = ptx_mul(f, ptx_mul(f, h[i], *raise), *raise);
    ptx_store_vec(f, RUN, at, h, PTX_PLAIN);
    return ptx_add(f, low, high);
}

/* The number after a part's first number. */
static ptx_val second_number(linear_simt *g, ptx_val first, ptx_val sum)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    if (!g->of.is_q8)
        return sum;
    if (format->has_minimum)
        return ptx_mul(f, first, ptx_cvt(f, PTX_F32, sum));
    if (format->offset == 0)
        return ptx_bits(PTX_F32, LINEAR_SUM_START);
    return ptx_as(f, PTX_F32, ptx_mad(f, sum, -format->offset, LINEAR_SUM_START));
}

/* Whether this lane stores the i-th number that it has joined, as the first of a part's lanes with the same vectors. */
static ptx_val stores_number(linear_simt *g, const slot *at, uint32_t i)
{
    ptx_fn *f = g->f;
    const uint32_t alike = part_lanes(g) > g->of.joined ? part_lanes(g) / g->of.joined : 1;
    ptx_val is_first = ptx_eq(f, ptx_and(f, g->l->lane, alike - 1), 0);
    if (g->of.joined == g->of.vectors)
        return is_first;
    ptx_val in_bounds = ptx_lt(f, ptx_add(f, at->vector, i), g->of.vectors);
    return ptx_and(f, is_first, in_bounds);
}

/* Stores a part's numbers, for the vectors whose sums are joined in this lane. */
static void store_numbers(linear_simt *g, const slot *at, uint32_t byte, ptx_val lower, ptx_val sum[])
{
    ptx_fn *f = g->f;
    const uint32_t lanes = part_lanes(g);
    if (g->of.format->has_minimum || g->of.format->offset > 0)
        join_vectors(g, PTX_OP_ADD, lanes, sum);
    for (uint32_t i = 0; i < lanes_share(lanes, g->of.joined); i++) {
        ptx_val number[2] = {lower, {0}};
        if (lanes < SCALE_LANES && g->of.vectors > 1) {
            ptx_val vector = ptx_add(f, at->vector, i);
            ptx_val lane = ptx_mul(f, vector, SCALE_LANES / g->of.joined);
            number[0] = ptx_shfl_idx_in(f, lower, lane, SCALE_LANES);
        }
        number[1] = second_number(g, number[0], sum[i]);
        PTX_WHEN (f, stores_number(g, at, i)) {
            ptx_store_vec(f, 2, shared_at(f, PTX_F32, at->numbers, byte + i * g->of.vector_bytes), number,
                          PTX_PLAIN);
        }
    }
}

/* Stores a run of each vector. A lane makes the numbers of one of the vectors for all lanes that share it. */
static void store_runs(linear_simt *g, const slot *at, uint32_t byte, run h[])
{
    ptx_fn *f = g->f;
    const bool has_numbers = g->of.is_q8 || g->of.format->has_minimum;
    ptx_val sum[LINEAR_MOST_VECTORS], raise_mine = {0}, lower = {0};
    if (has_numbers)
        find_scaling(g, find_absmax(g, h), &raise_mine, &lower);
    for (uint32_t b = 0; b < g->of.vectors; b++) {
        ptx_val raise = raise_mine;
        if (has_numbers && g->of.vectors > 1)
            raise = ptx_shfl_idx_in(f, raise, SCALE_LANES / g->of.joined * b, SCALE_LANES);
        sum[b] = store_run(g, shared_at(f, PTX_F32, at->elements, byte + b * g->of.vector_bytes), h[b],
                           has_numbers ? &raise : NULL);
    }
    if (has_numbers)
        store_numbers(g, at, byte, lower, sum);
}

/* ---- a pass over x ------------------------------------------------------------------------------------------------ */

/* A pass's results beside the shares: sums of squares. */
typedef struct pass {
    slot at;
    ptx_val end; /* of the elements that are read: those past the chunk are only for the norm */
    ptx_val squares[LINEAR_MOST_VECTORS];
} pass;

/* Computes h of a vector's run; adds up x's squares for the norm. */
static void make_run(linear_simt *g, pass *p, uint32_t b, run x, const run gamma, run h)
{
    ptx_fn *f = g->f;
    widen_words(f, g->l->x_type, run_words(g->l->x_type), x, h);
    for (int i = 0; i < RUN && g->of.has_norm; i++) {
        if (g->may_scale)
            h[i] = ptx_mul(f, h[i], g->by[b]);
        ptx_fma_to(f, p->squares[b], h[i], h[i]);
        h[i] = ptx_mul(f, h[i], gamma[i]);
    }
}

/* Makes the shares of one of a trip's steps, for all vectors. */
static void make_step(linear_simt *g, pass *p, uint32_t step, ptx_val first, run x[], const run gamma)
{
    ptx_fn *f = g->f;
    PTX_IF (f, ptx_lt(f, first, p->end)) {
        run h[LINEAR_MOST_VECTORS] = {{{0}}};
        for (uint32_t b = 0; b < g->of.vectors; b++)
            make_run(g, p, b, x[b], gamma, h[b]);
        PTX_IF (f, ptx_lt(f, first, g->chunk_count)) {
            store_runs(g, &p->at, step * g->of.share_step, h);
        }
    }
}

static void make_trip(linear_simt *g, pass *p, ptx_val first, uint32_t steps)
{
    ptx_fn *f = g->f;
    run x[MOST_STEPS][LINEAR_MOST_VECTORS], gamma[MOST_STEPS] = {{{0}}};
    ptx_val lane_element = ptx_mad(f, g->l->lane, RUN, first);
    for (uint32_t s = 0; s < steps; s++) {
        ptx_val in_chunk = s == 0 ? lane_element : ptx_add(f, lane_element, s * LINEAR_TRIP);
        ptx_val in_bounds = ptx_lt(f, in_chunk, p->end), element = ptx_add(f, in_chunk, g->chunk_first);
        for (uint32_t b = 0; b < g->of.vectors; b++)
            load_run(g, g->l->x_type, g->x[b], element, in_bounds, x[s][b]);
        if (g->of.has_norm)
            load_run(g, PTX_F32, g->l->gamma, element, in_bounds, gamma[s]);
    }
    for (uint32_t s = 0; s < steps; s++)
        make_step(g, p, s, s == 0 ? first : ptx_add(f, first, s * LINEAR_TRIP), x[s], gamma[s]);
}

/* Ends with a barrier. */
static void make_pass(linear_simt *g, ptx_val is_start)
{
    ptx_fn *f = g->f;
    const uint32_t most = g->of.vectors >= MOST_STEPS ? 1 : MOST_STEPS / g->of.vectors,
                   of_chunk = g->of.chunk / LINEAR_TRIP,
                   steps = most < of_chunk ? most : of_chunk; /* steps whose loads are issued together */
    pass of = {.at = first_slot(g), .end = g->chunk_count}, *p = &of;
    if (g->of.has_norm)
        p->end = ptx_select(f, is_start, g->l->k, g->chunk_count);
    for (uint32_t b = 0; b < g->of.vectors && g->of.has_norm; b++) {
        p->squares[b] = ptx_var(f, ptx_f32(0));
        if (g->may_scale)
            g->by[b] = ptx_load(f, shared_at(f, PTX_F32, g->scales, 4 * b));
    }
    ptx_val start = ptx_mul(f, g->l->warp, WARP_ELEMENTS);
    PTX_FOR (f, first, start, p->end, steps * LINEAR_TRIP) {
        ptx_side_loop(f);
        make_trip(g, p, first, steps);
        ptx_add_to(f, p->at.elements, steps * g->of.share_step);
        ptx_add_to(f, p->at.numbers, steps * g->of.share_step);
    }
    if (g->of.has_norm) {
        PTX_IF (f, is_start) {
            for (uint32_t b = 0; b < g->of.vectors; b++)
                shared_store_warp(f, g->l->lane, g->l->warp, g->partials, 4 * LINEAR_WARPS * b,
                                  ptx_reduce_lanes(f, PTX_OP_ADD, WARP_LANES, p->squares[b]));
        }
    }
    ptx_barrier(f);
}

/* ---- the norm ----------------------------------------------------------------------------------------------------- */

ptx_val linear_find_mean(linear_simt *g, uint32_t b)
{
    ptx_fn *f = g->f;
    ptx_val sum = shared_join_warps(f, PTX_OP_ADD, g->partials, 4 * LINEAR_WARPS * b, LINEAR_WARPS);
    ptx_val share = ptx_rcp_approx(f, ptx_cvt(f, PTX_F32, g->l->k)), eps = g->l->eps;
    if (g->may_scale) {
        ptx_val by = ptx_load(f, shared_at(f, PTX_F32, g->scales, 4 * b));
        eps = ptx_mul(f, ptx_mul(f, eps, by), by);
    }
    return ptx_fma(f, sum, share, eps);
}

static ptx_val is_out_of_range(linear_simt *g)
{
    ptx_fn *f = g->f;
    ptx_val most = linear_find_mean(g, 0), least = most;
    for (uint32_t b = 1; b < g->of.vectors; b++) {
        ptx_val mean = linear_find_mean(g, b);
        most = ptx_max(f, most, mean);
        least = ptx_min(f, least, mean);
    }
    ptx_val is_above = ptx_gt(f, most, MOST_MEAN), is_below = ptx_lt(f, least, LEAST_MEAN);
    return ptx_or(f, is_above, is_below);
}

/* This warp's part of a vector's largest magnitude; NaNs do not count. */
static ptx_val find_most_of_all(linear_simt *g, ptx_val vector)
{
    ptx_fn *f = g->f;
    ptx_val start = ptx_mul(f, g->l->tid, RUN), most = ptx_var(f, ptx_f32(0));
    PTX_FOR (f, i, start, g->l->k, LINEAR_TRIP) {
        run x, h;
        load_run(g, g->l->x_type, vector, i, ptx_lt(f, i, g->l->k), x);
        widen_words(f, g->l->x_type, run_words(g->l->x_type), x, h);
        for (int e = 0; e < RUN; e++)
            ptx_max_to(f, most, ptx_abs(f, h[e]));
    }
    return ptx_reduce_lanes(f, PTX_OP_MAX, WARP_LANES, most);
}

/* Scales each vector by a power of two, from the exponent of its largest magnitude or of the square root of eps. */
static void find_scales(linear_simt *g)
{
    ptx_fn *f = g->f;
    PTX_FOR (f, b, ptx_u32(0), g->of.vectors, 1) {
        ptx_val number = g->l->has_all_vectors ? b : tail_clamp(f, ptx_add(f, g->first_vector, b), g->l->m);
        ptx_val vector = ptx_at(f, g->l->in, ptx_mul_wide(f, number, g->l->k));
        ptx_barrier(f);
        shared_store_warp(f, g->l->lane, g->l->warp, g->partials, 0, find_most_of_all(g, vector));
        ptx_barrier(f);
        ptx_val of_x = shared_join_warps(f, PTX_OP_MAX, g->partials, 0, LINEAR_WARPS);
        ptx_val most = ptx_max(f, of_x, ptx_sqrt_approx(f, g->l->eps));
        ptx_val exponent = ptx_as(f, PTX_S32, ptx_shr(f, ptx_as(f, PTX_U32, most), 23));
        ptx_val inverse = ptx_sub(f, 2 * BIAS - 1, exponent);
        ptx_val biased = ptx_max(f, inverse, 1);
        ptx_val by = ptx_as(f, PTX_F32, ptx_shl(f, biased, 23));
        PTX_WHEN (f, ptx_eq(f, g->l->tid, 0)) {
            ptx_store(f, shared_at(f, PTX_F32, ptx_mad(f, b, 4, g->scales), 0), by);
        }
    }
    ptx_barrier(f);
}

void linear_make_shares(linear_simt *g, ptx_val is_start)
{
    ptx_fn *f = g->f;
    if (!g->may_scale) {
        make_pass(g, is_start);
        return;
    }
    ptx_val is_first_try = ptx_var(f, ptx_select(f, is_start, ptx_u32(1), 0));
    PTX_LOOP (f) {
        make_pass(g, is_start);
        ptx_val is_again = ptx_var(f, ptx_u32(0));
        PTX_IF (f, ptx_uniform(f, ptx_ne(f, is_first_try, 0))) {
            ptx_set(f, is_first_try, 0);
            PTX_IF (f, ptx_uniform(f, is_out_of_range(g))) {
                ptx_rarely(f);
                find_scales(g);
                ptx_set(f, is_again, 1);
            }
        }
        ptx_repeat_if(f, ptx_uniform(f, ptx_ne(f, is_again, 0)));
    }
}
