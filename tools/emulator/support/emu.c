/* Text slices, the arena, growing arrays and the load log: see emu.h. */
#include "emu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct emu_arena_chunk {
    struct emu_arena_chunk *next;
    size_t used, room;
    _Alignas(16) char bytes[];
} emu_arena_chunk;

bool emu_text_same(emu_text a, emu_text b)
{
    return a.size == b.size && memcmp(a.at, b.at, a.size) == 0;
}

static void *check_memory(void *p)
{
    if (!p) {
        fputs("kiln emulator: out of host memory\n", stderr);
        abort();
    }
    return p;
}

void *emu_alloc(size_t bytes)
{
    return check_memory(calloc(1, bytes ? bytes : 1));
}

void *emu_grow(void *memory, size_t kept, size_t bytes)
{
    char *grown = check_memory(realloc(memory, bytes));
    memset(grown + kept, 0, bytes - kept);
    return grown;
}

void *emu_with_room(void *items, size_t at, size_t *room, size_t item_bytes)
{
    const size_t kept = *room;
    if (at < kept)
        return items;
    *room = 2 * at + 16;
    return emu_grow(items, kept * item_bytes, *room * item_bytes);
}

void *emu_arena_alloc(emu_arena *arena, size_t bytes)
{
    emu_arena_chunk *chunk = arena->chunks;
    bytes = emu_align_up(bytes ? bytes : 1, 16);
    if (!chunk || chunk->room - chunk->used < bytes) {
        const size_t least = chunk ? 65536 : 4096; /* the first chunk is enough for a small kernel */
        size_t room = bytes > least ? bytes : least;
        chunk = emu_alloc(sizeof *chunk + room);
        chunk->room = room;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
    }
    void *p = chunk->bytes + chunk->used;
    chunk->used += bytes;
    return p;
}

char *emu_arena_format(emu_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = emu_arena_alloc(arena, (size_t)size + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)size + 1, format, args);
    va_end(args);
    return text;
}

void emu_arena_free(emu_arena *arena)
{
    while (arena->chunks) {
        emu_arena_chunk *next = arena->chunks->next;
        free(arena->chunks);
        arena->chunks = next;
    }
}

void *emu_list_add(emu_arena *arena, emu_list *list, size_t item_bytes)
{
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        void *items = emu_arena_alloc(arena, room * item_bytes);
        if (list->count)
            memcpy(items, list->items, list->count * item_bytes);
        list->items = items;
        list->room = room;
    }
    return (char *)list->items + item_bytes * list->count++;
}

static void append(emu_log *log, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    size_t size = (size_t)vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (log->size + size + 1 > log->room) {
        log->room = 2 * (log->size + size) + 1024;
        log->text = emu_grow(log->text, log->size, log->room);
    }
    vsnprintf(log->text + log->size, size + 1, format, args);
    log->size += size;
}

void emu_log_append(emu_log *log, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    append(log, format, args);
    va_end(args);
}

static void append_error(emu_log *log, uint32_t line, emu_text line_text, const char *format, va_list args)
{
    emu_log_append(log, "line %u: error: ", line);
    append(log, format, args);
    emu_log_append(log, "\n");
    if (line_text.size)
        emu_log_append(log, "%6u | %.*s\n", line, EMU_TEXT(line_text));
}

void emu_log_error(emu_log *log, uint32_t line, emu_text line_text, const char *format, ...)
{
    va_list args;
    log->errors++;
    if (emu_log_wrong(log) > EMU_MAX_ERRORS)
        return;
    va_start(args, format);
    append_error(log, line, line_text, format, args);
    va_end(args);
}

void emu_log_unsupported(emu_log *log, uint32_t line, emu_text line_text, const char *format, ...)
{
    va_list args;
    log->errors++;
    if (++log->unsupported > EMU_MAX_ERRORS)
        return;
    va_start(args, format);
    append_error(log, line, line_text, format, args);
    va_end(args);
}

void emu_log_free(emu_log *log)
{
    free(log->text);
    *log = (emu_log){0};
}
