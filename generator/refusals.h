/* Which combinations of a request its family refuses, and how that is said. */
#ifndef GENERATOR_REFUSALS_H
#define GENERATOR_REFUSALS_H

#include "request.h"

typedef struct refusal {
    const char *params, *text;      /* of kiln_require */
    const kiln_variant **broken_by; /* variants of the request */
    size_t count, capacity;
} refusal;

typedef struct refusals {
    refusal *items;
    size_t count, capacity;
} refusals;

/* Those of a family, broken by nothing yet. */
refusals refusals_of(arena *a, const kiln_family *family);

/* Whether the variant breaks one; the first that it breaks notes it. */
bool refusals_take(arena *a, refusals *r, const kiln_variant *v);

/* A diagnostic for each that has been broken: by which values of the parameters that it asks about, which of those are
 * defaults, and what to write instead, where another value in place of a default or two is enough. */
void refusals_report(arena *a, const refusals *r, const request *q, diagnostics *d);

#endif
