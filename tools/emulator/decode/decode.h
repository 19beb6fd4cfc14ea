/* From a parsed kernel to a program (core/program.h). */
#ifndef EMU_DECODE_H
#define EMU_DECODE_H

#include "../core/program.h"

typedef struct emu_decode_input {
    const emu_module *module;
    const emu_function *kernel;
    const uint64_t *variable_addresses; /* by symbol sequence; of .global and .const variables */
    unsigned device_number;             /* 90 */
    emu_log *log;
} emu_decode_input;

/* NULL when the log has errors. */
emu_program *emu_decode(const emu_decode_input *input);
void emu_program_free(emu_program *program);

#endif
