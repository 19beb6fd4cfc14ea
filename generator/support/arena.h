/* Memory that is freed together: the run's arena at its end, a task's when the task is done. Running out of memory
 * prints a diagnostic and exits with status 3. */
#ifndef SUPPORT_ARENA_H
#define SUPPORT_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct arena arena;

arena *arena_new(void);
void arena_free(arena *a);

/* Frees its contents and keeps the memory for reuse, as in a loop. */
void arena_clear(arena *a);

/* Moves the contents of `from` into `a`; `from` no longer exists. */
void arena_adopt(arena *a, arena *from);

void *arena_alloc(arena *a, size_t bytes); /* zeroed, aligned for any type */
void *arena_copy(arena *a, const void *from, size_t bytes);
char *arena_string(arena *a, const char *text, size_t length); /* NUL-terminated copy */
__attribute__((format(printf, 2, 3))) char *arena_format(arena *a, const char *format, ...);

/* Appends an element to an array that grows by doubling: counts it, returns where to write it, and moves the array
 * when it must. `array` is the address of the caller's pointer, cast. */
void *arena_push(arena *a, void **array, size_t *count, size_t *capacity, size_t element_bytes);

/* Moves `bytes` from arena_alloc, of which `used` count, to a larger block; the rest is not cleared. */
void *arena_grow(arena *a, void *memory, size_t used, size_t bytes, size_t grown);

/* A growing text. `data` is always NUL-terminated. */
typedef struct text {
    arena *arena;
    char *data;
    size_t length, capacity;
} text;

text text_new(arena *a);
void text_add(text *t, const char *s);
void text_add_bytes(text *t, const char *s, size_t length);
void text_add_char(text *t, char c);
void text_add_decimal(text *t, uint64_t value);
void text_add_hex(text *t, uint64_t value, int digits,
                  bool is_upper); /* the lowest 4 * digits bits; at most 16 */
__attribute__((format(printf, 2, 3))) void text_printf(text *t, const char *format,
                                                       ...); /* %s %d %u %x %c only: no locale */
__attribute__((format(printf, 2, 0))) void text_vprintf(text *t, const char *format, va_list arguments);

#endif
