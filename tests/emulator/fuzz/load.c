/* Loading of any bytes: a module, or an error with a reason; no crash, no leak, no hang. */
#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static CUcontext context;
    (void)argc;
    (void)argv;
    fuzz_begin();
    fuzz_must(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    CUmodule module = fuzz_load(data, bytes);
    if (module)
        fuzz_must(cuModuleUnload(module), "cuModuleUnload");
    return 0;
}
