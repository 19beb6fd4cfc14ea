/* The configuration: YAML -> plan. */
#ifndef PLAN_CONFIG_H
#define PLAN_CONFIG_H

#include "plan.h"

/* Reads a configuration. Null after diagnostics (messages.h), which name `path` as given. `targets`, when not null, are
 * words joined by commas that take the place of the configuration's; of those diagnostics say "--targets:1:COLUMN". */
plan *config_read(arena *a, family_list families, const char *path, const char *targets, diagnostics *d);

/* The same for a text already in memory. */
plan *config_read_text(arena *a, family_list families, const char *path, const char *data, size_t bytes,
                       const char *targets, diagnostics *d);

#endif
