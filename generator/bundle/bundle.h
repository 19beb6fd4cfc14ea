/* The back half of the generator: a plan in, the bundle's files out. */
#ifndef BUNDLE_BUNDLE_H
#define BUNDLE_BUNDLE_H

#include <stdbool.h>
#include <stdio.h>

#include "../plan.h"

/* Bakes every variant and writes NAME.c, NAME.h, NAME.json and NAME.d, and NAME_1.c and on when
 * there are shards, into output_dir. All of them are rendered before
 * the first is written; a file whose bytes would not change is left alone. Returns the exit status: 0, or 1 after a
 * diagnostic. A kernel that fails its check is an internal error (exit 3). */
int bundle_generate(arena *a, const plan *p, diagnostics *d, const char *output_dir);

/* Prints one variant as PTX, or as the builder's IR, for one target. False when the variant cannot run on it. */
bool bundle_show(arena *a, const plan *p, const kiln_variant *v, target t, bool ir, FILE *out);

#endif
