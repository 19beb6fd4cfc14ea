/* The checker: checks that need the whole kernel. Types and scopes are checked during construction; their problems are
 * printed here too. */
#include "ir.h"

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

static void check_scopes(ptx_fn *f)
{
    for (uint32_t s = f->current; s; s = fn_scope(f, s)->parent)
        fn_problem(f, fn_scope(f, s)->at, "a break, return or goto left this block");
}

/* ---- what the target has ---------------------------------------------------------------------------------------- */

static ptx_requirement needs_of(const ptx_inst *inst)
{
    return requirement_join(inst->row->needs, inst->needs);
}

static void check_target(ptx_fn *f, const ptx_inst *inst)
{
    ptx_requirement needs = needs_of(inst);
    char name[24], needed[TARGET_NAME_BYTES], has[TARGET_NAME_BYTES];
    if (!ptx_fits(needs.target, f->target))
        fn_problem(f, inst->at, "%s needs %s, the target is %s", op_mnemonic(inst->row, name),
                   target_print(needs.target, needed), target_print(f->target, has));
}

/* Family features have no lowest target: families start at 100, 110 and 120. */
static ptx_requirement on_target(ptx_requirement needs, target t)
{
    if (needs.target.kind == TARGET_FAMILY) {
        needs.target.kind = t.kind;
        needs.target.sm = t.kind == TARGET_FAMILY ? (uint16_t)(t.sm / 10 * 10) : t.sm;
    }
    const uint16_t version = target_version(needs.target);
    if (needs.version < version)
        needs.version = version;
    return needs;
}

ptx_requirement ptx_needs(const ptx_fn *f)
{
    ptx_requirement needs = requirement_lowest;
    for (size_t i = 0; i < f->body.count; i++)
        if (fn_inst(&f->body, i)->kind == INST_OP)
            needs = requirement_join(needs, needs_of(fn_inst(&f->body, i)));
    return on_target(needs, f->target);
}

/* ---- what threads do together ----------------------------------------------------------------------------------- */

static void check_barrier(ptx_fn *f, const divergence *d, const ptx_inst *inst)
{
    char name[24];
    if (!(inst->row->traits & TRAIT_SYNC))
        return;
    if (inst->guard.kind == VAL_REGISTER)
        fn_problem(f, inst->at, "%s inside PTX_WHEN", op_mnemonic(inst->row, name));
    else if (divergence_here(f, d, inst->within) != LEVEL_BLOCK)
        fn_problem(f, inst->at, "%s where threads of the block may have diverged",
                   op_mnemonic(inst->row, name));
}

static void check_warp(ptx_fn *f, const divergence *d, const ptx_inst *inst)
{
    char name[24];
    if (!needs_whole_warp(inst))
        return;
    if (inst->guard.kind == VAL_REGISTER && d->reg[inst->guard.reg] == LEVEL_LANE)
        fn_problem(f, inst->at, "%s under a predicate that may differ between lanes of the warp",
                   op_mnemonic(inst->row, name));
    else if (divergence_here(f, d, inst->within) == LEVEL_LANE)
        fn_problem(f, inst->at, "%s where lanes of the warp may have diverged", op_mnemonic(inst->row, name));
}

/* A warpgroup is 128 threads of the thread block, and does all that concerns wgmma together. */
static void check_group(ptx_fn *f, const divergence *d, const ptx_inst *inst)
{
    static const char *const uniform[] = {"the descriptor of A", "the descriptor of B",
                                          "whether it adds to d"};
    char name[24];
    if (!(inst->row->traits & TRAIT_GROUP))
        return;
    op_mnemonic(inst->row, name);
    if (f->block[0] * f->block[1] * f->block[2] % (1u << GROUP_SPAN))
        fn_problem(f, inst->at, "%s takes whole warpgroups of 128 threads, the thread block has %u", name,
                   f->block[0] * f->block[1] * f->block[2]);
    else if (inst->guard.kind == VAL_REGISTER)
        fn_problem(f, inst->at, "%s inside PTX_WHEN", name);
    else if (divergence_here(f, d, inst->within) > LEVEL_GROUP)
        fn_problem(f, inst->at, "%s where threads of the warpgroup may have diverged", name);
    const bool is_shared = inst->row->op == PTX_OP_WGMMA_SHARED;
    for (int i = is_shared ? 0 : 1; inst->form && i < 3; i++)
        if (divergence_of(d, inst->operands[is_shared ? i : i + 3]) > LEVEL_GROUP)
            fn_problem(f, inst->at, "%s: %s may differ between threads of the warpgroup", name, uniform[i]);
}

/* Reports a copy that every lane of a warp starts with the same operands: it would be done 32 times. */
static void check_once(ptx_fn *f, const divergence *d, const ptx_inst *inst)
{
    char name[24];
    level at = divergence_here(f, d, inst->within);
    if (!(inst->row->traits & TRAIT_ONCE))
        return;
    at = divergence_of(d, inst->guard) > at ? divergence_of(d, inst->guard) : at;
    for (int i = 0; i < inst->operand_count; i++)
        at = divergence_of(d, inst->operands[i]) > at ? divergence_of(d, inst->operands[i]) : at;
    if (at != LEVEL_LANE)
        fn_problem(f, inst->at,
                   "%s by all lanes of a warp alike: one thread must execute it, as with ptx_elect",
                   op_mnemonic(inst->row, name));
}

/* Without .minnctapersm ptxas ignores setmaxnreg in kernels that need few registers (C7508). */
static void check_registers(ptx_fn *f, const ptx_inst *inst)
{
    const ptx_op op = inst->row->op;
    if ((op == PTX_OP_SETMAXNREG_INC || op == PTX_OP_SETMAXNREG_DEC) && !f->min_blocks)
        fn_problem(f, inst->at, "setmaxnreg in a kernel whose shape has no blocks_per_multiprocessor");
}

/* Checks a named barrier's id and thread count; barrier 0 is ptx_barrier's. */
static void check_named(ptx_fn *f, const ptx_inst *inst)
{
    enum { BARRIERS = 16 };
    if (inst->row->op != PTX_OP_BARRIER_NAMED && inst->row->op != PTX_OP_BARRIER_ARRIVE)
        return;
    const ptx_val id = inst->operands[0], threads = inst->operands[1];
    if (id.kind == VAL_IMMEDIATE && (id.bits == 0 || id.bits >= BARRIERS))
        fn_problem(f, inst->at, "bar: barrier %u, expected 1 to 15", (unsigned)id.bits);
    if (threads.kind == VAL_IMMEDIATE && (threads.bits == 0 || threads.bits % (1u << WARP_SPAN) != 0 ||
                                          threads.bits > f->block[0] * f->block[1] * f->block[2]))
        fn_problem(f, inst->at, "bar: %u threads, expected whole warps of the thread block",
                   (unsigned)threads.bits);
}

/* Reports constants out of the instruction's range. */
static void check_numbers(ptx_fn *f, const ptx_inst *inst)
{
    const ptx_val *operands = inst->operands;
    switch (inst->row->op) {
    case PTX_OP_LOP3:
        if (operands[3].bits > 0xff)
            fn_problem(f, inst->at, "lop3: the table is %llu, expected 0 to 255",
                       (unsigned long long)operands[3].bits);
        break;
    case PTX_OP_CP_ASYNC_ZFILL:
    case PTX_OP_CP_ASYNC_ZFILL_POLICY:
        if (operands[3].kind == VAL_IMMEDIATE && operands[3].bits > operands[2].bits)
            fn_problem(f, inst->at, "cp.async: reads %llu bytes to write %llu",
                       (unsigned long long)operands[3].bits, (unsigned long long)operands[2].bits);
        break;
    case PTX_OP_POLICY_FIRST:
    case PTX_OP_POLICY_LAST:
    case PTX_OP_POLICY_NORMAL:
    case PTX_OP_POLICY_UNCHANGED:
        if (operands[0].kind == VAL_IMMEDIATE &&
            (operands[0].bits == 0 ||
             operands[0].bits > ptx_f32(1).bits)) /* positive floats compare as their bits do */
            fn_problem(f, inst->at, "createpolicy: the fraction of lines must be above 0 and at most 1");
        break;
    default:
        break;
    }
}

/* Operations that need one of two others somewhere in the kernel. */
static const struct {
    ptx_op op, needs, or ;
    const char *text;
} counterparts[] = {
    {PTX_OP_BULK_LOAD, PTX_OP_FENCE_MBARRIER, PTX_OP_FENCE_MBARRIER,
     "bulk load in a kernel without ptx_fence_mbarrier_init"},
    {PTX_OP_TENSOR_LOAD, PTX_OP_FENCE_MBARRIER, PTX_OP_FENCE_MBARRIER,
     "tensor load in a kernel without ptx_fence_mbarrier_init"},
    {PTX_OP_BULK_STORE, PTX_OP_BULK_COMMIT, PTX_OP_BULK_COMMIT,
     "bulk store in a kernel without ptx_bulk_commit"},
    {PTX_OP_TENSOR_STORE, PTX_OP_BULK_COMMIT, PTX_OP_BULK_COMMIT,
     "tensor store in a kernel without ptx_bulk_commit"},
    {PTX_OP_BULK_COMMIT, PTX_OP_BULK_WAIT, PTX_OP_BULK_WAIT_READ,
     "ptx_bulk_commit in a kernel without ptx_bulk_wait"},
};

static const ptx_inst *find_operation(const ptx_fn *f, ptx_op op)
{
    for (size_t i = 0; i < f->body.count; i++) {
        const ptx_inst *inst = fn_inst(&f->body, i);
        if (inst->kind == INST_OP && inst->row->op == op)
            return inst;
    }
    return NULL;
}

static void check_counterparts(ptx_fn *f)
{
    for (size_t i = 0; i < sizeof counterparts / sizeof *counterparts; i++) {
        const ptx_inst *first = find_operation(f, counterparts[i].op);
        if (first && !find_operation(f, counterparts[i].needs) && !find_operation(f, counterparts[i].or))
            fn_problem(f, first->at, "%s", counterparts[i].text);
    }
}

/* ---- all of it -------------------------------------------------------------------------------------------------- */

static void check_whole(ptx_fn *f)
{
    divergence d = divergence_make(f);
    check_definitions(f);
    check_dependent(f);
    check_in_flight(f);
    check_counterparts(f);
    for (size_t i = 0; i < f->body.count; i++) {
        const ptx_inst *inst = fn_inst(&f->body, i);
        if (inst->kind == INST_OP) {
            check_target(f, inst);
            check_barrier(f, &d, inst);
            check_warp(f, &d, inst);
            check_group(f, &d, inst);
            check_once(f, &d, inst);
            check_named(f, inst);
            check_numbers(f, inst);
            check_registers(f, inst);
        }
    }
}

bool ptx_check(ptx_fn *f, FILE *out)
{
    check_scopes(f);
    if (!f->problems.count)
        check_whole(f);
    const problem *p = f->problems.items;
    for (size_t i = 0; out && i < f->problems.count; i++)
        fprintf(out, "%s:%d: error: %s\n", p[i].at.file, p[i].at.line, p[i].text);
    return f->problems.count == 0;
}
