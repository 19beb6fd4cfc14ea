/* Reports of a launch: the fault that ends it, and the findings of its observers. */
#ifndef EMU_REPORT_H
#define EMU_REPORT_H

#include "../support/errors.h"
#include "warp.h"

struct emu_launch;

/* The fault that ended a launch: that of the lowest cluster. */
typedef struct emu_report {
    CUresult result; /* CUDA_SUCCESS: no fault */
    char *text;
} emu_report;

/* A mistake that only a check finds: a device would continue, so the launch continues, and fails at its end.
   Reported once per message, instruction, and instruction of the other party: the first in the lowest cluster. */
typedef struct emu_finding {
    uint32_t at, other;
    const char *what;
    uint64_t cluster, times;
    unsigned order; /* in the cluster */
    char *text;
} emu_finding;

typedef struct emu_findings {
    emu_finding *all;
    size_t count, room;
} emu_findings;

/* Records a fault of the lanes and stops the launch. `what` continues a sentence whose subject is the first lane. */
void emu_fault(emu_warp *warp, const emu_op *op, uint32_t lanes, CUresult result, const char *what, ...)
    __attribute__((format(printf, 5, 6)));
/* Records a finding. other: the index of the other thread's instruction, or EMU_NOBODY. */
#define EMU_NOBODY UINT32_MAX
void emu_note(emu_warp *warp, const emu_op *op, uint32_t lanes, uint32_t other, const char *what, ...)
    __attribute__((format(printf, 5, 6)));
/* Ends a launch in which a block makes no progress. */
void emu_fault_deadlock(struct emu_block *block);

/* The source place of an instruction, as " (axpy.cu:3:5, inlined at axpy.cu:9:9)"; "" if no .loc gives it. */
enum { EMU_SOURCE_BYTES = 512 };
const char *emu_source_of(const emu_program *program, uint32_t at, char text[EMU_SOURCE_BYTES]);

/* Describes a host address relative to its allocation. */
const char *emu_describe_place(const emu_warp *warp, uint64_t at, char *text, size_t room);
/* Describes a thread of any block of the launch. */
const char *emu_describe_thread(const emu_warp *warp, uint64_t block, uint32_t thread, char *text,
                                size_t room);

/* Prints to stderr: the first 10 reports of the process, and at exit a count of all. KILN_EMU_VERBOSE=0: none, 2: all. */
void emu_print_report(const char *text, uint64_t times);
/* The launch's findings in the order of clusters, then its fault. Frees them. */
void emu_print_reports(struct emu_launch *launch);
/* Returns the result of a launch that has ended. */
CUresult emu_result_of(const struct emu_launch *launch);

#endif
