/* The part of the CUDA Driver API that the emulator has: own declarations, with the numbers and layouts that programs
   compiled against cuda.h expect. */
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

/* clang-format off */
#define E(name, suffix, version, parameters) EMU_API CUresult name##suffix parameters;
/* clang-format on */
#include "entry_points.def"
#undef E

/* Names for programs that are compiled with CUDA_API_PER_THREAD_DEFAULT_STREAM. All default streams behave alike, since
   work is done when it is submitted. */
#define EMU_PER_THREAD(function, suffix)                                                                     \
    EMU_API __typeof__(function) function##suffix __attribute__((alias(#function)))

#endif
