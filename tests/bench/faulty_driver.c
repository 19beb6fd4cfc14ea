/* A driver with faults on request. It passes every call on to another driver library, except for kernels whose entry name
 * contains a given text. Real devices fail at unpredictable times; this driver fails as told. For single-threaded
 * programs.
 *
 *   KILN_FAULTY_DRIVER_FOR=PATH   the library that gets the calls: the emulated driver
 *   KILN_FAULTY=FAULT:TEXT,...    what happens to which kernels:
 *     hang          launches succeed, and the next wait for the device never returns
 *     lost          the next wait gives CUDA_ERROR_ILLEGAL_ADDRESS, and so does every later call that needs a context
 *     unloadable    an image with such an entry gives CUDA_ERROR_INVALID_PTX, and a log
 *     wrong         launches do nothing
 *     altered       after each launch, the lowest bit of the word that the first parameter points to is flipped
 *   KILN_FAULTY_NAME=NAME         the name of every device: without "emulated" in it, programs take it for a real one
 *   KILN_FAULTY_COUNT=FILE        gets a line "NAME CALLS" per entry point at the end of the process
 *
 * A wait is one of the entry points of the kind `waits`. A captured kernel fails whenever its graph is
 * launched. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kiln/driver.h>

typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

enum { ERROR_INVALID_PTX = 218, ERROR_NOT_READY = 600, ERROR_ILLEGAL_ADDRESS = 700 };
enum { JIT_ERROR_LOG = 5, JIT_ERROR_LOG_BYTES = 6 }; /* cuda.h: CUjit_option */

/* One row per entry point: kind, exported symbol, parameters, their names.
 *   host    needs no context: always passed on
 *   device  fails once the context is lost
 *   waits   waits for the device, then fails if the context is lost
 *   asks    whether the device is done
 *   own     fails once the context is lost, otherwise calls own_NAME below
 *   named   calls own_NAME also when the context is lost */
#define ENTRY_POINTS(X)                                                                                      \
    X(host, cuInit, (unsigned flags), (flags))                                                               \
    X(host, cuDriverGetVersion, (int *version), (version))                                                   \
    X(host, cuDeviceGetCount, (int *count), (count))                                                         \
    X(host, cuDeviceGet, (int *device, int ordinal), (device, ordinal))                                      \
    X(named, cuDeviceGetName, (char *name, int bytes, int device), (name, bytes, device))                    \
    X(host, cuDeviceGetAttribute, (int *value, int attribute, int device), (value, attribute, device))       \
    X(host, cuDeviceTotalMem_v2, (size_t * bytes, int device), (bytes, device))                              \
    X(host, cuDeviceGetUuid_v2, (void *uuid, int device), (uuid, device))                                    \
    X(host, cuDeviceGetPCIBusId, (char *text, int bytes, int device), (text, bytes, device))                 \
    X(host, cuGetErrorName, (int result, const char **text), (result, text))                                 \
    X(host, cuGetErrorString, (int result, const char **text), (result, text))                               \
    X(device, cuDevicePrimaryCtxRetain, (CUcontext * context, int device), (context, device))                \
    X(host, cuDevicePrimaryCtxRelease_v2, (int device), (device))                                            \
    X(device, cuCtxCreate_v2, (CUcontext * context, unsigned flags, int device), (context, flags, device))   \
    X(host, cuCtxDestroy_v2, (CUcontext context), (context))                                                 \
    X(host, cuCtxSetCurrent, (CUcontext context), (context))                                                 \
    X(host, cuCtxGetCurrent, (CUcontext * context), (context))                                               \
    X(host, cuCtxGetDevice, (int *device), (device))                                                         \
    X(waits, cuCtxSynchronize, (void), ())                                                                   \
    X(own, cuModuleLoadDataEx,                                                                               \
      (CUmodule * module, const void *image, unsigned count, int *options, void **values),                   \
      (module, image, count, options, values))                                                               \
    X(own, cuModuleLoadData, (CUmodule * module, const void *image), (module, image))                        \
    X(device, cuModuleUnload, (CUmodule module), (module))                                                   \
    X(own, cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name),                  \
      (function, module, name))                                                                              \
    X(device, cuModuleGetGlobal_v2,                                                                          \
      (CUdeviceptr * address, size_t * bytes, CUmodule module, const char *name),                            \
      (address, bytes, module, name))                                                                        \
    X(device, cuFuncGetAttribute, (int *value, int attribute, CUfunction function),                          \
      (value, attribute, function))                                                                          \
    X(device, cuFuncSetAttribute, (CUfunction function, int attribute, int value),                           \
      (function, attribute, value))                                                                          \
    X(device, cuOccupancyMaxActiveBlocksPerMultiprocessor,                                                   \
      (int *blocks, CUfunction function, int threads, size_t shared_bytes),                                  \
      (blocks, function, threads, shared_bytes))                                                             \
    X(own, cuLaunchKernel,                                                                                   \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,             \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **params,            \
       void **extra),                                                                                        \
      (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params, extra))    \
    X(own, cuLaunchKernelEx,                                                                                 \
      (const struct CUlaunchConfig_st *config, CUfunction function, void **params, void **extra),            \
      (config, function, params, extra))                                                                     \
    X(device, cuMemGetInfo_v2, (size_t * free_bytes, size_t * total_bytes), (free_bytes, total_bytes))       \
    X(device, cuMemAlloc_v2, (CUdeviceptr * address, size_t bytes), (address, bytes))                        \
    X(device, cuMemFree_v2, (CUdeviceptr address), (address))                                                \
    X(device, cuMemAllocHost_v2, (void **address, size_t bytes), (address, bytes))                           \
    X(device, cuMemFreeHost, (void *address), (address))                                                     \
    X(device, cuPointerGetAttribute, (void *value, int attribute, CUdeviceptr address),                      \
      (value, attribute, address))                                                                           \
    X(device, cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes), (to, from, bytes))          \
    X(waits, cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes))                 \
    X(device, cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes))          \
    X(device, cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),       \
      (to, from, bytes, stream))                                                                             \
    X(device, cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),             \
      (to, from, bytes, stream))                                                                             \
    X(device, cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),       \
      (to, from, bytes, stream))                                                                             \
    X(device, cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t bytes), (to, value, bytes))        \
    X(device, cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream),         \
      (to, value, bytes, stream))                                                                            \
    X(device, cuStreamCreate, (CUstream * stream, unsigned flags), (stream, flags))                          \
    X(device, cuStreamDestroy_v2, (CUstream stream), (stream))                                               \
    X(waits, cuStreamSynchronize, (CUstream stream), (stream))                                               \
    X(asks, cuStreamQuery, (CUstream stream), (stream))                                                      \
    X(device, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags), (stream, event, flags))   \
    X(device, cuStreamIsCapturing, (CUstream stream, int *status), (stream, status))                         \
    X(own, cuStreamBeginCapture_v2, (CUstream stream, int mode), (stream, mode))                             \
    X(own, cuStreamEndCapture, (CUstream stream, CUgraph * graph), (stream, graph))                          \
    X(own, cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags),       \
      (exec, graph, flags))                                                                                  \
    X(own, cuGraphLaunch, (CUgraphExec exec, CUstream stream), (exec, stream))                               \
    X(device, cuGraphUpload, (CUgraphExec exec, CUstream stream), (exec, stream))                            \
    X(device, cuGraphExecDestroy, (CUgraphExec exec), (exec))                                                \
    X(device, cuGraphDestroy, (CUgraph graph), (graph))                                                      \
    X(device, cuEventCreate, (CUevent * event, unsigned flags), (event, flags))                              \
    X(device, cuEventDestroy_v2, (CUevent event), (event))                                                   \
    X(device, cuEventRecord, (CUevent event, CUstream stream), (event, stream))                              \
    X(waits, cuEventSynchronize, (CUevent event), (event))                                                   \
    X(asks, cuEventQuery, (CUevent event), (event))                                                          \
    X(device, cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end),                         \
      (milliseconds, start, end))

/* ---- faults ----------------------------------------------------------------------------------------------------- */

enum { HANG = 1, LOST = 2, UNLOADABLE = 4, WRONG = 8, ALTERED = 16 };

static const struct {
    const char *word;
    unsigned fault;
} words[] = {
    {"hang", HANG}, {"lost", LOST}, {"unloadable", UNLOADABLE}, {"wrong", WRONG}, {"altered", ALTERED}};

static unsigned pending; /* HANG, LOST, or both: the faults of the next wait for the device */
static bool is_lost;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "faulty driver: %s: %s\n", what, why);
    exit(1);
}

static bool contains(const char *name, size_t name_bytes, const char *text, size_t text_bytes)
{
    for (size_t i = 0; i + text_bytes <= name_bytes; i++) {
        if (memcmp(name + i, text, text_bytes) == 0)
            return true;
    }
    return false;
}

/* Returns the faults of KILN_FAULTY for an entry name. */
static unsigned faults_of(const char *name, size_t name_bytes)
{
    unsigned faults = 0;
    const char *next = getenv("KILN_FAULTY");
    while (next && *next) {
        const size_t word_bytes = strcspn(next, ":,");
        const char *text = next + word_bytes + (next[word_bytes] == ':');
        const size_t text_bytes = strcspn(text, ",");
        unsigned fault = 0;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            if (strlen(words[i].word) == word_bytes && memcmp(words[i].word, next, word_bytes) == 0)
                fault = words[i].fault;
        }
        if (!fault || !text_bytes)
            fail("KILN_FAULTY",
                 "expected FAULT:TEXT, and FAULT one of hang, lost, unloadable, wrong, altered");
        if (contains(name, name_bytes, text, text_bytes))
            faults |= fault;
        next = text + text_bytes + (text[text_bytes] == ',');
    }
    return faults;
}

/* The faults of functions, graphs and executable graphs. The driver may give a handle to another object later. */
static struct {
    const void *handle;
    unsigned faults;
} marked[4096];
static size_t marked_count;

static unsigned *find_mark(const void *handle)
{
    for (size_t i = 0; i < marked_count; i++) {
        if (marked[i].handle == handle)
            return &marked[i].faults;
    }
    return NULL;
}

static void mark(const void *handle, unsigned faults)
{
    unsigned *found = find_mark(handle);
    if (found) {
        *found = faults;
    } else if (faults) {
        if (marked_count == sizeof marked / sizeof *marked)
            fail("KILN_FAULTY", "too many faulty kernels and graphs");
        marked[marked_count].handle = handle;
        marked[marked_count++].faults = faults;
    }
}

static unsigned marks_of(const void *handle)
{
    const unsigned *found = find_mark(handle);
    return found ? *found : 0;
}

/* One stream at a time captures. */
static bool is_capturing;
static CUstream capturing;
static unsigned captured;

/* Returns true if the launch must not be passed on. */
static bool launch_is_faulty(CUfunction function, CUstream stream)
{
    const unsigned faults = marks_of(function);
    if (is_capturing && stream == capturing)
        captured |= faults;
    else
        pending |= faults & (HANG | LOST);
    return (faults & ~(unsigned)ALTERED) != 0;
}

static int wait_for_device(void)
{
    while (pending & HANG)
        pause();
    is_lost |= (pending & LOST) != 0;
    return is_lost ? ERROR_ILLEGAL_ADDRESS : 0;
}

static int ask_device(void)
{
    return pending & HANG ? ERROR_NOT_READY : wait_for_device();
}

/* Returns the first entry of the image that must not load; null if all may. */
static const char *find_unloadable(const char *image, size_t *name_bytes)
{
    static const char ENTRY[] = ".entry";
    if (*image == '\x7f' || *image == '\x50') /* an ELF file, a fat binary */
        return NULL;
    for (const char *at = strstr(image, ENTRY); at; at = strstr(at, ENTRY)) {
        at += strlen(ENTRY);
        at += strspn(at, " \t\r\n");
        *name_bytes = strcspn(at, " \t\r\n({;");
        if (faults_of(at, *name_bytes) & UNLOADABLE)
            return at;
    }
    return NULL;
}

static void write_log(const char *name, size_t name_bytes, unsigned count, const int *options, void **values)
{
    char *log = NULL;
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == JIT_ERROR_LOG)
            log = values[i];
        else if (options[i] == JIT_ERROR_LOG_BYTES)
            bytes = (size_t)values[i];
    }
    if (log && bytes)
        snprintf(log, bytes, "ptxas fatal   : faulty driver: entry '%.*s' does not load", (int)name_bytes,
                 name);
}

/* ---- the wrapped driver ----------------------------------------------------------------------------------------- */

static void *find_entry_point(const char *name)
{
    static void *library;
    const char *path = getenv("KILN_FAULTY_DRIVER_FOR");
    if (!path)
        fail("KILN_FAULTY_DRIVER_FOR", "is not set");
    if (!library)
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail(path, dlerror());
    void *entry_point = dlsym(library, name);
    if (!entry_point)
        fail(path, name);
    return entry_point;
}

#define FORWARD(kind, name, parameters, arguments)                                                           \
    static int forward_##name parameters                                                                     \
    {                                                                                                        \
        static int(*entry_point) parameters;                                                                 \
        if (!entry_point)                                                                                    \
            *(void **)&entry_point = find_entry_point(#name);                                                \
        return entry_point arguments;                                                                        \
    }
ENTRY_POINTS(FORWARD)

/* ---- calls that may fail ---------------------------------------------------------------------------------------- */

static int own_cuDeviceGetName(char *name, int bytes, int device)
{
    const char *given = getenv("KILN_FAULTY_NAME");
    const int result = forward_cuDeviceGetName(name, bytes, device);
    if (result == 0 && given)
        snprintf(name, (size_t)bytes, "%s", given);
    return result;
}

static int own_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options,
                                  void **values)
{
    size_t name_bytes = 0;
    const char *name = find_unloadable(image, &name_bytes);
    if (!name)
        return forward_cuModuleLoadDataEx(module, image, count, options, values);
    write_log(name, name_bytes, count, options, values);
    return ERROR_INVALID_PTX;
}

static int own_cuModuleLoadData(CUmodule *module, const void *image)
{
    size_t name_bytes = 0;
    return find_unloadable(image, &name_bytes) ? ERROR_INVALID_PTX : forward_cuModuleLoadData(module, image);
}

static int own_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    const int result = forward_cuModuleGetFunction(function, module, name);
    if (result == 0)
        mark(*function, faults_of(name, strlen(name)) & ~(unsigned)UNLOADABLE);
    return result;
}

/* The kernel has at least one parameter, in `params` or in the buffer that the first pair of `extra` names. */
static void alter_result(void **params, void **extra)
{
    CUdeviceptr at;
    unsigned word;
    memcpy(&at, params ? params[0] : extra[1], sizeof at);
    if (forward_cuMemcpyDtoH_v2(&word, at, sizeof word) == 0) {
        word ^= 1;
        forward_cuMemcpyHtoD_v2(at, &word, sizeof word);
    }
}

static int own_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                              CUstream stream, void **params, void **extra)
{
    if (launch_is_faulty(function, stream))
        return 0;
    const int result = forward_cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                              shared_bytes, stream, params, extra);
    if (result == 0 && marks_of(function) & ALTERED)
        alter_result(params, extra);
    return result;
}

static int own_cuLaunchKernelEx(const struct CUlaunchConfig_st *config, CUfunction function, void **params,
                                void **extra)
{
    const struct {
        unsigned grid[3], block[3], shared_bytes;
        CUstream stream;
    } *first = (const void *)config; /* the first members of a CUlaunchConfig */
    return launch_is_faulty(function, first->stream)
               ? 0
               : forward_cuLaunchKernelEx(config, function, params, extra);
}

static int own_cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    const int result = forward_cuStreamBeginCapture_v2(stream, mode);
    if (result == 0) {
        is_capturing = true;
        capturing = stream;
        captured = 0;
    }
    return result;
}

static int own_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    const int result = forward_cuStreamEndCapture(stream, graph);
    is_capturing &= stream != capturing;
    if (result == 0)
        mark(*graph, captured);
    return result;
}

static int own_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    const int result = forward_cuGraphInstantiateWithFlags(exec, graph, flags);
    if (result == 0)
        mark(*exec, marks_of(graph));
    return result;
}

static int own_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    pending |= marks_of(exec) & (HANG | LOST);
    return forward_cuGraphLaunch(exec, stream);
}

/* ---- entry points ----------------------------------------------------------------------------------------------- */

enum {
#define CALL(kind, name, parameters, arguments) CALL_##name,
    ENTRY_POINTS(CALL) CALL_COUNT
};
static unsigned long long calls[CALL_COUNT];

#define DO_host(name, arguments)   forward_##name arguments
#define DO_device(name, arguments) is_lost ? ERROR_ILLEGAL_ADDRESS : forward_##name arguments
#define DO_waits(name, arguments)  wait_for_device() ? ERROR_ILLEGAL_ADDRESS : forward_##name arguments
#define DO_asks(name, arguments)   ask_device() ? ask_device() : forward_##name arguments
#define DO_own(name, arguments)    is_lost ? ERROR_ILLEGAL_ADDRESS : own_##name arguments
#define DO_named(name, arguments)  own_##name arguments

#define EXPORT(kind, name, parameters, arguments)                                                            \
    __attribute__((visibility("default"))) int name parameters;                                              \
    int name parameters                                                                                      \
    {                                                                                                        \
        calls[CALL_##name]++;                                                                                \
        return DO_##kind(name, arguments);                                                                   \
    }
ENTRY_POINTS(EXPORT)

__attribute__((destructor)) static void write_counts(void)
{
    static const char *const names[] = {
#define NAME(kind, name, parameters, arguments) #name,
        ENTRY_POINTS(NAME)};
    const char *path = getenv("KILN_FAULTY_COUNT");
    FILE *file = path ? fopen(path, "a") : NULL;
    for (size_t i = 0; file && i < CALL_COUNT; i++)
        fprintf(file, "%s %llu\n", names[i], calls[i]);
    if (file)
        fclose(file);
}
