/* Unpacks NF4 codes with a family from a shared object: app PACK [DRIVER]. */
#include "app.h"
#include "extra.h"

enum { N = 64, MOST_SLOTS = 32 };

static kiln_slot slots[MOST_SLOTS];
static kiln_loader loader;

static int fail(const char *what, const char *why)
{
    printf("%s: %s\n", what, why);
    return 1;
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
    if (refused(&loader, family->pick(&loader, &args, &picked)))
        return 1;
    printf("%s\n", picked->id);
    return refused(&loader, family->call(&loader, NULL, &args)) ||
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
    if (refused(&loader, kiln_open(&loader, &driver, index->bundle, slots, MOST_SLOTS, NULL)))
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
    const int is_wrong = refused(&loader, status);
    dlclose(pack);
    return is_wrong;
}
