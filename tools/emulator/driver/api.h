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

/* Handles are checked against a registry before they are looked into, so that a bad one is an error and not a crash. */
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
/* Some stream or event of the context; NULL: it has none. */
void *emu_any_of(emu_kind kind, CUcontext context);

typedef struct emu_device {
    const emu_device_model *model;
    int ordinal;
    CUcontext primary;
    unsigned primary_references, primary_flags;
} emu_device;

#define EMU_MOST_DEVICES 16

typedef struct emu_driver {
    bool is_initialised;
    int version;            /* 13010 */
    bool is_version_chosen; /* else PTX that is newer is read, too */
    unsigned checks;
    emu_device devices[EMU_MOST_DEVICES];
    int device_count;
} emu_driver;

extern emu_driver emu_the_driver;

/* CUDA_SUCCESS; or cuInit has not been called, or there is no such device. */
CUresult emu_find_device(CUdevice ordinal, emu_device **device);

struct CUctx_st {
    emu_device *device;
    unsigned flags;
    bool is_primary;
    CUresult error; /* sticks once a kernel has failed */
    struct CUmod_st *modules;
    uint64_t default_overlap; /* as a stream's */
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
};

struct CUmod_st {
    CUmodule next;
    bool has_told; /* what is refused, to a log of the caller */
    CUcontext context;
    char *source; /* follows a newline, see emu_parse */
    emu_module *parsed;
    CUfunction functions;
    uint64_t *addresses; /* by symbol sequence, in the variable's space */
    emu_place *places;   /* for the decodings of the load */
    uint32_t decodings;
    emu_allocation *const_bank;
    emu_allocation **globals; /* by symbol sequence; .global variables */
};

struct CUevent_st {
    CUcontext context;
    unsigned flags;
    bool is_recorded;
    uint64_t nanoseconds;
};

typedef enum emu_work_kind {
    EMU_WORK_LAUNCH,
    EMU_WORK_COPY,
    EMU_WORK_SET,
    EMU_WORK_RECORD,
    EMU_WORK_CALL
} emu_work_kind;

/* One operation of a stream or a node of a graph. */
typedef struct emu_work {
    struct emu_work *next;
    emu_work_kind kind;
    struct {
        CUfunction function;
        uint32_t grid[3], block[3], shared_bytes;
        char *parameters; /* owned */
        uint32_t parameter_bytes;
        bool is_dependent; /* see emu_launch */
    } launch;
    struct {
        uint64_t to, from;
        size_t bytes;
        bool to_host, from_host; /* host addresses that may be any memory of the process */
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
    uint64_t overlap; /* serial of the first launch that a dependent one may overlap with; 0: none */
    CUgraph capture;  /* while capturing */
    int capture_mode;
    bool is_invalidated;
};

/* Beginning of nearly every entry point: the calling thread's live context, without a sticky error. */
CUresult emu_enter(CUcontext *context);
CUcontext emu_current_context(void);

#define EMU_ENTER(context)                                                                                   \
    CUcontext context = NULL;                                                                                \
    do {                                                                                                     \
        CUresult entered_ = emu_enter(&context);                                                             \
        if (entered_ != CUDA_SUCCESS)                                                                        \
            return entered_;                                                                                 \
        (void)context;                                                                                       \
    } while (0)

/* Default streams have no object: *stream becomes NULL for them. */
CUresult emu_check_stream(CUcontext context, CUstream *stream);
/* Executes the work, or records it when the stream is being captured. Takes what the work owns. */
CUresult emu_submit(CUcontext context, CUstream stream, emu_work *work);
/* All launches so far have ended, as the host has waited; on this stream, as what came next has. */
void emu_end_overlaps(void);
void emu_end_overlap(CUcontext context, CUstream stream);
/* Ends the capture, if there is one, and forgets what was captured. */
void emu_abandon_capture(CUstream stream);
void emu_free_streams_and_events(CUcontext context);
emu_work *emu_copy_work(const emu_work *work);
void emu_free_work(emu_work *work); /* and what follows it */
/* Each side of a copy in the driver's memory, pinned host memory too, must be inside one live allocation. */
CUresult emu_check_copy(const emu_work *copy);
/* Is some stream being captured in a mode that forbids unsafe calls? */
bool emu_capture_forbids(void);
/* More streams, or fewer, are being captured in such a mode. */
void emu_count_captures(int more);

void emu_unload_module(CUmodule module);

unsigned emu_max_threads(CUfunction function);
int emu_occupancy(CUfunction function, unsigned threads, size_t dynamic_shared_bytes);

#endif
