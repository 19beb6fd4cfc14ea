/* A variant as something to change: the text that the device takes for it, and where in it each kind of change can be
 * made. */
#ifndef VERIFY_MUTATE_SUBJECT_H
#define VERIFY_MUTATE_SUBJECT_H

#include "../device.h"
#include "../manifest.h"
#include "mutate.h"

/* An instruction that can be changed, and how many changes of each kind it has. */
typedef struct mutation_site {
    const ptx_function *function;
    const ptx_statement *statement;
    size_t choices[MUTATION_KINDS];
} mutation_site;

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
bool subject_open(subject *s, const device *d, const manifest_variant *v, pool *memory);

#endif
