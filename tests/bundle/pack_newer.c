/* A pack of a later layout. The runtime may only rely on the version's offset, so no memory follows the version or the
 * pointer to it. */
#include <kiln/bundle.h>

static const uint32_t bundle[] = {KILN_LAYOUT_VERSION + 1};
extern const void *const sample_index[];
const void *const sample_index[] = {bundle};
