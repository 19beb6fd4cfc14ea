/* Memory that is freed all at once. */
#include "pool.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 64 * 1024, ALIGNMENT = 16 };

struct pool_block {
    struct pool_block *next;
    size_t used, size;
};

/* The block's bytes begin after its header, at the next multiple of ALIGNMENT. */
enum { HEADER_BYTES = (sizeof(struct pool_block) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT };

static struct pool_block *new_block(size_t bytes)
{
    struct pool_block *block = bytes < SIZE_MAX - HEADER_BYTES ? calloc(1, HEADER_BYTES + bytes) : NULL;
    if (!block) {
        fprintf(stderr, "kiln-verify: out of memory (%zu bytes)\n", bytes);
        exit(3);
    }
    block->size = bytes;
    return block;
}

void *pool_allocate(pool *p, size_t bytes)
{
    size_t rounded = bytes <= SIZE_MAX - ALIGNMENT ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : bytes;
    struct pool_block *block = p->blocks;
    if (!block || block->size - block->used < rounded) {
        block = new_block(rounded > BLOCK_BYTES ? rounded : BLOCK_BYTES);
        block->next = p->blocks;
        p->blocks = block;
    }
    void *memory = (char *)block + HEADER_BYTES + block->used;
    block->used += rounded;
    return memory;
}

void *pool_grow(pool *p, void *items, size_t count, size_t item_bytes)
{
    if (count & (count - 1))
        return items;
    void *larger = pool_allocate(p, (count ? 2 * count : 1) * item_bytes);
    if (count)
        memcpy(larger, items, count * item_bytes);
    return larger;
}

char *pool_copy(pool *p, const char *text, size_t length)
{
    char *copy = pool_allocate(p, length + 1);
    memcpy(copy, text, length);
    return copy;
}

void pool_free(pool *p)
{
    for (struct pool_block *block = p->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    p->blocks = NULL;
}
