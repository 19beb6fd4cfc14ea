/* The checks and their reports. Each check lives in a file of its own, check_*.c; handlers call them only when something
   is wrong or when the launch asks for it, so a check that is off costs nothing. */
#ifndef EMU_CHECK_H
#define EMU_CHECK_H

#include "../core/program.h"
#include "../core/warp.h"

struct emu_launch;

enum {
    EMU_CHECK_MEMORY = 1, /* bounds to the byte, alignment, freed allocations, wrong space */
    EMU_CHECK_INIT = 2,
    EMU_CHECK_RACE = 4,
    EMU_CHECK_SYNC = 8, /* divergent barriers, barriers that threads skip, member masks */
    EMU_CHECK_ALL = 15,
};

/* CUresults: the second one is that of what has no code of its own. */
enum { EMU_INVALID_VALUE = 1, EMU_LAUNCH_FAILED = 719 };

/* KILN_EMU_CHECK; *bad names the word that is none. */
unsigned emu_checks_from(const char *text, emu_text *bad);

/* What ended a launch; the fault of the lowest block decides its result. */
typedef struct emu_report {
    int result; /* CUresult; 0 while all is well */
    uint64_t block;
    char *text;
} emu_report;

/* What only a check finds: a device would have gone on, and so does the launch, which fails in the end. One per place,
   which is the instruction, the other party's instruction, and what is said of them: that of the lowest block. */
typedef struct emu_finding {
    uint32_t at, other;
    const char *what;
    uint64_t block, times;
    unsigned order; /* in the block */
    char *text;
} emu_finding;

typedef struct emu_findings {
    emu_finding *all;
    size_t count, room;
} emu_findings;

/* Records a fault of the lanes and stops the launch. `what` is a whole sentence about the first lane. */
void emu_fault(emu_warp *warp, const emu_op *op, uint32_t lanes, int result, const char *what, ...)
    __attribute__((format(printf, 5, 6)));
/* Records a finding; other: the index of the other party's instruction, EMU_NOBODY when there is none. */
#define EMU_NOBODY UINT32_MAX
void emu_note(emu_warp *warp, const emu_op *op, uint32_t lanes, uint32_t other, const char *what, ...)
    __attribute__((format(printf, 5, 6)));

/* Where the instruction comes from, as " (axpy.cu:3:5, inlined at axpy.cu:9:9)"; "" where no .loc tells it. */
enum { EMU_SOURCE_BYTES = 512 };
const char *emu_source_of(const emu_program *program, uint32_t at, char text[EMU_SOURCE_BYTES]);

/* To stderr: the first 10 reports of the process, and a count at exit; KILN_EMU_VERBOSE=0: none, 2: all. */
void emu_print_report(const char *text, uint64_t times);
/* The launch's findings in the order of blocks, then its fault. Frees them. */
void emu_print_reports(struct emu_launch *launch);
/* The result of a launch that has ended. */
int emu_result_of(const struct emu_launch *launch);

/* core/bounds.c: an access that the fast path could not prove right. Lanes outside the allocation and so on become a
   fault (false); true: all lanes are fine, and `at` holds host addresses. */
bool emu_check_global(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                      const uint64_t at[EMU_LANES]);
bool emu_check_window(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                      const uint64_t at[EMU_LANES], emu_space space, uint64_t low, uint64_t high);
bool emu_check_generic(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                       uint64_t at[EMU_LANES]);

/* The init and race checks, when the block is watched: before an address is used, false after a fault; after it was found
   valid; and when an asynchronous copy or its arrival at an mbarrier has happened, because somebody waited for it. */
bool emu_init_address(emu_warp *warp, const emu_op *op, uint32_t arg, uint32_t mask);
void emu_watch_access(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                      const uint64_t at[EMU_LANES]);
uint32_t emu_init_unwritten(const emu_warp *warp, const emu_op *op, uint64_t at, unsigned bytes);
struct emu_copy;
void emu_watch_copied(struct emu_block *block, const struct emu_copy *copy, bool by_mbarrier);
/* Block barriers (warps) and warp barriers (lanes) order accesses: race.c. */
void emu_race_arrive(emu_warp *warp, uint32_t *clock);
void emu_race_leave(emu_warp *warp, const uint32_t *clock);
void emu_race_warp_sync(emu_warp *warp, uint32_t lanes);
/* So do mbarriers, from arrivals in a phase to those who see its end, and waits for copies: race_async.c. */
void emu_race_phase_ended(struct emu_block *block, uint32_t mbarrier);
void emu_race_phase_passed(emu_warp *warp, const emu_op *op, uint64_t mbarrier);
void emu_race_waited(struct emu_block *block, uint32_t thread);

/* sync.c */
void emu_report_members(emu_warp *warp, const emu_op *op, uint32_t outside);
void emu_report_divergent_barrier(emu_warp *warp);
/* An aligned barrier that `count` threads will not reach, from `first` on: of the block, or of the warp. */
void emu_report_exited(emu_warp *warp, const emu_op *op, uint32_t lanes, unsigned count, uint32_t first,
                       bool of_block);
void emu_report_barrier_misuse(emu_warp *warp, const emu_op *op, uint32_t lanes, const char *what);
void emu_report_inactive_source(emu_warp *warp, const emu_op *op, uint32_t lanes);
void emu_report_deadlock(struct emu_block *block);

#endif
