/* Finds where values may differ, between the warpgroups or warps of a thread block or the lanes of a warp, and in which
 * blocks threads may have diverged. A fixed point: levels only rise. */
#include "ir.h"

static level higher(level a, level b)
{
    return a > b ? a : b;
}

static level lower(level a, level b)
{
    return a < b ? a : b;
}

level divergence_here(const ptx_fn *f, const divergence *d, uint32_t index)
{
    level at = LEVEL_BLOCK;
    for (; index; index = fn_scope(f, index)->parent)
        at = higher(at, (level)d->scope[index]);
    return at;
}

level divergence_of(const divergence *d, ptx_val v)
{
    return v.kind == VAL_REGISTER ? (level)d->reg[v.reg] : LEVEL_BLOCK;
}

static bool raise_to(uint8_t *is, level to)
{
    if (*is >= to)
        return false;
    *is = (uint8_t)to;
    return true;
}

/* ---- values that are equal in all threads of a warp or warpgroup ------------------------------------------------ */

/* Where a value with a span may differ, not counting its lowest `bits` bits. Its k counts too. */
static level level_of_k(const ptx_fn *f, const divergence *d, ptx_val v, uint64_t bits)
{
    const int span = val_span(f, v);
    if (!span || bits < WARP_SPAN)
        return LEVEL_LANE;
    return higher((level)d->row[v.reg], span >= GROUP_SPAN && bits >= GROUP_SPAN ? LEVEL_GROUP : LEVEL_WARP);
}

/* Where a comparison of a value with a bound may differ. */
static level level_of_split(const ptx_fn *f, const divergence *d, ptx_val v, ptx_val bound)
{
    return higher(divergence_of(d, bound), level_of_k(f, d, v, (uint64_t)val_zeros(f, bound)));
}

/* Where the result may differ if it depends only on the k of an operand with a span; else LEVEL_LANE. */
static level level_left(const ptx_fn *f, const divergence *d, const ptx_inst *inst)
{
    const ptx_val *v = inst->operands;
    if (inst->operand_count != 2)
        return LEVEL_LANE;
    bool by_immediate = v[1].kind == VAL_IMMEDIATE;
    bool is_unsigned = inst->type == PTX_U32 || inst->type == PTX_U64;
    switch (inst->row->op) {
    case PTX_OP_SHR:
        return by_immediate ? level_of_k(f, d, v[0], v[1].bits) : LEVEL_LANE;
    case PTX_OP_DIV:
        return by_immediate && is_unsigned && v[1].bits ? level_of_split(f, d, v[0], v[1]) : LEVEL_LANE;
    case PTX_OP_AND:
        return by_immediate ? level_of_split(f, d, v[0], v[1]) : LEVEL_LANE;
    case PTX_OP_LT:
    case PTX_OP_GE:
        return level_of_split(f, d, v[0], v[1]);
    case PTX_OP_GT:
    case PTX_OP_LE:
        return level_of_split(f, d, v[1], v[0]);
    default:
        return LEVEL_LANE;
    }
}

/* Whether all lanes read one lane's value. */
static bool is_broadcast(const divergence *d, const ptx_inst *inst)
{
    return inst->row->op == PTX_OP_SHFL_IDX && divergence_of(d, inst->operands[1]) <= LEVEL_WARP &&
           inst->operands[2].bits == 31 && needs_whole_warp(inst);
}

static const char *last_letter(const ptx_inst *inst)
{
    const char *s = inst->row->signature;
    while (s[1])
        s++;
    return s;
}

bool needs_whole_warp(const ptx_inst *inst)
{
    if (inst->whole_warp)
        return true;
    if (!(inst->row->traits & TRAIT_WARP))
        return false;
    if (*last_letter(inst) != 'm')
        return true;
    ptx_val mask = inst->operands[inst->operand_count - 1];
    return mask.kind == VAL_IMMEDIATE && mask.bits == PTX_ALL_LANES;
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

static level operands_level(const divergence *d, const ptx_inst *inst)
{
    level at = LEVEL_BLOCK;
    for (int i = 0; i < inst->operand_count; i++)
        at = higher(at, divergence_of(d, inst->operands[i]));
    return at;
}

static level result_level(const ptx_fn *f, const divergence *d, const ptx_inst *inst)
{
    if (is_broadcast(d, inst))
        return lower(LEVEL_WARP, operands_level(d, inst));
    if (inst->row->traits & TRAIT_VARIES)
        return LEVEL_LANE;
    if (inst->row->traits & TRAIT_VOTE)
        return needs_whole_warp(inst) ? LEVEL_WARP : LEVEL_LANE;
    return lower(level_left(f, d, inst), higher(inst->varies, operands_level(d, inst)));
}

/* The level at which k of a result may differ: an operand's level, or its k's level if it has a span. */
static level row_level(const ptx_fn *f, const divergence *d, const ptx_inst *inst)
{
    level at = inst->row->op == PTX_OP_SPECIAL ? LEVEL_GROUP : LEVEL_BLOCK;
    for (int i = 0; i < inst->operand_count; i++) {
        ptx_val v = inst->operands[i];
        at = higher(at, val_span(f, v) ? (level)d->row[v.reg] : divergence_of(d, v));
    }
    return at;
}

static bool visit_operation(const ptx_fn *f, divergence *d, const ptx_inst *inst)
{
    level result = higher(result_level(f, d, inst), divergence_of(d, inst->guard));
    bool changed = false;
    for (int i = 0; i < inst->result_count; i++) {
        uint32_t number = inst->results[i].reg;
        const ptx_reg *r = fn_reg(f, number);
        level to = r->variable ? higher(result, divergence_here(f, d, inst->within)) : result;
        changed |= raise_to(&d->reg[number], to < (level)r->said ? to : (level)r->said);
        if (r->span)
            changed |= raise_to(&d->row[number], row_level(f, d, inst));
    }
    return changed;
}

/* ---- control ---------------------------------------------------------------------------------------------------- */

/* If threads leave a loop at different times, they diverge inside. */
static bool visit(const ptx_fn *f, divergence *d, const ptx_inst *inst)
{
    switch (inst->kind) {
    case INST_OP:
        return visit_operation(f, d, inst);
    case INST_IF:
    case INST_END_LOOP:
        return raise_to(&d->scope[inst->scope], divergence_of(d, inst->operands[0]));
    case INST_ELSE:
        return raise_to(&d->scope[inst->scope], (level)d->scope[fn_scope(f, inst->scope)->pair]);
    case INST_BREAK: {
        level parted = divergence_of(d, inst->operands[0]);
        for (uint32_t s = inst->within; s != inst->scope; s = fn_scope(f, s)->parent)
            parted = higher(parted, (level)d->scope[s]);
        return raise_to(&d->scope[inst->scope], parted);
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
    divergence d = {arena_alloc(f->arena, f->regs.count), arena_alloc(f->arena, f->scopes.count),
                    arena_alloc(f->arena, f->regs.count)};
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < f->body.count; i++)
            changed |= visit(f, &d, fn_inst(&f->body, i));
    }
    return d;
}
