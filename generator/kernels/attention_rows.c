/* A total has for each block its octets of columns, then the shifts of its two rows, then the sums of their weights. */
#include "attention_rows.h"

enum {
    NUMBERS = 4, /* values of one octet in two rows, or the shifts and sums of two rows */
    AT_ONCE = 4  /* octets */
};

/* ---- sums ------------------------------------------------------------------------------------------------------------ */

void attention_init_rows(const attention *a, attention_rows *r, uint32_t block)
{
    for (uint32_t i = 0; i < 2; i++)
        softmax_init_row(a->f, a->wide, &r->row[2 * block + i]);
}

void attention_clear_sums(const attention *a, attention_rows *r, uint32_t block)
{
    for (uint32_t i = 0; i < 4 * r->sums.octets; i++)
        attention_product(&r->sums, block, i / 4)[i % 4] = ptx_var(a->f, ptx_f32(0));
}

/* ---- many keys ------------------------------------------------------------------------------------------------------- */

typedef struct total {
    const attention *a;
    attention_rows *rows;
    ptx_val at;
} total;

static total init_total(const attention *a, attention_rows *rows)
{
    const uint32_t numbers = rows->sums.blocks * (rows->sums.octets + 1) * NUMBERS;
    return (total){a, rows, ptx_local(a->f, PTX_F32, numbers, NUMBERS * 4)};
}

/* The offset of an octet of a block. Past the last octet: the offset of the shifts and sums of the block's rows. */
static uint32_t offset_of(const total *t, uint32_t block, uint32_t octet)
{
    return (block * (t->rows->sums.octets + 1) + octet) * NUMBERS;
}

/* Sets the total to that of no keys. */
static void clear(const total *t)
{
    const attention_sums *s = &t->rows->sums;
    ptx_val zero = ptx_f32(0), none = softmax_none(t->a->wide);
    const ptx_val zeros[NUMBERS] = {zero, zero, zero, zero}, rows[NUMBERS] = {none, none, zero, zero};
    for (uint32_t b = 0; b < s->blocks; b++)
        for (uint32_t n = 0; n <= s->octets; n++)
            ptx_store_vec(t->a->f, NUMBERS, ptx_at_const(t->a->f, t->at, offset_of(t, b, n)),
                          n < s->octets ? zeros : rows, PTX_PLAIN);
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

static void add_octets(const total *t, ptx_val octets[][4], uint32_t count, ptx_val at,
                       const ptx_val shrink[2])
{
    ptx_fn *f = t->a->f;
    ptx_val of_all[AT_ONCE][NUMBERS];
    for (uint32_t n = 0; n < count; n++)
        ptx_load_vec(f, NUMBERS, of_all[n], ptx_at_const(f, at, n * NUMBERS), PTX_PLAIN);
    for (uint32_t n = 0; n < count; n++) {
        for (uint32_t i = 0; i < NUMBERS; i++)
            of_all[n][i] = ptx_fma(f, of_all[n][i], shrink[i / 2], octets[n][i]);
        ptx_store_vec(f, NUMBERS, ptx_at_const(f, at, n * NUMBERS), of_all[n], PTX_PLAIN);
        for (uint32_t i = 0; i < NUMBERS; i++)
            ptx_set(f, octets[n][i], 0);
    }
}

/* Scales the total to its rows' shifts, and adds a chunk's sums, which restart at 0. If ptxas knew that the addresses differ,
 * it would load everything at once, and have no registers for anything else. So offsets are multiplied by a one that ptxas
 * cannot know: min(thread blocks, 1). */
static void add_chunk(const total *t)
{
    ptx_fn *f = t->a->f;
    attention_sums *s = &t->rows->sums;
    ptx_val one = ptx_min(f, ptx_nctaid_x(f), 1);
    for (uint32_t b = 0; b < s->blocks; b++) {
        ptx_val shrink[2], rows = ptx_mul(f, one, offset_of(t, b, s->octets));
        add_rows(t, &t->rows->row[2 * b], ptx_at(f, t->at, rows), shrink);
        for (uint32_t n = 0; n < s->octets; n += AT_ONCE) {
            const uint32_t left = s->octets - n, count = left < AT_ONCE ? left : AT_ONCE;
            ptx_val at = ptx_at(f, t->at, ptx_mul(f, one, offset_of(t, b, n)));
            add_octets(t, &s->of[b * s->octets + n], count, at, shrink);
        }
    }
}

/* Replaces the sums by the total. */
static void take(const total *t)
{
    ptx_fn *f = t->a->f;
    attention_sums *s = &t->rows->sums;
    for (uint32_t b = 0; b < s->blocks; b++) {
        for (uint32_t n = 0; n <= s->octets; n++) {
            ptx_val x[NUMBERS];
            ptx_load_vec(f, NUMBERS, x, ptx_at_const(f, t->at, offset_of(t, b, n)), PTX_PLAIN);
            for (uint32_t i = 0; n < s->octets && i < NUMBERS; i++)
                ptx_set(f, attention_product(s, b, n)[i], x[i]);
            for (uint32_t i = 0; n == s->octets && i < 2; i++)
                ptx_set(f, t->rows->row[2 * b + i].sum, x[2 + i]);
        }
    }
}

/* Applies a function to all totals, if there are more keys than one chunk. */
static void where_long(const attention *a, const total totals[], uint32_t count, uint32_t chunk_keys,
                       void (*what)(const total *t))
{
    ptx_val end = ptx_add(a->f, a->first_key, chunk_keys);
    PTX_IF (a->f, ptx_gt(a->f, a->end, end)) {
        ptx_rarely(a->f);
        for (uint32_t i = 0; i < count; i++)
            what(&totals[i]);
    }
}

void attention_add_chunks(const attention *a, attention_rows *const rows[], uint32_t count,
                          uint32_t chunk_keys, const ptx_val *ahead, void (*add)(void *of, ptx_val counted),
                          void *of)
{
    ptx_fn *f = a->f;
    total totals[MOST_TOTALS];
    for (uint32_t i = 0; i < count; i++)
        totals[i] = init_total(a, rows[i]);
    where_long(a, totals, count, chunk_keys, clear);
    PTX_FOR (f, chunk, a->first_key, a->end, chunk_keys) {
        ptx_val behind = ptx_add(f, chunk, chunk_keys);
        ptx_val end = ptx_min(f, behind, a->end), first = ahead ? ptx_add(f, chunk, *ahead) : chunk;
        PTX_FOR (f, counted, first, end, a->tile_k) {
            ptx_main_loop(f);
            add(of, counted);
        }
        where_long(a, totals, count, chunk_keys, add_chunk);
    }
    where_long(a, totals, count, chunk_keys, take);
}

/* ---- results --------------------------------------------------------------------------------------------------------- */

void attention_number_rows(const attention *a, const attention_rows *r, ptx_val first, ptx_val numbers[])
{
    for (uint32_t i = 0; i < 2 * r->sums.blocks; i++)
        numbers[i] = attention_plus(a->f, first, OCTET * i);
}

ptx_val attention_column(const attention_rows *r, uint32_t i, uint32_t n)
{
    const uint32_t of_four = n / 4 * 4 + n % 2 * 2 + n % 4 / 2;
    return attention_sum(&r->sums, i, r->width == 4 ? of_four : n);
}

attention_slices attention_slice_rows(const attention *a, const attention_rows *r, ptx_val first,
                                      ptx_val column)
{
    const uint32_t columns = 2 * r->sums.octets;
    attention_slices s = {.rows = 2 * r->sums.blocks, .width = r->width, .step = 4 * r->width};
    s.count = columns / s.width;
    s.column = column;
    attention_number_rows(a, r, first, s.number);
    for (uint32_t i = 0; i < s.rows; i++) {
        s.row[i] = r->row[i];
        for (uint32_t n = 0; n < columns; n++)
            s.sums[i][n] = attention_column(r, i, n);
    }
    return s;
}
