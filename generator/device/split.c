/* The partial sums of a part lie together, so that neighbouring threads write and read neighbouring vectors.
 *
 * ORDER. The stores of a part's threads come before a barrier, the barrier before the first thread's atom.acq_rel. That
 * comes before the atom.acq_rel of the last part to arrive, and this, with another barrier, before the loads of that
 * part's threads (PTX ISA, memory consistency model: causality order). The counter resets itself: atom.inc wraps at the
 * last part.
 */
#include "split.h"

static uint32_t vector_of(const split *s, uint32_t count)
{
    uint32_t most = s->type == PTX_F64 ? 2 : 4;
    while (count % most)
        most /= 2;
    return most;
}

/* This thread's first vector in part 0 of the tile. */
static ptx_val first_of(const split *s, uint32_t count, uint32_t vector)
{
    ptx_fn *f = s->f;
    ptx_val tile = ptx_mul_wide(f, s->tile, ptx_u32(s->parts * s->threads * count));
    ptx_val tile_at = ptx_at(f, s->workspace, tile);
    return ptx_at(f, tile_at, vector == 1 ? s->tid : ptx_mul(f, s->tid, ptx_u32(vector)));
}

static void store_part(const split *s, ptx_val first, const ptx_val sums[], uint32_t count, uint32_t vector)
{
    ptx_fn *f = s->f;
    ptx_val at = ptx_at(f, first, ptx_mul(f, s->part, ptx_u32(s->threads * count)));
    for (uint32_t i = 0; i < count; i += vector)
        ptx_store_vec(f, (int)vector, ptx_at_const(f, at, i * s->threads), &sums[i], PTX_PLAIN);
}

ptx_val split_arrive_at(ptx_fn *f, ptx_val tid, ptx_val tile_counters, ptx_val counter, ptx_val last)
{
    ptx_val order = ptx_shared(f, PTX_U32, 1, 4);
    ptx_barrier(f);
    PTX_IF (f, ptx_eq(f, tid, ptx_u32(0))) {
        ptx_val before = ptx_atom_inc(f, ptx_at(f, tile_counters, counter), last, PTX_ACQ_REL | PTX_GPU);
        ptx_store(f, order, before);
    }
    ptx_barrier(f);
    ptx_val arrived = ptx_uniform(f, ptx_load(f, order));
    return ptx_eq(f, arrived, last);
}

ptx_val split_arrive(const split *s)
{
    return split_arrive_at(s->f, s->tid, s->tile_counters, s->tile, ptx_u32(s->parts - 1));
}

static void add_parts(const split *s, ptx_val first, ptx_val sums[], uint32_t count, uint32_t vector)
{
    ptx_fn *f = s->f;
    for (uint32_t part = 0; part < s->parts; part++) {
        for (uint32_t i = 0; i < count; i += vector) {
            ptx_val partial[4];
            ptx_val from = ptx_at_const(f, first, (part * count + i) * s->threads);
            ptx_load_vec(f, (int)vector, partial, from, PTX_CG);
            for (uint32_t e = 0; e < vector; e++) {
                if (part == 0)
                    ptx_set(f, sums[i + e], partial[e]);
                else
                    ptx_add_to(f, sums[i + e], partial[e]);
            }
        }
    }
}

ptx_val split_add(const split *s, ptx_val sums[], uint32_t count)
{
    ptx_fn *f = s->f;
    uint32_t vector = vector_of(s, count);
    bool all_have = s->threads == ptx_block_x(f);
    ptx_val first = first_of(s, count, vector), has_sums;
    if (all_have) {
        store_part(s, first, sums, count, vector);
    } else {
        has_sums = ptx_lt(f, s->tid, ptx_u32(s->threads));
        PTX_IF (f, has_sums) {
            store_part(s, first, sums, count, vector);
        }
    }
    ptx_val is_last = split_arrive(s);
    PTX_IF (f, all_have ? is_last : ptx_and(f, is_last, has_sums)) {
        ptx_rarely(f);
        add_parts(s, first, sums, count, vector);
    }
    return is_last;
}
