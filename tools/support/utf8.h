/* Checks UTF-8. */
#ifndef SUPPORT_UTF8_H
#define SUPPORT_UTF8_H

#include <stddef.h>

/* Replaces bytes that are not UTF-8: U+FFFD. */
#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/* Returns the length of the character that begins here; 0: no character does (Unicode 15, table 3-7). */
size_t utf8_length(const unsigned char *at);

#endif
