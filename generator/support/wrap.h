/* Long texts over several lines, for `kiln families`. */
#ifndef SUPPORT_WRAP_H
#define SUPPORT_WRAP_H

#include "arena.h"

/* A text that is at this column of its line. */
typedef struct wrapper {
    text *out;
    size_t column;
} wrapper;

void wrap_move(wrapper *w, size_t column); /* pads; a new line when the column is behind */

/* From the column on, which the lines that follow begin at too. Prose breaks between words; an expression where it binds
 * loosest, an operator at the start of a line, and calls and parentheses inside only when they have to. */
void wrap_prose(wrapper *w, const char *prose);
void wrap_expression(wrapper *w, const char *expression);

#endif
