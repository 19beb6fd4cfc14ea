/* XXH3, one-shot and inline. Only find_name.c and verify.c include it.
 *
 * Without optimisation compilers keep xxHash's unused streaming functions, which allocate. Removing its allocator keeps
 * heap symbols out of the runtime in every build.
 */
#ifndef RUNTIME_HASH_H
#define RUNTIME_HASH_H

#include <stdlib.h>
#include <string.h>

#define malloc(bytes) (NULL)
#define free(memory)  ((void)(memory))
#define XXH_INLINE_ALL
#define XXH_NO_PREFETCH   /* smaller; inputs are contiguous */
#define XXH_VECTOR      0 /* scalar: smaller with clang, and loading takes far longer than hashing */
#include <xxhash.h>
#undef malloc
#undef free

#endif
