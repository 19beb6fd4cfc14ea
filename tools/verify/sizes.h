/* Which sizes a variant is tried at: every edge that its shapes, rules and launch geometry have. */
#ifndef VERIFY_SIZES_H
#define VERIFY_SIZES_H

#include "problem.h"

/* An argument's value. */
typedef struct size_value {
    char name[32];
    uint64_t value;
} size_value;

enum { MOST_ASKED = 16 };
typedef struct asked_sizes {
    size_value items[MOST_ASKED];
    size_t count;
} asked_sizes;

/* Null: nothing is asked for of this argument. */
const size_value *asked_find(const asked_sizes *asked, const char *name);

/* "k is 4096 and n is 11008" */
void asked_describe(const asked_sizes *asked, char *text, size_t bytes);

enum { DEFAULT_ELEMENTS = 1 << 18 }; /* of max_elements */

typedef struct size_limits {
    uint64_t max_elements; /* of all buffers of a problem together */
    uint64_t max_problems; /* per variant */
    uint64_t big;          /* when not 0: one more size near this */
    asked_sizes only;      /* only sizes with these values: see size_plan */
    bool is_full;          /* every input at every size, and every size with every other */
} size_limits;

/* Problems' scalars that passed a limit, those with the fewest elements. */
enum { MAX_REST = 2 };
typedef struct size_rest {
    uint64_t rows[MAX_REST][MAX_ARGS], elements[MAX_REST];
    size_t count;
} size_rest;

/* A growing list of problems' scalars. Where limits.only asks for values, those that have them are noted; once is_replacing
 * is set, all, with those values in the place of theirs. */
typedef struct kiln_size_plan {
    problem *problem; /* scratch: its scalars are what size_plan_add notes */
    size_limits limits;
    bool is_replacing;
    uint64_t seed;
    uint64_t (*rows)[MAX_ARGS];
    size_t count, capacity;
    bool has_blocks[3]; /* along a dimension of the grid more than one is noted: a tile is whole */
    size_rest rest[3];  /* the least that have, of those with too many elements */
    bool is_over_limit; /* some problem with work was not noted as it has too many elements */
    const char
        *obstacle; /* why the last problem that was not noted was not; null: it was, or is noted already */
    pool memory;
} size_plan;

void size_plan_open(size_plan *plan, problem *p, const size_limits *limits);
void size_plan_close(size_plan *plan);

/* Notes the problem's present scalars, unless they break a rule, pass a limit, need more shared memory than the device
 * has, or are noted already. */
void size_plan_add(size_plan *plan);

/* The same, whatever max_elements says, up to its default: of sizes without which a part of the kernel does not run. */
void size_plan_add_always(size_plan *plan);

/* What the argument will be for size_plan_add: `otherwise`, or the value asked for. For plans that derive scalars from
 * others, as strides from lengths. */
uint64_t size_plan_value(const size_plan *plan, const char *name, uint64_t otherwise);

/* Sets the scalars of the i-th noted problem. */
void size_plan_use(const size_plan *plan, size_t i);

/* The plan is made: fewest elements first. A kernel is mostly what it does with whole tiles: where no noted problem has two
 * thread blocks along a dimension of the grid, the smallest that have are noted too, up to ten times max_elements, and to
 * its default. */
void size_plan_finish(size_plan *plan);

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
