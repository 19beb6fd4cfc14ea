/* The device: a CUDA driver, a context, a loader for the bundle's kernels, memory, and a stream whose launches a graph
 * records. Functions that return a bool say on stderr what failed, and clean nothing up: device_close does that, also
 * after a failure half-way. */
#ifndef LM_DEVICE_H
#define LM_DEVICE_H

#include <stdbool.h>

#include "lm_kernels.h"

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

/* Entry points beside those in kiln's table. A graph is recorded once and launched for each token. */
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

enum { MOST_ALLOCATIONS = 16 };

typedef struct device {
    kiln_driver driver;
#define GRAPH_MEMBER(member, symbol, parameters) int(*member) parameters;
    GRAPH_FUNCTIONS(GRAPH_MEMBER)
#undef GRAPH_MEMBER
    kiln_loader loader;
    kiln_slot slots[LM_KERNELS_SLOTS];
    int ordinal;
    CUcontext context;
    CUstream stream;
    CUgraph graph;
    CUgraphExec recorded;
    bool is_recording;
    CUdeviceptr allocations[MOST_ALLOCATIONS];
    int allocation_count;
    size_t allocated; /* bytes */
    char name[128];
    int version; /* of CUDA that the driver supports, 1000 * major + 10 * minor */
} device;

/* Opens the first device of the driver at `path`; null: libcuda.so.1. All of `d` must be zeros. */
bool device_open(device *d, const char *path);
void device_close(device *d);

/* Memory for `what`, aligned to 256 bytes, until device_close. */
bool device_allocate(device *d, size_t bytes, const char *what, CUdeviceptr *address);
bool device_upload(device *d, CUdeviceptr to, const void *from, size_t bytes);
bool device_zero(device *d, CUdeviceptr at, size_t bytes);
/* Waits for all launches first. */
bool device_download(device *d, void *to, CUdeviceptr from, size_t bytes);
bool device_wait(device *d);

/* What is launched between these two is not executed, but recorded, and executed by each device_replay. */
bool device_record(device *d);
bool device_recorded(device *d);
bool device_replay(device *d);

/* Says what a function of the bundle returned, unless it is KILN_OK. */
bool device_launched(device *d, kiln_status status);

/* Says on stderr, behind the program's name, what went wrong. Returns false. */
bool failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
