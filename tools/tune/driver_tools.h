/* The driver's entry points for measuring, in addition to those of kiln_driver. */
#ifndef TUNE_DRIVER_TOOLS_H
#define TUNE_DRIVER_TOOLS_H

#include <kiln/driver.h>

typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

/* As in driver.h: member, exported symbol, parameters. */
#define DRIVER_TOOLS_FUNCTIONS(X)                                                                            \
    X(mem_get_info, "cuMemGetInfo_v2", (size_t * free_bytes, size_t * total_bytes))                          \
    X(memcpy_dtod_async, "cuMemcpyDtoDAsync_v2",                                                             \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                                     \
    X(stream_create, "cuStreamCreate", (CUstream * stream, unsigned int flags))                              \
    X(stream_destroy, "cuStreamDestroy_v2", (CUstream stream))                                               \
    X(event_create, "cuEventCreate", (CUevent * event, unsigned int flags))                                  \
    X(event_destroy, "cuEventDestroy_v2", (CUevent event))                                                   \
    X(event_record, "cuEventRecord", (CUevent event, CUstream stream))                                       \
    X(event_synchronize, "cuEventSynchronize", (CUevent event))                                              \
    X(event_elapsed_time, "cuEventElapsedTime", (float *milliseconds, CUevent start, CUevent end))

/* Null if the driver lacks them: without graphs, launches are timed one by one. */
#define DRIVER_TOOLS_GRAPH_FUNCTIONS(X)                                                                      \
    X(stream_begin_capture, "cuStreamBeginCapture_v2", (CUstream stream, int mode))                          \
    X(stream_end_capture, "cuStreamEndCapture", (CUstream stream, CUgraph * graph))                          \
    X(graph_instantiate, "cuGraphInstantiateWithFlags",                                                      \
      (CUgraphExec * exec, CUgraph graph, unsigned long long flags))                                         \
    X(graph_launch, "cuGraphLaunch", (CUgraphExec exec, CUstream stream))                                    \
    X(graph_destroy, "cuGraphDestroy", (CUgraph graph))                                                      \
    X(graph_exec_destroy, "cuGraphExecDestroy", (CUgraphExec exec))

typedef struct driver_tools {
#define DRIVER_TOOLS_MEMBER(member, symbol, parameters) int(*member) parameters;
    DRIVER_TOOLS_FUNCTIONS(DRIVER_TOOLS_MEMBER)
    DRIVER_TOOLS_GRAPH_FUNCTIONS(DRIVER_TOOLS_MEMBER)
#undef DRIVER_TOOLS_MEMBER
} driver_tools;

/* Loads from the library of a table that kiln_driver_load filled. Returns null, or the required entry point
 * that is missing. */
const char *driver_tools_load(driver_tools *tools, const kiln_driver *driver);

#endif
