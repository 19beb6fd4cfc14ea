/* Writes bytes that come in pieces as valid UTF-8. It holds back an incomplete character until it is complete, and replaces
 * invalid bytes by U+FFFD. */
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

/* Writes all complete characters and flushes. Returns false if `out` fails. */
bool text_stream_write(text_stream *stream, const char *bytes, size_t count);
/* Ends the text: an incomplete character becomes U+FFFD. */
bool text_stream_end(text_stream *stream);

#endif
