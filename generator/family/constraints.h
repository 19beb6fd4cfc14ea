/* The legal combinations of a family's parameters, and the diagnostics for others. */
#ifndef FAMILY_CONSTRAINTS_H
#define FAMILY_CONSTRAINTS_H

#include "request.h"

/* One call of kiln_require. */
typedef struct constraint {
    const char *params, *text;
    bool holds;                /* for the current variant */
    uint32_t bytes, most;      /* of shared memory; most 0: not a shared memory constraint */
    const variant **broken_by; /* the request's variants that break it */
    size_t count, capacity;
} constraint;

typedef struct kiln_constraints {
    arena *arena;
    constraint *items;
    size_t count, capacity;
} constraints;

/* All constraints of a family, in its order; broken by nothing yet. */
constraints constraints_of(arena *a, const kiln_family *family);

/* Whether the variant breaks a constraint. Records the variant at the first one that it breaks. */
bool constraints_break(arena *a, constraints *c, const variant *v);

/* Calls `visit` for each combination of the request's values that breaks no constraint: the last parameter changes
 * fastest. The variant has only values; the callee may copy it, and returns whether to go on. Records others at the
 * constraint that excludes them, once for all values of the parameters after the constraint's last. */
typedef bool visit_variant(void *context, const variant *v);
void constraints_visit_legal(arena *a, constraints *c, const request *r, visit_variant *visit, void *context);

/* Reports each broken constraint: the values of its parameters, which of them are defaults, and what to write instead,
 * if changing one or two defaults is enough. */
void constraints_report(arena *a, const constraints *c, const request *q, diagnostics *d);

#endif
