/* Runs a header's calls: opens the emulated driver and a loader of the bundle, allocates memory, and prints a line per status. */
#include "harness.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

kiln_loader loader;
CUstream stream;
static kiln_driver driver;
static int failures;

static void need(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

CUdeviceptr memory(void)
{
    enum { BYTES = 4 << 20 };
    CUdeviceptr address = 0;
    need(driver.mem_alloc(&address, BYTES) == 0 && driver.memset_d8(address, 0, BYTES) == 0, "cuMemAlloc");
    return address;
}

void report(const char *call, kiln_status status)
{
    if (status == KILN_OK)
        return;
    kiln_error e;
    kiln_last_error(&loader, &e);
    printf("FAILED: %s: status %d: %s\n", call, (int)status, e.detail ? e.detail : "");
    failures++;
}

int main(int count, char **words)
{
    static kiln_slot slots[256];
    CUcontext context = NULL;
    need(count == 2 && kiln_driver_load(&driver, words[1], NULL) == KILN_OK, "kiln_driver_load");
    need(driver.init(0) == 0 && driver.device_primary_ctx_retain(&context, 0) == 0 &&
             driver.ctx_set_current(context) == 0,
         "cuDevicePrimaryCtxRetain");
    need(kiln_open(&loader, &driver, bundle, slots, sizeof slots / sizeof slots[0], NULL) == KILN_OK,
         "kiln_open");
    make_calls();
    need(driver.ctx_synchronize() == 0, "cuCtxSynchronize");
    return failures != 0;
}
