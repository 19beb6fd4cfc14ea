/* c = A * b in NVFP4 on the units for single numbers.
 *
 * GEOMETRY. A thread block has 8 warps: `warps` of them share `rows` rows of one batch, each taking every warps-th step
 * along k. In a step a lane has the 32 (or 16) codes of one 16-byte (or 8-byte) load of each row, and a warp's loads are
 * linear. b is decoded once per thread block into shared memory, up to NVFP4_DEPTH codes at a time, step by step: planes of
 * 16 bytes for each lane, so that the lanes' reads meet no bank twice, and behind them each lane's scales. Lanes beyond the
 * end of a row read its last codes again, and their scale of b is 0.
 *
 * ARITHMETIC. software: bytes of twice the codes, whose 16 products dp4a adds to four times a block's sum. hardware: pairs of
 * f16, whose 8 products in each half f16 adds exactly; the result is taken times 4 in the end. The product of two scales,
 * times 1/4, is exact in f16, and so is its product with a block's sum in f32; only the sum over the blocks rounds.
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
    ptx_val tid, lane, warp;
    ptx_val slice;         /* which of the warps that share rows */
    ptx_val codes, scales; /* addresses of this lane's of the first step, in shared memory */
    ptx_val last_group;    /* of a row's codes, a lane's load each */
    ptx_val first_row;     /* of this warp */
    ptx_val batch;
    ptx_val a_at[MOST_ROWS], sfa_at[MOST_ROWS], b_at, sfb_at; /* where rows begin: addresses */
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

/* ---- loads -------------------------------------------------------------------------------------------------------- */

/* Whether two scales come as U16, which the conversion from e4m3 takes; else as U32. */
static bool is_narrow(const gemv *g)
{
    return g->sm >= 89 && g->blocks == 2;
}

/* Of the row that begins at these addresses. */
static piece load_piece(gemv *g, ptx_val codes, ptx_val scales, ptx_val group, int hints)
{
    ptx_fn *f = g->f;
    piece p;
    ptx_val at = ptx_mad_wide(f, group, ptx_u32(g->lane_codes / 2), codes);
    ptx_load_vec(f, (int)g->words, p.word, ptx_pointer(f, PTX_GLOBAL, PTX_U32, at), hints);
    ptx_val scales_at = ptx_mad_wide(f, group, ptx_u32(g->blocks), scales);
    ptx_val pointer = ptx_pointer(f, PTX_GLOBAL, g->blocks == 2 ? PTX_U16 : PTX_U8, scales_at);
    p.scales = is_narrow(g) ? ptx_load_hint(f, pointer, hints) : ptx_load_as(f, PTX_U32, pointer, hints);
    return p;
}

/* ---- b ------------------------------------------------------------------------------------------------------------ */

/* The same place of another step, in shared memory. */
static ptx_val at_step(gemv *g, ptx_val address, ptx_val step)
{
    return ptx_pointer(g->f, PTX_SHARED, PTX_U32, ptx_mad(g->f, step, ptx_u32(g->step_bytes), address));
}

static void store_codes(gemv *g, const piece *p, ptx_val at)
{
    ptx_fn *f = g->f;
    ptx_val value[4];
    for (uint32_t plane = 0; plane < g->planes; plane++) {
        for (uint32_t w = 0; w < 2 && !g->is_hardware; w++) {
            nvfp4_bytes bytes = nvfp4_split(f, p->word[2 * plane + w]);
            for (uint32_t half = 0; half < 2; half++)
                value[2 * w + half] = nvfp4_signed(f, &bytes, half);
        }
        if (g->is_hardware)
            nvfp4_halves(f, p->word[plane], value);
        for (uint32_t i = 0; i < 4; i++)
            value[i] = ptx_as(f, PTX_U32, value[i]);
        ptx_store_vec(f, 4, ptx_at_bytes(f, at, 512 * (int64_t)plane), value, PTX_PLAIN);
    }
}

/* Decodes the steps whose first group is `first_group`, and more, up to a whole turn of all warps: beyond the end are its last
 * codes with a scale of 0. */
static void decode_vector(gemv *g, ptx_val first_group, ptx_val steps)
{
    ptx_fn *f = g->f;
    uint32_t turn = g->warps * g->unroll;
    ptx_val end = steps;
    if (turn > 1) {
        ptx_val raised = ptx_add(f, steps, ptx_u32(turn - 1));
        end = ptx_and(f, raised, ptx_u32(~(turn - 1)));
    }
    PTX_FOR (f, step, g->warp, end, ptx_u32(WARPS)) {
        ptx_val group = ptx_mad(f, step, ptx_u32(32), first_group);
        ptx_val present = ptx_min(f, group, g->last_group);
        piece p = load_piece(g, g->b_at, g->sfb_at, present, PTX_NC);
        ptx_val exists = ptx_le(f, group, g->last_group);
        ptx_val raw = ptx_select(f, exists, p.scales, is_narrow(g) ? ptx_u16(0) : ptx_u32(0));
        store_codes(g, &p, at_step(g, g->codes, step));
        ptx_val scales = nvfp4_vector_scales(f, g->sm, raw);
        ptx_val scales_at = at_step(g, g->scales, step);
        ptx_store(f, g->blocks == 2 ? scales_at : ptx_cast_ptr(f, scales_at, PTX_U16), scales);
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
    ptx_val of_first = ptx_fma_mixed(f, halves[0], scale, ptx_f32(0));
    ptx_val of_both = ptx_fma_mixed(f, halves[1], scale, of_first); /* exact: scale times the block's sum */
    ptx_add_to(f, sum, of_both);
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

/* This warp's share of the steps whose first group is `first_group`. */
static void multiply_chunk(gemv *g, ptx_val first_group, ptx_val steps)
{
    ptx_fn *f = g->f;
    PTX_FOR (f, step, g->slice, steps, ptx_u32(g->warps * g->unroll)) {
        piece p[MOST_UNROLL][MOST_ROWS];
        ptx_val group = ptx_mad(f, step, ptx_u32(32), first_group);
        for (uint32_t u = 0; u < g->unroll; u++) {
            ptx_val ahead = u == 0 ? group : ptx_add(f, group, ptx_u32(32 * g->warps * u));
            ptx_val present = ptx_min(f, ahead, g->last_group);
            for (uint32_t r = 0; r < g->rows; r++)
                p[u][r] = load_piece(g, g->a_at[r], g->sfa_at[r], present, PTX_NC | PTX_NO_ALLOCATE);
        }
        ptx_val codes_at = at_step(g, g->codes, step);
        ptx_val scales_at = at_step(g, g->scales, step);
        for (uint32_t u = 0; u < g->unroll; u++) {
            int64_t bytes = u * g->warps * g->step_bytes;
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
    ptx_val vector_row = ptx_mul_wide(f, g->batch, g->b_rows);
    ptx_val vector_byte = ptx_mul(f, vector_row, row_bytes);
    g->b_at = ptx_add(f, ptx_address(f, g->b), vector_byte);
    g->sfb_at = ptx_add(f, ptx_address(f, g->sfb), ptx_shr(f, vector_byte, ptx_u32(3)));
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

/* Adds the lanes' sums: halves of the warp exchange rows until each has one. The sum of row i is in the lanes from i * 32 /
 * rows on. */
static ptx_val add_lanes(gemv *g)
{
    ptx_fn *f = g->f;
    uint32_t lanes = 32;
    for (uint32_t count = g->rows; count > 1; count /= 2) {
        lanes /= 2;
        ptx_val bit = ptx_and(f, g->lane, ptx_u32(lanes));
        ptx_val is_upper = ptx_ne(f, bit, ptx_u32(0));
        for (uint32_t i = 0; i < count / 2; i++) {
            ptx_val kept = ptx_select(f, is_upper, g->sum[i + count / 2], g->sum[i]);
            ptx_val given = ptx_select(f, is_upper, g->sum[i], g->sum[i + count / 2]);
            g->sum[i] = ptx_add(f, kept, ptx_shfl_xor(f, given, ptx_u32(lanes)));
        }
    }
    return ptx_reduce_lanes(f, PTX_OP_ADD, (int)lanes, g->sum[0]);
}

/* The warps of a row add in the order of their slices, one thread for each row of the thread block. */
static void join_warps(gemv *g, ptx_val sum, ptx_val row_in_warp, ptx_val is_first, ptx_val thread_block_row)
{
    ptx_fn *f = g->f;
    ptx_val partial = ptx_shared(f, PTX_F32, WARPS * MOST_ROWS, 16);
    ptx_val mine = ptx_at(f, partial, ptx_mad(f, g->warp, ptx_u32(g->rows), row_in_warp));
    PTX_WHEN (f, is_first) {
        ptx_store(f, mine, sum);
    }
    ptx_barrier(f);
    ptx_val is_here = ptx_lt(f, g->tid, ptx_u32(WARPS / g->warps * g->rows));
    PTX_IF (f, is_here) {
        ptx_val of_warps = ptx_shr(f, g->tid, ptx_u32(log2_of(g->rows)));
        ptx_val in_warps = ptx_and(f, g->tid, ptx_u32(g->rows - 1));
        ptx_val from = ptx_at(f, partial, ptx_mad(f, of_warps, ptx_u32(g->warps * g->rows), in_warps));
        ptx_val total = ptx_var(f, ptx_load(f, from));
        for (uint32_t s = 1; s < g->warps; s++) {
            ptx_val part = ptx_load(f, ptx_at_const(f, from, s * g->rows));
            ptx_add_to(f, total, part);
        }
        store_sum(g, total, ptx_add(f, thread_block_row, g->tid), is_here);
    }
}

static void end_rows(gemv *g, ptx_val thread_block_row)
{
    ptx_fn *f = g->f;
    for (uint32_t r = 0; r < g->rows && g->sm < 89; r++) {
        ptx_val marked = ptx_and(f, g->marks[r], ptx_u32(NVFP4_NAN_MARKS));
        ptx_val is_nan = ptx_ne(f, marked, ptx_u32(0));
        g->sum[r] = ptx_select(f, is_nan, ptx_bits(PTX_F32, 0x7fffffff), g->sum[r]);
    }
    for (uint32_t r = 0; r < g->rows && g->is_hardware; r++)
        g->sum[r] = ptx_mul(f, g->sum[r], ptx_f32(4)); /* of the scales' product there is a quarter */
    ptx_val sum = add_lanes(g);
    ptx_val row_in_warp = ptx_shr(f, g->lane, ptx_u32(5 - log2_of(g->rows)));
    ptx_val in_row = ptx_and(f, g->lane, ptx_u32(32 / g->rows - 1));
    ptx_val is_first = ptx_eq(f, in_row, ptx_u32(0));
    if (g->warps > 1)
        join_warps(g, sum, row_in_warp, is_first, thread_block_row);
    else
        store_sum(g, sum, ptx_add(f, g->first_row, row_in_warp), is_first);
}

static void multiply_rows(gemv *g, ptx_val thread_block_row)
{
    ptx_fn *f = g->f;
    uint32_t shift = g->lane_codes == 32 ? 5 : 4;
    begin_rows(g);
    PTX_FOR (f, first, ptx_u32(0), g->k, ptx_u32(NVFP4_DEPTH)) {
        ptx_val left = ptx_sub(f, g->k, first);
        ptx_val codes = ptx_min(f, left, ptx_u32(NVFP4_DEPTH));
        ptx_val raised = ptx_add(f, codes, ptx_u32(32 * g->lane_codes - 1));
        ptx_val steps = ptx_shr(f, raised, ptx_u32(shift + 5));
        ptx_val skipped = ptx_shr(f, first, ptx_u32(shift));
        ptx_val first_group = ptx_add(f, skipped, g->lane);
        decode_vector(g, first_group, steps);
        ptx_barrier(f);
        multiply_chunk(g, first_group, steps);
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
    g.unroll = g.rows * g.warps < MOST_UNROLL ? MOST_UNROLL / (g.rows * g.warps) : 1;
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
    g.warp = ptx_warpid_x(f);
    ptx_val shared = ptx_shared_dynamic(f, PTX_U8);
    ptx_val shared_at = ptx_address(f, shared);
    g.codes = ptx_mad(f, g.lane, ptx_u32(16), shared_at);
    ptx_val scales_at = ptx_add(f, shared_at, ptx_u32(512 * g.planes));
    g.scales = ptx_mad(f, g.lane, ptx_u32(2 * g.blocks), scales_at);
    ptx_val groups = ptx_shr(f, g.k, ptx_u32(g.lane_codes == 32 ? 5 : 4));
    g.last_group = ptx_sub(f, groups, ptx_u32(1));
    ptx_val of_rows = ptx_shr(f, g.warp, ptx_u32(log2_of(g.warps)));
    g.slice = ptx_and(f, g.warp, ptx_u32(g.warps - 1));
    ptx_val thread_block = ptx_ctaid_x(f);
    ptx_val thread_block_row = ptx_mul(f, thread_block, ptx_u32(WARPS / g.warps * g.rows));
    g.first_row = ptx_mad(f, of_rows, ptx_u32(g.rows), thread_block_row);
    ptx_val first_batch = ptx_ctaid_y(f), batches = ptx_special(f, PTX_NCTAID_Y);
    PTX_FOR (f, batch, first_batch, g.l, batches) {
        g.batch = batch;
        multiply_rows(&g, thread_block_row);
    }
}
