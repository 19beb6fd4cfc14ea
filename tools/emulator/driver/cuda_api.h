/* The part of the CUDA Driver API that the emulator has: own declarations, with the numbers and layouts that programs
   compiled against cuda.h expect. Symbols have the version suffixes that a real libcuda exports. */
#ifndef EMU_CUDA_API_H
#define EMU_CUDA_API_H

#include "../support/errors.h"

#include <stddef.h>
#include <stdint.h>

#define EMU_API __attribute__((visibility("default")))

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUgreenCtx_st *CUgreenCtx;

typedef struct CUuuid {
    char bytes[16];
} CUuuid;

typedef struct CUctxCreateParams {
    void *execAffinityParams;
    int numExecAffinityParams;
    void *cigParams;
} CUctxCreateParams;

typedef struct CUlaunchAttribute {
    unsigned id;
    unsigned padding;
    union {
        char bytes[64];
        int cooperative;
        int programmatic; /* stream serialization */
        struct {
            unsigned x, y, z;
        } cluster;
    } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} CUlaunchConfig;

typedef struct CUtensorMap {
    _Alignas(64) uint64_t opaque[16];
} CUtensorMap;

typedef void (*CUhostFn)(void *data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);

enum { CU_STREAM_LEGACY_HANDLE = 1, CU_STREAM_PER_THREAD_HANDLE = 2 };
enum { EMU_STREAM_NON_BLOCKING = 1 }; /* flag of cuStreamCreate */
enum {
    CU_LAUNCH_IGNORE = 0,
    CU_LAUNCH_ACCESS_POLICY_WINDOW = 1,
    CU_LAUNCH_COOPERATIVE = 2,
    CU_LAUNCH_CLUSTER_DIMENSION = 4,
    CU_LAUNCH_CLUSTER_SCHEDULING = 5,
    CU_LAUNCH_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
    CU_LAUNCH_PROGRAMMATIC_EVENT = 7,
    CU_LAUNCH_PRIORITY = 8,
    CU_LAUNCH_MEM_SYNC_DOMAIN_MAP = 9,
    CU_LAUNCH_MEM_SYNC_DOMAIN = 10,
    CU_LAUNCH_PREFERRED_CLUSTER_DIMENSION = 11,
    CU_LAUNCH_COMPLETION_EVENT = 12,
    CU_LAUNCH_DEVICE_UPDATABLE_NODE = 13,
    CU_LAUNCH_SHARED_CARVEOUT = 14,
};

/* Initialisation, errors */
/* Names for programs that are compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM. All default streams behave alike, since
   work is done when it is submitted. */
#define EMU_PER_THREAD(function, suffix)                                                                     \
    __typeof__(function) function##suffix __attribute__((alias(#function)))

EMU_API CUresult cuInit(unsigned flags);
EMU_API CUresult cuDriverGetVersion(int *version);
EMU_API CUresult cuGetErrorName(CUresult error, const char **name);
EMU_API CUresult cuGetErrorString(CUresult error, const char **text);
EMU_API CUresult cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
EMU_API CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                                     int *status);
EMU_API CUresult cuGetExportTable(const void **table, const CUuuid *id);

/* Devices */
EMU_API CUresult cuDeviceGetCount(int *count);
EMU_API CUresult cuDeviceGet(CUdevice *device, int ordinal);
EMU_API CUresult cuDeviceGetName(char *name, int size, CUdevice device);
EMU_API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
EMU_API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
EMU_API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
EMU_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
EMU_API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device);
EMU_API CUresult cuDeviceGetPCIBusId(char *text, int size, CUdevice device);
EMU_API CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer);

/* Contexts */
EMU_API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
EMU_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
EMU_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
EMU_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active);
EMU_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags);
EMU_API CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
EMU_API CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int count, unsigned flags,
                                CUdevice device);
EMU_API CUresult cuCtxCreate_v4(CUcontext *context, const CUctxCreateParams *parameters, unsigned flags,
                                CUdevice device);
EMU_API CUresult cuCtxDestroy_v2(CUcontext context);
EMU_API CUresult cuCtxPushCurrent_v2(CUcontext context);
EMU_API CUresult cuCtxPopCurrent_v2(CUcontext *context);
EMU_API CUresult cuCtxSetCurrent(CUcontext context);
EMU_API CUresult cuCtxGetCurrent(CUcontext *context);
EMU_API CUresult cuCtxGetDevice(CUdevice *device);
EMU_API CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context);
EMU_API CUresult cuCtxGetFlags(unsigned *flags);
EMU_API CUresult cuCtxSynchronize(void);
EMU_API CUresult cuCtxSynchronize_v2(CUcontext context);
EMU_API CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version);
EMU_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);
EMU_API CUresult cuCtxGetLimit(size_t *value, int limit);
EMU_API CUresult cuCtxSetLimit(int limit, size_t value);
EMU_API CUresult cuCtxGetCacheConfig(int *config);
EMU_API CUresult cuCtxSetCacheConfig(int config);

/* Modules and functions */
EMU_API CUresult cuModuleLoad(CUmodule *module, const char *path);
EMU_API CUresult cuModuleLoadData(CUmodule *module, const void *image);
EMU_API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options,
                                    void **values);
EMU_API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image);
EMU_API CUresult cuModuleUnload(CUmodule module);
EMU_API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
EMU_API CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module);
EMU_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name);
EMU_API CUresult cuModuleGetLoadingMode(int *mode);
EMU_API CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function);
EMU_API CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value);
EMU_API CUresult cuFuncSetCacheConfig(CUfunction function, int config);
EMU_API CUresult cuFuncGetModule(CUmodule *module, CUfunction function);
EMU_API CUresult cuFuncGetName(const char **name, CUfunction function);
EMU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                             size_t dynamic_shared_bytes);
EMU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                                      int threads,
                                                                      size_t dynamic_shared_bytes,
                                                                      unsigned flags);
EMU_API CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function,
                                                    const CUlaunchConfig *config);
EMU_API CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction function, const CUlaunchConfig *config);
EMU_API CUresult cuLinkCreate_v2(unsigned count, int *options, void **values, CUlinkState *state);
EMU_API CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size, const char *name,
                                  unsigned count, int *options, void **values);
EMU_API CUresult cuLinkAddFile_v2(CUlinkState state, int type, const char *path, unsigned count, int *options,
                                  void **values);
EMU_API CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *size);
EMU_API CUresult cuLinkDestroy(CUlinkState state);

/* Memory */
EMU_API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
EMU_API CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
EMU_API CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags);
EMU_API CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                                    unsigned element);
EMU_API CUresult cuMemFree_v2(CUdeviceptr address);
EMU_API CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream);
EMU_API CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream);
EMU_API CUresult cuMemAllocHost_v2(void **address, size_t bytes);
EMU_API CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags);
EMU_API CUresult cuMemFreeHost(void *address);
EMU_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned flags);
EMU_API CUresult cuMemHostGetFlags(unsigned *flags, void *host);
EMU_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address);
EMU_API CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address);
EMU_API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
EMU_API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
EMU_API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
EMU_API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
EMU_API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
EMU_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
EMU_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
EMU_API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
EMU_API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count);
EMU_API CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count);
EMU_API CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count);
EMU_API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream);
EMU_API CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream);
EMU_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream);

/* Streams and events */
EMU_API CUresult cuStreamCreate(CUstream *stream, unsigned flags);
EMU_API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority);
EMU_API CUresult cuStreamDestroy_v2(CUstream stream);
EMU_API CUresult cuStreamSynchronize(CUstream stream);
EMU_API CUresult cuStreamQuery(CUstream stream);
EMU_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
EMU_API CUresult cuStreamGetCtx(CUstream stream, CUcontext *context);
EMU_API CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green);
EMU_API CUresult cuStreamGetFlags(CUstream stream, unsigned *flags);
EMU_API CUresult cuStreamGetPriority(CUstream stream, int *priority);
EMU_API CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned flags);
EMU_API CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data);
EMU_API CUresult cuEventCreate(CUevent *event, unsigned flags);
EMU_API CUresult cuEventDestroy_v2(CUevent event);
EMU_API CUresult cuEventRecord(CUevent event, CUstream stream);
EMU_API CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags);
EMU_API CUresult cuEventSynchronize(CUevent event);
EMU_API CUresult cuEventQuery(CUevent event);
EMU_API CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
EMU_API CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end);

/* Tensor maps; the enumerations are ints */
EMU_API CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, unsigned rank, void *address,
                                        const uint64_t *sizes, const uint64_t *strides, const unsigned *box,
                                        const unsigned *element_strides, int interleave, int swizzle,
                                        int promotion, int fill);
EMU_API CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, int type, unsigned rank, void *address,
                                         const uint64_t *sizes, const uint64_t *strides, const int *lower,
                                         const int *upper, unsigned channels, unsigned pixels,
                                         const unsigned *element_strides, int interleave, int swizzle,
                                         int promotion, int fill);
EMU_API CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address);

/* Launches and graphs */
EMU_API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                CUstream stream, void **parameters, void **extra);
EMU_API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                  void **extra);
EMU_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                           unsigned grid_z, unsigned block_x, unsigned block_y,
                                           unsigned block_z, unsigned shared_bytes, CUstream stream,
                                           void **parameters);
EMU_API CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
EMU_API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
EMU_API CUresult cuStreamIsCapturing(CUstream stream, int *status);
EMU_API CUresult cuThreadExchangeStreamCaptureMode(int *mode);
EMU_API CUresult cuGraphCreate(CUgraph *graph, unsigned flags);
EMU_API CUresult cuGraphDestroy(CUgraph graph);
EMU_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
EMU_API CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
                                       size_t log_bytes);
EMU_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
EMU_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
EMU_API CUresult cuGraphUpload(CUgraphExec exec, CUstream stream);
EMU_API CUresult cuGraphExecDestroy(CUgraphExec exec);

/* clang-format off */
#define EMU_PER_THREAD_NAMES(X) \
    X(cuGraphLaunch, _ptsz) X(cuGraphUpload, _ptsz) X(cuStreamBeginCapture_v2, _ptsz) \
    X(cuStreamEndCapture, _ptsz) X(cuStreamIsCapturing, _ptsz) X(cuLaunchCooperativeKernel, _ptsz) \
    X(cuLaunchKernelEx, _ptsz) X(cuLaunchKernel, _ptsz) X(cuMemAllocAsync, _ptsz) \
    X(cuMemFreeAsync, _ptsz) X(cuMemcpyAsync, _ptsz) X(cuMemcpyDtoDAsync_v2, _ptsz) \
    X(cuMemcpyDtoD_v2, _ptds) X(cuMemcpyDtoHAsync_v2, _ptsz) X(cuMemcpyDtoH_v2, _ptds) \
    X(cuMemcpyHtoDAsync_v2, _ptsz) X(cuMemcpyHtoD_v2, _ptds) X(cuMemcpy, _ptds) \
    X(cuMemsetD16Async, _ptsz) X(cuMemsetD16_v2, _ptds) X(cuMemsetD32Async, _ptsz) \
    X(cuMemsetD32_v2, _ptds) X(cuMemsetD8Async, _ptsz) X(cuMemsetD8_v2, _ptds) \
    X(cuEventRecordWithFlags, _ptsz) X(cuEventRecord, _ptsz) X(cuLaunchHostFunc, _ptsz) \
    X(cuStreamAddCallback, _ptsz) X(cuStreamGetCtx, _ptsz) X(cuStreamGetFlags, _ptsz) \
    X(cuStreamGetPriority, _ptsz) X(cuStreamQuery, _ptsz) X(cuStreamSynchronize, _ptsz) \
    X(cuStreamWaitEvent, _ptsz) X(cuStreamGetCtx_v2, _ptsz)
/* clang-format on */
#define EMU_DECLARE(function, suffix) EMU_API __typeof__(function) function##suffix;
EMU_PER_THREAD_NAMES(EMU_DECLARE)
#undef EMU_DECLARE

#endif
