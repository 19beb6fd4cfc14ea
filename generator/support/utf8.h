/* Checks UTF-8. */
#ifndef SUPPORT_UTF8_H
#define SUPPORT_UTF8_H

#include <stddef.h>

/* The length of the well-formed sequence at `text`; 0 if there is none in these bytes. A NUL is not text. */
size_t utf8_sequence(const char *text, size_t bytes);

#endif
