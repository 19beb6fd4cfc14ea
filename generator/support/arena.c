/* The arena: a list of chunks, each at least as large as what was asked for, freed together. */
#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnostics.h"

enum { CHUNK_BYTES = 64 * 1024, FIRST_CAPACITY = 16 };

typedef struct chunk {
    struct chunk *next;
    size_t used, capacity;
    alignas(max_align_t) unsigned char bytes[];
} chunk;

struct arena {
    chunk *chunks; /* the newest first; only that one is allocated from */
};

static void *or_out_of_memory(void *memory)
{
    if (memory)
        return memory;
    fputs("kiln: out of memory\n", stderr);
    exit(EXIT_BAD_KILN);
}

arena *arena_new(void)
{
    return or_out_of_memory(calloc(1, sizeof(arena)));
}

void arena_free(arena *a)
{
    if (!a)
        return;
    for (chunk *c = a->chunks; c;) {
        chunk *next = c->next;
        free(c);
        c = next;
    }
    free(a);
}

static chunk *new_chunk(arena *a, size_t bytes)
{
    size_t capacity = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    chunk *c = or_out_of_memory(calloc(1, sizeof(chunk) + capacity));
    c->capacity = capacity;
    c->next = a->chunks;
    a->chunks = c;
    return c;
}

void *arena_alloc(arena *a, size_t bytes)
{
    const size_t step = alignof(max_align_t);
    if (bytes > SIZE_MAX / 2)
        or_out_of_memory(NULL);
    size_t rounded = bytes == 0 ? step : (bytes + step - 1) / step * step;
    chunk *c = a->chunks;
    if (!c || c->capacity - c->used < rounded)
        c = new_chunk(a, rounded);
    void *memory = c->bytes + c->used;
    c->used += rounded;
    return memory;
}

/* Behind the newest chunk, which alone is allocated from. */
void arena_adopt(arena *a, arena *from)
{
    chunk **end = &a->chunks;
    while (*end)
        end = &(*end)->next;
    *end = from->chunks;
    free(from);
}

/* What has a chunk to itself grows with it: no copy is left behind. */
void *arena_grow(arena *a, void *memory, size_t used, size_t bytes, size_t grown)
{
    chunk **at = &a->chunks;
    if (bytes >= CHUNK_BYTES)
        while (*at && (*at)->bytes != memory)
            at = &(*at)->next;
    if (bytes < CHUNK_BYTES || !*at || (*at)->used != (*at)->capacity || grown > SIZE_MAX / 2) {
        void *moved = arena_alloc(a, grown);
        memcpy(moved, memory, used);
        return moved;
    }
    const size_t step = alignof(max_align_t), capacity = (grown + step - 1) / step * step;
    chunk *larger = or_out_of_memory(realloc(*at, sizeof *larger + capacity));
    larger->used = larger->capacity = capacity;
    *at = larger;
    return larger->bytes;
}

void *arena_copy(arena *a, const void *from, size_t bytes)
{
    void *to = arena_alloc(a, bytes);
    if (bytes > 0)
        memcpy(to, from, bytes);
    return to;
}

char *arena_string(arena *a, const char *string, size_t length)
{
    char *to = arena_alloc(a, length + 1);
    if (length > 0)
        memcpy(to, string, length);
    return to;
}

void *arena_push(arena *a, void **array, size_t *count, size_t *capacity, size_t element_bytes)
{
    /* The caller's pointer has another type than void *; copying its bytes keeps that legal. */
    unsigned char *elements;
    memcpy(&elements, array, sizeof elements);
    if (*count == *capacity) {
        size_t grown = *capacity ? *capacity * 2 : FIRST_CAPACITY;
        unsigned char *moved = arena_alloc(a, grown * element_bytes);
        if (*count > 0)
            memcpy(moved, elements, *count * element_bytes);
        memcpy(array, &moved, sizeof moved);
        elements = moved;
        *capacity = grown;
    }
    return elements + (*count)++ * element_bytes;
}
