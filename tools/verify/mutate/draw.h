/* Draws the mutants of one family by a seed: a variant, each equally likely, then one of its instructions, then a
 * kind of change that it has, then a change of that kind. One in four is of the kind with the fewest mutants so
 * far, so that rare instructions get their share. No mutant is drawn twice. */
#ifndef VERIFY_MUTATE_DRAW_H
#define VERIFY_MUTATE_DRAW_H

#include "../device.h"
#include "../manifest.h"
#include "../random.h"
#include "mutate.h"

/* An instruction that can be changed, and its number of changes of each kind. */
typedef struct mutation_site {
    const ptx_function *function;
    const ptx_statement *statement;
    size_t choices[MUTATION_KINDS];
} mutation_site;

/* A variant to change: the PTX that the device takes, and the sites of each kind of change. */
typedef struct subject {
    const manifest_variant *variant;
    const kiln_kernel *kernel;
    const kiln_image *image;
    ptx_text text;
    mutation_site *sites;
    size_t site_count;
    size_t site_count_of[MUTATION_KINDS]; /* sites that have changes of the kind */
} subject;

/* Reads a variant's PTX. False: the device has no PTX of it. The sites are in the kernel's entry and in the
 * functions that it names, directly or indirectly. */
bool subject_read(subject *s, const device *d, const manifest_variant *v, pool *memory);

typedef struct mutant {
    size_t subject; /* index in the subjects */
    mutation_kind kind;
    text_span statement; /* the statement that changes */
    mutation change;
} mutant;

typedef struct draw {
    const char *family;
    const subject *subjects; /* of all families */
    size_t *own;             /* indices of the family's subjects */
    size_t own_count;
    uint64_t wanted;  /* mutants required */
    uint64_t counted; /* drawn, minus those that draw_again took back */
    uint64_t counted_of[MUTATION_KINDS];
    bool is_exhausted[MUTATION_KINDS];
    random_stream stream;
    uint64_t next; /* the number to take next from the stream */
    mutant *drawn;
    size_t drawn_count;
    pool *memory;
} draw;

void draw_open(draw *d, const char *family, const subject *subjects, size_t count, uint64_t seed,
               uint64_t wanted, pool *memory);

/* Draws a mutant; false: enough are drawn, or no more are found. */
bool draw_next(draw *d, mutant *m);

/* Takes a mutant back that is not valid PTX: it does not count. */
void draw_again(draw *d, mutation_kind kind);

#endif
