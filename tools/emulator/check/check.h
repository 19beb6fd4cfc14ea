/* The checks. Each is a file of its own that observes a launch (core/observer.h). A check that is off costs nothing. */
#ifndef EMU_CHECK_H
#define EMU_CHECK_H

#include "../core/launch.h"

enum {
    EMU_CHECK_MEMORY = 1, /* bounds to the byte, alignment, freed allocations, wrong space */
    EMU_CHECK_INIT = 2,
    EMU_CHECK_RACE = 4, /* in a launch, and between launches that may overlap */
    EMU_CHECK_SYNC = 8, /* divergent barriers, barriers that threads skip, member masks, wgmma, bulk copies */
    EMU_CHECK_ALL = 15,
    EMU_CHECK_SAME = 16 | EMU_CHECK_RACE,      /* also races of equal values */
    EMU_CHECK_PROXY = 32 | EMU_CHECK_RACE,     /* also bulk copies to bytes that were read, unfenced */
    EMU_CHECK_WARPGROUP = 64 | EMU_CHECK_RACE, /* also products that only wgmma.fence orders after a write */
    EMU_CHECK_LANES = 128 | EMU_CHECK_RACE, /* also accesses that only another lane of their warp released */
};

/* Reads KILN_EMU_CHECK. Returns false after reporting a word that it does not know. */
bool emu_read_checks(unsigned *checks);
/* Subscribes to memory events from now on: some checks need to know who wrote what before a launch. */
void emu_check_memory(unsigned checks);
/* Subscribes to the launch's events. */
void emu_check_launch(emu_launch *launch, unsigned checks);

extern const emu_observer emu_bulk_check, emu_dependent_check, emu_init_check, emu_race_check,
    emu_lanes_check, emu_read_only_check, emu_sync_check, emu_wgmma_check;
extern const emu_memory_observer emu_dependent_memory, emu_init_memory, emu_race_memory;

#endif
