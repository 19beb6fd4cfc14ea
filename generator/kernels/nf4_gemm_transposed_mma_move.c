/* What the transposed NF4 product on tensor cores copies to shared memory: 32 columns of codes, scales and A. They wait in
 * registers while the 32 before them are multiplied.
 *
 * The 32 bytes that a warp needs of a column's 256 are swizzled by the lane that reads them, so that there are no bank
 * conflicts.
 */
#include "device/narrow.h"
#include "nf4_gemm_transposed_mma.h"

ptx_val transposed_shared_at(const transposed_mma *g, ptx_type type, ptx_val address, uint32_t bytes)
{
    return ptx_at_bytes(g->f, ptx_pointer(g->f, PTX_SHARED, type, address), bytes);
}

/* Loads of A per thread. */
static uint32_t loads_of_a(const transposed_mma *g)
{
    return g->vector == 1 ? g->groups : 4;
}

/* ---- what lies where ------------------------------------------------------------------------------------------- */

/* Codes beyond the end of K repeat those before it. */
static void init_codes(transposed_mma *g)
{
    ptx_fn *f = g->f;
    ptx_val unit = ptx_and(f, g->tid, ptx_u32(COLUMN_BYTES / 16 - 1));
    ptx_val k = ptx_mad(f, unit, ptx_u32(32), g->first_k);
    ptx_val most = ptx_sub(f, g->args.k, ptx_u32(32));
    ptx_val codes = ptx_at(f, g->args.packed, ptx_shr(f, ptx_min(f, k, most), ptx_u32(1)));
    g->codes_at = ptx_address(f, codes);
    g->code_column = ptx_shr(f, g->tid, ptx_u32(4));

    ptx_val swizzle = ptx_and(f, ptx_shr(f, g->code_column, ptx_u32(2)), ptx_u32(3));
    ptx_val group = ptx_xor(f, ptx_shr(f, unit, ptx_u32(1)), swizzle);
    ptx_val half = ptx_and(f, unit, ptx_u32(1));
    ptx_val in_column = ptx_mad(f, half, ptx_u32(16), ptx_mul(f, group, ptx_u32(32)));
    ptx_val to = ptx_mad(f, g->code_column, ptx_u32(COLUMN_BYTES), in_column);
    g->codes_to = ptx_add(f, to, g->codes_to);

    ptx_val mine = ptx_mul(f, ptx_xor(f, g->warp, g->member), ptx_u32(32));
    ptx_val row = ptx_mad(f, g->quad, ptx_u32(4), mine);
    ptx_val from = ptx_mad(f, g->member, ptx_u32(4 * COLUMN_BYTES), row);
    g->codes_from = ptx_add(f, from, g->codes_from);
}

/* Half of the threads load scales: each those of two columns of one quantised block. */
static void init_scales(transposed_mma *g)
{
    ptx_fn *f = g->f;
    ptx_val block = ptx_and(f, g->tid, ptx_u32(WARPS - 1));
    ptx_val first = ptx_shr(f, g->first_k, ptx_u32(6));
    ptx_val blocks = ptx_shr(f, g->args.k, ptx_u32(6));
    ptx_val mine = ptx_add(f, first, block), last = ptx_sub(f, blocks, ptx_u32(1));
    g->scales_at = ptx_address(f, ptx_at(f, g->args.scale, ptx_min(f, mine, last)));
    ptx_val pair = ptx_shr(f, g->tid, ptx_u32(3));
    g->scale_column = ptx_shl(f, pair, ptx_u32(1));
    ptx_val to = ptx_mad(f, block, ptx_u32(SCALES_STRIDE), ptx_mul(f, pair, ptx_u32(8)));
    g->scales_to = ptx_add(f, to, g->scales_to);
    ptx_val from = ptx_mad(f, g->warp, ptx_u32(SCALES_STRIDE), ptx_mul(f, g->member, ptx_u32(16)));
    g->scales_from = ptx_add(f, from, g->scales_from);
}

/* A thread loads an element of each eighth row, or eight of one row. Rows beyond the last repeat it. */
static void init_rows(transposed_mma *g)
{
    ptx_fn *f = g->f;
    bool is_vector = g->vector == 8;
    ptx_val row = is_vector ? ptx_shr(f, g->tid, ptx_u32(2)) : g->warp;
    ptx_val unit = ptx_and(f, g->lane, ptx_u32(CHUNK / g->vector - 1));
    g->a_column = is_vector ? ptx_mul(f, unit, ptx_u32(8)) : unit;
    ptx_val first = ptx_add(f, row, g->first_row), last = ptx_sub(f, g->args.m, ptx_u32(1));
    for (uint32_t i = 0; i < (is_vector ? 1 : g->groups); i++) {
        ptx_val mine = ptx_min(f, ptx_add(f, first, ptx_u32(8 * i)), last);
        ptx_val line = ptx_at(f, g->args.in, ptx_mul_wide(f, mine, g->args.n));
        g->a_at[i] = ptx_at(f, line, g->a_column);
    }
    ptx_val to = ptx_mad(f, row, ptx_u32(ROW_BYTES), ptx_mul(f, g->a_column, ptx_u32(2)));
    g->a_to = ptx_add(f, to, g->a_to);
    ptx_val from = ptx_mad(f, g->quad, ptx_u32(ROW_BYTES), ptx_mul(f, g->member, ptx_u32(8)));
    g->a_from = ptx_add(f, from, g->a_from);
}

/* Registers for what is being loaded. */
static void declare(transposed_mma *g)
{
    ptx_fn *f = g->f;
    for (uint32_t i = 0; i < CODES_LOADS; i++)
        for (uint32_t e = 0; e < 4; e++)
            g->codes[i][e] = ptx_var(f, ptx_u32(0));
    for (uint32_t i = 0; i < 2; i++)
        g->scales[i] = ptx_var(f, ptx_f32(0));
    for (uint32_t i = 0; i < loads_of_a(g); i++)
        g->a[i] = ptx_var(f, ptx_u32(0));
}

void transposed_init_columns(transposed_mma *g)
{
    init_codes(g);
    init_scales(g);
    init_rows(g);
    declare(g);
}

/* ---- 32 columns into registers --------------------------------------------------------------------------------- */

/* Addresses that take one instruction are made here, not kept across the loop: with 32 rows no register is left. */
static void load_codes(transposed_mma *g, ptx_val chunk)
{
    ptx_fn *f = g->f;
    ptx_val column_bytes = ptx_shr(f, g->args.k, ptx_u32(1));
    ptx_val first = ptx_add(f, chunk, g->code_column), last = ptx_sub(f, g->args.n, ptx_u32(1));
    for (uint32_t i = 0; i < CODES_LOADS; i++) {
        ptx_val words[4];
        ptx_val column = ptx_min(f, ptx_add(f, first, ptx_u32(i * CHUNK / CODES_LOADS)), last);
        ptx_val at = ptx_mad_wide(f, column, column_bytes, g->codes_at);
        ptx_load_vec(f, 4, words, ptx_pointer(f, PTX_GLOBAL, PTX_U32, at), PTX_NC | PTX_NO_ALLOCATE);
        for (uint32_t e = 0; e < 4; e++)
            ptx_set(f, g->codes[i][e], words[e]);
    }
}

/* Scales out of bounds are 0. */
static void load_scales(transposed_mma *g, ptx_val chunk)
{
    ptx_fn *f = g->f;
    ptx_val first = ptx_add(f, chunk, g->scale_column);
    ptx_val scale_bytes = ptx_shr(f, g->args.k, ptx_u32(4));
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val column = ptx_add(f, first, ptx_u32(i));
        ptx_val at = ptx_mad_wide(f, column, scale_bytes, g->scales_at);
        ptx_val in_bounds = ptx_lt(f, column, g->args.n);
        ptx_set(f, g->scales[i], ptx_f32(0));
        PTX_WHEN (f, in_bounds) {
            ptx_set(f, g->scales[i], ptx_load_hint(f, ptx_pointer(f, PTX_GLOBAL, PTX_F32, at), PTX_NC));
        }
    }
}

static void load_rows(transposed_mma *g, ptx_val chunk)
{
    ptx_fn *f = g->f;
    ptx_val in_bounds = ptx_lt(f, ptx_add(f, chunk, g->a_column), g->args.n);
    for (uint32_t i = 0; i < loads_of_a(g); i++)
        ptx_set(f, g->a[i], ptx_u32(0));
    if (g->vector == 8) {
        ptx_val at = ptx_cast_ptr(f, ptx_at(f, g->a_at[0], chunk), PTX_U32), words[4];
        PTX_WHEN (f, in_bounds) {
            ptx_load_vec(f, 4, words, at, PTX_NC);
            for (uint32_t e = 0; e < 4; e++)
                ptx_set(f, g->a[e], words[e]);
        }
        return;
    }
    for (uint32_t i = 0; i < g->groups; i++) {
        ptx_val at = ptx_cast_ptr(f, ptx_at(f, g->a_at[i], chunk), PTX_U16);
        PTX_WHEN (f, in_bounds) {
            ptx_set(f, g->a[i], ptx_load_as(f, PTX_U32, at, PTX_NC));
        }
    }
}

/* Half of the threads load scales; with vector 8 only as many as it takes load A. */
void transposed_load_columns(transposed_mma *g, ptx_val chunk)
{
    ptx_fn *f = g->f;
    load_codes(g, chunk);
    PTX_IF (f, ptx_lt(f, g->tid, ptx_u32(THREADS / 2))) {
        load_scales(g, chunk);
    }
    uint32_t threads_of_a = g->vector == 8 ? g->groups * 32 : THREADS;
    if (threads_of_a == THREADS) {
        load_rows(g, chunk);
        return;
    }
    PTX_IF (f, ptx_lt(f, g->tid, ptx_u32(threads_of_a))) {
        load_rows(g, chunk);
    }
}

/* ---- and into shared memory ------------------------------------------------------------------------------------ */

static void store_scales(transposed_mma *g)
{
    ptx_fn *f = g->f;
    ptx_val halves[2], high[2], low[2];
    ptx_val to = ptx_add(f, g->scales_to, g->buffer);
    if (g->is_tf32) {
        ptx_store_vec(f, 2, transposed_shared_at(g, PTX_F32, to, 0), g->scales, PTX_PLAIN);
        return;
    }
    halves[0] = narrow_pair(f, g->type, g->has_sm_80, g->scales[0], g->scales[1]);
    widen_pair(f, g->type, halves[0], high);
    for (uint32_t i = 0; i < 2; i++)
        low[i] = ptx_sub(f, g->scales[i], high[i]);
    halves[1] = narrow_pair(f, g->type, g->has_sm_80, low[0], low[1]);
    ptx_store_vec(f, 2, transposed_shared_at(g, PTX_U32, to, 0), halves, PTX_PLAIN);
}

static void store_rows(transposed_mma *g)
{
    ptx_fn *f = g->f;
    ptx_val to = ptx_add(f, g->a_to, g->buffer);
    if (g->vector == 8) {
        ptx_store_vec(f, 4, transposed_shared_at(g, PTX_U32, to, 0), g->a, PTX_PLAIN);
        return;
    }
    for (uint32_t i = 0; i < g->groups; i++)
        ptx_store(f, transposed_shared_at(g, PTX_U16, to, i * 8 * ROW_BYTES), g->a[i]);
}

void transposed_store_columns(transposed_mma *g)
{
    ptx_fn *f = g->f;
    ptx_val to = ptx_add(f, g->codes_to, g->buffer);
    for (uint32_t i = 0; i < CODES_LOADS; i++)
        ptx_store_vec(f, 4, transposed_shared_at(g, PTX_U32, to, i * CODES_BYTES / CODES_LOADS), g->codes[i],
                      PTX_PLAIN);
    PTX_IF (f, ptx_lt(f, g->tid, ptx_u32(THREADS / 2))) {
        store_scales(g);
    }
    uint32_t threads_of_a = g->vector == 8 ? g->groups * 32 : THREADS;
    if (threads_of_a == THREADS) {
        store_rows(g);
        return;
    }
    PTX_IF (f, ptx_lt(f, g->tid, ptx_u32(threads_of_a))) {
        store_rows(g);
    }
}
