/* A pack of a later layout, of which this one's runtime can rely on nothing but where the version stands: behind it and
 * behind the pointer to it there is nothing to read. */
#include <kiln/bundle.h>

static const uint32_t bundle[] = {KILN_LAYOUT_VERSION + 1};
extern const void *const sample_index[];
const void *const sample_index[] = {bundle};
