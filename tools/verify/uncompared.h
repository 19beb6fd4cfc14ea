/* Checks which kernels have a reference, which are excused from one, and whether both lists are correct. */
#ifndef VERIFY_UNCOMPARED_H
#define VERIFY_UNCOMPARED_H

#include "manifest.h"

/* Checks that each reference of KILN_REFERENCE and each kernel listed as uncompared is in the manifest, and is
 * listed once. False after messages on stderr, one for each mistake. */
bool references_check(const manifest *m);

/* Returns whether a kernel may run without being compared. */
bool is_listed_as_uncompared(const char *family);

#endif
