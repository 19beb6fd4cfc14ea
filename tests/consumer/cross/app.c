/* Runs without a GPU and without the emulated driver: the driver table is filled by hand with functions that print the
 * runtime's requests. */
#include <stdio.h>
#include <string.h>

#include "minimal.h"

static int get_version(int *version)
{
    *version = 12080;
    return 0;
}

static int get_context(CUcontext *context)
{
    *context = (CUcontext)8;
    return 0;
}

static int get_device(int *device)
{
    *device = 0;
    return 0;
}

static int get_attribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == 75 ? 8 : attribute == 76 ? 7 : 0; /* compute capability 8.7 */
    return 0;
}

static int load(CUmodule *module, const void *image, unsigned int count, int *options, void **values)
{
    const char *target = strstr(image, ".target ");
    (void)count, (void)options, (void)values;
    printf("load PTX, %.13s\n", target ? target : "of no target");
    *module = (CUmodule)8;
    return 0;
}

static int unload(CUmodule module)
{
    (void)module;
    return 0;
}

static int get_function(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    printf("find %s\n", name);
    *function = (CUfunction)8;
    return 0;
}

static int set_attribute(CUfunction function, int attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return 0;
}

static int launch(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                  unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                  CUstream stream, void **params, void **extra)
{
    (void)function, (void)shared_bytes, (void)stream, (void)extra;
    printf("launch %u %u %u, %u %u %u, in %llx\n", grid_x, grid_y, grid_z, block_x, block_y, block_z,
           *(CUdeviceptr *)params[0]);
    return 0;
}

static const kiln_driver driver = {.driver_get_version = get_version,
                                   .ctx_get_current = get_context,
                                   .ctx_get_device = get_device,
                                   .device_get_attribute = get_attribute,
                                   .module_load_data_ex = load,
                                   .module_unload = unload,
                                   .module_get_function = get_function,
                                   .func_set_attribute = set_attribute,
                                   .launch_kernel = launch};
static kiln_slot slots[MINIMAL_SLOTS];
static kiln_loader loader;

int main(void)
{
    char text[512];
    kiln_error error;
    kiln_status status = kiln_open(&loader, &driver, &minimal_bundle, slots, MINIMAL_SLOTS, NULL);
    if (status == KILN_OK)
        status = minimal_nf4_quantize(
            &loader, NULL,
            &(minimal_nf4_quantize_args){.in = 0xabc00, .scale = 0x100, .packed = 0x200, .n = 1 << 20});
    kiln_last_error(&loader, &error);
    kiln_describe_error(&loader, &error, NULL, text, sizeof text);
    puts(text);
    kiln_close(&loader);
    return status != KILN_OK;
}
