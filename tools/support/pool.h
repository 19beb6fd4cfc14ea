/* Memory that is freed all at once. Running out of it ends the program with a message and status 3. */
#ifndef SUPPORT_POOL_H
#define SUPPORT_POOL_H

#include <stddef.h>

typedef struct pool {
    struct pool_block *blocks;
} pool;

/* Returns zeroed memory, aligned to 16 bytes, never null. */
void *pool_allocate(pool *p, size_t bytes);

/* Returns the array with room for one more item than `count`. If the count is 0 or a power of two, it is a copy of twice the size:
 * call it before each item is added. */
void *pool_grow(pool *p, void *items, size_t count, size_t item_bytes);

/* Returns a copy that ends with a NUL. */
char *pool_copy(pool *p, const char *text, size_t length);

void pool_free(pool *p);

#endif
