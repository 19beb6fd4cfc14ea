/* UTF-8, as the reports write it. */
#ifndef SUPPORT_UTF8_H
#define SUPPORT_UTF8_H

#include <stddef.h>

/* What is written in place of bytes that no file can have: U+FFFD. */
#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/* The bytes of the character that begins here; 0: none does (Unicode 15, table 3-7). */
size_t utf8_length(const unsigned char *at);

#endif
