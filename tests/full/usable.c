/* Checks that kiln_usable predicts, for every kernel of a bundle, whether the device accepts a launch.
 *
 *     full_usable PACK INDEX MANIFEST DRIVER       with KILN_EMU_DEVICE, the list of devices
 *
 * A kernel with an image for the device is usable exactly if the device has the shared memory for the legal call that needs
 * the least. The emulated driver decides: like a GPU's driver, it accepts or refuses the launch. KILN_EMU_BLOCKS leaves out
 * all thread blocks, so nothing is computed. Kernels that fit on every device are only launched on the last device; on the
 * others they must be usable. Of several devices with the same shared memory only the first gets launches, and the others
 * must agree with it.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "execute.h"
#include "families/families.h"
#include "fill.h"

enum {
    EVERY_DEVICE_HAS = 48 * 1024,
    MOST_VARIANTS = 4096,
    MOST_ROOMS = 16,
    MANIFEST_BYTES = 1 << 24,
    TRIED_ELEMENTS = 1 << 16,
    TRIED_SIZES = 64,
    BUFFER_BYTES = 1 << 20
};

static device d;
static size_t wrong;

/* Each variant's scalars in the legal call that needs the least shared memory. */
static uint64_t least[MOST_VARIANTS][MAX_ARGS];
static bool has_least[MOST_VARIANTS];

/* Results of devices with this much shared memory, for variants that do not fit on every device. */
typedef struct verdict {
    uint32_t max_shared_bytes;
    bool is_known[MOST_VARIANTS], is_taken[MOST_VARIANTS];
} verdict;

static verdict verdicts[MOST_ROOMS];

static verdict *verdict_of(uint32_t max_shared_bytes)
{
    verdict *at = verdicts;
    while (at->max_shared_bytes && at->max_shared_bytes != max_shared_bytes)
        at++;
    at->max_shared_bytes = max_shared_bytes;
    return at;
}

static void complain(const manifest_variant *v, const char *what, const char *detail)
{
    wrong++;
    printf("WRONG %s on sm_%u: %s%s\n", v->id, (unsigned)d.loader.device.sm, what, detail);
}

static void plan_sizes(size_plan *plan, problem *p)
{
    const family_row *row = family_find(p->variant->family);
    const size_limits limits = {.max_elements = TRIED_ELEMENTS, .max_problems = TRIED_SIZES};
    size_plan_open(plan, p, &limits);
    if (row && row->plan)
        row->plan(plan);
    else
        size_plan_fill(plan, 1);
}

/* Plans for a device with enough shared memory for every size, so that no size is left out. */
static void find_least(const manifest_variant *v, uint64_t scalars[MAX_ARGS], bool *found)
{
    kiln_device roomy = d.loader.device;
    char error[256];
    uint64_t bytes, fewest = UINT64_MAX;
    size_plan plan;
    problem p;
    roomy.max_shared_bytes = UINT32_MAX;
    if (!problem_open(&p, v, &roomy, error, sizeof error))
        return;
    plan_sizes(&plan, &p);
    for (size_t i = 0; i < plan.count; i++) {
        size_plan_use(&plan, i);
        if (problem_measure(&p, NULL, error, sizeof error) != PROBLEM_LEGAL ||
            !problem_evaluate(&p, v->shared_bytes, &bytes, error, sizeof error) || bytes >= fewest)
            continue;
        fewest = bytes;
        *found = true;
        memcpy(scalars, plan.rows[i].values, sizeof plan.rows[i].values);
    }
    size_plan_close(&plan);
    problem_close(&p);
}

static kiln_status launch(const manifest_variant *v, const uint64_t scalars[MAX_ARGS],
                          const kiln_kernel *kernel, CUdeviceptr buffer)
{
    CUdeviceptr addresses[MAX_ARGS];
    argument_struct arguments;
    char error[256];
    problem p;
    if (!problem_open(&p, v, &d.loader.device, error, sizeof error))
        return KILN_ERROR_NOT_FOUND;
    for (size_t i = 0; i < MAX_ARGS; i++)
        addresses[i] = buffer;
    for (size_t i = 0; i < p.arg_count; i++)
        p.args[i].integer = scalars[i];
    argument_struct_fill(&arguments, &p, addresses);
    problem_close(&p);
    return kernel->launch(&d.loader, NULL, arguments.bytes);
}

/* The runtime must refuse a kernel that does not fit before the driver does, because the driver would not say why. */
static bool is_for_room(const kiln_error *error)
{
    return error->status == KILN_ERROR_BAD_ARGUMENT &&
           strcmp(error->detail, "bytes of shared memory per thread block") == 0 &&
           error->needed > error->present;
}

static bool is_launched(const manifest_variant *v, const uint64_t scalars[MAX_ARGS],
                        const kiln_kernel *kernel, CUdeviceptr buffer)
{
    char text[512];
    kiln_error error;
    if (launch(v, scalars, kernel, buffer) == KILN_OK)
        return true;
    kiln_last_error(&d.loader, &error);
    kiln_describe_error(&d.loader, &error, kernel, text, sizeof text);
    if (!is_for_room(&error))
        complain(v, "", text);
    return false;
}

/* Whether the device accepts variant i, which has an image for it. */
static bool is_taken(const manifest_variant *v, size_t i, const kiln_kernel *kernel, bool is_last,
                     CUdeviceptr buffer)
{
    verdict *of = verdict_of(d.loader.device.max_shared_bytes);
    const bool may_lack_room = kernel->max_shared_bytes + kernel->static_shared_bytes > EVERY_DEVICE_HAS;
    if (!is_last && !may_lack_room)
        return true;
    if (is_last || !of->is_known[i])
        of->is_taken[i] = is_launched(v, least[i], kernel, buffer);
    of->is_known[i] = true;
    return of->is_taken[i];
}

static void try_device(const manifest *m, bool is_last, CUdeviceptr buffer)
{
    size_t usable = 0, without_room = 0, without_image = 0;
    for (size_t i = 0; i < m->variant_count; i++) {
        const manifest_variant *v = &m->variants[i];
        const kiln_kernel *kernel = kiln_find(d.index, v->key);
        const bool has_image = kernel && kiln_select(&d.loader.device, kernel->module);
        const bool is_usable = kernel && kiln_usable(&d.loader, kernel);
        usable += is_usable;
        without_image += !has_image;
        without_room += has_image && !is_usable;
        if (!kernel || !has_least[i])
            complain(v, "no kernel, or no legal call", "");
        else if (is_usable != (has_image && is_taken(v, i, kernel, is_last, buffer)))
            complain(v, is_usable ? "usable, but no launch is taken" : "not usable, but launches are taken",
                     "");
    }
    printf("sm_%u: %zu usable, %zu without room, %zu without an image\n", (unsigned)d.loader.device.sm,
           usable, without_room, without_image);
}

static size_t count_devices(void)
{
    const char *list = getenv("KILN_EMU_DEVICE");
    size_t count = 1;
    for (; list && *list; list++)
        count += *list == ',';
    return count;
}

int main(int argc, char **argv)
{
    static char text[MANIFEST_BYTES];
    char error[1024] = "";
    pool memory = {0};
    if (argc != 5) {
        fputs("usage: full_usable PACK INDEX MANIFEST DRIVER\n", stderr);
        return 2;
    }
    void *pack = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    const kiln_index *index = pack ? dlsym(pack, argv[2]) : NULL;
    FILE *in = fopen(argv[3], "rb");
    const size_t bytes = in ? fread(text, 1, sizeof text, in) : 0;
    if (in)
        fclose(in);
    const manifest *m = index ? manifest_read(&memory, text, bytes, error, sizeof error) : NULL;
    if (!m || m->variant_count > MOST_VARIANTS) {
        fprintf(stderr, "full_usable: no bundle: %s\n", error);
        return 1;
    }
    setenv("KILN_EMU_BLOCKS", "4294967295-4294967295", 1);
    const size_t devices = count_devices();
    for (size_t i = 0; i < devices; i++) {
        CUdeviceptr buffer;
        if (device_open(&d, argv[4], i, index, error, sizeof error) != DEVICE_OK ||
            d.driver.mem_alloc(&buffer, BUFFER_BYTES) != 0) {
            fprintf(stderr, "full_usable: device %zu: %s\n", i, error);
            return 1;
        }
        for (size_t k = 0; i == 0 && k < m->variant_count; k++)
            find_least(&m->variants[k], least[k], &has_least[k]);
        try_device(m, i + 1 == devices, buffer);
        device_close(&d);
    }
    pool_free(&memory);
    printf("%zu wrong\n", wrong);
    return wrong != 0;
}
