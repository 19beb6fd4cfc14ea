/* `kiln diff`: what changed between two manifests. */
#ifndef BUNDLE_DIFF_H
#define BUNDLE_DIFF_H

#include "support/arena.h"
#include "support/diagnostics.h"

/* Adds a line for each difference of the whole bundle, one for each variant that was added (+), removed (-), or changed
 * or moved (~), and a last line with their numbers. *is_alike: there are no differences. False after a diagnostic if
 * one of the files is not a manifest. */
bool diff_manifests(arena *a, const char *old_path, const char *new_path, text *out, bool *is_alike,
                    diagnostics *d);

#endif
