/* The families of the 4-bit quantisers. int4 (integers with a scale per group, or with a scale and a zero) and nf4 (NormalFloat
 * with a scale per group) have four each: scale makes a group's numbers, pack makes codes with given numbers, quantize makes
 * both, and unpack restores the tensor.
 *
 * With groups of a fixed size each has two bodies. The fast one takes full tiles with plain numbers. The predicated one takes
 * all others, above all the tail of the tensor: it goes row by row, predicates each access of one element, and divides by
 * div.rn unless the product with the inverse gives all codes. A fused quantizer knows its numbers only after it has read the
 * tile; if they are not plain, the predicated body starts over.
 */
#include "quant.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "nf4_args.h"
#include <kiln/author/families.h>

/* ---- numbers of a tile's groups ----------------------------------------------------------------------------------- */

static ptx_val first_group(quant *q)
{
    return ptx_shr(q->f, q->first, lanes_log2(q->group));
}

/* Lane l owns the numbers of row l mod rows, of the group of its own elements in that row: with 4 rows of 4 groups of 8 lanes each, lane 13 owns those
 * of row 1, group 1. So one access loads or stores the scales of a tile. The slot is that group: `index` groups (U32) after the tile's first (U64). */
typedef struct number_slot {
    ptx_val first, index;
} number_slot;

static number_slot find_numbers(quant *q)
{
    ptx_fn *f = q->f;
    uint32_t row_groups = 32 / q->lanes;
    number_slot slot = {.first = first_group(q)};
    slot.index = q->rows == 1 ? ptx_u32(0) : ptx_and(f, q->lane, q->rows - 1);
    if (row_groups > 1) {
        ptx_val in_row = ptx_shr(f, q->lane, lanes_log2(q->lanes));
        slot.index = ptx_mad(f, slot.index, row_groups, in_row);
    }
    return slot;
}

/* The numbers of this lane's group in a row, from the lanes that own them. Needs all lanes. */
static quant_numbers row_numbers(quant *q, const quant_numbers *kept, uint32_t row)
{
    if (q->rows == 1)
        return *kept;
    quant_numbers g = {.at = {{0}}};
    for (int i = 0; i < QUANT_NUMBERS; i++)
        if (kept->at[i].type != PTX_NONE)
            g.at[i] = ptx_shfl_idx_in(q->f, kept->at[i], row, (int)q->rows);
    return g;
}

/* Reduces over the group's lanes that differ in bit `distance` or in higher ones. */
static ptx_val reduce_from(quant *q, ptx_op op, ptx_val value, uint32_t distance)
{
    for (; distance < q->lanes; distance *= 2) {
        ptx_val taken = ptx_shfl_xor(q->f, value, distance);
        value = ptx_op2(q->f, op, value, taken, PTX_HERE);
    }
    return value;
}

/* Reduces each row's group by op. values[row] is this lane's share and is destroyed. Each lane gets the number that it owns.
 * While there are several rows, two lanes share two of them: each gives one away and keeps the other. */
static ptx_val reduce_rows(quant *q, ptx_op op, ptx_val values[])
{
    ptx_fn *f = q->f;
    uint32_t distance = 1;
    for (uint32_t count = q->rows; count > 1; count /= 2, distance *= 2) {
        ptx_val bit = ptx_and(f, q->lane, distance);
        ptx_val is_odd = ptx_ne(f, bit, 0);
        for (uint32_t i = 0; i < count / 2; i++) {
            ptx_val kept = ptx_select(f, is_odd, values[2 * i + 1], values[2 * i]);
            ptx_val given = ptx_select(f, is_odd, values[2 * i], values[2 * i + 1]);
            ptx_val taken = ptx_shfl_xor(f, given, distance);
            values[i] = ptx_op2(f, op, kept, taken, PTX_HERE);
        }
    }
    return reduce_from(q, op, values[0], distance);
}

/* ---- steps shared by the fast bodies ------------------------------------------------------------------------------ */

/* The extremes of this lane's elements of a row: `count` elements of each step, or pairs of them. */
static quant_extremes extremes_of_row(quant *q, quant_elements x, uint32_t count, uint32_t row, bool nan_wins)
{
    quant_extremes e = quant_extremes_of(q, x[row * q->row_steps][0], nan_wins);
    for (uint32_t i = 1; i < q->row_steps * count; i++)
        quant_extremes_add(q, &e, x[row * q->row_steps + i / count][i % count]);
    return e;
}

/* Makes one extreme of each pair of them. */
static void join_halves(quant *q, quant_extremes *e)
{
    for (uint32_t i = 0; i < q->stored; i++) {
        ptx_val halves[2];
        widen_pair(q->f, q->type, ptx_as(q->f, PTX_U32, e->at[i]), halves);
        e->at[i] = ptx_op2(q->f, quant_extreme[e->nan_wins][i], halves[0], halves[1], PTX_HERE);
    }
}

/* Widens the tile to x unless the target compares pairs. */
static quant_numbers numbers_of_tile(quant *q, quant_words words, quant_elements x, bool nan_wins)
{
    const ptx_type pair = q->type == PTX_BF16 ? PTX_BF16X2 : PTX_F16X2;
    ptx_val extremes[2][QUANT_MOST_STEPS];
    for (uint32_t step = 0; step < q->steps; step++) {
        if (!q->has_pairs)
            quant_widen_step(q, words[step], x[step]);
        for (uint32_t i = 0; i < 4 && q->has_pairs; i++)
            x[step][i] = ptx_as(q->f, pair, words[step][i]);
    }
    for (uint32_t row = 0; row < q->rows; row++) {
        quant_extremes e = extremes_of_row(q, x, q->has_pairs ? 4 : q->lane_elements, row, nan_wins);
        if (q->has_pairs)
            join_halves(q, &e);
        for (uint32_t i = 0; i < 2; i++)
            extremes[i][row] = e.at[i];
    }
    quant_extremes all = {.nan_wins = nan_wins};
    for (uint32_t i = 0; i < q->stored; i++)
        all.at[i] = reduce_rows(q, quant_extreme[nan_wins][i], extremes[i]);
    return quant_numbers_of(q, all);
}

static void store_numbers(quant *q, const quant_numbers *kept)
{
    number_slot slot = find_numbers(q);
    ptx_val at[2];
    for (uint32_t i = 0; i < q->stored; i++)
        at[i] = quant_number_at(q, i, slot.first, slot.index);
    ptx_val of_group = ptx_and(q->f, q->lane, q->lanes - 1);
    ptx_val is_owner = ptx_lt(q->f, of_group, q->rows); /* others own the same ones */
    PTX_WHEN (q->f, is_owner) {
        for (uint32_t i = 0; i < q->stored; i++)
            ptx_store(q->f, at[i], kept->at[i]);
    }
}

static quant_numbers load_numbers(quant *q)
{
    number_slot slot = find_numbers(q);
    return quant_load_numbers(q, slot.first, slot.index, NULL);
}

/* A lane's codes of step `step` of a tile. */
static ptx_val word_at(quant *q, ptx_val at, uint32_t step)
{
    return ptx_at_const(q->f, ptx_cast_ptr(q->f, at, quant_word_type(q)), 32 * (int)step);
}

/* ---- steps shared by the predicated bodies ------------------------------------------------------------------------ */

/* A row of a tile; the tensor may end within it. */
typedef struct tile_row {
    ptx_val start;                 /* elements from the tile's first, U32 */
    ptx_val has[QUANT_MOST_STEPS]; /* this lane's elements from each step's first to the end, S32 */
    ptx_val group;                 /* of this lane, from the tile's first group, U32 */
    ptx_val group_in_bounds;
} tile_row;

static tile_row init_row(quant *q, ptx_val start)
{
    ptx_fn *f = q->f;
    tile_row r = {.start = start};
    ptx_val lane_start = ptx_mad(f, q->lane, q->lane_elements, start);
    for (uint32_t i = 0; i < q->row_steps; i++) {
        ptx_val past = i == 0 ? lane_start : ptx_add(f, lane_start, i * q->step_elements);
        r.has[i] = ptx_as(f, PTX_S32, ptx_sub(f, q->left, past));
    }
    r.group = ptx_shr(f, lane_start, lanes_log2(q->group));
    r.group_in_bounds = ptx_gt(f, r.has[0], 0);
    return r;
}

/* The numbers of this lane's group; quant.h defines them out of bounds. */
static quant_numbers load_numbers_predicated(quant *q, const tile_row *r)
{
    return quant_load_numbers(q, first_group(q), r->group, &r->group_in_bounds);
}

static void store_numbers_predicated(quant *q, const tile_row *r, const quant_numbers *g)
{
    ptx_fn *f = q->f;
    ptx_val slot = ptx_and(f, q->lane, q->lanes - 1), at[2];
    ptx_val is_first = ptx_eq(f, slot, 0);
    ptx_val stores = ptx_and(f, is_first, r->group_in_bounds);
    for (uint32_t i = 0; i < q->stored; i++)
        at[i] = quant_number_at(q, i, first_group(q), r->group);
    PTX_WHEN (f, stores) {
        for (uint32_t i = 0; i < q->stored; i++)
            ptx_store(f, at[i], g->at[i]);
    }
}

static quant_numbers numbers_of_row(quant *q, quant_elements x)
{
    quant_extremes e = extremes_of_row(q, x, q->lane_elements, 0, false);
    for (uint32_t i = 0; i < q->stored; i++)
        e.at[i] = reduce_from(q, quant_extreme[false][i], e.at[i], 1);
    return quant_numbers_of(q, e);
}

/* Byte by byte. Elements out of bounds are NaNs, whose code is 0, as required for the unused last nibble. */
static void store_codes_predicated(quant *q, const tile_row *r, const quant_numbers *g, quant_elements x)
{
    ptx_fn *f = q->f;
    const quant_division how = quant_general_division(q);
    const quant_numbers of_codes = how == QUANT_DIVIDE ? *g : quant_invert(q, g, how);
    ptx_val byte = ptx_shr(f, r->start, 1);
    ptx_val at = ptx_at(f, quant_packed_at(q), byte);
    for (uint32_t step = 0; step < q->row_steps; step++) {
        ptx_val codes = quant_codes(q, &of_codes, 0, x[step], q->lane_elements, how);
        for (uint32_t pair = 0; pair < q->lane_elements / 2; pair++) {
            ptx_val two = pair == 0 ? codes : ptx_shr(f, codes, 8 * pair);
            ptx_val in_bounds = ptx_gt(f, r->has[step], (int)(2 * pair));
            PTX_WHEN (f, in_bounds) {
                ptx_store(f, ptx_at_const(f, at, step * q->step_elements / 2 + pair), two);
            }
        }
    }
}

static ptx_val row_elements(const quant *q)
{
    return ptx_u32(q->row_steps * q->step_elements);
}

/* ---- scale, pack, quantize ---------------------------------------------------------------------------------------- */

/* Row by row, with numbers that it makes and stores, or given ones. */
static void encode_predicated(quant *q)
{
    ptx_fn *f = q->f;
    PTX_FOR (f, start, 0, q->left, row_elements(q)) {
        tile_row r = init_row(q, start);
        quant_elements x;
        ptx_val at = ptx_at(f, quant_tile_at(q), r.start);
        for (uint32_t step = 0; step < q->row_steps; step++) {
            for (uint32_t i = 0; i < q->lane_elements; i++) {
                ptx_val in_bounds = ptx_gt(f, r.has[step], (int)i);
                x[step][i] =
                    quant_load_element(q, ptx_at_const(f, at, step * q->step_elements + i), in_bounds);
            }
        }
        quant_numbers g = q->makes_scales ? numbers_of_row(q, x) : load_numbers_predicated(q, &r);
        if (q->makes_scales)
            store_numbers_predicated(q, &r, &g);
        if (q->makes_codes)
            store_codes_predicated(q, &r, &g, x);
    }
}

static void scale_full_tile(quant *q)
{
    quant_words words;
    quant_elements x;
    quant_load_tile(q, words);
    quant_numbers kept = numbers_of_tile(q, words, x, false);
    store_numbers(q, &kept);
}

/* Sets `predicated` to 0 when the tile is done. */
static void encode_full_tile(quant *q, ptx_val predicated)
{
    ptx_fn *f = q->f;
    const quant_division how = q->makes_scales ? QUANT_BY_OWN_SCALE : QUANT_BY_GIVEN_SCALE;
    quant_words words;
    quant_elements x;
    quant_numbers g = {.at = {{0}}};
    if (!q->makes_scales)
        g = load_numbers(q);
    quant_load_tile(q, words);
    if (q->makes_scales)
        g = numbers_of_tile(q, words, x, q->has_pairs);
    const bool is_wide = q->makes_scales && !q->has_pairs;
    ptx_val is_plain = quant_is_plain(q, &g, how);
    PTX_IF (f, ptx_vote_all(f, is_plain)) {
        if (q->makes_scales)
            store_numbers(q, &g);
        quant_numbers kept = quant_invert(q, &g, how);
        ptx_val at = quant_packed_at(q);
        for (uint32_t step = 0; step < q->steps; step++) {
            if (step % q->row_steps == 0)
                g = row_numbers(q, &kept, step / q->row_steps);
            if (!is_wide)
                quant_widen_step(q, words[step], x[step]);
            ptx_val codes = quant_codes(q, &g, 0, x[step], q->lane_elements, how);
            ptx_store(f, word_at(q, at, step), codes);
        }
        ptx_set(f, predicated, 0);
    }
}

/* ---- unpack ------------------------------------------------------------------------------------------------------- */

static void unpack_full_tile(quant *q)
{
    ptx_fn *f = q->f;
    ptx_val codes[QUANT_MOST_STEPS];
    ptx_val from = quant_packed_at(q);
    for (uint32_t step = 0; step < q->steps; step++)
        codes[step] = ptx_load_as(f, PTX_U32, word_at(q, from, step), PTX_NC | PTX_NO_ALLOCATE);
    quant_numbers kept = load_numbers(q), g = kept;
    ptx_val to = quant_tile_at(q);
    for (uint32_t step = 0; step < q->steps; step++) {
        if (step % q->row_steps == 0)
            g = row_numbers(q, &kept, step / q->row_steps);
        ptx_val x[QUANT_MOST_LANE_ELEMENTS], at = ptx_at_const(f, to, step * q->step_elements);
        for (uint32_t i = 0; i < q->lane_elements; i++)
            x[i] = quant_value(q, &g, codes[step], i);
        narrow_store(f, q->type, q->lane_elements, at, x, PTX_CS);
    }
}

static void unpack_step_predicated(quant *q, const quant_numbers *g, ptx_val has, ptx_val from, ptx_val to)
{
    ptx_fn *f = q->f;
    for (uint32_t pair = 0; pair < q->lane_elements; pair += 2) {
        ptx_val byte = ptx_var(f, ptx_u32(0)), x[2], in_bounds[2];
        for (uint32_t i = 0; i < 2; i++)
            in_bounds[i] = ptx_gt(f, has, (int)(pair + i));
        PTX_WHEN (f, in_bounds[0]) {
            ptx_set(f, byte, ptx_load_hint(f, ptx_at_const(f, from, pair / 2), PTX_NC));
        }
        for (uint32_t i = 0; i < 2; i++)
            x[i] = quant_value(q, g, byte, i);
        for (uint32_t i = 0; i < 2; i++)
            narrow_store_where(f, q->type, q->wide, ptx_at_const(f, to, pair + i), x[i], in_bounds[i]);
    }
}

static void unpack_predicated(quant *q)
{
    ptx_fn *f = q->f;
    PTX_FOR (f, start, 0, q->left, row_elements(q)) {
        tile_row r = init_row(q, start);
        quant_numbers g = load_numbers_predicated(q, &r);
        ptx_val byte = ptx_shr(f, start, 1);
        ptx_val from = ptx_at(f, quant_packed_at(q), byte);
        ptx_val to = ptx_at(f, quant_tile_at(q), start);
        for (uint32_t step = 0; step < q->row_steps; step++)
            unpack_step_predicated(q, &g, r.has[step], ptx_at_const(f, from, step * q->step_elements / 2),
                                   ptx_at_const(f, to, step * q->step_elements));
    }
}

/* ---- the kernels -------------------------------------------------------------------------------------------------- */

static void declare_arguments(quant *q, bool unpacks)
{
    static const char *const names[] = {"scale", "zero"};
    ptx_fn *f = q->f;
    if (unpacks)
        q->packed = ptx_param_ptr(f, PTX_U8, "packed");
    else
        q->tensor = ptx_param_ptr(f, q->type, "in");
    if (q->is_nested)
        q->nested = nf4_nested_pointers(f);
    for (uint32_t i = 0; i < q->stored && !q->is_nested; i++)
        q->number[i] = ptx_param_ptr(f, q->wide, names[i]);
    if (unpacks)
        q->tensor = ptx_param_ptr(f, q->type, "out");
    else if (q->makes_codes)
        q->packed = ptx_param_ptr(f, PTX_U8, "packed");
    q->n = ptx_param(f, PTX_U64, "n");
    if (q->group == 0)
        q->group_size = ptx_param(f, PTX_U64, "group_size");
    if (q->is_nested)
        nf4_nested_offset(&q->nested);
}

static void emit(ptx_fn *f, const kiln_variant *v, quant_coder coder, bool makes_scales, bool makes_codes)
{
    const bool unpacks = !makes_scales && !makes_codes;
    quant q = quant_init(f, v, coder);
    q.makes_scales = makes_scales;
    q.makes_codes = makes_codes;
    q.is_high_first = (makes_codes || unpacks) && kiln_is(v, "nibbles", "high");
    q.is_nested = unpacks && coder == QUANT_NF4 && kiln_is(v, "scale_type", "nested");
    declare_arguments(&q, unpacks);
    if (q.group == 0) {
        (makes_scales ? quant_any_scale : quant_any_tiles)(&q);
        return;
    }
    ptx_val in_bounds = quant_find_tile(&q);
    PTX_IF (f, in_bounds) {
        ptx_val is_full = quant_find_left(&q);
        quant_load_tables(&q);
        if (makes_codes) {
            ptx_val predicated = ptx_var(f, ptx_u32(1));
            PTX_IF (f, is_full) {
                encode_full_tile(&q, predicated);
            }
            ptx_val is_left = ptx_ne(f, predicated, 0);
            PTX_IF (f, is_left) {
                encode_predicated(&q);
            }
        } else {
            PTX_IF (f, is_full) {
                (makes_scales ? scale_full_tile : unpack_full_tile)(&q);
            }
            PTX_ELSE (f) {
                (makes_scales ? encode_predicated : unpack_predicated)(&q);
            }
        }
    }
}

/* clang-format off */

/* ---- parameters --------------------------------------------------------------------------------------------------- */

#define TYPE  PARAM(WORD, CONTRACT, "type", "f32 f64 f16 bf16", "f32", "element type of the tensor that is not quantised")
#define MODE  PARAM(WORD, CONTRACT, "mode", "sym asym", "sym", \
                    "how codes are scaled\nsym: x = (code - 8) * scale; asym: x = (code - zero) * scale", .numbers = "1 2")
#define GROUP PARAM(WORD, CONTRACT, "group", "32 64 128 256 any", "64", \
                    "elements that share a scale\nany: as many as the argument group_size says, which is slower")

static const kiln_param int4_scale_params[] = {TYPE, MODE, GROUP, {.name = NULL}};
static const kiln_param int4_params[] = {TYPE, MODE, GROUP, NIBBLES_PARAM, {.name = NULL}};
static const kiln_param nf4_scale_params[] = {TYPE, GROUP, {.name = NULL}};
static const kiln_param nf4_params[] = {TYPE, GROUP, NIBBLES_PARAM, {.name = NULL}};
static const kiln_param nf4_unpack_params[] = {TYPE, GROUP, NIBBLES_PARAM, NF4_SCALE_TYPE_PARAM, {.name = NULL}};

/* ---- arguments ---------------------------------------------------------------------------------------------------- */

#define GROUPS "ceil_div(n, select(group == any, group_size, group))"
#define WIDE   "$type:f64:f32"

#define IN                {"in", KILN_ARG_IN, "$type", "n", 16, NULL, "the tensor, in memory order"}
#define OUT(text)         {"out", KILN_ARG_OUT, "$type", "n", 16, NULL, text}
#define PACKED(way, text) {"packed", KILN_ARG_##way, "u8", "ceil_div(n, 2)", 16, NULL, text}
#define SCALE(way, text)  {"scale", KILN_ARG_##way, WIDE, GROUPS, 4, NULL, text}
#define ZERO(way, text)   {"zero", KILN_ARG_##way, WIDE, GROUPS, 4, "mode == asym", text}
#define SIZES             {"n", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements"}, \
                          {"group_size", KILN_ARG_VALUE, "u64", NULL, 0, "group == any", "elements that share a scale; may exceed n"}

#define PACKED_IN       PACKED(IN, "two codes per byte")
#define PACKED_OUT      PACKED(OUT, "two codes per byte\nfor an odd n the last byte's second code is 0")
#define SCALE_GIVEN     SCALE(IN, "scale of each group")
#define ZERO_GIVEN      ZERO(IN, "zero of each group")
#define ZERO_MADE       ZERO(OUT, "zero of each group\n(0 - smallest) / scale, not rounded")
#define INT4_SCALE_MADE SCALE(OUT, "scale of each group\nsym: max(largest magnitude, 1e-12) / 7; asym: max(largest - smallest, 1e-12) / 15")
#define NF4_SCALE_MADE  SCALE(OUT, "scale of each group: max(largest magnitude, 1e-12)")

static const kiln_arg int4_scale_args[] = {IN, INT4_SCALE_MADE, ZERO_MADE, SIZES, {.name = NULL}};
static const kiln_arg int4_pack_args[] = {IN, SCALE_GIVEN, ZERO_GIVEN, PACKED_OUT, SIZES, {.name = NULL}};
static const kiln_arg int4_quantize_args[] = {IN, INT4_SCALE_MADE, ZERO_MADE, PACKED_OUT, SIZES, {.name = NULL}};
static const kiln_arg int4_unpack_args[] = {
    PACKED_IN, SCALE_GIVEN, ZERO_GIVEN, OUT("(code - 8, or code - zero) * scale\nrounded after each step"), SIZES, {.name = NULL}};

static const kiln_arg nf4_scale_args[] = {IN, NF4_SCALE_MADE, SIZES, {.name = NULL}};
static const kiln_arg nf4_pack_args[] = {IN, SCALE_GIVEN, PACKED_OUT, SIZES, {.name = NULL}};
static const kiln_arg nf4_quantize_args[] = {IN, NF4_SCALE_MADE, PACKED_OUT, SIZES, {.name = NULL}};
static const kiln_arg nf4_unpack_args[] = {
    PACKED_IN, {"scale", KILN_ARG_IN, WIDE, GROUPS, 4, "scale_type == f32", "scale of each group"},
    NF4_NESTED_ARGS(GROUPS, "ceil_div(" GROUPS ", 256)"), OUT("value of the code times the scale of its group"), SIZES,
    NF4_NESTED_OFFSET, {.name = NULL}};

static const kiln_rule rules[] = {
    {"n <= 1099511627776", "n must be at most 2^40"},
    {"group != any || group_size >= 1", "group_size must be at least 1"},
    {NULL, NULL},
};

/* ---- launch and cost ---------------------------------------------------------------------------------------------- */

/* A thread block has eight warps, each with a tile of the tensor. If the group's size is an argument and the entry makes
 * scales, it has an even number of whole groups instead. */
#define TILES      "ceil_div(n, 8 * tile_elements)"
#define ANY_SIZE   "min(group_size, n)"
#define ANY_GROUPS "select(" ANY_SIZE " < large_group, 2 * ceil_div(large_group / 2, " ANY_SIZE "), 2)"
#define SHARES     "select(group == any, ceil_div(n, " ANY_SIZE " * " ANY_GROUPS "), " TILES ")"

#define ELEMENT_BYTES "select(type == f64, 8, select(type == f32, 4, 2))"
#define TENSOR        ELEMENT_BYTES " * n"
#define CODES         "ceil_div(n, 2)"
#define NF4_NUMBERS   "select(type == f64, 8, 4) * " GROUPS
#define INT4_NUMBERS  "select(mode == asym, 2, 1) * " NF4_NUMBERS
#define NF4_STORED    "select(scale_type == f32, " NF4_NUMBERS ", " NF4_NESTED_BYTES_READ(GROUPS) ")"

static void shape(kiln_shape *s, const kiln_variant *v)
{
    const quant q = quant_init(NULL, v, QUANT_INT4_SYM);
    s->block[0] = 32 * QUANT_WARPS;
    kiln_number(s, v, "tile_elements", q.tile_elements);
    kiln_number(s, v, "large_group", q.large_group);
}

/* With pairs a tile stays packed until it is coded, so 40 registers are enough. Without this limit ptxas spills a little to
 * fit one more thread block. */
static void coding_shape(kiln_shape *s, const kiln_variant *v)
{
    const quant q = quant_init(NULL, v, QUANT_INT4_SYM);
    shape(s, v);
    s->blocks_per_multiprocessor = q.has_pairs && q.group > 0                         ? 6
                                   : q.lane_elements == 8                             ? 4
                                   : q.wide == PTX_F64 && q.steps == QUANT_MOST_STEPS ? 3
                                                                                      : 0;
}

static void nf4_unpack_shape(kiln_shape *s, const kiln_variant *v)
{
    shape(s, v);
    kiln_require(s, kiln_is(v, "scale_type", "f32") || !kiln_is(v, "type", "f64"), "type scale_type",
                 "scale_type nested needs type f32, f16 or bf16");
}

/* ---- the families ------------------------------------------------------------------------------------------------- */

#define ACCURACY \
    "for finite inputs, bit for bit what a scalar program computes by the format's rules, with every operation " \
    "rounded to nearest even; NaN and infinity have their own rules"
#define INT4_SOURCE "round to nearest with a scale per group, as in GPTQ's and AWQ's baselines"
#define NF4_SOURCE  "QLoRA (arXiv:2305.14314)"
#define INT4_NONFINITE \
    "a NaN does not change its group's scale. A group with only NaNs has the least scale, and a NaN as " \
    "its zero. An infinity makes the scale infinite, and so does a range (asym) that overflows. Minus " \
    "infinity makes the zero a NaN. But in asym, a group of equal elements, also of equal infinities, has range 0, " \
    "so its scale is the least one. Beyond 1e25 (f32) its zero is infinite: its codes are 0, and unpack returns " \
    "an infinity. An element gets code 0 if its value before rounding is NaN: a NaN, infinity / infinity, or any " \
    "element of a group whose zero is NaN"
#define NF4_NONFINITE \
    "a NaN does not change its group's scale. A group with only NaNs has the least scale. An infinity " \
    "makes the scale infinite. An element gets code 0 if its quotient is NaN: a NaN, or infinity / infinity. " \
    "A finite element divided by an infinite scale is 0"
#define BACK_NONFINITE "IEEE arithmetic: 0 times an infinite scale is a NaN"

#define INT4_CODER(v) (kiln_is(v, "mode", "asym") ? QUANT_INT4_ASYM : QUANT_INT4_SYM)
#define NF4_CODER(v)  ((void)(v), QUANT_NF4)

static const kiln_value example[] = {{"n", "4096"}, {"group_size", "64"}, {.arg = NULL}};

#define FAMILY(of, OF, entry, makes_scales, makes_codes, what, of_nonfinite, params_of, shape_of, blocks, read, written) \
    static void of##_##entry##_emit(ptx_fn *f, const kiln_variant *v)                                                  \
    {                                                                                                                  \
        emit(f, v, OF##_CODER(v), makes_scales, makes_codes);                                                          \
    }                                                                                                                  \
    const kiln_family of##_##entry##_family = {                                                                        \
        .name = #of "_" #entry, .summary = what, .source = OF##_SOURCE, .accuracy = ACCURACY,                          \
        .nonfinite = of_nonfinite, .params = params_of, .args = of##_##entry##_args, .rules = rules,                   \
        .empty = "n == 0", .example = example, .numbers = "tile_elements large_group", .shape = shape_of,              \
        .grid = {blocks}, .min_sm = 75,                                                                                \
        .cost = {.bytes_read = read, .bytes_written = written, .elements = "n"}, .emit = of##_##entry##_emit};

FAMILY(int4, INT4, scale, true, false, "compute the scale, and for asym the zero, of each INT4 group",
       INT4_NONFINITE, int4_scale_params, shape, SHARES, TENSOR, INT4_NUMBERS)
FAMILY(int4, INT4, pack, false, true, "quantise a tensor to INT4 codes with given scales and zeros",
       INT4_NONFINITE, int4_params, coding_shape, TILES, TENSOR " + " INT4_NUMBERS, CODES)
FAMILY(int4, INT4, quantize, true, true, "quantise a tensor to INT4 in groups: scales, zeros and packed codes, in one read",
       INT4_NONFINITE, int4_params, coding_shape, SHARES, TENSOR, CODES " + " INT4_NUMBERS)
FAMILY(int4, INT4, unpack, false, false, "turn INT4 codes, scales and zeros back into a tensor",
       BACK_NONFINITE, int4_params, shape, TILES, CODES " + " INT4_NUMBERS, TENSOR)
FAMILY(nf4, NF4, scale, true, false, "compute the scale of each NF4 group",
       NF4_NONFINITE, nf4_scale_params, shape, SHARES, TENSOR, NF4_NUMBERS)
FAMILY(nf4, NF4, pack, false, true, "quantise a tensor to NF4 codes with given scales",
       NF4_NONFINITE, nf4_params, coding_shape, TILES, TENSOR " + " NF4_NUMBERS, CODES)
FAMILY(nf4, NF4, quantize, true, true, "quantise a tensor to NF4 in groups: scales and packed codes, in one read",
       NF4_NONFINITE, nf4_params, coding_shape, SHARES, TENSOR, CODES " + " NF4_NUMBERS)
FAMILY(nf4, NF4, unpack, false, false, "turn NF4 codes and scales back into a tensor",
       BACK_NONFINITE, nf4_unpack_params, nf4_unpack_shape, TILES, CODES " + " NF4_STORED, TENSOR)
/* clang-format on */
