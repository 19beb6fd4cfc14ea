/* The families of this folder, for families.c. One file per family or pair of families. */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include <kiln/family.h>

extern const kiln_family nf4_quantize_family;
extern const kiln_family nf4_unpack_family;

#endif
