/* Facts about a new integer: how many of its low bits are 0, for the alignment of addresses, and whether it counts the
 * threads of a warp or warpgroup, for their operations. Variables have none: they change. */
#include "ir.h"

enum { ALL_ZEROS = 32 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int low_zeros(uint64_t bits)
{
    int n = 0;
    while (n < ALL_ZEROS && !(bits >> n & 1))
        n++;
    return n;
}

int val_zeros(const ptx_fn *f, ptx_val v)
{
    if (!type_is_integer((ptx_type)v.type))
        return 0;
    if (v.kind == VAL_IMMEDIATE)
        return low_zeros(v.bits);
    return v.kind == VAL_REGISTER ? fn_reg(f, v.reg)->zeros : 0;
}

int val_span(const ptx_fn *f, ptx_val v)
{
    return v.kind == VAL_REGISTER && type_is_integer((ptx_type)v.type) ? fn_reg(f, v.reg)->span : 0;
}

/* Low bits of the result that are 0. */
static int zeros_of(const ptx_fn *f, const ptx_inst *inst)
{
    const ptx_val *v = inst->operands;
    int a = inst->operand_count > 0 ? val_zeros(f, v[0]) : 0;
    int b = inst->operand_count > 1 ? val_zeros(f, v[1]) : 0;
    int count = inst->operand_count > 1 && v[1].kind == VAL_IMMEDIATE ? least((int)v[1].bits, ALL_ZEROS) : 0;
    switch (inst->row->op) {
    case PTX_OP_MOV:
    case PTX_OP_NEG:
    case PTX_OP_CVT:
        return a;
    case PTX_OP_ADD:
    case PTX_OP_SUB:
    case PTX_OP_OR:
    case PTX_OP_XOR:
    case PTX_OP_MIN:
    case PTX_OP_MAX:
    case PTX_OP_SELP:
        return least(a, b);
    case PTX_OP_AND:
        return a > b ? a : b;
    case PTX_OP_MUL:
    case PTX_OP_MUL_WIDE:
        return least(a + b, ALL_ZEROS);
    case PTX_OP_MAD:
    case PTX_OP_MAD_WIDE:
        return least(a + b, val_zeros(f, v[2]));
    case PTX_OP_SHL:
        return least(a + count, ALL_ZEROS);
    case PTX_OP_SHR:
        return a > count ? a - count : 0;
    default:
        return 0;
    }
}

/* The span of a thread's number along x. It has one if each row of threads is whole warps or warpgroups, or there is
 * one row. */
static int span_of_thread(const ptx_fn *f)
{
    if ((f->block[1] == 1 && f->block[2] == 1) || f->block[0] % (1u << GROUP_SPAN) == 0)
        return GROUP_SPAN;
    return f->block[0] % (1u << WARP_SPAN) == 0 ? WARP_SPAN : 0;
}

/* The span of v plus or minus a multiple of 1 << zeros. */
static int span_moved(const ptx_fn *f, ptx_val v, int zeros)
{
    const int span = val_span(f, v);
    return zeros >= span ? span : span && zeros >= WARP_SPAN ? WARP_SPAN : 0;
}

static int span_of(const ptx_fn *f, const ptx_inst *inst)
{
    const ptx_val *v = inst->operands;
    switch (inst->row->op) {
    case PTX_OP_SPECIAL:
        return inst->symbol == sreg_rows[PTX_TID_X].name    ? span_of_thread(f)
               : inst->symbol == sreg_rows[PTX_LANEID].name ? WARP_SPAN
                                                            : 0;
    case PTX_OP_MOV:
    case PTX_OP_CVT:
        return ptx_type_bytes(inst->type) >= 4 ? val_span(f, v[0]) : 0;
    case PTX_OP_ADD:
        return val_span(f, v[0]) ? span_moved(f, v[0], val_zeros(f, v[1]))
                                 : span_moved(f, v[1], val_zeros(f, v[0]));
    case PTX_OP_SUB:
        return span_moved(f, v[0], val_zeros(f, v[1]));
    case PTX_OP_MAD:
    case PTX_OP_MAD_WIDE:
        return span_moved(f, v[2], val_zeros(f, v[0]) + val_zeros(f, v[1]));
    default:
        return 0;
    }
}

void facts_note(ptx_fn *f, const ptx_inst *inst)
{
    if (inst->result_count != 1 || !type_is_integer((ptx_type)inst->results[0].type))
        return;
    ptx_reg *r = fn_reg(f, inst->results[0].reg);
    r->zeros = (uint8_t)zeros_of(f, inst);
    r->span = (uint8_t)span_of(f, inst);
}
