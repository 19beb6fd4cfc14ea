/* Lookup by canonical id. Apart from find.c, so that only programs that look up names carry the hash. */
#include "hash.h"
#include "internal.h"

const kiln_kernel *kiln_find_name(const kiln_index *index, const char *id)
{
    if (id == NULL)
        return NULL;
    const kiln_kernel *kernel = kiln_find(index, XXH3_64bits(id, strlen(id)));
    /* Names outside the bundle may share a key with one inside. */
    return kernel != NULL && strcmp(kernel->id, id) == 0 ? kernel : NULL;
}
