/* The arena: a list of chunks, each at least as large as requested, freed together. */
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
    chunk *chunks; /* the newest first; allocations come only from that one */
    chunk *spare;  /* cleared */
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

static void free_chunks(chunk *c)
{
    while (c) {
        chunk *next = c->next;
        free(c);
        c = next;
    }
}

void arena_free(arena *a)
{
    if (!a)
        return;
    free_chunks(a->chunks);
    free_chunks(a->spare);
    free(a);
}

static chunk **end_of(chunk **list)
{
    while (*list)
        list = &(*list)->next;
    return list;
}

void arena_clear(arena *a)
{
    *end_of(&a->chunks) = a->spare;
    a->spare = a->chunks;
    a->chunks = NULL;
}

/* The smallest spare chunk that is large enough, which keeps large ones for large requests; null if there is none. */
static chunk *take_spare(arena *a, size_t capacity)
{
    chunk **best = NULL;
    for (chunk **at = &a->spare; *at; at = &(*at)->next)
        if ((*at)->capacity >= capacity && (!best || (*at)->capacity < (*best)->capacity))
            best = at;
    if (!best)
        return NULL;
    chunk *c = *best;
    *best = c->next;
    memset(c->bytes, 0, c->used);
    c->used = 0;
    return c;
}

static chunk *new_chunk(arena *a, size_t bytes)
{
    size_t capacity = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    chunk *c = take_spare(a, capacity);
    if (!c) {
        c = or_out_of_memory(calloc(1, sizeof(chunk) + capacity));
        c->capacity = capacity;
    }
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

/* Inserts the chunks after the newest, the only chunk used for allocation. */
void arena_adopt(arena *a, arena *from)
{
    *end_of(&a->chunks) = from->chunks;
    free_chunks(from->spare);
    free(from);
}

/* A block that is alone in its chunk grows with the chunk, or into a spare one: no space is lost. */
void *arena_grow(arena *a, void *memory, size_t used, size_t bytes, size_t grown)
{
    chunk **at = &a->chunks;
    if (bytes >= CHUNK_BYTES)
        while (*at && (*at)->bytes != memory)
            at = &(*at)->next;
    if (bytes < CHUNK_BYTES || !*at || (*at)->used != bytes || grown > SIZE_MAX / 2) {
        void *moved = arena_alloc(a, grown);
        memcpy(moved, memory, used);
        return moved;
    }
    const size_t step = alignof(max_align_t), capacity = (grown + step - 1) / step * step;
    chunk *own = *at, *larger = own->capacity < capacity ? take_spare(a, capacity) : own;
    if (!larger) {
        larger = or_out_of_memory(realloc(own, sizeof *larger + capacity));
        larger->capacity = capacity;
    } else if (larger != own) {
        memcpy(larger->bytes, memory, used);
        larger->next = own->next;
        own->next = a->spare;
        a->spare = own;
    }
    larger->used = capacity;
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
