/* Status texts: offsets in one table and texts in one string, a third smaller than a switch. */
#include <string.h>

#include "internal.h"

/* clang-format off */
#define STATUSES(S) \
    S(KILN_OK,                      "success") \
    S(KILN_ERROR_NULL_POINTER,      "a required pointer is null") \
    S(KILN_ERROR_BAD_ARGUMENT,      "bad argument") \
    S(KILN_ERROR_MISALIGNED,        "misaligned pointer") \
    S(KILN_ERROR_GRID_TOO_LARGE,    "problem too large for one launch") \
    S(KILN_ERROR_TOO_FEW_SLOTS,     "too few slots") \
    S(KILN_ERROR_CLOSED,            "the loader is not open") \
    S(KILN_ERROR_ALREADY_OPEN,      "the loader is open already") \
    S(KILN_ERROR_SCRATCH_TOO_SMALL, "too little scratch") \
    S(KILN_ERROR_LAYOUT,            "bundle and runtime differ in layout") \
    S(KILN_ERROR_NOT_FOUND,         "no such kernel") \
    S(KILN_ERROR_NO_VARIANT,        "no variant for these arguments") \
    S(KILN_ERROR_NO_IMAGE,          "no image runs on this device") \
    S(KILN_ERROR_CORRUPT_IMAGE,     "corrupt image") \
    S(KILN_ERROR_DRIVER_NOT_FOUND,  "driver library not found") \
    S(KILN_ERROR_DRIVER_SYMBOL,     "driver library lacks an entry point") \
    S(KILN_ERROR_DRIVER_TOO_OLD,    "driver too old") \
    S(KILN_ERROR_NO_CONTEXT,        "no context is current") \
    S(KILN_ERROR_WRONG_CONTEXT,     "another context is current") \
    S(KILN_ERROR_LOAD,              "load failed") \
    S(KILN_ERROR_LAUNCH,            "launch failed") \
    S(KILN_ERROR_DRIVER,            "driver call failed")
/* clang-format on */

#define NUMBER(status, text) status,
#define TEXT(status, text)   text "\0"
static const uint8_t numbers[] = {STATUSES(NUMBER)};
static const char texts[] = STATUSES(TEXT) "unknown status";
#undef NUMBER
#undef TEXT

const char *kiln_status_string(kiln_status status)
{
    const char *text = texts;
    for (size_t i = 0; i < sizeof numbers && numbers[i] != status; i++)
        text += strlen(text) + 1;
    return text;
}
