/* The rules of wgmma (ISA 9.7.15) and setmaxnreg (9.7.19.5). From the issue of a product to the wait_group that covers it,
   nothing else may read or write its accumulators and its registers of A, except products of the same shape on the same
   accumulators. A wgmma.fence is required before a warp's first product, and between any other access of a register and a
   product that uses it. A mov of an accumulator in flight does not count: compilers rename registers with it, and ptxas removes
   it. The four warps of a warpgroup execute the same instructions, with the same descriptors. A product must be committed and
   waited for before its threads end. Each mistake with a product is reported once. */
#include "check.h"
#include "plan.h"

#include "../core/wgmma.h"
#include "../exec/operations.h"
#include "../exec/wgmma.h"

#include <stdlib.h>
#include <string.h>

/* The last uses of one register of a warp. */
typedef struct use {
    const emu_op *product; /* the last product that used it */
    const emu_op *access;  /* the last access by another instruction */
    uint32_t number;       /* the product's number; 0: none */
    uint32_t product_fences,
        access_fences; /* 1 + the fences that the warp had executed by then; 0: never used */
    bool is_accumulator;
} use;

typedef struct warp_state {
    use *uses;             /* by slot */
    uint32_t done, issued; /* the newest product that is complete; the newest one issued */
    uint32_t fences;
    size_t events;
    bool has_set_registers; /* by setmaxnreg, and has passed no barrier since */
} warp_state;

/* A wgmma instruction, as the first warp of the warpgroup to reach it executed it. */
typedef struct event {
    const emu_op *op;
    uint64_t a, b;
    bool adds;
} event;

typedef struct group_state {
    event *events; /* from number `passed` on; all four warps have executed the earlier ones */
    size_t passed, count, room;
    bool has_parted; /* the warps have diverged, which was reported */
} group_state;

typedef struct emu_wgmma_state {
    warp_state *warps;
    group_state *groups;
    unsigned warp_count;
    emu_handler *copy; /* the handler of a 4-byte mov */
} emu_wgmma_state;

static unsigned line_of(const emu_warp *w, const emu_op *op)
{
    return w->block->launch->program->instructions[op->at]->line;
}

static group_state *group_of(const emu_warp *w)
{
    return &w->block->wgmma->groups[w->id / EMU_WARPGROUP_WARPS];
}

/* ---- blocks -------------------------------------------------------------------------------------------------------- */

static void block_free(emu_block *b)
{
    emu_wgmma_state *s = b->wgmma;
    if (!s)
        return;
    for (unsigned n = 0; n < s->warp_count; n++) {
        free(s->warps[n].uses);
        free(s->groups[n / EMU_WARPGROUP_WARPS].events);
        s->groups[n / EMU_WARPGROUP_WARPS].events = NULL;
    }
    free(s->warps);
    free(s->groups);
    free(s);
    b->wgmma = NULL;
}

static void block_begin(emu_block *b)
{
    block_free(b);
    emu_wgmma_state *s = b->wgmma = emu_alloc(sizeof *s);
    s->warp_count = b->warp_count;
    s->copy = emu_micro_handlers()->copy[2];
    s->warps = emu_alloc(b->warp_count * sizeof *s->warps);
    s->groups = emu_alloc(b->warp_count * sizeof *s->groups);
    for (unsigned n = 0; n < b->warp_count; n++)
        s->warps[n].uses = emu_alloc(b->launch->program->plans->slots * sizeof *s->warps[n].uses);
}

/* ---- registers ----------------------------------------------------------------------------------------------------- */

/* After the report, the product counts as waited for. */
static void report_in_flight(emu_warp *w, const emu_op *op, uint32_t lanes, const use *u, const char *verb)
{
    char source[EMU_SOURCE_BYTES];
    emu_note(w, op, lanes, u->product->at,
             "%s %s of the product in line %u%s, which is in flight: no wgmma.wait_group has waited for it",
             verb, u->is_accumulator ? "an accumulator" : "a register of A", line_of(w, u->product),
             emu_source_of(w->block->launch->program, u->product->at, source));
    w->block->wgmma->warps[w->id].done = u->number;
}

static void access_register(emu_warp *w, const emu_op *op, uint32_t lanes, uint32_t slot, const char *verb)
{
    warp_state *s = &w->block->wgmma->warps[w->id];
    use *u = &s->uses[slot];
    if (u->number > s->done)
        report_in_flight(w, op, lanes, u, verb);
    u->access = op;
    u->access_fences = s->fences + 1;
}

/* True for a mov that gives an accumulator in flight another name. */
static bool is_renamed(const emu_warp *w, const emu_op *op, uint32_t mask)
{
    const emu_wgmma_state *s = w->block->wgmma;
    const warp_state *own = &s->warps[w->id];
    if (op->run != s->copy || op->arg[1] & 1 || mask != w->alive)
        return false;
    const use *from = &own->uses[op->arg[1] >> 6];
    use *to = &own->uses[op->arg[0] >> 6];
    if (from->number <= own->done || !from->is_accumulator || (to->number > own->done && !to->is_accumulator))
        return false;
    *to = *from;
    return true;
}

static void issue(emu_warp *w, const emu_op *op, uint32_t mask)
{
    const emu_plan *p = emu_plan_of(w, op);
    if (!mask || p->flow == EMU_FLOW_PRODUCT || is_renamed(w, op, mask))
        return;
    for (unsigned n = 0; n < p->source_count; n++)
        access_register(w, op, mask, p->sources[n], "reads");
    for (unsigned n = 0; n < p->write_count; n++)
        access_register(w, op, mask, p->writes[n], "writes");
}

static bool are_of_one_shape(const emu_op *a, const emu_op *b)
{
    emu_wgmma f = emu_wgmma_of(a), g = emu_wgmma_of(b);
    return f.n == g.n && emu_wgmma_element_bytes(f.a) == emu_wgmma_element_bytes(g.a);
}

/* True if two products need no fence between them: both use the register as an accumulator of the same shape, or both only
   read it. */
static bool follows_freely(const emu_op *op, const use *u, bool is_accumulator)
{
    return u->is_accumulator == is_accumulator && (!is_accumulator || are_of_one_shape(u->product, op));
}

/* Returns true after reporting a missing fence. */
static bool lacks_fence(emu_warp *w, const emu_op *op, const warp_state *s, const use *u, bool is_accumulator)
{
    char source[EMU_SOURCE_BYTES];
    const emu_op *other = u->access_fences > s->fences ? u->access : NULL;
    if (s->fences == 0) {
        emu_note(w, op, EMU_ALL, EMU_NOBODY,
                 "issues its warp's first product without a wgmma.fence before it");
        return true;
    }
    if (!other && u->product_fences > s->fences && u->number < s->issued &&
        !follows_freely(op, u, is_accumulator))
        other = u->product;
    if (!other)
        return false;
    emu_source_of(w->block->launch->program, other->at, source);
    emu_note(
        w, op, EMU_ALL, other->at,
        other == u->access
            ? "uses a register that line %u%s accesses, with no wgmma.fence between the two"
            : "uses a register of the product in line %u%s, with no wgmma.fence between the two: only products of one shape on the same accumulators need none",
        line_of(w, other), source);
    return true;
}

static void use_register(emu_warp *w, const emu_op *op, uint32_t slot, bool is_accumulator)
{
    warp_state *s = &w->block->wgmma->warps[w->id];
    use *u = &s->uses[slot];
    bool is_wrong = u->number > s->done && u->number < s->issued && u->is_accumulator != is_accumulator;
    if (is_wrong)
        report_in_flight(w, op, EMU_ALL, u, is_accumulator ? "adds to" : "takes as A");
    if (is_wrong || lacks_fence(w, op, s, u, is_accumulator))
        s->fences++;
    *u = (use){.product = op,
               .access = u->access,
               .number = s->issued,
               .product_fences = s->fences + 1,
               .access_fences = u->access_fences,
               .is_accumulator = is_accumulator};
}

static void issue_product(emu_warp *w, const emu_op *op, uint32_t number)
{
    emu_wgmma f = emu_wgmma_of(op);
    unsigned results = emu_wgmma_d_registers(&f);
    w->block->wgmma->warps[w->id].issued = number;
    for (unsigned n = 0; n < EMU_WGMMA_A_FRAGMENTS && (f.flags & EMU_WGMMA_A_REGISTERS); n++)
        use_register(w, op, op->list[results + n] >> 6, false);
    for (unsigned n = 0; n < results; n++)
        use_register(w, op, op->list[n] >> 6, true);
}

static void product_done(emu_warp *w, const emu_product *p)
{
    warp_state *s = &w->block->wgmma->warps[w->id];
    s->done = s->done > p->number ? s->done : p->number;
}

/* ---- the warpgroup ------------------------------------------------------------------------------------------------- */

/* Returns another warp of the group that has ended, or NULL. */
static const emu_warp *ended_warp(const emu_warp *w)
{
    const emu_warp *first = w - w->id % EMU_WARPGROUP_WARPS;
    for (unsigned n = 0; n < EMU_WARPGROUP_WARPS; n++)
        if (&first[n] != w && !first[n].alive)
            return &first[n];
    return NULL;
}

/* Forgets the events that all four warps have executed. */
static void forget_passed(const emu_warp *w, group_state *g)
{
    const warp_state *s = &w->block->wgmma->warps[w->id - w->id % EMU_WARPGROUP_WARPS];
    size_t least = SIZE_MAX;
    for (unsigned n = 0; n < EMU_WARPGROUP_WARPS; n++)
        least = s[n].events < least ? s[n].events : least;
    g->count -= least - g->passed;
    memmove(g->events, g->events + (least - g->passed), g->count * sizeof *g->events);
    g->passed = least;
}

static void append_event(const emu_warp *w, group_state *g, event e)
{
    if (g->count == g->room) {
        if (g->count)
            forget_passed(w, g);
        if (2 * g->count >= g->room) {
            g->room = 2 * g->room + 64;
            g->events = emu_grow(g->events, g->count * sizeof e, g->room * sizeof e);
        }
    }
    g->events[g->count++] = e;
}

static void check_group(emu_warp *w, const emu_op *op, event e)
{
    group_state *g = group_of(w);
    warp_state *s = &w->block->wgmma->warps[w->id];
    char source[EMU_SOURCE_BYTES];
    size_t n = s->events++;
    if (g->has_parted)
        return;
    if (n == g->passed + g->count) {
        const emu_warp *ended = ended_warp(w);
        append_event(w, g, e);
        g->has_parted = ended != NULL;
        if (ended)
            emu_note(
                w, op, EMU_ALL, EMU_NOBODY,
                "executes this without warp %u of its warpgroup, which has ended: all four warps must execute it",
                ended->id);
        return;
    }
    const event *first = &g->events[n - g->passed];
    g->has_parted = true;
    if (first->op != op)
        emu_note(
            w, op, EMU_ALL, first->op->at,
            "executes this while another warp of its warpgroup executes line %u%s: all four must execute the same instruction",
            line_of(w, first->op), emu_source_of(w->block->launch->program, first->op->at, source));
    else if (first->a != e.a || first->b != e.b)
        emu_note(w, op, EMU_ALL, EMU_NOBODY,
                 "and another warp of its warpgroup give different matrix descriptors of %c",
                 first->a != e.a ? 'A' : 'B');
    else if (first->adds != e.adds)
        emu_note(w, op, EMU_ALL, EMU_NOBODY,
                 "and another warp of its warpgroup give different values of scale-d");
    else
        g->has_parted = false;
}

/* True for setmaxnreg, which a warpgroup executes like wgmma. */
static bool is_of_registers(const emu_warp *w, const emu_op *op)
{
    return emu_text_is(w->block->launch->program->instructions[op->at]->opcode, "setmaxnreg");
}

static void set_registers(emu_warp *w, const emu_op *op)
{
    warp_state *s = &w->block->wgmma->warps[w->id];
    if (s->has_set_registers)
        emu_note(w, op, EMU_ALL, EMU_NOBODY,
                 "executes setmaxnreg a second time with no barrier since the first");
    s->has_set_registers = true;
}

static void barrier_complete(emu_block *b, unsigned number)
{
    for (unsigned n = 0; n < b->warp_count; n++)
        if (b->barriers[number].waiting >> n & 1)
            b->wgmma->warps[n].has_set_registers = false;
}

static void cluster_wait(emu_warp *w)
{
    w->block->wgmma->warps[w->id].has_set_registers = false;
}

static void phase_passed(emu_warp *w, const emu_op *op, uint64_t mbarrier)
{
    (void)op, (void)mbarrier;
    w->block->wgmma->warps[w->id].has_set_registers = false;
}

static void warpgroup(emu_warp *w, const emu_op *op, const emu_product *p)
{
    check_group(w, op, p ? (event){op, p->a, p->b, p->adds} : (event){.op = op});
    if (is_of_registers(w, op))
        set_registers(w, op);
    else if (op->mods.mode == EMU_WGMMA_FENCE)
        w->block->wgmma->warps[w->id].fences++;
    if (p)
        issue_product(w, op, p->number);
}

static void exit_(emu_warp *w, const emu_op *op, uint32_t lanes)
{
    group_state *g = group_of(w);
    const emu_product *p = emu_product_oldest(w);
    (void)op;
    if (lanes != w->alive)
        return;
    if (p)
        emu_note(w, p->op, lanes, EMU_NOBODY, "ends before this product is complete: no wgmma.%s covers it",
                 emu_product_is_committed(w, p) ? "wait_group" : "commit_group");
    size_t n = w->block->wgmma->warps[w->id].events;
    if (n < g->passed + g->count && !g->has_parted) {
        g->has_parted = true;
        emu_note(
            w, g->events[n - g->passed].op, lanes, EMU_NOBODY,
            "ends without executing this, as another warp of its warpgroup did: all four warps must execute it");
    }
}

const emu_observer emu_wgmma_check = {
    .block_begin = block_begin,
    .block_free = block_free,
    .issue = issue,
    .exit = exit_,
    .barrier_complete = barrier_complete,
    .cluster_wait = cluster_wait,
    .phase_passed = phase_passed,
    .warpgroup = warpgroup,
    .product_done = product_done,
};
