/* Links the bundle and the runtime; without a driver there is nothing to launch on. */
#include <stdio.h>

#include "minimal.h"

static kiln_loader loader;

int main(void)
{
    const kiln_status status = minimal_axpy(&loader, NULL, &(minimal_axpy_args){.n = 1});
    printf("%s has %u kernels: %s\n", minimal_bundle.name, minimal_bundle.kernel_count,
           kiln_status_string(status));
    return status == KILN_ERROR_CLOSED ? 0 : 1;
}
