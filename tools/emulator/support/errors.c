/* See errors.h. */
#include "errors.h"

#include <stddef.h>

static const emu_error errors[] = {
#define EMU_ERROR(name, number, text) {number, #name, text},
#include "errors.def"
#undef EMU_ERROR
};

const emu_error *emu_error_of(CUresult number)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == number)
            return &errors[i];
    return NULL;
}
