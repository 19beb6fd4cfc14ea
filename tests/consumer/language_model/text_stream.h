/* Writes bytes that come in pieces as valid UTF-8: an incomplete character is held back until it is whole, and what can no
 * longer become one is written as U+FFFD. */
#ifndef TEXT_STREAM_H
#define TEXT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Zeroed except `out`. */
typedef struct text_stream {
    FILE *out; /* the caller's */
    unsigned char held[4];
    size_t held_count;
} text_stream;

/* Writes what is whole and flushes. False where `out` fails. */
bool text_stream_write(text_stream *stream, const char *bytes, size_t count);
/* The text ends here: what is held back will not become whole. */
bool text_stream_end(text_stream *stream);

#endif
