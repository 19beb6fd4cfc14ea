/* Checks a kernel that the builder has emitted, and loads it. */
#ifndef TEST_EMITTED_H
#define TEST_EMITTED_H

#include "../../generator/ptx/builder.h"
#include "../driver.h"

static inline CUfunction load_emitted(arena *a, ptx_fn *f, const char *name, CUmodule *module)
{
    text ptx = text_new(a);
    need(ptx_check(f, stdout), "the check of the kernel");
    ptx_print_header(&ptx, ptx_needs(f));
    ptx_print_body(&ptx, f, false);
    return load_kernel(ptx.data, name, module);
}

#endif
