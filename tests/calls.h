/* Shared by programs that call generated functions: opens the first device and a loader of the program's bundle, allocates
 * memory, records launches, and counts calls that behave as documented. */
#ifndef TEST_CALLS_H
#define TEST_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/kiln.h>

static kiln_driver driver;
static kiln_loader loader;

static inline void need(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

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

/* ---- device and memory ------------------------------------------------------------------------------------------ */

static inline void open_device(const char *path, const kiln_bundle *bundle)
{
    static kiln_slot slots[1024];
    CUcontext context = NULL;
    need(kiln_driver_load(&driver, path, NULL) == KILN_OK, "kiln_driver_load");
    need(driver.init(0) == 0 && driver.device_primary_ctx_retain(&context, 0) == 0,
         "cuDevicePrimaryCtxRetain");
    need(driver.ctx_set_current(context) == 0, "cuCtxSetCurrent");
    real_launch = driver.launch_kernel;
    driver.launch_kernel = see_launch;
    need(kiln_open(&loader, &driver, bundle, slots, sizeof slots / sizeof slots[0], NULL) == KILN_OK,
         "kiln_open");
}

static inline CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr address = 0;
    need(driver.mem_alloc(&address, bytes) == 0, "cuMemAlloc");
    return address;
}

static inline void set(CUdeviceptr to, unsigned char value, size_t bytes)
{
    need(driver.memset_d8(to, value, bytes) == 0, "cuMemsetD8");
}

static inline void upload_to(CUdeviceptr to, const void *from, size_t bytes)
{
    need(driver.memcpy_htod(to, from, bytes) == 0, "cuMemcpyHtoD");
}

static inline CUdeviceptr upload(const void *from, size_t bytes)
{
    CUdeviceptr address = allocate(bytes);
    upload_to(address, from, bytes);
    return address;
}

static inline void download(void *to, CUdeviceptr from, size_t bytes)
{
    need(driver.ctx_synchronize() == 0, "cuCtxSynchronize");
    need(driver.memcpy_dtoh(to, from, bytes) == 0, "cuMemcpyDtoH");
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
