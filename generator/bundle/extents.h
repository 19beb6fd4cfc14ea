/* Arrays that no address space holds, for which addresses would wrap around: which calls could name one, and the check. */
#ifndef BUNDLE_EXTENTS_H
#define BUNDLE_EXTENTS_H

#include "model.h"

/* Fills in the family's checks, each once, and which of them each variant makes. */
void extents_make(arena *a, bundle_family *f);

/* The functions as C. */
void extents_write(text *out, const bundle_family *f);

#endif
