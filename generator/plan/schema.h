/* What `kiln schema` prints: a JSON Schema of configurations, for editors. */
#ifndef PLAN_SCHEMA_H
#define PLAN_SCHEMA_H

#include "family/family.h"

/* Draft 2020-12. It takes every configuration that kiln takes; kiln says more of what is wrong. */
void schema_print(text *out, family_list families);

#endif
