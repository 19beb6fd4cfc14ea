/* What `kiln schema` prints: a JSON Schema of configurations, for editors. */
#ifndef PLAN_SCHEMA_H
#define PLAN_SCHEMA_H

#include "family/family.h"

/* Draft 2020-12. It accepts every configuration that kiln accepts; kiln rejects more. */
void schema_print(text *out, family_list families);

#endif
