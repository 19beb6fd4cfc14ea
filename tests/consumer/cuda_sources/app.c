/* Scales eight numbers, reverses them and prints the first three: app [DRIVER]. */
#include <stdio.h>

#include "vectors.h"

enum { N = 8 };

static kiln_driver driver;
static kiln_slot slots[VECTORS_SLOTS];
static kiln_loader loader;

int main(int argc, char **argv)
{
    CUcontext context;
    CUdeviceptr x, y;
    float numbers[N];
    for (int i = 0; i < N; i++)
        numbers[i] = (float)i;

    if (kiln_driver_load(&driver, argc > 1 ? argv[1] : NULL, NULL) != KILN_OK)
        return 77;
    driver.init(0);
    driver.device_primary_ctx_retain(&context, 0);
    driver.ctx_set_current(context);
    driver.mem_alloc(&x, sizeof numbers);
    driver.mem_alloc(&y, sizeof numbers);
    driver.memcpy_htod(x, numbers, sizeof numbers);

    kiln_status status = kiln_open(&loader, &driver, &vectors_bundle, slots, VECTORS_SLOTS, NULL);
    if (status == KILN_OK)
        status = vectors_scale(&loader, NULL, &(vectors_scale_args){.y = y, .x = x, .a = 3, .n = N});
    if (status == KILN_OK)
        status = vectors_reverse(&loader, NULL, &(vectors_reverse_args){.y = x, .x = y, .n = N});
    driver.memcpy_dtoh(numbers, x, sizeof numbers);
    printf("%s, %g %g %g\n", kiln_status_string(status), (double)numbers[0], (double)numbers[1],
           (double)numbers[2]);
    kiln_close(&loader);
    driver.device_primary_ctx_release(0);
    kiln_driver_close(&driver);
    return status != KILN_OK;
}
