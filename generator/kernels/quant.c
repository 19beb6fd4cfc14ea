/* The families of the 4-bit quantisers. int4 (integers with a scale per group, or with a scale and a zero) and nf4 (NormalFloat
 * with a scale per group) have four each: scale makes a group's numbers, pack makes codes with given numbers, quantize makes
 * both, and unpack restores the tensor.
 *
 * With groups of a fixed size a body is emitted twice. The fast one takes full tiles with plain numbers. The other takes the
 * rest, above all the tail of the tensor: it goes row by row, cuts rows off at the tensor's end, and divides by div.rn, except
 * where quant_invert takes any numbers. A fused quantizer knows its numbers only after it has read the tile; if they are not
 * plain, the second body starts over.
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

/* The group whose numbers this lane owns, from the tile's first, U32. Lane l owns those of row l mod rows, for the group of its
 * own elements in that row: with 4 rows of 4 groups of 8 lanes each, lane 13 owns those of row 1, group 1. So one access loads or
 * stores the scales of a tile. */
static ptx_val own_group(quant *q)
{
    ptx_fn *f = q->f;
    const uint32_t row_groups = 32 / q->lanes;
    if (q->is_cut)
        return ptx_shr(f, q->offset, lanes_log2(q->group));
    ptx_val row = ptx_and(f, q->lane, q->rows - 1);
    if (row_groups == 1)
        return row;
    ptx_val in_row = ptx_shr(f, q->lane, lanes_log2(q->lanes));
    return ptx_mad(f, row, row_groups, in_row);
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

static quant_numbers load_numbers(quant *q)
{
    ptx_val first = first_group(q), group = own_group(q);
    if (!q->is_cut)
        return quant_load_numbers(q, first, group, NULL);
    ptx_val in_bounds = quant_in_bounds(q, 0, 0);
    return quant_load_numbers(q, first, group, &in_bounds);
}

static void store_numbers(quant *q, const quant_numbers *kept)
{
    ptx_fn *f = q->f;
    ptx_val first = first_group(q), group = own_group(q), at[2];
    for (uint32_t i = 0; i < q->stored; i++)
        at[i] = quant_number_at(q, i, first, group);
    ptx_val in_group = ptx_and(f, q->lane, q->lanes - 1);
    ptx_val stores = ptx_lt(f, in_group, q->rows); /* others own the same ones */
    if (q->is_cut)
        stores = ptx_and(f, stores, quant_in_bounds(q, 0, 0));
    PTX_WHEN (f, stores) {
        for (uint32_t i = 0; i < q->stored; i++)
            ptx_store(f, at[i], kept->at[i]);
    }
}

/* The extremes of this lane's elements of a row; with pairs they are taken two at a time, and joined at the end. */
static void extremes_of_row(quant *q, quant_elements x, uint32_t row, ptx_val extremes[2])
{
    const ptx_type pair = q->type == PTX_BF16 ? PTX_BF16X2 : PTX_F16X2;
    const uint32_t count = q->has_pairs ? 4 : q->lane_elements;
    for (uint32_t i = 0; i < q->row_steps * count; i++) {
        ptx_val value = x[row * q->row_steps + i / count][i % count];
        quant_extremes_add(q, extremes, q->has_pairs ? ptx_as(q->f, pair, value) : value);
    }
    for (uint32_t i = 0; i < q->stored && q->has_pairs; i++) {
        ptx_val halves[2];
        widen_pair(q->f, q->type, ptx_as(q->f, PTX_U32, extremes[i]), halves);
        extremes[i] = ptx_op2(q->f, quant_extreme(q, i), halves[0], halves[1], PTX_HERE);
    }
}

/* Reduces each row's value over the group's lanes; each lane gets that of the row that it owns. While there are several rows,
 * two lanes share two neighbours: each gives one away and keeps the other. So ptxas need not have all rows in flight, which
 * takes more than the 32 registers of eight thread blocks. */
static ptx_val join_rows(quant *q, ptx_op op, ptx_val values[])
{
    ptx_fn *f = q->f;
    uint32_t distance = 1;
    for (uint32_t count = q->rows; count > 1; count /= 2, distance *= 2) {
        ptx_val is_odd = ptx_ne(f, ptx_and(f, q->lane, distance), 0);
        for (uint32_t i = 0; i < count / 2; i++) {
            ptx_val kept = ptx_select(f, is_odd, values[2 * i + 1], values[2 * i]);
            ptx_val given = ptx_select(f, is_odd, values[2 * i], values[2 * i + 1]);
            values[i] = ptx_op2(f, op, kept, ptx_shfl_xor(f, given, distance), PTX_HERE);
        }
    }
    for (; distance < q->lanes; distance *= 2)
        values[0] = ptx_op2(f, op, values[0], ptx_shfl_xor(f, values[0], distance), PTX_HERE);
    return values[0];
}

static quant_numbers numbers_of_tile(quant *q, quant_elements x)
{
    ptx_val extremes[2][QUANT_MOST_STEPS], of_group[2];
    for (uint32_t row = 0; row < q->rows; row++) {
        ptx_val of_row[2] = {{0}};
        extremes_of_row(q, x, row, of_row);
        for (uint32_t i = 0; i < 2; i++)
            extremes[i][row] = of_row[i];
    }
    for (uint32_t i = 0; i < q->stored; i++)
        of_group[i] = join_rows(q, quant_extreme(q, i), extremes[i]);
    return quant_numbers_of(q, of_group);
}

/* ---- scale, pack, quantize ---------------------------------------------------------------------------------------- */

/* Loads a tile's elements. With is_packed they stay words of memory, of one or two elements; those of a cut tile never do. */
static void load_tile(quant *q, bool is_packed, quant_elements x)
{
    ptx_val at = quant_tile_at(q);
    for (uint32_t step = 0; step < q->steps; step++) {
        if (q->is_cut)
            quant_load_cut(q, at, step, x[step]);
        else
            quant_load_words(q, q->lane_elements, ptx_at_const(q->f, at, step * q->step_elements), x[step]);
    }
    for (uint32_t step = 0; step < q->steps && !q->is_cut && !is_packed; step++)
        quant_widen(q, q->lane_elements, x[step]);
}

static void store_codes(quant *q, const quant_numbers *kept, bool is_packed, quant_elements x)
{
    quant_numbers g = *kept;
    ptx_val at = quant_packed_at(q);
    for (uint32_t step = 0; step < q->steps; step++) {
        if (step % q->row_steps == 0)
            g = row_numbers(q, kept, step / q->row_steps);
        if (is_packed)
            quant_widen(q, q->lane_elements, x[step]);
        quant_store_codes(q, at, step, quant_codes(q, &g, 0, x[step], q->lane_elements));
    }
}

/* Stores the numbers, the codes or both. */
static void store_coded(quant *q, const quant_numbers *made, bool is_packed, quant_elements x)
{
    if (q->makes_scales)
        store_numbers(q, made);
    if (q->makes_codes) {
        quant_numbers g = quant_invert(q, made);
        store_codes(q, &g, is_packed, x);
    }
}

/* Makes numbers, codes or both. If a whole tile's numbers are plain (quant_is_plain), makes its codes and sets `left` to 0; else
 * it leaves the tile to cut_rows. */
static void encode(quant *q)
{
    ptx_fn *f = q->f;
    const bool is_packed = !q->is_cut && (q->has_pairs || !q->makes_scales);
    quant_elements x;
    quant_numbers g = {.at = {{0}}};
    if (!q->makes_scales)
        g = load_numbers(q);
    load_tile(q, is_packed, x);
    if (q->makes_scales)
        g = numbers_of_tile(q, x);
    if (q->is_cut || !q->makes_codes) {
        store_coded(q, &g, is_packed, x);
        return;
    }
    ptx_val is_plain = quant_is_plain(q, &g);
    PTX_IF (f, ptx_vote_all(f, is_plain)) {
        ptx_set(f, q->left, 0);
        store_coded(q, &g, is_packed, x);
    }
}

/* ---- unpack ------------------------------------------------------------------------------------------------------- */

static void decode(quant *q)
{
    ptx_val codes[QUANT_MOST_STEPS];
    quant_numbers kept = load_numbers(q), g = kept;
    ptx_val from = quant_packed_at(q);
    for (uint32_t step = 0; step < q->steps; step++)
        codes[step] = quant_load_codes(q, from, step);
    ptx_val to = quant_tile_at(q);
    for (uint32_t step = 0; step < q->steps; step++) {
        if (step % q->row_steps == 0)
            g = row_numbers(q, &kept, step / q->row_steps);
        ptx_val x[QUANT_MOST_LANE_ELEMENTS];
        for (uint32_t i = 0; i < q->lane_elements; i++)
            x[i] = quant_value(q, &g, codes[step], i);
        quant_store_elements(q, to, step, x);
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

static void cut_rows(const quant *tile)
{
    ptx_fn *f = tile->f;
    PTX_FOR (f, start, 0, tile->left, tile->row_steps * tile->step_elements) {
        quant row = quant_cut(tile, start, tile->row_steps);
        row.makes_codes || row.makes_scales ? encode(&row) : decode(&row);
    }
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
    PTX_IF (f, quant_find_tile(&q)) {
        ptx_val is_full = quant_find_left(&q);
        quant_load_tables(&q);
        if (makes_codes)
            q.left = ptx_var(f, q.left);
        PTX_IF (f, is_full) {
            unpacks ? decode(&q) : encode(&q);
        }
        if (makes_codes) {
            cut_rows(&q);
        } else { /* in C; PTX_ELSE is that of is_full */
            PTX_ELSE (f) {
                cut_rows(&q);
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

/* With pairs a tile stays packed until it is coded, so 40 registers are enough; with groups of any size 48 are. Without this
 * limit ptxas spills a little to fit one more thread block. */
static void coding_shape(kiln_shape *s, const kiln_variant *v)
{
    const quant q = quant_init(NULL, v, QUANT_INT4_SYM);
    shape(s, v);
    const bool is_any = q.group == 0 && q.type != PTX_F32 && kiln_has_sm(v, 80);
    s->blocks_per_multiprocessor = q.has_pairs                                        ? 6
                                   : is_any                                           ? 5
                                   : q.lane_elements == 8                             ? 4
                                   : q.wide == PTX_F64 && q.steps == QUANT_MOST_STEPS ? 3
                                                                                      : 0;
}

/* With groups of any size 40 registers are enough for symmetric codes. */
static void int4_coding_shape(kiln_shape *s, const kiln_variant *v)
{
    coding_shape(s, v);
    if (s->blocks_per_multiprocessor == 5 && kiln_is(v, "mode", "sym"))
        s->blocks_per_multiprocessor = 6;
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
       INT4_NONFINITE, int4_params, int4_coding_shape, TILES, TENSOR " + " INT4_NUMBERS, CODES)
FAMILY(int4, INT4, quantize, true, true, "quantise a tensor to INT4 in groups: scales, zeros and packed codes, in one read",
       INT4_NONFINITE, int4_params, int4_coding_shape, SHARES, TENSOR, CODES " + " INT4_NUMBERS)
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
