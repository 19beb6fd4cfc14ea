/* Shuffles, votes and special registers. */
#include "ir.h"

/* ---- shuffles ----------------------------------------------------------------------------------------------------- */

/* The clamp operand of shfl: the high byte masks the lane bits that select its segment, the low one is the segment's
 * last lane; for `up` its first. */
static ptx_val shuffle_clamp(ptx_op op, int lanes)
{
    bool up = op == PTX_OP_SHFL_UP || op == PTX_OP_SHFL_UP_P;
    return ptx_u32((uint32_t)(32 - lanes) << 8 | (up ? 0 : 31));
}

static ptx_inst *shuffle_word(ptx_fn *f, ptx_op op, ptx_val a, ptx_val lane, int lanes, ptx_place at)
{
    ptx_val operands[] = {a, lane, shuffle_clamp(op, lanes), ptx_u32(PTX_ALL_LANES)};
    return inst_build(f, op, PTX_NONE, PTX_NONE, 1, 4, operands, at);
}

/* 64 bits are two words from the same lane. */
static ptx_val shuffle_two(ptx_fn *f, ptx_op op, ptx_val a, ptx_val lane, int lanes, ptx_val *in_range,
                           ptx_place at)
{
    ptx_val words[2];
    ptx_val bits = val_in_register(f, a, at);
    ptx_unpack_at(f, PTX_B32, 2, words, bits, at.file, at.line);
    for (int i = 0; i < 2; i++) {
        ptx_inst *inst = shuffle_word(f, op, words[i], lane, lanes, at);
        if (!inst)
            return val_poison;
        words[i] = inst->results[0];
        if (in_range)
            *in_range = inst->results[1];
    }
    return ptx_pack_at(f, (ptx_type)a.type, 2, words, at.file, at.line);
}

static ptx_val shuffle(ptx_fn *f, ptx_op op, ptx_val a, ptx_val lane, int lanes, ptx_val *in_range,
                       ptx_place at)
{
    if (lanes < 2 || lanes > 32 || (lanes & (lanes - 1)) != 0) {
        fn_problem(f, at, "shfl: segments of %d lanes, expected 2, 4, 8, 16 or 32", lanes);
        return val_poison;
    }
    if (!val_given(f, a, "shfl: the value", at) || !val_given(f, lane, "shfl: the lane", at) ||
        !val_settle(f, &lane, PTX_U32, "shfl: the lane", at) ||
        !vals_in_order(f, 2, (ptx_val[]){a, lane}, at))
        return val_poison;
    if (a.type != PTX_PTR && ptx_type_bytes((ptx_type)a.type) == 8)
        return shuffle_two(f, op, a, lane, lanes, in_range, at);
    ptx_inst *inst = shuffle_word(f, op, a, lane, lanes, at);
    if (inst && in_range)
        *in_range = inst->results[1];
    return inst ? inst->results[0] : val_poison;
}

ptx_val ptx_ordered_shfl(ptx_fn *f, ptx_op op, ptx_val a, ptx_val lane, int lanes, const char *file, int line)
{
    return shuffle(f, op, a, lane, lanes, NULL, call_place(f, file, line));
}

ptx_val ptx_ordered_shfl_pred(ptx_fn *f, ptx_op op, ptx_val a, ptx_val lane, int lanes, ptx_val *in_range,
                              const char *file, int line)
{
    *in_range = val_poison;
    return shuffle(f, op, a, lane, lanes, in_range, call_place(f, file, line));
}

/* ---- votes -------------------------------------------------------------------------------------------------------- */

/* The second result of an operation, a predicate. */
static ptx_val second_result(ptx_fn *f, ptx_op op, int count, const ptx_val operands[], ptx_place at)
{
    ptx_inst *inst = inst_build(f, op, PTX_NONE, PTX_NONE, 1, count, operands, at);
    return inst ? inst->results[1] : val_poison;
}

ptx_val ptx_match_all_at(ptx_fn *f, ptx_val a, const char *file, int line)
{
    ptx_val operands[] = {a, ptx_u32(PTX_ALL_LANES)};
    return second_result(f, PTX_OP_MATCH_ALL, 2, operands, (ptx_place){file, line});
}

ptx_val ptx_elect_at(ptx_fn *f, const char *file, int line)
{
    ptx_val all = ptx_u32(PTX_ALL_LANES);
    return second_result(f, PTX_OP_ELECT, 1, &all, (ptx_place){file, line});
}

/* Binary operations that give every lane the same result, in any order. */
static bool is_reduction(ptx_op op)
{
    switch (op) {
    case PTX_OP_ADD:
    case PTX_OP_ADD_RZ:
    case PTX_OP_ADD_RM:
    case PTX_OP_ADD_RP:
    case PTX_OP_MUL:
    case PTX_OP_MUL_RZ:
    case PTX_OP_MUL_RM:
    case PTX_OP_MUL_RP:
    case PTX_OP_MIN:
    case PTX_OP_MAX:
    case PTX_OP_MIN_NAN:
    case PTX_OP_MAX_NAN:
    case PTX_OP_AND:
    case PTX_OP_OR:
    case PTX_OP_XOR:
        return true;
    default:
        return false;
    }
}

ptx_val ptx_reduce_lanes_at(ptx_fn *f, ptx_op op, int lanes, ptx_val a, const char *file, int line)
{
    if (lanes < 1 || lanes > 32 || (lanes & (lanes - 1)) != 0) {
        fn_problem(f, (ptx_place){file, line}, "ptx_reduce_lanes: %d lanes, expected 1, 2, 4, ... 32", lanes);
        return val_poison;
    }
    if (!is_reduction(op)) {
        fn_problem(f, (ptx_place){file, line},
                   "ptx_reduce_lanes: the operation is not add, mul, min, max, and, or, xor");
        return val_poison;
    }
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
        ptx_val other = ptx_shfl_at(f, PTX_OP_SHFL_BFLY, a, ptx_u32((uint32_t)distance), 32, file, line);
        a = inst_apply(f, op, PTX_NONE, 2, (ptx_val[]){a, other}, (ptx_place){file, line});
    }
    return a;
}

/* ---- special registers --------------------------------------------------------------------------------------------- */

/* If a row of threads is a whole number of warps, or the whole thread block, y and z are uniform in a warp. */
static level special_level(const ptx_fn *f, ptx_sreg which)
{
    bool along = which == PTX_TID_Y || which == PTX_TID_Z, one_row = f->block[1] == 1 && f->block[2] == 1;
    return along && (one_row || f->block[0] % 32 == 0) ? LEVEL_WARP : sreg_rows[which].level;
}

ptx_val ptx_special_at(ptx_fn *f, ptx_sreg which, const char *file, int line)
{
    if ((unsigned)which >= PTX_SREG_COUNT) {
        fn_problem(f, (ptx_place){file, line}, "ptx_special: the register is not a ptx_sreg");
        return val_poison;
    }
    const sreg_row *row = &sreg_rows[which];
    ptx_inst *inst = inst_append(f, INST_OP, 1, 0, (ptx_place){file, line});
    inst->row = op_first(PTX_OP_SPECIAL);
    inst->type = row->type;
    inst->symbol = row->name;
    inst->needs = row->needs;
    inst->varies = special_level(f, which);
    inst->results[0] = val_born(f, row->type);
    facts_note(f, inst);
    return inst->results[0];
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

ptx_val ptx_uniform_at(ptx_fn *f, ptx_val a, int threads, const char *file, int line)
{
    const char *what = threads == 32    ? "ptx_warp_uniform: the value"
                       : threads == 128 ? "ptx_warpgroup_uniform: the value"
                                        : "ptx_uniform: the value";
    if (!val_usable(f, a, what, (ptx_place){file, line}))
        return val_poison;
    if (a.kind == VAL_REGISTER)
        fn_reg(f, a.reg)->said = threads == 32 ? LEVEL_WARP : threads == 128 ? LEVEL_GROUP : LEVEL_BLOCK;
    return a;
}
