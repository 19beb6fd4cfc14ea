/* Quantises one group and prints its scale and codes: app [DRIVER]. */
#include <stdio.h>

#include "minimal.h"

enum { N = 64 };

static kiln_driver driver;
static kiln_slot slots[MINIMAL_SLOTS];
static kiln_loader loader;

int main(int argc, char **argv)
{
    CUcontext context;
    CUdeviceptr in, scale, packed;
    float x[N], s = 0;
    unsigned char codes[N / 2] = {0};
    for (int i = 0; i < N; i++)
        x[i] = (float)(i - 32) / 4;

    if (kiln_driver_load(&driver, argc > 1 ? argv[1] : NULL, NULL) != KILN_OK) {
        puts("there is no CUDA driver here; name the emulated one: app DRIVER");
        return 77;
    }
    driver.init(0);
    driver.device_primary_ctx_retain(&context, 0);
    driver.ctx_set_current(context);
    driver.mem_alloc(&in, sizeof x);
    driver.mem_alloc(&scale, sizeof s);
    driver.mem_alloc(&packed, sizeof codes);
    driver.memcpy_htod(in, x, sizeof x);

    kiln_status status = kiln_open(&loader, &driver, &minimal_bundle, slots, MINIMAL_SLOTS, NULL);
    if (status == KILN_OK)
        status = minimal_nf4_quantize(
            &loader, NULL, &(minimal_nf4_quantize_args){.in = in, .scale = scale, .packed = packed, .n = N});
    driver.memcpy_dtoh(&s, scale, sizeof s);
    driver.memcpy_dtoh(codes, packed, sizeof codes);
    printf("%s: %s, scale %g, codes", minimal_bundle.name, kiln_status_string(status), (double)s);
    for (int i = 0; i < N / 2; i += 8)
        printf(" %02x", codes[i]);
    puts("");
    kiln_close(&loader);
    driver.device_primary_ctx_release(0);
    kiln_driver_close(&driver);
    return status != KILN_OK;
}
