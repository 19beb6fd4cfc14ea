/* The two fuzz targets, each with the one function that libFuzzer and the replay program call. */
#ifndef EMU_FUZZ_H
#define EMU_FUZZ_H

#include "cuda_api.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static inline void fuzz_must(CUresult r, const char *what)
{
    if (r == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s gave %d\n", what, (int)r);
    abort();
}

static inline void fuzz_begin(void)
{
    setenv("KILN_EMU_VERBOSE", "0", 1);
    setenv("KILN_EMU_CHECK", "all", 1);
    setenv("KILN_EMU_DEVICE", "sm_120", 1);
    setenv("KILN_EMU_JUMPS", "2000", 1);
    fuzz_must(cuInit(0), "cuInit");
}

/* A NUL-terminated copy, and a module of it or NULL; a refusal must say why. */
static inline CUmodule fuzz_load(const uint8_t *data, size_t bytes)
{
    static char log[65536];
    int options[] = {5, 6};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module = NULL;
    char *text = malloc(bytes + 1);
    if (!text)
        return NULL;
    if (bytes)
        memcpy(text, data, bytes);
    text[bytes] = '\0';
    log[0] = '\0';
    CUresult r = cuModuleLoadDataEx(&module, text, 2, options, values);
    free(text);
    if ((r == CUDA_SUCCESS) != (module != NULL))
        abort();
    if (r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY && !log[0])
        abort();
    return r == CUDA_SUCCESS ? module : NULL;
}

#endif
