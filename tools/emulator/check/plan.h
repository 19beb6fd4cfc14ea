/* What the init and race checks want to know of each operation of a program: worked out once, on the first launch that they
   observe. */
#ifndef EMU_PLAN_H
#define EMU_PLAN_H

#include "../core/launch.h"

/* How an operation hands on what is undefined. */
typedef enum emu_flow {
    EMU_FLOW_LANES,  /* lane by lane from all sources; the usual one */
    EMU_FLOW_SELECT, /* selp: the condition, and the source that it chooses */
    EMU_FLOW_AND,    /* a defined 0 decides */
    EMU_FLOW_OR,     /* a defined 1 of a predicate decides */
    EMU_FLOW_FRESH,  /* x ^ x, x - x */
    EMU_FLOW_SHUFFLE,
    EMU_FLOW_WARP,    /* vote, match, redux: from all lanes to all */
    EMU_FLOW_CONTROL, /* branches by index, barriers, member masks: sources must be defined */
    EMU_FLOW_LOAD,
    EMU_FLOW_STORE,
    EMU_FLOW_ATOMIC,
    EMU_FLOW_PARAM_STORE, /* of calls */
    EMU_FLOW_PARAM_LOAD,
    EMU_FLOW_FENCE,
    EMU_FLOW_COPY,     /* cp.async: its destination is written later */
    EMU_FLOW_MBARRIER, /* arrivals and tests */
    EMU_FLOW_REMOTE,   /* st.async, red.async: what they access they access later */
    /* from here on in another proxy than the generic one */
    EMU_FLOW_BULK,    /* bulk copies: all that they access, they access later */
    EMU_FLOW_MAP,     /* of a tensor map, by a bulk copy */
    EMU_FLOW_PRODUCT, /* wgmma: what it reads of shared memory it reads later */
} emu_flow;

/* Whom an operation can synchronise with: its scope. */
typedef enum emu_sync_scope { EMU_SYNC_BLOCK = 1, EMU_SYNC_CLUSTER, EMU_SYNC_GRID } emu_sync_scope;

#define EMU_PLAN_SOURCES 4

/* Numbers of slots (offset / 64); slot 0, the sink, counts as defined and stands for what is not there. */
typedef struct emu_plan {
    uint32_t source[EMU_PLAN_SOURCES], write[2];
    const uint32_t *sources, *writes; /* all of them, when they do not fit above */
    uint16_t source_count, write_count;
    uint8_t flow;
    bool reads_only;    /* .nc, ldu: data that no thread writes */
    uint8_t scope;      /* of a fence: emu_sync_scope */
    bool joins_proxies; /* fence.proxy.async */
    uint16_t order;     /* EMU_RELAXED, EMU_ACQUIRE and so on, defaults that are not written included */
    uint32_t address; /* slot of an atomic's, mbarrier's or copy's address, which is no operand like others */
} emu_plan;

typedef struct emu_plans {
    emu_plan *plans; /* beside the program's ops */
    uint32_t slots;
    bool copies_arrive; /* at mbarriers */
    bool has_read_only; /* loads with reads_only */
} emu_plans;

void emu_plan_program(emu_program *program);

static inline const emu_plan *emu_plan_of(const emu_warp *w, const emu_op *op)
{
    const emu_program *p = w->block->launch->program;
    return &p->plans->plans[op - p->ops];
}

#endif
