/* Kernels that may begin before the preceding launch has ended: those with ptx_grid_wait. Every thread must wait, so it
 * must be outside all blocks. Before it nothing is written, and only constant parameters' arrays are read. */
#include <string.h>

#include "ir.h"

/* The origin of an address. A fixed point over the code before the wait: origins only rise. */
typedef enum origin { ORIGIN_NONE, ORIGIN_CONSTANT, ORIGIN_OTHER } origin;

bool ptx_is_dependent(const ptx_fn *f)
{
    for (size_t i = 0; i < f->body.count; i++)
        if (fn_inst(&f->body, i)->kind == INST_OP && fn_inst(&f->body, i)->row->op == PTX_OP_GRID_WAIT)
            return true;
    return false;
}

void ptx_set_constant(ptx_fn *f, const char *name)
{
    for (size_t i = 0; i < f->params.count; i++) {
        kernel_param *p = (kernel_param *)f->params.items + i;
        p->is_constant |= strcmp(p->name, name) == 0;
    }
}

/* ---- origins ----------------------------------------------------------------------------------------------------- */

/* The pointers at the top are the parameters, in order, and arrays, which are the kernel's own. */
static void find_first_origins(const ptx_fn *f, uint8_t *origins)
{
    size_t param = 0;
    for (size_t i = 0; i < f->top.count; i++) {
        const ptx_inst *inst = fn_inst(&f->top, i);
        origin from = ORIGIN_CONSTANT;
        if (inst->row->op == PTX_OP_LOAD_PARAM || inst->row->op == PTX_OP_TENSOR_MAP) {
            const kernel_param *p = (const kernel_param *)f->params.items + param++;
            from = p->type != PTX_PTR ? ORIGIN_NONE : p->is_constant ? ORIGIN_CONSTANT : ORIGIN_OTHER;
        }
        origins[inst->results[0].reg] = (uint8_t)from;
    }
}

/* Loaded values, and raw instructions' results, have unknown origins. */
static bool keeps_origins(const ptx_inst *inst)
{
    switch (inst->row->op) {
    case PTX_OP_MOV:
    case PTX_OP_ADD:
    case PTX_OP_SUB:
    case PTX_OP_AND: /* rounded down */
    case PTX_OP_MAD:
    case PTX_OP_MAD_WIDE:
    case PTX_OP_SELP:
        return true;
    default:
        return false;
    }
}

static bool raise_results(const ptx_inst *inst, uint8_t *origins)
{
    uint8_t from = ORIGIN_NONE;
    bool changed = false;
    for (int i = 0; i < inst->operand_count && keeps_origins(inst); i++)
        if (inst->operands[i].kind == VAL_REGISTER && origins[inst->operands[i].reg] > from)
            from = origins[inst->operands[i].reg];
    for (int i = 0; i < inst->result_count; i++) {
        uint8_t *to = &origins[inst->results[i].reg];
        changed |= *to < from;
        *to = *to < from ? from : *to;
    }
    return changed;
}

static const uint8_t *find_origins(const ptx_fn *f, size_t end)
{
    uint8_t *origins = arena_alloc(f->arena, f->regs.count);
    find_first_origins(f, origins);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < end; i++)
            if (fn_inst(&f->body, i)->kind == INST_OP)
                changed |= raise_results(fn_inst(&f->body, i), origins);
    }
    return origins;
}

/* ---- what stands before the wait --------------------------------------------------------------------------------- */

static bool reads_only(const ptx_inst *inst)
{
    switch (inst->row->op) {
    case PTX_OP_LOAD:
    case PTX_OP_LOAD_POLICY:
    case PTX_OP_CP_ASYNC:
    case PTX_OP_CP_ASYNC_POLICY:
    case PTX_OP_CP_ASYNC_ZFILL:
    case PTX_OP_CP_ASYNC_ZFILL_POLICY:
    case PTX_OP_BULK_LOAD:
    case PTX_OP_TENSOR_LOAD:
        return true;
    default:
        return false;
    }
}

static bool is_prefetch(const ptx_inst *inst)
{
    return inst->row->op == PTX_OP_PREFETCH_L1 || inst->row->op == PTX_OP_PREFETCH_L2 ||
           inst->row->op == PTX_OP_PREFETCH_L2_BULK || inst->row->op == PTX_OP_PREFETCH_MAP;
}

static void check_early(ptx_fn *f, const uint8_t *origins, const ptx_inst *inst)
{
    char name[24];
    if (inst->row->op == PTX_OP_RAW)
        fn_problem(f, inst->at, "ptx_raw before ptx_grid_wait: its memory accesses are unknown");
    for (int i = 0; i < inst->operand_count; i++) {
        const ptx_val v = inst->operands[i];
        if (v.kind != VAL_REGISTER || v.type != PTX_PTR || (v.space != PTX_GLOBAL && v.space != PTX_GENERIC))
            continue;
        if (is_prefetch(inst))
            continue;
        if (!reads_only(inst))
            fn_problem(f, inst->at, "%s before ptx_grid_wait: what ran before may still use this memory",
                       op_mnemonic(inst->row, name));
        else if (origins[v.reg] != ORIGIN_CONSTANT)
            fn_problem(f, inst->at, "%s before ptx_grid_wait, of memory that no constant argument points at",
                       op_mnemonic(inst->row, name));
    }
}

void check_dependent(ptx_fn *f)
{
    size_t end = f->body.count;
    for (size_t i = 0; i < f->body.count; i++) {
        const ptx_inst *inst = fn_inst(&f->body, i);
        if (inst->kind != INST_OP || inst->row->op != PTX_OP_GRID_WAIT)
            continue;
        if (inst->within)
            fn_problem(f, inst->at, "griddepcontrol inside a block: every thread must wait");
        end = i < end ? i : end;
    }
    if (end == f->body.count)
        return;
    const uint8_t *origins = find_origins(f, end);
    for (size_t i = 0; i < end; i++)
        if (fn_inst(&f->body, i)->kind == INST_OP)
            check_early(f, origins, fn_inst(&f->body, i));
}
