/* Runs a header's calls: opens the emulated driver and a loader of the bundle, allocates memory, and prints a line per status. */
#include "harness.h"

#include "../driver.h"

kiln_loader loader;
CUstream stream;
static int failures;

CUdeviceptr memory(void)
{
    enum { BYTES = 4 << 20 };
    CUdeviceptr address = allocate(BYTES);
    set(address, 0, BYTES);
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
    need(count == 2, "usage: harness DRIVER");
    open_driver(words[1]);
    need(kiln_open(&loader, &driver, bundle, slots, sizeof slots / sizeof slots[0], NULL) == KILN_OK,
         "kiln_open");
    make_calls();
    need(driver.ctx_synchronize() == 0, "cuCtxSynchronize");
    return failures != 0;
}
