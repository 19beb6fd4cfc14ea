/* Finds a kernel by key: open addressing in a table that is built at generation time. */
#include "internal.h"

const kiln_kernel *kiln_find(const kiln_index *index, uint64_t key)
{
    if (index == NULL || index->table == NULL)
        return NULL;
    /* Bounded, so that a search for an absent key ends even in a full table. */
    for (uint64_t probe = 0; probe <= index->table_mask; probe++) {
        uint32_t entry = index->table[(key + probe) & index->table_mask];
        if (entry == 0)
            return NULL;
        const kiln_kernel *kernel = index->kernels[entry - 1];
        if (kernel->key == key)
            return kernel;
    }
    return NULL;
}
