/* What `kiln families` prints. */
#ifndef FAMILY_DESCRIBE_H
#define FAMILY_DESCRIBE_H

#include <kiln/family.h>

#include "support/arena.h"

/* One line per family. */
void describe_families(text *out);

/* One family; in full with the expressions behind its rules, its launch, cost and time. */
void describe_family(text *out, const kiln_family *family, bool in_full);

/* The same as JSON: an array of all families, or of the one. */
void describe_json(text *out, const kiln_family *only);

#endif
