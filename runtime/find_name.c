/* Finds a kernel by canonical id. Separate from find.c, so that only programs that look up names link the hash. */
#include "hash.h"
#include "internal.h"

const kiln_kernel *kiln_find_name(const kiln_index *index, const char *id)
{
    if (id == NULL)
        return NULL;
    const kiln_kernel *kernel = kiln_find(index, XXH3_64bits(id, strlen(id)));
    /* A name that is not in the bundle may have the key of one that is. */
    return kernel != NULL && strcmp(kernel->id, id) == 0 ? kernel : NULL;
}
