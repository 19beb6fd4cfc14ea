/* Products of wgmma in flight (PTX ISA 9.7.15.7). From its issue to the wait that covers it, nothing may access a product's
 * registers, except products of the same shape that add to the same accumulators, or read the same A. A fence must come
 * before the first product, and between other accesses to a register and a product that uses it.
 *
 * The state of each such register follows control flow. Where paths join, the worse state counts, and a loop is repeated
 * until its first state no longer changes. Then the problems are reported. */
#include <string.h>

#include "ir.h"

/* What last used a register since the last fence. */
typedef enum since { SINCE_NOTHING, SINCE_ACCUMULATOR, SINCE_A, SINCE_OTHER } since;

/* Groups committed after a product, including its own. */
enum { AGE_DONE, AGE_ISSUED, AGE_COMMITTED, AGE_MOST = 255 };

typedef struct use {
    const ptx_inst *product, *other; /* the last product, and the last other instruction */
    uint8_t age;
    uint8_t since;
    bool is_accumulator; /* it is an accumulator of `product` */
    bool is_mixed;       /* paths with different products join here */
} use;

typedef struct state {
    use *uses; /* by slot */
    bool is_fenced, is_set;
} state;

typedef struct walk {
    ptx_fn *f;
    uint32_t *slot; /* each register's slot, from 1 on; 0: no product uses it */
    size_t slots;
    state now;
    state *entry;  /* per if: at its start; per loop: at its start, from all sides */
    state *other;  /* per if: after its first arm; per loop: at its breaks */
    size_t *start; /* per loop: the instruction after its start */
    bool reports;
} walk;

static bool is_product(const ptx_inst *inst)
{
    return inst->kind == INST_OP && inst->form;
}

/* ---- states ----------------------------------------------------------------------------------------------------- */

static bool are_of_one_shape(const ptx_inst *a, const ptx_inst *b)
{
    return a->form->n == b->form->n && wgmma_rows[a->form->types].k == wgmma_rows[b->form->types].k;
}

/* Whether the product that last used a register restricts its next use. */
static bool is_live(use u)
{
    return u.age || u.since == SINCE_ACCUMULATOR || u.since == SINCE_A;
}

static use join_uses(use a, use b)
{
    const bool is_a = is_live(a), is_b = is_live(b);
    const bool are_alike =
        !is_a || !is_b || (a.is_accumulator == b.is_accumulator && are_of_one_shape(a.product, b.product));
    use joined = (b.age && (!a.age || b.age < a.age)) || (!a.age && is_b && !is_a) ? b : a;
    joined.is_mixed = !are_alike || (is_a && a.is_mixed) || (is_b && b.is_mixed);
    joined.since = a.since == b.since || b.since == SINCE_NOTHING ? a.since
                   : a.since == SINCE_NOTHING                     ? b.since
                                                                  : SINCE_OTHER;
    joined.other = b.since == SINCE_OTHER || !a.other ? b.other : a.other;
    return joined;
}

static state copy_of(const walk *w, const state *s)
{
    return (state){arena_copy(w->f->arena, s->uses, w->slots * sizeof(use)), s->is_fenced, true};
}

/* Returns whether `to` changed. */
static bool join(const walk *w, state *to, const state *with)
{
    if (!to->is_set) {
        *to = copy_of(w, with);
        return true;
    }
    bool changed = to->is_fenced && !with->is_fenced;
    to->is_fenced &= with->is_fenced;
    for (size_t i = 0; i < w->slots; i++) {
        const use joined = join_uses(to->uses[i], with->uses[i]), *was = &to->uses[i];
        changed |= joined.age != was->age || joined.since != was->since || joined.is_mixed != was->is_mixed;
        to->uses[i] = joined;
    }
    return changed;
}

static void set_now(walk *w, const state *s)
{
    memcpy(w->now.uses, s->uses, w->slots * sizeof(use));
    w->now.is_fenced = s->is_fenced;
}

/* ---- accesses --------------------------------------------------------------------------------------------------- */

static use *use_of(const walk *w, ptx_val v)
{
    return v.kind == VAL_REGISTER && w->slot[v.reg] ? &w->now.uses[w->slot[v.reg] - 1] : NULL;
}

/* One message for the products of a source line. */
static void forget(walk *w, ptx_place at)
{
    for (size_t i = 0; i < w->slots; i++) {
        use *u = &w->now.uses[i];
        if (u->product && u->product->at.line == at.line && u->product->at.file == at.file)
            u->age = u->since = 0;
    }
}

static void report_in_flight(walk *w, const ptx_inst *inst, const char *verb, const use *u)
{
    char name[24];
    const ptx_inst *product = u->product;
    if (!w->reports)
        return;
    fn_problem(w->f, inst->at,
               "%s %s %s in flight: on some path no ptx_wgmma_wait covers the product at %s:%d",
               op_mnemonic(inst->row, name), verb, u->is_accumulator ? "an accumulator" : "a register of A",
               product->at.file, product->at.line);
    forget(w, product->at);
}

static void access_register(walk *w, const ptx_inst *inst, ptx_val v, const char *verb)
{
    use *u = use_of(w, v);
    if (!u)
        return;
    if (u->age)
        report_in_flight(w, inst, verb, u);
    u->since = SINCE_OTHER;
    u->other = inst;
}

static void report_fence(walk *w, const ptx_inst *inst, const use *u)
{
    const bool is_other = u->other && u->since == SINCE_OTHER;
    const ptx_place at = is_other ? u->other->at : u->product ? u->product->at : inst->at;
    if (!w->now.is_fenced)
        fn_problem(w->f, inst->at, "wgmma without a ptx_wgmma_fence before it on every path");
    else
        fn_problem(
            w->f, inst->at,
            is_other
                ? "wgmma uses a register that %s:%d accesses, with no ptx_wgmma_fence between the two"
                : "wgmma uses a register of the product at %s:%d in another way, with no ptx_wgmma_fence "
                  "between the two",
            at.file, at.line);
}

static void fence(walk *w)
{
    w->now.is_fenced = true;
    for (size_t i = 0; i < w->slots; i++)
        w->now.uses[i].since = SINCE_NOTHING;
}

static void use_register(walk *w, const ptx_inst *inst, ptx_val v, bool is_accumulator)
{
    use *u = use_of(w, v);
    const since now = is_accumulator ? SINCE_ACCUMULATOR : SINCE_A;
    const bool is_alike = u->product && !u->is_mixed && u->is_accumulator == is_accumulator &&
                          (!is_accumulator || are_of_one_shape(u->product, inst));
    const bool is_wrong = u->age && !is_alike;
    if (is_wrong)
        report_in_flight(w, inst, is_accumulator ? "adds to" : "takes as A", u);
    const bool is_free = is_wrong || u->since == SINCE_NOTHING || (u->since == now && is_alike);
    if (w->reports && (!w->now.is_fenced || !is_free)) {
        report_fence(w, inst, u);
        fence(w);
    }
    *u = (use){.product = inst,
               .other = u->other,
               .age = AGE_ISSUED,
               .since = (uint8_t)now,
               .is_accumulator = is_accumulator};
}

/* A's registers come first among the operands. */
static void step_product(walk *w, const ptx_inst *inst)
{
    const int a_count = inst->row->op == PTX_OP_WGMMA ? 4 : 0;
    for (int i = 0; i < a_count; i++)
        use_register(w, inst, inst->operands[i], false);
    for (int i = 0; i < inst->result_count; i++)
        use_register(w, inst, inst->results[i], true);
}

static void commit(walk *w)
{
    for (size_t i = 0; i < w->slots; i++)
        if (w->now.uses[i].age && w->now.uses[i].age < AGE_MOST)
            w->now.uses[i].age++;
}

static void wait(walk *w, uint64_t pending)
{
    for (size_t i = 0; i < w->slots; i++)
        if (w->now.uses[i].age >= AGE_COMMITTED + pending)
            w->now.uses[i].age = AGE_DONE;
}

static void step_operation(walk *w, const ptx_inst *inst)
{
    if (is_product(inst)) {
        step_product(w, inst);
        return;
    }
    for (int i = 0; i < inst->operand_count; i++)
        access_register(w, inst, inst->operands[i], "reads");
    for (int i = 0; i < inst->result_count; i++)
        access_register(w, inst, inst->results[i], "writes");
    switch (inst->row->op) {
    case PTX_OP_WGMMA_FENCE:
        fence(w);
        break;
    case PTX_OP_WGMMA_COMMIT:
        commit(w);
        break;
    case PTX_OP_WGMMA_WAIT:
        wait(w, inst->operands[0].bits);
        break;
    default:
        break;
    }
}

/* ---- control ---------------------------------------------------------------------------------------------------- */

/* Returns the instruction to go on with. */
static size_t step_control(walk *w, const ptx_inst *inst, size_t i)
{
    const uint32_t s = inst->scope,
                   first = fn_scope(w->f, s)->kind == SCOPE_ELSE ? fn_scope(w->f, s)->pair : s;
    switch (inst->kind) {
    case INST_IF:
        w->entry[s] = copy_of(w, &w->now);
        w->other[s].is_set = false;
        break;
    case INST_ELSE:
        w->other[first] = copy_of(w, &w->now);
        set_now(w, &w->entry[first]);
        break;
    case INST_END_IF:
        join(w, &w->now, w->other[first].is_set ? &w->other[first] : &w->entry[first]);
        break;
    case INST_LOOP:
        join(w, &w->entry[s], &w->now);
        set_now(w, &w->entry[s]);
        w->other[s].is_set = false;
        w->start[s] = i + 1;
        break;
    case INST_BREAK:
        join(w, &w->other[s], &w->now);
        break;
    case INST_END_LOOP:
        if (join(w, &w->entry[s], &w->now) && !w->reports) {
            set_now(w, &w->entry[s]);
            return w->start[s];
        }
        if (w->other[s].is_set)
            join(w, &w->now, &w->other[s]);
        break;
    case INST_OP:
    case INST_NOTE:
        break;
    }
    return i + 1;
}

static void run(walk *w, bool reports)
{
    w->reports = reports;
    w->now = (state){arena_alloc(w->f->arena, w->slots * sizeof(use)), false, true};
    for (size_t i = 0; i < w->f->body.count;) {
        const ptx_inst *inst = fn_inst(&w->f->body, i);
        if (inst->kind == INST_OP)
            step_operation(w, inst), i++;
        else
            i = step_control(w, inst, i);
    }
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

static void add_slot(walk *w, ptx_val v)
{
    if (!w->slot[v.reg])
        w->slot[v.reg] = (uint32_t)++w->slots;
}

static bool has_product(ptx_fn *f)
{
    for (size_t i = 0; i < f->body.count; i++)
        if (is_product(fn_inst(&f->body, i)))
            return true;
    return false;
}

/* The registers of products. */
static void find_slots(walk *w)
{
    for (size_t i = 0; i < w->f->body.count; i++) {
        const ptx_inst *inst = fn_inst(&w->f->body, i);
        if (!is_product(inst))
            continue;
        for (int r = 0; r < inst->result_count; r++)
            add_slot(w, inst->results[r]);
        for (int r = 0; inst->row->op == PTX_OP_WGMMA && r < 4; r++)
            add_slot(w, inst->operands[r]);
    }
}

static void report_end(walk *w)
{
    for (size_t i = 0; i < w->slots; i++) {
        const use *u = &w->now.uses[i];
        if (!u->age)
            continue;
        fn_problem(w->f, u->product->at,
                   "the kernel ends with this product in flight: on some path no ptx_wgmma_%s covers it",
                   u->age == AGE_ISSUED ? "commit" : "wait");
        forget(w, u->product->at);
    }
}

void check_in_flight(ptx_fn *f)
{
    if (!has_product(f))
        return;
    walk w = {.f = f, .slot = arena_alloc(f->arena, f->regs.count * sizeof(uint32_t))};
    find_slots(&w);
    w.entry = arena_alloc(f->arena, f->scopes.count * sizeof(state));
    w.other = arena_alloc(f->arena, f->scopes.count * sizeof(state));
    w.start = arena_alloc(f->arena, f->scopes.count * sizeof(size_t));
    run(&w, false);
    run(&w, true);
    report_end(&w);
}
