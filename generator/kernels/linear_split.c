/* linear on tensor cores: a thread block's tiles of y, and its part of k.
 *
 * With split_k 1 a thread block makes a tile, and has all of k. With more, split_k thread blocks share a tile: each has some of
 * k's stages, and if these do not divide evenly, the first have one more. With split_k 0 as many thread blocks as the device runs
 * at once have equal stretches of the stages of all tiles (device/split.h). A tile's last thread block adds its parts in k's order.
 */
#include "linear.h"

static void set_part(linear *l, const linear_tile *s, ptx_val first, ptx_val count)
{
    ptx_fn *f = l->f;
    const weight_format *format = l->of.format;
    l->part_stages = count;
    l->part_element = ptx_mul(f, first, s->stage);
    l->part_byte = ptx_mul(f, first, s->stage / format->elements * format->bytes);
}

static ptx_val stages_of_k(linear *l, const linear_tile *s)
{
    ptx_fn *f = l->f;
    return ptx_div(f, ptx_add(f, l->k, s->stage - 1), s->stage);
}

/* During the loop along k shared memory keeps values that all threads share: no register is left for them. */
enum { KEPT_WORDS = 4 };

static void keep(linear *l, ptx_val to, const ptx_val words[KEPT_WORDS])
{
    PTX_WHEN (l->f, ptx_eq(l->f, l->tid, 0)) {
        ptx_store_vec(l->f, KEPT_WORDS, to, words, PTX_PLAIN);
    }
}

static void get_back(linear *l, ptx_val from, ptx_val words[KEPT_WORDS])
{
    ptx_load_vec(l->f, KEPT_WORDS, words, from, PTX_PLAIN);
    for (uint32_t i = 0; i < KEPT_WORDS; i++)
        words[i] = ptx_uniform(l->f, words[i]);
}

static void keep_stretch(linear *l, linear_tile *s, ptx_val rows)
{
    const ptx_val words[KEPT_WORDS] = {s->stretch.length, s->stretch.each, s->stretch.end, rows};
    s->kept_stretch = ptx_shared(l->f, PTX_U32, KEPT_WORDS, 16);
    keep(l, s->kept_stretch, words);
}

static void keep_tile(linear *l, const linear_tile *s, ptx_val part)
{
    const ptx_val words[KEPT_WORDS] = {s->number, s->first_x, s->first_w, part};
    keep(l, s->kept_tile, words);
}

void linear_find_tile_again(linear *l, linear_tile *s)
{
    ptx_val words[KEPT_WORDS];
    get_back(l, s->kept_tile, words);
    s->number = words[0];
    s->first_x = words[1];
    s->first_w = words[2];
    s->part = words[3];
    if (l->split_k > 0)
        return;
    get_back(l, s->kept_stretch, words);
    s->stretch.length = words[0];
    s->stretch.each = words[1];
}

static void find_part(linear *l, linear_tile *s)
{
    ptx_fn *f = l->f;
    ptx_val stages = stages_of_k(l, s), part = ptx_ctaid_z(f);
    const split_part mine = split_find_part(f, stages, part, l->split_k);
    set_part(l, s, mine.first, mine.count);
    ptx_val row = ptx_ctaid_y(f), columns = ptx_nctaid_x(f);
    s->number = ptx_mad(f, row, columns, ptx_ctaid_x(f));
    keep_tile(l, s, part);
}

/* The tile at a step of all tiles, and the stretch's part of its k. Neighbouring tiles have the same rows of W, so that
 * several tiles of x read them from the L2 cache. */
static void find_tile(linear *l, linear_tile *s, ptx_val at, ptx_val end, ptx_val rows)
{
    ptx_fn *f = l->f;
    ptx_val stages = stages_of_k(l, s);
    s->number = ptx_div(f, at, stages);
    ptx_val first = ptx_sub(f, at, ptx_mul(f, s->number, stages));
    ptx_val left = ptx_sub(f, stages, first);
    set_part(l, s, first, ptx_min(f, left, ptx_sub(f, end, at)));
    s->first_x = ptx_mul(f, ptx_rem(f, s->number, rows), s->rows);
    s->first_w = ptx_mul(f, ptx_div(f, s->number, rows), s->columns);
    keep_tile(l, s, ptx_u32(0));
}

static void make_stretch(linear *l, linear_tile *s, void (*make)(void *strategy), void *strategy)
{
    ptx_fn *f = l->f;
    ptx_val rows = ptx_div(f, ptx_add(f, l->m, s->rows - 1), s->rows);
    ptx_val columns = ptx_div(f, ptx_add(f, l->w_rows, s->columns - 1), s->columns);
    ptx_val tiles = ptx_mul(f, rows, columns);
    s->stretch = split_find_stretch(f, tiles, stages_of_k(l, s));
    keep_stretch(l, s, rows);
    ptx_val at = ptx_var(f, s->stretch.first), end = ptx_var(f, s->stretch.end),
            rows_again = ptx_var(f, rows);
    PTX_IF (f, ptx_lt(f, at, end)) {
        PTX_LOOP (f) {
            find_tile(l, s, at, end, rows_again);
            make(strategy);
            ptx_val kept[KEPT_WORDS];
            get_back(l, s->kept_stretch, kept);
            ptx_val past = ptx_mad(f, s->number, kept[0], kept[0]);
            ptx_barrier(f); /* all have read what the next tile overwrites */
            ptx_set(f, end, kept[2]);
            ptx_set(f, rows_again, kept[3]);
            ptx_set(f, at, ptx_min(f, past, kept[2]));
            ptx_repeat_if(f, ptx_lt(f, at, kept[2]));
        }
    }
}

void linear_make_tiles(linear *l, linear_tile *s, void (*make)(void *strategy), void *strategy)
{
    if (l->split_k != 1)
        s->kept_tile = ptx_shared(l->f, PTX_U32, KEPT_WORDS, 16);
    if (l->split_k > 1)
        find_part(l, s);
    if (l->split_k == 0)
        make_stretch(l, s, make, strategy);
    else
        make(strategy);
}

/* Only the trip counter stays live over a trip, to save registers. */
void linear_each_trip(linear *l, uint32_t elements, ptx_val left, void (*trip)(void *strategy),
                      void *strategy)
{
    ptx_fn *f = l->f;
    if (l->split_k == 1) {
        PTX_FOR (f, first, 0, l->k, elements) {
            ptx_main_loop(f);
            trip(strategy);
        }
        return;
    }
    PTX_IF (f, ptx_gt(f, left, 0)) {
        PTX_LOOP (f) {
            ptx_main_loop(f);
            trip(strategy);
            ptx_sub_to(f, left, 1);
            ptx_repeat_if(f, ptx_gt(f, left, 0));
        }
    }
}

ptx_val linear_add_parts(linear *l, const linear_tile *s, ptx_val sums[], uint32_t count)
{
    const split of = {.f = l->f,
                      .type = PTX_F32,
                      .parts = l->split_k,
                      .threads = linear_store_threads(s),
                      .workspace = l->workspace,
                      .tile_counters = l->tile_counters,
                      .tile = s->number,
                      .part = s->part,
                      .tid = l->tid};
    return l->split_k > 0 ? split_add(&of, sums, count) : split_add_stretch(&of, &s->stretch, sums, count);
}
