/* The families that the `kiln` program is built with. */
#include "kernels.h"

const kiln_family *const kiln_families[] = {
    &nf4_quantize_family,
    &nf4_unpack_family,
    NULL,
};
