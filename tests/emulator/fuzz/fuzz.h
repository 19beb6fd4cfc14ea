/* Shared by the fuzz targets: the driver with its checks, loading, and error reports. */
#ifndef EMU_FUZZ_H
#define EMU_FUZZ_H

#include "cuda_api.h"
#include "replay.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void fuzz_must(CUresult r, const char *what)
{
    if (r == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s gave %d\n", what, (int)r);
    abort();
}

/* All checks and `lanes`, unless KILN_EMU_CHECK is set. FUZZ_SHOW=1 prints the driver's reports, to see why a kept input fails. */
static inline void fuzz_begin(void)
{
    setenv("KILN_EMU_VERBOSE", getenv("FUZZ_SHOW") ? "2" : "0", 1);
    setenv("KILN_EMU_CHECK", "all,lanes", 0);
    setenv("KILN_EMU_DEVICE", "sm_120,sm_75,sm_80,sm_90,sm_100", 1);
    setenv("KILN_EMU_JUMPS", "200", 1);
    setenv("KILN_EMU_THREADS", "1", 1);
    fuzz_must(cuInit(0), "cuInit");
}

static inline char *fuzz_text(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    if (!text)
        abort();
    if (bytes)
        memcpy(text, data, bytes);
    text[bytes] = '\0';
    return text;
}

/* Returns a module, or NULL. A refusal must have a reason. */
static inline CUmodule fuzz_load(const char *text)
{
    static char log[65536];
    int options[] = {5, 6};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module = NULL;
    log[0] = '\0';
    CUresult r = cuModuleLoadDataEx(&module, text, 2, options, values);
    if ((r == CUDA_SUCCESS) != (module != NULL))
        abort();
    if (r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY && !log[0])
        abort();
    if (r != CUDA_SUCCESS && getenv("FUZZ_SHOW"))
        fputs(log, stderr);
    return r == CUDA_SUCCESS ? module : NULL;
}

#endif
