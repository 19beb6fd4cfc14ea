/* Status texts. */
#include "internal.h"

const char *kiln_status_string(kiln_status status)
{
    /* clang-format off */
    switch (status) {
    case KILN_OK:                     return "success";
    case KILN_ERROR_NULL_POINTER:     return "a required pointer is null";
    case KILN_ERROR_BAD_ARGUMENT:     return "bad argument";
    case KILN_ERROR_MISALIGNED:       return "misaligned pointer";
    case KILN_ERROR_GRID_TOO_LARGE:   return "problem too large for one launch";
    case KILN_ERROR_TOO_FEW_SLOTS:    return "too few slots";
    case KILN_ERROR_CLOSED:           return "the loader is not open";
    case KILN_ERROR_ALREADY_OPEN:     return "the loader is open already";
    case KILN_ERROR_LAYOUT:           return "bundle and runtime differ in layout";
    case KILN_ERROR_NOT_FOUND:        return "no such kernel";
    case KILN_ERROR_NO_VARIANT:       return "no variant for these arguments";
    case KILN_ERROR_NO_IMAGE:         return "no image runs on this device";
    case KILN_ERROR_CORRUPT_IMAGE:    return "corrupt image";
    case KILN_ERROR_DRIVER_NOT_FOUND: return "driver library not found";
    case KILN_ERROR_DRIVER_SYMBOL:    return "driver library lacks an entry point";
    case KILN_ERROR_DRIVER_TOO_OLD:   return "driver too old";
    case KILN_ERROR_NO_CONTEXT:       return "no context is current";
    case KILN_ERROR_WRONG_CONTEXT:    return "another context is current";
    case KILN_ERROR_LOAD:             return "load failed";
    case KILN_ERROR_LAUNCH:           return "launch failed";
    case KILN_ERROR_DRIVER:           return "driver call failed";
    }
    /* clang-format on */
    return "unknown status";
}
