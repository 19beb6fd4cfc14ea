/* Limits and order of launches, from environment variables. */
#ifndef EMU_LIMITS_H
#define EMU_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* The order in which the blocks of a launch begin. */
typedef enum emu_order { EMU_FORWARD, EMU_REVERSE, EMU_SHUFFLE } emu_order;

/* KILN_EMU_THREADS. KILN_EMU_JUMPS: `jumps` is the limit of a block's backward jumps; if it is not set, `idle_jumps` is the
   limit of each warp's jumps while the launch changes nothing. KILN_EMU_BLOCKS: the only blocks of every launch that run,
   so that blocks with high numbers can be tested alone. KILN_EMU_ORDER. KILN_EMU_VERBOSE. emu_read_limits returns false
   after reporting a wrong value. */
typedef struct emu_limits {
    uint64_t threads, jumps, idle_jumps, first_block, last_block, verbose;
    emu_order order;
} emu_limits;
bool emu_read_limits(emu_limits *limits);

#endif
