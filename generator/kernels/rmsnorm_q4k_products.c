/* rmsnorm_q4k_gemv's products.
 *
 * Lane 4s + j has quarter j of super-block s of a tile: 32 bytes of codes. Their low nibbles are sub-block 2j and their high
 * ones sub-block 2j + 1. The lane unpacks the scales and minima of these two for each row, and loads its share of h once
 * for all rows.
 *
 * ARITHMETIC of a sub-block: sum += (d * scale) * dot + (dmin * minimum) * -(sum of h), in f32. d * scale and
 * dmin * minimum have 17 bits and are exact. dot takes 32 fma with exact, where codes are denormals (rmsnorm_q4k_h.c), and
 * with q8 8 dp4a and the scale of h.
 */
#include "rmsnorm_q4k.h"

enum { WORDS = 8, SUBS = 2, UNIT_WORDS = 4 };

/* The lane's quarter of a super-block, in one row. */
typedef struct quarter {
    ptx_val code[WORDS];                /* words of codes */
    ptx_val scale[SUBS], minimum[SUBS]; /* d * scale, dmin * minimum */
    ptx_val dot[SUBS][GEMV_MOST_BATCH];
} quarter;

/* ---- scales and minima -------------------------------------------------------------------------------------------- */

/* Scales of sub-blocks 0 to 3 are the low six bits of bytes 4 to 7 of the header, minima those of bytes 8 to 11. The numbers
 * of sub-blocks 4 to 7 have their upper two bits above those, and their low four in a nibble of bytes 12 to 15. */
static void find_masks(gemv *g, gemv_masks *m)
{
    ptx_fn *f = g->f;
    ptx_val odd_bit = ptx_and(f, g->lane, ptx_u32(1));
    ptx_val is_odd = ptx_ne(f, odd_bit, ptx_u32(0));
    ptx_val late_bit = ptx_and(f, g->lane, ptx_u32(2));
    ptx_val is_late = ptx_ne(f, late_bit, ptx_u32(0));
    m->bytes = ptx_select(f, is_odd, ptx_u32(0x7632), ptx_u32(0x5410));
    m->shift = late_bit;
    m->first = ptx_select(f, is_late, ptx_u32(0x30303030), ptx_u32(0x3f3f3f3f));
    m->last = ptx_select(f, is_late, ptx_u32(0x0f0f0f0f), ptx_u32(0));
}

/* factor * byte, exactly: 2^23 + byte is a float whose low bits are the byte. */
static ptx_val times_byte(ptx_fn *f, ptx_val bytes, uint32_t i, ptx_val factor, ptx_val minus_raised)
{
    ptx_val raised = ptx_prmt(f, bytes, ptx_u32(0x4b000000), ptx_u32(0x7440 + i));
    return ptx_fma(f, ptx_as(f, PTX_F32, raised), factor, minus_raised);
}

static void unpack_header(gemv *g, ptx_val header, quarter *q)
{
    ptx_fn *f = g->f;
    const gemv_masks *m = &g->masks;
    ptx_val word[Q4K_HEADER_WORDS], halves[2];
    ptx_load_vec(f, Q4K_HEADER_WORDS, word, header, PTX_PLAIN);
    ptx_val low = ptx_prmt(f, word[1], word[2], m->bytes);
    ptx_val high_nibbles = ptx_shr(f, word[3], ptx_u32(4));
    ptx_val last = ptx_prmt(f, word[3], high_nibbles, m->bytes);
    ptx_val shifted = ptx_shr(f, low, m->shift);
    ptx_val first_bits = ptx_and(f, shifted, m->first);
    ptx_val numbers = ptx_lop3(f, last, m->last, first_bits, 0xEA);
    ptx_unpack(f, PTX_F16, 2, halves, word[0]);
    ptx_val d = ptx_cvt(f, PTX_F32, halves[0]);
    ptx_val dmin = ptx_cvt(f, PTX_F32, halves[1]);
    ptx_val minus_d_raised = ptx_mul(f, d, ptx_f32(-0x1p23f));
    ptx_val minus_dmin_raised = ptx_mul(f, dmin, ptx_f32(-0x1p23f));
    for (uint32_t i = 0; i < SUBS; i++) {
        q->scale[i] = times_byte(f, numbers, i, d, minus_d_raised);
        q->minimum[i] = times_byte(f, numbers, 2 + i, dmin, minus_dmin_raised);
    }
}

/* ---- dots --------------------------------------------------------------------------------------------------------- */

static ptx_val h_at(gemv *g, ptx_val h, ptx_type type, uint32_t bytes)
{
    return ptx_at_bytes(g->f, ptx_cast_ptr(g->f, h, type), bytes);
}

/* Masks the nibbles of a word, in 8 instructions and a shift: the four low ones and the four high ones. */
static void mask_codes(ptx_fn *f, ptx_val word, ptx_val low[4], ptx_val high[4])
{
    for (uint32_t half = 0; half < 2; half++) {
        ptx_val bits = half == 0 ? word : ptx_shr(f, word, ptx_u32(16));
        for (uint32_t i = 0; i < 2; i++) {
            low[2 * half + i] = ptx_as(f, PTX_F32, ptx_and(f, bits, ptx_u32(0xfu << 8 * i)));
            high[2 * half + i] = ptx_as(f, PTX_F32, ptx_and(f, bits, ptx_u32(0xf0u << 8 * i)));
        }
    }
}

static void add_dot(ptx_fn *f, ptx_val *dot, bool is_first, const ptx_val code[4], const ptx_val h[4])
{
    for (uint32_t i = 0; i < 4; i++) {
        if (is_first && i == 0)
            *dot = ptx_var(f, ptx_mul(f, code[0], h[0]));
        else
            ptx_fma_to(f, *dot, code[i], h[i]);
    }
}

static void dot_exact(gemv *g, quarter q[], const ptx_val h[])
{
    ptx_fn *f = g->f;
    for (uint32_t w = 0; w < WORDS; w++) {
        ptx_val code[GEMV_MOST_ROWS][SUBS][4];
        for (uint32_t r = 0; r < g->rows; r++)
            mask_codes(f, q[r].code[w], code[r][0], code[r][1]);
        for (uint32_t b = 0; b < g->batch; b++) {
            for (uint32_t i = 0; i < SUBS; i++) {
                ptx_val four[4];
                ptx_load_vec(f, 4, four, h_at(g, h[b], PTX_F32, 16 * (WORDS * i + w)), PTX_PLAIN);
                for (uint32_t r = 0; r < g->rows; r++)
                    add_dot(f, &q[r].dot[i][b], w == 0, code[r][i], four);
            }
        }
    }
}

/* Half of the words: 16 bytes of codes of h in each sub-block. */
static void dot_q8_half(gemv *g, quarter q[], const ptx_val h[], uint32_t half)
{
    ptx_fn *f = g->f;
    ptx_val low[GEMV_MOST_ROWS][UNIT_WORDS][SUBS];
    for (uint32_t r = 0; r < g->rows; r++) {
        for (uint32_t w = 0; w < UNIT_WORDS; w++) {
            ptx_val word = q[r].code[UNIT_WORDS * half + w];
            low[r][w][0] = ptx_and(f, word, ptx_u32(0x0f0f0f0f));
            low[r][w][1] = ptx_and(f, word, ptx_u32(0xf0f0f0f0));
        }
    }
    for (uint32_t b = 0; b < g->batch; b++) {
        for (uint32_t i = 0; i < SUBS; i++) {
            ptx_val codes[UNIT_WORDS];
            ptx_load_vec(f, UNIT_WORDS, codes, h_at(g, h[b], PTX_S32, 32 * i + 16 * half), PTX_PLAIN);
            for (uint32_t r = 0; r < g->rows; r++) {
                ptx_val total = half == 0 ? ptx_s32(0) : q[r].dot[i][b];
                for (uint32_t w = 0; w < UNIT_WORDS; w++)
                    total = ptx_dp4a_us(f, low[r][w][i], codes[w], total);
                q[r].dot[i][b] = total;
            }
        }
    }
}

/* ---- sums --------------------------------------------------------------------------------------------------------- */

/* The numbers of a share of h. */
typedef struct share_numbers {
    ptx_val scale[SUBS], sum[SUBS];
} share_numbers;

static share_numbers load_numbers(gemv *g, ptx_val h)
{
    share_numbers s;
    ptx_val v[4];
    if (!g->is_q8) {
        ptx_load_vec(g->f, 2, s.sum, h_at(g, h, PTX_F32, 4 * GEMV_SHARE_ELEMENTS), PTX_PLAIN);
        return s;
    }
    ptx_load_vec(g->f, 4, v, h_at(g, h, PTX_F32, GEMV_SHARE_ELEMENTS), PTX_PLAIN);
    for (uint32_t i = 0; i < SUBS; i++) {
        s.scale[i] = v[2 * i];
        s.sum[i] = v[2 * i + 1];
    }
    return s;
}

static void add_products(gemv *g, quarter *q, const share_numbers *s, uint32_t b, ptx_val sum)
{
    ptx_fn *f = g->f;
    for (uint32_t i = 0; i < SUBS; i++) {
        ptx_val dot = q->dot[i][b];
        if (g->is_q8)
            dot = ptx_mul(f, ptx_cvt(f, PTX_F32, dot), s->scale[i]);
        ptx_fma_to(f, sum, q->scale[i], dot);
    }
    for (uint32_t i = 0; i < SUBS; i++)
        ptx_fma_to(f, sum, q->minimum[i], s->sum[i]);
}

/* ---- the lane's part of a tile ------------------------------------------------------------------------------------ */

void gemv_init_products(gemv *g)
{
    ptx_fn *f = g->f;
    find_masks(g, &g->masks);
    ptx_val of_four = ptx_and(f, g->lane, ptx_u32(3));
    g->lane_block = ptx_shr(f, g->lane, ptx_u32(2));
    ptx_val second = ptx_add(f, g->stages, ptx_u32(gemv_stage_bytes(g)));
    g->lane_header = ptx_mad(f, g->lane_block, ptx_u32(Q4K_BLOCK_BYTES), second);
    g->lane_codes = ptx_mad(f, of_four, ptx_u32(4 * WORDS), g->lane_header);
    ptx_val share = gemv_share_slot(g, g->lane);
    g->lane_h = ptx_mad(f, share, ptx_u32(g->share_bytes), g->h);
}

void gemv_limit_lanes(gemv *g)
{
    ptx_fn *f = g->f;
    ptx_val end = ptx_sub(f, g->chunk_blocks, g->lane_block);
    g->lane_end[0] = ptx_as(f, PTX_S32, end);
    for (uint32_t t = 1; t < g->tiles; t++)
        g->lane_end[t] = ptx_sub(f, g->lane_end[0], ptx_s32((int)(Q4K_TILE_BLOCKS * t)));
}

/* `header` and `codes` are the first row's. */
static void multiply_quarters(gemv *g, ptx_val header, ptx_val codes, const ptx_val h[])
{
    ptx_fn *f = g->f;
    quarter q[GEMV_MOST_ROWS];
    share_numbers numbers[GEMV_MOST_BATCH];
    int64_t row_bytes = g->tiles * GEMV_TILE_BYTES;
    for (uint32_t r = 0; r < g->rows; r++)
        for (uint32_t u = 0; u < WORDS; u += UNIT_WORDS)
            ptx_load_vec(f, UNIT_WORDS, &q[r].code[u], ptx_at_bytes(f, codes, r * row_bytes + 4 * u),
                         PTX_PLAIN);
    if (g->is_q8) {
        dot_q8_half(g, q, h, 0);
        dot_q8_half(g, q, h, 1);
    } else {
        dot_exact(g, q, h);
    }
    for (uint32_t b = 0; b < g->batch; b++)
        numbers[b] = load_numbers(g, h[b]);
    for (uint32_t r = 0; r < g->rows; r++) {
        unpack_header(g, ptx_at_bytes(f, header, r * row_bytes), &q[r]);
        for (uint32_t b = 0; b < g->batch; b++)
            add_products(g, &q[r], &numbers[b], b, g->sum[r][b]);
    }
}

void gemv_multiply_tile(gemv *g, ptx_val first)
{
    ptx_fn *f = g->f;
    ptx_val header = ptx_sub(f, g->lane_header, g->stage);
    ptx_val codes = ptx_sub(f, g->lane_codes, g->stage);
    ptx_val start = ptx_mad(f, first, ptx_u32(4 * g->share_bytes), g->lane_h);
    for (uint32_t t = 0; t < g->tiles; t++) {
        ptx_val in_bounds = ptx_lt(f, ptx_as(f, PTX_S32, first), g->lane_end[t]);
        PTX_IF (f, in_bounds) {
            ptx_val h[GEMV_MOST_BATCH], vector = start;
            for (uint32_t b = 0; b < g->batch; b++) {
                if (b > 0)
                    vector = ptx_add(f, vector, g->h_bytes);
                h[b] = shared_at(f, PTX_U32, vector, 4 * Q4K_TILE_BLOCKS * g->share_bytes * t);
            }
            multiply_quarters(g, shared_at(f, PTX_U32, header, GEMV_TILE_BYTES * t),
                              shared_at(f, PTX_U32, codes, GEMV_TILE_BYTES * t + 4 * Q4K_HEADER_WORDS), h);
        }
    }
}
