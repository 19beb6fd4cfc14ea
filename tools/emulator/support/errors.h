/* Every CUresult: number, name, description. */
#ifndef EMU_ERRORS_H
#define EMU_ERRORS_H

typedef enum CUresult {
#define EMU_ERROR(name, number, text) name = number,
#include "errors.def"
#undef EMU_ERROR
} CUresult;

typedef struct emu_error {
    CUresult number;
    const char *name, *text;
} emu_error;

/* Returns NULL if the number is no CUresult. */
const emu_error *emu_error_of(CUresult number);

#endif
