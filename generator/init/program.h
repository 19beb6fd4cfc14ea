/* Makes a program that tries the items. */
#ifndef INIT_PROGRAM_H
#define INIT_PROGRAM_H

#include "items.h"

typedef struct program_options {
    const char *name; /* of the bundle */
    bool is_cxx;
} program_options;

/* m null: prints the example's program. */
void program_print(text *out, const init_items *items, const model_facts *m, const program_options *options);
void program_print_cmake(text *out, const program_options *options);

#endif
