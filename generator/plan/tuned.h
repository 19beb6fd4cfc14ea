/* Times measured on devices: the contents of the files under `tuned`. */
#ifndef PLAN_TUNED_H
#define PLAN_TUNED_H

#include "family/variant.h"
#include "shapes.h"

#define TUNED_ANY_SIZE SHAPE_ANY_SIZE

/* What kiln_add_tune's program writes for one device. */
typedef struct tuned_file {
    const char *asked, *path; /* in the configuration; resolved */
    place at;                 /* in the configuration */
    const char *data;
    size_t bytes;
    const char *device; /* its name; null: not given */
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
    uint64_t *sizes; /* by argument of the family; TUNED_ANY_SIZE: not named */
    tuned_time *times;
    size_t time_count, time_capacity;
} tuned_shape;

/* Returns a time by the variant's id; 0 if there is none. */
uint32_t tuned_nanoseconds(const tuned_shape *s, const variant *v);

/* Shapes at which some variants of one choice were measured, in the order of the files; and the arguments, by index in
 * the family, that the shapes name. */
typedef struct tuned_choice {
    const tuned_shape **shapes;
    size_t shape_count;
    size_t *args;
    size_t arg_count;
} tuned_choice;

struct plan;
/* Binds the times to variants; times without a variant are skipped, with a warning unless the variants were candidates
 * of an item with shapes. */
void tuned_bind(arena *a, struct plan *p, diagnostics *d);

tuned_choice tuned_choice_of(arena *a, const struct plan *p, const variant *const *variants, size_t count);

#endif
