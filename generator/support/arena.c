/* The arena: blocks that are freed together, and texts that grow in it. */
#include "arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 16 };

typedef struct block {
    struct block *next;
    size_t used, size;
    max_align_t data[];
} block;

struct arena {
    block *blocks;
};

static void *checked(void *p)
{
    if (p)
        return p;
    fputs("kiln: out of memory\n", stderr);
    exit(3);
}

arena *arena_new(void)
{
    return checked(calloc(1, sizeof(arena)));
}

void arena_free(arena *a)
{
    for (block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(a);
}

void *arena_alloc(arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        checked(NULL);
    bytes = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (!a->blocks || a->blocks->size - a->blocks->used < bytes) {
        size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block *b = checked(calloc(1, sizeof *b + size));
        b->size = size;
        b->next = a->blocks;
        a->blocks = b;
    }
    void *p = (char *)a->blocks->data + a->blocks->used;
    a->blocks->used += bytes;
    return p;
}

void *arena_copy(arena *a, const void *from, size_t bytes)
{
    void *to = arena_alloc(a, bytes);
    if (bytes)
        memcpy(to, from, bytes);
    return to;
}

char *arena_string(arena *a, const char *from, size_t length)
{
    char *to = arena_alloc(a, length + 1);
    memcpy(to, from, length);
    return to;
}

char *arena_format(arena *a, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *to = arena_alloc(a, (size_t)length + 1);
    vsnprintf(to, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    return to;
}

void *arena_push(arena *a, void **array, size_t *count, size_t *capacity, size_t element_bytes)
{
    if (*count == *capacity) {
        size_t wider = *capacity ? *capacity * 2 : 16;
        void *moved = arena_alloc(a, wider * element_bytes);
        if (*count)
            memcpy(moved, *array, *count * element_bytes);
        *array = moved;
        *capacity = wider;
    }
    return (char *)*array + (*count)++ * element_bytes;
}

text text_new(arena *a)
{
    return (text){.arena = a, .data = arena_alloc(a, 64), .capacity = 64};
}

void text_add_bytes(text *t, const char *s, size_t length)
{
    if (t->length + length + 1 > t->capacity) {
        size_t wider = (t->length + length + 1) * 2;
        char *moved = arena_alloc(t->arena, wider);
        memcpy(moved, t->data, t->length);
        t->data = moved;
        t->capacity = wider;
    }
    memcpy(t->data + t->length, s, length);
    t->length += length;
    t->data[t->length] = '\0';
}

void text_add(text *t, const char *s)
{
    text_add_bytes(t, s, strlen(s));
}

void text_printf(text *t, const char *format, ...)
{
    char buffer[512];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(buffer, sizeof buffer, format, args);
    if ((size_t)length < sizeof buffer) {
        text_add_bytes(t, buffer, (size_t)length);
    } else {
        char *long_text = arena_alloc(t->arena, (size_t)length + 1);
        vsnprintf(long_text, (size_t)length + 1, format, again);
        text_add_bytes(t, long_text, (size_t)length);
    }
    va_end(again);
    va_end(args);
}
