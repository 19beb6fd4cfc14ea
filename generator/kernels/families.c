/* The families that the program `kiln` is built with. */
#include <kiln/families.h>

const kiln_family *const kiln_families[] = {KILN_FAMILIES, NULL};
