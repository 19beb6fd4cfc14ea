/* JSON, as far as the reports need it. */
#ifndef VERIFY_JSON_H
#define VERIFY_JSON_H

#include <stdio.h>

/* "name": "text" */
void json_member(FILE *out, const char *name, const char *text);

#endif
