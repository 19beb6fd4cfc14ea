/* Quantises one group with one bundle and unpacks it with the other: app DRIVER. */
#include <stdio.h>

#include "packing.h"
#include "unpacking.h"

enum { N = 64 };

static kiln_driver driver;
static kiln_slot packing_slots[PACKING_SLOTS], unpacking_slots[UNPACKING_SLOTS];
static kiln_loader packing, unpacking;

int main(int argc, char **argv)
{
    CUcontext context;
    CUdeviceptr in, scale, packed, out;
    float x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = y[i] = i % 3 == 0 ? -2.0f : i % 3 == 1 ? 2.0f : 0.0f;

    if (kiln_driver_load(&driver, argc > 1 ? argv[1] : NULL, NULL) != KILN_OK)
        return 77;
    driver.init(0);
    driver.device_primary_ctx_retain(&context, 0);
    driver.ctx_set_current(context);
    driver.mem_alloc(&in, sizeof x);
    driver.mem_alloc(&out, sizeof y);
    driver.mem_alloc(&scale, sizeof(float));
    driver.mem_alloc(&packed, N / 2);
    driver.memcpy_htod(in, x, sizeof x);

    kiln_status status = kiln_open(&packing, &driver, &packing_bundle, packing_slots, PACKING_SLOTS, NULL);
    if (status == KILN_OK)
        status = kiln_open(&unpacking, &driver, &unpacking_bundle, unpacking_slots, UNPACKING_SLOTS, NULL);
    if (status == KILN_OK)
        status = packing_nf4_quantize(
            &packing, NULL, &(packing_nf4_quantize_args){.in = in, .scale = scale, .packed = packed, .n = N});
    if (status == KILN_OK)
        status = unpacking_nf4_unpack(
            &unpacking, NULL,
            &(unpacking_nf4_unpack_args){.packed = packed, .scale = scale, .out = out, .n = N});
    driver.memcpy_dtoh(y, out, sizeof y);
    printf("%s, %g %g %g\n", kiln_status_string(status), (double)y[0], (double)y[1], (double)y[2]);
    kiln_close(&unpacking);
    kiln_close(&packing);
    return status != KILN_OK;
}
