/* What a rule says to people. */
#ifndef FAMILY_RULE_TEXT_H
#define FAMILY_RULE_TEXT_H

#include <kiln/author/family.h>

#include "variant.h"

/* The rule's own text, and for which values of the parameters it counts: "k must be a multiple of 512 (where strategy !=
 * simt)" of the condition "strategy == simt || k % 512 == 0". Values that no variant has are not named: `common` stands for the
 * variants that there are; null: all of the family. */
const char *rule_text(arena *a, const kiln_family *family, const kiln_rule *rule, const variant *common);

#endif
