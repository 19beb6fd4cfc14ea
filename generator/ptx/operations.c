/* Operations on values: those that the table describes completely, and a few with their own code. */
#include "ir.h"

/* Applies an operation that an author called: its arguments may not depend on C's order of evaluation. */
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

ptx_val ptx_ordered_op2(ptx_fn *f, ptx_op op, ptx_val a, ptx_val b, const char *file, int line)
{
    return ordered_apply(f, op, PTX_NONE, 2, (ptx_val[]){a, b}, call_place(f, file, line));
}

ptx_val ptx_ordered_op3(ptx_fn *f, ptx_op op, ptx_val a, ptx_val b, ptx_val c, const char *file, int line)
{
    return ordered_apply(f, op, PTX_NONE, 3, (ptx_val[]){a, b, c}, call_place(f, file, line));
}

ptx_val ptx_ordered_op4(ptx_fn *f, ptx_op op, ptx_val a, ptx_val b, ptx_val c, ptx_val d, const char *file,
                        int line)
{
    return ordered_apply(f, op, PTX_NONE, 4, (ptx_val[]){a, b, c, d}, call_place(f, file, line));
}

void ptx_effect0(ptx_fn *f, ptx_op op, const char *file, int line)
{
    ptx_op0(f, op, file, line);
}

void ptx_effect1(ptx_fn *f, ptx_op op, ptx_val a, const char *file, int line)
{
    ptx_op1(f, op, a, file, line);
}

void ptx_ordered_effect2(ptx_fn *f, ptx_op op, ptx_val a, ptx_val b, const char *file, int line)
{
    ordered_apply(f, op, PTX_NONE, 2, (ptx_val[]){a, b}, call_place(f, file, line));
}

/* ---- conversion ------------------------------------------------------------------------------------------------- */

/* Real types are checked by the table of operations. */
static bool can_convert_to(ptx_fn *f, ptx_type to, ptx_place at)
{
    if (to == PTX_PRED || ptx_type_bytes(to) > 0)
        return true;
    fn_problem(f, at, "cvt: the result has no type");
    return false;
}

ptx_val ptx_cvt_at(ptx_fn *f, ptx_op op, ptx_type to, ptx_val a, const char *file, int line)
{
    ptx_place at = {file, line};
    return can_convert_to(f, to, at) ? inst_apply(f, op, to, 1, &a, at) : val_poison;
}

ptx_val ptx_ordered_cvt_pair(ptx_fn *f, ptx_type to, ptx_val low, ptx_val high, const char *file, int line)
{
    ptx_place at = call_place(f, file, line);
    if (!can_convert_to(f, to, at))
        return val_poison;
    return ordered_apply(f, PTX_OP_CVT_PAIR, to, 2, (ptx_val[]){high, low}, at);
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

enum { MOST_PARTS = 4 };

static bool parts_fit(ptx_fn *f, const char *what, ptx_type whole, ptx_type part, int count, ptx_place at)
{
    if (count >= 2 && count <= MOST_PARTS && ptx_type_bytes(part) * (uint32_t)count == ptx_type_bytes(whole))
        return true;
    fn_problem(f, at, "%s: %d parts of %s are not as wide as %s", what, count, ptx_type_name(part),
               ptx_type_name(whole));
    return false;
}

ptx_val ptx_pack_at(ptx_fn *f, ptx_type type, int count, const ptx_val parts[], const char *file, int line)
{
    ptx_place at = {file, line};
    for (int i = 0; i < count && i < MOST_PARTS; i++)
        if (!val_given(f, parts[i], "ptx_pack: a part", at))
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
    for (int i = 0; i < count && i < MOST_PARTS; i++)
        parts[i] = val_poison;
    if (!val_given(f, a, "ptx_unpack: the value", at) ||
        !parts_fit(f, "ptx_unpack", (ptx_type)a.type, type, count, at))
        return;
    ptx_inst *inst = inst_build(f, PTX_OP_UNPACK, PTX_NONE, type, count, 1, &a, at);
    for (int i = 0; inst && i < count; i++)
        parts[i] = inst->results[i];
}
