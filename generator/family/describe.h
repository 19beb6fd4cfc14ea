/* What `kiln families` prints. */
#ifndef FAMILY_DESCRIBE_H
#define FAMILY_DESCRIBE_H

#include "family.h"
#include "support/json.h"

/* One line per family. */
void describe_families(text *out, family_list families);

/* One family; in full with the expressions behind its rules, its launch, cost and time. */
void describe_family(text *out, const kiln_family *family, bool in_full);

/* Families as a JSON array. */
void describe_json(text *out, family_list families);

/* Members with its name and what is said of it in words. */
void describe_json_words(json *j, const kiln_family *family);

#endif
