/* The configuration: YAML -> plan. */
#ifndef PLAN_CONFIG_H
#define PLAN_CONFIG_H

#include "plan.h"

/* What a command line adds to a configuration. All zero: nothing. */
typedef struct config_options {
    const char *targets; /* words joined by commas in place of the configuration's */
    const char *images;  /* likewise */
    const char *const
        *ptx; /* each "NAME=FILE,...": a module of what `ptx: NAME` embeds, one file per target */
    size_t ptx_count;
    /* Appends the variants of items with shapes, or gives diagnostics: choose/choose.h. Null: such items have none. */
    void (*choose)(arena *a, plan *p, diagnostics *d, const void *context);
    const void *choose_context;
} config_options;

/* Reads a configuration. Null after diagnostics (messages.h), which name `path` as given; of options they name
 * the option alone, as command line and CMake have it. */
plan *config_read(arena *a, family_list families, const char *path, const config_options *options,
                  diagnostics *d);

/* The same for a text already in memory. */
plan *config_read_text(arena *a, family_list families, const char *path, const char *data, size_t bytes,
                       const config_options *options, diagnostics *d);

#endif
