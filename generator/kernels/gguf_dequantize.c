/* GGUF's quantised blocks back to a tensor: all of it, or rows by index.
 *
 * GEOMETRY. A warp has a tile of 2048 elements of a row; a whole tensor is one row. It copies the tile's bytes unchanged into
 * shared memory. Then four lanes take a group of codes (device/format.h), each every fourth unit; eight groups, of 1 to 8
 * blocks, are a trip, so that a lane has the same units of the same group in each. A store of the warp is four elements per
 * lane, and whole sectors: four lanes have neighbouring quads.
 *
 * ARITHMETIC. Scales and products with codes are exact in f32. So a sum with a minimum is one fma, and rounds as the package
 * gguf does.
 */
#include "device/copy.h"
#include "device/lanes.h"
#include "device/narrow.h"
#include "device/shared.h"
#include "gguf.h"
#include <kiln/author/families.h>

enum { WARPS = 8, TILE = 2048 /* elements of a warp */, QUAD = 4, GROUP_LANES = 4, PIECE = 16 };

typedef struct dequantize {
    ptx_fn *f;
    const weight_format *format;
    ptx_type type; /* of the tensor */
    ptx_val lane, warp;
    ptx_val n;      /* elements of a row, U64 */
    ptx_val blocks; /* quantised blocks of the tile, U32 */
    ptx_val packed; /* the tile's first byte */
    ptx_val out;    /* its first element */
    bool by_index;
    /* gguf_rows: the tensor's row for each row of out; the number of rows of the tensor, and of out. */
    ptx_val index, tensor_rows, rows;
} dequantize;

/* ---- elements ----------------------------------------------------------------------------------------------------- */

/* Stores this lane's units of the block at `place`, to the elements from `at` on. */
static void store_units(dequantize *d, const format_lane *lane, const format_place *place, ptx_val at)
{
    ptx_fn *f = d->f;
    const weight_format *w = d->format;
    ptx_val scale[FORMAT_MOST_PARTS], minimum[FORMAT_MOST_PARTS], quads[1][FORMAT_MOST_QUADS], x[QUAD];
    format_numbers(f, lane, place, scale, minimum);
    for (uint32_t unit = 0; unit < w->units; unit += GROUP_LANES) {
        format_codes(f, lane, place, unit, 1, quads);
        for (uint32_t q = 0; q < w->quads; q++) {
            uint32_t part = format_quad_part(w, q);
            format_floats(f, lane, quads[0][q], x);
            for (uint32_t i = 0; i < QUAD; i++)
                x[i] = w->has_minimum ? ptx_fma(f, scale[part], x[i], minimum[part])
                                      : ptx_mul(f, scale[part], x[i]);
            narrow_store(f, d->type, QUAD, ptx_at_const(f, at, format_quad_element(w, unit, q)), x, PTX_CS);
        }
    }
}

static void store_tile(dequantize *d, ptx_val bytes)
{
    ptx_fn *f = d->f;
    const weight_format *w = d->format;
    const uint32_t block_lanes = (uint32_t)w->groups * GROUP_LANES,
                   trip_blocks = (uint32_t)WARP_LANES / block_lanes;
    ptx_val in_trip = ptx_div(f, d->lane, block_lanes);
    ptx_val in_block = ptx_rem(f, d->lane, block_lanes);
    ptx_val group = ptx_div(f, in_block, GROUP_LANES);
    ptx_val unit = ptx_rem(f, d->lane, GROUP_LANES);
    format_lane lane = format_lane_init(f, w, group, unit, 1, FORMAT_EXACT);
    ptx_val first = ptx_at(f, bytes, ptx_mul(f, in_trip, w->bytes));
    format_place place = format_find(f, &lane, first);
    ptx_val group_element = format_group_element(f, w, group);
    ptx_val of_block = ptx_mad(f, in_trip, w->elements, group_element);
    ptx_val element = ptx_mad(f, unit, w->unit_step, of_block);
    ptx_val out = ptx_at(f, d->out, element);
    ptx_val left = ptx_as(f, PTX_S32, ptx_sub(f, d->blocks, in_trip));
    PTX_FOR (f, block, 0, left, (int)trip_blocks) {
        format_place here = format_move(f, &lane, &place, ptx_mul(f, block, w->bytes));
        ptx_val at = ptx_at(f, out, ptx_mul(f, block, w->elements));
        store_units(d, &lane, &here, at);
    }
}

/* ---- a tile's bytes --------------------------------------------------------------------------------------------------- */

/* A copy is whole pieces of 16 bytes, from the sector of the first byte on. A piece before the first byte's own is not read,
 * since it may precede the tensor; the last piece is read in part. */

/* Shared memory for a copy of at most this many bytes: whole sectors, since the next warp's copies begin after it. */
static uint32_t room_of(uint32_t most)
{
    return (most + SECTOR_BYTES - 1 + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES;
}

/* Copies the bytes after the last whole piece, zero-filled to its end. */
static void copy_tail(const dequantize *d, ptx_val start, ptx_val to, ptx_val end)
{
    ptx_fn *f = d->f;
    ptx_val rest = ptx_and(f, end, PIECE - 1);
    ptx_val byte = ptx_add(f, ptx_sub(f, end, rest), d->lane);
    ptx_val has_rest = ptx_ne(f, rest, 0);
    ptx_val is_in_piece = ptx_lt(f, d->lane, PIECE);
    PTX_IF (f, ptx_and(f, has_rest, is_in_piece)) {
        ptx_val value = ptx_var(f, ptx_u32(0));
        PTX_WHEN (f, ptx_lt(f, d->lane, rest)) {
            ptx_set(f, value, ptx_load_hint(f, ptx_at(f, start, byte), PTX_NC | PTX_NO_ALLOCATE));
        }
        ptx_store(f, ptx_at(f, to, byte), value);
    }
}

/* Copies this lane's piece, `offset` bytes on, into shared memory. The wanted bytes begin `before` and end `left` bytes after
 * `from`, both S32. */
static void copy_piece(ptx_fn *f, ptx_val from, ptx_val to, ptx_val before, ptx_val left, uint32_t offset)
{
    left = offset == 0 ? left : ptx_sub(f, left, (int)offset);
    ptx_val is_mine = ptx_gt(f, left, ptx_has_sm(f, 80) ? 0 : PIECE - 1);
    if (offset == 0)
        is_mine = ptx_and(f, is_mine, ptx_lt(f, before, PIECE));
    from = ptx_at_bytes(f, from, offset);
    to = ptx_at_bytes(f, to, offset);
    ptx_val size = ptx_has_sm(f, 80) ? ptx_as(f, PTX_U32, ptx_min(f, left, PIECE)) : left;
    PTX_WHEN (f, is_mine) {
        if (ptx_has_sm(f, 80))
            ptx_cp_async_zfill(f, to, from, PIECE, size, PTX_CG);
        else
            copy_now(f, PIECE, to, from, NULL, PTX_NC | PTX_NO_ALLOCATE);
    }
}

/* Copies the tile's bytes, at most `most` of them, to `to`. Returns the first byte's address: offset from `to` by its global
 * address modulo 32, so that a warp's copies begin at sectors. Up to 15 bytes after the last are 0. From sm_80 on the copies
 * are asynchronous. */
static ptx_val copy_bytes(const dequantize *d, ptx_val to, ptx_val bytes, uint32_t most)
{
    ptx_fn *f = d->f;
    ptx_val address = ptx_address(f, d->packed);
    ptx_val low = ptx_cvt(f, PTX_U32, address);
    ptx_val offset = ptx_and(f, low, SECTOR_BYTES - 1);
    ptx_val sector = ptx_and(f, address, ~(uint64_t)(SECTOR_BYTES - 1));
    ptx_val start = ptx_pointer(f, PTX_GLOBAL, PTX_U8, sector);
    ptx_val end = ptx_add(f, offset, bytes);
    ptx_val mine = ptx_shl(f, d->lane, 4);
    ptx_val from = ptx_cast_ptr(f, ptx_at(f, start, mine), PTX_U32);
    ptx_val piece = ptx_cast_ptr(f, ptx_at(f, to, mine), PTX_U32);
    ptx_val before = ptx_as(f, PTX_S32, ptx_sub(f, offset, mine));
    ptx_val left = ptx_as(f, PTX_S32, ptx_sub(f, end, mine));
    for (uint32_t byte = 0; byte < room_of(most); byte += (uint32_t)PIECE * WARP_LANES)
        copy_piece(f, from, piece, before, left, byte);
    if (!ptx_has_sm(f, 80))
        copy_tail(d, start, to, end);
    return ptx_at(f, to, offset);
}

/* ---- tiles -------------------------------------------------------------------------------------------------------- */

static uint32_t tile_bytes(const weight_format *w)
{
    return (uint32_t)TILE / w->elements * w->bytes;
}

static void copy_and_store(dequantize *d)
{
    ptx_fn *f = d->f;
    const uint32_t most = tile_bytes(d->format), room = room_of(most);
    ptx_val shared = ptx_shared(f, PTX_U8, WARPS * room, SECTOR_BYTES);
    ptx_val to = ptx_at(f, shared, ptx_mul(f, d->warp, room));
    ptx_val bytes = ptx_mul(f, d->blocks, d->format->bytes);
    ptx_val first = copy_bytes(d, to, bytes, most);
    if (ptx_has_sm(f, 80))
        ptx_cp_async_wait_all(f);
    ptx_warp_barrier(f);
    store_tile(d, first);
}

/* Finds tile `tile` of the first row, U32. */
static void find_tile(dequantize *d, ptx_val tile)
{
    ptx_fn *f = d->f;
    const weight_format *w = d->format;
    ptx_val first = ptx_mul_wide(f, tile, TILE);
    ptx_val left = ptx_sub(f, d->n, first);
    ptx_val elements = ptx_cvt(f, PTX_U32, ptx_min(f, left, TILE));
    d->blocks = ptx_div(f, elements, w->elements);
    d->packed = ptx_at(f, d->packed, ptx_mul_wide(f, tile, tile_bytes(w)));
    d->out = ptx_at(f, d->out, first);
}

static void store_nans(dequantize *d)
{
    ptx_fn *f = d->f;
    const bool is_wide = d->type == PTX_F32;
    ptx_val nan = ptx_u32(is_wide ? 0x7fffffff : 0x7fff7fff), words[QUAD] = {nan, nan, nan, nan};
    ptx_val first = ptx_shl(f, d->lane, 2);
    ptx_val elements = ptx_mul(f, d->blocks, d->format->elements);
    PTX_FOR (f, element, first, elements, QUAD * WARP_LANES) {
        ptx_val at = ptx_cast_ptr(f, ptx_at(f, d->out, element), PTX_U32);
        ptx_store_vec(f, is_wide ? QUAD : QUAD / 2, at, words, PTX_CS);
    }
}

/* A tile of row `row` of out; NaNs if its index is out of the tensor's range. */
static void store_row(dequantize *d, ptx_val row, ptx_val tile)
{
    ptx_fn *f = d->f;
    ptx_val from = ptx_warp_uniform(f, ptx_load_hint(f, ptx_at(f, d->index, row), PTX_NC));
    ptx_val wide_row = ptx_cvt(f, PTX_U64, row), wide_from = ptx_cvt(f, PTX_U64, from);
    find_tile(d, tile);
    ptx_val blocks = ptx_div(f, d->n, d->format->elements);
    ptx_val row_bytes = ptx_mul(f, blocks, d->format->bytes);
    d->packed = ptx_at(f, d->packed, ptx_mul(f, wide_from, row_bytes));
    d->out = ptx_at(f, d->out, ptx_mul(f, wide_row, d->n));
    PTX_IF (f, ptx_lt(f, from, d->tensor_rows)) {
        copy_and_store(d);
    }
    PTX_ELSE (f) {
        store_nans(d);
    }
}

/* ---- the kernels -------------------------------------------------------------------------------------------------- */

static void declare_arguments(dequantize *d)
{
    ptx_fn *f = d->f;
    d->packed = ptx_param_ptr(f, PTX_U8, "packed");
    if (d->by_index)
        d->index = ptx_param_ptr(f, PTX_U32, "index");
    d->out = ptx_param_ptr(f, d->type, "out");
    if (d->by_index) {
        d->tensor_rows = ptx_param(f, PTX_U32, "tensor_rows");
        d->rows = ptx_param(f, PTX_U32, "n");
    }
    d->n = ptx_param(f, PTX_U64, d->by_index ? "k" : "n");
}

static void emit(ptx_fn *f, const kiln_variant *v, const weight_format *format, bool by_index)
{
    dequantize d = {.f = f, .format = format, .type = kiln_type(v, "type"), .by_index = by_index};
    declare_arguments(&d);
    d.lane = ptx_laneid(f);
    d.warp = ptx_warpid_x(f);
    ptx_val tile = ptx_mad(f, ptx_ctaid_x(f), WARPS, d.warp);
    ptx_val padded = ptx_add(f, d.n, TILE - 1);
    ptx_val row_tiles = ptx_cvt(f, PTX_U32, ptx_div(f, padded, TILE));
    if (by_index) {
        ptx_val row = ptx_div(f, tile, row_tiles);
        ptx_val tiles_before = ptx_mul(f, row, row_tiles);
        PTX_IF (f, ptx_lt(f, row, d.rows)) {
            store_row(&d, row, ptx_sub(f, tile, tiles_before));
        }
    } else {
        PTX_IF (f, ptx_lt(f, tile, row_tiles)) {
            find_tile(&d, tile);
            copy_and_store(&d);
        }
    }
}

static void emit_tensor(ptx_fn *f, const kiln_variant *v)
{
    emit(f, v, gguf_format(v), false);
}

static void emit_rows(ptx_fn *f, const kiln_variant *v)
{
    emit(f, v, gguf_format(v), true);
}

static void emit_q4k(ptx_fn *f, const kiln_variant *v)
{
    emit(f, v, format_named("q4_k"), false);
}

static void shape(kiln_shape *s, const kiln_variant *v)
{
    (void)v;
    s->block[0] = WARP_LANES * WARPS;
}

/* ---- the families ------------------------------------------------------------------------------------------------- */

/* clang-format off */
#define WIDTH     "select(type == f32, 4, 2)"
#define ROUNDED   "the elements\nrounded to f32, then to the type"
#define SOURCE    "GGUF's formats, as the Python package gguf decodes them"
#define ACCURACY  "bit for bit what PyPI's package gguf decodes in f32, rounded to the type"
#define NONFINITE "IEEE arithmetic: an infinite scale gives a NaN where it multiplies 0; f16 overflows to infinity"
#define TYPE(of)  PARAM(WORD, CONTRACT, "type", "f32 f16 bf16", "f32", "element type of the " of)

static const kiln_param params[] = {
    GGUF_PARAM("format of the quantised blocks, as GGUF calls it"), TYPE("output"), {.name = NULL}};
static const kiln_param q4k_params[] = {TYPE("tensor"), {.name = NULL}};

/* For families that restore a whole tensor. */
#define TENSOR_ARGS(bytes, of_packed, of_out)                             \
    {"packed", KILN_ARG_IN, "u8", bytes, 16, NULL, of_packed},            \
    {"out", KILN_ARG_OUT, "$type", "n", 16, NULL, of_out},                \
    {"n", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements"},              \
    {.name = NULL}
#define TENSOR_RULES(elements, text)                                      \
    {"n % " elements " == 0", "n must be a multiple of " text},           \
    {"n <= 1099511627776", "n must be at most 2^40"},                     \
    {NULL, NULL}
#define TENSOR_BYTES "n * " GGUF_BYTES " / 256"
#define Q4K_BYTES    "n / 256 * 144"
#define BLOCK        "a block's elements, 32 or 256"

static const kiln_arg tensor_args[] = {TENSOR_ARGS(TENSOR_BYTES, "quantised blocks, as a GGUF file has them", ROUNDED)};
static const kiln_arg q4k_args[] = {
    TENSOR_ARGS(Q4K_BYTES, "super-blocks of 144 bytes, as a GGUF file has them",
                "d * scale * code - dmin * minimum\nrounded to f32, then to the type")};
static const kiln_arg rows_args[] = {
    {"packed", KILN_ARG_IN, "u8", "tensor_rows, k * " GGUF_BYTES " / 256", 16, NULL, "quantised blocks, as a GGUF file has them, row after row"},
    {"index", KILN_ARG_IN, "u32", "n", 4, NULL, "row of the tensor for each row of out\ni32 of at least 0 also serve: they have the same bits"},
    {"out", KILN_ARG_OUT, "$type", "n, k", 16, NULL, ROUNDED},
    {"tensor_rows", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of the tensor"},
    {"n", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows of out"},
    {"k", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements of a row"},
    {.name = NULL},
};

static const kiln_rule tensor_rules[] = {TENSOR_RULES(GGUF_ELEMENTS, BLOCK)};
static const kiln_rule q4k_rules[] = {TENSOR_RULES("256", "256")};
static const kiln_rule rows_rules[] = {
    {"k % " GGUF_ELEMENTS " == 0", "k must be a multiple of " BLOCK},
    {"k <= 2147483648", "k must be at most 2^31"},
    {"n * ceil_div(k, 2048) <= 2147483648", "n * ceil(k / 2048) must be at most 2^31"},
    {NULL, NULL},
};

static const kiln_value tensor_example[] = {{"n", "4096"}, {.arg = NULL}};
static const kiln_value rows_example[] = {{"tensor_rows", "128"}, {"n", "4"}, {"k", "1024"}, {.arg = NULL}};

/* q4k_dequantize calls gguf_dequantize with a fixed format, with its own texts. */
#define TENSOR(bytes)                                                                                     \
    .empty = "n == 0", .example = tensor_example, .shape = shape, .grid = {"ceil_div(n, 16384)"},         \
    .cost = {.bytes_read = bytes, .bytes_written = "n * " WIDTH, .elements = "n"}, .min_sm = 75
/* clang-format on */

const kiln_family gguf_dequantize_family = {
    .name = "gguf_dequantize",
    .summary = "turn GGUF's quantised blocks back into a tensor",
    .source = SOURCE,
    .accuracy = ACCURACY,
    .nonfinite = NONFINITE,
    .params = params,
    .args = tensor_args,
    .rules = tensor_rules,
    TENSOR(TENSOR_BYTES),
    .emit = emit_tensor,
};

const kiln_family q4k_dequantize_family = {
    .name = "q4k_dequantize",
    .summary = "turn GGUF Q4_K super-blocks back into a tensor",
    .source = "GGUF's Q4_K, as the Python package gguf decodes it",
    .accuracy =
        "bit for bit d * scale * code - dmin * minimum, computed exactly, rounded to f32 and then to the type",
    .nonfinite =
        "IEEE arithmetic: an infinite d gives a NaN where scale or code is 0; f16 overflows to infinity",
    .params = q4k_params,
    .args = q4k_args,
    .rules = q4k_rules,
    TENSOR(Q4K_BYTES),
    .emit = emit_q4k,
};

const kiln_family gguf_rows_family = {
    .name = "gguf_rows",
    .summary = "look up rows of a GGUF tensor by index, for embeddings",
    .source = SOURCE,
    .accuracy = ACCURACY,
    .nonfinite =
        "a row whose index is not below tensor_rows becomes NaNs, and nothing is read for it. For other rows " NONFINITE,
    .params = params,
    .args = rows_args,
    .rules = rows_rules,
    .empty = "n == 0 || k == 0",
    .example = rows_example,
    .shape = shape,
    .grid = {"ceil_div(n * ceil_div(k, 2048), 8)"},
    .cost = {.bytes_read = "n * (k * " GGUF_BYTES " / 256 + 4)",
             .bytes_written = "n * k * " WIDTH,
             .elements = "n * k"},
    .min_sm = 75,
    .emit = emit_rows,
};
