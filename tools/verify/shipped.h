/* A bundle of cubins alone is verified by the PTX that they are made of: by another bundle, which this program links. */
#ifndef VERIFY_SHIPPED_H
#define VERIFY_SHIPPED_H

#include <kiln/kiln.h>

#include "manifest.h"

/* Whether the manifest of the cubins is of the variants of `index`, and each cubin that a device takes is made of the PTX that
 * the device takes of `index`. False after a message with variant and target. */
bool shipped_check(const manifest *cubins, const kiln_index *index);

/* The images that ship of a variant; false: there are none of this name. */
bool shipped_images(const manifest *cubins, const char *id, kiln_module *images);

#endif
