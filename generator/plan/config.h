/* The configuration: YAML -> plan. */
#ifndef PLAN_CONFIG_H
#define PLAN_CONFIG_H

#include "plan.h"

/* The command line's additions to a configuration. All zero: none. */
typedef struct config_options {
    const char *targets; /* words joined by commas that replace the configuration's */
    const char *images;  /* words joined by commas that replace the configuration's */
    const char *const
        *ptx; /* each "NAME=FILE,...": the module that `ptx: NAME` embeds, one file per target */
    size_t ptx_count;
    /* Appends the variants of items with shapes, or gives diagnostics: choose/choose.h. Null: such items have none. */
    void (*choose)(arena *a, plan *p, diagnostics *d, const void *context);
    const void *choose_context;
} config_options;

/* Reads a configuration. Null after diagnostics (messages.h), which name `path` as given; for options they name only
 * the option, as on the command line and in CMake. */
plan *config_read(arena *a, family_list families, const char *path, const config_options *options,
                  diagnostics *d);

plan *config_read_text(arena *a, family_list families, const char *path, const char *data, size_t bytes,
                       const config_options *options, diagnostics *d);

#endif
