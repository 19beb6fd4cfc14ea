/* Finds a family by name, linearly: a bundle has few. */
#include <string.h>

#include "internal.h"

const kiln_index_family *kiln_find_family(const kiln_index *index, const char *name)
{
    if (index == NULL || name == NULL)
        return NULL;
    for (uint32_t i = 0; i < index->family_count; i++)
        if (strcmp(index->texts + index->families[i].text, name) == 0)
            return &index->families[i];
    return NULL;
}
