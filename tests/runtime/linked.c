/* A program that links the driver library instead of opening it: the table is filled with the linker's addresses. */
#include <stdio.h>

#include "mini.h"

#define DECLARE(member, symbol, parameters) extern int linked_##member parameters __asm__(symbol);
KILN_DRIVER_FUNCTIONS(DECLARE)

static const kiln_driver driver = {
#define ENTRY(member, symbol, parameters) .member = linked_##member,
    KILN_DRIVER_FUNCTIONS(ENTRY)};

static kiln_loader loader;
static kiln_slot slots[MINI_SLOTS];

#define DO(call)                                                                                             \
    do {                                                                                                     \
        const int result = (int)(call);                                                                      \
        if (result != 0) {                                                                                   \
            printf("%s: %d\n", #call, result);                                                               \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

int main(void)
{
    const double x[4] = {1, 2, 3, 4};
    double y[4] = {10, 20, 30, 40};
    mini_axpy_args args = {.type = MINI_AXPY_TYPE_F64, .a = 2, .n = 4};
    CUcontext context;
    DO(driver.init(0));
    DO(driver.device_primary_ctx_retain(&context, 0));
    DO(driver.ctx_set_current(context));
    DO(driver.mem_alloc(&args.x, sizeof x));
    DO(driver.mem_alloc(&args.y, sizeof y));
    DO(driver.memcpy_htod(args.x, x, sizeof x));
    DO(driver.memcpy_htod(args.y, y, sizeof y));
    DO(kiln_open(&loader, &driver, &mini_bundle, slots, MINI_SLOTS, NULL));
    DO(mini_axpy(&loader, NULL, &args));
    DO(driver.memcpy_dtoh(y, args.y, sizeof y));
    DO(kiln_close(&loader));
    DO(driver.mem_free(args.x));
    DO(driver.mem_free(args.y));
    DO(driver.device_primary_ctx_release(0));
    for (int i = 0; i < 4; i++)
        if (y[i] != 12 * (i + 1))
            return 1;
    return 0;
}
