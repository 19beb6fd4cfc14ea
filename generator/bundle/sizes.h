/* Names, indices and types of the integers that kernels take, for kiln_kernel.sizes. */
#ifndef BUNDLE_SIZES_H
#define BUNDLE_SIZES_H

#include "model.h"

/* Makes the texts of a family, without duplicates, and assigns one to each variant. */
void sizes_make(arena *a, bundle_family *f);

void sizes_write(text *out, const bundle_family *f);

#endif
