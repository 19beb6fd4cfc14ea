/* MANY KEYS. Tensor cores truncate at every step, so after k keys a sum falls short by a relative error that grows with k; a
 * sum of weights takes one addition per key of a lane. So every CHUNK keys the sums are added, with rounding, to a
 * total, and restart at 0. A thread's total is in local memory, since no registers are left; it is accessed once per chunk, and
 * only if there is more than one chunk.
 *
 * For each block of rows a total has the octets of columns, then the shifts of the two rows, then the rows' sums of
 * weights.
 */
#include "attention_warp.h"

enum {
    CHUNK = 4096, /* keys of a warp; a multiple of every tile_k */
    MOST_TOTALS = 2,
    NUMBERS = 4, /* values of one octet in two rows, or the shifts and sums of two rows */
    AT_ONCE = 4  /* octets */
};

typedef struct total {
    const attention *a;
    attention_rows *rows;
    ptx_val at;
} total;

/* The offset of an octet of a block; past the last octet, of the shifts and sums of the block's rows. */
static uint32_t offset_of(const total *t, uint32_t block, uint32_t octet)
{
    return (block * (attention_octets(&t->rows->o) + 1) + octet) * NUMBERS;
}

/* Finds the variables of an octet's numbers. */
static void find_numbers(const total *t, uint32_t block, uint32_t octet, ptx_val x[NUMBERS])
{
    if (octet < attention_octets(&t->rows->o)) {
        attention_product(&t->rows->o, block, octet, x);
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        x[i] = t->rows->row[2 * block + i].shift;
        x[2 + i] = t->rows->row[2 * block + i].sum;
    }
}

/* Initialises the total to no keys. */
static void clear(const total *t)
{
    const uint32_t octets = attention_octets(&t->rows->o);
    ptx_val zero = ptx_f32(0), none = softmax_none(t->a->wide);
    const ptx_val zeros[NUMBERS] = {zero, zero, zero, zero}, rows[NUMBERS] = {none, none, zero, zero};
    for (uint32_t b = 0; b < attention_blocks(&t->rows->o); b++)
        for (uint32_t n = 0; n <= octets; n++)
            ptx_store_vec(t->a->f, NUMBERS, ptx_at_const(t->a->f, t->at, offset_of(t, b, n)),
                          n < octets ? zeros : rows, PTX_PLAIN);
}

/* Adds the sums of weights of a block; returns the factors by which the totals of its rows shrink. */
static void add_rows(const total *t, const softmax_row row[2], ptx_val at, ptx_val shrink[2])
{
    ptx_fn *f = t->a->f;
    ptx_val old[NUMBERS], now[NUMBERS];
    ptx_load_vec(f, NUMBERS, old, at, PTX_PLAIN);
    for (uint32_t i = 0; i < 2; i++) {
        ptx_val minus = softmax_minus(f, t->a->wide, &row[i]);
        shrink[i] = softmax_exp2(f, t->a->wide, ptx_add(f, old[i], minus));
        now[i] = row[i].shift;
        now[2 + i] = ptx_fma(f, old[2 + i], shrink[i], row[i].sum);
    }
    ptx_store_vec(f, NUMBERS, at, now, PTX_PLAIN);
    for (uint32_t i = 0; i < 2; i++)
        ptx_set(f, row[i].sum, 0);
}

static void add_octets(const total *t, uint32_t block, uint32_t first, ptx_val at, const ptx_val shrink[2])
{
    ptx_fn *f = t->a->f;
    const uint32_t left = attention_octets(&t->rows->o) - first, count = left < AT_ONCE ? left : AT_ONCE;
    ptx_val all[AT_ONCE][NUMBERS], sums[NUMBERS];
    for (uint32_t n = 0; n < count; n++)
        ptx_load_vec(f, NUMBERS, all[n], ptx_at_const(f, at, n * NUMBERS), PTX_PLAIN);
    for (uint32_t n = 0; n < count; n++) {
        find_numbers(t, block, first + n, sums);
        for (uint32_t i = 0; i < NUMBERS; i++)
            all[n][i] = ptx_fma(f, all[n][i], shrink[i / 2], sums[i]);
        ptx_store_vec(f, NUMBERS, ptx_at_const(f, at, n * NUMBERS), all[n], PTX_PLAIN);
        for (uint32_t i = 0; i < NUMBERS; i++)
            ptx_set(f, sums[i], 0);
    }
}

/* Scales the total to its rows' shifts, and adds a chunk's sums, which restart at 0. If ptxas knew that the addresses differ,
 * it would load everything at once and run out of registers. So offsets are multiplied by min(thread blocks, 1), which ptxas
 * does not know to be 1. */
static void add_chunk(const total *t)
{
    ptx_fn *f = t->a->f;
    const uint32_t octets = attention_octets(&t->rows->o);
    ptx_val one = ptx_min(f, ptx_nctaid_x(f), 1), shrink[2];
    for (uint32_t b = 0; b < attention_blocks(&t->rows->o); b++) {
        ptx_val rows = ptx_mul(f, one, offset_of(t, b, octets));
        add_rows(t, &t->rows->row[2 * b], ptx_at(f, t->at, rows), shrink);
        for (uint32_t n = 0; n < octets; n += AT_ONCE)
            add_octets(t, b, n, ptx_at(f, t->at, ptx_mul(f, one, offset_of(t, b, n))), shrink);
    }
}

/* Replaces the sums by the total. */
static void take(const total *t)
{
    ptx_fn *f = t->a->f;
    const uint32_t octets = attention_octets(&t->rows->o);
    ptx_val sums[NUMBERS], x[NUMBERS];
    for (uint32_t b = 0; b < attention_blocks(&t->rows->o); b++) {
        for (uint32_t n = 0; n <= octets; n++) {
            find_numbers(t, b, n, sums);
            ptx_load_vec(f, NUMBERS, x, ptx_at_const(f, t->at, offset_of(t, b, n)), PTX_PLAIN);
            for (uint32_t i = n < octets ? 0 : 2; i < NUMBERS; i++) /* shifts stay */
                ptx_set(f, sums[i], x[i]);
        }
    }
}

/* Applies a function to all totals, if there are more keys than one chunk. */
static void apply_if_long(const attention *a, const total totals[], uint32_t count, uint32_t chunk_keys,
                          void (*what)(const total *t))
{
    ptx_val end = ptx_add(a->f, a->first_key, chunk_keys);
    PTX_IF (a->f, ptx_gt(a->f, a->end, end)) {
        ptx_rarely(a->f);
        for (uint32_t i = 0; i < count; i++)
            what(&totals[i]);
    }
}

void attention_add_chunks(attention_warp *m, attention_rows *const rows[], uint32_t count,
                          const ptx_val *ahead, void (*add)(attention_warp *m, ptx_val counted))
{
    const attention *a = m->a;
    const uint32_t chunk_keys = CHUNK / m->keys * a->tile_k;
    ptx_fn *f = a->f;
    total totals[MOST_TOTALS];
    for (uint32_t i = 0; i < count; i++) {
        const attention_slice *o = &rows[i]->o;
        const uint32_t numbers = attention_blocks(o) * (attention_octets(o) + 1) * NUMBERS;
        totals[i] = (total){a, rows[i], ptx_local(f, PTX_F32, numbers, NUMBERS * 4)};
    }
    apply_if_long(a, totals, count, chunk_keys, clear);
    PTX_FOR (f, chunk, a->first_key, a->end, chunk_keys) {
        ptx_val next_chunk = ptx_add(f, chunk, chunk_keys);
        ptx_val end = ptx_min(f, next_chunk, a->end), first = ahead ? ptx_add(f, chunk, *ahead) : chunk;
        PTX_FOR (f, counted, first, end, a->tile_k) {
            ptx_main_loop(f);
            add(m, counted);
        }
        apply_if_long(a, totals, count, chunk_keys, add_chunk);
    }
    apply_if_long(a, totals, count, chunk_keys, take);
}
