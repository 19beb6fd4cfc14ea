/* From an instruction's words to its row in the table of instructions. */
#ifndef EMU_MATCH_H
#define EMU_MATCH_H

#include "../exec/operations.h"
#include "decode.h"

/* Returns the row of an instruction, its modifiers in `m`, and their words in the row's order; NULL after logging an
   error. */
const emu_row *emu_match(const emu_decode_input *in, const emu_instruction *i, emu_mods *mods,
                         emu_text *ordered);

#endif
