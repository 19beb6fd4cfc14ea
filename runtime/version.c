/* The version of the linked runtime. */
#include "internal.h"

_Static_assert(KILN_VERSION_MINOR < 100 && KILN_VERSION_PATCH < 100, "each has two digits of the number");

uint32_t kiln_version(void)
{
    return KILN_VERSION_NUMBER;
}
