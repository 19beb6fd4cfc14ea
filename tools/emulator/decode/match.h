/* From an instruction's words to its row in the table of instructions. */
#ifndef EMU_MATCH_H
#define EMU_MATCH_H

#include "../exec/operations.h"
#include "decode.h"

/* Finds the row for an instruction, fills its modifiers, and gives their words in the row's order; NULL after logging what
   is wrong. */
const emu_row *emu_match(const emu_decode_input *in, const emu_instruction *i, emu_mods *mods,
                         emu_text *ordered);

#endif
