/* The back half of the generator: a plan in, the bundle's files out. */
#ifndef BUNDLE_BUNDLE_H
#define BUNDLE_BUNDLE_H

#include <stdbool.h>
#include <stdio.h>

#include "plan/plan.h"

/* Bakes every variant and writes NAME.c, NAME.h, the plan's shards, NAME_1.c and on, NAME.d and last NAME.json into
 * output_dir. All of them lie in a spool there before the first is written; a file whose bytes would not change is left
 * alone. `stamp`, when not null, is a file that is written after them, whatever changed, and stands for them in NAME.d: make
 * wants one that is newer than the inputs. One line of what there is goes to `summary`, when not null. Returns the exit
 * status: 0, or 1 after a diagnostic. A kernel that fails its check is an error of its family (exit 3). */
int bundle_generate(arena *a, const plan *p, diagnostics *d, const char *output_dir, const char *stamp,
                    FILE *summary);

/* Writes each image as a file of output_dir, ENTRY.sm_80.ptx or ENTRY.sm_80.cubin; otherwise the same. */
int bundle_export(arena *a, plan *p, diagnostics *d, const char *output_dir, FILE *summary);

/* Prints one variant as PTX, or as the builder's IR, for one target, and on stderr a line where the text's own target is a
 * lower one. False when the variant cannot run on it. */
bool bundle_show(arena *a, const plan *p, const variant *v, target t, bool ir, FILE *out);

#endif
