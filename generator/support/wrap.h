/* Long texts over several lines, for `kiln families`. */
#ifndef SUPPORT_WRAP_H
#define SUPPORT_WRAP_H

#include "arena.h"

typedef struct wrapper {
    text *out;
    size_t column;
} wrapper;

void wrap_move(wrapper *w, size_t column); /* pads; starts a new line if the column is already passed */

/* Print from the column, where later lines start too. Prose breaks between words. An expression breaks before its
 * loosest operator; it breaks inside calls or parentheses only if it must. */
void wrap_prose(wrapper *w, const char *prose);
void wrap_expression(wrapper *w, const char *expression);

#endif
