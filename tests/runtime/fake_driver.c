#include "fake_driver.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

fake_driver fake;

void fake_reset(void)
{
    fake = (fake_driver){.version = 12080,
                         .major = 9,
                         .minor = 0,
                         .multiprocessors = 132,
                         .max_shared_bytes = 227 * 1024,
                         .current = FAKE_CONTEXT,
                         .fail_result = 999};
}

const char *fake_call_symbol(fake_call call)
{
    static const char *const symbols[] = {
#define SYMBOL(member, symbol, parameters) symbol,
        KILN_DRIVER_RUNTIME_FUNCTIONS(SYMBOL)
#undef SYMBOL
    };
    return symbols[call];
}

/* Records the call. Returns the scripted error, or 0. */
static int enter(fake_call call)
{
    __atomic_add_fetch(&fake.counts[call], 1, __ATOMIC_RELAXED);
    int number = __atomic_add_fetch(&fake.calls, 1, __ATOMIC_RELAXED);
    if (number != fake.fail_at)
        return 0;
    fake.failed = call;
    return fake.fail_result;
}

static int get_version(int *version)
{
    int result = enter(FAKE_driver_get_version);
    if (result == 0)
        *version = fake.version;
    return result;
}

static int get_current(CUcontext *context)
{
    int result = enter(FAKE_ctx_get_current);
    if (result == 0)
        *context = fake.current;
    return result;
}

static int get_device(int *device)
{
    int result = enter(FAKE_ctx_get_device);
    if (result == 0)
        *device = 7;
    return result;
}

/* Numbers from cuda.h, repeated here to check the runtime's copy. */
static int get_attribute(int *value, int attribute, int device)
{
    int result = enter(FAKE_device_get_attribute);
    if (result != 0)
        return result;
    if (device != 7)
        return 101;
    switch (attribute) {
    case 16:
        *value = fake.multiprocessors;
        return 0;
    case 75:
        *value = fake.major;
        return 0;
    case 76:
        *value = fake.minor;
        return 0;
    case 97:
        *value = fake.max_shared_bytes;
        return 0;
    default:
        return 1;
    }
}

static int load_data(CUmodule *module, const void *image, unsigned int count, int *options, void **values)
{
    int result = enter(FAKE_module_load_data_ex);
    fake.option_count = (int)count;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == 6)
            fake.log_bytes = (int)(uintptr_t)values[i];
    }
    for (int i = 0; i < fake.load_yields; i++)
        sched_yield();
    if (result != 0) {
        /* Writes garbage to the result and fills the log without a NUL, as a real driver may. */
        *module = (CUmodule)(uintptr_t)0xbad;
        for (unsigned i = 0; i < count && fake.log != NULL; i++) {
            if (options[i] == 5) {
                size_t length = strlen(fake.log) + 1;
                memcpy(values[i], fake.log,
                       length < (size_t)fake.log_bytes ? length : (size_t)fake.log_bytes);
            }
        }
        return result;
    }
    for (int i = 0; i < FAKE_MAX_MODULES; i++) {
        if (!fake.modules[i].loaded) {
            fake.modules[i].loaded = 1;
            fake.modules[i].image = image;
            fake.loaded_image = image;
            *module = (CUmodule)&fake.modules[i];
            fake.loads++;
            return 0;
        }
    }
    return 2;
}

static int unload(CUmodule module)
{
    int result = enter(FAKE_module_unload);
    for (int i = 0; i < FAKE_MAX_MODULES && result == 0; i++) {
        if (module == (CUmodule)&fake.modules[i] && fake.modules[i].loaded) {
            fake.modules[i].loaded = 0;
            fake.unloads++;
            return 0;
        }
    }
    return result != 0 ? result : 400;
}

/* The function of an entry is the address of its name. */
static int get_function(CUfunction *function, CUmodule module, const char *name)
{
    int result = enter(FAKE_module_get_function);
    if (result != 0)
        return result;
    for (int i = 0; i < FAKE_MAX_MODULES; i++) {
        if (module == (CUmodule)&fake.modules[i] && fake.modules[i].loaded) {
            *function = (CUfunction)(uintptr_t)name;
            return 0;
        }
    }
    return 400;
}

static int set_attribute(CUfunction function, int attribute, int value)
{
    int result = enter(FAKE_func_set_attribute);
    if (result != 0)
        return result;
    if (function == NULL || value > fake.max_shared_bytes)
        return 1;
    fake.attribute = attribute;
    fake.attribute_value = value;
    return 0;
}

static int launch(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                  unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                  CUstream stream, void **params, void **extra)
{
    int result = enter(FAKE_launch_kernel);
    if (result != 0)
        return result;
    if (function == NULL || extra != NULL)
        return 400;
    static int lock; /* threads launch at once */
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        sched_yield();
    fake.launch = (fake_launch){.function = function,
                                .grid = {grid_x, grid_y, grid_z},
                                .block = {block_x, block_y, block_z},
                                .shared_bytes = shared_bytes,
                                .stream = stream,
                                .params = params};
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    return 0;
}

static int error_name(int result, const char **text)
{
    if (result != 218)
        return 1;
    *text = "CUDA_ERROR_INVALID_PTX";
    return 0;
}

const kiln_driver fake_table = {.driver_get_version = get_version,
                                .ctx_get_current = get_current,
                                .ctx_get_device = get_device,
                                .device_get_attribute = get_attribute,
                                .module_load_data_ex = load_data,
                                .module_unload = unload,
                                .module_get_function = get_function,
                                .func_set_attribute = set_attribute,
                                .launch_kernel = launch,
                                .get_error_name = error_name};
