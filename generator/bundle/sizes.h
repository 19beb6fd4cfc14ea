/* Names, places and types of the integers that kernels take, as kiln_kernel.sizes has them. */
#ifndef BUNDLE_SIZES_H
#define BUNDLE_SIZES_H

#include "model.h"

/* Fills in the family's texts, each once, and which of them a variant has. */
void sizes_make(arena *a, bundle_family *f);

/* The texts as C. */
void sizes_write(text *out, const bundle_family *f);

#endif
