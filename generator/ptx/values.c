/* Values: registers, whether a value may be used here, and the order in which arguments were emitted. */
#include "ir.h"

const ptx_val val_poison = {.kind = VAL_POISON};

ptx_val val_register(ptx_fn *f, ptx_type type)
{
    ptx_val v = {.kind = VAL_REGISTER, .type = (uint8_t)type, .reg = (uint32_t)f->regs.count};
    ptx_reg *r = list_add(f, &f->regs, sizeof *r);
    r->type = (uint8_t)type;
    r->said = LEVEL_LANE;
    r->scope = f->current;
    return v;
}

ptx_val val_retyped(ptx_val v, ptx_type type)
{
    v.type = (uint8_t)type;
    return v;
}

/* Whether a call for this kernel may have returned the value. Uninitialised memory seldom holds such a one. */
static bool is_possible(const ptx_fn *f, ptx_val v)
{
    if (v.type > PTX_PTR)
        return false;
    if (v.kind != VAL_REGISTER)
        return v.kind == VAL_IMMEDIATE;
    if (v.reg == 0 || v.reg >= f->regs.count)
        return false;
    return v.type != PTX_PTR ||
           (v.element <= PTX_PTR && v.space <= PTX_LOCAL && v.bits < (uint64_t)f->regs.count);
}

bool val_is_fine(const ptx_fn *f, ptx_val v)
{
    if (v.kind == VAL_POISON || !is_possible(f, v))
        return false;
    const ptx_reg *r = v.kind == VAL_REGISTER ? fn_reg(f, v.reg) : NULL;
    return !r || (!r->moved_line && fn_scope(f, r->scope)->open);
}

bool val_given(ptx_fn *f, ptx_val v, const char *what, ptx_place at)
{
    const bool is_poison = v.kind == VAL_POISON;
    if (!is_poison && is_possible(f, v))
        return true;
    if (!is_poison || !f->problems.count)
        fn_problem(f, at, "%s was never given a value", what);
    return false;
}

bool val_usable(ptx_fn *f, ptx_val v, const char *what, ptx_place at)
{
    if (!val_given(f, v, what, at))
        return false;
    if (v.kind == VAL_IMMEDIATE)
        return true;
    const ptx_reg *r = fn_reg(f, v.reg);
    if (r->moved_line) {
        fn_problem(f, at, "%s was moved into a variable on line %d: use the variable", what, r->moved_line);
        return false;
    }
    if (!fn_scope(f, r->scope)->open) {
        fn_problem(f, at, "%s was made in a block that has ended", what);
        return false;
    }
    return true;
}

/* ---- the order of arguments ------------------------------------------------------------------------------------- */

void ptx_call_begins(ptx_fn *f)
{
    size_t *slot = list_add(f, &f->calls, sizeof *slot);
    *slot = f->body.count;
}

ptx_place call_place(ptx_fn *f, const char *file, int line)
{
    const size_t *lengths = f->calls.items;
    f->called_at = lengths[--f->calls.count];
    return (ptx_place){file, line};
}

bool vals_in_order(ptx_fn *f, int count, const ptx_val values[], ptx_place at)
{
    size_t first = 0;
    for (int i = 0; i < count; i++) {
        const bool is_register = values[i].kind == VAL_REGISTER && is_possible(f, values[i]);
        size_t born = is_register ? fn_reg(f, values[i].reg)->born : 0;
        if (born <= f->called_at)
            continue;
        if (first && born != first) {
            fn_problem(
                f, at,
                "two calls that emit are arguments of one call: C leaves their order open, name one first");
            return false;
        }
        first = born;
    }
    return true;
}
