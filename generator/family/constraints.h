/* Which combinations of parameters a family has: what its shape requires, and how a request for others is answered. */
#ifndef FAMILY_CONSTRAINTS_H
#define FAMILY_CONSTRAINTS_H

#include "request.h"

/* One call of kiln_require. */
typedef struct constraint {
    const char *params, *text;
    bool holds;                /* for the variant that was asked about */
    uint32_t bytes, most;      /* of shared memory; most 0: another kind of constraint */
    const variant **broken_by; /* variants of a request */
    size_t count, capacity;
} constraint;

typedef struct kiln_constraints {
    arena *arena;
    constraint *items;
    size_t count, capacity;
} constraints;

/* Those of a family, in its order; broken by nothing yet. */
constraints constraints_of(arena *a, const kiln_family *family);

/* Whether the variant breaks one. The first one that it breaks notes it. */
bool constraints_break(arena *a, constraints *c, const variant *v);

/* Calls `visit` for each combination of the request's values that breaks no constraint: the last parameter changes fastest. The
 * variant has values only, and is the callee's to copy. */
typedef void visit_variant(void *context, const variant *v);
void constraints_visit_legal(arena *a, const request *r, visit_variant *visit, void *context);

/* A diagnostic for each that has been broken: by which values of the parameters that it asks about, which of those are
 * defaults, and what to write instead, where another value in place of a default or two is enough. */
void constraints_report(arena *a, const constraints *c, const request *q, diagnostics *d);

#endif
