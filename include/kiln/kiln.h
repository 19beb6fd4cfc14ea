/* The kiln runtime, for programs that contain kernels that kiln generated.
 *
 * The runtime finds a kernel, picks the image for the device, hands it to the CUDA Driver API once and launches it.
 * It generates nothing, allocates nothing, prints nothing and creates no context. All storage is the caller's: a
 * kiln_driver, a kiln_loader, and an array of NAME_SLOTS kiln_slot per loader (NAME is the bundle's name). They must
 * not move while in use.
 *
 * A loader belongs to one bundle and to one CUcontext: the one that is current on the thread that calls kiln_open.
 * That context must be current on every thread that loads or launches. One loader per device.
 *
 * Threads: every function may be called from any thread at once, except kiln_open, kiln_close and kiln_forget of the
 * same loader. A kernel is loaded once, on its first use, even if threads race for it; the other threads call
 * options.wait until it is loaded. A loader loads one module at a time. Preloaded kernels can be captured into CUDA
 * graphs.
 *
 * Real time: preload every kernel that the calls may choose. Then a call that succeeds takes no lock, allocates nothing,
 * loads nothing and makes no system call in this library. A test checks it (tests/bundle/realtime_test.c).
 * - It holds for all generated functions (NAME_FAMILY and its _pick, _candidates and _workspace, NAME_FAMILY_VARIANT, and the
 *   others), kiln_launch, kiln_preload of loaded kernels, kiln_begin, kiln_check_pointers, kiln_usable, and all functions
 *   that take no loader, except kiln_driver_load, kiln_driver_close and kiln_describe_driver.
 * - A call that launches makes one driver call: cuLaunchKernel, or cuLaunchKernelEx if options.overlap_launches
 *   applies. Before it comes cuTensorMapEncodeTiled for each of the kernel's tensor maps (kiln_family.maps), also
 *   with KILN_NO_LAUNCH. Other calls make none; no call checks which context is current. The driver call is beyond this library's
 *   control: it may lock, allocate, and wait for room in a full stream.
 * - A call that fails holds the loader's error lock while it copies 40 bytes; so does kiln_last_error. If another
 *   thread holds it, the call waits with options.wait, which yields by default. Under SCHED_FIFO a thread yields only
 *   to threads of its priority: if threads of several priorities share a processor and a loader, pass an options.wait
 *   that sleeps.
 * - Stack and time are bounded: see below for the stack; a choice takes time proportional to the number of the family's
 *   variants.
 * - The program must lock its memory (mlockall), since the first touch of a page faults, and link with -Wl,-z,now,
 *   since the dynamic linker otherwise resolves each function at its first call.
 * - No function may be called from a signal handler.
 *
 * Errors: functions return a status. kiln_last_error has the details of the loader's most recent failure.
 *
 * Stack: at most 1024 bytes, or 2048 including a generated function (x86-64, gcc and clang, -O2 and -Os, kiln's own
 * families). Not included: the driver, the callbacks in kiln_options, dlopen, and the codec of a compressed image
 * (zstd.h).
 *
 * Several bundles in one program: one loader each; they share the driver's table. A bundle may also be a pack, a shared
 * object that the program opens at run time:
 *
 *     void *pack = dlopen("./pack.so", RTLD_NOW | RTLD_LOCAL);
 *     const kiln_index *index = dlsym(pack, "NAME_index");
 *     kiln_open(&loader, &driver, index->bundle, slots, slot_count, NULL);     (index->bundle->slot_count at least)
 *     const kiln_index_family *axpy = kiln_find_family(index, "axpy");
 *     axpy->call(&loader, stream, &args);                                      (the struct of the pack's NAME.h)
 *
 * kiln_open checks a pack's layout version before it reads anything else: use the index only after that. A pack is
 * NAME.c, compiled with -fPIC and linked with -shared and a version script `{ global: NAME_index; local: *; };`.
 * Without the script its names bind to a namesake's in the program. It calls kiln_begin, kiln_check_pointers,
 * kiln_fail, kiln_launch and kiln_usable, with compressed images also kiln_zstd. These come from the program, linked
 * with -rdynamic (CMake: ENABLE_EXPORTS), or from the pack's own libkiln_runtime.a; all state is the loader's. Close
 * the loader before dlclose; the strings of kiln_last_error point into the pack.
 */
#ifndef KILN_KILN_H
#define KILN_KILN_H

#include <kiln/bundle.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header: CMake reads these three macros, and every other version derives from them. */
#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 3
#define KILN_VERSION_PATCH 0

/* As a number (0.12.3 is 1203) and as text. */
#define KILN_VERSION_NUMBER (KILN_VERSION_MAJOR * 10000u + KILN_VERSION_MINOR * 100u + KILN_VERSION_PATCH)
#define KILN_VERSION                                                                                         \
    KILN_TEXT(KILN_VERSION_MAJOR) "." KILN_TEXT(KILN_VERSION_MINOR) "." KILN_TEXT(KILN_VERSION_PATCH)

#define KILN_TEXT(macro)    KILN_TEXT_OF(macro)
#define KILN_TEXT_OF(value) #value

/* Returns the KILN_VERSION_NUMBER of the linked runtime. Which bundles it reads depends only on their layout, which
 * kiln_open checks. */
uint32_t kiln_version(void);

/* Details of a failure. All strings are static: they live as long as the program, or as the pack that they come from.
 * */
typedef struct kiln_error {
    kiln_status status;
    int driver_result;   /* the CUresult, or 0 if no driver call failed */
    const char *subject; /* the kernel's id, the family, or the driver's entry point; never null */
    const char *detail;  /* what was wrong, or the broken rule; never null, may be "" */
    uint32_t needed;     /* versions or counts, if the status documents them */
    uint32_t present;
    size_t log_bytes; /* text in options.log after this failure, without its NUL; 0 for none */
} kiln_error;

/* One launch, for kiln_options.launch_hook. Only the kernel stays valid after the hook returns. trace.h reads the sizes
 * by name. */
typedef struct kiln_launch_event {
    const kiln_kernel *kernel;
    const void *const *params; /* as for cuLaunchKernel */
    CUstream stream;
    const uint64_t *grid;  /* 3: thread blocks */
    const uint32_t *block; /* 3: threads */
    uint32_t shared_bytes; /* dynamic shared memory per thread block */
    int is_after;          /* 0 before the launch, 1 after it */
    int driver_result;     /* the CUresult after the launch; 0 before it */
} kiln_launch_event;

typedef struct kiln_options {
    void (*wait)(
        void *context); /* called repeatedly while another thread loads; null: yields the processor */
    void *wait_context;
    /* Checks an image before the driver gets it; null: unchecked. Pass kiln_check_image. */
    kiln_status (*check_image)(const kiln_image *image);
    char *log;        /* the driver's JIT log of a failed load, NUL-terminated; may be null */
    size_t log_bytes; /* its size; 0 for none */
    /* The buffer where compressed images are expanded, one at a time, while they load: NAME_SCRATCH_BYTES, aligned to
     * 16. Between loads it may move or hold other data; loaders that never load at once may share it. May be null for
     * an uncompressed bundle. */
    void *scratch;
    size_t scratch_bytes;
    int ptx_only; /* not 0: skips cubins, for a driver that executes only PTX: the emulated one */
    /* Not 0: programmatic dependent launch, on sm_90 and newer. A kernel that itself waits for the preceding
     * launch on its stream (KILN_KERNEL_DEPENDENT) may begin before that launch has ended. Other kernels, and
     * all kernels if the driver has no cuLaunchKernelEx, are launched normally. Preceding launches must then
     * not write constant arguments (NAME.h says which) unless a copy, an event or the host has waited for
     * these launches. */
    int overlap_launches;
    /* For tracing: called before and after each launch, on the thread that launches; null: none. A launch is a call of
     * cuLaunchKernel or cuLaunchKernelEx, also while a graph is captured and if the driver rejects it. Not a launch: a
     * call that the runtime rejects, a call without work, KILN_NO_LAUNCH, a load, the replay of a graph. The kernel is
     * loaded before the first call of the hook. A hook may call the driver; it must not launch, load or close with this
     * loader. */
    void (*launch_hook)(void *context, const kiln_launch_event *event);
    void *launch_hook_context;
} kiln_options;

/* The device properties that selection, dispatch and launch geometry may depend on. */
typedef struct kiln_device {
    uint32_t sm;             /* compute capability, 10 * major + minor */
    uint32_t driver_version; /* as cuDriverGetVersion reports it */
    uint32_t multiprocessors;
    uint32_t max_shared_bytes; /* per thread block, after opt-in */
    uint32_t ptx_only;         /* kiln_options.ptx_only */
    /* Inputs of estimates (estimate.h). In brackets: the fallback if the driver does not report it. */
    uint32_t multiprocessor_shared_bytes; /* [max_shared_bytes + 1 KB] */
    uint32_t multiprocessor_threads;      /* [1024] */
    uint32_t memory_cycles;               /* of a multiprocessor, per MiB of memory [of 1 KB per cycle] */
    /* Cycles of a quarter of a multiprocessor, for products on tensor cores: */
    uint32_t mma_cycles;     /* per 256 multiply-adds of 16-bit types, sums in f32 */
    uint32_t mma_s8_cycles;  /* per 1024 multiply-adds of 8-bit integers */
    uint32_t mma_fp4_cycles; /* per 2048 multiply-adds of block-scaled e2m1, if it has such products */
} kiln_device;

/* Dispatch's view of one variant, from NAME_FAMILY_candidates. If cycles has the bit KILN_MEASURED, its other bits are
 * not an estimate but the nanoseconds that a tuned file has for this variant near this shape (tuned.h). Dispatch
 * launches the launchable variant with the fewest nanoseconds; if none is measured, the one with the fewest cycles. */
#define KILN_MEASURED (UINT64_C(1) << 62)
typedef struct kiln_candidate {
    const kiln_kernel *kernel;
    uint64_t
        cycles; /* the estimate: estimate.h; 0 if the variant is ruled out, is the only one, or is external PTX */
    const char
        *why_not; /* the rule that this call breaks, or that the device cannot run it; null: launchable */
} kiln_candidate;

/* The caller's storage for one module or kernel. Private. */
typedef struct kiln_slot {
    CUmodule module;
    CUfunction function;
    const kiln_kernel *kernel; /* the function's kernel; null until it is loaded */
} kiln_slot;

/* The caller's storage for a loader. Private, except `device`, which is constant from kiln_open to kiln_close. */
struct kiln_loader {
    kiln_device device;
    uint32_t load_lock;  /* held while a module loads, which can take seconds */
    uint32_t error_lock; /* held while an error is copied */
    uint32_t state;
    const kiln_driver *driver;
    const kiln_bundle *bundle;
    kiln_slot *slots;
    CUcontext context;
    kiln_options options;
    kiln_error error;
};

/* ---- driver_dlopen.c ------------------------------------------------------------------------------------------ */

/* Opens a driver library and fills the table; path null means "libcuda.so.1". Calls no function in it: cuInit and the
 * context are the caller's. An error leaves the table zeroed. After DRIVER_NOT_FOUND dlerror() gives the reason. After
 * DRIVER_SYMBOL *missing_symbol is the missing entry point (otherwise null), if missing_symbol is not null: the driver
 * is older than KILN_OLDEST_DRIVER. Missing entries of KILN_DRIVER_OPTIONAL_FUNCTIONS are null. */
kiln_status kiln_driver_load(kiln_driver *driver, const char *path, const char **missing_symbol);

/* Closes the library. No loader may still use the table. */
void kiln_driver_close(kiln_driver *driver);

/* ---- load.c --------------------------------------------------------------------------------------------------- */

/* Binds a bundle to the context that is current on this thread. Loads nothing. `options` may be null and is copied.
 * NULL_POINTER, LAYOUT, TOO_FEW_SLOTS, SCRATCH_TOO_SMALL, MISALIGNED (options.scratch), DRIVER_SYMBOL (a null in a
 * table filled by hand), NO_CONTEXT, DRIVER: the loader stays closed; kiln_last_error works. ALREADY_OPEN: the loader is
 * unchanged and open. */
kiln_status kiln_open(kiln_loader *loader, const kiln_driver *driver, const kiln_bundle *bundle,
                      kiln_slot *slots, size_t slot_count, const kiln_options *options);

/* Unloads every module and closes the loader: all calls except kiln_last_error, kiln_open and kiln_close then fail with
 * CLOSED, as they do on a zeroed loader. Its context must be current and none of its kernels may still run. Closing a
 * closed loader does nothing. NO_CONTEXT, WRONG_CONTEXT or DRIVER ("cuCtxGetCurrent"): nothing was done, the loader is
 * still open. DRIVER ("cuModuleUnload"): names the first module that could not be unloaded; the others were, and the
 * loader is closed. */
kiln_status kiln_close(kiln_loader *loader);

/* Closes the loader without calling the driver; its storage may be used again. Use it for a loader whose
 * context other code has destroyed or reset: its modules are gone too, and kiln_close would return
 * WRONG_CONTEXT. The driver has no safe way to ask whether a context still exists, so the caller has to know.
 * If the context does exist, the modules stay loaded until it is destroyed. Null does nothing. */
void kiln_forget(kiln_loader *loader);

/* Loads kernels now instead of on first use. Stops at the first failure; modules loaded so far stay loaded. A kernel that the
 * device cannot run is a failure: skip kernels for which kiln_usable returns 0. NULL_POINTER (the loader, or a kernel), CLOSED,
 * and the errors of a load. */
kiln_status kiln_preload(kiln_loader *loader, const kiln_kernel *const *kernels, size_t count);

/* Copies the details of the most recent failure on this loader, by any thread; error->status is KILN_OK if there was
 * none. Works on a closed loader. NULL_POINTER. */
kiln_status kiln_last_error(kiln_loader *loader, kiln_error *error);

/* ---- find.c, find_family.c, find_name.c, select.c, verify.c, status.c, describe.c --------------------------------------------- */

/* Returns the kernel with this key, or null. */
const kiln_kernel *kiln_find(const kiln_index *index, uint64_t key);

/* Returns the family of this name, or null: its call, pick and kernels. For programs that open a pack and know the
 * family's argument struct, which has args_bytes bytes. */
const kiln_index_family *kiln_find_family(const kiln_index *index, const char *name);

/* Returns the kernel with this canonical id ("nf4_unpack/type=f32,group=64,nibbles=low"), or null. */
const kiln_kernel *kiln_find_name(const kiln_index *index, const char *id);

/* Why an image fits a device, or does not. */
typedef enum KILN_AS_INT kiln_fit {
    KILN_FIT = 0,
    KILN_FIT_DEVICE_TOO_OLD = 1, /* made for a newer architecture */
    KILN_FIT_OTHER_DEVICE = 2,   /* architecture- or family-specific, or a cubin, and not for this device */
    KILN_FIT_DRIVER_TOO_OLD = 3, /* the device could run it, but the driver is too old for the image */
    KILN_FIT_NOT_PTX = 4         /* a cubin, and kiln_options.ptx_only is set */
} kiln_fit;
kiln_fit kiln_image_fit(const kiln_device *device, const kiln_image *image);

/* Returns the best image for a device, or null. Among the images that fit: a cubin for exactly this device, then
 * architecture- or family-specific PTX, then the newest base PTX. */
const kiln_image *kiln_select(const kiln_device *device, const kiln_module *module);

/* Returns KILN_OK, CORRUPT_IMAGE or NULL_POINTER. Detects corruption; does not protect against tampering. */
kiln_status kiln_check_image(const kiln_image *image);

/* Returns a static, one-line text for each status; "unknown status" for other numbers. */
const char *kiln_status_string(kiln_status status);

/* Writes the error as one line of text, NUL-terminated and truncated to `bytes`: the status (kiln_status_string's text,
 * so do not print that too), the subject, the rule or the versions. For NO_IMAGE and DRIVER_TOO_OLD (kernel not null)
 * it adds each image and why it does not fit, and the shared memory that the kernel needs if the device has less.
 * Returns the length of the whole text without its NUL, as snprintf does. */
size_t kiln_describe_error(const kiln_loader *loader, const kiln_error *error, const kiln_kernel *kernel,
                           char *text, size_t bytes);

/* Describes the failure of a driver call that the program made: "driver call failed: cuInit: CUDA_ERROR_NO_DEVICE
 * (100)". `driver` gives the name of the result; if it is null or lacks cuGetErrorName, the text has only the number.
 * Result 34 is explained: the program loaded the CUDA toolkit's stub libcuda.so, which exists only for linking. */
size_t kiln_describe_driver(const kiln_driver *driver, const char *call, int result, char *text,
                            size_t bytes);

/* ---- load.c, launch.c: what generated code calls --------------------------------------------------------------- */

/* Checks what a generated function needs before it reads loader->device: NULL_POINTER if loader or args is null, CLOSED
 * if the loader is not open. */
kiln_status kiln_begin(kiln_loader *loader, const void *args, const char *subject);

/* Checks the pointers of an argument struct: NULL_POINTER if a required pointer is null (bit i of `required` is pointer
 * i's); MISALIGNED if a pointer lacks its alignment; otherwise OK. */
kiln_status kiln_check_pointers(kiln_loader *loader, const char *subject, const kiln_pointers *pointers,
                                const void *args, uint32_t required);

/* A stream for a typed function or kiln_launch that makes every check of a launch, and loads and launches nothing. */
#define KILN_NO_LAUNCH ((CUstream)UINTPTR_MAX)

/* Loads on first use and launches; call kiln_begin first. The kernel must not be null (kiln_find may return null). grid has
 * three numbers of thread blocks, followed by three of threads if the kernel's own block is zeros; params as for
 * cuLaunchKernel. GRID_TOO_LARGE; BAD_ARGUMENT for an empty grid, more dynamic shared memory than the kernel's
 * max_shared_bytes or the device allows, or a kernel that is not in this loader's bundle; the errors of a load; LAUNCH. */
kiln_status kiln_launch(kiln_loader *loader, const kiln_kernel *kernel, CUstream stream, const uint64_t *grid,
                        uint64_t shared_bytes, const void *const *params);

/* Returns whether this kernel has an image that fits the loader's device, and the device has the shared memory of the
 * kernel's smallest launch. 0 for null and on a closed loader. */
int kiln_usable(const kiln_loader *loader, const kiln_kernel *kernel);

/* Records a failure and returns its status. subject and detail must be static. */
kiln_status kiln_fail(kiln_loader *loader, kiln_status status, const char *subject, const char *detail);

#ifdef __cplusplus
}
#endif

#endif
