/* A request for variants of a family: every combination of some values of its parameters. */
#ifndef FAMILY_REQUEST_H
#define FAMILY_REQUEST_H

#include "variant.h"

enum { MOST_VARIANTS = 100000, MOST_COMBINATIONS = 100000000 };

/* A kernels: item: the requested values, per parameter. None: the default. */
typedef struct request {
    const kiln_family *family;
    place at;
    bool is_legal_only;  /* skip combinations that break a constraint */
    bool takes_stranded; /* variants that run on no target are allowed */
    struct {
        param_value *items;
        size_t count, capacity;
        bool is_default; /* no value was requested; set by request_expand */
    } values[KILN_MAX_PARAMS];
} request;

/* The number of combinations of a request including its defaults, MOST_COMBINATIONS + 1 for any larger number; and the
 * values of one: the last parameter changes fastest. */
size_t request_count(const request *r);
void request_values(const request *r, size_t number, variant *v);

#endif
