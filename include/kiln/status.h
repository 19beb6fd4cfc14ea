/* The result of every function of kiln's runtime, and of every generated one. */
#ifndef KILN_STATUS_H
#define KILN_STATUS_H

#include <kiln/as_int.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers never change; gaps leave room for related errors. */
typedef enum KILN_AS_INT kiln_status {
    KILN_OK = 0,
    /* what the caller passed */
    KILN_ERROR_NULL_POINTER = 10,   /* a pointer is null though its array has elements in this call */
    KILN_ERROR_BAD_ARGUMENT = 11,   /* error.detail: the broken rule, or the array that is too large */
    KILN_ERROR_MISALIGNED = 12,     /* a device pointer lacks the alignment that error.detail states */
    KILN_ERROR_GRID_TOO_LARGE = 13, /* the problem needs more thread blocks than a launch may have */
    KILN_ERROR_TOO_FEW_SLOTS = 14,  /* fewer than NAME_SLOTS slots: error.needed, error.present */
    KILN_ERROR_CLOSED = 15,         /* the loader is not open */
    KILN_ERROR_ALREADY_OPEN = 16,   /* kiln_open of an open loader: it is unchanged */
    KILN_ERROR_SCRATCH_TOO_SMALL =
        17, /* less than NAME_SCRATCH_BYTES of options.scratch: error.needed, error.present */
    /* the bundle */
    KILN_ERROR_LAYOUT = 30,        /* the generator had another layout: error.needed, error.present */
    KILN_ERROR_NOT_FOUND = 31,     /* no kernel of that key or name; kiln itself never returns it */
    KILN_ERROR_NO_VARIANT = 32,    /* for these arguments: error.detail says what differs */
    KILN_ERROR_NO_IMAGE = 33,      /* no image of this kernel runs on this device */
    KILN_ERROR_CORRUPT_IMAGE = 34, /* an image's bytes do not match its hash */
    /* the driver */
    KILN_ERROR_DRIVER_NOT_FOUND = 50, /* the driver library cannot be opened */
    KILN_ERROR_DRIVER_SYMBOL = 51,    /* the library or the table lacks an entry point */
    KILN_ERROR_DRIVER_TOO_OLD = 52,   /* images that fit need a newer driver: error.needed, error.present */
    KILN_ERROR_NO_CONTEXT = 53,       /* no CUcontext is current on this thread */
    KILN_ERROR_WRONG_CONTEXT = 54,    /* the current context is not that of kiln_open */
    KILN_ERROR_LOAD = 55,   /* the call in error.detail failed: error.driver_result, and the JIT log */
    KILN_ERROR_LAUNCH = 56, /* the driver rejected the launch: error.driver_result */
    KILN_ERROR_DRIVER = 57  /* another driver call failed: error.subject, error.driver_result */
} kiln_status;

#ifdef __cplusplus
}
#endif

#endif
