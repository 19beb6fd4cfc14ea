/* Shared by all files of the emulated driver: text slices, an arena, growing arrays, the log of a module load. */
#ifndef EMU_H
#define EMU_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct emu_text {
    const char *at;
    size_t size;
} emu_text;

#define EMU_TEXT(t) (int)(t).size, (t).at /* arguments for "%.*s" */

static inline emu_text emu_text_of(const char *s)
{
    size_t n = 0;
    while (s[n])
        n++;
    return (emu_text){s, n};
}

/* Inline because decoding compares many short words, most of which differ in the first letter. */
static inline bool emu_text_is(emu_text t, const char *s)
{
    size_t n = 0;
    while (n < t.size && s[n] && s[n] == t.at[n])
        n++;
    return n == t.size && !s[n];
}

bool emu_text_same(emu_text a, emu_text b);

/* Memory that is freed all at once; zeroed, 16-byte aligned. Ends the process if memory runs out. */
typedef struct emu_arena {
    struct emu_arena_chunk *chunks;
} emu_arena;

void *emu_arena_alloc(emu_arena *arena, size_t bytes);
char *emu_arena_format(emu_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
void emu_arena_free(emu_arena *arena);

/* A growing array of pointers or values in an arena. */
typedef struct emu_list {
    void *items;
    size_t count, room;
} emu_list;

/* Appends an item and returns its address. */
void *emu_list_add(emu_arena *arena, emu_list *list, size_t item_bytes);

/* Zeroed memory from the heap. Ends the process if memory runs out. */
void *emu_alloc(size_t bytes);

/* Enlarges memory from emu_alloc, or NULL, to `bytes`: keeps the first `kept` bytes and zeroes the others. */
void *emu_grow(void *memory, size_t kept, size_t bytes);

/* Returns the array with room for item `at`. If `room`, its capacity, is too small, enlarges both; new items are zero. */
void *emu_with_room(void *items, size_t at, size_t *room, size_t item_bytes);

/* Errors of one module load, as the JIT error log shows them. */
typedef struct emu_log {
    char *text;
    size_t size, room;
    unsigned errors;
    unsigned unsupported; /* how many of the errors are valid PTX that is not emulated */
} emu_log;

#define EMU_MAX_ERRORS 20 /* Parsing and decoding stop after this many errors. */

static inline unsigned emu_log_wrong(const emu_log *log)
{
    return log->errors - log->unsupported;
}

/* Adds "line N: ...", then the source line if `line_text` is not empty. */
void emu_log_error(emu_log *log, uint32_t line, emu_text line_text, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void emu_log_unsupported(emu_log *log, uint32_t line, emu_text line_text, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void emu_log_append(emu_log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
void emu_log_free(emu_log *log);

static inline uint64_t emu_align_up(uint64_t x, uint64_t alignment)
{
    return (x + alignment - 1) & ~(alignment - 1);
}

#endif
