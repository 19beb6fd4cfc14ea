/* Scales in shared memory for strategy simt.
 *
 * The scales of many quantised blocks are copied at once: a piece of a column may start in the middle of a sector, and in a
 * smaller piece the partial sectors at its ends would count for more. */
#include "device/lanes.h"
#include "device/shared.h"
#include "device/tail.h"
#include "nf4_gemm.h"

enum { LANE_SCALES = 4, MOST_COPIES = 8 };

/* Columns are padded, so that neighbouring ones are in different banks. */
nf4_scales nf4_scales_plan(ptx_fn *f, uint32_t columns, uint32_t k_warps, uint32_t lanes, uint32_t step)
{
    const uint32_t chunk = LANE_SCALES * lanes;
    return (nf4_scales){.f = f,
                        .columns = columns,
                        .k_warps = k_warps,
                        .lanes = lanes,
                        .step = step,
                        .chunk = chunk,
                        .column_bytes = 4 * (chunk + 4)};
}

uint32_t nf4_scales_bytes(const nf4_scales *s, const kiln_variant *v)
{
    return s->columns * s->column_bytes + (kiln_is(v, "scale_type", "nested") ? NF4_NESTED_BYTES : 0);
}

void nf4_scales_align(nf4_scales *s)
{
    ptx_fn *f = s->f;
    if (s->args->is_nested)
        return;
    ptx_val scale = ptx_cvt(f, PTX_U32, ptx_address(f, s->args->scale));
    ptx_val odd = ptx_or(f, scale, ptx_shl(f, s->blocks, 2));
    s->is_aligned = ptx_eq(f, ptx_and(f, odd, 15), 0);
}

void nf4_scales_init(nf4_scales *s, ptx_val tid, ptx_val lane, ptx_val at)
{
    ptx_fn *f = s->f;
    const uint32_t teams = WARP_LANES / s->lanes;
    s->team = s->k_warp;
    s->lane = lane;
    if (teams > 1) {
        s->team = ptx_mad(f, s->k_warp, teams, ptx_div(f, lane, s->lanes));
        s->lane = ptx_and(f, lane, s->lanes - 1);
    }
    s->to = ptx_mad(f, s->team, s->column_bytes, at);
    if (s->args->is_nested)
        nf4_nested_fill(&s->args->nested, ptx_add(f, at, s->columns * s->column_bytes), tid);
}

/* Copies `count` scales of a column from `at` on; the lanes start at a sector boundary. The rest of the last step is zeros. */
static void copy_column(const nf4_scales *s, ptx_val at, ptx_val to, ptx_val count)
{
    ptx_fn *f = s->f;
    ptx_val end = ptx_and(f, ptx_add(f, count, s->step - 1), -s->step);
    ptx_val word = ptx_shr(f, ptx_cvt(f, PTX_U32, ptx_address(f, at)), 2);
    ptx_val early = ptx_and(f, word, SECTOR_BYTES / 4 - 1);
    ptx_val first = ptx_as(f, PTX_S32, ptx_sub(f, s->lane, early));
    PTX_FOR (f, i, first, ptx_as(f, PTX_S32, end), s->lanes) {
        PTX_IF (f, ptx_ge(f, i, 0)) {
            ptx_val x = ptx_var(f, ptx_f32(0)), from = ptx_at(f, at, i);
            ptx_val in_bounds = ptx_lt(f, i, ptx_as(f, PTX_S32, count));
            PTX_WHEN (f, in_bounds) {
                ptx_set(f, x, ptx_load_hint(f, from, PTX_NC));
            }
            ptx_store(f, ptx_at(f, to, i), x);
        }
    }
}

/* Copies a chunk of nested scales from number `first` in the tensor on, of which `count` are in bounds; the others are 0. */
static void copy_nested(const nf4_scales *s, ptx_val first, ptx_val to, ptx_val count)
{
    ptx_fn *f = s->f;
    ptx_val number[LANE_SCALES], in_bounds[LANE_SCALES], scale[LANE_SCALES];
    for (uint32_t i = 0; i < LANE_SCALES; i++) {
        ptx_val mine = i == 0 ? s->lane : ptx_add(f, s->lane, i * s->lanes);
        number[i] = ptx_add(f, first, ptx_cvt(f, PTX_U64, mine));
        in_bounds[i] = ptx_lt(f, mine, count);
    }
    nf4_nested_load(&s->args->nested, LANE_SCALES, number, in_bounds, scale);
    for (uint32_t i = 0; i < LANE_SCALES; i++)
        ptx_store(f, ptx_at_const(f, ptx_at(f, to, s->lane), i * s->lanes), scale[i]);
}

/* Copies the chunk that begins with quantised block `first` of each column. The teams of all warps take turns at columns. */
static void copy_chunk(const nf4_scales *s, ptx_val first)
{
    ptx_fn *f = s->f;
    const nf4_args *args = s->args;
    const uint32_t teams = WARP_LANES / s->lanes * s->k_warps, copies = s->columns / teams;
    ptx_val at[MOST_COPIES], to[MOST_COPIES], count = ptx_sub(f, s->blocks, first);
    if (!args->is_nested)
        count = ptx_min(f, count, s->chunk);
    ptx_val mine = ptx_add(f, s->first_column, s->team);
    for (uint32_t i = 0; i < copies; i++) {
        ptx_val column = tail_clamp(f, ptx_add(f, mine, i * teams), args->n);
        ptx_val line = ptx_mul_wide(f, column, s->blocks);
        to[i] = shared_at(f, PTX_F32, s->to, i * teams * s->column_bytes);
        if (args->is_nested)
            copy_nested(s, ptx_add(f, line, ptx_cvt(f, PTX_U64, first)), to[i], count);
        else
            at[i] = ptx_at(f, ptx_at(f, args->scale, line), first);
    }
    if (args->is_nested)
        return;
    PTX_IF (f, s->is_aligned) {
        ptx_val own = ptx_shl(f, s->lane, 2);
        PTX_IF (f, ptx_lt(f, own, count)) {
            ptx_val x[MOST_COPIES][LANE_SCALES];
            for (uint32_t i = 0; i < copies; i++)
                ptx_load_vec(f, LANE_SCALES, x[i], ptx_at(f, at[i], own), PTX_NC);
            for (uint32_t i = 0; i < copies; i++)
                ptx_store_vec(f, LANE_SCALES, ptx_at(f, to[i], own), x[i], PTX_PLAIN);
        }
    }
    PTX_ELSE (f) {
        for (uint32_t i = 0; i < copies; i++)
            copy_column(s, at[i], to[i], count);
    }
}

void nf4_scales_add(const nf4_scales *s, ptx_val scales, uint32_t apart, uint32_t columns, uint32_t count,
                    const ptx_val partial[], const ptx_val sums[])
{
    ptx_fn *f = s->f;
    for (uint32_t c = 0; c < columns; c++) {
        ptx_val scale = ptx_load(f, shared_at(f, PTX_F32, scales, c * apart * s->column_bytes));
        if (s->args->wide == PTX_F64)
            scale = ptx_cvt(f, PTX_F64, scale);
        for (uint32_t i = c; i < count; i += columns)
            ptx_fma_to(f, sums[i], partial[i], scale);
    }
}

void nf4_scales_each_step(const nf4_scales *s, void (*multiply)(void *strategy, ptx_val k, ptx_val scales),
                          void *strategy)
{
    ptx_fn *f = s->f;
    PTX_FOR (f, first, 0, s->blocks, s->chunk) {
        copy_chunk(s, first);
        ptx_barrier(f);
        ptx_val from = ptx_shl(f, first, NF4_BLOCK_K_LOG2);
        ptx_val until = ptx_min(f, ptx_add(f, from, s->chunk * NF4_BLOCK_K), s->args->k);
        ptx_val start = ptx_mad(f, s->k_warp, s->step * NF4_BLOCK_K, from);
        ptx_val scales = ptx_sub(f, s->from, ptx_shl(f, first, 2));
        PTX_FOR (f, k, start, until, s->k_warps * s->step * NF4_BLOCK_K) {
            ptx_main_loop(f);
            ptx_val at = ptx_shr(f, k, NF4_BLOCK_K_LOG2 - 2);
            multiply(strategy, k, ptx_add(f, scales, at));
        }
        ptx_barrier(f);
    }
}
