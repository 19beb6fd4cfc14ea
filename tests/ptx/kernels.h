#ifndef TESTS_PTX_KERNELS_H
#define TESTS_PTX_KERNELS_H

#include "../../generator/ptx/builder.h"

typedef struct test_kernel {
    const char *name;
    ptx_floor target;
    uint32_t block[3];
    void (*emit)(ptx_fn *f);
} test_kernel;

extern const test_kernel test_kernels[];
extern const size_t test_kernel_count;

#endif
