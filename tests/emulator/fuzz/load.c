/* Loads any bytes: must return a module, or an error with a reason, without a crash, a leak or a hang. */
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
    char *text = fuzz_text(data, bytes);
    CUmodule module = fuzz_load(text);
    if (module)
        fuzz_must(cuModuleUnload(module), "cuModuleUnload");
    free(text);
    return 0;
}
