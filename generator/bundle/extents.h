/* Checks for arrays of 2^63 bytes or more, whose addresses would wrap around. */
#ifndef BUNDLE_EXTENTS_H
#define BUNDLE_EXTENTS_H

#include "model.h"

/* Fills in the family's checks, without repeats, and each variant's check. */
void extents_make(arena *a, bundle_family *f);

/* Writes the checks as C functions. */
void extents_write(text *out, const bundle_family *f);

#endif
