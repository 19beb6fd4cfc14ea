/* Chooses sizes by a pairwise covering design. */
#include "design.h"

#include <stdio.h>
#include <string.h>

#include "random.h"

const uint64_t model_widths[MODEL_WIDTHS] = {
    576,   /* SmolLM2 135M */
    896,   /* Qwen2.5 0.5B */
    1536,  /* SmolLM2 135M, MLP */
    2048,  /* SmolLM2 1.7B */
    2304,  /* Gemma 2 2B */
    2560,  /* Phi-2 */
    3072,  /* Llama 3.2 3B */
    3584,  /* Qwen2.5 7B */
    4096,  /* Llama 3.1 8B */
    5120,  /* Qwen2.5 14B */
    6144,  /* Mixtral 8x22B */
    6912,  /* Gemma 3 1B, MLP */
    7168,  /* DeepSeek V3 */
    8192,  /* Llama 3.1 70B */
    9216,  /* Gemma 2 2B, MLP */
    11008, /* Llama 2 7B, MLP */
    12288, /* Command R+ */
    13824, /* Llama 2 13B, MLP */
    14336, /* Llama 3.1 8B, MLP */
    28672, /* Llama 3.1 70B, MLP */
};

uint64_t design_largest_k(const problem *p)
{
    enum { MOST_PRODUCTS = 1 << 29 };
    return MOST_PRODUCTS / (problem_parameter(p, "tile_m") * problem_parameter(p, "tile_n"));
}

typedef struct axis_values {
    uint64_t items[MOST_AXIS_VALUES]; /* ascending */
    size_t count;
} axis_values;

typedef struct design {
    size_plan *plan;
    const size_axis *axes;
    size_t count;
    size_setter *set;
    uint64_t most_work;
    uint64_t least_threads; /* of the smallest launch */
    axis_values values[MOST_AXES];
    /* has_met[i][a][j][b], i < j: whether value a of axis i has run together with value b of axis j */
    bool has_met[MOST_AXES][MOST_AXIS_VALUES][MOST_AXES][MOST_AXIS_VALUES];
} design;

/* A row: the index of each axis' value. */
typedef struct row {
    size_t at[MOST_AXES];
} row;

/* ---- limits and obstacles ----------------------------------------------------------------------------------------- */

/* How much of the limits a row may use. A row that covers a pair may use more than a row that tries one new value,
 * so that many rows can run. */
typedef enum share { OF_LARGEST, OF_PAIRS, OF_OTHERS } share;

/* The parts divide max_elements and most_work. A launch may have `threads` threads, or `least_launches` times
 * as many as the smallest launch, whichever is more. */
static const struct {
    uint64_t elements_part, work_part, threads, least_launches;
} limits[] = {[OF_LARGEST] = {1, 1, 68 << 10, 16},
              [OF_PAIRS] = {4, 16, 4 << 10, 4},
              [OF_OTHERS] = {16, 64, 1 << 10, 1}};

static uint64_t value_of(const problem *p, const formula *f)
{
    char error[256];
    uint64_t value;
    return f && problem_evaluate(p, f, &value, error, sizeof error) ? value : 0;
}

static uint64_t at_least(uint64_t value, uint64_t least)
{
    return value > least ? value : least;
}

static uint64_t threads_of(const problem *p)
{
    const manifest_variant *v = p->variant;
    uint64_t threads = 1;
    for (int d = 0; d < 3; d++)
        threads *= v->block[d] * value_of(p, v->grid[d]);
    return threads;
}

static bool is_light(const design *d, share part)
{
    enum { LEAST_ELEMENTS = 4096 };
    const problem *p = d->plan->problem;
    const uint64_t elements =
                       at_least(d->plan->limits.max_elements / limits[part].elements_part, LEAST_ELEMENTS),
                   threads = at_least(limits[part].threads, limits[part].least_launches * d->least_threads);
    return problem_elements(p) <= elements &&
           value_of(p, p->variant->elements) <= d->most_work / limits[part].work_part &&
           threads_of(p) <= threads;
}

static uint64_t usual(const design *d, size_t axis)
{
    return d->axes[axis].kind == AXIS_SIZE ? 1 : 0;
}

static void set_usual(const design *d, uint64_t values[MOST_AXES])
{
    for (size_t axis = 0; axis < MOST_AXES; axis++)
        values[axis] = axis < d->count ? usual(d, axis) : 0;
}

static void set_values(design *d, const uint64_t values[MOST_AXES])
{
    if (d->set)
        d->set(d->plan, values);
    for (size_t i = 0; i < d->count && !d->set; i++)
        problem_find(d->plan->problem, d->axes[i].name)->integer = d->axes[i].unit * values[i];
}

/* Returns why these values cannot run; null: they can. */
static const char *obstacle_to(design *d, const uint64_t values[MOST_AXES], share part)
{
    set_values(d, values);
    const char *obstacle = size_plan_obstacle(d->plan);
    return obstacle || is_light(d, part) ? obstacle : "too much work";
}

static const char *obstacle_to_row(design *d, const row *r, share part)
{
    uint64_t values[MOST_AXES] = {0};
    for (size_t i = 0; i < d->count; i++)
        values[i] = d->values[i].items[r->at[i]];
    return obstacle_to(d, values, part);
}

/* ---- values ------------------------------------------------------------------------------------------------------- */

static void add_value(axis_values *list, uint64_t value, uint64_t most)
{
    size_t at = 0;
    while (at < list->count && list->items[at] < value)
        at++;
    if (value > most || list->count == MOST_AXIS_VALUES || (at < list->count && list->items[at] == value))
        return;
    memmove(&list->items[at + 1], &list->items[at], (list->count - at) * sizeof list->items[0]);
    list->items[at] = value;
    list->count++;
}

/* Returns the largest value that fits with the usual values of the other axes; 1 if none fits. */
static uint64_t find_largest(design *d, size_t axis, share part)
{
    uint64_t values[MOST_AXES], low = 1, high;
    set_usual(d, values);
    for (high = 2 * low + 1; high < UINT64_C(1) << 40; high *= 2) {
        values[axis] = high;
        if (obstacle_to(d, values, part))
            break;
        low = high;
    }
    while (high - low > 1) {
        values[axis] = low + (high - low) / 2;
        if (obstacle_to(d, values, part))
            high = values[axis];
        else
            low = values[axis];
    }
    return low;
}

/* Sets the axis' values. The prime and the power of two differ between axes and variants. */
static void choose_values(design *d, size_t axis)
{
    static const uint64_t primes[] = {5, 7, 11, 13};
    const random_stream s = random_fork(random_open(0, d->plan->problem->variant->id), axis);
    const size_axis *a = &d->axes[axis];
    const uint64_t most = a->most ? a->most : find_largest(d, axis, OF_OTHERS),
                   power = UINT64_C(8) << random_below(s, 1, 4);
    axis_values *list = &d->values[axis];
    if (a->kind == AXIS_CHOICE) {
        for (uint64_t i = 0; i <= most; i++)
            add_value(list, i, most);
        return;
    }
    for (uint64_t i = 0; i <= 3; i++)
        add_value(list, i, most);
    add_value(list, primes[random_below(s, 0, sizeof primes / sizeof *primes)], most);
    add_value(list, power, most);
    add_value(list, power + 1, most);
    add_value(list, most, most);
}

/* ---- pairs -------------------------------------------------------------------------------------------------------- */

static bool *pair_of(design *d, const row *r, size_t i, size_t j)
{
    return i < j ? &d->has_met[i][r->at[i]][j][r->at[j]] : &d->has_met[j][r->at[j]][i][r->at[i]];
}

/* Counts the other axes' values that this axis' value has not run with. */
static size_t count_new(design *d, const row *r, size_t axis)
{
    size_t count = 0;
    for (size_t j = 0; j < d->count; j++)
        count += j != axis && !*pair_of(d, r, axis, j);
    return count;
}

/* Sets the axis to the fitting value with the most new pairs; keeps its value if no value has more. */
static void improve(design *d, row *r, size_t axis)
{
    const size_t before = r->at[axis];
    size_t best = before, most = count_new(d, r, axis);
    for (size_t at = 0; at < d->values[axis].count; at++) {
        r->at[axis] = at;
        const size_t found = count_new(d, r, axis);
        if (found > most && !obstacle_to_row(d, r, OF_OTHERS)) {
            best = at;
            most = found;
        }
    }
    r->at[axis] = best;
}

/* Completes the pair of axes i and j with the smallest fitting values of the others, using 0 only if no other
 * value fits. Returns the first obstacle; null: the row fits. */
static const char *complete(design *d, row *r, size_t i, size_t j)
{
    const char *obstacle = NULL;
    for (size_t least = 0; least < 3; least++) {
        for (size_t t = 0; t < d->count; t++) {
            const size_t at = (least + usual(d, t)) % 3;
            if (t != i && t != j)
                r->at[t] = at < d->values[t].count ? at : d->values[t].count - 1;
        }
        const char *found = obstacle_to_row(d, r, OF_PAIRS);
        if (!found)
            return NULL;
        obstacle = obstacle ? obstacle : found;
    }
    return obstacle;
}

static void cover_pair(design *d, row *r, size_t i, size_t j)
{
    for (size_t t = 0; t < d->count; t++)
        if (t != i && t != j)
            improve(d, r, t);
    for (size_t t = 0; t < d->count; t++)
        for (size_t u = t + 1; u < d->count; u++)
            *pair_of(d, r, t, u) = true;
    obstacle_to_row(d, r, OF_PAIRS); /* sets the scalars */
    size_plan_add(d->plan);
}

static size_value name_value(const design *d, size_t axis, size_t at)
{
    size_value v = {.value = d->axes[axis].unit * d->values[axis].items[at]};
    snprintf(v.name, sizeof v.name, "%s", d->axes[axis].name);
    return v;
}

/* Pairs value a of axis i with each value of axis j. Notes excluded values as one range, since most obstacles are
 * limits. */
static void cover_value(design *d, size_t i, size_t a, size_t j)
{
    const char *obstacle = NULL;
    size_t first = 0, last = 0, excluded = 0;
    for (size_t b = 0; b < d->values[j].count; b++) {
        row r = {.at = {[0] = 0}};
        r.at[i] = a;
        r.at[j] = b;
        if (d->has_met[i][a][j][b])
            continue;
        const char *found = complete(d, &r, i, j);
        if (!found) {
            cover_pair(d, &r, i, j);
            continue;
        }
        obstacle = found;
        first = excluded++ ? first : b;
        last = b;
    }
    const uint64_t unit = d->axes[j].unit;
    size_exclusion e = {.most = unit * d->values[j].items[last], .pairs = excluded, .obstacle = obstacle};
    e.value = name_value(d, i, a);
    e.least = name_value(d, j, first);
    if (excluded && d->plan->limits.only.count == 0)
        size_plan_exclude(d->plan, &e);
}

/* ---- single values ------------------------------------------------------------------------------------------------ */

/* Further values, ascending: each axis takes each of them once. */
static const uint64_t singles[] = {4,  5,   6,   7,   9,    10,   11,   12,   13,   15,    17,   33,
                                   65, 129, 257, 513, 1000, 1025, 2049, 4097, 8193, 16385, 32769};
enum { SINGLES = sizeof singles / sizeof *singles };

static bool is_open(const design *d, size_t axis)
{
    return !d->axes[axis].most;
}

static void add_widths(design *d, size_t axis)
{
    for (size_t i = 0; i < d->axes[axis].width_count; i++) {
        uint64_t values[MOST_AXES] = {0};
        const uint64_t unit = d->axes[axis].unit;
        set_usual(d, values);
        values[axis] = d->axes[axis].widths[i] / unit;
        if (d->axes[axis].widths[i] % unit == 0 && !obstacle_to(d, values, OF_LARGEST))
            size_plan_add(d->plan);
    }
}

/* Combines the largest remaining value of one axis with the smallest remaining value of each other axis, or with
 * its usual value. */
static void add_singles(design *d)
{
    size_t next[MOST_AXES] = {0}, left[MOST_AXES] = {0};
    for (size_t axis = 0; axis < d->count; axis++)
        left[axis] = is_open(d, axis) ? SINGLES : 0;
    for (size_t axis = 0; axis < d->count; axis++)
        while (next[axis] < left[axis]) {
            uint64_t values[MOST_AXES] = {0};
            set_usual(d, values);
            values[axis] = singles[--left[axis]];
            if (obstacle_to(d, values, OF_PAIRS))
                continue;
            for (size_t t = 0; t < d->count; t++) {
                if (t == axis || next[t] >= left[t])
                    continue;
                values[t] = singles[next[t]];
                if (!obstacle_to(d, values, OF_OTHERS))
                    next[t]++;
                else
                    values[t] = usual(d, t);
            }
            set_values(d, values);
            size_plan_add(d->plan);
        }
}

static void add_largest(design *d, size_t axis)
{
    uint64_t values[MOST_AXES] = {0};
    set_usual(d, values);
    values[axis] = is_open(d, axis) ? find_largest(d, axis, OF_LARGEST) : usual(d, axis);
    if (d->axes[axis].largest && values[axis] > d->axes[axis].largest)
        values[axis] = d->axes[axis].largest;
    if (!obstacle_to(d, values, OF_LARGEST))
        size_plan_add(d->plan);
}

void size_plan_cover(size_plan *plan, const size_axis *axes, size_t count, size_setter *set,
                     uint64_t most_work)
{
    design *d = pool_allocate(&plan->memory, sizeof *d);
    uint64_t values[MOST_AXES];
    *d = (design){.plan = plan, .axes = axes, .count = count, .set = set, .most_work = most_work};
    plan->is_brief = true;
    set_usual(d, values);
    set_values(d, values);
    d->least_threads = threads_of(plan->problem);
    for (size_t i = 0; i < count; i++)
        choose_values(d, i);
    for (size_t a = 0; a < d->values[0].count && count == 1; a++)
        if (!obstacle_to(d, (uint64_t[MOST_AXES]){d->values[0].items[a]}, OF_PAIRS))
            size_plan_add(plan);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++)
            for (size_t a = d->values[i].count; a-- > 0;)
                cover_value(d, i, a, j);
    add_singles(d);
    for (size_t i = 0; i < count; i++) {
        add_widths(d, i);
        add_largest(d, i);
    }
    plan->is_brief = false;
}
