/* A pack of a later layout, of which this one's runtime can rely on nothing but the version's place: after it and after
 * the pointer to it there is nothing to read. */
#include <kiln/bundle.h>

static const uint32_t bundle[] = {KILN_LAYOUT_VERSION + 1};
extern const void *const sample_index[];
const void *const sample_index[] = {bundle};
