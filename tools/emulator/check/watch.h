/* What the init and race checks keep about a block while it runs, and what they are told. Without these checks a block has
   no watch, its warps run the plain loop, and a memory access costs one test more. */
#ifndef EMU_WATCH_H
#define EMU_WATCH_H

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
} emu_flow;

#define EMU_PLAN_SOURCES 4

/* Numbers of slots (offset / 64); slot 0, the sink, counts as defined and stands for what is not there. */
typedef struct emu_plan {
    uint32_t source[EMU_PLAN_SOURCES], write[2];
    const uint32_t *sources, *writes; /* all of them, when they do not fit above */
    uint16_t source_count, write_count;
    uint8_t flow;
    bool reads_only;  /* .nc, ldu: data that nobody writes */
    uint8_t scope;    /* of a fence: 1 block, 2 beyond */
    uint16_t order;   /* EMU_RELAXED, EMU_ACQUIRE and so on, defaults that are not written included */
    uint32_t address; /* slot of an atomic's, mbarrier's or copy's address, which is no operand like others */
} emu_plan;

struct emu_plans {
    emu_arena arena;
    emu_plan *plans; /* beside the program's ops */
    uint32_t slots;
    bool copies_arrive; /* at mbarriers */
    bool has_read_only; /* loads with reads_only */
};

struct emu_watch {
    const struct emu_plans *plans;
    uint32_t *defined;       /* by warp and slot: lanes */
    uint8_t *shared, *local; /* a byte per byte: has been written */
    struct emu_race *race;
};

/* plan.c: made once per program, on the first launch that is watched. */
const struct emu_plans *emu_plan_program(emu_program *program);
void emu_plans_free(struct emu_plans *plans);

/* init.c */
bool emu_init_before(emu_warp *warp, const emu_op *op, uint32_t mask);
void emu_init_after(emu_warp *warp, const emu_op *op, uint32_t mask);
void emu_init_guard(emu_warp *warp, const emu_op *op);
void emu_init_access(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                     const uint64_t at[EMU_LANES]);
void emu_init_copied(emu_block *block, const struct emu_copy *copy);

/* race.c */
void emu_race_start(emu_block *block);
void emu_race_free(emu_block *block);
void emu_race_access(emu_warp *warp, const emu_op *op, uint32_t mask, unsigned bytes, bool writes,
                     const uint64_t at[EMU_LANES]);
void emu_race_copied(emu_block *block, const struct emu_copy *copy, bool by_mbarrier);
void emu_race_fence(emu_warp *warp, uint32_t mask, unsigned scope);
void emu_race_launch_end(emu_launch *launch);

/* watch.c */
void emu_watch_start(emu_block *block);
void emu_watch_free(emu_block *block);
/* Where a host address lies, in terms of its allocation. */
const char *emu_watch_place(const emu_warp *warp, uint64_t at, char *text, size_t room);
/* A thread of any block of the warp's launch. */
const char *emu_watch_thread(const emu_warp *warp, uint64_t block, uint32_t thread, char *text, size_t room);

static inline uint32_t *emu_defined_of(const emu_warp *w)
{
    const emu_watch *k = w->block->watch;
    return k->defined + (size_t)w->id * k->plans->slots;
}

#endif
