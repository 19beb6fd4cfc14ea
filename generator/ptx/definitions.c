/* Definition before use, for variables from ptx_declare; others have an initial value. A set of flags, one per
 * register, follows control flow: the arms of an if are intersected, and so are the exits of a loop. */
#include <string.h>

#include "ir.h"

typedef struct walk {
    ptx_fn *f;
    bool *set;    /* by register: set on every path to here */
    bool **entry; /* per if: at its start */
    bool **other; /* per if: after its first arm; per loop: at its breaks */
} walk;

static void intersect(const walk *w, bool *flags, const bool *with)
{
    for (size_t r = 0; with && r < w->f->regs.count; r++)
        flags[r] &= with[r];
}

static bool *copy_of(const walk *w, const bool *flags)
{
    return arena_copy(w->f->arena, flags, w->f->regs.count);
}

static void check_use(walk *w, ptx_val v, ptx_place at)
{
    if (v.kind != VAL_REGISTER || !fn_reg(w->f, v.reg)->declared || w->set[v.reg])
        return;
    w->set[v.reg] = true; /* one message is enough */
    fn_problem(w->f, at, "a variable is used that is not set on every path to here");
}

static void step_operation(walk *w, const ptx_inst *inst)
{
    for (int i = 0; i < inst->operand_count; i++)
        check_use(w, inst->operands[i], inst->at);
    for (int i = 0; i < inst->result_count && inst->guard.kind != VAL_REGISTER; i++)
        w->set[inst->results[i].reg] = true;
}

static void step_control(walk *w, const ptx_inst *inst)
{
    uint32_t s = inst->scope, first = fn_scope(w->f, s)->kind == SCOPE_ELSE ? fn_scope(w->f, s)->pair : s;
    switch (inst->kind) {
    case INST_IF:
        w->entry[s] = copy_of(w, w->set);
        break;
    case INST_ELSE:
        w->other[first] = copy_of(w, w->set);
        memcpy(w->set, w->entry[first], w->f->regs.count);
        break;
    case INST_END_IF:
        intersect(w, w->set, w->other[first] ? w->other[first] : w->entry[first]);
        break;
    case INST_BREAK: {
        bool *here = copy_of(w, w->set);
        intersect(w, here, w->other[s]);
        w->other[s] = here;
        break;
    }
    case INST_END_LOOP:
        intersect(w, w->set, w->other[s]);
        break;
    case INST_LOOP:
    case INST_OP:
    case INST_NOTE:
        break;
    }
}

static bool any_declared(const ptx_fn *f)
{
    for (uint32_t r = 0; r < f->regs.count; r++)
        if (fn_reg(f, r)->declared)
            return true;
    return false;
}

void check_definitions(ptx_fn *f)
{
    if (!any_declared(f))
        return;
    size_t scopes = f->scopes.count * sizeof(bool *);
    walk w = {f, arena_alloc(f->arena, f->regs.count), arena_alloc(f->arena, scopes),
              arena_alloc(f->arena, scopes)};
    for (size_t i = 0; i < f->body.count; i++) {
        const ptx_inst *inst = fn_inst(&f->body, i);
        if (inst->kind == INST_OP)
            step_operation(&w, inst);
        else
            step_control(&w, inst);
    }
}
