/* Picks the build of the handlers for the host's processor. Results are the same at every level; a test compares them with
   KILN_EMU_LEVEL=base. */
#include "operations.h"

#include <stdlib.h>
#include <string.h>

extern const emu_level emu_level_base;

#if defined(__x86_64__)
extern const emu_level emu_level_v3;

const emu_level *emu_host_level(void)
{
    const char *wanted = getenv("KILN_EMU_LEVEL");
    if (wanted && strcmp(wanted, "base") == 0)
        return &emu_level_base;
    bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    return v3 ? &emu_level_v3 : &emu_level_base;
}
#else
const emu_level *emu_host_level(void)
{
    return &emu_level_base;
}
#endif
