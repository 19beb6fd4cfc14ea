/* `kiln diff`: what changed between two manifests. */
#ifndef BUNDLE_DIFF_H
#define BUNDLE_DIFF_H

#include "support/arena.h"
#include "support/diagnostics.h"

/* Adds a line for what belongs to the whole bundle and differs, one for each variant that was added (+), removed (-), or
 * changed or moved (~), and a last one that counts them. *is_alike: there is nothing to tell. False after a diagnostic when one
 * of the files is no manifest. */
bool diff_manifests(arena *a, const char *old_path, const char *new_path, text *out, bool *is_alike,
                    diagnostics *d);

#endif
