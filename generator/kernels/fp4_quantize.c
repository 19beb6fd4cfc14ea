/* fp4_quantize: quantises a matrix to codes with a scale for each block along k: e2m1 in NVFP4 or MXFP4, e4m3 in MXFP8.
 *
 * GEOMETRY. A round of a warp is 32 blocks: a scale per lane. `lanes` neighbouring lanes load the elements of a block, 16
 * bytes each, so that a load of the warp takes whole sectors; `lanes` loads make a round. A lane owns one of its group's
 * blocks: it makes the scale, stores it, and broadcasts it. With scale_layout rows, a warp's blocks are contiguous in memory,
 * across rows. In tiles (device/scale_tiles.h) they are 8 neighbouring places of 4 blocks each, whose scales fill a sector,
 * and a thread block makes a tile. Loads out of bounds are clamped to the last block.
 *
 * ARITHMETIC. Magnitudes are compared by their bits, so that a NaN is the largest. Scales and codes are rounded in f32
 * (device/codes.h); targets with a conversion use it and get the same codes.
 */
#include "descriptor.h"
#include <kiln/author/families.h>

#include "device/codes.h"
#include "device/if_needed.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/scale_tiles.h"
#include "device/tail.h"

enum {
    WARPS = 8,  /* of a thread block */
    ROUNDS = 2, /* of a warp */
    MOST_LANES = 8,
    MOST_ELEMENTS = 8, /* of a lane's load */
    TILE_PLACES = 8,   /* of a round in tiles */
    INFINITY_BITS = 0x7f800000
};

/* A row per format, in the order of the parameter's words. The scales of MX formats are powers of two: an exponent biased by 127. */
typedef struct code_format {
    bool is_mx;
    uint32_t block, code_bits;
    uint32_t largest_exponent; /* of a code, in MX formats */
} code_format;

static const code_format formats[] = {
    /* nvfp4 */ {.is_mx = false, .block = 16, .code_bits = 4},
    /* mxfp4 */ {.is_mx = true, .block = 32, .code_bits = 4, .largest_exponent = 2},
    /* mxfp8 */ {.is_mx = true, .block = 32, .code_bits = 8, .largest_exponent = 8},
};

/* A variant during emission. */
typedef struct quantizer {
    ptx_fn *f;
    ptx_type type;
    const code_format *to;
    bool is_tiled, is_hardware;
    uint32_t elements; /* of a lane's load */
    uint32_t lanes;    /* lanes that share a block, and loads of a round */
    uint32_t groups;   /* groups of such lanes in a warp */
    ptx_val in, packed, scale, m, k, global_scale;
    ptx_val lane, in_group, group; /* U32; lanes of a group are neighbours */
    /* Loads have an index: the block's, from the warp's first on; in tiles the row's. */
    ptx_val last; /* rows: the warp's last block in bounds, U32 */
    /* Tiles: the warp's first place, U32; whether the group's block is in the row. */
    ptx_val first_place, has_column;
    ptx_val in_at, packed_at;     /* this lane's addresses of elements and codes of index 0 */
    ptx_val scales_at;            /* the warp's first scale */
    ptx_val in_step, packed_step; /* bytes from one index to the next, U32 */
} quantizer;

/* One load of a lane. */
typedef struct spot {
    ptx_val index, in_bounds; /* of the nearest block in bounds; the block itself is in bounds */
} spot;

static const code_format *format_of(const kiln_variant *v)
{
    return &formats[kiln_word_index(v, "format")];
}

static quantizer init(ptx_fn *f, const kiln_variant *v)
{
    quantizer q = {.f = f,
                   .type = kiln_type(v, "type"),
                   .to = format_of(v),
                   .is_tiled = kiln_is(v, "scale_layout", "tiles_128x4"),
                   .is_hardware = kiln_is(v, "encode", "hardware")};
    q.elements = q.type == PTX_F32 ? 4 : 8;
    q.lanes = q.to->block / q.elements;
    q.groups = WARP_LANES / q.lanes;
    q.in = ptx_param_ptr(f, q.type, "in");
    q.packed = ptx_param_ptr(f, PTX_U8, "packed");
    q.scale = ptx_param_ptr(f, PTX_U8, "scale");
    q.m = ptx_param(f, PTX_U32, "m");
    q.k = ptx_param(f, PTX_U32, "k");
    if (!q.to->is_mx)
        q.global_scale = ptx_param(f, PTX_F32, "global_scale");
    q.lane = ptx_laneid(f);
    q.in_group = ptx_and(f, q.lane, q.lanes - 1);
    q.group = ptx_shr(f, q.lane, lanes_log2(q.lanes));
    return q;
}

/* ---- geometry ----------------------------------------------------------------------------------------------------- */

/* Blocks of a round are numbered in the order of their scales in memory. In load s a group has number s * 32 / lanes + group. */
static ptx_val number_of(quantizer *q, uint32_t round, uint32_t load)
{
    const uint32_t before = WARP_LANES * round + q->groups * load;
    return before == 0 ? q->group : ptx_add(q->f, q->group, before);
}

static ptx_val blocks_of_row(quantizer *q)
{
    return ptx_shr(q->f, q->k, lanes_log2(q->to->block));
}

/* Returns how many bytes `codes` codes take. */
static ptx_val code_bytes(quantizer *q, ptx_val codes)
{
    return q->to->code_bits == 4 ? ptx_shr(q->f, codes, 1) : codes;
}

/* Sets addresses and steps. `block`, U64, has index 0; the next index is `elements`, U32, further. */
static void find_addresses(quantizer *q, ptx_val block, ptx_val elements)
{
    ptx_fn *f = q->f;
    ptx_val in_block = ptx_mul_wide(f, q->in_group, q->elements);
    ptx_val element = ptx_add(f, ptx_mul(f, block, q->to->block), in_block);
    q->in_at = ptx_address(f, ptx_at(f, q->in, element));
    q->packed_at = ptx_address(f, ptx_at(f, q->packed, code_bytes(q, element)));
    q->in_step = ptx_mul(f, elements, q->type == PTX_F32 ? 4 : 2);
    q->packed_step = code_bytes(q, elements);
}

/* Finds the warp's blocks; the predicate holds if there are any. */
static ptx_val find_blocks(quantizer *q, ptx_val warp)
{
    ptx_fn *f = q->f;
    ptx_val index = ptx_mad(f, ptx_ctaid_x(f), WARPS, warp);
    ptx_val first = ptx_mul_wide(f, index, WARP_LANES * ROUNDS);
    ptx_val all = ptx_mul_wide(f, q->m, blocks_of_row(q));
    ptx_val has_some = ptx_lt(f, first, all);
    ptx_val left = ptx_min(f, ptx_sub(f, all, first), WARP_LANES * ROUNDS);
    q->last = ptx_sub(f, ptx_cvt(f, PTX_U32, left), 1);
    q->scales_at = ptx_at(f, q->scale, first);
    find_addresses(q, first, ptx_u32(q->to->block));
    return has_some;
}

/* Finds the thread block's tile, and the warp's part of it: WARPS * ROUNDS rounds are a tile. */
static void find_tile(quantizer *q, ptx_val warp)
{
    ptx_fn *f = q->f;
    ptx_val across = ptx_ctaid_x(f);
    ptx_val down = ptx_ctaid_y(f);
    ptx_val in_tile = ptx_mul(f, warp, ROUNDS * TILE_PLACES);
    q->first_place = ptx_mad(f, down, SCALE_TILE_ROWS, in_tile);
    ptx_val last = ptx_sub(f, blocks_of_row(q), 1);
    ptx_val column = ptx_and(f, q->group, SCALE_TILE_BLOCKS - 1);
    ptx_val block = ptx_mad(f, across, SCALE_TILE_BLOCKS, column);
    q->has_column = ptx_le(f, block, last);
    ptx_val present = ptx_min(f, block, last);
    find_addresses(q, ptx_cvt(f, PTX_U64, present), q->k);
    ptx_val tiles_across = ptx_nctaid_x(f);
    ptx_val tile = ptx_mad_wide(f, down, tiles_across, ptx_cvt(f, PTX_U64, across));
    ptx_val tile_at = ptx_at(f, q->scale, ptx_mul(f, tile, SCALE_TILE_BYTES));
    q->scales_at = ptx_at(f, tile_at, ptx_mul(f, in_tile, SCALE_TILE_BLOCKS));
}

/* The row of a block of the warp, U32. */
static ptx_val tile_row(quantizer *q, ptx_val number, uint32_t round)
{
    ptx_fn *f = q->f;
    ptx_val place = ptx_add(f, q->first_place, ptx_shr(f, number, 2));
    return scale_tiles_row(f, round == 0 ? place : ptx_add(f, place, round * TILE_PLACES));
}

static spot find_spot(quantizer *q, uint32_t round, uint32_t load)
{
    ptx_fn *f = q->f;
    if (q->is_tiled) {
        ptx_val row = tile_row(q, number_of(q, 0, load), round);
        spot at = {.index = tail_clamp(f, row, q->m)};
        ptx_val has_row = ptx_lt(f, row, q->m);
        at.in_bounds = ptx_and(f, has_row, q->has_column);
        return at;
    }
    ptx_val number = number_of(q, round, load);
    spot at = {.index = ptx_min(f, number, q->last)};
    at.in_bounds = ptx_le(f, number, q->last);
    return at;
}

/* ---- scales ------------------------------------------------------------------------------------------------------- */

static ptx_val magnitude_bits(ptx_fn *f, ptx_val x)
{
    return ptx_and(f, ptx_as(f, PTX_U32, x), 0x7fffffff);
}

/* The absmax of a load, as the bits of f32. Pairs are compared directly if the target can. */
static ptx_val find_absmax(quantizer *q, const ptx_val raw[4])
{
    ptx_fn *f = q->f;
    ptx_val x[MOST_ELEMENTS];
    uint32_t count = q->elements;
    if (q->type == PTX_F32 || !ptx_has_sm(q->f, 80)) {
        widen_words(f, q->type, 4, raw, x);
    } else {
        const ptx_type pair = q->type == PTX_F16 ? PTX_F16X2 : PTX_BF16X2;
        ptx_val most = ptx_abs(f, ptx_as(f, pair, raw[0]));
        for (uint32_t i = 1; i < 4; i++)
            most = ptx_max_nan(f, most, ptx_abs(f, ptx_as(f, pair, raw[i])));
        widen_pair(f, q->type, ptx_as(f, PTX_U32, most), x);
        count = 2;
    }
    ptx_val most = magnitude_bits(f, x[0]);
    for (uint32_t i = 1; i < count; i++)
        most = ptx_max(f, most, magnitude_bits(f, x[i]));
    return most;
}

/* A block's scale in memory, and the factor for its elements. */
typedef struct scaling {
    ptx_val code, inverse;
} scaling;

static scaling scale_nvfp4(quantizer *q, ptx_val most)
{
    ptx_fn *f = q->f;
    scaling s;
    ptx_val sixth = ptx_mul(f, ptx_as(f, PTX_F32, most), 1.0f / 6);
    ptx_val exact = ptx_mul(f, sixth, q->global_scale);
    ptx_val rounded = small_float_round(f, &small_float_e4m3, exact);
    s.code = ptx_shr(f, small_float_code(f, &small_float_e4m3, rounded), 20);
    ptx_val inverse = ptx_min(f, ptx_div(f, q->global_scale, rounded), ptx_bits(PTX_F32, 0x7f7fffff));
    s.inverse = ptx_select(f, ptx_eq(f, rounded, 0), 0, inverse);
    return s;
}

/* The scale's exponent is the largest magnitude's minus the largest code's, at least the smallest one of e8m0. */
static scaling scale_mx(quantizer *q, ptx_val most)
{
    ptx_fn *f = q->f;
    const uint32_t largest = q->to->largest_exponent;
    scaling s;
    ptx_val exponent = ptx_shr(f, most, 23);
    s.code = ptx_sub(f, ptx_max(f, exponent, largest), largest);
    ptx_val opposite = ptx_sub(f, 254, s.code);
    s.inverse = ptx_as(f, PTX_F32, ptx_shl(f, opposite, 23));
    return s;
}

/* Makes and stores the scale of the block that this lane owns. Returns the block's factor. */
static ptx_val own_scale(quantizer *q, uint32_t round, ptx_val most)
{
    ptx_fn *f = q->f;
    scaling s = (q->to->is_mx ? scale_mx : scale_nvfp4)(q, most);
    ptx_val is_nan = ptx_gt(f, most, INFINITY_BITS);
    ptx_val code = ptx_select(f, is_nan, q->to->is_mx ? 0xff : 0x7f, s.code);
    ptx_val number = ptx_mad(f, q->in_group, q->groups, q->group);
    ptx_val at = ptx_at_bytes(f, ptx_at(f, q->scales_at, number), WARP_LANES * round);
    if (q->is_tiled) { /* a tile's padding is 0 */
        ptx_val has_row = ptx_lt(f, tile_row(q, number, round), q->m);
        ptx_val in_bounds = ptx_and(f, has_row, q->has_column);
        ptx_store(f, at, ptx_select(f, in_bounds, code, 0));
        return s.inverse;
    }
    ptx_val index = round == 0 ? number : ptx_add(f, number, WARP_LANES * round);
    ptx_val in_bounds = ptx_le(f, index, q->last);
    PTX_WHEN (f, in_bounds) {
        ptx_store(f, at, code);
    }
    return s.inverse;
}

/* ---- codes -------------------------------------------------------------------------------------------------------- */

/* Encodes from the last code to the first: each enters the word, with its sign, at the low end, and shifts the others up. */
static ptx_val e2m1_software(quantizer *q, const ptx_val x[])
{
    ptx_fn *f = q->f;
    ptx_val word = ptx_u32(0);
    for (uint32_t i = q->elements; i-- > 0;) {
        ptx_val rounded = small_float_round(f, &small_float_e2m1, x[i]);
        ptx_val code = ptx_shl(f, small_float_code(f, &small_float_e2m1, rounded), 6);
        ptx_val sign = ptx_as(f, PTX_U32, x[i]);
        word = ptx_shf_l(f, codes_sign(f, sign, 0x80000000, code), word, 4);
    }
    return word;
}

static ptx_val e2m1_hardware(quantizer *q, const ptx_val x[])
{
    ptx_fn *f = q->f;
    ptx_val bytes[4];
    for (uint32_t i = 0; i < q->elements / 2; i++)
        bytes[i] = ptx_e2m1x2_from_f32(f, x[2 * i], x[2 * i + 1]);
    return ptx_pack(f, q->elements == 8 ? PTX_U32 : PTX_U16, (int)q->elements / 2, bytes);
}

static void store_codes(quantizer *q, const ptx_val raw[4], const spot *at, ptx_val inverse)
{
    ptx_fn *f = q->f;
    ptx_val x[MOST_ELEMENTS], words[MOST_ELEMENTS / CODES] = {{0}};
    const uint32_t bytes = q->elements * q->to->code_bits / 8, count = bytes > 4 ? bytes / 4 : 1;
    widen_words(f, q->type, 4, raw, x);
    for (uint32_t i = 0; i < q->elements; i++)
        x[i] = ptx_mul(f, x[i], inverse);
    if (q->to->code_bits == 4)
        words[0] = (q->is_hardware ? e2m1_hardware : e2m1_software)(q, x);
    for (uint32_t i = 0; i < count && q->to->code_bits == 8; i++)
        words[i] = codes_e4m3(f, &x[CODES * i]);
    ptx_val byte = ptx_mad_wide(f, at->index, q->packed_step, q->packed_at);
    ptx_val to = ptx_pointer(f, PTX_GLOBAL, bytes == 2 ? PTX_U16 : PTX_U32, byte);
    PTX_WHEN (f, at->in_bounds) {
        if (count == 1)
            ptx_store_hint(f, to, words[0], PTX_CS);
        else
            ptx_store_vec(f, (int)count, to, words, PTX_CS);
    }
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

static void quantize_round(quantizer *q, uint32_t round)
{
    ptx_fn *f = q->f;
    spot at[MOST_LANES];
    ptx_val raw[MOST_LANES][4], most[MOST_LANES]; /* 16 bytes as memory has them */
    for (uint32_t load = 0; load < q->lanes; load++) {
        at[load] = find_spot(q, round, load);
        ptx_val from = ptx_mad_wide(f, at[load].index, q->in_step, q->in_at);
        ptx_load_vec(f, 4, raw[load], ptx_pointer(f, PTX_GLOBAL, PTX_U32, from), PTX_NC | PTX_NO_ALLOCATE);
    }
    for (uint32_t load = 0; load < q->lanes; load++)
        most[load] = find_absmax(q, raw[load]);
    lanes_join(f, PTX_OP_MAX, q->lanes, q->lanes, q->lane, most);
    ptx_val own = own_scale(q, round, most[0]);
    for (uint32_t load = 0; load < q->lanes; load++) {
        ptx_val inverse = ptx_shfl_idx_in(f, own, load, (int)q->lanes);
        store_codes(q, raw[load], &at[load], inverse);
    }
}

static void emit(ptx_fn *f, const kiln_variant *v)
{
    quantizer q = init(f, v);
    ptx_val warp = ptx_warpid_x(f);
    if (q.is_tiled)
        find_tile(&q, warp);
    IF_NEEDED (f, !q.is_tiled, find_blocks(&q, warp)) {
        for (uint32_t round = 0; round < ROUNDS; round++)
            quantize_round(&q, round);
    }
}

static void shape(kiln_shape *s, const kiln_variant *v)
{
    const bool is_hardware = kiln_is(v, "encode", "hardware");
    kiln_require(s, !is_hardware || format_of(v)->code_bits == 4, "format encode",
                 "encode hardware is for codes of 4 bits");
    s->block[0] = WARP_LANES * WARPS;
    s->min_sm = is_hardware ? 100 : 75;
    s->is_specific = is_hardware;
    if (kiln_is(v, "type", "f32") && format_of(v)->is_mx)
        s->blocks_per_multiprocessor = kiln_is(v, "scale_layout", "rows") ? 3 : 2; /* one more would spill */
}

/* ---- the family --------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const kiln_param params[] = {
    PARAM(WORD, CONTRACT, "type", "f16 bf16 f32", "f16", "element type of the matrix"),
    PARAM(WORD, CONTRACT, "format", "nvfp4 mxfp4 mxfp8", "nvfp4",
          "format of codes and scales\nnvfp4: e2m1, an e4m3 scale for each 16 elements, and a scale of the whole tensor; mxfp4 and mxfp8: e2m1 and e4m3, and a power of two, e8m0, for each 32",
          .numbers = "1 2 3"),
    PARAM(WORD, CONTRACT, "scale_layout", "rows tiles_128x4", "rows",
          "layout of scales\nrows: row after row; tiles_128x4: as cuBLAS and CUTLASS have them, in tiles of 128 rows and 4 scales; padding is 0", .numbers = "1 2"),
    PARAM(WORD, TUNING, "encode", "software hardware", "software",
          "hardware: the instruction cvt to e2m1, which the a and f targets from sm_100 on have; the results are the same. e4m3 is converted by hardware from sm_89 on"),
    {.name = NULL},
};

#define BLOCK    "select(format == nvfp4, 16, 32)"
#define CODES_OF_ROW "select(format == mxfp8, k, k / 2)" /* bytes */
#define IS_TILED "scale_layout == tiles_128x4"
#define DOWN     "ceil_div(m, 128)"
#define ACROSS   "ceil_div(k, 4 * " BLOCK ")"
#define SCALES   "select(" IS_TILED ", " DOWN " * 128, m), select(" IS_TILED ", " ACROSS " * 4, k / " BLOCK ")"

static const kiln_arg args[] = {
    {"in", KILN_ARG_IN, "$type", "m, k", 16, NULL, "the matrix, row by row"},
    {"packed", KILN_ARG_OUT, "u8", "m, " CODES_OF_ROW, 16, NULL, "two codes per byte along k\nthe low nibble first; mxfp8: one"},
    {"scale", KILN_ARG_OUT, "u8", SCALES, 16, NULL, "scale of each block of elements along k"},
    {"m", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows"},
    {"k", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "columns"},
    {"global_scale", KILN_ARG_VALUE, "f32", NULL, 0, "format == nvfp4",
     "what the matrix is multiplied by first\nusually 2688 (448 * 6) over its largest magnitude. 1 / global_scale goes into a product's alpha"},
    {.name = NULL},
};

static const kiln_rule rules[] = {
    {"k % " BLOCK " == 0", "k must be a multiple of a block's elements, 16 or 32"},
    {"m <= 8388480", "m must be at most 128 * 65535"},
    {"k <= 536870912", "k must be at most 2^29"},
    {"m * k <= 1099511627776", "m * k must be at most 2^40"},
    {"format != nvfp4 || !negative(global_scale) && finite(global_scale)", "global_scale must be at least 0 and finite"},
    {NULL, NULL},
};
/* clang-format on */

static const kiln_value example[] = {{"m", "128"}, {"k", "1024"}, {"global_scale", "1"}, {.arg = NULL}};

const kiln_family fp4_quantize_family = {
    .name = "fp4_quantize",
    .summary = "quantise a matrix to NVFP4, MXFP4 or MXFP8",
    .source = "NVFP4 as TransformerEngine and vLLM make it; OCP Microscaling Formats (MX) 1.0",
    .accuracy =
        "bit for bit these formulas, with every operation in f32, rounded to nearest even; a is the largest "
        "magnitude of a block. nvfp4: scale = e4m3(a * (1/6) * global_scale), at most 448; code = e2m1(x * "
        "(global_scale / scale)), where the quotient is clamped to the largest f32, the code's magnitude to 6, and both are 0 if the scale is 0. mxfp4: scale = 2^(floor(log2(a)) - 2), "
        "at least 2^-127; code = e2m1(x / scale), at most 6; the quotient is exact. mxfp8: scale = 2^(floor(log2(a)) - 8), at least 2^-127; code = e4m3(x / scale), at most 448. "
        "The sign bit of x is kept even if the code's magnitude is 0: -0 is code 8, in mxfp8 0x80",
    .nonfinite =
        "a NaN makes the scale of its block a NaN (0x7f; mxfp4 and mxfp8: 0xff) and has code 7 (mxfp8: 0x7f, a NaN); the block's other "
        "codes are the same as if the NaN were an infinity. An infinity has the largest code and, as the largest magnitude, "
        "the scale 448 (mxfp4: 2^126, mxfp8: 2^120). With a global_scale of 0 such a block keeps the scale 448, an infinity of either sign has code 7, and "
        "finite elements have 0 or 8",
    .params = params,
    .args = args,
    .rules = rules,
    .example = example,
    .empty = "m == 0 || k == 0",
    .shape = shape,
    .grid = {"select(" IS_TILED ", " ACROSS ", ceil_div(m * (k / " BLOCK "), 512))",
             "select(" IS_TILED ", " DOWN ", 1)"},
    .cost = {.bytes_read = "m * k * select(type == f32, 4, 2)",
             .bytes_written = "m * " CODES_OF_ROW " + select(" IS_TILED ", 512 * " DOWN " * " ACROSS
                              ", m * (k / " BLOCK "))",
             .elements = "m * k"},
    .min_sm = 75,
    .emit = emit,
};
