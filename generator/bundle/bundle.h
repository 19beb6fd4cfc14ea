/* The back end of the generator: from a plan to the bundle's files. */
#ifndef BUNDLE_BUNDLE_H
#define BUNDLE_BUNDLE_H

#include <stdbool.h>
#include <stdio.h>

#include "plan/plan.h"

/* The bundle's destination, and what is printed on stdout. */
typedef struct bundle_output {
    const char *folder;
    const char *
        stamp; /* a file that is always written last and stands for the bundle's files in NAME.d: make needs one newer
                * than the inputs; null: none */
    bool is_quiet; /* no summary */
} bundle_output;

/* Bakes every variant and writes NAME.c, NAME.h, the plan's shards, NAME_1.c and on, NAME.d and last NAME.json into the
 * folder. All of them are in a spool there before the first is written; a file whose bytes are unchanged is left alone.
 * With plan->is_timed it also prints ptxas' times (times.h). Returns the exit status: 0, or 1 after a diagnostic. A
 * kernel that fails its check is an error of its family (exit 3). */
int bundle_generate(arena *a, const plan *p, diagnostics *d, const bundle_output *out);

/* Writes nothing: prints each of these files, except NAME.d, that is missing from the folder or differs, and shards
 * that the plan does not have. Returns 0, EXIT_DIFFERENT, or 1 after a diagnostic. */
int bundle_check(arena *a, const plan *p, diagnostics *d, const bundle_output *out);

/* Writes each image as a file of the folder, ENTRY.sm_80.ptx or ENTRY.sm_80.cubin; otherwise like bundle_generate. */
int bundle_export(arena *a, plan *p, diagnostics *d, const bundle_output *out);

typedef enum show_form { SHOW_PTX, SHOW_SOURCE, SHOW_IR } show_form;

/* Prints one variant for one target: as PTX, as PTX with the source line of each instruction, or as the builder's IR. A line on
 * stderr says if the text is for a lower target. False: the variant cannot run on this target. */
bool bundle_show(arena *a, const plan *p, const variant *v, target t, show_form form, FILE *out);

#endif
