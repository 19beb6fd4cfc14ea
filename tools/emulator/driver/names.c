/* Names of entry points: cuGetProcAddress returns the one that a program of the given CUDA version was compiled against.
   Names of results. */
#include "api.h"

#include <string.h>

typedef void entry_point(void);

/* By the CUDA version that introduced the entry point, as in cudaTypedefs.h. Versions of one name are in ascending order. */
static const struct {
    const char *name;
    int version;
    entry_point *function;
} entries[] = {
    {"cuCtxCreate", 3020, (entry_point *)cuCtxCreate_v2},
    {"cuCtxCreate", 11040, (entry_point *)cuCtxCreate_v3},
    {"cuCtxCreate", 12050, (entry_point *)cuCtxCreate_v4},
    {"cuCtxDestroy", 4000, (entry_point *)cuCtxDestroy_v2},
    {"cuCtxGetApiVersion", 3020, (entry_point *)cuCtxGetApiVersion},
    {"cuCtxGetCacheConfig", 3020, (entry_point *)cuCtxGetCacheConfig},
    {"cuCtxGetCurrent", 4000, (entry_point *)cuCtxGetCurrent},
    {"cuCtxGetDevice", 2000, (entry_point *)cuCtxGetDevice},
    {"cuCtxGetDevice", 13000, (entry_point *)cuCtxGetDevice_v2},
    {"cuCtxGetFlags", 7000, (entry_point *)cuCtxGetFlags},
    {"cuCtxGetLimit", 3010, (entry_point *)cuCtxGetLimit},
    {"cuCtxGetStreamPriorityRange", 5050, (entry_point *)cuCtxGetStreamPriorityRange},
    {"cuCtxPopCurrent", 4000, (entry_point *)cuCtxPopCurrent_v2},
    {"cuCtxPushCurrent", 4000, (entry_point *)cuCtxPushCurrent_v2},
    {"cuCtxSetCacheConfig", 3020, (entry_point *)cuCtxSetCacheConfig},
    {"cuCtxSetCurrent", 4000, (entry_point *)cuCtxSetCurrent},
    {"cuCtxSetLimit", 3010, (entry_point *)cuCtxSetLimit},
    {"cuCtxSynchronize", 2000, (entry_point *)cuCtxSynchronize},
    {"cuCtxSynchronize", 13000, (entry_point *)cuCtxSynchronize_v2},
    {"cuDeviceCanAccessPeer", 4000, (entry_point *)cuDeviceCanAccessPeer},
    {"cuDeviceComputeCapability", 2000, (entry_point *)cuDeviceComputeCapability},
    {"cuDeviceGet", 2000, (entry_point *)cuDeviceGet},
    {"cuDeviceGetAttribute", 2000, (entry_point *)cuDeviceGetAttribute},
    {"cuDeviceGetCount", 2000, (entry_point *)cuDeviceGetCount},
    {"cuDeviceGetName", 2000, (entry_point *)cuDeviceGetName},
    {"cuDeviceGetPCIBusId", 4010, (entry_point *)cuDeviceGetPCIBusId},
    {"cuDeviceGetUuid", 9020, (entry_point *)cuDeviceGetUuid},
    {"cuDeviceGetUuid", 11040, (entry_point *)cuDeviceGetUuid_v2},
    {"cuDevicePrimaryCtxGetState", 7000, (entry_point *)cuDevicePrimaryCtxGetState},
    {"cuDevicePrimaryCtxRelease", 11000, (entry_point *)cuDevicePrimaryCtxRelease_v2},
    {"cuDevicePrimaryCtxReset", 11000, (entry_point *)cuDevicePrimaryCtxReset_v2},
    {"cuDevicePrimaryCtxRetain", 7000, (entry_point *)cuDevicePrimaryCtxRetain},
    {"cuDevicePrimaryCtxSetFlags", 11000, (entry_point *)cuDevicePrimaryCtxSetFlags_v2},
    {"cuDeviceTotalMem", 3020, (entry_point *)cuDeviceTotalMem_v2},
    {"cuDriverGetVersion", 2020, (entry_point *)cuDriverGetVersion},
    {"cuEventCreate", 2000, (entry_point *)cuEventCreate},
    {"cuEventDestroy", 4000, (entry_point *)cuEventDestroy_v2},
    {"cuEventElapsedTime", 2000, (entry_point *)cuEventElapsedTime},
    {"cuEventElapsedTime", 12080, (entry_point *)cuEventElapsedTime_v2},
    {"cuEventQuery", 2000, (entry_point *)cuEventQuery},
    {"cuEventRecord", 2000, (entry_point *)cuEventRecord},
    {"cuEventRecordWithFlags", 11010, (entry_point *)cuEventRecordWithFlags},
    {"cuEventSynchronize", 2000, (entry_point *)cuEventSynchronize},
    {"cuFuncGetAttribute", 2020, (entry_point *)cuFuncGetAttribute},
    {"cuFuncGetModule", 11000, (entry_point *)cuFuncGetModule},
    {"cuFuncGetName", 12030, (entry_point *)cuFuncGetName},
    {"cuFuncSetAttribute", 9000, (entry_point *)cuFuncSetAttribute},
    {"cuFuncSetCacheConfig", 3000, (entry_point *)cuFuncSetCacheConfig},
    {"cuGetErrorName", 6000, (entry_point *)cuGetErrorName},
    {"cuGetErrorString", 6000, (entry_point *)cuGetErrorString},
    {"cuGetExportTable", 3000, (entry_point *)cuGetExportTable},
    {"cuGetProcAddress", 11030, (entry_point *)cuGetProcAddress},
    {"cuGetProcAddress", 12000, (entry_point *)cuGetProcAddress_v2},
    {"cuGraphCreate", 10000, (entry_point *)cuGraphCreate},
    {"cuGraphDestroy", 10000, (entry_point *)cuGraphDestroy},
    {"cuGraphExecDestroy", 10000, (entry_point *)cuGraphExecDestroy},
    {"cuGraphGetNodes", 10000, (entry_point *)cuGraphGetNodes},
    {"cuGraphInstantiate", 11000, (entry_point *)cuGraphInstantiate_v2},
    {"cuGraphInstantiateWithFlags", 11040, (entry_point *)cuGraphInstantiateWithFlags},
    {"cuGraphLaunch", 10000, (entry_point *)cuGraphLaunch},
    {"cuGraphUpload", 11010, (entry_point *)cuGraphUpload},
    {"cuInit", 2000, (entry_point *)cuInit},
    {"cuLaunchCooperativeKernel", 9000, (entry_point *)cuLaunchCooperativeKernel},
    {"cuLaunchHostFunc", 10000, (entry_point *)cuLaunchHostFunc},
    {"cuLaunchKernel", 4000, (entry_point *)cuLaunchKernel},
    {"cuLaunchKernelEx", 11060, (entry_point *)cuLaunchKernelEx},
    {"cuLinkAddData", 6050, (entry_point *)cuLinkAddData_v2},
    {"cuLinkAddFile", 6050, (entry_point *)cuLinkAddFile_v2},
    {"cuLinkComplete", 5050, (entry_point *)cuLinkComplete},
    {"cuLinkCreate", 6050, (entry_point *)cuLinkCreate_v2},
    {"cuLinkDestroy", 5050, (entry_point *)cuLinkDestroy},
    {"cuMemAlloc", 3020, (entry_point *)cuMemAlloc_v2},
    {"cuMemAllocAsync", 11020, (entry_point *)cuMemAllocAsync},
    {"cuMemAllocHost", 3020, (entry_point *)cuMemAllocHost_v2},
    {"cuMemAllocManaged", 6000, (entry_point *)cuMemAllocManaged},
    {"cuMemAllocPitch", 3020, (entry_point *)cuMemAllocPitch_v2},
    {"cuMemFree", 3020, (entry_point *)cuMemFree_v2},
    {"cuMemFreeAsync", 11020, (entry_point *)cuMemFreeAsync},
    {"cuMemFreeHost", 2000, (entry_point *)cuMemFreeHost},
    {"cuMemGetAddressRange", 3020, (entry_point *)cuMemGetAddressRange_v2},
    {"cuMemGetInfo", 3020, (entry_point *)cuMemGetInfo_v2},
    {"cuMemHostAlloc", 2020, (entry_point *)cuMemHostAlloc},
    {"cuMemHostGetDevicePointer", 3020, (entry_point *)cuMemHostGetDevicePointer_v2},
    {"cuMemHostGetFlags", 2030, (entry_point *)cuMemHostGetFlags},
    {"cuMemcpy", 4000, (entry_point *)cuMemcpy},
    {"cuMemcpyAsync", 4000, (entry_point *)cuMemcpyAsync},
    {"cuMemcpyDtoD", 3020, (entry_point *)cuMemcpyDtoD_v2},
    {"cuMemcpyDtoDAsync", 3020, (entry_point *)cuMemcpyDtoDAsync_v2},
    {"cuMemcpyDtoH", 3020, (entry_point *)cuMemcpyDtoH_v2},
    {"cuMemcpyDtoHAsync", 3020, (entry_point *)cuMemcpyDtoHAsync_v2},
    {"cuMemcpyHtoD", 3020, (entry_point *)cuMemcpyHtoD_v2},
    {"cuMemcpyHtoDAsync", 3020, (entry_point *)cuMemcpyHtoDAsync_v2},
    {"cuMemsetD16", 3020, (entry_point *)cuMemsetD16_v2},
    {"cuMemsetD16Async", 3020, (entry_point *)cuMemsetD16Async},
    {"cuMemsetD32", 3020, (entry_point *)cuMemsetD32_v2},
    {"cuMemsetD32Async", 3020, (entry_point *)cuMemsetD32Async},
    {"cuMemsetD8", 3020, (entry_point *)cuMemsetD8_v2},
    {"cuMemsetD8Async", 3020, (entry_point *)cuMemsetD8Async},
    {"cuModuleGetFunction", 2000, (entry_point *)cuModuleGetFunction},
    {"cuModuleGetFunctionCount", 12040, (entry_point *)cuModuleGetFunctionCount},
    {"cuModuleGetGlobal", 3020, (entry_point *)cuModuleGetGlobal_v2},
    {"cuModuleGetLoadingMode", 11070, (entry_point *)cuModuleGetLoadingMode},
    {"cuModuleLoad", 2000, (entry_point *)cuModuleLoad},
    {"cuModuleLoadData", 2000, (entry_point *)cuModuleLoadData},
    {"cuModuleLoadDataEx", 2010, (entry_point *)cuModuleLoadDataEx},
    {"cuModuleLoadFatBinary", 2000, (entry_point *)cuModuleLoadFatBinary},
    {"cuModuleUnload", 2000, (entry_point *)cuModuleUnload},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", 6050,
     (entry_point *)cuOccupancyMaxActiveBlocksPerMultiprocessor},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 7000,
     (entry_point *)cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags},
    {"cuOccupancyMaxActiveClusters", 11070, (entry_point *)cuOccupancyMaxActiveClusters},
    {"cuOccupancyMaxPotentialClusterSize", 11070, (entry_point *)cuOccupancyMaxPotentialClusterSize},
    {"cuPointerGetAttribute", 4000, (entry_point *)cuPointerGetAttribute},
    {"cuStreamAddCallback", 5000, (entry_point *)cuStreamAddCallback},
    {"cuStreamBeginCapture", 10010, (entry_point *)cuStreamBeginCapture_v2},
    {"cuStreamCreate", 2000, (entry_point *)cuStreamCreate},
    {"cuStreamCreateWithPriority", 5050, (entry_point *)cuStreamCreateWithPriority},
    {"cuStreamDestroy", 4000, (entry_point *)cuStreamDestroy_v2},
    {"cuStreamEndCapture", 10000, (entry_point *)cuStreamEndCapture},
    {"cuStreamGetCtx", 9020, (entry_point *)cuStreamGetCtx},
    {"cuStreamGetCtx", 12050, (entry_point *)cuStreamGetCtx_v2},
    {"cuStreamGetFlags", 5050, (entry_point *)cuStreamGetFlags},
    {"cuStreamGetPriority", 5050, (entry_point *)cuStreamGetPriority},
    {"cuStreamIsCapturing", 10000, (entry_point *)cuStreamIsCapturing},
    {"cuStreamQuery", 2000, (entry_point *)cuStreamQuery},
    {"cuStreamSynchronize", 2000, (entry_point *)cuStreamSynchronize},
    {"cuStreamWaitEvent", 3020, (entry_point *)cuStreamWaitEvent},
    {"cuTensorMapEncodeIm2col", 12000, (entry_point *)cuTensorMapEncodeIm2col},
    {"cuTensorMapEncodeTiled", 12000, (entry_point *)cuTensorMapEncodeTiled},
    {"cuTensorMapReplaceAddress", 12000, (entry_point *)cuTensorMapReplaceAddress},
    {"cuThreadExchangeStreamCaptureMode", 10010, (entry_point *)cuThreadExchangeStreamCaptureMode},
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
