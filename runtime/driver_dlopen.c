/* Fills the table of driver functions from a library. The only file that calls dlopen. */
#include <dlfcn.h>
#include <string.h>

#include "internal.h"

static const char *fill(kiln_driver *driver);

kiln_status kiln_driver_load(kiln_driver *driver, const char *path, const char **missing_symbol)
{
    if (missing_symbol != NULL)
        *missing_symbol = NULL;
    if (driver == NULL)
        return KILN_ERROR_NULL_POINTER;
    memset(driver, 0, sizeof *driver);
    driver->library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver->library == NULL)
        return KILN_ERROR_DRIVER_NOT_FOUND;
    const char *missing = fill(driver);
    if (missing == NULL)
        return KILN_OK;
    kiln_driver_close(driver);
    if (missing_symbol != NULL)
        *missing_symbol = missing;
    return KILN_ERROR_DRIVER_SYMBOL;
}

void kiln_driver_close(kiln_driver *driver)
{
    if (driver == NULL)
        return;
    if (driver->library != NULL)
        dlclose(driver->library);
    memset(driver, 0, sizeof *driver);
}

/* Returns null, or the first required entry point that the library lacks. */
static const char *fill(kiln_driver *driver)
{
    static const struct {
        const char *symbol;
        uint16_t offset, is_optional;
    } entries[] = {
#define REQUIRED(member, symbol, parameters) {symbol, offsetof(kiln_driver, member), 0},
#define OPTIONAL(member, symbol, parameters) {symbol, offsetof(kiln_driver, member), 1},
        KILN_DRIVER_RUNTIME_FUNCTIONS(REQUIRED) KILN_DRIVER_APPLICATION_FUNCTIONS(REQUIRED)
            KILN_DRIVER_OPTIONAL_FUNCTIONS(OPTIONAL)
#undef REQUIRED
#undef OPTIONAL
    };
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *address = dlsym(driver->library, entries[i].symbol);
        if (address == NULL && !entries[i].is_optional)
            return entries[i].symbol;
        /* ISO C has no conversion from an object pointer to a function pointer; POSIX guarantees one representation. */
        memcpy((char *)driver + entries[i].offset, &address, sizeof address);
    }
    return NULL;
}
