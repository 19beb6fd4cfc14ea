/* GGUF's Q4_K: super-blocks of 256 elements in 144 bytes, back to a tensor.
 *
 * LAYOUT of a super-block: d and dmin, f16, at 0 and 2; 12 bytes of 6-bit scales and minima, for 8 sub-blocks of 32
 * elements, at 4; 128 bytes of codes at 16. Word w of the codes (4 bytes) has elements 64*(w/8) + 4*(w%8) and the next
 * three in its low nibbles, and those 32 further in its high ones.
 *
 * GEOMETRY. A warp has a tile of 8 super-blocks: 1152 bytes, 36 whole sectors; one super-block is 4.5 of them. It loads
 * the tile as 9 rows of 32 words, each byte once. Then lane l takes word l of the codes of super-block s, for each s. Lane
 * l + 4*s + 4 has that word in row s, or, past lane 31, lane l + 4*s - 28 in row s + 1. A lane's own number tells which of
 * the two rows it has to give, so one shuffle is enough. Lane 4*s + k has word k of the header of super-block s, in row s,
 * and decodes scale and minimum of sub-blocks 2k and 2k + 1 for all lanes.
 *
 * ARITHMETIC. d * scale has 17 bits, times a code 21, dmin * minimum has 17: exact in f32. The fma is the only rounding.
 */
#include "q4k.h"
#include "narrow.h"
#include <kiln/author/families.h>

enum {
    ROWS = Q4K_TILE_BLOCKS * Q4K_BLOCK_WORDS / 32,
    WARPS = 8, /* per thread block */
    LOAD_HINTS = PTX_NC | PTX_NO_ALLOCATE
};

/* A warp's tile. */
typedef struct tile {
    ptx_fn *f;
    ptx_type type; /* of the tensor */
    bool has_sm_80;
    ptx_val lane;
    ptx_val first;       /* its first super-block, U64 */
    ptx_val blocks;      /* super-blocks that it has, at most Q4K_TILE_BLOCKS, U32 */
    ptx_val row[ROWS];   /* this lane's words */
    q4k_numbers numbers; /* of two sub-blocks; see above */
} tile;

/* ---- loading ------------------------------------------------------------------------------------------------------ */

static ptx_val find_tile(tile *t, ptx_val all_blocks)
{
    ptx_fn *f = t->f;
    t->lane = ptx_laneid(f);
    ptx_val warp = ptx_warpid_x(f);
    ptx_val block = ptx_ctaid_x(f);
    ptx_val index = ptx_mad(f, block, ptx_u32(WARPS), warp);
    t->first = ptx_mul_wide(f, index, ptx_u32(Q4K_TILE_BLOCKS));
    return ptx_lt(f, t->first, all_blocks);
}

static void load_rows(tile *t, ptx_val packed, ptx_val all_blocks)
{
    ptx_fn *f = t->f;
    ptx_val left = ptx_sub(f, all_blocks, t->first);
    ptx_val capped = ptx_min(f, left, ptx_u64(Q4K_TILE_BLOCKS));
    t->blocks = ptx_cvt(f, PTX_U32, capped);
    ptx_val byte = ptx_mul(f, t->first, ptx_u64(Q4K_BLOCK_BYTES));
    ptx_val tile_at = ptx_cast_ptr(f, ptx_at(f, packed, byte), PTX_U32);
    ptx_val at = ptx_at(f, tile_at, t->lane);
    for (uint32_t i = 0; i < ROWS; i++)
        t->row[i] = ptx_declare(f, PTX_U32);
    ptx_val is_full = ptx_eq(f, t->blocks, ptx_u32(Q4K_TILE_BLOCKS));
    PTX_IF (f, is_full) {
        for (uint32_t i = 0; i < ROWS; i++)
            ptx_set(f, t->row[i], ptx_load_hint(f, ptx_at_const(f, at, 32 * i), LOAD_HINTS));
    }
    PTX_ELSE (f) {
        ptx_val words = ptx_mul(f, t->blocks, ptx_u32(Q4K_BLOCK_WORDS));
        ptx_val to_end = ptx_as(f, PTX_S32, ptx_sub(f, words, t->lane));
        for (uint32_t i = 0; i < ROWS; i++) {
            ptx_val in_bounds = ptx_gt(f, to_end, ptx_s32(32 * (int)i));
            ptx_set(f, t->row[i], ptx_u32(0));
            PTX_WHEN (f, in_bounds) {
                ptx_set(f, t->row[i], ptx_load_hint(f, ptx_at_const(f, at, 32 * i), LOAD_HINTS));
            }
        }
    }
}

/* ---- scales and minima -------------------------------------------------------------------------------------------- */

/* This lane's word of row lane / 4. */
static ptx_val own_header_word(tile *t)
{
    ptx_fn *f = t->f;
    ptx_val row = ptx_shr(f, t->lane, ptx_u32(2)), own = t->row[0];
    for (uint32_t i = 1; i < Q4K_TILE_BLOCKS; i++) {
        ptx_val is_here = ptx_eq(f, row, ptx_u32(i));
        own = ptx_select(f, is_here, t->row[i], own);
    }
    return own;
}

/* In each byte: a scale (or minimum) of sub-blocks 0 to 3 is the low six bits of `low`. One of 4 to 7 is four bits of
 * `last`, already a nibble, and above them the high two bits of `low`. */
static ptx_val six_bits(ptx_fn *f, ptx_val low, ptx_val last, ptx_val is_late)
{
    ptx_val early = ptx_and(f, low, ptx_u32(0x3f3f3f3f));
    ptx_val four = ptx_and(f, last, ptx_u32(0x0f0f0f0f));
    ptx_val moved = ptx_shr(f, low, ptx_u32(2));
    ptx_val two = ptx_and(f, moved, ptx_u32(0x30303030));
    ptx_val late = ptx_or(f, two, four);
    return ptx_select(f, is_late, late, early);
}

/* Multiplies each of two neighbouring bytes by the factor. */
static void multiply_bytes(ptx_fn *f, ptx_val bytes, ptx_val shift, ptx_val factor, ptx_val product[2])
{
    ptx_val two = ptx_shr(f, bytes, shift);
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val byte = ptx_bfe(f, two, ptx_u32(8 * i), ptx_u32(8));
        ptx_val number = ptx_cvt(f, PTX_F32, byte);
        product[i] = ptx_mul(f, factor, number);
    }
}

q4k_numbers q4k_decode_header(ptx_fn *f, ptx_val lane, const ptx_val word[Q4K_HEADER_WORDS])
{
    q4k_numbers numbers;
    ptx_val halves[2];
    ptx_val late_bit = ptx_and(f, lane, ptx_u32(2));
    ptx_val is_late = ptx_ne(f, late_bit, ptx_u32(0));
    ptx_val odd = ptx_and(f, lane, ptx_u32(1));
    ptx_val shift = ptx_shl(f, odd, ptx_u32(4));
    ptx_val high_nibbles = ptx_shr(f, word[3], ptx_u32(4));
    ptx_val scales = six_bits(f, word[1], word[3], is_late);
    ptx_val minima = six_bits(f, word[2], high_nibbles, is_late);
    ptx_unpack(f, PTX_F16, 2, halves, word[0]);
    ptx_val d = ptx_cvt(f, PTX_F32, halves[0]);
    ptx_val dmin = ptx_cvt(f, PTX_F32, halves[1]);
    ptx_val minus_dmin = ptx_neg(f, dmin);
    multiply_bytes(f, scales, shift, d, numbers.scale);
    multiply_bytes(f, minima, shift, minus_dmin, numbers.minimum);
    return numbers;
}

static void decode_header(tile *t)
{
    ptx_val own = own_header_word(t), word[Q4K_HEADER_WORDS];
    for (uint32_t i = 0; i < Q4K_HEADER_WORDS; i++)
        word[i] = ptx_shfl_idx_in(t->f, own, ptx_u32(i), Q4K_HEADER_WORDS);
    t->numbers = q4k_decode_header(t->f, t->lane, word);
}

/* ---- elements ----------------------------------------------------------------------------------------------------- */

/* This lane's word of the codes of super-block s of the tile. */
static ptx_val codes_of(tile *t, uint32_t s)
{
    ptx_fn *f = t->f;
    uint32_t ahead = Q4K_HEADER_WORDS * (s + 1);
    if (ahead == 32)
        return t->row[s + 1];
    ptx_val is_first = ptx_ge(f, t->lane, ptx_u32(ahead));
    ptx_val asked = ptx_select(f, is_first, t->row[s], t->row[s + 1]);
    ptx_val from = ptx_add(f, t->lane, ptx_u32(ahead)); /* the shuffle takes it modulo 32 */
    return ptx_shfl_idx(f, asked, from);
}

ptx_val q4k_nibbles(ptx_fn *f, ptx_val word, uint32_t half)
{
    ptx_val low = half == 0 ? word : ptx_shr(f, word, ptx_u32(4));
    return ptx_and(f, low, ptx_u32(0x0f0f0f0f));
}

/* 2^23 + code is a float whose low bits are the code. */
ptx_val q4k_code(ptx_fn *f, ptx_val nibbles, uint32_t i)
{
    ptx_val raised = ptx_prmt(f, nibbles, ptx_u32(0x4b000000), ptx_u32(0x7440 + i));
    return ptx_sub(f, ptx_as(f, PTX_F32, raised), ptx_f32(0x1p23f));
}

static void store_four(tile *t, ptx_val at, ptx_val nibbles, ptx_val scale, ptx_val minimum)
{
    ptx_fn *f = t->f;
    ptx_val x[Q4K_CODES], words[Q4K_CODES / 2];
    for (uint32_t i = 0; i < Q4K_CODES; i++) {
        ptx_val code = q4k_code(f, nibbles, i);
        x[i] = ptx_fma(f, scale, code, minimum);
    }
    if (t->type == PTX_F32) {
        ptx_store_vec(f, Q4K_CODES, at, x, PTX_CS);
        return;
    }
    for (uint32_t i = 0; i < Q4K_CODES / 2; i++)
        words[i] = narrow_pair(f, t->type, t->has_sm_80, x[2 * i], x[2 * i + 1]);
    ptx_store_vec(f, Q4K_CODES / 2, ptx_cast_ptr(f, at, PTX_U32), words, PTX_CS);
}

/* `at`: this lane's first element of the tile; `pair`: its lane / 8. */
static void store_block(tile *t, ptx_val at, ptx_val pair, uint32_t s)
{
    ptx_fn *f = t->f;
    ptx_val codes = codes_of(t, s);
    ptx_val from = s == 0 ? pair : ptx_add(f, pair, ptx_u32(Q4K_HEADER_WORDS * s));
    for (uint32_t half = 0; half < 2; half++) {
        ptx_val nibbles = q4k_nibbles(f, codes, half);
        ptx_val scale = ptx_shfl_idx(f, t->numbers.scale[half], from);
        ptx_val minimum = ptx_shfl_idx(f, t->numbers.minimum[half], from);
        store_four(t, ptx_at_const(f, at, Q4K_BLOCK_ELEMENTS * s + 32 * half), nibbles, scale, minimum);
    }
}

static void store_tile(tile *t, ptx_val out)
{
    ptx_fn *f = t->f;
    ptx_val pair = ptx_shr(f, t->lane, ptx_u32(3));
    ptx_val in_pair = ptx_and(f, t->lane, ptx_u32(7));
    ptx_val pair_offset = ptx_shl(f, pair, ptx_u32(6));
    ptx_val offset = ptx_mad(f, in_pair, ptx_u32(Q4K_CODES), pair_offset);
    ptx_val element = ptx_shl(f, t->first, ptx_u32(8));
    ptx_val tile_at = ptx_at(f, out, element);
    ptx_val at = ptx_at(f, tile_at, offset);
    for (uint32_t s = 0; s < Q4K_TILE_BLOCKS; s++) {
        ptx_val in_bounds = ptx_gt(f, t->blocks, ptx_u32(s));
        PTX_IF (f, in_bounds) {
            store_block(t, at, pair, s);
        }
    }
}

static void emit_dequantize(ptx_fn *f, const kiln_variant *v)
{
    tile t = {.f = f, .type = kiln_type(v, "type"), .has_sm_80 = kiln_has_sm(v, 80)};
    ptx_val packed = ptx_param_ptr(f, PTX_U8, "packed");
    ptx_val out = ptx_param_ptr(f, t.type, "out");
    ptx_val n = ptx_param(f, PTX_U64, "n");
    ptx_val all_blocks = ptx_shr(f, n, ptx_u32(8));
    ptx_val in_bounds = find_tile(&t, all_blocks);
    PTX_IF (f, in_bounds) {
        load_rows(&t, packed, all_blocks);
        decode_header(&t);
        store_tile(&t, out);
    }
}

/* ---- the family --------------------------------------------------------------------------------------------------- */

#define BLOCKS "n / 256"
#define GRID   "ceil_div(n, 16384)"

static void shape(kiln_shape *s, const kiln_variant *v)
{
    (void)v;
    s->block[0] = 256;
}

static const kiln_param params[] = {
    {.name = "type",
     .type = KILN_PARAM_WORD,
     .role = KILN_ROLE_CONTRACT,
     .words = "f32 f16 bf16",
     .default_value = "f32",
     .summary = "element type of the tensor"},
    {.name = NULL},
};

static const kiln_arg args[] = {
    {"packed", KILN_ARG_IN, "u8", "n / 256 * 144", 16, NULL,
     "super-blocks of 144 bytes, as a GGUF file has them"},
    {"out", KILN_ARG_OUT, "$type", "n", 16, NULL,
     "d * scale * code - dmin * minimum, rounded to f32, then to the type"},
    {"n", KILN_ARG_VALUE, "u64", NULL, 0, NULL, "elements"},
    {.name = NULL},
};

static const kiln_rule rules[] = {
    {"n % 256 == 0", "n must be a multiple of 256"},
    {"n <= 1099511627776", "n must be at most 2^40"},
    {NULL, NULL},
};

const kiln_family q4k_dequantize_family = {
    .name = "q4k_dequantize",
    .summary = "turn GGUF Q4_K super-blocks back into a tensor",
    .source = "GGUF's Q4_K, as the Python package gguf decodes it",
    .accuracy =
        "bit for bit d * scale * code - dmin * minimum, computed exactly, rounded to f32 and then to the type",
    .nonfinite =
        "IEEE arithmetic: an infinite d gives a NaN where scale or code is 0; f16 overflows to infinity",
    .params = params,
    .args = args,
    .rules = rules,
    .empty = "n == 0",
    .shape = shape,
    .grid = {GRID},
    .cost = {.bytes_read = BLOCKS " * 144",
             .bytes_written = "n * select(type == f32, 4, 2)",
             .elements = "n"},
    .min_sm = 75,
    .emit = emit_dequantize,
};
