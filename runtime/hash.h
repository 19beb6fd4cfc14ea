/* XXH3, one-shot, inlined: find_name.c and verify.c alone include it.
 *
 * Without optimisation compilers keep xxHash's streaming functions, which nothing here calls and which allocate: with
 * its allocator cut off, the runtime refers to no heap in any build.
 */
#ifndef RUNTIME_HASH_H
#define RUNTIME_HASH_H

#include <stdlib.h>
#include <string.h>

#define malloc(bytes) (NULL)
#define free(memory)  ((void)(memory))
#define XXH_INLINE_ALL
#define XXH_NO_PREFETCH   /* smaller; what is hashed lies in one piece */
#define XXH_VECTOR      0 /* scalar: smaller with clang, and loading takes far longer than hashing */
#include <xxhash.h>
#undef malloc
#undef free

#endif
