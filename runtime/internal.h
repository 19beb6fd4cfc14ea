/* Declarations shared by the runtime's files. */
#ifndef RUNTIME_INTERNAL_H
#define RUNTIME_INTERNAL_H

#include <stdbool.h>

#include <kiln/kiln.h>

/* cuda.h's numbers, under names that do not collide with its own. tests/runtime compares them if cuda.h is installed.
 * */
enum {
    DEVICE_CLOCK_RATE = 13,               /* CU_DEVICE_ATTRIBUTE_CLOCK_RATE, in kHz like the memory clock */
    DEVICE_MULTIPROCESSOR_COUNT = 16,     /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */
    DEVICE_MEMORY_CLOCK_RATE = 36,        /* CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE */
    DEVICE_MEMORY_BUS_BITS = 37,          /* CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH */
    DEVICE_MULTIPROCESSOR_THREADS = 39,   /* CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR */
    DEVICE_COMPUTE_CAPABILITY_MAJOR = 75, /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
    DEVICE_COMPUTE_CAPABILITY_MINOR = 76, /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR */
    DEVICE_MULTIPROCESSOR_SHARED_BYTES = 81, /* CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR */
    DEVICE_MAX_SHARED_BYTES_OPTIN = 97,      /* CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
    FUNCTION_MAX_DYNAMIC_SHARED_BYTES = 8,   /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    STUB_LIBRARY = 34,                       /* CUDA_ERROR_STUB_LIBRARY */
    JIT_ERROR_LOG_BUFFER = 5,                /* CU_JIT_ERROR_LOG_BUFFER */
    JIT_ERROR_LOG_BUFFER_BYTES = 6           /* CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES */
};

/* CUlaunchConfig and CUlaunchAttribute of cuda.h, with one attribute. */
enum {
    PROGRAMMATIC_STREAM_SERIALIZATION = 6, /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
    FIRST_DEPENDENT_SM = 90
};
typedef struct launch_attribute {
    uint32_t id, padding;
    union {
        int is_allowed;
        uint64_t words[8];
    } value;
} launch_attribute;
typedef struct launch_config {
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
    launch_attribute *attributes;
    unsigned attribute_count;
} launch_config;

/* CUDA programming guide: available to every launch; a function opts in to more. */
enum { SHARED_BYTES_WITHOUT_OPTIN = 48 * 1024 };

/* kiln_loader.state; zero is closed, so a zeroed loader is closed. Open is a number that uninitialised storage is
 * unlikely to hold. */
enum { LOADER_CLOSED = 0, LOADER_OPEN = 0x6b696c6e };

/* Keeps code of failure paths small; compilers would inline functions that are called often. */
#define ONCE __attribute__((noinline))

#pragma GCC visibility push(hidden) /* for shared objects that export kiln_* */

/* Records a failure of a loader: every failure goes through kiln_record; the others, like kiln_fail, fill in the
 * struct. All return the status. */
ONCE kiln_status kiln_record(kiln_loader *loader, const kiln_error *error);
kiln_status kiln_fail_call(kiln_loader *loader, kiln_status status, const char *subject, const char *detail,
                           int driver_result);
kiln_status kiln_fail_count(kiln_loader *loader, kiln_status status, const char *subject, const char *detail,
                            uint32_t needed, uint32_t present);

/* Returns the kernel's function, loading it if needed. The loader must be open. */
kiln_status kiln_load(kiln_loader *loader, const kiln_kernel *kernel, CUfunction *function);

/* Acquires one of the loader's locks; calls options.wait while another thread holds it. */
ONCE void kiln_acquire(kiln_loader *loader, uint32_t *lock);

#pragma GCC visibility pop

static inline void release_lock(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif
