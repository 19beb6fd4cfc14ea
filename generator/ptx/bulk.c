/* Bulk copies between global and shared memory, of bytes and of boxes of tensors; setmaxnreg. */
#include "ir.h"

enum { MOST_DIMENSIONS = 5, BYTES_ALIGN = 16, BOX_ALIGN = 128 };

/* ---- copies of bytes -------------------------------------------------------------------------------------------- */

static bool bytes_fit(ptx_fn *f, ptx_val *bytes, ptx_place at)
{
    const char *what = "bulk copy: the number of bytes";
    if (!val_given(f, *bytes, what, at) || !val_settle(f, bytes, PTX_U32, what, at))
        return false;
    if (bytes->kind != VAL_IMMEDIATE || bytes->bits % BYTES_ALIGN == 0)
        return true;
    fn_problem(f, at, "%s is %u, expected a multiple of 16", what, (unsigned)bytes->bits);
    return false;
}

void ptx_ordered_bulk_load(ptx_fn *f, ptx_val to, ptx_val from, ptx_val bytes, ptx_val barrier,
                           const char *file, int line)
{
    ptx_place at = call_place(f, file, line);
    const ptx_val given[] = {to, from, bytes, barrier};
    if (vals_in_order(f, 4, given, at) && bytes_fit(f, &bytes, at) &&
        pointer_fits(f, "bulk load to", to, 1u << PTX_SHARED, BYTES_ALIGN, at) &&
        pointer_fits(f, "bulk load from", from, 1u << PTX_GLOBAL, BYTES_ALIGN, at) &&
        mbarrier_fits(f, barrier, at))
        inst_apply(f, PTX_OP_BULK_LOAD, PTX_NONE, 4, (ptx_val[]){to, from, bytes, barrier}, at);
}

void ptx_ordered_bulk_store(ptx_fn *f, ptx_val to, ptx_val from, ptx_val bytes, const char *file, int line)
{
    ptx_place at = call_place(f, file, line);
    const ptx_val given[] = {to, from, bytes};
    if (vals_in_order(f, 3, given, at) && bytes_fit(f, &bytes, at) &&
        pointer_fits(f, "bulk store to", to, 1u << PTX_GLOBAL, BYTES_ALIGN, at) &&
        pointer_fits(f, "bulk store from", from, 1u << PTX_SHARED, BYTES_ALIGN, at))
        inst_apply(f, PTX_OP_BULK_STORE, PTX_NONE, 3, (ptx_val[]){to, from, bytes}, at);
}

/* ---- boxes of tensors ------------------------------------------------------------------------------------------- */

/* A map is a pointer without an element type. */
static bool map_fits(ptx_fn *f, ptx_val map, ptx_place at)
{
    if (!val_usable(f, map, "the tensor map", at))
        return false;
    if (map.type == PTX_PTR && map.space == PTX_GENERIC && map.element == PTX_NONE && !map.offset)
        return true;
    fn_problem(f, at, "expected a tensor map, from ptx_tensor_map");
    return false;
}

static bool first_fits(ptx_fn *f, int dimensions, const ptx_val first[], ptx_place at)
{
    char what[40];
    if (dimensions < 1 || dimensions > MOST_DIMENSIONS) {
        fn_problem(f, at, "a box of %d dimensions, expected 1 to 5", dimensions);
        return false;
    }
    for (int i = 0; i < dimensions; i++) {
        snprintf(what, sizeof what, "first[%d] of the box", i);
        if (!val_usable(f, first[i], what, at))
            return false;
        if (first[i].type == PTX_U32 || first[i].type == PTX_S32)
            continue;
        fn_problem(f, at, "%s is %s, expected u32 or s32", what, ptx_type_name((ptx_type)first[i].type));
        return false;
    }
    return true;
}

/* Appends the map and the first elements to `operands[0 .. count)`. Returns the new count. */
static int add_box(ptx_val operands[], int count, int dimensions, ptx_val map, const ptx_val first[])
{
    operands[count++] = map;
    for (int i = 0; i < dimensions; i++)
        operands[count++] = first[i];
    return count;
}

void ptx_ordered_tensor_load(ptx_fn *f, int dimensions, ptx_val to, ptx_val map, const ptx_val first[],
                             ptx_val barrier, const char *file, int line)
{
    ptx_place at = call_place(f, file, line);
    ptx_val operands[MOST_DIMENSIONS + 3] = {to};
    if (!first_fits(f, dimensions, first, at) || !map_fits(f, map, at) ||
        !pointer_fits(f, "tensor load to", to, 1u << PTX_SHARED, BOX_ALIGN, at) ||
        !mbarrier_fits(f, barrier, at))
        return;
    int count = add_box(operands, 1, dimensions, map, first);
    operands[count++] = barrier;
    if (vals_in_order(f, count, operands, at))
        inst_build(f, PTX_OP_TENSOR_LOAD, PTX_NONE, PTX_NONE, dimensions, count, operands, at);
}

void ptx_ordered_tensor_store(ptx_fn *f, int dimensions, ptx_val map, const ptx_val first[], ptx_val from,
                              const char *file, int line)
{
    ptx_place at = call_place(f, file, line);
    ptx_val operands[MOST_DIMENSIONS + 2];
    if (!first_fits(f, dimensions, first, at) || !map_fits(f, map, at) ||
        !pointer_fits(f, "tensor store from", from, 1u << PTX_SHARED, BOX_ALIGN, at))
        return;
    int count = add_box(operands, 0, dimensions, map, first);
    operands[count++] = from;
    if (vals_in_order(f, count, operands, at))
        inst_build(f, PTX_OP_TENSOR_STORE, PTX_NONE, PTX_NONE, dimensions, count, operands, at);
}

void ptx_prefetch_map_at(ptx_fn *f, ptx_val map, const char *file, int line)
{
    ptx_place at = {file, line};
    if (map_fits(f, map, at))
        inst_apply(f, PTX_OP_PREFETCH_MAP, PTX_NONE, 1, &map, at);
}

/* ---- registers -------------------------------------------------------------------------------------------------- */

void ptx_setmaxnreg_at(ptx_fn *f, ptx_op op, uint32_t registers, const char *file, int line)
{
    ptx_place at = {file, line};
    if (registers < 24 || registers > 256 || registers % 8 != 0) {
        fn_problem(f, at, "setmaxnreg: %u registers, expected a multiple of 8 from 24 to 256",
                   (unsigned)registers);
        return;
    }
    const ptx_val operand = ptx_u32(registers);
    inst_apply(f, op, PTX_NONE, 1, &operand, at);
}
