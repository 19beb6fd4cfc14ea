/* A stub driver library: exports every entry point of the table. Each returns its row's number, from 1. */
#include <kiln/driver.h>

enum {
    ROW_NONE,
#define ROW(member, symbol, parameters) ROW_##member,
    KILN_DRIVER_FUNCTIONS(ROW)
#undef ROW
};

#define STUB(member, symbol, parameters)                                                                     \
    int stub_##member(void) __asm__(symbol);                                                                 \
    int stub_##member(void)                                                                                  \
    {                                                                                                        \
        return ROW_##member;                                                                                 \
    }
KILN_DRIVER_FUNCTIONS(STUB)
