/* Quantises one group with one bundle and unpacks it with the other: app DRIVER. */
#include "app.h"
#include "packing.h"
#include "unpacking.h"

enum { N = 64 };

static kiln_slot packing_slots[PACKING_SLOTS], unpacking_slots[UNPACKING_SLOTS];
static kiln_loader packing, unpacking;

int main(int argc, char **argv)
{
    CUdeviceptr in, scale, packed, out;
    float x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = y[i] = i % 3 == 0 ? -2.0f : i % 3 == 1 ? 2.0f : 0.0f;

    if (no_device(argc > 1 ? argv[1] : NULL))
        return 77;
    if (failed("cuMemAlloc", driver.mem_alloc(&in, sizeof x)) ||
        failed("cuMemAlloc", driver.mem_alloc(&out, sizeof y)) ||
        failed("cuMemAlloc", driver.mem_alloc(&scale, sizeof(float))) ||
        failed("cuMemAlloc", driver.mem_alloc(&packed, N / 2)) ||
        failed("cuMemcpyHtoD", driver.memcpy_htod(in, x, sizeof x)))
        return 1;

    const packing_nf4_quantize_args pack = {.in = in, .scale = scale, .packed = packed, .n = N};
    const unpacking_nf4_unpack_args unpack = {.packed = packed, .scale = scale, .out = out, .n = N};
    if (refused(&packing,
                kiln_open(&packing, &driver, &packing_bundle, packing_slots, PACKING_SLOTS, NULL)) ||
        refused(&unpacking,
                kiln_open(&unpacking, &driver, &unpacking_bundle, unpacking_slots, UNPACKING_SLOTS, NULL)) ||
        refused(&packing, packing_nf4_quantize(&packing, NULL, &pack)) ||
        refused(&unpacking, unpacking_nf4_unpack(&unpacking, NULL, &unpack)) ||
        failed("cuMemcpyDtoH", driver.memcpy_dtoh(y, out, sizeof y)))
        return 1;
    printf("success, %g %g %g\n", (double)y[0], (double)y[1], (double)y[2]);
    return refused(&unpacking, kiln_close(&unpacking)) + refused(&packing, kiln_close(&packing));
}
