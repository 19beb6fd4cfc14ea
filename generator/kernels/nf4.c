/* NF4: 4-bit NormalFloat quantisation in groups (QLoRA, arXiv:2305.14314), each input byte read once and each output
 * byte written once.
 *
 * A warp works on one tile of 1,024 elements in 8 steps of 128: four neighbouring elements per lane and step, so that
 * a lane's access to the f32 side is 16 bytes and a warp's access to either side is whole sectors. A group of 64 is
 * half a warp. Nothing goes through shared memory: the tables live in the lanes' registers and are read by shuffle.
 * The last tile may be ragged; it runs step by step with predicated accesses of one element each.
 */
#include "kernels.h"

enum {
    GROUP = 64,
    WARPS = 8, /* per thread block */
    STEPS = 8, /* per tile */
    LANE_ELEMENTS = 4,
    STEP_ELEMENTS = 32 * LANE_ELEMENTS,
    TILE_ELEMENTS = STEPS * STEP_ELEMENTS
};
#define SMALLEST_SCALE 1e-12f

/* The values of the sixteen codes: quantiles of the standard normal distribution (QLoRA, appendix E). */
static const float code_values[16] = {
    -1.0f,
    -0.6961928009986877f,
    -0.5250730514526367f,
    -0.39491748809814453f,
    -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f,
    0.0f,
    0.07958029955625534f,
    0.16093020141124725f,
    0.24611230194568634f,
    0.33791524171829224f,
    0.44070982933044434f,
    0.5626170039176941f,
    0.7229568362236023f,
    1.0f,
};

static const kiln_param params[] = {{.name = "type",
                                     .type = KILN_PARAM_WORD,
                                     .role = KILN_ROLE_CONTRACT,
                                     .words = "f32",
                                     .default_value = "f32",
                                     .summary = "element type of the tensor that is not quantised"},
                                    {.name = "group",
                                     .type = KILN_PARAM_INT,
                                     .role = KILN_ROLE_CONTRACT,
                                     .words = "64",
                                     .default_value = "64",
                                     .summary = "elements that share a scale"},
                                    {.name = "nibbles",
                                     .type = KILN_PARAM_WORD,
                                     .role = KILN_ROLE_CONTRACT,
                                     .words = "low",
                                     .default_value = "low",
                                     .summary = "low: element 2i in bits 0-3 of byte i, 2i+1 in bits 4-7"},
                                    {.name = NULL}};

static const kiln_rule rules[] = {{"n <= 1099511627776", "n must be at most 2^40"}, {NULL, NULL}};

/* ---- where a warp is ---------------------------------------------------------------------------------------------- */

typedef struct tile {
    ptx_val lane;
    ptx_val first; /* element, U64 */
    ptx_val left;  /* elements from there to the end, at most TILE_ELEMENTS, U32 */
} tile;

static tile find_tile(ptx_fn *f)
{
    tile t = {.lane = ptx_laneid(f)};
    ptx_val warp = ptx_warpid_x(f);
    ptx_val block = ptx_ctaid_x(f);
    ptx_val index = ptx_mad(f, block, ptx_u32(WARPS), warp);
    t.first = ptx_mul_wide(f, index, ptx_u32(TILE_ELEMENTS));
    return t;
}

/* Elements of this lane's four that exist in the step that begins at `step` (U32, within the tile), as S32. */
static ptx_val lane_has(ptx_fn *f, const tile *t, ptx_val lane_first, ptx_val step)
{
    ptx_val past = ptx_add(f, step, lane_first);
    ptx_val has = ptx_sub(f, t->left, past);
    return ptx_as(f, PTX_S32, has);
}

static void set_left(ptx_fn *f, tile *t, ptx_val n)
{
    ptx_val left = ptx_sub(f, n, t->first);
    ptx_val capped = ptx_min(f, left, ptx_u64(TILE_ELEMENTS));
    t->left = ptx_cvt(f, PTX_U32, capped);
}

/* ---- quantise ------------------------------------------------------------------------------------------------------ */

/* How a normalised value r in [-1, 1] finds its code, the number of thresholds below it. Thresholds lie in different
 * ones of the 32 buckets rne(15.5 r + 15.5), so a bucket knows how many lie in the buckets before (base) and the only
 * one that may lie in it. Rounding is monotone, so this is exact. Lane i holds bucket i. A NaN goes to bucket 0, where
 * it gets code 0, as no threshold is below it. */
typedef struct buckets {
    ptx_val threshold, base;
} buckets;

static float threshold_at(int i)
{
    return (float)(((double)code_values[i] + (double)code_values[i + 1]) / 2);
}

static buckets load_buckets(ptx_fn *f, ptx_val lane)
{
    uint64_t thresholds[32], bases[32];
    int below = 0;
    for (int bucket = 0; bucket < 32; bucket++) {
        bases[bucket] = (uint64_t)below;
        thresholds[bucket] = 0x7f800000; /* infinity: none */
        if (below < 15) {
            /* The nearest whole number is the nearest even one here: no threshold lies half-way. */
            double scaled = (double)threshold_at(below) * 15.5 + 15.5;
            if ((int)(scaled + 0.5) == bucket)
                thresholds[bucket] = ptx_f32(threshold_at(below++)).bits;
        }
    }
    ptx_val threshold_table = ptx_global_table(f, PTX_F32, 32, thresholds);
    ptx_val base_table = ptx_global_table(f, PTX_U32, 32, bases);
    ptx_val threshold_address = ptx_at(f, threshold_table, lane);
    ptx_val base_address = ptx_at(f, base_table, lane);
    buckets b;
    b.threshold = ptx_load_hint(f, threshold_address, PTX_NC);
    b.base = ptx_load_hint(f, base_address, PTX_NC);
    return b;
}

/* max(largest magnitude of the group, smallest scale), in all 16 lanes of the group. */
static ptx_val group_scale(ptx_fn *f, const ptx_val x[LANE_ELEMENTS])
{
    ptx_val largest = ptx_var(f, ptx_abs(f, x[0]));
    for (int i = 1; i < LANE_ELEMENTS; i++) {
        ptx_val magnitude = ptx_abs(f, x[i]);
        ptx_max_to(f, largest, magnitude);
    }
    ptx_val all = ptx_reduce_lanes(f, PTX_OP_MAX, GROUP / LANE_ELEMENTS, largest);
    return ptx_max(f, all, ptx_f32(SMALLEST_SCALE));
}

static ptx_val code_of(ptx_fn *f, const buckets *b, ptx_val x, ptx_val scale)
{
    ptx_val r = ptx_div(f, x, scale);
    ptx_val position = ptx_fma(f, r, ptx_f32(15.5f), ptx_f32(15.5f));
    ptx_val bucket = ptx_as(f, PTX_U32, ptx_cvt_rni(f, PTX_S32, position));
    ptx_val threshold = ptx_shfl_idx(f, b->threshold, bucket);
    ptx_val code = ptx_var(f, ptx_shfl_idx(f, b->base, bucket));
    ptx_val above = ptx_gt(f, r, threshold);
    PTX_WHEN (f, above) {
        ptx_add_to(f, code, ptx_u32(1));
    }
    return code;
}

static void quantize_full_tile(ptx_fn *f, const tile *t, const buckets *b, ptx_val in, ptx_val scale,
                               ptx_val packed)
{
    ptx_val x[STEPS][LANE_ELEMENTS];
    for (int step = 0; step < STEPS; step++)
        ptx_load_vec(f, LANE_ELEMENTS, x[step], ptx_at_const(f, in, step * STEP_ELEMENTS),
                     PTX_NC | PTX_NO_ALLOCATE);

    /* Lane i < 8 of each half keeps the scale of its half's group in step i, so that one store writes all 16. */
    ptx_val half_lane = ptx_and(f, t->lane, ptx_u32(15));
    ptx_val kept = ptx_var(f, ptx_f32(0));
    for (int step = 0; step < STEPS; step++) {
        ptx_val s = group_scale(f, x[step]);
        ptx_val mine = ptx_eq(f, half_lane, ptx_u32((uint32_t)step));
        ptx_set(f, kept, ptx_select(f, mine, s, kept));
        ptx_val codes = code_of(f, b, x[step][0], s);
        for (int i = 1; i < LANE_ELEMENTS; i++) {
            ptx_val code = code_of(f, b, x[step][i], s);
            codes = ptx_bfi(f, code, codes, ptx_u32(4 * (uint32_t)i), ptx_u32(4));
        }
        ptx_store(f, ptx_at_const(f, packed, step * STEP_ELEMENTS / 4), codes);
    }
    ptx_val keeps = ptx_lt(f, half_lane, ptx_u32(STEPS));
    ptx_val half = ptx_shr(f, t->lane, ptx_u32(4));
    ptx_val group = ptx_mad(f, half_lane, ptx_u32(2), half);
    ptx_val to = ptx_at(f, scale, group);
    PTX_WHEN (f, keeps) {
        ptx_store(f, to, kept);
    }
}

static void quantize_ragged_tile(ptx_fn *f, const tile *t, const buckets *b, ptx_val in, ptx_val scale,
                                 ptx_val packed)
{
    ptx_val lane_first = ptx_mul(f, t->lane, ptx_u32(LANE_ELEMENTS));
    ptx_val half = ptx_shr(f, t->lane, ptx_u32(4));
    ptx_val half_lane = ptx_and(f, t->lane, ptx_u32(15));
    ptx_val leads = ptx_eq(f, half_lane, ptx_u32(0));
    ptx_val packed_bytes = ptx_cast_ptr(f, packed, PTX_U8);
    PTX_FOR (f, step, ptx_u32(0), t->left, ptx_u32(STEP_ELEMENTS)) {
        ptx_val has = lane_has(f, t, lane_first, step);
        ptx_val from = ptx_at(f, in, step);
        ptx_val x[LANE_ELEMENTS];
        for (int i = 0; i < LANE_ELEMENTS; i++) {
            x[i] = ptx_var(f, ptx_f32(0));
            ptx_val exists = ptx_gt(f, has, ptx_s32(i));
            PTX_WHEN (f, exists) {
                ptx_set(f, x[i], ptx_load_hint(f, ptx_at_const(f, from, i), PTX_NC));
            }
        }
        ptx_val s = group_scale(f, x);
        for (int pair = 0; pair < LANE_ELEMENTS; pair += 2) {
            ptx_val low = code_of(f, b, x[pair], s);
            ptx_val high = code_of(f, b, x[pair + 1], s);
            ptx_val both = ptx_bfi(f, high, low, ptx_u32(4), ptx_u32(4));
            ptx_val has_high = ptx_gt(f, has, ptx_s32(pair + 1));
            ptx_val byte = ptx_select(f, has_high, both, low);
            ptx_val quarter = ptx_shr(f, step, ptx_u32(1));
            ptx_val to = ptx_at(f, packed_bytes, quarter);
            ptx_val has_low = ptx_gt(f, has, ptx_s32(pair));
            PTX_WHEN (f, has_low) {
                ptx_store(f, ptx_at_const(f, to, pair / 2), byte);
            }
        }
        ptx_val step_group = ptx_shr(f, step, ptx_u32(6));
        ptx_val group = ptx_add(f, step_group, half);
        ptx_val to = ptx_at(f, scale, group);
        ptx_val exists = ptx_gt(f, has, ptx_s32(0));
        ptx_val stores = ptx_and(f, leads, exists);
        PTX_WHEN (f, stores) {
            ptx_store(f, to, s);
        }
    }
}

static void emit_quantize(ptx_fn *f, const kiln_variant *v)
{
    (void)v;
    ptx_val in = ptx_param_ptr(f, PTX_F32, "in");
    ptx_val scale = ptx_param_ptr(f, PTX_F32, "scale");
    ptx_val packed = ptx_param_ptr(f, PTX_U8, "packed");
    ptx_val n = ptx_param(f, PTX_U64, "n");
    tile t = find_tile(f);
    ptx_val exists = ptx_lt(f, t.first, n);
    PTX_IF (f, exists) {
        set_left(f, &t, n);
        buckets b = load_buckets(f, t.lane);
        ptx_val lane_first = ptx_mad_wide(f, t.lane, ptx_u32(LANE_ELEMENTS), t.first);
        ptx_val tile_in = ptx_at(f, in, lane_first);
        ptx_val tile_packed = ptx_at(f, packed, ptx_shr(f, lane_first, ptx_u32(1)));
        ptx_val tile_scale = ptx_at(f, scale, ptx_shr(f, t.first, ptx_u32(6)));
        ptx_val full = ptx_eq(f, t.left, ptx_u32(TILE_ELEMENTS));
        PTX_IF (f, full) {
            quantize_full_tile(f, &t, &b, tile_in, tile_scale, ptx_cast_ptr(f, tile_packed, PTX_U16));
        }
        PTX_ELSE (f) {
            quantize_ragged_tile(f, &t, &b, tile_in, tile_scale, tile_packed);
        }
    }
}

/* ---- unpack -------------------------------------------------------------------------------------------------------- */

/* Lanes i and i + 16 hold the value of code i: a shuffle looks at five bits of its lane operand, so that a nibble may
 * still have its neighbours above it. */
static ptx_val load_values(ptx_fn *f, ptx_val lane)
{
    uint64_t values[32];
    for (int i = 0; i < 32; i++)
        values[i] = ptx_f32(code_values[i % 16]).bits;
    ptx_val table = ptx_global_table(f, PTX_F32, 32, values);
    ptx_val address = ptx_at(f, table, lane);
    return ptx_load_hint(f, address, PTX_NC);
}

static ptx_val value_of(ptx_fn *f, ptx_val values, ptx_val codes, int i, ptx_val scale)
{
    ptx_val code = i == 0 ? codes : ptx_shr(f, codes, ptx_u32(4 * (uint32_t)i));
    ptx_val value = ptx_shfl_idx(f, values, code);
    return ptx_mul(f, value, scale);
}

static void unpack_full_tile(ptx_fn *f, const tile *t, ptx_val values, ptx_val packed, ptx_val scale,
                             ptx_val out)
{
    ptx_val codes[STEPS];
    for (int step = 0; step < STEPS; step++)
        codes[step] = ptx_load_as(f, PTX_U32, ptx_at_const(f, packed, step * STEP_ELEMENTS / 4),
                                  PTX_NC | PTX_NO_ALLOCATE);
    /* One load brings the tile's 16 scales, lane i the i-th. */
    ptx_val scales = ptx_var(f, ptx_f32(0));
    ptx_val brings = ptx_lt(f, t->lane, ptx_u32(TILE_ELEMENTS / GROUP));
    ptx_val from = ptx_at(f, scale, t->lane);
    PTX_WHEN (f, brings) {
        ptx_set(f, scales, ptx_load_hint(f, from, PTX_NC | PTX_NO_ALLOCATE));
    }
    ptx_val half = ptx_shr(f, t->lane, ptx_u32(4));
    for (int step = 0; step < STEPS; step++) {
        ptx_val group = step == 0 ? half : ptx_add(f, half, ptx_u32(2 * (uint32_t)step));
        ptx_val s = ptx_shfl_idx(f, scales, group);
        ptx_val x[LANE_ELEMENTS];
        for (int i = 0; i < LANE_ELEMENTS; i++)
            x[i] = value_of(f, values, codes[step], i, s);
        ptx_store_vec(f, LANE_ELEMENTS, ptx_at_const(f, out, step * STEP_ELEMENTS), x, PTX_CS);
    }
}

static void unpack_ragged_tile(ptx_fn *f, const tile *t, ptx_val values, ptx_val packed, ptx_val scale,
                               ptx_val out)
{
    ptx_val lane_first = ptx_mul(f, t->lane, ptx_u32(LANE_ELEMENTS));
    ptx_val half = ptx_shr(f, t->lane, ptx_u32(4));
    PTX_FOR (f, step, ptx_u32(0), t->left, ptx_u32(STEP_ELEMENTS)) {
        ptx_val has = lane_has(f, t, lane_first, step);
        ptx_val exists = ptx_gt(f, has, ptx_s32(0));
        ptx_val step_group = ptx_shr(f, step, ptx_u32(6));
        ptx_val group = ptx_add(f, step_group, half);
        ptx_val scale_at = ptx_at(f, scale, group);
        ptx_val s = ptx_var(f, ptx_f32(0));
        PTX_WHEN (f, exists) {
            ptx_set(f, s, ptx_load_hint(f, scale_at, PTX_NC));
        }
        ptx_val byte_index = ptx_shr(f, step, ptx_u32(1));
        ptx_val from = ptx_at(f, packed, byte_index);
        ptx_val to = ptx_at(f, out, step);
        for (int pair = 0; pair < LANE_ELEMENTS; pair += 2) {
            ptx_val byte = ptx_var(f, ptx_u32(0));
            ptx_val has_low = ptx_gt(f, has, ptx_s32(pair));
            PTX_WHEN (f, has_low) {
                ptx_set(f, byte, ptx_load_hint(f, ptx_at_const(f, from, pair / 2), PTX_NC));
            }
            ptx_val low = value_of(f, values, byte, 0, s);
            ptx_val high = value_of(f, values, byte, 1, s);
            ptx_val has_high = ptx_gt(f, has, ptx_s32(pair + 1));
            PTX_WHEN (f, has_low) {
                ptx_store(f, ptx_at_const(f, to, pair), low);
            }
            PTX_WHEN (f, has_high) {
                ptx_store(f, ptx_at_const(f, to, pair + 1), high);
            }
        }
    }
}

static void emit_unpack(ptx_fn *f, const kiln_variant *v)
{
    (void)v;
    ptx_val packed = ptx_param_ptr(f, PTX_U8, "packed");
    ptx_val scale = ptx_param_ptr(f, PTX_F32, "scale");
    ptx_val out = ptx_param_ptr(f, PTX_F32, "out");
    ptx_val n = ptx_param(f, PTX_U64, "n");
    tile t = find_tile(f);
    ptx_val exists = ptx_lt(f, t.first, n);
    PTX_IF (f, exists) {
        set_left(f, &t, n);
        ptx_val values = load_values(f, t.lane);
        ptx_val lane_first = ptx_mad_wide(f, t.lane, ptx_u32(LANE_ELEMENTS), t.first);
        ptx_val tile_packed = ptx_at(f, packed, ptx_shr(f, lane_first, ptx_u32(1)));
        ptx_val tile_scale = ptx_at(f, scale, ptx_shr(f, t.first, ptx_u32(6)));
        ptx_val tile_out = ptx_at(f, out, lane_first);
        ptx_val full = ptx_eq(f, t.left, ptx_u32(TILE_ELEMENTS));
        PTX_IF (f, full) {
            unpack_full_tile(f, &t, values, ptx_cast_ptr(f, tile_packed, PTX_U16), tile_scale, tile_out);
        }
        PTX_ELSE (f) {
            unpack_ragged_tile(f, &t, values, tile_packed, tile_scale, tile_out);
        }
    }
}

/* ---- what the families say of themselves ---------------------------------------------------------------------------- */

static const kiln_arg quantize_args[] = {
    {"in", KILN_ARG_IN, "$type", "n", 16, NULL, "the tensor, in memory order"},
    {"scale", KILN_ARG_OUT, "f32", "ceil_div(n, group)", 4, NULL,
     "max(largest magnitude, 1e-12) of each group"},
    {"packed", KILN_ARG_OUT, "u8", "ceil_div(n, 2)", 16, NULL,
     "two codes per byte; an absent last code is 0"},
    {"n", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements"},
    {.name = NULL}};

static const kiln_arg unpack_args[] = {
    {"packed", KILN_ARG_IN, "u8", "ceil_div(n, 2)", 16, NULL, "two codes per byte"},
    {"scale", KILN_ARG_IN, "f32", "ceil_div(n, group)", 4, NULL, "of each group"},
    {"out", KILN_ARG_OUT, "$type", "n", 16, NULL, "value of the code times the scale of its group"},
    {"n", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements"},
    {.name = NULL}};

const kiln_family nf4_quantize_family = {
    .name = "nf4_quantize",
    .summary = "quantise to NF4 in groups: scales and packed codes, in one read",
    .source =
        "QLoRA (arXiv:2305.14314). Inputs should be finite: a NaN gets code 0, which stands for -scale, and "
        "has no "
        "part in its group's scale; an infinity makes the scale infinite, gets code 0 itself, and finite "
        "values beside it become NaN",
    .params = params,
    .args = quantize_args,
    .rules = rules,
    .empty = "n == 0",
    .block = {"256"},
    .grid = {"ceil_div(n, 8192)"},
    .cost = {.bytes_read = "4 * n",
             .bytes_written = "ceil_div(n, 2) + 4 * ceil_div(n, group)",
             .elements = "n"},
    .min_sm = 75,
    .emit = emit_quantize,
};

const kiln_family nf4_unpack_family = {
    .name = "nf4_unpack",
    .summary = "NF4 codes and scales back to a tensor",
    .source = "QLoRA (arXiv:2305.14314)",
    .params = params,
    .args = unpack_args,
    .rules = rules,
    .empty = "n == 0",
    .block = {"256"},
    .grid = {"ceil_div(n, 8192)"},
    .cost = {.bytes_read = "ceil_div(n, 2) + 4 * ceil_div(n, group)",
             .bytes_written = "4 * n",
             .elements = "n"},
    .min_sm = 75,
    .emit = emit_unpack,
};
