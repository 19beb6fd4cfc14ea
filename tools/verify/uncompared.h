/* Which kernels have a reference, which are excused from one, and what is wrong with either list. */
#ifndef VERIFY_UNCOMPARED_H
#define VERIFY_UNCOMPARED_H

#include "manifest.h"

/* Whether the references of KILN_REFERENCE and the kernels that are listed as uncompared are the manifest's, each once.
 * False after messages on stderr, one for each mistake. */
bool references_check(const manifest *m);

/* Whether a kernel that runs without being compared is excused. */
bool is_listed_as_uncompared(const char *family);

#endif
