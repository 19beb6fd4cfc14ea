/* What a rule says to people. */
#ifndef FAMILY_RULE_TEXT_H
#define FAMILY_RULE_TEXT_H

#include <kiln/author/family.h>

#include "variant.h"

/* The rule's own text, and for which values of the parameters it counts: "k must be a multiple of 512 (where strategy !=
 * simt)" of the condition "strategy == simt || k % 512 == 0". Conditions on which
 * all variants that `common` stands for agree are left out; null: none is. */
const char *rule_text(arena *a, const kiln_family *family, const kiln_rule *rule, const variant *common);

#endif
