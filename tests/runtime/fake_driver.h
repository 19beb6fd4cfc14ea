/* A scripted driver: a table of functions that count their calls, fail one call on demand, and record what is loaded.
 * Safe to call from many threads. */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

#include <kiln/kiln.h>

typedef enum fake_call {
#define FAKE_CALL(member, symbol, parameters) FAKE_##member,
    KILN_DRIVER_RUNTIME_FUNCTIONS(FAKE_CALL)
#undef FAKE_CALL
        FAKE_CALLS
} fake_call;

enum { FAKE_MAX_MODULES = 64 };

typedef struct fake_launch {
    CUfunction function;
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
    void **params;
} fake_launch;

typedef struct fake_driver {
    /* the script */
    int version, major, minor, multiprocessors, max_shared_bytes;
    CUcontext current;
    int fail_at;     /* number of the failing call, counted from 1 over all functions; 0: none */
    int fail_result; /* its result */
    const char *log; /* text that a failing load writes to the JIT log */
    int load_yields; /* number of times a load yields before it ends, to let threads race */
    /* the records */
    int calls; /* over all functions */
    int counts[FAKE_CALLS];
    fake_call failed;   /* the call that failed as scripted */
    int loads, unloads; /* successful ones */
    const void *loaded_image;
    int option_count, log_bytes; /* of the last load */
    int attribute, attribute_value;
    fake_launch launch; /* the last one */
    struct {
        int loaded;
        const void *image;
    } modules[FAKE_MAX_MODULES];
} fake_driver;

extern fake_driver fake;

/* Resets to a device sm_90 with driver 12.8, a context and empty records. */
void fake_reset(void);
const char *fake_call_symbol(fake_call call);

/* The table. Only the runtime's functions and get_error_name are filled. */
extern const kiln_driver fake_table;

#define FAKE_CONTEXT       ((CUcontext)(uintptr_t)0x1000)
#define FAKE_OTHER_CONTEXT ((CUcontext)(uintptr_t)0x2000)

#endif
