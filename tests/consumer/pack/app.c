/* Unpacks NF4 codes by a family of a shared object: app PACK [DRIVER]. */
#include <dlfcn.h>
#include <stdio.h>

#include "extra.h"

enum { N = 64, MOST_SLOTS = 32 };

static kiln_driver driver;
static kiln_slot slots[MOST_SLOTS];
static kiln_loader loader;

static int fail(const char *what, const char *why)
{
    printf("%s: %s\n", what, why);
    return 1;
}

static kiln_status unpack(const kiln_index_family *family, float *out)
{
    const float scale = 2;
    unsigned char packed[N / 2];
    CUdeviceptr at_packed, at_scale, at_out;
    for (int i = 0; i < N / 2; i++)
        packed[i] = (unsigned char)(i % 16 * 17);
    driver.mem_alloc(&at_packed, sizeof packed);
    driver.mem_alloc(&at_scale, sizeof scale);
    driver.mem_alloc(&at_out, N * sizeof *out);
    driver.memcpy_htod(at_packed, packed, sizeof packed);
    driver.memcpy_htod(at_scale, &scale, sizeof scale);
    const extra_nf4_unpack_args args = {.packed = at_packed, .scale = at_scale, .out = at_out, .n = N};
    const kiln_kernel *picked;
    kiln_status status = family->pick(&loader, &args, &picked);
    if (status == KILN_OK) {
        printf("%s\n", picked->id);
        status = family->call(&loader, NULL, &args);
    }
    driver.memcpy_dtoh(out, at_out, N * sizeof *out);
    return status;
}

int main(int argc, char **argv)
{
    CUcontext context;
    float out[N] = {0};
    void *pack = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    const kiln_index *index = pack ? dlsym(pack, "extra_index") : NULL;
    if (!index)
        return fail(argv[1], dlerror());
    if (kiln_driver_load(&driver, argc > 2 ? argv[2] : NULL, NULL) != KILN_OK)
        return 77;
    driver.init(0);
    driver.device_primary_ctx_retain(&context, 0);
    driver.ctx_set_current(context);

    kiln_status status = kiln_open(&loader, &driver, index->bundle, slots, MOST_SLOTS, NULL);
    if (status != KILN_OK) /* KILN_ERROR_LAYOUT: of a kiln that this program's does not go with */
        return fail(argv[1], kiln_status_string(status));
    const kiln_index_family *family = kiln_find_family(index, "nf4_unpack");
    if (!family || family->args_bytes != sizeof(extra_nf4_unpack_args))
        return fail("nf4_unpack", "no such family, or with other arguments than in the header");
    status = unpack(family, out);
    printf("%s: %u kernels, %s, %g %g %g\n", index->bundle->name, (unsigned)index->bundle->kernel_count,
           kiln_status_string(status), (double)out[0], (double)out[14], (double)out[30]);
    kiln_close(&loader);
    driver.device_primary_ctx_release(0);
    kiln_driver_close(&driver);
    dlclose(pack);
    return status != KILN_OK;
}
