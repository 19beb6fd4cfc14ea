/* Reads facts from a Hugging Face model's config.json. */
#ifndef INIT_CONFIG_JSON_H
#define INIT_CONFIG_JSON_H

#include "family/family.h"
#include "model/facts.h"

/* `format`: of the weights; null: as in the file's quantization_config. False after a diagnostic. */
bool model_read_json(arena *a, family_list families, const char *path, const char *format, model_facts *m,
                     diagnostics *d);

/* All formats that kiln has products for, as words. */
const char *model_formats(arena *a, family_list families);

#endif
