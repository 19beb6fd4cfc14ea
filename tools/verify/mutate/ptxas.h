/* Compares the machine code of two PTX texts, as compiled by the ptxas on the PATH. */
#ifndef VERIFY_MUTATE_PTXAS_H
#define VERIFY_MUTATE_PTXAS_H

#include <stdbool.h>
#include <stddef.h>

/* Runs ptxas --version. False: there is none, or it does not run. Sets `version`, such as "release 13.0,
 * V13.0.88". */
bool ptxas_find(char *version, size_t bytes);

typedef enum code_comparison {
    CODE_DIFFERS,
    CODE_SAME,
    CODE_REFUSED /* it did not compile both */
} code_comparison;

/* Compiles both for the target that the texts name, and compares code, constants and relocations of all functions. */
code_comparison ptxas_compare(const char *one, const char *other);

#endif
