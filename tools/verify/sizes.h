/* Which sizes a variant is tried at: every edge that its shapes, rules and launch geometry have. */
#ifndef VERIFY_SIZES_H
#define VERIFY_SIZES_H

#include "problem.h"

/* An argument's value. */
typedef struct size_value {
    char name[32]; /* empty: of none */
    uint64_t value;
} size_value;

typedef struct size_limits {
    uint64_t max_elements; /* of all buffers of a problem together */
    uint64_t max_problems; /* per variant */
    uint64_t big;          /* when not 0: one more size near this */
    size_value only;       /* sizes with this alone: see size_plan */
    bool is_full;          /* every input at every size, and every size with every other */
} size_limits;

/* The most elements that a problem may have, but for those that are always tried. */
uint64_t size_limits_elements(const size_limits *limits);

/* A growing list of problems' scalars. Where limits.only asks for a value, those that have it are noted; once is_replacing
 * is set, all, with that value in the place of theirs. */
typedef struct kiln_size_plan {
    problem *problem; /* scratch: its scalars are what size_plan_add notes */
    size_limits limits;
    bool is_replacing;
    uint64_t seed;
    uint64_t (*rows)[MAX_ARGS];
    size_t count, capacity;
    const char
        *obstacle; /* why the last problem that was not noted was not; null: it was, or is noted already */
    pool memory;
} size_plan;

void size_plan_open(size_plan *plan, problem *p, const size_limits *limits);
void size_plan_close(size_plan *plan);

/* Notes the problem's present scalars, unless they break a rule, pass a limit, need more shared memory than the device
 * has, or are noted already. */
void size_plan_add(size_plan *plan);

/* The same whatever limits.max_elements says, for what only large problems enter; with one input. */
void size_plan_add_always(size_plan *plan);

/* What the argument will be for size_plan_add: `otherwise`, or the value in its place. For plans that derive scalars from
 * others, as strides from lengths. */
uint64_t size_plan_value(const size_plan *plan, const char *name, uint64_t otherwise);

/* Sets the scalars of the i-th noted problem. */
void size_plan_use(const size_plan *plan, size_t i);

/* Fewest elements first. */
void size_plan_sort(size_plan *plan);

/* Sizes of one argument, ascending, without duplicates. */
enum { MAX_EDGES = 128 };
typedef struct edge_list {
    uint64_t values[MAX_EDGES];
    size_t count;
} edge_list;

void edges_add(edge_list *list, uint64_t value);
void edges_add_around(edge_list *list, uint64_t value); /* value - 1, value, value + 1 */

/* Around every size of `a` where the grid grows from one block to two, where one more of any dimension starts, and where
 * the grid stops growing; the other scalars are as they are. */
void edges_add_tiles(edge_list *list, problem *p, argument *a);

/* For a family without a plan of its own: all sizes vary around a base, one at a time, and together. */
void size_plan_fill(size_plan *plan, uint64_t seed);

#endif
