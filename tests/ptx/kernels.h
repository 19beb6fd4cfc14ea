#ifndef TESTS_PTX_KERNELS_H
#define TESTS_PTX_KERNELS_H

#include "../../generator/ptx/builder.h"

typedef struct test_kernel {
    const char *name;
    target target;
    uint32_t block[3];
    void (*emit)(ptx_fn *f);
} test_kernel;

/* kernels_warp.c */
void emit_stream_sum(ptx_fn *f);
void emit_grid_sum(ptx_fn *f);
void emit_mbarrier_copy(ptx_fn *f);
void emit_group_tile(ptx_fn *f);
void emit_group_flags(ptx_fn *f);
void emit_boxes(ptx_fn *f);
void emit_pairs(ptx_fn *f);
void emit_vectors(ptx_fn *f);

extern const test_kernel test_kernels[];
extern const size_t test_kernel_count;

#endif
