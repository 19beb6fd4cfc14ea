/* y = W * h: vectors times a matrix of weights in one of GGUF's formats, fused with a language model's operations before and
 * after it: h = x, or x normalised (RMSNorm); a bias; a residual; a gate. Matrices that share h are linear_matrices.c.
 *
 * GEOMETRY. A thread block has a stretch of W's rows, and up to 8 vectors of x. There are as many thread blocks as fit the
 * device at once: one wave. The first tiles of W are in flight (linear_w.c) while the thread block copies the vectors into
 * shared memory in the order in which groups of weights need them (linear_x.c). Then each of its eight warps loops over
 * groups of 1, 2 or 4 rows. Sums of up to 256 rows gather in shared memory, and are stored together.
 *
 * NORM. A vector's factor 1 / rms multiplies its sums at the end, so that the weights need not wait for it: one pass over x
 * computes both.
 *
 * PRODUCTS. A lane has a group of weights in each of the warp's rows: whole sub-blocks, so that one scale multiplies the sum
 * of a part's products. It decodes them once for all vectors, and loads each vector's share once for all rows. A part adds
 * scale * dot + minimum * (sum of h) to a sum, in f32. In q8, dot is a scale of h times a sum of products of bytes, which is
 * exact (dp4a; linear_x.c explains its start); in exact it is an fma per element, with denormals for codes if the format has
 * minima.
 *
 * ACTIVATION HALF uses tensor cores: linear_mma.c, and for many rows of x linear_tiles.c.
 *
 * CHUNKS. If `chunk` is less than k, all this repeats for each chunk of k, and shared memory accumulates the sums of 256
 * rows. Every 256 rows then need new shares.
 */
#include "device/if_needed.h"
#include "device/tail.h"
#include "gguf.h"
#include "linear_simt.h"

enum {
    MOST_WORDS = FORMAT_MOST_UNITS * 2, /* of a group */
    WORD_CODES = 4
};

/* ---- geometry ----------------------------------------------------------------------------------------------------- */

/* Enough stages that all but one hold half of the bytes that a multiprocessor should have in flight: two thread blocks
 * hold all of them. If registers leave room for only one, its products take longer than its copies; with more than four
 * vectors, twice as long. More stages would not fit sm_75. */
static uint32_t stages_of(const linear_geometry *g)
{
    enum { BYTES_AHEAD = 18 * 1024, MOST_STAGES = 8 };
    const uint32_t ahead = g->vectors > 4 ? BYTES_AHEAD / 2 : BYTES_AHEAD;
    const uint32_t stages = ahead / (LINEAR_WARPS * g->stage_bytes) + 1;
    return stages < 2 ? 2 : stages > MOST_STAGES ? MOST_STAGES : stages;
}

linear_geometry linear_plan(linear_geometry g)
{
    g.tile_elements = WARP_LANES * format_group_elements(g.format);
    g.tile_bytes = (uint32_t)WARP_LANES / g.format->groups * g.format->bytes;
    const uint32_t most_offset = g.format->bytes % UNIT_BYTES == 0 ? 0 : UNIT_BYTES;
    g.row_bytes = (g.tile_bytes + most_offset + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES;
    g.row_copies = (g.row_bytes / UNIT_BYTES + WARP_LANES - 1) / WARP_LANES;
    g.begins_anywhere = g.row_bytes > g.tile_bytes;
    g.number_bytes = format_numbers_bytes(g.format);
    g.stage_bytes = g.rows * (g.row_bytes + WARP_LANES * g.number_bytes);
    g.stages = stages_of(&g);
    g.vector_bytes = linear_vector_bytes(g.format, g.is_q8);
    /* An odd multiple of 16 bytes, so that neighbouring lanes' activations are in different banks. */
    g.share_bytes = g.vectors * g.vector_bytes | (uint32_t)UNIT_BYTES;
    g.share_step = LINEAR_TRIP / format_group_elements(g.format) * g.share_bytes;
    g.part_words = format_part_elements(g.format) / WORD_CODES;
    g.joined = 1;
    while (g.joined < g.vectors)
        g.joined *= 2;
    return g;
}

/* Bytes of shared memory, with the shares of `elements` of k. */
static uint32_t shared_bytes(const linear_geometry *g, uint32_t elements)
{
    const uint32_t sums = LINEAR_PASS_ROWS * g->vectors, partials = LINEAR_WARPS * g->vectors;
    return LINEAR_WARPS * g->stages * g->stage_bytes + 4 * (sums + partials + LINEAR_MOST_VECTORS) +
           elements / format_group_elements(g->format) * g->share_bytes;
}

static void layout_shared(linear_simt *g)
{
    ptx_fn *f = g->f;
    const uint32_t warp_bytes = g->of.stages * g->of.stage_bytes;
    ptx_val start = ptx_address(f, ptx_shared_dynamic(f, PTX_U32));
    g->stages = ptx_mad(f, g->l->warp, warp_bytes, start);
    g->sums = ptx_add(f, start, LINEAR_WARPS * warp_bytes);
    g->partials = ptx_add(f, g->sums, 4 * LINEAR_PASS_ROWS * g->of.vectors);
    g->scales = ptx_add(f, g->partials, 4 * LINEAR_WARPS * g->of.vectors);
    g->shares = ptx_add(f, g->scales, 4 * LINEAR_MOST_VECTORS);
}

/* ---- a lane's groups ---------------------------------------------------------------------------------------------- */

/* A group of a row; words of four codes in the order of a share. */
typedef struct group_weights {
    ptx_val word[MOST_WORDS];
    ptx_val scale[FORMAT_MOST_PARTS], minimum[FORMAT_MOST_PARTS];
} group_weights;

static void load_group(linear_simt *g, uint32_t r, group_weights *w)
{
    const weight_format *format = g->of.format;
    ptx_val quads[FORMAT_MOST_UNITS][FORMAT_MOST_QUADS];
    format_place place = format_move(g->f, &g->w_lane, &g->place[r], g->stage);
    format_codes(g->f, &g->w_lane, &place, 0, format->units, quads);
    const format_place numbers = linear_find_numbers(g, r, &place);
    format_numbers(g->f, &g->w_lane, &numbers, w->scale, w->minimum);
    for (uint32_t u = 0; u < format->units; u++) {
        for (uint32_t q = 0; q < format->quads; q++) {
            const uint32_t in_part = format->parts == 1 ? format_quad_element(format, u, q) / WORD_CODES : u;
            w->word[format_quad_part(format, q) * g->of.part_words + in_part] = quads[u][q];
        }
    }
}

/* A pointer of a type to `byte` of vector b's part of a share. */
static ptx_val share_at(linear_simt *g, ptx_val share, ptx_type type, uint32_t b, uint32_t byte)
{
    return shared_at(g->f, type, share, b * g->of.vector_bytes + byte);
}

/* Adds minima, if the format has them. */
static void add_minima(linear_simt *g, const group_weights w[], uint32_t b, uint32_t p, ptx_val sum_of_h)
{
    for (uint32_t r = 0; r < g->of.rows && g->of.format->has_minimum; r++)
        ptx_fma_to(g->f, g->sum[r][b], w[r].minimum[p], sum_of_h);
}

/* ---- products in q8 ----------------------------------------------------------------------------------------------- */

/* The sum of the products of a part's words. */
static ptx_val dot_q8(linear_simt *g, const ptx_val word[], const ptx_val h[], ptx_val start)
{
    ptx_fn *f = g->f;
    ptx_val dot = start;
    for (uint32_t i = 0; i < g->of.part_words; i++)
        dot = g->of.format->is_signed ? ptx_dp4a_ss(f, ptx_as(f, PTX_S32, word[i]), h[i], dot)
                                      : ptx_dp4a_us(f, word[i], h[i], dot);
    return ptx_sub(f, ptx_as(f, PTX_F32, dot), ptx_bits(PTX_F32, LINEAR_SUM_START));
}

static void multiply_q8(linear_simt *g, const group_weights w[], ptx_val share, uint32_t b)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    const uint32_t words = g->of.part_words;
    for (uint32_t p = 0; p < format->parts; p++) {
        ptx_val h[MOST_WORDS], numbers[2];
        for (uint32_t i = 0; i < words; i += 4)
            ptx_load_vec(f, 4, &h[i], share_at(g, share, PTX_S32, b, 4 * (p * words + i)), PTX_PLAIN);
        ptx_load_vec(f, 2, numbers, share_at(g, share, PTX_F32, b, format_group_elements(format) + 8 * p),
                     PTX_PLAIN);
        ptx_val start =
            format->offset > 0 ? ptx_as(f, PTX_S32, numbers[1]) : ptx_s32((int32_t)LINEAR_SUM_START);
        for (uint32_t r = 0; r < g->of.rows; r++) {
            ptx_val dot = dot_q8(g, &w[r].word[p * words], h, start);
            ptx_fma_to(f, g->sum[r][b], w[r].scale[p], ptx_mul(f, dot, numbers[0]));
        }
        add_minima(g, w, b, p, numbers[1]);
    }
}

/* ---- exact products ----------------------------------------------------------------------------------------------- */

static void add_word(linear_simt *g, ptx_val dot[], ptx_val codes[][WORD_CODES], const ptx_val h[4],
                     bool is_first)
{
    ptx_fn *f = g->f;
    for (uint32_t r = 0; r < g->of.rows; r++) {
        for (uint32_t i = 0; i < WORD_CODES; i++) {
            if (is_first && i == 0)
                dot[r] = ptx_var(f, ptx_mul(f, codes[r][0], h[0]));
            else
                ptx_fma_to(f, dot[r], codes[r][i], h[i]);
        }
    }
}

static void multiply_exact(linear_simt *g, const group_weights w[], ptx_val share, uint32_t p)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    const uint32_t words = g->of.part_words, byte = 4 * format_group_elements(format) + 8 * p;
    ptx_val dot[LINEAR_MOST_VECTORS][LINEAR_MOST_ROWS] = {{{0}}};
    for (uint32_t i = 0; i < words; i++) {
        ptx_val codes[LINEAR_MOST_ROWS][WORD_CODES];
        for (uint32_t r = 0; r < g->of.rows; r++) {
            ptx_val word = w[r].word[p * words + i];
            if (format->has_minimum)
                format_denormals(f, word, codes[r]);
            else
                format_floats(f, &g->w_lane, word, codes[r]);
        }
        for (uint32_t b = 0; b < g->of.vectors; b++) {
            ptx_val h[4];
            ptx_load_vec(f, 4, h, share_at(g, share, PTX_F32, b, 16 * (p * words + i)), PTX_PLAIN);
            add_word(g, dot[b], codes, h, i == 0);
        }
    }
    for (uint32_t b = 0; b < g->of.vectors; b++) {
        ptx_val numbers[2] = {{0}};
        if (format->has_minimum)
            ptx_load_vec(f, 2, numbers, share_at(g, share, PTX_F32, b, byte), PTX_PLAIN);
        for (uint32_t r = 0; r < g->of.rows; r++) {
            ptx_val product = dot[b][r];
            if (format->has_minimum) /* scaled back in two steps, since no float is as large */
                product = ptx_mul(f, ptx_mul(f, product, (float)(1ull << LINEAR_DENORMAL)), numbers[0]);
            ptx_fma_to(f, g->sum[r][b], w[r].scale[p], product);
        }
        add_minima(g, w, b, p, numbers[1]);
    }
}

/* Adds the products of a tile to the sums; `share` is this lane's first share. */
static void multiply_tile(linear_simt *g, ptx_val share)
{
    group_weights w[LINEAR_MOST_ROWS] = {{.word = {{0}}}};
    for (uint32_t r = 0; r < g->of.rows; r++)
        load_group(g, r, &w[r]);
    for (uint32_t b = 0; b < g->of.vectors && g->of.is_q8; b++)
        multiply_q8(g, w, share, b);
    for (uint32_t p = 0; p < g->of.format->parts && !g->of.is_q8; p++)
        multiply_exact(g, w, share, p);
}

/* ---- sums --------------------------------------------------------------------------------------------------------- */

/* Adds the sums of a group of rows to those of earlier chunks, in shared memory. */
static void gather_sums(linear_simt *g, ptx_val group)
{
    ptx_fn *f = g->f;
    const uint32_t lanes = WARP_LANES / g->of.rows;
    ptx_val of_lane = ptx_div(f, g->l->lane, lanes), in_row = ptx_and(f, g->l->lane, lanes - 1);
    ptx_val row = ptx_mad(f, group, g->of.rows, of_lane);
    ptx_val to = ptx_mad(f, row, 4, g->sums);
    ptx_val is_first = ptx_eq(f, in_row, 0), in_pass = ptx_lt(f, row, g->rows_here);
    ptx_val stores = ptx_and(f, is_first, in_pass), is_later = ptx_gt(f, g->chunk_first, 0);
    ptx_val adds = ptx_and(f, is_later, stores);
    for (uint32_t b = 0; b < g->of.vectors; b++) {
        ptx_val sum[LINEAR_MOST_ROWS];
        for (uint32_t r = 0; r < g->of.rows; r++)
            sum[r] = g->sum[r][b];
        lanes_join(f, PTX_OP_ADD, WARP_LANES, g->of.rows, g->l->lane, sum);
        ptx_val total = ptx_var(f, sum[0]), at = shared_at(f, PTX_F32, to, 4 * LINEAR_PASS_ROWS * b);
        PTX_WHEN (f, adds) {
            ptx_val before = ptx_load(f, at);
            ptx_add_to(f, total, before);
        }
        PTX_WHEN (f, stores) {
            ptx_store(f, at, total);
        }
    }
}

/* ---- y ------------------------------------------------------------------------------------------------------------ */

/* Stores y[vector][column], whose sums are at `from`. */
static void store_element(linear_simt *g, const linear_column *column, ptx_val bias, ptx_val from, uint32_t b,
                          ptx_val vector)
{
    ptx_fn *f = g->f;
    ptx_val element = ptx_mad_wide(f, vector, column->stride, column->row_64), sum[2], factor;
    for (uint32_t i = 0; i < g->l->column_rows; i++)
        sum[i] = ptx_load(f, shared_at(f, PTX_F32, from, 4 * (LINEAR_PASS_ROWS * b + i)));
    if (g->of.has_norm)
        factor = ptx_rsqrt_approx(f, linear_find_mean(g, b));
    linear_store(g->l, column, sum, bias, g->of.has_norm ? &factor : NULL, element);
}

/* Each thread has one of the pass's rows, or pairs of rows. */
static void store_rows(linear_simt *g)
{
    ptx_fn *f = g->f;
    const bool has_all = g->l->has_all_vectors;
    ptx_val in_pass = g->l->is_pair ? ptx_mul(f, g->l->tid, g->l->column_rows) : g->l->tid;
    PTX_IF (f, ptx_lt(f, in_pass, g->rows_here)) {
        ptx_val from = ptx_mad(f, in_pass, 4, g->sums), row = ptx_add(f, in_pass, g->first_row);
        const linear_column column = linear_find_column(g->l, row);
        ptx_val bias = linear_bias(g->l, &column);
        for (uint32_t b = 0; b < g->of.vectors; b++) {
            IF_NEEDED (f, !has_all, ptx_gt(f, g->vectors, b)) {
                ptx_val vector = has_all ? ptx_u32(b) : ptx_add(f, g->first_vector, b);
                store_element(g, &column, bias, from, b, vector);
            }
        }
    }
}

/* ---- rows --------------------------------------------------------------------------------------------------------- */

static void multiply_group(linear_simt *g, ptx_val group)
{
    ptx_fn *f = g->f;
    for (uint32_t r = 0; r < g->of.rows; r++)
        for (uint32_t b = 0; b < g->of.vectors; b++)
            g->sum[r][b] = ptx_var(f, ptx_f32(0));
    linear_find_rows(g, group);
    ptx_val share = ptx_var(f, ptx_add(f, g->lane_share, 0));
    PTX_FOR (f, first, 0, g->share_count, WARP_LANES) {
        ptx_main_loop(f);
        linear_next_stage(g);
        ptx_val of_lane = ptx_add(f, first, g->l->lane);
        PTX_IF (f, ptx_lt(f, of_lane, g->share_count)) {
            multiply_tile(g, share);
        }
        ptx_add_to(f, share, WARP_LANES * g->of.share_bytes);
    }
    gather_sums(g, group);
}

/* The first chunk of the first pass needs shares; with several chunks, each chunk does. */
static void make_chunk(linear_simt *g, ptx_val is_first_pass)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    ptx_val left = ptx_sub(f, g->l->k, g->chunk_first);
    g->chunk_count = ptx_min(f, left, g->of.chunk);
    ptx_val raised = ptx_add(f, g->chunk_count, g->of.tile_elements - 1);
    g->tiles = ptx_div(f, raised, g->of.tile_elements);
    g->share_count = ptx_div(f, g->chunk_count, format_group_elements(format));
    ptx_val before = ptx_div(f, g->chunk_first, format->elements);
    g->chunk_byte = ptx_mul(f, before, format->bytes);
    ptx_val blocks = ptx_div(f, g->chunk_count, format->elements);
    g->chunk_bytes = ptx_mul(f, blocks, format->bytes);
    linear_init_stages(g);
    ptx_val is_first_chunk = ptx_eq(f, g->chunk_first, 0);
    ptx_val is_start = ptx_and(f, is_first_pass, is_first_chunk), has_more = ptx_gt(f, g->l->k, g->of.chunk);
    PTX_IF (f, ptx_or(f, is_start, has_more)) {
        ptx_barrier(f); /* all have read the last shares */
        linear_make_shares(g, is_start);
    }
    PTX_FOR (f, group, g->l->warp, g->groups_of_rows, LINEAR_WARPS) {
        multiply_group(g, group);
    }
}

/* Maps a row among those of all matrices to one matrix, clamped to it. */
static ptx_val row_in_matrix(linear *l, uint32_t matrix, ptx_val row)
{
    ptx_fn *f = l->f;
    if (l->is_pair)
        return ptx_min(f, ptx_div(f, row, l->column_rows), l->n[0]);
    if (matrix > 0) {
        ptx_val raised = ptx_max(f, row, l->first_row_of[matrix]);
        row = ptx_sub(f, raised, l->first_row_of[matrix]);
    }
    return ptx_min(f, row, l->n[matrix]);
}

/* Prefetches the rows of one matrix that are among rows `first` to `end`, from the 16-byte boundary at or before them on. */
static void prefetch_matrix(linear_simt *g, uint32_t matrix, ptx_val first, ptx_val end)
{
    enum { MOST_BYTES = 64 * 1024 /* about what arrives while one kernel ends */ };
    ptx_fn *f = g->f;
    linear *l = g->l;
    ptx_val row = row_in_matrix(l, matrix, first), past = row_in_matrix(l, matrix, end);
    ptx_val count = ptx_sub(f, past, row);
    ptx_val all = ptx_mul(f, ptx_min(f, count, LINEAR_PASS_ROWS), l->w_row_bytes);
    ptx_val bytes = ptx_min(f, all, MOST_BYTES);
    ptx_val from = ptx_mad_wide(f, row, l->w_row_bytes, ptx_address(f, l->w[matrix]));
    ptx_val offset = ptx_and(f, ptx_cvt(f, PTX_U32, from), UNIT_BYTES - 1);
    ptx_val start = ptx_sub(f, from, ptx_cvt(f, PTX_U64, offset));
    ptx_val units = ptx_and(f, ptx_add(f, bytes, offset), ~(uint32_t)(UNIT_BYTES - 1));
    ptx_val is_first = ptx_eq(f, l->tid, 0);
    PTX_WHEN (f, ptx_and(f, is_first, ptx_gt(f, units, 0))) {
        ptx_prefetch_l2_bytes(f, ptx_pointer(f, PTX_GLOBAL, PTX_U8, start), units);
    }
}

/* From sm_90 on a thread block may begin while the preceding launch still runs (kiln_options.overlap_launches). It prefetches its
 * first rows of W into the L2 cache, lets the next launch begin, and waits for the preceding one. A prefetch reads nothing, so
 * that launch may even write W. */
static void overlap_launches(linear_simt *g, ptx_val first, ptx_val end)
{
    for (uint32_t i = 0; i < g->l->matrices; i++)
        prefetch_matrix(g, i, first, end);
    ptx_grid_launch_next(g->f);
    ptx_grid_wait(g->f);
}

/* This thread block's stretch of rows, 256 at a time. It splits no pair, and except at the last row no group of a warp. */
static void make_rows(linear_simt *g)
{
    ptx_fn *f = g->f;
    const uint32_t unit = g->of.rows > g->l->column_rows ? g->of.rows : g->l->column_rows;
    ptx_val blocks = ptx_nctaid_x(f), block = ptx_ctaid_x(f);
    ptx_val units = ptx_div(f, ptx_add(f, g->l->w_rows, unit - 1), unit);
    ptx_val raised = ptx_sub(f, ptx_add(f, units, blocks), 1);
    ptx_val most = ptx_mul(f, ptx_div(f, raised, blocks), unit);
    ptx_val first = ptx_mul(f, block, most), past = ptx_add(f, first, most),
            end = ptx_min(f, past, g->l->w_rows);
    if (g->l->overlaps)
        overlap_launches(g, first, end);
    PTX_FOR (f, row, first, end, LINEAR_PASS_ROWS) {
        g->first_row = row;
        ptx_val left = ptx_sub(f, end, row);
        g->rows_here = ptx_min(f, left, LINEAR_PASS_ROWS);
        ptx_val whole = ptx_add(f, g->rows_here, g->of.rows - 1);
        g->groups_of_rows = ptx_div(f, whole, g->of.rows);
        ptx_val is_first_pass = ptx_eq(f, row, first);
        PTX_FOR (f, chunk_first, 0, g->l->k, g->of.chunk) {
            g->chunk_first = chunk_first;
            make_chunk(g, is_first_pass);
        }
        ptx_barrier(f);
        store_rows(g);
        ptx_barrier(f);
    }
}

/* ---- the kernel --------------------------------------------------------------------------------------------------- */

static void find_vectors(linear_simt *g)
{
    ptx_fn *f = g->f;
    g->x[0] = g->l->in;
    for (uint32_t b = 1; b < g->of.vectors && g->l->has_all_vectors; b++)
        g->x[b] = ptx_at(f, g->x[b - 1], g->l->k);
    if (g->l->has_all_vectors)
        return;
    g->first_vector = ptx_mul(f, ptx_ctaid_y(f), g->of.vectors);
    g->vectors = ptx_sub(f, g->l->m, g->first_vector);
    for (uint32_t b = 0; b < g->of.vectors; b++) {
        ptx_val number = tail_clamp(f, ptx_add(f, g->first_vector, b), g->l->m);
        g->x[b] = ptx_at(f, g->l->in, ptx_mul_wide(f, number, g->l->k));
    }
}

void linear_emit_simt(linear *l)
{
    ptx_fn *f = l->f;
    linear_simt simt = {.l = l, .of = l->of, .f = f}, *g = &simt;
    g->may_scale = g->of.has_norm && l->x_type != PTX_F16;
    linear_find_threads(l);
    layout_shared(g);
    find_vectors(g);
    ptx_val lane_group = ptx_and(f, g->l->lane, g->of.format->groups - 1);
    g->w_lane = format_lane_init(f, g->of.format, lane_group, (ptx_val){0}, 0, FORMAT_SCALED_SHIFT);
    format_lane_values(f, &g->w_lane, PTX_F32);
    g->lane_share = ptx_mad(f, g->l->lane, g->of.share_bytes, g->shares);
    if (g->may_scale) { /* factors of 1, until x's squares leave the range of f32 */
        PTX_WHEN (f, ptx_lt(f, g->l->tid, g->of.vectors)) {
            ptx_store(f, shared_at(f, PTX_F32, ptx_mad(f, g->l->tid, 4, g->scales), 0), 1);
        }
    }
    make_rows(g);
}

void linear_shape_simt(kiln_shape *s, const linear_geometry *g)
{
    s->block[0] = LINEAR_THREADS;
    s->shared_bytes = shared_bytes(g, g->chunk);
    s->least_shared_bytes = shared_bytes(g, 256);
    s->min_sm = s->least_shared_bytes > SHARED_SM_75 ? 80 : 75;
    s->trip = g->tile_elements;
    s->blocks_per_multiprocessor =
        g->rows * g->vectors <= (g->format->parts == 4 || format_has_values(g->format) ? 2 : 4)
            ? 2
            : 1; /* otherwise some variants spill */
}
