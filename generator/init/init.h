/* Writes a new project: a configuration with its lock, a CMakeLists.txt and a program. */
#ifndef INIT_INIT_H
#define INIT_INIT_H

#include <stdio.h>

#include "family/family.h"
#include "support/diagnostics.h"

/* A null member: not given. */
typedef struct init_options {
    const char *folder;  /* created if missing; null: the current one */
    const char *name;    /* of the bundle */
    const char *targets; /* words joined by commas */
    const char *model;   /* a GGUF file, or a config.json */
    const char *format;  /* of its weights, for a config.json without quantization_config */
    bool is_cxx;
} init_options;

enum { INIT_CONFIG, INIT_LOCK, INIT_CMAKE, INIT_PROGRAM, INIT_FILES };

typedef struct init_texts {
    text files[INIT_FILES];
    size_t variant_count;
    size_t lacking_count; /* lines on further needs of the model */
} init_texts;

/* False after diagnostics. */
bool init_make(arena *a, family_list families, const init_options *options, init_texts *made, diagnostics *d);

/* Writes all files, or none, after diagnostics; never replaces a file. Prints the next steps on `out`, unless that is
 * null. */
bool init_project(arena *a, family_list families, const init_options *options, FILE *out, diagnostics *d);

#endif
