/* Verifies a bundle that has only cubins by the PTX that they were compiled from; the program links a second
 * bundle with that PTX. */
#ifndef VERIFY_SHIPPED_H
#define VERIFY_SHIPPED_H

#include <kiln/kiln.h>

#include "manifest.h"

/* Checks that the cubins' manifest has the variants of `index`, and that each cubin that a device takes was
 * compiled from the PTX that the device takes from `index`. False after a message with variant and target. */
bool shipped_check(const manifest *cubins, const kiln_index *index);

/* Finds a variant's shipped images; false: there is no variant with this id. */
bool shipped_images(const manifest *cubins, const char *id, kiln_module *images);

#endif
