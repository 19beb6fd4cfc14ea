/* From a parsed kernel to a program (core/program.h). */
#ifndef EMU_DECODE_H
#define EMU_DECODE_H

#include "../core/program.h"

/* Where a decoding has placed a symbol. */
typedef struct emu_place {
    uint32_t decoding; /* for which the rest is valid */
    uint32_t slot;     /* of a register; 0: none yet */
    uint64_t address;  /* of a shared or local variable */
    bool has_address;
    struct emu_function_code *code; /* of a function */
} emu_place;

typedef struct emu_decode_input {
    const emu_module *module;
    const emu_function *kernel;
    const uint64_t *variable_addresses; /* by symbol sequence; of .global and .const variables */
    emu_place *places;                  /* by symbol sequence, zeroed before the module's first decoding */
    uint32_t decoding;                  /* of this module, from 1 */
    bool only_kernel;                   /* check the kernel without its callees, and make no program */
    unsigned device_number;             /* 90 */
    emu_log *log;
} emu_decode_input;

/* NULL if the log has errors, and with only_kernel. The time depends on the code that the kernel reaches, not
 * on the module. */
emu_program *emu_decode(const emu_decode_input *input);
void emu_program_free(emu_program *program);

#endif
