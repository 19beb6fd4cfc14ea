/* Names of C++ kernels. */
#ifndef EXTERNAL_MANGLED_H
#define EXTERNAL_MANGLED_H

#include "support/arena.h"

/* "_Z5saxpyjfPKfPf" -> "saxpy", "_ZN2ns4fillIfEEvPT_j" -> "fill": the last name of a symbol that the Itanium C++ ABI
 * mangled, without namespaces and template arguments. Any other symbol, or a more complex one, is returned unchanged.
 * */
const char *plain_name(arena *a, const char *symbol);

#endif
