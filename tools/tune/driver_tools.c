/* The driver's entry points that measuring takes. */
#include "driver_tools.h"

#include <dlfcn.h>
#include <string.h>

const char *driver_tools_load(driver_tools *tools, const kiln_driver *driver)
{
    static const struct {
        const char *symbol;
        size_t offset;
    } entries[] = {
#define ENTRY(member, symbol, parameters) {symbol, offsetof(driver_tools, member)},
        DRIVER_TOOLS_FUNCTIONS(ENTRY)
#undef ENTRY
    };
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *address = dlsym(driver->library, entries[i].symbol);
        if (!address)
            return entries[i].symbol;
        memcpy((char *)tools + entries[i].offset, &address, sizeof address);
    }
    return NULL;
}
