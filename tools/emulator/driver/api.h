/* The objects behind the driver's handles, and what the files of the API share. */
#ifndef EMU_API_H
#define EMU_API_H

#include "../core/launch.h"
#include "../core/memory.h"
#include "../core/program.h"
#include "../decode/decode.h"
#include "../front/module.h"
#include "../support/targets.h"
#include "cuda_api.h"

/* Handles are looked up in a registry before they are dereferenced, so that a bad handle is an error and not a crash. */
typedef enum emu_kind {
    EMU_CONTEXT,
    EMU_MODULE,
    EMU_FUNCTION,
    EMU_STREAM,
    EMU_EVENT,
    EMU_GRAPH,
    EMU_GRAPH_EXEC,
} emu_kind;

void emu_register(void *object, emu_kind kind, CUcontext context);
void emu_unregister(void *object);
bool emu_is(const void *object, emu_kind kind);
/* Returns any stream or event of the context; NULL: it has none. */
void *emu_any_of(emu_kind kind, CUcontext context);

typedef struct emu_device {
    const emu_device_model *model;
    int ordinal;       /* index among the visible devices */
    unsigned slot;     /* index among the system's devices; in the UUID and the PCI bus number */
    CUcontext primary; /* its handle never changes; registered while the context is active */
    unsigned primary_references, primary_flags;
} emu_device;

#define EMU_MOST_DEVICES 16

typedef enum emu_phase { EMU_BEFORE_INIT, EMU_READY, EMU_FORKED, EMU_EXITING } emu_phase;

typedef struct emu_driver {
    emu_phase phase;
    int version;            /* such as 13010 */
    bool is_version_chosen; /* refuse a newer PTX .version; otherwise accept it */
    unsigned checks;
    emu_device devices[EMU_MOST_DEVICES];
    int device_count;
} emu_driver;

extern emu_driver emu_the_driver;

/* CUDA_SUCCESS if cuInit has succeeded in this process and the process is not exiting. */
CUresult emu_ready(void);

/* Returns the error of emu_ready, or CUDA_ERROR_INVALID_DEVICE. */
CUresult emu_find_device(CUdevice ordinal, emu_device **device);

struct CUctx_st {
    CUcontext next_destroyed;
    emu_device *device;
    unsigned flags;
    bool is_primary;
    CUresult error; /* sticky error of a failed kernel */
    struct CUmod_st *modules;
    uint64_t default_overlap; /* as CUstream_st.overlap, for the default stream */
    size_t limits[16];
};

struct CUfunc_st {
    CUfunction next;
    CUmodule module;
    const emu_function *function;
    emu_program *program; /* NULL: refused */
    const char *refusal;
    char *name;
    int max_dynamic_shared_bytes, preferred_carveout, cache_config;
    int cluster[3]; /* required, in blocks; 0: not given */
    bool allows_large_clusters;
    int cluster_scheduling; /* CUclusterSchedulingPolicy, which changes nothing */
    uint64_t serial;        /* distinguishes it from a later function with the same handle */
};

struct CUmod_st {
    CUmodule next;
    bool has_told; /* a log of the caller has listed the refused kernels */
    CUcontext context;
    char *source; /* preceded by a newline, see emu_parse */
    emu_module *parsed;
    CUfunction functions;
    uint64_t *addresses; /* by symbol sequence, in the variable's space */
    emu_place *places;   /* for decoding while the module is loaded */
    uint32_t decodings;
    emu_allocation *const_bank;
    emu_allocation **globals; /* by symbol sequence; .global variables */
};

/* Nodes of a graph, as a bitmap of their numbers. */
typedef struct emu_node_set {
    uint64_t *words; /* owned */
    size_t count;
} emu_node_set;

struct CUevent_st {
    CUcontext context;
    unsigned flags;
    bool is_recorded;
    uint64_t nanoseconds;
    uint64_t capture; /* serial of the capture in which it was last recorded; 0: none */
    emu_node_set after;
};

typedef enum emu_work_kind {
    EMU_WORK_LAUNCH,
    EMU_WORK_COPY,
    EMU_WORK_SET,
    EMU_WORK_RECORD,
    EMU_WORK_WAIT,
    EMU_WORK_CALL
} emu_work_kind;

typedef struct emu_capture emu_capture; /* capture.c */

/* An operation of a stream, or a node of a graph. */
typedef struct emu_work {
    struct emu_work *next;
    emu_work_kind kind;
    struct {
        CUfunction function;
        uint64_t serial; /* of the function */
        uint32_t grid[3], block[3], cluster[3], shared_bytes;
        bool is_explicit_cluster;
        char *parameters; /* owned */
        uint32_t parameter_bytes;
        bool is_dependent; /* see emu_launch */
    } launch;
    struct {
        uint64_t to, from;
        size_t bytes;
        bool to_host, from_host; /* to or from the host: any memory of the process is allowed */
    } copy;
    struct {
        uint64_t to;
        uint32_t value, element;
        size_t count;
    } set;
    CUevent event;
    CUhostFn call;
    void *data;
} emu_work;

struct CUgraph_st {
    CUcontext context;
    emu_work *first, **last;
    size_t count;
};

struct CUstream_st {
    CUcontext context;
    unsigned flags;
    int priority;
    uint64_t overlap; /* serial of the first launch that a dependent launch may overlap with; 0: none */
    emu_capture *capture;
    CUstream next_captured; /* next stream of the same capture */
    emu_node_set after;     /* the nodes that the stream's next node depends on */
};

/* Called first by nearly every entry point: returns the calling thread's live context, or its sticky error. */
CUresult emu_enter(CUcontext *context);
CUcontext emu_current_context(void);

/* Returns from the caller if the call fails. */
#define EMU_CHECK(call)                                                                                      \
    do {                                                                                                     \
        CUresult checked_ = call;                                                                            \
        if (checked_ != CUDA_SUCCESS)                                                                        \
            return checked_;                                                                                 \
    } while (0)

#define EMU_ENTER(context)                                                                                   \
    CUcontext context = NULL;                                                                                \
    EMU_CHECK(emu_enter(&context));                                                                          \
    (void)context

/* For calls that are potentially unsafe during a stream capture. */
#define EMU_ENTER_UNSAFE(context)                                                                            \
    EMU_ENTER(context);                                                                                      \
    EMU_CHECK(emu_capture_allows_unsafe())

/* Checks the handle. Sets *stream to NULL for default streams, which have no object. */
CUresult emu_check_stream(CUcontext context, CUstream *stream);
/* Executes the work, or records it if the stream is captured. Takes ownership of the work's memory. */
CUresult emu_submit(CUcontext context, CUstream stream, emu_work *work);
/* No later launch may overlap with earlier ones: of any stream, since the host has waited; of this stream, since other work
   follows. */
void emu_end_overlaps(void);
void emu_end_overlap(CUcontext context, CUstream stream);
void emu_free_streams_and_events(CUcontext context);
/* Each side of a copy that is in memory of the driver, pinned host memory included, must be inside one live allocation. */
CUresult emu_check_copy(const emu_work *copy);

/* node.c */
emu_work *emu_copy_work(const emu_work *work);
void emu_free_work(emu_work *work); /* frees it and all that follow it */
CUgraph emu_make_graph(CUcontext context);
void emu_add_node(CUgraph graph, const emu_work *work); /* adds a copy */
void emu_free_graph(CUgraph graph);

/* capture.c: return CUDA_SUCCESS if no capture forbids a call; otherwise they invalidate each capture that forbids it. The
   first is for calls that may be unsafe, such as an allocation. A NULL stream is the context's legacy stream. */
CUresult emu_capture_allows_unsafe(void);
CUresult emu_capture_allows_stream(CUcontext context, CUstream stream);
CUresult emu_capture_allows_context(CUcontext context);
CUresult emu_capture_allows_event(CUevent event);

bool emu_is_captured(CUstream stream);
/* Appends a copy of the work to the graph of the stream's capture. */
CUresult emu_capture_work(CUstream stream, const emu_work *work);
CUresult emu_capture_record(CUstream stream, CUevent event);
/* Sets *goes_on if no capture is involved; the caller then waits. */
CUresult emu_capture_wait(CUcontext context, CUstream stream, CUevent event, bool *goes_on);
/* Call these before the object is freed. Destroying the stream on which a capture began ends the capture. */
void emu_capture_forget_stream(CUstream stream);
void emu_capture_forget_event(CUevent event);

void emu_unload_module(CUmodule module);

/* cluster.c: return false for attributes of functions that do not concern clusters. */
bool emu_get_cluster_attribute(CUfunction function, int attribute, int *value);
bool emu_set_cluster_attribute(CUfunction function, int attribute, int value, CUresult *result);
/* Chooses the cluster's extents: those of the launch (NULL: none), else those of the function, else 1. Checks them. */
CUresult emu_choose_cluster(CUfunction function, const uint32_t *given, uint32_t cluster[3],
                            bool *is_explicit);
CUresult emu_check_cluster(CUfunction function, const uint32_t grid[3], const uint32_t cluster[3]);
unsigned emu_most_cluster_blocks(CUfunction function);

unsigned emu_max_threads(CUfunction function);
/* Returns the registers per thread at entry, which setmaxnreg needs; 0: unknown, as to ptxas. */
unsigned emu_entry_registers(CUfunction function);
int emu_occupancy(CUfunction function, unsigned threads, size_t dynamic_shared_bytes);

#endif
