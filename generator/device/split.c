/* A part's partial sums are contiguous, so that neighbouring threads write and read neighbouring vectors.
 *
 * ORDER. The stores of a part's threads come before a barrier, and the barrier before the first thread's atom.acq_rel.
 * This atom comes before that of the last part to arrive, which, with another barrier, comes before the loads of the
 * last part's threads (PTX ISA, memory consistency model: causality order). The counter resets itself: atom.inc wraps
 * at the last part.
 */
#include "split.h"
#include "if_needed.h"

static uint32_t vector_of(const split *s, uint32_t count)
{
    uint32_t most = s->type == PTX_F64 ? 2 : 4;
    while (count % most)
        most /= 2;
    return most;
}

static void store_part(const split *s, ptx_val first, const ptx_val sums[], uint32_t count, uint32_t vector)
{
    ptx_fn *f = s->f;
    ptx_val at = ptx_at(f, first, ptx_mul(f, s->part, s->threads * count));
    for (uint32_t i = 0; i < count; i += vector)
        ptx_store_vec(f, (int)vector, ptx_at_const(f, at, i * s->threads), &sums[i], PTX_PLAIN);
}

ptx_val split_arrive_at(ptx_fn *f, ptx_val tid, ptx_val tile_counters, ptx_val counter, ptx_val last)
{
    ptx_val order = ptx_shared(f, PTX_U32, 1, 4);
    ptx_barrier(f);
    PTX_IF (f, ptx_eq(f, tid, 0)) {
        ptx_val before = ptx_atom_inc(f, ptx_at(f, tile_counters, counter), last, PTX_ACQ_REL | PTX_GPU);
        ptx_store(f, order, before);
    }
    ptx_barrier(f);
    return ptx_eq(f, ptx_uniform(f, ptx_load(f, order)), last);
}

ptx_val split_arrive(const split *s)
{
    return split_arrive_at(s->f, s->tid, s->tile_counters, s->tile, ptx_u32(s->parts - 1));
}

/* Adds vectors of a record, `apart` numbers from one to the next: the first record sets the sums, others are added. */
static void add_record(const split *s, ptx_val from, uint32_t apart, bool is_first, ptx_val sums[],
                       uint32_t count, uint32_t vector)
{
    ptx_fn *f = s->f;
    for (uint32_t i = 0; i < count; i += vector) {
        ptx_val part[4];
        ptx_load_vec(f, (int)vector, part, ptx_at_const(f, from, i * apart), PTX_CG);
        for (uint32_t e = 0; e < vector; e++) {
            if (is_first)
                ptx_set(f, sums[i + e], part[e]);
            else
                ptx_add_to(f, sums[i + e], part[e]);
        }
    }
}

ptx_val split_add(const split *s, ptx_val sums[], uint32_t count)
{
    ptx_fn *f = s->f;
    uint32_t vector = vector_of(s, count);
    bool all_have = s->threads == ptx_block_x(f);
    /* This thread's first vector in part 0 of the tile. */
    ptx_val tile = ptx_mul_wide(f, s->tile, s->parts * s->threads * count);
    ptx_val tile_at = ptx_at(f, s->workspace, tile);
    ptx_val first = ptx_at(f, tile_at, vector == 1 ? s->tid : ptx_mul(f, s->tid, vector)), has_sums = {0};
    if (!all_have)
        has_sums = ptx_lt(f, s->tid, s->threads);
    IF_NEEDED (f, !all_have, has_sums) {
        store_part(s, first, sums, count, vector);
    }
    ptx_val is_last = split_arrive(s);
    PTX_IF (f, all_have ? is_last : ptx_and(f, is_last, has_sums)) {
        ptx_rarely(f);
        for (uint32_t part = 0; part < s->parts; part++) {
            ptx_val from = ptx_at_const(f, first, part * count * s->threads);
            add_record(s, from, s->threads, part == 0, sums, count, vector);
        }
    }
    return is_last;
}

/* ---- stretches ----------------------------------------------------------------------------------------------------- */

split_part split_find_part(ptx_fn *f, ptx_val steps, ptx_val part, uint32_t parts)
{
    ptx_val each = ptx_div(f, steps, parts), more = ptx_rem(f, steps, parts);
    ptx_val first = ptx_mad(f, part, each, ptx_min(f, part, more));
    ptx_val longer = ptx_select(f, ptx_lt(f, part, more), ptx_u32(1), 0);
    return (split_part){first, ptx_add(f, each, longer)};
}

split_stretch split_find_stretch(ptx_fn *f, ptx_val tiles, ptx_val length)
{
    ptx_val steps = ptx_mul(f, tiles, length), blocks = ptx_nctaid_x(f);
    ptx_val raised = ptx_sub(f, ptx_add(f, steps, blocks), 1);
    split_stretch of = {.length = length, .each = ptx_div(f, raised, blocks)};
    of.first = ptx_mul(f, ptx_ctaid_x(f), of.each);
    of.end = ptx_min(f, ptx_add(f, of.first, of.each), steps);
    return of;
}

/* This thread's first vector of a record. A thread block has two records: one for a tile that begins before its stretch, one
 * for a tile that begins in it. */
static ptx_val record_at(const split *s, ptx_val record, uint32_t count, uint32_t vector)
{
    ptx_fn *f = s->f;
    const uint32_t numbers = ptx_block_x(f) * count;
    ptx_val of_thread = vector == 1 ? s->tid : ptx_mul(f, s->tid, vector);
    return ptx_at(f, ptx_at(f, s->workspace, ptx_mul_wide(f, record, numbers)), of_thread);
}

ptx_val split_add_stretch(const split *s, const split_stretch *of, ptx_val sums[], uint32_t count)
{
    ptx_fn *f = s->f;
    const uint32_t vector = vector_of(s, count);
    ptx_val block = ptx_ctaid_x(f), start = ptx_mul(f, s->tile, of->length);
    ptx_val last_step = ptx_sub(f, ptx_add(f, start, of->length), 1);
    ptx_val first = ptx_div(f, start, of->each), last = ptx_div(f, last_step, of->each);
    ptx_val has_sums = ptx_var(f, ptx_u32(1));
    PTX_IF (f, ptx_ne(f, first, last)) {
        ptx_val is_first = ptx_select(f, ptx_eq(f, block, first), ptx_u32(1), 0);
        ptx_val to = record_at(s, ptx_mad(f, block, 2, is_first), count, vector);
        for (uint32_t i = 0; i < count; i += vector)
            ptx_store_vec(f, (int)vector, ptx_at_const(f, to, i * ptx_block_x(f)), &sums[i], PTX_PLAIN);
        ptx_val is_last = split_arrive_at(f, s->tid, s->tile_counters, first, ptx_sub(f, last, first));
        ptx_set(f, has_sums, ptx_select(f, is_last, ptx_u32(1), 0));
        PTX_IF (f, is_last) {
            ptx_rarely(f);
            ptx_val own = ptx_mad(f, first, 2, 1);
            add_record(s, record_at(s, own, count, vector), ptx_block_x(f), true, sums, count, vector);
            PTX_FOR (f, before, first, last, 1) {
                ptx_val record = ptx_mad(f, before, 2, 2);
                add_record(s, record_at(s, record, count, vector), ptx_block_x(f), false, sums, count,
                           vector);
            }
        }
    }
    return ptx_ne(f, has_sums, 0);
}
