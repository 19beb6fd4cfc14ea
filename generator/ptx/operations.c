/* Operations on values: those that the table describes whole, and the few that need a word more. */
#include "ir.h"

/* An operation that an author called: its arguments may not depend on the order in which C evaluates them. */
static ptx_val ordered_apply(ptx_fn *f, ptx_op op, ptx_type type, int count, const ptx_val operands[],
                             ptx_place at)
{
    if (!vals_in_order(f, count, operands, at))
        return val_poison;
    return inst_apply(f, op, type, count, operands, at);
}

ptx_val ptx_op0(ptx_fn *f, ptx_op op, const char *file, int line)
{
    return inst_apply(f, op, PTX_NONE, 0, NULL, (ptx_place){file, line});
}

ptx_val ptx_op1(ptx_fn *f, ptx_op op, ptx_val a, const char *file, int line)
{
    return inst_apply(f, op, PTX_NONE, 1, &a, (ptx_place){file, line});
}

ptx_val ptx_op2(ptx_fn *f, ptx_op op, ptx_val a, ptx_val b, const char *file, int line)
{
    return ordered_apply(f, op, PTX_NONE, 2, (ptx_val[]){a, b}, (ptx_place){file, line});
}

ptx_val ptx_op3(ptx_fn *f, ptx_op op, ptx_val a, ptx_val b, ptx_val c, const char *file, int line)
{
    return ordered_apply(f, op, PTX_NONE, 3, (ptx_val[]){a, b, c}, (ptx_place){file, line});
}

ptx_val ptx_op4(ptx_fn *f, ptx_op op, ptx_val a, ptx_val b, ptx_val c, ptx_val d, const char *file, int line)
{
    return ordered_apply(f, op, PTX_NONE, 4, (ptx_val[]){a, b, c, d}, (ptx_place){file, line});
}

void ptx_effect0(ptx_fn *f, ptx_op op, const char *file, int line)
{
    ptx_op0(f, op, file, line);
}

void ptx_effect1(ptx_fn *f, ptx_op op, ptx_val a, const char *file, int line)
{
    ptx_op1(f, op, a, file, line);
}

void ptx_effect2(ptx_fn *f, ptx_op op, ptx_val a, ptx_val b, const char *file, int line)
{
    ptx_op2(f, op, a, b, file, line);
}

/* ---- conversion ------------------------------------------------------------------------------------------------- */

ptx_val ptx_cvt_at(ptx_fn *f, ptx_op op, ptx_type to, ptx_val a, const char *file, int line)
{
    return inst_apply(f, op, to, 1, &a, (ptx_place){file, line});
}

ptx_val ptx_cvt_pair_at(ptx_fn *f, ptx_type to, ptx_val low, ptx_val high, const char *file, int line)
{
    return ordered_apply(f, PTX_OP_CVT_PAIR, to, 2, (ptx_val[]){high, low}, (ptx_place){file, line});
}

ptx_val ptx_as_at(ptx_fn *f, ptx_type type, ptx_val a, const char *file, int line)
{
    ptx_place at = {file, line};
    if (!val_usable(f, a, "ptx_as: the value", at))
        return val_poison;
    ptx_type is = (ptx_type)a.type;
    if (is == PTX_PTR || type == PTX_PTR || (is == PTX_PRED) != (type == PTX_PRED) ||
        ptx_type_bytes(is) != ptx_type_bytes(type)) {
        fn_problem(f, at, "ptx_as: %s cannot be read as %s", ptx_type_name(is), ptx_type_name(type));
        return val_poison;
    }
    return val_retyped(a, type);
}

static bool parts_fit(ptx_fn *f, const char *what, ptx_type whole, ptx_type part, int count, ptx_place at)
{
    if (count >= 2 && count <= 4 && ptx_type_bytes(part) * (uint32_t)count == ptx_type_bytes(whole))
        return true;
    fn_problem(f, at, "%s: %d parts of %s are not as wide as %s", what, count, ptx_type_name(part),
               ptx_type_name(whole));
    return false;
}

ptx_val ptx_pack_at(ptx_fn *f, ptx_type type, int count, const ptx_val parts[], const char *file, int line)
{
    ptx_place at = {file, line};
    for (int i = 0; i < count; i++)
        if (parts[i].kind == VAL_POISON)
            return val_poison;
    if (!parts_fit(f, "ptx_pack", type, (ptx_type)parts[0].type, count, at))
        return val_poison;
    ptx_inst *inst = inst_build(f, PTX_OP_PACK, type, PTX_NONE, count, count, parts, at);
    return inst ? inst->results[0] : val_poison;
}

void ptx_unpack_at(ptx_fn *f, ptx_type type, int count, ptx_val parts[], ptx_val a, const char *file,
                   int line)
{
    ptx_place at = {file, line};
    for (int i = 0; i < count; i++)
        parts[i] = val_poison;
    if (a.kind == VAL_POISON || !parts_fit(f, "ptx_unpack", (ptx_type)a.type, type, count, at))
        return;
    ptx_inst *inst = inst_build(f, PTX_OP_UNPACK, PTX_NONE, type, count, 1, &a, at);
    for (int i = 0; inst && i < count; i++)
        parts[i] = inst->results[i];
}

/* ---- warps and special registers -------------------------------------------------------------------------------- */

/* The clamp operand of shfl: segment mask 0 in the high byte, last lane in the low one; `up` counts down to lane 0. */
static ptx_val shuffle_clamp(ptx_op op)
{
    return ptx_u32(op == PTX_OP_SHFL_UP || op == PTX_OP_SHFL_UP_P ? 0 : 31);
}

ptx_val ptx_shfl_at(ptx_fn *f, ptx_op op, ptx_val a, ptx_val lane, const char *file, int line)
{
    return ptx_op4(f, op, a, lane, shuffle_clamp(op), ptx_u32(PTX_ALL_LANES), file, line);
}

ptx_val ptx_shfl_pred_at(ptx_fn *f, ptx_op op, ptx_val a, ptx_val lane, ptx_val *in_range, const char *file,
                         int line)
{
    ptx_val operands[] = {a, lane, shuffle_clamp(op), ptx_u32(PTX_ALL_LANES)};
    ptx_place at = {file, line};
    bool good = vals_in_order(f, 4, operands, at);
    ptx_inst *inst = good ? inst_build(f, op, PTX_NONE, PTX_NONE, 1, 4, operands, at) : NULL;
    *in_range = inst ? inst->results[1] : val_poison;
    return inst ? inst->results[0] : val_poison;
}

ptx_val ptx_reduce_lanes_at(ptx_fn *f, ptx_op op, int lanes, ptx_val a, const char *file, int line)
{
    if (lanes < 1 || lanes > 32 || (lanes & (lanes - 1)) != 0) {
        fn_problem(f, (ptx_place){file, line}, "ptx_reduce_lanes: %d lanes, expected 1, 2, 4, ... 32", lanes);
        return val_poison;
    }
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
        ptx_val other = ptx_shfl_at(f, PTX_OP_SHFL_BFLY, a, ptx_u32((uint32_t)distance), file, line);
        a = inst_apply(f, op, PTX_NONE, 2, (ptx_val[]){a, other}, (ptx_place){file, line});
    }
    return a;
}

ptx_val ptx_special_at(ptx_fn *f, ptx_sreg which, const char *file, int line)
{
    const sreg_row *row = &sreg_rows[which];
    ptx_inst *inst = inst_append(f, INST_OP, 1, 0, (ptx_place){file, line});
    inst->row = op_first(PTX_OP_SPECIAL);
    inst->type = row->type;
    inst->symbol = row->name;
    inst->needs = row->needs;
    inst->varies = row->varies;
    return inst->results[0] = val_born(f, row->type, inst->at);
}

ptx_val ptx_warpid_x_at(ptx_fn *f, const char *file, int line)
{
    ptx_val tid = ptx_special_at(f, PTX_TID_X, file, line);
    return ptx_op2(f, PTX_OP_SHR, tid, ptx_u32(5), file, line);
}

ptx_val ptx_global_thread_x_at(ptx_fn *f, bool wide, const char *file, int line)
{
    ptx_val block = ptx_special_at(f, PTX_CTAID_X, file, line);
    ptx_val thread = ptx_special_at(f, PTX_TID_X, file, line);
    if (wide)
        thread = ptx_cvt_at(f, PTX_OP_CVT, PTX_U64, thread, file, line);
    ptx_val operands[] = {block, ptx_u32(f->block[0]), thread};
    return inst_apply(f, wide ? PTX_OP_MAD_WIDE : PTX_OP_MAD, PTX_NONE, 3, operands, (ptx_place){file, line});
}

ptx_val ptx_uniform_at(ptx_fn *f, ptx_val a, const char *file, int line)
{
    if (!val_usable(f, a, "ptx_uniform: the value", (ptx_place){file, line}))
        return val_poison;
    if (a.kind == VAL_REGISTER)
        fn_reg(f, a.reg)->said_uniform = true;
    return a;
}
