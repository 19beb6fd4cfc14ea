/* What `kiln families` prints. */
#ifndef FAMILY_DESCRIBE_H
#define FAMILY_DESCRIBE_H

#include "family.h"
#include "support/json.h"

/* Prints one line per family. */
void describe_families(text *out, family_list families);

/* Prints one family; in full with the expressions of its rules, launch, cost and time. */
void describe_family(text *out, const kiln_family *family, bool in_full);

void describe_json(text *out, family_list families);

/* Writes the members with the family's name and its texts. */
void describe_json_words(json *j, const kiln_family *family);

#endif
