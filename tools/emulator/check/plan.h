/* What the init and race checks need to know about each operation of a program, computed before the first launch that they
   observe. */
#ifndef EMU_PLAN_H
#define EMU_PLAN_H

#include "../core/launch.h"

/* How an operation passes undefined values on. */
typedef enum emu_flow {
    EMU_FLOW_LANES,  /* lane by lane from all sources; the usual case */
    EMU_FLOW_SELECT, /* selp: from the condition and the selected source */
    EMU_FLOW_AND,    /* defined if one operand is a defined 0 */
    EMU_FLOW_OR,     /* predicates: defined if one operand is a defined 1 */
    EMU_FLOW_FRESH,  /* always defined: x ^ x, x - x */
    EMU_FLOW_SHUFFLE,
    EMU_FLOW_WARP,    /* vote, match, redux: each result depends on all lanes */
    EMU_FLOW_CONTROL, /* branches by index, barriers, member masks: sources must be defined */
    EMU_FLOW_LOAD,
    EMU_FLOW_STORE,
    EMU_FLOW_ATOMIC,
    EMU_FLOW_PARAM_STORE, /* parameters of calls */
    EMU_FLOW_PARAM_LOAD,
    EMU_FLOW_FENCE,
    EMU_FLOW_COPY,     /* cp.async: writes its destination later */
    EMU_FLOW_MBARRIER, /* arrivals and tests */
    EMU_FLOW_REMOTE,   /* st.async, red.async: access memory later */
    /* from here on, not in the generic proxy */
    EMU_FLOW_BULK,    /* bulk copies: access memory later */
    EMU_FLOW_MAP,     /* a read of a tensor map by a bulk copy */
    EMU_FLOW_PRODUCT, /* wgmma: reads shared memory later */
} emu_flow;

/* The scope of an operation: the threads that it can synchronise with. */
typedef enum emu_sync_scope { EMU_SYNC_BLOCK = 1, EMU_SYNC_CLUSTER, EMU_SYNC_GRID } emu_sync_scope;

#define EMU_PLAN_SOURCES 4

/* Slots are numbered by offset / 64. Slot 0, the sink, counts as defined and stands for a missing operand. */
typedef struct emu_plan {
    uint32_t source[EMU_PLAN_SOURCES], write[2];
    const uint32_t *sources, *writes; /* all of them, also those that do not fit above */
    uint16_t source_count, write_count;
    uint8_t flow;
    bool reads_only;    /* .nc, ldu: no thread may write these bytes */
    uint8_t scope;      /* of a fence: emu_sync_scope */
    bool joins_proxies; /* fence.proxy.async */
    bool initialises;   /* mbarrier.init */
    bool is_collective; /* all lanes of the warp execute it together */
    uint16_t order;     /* EMU_RELAXED, EMU_ACQUIRE and so on, as written or by default */
    uint32_t address; /* slot of the address of an atomic, mbarrier or copy, which is checked as an address */
} emu_plan;

typedef struct emu_plans {
    emu_plan *plans; /* by operation */
    uint32_t slots;
    bool copies_arrive; /* some copies arrive at mbarriers */
    bool has_read_only; /* some load has reads_only */
    bool has_products;  /* wgmma */
} emu_plans;

void emu_plan_program(emu_program *program);

static inline const emu_plan *emu_plan_of(const emu_warp *w, const emu_op *op)
{
    const emu_program *p = w->block->launch->program;
    return &p->plans->plans[op - p->ops];
}

#endif
