/* Whether two PTX texts are the same machine code, by the ptxas on the PATH. */
#ifndef VERIFY_MUTATE_PTXAS_H
#define VERIFY_MUTATE_PTXAS_H

#include <stdbool.h>
#include <stddef.h>

/* False: there is none, or it does not run. `version` gets what it says of itself, as "release 13.0, V13.0.88". */
bool ptxas_find(char *version, size_t bytes);

typedef enum code_comparison {
    CODE_DIFFERS,
    CODE_SAME,
    CODE_REFUSED /* it did not compile one of them */
} code_comparison;

/* Both for the target that the texts name: the code, constants and relocations of all functions are compared. */
code_comparison ptxas_compare(const char *one, const char *other);

#endif
