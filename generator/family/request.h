/* What a configuration asks for of a family: every combination of some values of its parameters. */
#ifndef FAMILY_REQUEST_H
#define FAMILY_REQUEST_H

#include "variant.h"

enum { MOST_VARIANTS = 100000 };

/* A kernels: item: the values asked for, per parameter. None: the default. */
typedef struct request {
    const kiln_family *family;
    place at;
    bool is_legal_only;  /* combinations that break a constraint are left out */
    bool takes_stranded; /* those that run on no target are no mistake */
    struct {
        param_value *items;
        size_t count, capacity;
        bool is_default; /* none was asked for; set by request_expand */
    } values[KILN_MAX_PARAMS];
} request;

/* How many combinations a request with its defaults has, and the values of one: the last parameter changes fastest. */
size_t request_count(const request *r);
void request_values(const request *r, size_t number, variant *v);

#endif
