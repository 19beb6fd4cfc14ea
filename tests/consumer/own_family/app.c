/* Adds 2 * x to y with saxpy.c's kernel: app [DRIVER]. */
#include "app.h"
#include "mine.h"

enum { N = 1000 };

static kiln_slot slots[MINE_SLOTS];
static kiln_loader loader;

int main(int argc, char **argv)
{
    static double x[N], y[N];
    CUdeviceptr at_x, at_y;
    for (int i = 0; i < N; i++) {
        x[i] = i;
        y[i] = 1;
    }
    if (no_device(argc > 1 ? argv[1] : NULL))
        return 77;
    if (failed("cuMemAlloc", driver.mem_alloc(&at_x, sizeof x)) ||
        failed("cuMemAlloc", driver.mem_alloc(&at_y, sizeof y)) ||
        failed("cuMemcpyHtoD", driver.memcpy_htod(at_x, x, sizeof x)) ||
        failed("cuMemcpyHtoD", driver.memcpy_htod(at_y, y, sizeof y)))
        return 1;

    kiln_status status = kiln_open(&loader, &driver, &mine_bundle, slots, MINE_SLOTS, NULL);
    if (status == KILN_OK)
        status =
            mine_saxpy(&loader, NULL,
                       &(mine_saxpy_args){.a = 2, .x = at_x, .y = at_y, .n = N, .type = MINE_SAXPY_TYPE_F64});
    if (refused(&loader, status) || failed("cuMemcpyDtoH", driver.memcpy_dtoh(y, at_y, sizeof y)))
        return 1;
    printf("%s: %s, %g %g %g\n", mine_bundle.name, kiln_status_string(status), y[0], y[1], y[N - 1]);
    status = kiln_close(&loader);
    driver.device_primary_ctx_release(0);
    kiln_driver_close(&driver);
    return refused(&loader, status);
}
