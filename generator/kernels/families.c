/* The kernel families that kiln is built with, in the order in which `kiln families` prints them. */
#include <kiln/family.h>

const kiln_family *const kiln_families[] = {
    /* &family_axpy, */
    NULL,
};
