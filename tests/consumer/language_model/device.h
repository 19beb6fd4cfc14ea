/* The device: a CUDA driver, a context, a loader for the bundle's kernels, memory, and a stream whose launches a graph
 * records. Functions that return a bool print failures to stderr, and do not clean up: device_close does, even after a
 * failure halfway. */
#ifndef LM_DEVICE_H
#define LM_DEVICE_H

#include <stdbool.h>

#include "lm_kernels.h"

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

/* Entry points that kiln's table lacks. A graph is recorded once and launched for each token. */
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

enum { MOST_ALLOCATIONS = 20 };

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
    int version; /* CUDA version that the driver supports, 1000 * major + 10 * minor */
} device;

/* Opens the first device of the driver at `path`; null means libcuda.so.1. `d` must be all zeros. */
bool device_open(device *d, const char *path);
void device_close(device *d);

/* Allocates memory aligned to 256 bytes, until device_close. Error messages name it by `what`. */
bool device_allocate(device *d, size_t bytes, const char *what, CUdeviceptr *address);
bool device_upload(device *d, CUdeviceptr to, const void *from, size_t bytes);
bool device_zero(device *d, CUdeviceptr at, size_t bytes);
/* Waits for all launches first. */
bool device_download(device *d, void *to, CUdeviceptr from, size_t bytes);
bool device_wait(device *d);

/* Returns the memory's bandwidth in bytes per second, from its clock and its bus; 0 if the driver does not report these. */
double device_bandwidth(const device *d);

/* Launches between these two are recorded, not executed; each device_replay executes them once. */
bool device_record(device *d);
bool device_recorded(device *d);
bool device_replay(device *d);

/* Returns true for KILN_OK; otherwise prints the error of a bundle's function. */
bool device_launched(device *d, kiln_status status);

/* Prints to stderr, after the program's name. Returns false. */
bool failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
