/* Growing text. Strings, integers and characters are formatted by vsnprintf, which no locale changes for them; the most
 * common formats in PTX are appended directly. */
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "diagnostics.h"

enum { FIRST_BYTES = 64 };

text text_new(arena *a)
{
    return (text){.arena = a, .data = arena_alloc(a, FIRST_BYTES), .capacity = FIRST_BYTES};
}

/* Makes room for `more` bytes and a NUL. */
static void reserve(text *t, size_t more)
{
    if (t->capacity - t->length > more)
        return;
    size_t grown = t->capacity * 2;
    while (grown - t->length <= more)
        grown *= 2;
    t->data = arena_grow(t->arena, t->data, t->length, t->capacity, grown);
    t->capacity = grown;
}

void text_add_bytes(text *t, const char *s, size_t length)
{
    reserve(t, length);
    if (length > 0)
        memcpy(t->data + t->length, s, length);
    t->length += length;
    t->data[t->length] = '\0';
}

void text_add(text *t, const char *s)
{
    text_add_bytes(t, s, strlen(s));
}

void text_add_char(text *t, char c)
{
    reserve(t, 1);
    t->data[t->length++] = c;
    t->data[t->length] = '\0';
}

void text_add_decimal(text *t, uint64_t value)
{
    char digits[20], *const end = digits + sizeof digits, *d = end;
    do
        *--d = (char)('0' + value % 10);
    while (value /= 10);
    text_add_bytes(t, d, (size_t)(end - d));
}

void text_add_hex(text *t, uint64_t value, int count, bool is_upper)
{
    char digits[16];
    for (int i = count; i-- > 0; value >>= 4)
        digits[i] = (is_upper ? "0123456789ABCDEF" : "0123456789abcdef")[value & 15];
    text_add_bytes(t, digits, (size_t)count);
}

void text_vprintf(text *t, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length < 0)
        internal_error("text_printf cannot format \"%s\"", format);
    reserve(t, (size_t)length);
    vsnprintf(t->data + t->length, (size_t)length + 1, format, again);
    va_end(again);
    t->length += (size_t)length;
}

void text_printf(text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(t, format, arguments);
    va_end(arguments);
}

char *arena_format(arena *a, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text t = text_new(a);
    text_vprintf(&t, format, arguments);
    va_end(arguments);
    return t.data;
}
