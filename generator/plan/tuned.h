/* Times that were measured on devices: what the files under `tuned` say. */
#ifndef PLAN_TUNED_H
#define PLAN_TUNED_H

#include "family/variant.h"
#include "shapes.h"

#define TUNED_ANY_SIZE SHAPE_ANY_SIZE

/* What kiln_add_tune's program writes for one device. */
typedef struct tuned_file {
    const char *asked, *path; /* as the configuration names it; where it was read */
    place at;                 /* in the configuration */
    const char *data;
    size_t bytes;
    const char *device; /* its name; null: it does not say */
    uint32_t sm, multiprocessors;
} tuned_file;

typedef struct tuned_time {
    const char *id;
    const variant *variant; /* null: the bundle lacks it */
    uint32_t nanoseconds;
    place at;
} tuned_time;

/* A shape at which variants of a family were measured. */
typedef struct tuned_shape {
    const tuned_file *file; /* the first that has it */
    const kiln_family *family;
    uint64_t *sizes; /* by argument of the family; TUNED_ANY_SIZE: it does not name that one */
    tuned_time *times;
    size_t time_count, time_capacity;
} tuned_shape;

/* 0 where there is none: by the variant's id. */
uint32_t tuned_nanoseconds(const tuned_shape *s, const variant *v);

/* Those shapes at which some of the variants were measured, of one choice, in the order of the files; and the arguments, by
 * their places in the family, that one of them names. */
typedef struct tuned_choice {
    const tuned_shape **shapes;
    size_t shape_count;
    size_t *args;
    size_t arg_count;
} tuned_choice;

struct plan;
/* Gives the times their variants; those that the bundle lacks are left out, with a warning unless they were candidates of an item
 * with shapes. */
void tuned_bind(arena *a, struct plan *p, diagnostics *d);

tuned_choice tuned_choice_of(arena *a, const struct plan *p, const variant *const *variants, size_t count);

#endif
