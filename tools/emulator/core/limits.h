/* What the environment says of launches: how much runs, where, and in which order. */
#ifndef EMU_LIMITS_H
#define EMU_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* In which order the blocks of a launch begin. */
typedef enum emu_order { EMU_FORWARD, EMU_REVERSE, EMU_SHUFFLE } emu_order;

/* KILN_EMU_THREADS; KILN_EMU_JUMPS: a block with more backward jumps is reported as one that never ends; if it
   is not set, a launch whose warps make `idle_jumps` backward jumps each and change nothing;
   KILN_EMU_BLOCKS: only these blocks of every launch run, to see what blocks far out do without all that come before;
   KILN_EMU_ORDER: in which order; KILN_EMU_VERBOSE. False after saying which one is not understood. */
typedef struct emu_limits {
    uint64_t threads, jumps, idle_jumps, first_block, last_block, verbose;
    emu_order order;
} emu_limits;
bool emu_read_limits(emu_limits *limits);

#endif
