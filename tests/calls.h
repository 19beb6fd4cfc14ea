/* Shared by programs that call generated functions: opens a loader of the program's bundle, records launches, and counts calls
 * that behave as documented. */
#ifndef TEST_CALLS_H
#define TEST_CALLS_H

#include <string.h>

#include "driver.h"

static kiln_loader loader;

static inline bool has(const kiln_kernel *kernel, const char *words)
{
    return strstr(kernel->id, words) != NULL;
}

/* ---- launches --------------------------------------------------------------------------------------------------- */

typedef int launch_function(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            CUstream, void **, void **);

typedef struct launch {
    unsigned count; /* number of launches; the other members are the last launch's */
    unsigned grid[3], threads, shared_bytes;
} launch;

static launch launched;
static void (*before_launch)(void); /* null: nothing is done */
static bool is_dry;                 /* launches are recorded, not executed */
static launch_function *real_launch;

static inline int see_launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                             CUstream stream, void **params, void **extra)
{
    launched =
        (launch){launched.count + 1, {grid_x, grid_y, grid_z}, block_x * block_y * block_z, shared_bytes};
    if (before_launch)
        before_launch();
    return is_dry ? 0
                  : real_launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                                stream, params, extra);
}

static inline void open_device(const char *path, const kiln_bundle *bundle)
{
    static kiln_slot slots[1024];
    open_driver(path);
    real_launch = driver.launch_kernel;
    driver.launch_kernel = see_launch;
    need(kiln_open(&loader, &driver, bundle, slots, sizeof slots / sizeof slots[0], NULL) == KILN_OK,
         "kiln_open");
}

/* ---- verdicts --------------------------------------------------------------------------------------------------- */

static unsigned trials, wrong;

static inline void judge(bool is_right, const char *what, kiln_status status)
{
    trials++;
    wrong += !is_right;
    if (!is_right)
        printf("WRONG %s: \"%s\", %u launches, the last of %u threads, %u bytes of shared memory\n", what,
               kiln_status_string(status), launched.count, launched.threads, launched.shared_bytes);
}

/* Checks a call's status, and the number of launches since the last check. */
static inline void expect(const char *what, kiln_status status, kiln_status expected, unsigned launches)
{
    judge(status == expected && launched.count == launches, what, status);
    launched.count = 0;
}

static inline int end_calls(void)
{
    need(driver.ctx_synchronize() == 0, "cuCtxSynchronize");
    need(kiln_close(&loader) == KILN_OK, "kiln_close");
    printf("%u of %u calls ended as documented\n", trials - wrong, trials);
    return wrong || !trials;
}

#endif
