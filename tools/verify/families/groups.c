/* Shared by the references of the group-wise quantisers. */
#include "groups.h"

#include "../design.h"
#include <math.h>
#include <string.h>

/* ---- arithmetic ------------------------------------------------------------------------------------------------- */

element_type groups_arithmetic(element_type elements)
{
    return elements == ELEMENT_F64 ? ELEMENT_F64 : ELEMENT_F32;
}

double groups_add(element_type arithmetic, double a, double b)
{
    return arithmetic == ELEMENT_F64 ? a + b : (double)((float)a + (float)b);
}

double groups_subtract(element_type arithmetic, double a, double b)
{
    return arithmetic == ELEMENT_F64 ? a - b : (double)((float)a - (float)b);
}

double groups_multiply(element_type arithmetic, double a, double b)
{
    return arithmetic == ELEMENT_F64 ? a * b : (double)((float)a * (float)b);
}

double groups_divide(element_type arithmetic, double a, double b)
{
    return arithmetic == ELEMENT_F64 ? a / b : (double)((float)a / (float)b);
}

/* Rounds the other way; rest: the rounding error. */
static double round_other_way(element_type arithmetic, double rounded, double rest)
{
    return groups_step(arithmetic, rounded, rest > 0 ? 1 : rest < 0 ? -1 : 0);
}

double groups_other_sum(element_type arithmetic, double a, double b)
{
    const double sum = groups_add(arithmetic, a, b), of_b = sum - a;
    return round_other_way(arithmetic, sum, a - (sum - of_b) + (b - of_b));
}

static double other_product(element_type arithmetic, double a, double b)
{
    const double product = groups_multiply(arithmetic, a, b);
    return round_other_way(arithmetic, product, fma(a, b, -product));
}

double groups_other_quotient(element_type arithmetic, double a, double b)
{
    const double quotient = groups_divide(arithmetic, a, b);
    return round_other_way(arithmetic, quotient, fma(-quotient, b, a));
}

double groups_step(element_type type, double x, int steps)
{
    return number_decode(type, number_step(type, number_encode(type, x), steps));
}

/* ---- the contract's parameters ----------------------------------------------------------------------------------- */

uint64_t groups_size(problem *p)
{
    argument *given = problem_find(p, "group_size");
    const char *fixed = manifest_param_value(p->variant, "group");
    uint64_t group = 0;
    if (given)
        return given->integer;
    for (; fixed && *fixed >= '0' && *fixed <= '9'; fixed++)
        group = group * 10 + (uint64_t)(*fixed - '0');
    return group ? group : 64;
}

group_range groups_range(problem *p, uint64_t g)
{
    uint64_t n = problem_integer(p, "n"), size = groups_size(p);
    group_range range = {g * size, n};
    if (n - range.first > size)
        range.last = range.first + size;
    return range;
}

uint64_t groups_count(problem *p)
{
    const uint64_t n = problem_integer(p, "n");
    return n == 0 ? 0 : (n - 1) / groups_size(p) + 1;
}

unsigned groups_even_shift(const problem *p)
{
    return problem_has_parameter(p, "nibbles", "high") ? 4 : 0;
}

void groups_set_code(const problem *p, argument *packed, uint64_t i, unsigned code)
{
    unsigned char *byte = (unsigned char *)packed->host + i / 2;
    const unsigned shift = groups_shift(groups_even_shift(p), i);
    *byte = (unsigned char)((*byte & ~(15u << shift)) | code << shift);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

groups_share groups_share_of(random_stream s, uint64_t g)
{
    return (groups_share)((g + random_below(random_fork(s, 91), 0, 3)) % 3);
}

/* Kernels use a slow path for a tile if one of its groups does not suit the fast path. So sometimes a property of
 * a group holds for all groups of a tile: for those that begin in the same 1024 elements. */
typedef enum block_kind {
    BLOCK_MIXED,    /* all kinds of groups */
    BLOCK_PURE,     /* only the input's own kind */
    BLOCK_FIT,      /* no group that may need the slow path */
    BLOCK_SMALL,    /* all kinds; given scales and elements so small that the fast path would be wrong */
    BLOCK_INFINITE, /* normal elements with one infinity in each group, or infinite given scales */
    BLOCK_PARTLY    /* one group in three small or infinite */
} block_kind;

/* Returns the number of a block: a warp's elements, or half of them. */
static uint64_t block_number(problem *p, uint64_t g)
{
    return groups_range(p, g).first / 1024;
}

static block_kind block_of(problem *p, random_stream s, uint64_t g)
{
    static const block_kind blocks[] = {BLOCK_MIXED, BLOCK_MIXED, BLOCK_MIXED,    BLOCK_PURE,  BLOCK_FIT,
                                        BLOCK_FIT,   BLOCK_SMALL, BLOCK_INFINITE, BLOCK_PARTLY};
    if (p->is_plain)
        return BLOCK_PURE;
    return blocks[random_below(random_fork(s, 93), block_number(p, g), sizeof blocks / sizeof blocks[0])];
}

/* Returns whether groups of this kind may need the slow path. */
static bool are_unfit(int kind)
{
    return kind == INPUT_LARGEST || kind == INPUT_ANY_BITS || kind == INPUT_NONFINITE || kind == GROUPS_NAN ||
           kind == GROUPS_INFINITY || kind == GROUPS_ANY_SCALE || kind == GROUPS_NONFINITE_SCALE;
}

static groups_share share_in(problem *p, random_stream s, uint64_t g, int kind)
{
    const block_kind block = block_of(p, s, g);
    const groups_share share = groups_share_of(s, g);
    if (block == BLOCK_PURE)
        return GROUPS_OWN;
    return block == BLOCK_FIT && share == GROUPS_OWN && are_unfit(kind) ? GROUPS_NEAR : share;
}

int groups_kind_of(problem *p, random_stream s, uint64_t g, int own)
{
    const block_kind block = block_of(p, s, g);
    const groups_share share = p->is_plain ? GROUPS_OWN : share_in(p, s, g, own);
    const unsigned turn = block == BLOCK_PURE ? 0 : g / 3 % 4;
    const bool may_be_far =
        problem_find(p, "zero") && block != BLOCK_FIT; /* only a zero loses bits far from 0 */
    if (share == GROUPS_NEAR)
        return problem_find(p, "packed") ? GROUPS_HARD : own; /* codes can differ */
    if (share == GROUPS_AT)
        return GROUPS_THRESHOLDS;
    if (turn == 1)
        return GROUPS_NEAR_SMALLEST;
    return turn == 3 && may_be_far ? GROUPS_FAR : own;
}

bool groups_may_have_nans(problem *p, random_stream s, uint64_t g)
{
    return block_of(p, s, g) != BLOCK_FIT;
}

/* Makes elements far below the range where the product with the scale's inverse keeps all bits of a quotient. */
static void make_small(problem *p, argument *in, argument *scale, uint64_t g)
{
    const element_type type = in->about->type, of_scale = scale->about->type;
    const group_range range = groups_range(p, g);
    const double power = of_scale == ELEMENT_F64 ? 0x1p-1000 : type == ELEMENT_F16 ? 0x1p-130 : 0x1p-118;
    element_set(of_scale, scale->host, g, power * element_get(of_scale, scale->host, g));
    for (uint64_t i = range.first; type != ELEMENT_F16 && i < range.last; i++)
        element_set(type, in->host, i, power * element_get(type, in->host, i));
}

static void make_infinite(problem *p, argument *in, argument *scale, random_stream s, uint64_t g)
{
    const group_range range = groups_range(p, g);
    const uint64_t place = groups_extreme_place(p, s, g, range.last - range.first);
    for (uint64_t i = range.first; i < range.last; i++)
        element_set(in->about->type, in->host, i, random_normal(s, i));
    if (scale)
        element_set(scale->about->type, scale->host, g, INFINITY);
    else
        element_set(in->about->type, in->host, range.first + place, INFINITY);
}

static void make_last_largest(problem *p, argument *in, random_stream s)
{
    const element_type type = in->about->type;
    const group_range range = groups_range(p, (in->count - 1) / groups_size(p));
    double most = 0;
    for (uint64_t i = range.first; i < range.last; i++)
        most = fmax(most, fabs(element_get(type, in->host, i)));
    if (most > 0 && most <= number_largest(type) / 2)
        element_set(type, in->host, in->count - 1, random_below(s, 0, 2) ? 2 * most : -2 * most);
}

void groups_finish_blocks(problem *p, argument *in, argument *scale, random_stream s)
{
    for (uint64_t g = 0; g < groups_count(p); g++) {
        const block_kind block = block_of(p, s, g);
        const bool is_part = block == BLOCK_PARTLY && groups_share_of(s, g) == GROUPS_OWN;
        if (scale && (block == BLOCK_SMALL || (is_part && g / 3 % 2)))
            make_small(p, in, scale, g);
        else if (block == BLOCK_INFINITE || is_part)
            make_infinite(p, in, scale, s, g);
    }
    if (!scale && in->count % groups_size(p) != 0 && random_below(random_fork(s, 94), 0, 4))
        make_last_largest(p, in, random_fork(s, 95));
}

uint64_t groups_extreme_place(problem *p, random_stream s, uint64_t g, uint64_t count)
{
    return (random_below(random_fork(s, 92), 0, 1 << 20) + g % count * 37 + block_number(p, g) % count * 3) %
           count;
}

bool groups_extreme_is_negative(problem *p, uint64_t g)
{
    return (block_number(p, g) + block_number(p, g) / 4) % 2;
}

double groups_any_mantissa(element_type type, random_stream s, uint64_t i)
{
    const double x = ldexp(1 + random_uniform(s, 2 * i), (int)random_below(s, 2 * i + 1, 13) - 6);
    return number_decode(type, number_encode(type, x));
}

static void fill_odd_numbers(argument *numbers, random_stream s)
{
    for (uint64_t i = 1; i < numbers->count; i += 2)
        element_set(numbers->about->type, numbers->host, i, random_normal(s, i));
}

static void fill_infinities(argument *in, uint64_t group, random_stream s)
{
    for (uint64_t i = 0; i < in->count; i++) {
        const bool is_nan = random_below(random_fork(s, 1), i, 8) == 0 && i / group % 2;
        const double infinity = random_below(s, i / group, 2) ? INFINITY : -INFINITY;
        element_set(in->about->type, in->host, i, is_nan ? NAN : infinity);
    }
}

void groups_fill_elements(problem *p, argument *in, int kind, random_stream s)
{
    bool is_normal = kind >= GROUPS_NAN && kind <= GROUPS_NEAR_TIE;
    inputs_fill(in, is_normal ? INPUT_NORMAL : (input_kind)kind, s);
    if (kind == GROUPS_INFINITY)
        fill_infinities(in, groups_size(p), s);
    for (uint64_t i = 0; kind == GROUPS_NAN && i < in->count; i++) {
        if (random_below(random_fork(s, 1), i, 16) == 0)
            element_set(in->about->type, in->host, i, NAN);
    }
    if (kind == GROUPS_NAN && in->count > 0) /* one NaN anywhere in the tail */
        element_set(in->about->type, in->host, in->count - 1 - random_below(s, 0, 16) % in->count, NAN);
}

/* Returns a tie: an odd number with one bit more than the type. */
static double make_tie(element_type type, random_stream s, uint64_t g)
{
    const bool is_brief =
        type == ELEMENT_BF16 || (type != ELEMENT_F16 && random_below(random_fork(s, 1), g, 2));
    int bits = is_brief ? 8 : 11;
    double odd = ldexp(1, bits) + 1 + 2 * (double)random_below(s, g, UINT64_C(1) << (bits - 1));
    return ldexp(odd, (int)random_below(random_fork(s, 2), g, 8) - bits - 4);
}

/* Fills scales with ties. Zeros are integers, so that a code one above or below its zero gives the scale back. */
static void fill_ties(argument *numbers, random_stream s)
{
    bool is_zero = strcmp(numbers->about->name, "zero") == 0;
    for (uint64_t g = 0; g < numbers->count; g++)
        element_set(numbers->about->type, numbers->host, g,
                    is_zero ? (double)random_below(s, g, 16) : make_tie(ELEMENT_F32, s, g));
}

double groups_near_tie_scale(element_type outputs, double value, random_stream s, uint64_t g)
{
    enum { ATTEMPTS = 16 };
    const element_type arithmetic = groups_arithmetic(outputs);
    double scale = 1;
    for (uint64_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        scale = make_tie(outputs, random_fork(s, 3 + attempt), g) / value;
        scale = groups_step(arithmetic, scale, (int)(attempt % 3) - 1);
        if (number_encode(outputs, groups_multiply(arithmetic, scale, value)) !=
            number_encode(outputs, other_product(arithmetic, scale, value)))
            break;
    }
    return scale;
}

void groups_fill_numbers(argument *numbers, int kind, random_stream s)
{
    if (kind == GROUPS_TIE_SCALE) {
        fill_ties(numbers, s);
        return;
    }
    input_kind plain = kind < GROUPS_NAN                ? (input_kind)kind
                       : kind == GROUPS_ANY_SCALE       ? INPUT_ANY_BITS
                       : kind == GROUPS_NONFINITE_SCALE ? INPUT_NONFINITE
                                                        : INPUT_NORMAL;
    inputs_fill(numbers, plain, s);
    for (uint64_t g = 0; kind == GROUPS_NONFINITE_SCALE && g < numbers->count; g++)
        if (random_below(random_fork(s, 4), g, 5) == 0)
            element_set(numbers->about->type, numbers->host, g, inputs_nonfinite(random_fork(s, 5), g));
    if (kind == INPUT_ZERO || kind == INPUT_DENORMAL)
        fill_odd_numbers(numbers, random_fork(s, 2));
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

static void add_counts(edge_list *n, const uint64_t *counts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        edges_add(n, counts[i]);
}

/* Adds a size of two and a half thread blocks, in spite of limits: over its whole tiles, a group's largest
 * element is at every place. */
static void add_tiles_always(size_plan *plan, argument *size)
{
    edge_list tiles = {{0}, 0};
    edges_add_tiles(&tiles, plan->problem, size);
    if (tiles.count < 3)
        return;
    const uint64_t block = tiles.values[1]; /* the largest number of elements with one thread block */
    size->integer = 2 * block + block / 2 + 3;
    size_plan_add_always(plan);
}

/* Adds each tail after one thread block and after two; then more than 2^20 elements, for many thread blocks or
 * many rounds. */
static void add_brief(size_plan *plan, argument *size)
{
    enum { LANE = 8, MANY = (1 << 20) + 70003 };
    edge_list tiles = {{0}, 0};
    edges_add_tiles(&tiles, plan->problem, size);
    const uint64_t block = tiles.count < 3 ? 0 : tiles.values[1];
    plan->is_brief = true;
    for (uint64_t tail = 1; tail < LANE && block > 0; tail++)
        for (uint64_t blocks = 1; blocks <= 2; blocks++) {
            size->integer = blocks * block + LANE * tail + tail;
            size_plan_add(plan);
        }
    plan->is_brief = false;
    size->integer = MANY;
    size_plan_add_far(plan, 2 * MANY);
}

enum { NESTED_GROUP = 256 }; /* scales that share an absmax */

/* Adds the sizes for a group size. Brief: few sizes beyond those at this group's own edges. A lane has up to 8 adjacent
 * elements, and n may end at any of them; a warp's full tile is at most 2048 elements, and 1024 for fixed groups. */
static void plan_group(size_plan *plan, uint64_t group, bool is_brief)
{
    static const uint64_t few[] = {1, 36, 2054};
    static const uint64_t some[] = {0,    1,    2,    3,    7,    38,   700,   1029,  1284,
                                    1550, 1800, 2054, 2560, 4096, 4099, 65536, 100003};
    argument *size = problem_find(plan->problem, "n");
    edge_list n = {{0}, 0};
    if (is_brief)
        add_counts(&n, few, sizeof few / sizeof few[0]);
    else
        add_counts(&n, some, sizeof some / sizeof some[0]);
    if (group <= plan->limits.max_elements) {
        edges_add_around(&n, group);
        edges_add_around(&n, 2 * group);
        edges_add(&n, 4 * group);
        edges_add(&n, 3 * group + group / 2 + 1);
        if (problem_find(plan->problem, "nested_absmax"))
            edges_add(&n, NESTED_GROUP * group + 2054);
    }
    if (!is_brief)
        edges_add_tiles(&n, plan->problem, size);
    if (plan->limits.big)
        edges_add_around(&n, plan->limits.big);
    for (size_t i = 0; i < n.count; i++) {
        size->integer = n.values[i];
        size_plan_add(plan);
    }
}

/* Plans sizes for group sizes given at launch: the first ones take every count, the others only counts at their
 * own edges. */
void groups_plan(size_plan *sizes)
{
    enum { MOST_WORK = 1 << 20 };
    static const size_axis axes[] = {{.name = "n", .unit = 1}, {.name = "group_size", .unit = 1}};
    enum { THOROUGH = 3 };
    static const uint64_t groups[] = {64,  7,   5000, 1,    2,    3,    31,   32,   33,
                                      100, 128, 1000, 1023, 1024, 2047, 2048, 2049, UINT64_MAX};
    argument *given = problem_find(sizes->problem, "group_size");
    size_plan_cover(sizes, axes, given ? 2 : 1, NULL, MOST_WORK);
    if (!given) {
        add_tiles_always(sizes, problem_find(sizes->problem, "n"));
        add_brief(sizes, problem_find(sizes->problem, "n"));
        plan_group(sizes, groups_size(sizes->problem), false);
        return;
    }
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        given->integer = groups[i];
        plan_group(sizes, groups[i], i >= THOROUGH && !sizes->limits.is_full);
    }
}
