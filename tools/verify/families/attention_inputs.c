/* Makes the inputs of attention: Q, K and V, or codes and scales, and the arrays that shape scores. */
#include "attention_inputs.h"

#include <math.h>

#include "attention_layout.h"
#include "codes.h"
#include "inputs.h"

enum {
    ATTENTION_DOMINATING = 100, /* one key in 37 far above the others */
    ATTENTION_EXTREME,          /* scores of 1e4 and -1e4 */
    ATTENTION_RISING,           /* each tile's scores above those of earlier tiles */
    ATTENTION_FALLING,
    ATTENTION_LATE, /* the first of many tiles is hidden; scores rise by 1 at half, by 2 more in the last eighth */
    ATTENTION_SCALE_0,
    ATTENTION_LARGE_V,   /* as large as sums of weights allow */
    ATTENTION_ONE_HOT,   /* each row of V has a single 1, so that O shows every weight separately */
    ATTENTION_NONFINITE, /* NaN and infinities in one row of K, and in one of eight of Q */
    ATTENTION_FAINT, /* weights around the least normal number next to a weight of 1 whose row of V is 0 */
    /* For more keys than one chunk. Scores after the first chunk are higher; its keys are hidden; all scores are
     * equal. */
    ATTENTION_CHUNKS_RISE,
    ATTENTION_CHUNKS_NONE,
    ATTENTION_CHUNKS_LIKE,
    ATTENTION_DRIFT /* a lane's first weight is 1, the others are nearly an ulp of 1 or, in odd rows, much less */
};

/* ---- matrices ----------------------------------------------------------------------------------------------------- */

/* The matrix to fill: rows in memory order, this many elements apart. */
typedef struct matrix {
    argument *a;
    int kind;
    double size;      /* magnitude of the elements of Q and K */
    double largest_v; /* as large as sums of weights allow */
    uint64_t dim, keys, tile_k, apart, rows;
    uint64_t chunk; /* keys in a chunk of a thread block */
    bool has_codes, is_e4m3;
    random_stream s;
} matrix;

static double q_of(const matrix *m, uint64_t row, uint64_t column, double normal)
{
    switch (m->kind) {
    case ATTENTION_EXTREME:
    case ATTENTION_RISING:
    case ATTENTION_FALLING:
        return m->size;
    case ATTENTION_LATE:
        return 1;
    case ATTENTION_FAINT:
        return column == 0;
    case ATTENTION_DRIFT:
        return column >= 8 ? 0 : (row + row / 8) % 2 ? 1.3125 : 1;
    case ATTENTION_CHUNKS_RISE:
    case ATTENTION_CHUNKS_NONE:
    case ATTENTION_CHUNKS_LIKE:
        return 1 + (double)(row % 16) / 16;
    default:
        return normal;
    }
}

/* Keys at which lanes' sums begin score 0, in the second chunk -2. The other weights are 0.98 ulps of 1, or e^-21:
 * seven columns give the score approximately, one corrects it. */
static double drift_of(const matrix *m, uint64_t row, uint64_t column)
{
    element_type type = m->a->about->type;
    double root = sqrt((double)m->dim), score = log(0.98 * 0x1p-23) * root;
    double most = number_decode(type, number_encode(type, score / 7));
    if (column >= 8)
        return 0;
    if (row % ATTENTION_CHUNK < 8 && row % 2 == 0)
        return row < ATTENTION_CHUNK ? 0 : -2 * root / 8;
    return column < 7 ? most : score - 7 * most;
}

/* Scores with weights near the least normal number: e^-87.3 in f32, e^-708.4 in f64. */
static double faint_of(const matrix *m, uint64_t row, uint64_t column)
{
    const double least = m->a->about->type == ELEMENT_F64 ? 708 : 87;
    return row == 0 || column > 0 ? 0 : -(least - 2 + (double)(row % 5)) * sqrt((double)m->dim);
}

static double k_of(const matrix *m, uint64_t row, uint64_t column, double normal)
{
    const double size = m->size, step = 1 / sqrt((double)m->dim); /* raises a score by 1 where Q is 1 */
    switch (m->kind) {
    case ATTENTION_DOMINATING:
        return row % 37 == 20 ? 6 * normal : normal / 4;
    case ATTENTION_EXTREME:
        return random_bits(random_fork(m->s, 7), row) & 1 ? size : -size;
    case ATTENTION_RISING:
        return size * (double)row / (double)m->rows + normal / 64;
    case ATTENTION_FALLING:
        return size * (double)(m->rows - row) / (double)m->rows + normal / 64;
    case ATTENTION_LATE:
        if (row < m->tile_k && column == 0 && m->keys > m->tile_k)
            return -INFINITY;
        return (8 * row >= 7 * m->rows ? 3 : 2 * row >= m->rows ? 1 : 0) * step + normal / 4;
    case ATTENTION_FAINT:
        return faint_of(m, row, column);
    case ATTENTION_DRIFT:
        return drift_of(m, row, column);
    case ATTENTION_CHUNKS_RISE:
        return (row >= m->chunk ? 4.7 : 0) * step + normal / 4;
    case ATTENTION_CHUNKS_NONE:
        return row >= m->chunk ? normal : column == 0 ? -INFINITY : 0;
    default:
        return normal;
    }
}

static double v_of(const matrix *m, uint64_t row, uint64_t column, double normal)
{
    element_type type = m->a->about->type;
    if (m->kind == ATTENTION_FAINT && row == 0)
        return 0;
    if (m->kind == ATTENTION_LARGE_V || m->kind == ATTENTION_FAINT)
        return normal > 0 ? m->largest_v : -m->largest_v;
    if (m->kind >= ATTENTION_CHUNKS_RISE) /* so that a 1 is not lost in sums of thousands */
        return normal * (type == ELEMENT_F16 ? 0x1p-10 : 0x1p-14);
    return m->kind == ATTENTION_ONE_HOT ? column == row % m->apart : normal;
}

/* Puts infinities and NaNs into K. An infinity gives some queries a score of +infinity, others one of -infinity. */
static void put_nonfinite(argument *a, uint64_t dim, random_stream s)
{
    uint64_t rows = a->count / dim, only = rows ? random_below(s, 0, rows) : 0;
    random_stream of_row = random_fork(s, 1), column = random_fork(s, 2), value = random_fork(s, 3);
    for (uint64_t row = 0; row < rows; row++) {
        bool is_hit = a->about->name[0] == 'k' ? row == only : random_below(of_row, row, 8) == 0;
        if (is_hit)
            element_set(a->about->type, a->host, row * dim + random_below(column, row, dim),
                        inputs_nonfinite(value, row));
    }
}

/* ---- codes ------------------------------------------------------------------------------------------------------ */

/* Returns the largest code's value in a matrix, without the factors of heads and keys, which are at most 1. */
static double most_of(const matrix *m)
{
    const bool is_k = m->a->about->name[0] == 'k';
    switch (m->kind) {
    case ATTENTION_DOMINATING:
        return is_k ? 24 : 4;
    case ATTENTION_EXTREME:
    case ATTENTION_RISING:
    case ATTENTION_FALLING:
        return is_k ? m->size : 4;
    case ATTENTION_LARGE_V:
        return is_k ? 4 : m->largest_v;
    case ATTENTION_FAINT:
        return is_k ? 96 * sqrt((double)m->dim) : m->largest_v;
    case ATTENTION_CHUNKS_RISE:
    case ATTENTION_CHUNKS_LIKE:
        return is_k ? 4 : 0x1p-8;
    case INPUT_DENORMAL:
        return 0x1p-20;
    default:
        return 4;
    }
}

/* Returns a scale that is exactly an f32. */
static double nominal_scale(const matrix *m)
{
    return (float)(most_of(m) / (m->is_e4m3 ? 448 : 128));
}

/* Returns a code as a signed byte. */
static int code_at(const matrix *m, uint64_t i)
{
    const uint64_t row = i / m->apart, column = i % m->apart, bits = random_bits(random_fork(m->s, 9), i);
    const double normal = random_normal(m->s, i);
    const bool is_k = m->a->about->name[0] == 'k';
    const int largest = m->is_e4m3 ? CODES_E4M3_LARGEST : 127, sign = bits & 1 ? -CODES_SIGN : 0;
    switch (m->kind) {
    case INPUT_REAL: /* any except a NaN */
        return m->is_e4m3 ? sign + (int)(bits / 2 % CODES_E4M3_NAN) : (int)(bits & 255) - 128;
    case INPUT_DENORMAL:
        return m->is_e4m3 ? sign + (int)(bits / 2 % 8) : (int)(bits / 2 % 3) - 1;
    case INPUT_HUGE_TINY:
        return bits / 2 % 2 ? (m->is_e4m3 || sign == 0 ? sign + largest : sign) : (int)(bits / 4 % 2);
    case ATTENTION_LARGE_V:
        if (!is_k)
            return m->is_e4m3 || normal > 0 ? (normal > 0 ? 0 : -CODES_SIGN) + largest : -128;
        break;
    default:
        break;
    }
    const double value = is_k ? k_of(m, row, column, normal) : v_of(m, row, column, normal);
    return codes_encode(m->is_e4m3, value / nominal_scale(m));
}

/* Returns one scale for kinds that depend on exact scores. */
static double factor_at(const matrix *m, uint64_t i, bool is_of_key)
{
    static const double of_heads[] = {1, 0.75, 0.5};
    random_stream s = random_fork(m->s, 10);
    if (!is_of_key)
        return of_heads[i % 3];
    if (m->kind == INPUT_HUGE_TINY)
        return exp2(-30 * (double)random_below(s, i, 3)) * (random_below(random_fork(s, 1), i, 8) > 0);
    return m->kind > ATTENTION_DOMINATING && m->kind != ATTENTION_NONFINITE
               ? 1
               : exp2(-3 * (double)random_below(s, i, 1024) / 1024);
}

/* Makes codes. About half of the heads have a NaN in one code of K, or in the scale of one of its keys. A head
 * has only one NaN: each code of a word has its own decoding instructions, and two that a query sees would hide
 * each other. */
static void fill_codes(problem *p, const matrix *m)
{
    argument *codes = m->a, *scales = attention_scales(p, m->a->about->name);
    const double nominal = nominal_scale(m);
    for (uint64_t i = 0; i < codes->count; i++)
        element_set(codes->about->type, codes->host, i, code_at(m, i));
    for (uint64_t i = 0; i < scales->count; i++)
        element_set(scales->about->type, scales->host, i,
                    nominal * factor_at(m, i, attention_has_key_scales(p)));
    if (m->kind != ATTENTION_NONFINITE || codes->about->name[0] != 'k')
        return;
    const uint64_t heads = problem_integer(p, "batch") * problem_integer(p, "kv_heads");
    argument *const a = m->is_e4m3 ? codes : scales;
    for (uint64_t i = 0; i < 1 + heads / 2 && a->count > 0 && (m->is_e4m3 || attention_has_key_scales(p));
         i++)
        element_set(a->about->type, a->host, random_below(random_fork(m->s, 8), i, a->count),
                    m->is_e4m3 ? CODES_E4M3_NAN : NAN);
}

/* ---- all inputs of a problem -------------------------------------------------------------------------------------- */

static void fill(const matrix *m)
{
    element_type type = m->a->about->type;
    const char name = m->a->about->name[0];
    if (m->kind < ATTENTION_DOMINATING) {
        inputs_fill(m->a, (input_kind)m->kind, m->s);
        return;
    }
    for (uint64_t i = 0; i < m->a->count; i++) {
        uint64_t row = i / m->apart, column = i % m->apart;
        double normal = random_normal(m->s, i);
        element_set(type, m->a->host, i,
                    name == 'q'   ? q_of(m, row, column, normal)
                    : name == 'k' ? k_of(m, row, column, normal)
                                  : v_of(m, row, column, normal));
    }
    if (m->kind == ATTENTION_NONFINITE && name != 'v')
        put_nonfinite(m->a, m->dim, random_fork(m->s, 8));
}

/* Returns the matrix. Its rows are the problem's if they are adjacent, have gaps of at most a row, or overlap;
 * otherwise each `dim` elements form a row. */
static matrix matrix_of(problem *p, const char *name, int kind, double size, random_stream s)
{
    uint64_t dim = attention_dim(p, name), apart = attention_stride(p, name, "_row_stride");
    const bool has_codes = name[0] != 'q' && attention_has_codes(p);
    const element_type of_out = problem_find(p, "out")->about->type;
    matrix m = {.a = has_codes ? attention_keys(p, name) : problem_find(p, name),
                .kind = kind,
                .size = size,
                .dim = dim,
                .keys = problem_integer(p, "k_length"),
                .tile_k = problem_parameter(p, "tile_k"),
                .apart = apart > 0 && (apart <= 2 * dim || name[0] == 'q') ? apart : dim,
                .chunk = attention_key_warps(p) * ATTENTION_CHUNK,
                .has_codes = has_codes,
                .is_e4m3 = attention_has_e4m3(p),
                .s = s};
    m.largest_v =
        of_out == ELEMENT_F16 ? number_largest(of_out) : number_largest(of_out) / (4 * (double)(m.keys + 1));
    m.rows = m.a->count / m.apart + 1;
    return m;
}

/* Replaces the pattern's kind. If rows of Q are ATTENTION_APART, the size tests what is carried from tile to tile
 * or from chunk to chunk, which few inputs show. At ATTENTION_COUNTED_GAP it tests which keys are seen: all weigh
 * about the same. */
static int kind_at(problem *p, int kind)
{
    if (problem_integer(p, "q_row_stride") == problem_parameter(p, "head_dim") + ATTENTION_COUNTED_GAP)
        return kind == INPUT_NORMAL ? kind : ATTENTION_SCALE_0;
    if (problem_integer(p, "q_row_stride") != ATTENTION_APART)
        return kind;
    if (!attention_is_long(p))
        return kind == INPUT_NORMAL ? kind : kind == ATTENTION_DOMINATING ? ATTENTION_LATE : ATTENTION_RISING;
    if (problem_integer(p, "k_row_stride") == 0)
        return ATTENTION_CHUNKS_LIKE;
    if (attention_has_codes(p)) /* codes have no infinity, and no values between codes */
        return ATTENTION_CHUNKS_RISE;
    bool is_none = kind == ATTENTION_NONFINITE || kind == ATTENTION_FALLING || kind == ATTENTION_SCALE_0 ||
                   kind == ATTENTION_EXTREME;
    return kind == ATTENTION_DOMINATING ? ATTENTION_DRIFT
           : is_none                    ? ATTENTION_CHUNKS_NONE
                                        : ATTENTION_CHUNKS_RISE;
}

bool attention_is_random(problem *p, const input_pattern *pattern)
{
    return pattern->flags & PATTERN_RANDOM && kind_at(p, pattern->number) == pattern->number;
}

bool attention_drifts(problem *p, const input_pattern *pattern)
{
    return kind_at(p, pattern->number) == ATTENTION_DRIFT;
}

/* Returns a sink above the scores, near them, so far below that its weight is 0, or none. */
static double sink_of(uint64_t head, double normal)
{
    return head % 3 == 0 ? 3 + fabs(normal) : head % 3 == 1 ? 2 * normal : normal > 0 ? -2000 : -INFINITY;
}

/* Returns a slope; near 0, so that thousands of keys have weight. */
static double slope_of(uint64_t head, bool is_near)
{
    return exp2(is_near ? -13 : -1 - (double)(head % 8));
}

/* Fills masks, slopes and sinks. A mask hides one key in five, half of the keys for non-finite inputs; for extreme
 * inputs its other elements are 300 or -300. */
static void fill_shaping(problem *p, int kind, random_stream s)
{
    static const char *const names[] = {"sinks", "alibi_slopes", "mask"};
    argument *cap = problem_find(p, "softcap");
    if (cap)
        cap->real = kind == ATTENTION_SCALE_0 ? 0 : kind == ATTENTION_EXTREME ? 0.125 : 30;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        argument *a = problem_find(p, names[n]);
        random_stream of = random_fork(s, 10 + n);
        for (uint64_t i = 0; a && i < a->count; i++) {
            double normal = random_normal(of, i);
            bool is_hit = random_below(random_fork(of, 1), i, kind == ATTENTION_NONFINITE ? 2 : 5) == 0;
            double value = n == 1 ? slope_of(i, kind == ATTENTION_SCALE_0 || kind >= ATTENTION_CHUNKS_RISE)
                           : n == 2 && is_hit          ? -INFINITY
                           : kind == ATTENTION_EXTREME ? (normal > 0 ? 300 : -300)
                           : n == 0                    ? sink_of(i, normal)
                                                       : 2 * normal;
            element_set(a->about->type, a->host, i, value);
        }
    }
}

/* Returns 1 / sqrt(head_dim) for kinds of input that depend on the size of scores; others also get other scales. */
static double make_scale(int kind, double dim, random_stream s)
{
    static const double factors[] = {1, 0.6, 1.5};
    const bool is_usual = kind > ATTENTION_DOMINATING && kind != ATTENTION_ONE_HOT;
    if (kind == ATTENTION_SCALE_0)
        return 0;
    return (is_usual ? 1 : factors[random_below(s, 0, sizeof factors / sizeof *factors)]) / sqrt(dim);
}

void attention_make(problem *p, const input_pattern *pattern, random_stream s)
{
    static const char *const names[] = {"q", "k", "v"};
    argument *scale = problem_find(p, "scale");
    double dim = (double)problem_parameter(p, "head_dim");
    int kind = kind_at(p, pattern->number);
    double exact = make_scale(kind, dim, random_fork(s, 20));
    double score = kind == ATTENTION_EXTREME ? 1e4 : 60, size = sqrt(score / sqrt(dim));
    scale->real = number_decode(scale->about->type, number_encode(scale->about->type, exact));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        matrix m = matrix_of(p, names[i], kind, size, random_fork(s, i + 1));
        if (m.has_codes)
            fill_codes(p, &m);
        else
            fill(&m);
    }
    fill_shaping(p, kind, s);
    attention_make_layout(p);
    attention_poison(p);
}

/* clang-format off */
const input_pattern attention_patterns[] = {
    {"normal",     PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"dominating", PATTERN_LARGE,                  ATTENTION_DOMINATING},
    {"extreme",    0,                              ATTENTION_EXTREME},
    {"rising",     0,                              ATTENTION_RISING},
    {"falling",    0,                              ATTENTION_FALLING},
    {"late",       0,                              ATTENTION_LATE},
    {"scale-0",    0,                              ATTENTION_SCALE_0},
    {"large-v",    0,                              ATTENTION_LARGE_V},
    {"one-hot",    0,                              ATTENTION_ONE_HOT},
    {"real",       0,                              INPUT_REAL},
    {"denormal",   0,                              INPUT_DENORMAL},
    {"huge-tiny",  0,                              INPUT_HUGE_TINY},
    {"faint",      0,                              ATTENTION_FAINT},
    {"nonfinite",  PATTERN_NONFINITE,              ATTENTION_NONFINITE},
    {NULL,         0,                              0},
};
/* clang-format on */
