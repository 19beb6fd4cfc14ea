/* rope: reference, bounds, inputs and sizes.
 *
 * The angle is exact in integers: position * frequency modulo 2^64. Of a pair (a, b), with m the magnitude:
 *
 *     |got - r| <= e + u_T * |r|,  e = 2^-21 * |m| * (|a| + |b|)
 *
 * The kernel rounds codes from its approximation of r. So a code is right if it is the rounded value of some number
 * between q - d and q + d, where q = r / scale and d = e / scale + 2^-21 * |q|; for int8_token, d includes the error
 * that e causes in the scale. Elements that are not rotated have e = 0. The bounds also include the smallest numbers
 * of the types.
 */
#include "families.h"

#include "../design.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codes.h"
#include "inputs.h"

#define PI 3.14159265358979323846264338327950288L

static const double least_most = 0x1p-118, least_f32 = 0x1p-149;

static bool is_halves(const problem *p)
{
    return problem_has_parameter(p, "pairs", "halves");
}

static bool has_codes(const problem *p)
{
    return !problem_has_parameter(p, "cache", "same");
}

static bool has_token_scales(const problem *p)
{
    return problem_has_parameter(p, "cache", "int8_token");
}

/* ---- rotation --------------------------------------------------------------------------------------------------- */

/* An element after the rotation, and its error bound. `is_open`: it is an infinity or a NaN, and the last bits of
 * a sine decide which. */
typedef struct rotated {
    double value, error;
    bool is_open;
} rotated;

/* Returns the sine, exact at quarters of a turn. */
static long double sine_of(uint64_t turn)
{
    const uint64_t half = UINT64_C(1) << 63, quarter = half / 2;
    const long double sign = turn >= half ? -1 : 1;
    turn %= half;
    if (turn > quarter)
        turn = half - turn;
    return turn == quarter ? sign : sign * sinl((long double)turn * 0x1p-63L * PI);
}

static long double cosine_of(uint64_t turn)
{
    return sine_of(turn + (UINT64_C(1) << 62));
}

static rotated rotate(problem *p, double x, double other, bool is_first, uint64_t turn)
{
    const double magnitude = problem_find(p, "magnitude")->real;
    const long double c = magnitude * cosine_of(turn), s = magnitude * sine_of(turn);
    const long double exact = is_first ? x * c - other * s : other * s + x * c;
    rotated r = {.error = 0x1p-21 * fabs(magnitude) * (fabs(x) + fabs(other)) + 4 * least_f32};
    if (!isfinite(x) || !isfinite(other)) {
        const long double nearest = fminl(fabsl(c), fabsl(s));
        return (rotated){.value = (double)exact,
                         .is_open = nearest < 0x1p-20L * fabs(magnitude) || magnitude == 0};
    }
    r.value = number_or_infinity(ELEMENT_F32, exact, r.error);
    return r;
}

/* Returns element i of a head that begins at `first`. */
static rotated element_of(problem *p, const argument *in, uint64_t first, uint64_t i, uint64_t token,
                          bool rotates)
{
    const element_type type = in->about->type;
    const uint64_t rotary = rotates ? problem_integer(p, "rotary_dim") : 0, half = rotary / 2;
    const double x = element_get(type, in->host, first + i);
    if (i >= rotary)
        return (rotated){.value = x};
    const bool is_first = is_halves(p) ? i < half : i % 2 == 0;
    const uint64_t distance = is_halves(p) ? half : 1, first_index = is_first ? i : i - distance,
                   pair = is_halves(p) ? first_index : first_index / 2;
    const double other = element_get(type, in->host, first + (is_first ? i + distance : first_index));
    const uint64_t position = element_bits(ELEMENT_U32, problem_find(p, "positions")->host, token),
                   frequency = element_bits(ELEMENT_U64, problem_find(p, "frequencies")->host, pair);
    return rotate(p, x, other, is_first, position * frequency);
}

static void expect_element(argument *out, uint64_t at, const rotated *r)
{
    const element_type type = out->about->type;
    const bool is_exact = r->error == 0 && !r->is_open;
    out->expected_value[at] = number_or_infinity(type, r->value, r->error);
    out->bound[at] = r->is_open ? INFINITY
                     : is_exact ? 0
                                : r->error + number_unit(type) * fabs(r->value) + number_smallest(type);
}

/* ---- codes ------------------------------------------------------------------------------------------------------ */

/* Expects any code from that of `low` to that of `high`. The e4m3 codes of the two signs are far apart as
 * numbers, so around 0 all codes between are allowed too. */
static void expect_code(argument *out, uint64_t at, bool is_e4m3, double low, double high)
{
    const bool both_signs = is_e4m3 && signbit(low) != signbit(high);
    const double from = both_signs ? -CODES_SIGN : codes_encode(is_e4m3, low),
                 to = codes_encode(is_e4m3, high);
    out->expected_value[at] = (from + to) / 2;
    out->bound[at] = fabs(from - to) / 2;
}

/* Expects a quotient; `off` is its relative uncertainty. */
static void expect_quotient(argument *out, uint64_t at, bool is_e4m3, const rotated *r, double scale,
                            double off)
{
    const double q = r->value / scale;
    if (!isfinite(q) || r->is_open) {
        expect_code(out, at, is_e4m3, q, q);
        if (r->is_open)
            out->bound[at] = 256;
        return;
    }
    const double least = off > 0 ? 127 * least_f32 * (fabs(r->value) + 1) : 0,
                 d = r->error / scale + off * fabs(q) + least;
    expect_code(out, at, is_e4m3, q - d, q + d);
}

/* ---- the cache -------------------------------------------------------------------------------------------------- */

/* Finds an argument of K or V: `name` is "k" or "v". */
static argument *find(problem *p, const char *name, const char *suffix)
{
    char text[32];
    snprintf(text, sizeof text, "%s%s", name, suffix);
    return problem_find(p, text);
}

static uint64_t size_of(problem *p, const char *name, const char *suffix)
{
    return find(p, name, suffix)->integer;
}

/* Returns the index of a slot's head in the cache, or in its scales. */
static uint64_t place_of(problem *p, const char *of, uint64_t slot, uint64_t head)
{
    const uint64_t page_size = problem_integer(p, "page_size");
    return slot / page_size * size_of(p, of, "_page_stride") +
           slot % page_size * size_of(p, of, "_row_stride") + head * size_of(p, of, "_head_stride");
}

static void expect_token_codes(problem *p, const char *name, const rotated x[], uint64_t slot, uint64_t head)
{
    const uint64_t dim = problem_parameter(p, "head_dim"), first = place_of(p, "cache", slot, head),
                   at = place_of(p, "scale", slot, head);
    argument *codes = find(p, name, "_codes"), *scales = find(p, name, "_scales");
    double most = 0, error = 0;
    bool is_open = false;
    for (uint64_t i = 0; i < dim; i++) {
        is_open |= x[i].is_open;
        most = isnan(x[i].value) || fabs(x[i].value) > most ? fabs(x[i].value) : most;
        error = fmax(error, x[i].error);
        if (isnan(most))
            break;
    }
    if (!isfinite(most) || is_open) {
        scales->expected_value[at] = most;
        scales->bound[at] = is_open ? INFINITY : 0;
        memset(&codes->expected_value[first], 0, (size_t)dim * sizeof *codes->expected_value);
        memset(&codes->bound[first], 0, (size_t)dim * sizeof *codes->bound);
        return;
    }
    most = fmax(most, least_most);
    scales->expected_value[at] = most / 127;
    scales->bound[at] = 0x1p-22 * most / 127 + error / 127;
    for (uint64_t i = 0; i < dim; i++)
        expect_quotient(codes, first + i, false, &x[i], most / 127, 0x1p-21 + error / most);
}

static void expect_head(problem *p, const char *name, const rotated x[], uint64_t slot, uint64_t head)
{
    const uint64_t dim = problem_parameter(p, "head_dim"), first = place_of(p, "cache", slot, head);
    if (has_token_scales(p)) {
        expect_token_codes(p, name, x, slot, head);
        return;
    }
    argument *to = find(p, name, has_codes(p) ? "_codes" : "_cache"), *scale = find(p, name, "_scale");
    const bool is_e4m3 = problem_has_parameter(p, "cache", "e4m3");
    for (uint64_t i = 0; i < dim; i++) {
        if (!has_codes(p)) {
            expect_element(to, first + i, &x[i]);
            continue;
        }
        const double by = element_get(ELEMENT_F32, scale->host, head);
        const bool is_power_of_two = exp2(ilogb(by)) == by;
        expect_quotient(to, first + i, is_e4m3, &x[i], by, is_power_of_two ? 0 : 0x1p-21);
    }
}

/* Expects an array that is not written to. */
static void expect_as_before(problem *p, argument *a)
{
    expect_values(p, a);
    for (uint64_t i = 0; i < a->count; i++)
        a->expected_value[i] = element_get(a->about->type, a->host, i);
}

static void expect_side(problem *p, const char *name)
{
    enum { MOST_HEAD_DIM = 256 };
    rotated x[MOST_HEAD_DIM] = {{0}};
    const argument *in = problem_find(p, name), *slots = problem_find(p, "slots");
    const uint64_t dim = problem_parameter(p, "head_dim"),
                   all = problem_integer(p, "pages") * problem_integer(p, "page_size");
    expect_as_before(p, find(p, name, has_codes(p) ? "_codes" : "_cache"));
    if (has_token_scales(p))
        expect_as_before(p, find(p, name, "_scales"));
    for (uint64_t token = 0; token < slots->count; token++) {
        const uint64_t slot = element_bits(ELEMENT_I64, slots->host, token);
        for (uint64_t head = 0; slot < all && head < size_of(p, name, "_heads"); head++) {
            const uint64_t first =
                token * size_of(p, name, "_row_stride") + head * size_of(p, name, "_head_stride");
            for (uint64_t i = 0; i < dim; i++)
                x[i] = element_of(p, in, first, i, token, name[0] == 'k');
            expect_head(p, name, x, slot, head);
        }
    }
}

static void expect(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    const argument *q = problem_find(p, "q");
    argument *out = problem_find(p, "q_out");
    const uint64_t dim = problem_parameter(p, "head_dim");
    expect_values(p, out);
    expect_gaps(p, out);
    for (uint64_t token = 0; token < problem_integer(p, "n"); token++) {
        for (uint64_t head = 0; head < problem_integer(p, "q_heads"); head++) {
            const uint64_t from = token * size_of(p, "q", "_row_stride") +
                                  head * size_of(p, "q", "_head_stride"),
                           to = token * size_of(p, "out", "_row_stride") +
                                head * size_of(p, "out", "_head_stride");
            for (uint64_t i = 0; i < dim; i++) {
                const rotated r = element_of(p, q, from, i, token, true);
                expect_element(out, to + i, &r);
                out->is_gap[to + i] = 0;
            }
        }
    }
    expect_side(p, "k");
    expect_side(p, "v");
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

/* Makes frequencies. A third of the tables are Llama's; in the others angles are arbitrary, half of them at the
 * edges of eighths of a turn. */
static void make_frequencies(argument *a, random_stream s)
{
    static const uint64_t edges[] = {0,
                                     UINT64_C(1) << 61,
                                     UINT64_C(1) << 62,
                                     UINT64_C(3) << 61,
                                     UINT64_C(1) << 63,
                                     (UINT64_C(1) << 61) - 1,
                                     UINT64_MAX,
                                     UINT64_C(1) << 31};
    const bool is_usual = random_below(random_fork(s, 1), 0, 3) == 0;
    for (uint64_t i = 0; i < a->count; i++) {
        const double angle = pow(10000, -(double)i / (double)a->count);
        uint64_t frequency = (uint64_t)(angle / (2 * (double)PI) * 0x1p64);
        if (!is_usual)
            frequency = random_below(random_fork(s, 2), i, 2)
                            ? random_bits(random_fork(s, 3), i)
                            : edges[random_below(random_fork(s, 4), i, sizeof edges / sizeof *edges)];
        element_set_bits(ELEMENT_U64, a->host, i, frequency);
    }
}

static void make_positions(argument *a, bool is_plain, random_stream s)
{
    static const uint64_t edges[] = {0, 1, 131071, 131072, INT32_MAX, UINT64_C(1) << 31, UINT32_MAX};
    for (uint64_t i = 0; i < a->count; i++) {
        const uint64_t choice = random_below(s, i, sizeof edges / sizeof *edges + 2);
        uint64_t position = i;
        if (!is_plain && choice < sizeof edges / sizeof *edges)
            position = edges[choice];
        else if (!is_plain)
            position = random_bits(random_fork(s, 1), i) & UINT32_MAX;
        element_set_bits(ELEMENT_U32, a->host, i, position);
    }
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Makes slots: all different, in permuted order. Some after the first few are outside the cache, below it or above; the low
 * 32 bits of some of these are a valid slot. */
static void make_slots(problem *p, random_stream s)
{
    argument *a = problem_find(p, "slots");
    const uint64_t all = problem_integer(p, "pages") * problem_integer(p, "page_size");
    const uint64_t none[] = {UINT64_MAX, UINT64_C(1) << 63, all, UINT64_C(1) << 32, INT64_MAX};
    uint64_t step = 1 + random_below(random_fork(s, 1), 0, all + 1);
    while (common_divisor(step, all) != 1)
        step++;
    const uint64_t start = random_below(random_fork(s, 2), 0, all + 1);
    for (uint64_t i = 0; i < a->count; i++) {
        const uint64_t choice = random_below(random_fork(s, 3), i, 4 * sizeof none / sizeof *none);
        uint64_t slot = all ? (start + i * step) % all : UINT64_MAX;
        if (p->is_plain)
            slot = i;
        else if (i >= all)
            slot = UINT64_MAX;
        else if (i > 0 && choice < sizeof none / sizeof *none)
            slot = none[choice];
        element_set_bits(ELEMENT_I64, a->host, i, slot);
    }
}

/* Makes scales: exact ones, for which numbers are ties, and others. */
static void make_scales(argument *a, random_stream s)
{
    static const double scales[] = {1, 0.125, 0x1p-7, 4, 0.013, 1.7};
    for (uint64_t i = 0; a && i < a->count; i++)
        element_set(ELEMENT_F32, a->host, i, scales[random_below(s, i, sizeof scales / sizeof *scales)]);
}

/* Puts a NaN or an infinity into one of four heads of V, which is not rotated: it affects no other element. */
static void put_nonfinite(problem *p, random_stream s)
{
    argument *v = problem_find(p, "v");
    const uint64_t dim = problem_parameter(p, "head_dim");
    for (uint64_t first = 0; first + dim <= v->count; first += dim) {
        if (random_below(s, first, 4) == 0)
            element_set(v->about->type, v->host, first + random_below(random_fork(s, 1), first, dim),
                        inputs_nonfinite(random_fork(s, 2), first));
    }
}

static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    static const char *const names[] = {"q", "k", "v"}, *const written[] = {"k_cache",  "v_cache",
                                                                            "k_codes",  "v_codes",
                                                                            "k_scales", "v_scales"};
    static const double magnitudes[] = {1, 1, 0.75, 1.2079441541679836, 0, -0.875};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        inputs_fill(problem_find(p, names[i]), (input_kind)pattern->number, random_fork(s, i + 1));
    put_nonfinite(p, random_fork(s, 20));
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        argument *a = problem_find(p, written[i]);
        if (a)
            inputs_fill_bytes(a, random_fork(s, i + 10));
    }
    const bool is_large = pattern->number == INPUT_LARGEST || pattern->number == INPUT_ANY_BITS;
    const double magnitude =
        magnitudes[random_below(random_fork(s, 4), 0, sizeof magnitudes / sizeof *magnitudes)];
    problem_find(p, "magnitude")->real = is_large ? 1 : (double)(float)magnitude;
    make_frequencies(problem_find(p, "frequencies"), random_fork(s, 5));
    make_positions(problem_find(p, "positions"), p->is_plain, random_fork(s, 6));
    make_slots(p, random_fork(s, 7));
    make_scales(problem_find(p, "k_scale"), random_fork(s, 8));
    make_scales(problem_find(p, "v_scale"), random_fork(s, 9));
}

/* clang-format off */
static const input_pattern patterns[] = {
    {"normal",    PATTERN_RANDOM | PATTERN_LARGE,    INPUT_NORMAL},
    {"nonfinite", PATTERN_NONFINITE | PATTERN_LARGE, INPUT_NONFINITE},
    {"huge-tiny", 0,                                 INPUT_HUGE_TINY},
    {"any-bits",  0,                                 INPUT_ANY_BITS},
    {"equal",     0,                                 INPUT_EQUAL},
    {"real",      0,                                 INPUT_REAL},
    {"denormal",  0,                                 INPUT_DENORMAL},
    {"zero",      0,                                 INPUT_ZERO},
    {"largest",   0,                                 INPUT_LARGEST},
    {"spread",    0,                                 INPUT_SPREAD},
    {NULL,        0,                                 0},
};
/* clang-format on */

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

/* Order of heads and rows: in Q, K and V, and in the cache. */
typedef enum layout {
    ROWS_FIRST,  /* token, head; page, row, head */
    HEADS_FIRST, /* head, token; page, head, row */
    FUSED,       /* Q, K and V are parts of one row; pages of K and V alternate */
    GAPS,
    LAYOUTS
} layout;

typedef struct sizes {
    uint64_t n, q_heads, k_heads, v_heads, rotary_dim, pages, page_size;
} sizes;

static void set(size_plan *plan, const char *prefix, const char *suffix, uint64_t value)
{
    argument *a = find(plan->problem, prefix, suffix);
    if (a)
        a->integer = value;
}

/* Sets strides of rows and heads; gaps differ between Q, K and V. */
static void set_rows(size_plan *plan, const char *of, const sizes *n, uint64_t heads, layout where,
                     uint64_t gap)
{
    const uint64_t dim = problem_parameter(plan->problem, "head_dim"),
                   all = n->q_heads + n->k_heads + n->v_heads, apart = where == GAPS ? gap : 0;
    set(plan, of, "_row_stride",
        where == HEADS_FIRST ? dim
        : where == FUSED     ? all * dim
                             : heads * (dim + apart) + 2 * apart);
    set(plan, of, "_head_stride", where == HEADS_FIRST ? n->n * dim : dim + apart);
}

/* Sets slots of the cache, with `width` elements for each head of a slot, or of its scales. */
static void set_slots(size_plan *plan, const char *of, const sizes *n, uint64_t width, uint64_t gap,
                      layout where)
{
    const uint64_t heads = n->k_heads > n->v_heads ? n->k_heads : n->v_heads, apart = where == GAPS ? gap : 0,
                   first = width + apart,
                   second = (where == HEADS_FIRST ? n->page_size : heads) * first + 2 * apart,
                   page = (where == HEADS_FIRST ? heads : n->page_size) * second + 3 * apart;
    set(plan, of, "_row_stride", where == HEADS_FIRST ? first : second);
    set(plan, of, "_head_stride", where == HEADS_FIRST ? second : first);
    set(plan, of, "_page_stride", where == FUSED ? 2 * page : page);
}

static void set_sizes(size_plan *plan, sizes n, layout where)
{
    const uint64_t dim = problem_parameter(plan->problem, "head_dim");
    const struct {
        const char *name;
        uint64_t *value;
    } rows[] = {{"n", &n.n},
                {"q_heads", &n.q_heads},
                {"k_heads", &n.k_heads},
                {"v_heads", &n.v_heads},
                {"rotary_dim", &n.rotary_dim},
                {"pages", &n.pages},
                {"page_size", &n.page_size}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *rows[i].value = size_plan_value(plan, rows[i].name, *rows[i].value);
        set(plan, rows[i].name, "", *rows[i].value);
    }
    set_rows(plan, "q", &n, n.q_heads, where, 8);
    set_rows(plan, "k", &n, n.k_heads, where, 16);
    set_rows(plan, "v", &n, n.v_heads, where, 24);
    set_rows(plan, "out", &n, n.q_heads, where == FUSED ? ROWS_FIRST : where, 32);
    set_slots(plan, "cache", &n, dim, 8, where);
    set_slots(plan, "scale", &n, 1, 1, where);
}

static void add(size_plan *plan, sizes n, layout where)
{
    set_sizes(plan, n, where);
    size_plan_add(plan);
}

static void set_design(size_plan *plan, const uint64_t v[MOST_AXES])
{
    set_sizes(plan, (sizes){v[0], v[1], v[2], v[3], v[4] * 16, v[5], v[6]}, (layout)(v[7] % LAYOUTS));
}

static void add_design(size_plan *plan)
{
    enum { MOST_WORK = 1 << 21 };
    const size_axis axes[] = {
        {.name = "n", .unit = 1},
        {.name = "q_heads", .unit = 1},
        {.name = "k_heads", .unit = 1},
        {.name = "v_heads", .unit = 1},
        {.name = "rotary_dim", .unit = 16, .most = problem_parameter(plan->problem, "head_dim") / 16},
        {.name = "pages", .unit = 1},
        {.name = "page_size", .unit = 1},
        {.name = "layout", .unit = 1, .most = LAYOUTS - 1, .kind = AXIS_CHOICE}};
    size_plan_cover(plan, axes, sizeof axes / sizeof *axes, set_design, MOST_WORK);
}

/* Adds one stride at a time whose offsets need more than 20 bits. */
static void add_far(size_plan *plan)
{
    enum { FAR = (1 << 20) + 32, MOST = 6 * FAR };
    static const char *const strides[][2] = {
        {"q", "_row_stride"},     {"q", "_head_stride"},    {"k", "_row_stride"},
        {"k", "_head_stride"},    {"v", "_row_stride"},     {"v", "_head_stride"},
        {"out", "_row_stride"},   {"out", "_head_stride"},  {"cache", "_page_stride"},
        {"cache", "_row_stride"}, {"cache", "_head_stride"}};
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        set_sizes(plan, (sizes){2, 2, 2, 2, problem_parameter(plan->problem, "head_dim"), 2, 2}, ROWS_FIRST);
        set(plan, strides[i][0], strides[i][1], FAR);
        size_plan_add_far(plan, MOST);
    }
}

/* Adds slots of tokens that need more than 16 bits. Pages overlap, so that a million slots take few elements. */
static void add_many_slots(size_plan *plan)
{
    const uint64_t dim = problem_parameter(plan->problem, "head_dim");
    set_sizes(plan, (sizes){1, 1, 1, 1, dim, 1000, 1000}, ROWS_FIRST);
    set(plan, "cache", "_page_stride", dim);
    set(plan, "scale", "_page_stride", 1);
    size_plan_add_far(plan, 1 << 20);
}

/* Tries sizes around a warp's heads, and those of a thread block's warps; every share of a head that is rotated;
 * pages of one row and of several. */
static void plan_sizes(size_plan *plan)
{
    const uint64_t dim = problem_parameter(plan->problem, "head_dim"),
                   elements = problem_has_parameter(plan->problem, "type", "f32") ? 4 : 8;
    uint64_t lanes = 1;
    while (lanes * 2 * elements < dim)
        lanes *= 2;
    const uint64_t warp_heads = 32 / lanes;
    add_design(plan);
    add_far(plan);
    add_many_slots(plan);
    for (uint64_t rotary = 0; rotary <= dim; rotary += 16)
        add(plan, (sizes){3, 2, 1, 1, rotary, 4, 2}, (layout)(rotary / 16 % LAYOUTS));
    for (layout where = 0; where < LAYOUTS; where++) {
        add(plan, (sizes){4, 3, 2, 2, dim, 3, 4}, where);
        add(plan, (sizes){9, 2, 1, 1, dim, 7, 1}, where);
        add(plan, (sizes){5, 1, 3, 2, dim / 32 * 16, 2, 8}, where);
    }
    for (uint64_t heads = warp_heads - 1; heads <= warp_heads + 1; heads++) {
        add(plan, (sizes){1, heads, 1, 1, dim, 1, 5}, ROWS_FIRST);
        add(plan, (sizes){2, 1, heads, heads, dim, 1, 5}, HEADS_FIRST);
        add(plan, (sizes){1, 4 * warp_heads - warp_heads + heads, 1, 2, dim, 1, 3}, GAPS);
    }
    add(plan, (sizes){2, 4, 0, 0, dim, 0, 1}, ROWS_FIRST);
    add(plan, (sizes){2, 0, 3, 0, dim, 2, 1}, ROWS_FIRST);
    add(plan, (sizes){2, 0, 0, 3, dim, 2, 1}, ROWS_FIRST);
    add(plan, (sizes){6, 1, 1, 1, dim, 1, 2}, ROWS_FIRST); /* more tokens than slots */
    add(plan, (sizes){3, 1, 1, 1, dim, 0, 4}, ROWS_FIRST);
    add(plan, (sizes){0, 2, 1, 1, dim, 1, 4}, ROWS_FIRST);
    add(plan, (sizes){3, 0, 0, 0, dim, 1, 4}, ROWS_FIRST);
    add(plan, (sizes){40, 2, 1, 1, dim, 6, 8}, FUSED);
    const uint64_t rotary_dims[LAYOUTS] = {dim, 16, dim / 32 * 16, 0}; /* by layout; in spite of limits */
    for (layout where = 0; where < LAYOUTS; where++) {
        set_sizes(plan, (sizes){3, 2, 1, 2, rotary_dims[where], 2, 2}, where);
        size_plan_add_always(plan);
    }
    set_sizes(plan, (sizes){1, 6 * warp_heads + 1, 7 * warp_heads, 10 * warp_heads, dim, 1, 2}, GAPS);
    size_plan_add_always(plan); /* all warps of three thread blocks have heads */
}

const family_row rope_row = {
    .name = "rope",
    .args =
        "q k v frequencies positions slots q_out n q_heads k_heads v_heads rotary_dim magnitude pages page_size",
    .patterns = patterns,
    .plan = plan_sizes,
    .make = make,
    .expect = expect,
    .expects_nonfinite = true};
