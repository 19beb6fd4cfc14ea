/* Chooses sizes from the manifest, for a family without a plan. */
#include "fill.h"

#include <stdio.h>
#include <string.h>

#include "design.h"
#include "random.h"

static void edges_of(const size_plan *plan, argument *a, edge_list *list)
{
    static const uint64_t some[] = {0,   1,   2,   3,   31,  32,  33,   63,   64,  65,
                                    127, 128, 129, 255, 256, 257, 1000, 1001, 1024};
    if (size_plan_asked(plan, a)) {
        edges_add(list, size_plan_asked(plan, a)->value);
        return;
    }
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        edges_add(list, some[i]);
    edges_add_tiles(list, plan->problem, a);
    edges_add(list, plan->limits.max_elements / 4 | 1);
    edges_add(list, 100003);
    if (plan->limits.big)
        edges_add(list, plan->limits.big / 2 | 1);
}

static void note_bound(void *list, uint64_t bound)
{
    edges_add_around(list, bound);
}

/* Sets the argument to the first legal value from `from` on. False: none of the next 4096 is legal; if --size gives
 * the argument, `from` is not. */
static bool make_legal(const size_plan *plan, argument *a, uint64_t from)
{
    problem *p = plan->problem;
    const uint64_t most = size_plan_asked(plan, a) ? 1 : 4096;
    for (uint64_t value = from; value < from + most; value++) {
        a->integer = value;
        problem_status status = problem_measure(p, NULL, NULL, 0);
        if (status == PROBLEM_LEGAL || (status == PROBLEM_EMPTY && value == from))
            return true;
    }
    return false;
}

static bool is_base(const size_plan *plan, uint64_t value)
{
    problem *p = plan->problem;
    for (size_t i = 0; i < p->arg_count; i++) {
        argument *a = &p->args[i];
        if (problem_is_size(a))
            a->integer = size_plan_asked(plan, a) ? size_plan_asked(plan, a)->value : value;
    }
    return problem_measure(p, NULL, NULL, 0) == PROBLEM_LEGAL;
}

/* Finds a legal base with all sizes equal: the smallest, or the smallest from a value of --size on. */
static bool find_base(size_plan *plan)
{
    enum { MOST = 65536 };
    const asked_sizes *only = &plan->limits.only;
    for (size_t i = 0; i <= only->count; i++) {
        const uint64_t from = i == 0 ? 2 : only->items[i - 1].value;
        for (uint64_t value = from; value <= from + MOST; value++) {
            if (is_base(plan, value))
                return true;
        }
    }
    is_base(plan, 2);
    plan->obstacle = size_plan_obstacle(plan);
    return false;
}

static void set_scalars(problem *p, const uint64_t values[MAX_ARGS])
{
    for (size_t i = 0; i < p->arg_count; i++)
        p->args[i].integer = values[i];
}

/* Makes each size as small as the rules allow, one after another. */
static void find_least(const size_plan *plan, const uint64_t base[MAX_ARGS], uint64_t least[MAX_ARGS])
{
    problem *p = plan->problem;
    set_scalars(p, base);
    for (size_t i = 0; i < p->arg_count; i++) {
        argument *a = &p->args[i];
        if (problem_is_size(a) && !size_plan_asked(plan, a)) {
            a->integer = 1;
            while (a->integer < base[i] && problem_measure(p, NULL, NULL, 0) != PROBLEM_LEGAL)
                a->integer++;
        }
        least[i] = a->integer;
    }
}

/* Adds the first legal size from `value` on. False: there is no legal size, or an obstacle prevents it. */
static bool add_edge(size_plan *plan, argument *a, uint64_t value, const uint64_t others[MAX_ARGS])
{
    set_scalars(plan->problem, others);
    if (!make_legal(plan, a, value))
        return false;
    size_plan_add(plan);
    return !plan->obstacle;
}

/* Tries sizes around the bounds that rules set for an argument. Notes the last legal one that was not tried. */
static void add_bounds(size_plan *plan, argument *a, const uint64_t base[MAX_ARGS],
                       const uint64_t least[MAX_ARGS])
{
    problem *p = plan->problem;
    char last[160] = "";
    edge_list bounds = {{0}, 0};
    set_scalars(p, least);
    problem_note_bounds(p, a, note_bound, &bounds);
    for (size_t i = 0; i < bounds.count; i++) {
        if (!add_edge(plan, a, bounds.values[i], base) && !add_edge(plan, a, bounds.values[i], least) &&
            problem_fits_types(p) && problem_measure(p, NULL, NULL, 0) == PROBLEM_LEGAL)
            snprintf(last, sizeof last, "%s=%llu (%s)", a->about->name, (unsigned long long)a->integer,
                     plan->obstacle);
    }
    const size_t used = strlen(plan->not_tried);
    if (last[0])
        snprintf(plan->not_tried + used, sizeof plan->not_tried - used, "%s%s",
                 used ? ", " : "bounds of its rules that were not tried: ", last);
}

/* The unit of an argument: the distance between its first two legal values if that divides the first, else 1. */
static uint64_t unit_of(const size_plan *plan, argument *a, uint64_t least)
{
    const uint64_t kept = a->integer;
    uint64_t unit = 1;
    if (make_legal(plan, a, least + 1) && least > 0 && least % (a->integer - least) == 0)
        unit = a->integer - least;
    a->integer = kept;
    return unit;
}

static void cover_sizes(size_plan *plan, const uint64_t least[MAX_ARGS])
{
    enum { MOST_WORK = 1 << 20 };
    problem *p = plan->problem;
    size_axis axes[MOST_AXES];
    size_t count = 0;
    for (size_t i = 0; i < p->arg_count && count < MOST_AXES; i++)
        if (problem_is_size(&p->args[i]))
            axes[count++] =
                (size_axis){.name = p->args[i].about->name, .unit = unit_of(plan, &p->args[i], least[i])};
    size_plan_cover(plan, axes, count, NULL, MOST_WORK);
}

void size_plan_fill(size_plan *plan, uint64_t seed)
{
    problem *p = plan->problem;
    uint64_t base[MAX_ARGS] = {0}, least[MAX_ARGS] = {0};
    edge_list edges[MAX_ARGS] = {{{0}, 0}};
    if (!find_base(plan))
        return;
    for (size_t i = 0; i < p->arg_count; i++)
        base[i] = p->args[i].integer;
    size_plan_add(plan);
    find_least(plan, base, least);
    for (size_t i = 0; i < p->arg_count; i++) {
        argument *a = &p->args[i];
        if (!problem_is_size(a))
            continue;
        set_scalars(p, base);
        edges_of(plan, a, &edges[i]);
        for (size_t e = 0; e < edges[i].count; e++) {
            if (!add_edge(plan, a, edges[i].values[e], base))
                add_edge(plan, a, edges[i].values[e], least);
        }
        if (!size_plan_asked(plan, a))
            add_bounds(plan, a, base, least);
    }
    set_scalars(p, base);
    cover_sizes(plan, least);
    set_scalars(p, base);
    random_stream s = random_open(seed, p->variant->family);
    for (uint64_t round = 0; round < 32; round++) { /* put several sizes at an edge at once */
        for (size_t i = 0; i < p->arg_count; i++) {
            if (edges[i].count)
                make_legal(plan, &p->args[i],
                           edges[i].values[random_below(s, round * MAX_ARGS + i, edges[i].count)]);
        }
        size_plan_add(plan);
    }
}
