/* The checks and their reports. Each check lives in a file of its own, check_*.c; handlers call them only when something
   is wrong or when the launch asks for it, so a check that is off costs nothing. */
#ifndef EMU_CHECK_H
#define EMU_CHECK_H

#include "program.h"
#include "warp.h"

enum {
    EMU_CHECK_MEMORY = 1, /* bounds to the byte, alignment, freed allocations, wrong space */
    EMU_CHECK_INIT = 2,
    EMU_CHECK_RACE = 4,
    EMU_CHECK_SYNC = 8, /* divergent barriers, member masks */
    EMU_CHECK_ALL = 15,
};

/* KILN_EMU_CHECK; *bad names the word that is none. */
unsigned emu_checks_from(const char *text, emu_text *bad);

/* What went wrong in a launch; the first fault decides the launch's result. */
typedef struct emu_report {
    int result; /* CUresult; 0 while all is well */
    uint64_t block;
    char *text;
} emu_report;

/* Records a fault of the lanes, prints it, and stops the launch. `what` is a whole sentence about the first lane. */
void emu_fault(emu_warp *warp, const emu_op *op, uint32_t lanes, int result, const char *what, ...)
    __attribute__((format(printf, 5, 6)));

/* Prints to stderr the first 10 reports of the process, then a count at exit; KILN_EMU_VERBOSE=0: none, 2: all. */
void emu_print_report(const char *text);

/* check_memory.c: an access that the fast path could not prove right. Lanes outside the allocation and so on become a
   fault (false); true: all lanes are fine, and `at` holds host addresses. */
bool emu_check_global(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                      const uint64_t at[EMU_LANES]);
bool emu_check_window(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                      const uint64_t at[EMU_LANES], emu_space space, uint64_t low, uint64_t high);
bool emu_check_generic(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                       uint64_t at[EMU_LANES]);
void emu_fault_store_const(emu_warp *warp, const emu_op *op, uint32_t mask);

/* check_sync.c */
void emu_report_members(emu_warp *warp, const emu_op *op, uint32_t outside);
void emu_report_divergent_barrier(emu_warp *warp);
void emu_report_barrier_misuse(emu_warp *warp, const emu_op *op, uint32_t lanes, const char *what);
void emu_report_inactive_source(emu_warp *warp, const emu_op *op, uint32_t lanes);
void emu_report_deadlock(struct emu_block *block);

#endif
