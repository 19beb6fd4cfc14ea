/* Variables: registers that are set again. Setting one to the result of the last instruction changes where that instruction
 * writes, and saves a mov. */
#include "ir.h"

static ptx_val as_variable(ptx_fn *f, ptx_type type, ptx_val like)
{
    ptx_val v = val_register(f, type);
    ptx_reg *r = fn_reg(f, v.reg);
    r->variable = true;
    r->space = like.space;
    v.element = like.element;
    v.space = like.space;
    v.bits = like.kind == VAL_REGISTER ? like.bits : 0; /* a pointer's policy */
    return v;
}

/* The result of the last instruction, if it is this value and only ptx_set has seen it. */
static ptx_val *fresh_result(const ptx_fn *f, ptx_val value)
{
    if (value.kind != VAL_REGISTER || value.offset || fn_reg(f, value.reg)->variable || !f->body.count)
        return NULL;
    ptx_inst *last = fn_inst(&f->body, f->body.count - 1);
    if (last->kind != INST_OP || last->guard.reg != f->guard.reg || last->within != f->current)
        return NULL;
    for (int i = 0; i < last->result_count; i++)
        if (last->results[i].reg == value.reg)
            return &last->results[i];
    return NULL;
}

static void copy_to(ptx_fn *f, ptx_val variable, ptx_val value, ptx_place at)
{
    ptx_inst *inst;
    if (value.type == PTX_PTR) {
        ptx_type word = value.space == PTX_SHARED ? PTX_U32 : PTX_U64;
        ptx_val operands[2] = {val_retyped(value, word), ptx_bits(word, (uint64_t)(int64_t)value.offset)};
        operands[0].offset = 0;
        inst = inst_build(f, value.offset ? PTX_OP_ADD : PTX_OP_MOV, PTX_NONE, PTX_NONE, 1,
                          value.offset ? 2 : 1, operands, at);
    } else {
        inst = inst_build(f, PTX_OP_MOV, PTX_NONE, PTX_NONE, 1, 1, &value, at);
    }
    if (inst)
        inst->results[0] = variable;
}

static void put(ptx_fn *f, ptx_val variable, ptx_val value, ptx_place at)
{
    if (value.kind == VAL_REGISTER && value.reg == variable.reg && !value.offset)
        return;
    ptx_val *result = fresh_result(f, value);
    if (!result) {
        copy_to(f, variable, value, at);
        return;
    }
    *result = variable;
    fn_reg(f, value.reg)->moved_line = at.line;
}

ptx_val ptx_var_at(ptx_fn *f, ptx_val initial, const char *file, int line)
{
    ptx_place at = {file, line};
    if (!val_usable(f, initial, "ptx_var: the first value", at))
        return val_poison;
    ptx_val v = as_variable(f, (ptx_type)initial.type, initial);
    put(f, v, initial, at);
    return v;
}

ptx_val ptx_declare_at(ptx_fn *f, ptx_type type, const char *file, int line)
{
    if (!op_find(PTX_OP_MOV, type, PTX_NONE)) {
        fn_problem(f, (ptx_place){file, line}, "ptx_declare: a variable cannot be of type %s",
                   ptx_type_name(type));
        return val_poison;
    }
    ptx_val v = as_variable(f, type, val_poison);
    fn_reg(f, v.reg)->declared = true;
    return v;
}

void ptx_set_value(ptx_fn *f, ptx_val variable, ptx_val value, const char *file, int line)
{
    ptx_place at = {file, line};
    if (!val_usable(f, variable, "ptx_set: the variable", at) ||
        !val_settle(f, &value, (ptx_type)variable.type, "ptx_set: the value", at) ||
        !val_usable(f, value, "ptx_set: the value", at))
        return;
    if (variable.kind != VAL_REGISTER || !fn_reg(f, variable.reg)->variable) {
        fn_problem(f, at, "ptx_set: not a variable");
    } else if (fn_reg(f, variable.reg)->counter) {
        fn_problem(f, at, "ptx_set: only the loop changes its counter");
    } else if (variable.type != value.type || variable.space != value.space) {
        fn_problem(f, at, "ptx_set: the value is %s, expected %s", ptx_type_name((ptx_type)value.type),
                   ptx_type_name((ptx_type)variable.type));
    } else {
        put(f, variable, value, at);
    }
}

void ptx_update_value(ptx_fn *f, ptx_op op, ptx_val variable, ptx_val b, const char *file, int line)
{
    ptx_set_at(f, variable, ptx_op2(f, op, variable, b, file, line), file, line);
}

void ptx_ordered_accumulate(ptx_fn *f, ptx_op op, ptx_val variable, ptx_val a, ptx_val b, const char *file,
                            int line)
{
    ptx_place at = call_place(f, file, line);
    if (vals_in_order(f, 2, (ptx_val[]){a, b}, at))
        ptx_set_at(f, variable, ptx_op3(f, op, a, b, variable, file, line), file, line);
}
