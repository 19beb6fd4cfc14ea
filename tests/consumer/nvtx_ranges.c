/* Takes a profiler's place: NVTX loads the library that NVTX_INJECTION64_PATH names. It prints each range to stderr, indented. */
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

static int depth;

static int push(const char *name)
{
    fprintf(stderr, "%*s%s\n", 4 * depth, "", name);
    return depth++;
}

static int pop(void)
{
    fprintf(stderr, "%*send\n", 4 * --depth, "");
    return depth;
}

/* NVTX calls this at its first call. Returns 1 for success. */
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table)
{
    const NvtxExportTableCallbacks *callbacks = export_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable functions;
    unsigned count;
    if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &count) ||
        count <= NVTX_CBID_CORE_RangePop)
        return 0;
    *functions[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
    *functions[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
    return 1;
}
