/* Memory between threads: asynchronous copies, barriers in shared memory, atomics, fences. */
#include "ir.h"

/* ---- copies in the background ----------------------------------------------------------------------------------- */

static bool copy_fits(ptx_fn *f, ptx_val to, ptx_val from, uint32_t bytes, int hints, ptx_place at)
{
    if (bytes != 4 && bytes != 8 && bytes != 16) {
        fn_problem(f, at, "cp.async: %u bytes, expected 4, 8 or 16", bytes);
        return false;
    }
    if ((hints & PTX_CG) && bytes != 16) {
        fn_problem(f, at, "cp.async: past L1, with PTX_CG, go 16 bytes only");
        return false;
    }
    return vals_in_order(f, 2, (ptx_val[]){to, from}, at) &&
           hints_fit(f, "cp.async", TAKE_CP_ASYNC, hints, true, at) &&
           pointer_fits(f, "cp.async to", to, 1u << PTX_SHARED, bytes, at) &&
           pointer_fits(f, "cp.async from", from, 1u << PTX_GLOBAL, bytes, at);
}

/* from_bytes: poison copies all of them. */
static void copy(ptx_fn *f, ptx_val to, ptx_val from, uint32_t bytes, ptx_val from_bytes, int hints,
                 ptx_place at)
{
    if (!copy_fits(f, to, from, bytes, hints, at))
        return;
    ptx_val operands[5] = {to, from, ptx_u32(bytes)}, policy = pointer_policy(from);
    bool zfill = from_bytes.kind != VAL_POISON, has_policy = policy.kind != VAL_POISON;
    int count = 3;
    if (zfill)
        operands[count++] = from_bytes;
    if (has_policy)
        operands[count++] = policy;
    ptx_op op = zfill        ? has_policy ? PTX_OP_CP_ASYNC_ZFILL_POLICY : PTX_OP_CP_ASYNC_ZFILL
                : has_policy ? PTX_OP_CP_ASYNC_POLICY
                             : PTX_OP_CP_ASYNC;
    ptx_inst *inst = inst_build(f, op, PTX_NONE, PTX_NONE, 1, count, operands, at);
    if (inst)
        inst_describe(inst, from, hints);
}

void ptx_ordered_cp_async(ptx_fn *f, ptx_val to, ptx_val from, uint32_t bytes, int hints, const char *file,
                          int line)
{
    copy(f, to, from, bytes, val_poison, hints, call_place(f, file, line));
}

void ptx_ordered_cp_async_zfill(ptx_fn *f, ptx_val to, ptx_val from, uint32_t bytes, ptx_val from_bytes,
                                int hints, const char *file, int line)
{
    ptx_place at = call_place(f, file, line);
    if (val_given(f, from_bytes, "cp.async: the number of bytes", at) &&
        val_settle(f, &from_bytes, PTX_U32, "cp.async: the number of bytes", at) &&
        vals_in_order(f, 3, (ptx_val[]){to, from, from_bytes}, at))
        copy(f, to, from, bytes, from_bytes, hints, at);
}

/* ---- barriers in shared memory ---------------------------------------------------------------------------------- */

bool mbarrier_fits(ptx_fn *f, ptx_val barrier, ptx_place at)
{
    if (!pointer_fits(f, "mbarrier", barrier, 1u << PTX_SHARED, 8, at))
        return false;
    if (barrier.element == PTX_B64 || barrier.element == PTX_U64)
        return true;
    fn_problem(f, at, "mbarrier: the pointer is to %s, expected b64 or u64",
               ptx_type_name((ptx_type)barrier.element));
    return false;
}

static ptx_val mbarrier(ptx_fn *f, ptx_op op, int count, const ptx_val operands[], ptx_place at)
{
    if (!vals_in_order(f, count, operands, at) || !mbarrier_fits(f, operands[0], at))
        return val_poison;
    return inst_apply(f, op, PTX_NONE, count, operands, at);
}

ptx_val ptx_mbarrier_at(ptx_fn *f, ptx_op op, ptx_val barrier, const char *file, int line)
{
    return mbarrier(f, op, 1, &barrier, (ptx_place){file, line});
}

ptx_val ptx_ordered_mbarrier(ptx_fn *f, ptx_op op, ptx_val barrier, ptx_val b, const char *file, int line)
{
    return mbarrier(f, op, 2, (ptx_val[]){barrier, b}, call_place(f, file, line));
}

/* ---- atomics ---------------------------------------------------------------------------------------------------- */

static ptx_val atomic(ptx_fn *f, ptx_op op, int takes, int count, const ptx_val values[], int order,
                      ptx_place at)
{
    enum { MEMORY = 1 << PTX_GENERIC | 1 << PTX_GLOBAL | 1 << PTX_SHARED };
    const char *what = takes == TAKE_RED ? "red" : "atom";
    ptx_val operands[3] = {values[0]};
    ptx_type element = (ptx_type)values[0].element;
    if (!vals_in_order(f, count, values, at) ||
        !pointer_fits(f, what, values[0], MEMORY, ptx_type_bytes(element), at) ||
        !hints_fit(f, what, takes, order, true, at))
        return val_poison;
    operands[0].bits = 0; /* no cache policy */
    for (int i = 1; i < count; i++) {
        char operand[24];
        snprintf(operand, sizeof operand, "%s: operand %d", what, i + 1);
        operands[i] = values[i];
        if (!val_given(f, values[i], operand, at) || !val_settle(f, &operands[i], element, operand, at))
            return val_poison;
        if (operands[i].type != element) {
            fn_problem(f, at, "%s: value %d is %s, expected %s", what, i,
                       ptx_type_name((ptx_type)operands[i].type), ptx_type_name(element));
            return val_poison;
        }
    }
    ptx_inst *inst = inst_build(f, op, element, PTX_NONE, 1, count, operands, at);
    if (!inst)
        return val_poison;
    inst_describe(inst, operands[0], order);
    return inst->result_count ? inst->results[0] : val_poison;
}

ptx_val ptx_ordered_atom(ptx_fn *f, ptx_op op, ptx_val pointer, ptx_val value, int order, const char *file,
                         int line)
{
    return atomic(f, op, TAKE_ATOM, 2, (ptx_val[]){pointer, value}, order, call_place(f, file, line));
}

ptx_val ptx_ordered_atom_cas(ptx_fn *f, ptx_val pointer, ptx_val expected, ptx_val value, int order,
                             const char *file, int line)
{
    const ptx_val values[] = {pointer, expected, value};
    return atomic(f, PTX_OP_ATOM_CAS, TAKE_ATOM, 3, values, order, call_place(f, file, line));
}

void ptx_ordered_red(ptx_fn *f, ptx_op op, ptx_val pointer, ptx_val value, int order, const char *file,
                     int line)
{
    atomic(f, op, TAKE_RED, 2, (ptx_val[]){pointer, value}, order, call_place(f, file, line));
}

/* ---- fences ----------------------------------------------------------------------------------------------------- */

void ptx_fence_at(ptx_fn *f, ptx_op op, int order, const char *file, int line)
{
    ptx_place at = {file, line};
    bool fence = op == PTX_OP_FENCE;
    if (!hints_fit(f, fence ? "fence" : "membar", fence ? TAKE_FENCE : TAKE_MEMBAR, order, true, at))
        return;
    ptx_inst *inst = inst_build(f, op, PTX_NONE, PTX_NONE, 1, 0, NULL, at);
    if (inst)
        inst->hints = order;
}
