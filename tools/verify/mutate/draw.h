/* Which mutants there are: drawn by a seed, for one family. First a variant is drawn, each as likely as the next, then an
 * instruction of it, then a kind that it has, then a change of that kind. One in four is of a kind that has the fewest yet,
 * so that rare instructions get their share. None is drawn twice. */
#ifndef VERIFY_MUTATE_DRAW_H
#define VERIFY_MUTATE_DRAW_H

#include "../device.h"
#include "../manifest.h"
#include "../random.h"
#include "mutate.h"

/* An instruction that can be changed, and how many changes of each kind it has. */
typedef struct mutation_site {
    const ptx_function *function;
    const ptx_statement *statement;
    size_t choices[MUTATION_KINDS];
} mutation_site;

/* A variant as something to change: the text that the device takes for it, and where in it each kind of change can be
 * made. */
typedef struct subject {
    const manifest_variant *variant;
    const kiln_kernel *kernel;
    const kiln_image *image;
    ptx_text text;
    mutation_site *sites;
    size_t site_count;
    size_t site_count_of[MUTATION_KINDS]; /* that have one of the kind */
} subject;

/* False: the device has no PTX of it. The sites are in the kernel's entry and in the functions that it names, or that
 * those name. */
bool subject_read(subject *s, const device *d, const manifest_variant *v, pool *memory);

typedef struct mutant {
    size_t subject; /* a place among the subjects */
    mutation_kind kind;
    text_span statement; /* what the change is in */
    mutation change;
} mutant;

typedef struct draw {
    const char *family;
    const subject *subjects; /* of all families */
    size_t *own;             /* places of the family's among them */
    size_t own_count;
    uint64_t wanted;  /* mutants that count */
    uint64_t counted; /* drawn, less those that draw_again took back */
    uint64_t counted_of[MUTATION_KINDS];
    bool is_exhausted[MUTATION_KINDS];
    random_stream stream;
    uint64_t next; /* of the stream */
    mutant *drawn;
    size_t drawn_count;
    pool *memory;
} draw;

void draw_open(draw *d, const char *family, const subject *subjects, size_t count, uint64_t seed,
               uint64_t wanted, pool *memory);

/* One more; false: enough are drawn, or no others are found. */
bool draw_next(draw *d, mutant *m);

/* One that was drawn does not count: it is no PTX. */
void draw_again(draw *d, mutation_kind kind);

#endif
