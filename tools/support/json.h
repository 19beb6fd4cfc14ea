/* Writes JSON. */
#ifndef SUPPORT_JSON_H
#define SUPPORT_JSON_H

#include <stdio.h>

/* Writes "text", or null; bytes that are not UTF-8 become U+FFFD. */
void json_string(FILE *out, const char *text);

/* Prints like fprintf, but %s writes a string with quotes and escapes, and %c writes true or false. Also knows d,
 * u, f and g. */
void json_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
