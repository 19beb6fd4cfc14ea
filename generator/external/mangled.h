/* Names of C++ kernels. */
#ifndef EXTERNAL_MANGLED_H
#define EXTERNAL_MANGLED_H

#include "support/arena.h"

/* "_Z5saxpyjfPKfPf" -> "saxpy", "_ZN2ns4fillIfEEvPT_j" -> "fill": the last name of what the Itanium C++ ABI mangled, without
 * namespaces and template arguments. Any other symbol, and one that is more involved, as it is. */
const char *plain_name(arena *a, const char *symbol);

#endif
