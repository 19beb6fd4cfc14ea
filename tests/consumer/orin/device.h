/* The device: driver, context, stream, memory, a loader for the bundle's kernels, and a CUDA graph. Functions that return a
 * bool print failures to stderr. device_close releases everything, even after a failure halfway. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdbool.h>

#include "orin.h"

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

/* Entry points for graphs, which kiln's table lacks. cuGraphInstantiateWithFlags is the newest: CUDA 11.4, JetPack 5. */
#define GRAPH_FUNCTIONS(X)                                                                                   \
    X(stream_create, "cuStreamCreate", (CUstream * stream, unsigned flags))                                  \
    X(stream_destroy, "cuStreamDestroy_v2", (CUstream stream))                                               \
    X(begin_capture, "cuStreamBeginCapture_v2", (CUstream stream, int mode))                                 \
    X(end_capture, "cuStreamEndCapture", (CUstream stream, CUgraph * graph))                                 \
    X(graph_instantiate, "cuGraphInstantiateWithFlags",                                                      \
      (CUgraphExec * executable, CUgraph graph, unsigned long long flags))                                   \
    X(graph_launch, "cuGraphLaunch", (CUgraphExec executable, CUstream stream))                              \
    X(graph_exec_destroy, "cuGraphExecDestroy", (CUgraphExec executable))                                    \
    X(graph_destroy, "cuGraphDestroy", (CUgraph graph))

enum { MOST_ALLOCATIONS = 64 };

typedef struct device {
    kiln_driver driver;
#define GRAPH_MEMBER(member, symbol, parameters) int(*member) parameters;
    GRAPH_FUNCTIONS(GRAPH_MEMBER)
#undef GRAPH_MEMBER
    kiln_loader loader;
    kiln_slot slots[ORIN_SLOTS];
    CUcontext context;
    CUstream stream;
    CUgraph graph;
    CUgraphExec recorded;
    CUdeviceptr allocations[MOST_ALLOCATIONS];
    int allocation_count;
    char name[128];
    int version; /* CUDA version of the driver: 1000 * major + 10 * minor */
} device;

/* Opens device 0 of the driver at `path`; null means libcuda.so.1. `d` must be all zeros. With ptx_only, kiln loads no
 * cubins; the emulated driver needs this. */
bool device_open(device *d, const char *path, bool ptx_only);
void device_close(device *d);

/* Allocates at least one byte of device memory: a copy of `data`, or zeros if it is null. Returns 0 on failure. */
CUdeviceptr device_allocate(device *d, const void *data, size_t bytes);
bool device_upload(device *d, CUdeviceptr to, const void *from, size_t bytes);
/* Waits for all launches, then copies. */
bool device_download(device *d, void *to, CUdeviceptr from, size_t bytes);

/* Launches between these two are recorded, not executed; each device_replay executes them once. */
bool device_record(device *d);
bool device_recorded(device *d);
bool device_replay(device *d);

/* Returns true for KILN_OK; otherwise prints the runtime's explanation and the log of the driver's compiler. */
bool device_launched(device *d, kiln_status status);

/* Prints to stderr after the program's name. Returns false. */
bool failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
