/* Kernels with mistakes, and the whole text that the checker prints for each, on sm_75 unless noted. */
#ifndef TESTS_PTX_BAD_H
#define TESTS_PTX_BAD_H

#include "../../generator/ptx/builder.h"

typedef struct bad_kernel {
    const char *name;
    void (*emit)(ptx_fn *f);
    const char *message;
} bad_kernel;
/* clang-format off */
#define BAD(name, message) {#name, name, message}
/* clang-format on */

extern const bad_kernel bad_values[], bad_numbers[], bad_control[], bad_memory[], bad_warp[];
extern const bad_kernel bad_wgmma[], bad_bulk[]; /* on sm_90a, 256 threads */
extern const size_t bad_values_count, bad_numbers_count, bad_control_count, bad_memory_count, bad_warp_count,
    bad_wgmma_count, bad_bulk_count;

/* These are correct above sm_75. */
void above_target(ptx_fn *f);
void hint_above_target(ptx_fn *f);
void family_feature(ptx_fn *f);
/* Correct if a warp is a row of threads, or part of one. */
void by_row(ptx_fn *f);
/* Correct on sm_90a, in a thread block of whole warpgroups. */
void wgmma_without_group(ptx_fn *f);

#endif
