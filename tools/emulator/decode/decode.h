/* From a parsed kernel to a program (core/program.h). */
#ifndef EMU_DECODE_H
#define EMU_DECODE_H

#include "../core/program.h"

/* The place of a symbol in one decoding. */
typedef struct emu_place {
    uint32_t decoding; /* the decoding in which the rest is valid */
    uint32_t slot;     /* registers; 0: none yet */
    uint64_t address;  /* shared and local variables */
    bool has_address;
    struct emu_function_code *code; /* functions */
} emu_place;

typedef struct emu_decode_input {
    const emu_module *module;
    const emu_function *kernel;
    const uint64_t *variable_addresses; /* by symbol sequence, for .global and .const variables */
    emu_place *places;                  /* by symbol sequence, zeroed before the module's first decoding */
    uint32_t decoding;                  /* number of this decoding of the module, from 1 */
    bool only_kernel;                   /* checks the kernel without its callees, and makes no program */
    unsigned device_number;             /* such as 90 */
    emu_log *log;
} emu_decode_input;

/* Returns NULL if the log has errors, or with only_kernel. Takes time for the code that the kernel reaches, not for the
   whole module. */
emu_program *emu_decode(const emu_decode_input *input);
void emu_program_free(emu_program *program);

#endif
