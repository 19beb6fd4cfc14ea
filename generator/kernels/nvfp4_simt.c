/* c = A * b in NVFP4 on the units for single numbers.
 *
 * GEOMETRY. A thread block has 8 warps: `warps` of them share `rows` rows of one batch, each taking every warps-th step
 * along k. In a step a lane has the 32 (or 16) codes of one 16-byte (or 8-byte) load of each row, and a warp's loads are
 * linear. b is decoded once per thread block into shared memory, up to NVFP4_DEPTH codes at a time, step by step: planes of
 * 16 bytes for each lane, so that the lanes' reads meet no bank twice, and behind them each lane's scales. Beyond the end
 * of b there are zeros, which lanes without codes of their own multiply by the row's last ones.
 *
 * ARITHMETIC. software: bytes of twice the codes, whose 16 products dp4a adds to four times a block's sum. hardware: pairs of
 * f16, whose 8 sums of each half fit in f16 exactly. The product of two scales, times 1/4, is exact in f16, and so is its
 * product with a block's sum in f32; only the sum over the blocks rounds.
 */
#include "kernels.h"
#include "narrow.h"
#include "nvfp4.h"

enum { WARPS = NVFP4_THREADS / 32, MOST_ROWS = 4, MOST_UNROLL = 4, MOST_WORDS = 4, MOST_BLOCKS = 2 };

/* A variant while it is emitted. */
typedef struct gemv {
    ptx_fn *f;
    ptx_type c_type;
    uint32_t sm;
    bool is_hardware;
    uint32_t lane_codes, rows, warps;
    uint32_t unroll;     /* steps whose loads go out together */
    uint32_t words;      /* of a row's codes per lane and step */
    uint32_t blocks;     /* the same in blocks of 16 */
    uint32_t planes;     /* of b's decoded codes */
    uint32_t step_bytes; /* of b in shared memory */
    ptx_val a, sfa, b, sfb, c, m, k, l, b_rows;
    ptx_val tid, lane, slice, shared;
    ptx_val first_row; /* of this warp */
    ptx_val batch;
    ptx_val a_at[MOST_ROWS], sfa_at[MOST_ROWS]; /* where the rows begin: addresses */
    ptx_val sum[MOST_ROWS], marks[MOST_ROWS];
} gemv;

/* A lane's codes and scales of one row and step. */
typedef struct piece {
    ptx_val word[MOST_WORDS], scales;
} piece;

/* The same of b, decoded. */
typedef struct vector_piece {
    ptx_val value[4 * MOST_WORDS]; /* as a word of codes needs them: two words of bytes, or four pairs */
    ptx_val scales;                /* F16X2 */
} vector_piece;

/* Of 1, 2, 4 or 8. */
static uint32_t log2_of(uint32_t power)
{
    return power == 8 ? 3 : power / 2;
}

/* ---- b ------------------------------------------------------------------------------------------------------------ */

/* Where block q of a chunk lies: its codes' first plane, its scale. */
static void place_block(gemv *g, ptx_val q, ptx_val *codes, ptx_val *scale)
{
    ptx_fn *f = g->f;
    uint32_t step_blocks = 32 * g->blocks, shift = g->blocks == 2 ? 6 : 5;
    ptx_val step = ptx_shr(f, q, ptx_u32(shift));
    ptx_val in_step = ptx_and(f, q, ptx_u32(step_blocks - 1));
    ptx_val step_at = ptx_at(f, g->shared, ptx_mul(f, step, ptx_u32(g->step_bytes)));
    ptx_val lane = g->blocks == 2 ? ptx_shr(f, in_step, ptx_u32(1)) : in_step;
    ptx_val of_lane = ptx_shl(f, lane, ptx_u32(4));
    *codes = ptx_at(f, step_at, of_lane);
    if (g->blocks == 2) {
        ptx_val half = ptx_and(f, in_step, ptx_u32(1));
        *codes = ptx_at(f, *codes, ptx_mul(f, half, ptx_u32(512 * g->planes / 2)));
    }
    *codes = ptx_cast_ptr(f, *codes, PTX_U32);
    ptx_val scale_byte = ptx_shl(f, in_step, ptx_u32(1));
    ptx_val scale_at = ptx_at_bytes(f, ptx_at(f, step_at, scale_byte), 512 * g->planes);
    *scale = ptx_cast_ptr(f, scale_at, PTX_U16);
}

/* 16 codes, in two words. */
static void store_block(gemv *g, const ptx_val word[2], ptx_val at)
{
    ptx_fn *f = g->f;
    ptx_val value[4];
    for (uint32_t w = 0; w < 2; w++) {
        if (g->is_hardware) {
            nvfp4_halves(f, word[w], value);
            for (uint32_t i = 0; i < 4; i++)
                value[i] = ptx_as(f, PTX_U32, value[i]);
            ptx_store_vec(f, 4, ptx_at_bytes(f, at, 512 * w), value, PTX_PLAIN);
            continue;
        }
        nvfp4_bytes bytes = nvfp4_split(f, word[w]);
        for (uint32_t half = 0; half < 2; half++)
            value[2 * w + half] = nvfp4_signed(f, &bytes, half);
    }
    if (!g->is_hardware)
        ptx_store_vec(f, 4, at, value, PTX_PLAIN);
}

/* Decodes the steps that begin with code `first`, and zeros behind the last up to a whole turn of all warps. */
static void decode_vector(gemv *g, ptx_val first, ptx_val steps)
{
    ptx_fn *f = g->f;
    uint32_t turn = g->warps * g->unroll;
    ptx_val rounded = ptx_add(f, steps, ptx_u32(turn - 1));
    ptx_val filled = ptx_and(f, rounded, ptx_u32(~(turn - 1)));
    ptx_val end = ptx_mul(f, filled, ptx_u32(32 * g->blocks));
    ptx_val skipped = ptx_shr(f, first, ptx_u32(4));
    ptx_val all = ptx_shr(f, g->k, ptx_u32(4));
    ptx_val left = ptx_sub(f, all, skipped);
    ptx_val vector_row = ptx_mul_wide(f, g->batch, g->b_rows);
    ptx_val row_block = ptx_mul(f, vector_row, ptx_cvt(f, PTX_U64, all));
    ptx_val block = ptx_add(f, row_block, ptx_cvt(f, PTX_U64, skipped));
    ptx_val scales_at = ptx_at(f, g->sfb, block);
    ptx_val codes_at = ptx_at(f, g->b, ptx_shl(f, block, ptx_u32(3)));
    PTX_FOR (f, q, g->tid, end, ptx_u32(NVFP4_THREADS)) {
        ptx_val word[2], loaded[2], codes, scale_at;
        ptx_val raw = ptx_var(f, ptx_u32(0));
        for (uint32_t w = 0; w < 2; w++)
            word[w] = ptx_var(f, ptx_u32(0));
        ptx_val from = ptx_cast_ptr(f, ptx_at(f, codes_at, ptx_shl(f, q, ptx_u32(3))), PTX_U32);
        ptx_val scale_from = ptx_at(f, scales_at, q);
        ptx_val exists = ptx_lt(f, q, left);
        PTX_WHEN (f, exists) {
            ptx_load_vec(f, 2, loaded, from, PTX_NC);
            ptx_set(f, raw, ptx_load_hint(f, scale_from, PTX_NC));
            for (uint32_t w = 0; w < 2; w++)
                ptx_set(f, word[w], loaded[w]);
        }
        place_block(g, q, &codes, &scale_at);
        store_block(g, word, codes);
        ptx_store(f, scale_at, nvfp4_vector_scale(f, g->sm, raw));
    }
}

static vector_piece load_vector(gemv *g, ptx_val at, ptx_val scales_at)
{
    ptx_fn *f = g->f;
    vector_piece v;
    for (uint32_t i = 0; i < g->planes; i++)
        ptx_load_vec(f, 4, &v.value[4 * i], ptx_at_bytes(f, at, 512 * i), PTX_PLAIN);
    ptx_val scales = g->blocks == 2 ? ptx_load(f, ptx_cast_ptr(f, scales_at, PTX_U32))
                                    : ptx_load_as(f, PTX_U32, ptx_cast_ptr(f, scales_at, PTX_U16), PTX_PLAIN);
    v.scales = ptx_as(f, PTX_F16X2, scales);
    return v;
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

/* Adds the products of a block, whose codes are in two words. */
static void add_bytes(gemv *g, ptx_val sum, const ptx_val word[2], const ptx_val value[4], ptx_val scale)
{
    ptx_fn *f = g->f;
    ptx_val positive = ptx_s32(0), negative = ptx_s32(0);
    for (uint32_t w = 0; w < 2; w++) {
        nvfp4_bytes bytes = nvfp4_split(f, word[w]);
        for (uint32_t half = 0; half < 2; half++) {
            ptx_val of_b = ptx_as(f, PTX_S32, value[2 * w + half]);
            positive = ptx_dp4a_us(f, bytes.positive[half], of_b, positive);
            negative = ptx_dp4a_us(f, bytes.negative[half], of_b, negative);
        }
    }
    ptx_val whole = ptx_sub(f, positive, negative);
    ptx_val total = ptx_cvt(f, PTX_F32, whole);
    ptx_fma_to(f, sum, ptx_cvt(f, PTX_F32, scale), total);
}

static void add_halves(gemv *g, ptx_val sum, const ptx_val word[2], const ptx_val value[8], ptx_val scale)
{
    ptx_fn *f = g->f;
    ptx_val pairs[8], total, halves[2];
    for (uint32_t w = 0; w < 2; w++)
        nvfp4_halves(f, word[w], &pairs[4 * w]);
    for (uint32_t i = 0; i < 8; i++) {
        ptx_val of_b = ptx_as(f, PTX_F16X2, value[i]);
        total = i == 0 ? ptx_mul(f, pairs[i], of_b) : ptx_fma(f, pairs[i], of_b, total);
    }
    ptx_unpack(f, PTX_F16, 2, halves, total);
    for (uint32_t i = 0; i < 2; i++)
        ptx_set(f, sum, ptx_fma_mixed(f, halves[i], scale, sum));
}

static void multiply(gemv *g, uint32_t r, const piece *p, const vector_piece *v)
{
    ptx_fn *f = g->f;
    ptx_val halves[2];
    nvfp4_scales scales = nvfp4_widen_scales(f, g->sm, p->scales);
    if (g->sm < 89)
        ptx_or_to(f, g->marks[r], scales.marks);
    ptx_val product = ptx_mul(f, scales.pair, v->scales);
    ptx_unpack(f, PTX_F16, 2, halves, product);
    for (uint32_t i = 0; i < g->blocks; i++) {
        if (g->is_hardware)
            add_halves(g, g->sum[r], &p->word[2 * i], &v->value[8 * i], halves[i]);
        else
            add_bytes(g, g->sum[r], &p->word[2 * i], &v->value[4 * i], halves[i]);
    }
}

/* ---- rows --------------------------------------------------------------------------------------------------------- */

static piece load_piece(gemv *g, uint32_t r, ptx_val group)
{
    ptx_fn *f = g->f;
    piece p;
    const int hints = PTX_NC | PTX_NO_ALLOCATE;
    ptx_val at = ptx_mad_wide(f, group, ptx_u32(g->lane_codes / 2), g->a_at[r]);
    ptx_load_vec(f, (int)g->words, p.word, ptx_pointer(f, PTX_GLOBAL, PTX_U32, at), hints);
    ptx_val scales_at = ptx_mad_wide(f, group, ptx_u32(g->blocks), g->sfa_at[r]);
    ptx_val pointer = ptx_pointer(f, PTX_GLOBAL, g->blocks == 2 ? PTX_U16 : PTX_U8, scales_at);
    p.scales = g->sm >= 89 ? ptx_load_hint(f, pointer, hints) : ptx_load_as(f, PTX_U32, pointer, hints);
    return p;
}

/* The groups of the chunk that begins with code `first`, this warp's share. */
static void multiply_chunk(gemv *g, ptx_val first, ptx_val steps)
{
    ptx_fn *f = g->f;
    uint32_t shift = g->lane_codes == 32 ? 5 : 4;
    ptx_val first_group = ptx_add(f, ptx_shr(f, first, ptx_u32(shift)), g->lane);
    ptx_val last = ptx_sub(f, ptx_shr(f, g->k, ptx_u32(shift)), ptx_u32(1));
    ptx_val codes = ptx_at(f, g->shared, ptx_shl(f, g->lane, ptx_u32(4)));
    ptx_val scales = ptx_at(f, g->shared, ptx_shl(f, g->lane, ptx_u32(g->blocks)));
    PTX_FOR (f, step, g->slice, steps, ptx_u32(g->warps * g->unroll)) {
        piece p[MOST_UNROLL][MOST_ROWS];
        ptx_val group = ptx_mad(f, step, ptx_u32(32), first_group);
        for (uint32_t u = 0; u < g->unroll; u++) {
            ptx_val ahead = u == 0 ? group : ptx_add(f, group, ptx_u32(32 * g->warps * u));
            ptx_val present = ptx_min(f, ahead, last);
            for (uint32_t r = 0; r < g->rows; r++)
                p[u][r] = load_piece(g, r, present);
        }
        ptx_val offset = ptx_mul(f, step, ptx_u32(g->step_bytes));
        ptx_val codes_at = ptx_cast_ptr(f, ptx_at(f, codes, offset), PTX_U32);
        ptx_val scales_at = ptx_at_bytes(f, ptx_at(f, scales, offset), 512 * g->planes);
        for (uint32_t u = 0; u < g->unroll; u++) {
            uint32_t bytes = u * g->warps * g->step_bytes;
            vector_piece v =
                load_vector(g, ptx_at_bytes(f, codes_at, bytes), ptx_at_bytes(f, scales_at, bytes));
            for (uint32_t r = 0; r < g->rows; r++)
                multiply(g, r, &p[u][r], &v);
        }
    }
}

/* Where the rows are; rows beyond the last are the last. The lines that come first are asked for before b is decoded. */
static void begin_rows(gemv *g)
{
    ptx_fn *f = g->f;
    ptx_val last = ptx_sub(f, g->m, ptx_u32(1));
    ptx_val row_bytes = ptx_cvt(f, PTX_U64, ptx_shr(f, g->k, ptx_u32(1)));
    ptx_val a = ptx_address(f, g->a);
    ptx_val sfa = ptx_address(f, g->sfa);
    ptx_val place = ptx_mad(f, g->slice, ptx_u32(32), g->lane);
    for (uint32_t r = 0; r < g->rows; r++) {
        ptx_val row = r == 0 ? g->first_row : ptx_add(f, g->first_row, ptx_u32(r));
        ptx_val present = ptx_min(f, row, last);
        ptx_val index = ptx_mad_wide(f, g->batch, g->m, ptx_cvt(f, PTX_U64, present));
        ptx_val byte = ptx_mul(f, index, row_bytes);
        g->a_at[r] = ptx_add(f, a, byte);
        g->sfa_at[r] = ptx_add(f, sfa, ptx_shr(f, byte, ptx_u32(3)));
        ptx_val line = ptx_mad_wide(f, place, ptx_u32(g->lane_codes / 2), g->a_at[r]);
        ptx_prefetch_l2(f, ptx_pointer(f, PTX_GLOBAL, PTX_U8, line));
        g->sum[r] = ptx_var(f, ptx_f32(0));
        if (g->sm < 89)
            g->marks[r] = ptx_var(f, ptx_u32(0));
    }
}

static void store_sum(gemv *g, ptx_val sum, ptx_val row, ptx_val is_here)
{
    ptx_fn *f = g->f;
    ptx_val index = ptx_mad_wide(f, g->batch, g->m, ptx_cvt(f, PTX_U64, row));
    ptx_val at = ptx_at(f, g->c, index);
    if (g->c_type == PTX_BF16 && g->sm < 80) {
        sum = ptx_shr(f, narrow_to_bf16(f, sum), ptx_u32(16));
        at = ptx_cast_ptr(f, at, PTX_U16);
    } else if (g->c_type != PTX_F32) {
        sum = ptx_cvt(f, g->c_type, sum);
    }
    ptx_val exists = ptx_lt(f, row, g->m);
    ptx_val stores = ptx_and(f, exists, is_here);
    PTX_WHEN (f, stores) {
        ptx_store(f, at, sum);
    }
}

/* The warps of a row add in the order of their slices, one thread for each row of the thread block. */
static void join_warps(gemv *g, ptx_val thread_block_row)
{
    ptx_fn *f = g->f;
    uint32_t block_rows = WARPS / g->warps * g->rows;
    ptx_val partial = ptx_shared(f, PTX_F32, WARPS * MOST_ROWS, 16);
    ptx_val mine = ptx_at(f, partial, ptx_mul(f, ptx_warpid_x(f), ptx_u32(g->rows)));
    ptx_val is_first = ptx_eq(f, g->lane, ptx_u32(0));
    PTX_WHEN (f, is_first) {
        for (uint32_t r = 0; r < g->rows; r++)
            ptx_store(f, ptx_at_const(f, mine, (int)r), g->sum[r]);
    }
    ptx_barrier(f);
    ptx_val is_here = ptx_lt(f, g->tid, ptx_u32(block_rows));
    PTX_IF (f, is_here) {
        ptx_val of_warps = ptx_shr(f, g->tid, ptx_u32(log2_of(g->rows)));
        ptx_val in_warps = ptx_and(f, g->tid, ptx_u32(g->rows - 1));
        ptx_val from = ptx_at(f, partial, ptx_mad(f, of_warps, ptx_u32(g->warps * g->rows), in_warps));
        ptx_val sum = ptx_var(f, ptx_load(f, from));
        for (uint32_t s = 1; s < g->warps; s++) {
            ptx_val part = ptx_load(f, ptx_at_const(f, from, (int)(s * g->rows)));
            ptx_add_to(f, sum, part);
        }
        ptx_val row = ptx_add(f, thread_block_row, g->tid);
        store_sum(g, sum, row, is_here);
    }
}

static void end_rows(gemv *g, ptx_val thread_block_row)
{
    ptx_fn *f = g->f;
    for (uint32_t r = 0; r < g->rows; r++) {
        ptx_val sum = g->sum[r];
        if (g->sm < 89) {
            ptx_val marked = ptx_and(f, g->marks[r], ptx_u32(NVFP4_NAN_MARKS));
            ptx_val is_nan = ptx_ne(f, marked, ptx_u32(0));
            sum = ptx_select(f, is_nan, ptx_bits(PTX_F32, 0x7fffffff), sum);
        }
        g->sum[r] = ptx_reduce_lanes(f, PTX_OP_ADD, 32, sum);
    }
    if (g->warps > 1) {
        join_warps(g, thread_block_row);
        return;
    }
    ptx_val own = g->sum[0];
    for (uint32_t r = 1; r < g->rows; r++) {
        ptx_val is_own = ptx_eq(f, g->lane, ptx_u32(r));
        own = ptx_select(f, is_own, g->sum[r], own);
    }
    ptx_val is_here = ptx_lt(f, g->lane, ptx_u32(g->rows));
    store_sum(g, own, ptx_add(f, g->first_row, g->lane), is_here);
}

static void multiply_rows(gemv *g, ptx_val thread_block_row)
{
    ptx_fn *f = g->f;
    begin_rows(g);
    PTX_FOR (f, first, ptx_u32(0), g->k, ptx_u32(NVFP4_DEPTH)) {
        uint32_t step_codes = 32 * g->lane_codes, shift = g->lane_codes == 32 ? 10 : 9;
        ptx_val left = ptx_sub(f, g->k, first);
        ptx_val codes = ptx_min(f, left, ptx_u32(NVFP4_DEPTH));
        ptx_val raised = ptx_add(f, codes, ptx_u32(step_codes - 1));
        ptx_val steps = ptx_shr(f, raised, ptx_u32(shift));
        decode_vector(g, first, steps);
        ptx_barrier(f);
        multiply_chunk(g, first, steps);
        ptx_barrier(f);
    }
    end_rows(g, thread_block_row);
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

static gemv begin(ptx_fn *f, const kiln_variant *v)
{
    gemv g = {.f = f,
              .c_type = kiln_type(v, "c"),
              .sm = kiln_target_sm(v),
              .is_hardware = kiln_is(v, "decode", "hardware"),
              .lane_codes = kiln_int(v, "lane_codes"),
              .rows = kiln_int(v, "rows"),
              .warps = kiln_int(v, "warps")};
    g.unroll = g.warps * MOST_UNROLL > 16 * g.rows ? 16 / g.warps : MOST_UNROLL / g.rows;
    g.words = g.lane_codes / 8;
    g.blocks = g.lane_codes / NVFP4_BLOCK;
    g.planes = g.is_hardware ? 2 * g.blocks : g.blocks;
    g.step_bytes = 512 * g.planes + 64 * g.blocks;
    return g;
}

static void read_params(gemv *g)
{
    ptx_fn *f = g->f;
    g->a = ptx_param_ptr(f, PTX_U8, "a");
    g->sfa = ptx_param_ptr(f, PTX_U8, "sfa");
    g->b = ptx_param_ptr(f, PTX_U8, "b");
    g->sfb = ptx_param_ptr(f, PTX_U8, "sfb");
    g->c = ptx_param_ptr(f, g->c_type, "out");
    g->m = ptx_param(f, PTX_U32, "m");
    g->k = ptx_param(f, PTX_U32, "k");
    g->l = ptx_param(f, PTX_U32, "l");
    ptx_val given = ptx_param(f, PTX_U32, "b_rows");
    ptx_val is_default = ptx_eq(f, given, ptx_u32(0));
    g->b_rows = ptx_select(f, is_default, ptx_u32(128), given);
}

void nvfp4_emit_simt(ptx_fn *f, const kiln_variant *v)
{
    gemv g = begin(f, v);
    read_params(&g);
    g.tid = ptx_tid_x(f);
    g.lane = ptx_laneid(f);
    g.shared = ptx_shared_dynamic(f, PTX_U8);
    ptx_val warp = ptx_warpid_x(f);
    ptx_val of_rows = ptx_shr(f, warp, ptx_u32(log2_of(g.warps)));
    g.slice = ptx_and(f, warp, ptx_u32(g.warps - 1));
    ptx_val thread_block = ptx_ctaid_x(f);
    ptx_val thread_block_row = ptx_mul(f, thread_block, ptx_u32(WARPS / g.warps * g.rows));
    g.first_row = ptx_mad(f, of_rows, ptx_u32(g.rows), thread_block_row);
    ptx_val first_batch = ptx_ctaid_y(f), batches = ptx_special(f, PTX_NCTAID_Y);
    PTX_FOR (f, batch, first_batch, g.l, batches) {
        g.batch = batch;
        multiply_rows(&g, thread_block_row);
    }
}
