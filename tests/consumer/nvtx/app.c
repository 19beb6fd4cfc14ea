/* Quantises two groups in an NVTX range; each launch has its own range inside it: app [DRIVER]. */
#include <stdio.h>

#include <kiln/trace.h>
#include <nvtx3/nvToolsExt.h>

#include "minimal.h"

enum { N = 64 };

static kiln_driver driver;
static kiln_slot slots[MINIMAL_SLOTS];
static kiln_loader loader;

/* Names the range as "nf4_quantize n=64 grid 1 block 256 shared 0 nf4_quantize/type=f32,...". */
static void push_and_pop(void *context, const kiln_launch_event *event)
{
    char name[512];
    (void)context;
    if (event->is_after) {
        nvtxRangePop();
    } else {
        kiln_describe_launch(event, name, sizeof name);
        nvtxRangePushA(name);
    }
}

/* Returns true if a driver call failed, and prints why. */
static int failed(const char *call, int result)
{
    char text[256];
    if (result != 0) {
        kiln_describe_driver(&driver, call, result, text, sizeof text);
        puts(text);
    }
    return result != 0;
}

static kiln_status quantize(CUdeviceptr in, CUdeviceptr scale, CUdeviceptr packed, uint64_t n)
{
    return minimal_nf4_quantize(
        &loader, NULL, &(minimal_nf4_quantize_args){.in = in, .scale = scale, .packed = packed, .n = n});
}

int main(int argc, char **argv)
{
    const kiln_options options = {.launch_hook = push_and_pop};
    CUcontext context;
    CUdeviceptr in, scale, packed;
    kiln_error error;
    char text[512];
    if (kiln_driver_load(&driver, argc > 1 ? argv[1] : NULL, NULL) != KILN_OK || driver.init(0) != 0) {
        puts("no device; name the emulated driver: app DRIVER");
        return 77;
    }
    if (failed("cuDevicePrimaryCtxRetain", driver.device_primary_ctx_retain(&context, 0)) ||
        failed("cuCtxSetCurrent", driver.ctx_set_current(context)) ||
        failed("cuMemAlloc", driver.mem_alloc(&in, 2 * N * 4)) ||
        failed("cuMemAlloc", driver.mem_alloc(&scale, 2 * 4)) ||
        failed("cuMemAlloc", driver.mem_alloc(&packed, 2 * N / 2)) ||
        failed("cuMemsetD8", driver.memset_d8(in, 0, 2 * N * 4)))
        return 1;

    kiln_status status = kiln_open(&loader, &driver, &minimal_bundle, slots, MINIMAL_SLOTS, &options);
    nvtxRangePushA("step");
    if (status == KILN_OK)
        status = quantize(in, scale, packed, N);
    if (status == KILN_OK)
        status = quantize(in, scale, packed, 2 * N);
    nvtxRangePop();
    kiln_last_error(&loader, &error);
    kiln_describe_error(&loader, &error, NULL, text, sizeof text);
    puts(text);
    if (failed("cuCtxSynchronize", driver.ctx_synchronize()) || status != KILN_OK)
        return 1;
    return kiln_close(&loader) != KILN_OK;
}
