/* Chooses the sizes at which a variant is tried: at every edge of its shapes, rules and launch geometry. */
#ifndef VERIFY_SIZES_H
#define VERIFY_SIZES_H

#include "problem.h"

/* An argument's requested value. */
typedef struct size_value {
    char name[32];
    uint64_t value;
} size_value;

enum { MOST_ASKED = 16 };
typedef struct asked_sizes {
    size_value items[MOST_ASKED];
    size_t count;
} asked_sizes;

/* Returns the argument's requested value; null: none is requested. */
const size_value *asked_find(const asked_sizes *asked, const char *name);

/* Writes "k is 4096 and n is 11008". */
void asked_describe(const asked_sizes *asked, char *text, size_t bytes);

enum { DEFAULT_ELEMENTS = 1 << 18 }; /* default of max_elements */

typedef struct size_limits {
    uint64_t max_elements; /* of all buffers of a problem */
    uint64_t max_problems; /* per variant */
    uint64_t big;          /* not 0: one more size near this */
    asked_sizes only;      /* only sizes with these values: see size_plan */
    bool is_full;          /* every input at every size, and every combination of sizes */
} size_limits;

/* A problem's scalars; for pointers, whether they are null. */
typedef struct size_row {
    uint64_t values[MAX_ARGS];
    bool is_brief;     /* one of many sizes: runs once if there is a reference */
    const char *input; /* the only kind of input for it; null: each in turn */
} size_row;

/* The problems with the fewest elements among those that exceed a limit. */
enum { MAX_REST = 2 };
typedef struct size_rest {
    uint64_t rows[MAX_REST][MAX_ARGS], elements[MAX_REST];
    size_t count;
} size_rest;

enum { EXCLUDED_BYTES = 2048 };

/* A growing list of problems' scalars. If limits.only requests values, only problems with those values are noted.
 * Once is_replacing is set, all problems are noted, and the requested values replace theirs. */
typedef struct kiln_size_plan {
    problem *problem; /* scratch: its scalars are what size_plan_add notes */
    size_limits limits;
    bool is_replacing;
    bool is_brief; /* this and `input` apply to rows noted from now on */
    const char *input;
    uint64_t seed;
    size_row *rows;
    size_t count;
    bool has_blocks
        [3]; /* per dimension of the grid: a noted problem has several thread blocks, so a tile is whole */
    size_rest rest[3];    /* per dimension: the smallest such problems that have too many elements */
    bool is_over_limit;   /* some non-empty problem was not noted because it has too many elements */
    const char *obstacle; /* why the last problem was not noted; null: it was, or had been before */
    char not_tried[512];  /* the sizes at rules' bounds that were not noted, and why; empty: all were noted */
    uint64_t excluded_pairs;       /* pairs of values that cannot run together: see size_plan_cover */
    char excluded[EXCLUDED_BYTES]; /* the first of them: "m=65 with k=8192 to 131072 (too much work); ..." */
    pool memory;
} size_plan;

void size_plan_open(size_plan *plan, problem *p, const size_limits *limits);
void size_plan_close(size_plan *plan);

/* Notes the problem's current scalars, unless they break a rule, exceed a limit, need more shared memory than the
 * device has, or are noted already. */
void size_plan_add(size_plan *plan);

/* Returns the value that limits.only requests; null: none. */
const size_value *size_plan_asked(const size_plan *plan, const argument *a);

/* Returns why size_plan_add would not note the current scalars; null: it would. */
const char *size_plan_obstacle(size_plan *plan);

/* Notes the current scalars with max_elements at least at its default: for sizes without which some of the
 * kernel's code does not run. */
void size_plan_add_always(size_plan *plan);

/* Adds a brief size with at most `most` elements, for mistakes that no smaller size shows. If max_elements is
 * below its default, it remains the limit. */
void size_plan_add_far(size_plan *plan, uint64_t most);

/* Returns the argument's value for size_plan_add: the requested one, or `otherwise`. For plans that derive scalars
 * from others, such as strides from lengths. */
uint64_t size_plan_value(const size_plan *plan, const char *name, uint64_t otherwise);

/* A value of one argument that cannot run with values from `least` to `most` of another. */
typedef struct size_exclusion {
    size_value value, least;
    uint64_t most, pairs;
    const char *obstacle;
} size_exclusion;
void size_plan_exclude(size_plan *plan, const size_exclusion *e);

/* Sets the scalars of the i-th noted problem. */
void size_plan_use(const size_plan *plan, size_t i);

/* Finishes the plan and sorts it, fewest elements first. Kernels spend most of their code on whole tiles: so for
 * each dimension of the grid along which no noted problem has two thread blocks, the smallest such problems are
 * noted too, up to ten times max_elements and to its default. */
void size_plan_finish(size_plan *plan);

/* Sizes of one argument, ascending, without duplicates. */
enum { MAX_EDGES = 128 };
typedef struct edge_list {
    uint64_t values[MAX_EDGES];
    size_t count;
} edge_list;

void edges_add(edge_list *list, uint64_t value);
void edges_add_around(edge_list *list, uint64_t value); /* value - 1, value, value + 1 */

/* Adds the sizes of `a` around which the grid grows from one block to two, around which it gains a block along any
 * dimension, and around which it stops growing; the other scalars do not change. */
void edges_add_tiles(edge_list *list, problem *p, argument *a);

#endif
