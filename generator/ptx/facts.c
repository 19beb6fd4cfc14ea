/* Facts about a new integer: how many of its low bits are 0, for the alignment of addresses, and whether it counts the
 * lanes of a warp, for warp operations. Variables have none: they change. */
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

static bool in_lane_order(const ptx_fn *f, ptx_val v)
{
    return v.kind == VAL_REGISTER && type_is_integer((ptx_type)v.type) && fn_reg(f, v.reg)->lane_order;
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

/* Is the result 32*k + the lane's number? */
static bool counts_lanes(const ptx_fn *f, const ptx_inst *inst)
{
    enum { WARP_ZEROS = 5 };
    const ptx_val *v = inst->operands;
    switch (inst->row->op) {
    case PTX_OP_SPECIAL: {
        bool one_row = f->block[1] == 1 && f->block[2] == 1;
        return inst->symbol == sreg_rows[PTX_LANEID].name ||
               (inst->symbol == sreg_rows[PTX_TID_X].name && (one_row || f->block[0] % 32 == 0));
    }
    case PTX_OP_MOV:
    case PTX_OP_CVT:
        return in_lane_order(f, v[0]) && ptx_type_bytes(inst->type) >= 4;
    case PTX_OP_ADD:
        return (in_lane_order(f, v[0]) && val_zeros(f, v[1]) >= WARP_ZEROS) ||
               (in_lane_order(f, v[1]) && val_zeros(f, v[0]) >= WARP_ZEROS);
    case PTX_OP_SUB:
        return in_lane_order(f, v[0]) && val_zeros(f, v[1]) >= WARP_ZEROS;
    case PTX_OP_MAD:
    case PTX_OP_MAD_WIDE:
        return in_lane_order(f, v[2]) && val_zeros(f, v[0]) + val_zeros(f, v[1]) >= WARP_ZEROS;
    default:
        return false;
    }
}

void facts_note(ptx_fn *f, const ptx_inst *inst)
{
    if (inst->result_count != 1 || !type_is_integer((ptx_type)inst->results[0].type))
        return;
    ptx_reg *r = fn_reg(f, inst->results[0].reg);
    r->zeros = (uint8_t)zeros_of(f, inst);
    r->lane_order = counts_lanes(f, inst);
}
