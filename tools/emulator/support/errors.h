/* Every CUresult: its number, its name and what it means. */
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

/* NULL: there is none of this number. */
const emu_error *emu_error_of(CUresult number);

#endif
