/* The header of a bundle of two kernels, written by hand in the form of `kiln generate`. */
#ifndef MINI_H
#define MINI_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MINI_KERNELS 2
#define MINI_SLOTS   2

extern const kiln_bundle mini_bundle;
extern const kiln_index mini_index;

/* y[i] = a * x[i] + y[i] */
enum mini_axpy_type { MINI_AXPY_TYPE_F32, MINI_AXPY_TYPE_F64 };
typedef struct mini_axpy_args {
    enum mini_axpy_type type;
    CUdeviceptr x; /* aligned to 4 bytes */
    CUdeviceptr y; /* aligned to 4 bytes */
    double a;
    uint64_t n;
} mini_axpy_args;

/* Picks the variant for these arguments and this device. */
kiln_status mini_axpy(kiln_loader *loader, CUstream stream, const mini_axpy_args *args);

/* The kernel that it would launch. */
kiln_status mini_axpy_pick(kiln_loader *loader, const mini_axpy_args *args, const kiln_kernel **kernel);

/* Each launches one variant, and ignores args->type. */
extern const kiln_kernel mini_axpy_f32_kernel;
kiln_status mini_axpy_f32(kiln_loader *loader, CUstream stream, const mini_axpy_args *args);
extern const kiln_kernel mini_axpy_f64_kernel;
kiln_status mini_axpy_f64(kiln_loader *loader, CUstream stream, const mini_axpy_args *args);

#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
inline kiln_status mini_axpy(kiln_loader *loader, CUstream stream, const mini_axpy_args &args)
{
    return mini_axpy(loader, stream, &args);
}
#endif

#endif
