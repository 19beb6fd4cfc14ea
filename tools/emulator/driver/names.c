/* Names of entry points: cuGetProcAddress returns the one that a program of the given CUDA version was compiled against.
   Names of results. */
#include "api.h"

#include <string.h>

typedef void entry_point(void);

static const struct {
    const char *name;
    int version;
    entry_point *function;
} entries[] = {
#define E(name, suffix, version, parameters) {#name, version, (entry_point *)name##suffix},
#include "entry_points.def"
#undef E
};

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status)
{
    enum { FOUND, NOT_FOUND, VERSION_NOT_SUFFICIENT, MOST_FLAGS = 3 };
    int driver, answer = NOT_FOUND;
    CUresult r = cuDriverGetVersion(&driver);
    if (r != CUDA_SUCCESS || !symbol || !function || flags > MOST_FLAGS || version > driver)
        return CUDA_ERROR_INVALID_VALUE;
    *function = NULL;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (strcmp(symbol, entries[i].name) == 0 && entries[i].version <= driver) {
            if (version >= entries[i].version)
                memcpy(function, &entries[i].function, sizeof *function);
            answer = *function ? FOUND : VERSION_NOT_SUFFICIENT;
        }
    if (status)
        *status = answer;
    return CUDA_SUCCESS;
}

/* Returns the undocumented tables of NVIDIA's libraries: there are none. NVRTC calls this without checking that it
   exists. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    if (!table || !id)
        return CUDA_ERROR_INVALID_VALUE;
    *table = NULL;
    return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    CUresult r = cuGetProcAddress_v2(symbol, function, version, flags, NULL);
    return r == CUDA_SUCCESS && !*function ? CUDA_ERROR_NOT_FOUND : r;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    const emu_error *e = emu_error_of(error);
    *name = e ? e->name : NULL;
    return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    const emu_error *e = emu_error_of(error);
    *text = e ? e->text : NULL;
    return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
