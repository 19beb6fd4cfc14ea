/* JSON, as far as the tools write it. */
#ifndef SUPPORT_JSON_H
#define SUPPORT_JSON_H

#include <stdio.h>

/* "text", or null; bytes that are no UTF-8 become U+FFFD. */
void json_string(FILE *out, const char *text);

/* As fprintf, but %s writes a string with its quotes and escapes, and %c true or false. Knows d, u, f and g too. */
void json_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
