/* Every CUresult: its number, its name and what it means. */
#ifndef EMU_ERRORS_H
#define EMU_ERRORS_H

typedef struct emu_error {
    int number;
    const char *name, *text;
} emu_error;

/* NULL: there is none of this number. */
const emu_error *emu_error_of(int number);

#endif
