/* The PTX builder, for kernel authors. */
#ifndef KILN_PTX_H
#define KILN_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One kernel under construction. */
typedef struct ptx_fn ptx_fn;

typedef enum ptx_type {
    PTX_NONE, PTX_PRED,
    PTX_B8, PTX_U8, PTX_S8,
    PTX_B16, PTX_U16, PTX_S16, PTX_F16, PTX_BF16,
    PTX_B32, PTX_U32, PTX_S32, PTX_F32, PTX_F16X2, PTX_BF16X2,
    PTX_B64, PTX_U64, PTX_S64, PTX_F64,
    PTX_PTR /* a 64-bit address with a state space and an element type */
} ptx_type;

#ifdef __cplusplus
}
#endif

#endif
