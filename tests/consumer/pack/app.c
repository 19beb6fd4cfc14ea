/* Unpacks NF4 codes with a family from a shared object: app PACK [DRIVER]. */
#include <dlfcn.h>
#include <stdio.h>

#include "extra.h"

enum { N = 64, MOST_SLOTS = 32 };

static kiln_driver driver;
static kiln_slot slots[MOST_SLOTS];
static kiln_loader loader;

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

/* Opens the driver and makes a context current. On failure, prints why. */
static int no_device(const char *path)
{
    CUcontext context;
    const char *missing;
    kiln_status status = kiln_driver_load(&driver, path, &missing);
    if (status != KILN_OK)
        printf("%s: %s\n", kiln_status_string(status), missing ? missing : dlerror());
    return status != KILN_OK || failed("cuInit", driver.init(0)) ||
           failed("cuDevicePrimaryCtxRetain", driver.device_primary_ctx_retain(&context, 0)) ||
           failed("cuCtxSetCurrent", driver.ctx_set_current(context));
}

static int fail(const char *what, const char *why)
{
    printf("%s: %s\n", what, why);
    return 1;
}

/* Returns true if the runtime refused a call, and prints why. */
static int refused(kiln_status status)
{
    kiln_error error;
    char text[512];
    if (status != KILN_OK) {
        kiln_last_error(&loader, &error);
        kiln_describe_error(&loader, &error, NULL, text, sizeof text);
        puts(text);
    }
    return status != KILN_OK;
}

/* Returns true after a failure. */
static int unpack(const kiln_index_family *family, float *out)
{
    const float scale = 2;
    unsigned char packed[N / 2];
    CUdeviceptr at_packed, at_scale, at_out;
    for (int i = 0; i < N / 2; i++)
        packed[i] = (unsigned char)(i % 16 * 17);
    if (failed("cuMemAlloc", driver.mem_alloc(&at_packed, sizeof packed)) ||
        failed("cuMemAlloc", driver.mem_alloc(&at_scale, sizeof scale)) ||
        failed("cuMemAlloc", driver.mem_alloc(&at_out, N * sizeof *out)) ||
        failed("cuMemcpyHtoD", driver.memcpy_htod(at_packed, packed, sizeof packed)) ||
        failed("cuMemcpyHtoD", driver.memcpy_htod(at_scale, &scale, sizeof scale)))
        return 1;
    const extra_nf4_unpack_args args = {.packed = at_packed, .scale = at_scale, .out = at_out, .n = N};
    const kiln_kernel *picked;
    if (refused(family->pick(&loader, &args, &picked)))
        return 1;
    printf("%s\n", picked->id);
    return refused(family->call(&loader, NULL, &args)) ||
           failed("cuMemcpyDtoH", driver.memcpy_dtoh(out, at_out, N * sizeof *out));
}

int main(int argc, char **argv)
{
    float out[N] = {0};
    void *pack = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    const kiln_index *index = pack ? dlsym(pack, "extra_index") : NULL;
    if (!index)
        return fail(argv[1], dlerror());
    if (no_device(argc > 2 ? argv[2] : NULL))
        return 77;
    /* KILN_ERROR_LAYOUT: made by a kiln that is incompatible with this program's */
    if (refused(kiln_open(&loader, &driver, index->bundle, slots, MOST_SLOTS, NULL)))
        return 1;
    const kiln_index_family *family = kiln_find_family(index, "nf4_unpack");
    if (!family || family->args_bytes != sizeof(extra_nf4_unpack_args))
        return fail("nf4_unpack", "no such family, or with other arguments than in the header");
    if (unpack(family, out))
        return 1;
    printf("%s: %u kernels, success, %g %g %g\n", index->bundle->name, (unsigned)index->bundle->kernel_count,
           (double)out[0], (double)out[14], (double)out[30]);
    const kiln_status status = kiln_close(&loader);
    driver.device_primary_ctx_release(0);
    kiln_driver_close(&driver);
    const int is_wrong = refused(status);
    dlclose(pack);
    return is_wrong;
}
