/* Kernels with operations of warps and thread blocks: matrix products, asynchronous copies, atomics. */
#include "kernels.h"

/* D[64, 8] = A[64, 32] * B[32, 8] with wgmma, of which A's first half comes from registers and its second from shared memory,
 * each row 32 bytes, with a swizzle. A lane's words of A and D are neighbours in memory.  block 128: a warpgroup */
void emit_group_tile(ptx_fn *f)
{
    static const ptx_wgmma_form form = {.types = PTX_WGMMA_F16_F32, .n = 8};
    static const ptx_matrix matrix = {.swizzle_bytes = 32, .stride_bytes = 256};
    ptx_val a = ptx_param_ptr(f, PTX_B32, "a"), b = ptx_param_ptr(f, PTX_B32, "b"),
            d = ptx_param_ptr(f, PTX_F32, "d");
    ptx_val tile_a = ptx_shared(f, PTX_B32, 512, 256), tile_b = ptx_shared_dynamic_aligned(f, PTX_B32, 512);
    ptx_val tid = ptx_tid_x(f), own = ptx_mul(f, tid, 4), first[4], second[4], sums[4];
    ptx_load_vec(f, 4, first, ptx_at(f, a, own), PTX_PLAIN);
    ptx_load_vec(f, 4, second, ptx_at(f, ptx_at_const(f, a, 512), own), PTX_PLAIN);
    ptx_store_vec(f, 4, ptx_at(f, tile_a, own), second, PTX_PLAIN);
    ptx_val word = ptx_load(f, ptx_at(f, b, tid));
    ptx_store(f, ptx_at(f, tile_b, tid), word);
    ptx_fence_async(f);
    ptx_barrier(f);
    for (int i = 0; i < 4; i++)
        sums[i] = ptx_declare(f, PTX_F32);
    ptx_val a_at = ptx_descriptor(f, tile_a, matrix), b_at = ptx_descriptor(f, tile_b, matrix);
    ptx_val b_next = ptx_add(f, b_at, 16);
    ptx_wgmma_fence(f);
    ptx_wgmma(f, form, 0, sums, first, b_at);
    ptx_wgmma_shared(f, form, 1, sums, a_at, b_next);
    ptx_wgmma_commit(f);
    ptx_wgmma_wait(f, 0);
    ptx_store_vec(f, 4, ptx_at(f, d, own), sums, PTX_PLAIN);
}

/* out[y, x] = 2 * in[y, x], in boxes of 8 rows of 32 elements: the first warpgroup has few registers, and one of its threads copies
 * box after box into two stages; the second warpgroup doubles the boxes in place, and one thread stores them.  block 256 */
void emit_boxes(ptx_fn *f)
{
    enum { STAGES = 2, BOX = 8 * 32, BOX_BYTES = 4 * BOX };
    ptx_val in = ptx_tensor_map(f, "in"), out = ptx_tensor_map(f, "out"),
            boxes = ptx_param(f, PTX_U32, "boxes");
    ptx_val tiles = ptx_shared(f, PTX_F32, STAGES * BOX, 128), full = ptx_shared(f, PTX_B64, STAGES, 8),
            empty = ptx_shared(f, PTX_B64, STAGES, 8);
    ptx_val tid = ptx_tid_x(f), row = ptx_mul(f, ptx_ctaid_x(f), 8);
    ptx_min_blocks(f, 1);
    PTX_IF (f, ptx_eq(f, tid, 0)) {
        for (int i = 0; i < STAGES; i++) {
            ptx_mbarrier_init(f, ptx_at_const(f, full, i), 1);
            ptx_mbarrier_init(f, ptx_at_const(f, empty, i), 1);
        }
        ptx_fence_mbarrier_init(f);
        ptx_prefetch_map(f, in);
    }
    ptx_barrier(f);
    PTX_IF (f, ptx_lt(f, tid, 128)) {
        ptx_setmaxnreg_dec(f, 24);
        PTX_IF (f, ptx_lt(f, tid, 32)) {
            PTX_IF (f, ptx_elect(f)) {
                PTX_FOR (f, i, 0, boxes, 1) {
                    ptx_val stage = ptx_and(f, i, 1), phase = ptx_bfe(f, i, 1, 1), x = ptx_mul(f, i, 32);
                    ptx_val is_filled = ptx_at(f, full, stage), is_empty = ptx_at(f, empty, stage);
                    PTX_LOOP (f) {
                        ptx_val parity = ptx_xor(f, phase, 1);
                        ptx_val done = ptx_mbarrier_try_parity(f, is_empty, parity);
                        ptx_repeat_if(f, ptx_not(f, done));
                    }
                    ptx_val first[] = {x, row}, element = ptx_mul(f, stage, BOX);
                    ptx_mbarrier_arrive_bytes(f, is_filled, BOX_BYTES);
                    ptx_val to = ptx_at(f, tiles, element);
                    ptx_tensor_load(f, 2, to, in, first, is_filled);
                }
            }
        }
    }
    PTX_ELSE (f) {
        ptx_setmaxnreg_inc(f, 240);
        ptx_val own = ptx_sub(f, tid, 128), is_first = ptx_eq(f, own, 0);
        PTX_FOR (f, i, 0, boxes, 1) {
            ptx_val stage = ptx_and(f, i, 1), phase = ptx_bfe(f, i, 1, 1), pair[2];
            PTX_LOOP (f) {
                ptx_val done = ptx_mbarrier_try_parity(f, ptx_at(f, full, stage), phase);
                ptx_repeat_if(f, ptx_not(f, done));
            }
            ptx_val tile = ptx_at(f, tiles, ptx_mul(f, stage, BOX)), at = ptx_at(f, tile, ptx_mul(f, own, 2));
            ptx_load_vec(f, 2, pair, at, PTX_PLAIN);
            for (int k = 0; k < 2; k++)
                pair[k] = ptx_add(f, pair[k], pair[k]);
            ptx_store_vec(f, 2, at, pair, PTX_PLAIN);
            ptx_fence_async(f);
            ptx_barrier_named(f, 1, 128);
            PTX_IF (f, is_first) {
                ptx_val first[] = {ptx_mul(f, i, 32), row};
                ptx_tensor_store(f, 2, out, first, tile);
                ptx_bulk_commit(f);
                ptx_bulk_wait_read(f, 0);
                ptx_mbarrier_arrive(f, ptx_at(f, empty, stage));
            }
        }
        PTX_IF (f, is_first) {
            ptx_bulk_wait(f, 0);
        }
    }
}

/* Each flag of wgmma by itself; adds to zeros if n is 0.  block 128: a warpgroup */
void emit_group_flags(ptx_fn *f)
{
    static const ptx_wgmma_form forms[] = {
        {.types = PTX_WGMMA_BF16_F32, .n = 8, .negates_a = true},
        {.types = PTX_WGMMA_BF16_F32, .n = 8, .negates_b = true},
        {.types = PTX_WGMMA_BF16_F32, .n = 8, .transposes_a = true},
        {.types = PTX_WGMMA_BF16_F32, .n = 8, .transposes_b = true},
        {.types = PTX_WGMMA_E4M3_F32, .n = 8, .negates_b = true},
        {.types = PTX_WGMMA_U8S8_S32, .n = 8, .saturates = true},
    };
    ptx_val n = ptx_param(f, PTX_U32, "n"), out = ptx_param_ptr(f, PTX_B32, "out");
    ptx_val tile = ptx_shared(f, PTX_B32, 1024, 128), floats[4], integers[4], a[4],
            is_first = ptx_eq(f, n, 0);
    ptx_val at = ptx_descriptor(f, tile, ((ptx_matrix){.stride_bytes = 128, .leading_bytes = 2048}));
    for (int i = 0; i < 4; i++) {
        floats[i] = ptx_var(f, ptx_f32(0));
        integers[i] = ptx_var(f, ptx_s32(0));
        a[i] = ptx_as(f, PTX_B32, ptx_add(f, n, i));
    }
    ptx_wgmma_fence(f);
    for (int i = 0; i < 6; i++) {
        ptx_val *sums = forms[i].types == PTX_WGMMA_U8S8_S32 ? integers : floats;
        if (forms[i].types != PTX_WGMMA_E4M3_F32)
            ptx_wgmma_shared(f, forms[i], is_first, sums, at, at);
        if (!forms[i].transposes_a)
            ptx_wgmma(f, forms[i], is_first, sums, a, at);
        ptx_wgmma_commit(f);
        ptx_wgmma_wait(f, 0);
        ptx_wgmma_fence(f);
    }
    ptx_store(f, out, ptx_as(f, PTX_B32, floats[0]));
    ptx_store(f, ptx_at_const(f, out, 1), ptx_as(f, PTX_B32, integers[0]));
}

/* out[i] = x[i] + x[512*grid + i] + ... of `tiles` slices; the next slice is in flight while one is added.
 * launch: any grid, block 128: 4 neighbours per thread; tiles at least 1. */
void emit_stream_sum(ptx_fn *f)
{
    enum { EACH = 4, TILE = 128 * EACH, TILE_BYTES = TILE * 4 };
    ptx_val tiles = ptx_param(f, PTX_U32, "tiles");
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x"), out = ptx_param_ptr(f, PTX_F32, "out");
    ptx_val stages = ptx_shared(f, PTX_F32, 2 * TILE, 16);
    ptx_val tid = ptx_tid_x(f), blocks = ptx_nctaid_x(f), thread = ptx_global_thread_x(f);
    ptx_val own = ptx_mul(f, tid, EACH), mine = ptx_at(f, stages, own);
    ptx_val element = ptx_mul(f, thread, EACH), to = ptx_at(f, out, element);
    ptx_val policy = ptx_policy_evict_first(f, 1.0f);
    ptx_val from = ptx_with_policy(f, ptx_at(f, x, element), policy);
    ptx_val slice = ptx_mul(f, blocks, TILE), next = ptx_var(f, from);
    ptx_val sum[EACH], got[EACH];
    for (int i = 0; i < EACH; i++)
        sum[i] = ptx_var(f, ptx_f32(0));
    ptx_cp_async(f, mine, next, 16, PTX_CG);
    ptx_cp_async_commit(f);
    PTX_FOR (f, i, 0, tiles, 1) {
        ptx_val following = ptx_add(f, i, 1), stage = ptx_and(f, i, 1);
        ptx_val other = ptx_xor(f, stage, 1), there = ptx_lt(f, following, tiles);
        ptx_val bytes = ptx_select(f, there, ptx_u32(16), 0);
        ptx_set(f, next, ptx_at(f, next, slice));
        ptx_val other_stage = ptx_at(f, mine, ptx_mul(f, other, TILE));
        ptx_cp_async_zfill(f, other_stage, next, 16, bytes, PTX_CG);
        ptx_cp_async_commit(f);
        ptx_cp_async_wait(f, 1);
        ptx_load_vec(f, EACH, got, ptx_at(f, mine, ptx_mul(f, stage, TILE)), PTX_PLAIN);
        for (int j = 0; j < EACH; j++)
            ptx_add_to(f, sum[j], got[j]);
    }
    ptx_store_vec(f, EACH, to, sum, PTX_CS);
}

/* *out = the sum of x[0..n) in f64, in an order that does not depend on which block comes last: the last block adds
 * all sums in `partial`.  launch: grid up to 32, block 256; *arrived is 0 before and after. */
void emit_grid_sum(ptx_fn *f)
{
    enum { WARPS = 8 };
    ptx_val n = ptx_param(f, PTX_U32, "n"), x = ptx_param_ptr(f, PTX_F64, "x");
    ptx_val partial = ptx_param_ptr(f, PTX_F64, "partial"), out = ptx_param_ptr(f, PTX_F64, "out");
    ptx_val arrived = ptx_param_ptr(f, PTX_U32, "arrived");
    ptx_val warp_sums = ptx_shared(f, PTX_F64, WARPS, 8), flag = ptx_shared(f, PTX_U32, 1, 4);
    ptx_val tid = ptx_tid_x(f), lane = ptx_laneid(f), warp = ptx_warpid_x(f), block = ptx_ctaid_x(f);
    ptx_val blocks = ptx_nctaid_x(f), first = ptx_global_thread_x(f);
    ptx_val stride = ptx_mul(f, blocks, ptx_block_x(f));
    ptx_val sum = ptx_var(f, ptx_f64(0));
    PTX_FOR (f, i, first, n, stride) {
        ptx_add_to(f, sum, ptx_load_hint(f, ptx_at(f, x, i), PTX_NC));
    }
    ptx_val warp_sum = ptx_reduce_lanes(f, PTX_OP_ADD, 32, sum);
    PTX_WHEN (f, ptx_eq(f, lane, 0)) {
        ptx_store(f, ptx_at(f, warp_sums, warp), warp_sum);
    }
    ptx_barrier(f);
    PTX_IF (f, ptx_lt(f, tid, 32)) {
        ptx_val slot = ptx_and(f, lane, WARPS - 1);
        ptx_val value = ptx_var(f, ptx_load(f, ptx_at(f, warp_sums, slot)));
        for (uint32_t distance = WARPS / 2; distance; distance /= 2) {
            ptx_val other = ptx_shfl_down_in(f, value, distance, WARPS);
            ptx_add_to(f, value, other);
        }
        PTX_IF (f, ptx_eq(f, lane, 0)) {
            ptx_val last = ptx_sub(f, blocks, 1);
            ptx_store(f, ptx_at(f, partial, block), value);
            ptx_fence(f, PTX_ACQ_REL | PTX_GPU);
            ptx_val before = ptx_atom_inc(f, arrived, last, PTX_ACQ_REL | PTX_GPU);
            ptx_val is_last = ptx_eq(f, before, last);
            ptx_store(f, flag, ptx_select(f, is_last, ptx_u32(1), 0));
        }
    }
    ptx_barrier(f);
    ptx_val last_block = ptx_uniform(f, ptx_load(f, flag));
    ptx_val first_warp = ptx_eq(f, warp, 0), chosen = ptx_ne(f, last_block, 0);
    PTX_IF (f, ptx_and(f, first_warp, chosen)) {
        ptx_val value = ptx_var(f, ptx_f64(0));
        PTX_IF (f, ptx_lt(f, lane, blocks)) {
            ptx_set(f, value, ptx_load_hint(f, ptx_at(f, partial, lane), PTX_RELAXED | PTX_GPU));
        }
        ptx_val total = ptx_reduce_lanes(f, PTX_OP_ADD, 32, value);
        PTX_WHEN (f, ptx_elect(f)) {
            ptx_store(f, out, total);
        }
    }
}

/* out[i] = x[i] reversed within the block, copied with an mbarrier in shared memory.  block 64 */
void emit_mbarrier_copy(ptx_fn *f)
{
    ptx_val x = ptx_param_ptr(f, PTX_U32, "x"), out = ptx_param_ptr(f, PTX_U32, "out");
    ptx_val staged = ptx_shared(f, PTX_U32, 64, 16), full = ptx_shared(f, PTX_B64, 1, 8);
    ptx_val tid = ptx_tid_x(f), i = ptx_global_thread_x(f);
    PTX_IF (f, ptx_eq(f, tid, 0)) {
        ptx_mbarrier_init(f, full, ptx_u32(64));
    }
    ptx_barrier(f);
    PTX_IF (f, ptx_lt(f, tid, 16)) {
        ptx_val chunk = ptx_mul(f, tid, 4), first = ptx_sub(f, i, tid);
        ptx_val to = ptx_at(f, staged, chunk), from = ptx_at(f, x, ptx_add(f, first, chunk));
        ptx_cp_async(f, to, from, 16, PTX_CG | PTX_L2_128B);
    }
    ptx_cp_async_arrive_noinc(f, full);
    PTX_LOOP (f) {
        ptx_val done = ptx_mbarrier_test_parity(f, full, ptx_u32(0));
        ptx_repeat_if(f, ptx_not(f, done));
    }
    ptx_val mirrored = ptx_sub(f, 63, tid);
    ptx_val value = ptx_load(f, ptx_at(f, staged, mirrored));
    ptx_store(f, ptx_at(f, out, i), value);
}

/* y[i] = a*x[i] + y[i], clamped to [low, high], in pairs of f32, 32 bytes per thread; and what the builder lacks.
 * block 128; needs sm_100 */
void emit_pairs(ptx_fn *f)
{
    ptx_val a = ptx_param(f, PTX_F32, "a"), low = ptx_param(f, PTX_F32, "low");
    ptx_val high = ptx_param(f, PTX_F32, "high");
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x"), y = ptx_param_ptr(f, PTX_F32, "y");
    ptx_val i = ptx_global_thread_x(f), from[4], into[4], bound[2];
    ptx_val element = ptx_shl(f, i, 3);
    ptx_val x_at = ptx_cast_ptr(f, ptx_at(f, x, element), PTX_F32X2);
    ptx_val y_at = ptx_cast_ptr(f, ptx_at(f, y, element), PTX_F32X2);
    ptx_val both = ptx_pack(f, PTX_F32X2, 2, ((ptx_val[]){a, a}));
    ptx_load_vec(f, 4, from, x_at, PTX_NC | PTX_L2_EVICT_FIRST);
    ptx_load_vec(f, 4, into, y_at, PTX_PLAIN);
    for (int pair = 0; pair < 4; pair++) {
        ptx_val sum = ptx_fma(f, both, from[pair], into[pair]);
        ptx_unpack(f, PTX_F32, 2, bound, sum);
        for (int half = 0; half < 2; half++) {
            ptx_val at_least = ptx_max(f, bound[half], low);
            const ptx_type f32 = PTX_F32;
            const ptx_raw_form clamp = {.text = "min.f32 $0, $1, $2", .sm = 75, .version = 63};
            ptx_raw(f, clamp, 1, &f32, &bound[half], 2, ((ptx_val[]){at_least, high}));
        }
        into[pair] = ptx_pack(f, PTX_F32X2, 2, bound);
    }
    ptx_store_vec(f, 4, y_at, into, PTX_L2_EVICT_LAST);
}

/* Narrow elements in vectors of 8 and 16: each thread writes its own elements in reverse. u8 and u16 are stored from
 * wider registers, each plus 1. */
void emit_vectors(ptx_fn *f)
{
    static const struct {
        const char *from, *to;
        ptx_type element;
        int count;
        ptx_type stored; /* PTX_NONE: as loaded */
    } rows[] = {{"f16_in", "f16_out", PTX_F16, 8, PTX_NONE}, {"bf16_in", "bf16_out", PTX_BF16, 8, PTX_NONE},
                {"u16_in", "u16_out", PTX_U16, 8, PTX_U32},  {"s8_in", "s8_out", PTX_S8, 16, PTX_NONE},
                {"u8_in", "u8_out", PTX_U8, 8, PTX_U64},     {"b8_in", "b8_out", PTX_B8, 16, PTX_U16},
                {"s16_in", "s16_out", PTX_S16, 8, PTX_NONE}};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    ptx_val from[ROWS], to[ROWS], wide = ptx_param_ptr(f, PTX_S32, "wide"), read[16], written[16];
    for (int r = 0; r < ROWS; r++) {
        from[r] = ptx_param_ptr(f, rows[r].element, rows[r].from);
        to[r] = ptx_param_ptr(f, rows[r].element, rows[r].to);
    }
    ptx_val tid = ptx_tid_x(f);
    for (int r = 0; r < ROWS; r++) {
        const int count = rows[r].count;
        ptx_val first = ptx_mul(f, tid, (uint32_t)count);
        ptx_val to_at = ptx_at(f, to[r], first);
        ptx_load_vec(f, count, read, ptx_at(f, from[r], first), r == 0 ? PTX_NC : PTX_PLAIN);
        for (int i = 0; i < count; i++) {
            ptx_val v = read[count - 1 - i];
            if (rows[r].stored == PTX_U16)
                v = ptx_cvt(f, PTX_U16, v);
            else if (rows[r].stored != PTX_NONE)
                v = ptx_add(f, ptx_cvt(f, rows[r].stored, v), ptx_bits(rows[r].stored, 1));
            written[i] = v;
        }
        ptx_store_vec(f, count, to_at, written, PTX_PLAIN);
        if (rows[r].element == PTX_S8) { /* sign-extended */
            ptx_val at = ptx_at(f, wide, tid);
            ptx_store(f, at, read[5]);
        }
    }
}
