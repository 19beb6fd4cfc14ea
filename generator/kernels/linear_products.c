/* linear's products.
 *
 * A lane has a group of weights in each of the warp's rows: whole sub-blocks, so that one scale multiplies the sum of a
 * part's products. It decodes them once for all vectors, and loads each vector's share once for all rows.
 *
 * ARITHMETIC of a part: sum += scale * dot + minimum * (sum of h), in f32. In q8, dot is a scale of h times a sum of products
 * of bytes, which is exact (dp4a; linear_x.c explains its start); in exact it is an fma per element, with denormals for codes
 * if the format has minima.
 */
#include "linear.h"

enum { MOST_WORDS = FORMAT_MOST_UNITS * 2, WORD_CODES = 4 };

/* A group of a row; words of four codes in the order of a share. */
typedef struct group {
    ptx_val word[MOST_WORDS];
    ptx_val scale[FORMAT_MOST_PARTS], minimum[FORMAT_MOST_PARTS];
} group;

static uint32_t part_words(const linear *g)
{
    return format_part_elements(g->of.format) / WORD_CODES;
}

static void load_group(linear *g, uint32_t r, group *w)
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
            w->word[format_quad_part(format, q) * part_words(g) + in_part] = quads[u][q];
        }
    }
}

/* A vector's share for part p, from `byte` on, in elements of a type. */
static ptx_val share_at(linear *g, ptx_val share, ptx_type type, uint32_t b, uint32_t byte)
{
    return shared_at(g->f, type, share, b * g->of.vector_bytes + byte);
}

/* If the format has minima. */
static void add_minima(linear *g, const group w[], uint32_t b, uint32_t p, ptx_val sum_of_h)
{
    for (uint32_t r = 0; r < g->of.rows && g->of.format->has_minimum; r++)
        ptx_fma_to(g->f, g->sum[r][b], w[r].minimum[p], sum_of_h);
}

/* ---- q8 ----------------------------------------------------------------------------------------------------------- */

static ptx_val dot_q8(linear *g, const ptx_val word[], const ptx_val h[], ptx_val start)
{
    ptx_fn *f = g->f;
    ptx_val dot = start;
    for (uint32_t i = 0; i < part_words(g); i++)
        dot = g->of.format->is_signed ? ptx_dp4a_ss(f, ptx_as(f, PTX_S32, word[i]), h[i], dot)
                                      : ptx_dp4a_us(f, word[i], h[i], dot);
    return ptx_sub(f, ptx_as(f, PTX_F32, dot), ptx_bits(PTX_F32, LINEAR_SUM_START));
}

static void multiply_q8(linear *g, const group w[], ptx_val share, uint32_t b)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    const uint32_t words = part_words(g);
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

/* ---- exact -------------------------------------------------------------------------------------------------------- */

static void add_word(linear *g, ptx_val dot[], ptx_val codes[][WORD_CODES], const ptx_val h[4], bool is_first)
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

static void decode_word(ptx_fn *f, const format_lane *lane, ptx_val word, ptx_val codes[WORD_CODES])
{
    if (lane->format->has_minimum)
        format_denormals(f, word, codes);
    else
        format_floats(f, lane, word, codes);
}

/* In two steps, since no float is as large. */
static ptx_val lower_dot(ptx_fn *f, ptx_val dot, ptx_val lower)
{
    return ptx_mul(f, ptx_mul(f, dot, (float)(1ull << LINEAR_DENORMAL)), lower);
}

static void multiply_exact(linear *g, const group w[], ptx_val share, uint32_t p)
{
    ptx_fn *f = g->f;
    const weight_format *format = g->of.format;
    const uint32_t words = part_words(g), byte = 4 * format_group_elements(format) + 8 * p;
    ptx_val dot[LINEAR_MOST_VECTORS][LINEAR_MOST_ROWS];
    for (uint32_t i = 0; i < words; i++) {
        ptx_val codes[LINEAR_MOST_ROWS][WORD_CODES];
        for (uint32_t r = 0; r < g->of.rows; r++)
            decode_word(f, &g->w_lane, w[r].word[p * words + i], codes[r]);
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
        for (uint32_t r = 0; r < g->of.rows; r++)
            ptx_fma_to(f, g->sum[r][b], w[r].scale[p],
                       format->has_minimum ? lower_dot(f, dot[b][r], numbers[0]) : dot[b][r]);
        add_minima(g, w, b, p, numbers[1]);
    }
}

/* ---- the lane's part of a tile ------------------------------------------------------------------------------------ */

void linear_multiply_tile(linear *g, ptx_val share)
{
    group w[LINEAR_MOST_ROWS];
    for (uint32_t r = 0; r < g->of.rows; r++)
        load_group(g, r, &w[r]);
    for (uint32_t b = 0; b < g->of.vectors && g->of.is_q8; b++)
        multiply_q8(g, w, share, b);
    for (uint32_t p = 0; p < g->of.format->parts && !g->of.is_q8; p++)
        multiply_exact(g, w, share, p);
}
