/* linear on tensor cores: a thread block's tiles of y, and its part of k; sums go from registers through shared memory to y.
 *
 * With split_k 1 a thread block makes a tile, and has all of k. With more, split_k thread blocks share a tile: each has some of
 * k's stages, and if these do not divide evenly, the first have one more. With split_k 0 as many thread blocks as the device runs
 * at once have equal stretches of the stages of all tiles (device/split.h). A tile's last thread block adds its parts in k's order.
 */
#include "linear.h"

/* ---- the tile ----------------------------------------------------------------------------------------------------- */

linear_tile linear_find_tile(linear *l, uint32_t rows, uint32_t columns, uint32_t warp_columns,
                             uint32_t k_warps, uint32_t row_warps, uint32_t stage)
{
    ptx_fn *f = l->f;
    const uint32_t column_warps = columns / warp_columns;
    linear_tile s = {.rows = rows,
                     .columns = columns,
                     .warp_columns = warp_columns,
                     .k_warps = k_warps,
                     .row_warps = row_warps,
                     .stage = stage,
                     .rows_at_once = WARP_LANES * k_warps * row_warps / warp_columns,
                     .column_warp = l->warp};
    s.store_threads = columns * (s.rows_at_once < rows ? s.rows_at_once : rows);
    s.shared = ptx_address(f, ptx_shared_dynamic(f, PTX_U32));
    s.lane = fragment_find_lane(f, l->lane);
    if (k_warps > 1) {
        s.k_warp = ptx_div(f, l->warp, column_warps);
        s.column_warp = ptx_and(f, l->warp, column_warps - 1);
    }
    if (l->split_k != 0) {
        s.first_x = ptx_mul(f, ptx_ctaid_y(f), rows);
        s.first_w = ptx_mul(f, ptx_ctaid_x(f), columns);
    }
    if (row_warps > 1) {
        s.row_warp = ptx_div(f, l->warp, column_warps);
        s.column_warp = ptx_and(f, l->warp, column_warps - 1);
    }
    return s;
}

/* ---- its part of k ------------------------------------------------------------------------------------------------ */

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

/* Finds this thread block's tile, and its part of k. */
static void find_part(linear *l, linear_tile *s)
{
    ptx_fn *f = l->f;
    ptx_val stages = stages_of_k(l, s), part = ptx_ctaid_z(f);
    const split_part mine = split_find_part(f, stages, part, l->split_k);
    set_part(l, s, mine.first, mine.count);
    ptx_val row = ptx_ctaid_y(f), columns = ptx_nctaid_x(f);
    s->number = ptx_mad(f, row, columns, ptx_ctaid_x(f));
    keep(l, s->kept_tile, (ptx_val[]){s->number, s->first_x, s->first_w, part});
}

/* Finds the tile of stage `at` among the stages of all tiles, and the part of its k before `end`. Neighbouring tiles have the same
 * rows of W, so that several tiles of x read them from the L2 cache. `rows`: tiles in a column of y. */
static void find_stretch_part(linear *l, linear_tile *s, ptx_val at, ptx_val end, ptx_val rows)
{
    ptx_fn *f = l->f;
    ptx_val stages = stages_of_k(l, s);
    s->number = ptx_div(f, at, stages);
    ptx_val first = ptx_sub(f, at, ptx_mul(f, s->number, stages));
    ptx_val left = ptx_sub(f, stages, first);
    set_part(l, s, first, ptx_min(f, left, ptx_sub(f, end, at)));
    s->first_x = ptx_mul(f, ptx_rem(f, s->number, rows), s->rows);
    s->first_w = ptx_mul(f, ptx_div(f, s->number, rows), s->columns);
    keep(l, s->kept_tile, (ptx_val[]){s->number, s->first_x, s->first_w, ptx_u32(0)});
}

static void make_stretch(linear *l, linear_tile *s, void (*make)(void *strategy), void *strategy)
{
    ptx_fn *f = l->f;
    ptx_val rows = ptx_div(f, ptx_add(f, l->m, s->rows - 1), s->rows);
    ptx_val columns = ptx_div(f, ptx_add(f, l->w_rows, s->columns - 1), s->columns);
    ptx_val tiles = ptx_mul(f, rows, columns);
    s->stretch = split_find_stretch(f, tiles, stages_of_k(l, s));
    s->kept_stretch = ptx_shared(f, PTX_U32, KEPT_WORDS, 16);
    keep(l, s->kept_stretch, (ptx_val[]){s->stretch.length, s->stretch.each, s->stretch.end, rows});
    ptx_val at = ptx_var(f, s->stretch.first), end = ptx_var(f, s->stretch.end),
            rows_again = ptx_var(f, rows);
    PTX_IF (f, ptx_lt(f, at, end)) {
        PTX_LOOP (f) {
            ptx_val kept[KEPT_WORDS];
            find_stretch_part(l, s, at, end, rows_again);
            make(strategy);
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
    if (l->split_k == 0) {
        make_stretch(l, s, make, strategy);
        return;
    }
    if (l->split_k > 1)
        find_part(l, s);
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

/* ---- y ------------------------------------------------------------------------------------------------------------ */

warp_sums linear_init_sums(ptx_fn *f, uint32_t rows)
{
    warp_sums s = {.row_tiles = rows / SUMS_ROWS, .column_tiles = LINEAR_MMA_TILES};
    sums_clear(f, &s);
    return s;
}

uint32_t linear_bytes(uint32_t bytes, uint32_t rows, uint32_t columns, uint32_t k_warps)
{
    const uint32_t of_sums = k_warps * shared_sums_init(rows, columns, k_warps, (ptx_val){0}).tile_bytes;
    return bytes > of_sums ? bytes : of_sums;
}

/* Stores the warps' sums to shared memory, between barriers. */
static void gather_sums(linear *l, const linear_tile *s, warp_sums *sums)
{
    ptx_fn *f = l->f;
    shared_sums to = shared_sums_init(s->rows, s->columns, s->k_warps, s->shared);
    ptx_barrier(f);
    if (s->row_warps > 1)
        to.at = ptx_mad(f, s->row_warp, layout_rows(&to.rows, s->rows / s->row_warps), to.at);
    ptx_val column = ptx_mad(f, s->column_warp, s->warp_columns, s->lane.g);
    shared_sums_store(f, &to, sums, column, s->lane.t, s->k_warp);
    ptx_barrier(f);
}

/* Neighbouring threads store neighbouring elements of a row of y. Adds the sums of `slices` warps that share k. */
static void store_sums(linear *l, const linear_tile *s, uint32_t slices)
{
    ptx_fn *f = l->f;
    const shared_sums sums = shared_sums_init(s->rows, s->columns, slices, s->shared);
    const uint32_t columns = s->columns / l->column_rows, step = s->rows_at_once * l->column_rows;
    ptx_val in_tile = ptx_and(f, l->tid, columns - 1), row = ptx_div(f, l->tid, columns);
    ptx_val line = shared_sums_row(f, &sums, row),
            from = ptx_var(f, ptx_mad(f, in_tile, 4 * l->column_rows, line));
    if (l->is_pair)
        in_tile = ptx_mul(f, in_tile, l->column_rows);
    ptx_val row_of_w = ptx_add(f, in_tile, s->first_w), first = ptx_add(f, row, s->first_x);
    const linear_column column = linear_find_column(l, row_of_w);
    PTX_IF (f, ptx_lt(f, row_of_w, l->w_rows)) {
        ptx_val bias = linear_bias(l, &column);
        ptx_val past = ptx_add(f, s->first_x, s->rows), end = ptx_min(f, past, l->m);
        PTX_FOR (f, vector, first, end, step) {
            ptx_side_loop(f);
            ptx_val element = ptx_mad_wide(f, vector, column.stride, column.row_64), whole[2];
            for (uint32_t i = 0; i < l->column_rows; i++)
                whole[i] = shared_sums_load(f, &sums, from, 0, i);
            linear_store(l, &column, whole, bias, NULL, element);
            ptx_set(f, from, ptx_address(f, shared_sums_at(f, &sums, from, step, 0)));
        }
    }
}

ptx_val linear_add_parts(linear *l, const linear_tile *s, ptx_val sums[], uint32_t count)
{
    const split of = {.f = l->f,
                      .type = PTX_F32,
                      .parts = l->split_k,
                      .threads = s->store_threads,
                      .workspace = l->workspace,
                      .tile_counters = l->tile_counters,
                      .tile = s->number,
                      .part = s->part,
                      .tid = l->tid};
    return l->split_k > 0 ? split_add(&of, sums, count) : split_add_stretch(&of, &s->stretch, sums, count);
}

/* Adds the sums of the warps that share k, then those of the thread blocks: the last one then has the tile's sums in shared
 * memory. */
static ptx_val add_sums(linear *l, const linear_tile *s)
{
    enum { MOST_SUMS = 128 };
    ptx_fn *f = l->f;
    const shared_sums tiles = shared_sums_init(s->rows, s->columns, s->k_warps, s->shared);
    const uint32_t at_once = s->rows_at_once, count = at_once < s->rows ? s->rows / at_once : 1;
    const bool all_have = at_once <= s->rows; /* else the first threads have a sum each */
    ptx_val row = ptx_div(f, l->tid, s->columns), column = ptx_and(f, l->tid, s->columns - 1);
    ptx_val from = ptx_mad(f, column, 4, shared_sums_row(f, &tiles, row)), sums[MOST_SUMS], has_sum = {0};
    for (uint32_t i = 0; i < count && all_have; i++)
        sums[i] = ptx_var(f, shared_sums_load(f, &tiles, from, i * at_once, 0));
    if (!all_have) {
        has_sum = ptx_lt(f, l->tid, s->store_threads);
        sums[0] = ptx_var(f, ptx_f32(0));
        PTX_IF (f, has_sum) {
            ptx_set(f, sums[0], shared_sums_load(f, &tiles, from, 0, 0));
        }
    }
    ptx_val has_all = linear_add_parts(l, s, sums, count);
    ptx_val stores = all_have ? has_all : ptx_and(f, has_all, has_sum);
    PTX_IF (f, stores) {
        for (uint32_t i = 0; i < count; i++)
            ptx_store(f, shared_sums_at(f, &tiles, from, i * at_once, 0), sums[i]);
        if (l->is_pair) /* without a pair, each thread stores the sums that it wrote */
            ptx_barrier(f);
    }
    return has_all;
}

void linear_store_whole_sums(linear *l, const linear_tile *s, warp_sums *sums)
{
    gather_sums(l, s, sums);
    store_sums(l, s, s->k_warps);
}

void linear_store_sums(linear *l, linear_tile *s, warp_sums *sums)
{
    ptx_fn *f = l->f;
    if (l->split_k == 1) {
        linear_store_whole_sums(l, s, sums);
        return;
    }
    gather_sums(l, s, sums);
    linear_find_tile_again(l, s);
    ptx_val has_all = add_sums(l, s);
    PTX_IF (f, has_all) {
        store_sums(l, s, 1);
    }
}
