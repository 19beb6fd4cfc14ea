/* Which values may differ between the threads of a block, and in which blocks its threads may have parted. */
#include "ir.h"

bool divergent_here(const ptx_fn *f, const divergence *d, uint32_t index)
{
    for (; index; index = fn_scope(f, index)->parent)
        if (d->scope[index])
            return true;
    return false;
}

static bool differs(const divergence *d, ptx_val v)
{
    return v.kind == VAL_REGISTER && d->reg[v.reg];
}

static bool set(bool *flag, bool value)
{
    if (!value || *flag)
        return false;
    *flag = true;
    return true;
}

static bool visit_operation(const ptx_fn *f, divergence *d, const ptx_inst *inst)
{
    bool varies = inst->varies || (inst->row->traits & TRAIT_VARIES) || differs(d, inst->guard),
         changed = false;
    for (int i = 0; i < inst->operand_count; i++)
        varies |= differs(d, inst->operands[i]);
    for (int i = 0; i < inst->result_count; i++) {
        const ptx_reg *r = fn_reg(f, inst->results[i].reg);
        bool parted = r->variable && divergent_here(f, d, inst->within);
        changed |= set(&d->reg[inst->results[i].reg], (varies || parted) && !r->said_uniform);
    }
    return changed;
}

/* A loop whose threads leave it at different times has them apart inside. */
static bool visit(const ptx_fn *f, divergence *d, const ptx_inst *inst)
{
    switch (inst->kind) {
    case INST_OP:
        return visit_operation(f, d, inst);
    case INST_IF:
    case INST_END_LOOP:
        return set(&d->scope[inst->scope], differs(d, inst->operands[0]));
    case INST_ELSE:
        return set(&d->scope[inst->scope], d->scope[fn_scope(f, inst->scope)->pair]);
    case INST_BREAK: {
        bool parted = differs(d, inst->operands[0]);
        for (uint32_t s = inst->within; s != inst->scope; s = fn_scope(f, s)->parent)
            parted |= d->scope[s];
        return set(&d->scope[inst->scope], parted);
    }
    case INST_END_IF:
    case INST_LOOP:
    case INST_NOTE:
        break;
    }
    return false;
}

divergence divergence_make(const ptx_fn *f)
{
    divergence d = {arena_alloc(f->arena, f->regs.count), arena_alloc(f->arena, f->scopes.count)};
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < f->body.count; i++)
            changed |= visit(f, &d, fn_inst(&f->body, i));
    }
    return d;
}
