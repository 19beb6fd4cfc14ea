/* cuGetProcAddress: names without a version mean the newest that a program of today is compiled against. */
#include "api.h"

#include <string.h>

typedef void entry_point(void);

static const struct {
    const char *name;
    entry_point *function;
} entries[] = {
    {"cuCtxCreate", (entry_point *)cuCtxCreate_v2},
    {"cuCtxDestroy", (entry_point *)cuCtxDestroy_v2},
    {"cuCtxGetApiVersion", (entry_point *)cuCtxGetApiVersion},
    {"cuCtxGetCacheConfig", (entry_point *)cuCtxGetCacheConfig},
    {"cuCtxGetCurrent", (entry_point *)cuCtxGetCurrent},
    {"cuCtxGetDevice", (entry_point *)cuCtxGetDevice},
    {"cuCtxGetFlags", (entry_point *)cuCtxGetFlags},
    {"cuCtxGetLimit", (entry_point *)cuCtxGetLimit},
    {"cuCtxGetStreamPriorityRange", (entry_point *)cuCtxGetStreamPriorityRange},
    {"cuCtxPopCurrent", (entry_point *)cuCtxPopCurrent_v2},
    {"cuCtxPushCurrent", (entry_point *)cuCtxPushCurrent_v2},
    {"cuCtxSetCacheConfig", (entry_point *)cuCtxSetCacheConfig},
    {"cuCtxSetCurrent", (entry_point *)cuCtxSetCurrent},
    {"cuCtxSetLimit", (entry_point *)cuCtxSetLimit},
    {"cuCtxSynchronize", (entry_point *)cuCtxSynchronize},
    {"cuDeviceCanAccessPeer", (entry_point *)cuDeviceCanAccessPeer},
    {"cuDeviceComputeCapability", (entry_point *)cuDeviceComputeCapability},
    {"cuDeviceGet", (entry_point *)cuDeviceGet},
    {"cuDeviceGetAttribute", (entry_point *)cuDeviceGetAttribute},
    {"cuDeviceGetCount", (entry_point *)cuDeviceGetCount},
    {"cuDeviceGetName", (entry_point *)cuDeviceGetName},
    {"cuDeviceGetPCIBusId", (entry_point *)cuDeviceGetPCIBusId},
    {"cuDeviceGetUuid", (entry_point *)cuDeviceGetUuid_v2},
    {"cuDevicePrimaryCtxGetState", (entry_point *)cuDevicePrimaryCtxGetState},
    {"cuDevicePrimaryCtxRelease", (entry_point *)cuDevicePrimaryCtxRelease_v2},
    {"cuDevicePrimaryCtxReset", (entry_point *)cuDevicePrimaryCtxReset_v2},
    {"cuDevicePrimaryCtxRetain", (entry_point *)cuDevicePrimaryCtxRetain},
    {"cuDevicePrimaryCtxSetFlags", (entry_point *)cuDevicePrimaryCtxSetFlags_v2},
    {"cuDeviceTotalMem", (entry_point *)cuDeviceTotalMem_v2},
    {"cuDriverGetVersion", (entry_point *)cuDriverGetVersion},
    {"cuEventCreate", (entry_point *)cuEventCreate},
    {"cuEventDestroy", (entry_point *)cuEventDestroy_v2},
    {"cuEventElapsedTime", (entry_point *)cuEventElapsedTime_v2},
    {"cuEventQuery", (entry_point *)cuEventQuery},
    {"cuEventRecord", (entry_point *)cuEventRecord},
    {"cuEventRecordWithFlags", (entry_point *)cuEventRecordWithFlags},
    {"cuEventSynchronize", (entry_point *)cuEventSynchronize},
    {"cuFuncGetAttribute", (entry_point *)cuFuncGetAttribute},
    {"cuFuncGetModule", (entry_point *)cuFuncGetModule},
    {"cuFuncGetName", (entry_point *)cuFuncGetName},
    {"cuFuncSetAttribute", (entry_point *)cuFuncSetAttribute},
    {"cuFuncSetCacheConfig", (entry_point *)cuFuncSetCacheConfig},
    {"cuGetErrorName", (entry_point *)cuGetErrorName},
    {"cuGetErrorString", (entry_point *)cuGetErrorString},
    {"cuGetProcAddress", (entry_point *)cuGetProcAddress_v2},
    {"cuGraphCreate", (entry_point *)cuGraphCreate},
    {"cuGraphDestroy", (entry_point *)cuGraphDestroy},
    {"cuGraphExecDestroy", (entry_point *)cuGraphExecDestroy},
    {"cuGraphGetNodes", (entry_point *)cuGraphGetNodes},
    {"cuGraphInstantiate", (entry_point *)cuGraphInstantiateWithFlags},
    {"cuGraphInstantiateWithFlags", (entry_point *)cuGraphInstantiateWithFlags},
    {"cuGraphLaunch", (entry_point *)cuGraphLaunch},
    {"cuGraphUpload", (entry_point *)cuGraphUpload},
    {"cuInit", (entry_point *)cuInit},
    {"cuLaunchCooperativeKernel", (entry_point *)cuLaunchCooperativeKernel},
    {"cuLaunchHostFunc", (entry_point *)cuLaunchHostFunc},
    {"cuLaunchKernel", (entry_point *)cuLaunchKernel},
    {"cuLaunchKernelEx", (entry_point *)cuLaunchKernelEx},
    {"cuLinkAddData", (entry_point *)cuLinkAddData_v2},
    {"cuLinkAddFile", (entry_point *)cuLinkAddFile_v2},
    {"cuLinkComplete", (entry_point *)cuLinkComplete},
    {"cuLinkCreate", (entry_point *)cuLinkCreate_v2},
    {"cuLinkDestroy", (entry_point *)cuLinkDestroy},
    {"cuMemAlloc", (entry_point *)cuMemAlloc_v2},
    {"cuMemAllocAsync", (entry_point *)cuMemAllocAsync},
    {"cuMemAllocHost", (entry_point *)cuMemAllocHost_v2},
    {"cuMemAllocManaged", (entry_point *)cuMemAllocManaged},
    {"cuMemAllocPitch", (entry_point *)cuMemAllocPitch_v2},
    {"cuMemFree", (entry_point *)cuMemFree_v2},
    {"cuMemFreeAsync", (entry_point *)cuMemFreeAsync},
    {"cuMemFreeHost", (entry_point *)cuMemFreeHost},
    {"cuMemGetAddressRange", (entry_point *)cuMemGetAddressRange_v2},
    {"cuMemGetInfo", (entry_point *)cuMemGetInfo_v2},
    {"cuMemHostAlloc", (entry_point *)cuMemHostAlloc},
    {"cuMemHostGetDevicePointer", (entry_point *)cuMemHostGetDevicePointer_v2},
    {"cuMemHostGetFlags", (entry_point *)cuMemHostGetFlags},
    {"cuMemcpy", (entry_point *)cuMemcpy},
    {"cuMemcpyAsync", (entry_point *)cuMemcpyAsync},
    {"cuMemcpyDtoD", (entry_point *)cuMemcpyDtoD_v2},
    {"cuMemcpyDtoDAsync", (entry_point *)cuMemcpyDtoDAsync_v2},
    {"cuMemcpyDtoH", (entry_point *)cuMemcpyDtoH_v2},
    {"cuMemcpyDtoHAsync", (entry_point *)cuMemcpyDtoHAsync_v2},
    {"cuMemcpyHtoD", (entry_point *)cuMemcpyHtoD_v2},
    {"cuMemcpyHtoDAsync", (entry_point *)cuMemcpyHtoDAsync_v2},
    {"cuMemsetD16", (entry_point *)cuMemsetD16_v2},
    {"cuMemsetD16Async", (entry_point *)cuMemsetD16Async},
    {"cuMemsetD32", (entry_point *)cuMemsetD32_v2},
    {"cuMemsetD32Async", (entry_point *)cuMemsetD32Async},
    {"cuMemsetD8", (entry_point *)cuMemsetD8_v2},
    {"cuMemsetD8Async", (entry_point *)cuMemsetD8Async},
    {"cuModuleGetFunction", (entry_point *)cuModuleGetFunction},
    {"cuModuleGetFunctionCount", (entry_point *)cuModuleGetFunctionCount},
    {"cuModuleGetGlobal", (entry_point *)cuModuleGetGlobal_v2},
    {"cuModuleGetLoadingMode", (entry_point *)cuModuleGetLoadingMode},
    {"cuModuleLoad", (entry_point *)cuModuleLoad},
    {"cuModuleLoadData", (entry_point *)cuModuleLoadData},
    {"cuModuleLoadDataEx", (entry_point *)cuModuleLoadDataEx},
    {"cuModuleLoadFatBinary", (entry_point *)cuModuleLoadFatBinary},
    {"cuModuleUnload", (entry_point *)cuModuleUnload},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor",
     (entry_point *)cuOccupancyMaxActiveBlocksPerMultiprocessor},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
     (entry_point *)cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags},
    {"cuPointerGetAttribute", (entry_point *)cuPointerGetAttribute},
    {"cuStreamAddCallback", (entry_point *)cuStreamAddCallback},
    {"cuStreamBeginCapture", (entry_point *)cuStreamBeginCapture_v2},
    {"cuStreamCreate", (entry_point *)cuStreamCreate},
    {"cuStreamCreateWithPriority", (entry_point *)cuStreamCreateWithPriority},
    {"cuStreamDestroy", (entry_point *)cuStreamDestroy_v2},
    {"cuStreamEndCapture", (entry_point *)cuStreamEndCapture},
    {"cuStreamGetCtx", (entry_point *)cuStreamGetCtx},
    {"cuStreamGetFlags", (entry_point *)cuStreamGetFlags},
    {"cuStreamGetPriority", (entry_point *)cuStreamGetPriority},
    {"cuStreamIsCapturing", (entry_point *)cuStreamIsCapturing},
    {"cuStreamQuery", (entry_point *)cuStreamQuery},
    {"cuStreamSynchronize", (entry_point *)cuStreamSynchronize},
    {"cuStreamWaitEvent", (entry_point *)cuStreamWaitEvent},
    {"cuThreadExchangeStreamCaptureMode", (entry_point *)cuThreadExchangeStreamCaptureMode},
};

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status)
{
    enum { FOUND, NOT_FOUND };
    (void)version;
    (void)flags;
    if (!symbol || !function)
        return CUDA_ERROR_INVALID_VALUE;
    *function = NULL;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (strcmp(symbol, entries[i].name) == 0)
            memcpy(function, &entries[i].function, sizeof *function);
    if (status)
        *status = *function ? FOUND : NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
