/* Chooses the sizes at which a variant is tried. */
#include "sizes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists ------------------------------------------------------------------------------------------------------ */

void edges_add(edge_list *list, uint64_t value)
{
    size_t at = 0;
    while (at < list->count && list->values[at] < value)
        at++;
    if (list->count == MAX_EDGES || (at < list->count && list->values[at] == value))
        return;
    memmove(&list->values[at + 1], &list->values[at], (list->count - at) * sizeof list->values[0]);
    list->values[at] = value;
    list->count++;
}

void edges_add_around(edge_list *list, uint64_t value)
{
    if (value > 0)
        edges_add(list, value - 1);
    edges_add(list, value);
    edges_add(list, value + 1);
}

void size_plan_open(size_plan *plan, problem *p, const size_limits *limits)
{
    *plan = (size_plan){.problem = p, .limits = *limits};
}

void size_plan_close(size_plan *plan)
{
    pool_free(&plan->memory);
}

/* Returns the limit. A big size may have buffers whose own size adds to it. */
static uint64_t most_elements(const size_limits *limits)
{
    uint64_t with_big = 2 * limits->big;
    return with_big > limits->max_elements ? with_big : limits->max_elements;
}

/* Returns whether the device has the shared memory that a launch needs; if not, other variants serve it. */
static bool fits_device(problem *p)
{
    uint64_t shared_bytes;
    return !problem_evaluate(p, p->variant->shared_bytes, &shared_bytes, NULL, 0) ||
           shared_bytes + p->variant->static_shared_bytes <= p->device->max_shared_bytes;
}

const size_value *asked_find(const asked_sizes *asked, const char *name)
{
    for (size_t i = 0; i < asked->count; i++)
        if (strcmp(asked->items[i].name, name) == 0)
            return &asked->items[i];
    return NULL;
}

void asked_describe(const asked_sizes *asked, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < asked->count && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s is %llu", i ? " and " : "",
                                 asked->items[i].name, (unsigned long long)asked->items[i].value);
}

const size_value *size_plan_asked(const size_plan *plan, const argument *a)
{
    return problem_is_size(a) ? asked_find(&plan->limits.only, a->about->name) : NULL;
}

uint64_t size_plan_value(const size_plan *plan, const char *name, uint64_t otherwise)
{
    const size_value *asked = plan->is_replacing ? asked_find(&plan->limits.only, name) : NULL;
    return asked ? asked->value : otherwise;
}

/* Returns whether every argument has its requested value, if one is requested. */
static bool has_asked_value(const size_plan *plan)
{
    for (size_t i = 0; i < plan->problem->arg_count; i++) {
        argument *a = &plan->problem->args[i];
        const size_value *asked = size_plan_asked(plan, a);
        if (asked && plan->is_replacing)
            a->integer = asked->value;
        if (asked && a->integer != asked->value)
            return false;
    }
    return true;
}

/* Returns the first broken rule about an argument with a requested value; otherwise `broken`. */
static const manifest_rule *find_broken(const size_plan *plan, const manifest_rule *broken)
{
    const manifest_variant *v = plan->problem->variant;
    uint64_t holds;
    for (size_t i = 0; i < v->rule_count; i++) {
        const formula *rule = v->rules[i].condition;
        bool is_asked = false;
        for (size_t k = 0; k < plan->limits.only.count && !is_asked; k++)
            is_asked = formula_mentions(rule, plan->limits.only.items[k].name);
        if (is_asked && problem_evaluate(plan->problem, rule, &holds, NULL, 0) && !holds)
            return &v->rules[i];
    }
    return broken;
}

/* Returns why the current scalars cannot be noted; null: they can. */
static const char *find_obstacle(const size_plan *plan)
{
    const manifest_rule *broken = NULL;
    if (!problem_fits_types(plan->problem))
        return "it does not fit the argument's type";
    switch (problem_measure(plan->problem, &broken, NULL, 0)) {
    case PROBLEM_ILLEGAL:
        return find_broken(plan, broken)->text;
    case PROBLEM_BROKEN:
        return "an expression of the manifest cannot be evaluated for it";
    default:
        break;
    }
    return fits_device(plan->problem) ? NULL : "the device has less shared memory than it needs";
}

static void note_row(size_plan *plan, const uint64_t row[MAX_ARGS])
{
    for (size_t i = 0; i < plan->count; i++) {
        size_row *noted = &plan->rows[i];
        if (noted->input == plan->input && memcmp(noted->values, row, sizeof noted->values) == 0) {
            noted->is_brief = noted->is_brief && plan->is_brief;
            return;
        }
    }
    plan->rows = pool_grow(&plan->memory, plan->rows, plan->count, sizeof *plan->rows);
    size_row *noted = &plan->rows[plan->count++];
    memcpy(noted->values, row, sizeof noted->values);
    noted->is_brief = plan->is_brief;
    noted->input = plan->input;
}

/* Returns whether the launch has more than one thread block along a dimension of the grid. */
static bool has_blocks(problem *p, int dimension)
{
    uint64_t blocks;
    return problem_evaluate(p, p->variant->grid[dimension], &blocks, NULL, 0) && blocks > 1;
}

/* Inserts a row in ascending order, and drops the last if there is no room. */
static void note_rest(size_rest *rest, const uint64_t row[MAX_ARGS], uint64_t elements)
{
    size_t at = 0;
    while (at < rest->count && rest->elements[at] <= elements) {
        if (memcmp(rest->rows[at++], row, sizeof rest->rows[0]) == 0)
            return;
    }
    if (at == MAX_REST)
        return;
    rest->count += rest->count < MAX_REST;
    memmove(&rest->rows[at + 1], &rest->rows[at], (rest->count - 1 - at) * sizeof rest->rows[0]);
    memmove(&rest->elements[at + 1], &rest->elements[at], (rest->count - 1 - at) * sizeof rest->elements[0]);
    memcpy(rest->rows[at], row, sizeof rest->rows[0]);
    rest->elements[at] = elements;
}

/* How far the smallest problem with a whole tile may exceed the limit. */
enum { OVER_LIMIT = 10 };

/* Returns whether a legal problem has few enough elements; notes along which dimensions it has several thread
 * blocks. */
static bool fits_limit(size_plan *plan, const uint64_t row[MAX_ARGS])
{
    problem *p = plan->problem;
    const uint64_t elements = problem_elements(p);
    const bool fits = elements <= most_elements(&plan->limits),
               launches = problem_measure(p, NULL, NULL, 0) == PROBLEM_LEGAL;
    plan->is_over_limit = plan->is_over_limit || (launches && !fits);
    for (int d = 0; d < 3 && launches; d++) {
        if (!has_blocks(p, d))
            continue;
        plan->has_blocks[d] = plan->has_blocks[d] || fits;
        if (!fits && elements <= OVER_LIMIT * plan->limits.max_elements && elements <= DEFAULT_ELEMENTS)
            note_rest(&plan->rest[d], row, elements);
    }
    return fits;
}

static const char too_large[] = "the buffers together have more elements than --max-elements";

const char *size_plan_obstacle(size_plan *plan)
{
    if (!has_asked_value(plan))
        return "--size asks for another value";
    const char *obstacle = find_obstacle(plan);
    const bool fits = problem_elements(plan->problem) <= most_elements(&plan->limits);
    return obstacle || fits ? obstacle : too_large;
}

void size_plan_exclude(size_plan *plan, const size_exclusion *e)
{
    const size_t used = strlen(plan->excluded);
    char text[256];
    plan->excluded_pairs += e->pairs;
    int length =
        snprintf(text, sizeof text, "%s%s=%llu with %s=%llu", used ? "; " : "", e->value.name,
                 (unsigned long long)e->value.value, e->least.name, (unsigned long long)e->least.value);
    if (e->most > e->least.value)
        length +=
            snprintf(text + length, sizeof text - (size_t)length, " to %llu", (unsigned long long)e->most);
    snprintf(text + length, sizeof text - (size_t)length, " (%s)", e->obstacle);
    if (used + strlen(text) < sizeof plan->excluded)
        strcpy(plan->excluded + used, text);
}

void size_plan_add(size_plan *plan)
{
    problem *p = plan->problem;
    if (!has_asked_value(plan))
        return;
    plan->obstacle = find_obstacle(plan);
    if (plan->obstacle || plan->count >= plan->limits.max_problems)
        return;
    uint64_t row[MAX_ARGS] = {0};
    for (size_t i = 0; i < p->arg_count; i++)
        row[i] = manifest_is_pointer(p->args[i].about) ? p->args[i].is_null : p->args[i].integer;
    if (fits_limit(plan, row))
        note_row(plan, row);
    else
        plan->obstacle = too_large;
}

void size_plan_add_always(size_plan *plan)
{
    const uint64_t kept = plan->limits.max_elements;
    if (kept < DEFAULT_ELEMENTS)
        plan->limits.max_elements = DEFAULT_ELEMENTS;
    size_plan_add(plan);
    plan->limits.max_elements = kept;
}

void size_plan_add_far(size_plan *plan, uint64_t most)
{
    const uint64_t kept = plan->limits.max_elements;
    plan->is_brief = true;
    if (kept >= DEFAULT_ELEMENTS && kept < most)
        plan->limits.max_elements = most;
    size_plan_add(plan);
    plan->limits.max_elements = kept;
    plan->is_brief = false;
}

void size_plan_use(const size_plan *plan, size_t i)
{
    for (size_t n = 0; n < plan->problem->arg_count; n++) {
        argument *a = &plan->problem->args[n];
        a->is_null = manifest_is_pointer(a->about) && plan->rows[i].values[n];
        a->integer = manifest_is_pointer(a->about) ? 0 : plan->rows[i].values[n];
    }
}

static uint64_t elements_of(const size_plan *plan, size_t i)
{
    size_plan_use(plan, i);
    problem_measure(plan->problem, NULL, NULL, 0);
    return problem_elements(plan->problem);
}

typedef struct sort_key {
    uint64_t elements;
    size_t number; /* makes the sort stable */
} sort_key;

static int compare_keys(const void *left, const void *right)
{
    const sort_key *a = left, *b = right;
    if (a->elements != b->elements)
        return a->elements < b->elements ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static void sort(size_plan *plan)
{
    sort_key *keys = pool_allocate(&plan->memory, plan->count * sizeof *keys);
    size_row *rows = pool_allocate(&plan->memory, plan->count * sizeof *rows);
    for (size_t i = 0; i < plan->count; i++)
        keys[i] = (sort_key){elements_of(plan, i), i};
    qsort(keys, plan->count, sizeof *keys, compare_keys);
    for (size_t i = 0; i < plan->count; i++)
        rows[i] = plan->rows[keys[i].number];
    if (plan->count)
        memcpy(plan->rows, rows, plan->count * sizeof *rows);
}

void size_plan_finish(size_plan *plan)
{
    for (int d = 0; d < 3; d++) {
        for (size_t i = 0; !plan->has_blocks[d] && i < plan->rest[d].count; i++)
            note_row(plan, plan->rest[d].rows[i]);
    }
    sort(plan);
}

/* ---- edges of the launch geometry -------------------------------------------------------------------------------- */

/* Sets the number of thread blocks along one dimension of the grid when `a` is `value`; false if it is unknown. */
static bool blocks_at(problem *p, argument *a, int dimension, uint64_t value, uint64_t *blocks)
{
    uint64_t kept = a->integer;
    a->integer = value;
    bool known = problem_evaluate(p, p->variant->grid[dimension], blocks, NULL, 0);
    a->integer = kept;
    return known;
}

/* Returns the smallest value in (low, high] whose grid has more than `blocks` blocks; `high` must have. */
static uint64_t first_above(problem *p, argument *a, int dimension, uint64_t blocks, uint64_t low,
                            uint64_t high)
{
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2, there;
        if (blocks_at(p, a, dimension, middle, &there) && there > blocks)
            high = middle;
        else
            low = middle;
    }
    return high;
}

void edges_add_tiles(edge_list *list, problem *p, argument *a)
{
    enum { TILES = 3 };
    const uint64_t far = UINT64_C(1) << 26;
    for (int d = 0; d < 3; d++) {
        uint64_t at_one, at_far, value = 1;
        if (!formula_mentions(p->variant->grid[d], a->about->name))
            continue;
        if (!blocks_at(p, a, d, 1, &at_one) || !blocks_at(p, a, d, far, &at_far))
            continue;
        for (int tile = 0; tile < TILES && at_far > at_one; tile++) {
            value = first_above(p, a, d, at_one, value, far);
            edges_add_around(list, value - 1);
            if (!blocks_at(p, a, d, value, &at_one))
                break;
        }
        if (at_far > 1 &&
            at_far < far / 4096) { /* the grid is capped: the first size that has all of its blocks */
            value = first_above(p, a, d, at_far - 1, 0, far);
            edges_add_around(list, value);
            edges_add(list, 2 * value + 1);
        }
    }
}
