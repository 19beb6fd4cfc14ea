/* What kiln-verify knows about a kernel family beyond the manifest: a reference, inputs that hurt, sizes that matter.
 *
 * One file per family, one row in families.c. Nothing here is shared with the generator: tables and formulas are
 * written again from the family's contract.
 */
#ifndef VERIFY_FAMILIES_H
#define VERIFY_FAMILIES_H

#include "../problem.h"
#include "../random.h"
#include "../sizes.h"

enum {
    PATTERN_RANDOM = 1,   /* random data: bounds hold with sqrt(L) for L */
    PATTERN_LARGE = 2,    /* also at the large sizes */
    PATTERN_NONFINITE = 4 /* holds NaN or infinities */
};

typedef struct input_pattern {
    const char *name; /* null ends a list */
    unsigned flags;
    int number; /* the family's own */
} input_pattern;

typedef struct family_row {
    const char *name;
    const char *args; /* the arguments that the functions below ask for, separated by spaces */
    const input_pattern *patterns;
    /* Notes the sizes to try; null: size_plan_fill. */
    void (*plan)(size_plan *plan);
    /* Those that are tried with a grid for one multiprocessor, whatever the limit of elements: what a grid for all of them
     * leaves to loops only when problems are large. May be null. */
    void (*plan_few)(size_plan *plan);
    /* Fills the scalars that are no sizes, and the inputs. The outputs are zeroed and poisoned later. */
    void (*make)(problem *p, const input_pattern *pattern, random_stream s);
    /* States what comes out. */
    void (*expect)(problem *p, const input_pattern *pattern);
    bool
        expects_nonfinite; /* `expect` holds for PATTERN_NONFINITE too; else those run compared with themselves alone */
} family_row;

/* Null: no reference. */
const family_row *family_find(const char *name);

/* For a kernel without a reference: random values of each type. */
extern const input_pattern generic_patterns[];
void generic_make(problem *p, const input_pattern *pattern, random_stream s);

#endif
