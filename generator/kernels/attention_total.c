/* Layout of a block in local memory: its fragments, then the shifts of its two rows, then the sums of their weights. */
#include "attention_total.h"

enum {
    NUMBERS = 4, /* of a fragment, and of two rows */
    AT_ONCE = 4  /* fragments */
};

attention_total attention_init_total(const attention *a, const attention_sums sums[], uint32_t blocks,
                                     uint32_t fragments)
{
    ptx_val at = ptx_local(a->f, PTX_F32, blocks * (fragments + 1) * NUMBERS, NUMBERS * 4);
    return (attention_total){a, sums, blocks, fragments, at};
}

/* The offset of fragment n of a block; after the last, of the numbers of its rows. */
static uint32_t offset_of(const attention_total *t, uint32_t block, uint32_t n)
{
    return (block * (t->fragments + 1) + n) * NUMBERS;
}

/* Sets the total to that of no keys. */
static void clear(const attention_total *t)
{
    ptx_val zero = ptx_f32(0), none = softmax_none(t->a->wide);
    const ptx_val zeros[NUMBERS] = {zero, zero, zero, zero}, rows[NUMBERS] = {none, none, zero, zero};
    for (uint32_t b = 0; b < t->blocks; b++)
        for (uint32_t n = 0; n <= t->fragments; n++)
            ptx_store_vec(t->a->f, NUMBERS, ptx_at_const(t->a->f, t->at, offset_of(t, b, n)),
                          n < t->fragments ? zeros : rows, PTX_PLAIN);
}

/* Adds the rows; gets the factor by which each row's total shrinks. */
static void add_rows(const attention_total *t, const attention_sums *s, ptx_val at, ptx_val shrink[2])
{
    ptx_fn *f = t->a->f;
    ptx_val old[NUMBERS], rows[NUMBERS];
    ptx_load_vec(f, NUMBERS, old, at, PTX_PLAIN);
    for (uint32_t r = 0; r < 2; r++) {
        ptx_val minus = softmax_minus(f, t->a->wide, &s->row[r]);
        shrink[r] = softmax_exp2(f, t->a->wide, ptx_add(f, old[r], minus));
        rows[r] = s->row[r].shift;
        rows[2 + r] = ptx_fma(f, old[2 + r], shrink[r], s->row[r].sum);
    }
    ptx_store_vec(f, NUMBERS, at, rows, PTX_PLAIN);
    for (uint32_t r = 0; r < 2; r++)
        ptx_set(f, s->row[r].sum, 0);
}

static void add_fragments(const attention_total *t, ptx_val fragments[][4], uint32_t count, ptx_val at,
                          const ptx_val shrink[2])
{
    ptx_fn *f = t->a->f;
    ptx_val total[AT_ONCE][NUMBERS];
    for (uint32_t n = 0; n < count; n++)
        ptx_load_vec(f, NUMBERS, total[n], ptx_at_const(f, at, n * NUMBERS), PTX_PLAIN);
    for (uint32_t n = 0; n < count; n++) {
        for (uint32_t i = 0; i < NUMBERS; i++)
            total[n][i] = ptx_fma(f, total[n][i], shrink[i / 2], fragments[n][i]);
        ptx_store_vec(f, NUMBERS, ptx_at_const(f, at, n * NUMBERS), total[n], PTX_PLAIN);
        for (uint32_t i = 0; i < NUMBERS; i++)
            ptx_set(f, fragments[n][i], 0);
    }
}

/* Adds the sums of a chunk, scaled by the shift that their row has now. They restart at 0. Where ptxas knows that addresses
 * differ, it loads everything at once, and has registers for nothing else. So offsets are multiplied by a one that it does
 * not know: min(thread blocks, 1). */
static void add_chunk(const attention_total *t)
{
    ptx_fn *f = t->a->f;
    ptx_val one = ptx_min(f, ptx_nctaid_x(f), 1);
    for (uint32_t b = 0; b < t->blocks; b++) {
        const attention_sums *s = &t->sums[b];
        ptx_val shrink[2], rows = ptx_mul(f, one, offset_of(t, b, t->fragments));
        add_rows(t, s, ptx_at(f, t->at, rows), shrink);
        for (uint32_t n = 0; n < t->fragments; n += AT_ONCE) {
            uint32_t left = t->fragments - n;
            ptx_val offset = ptx_mul(f, one, offset_of(t, b, n));
            add_fragments(t, &s->fragment[n], left < AT_ONCE ? left : AT_ONCE, ptx_at(f, t->at, offset),
                          shrink);
        }
    }
}

/* Replaces the sums by the total. */
static void take(const attention_total *t)
{
    ptx_fn *f = t->a->f;
    for (uint32_t b = 0; b < t->blocks; b++) {
        const attention_sums *s = &t->sums[b];
        for (uint32_t n = 0; n <= t->fragments; n++) {
            ptx_val x[NUMBERS];
            ptx_load_vec(f, NUMBERS, x, ptx_at_const(f, t->at, offset_of(t, b, n)), PTX_PLAIN);
            for (uint32_t i = 0; n < t->fragments && i < NUMBERS; i++)
                ptx_set(f, s->fragment[n][i], x[i]);
            for (uint32_t r = 0; n == t->fragments && r < 2; r++)
                ptx_set(f, s->row[r].sum, x[2 + r]);
        }
    }
}

/* Of all totals, where there are more keys than one chunk takes. */
static void where_long(const attention_total totals[], uint32_t count, uint32_t chunk_keys,
                       void (*what)(const attention_total *t))
{
    const attention *a = totals[0].a;
    ptx_val end = ptx_add(a->f, a->first_key, chunk_keys);
    PTX_IF (a->f, ptx_gt(a->f, a->end, end)) {
        ptx_rarely(a->f);
        for (uint32_t i = 0; i < count; i++)
            what(&totals[i]);
    }
}

void attention_add_tiles(const attention_total totals[], uint32_t count, uint32_t chunk_keys,
                         const ptx_val *ahead, void (*add)(void *of, ptx_val counted), void *of)
{
    const attention *a = totals[0].a;
    ptx_fn *f = a->f;
    where_long(totals, count, chunk_keys, clear);
    PTX_FOR (f, chunk, a->first_key, a->end, chunk_keys) {
        ptx_val behind = ptx_add(f, chunk, chunk_keys);
        ptx_val end = ptx_min(f, behind, a->end), first = ahead ? ptx_add(f, chunk, *ahead) : chunk;
        PTX_FOR (f, counted, first, end, a->tile_k) {
            ptx_main_loop(f);
            add(of, counted);
        }
        where_long(totals, count, chunk_keys, add_chunk);
    }
    where_long(totals, count, chunk_keys, take);
}
