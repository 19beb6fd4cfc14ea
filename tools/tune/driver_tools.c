/* Loads the driver's entry points for measuring. */
#include "driver_tools.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

const char *driver_tools_load(driver_tools *tools, const kiln_driver *driver)
{
    static const struct {
        const char *symbol;
        size_t offset;
        bool is_required;
    } entries[] = {
#define REQUIRED(member, symbol, parameters) {symbol, offsetof(driver_tools, member), true},
#define OPTIONAL(member, symbol, parameters) {symbol, offsetof(driver_tools, member), false},
        DRIVER_TOOLS_FUNCTIONS(REQUIRED) DRIVER_TOOLS_GRAPH_FUNCTIONS(OPTIONAL)
#undef REQUIRED
#undef OPTIONAL
    };
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *address = dlsym(driver->library, entries[i].symbol);
        if (!address && entries[i].is_required)
            return entries[i].symbol;
        memcpy((char *)tools + entries[i].offset, &address, sizeof address);
    }
    return NULL;
}
