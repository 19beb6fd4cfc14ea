/* JSON, as far as the reports write it. */
#ifndef SUPPORT_JSON_H
#define SUPPORT_JSON_H

#include <stdio.h>

/* "text"; bytes that are no UTF-8 become U+FFFD. */
void json_string(FILE *out, const char *text);

/* "name": "text" */
void json_member(FILE *out, const char *name, const char *text);

#endif
