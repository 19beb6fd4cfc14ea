/* See plan.h. */
#include "plan.h"

#include "../exec/bulk.h"
#include "../exec/operations.h"

#include <pthread.h>
#include <string.h>

static const struct {
    const char *opcode;
    emu_flow flow;
} flows[] = {
    {"selp", EMU_FLOW_SELECT},  {"and", EMU_FLOW_AND},       {"or", EMU_FLOW_OR},
    {"shfl", EMU_FLOW_SHUFFLE}, {"vote", EMU_FLOW_WARP},     {"match", EMU_FLOW_WARP},
    {"redux", EMU_FLOW_WARP},   {"bar", EMU_FLOW_CONTROL},   {"barrier", EMU_FLOW_CONTROL},
    {"brx", EMU_FLOW_CONTROL},  {"ld", EMU_FLOW_LOAD},       {"ldu", EMU_FLOW_LOAD},
    {"st", EMU_FLOW_STORE},     {"atom", EMU_FLOW_ATOMIC},   {"red", EMU_FLOW_ATOMIC},
    {"fence", EMU_FLOW_FENCE},  {"membar", EMU_FLOW_FENCE},  {"elect", EMU_FLOW_CONTROL},
    {"call", EMU_FLOW_CONTROL}, {"wgmma", EMU_FLOW_PRODUCT},
};

/* Rows of cp.async and mbarrier, matched in order by the first modifiers; `order` is the default memory order. */
static const struct {
    const char *opcode, *word;
    emu_flow flow;
    uint16_t order;
} asynchronous[] = {
    {"cp", "mbarrier", EMU_FLOW_MBARRIER, 0},
    {"cp", "commit_group", EMU_FLOW_LANES, 0},
    {"cp", "wait_group", EMU_FLOW_LANES, 0},
    {"cp", "wait_all", EMU_FLOW_LANES, 0},
    {"cp", "reduce", EMU_FLOW_BULK, EMU_RELAXED},
    {"cp", "bulk", EMU_FLOW_BULK, 0},
    {"st", "async", EMU_FLOW_REMOTE, 0},
    {"red", "async", EMU_FLOW_REMOTE, 0},
    {"cp", "async", EMU_FLOW_COPY, 0},
    {"mbarrier", "init", EMU_FLOW_CONTROL, 0},
    {"mbarrier", "inval", EMU_FLOW_CONTROL, 0},
    {"mbarrier", "pending_count", EMU_FLOW_LANES, 0},
    {"mbarrier", "test_wait", EMU_FLOW_MBARRIER, EMU_ACQUIRE},
    {"mbarrier", "try_wait", EMU_FLOW_MBARRIER, EMU_ACQUIRE},
    {"mbarrier", "arrive", EMU_FLOW_MBARRIER, EMU_RELEASE},
    {"mbarrier", "arrive_drop", EMU_FLOW_MBARRIER, EMU_RELEASE},
    {"mbarrier", "expect_tx", EMU_FLOW_MBARRIER, EMU_RELAXED},
    {"mbarrier", "complete_tx", EMU_FLOW_MBARRIER, EMU_RELAXED},
};

static uint32_t slot_of(uint32_t arg)
{
    return arg & 1 ? 0 : arg >> 6; /* constants are defined; bit 1 only negates */
}

static void add_slot(uint32_t *list, uint16_t *count, uint32_t arg)
{
    if (slot_of(arg))
        list[(*count)++] = slot_of(arg);
}

static bool has_modifier(const emu_instruction *i, const char *word)
{
    for (unsigned n = 0; n < i->modifier_count; n++)
        if (emu_text_is(i->modifiers[n], word))
            return true;
    return false;
}

static bool is_asynchronous(const emu_instruction *i, emu_plan *plan, emu_flow *flow)
{
    for (size_t k = 0; k < sizeof asynchronous / sizeof *asynchronous; k++)
        if (emu_text_is(i->opcode, asynchronous[k].opcode) && has_modifier(i, asynchronous[k].word)) {
            if (!plan->order)
                plan->order = asynchronous[k].order;
            *flow = asynchronous[k].flow;
            return true;
        }
    return false;
}

static emu_flow flow_of(const emu_program *p, size_t n, emu_plan *plan)
{
    const emu_op *op = &p->ops[n];
    const emu_instruction *i = p->instructions[op->at];
    const emu_micro *m = emu_micro_handlers();
    const emu_control *c = emu_control_handlers();
    bool is_help = op->run == m->special || op->run == m->shared_address || op->run == m->copy_predicate;
    for (int k = 0; k < 5 && !is_help; k++) {
        is_help = op->run == m->copy[k] || (k > 0 && k < 4 && op->run == m->add[k]);
        for (int j = 0; j < 4; j++)
            is_help |= op->run == m->chop[k][j];
    }
    for (int t = 0; t < EMU_TYPES && !is_help; t++)
        for (int j = 0; j < 4; j++)
            is_help |= op->run == m->extend[t][j];
    if (is_help)
        return EMU_FLOW_LANES;
    if (op->run == c->store_local)
        return EMU_FLOW_PARAM_STORE;
    if (op->run == c->load_local)
        return EMU_FLOW_PARAM_LOAD;
    bool same = p->uses[n].args == 3 && op->arg[1] == op->arg[2];
    if (same && (emu_text_is(i->opcode, "xor") || emu_text_is(i->opcode, "sub")))
        return EMU_FLOW_FRESH;
    emu_flow flow;
    if (is_asynchronous(i, plan, &flow))
        return (flow == EMU_FLOW_BULK || flow == EMU_FLOW_REMOTE) && op->mods.mode == EMU_BULK_MBARRIER
                   ? EMU_FLOW_MBARRIER
                   : flow;
    for (size_t k = 0; k < sizeof flows / sizeof *flows; k++)
        if (emu_text_is(i->opcode, flows[k].opcode)) {
            plan->joins_proxies = flows[k].flow == EMU_FLOW_FENCE &&
                                  (has_modifier(i, "async") || has_modifier(i, "async::generic"));
            if (flows[k].flow == EMU_FLOW_FENCE && has_modifier(i, "proxy") &&
                !has_modifier(i, "tensormap::generic")) /* it also releases and acquires */
                return EMU_FLOW_LANES;
            plan->scope = has_modifier(i, "cta")       ? EMU_SYNC_BLOCK
                          : has_modifier(i, "cluster") ? EMU_SYNC_CLUSTER
                                                       : EMU_SYNC_GRID;
            return flows[k].flow;
        }
    return EMU_FLOW_LANES;
}

static bool is_collective(const emu_instruction *i)
{
    static const char *const opcodes[] = {"mma", "wgmma", "ldmatrix", "stmatrix", "movmatrix"};
    for (size_t k = 0; k < sizeof opcodes / sizeof *opcodes; k++)
        if (emu_text_is(i->opcode, opcodes[k]))
            return true;
    return false;
}

/* True if the first argument is a result, so that the address is the second. */
static bool gives_result(const emu_instruction *i)
{
    static const char *const words[] = {"arrive", "arrive_drop", "test_wait", "try_wait"};
    bool gives = emu_text_is(i->opcode, "atom");
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        gives |= emu_text_is(i->opcode, "mbarrier") && has_modifier(i, words[k]);
    return gives;
}

static void plan_op(emu_program *p, size_t n, emu_plans *all)
{
    const emu_op *op = &p->ops[n];
    const emu_uses *u = &p->uses[n];
    const emu_instruction *i = p->instructions[op->at];
    emu_plan *plan = &all->plans[n];
    size_t most = (size_t)u->args + u->list_size + 1u;
    uint32_t *sources = emu_arena_alloc(&p->arena, 4 * (most + EMU_PLAN_SOURCES));
    uint32_t *writes = emu_arena_alloc(&p->arena, 4 * (most + 2));
    for (unsigned k = 0; k < u->args; k++)
        if (k < u->writes)
            add_slot(writes, &plan->write_count, op->arg[k]);
        else
            add_slot(sources, &plan->source_count, op->arg[k]);
    for (unsigned k = 0; k < u->list_size; k++)
        if (k < u->list_results)
            add_slot(writes, &plan->write_count, op->list[k]);
        else
            add_slot(sources, &plan->source_count, op->list[k]);
    plan->order = op->mods.flags & EMU_STRONG;
    plan->flow = (uint8_t)flow_of(p, n, plan);
    if (plan->flow == EMU_FLOW_ATOMIC || plan->flow == EMU_FLOW_MBARRIER || plan->flow == EMU_FLOW_COPY ||
        plan->flow == EMU_FLOW_BULK || plan->flow == EMU_FLOW_REMOTE)
        plan->address = slot_of(op->arg[gives_result(i) ? 1 : 0]);
    plan->initialises = emu_text_is(i->opcode, "mbarrier") && has_modifier(i, "init");
    plan->is_collective = is_collective(i);
    plan->reads_only =
        plan->flow == EMU_FLOW_LOAD && ((op->mods.flags & EMU_NON_COHERENT) || emu_text_is(i->opcode, "ldu"));
    all->has_read_only |= plan->reads_only;
    all->has_products |= plan->flow == EMU_FLOW_PRODUCT;
    all->copies_arrive |= plan->flow == EMU_FLOW_MBARRIER && emu_text_is(i->opcode, "cp");
    memcpy(plan->source, sources, sizeof plan->source);
    memcpy(plan->write, writes, sizeof plan->write);
    plan->sources = sources;
    plan->writes = writes;
}

void emu_plan_program(emu_program *p)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!p->plans) {
        emu_plans *all = emu_arena_alloc(&p->arena, sizeof *all);
        all->plans = emu_arena_alloc(&p->arena, p->op_count * sizeof *all->plans);
        all->slots = (uint32_t)emu_align_up(p->register_bytes, 64) / 64;
        for (size_t n = 0; n < p->op_count; n++)
            plan_op(p, n, all);
        p->plans = all;
    }
    pthread_mutex_unlock(&lock);
}
