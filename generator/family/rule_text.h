/* Prints rules for people. */
#ifndef FAMILY_RULE_TEXT_H
#define FAMILY_RULE_TEXT_H

#include <kiln/author/family.h>

#include "variant.h"

/* The rule's own text, and the parameter values for which it applies: "k must be a multiple of 512 (where strategy !=
 * simt)" for the condition "strategy == simt || k % 512 == 0". Conditions on which all variants of `common` agree are
 * omitted; null: none are. */
const char *rule_text(arena *a, const kiln_family *family, const kiln_rule *rule, const variant *common);

#endif
