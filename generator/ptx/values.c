/* Values: registers, whether a value may be used here, and the order in which arguments were emitted. */
#include <string.h>

#include "ir.h"

const ptx_val val_poison = {.kind = VAL_POISON};

ptx_val val_register(ptx_fn *f, ptx_type type)
{
    ptx_val v = {.kind = VAL_REGISTER, .type = (uint8_t)type, .reg = (uint32_t)f->regs.count};
    ptx_reg *r = list_add(f, &f->regs, sizeof *r);
    r->type = (uint8_t)type;
    r->said = LEVEL_LANE;
    r->scope = f->current;
    return v;
}

ptx_val val_retyped(ptx_val v, ptx_type type)
{
    v.type = (uint8_t)type;
    return v;
}

/* Whether a call for this kernel may have returned the value. Uninitialised memory seldom looks like one. */
static bool is_possible(const ptx_fn *f, ptx_val v)
{
    if (v.type > PTX_PTR)
        return false;
    if (v.kind != VAL_REGISTER)
        return v.kind == VAL_IMMEDIATE || (val_is_literal(v) && v.type == PTX_NONE && v.reg == 0);
    if (v.reg == 0 || v.reg >= f->regs.count)
        return false;
    return v.type != PTX_PTR ||
           (v.element <= PTX_PTR && v.space <= PTX_LOCAL && v.bits < (uint64_t)f->regs.count);
}

/* Whether an immediate's bits fit its type; a negative number may be sign-extended. */
static bool is_as_wide(ptx_val v)
{
    const uint32_t bits = v.type == PTX_PRED ? 1 : 8 * ptx_type_bytes((ptx_type)v.type);
    if (v.kind != VAL_IMMEDIATE || bits == 0 || bits == 64 || v.bits >> bits == 0)
        return true;
    return v.type != PTX_PRED && ~v.bits >> (bits - 1) == 0;
}

bool val_is_fine(const ptx_fn *f, ptx_val v)
{
    if (v.kind == VAL_POISON || !is_possible(f, v) || !is_as_wide(v))
        return false;
    const ptx_reg *r = v.kind == VAL_REGISTER ? fn_reg(f, v.reg) : NULL;
    return !r || (!r->moved_line && fn_scope(f, r->scope)->open);
}

bool val_given(ptx_fn *f, ptx_val v, const char *what, ptx_place at)
{
    const bool is_poison = v.kind == VAL_POISON;
    if (!is_poison && is_possible(f, v))
        return true;
    if (!is_poison || !f->problems.count)
        fn_problem(f, at, "%s was never given a value", what);
    return false;
}

bool val_usable(ptx_fn *f, ptx_val v, const char *what, ptx_place at)
{
    if (!val_given(f, v, what, at))
        return false;
    if (!is_as_wide(v)) {
        fn_problem(f, at, "%s is 0x%llx, which does not fit %s", what, (unsigned long long)v.bits,
                   ptx_type_name((ptx_type)v.type));
        return false;
    }
    if (v.kind != VAL_REGISTER)
        return true;
    const ptx_reg *r = fn_reg(f, v.reg);
    if (r->moved_line) {
        fn_problem(f, at, "%s was moved into a variable on line %d: use the variable", what, r->moved_line);
        return false;
    }
    if (!fn_scope(f, r->scope)->open) {
        fn_problem(f, at, "%s was made in a block that has ended", what);
        return false;
    }
    return true;
}

bool element_fits(ptx_fn *f, const char *what, ptx_type element, ptx_place at)
{
    if (element != PTX_PTR && ptx_type_bytes(element) > 0)
        return true;
    fn_problem(f, at, "%s: an element cannot be of type %s", what, ptx_type_name(element));
    return false;
}

/* ---- literals --------------------------------------------------------------------------------------------------- */

ptx_val ptx_signed_literal(int64_t value)
{
    return (ptx_val){.kind = VAL_SIGNED, .bits = (uint64_t)value};
}

ptx_val ptx_unsigned_literal(uint64_t value)
{
    return (ptx_val){.kind = VAL_UNSIGNED, .bits = value};
}

ptx_val ptx_real_literal(double value)
{
    return (ptx_val){.kind = VAL_REAL, .bits = ptx_f64(value).bits};
}

bool val_is_literal(ptx_val v)
{
    return v.kind == VAL_SIGNED || v.kind == VAL_UNSIGNED || v.kind == VAL_REAL;
}

static bool is_negative(ptx_val literal)
{
    return literal.kind == VAL_SIGNED && literal.bits >> 63;
}

static bool integer_has(ptx_type type, ptx_val literal)
{
    const uint32_t bits = 8 * ptx_type_bytes(type);
    const bool is_signed = type == PTX_S8 || type == PTX_S16 || type == PTX_S32 || type == PTX_S64;
    if (literal.kind == VAL_REAL || (is_negative(literal) && !is_signed))
        return false;
    const uint64_t magnitude = is_negative(literal) ? ~literal.bits : literal.bits;
    const uint32_t room = is_signed ? bits - 1 : bits;
    return room == 64 || magnitude >> room == 0;
}

static double real_of(ptx_val literal)
{
    double real;
    if (literal.kind != VAL_REAL)
        return is_negative(literal) ? (double)(int64_t)literal.bits : (double)literal.bits;
    memcpy(&real, &literal.bits, sizeof real);
    return real;
}

/* Integers below 2 to this power are exact in the type; 0: it is not a float. */
static uint32_t whole_bits(ptx_type type)
{
    switch (type) {
    case PTX_F64:
        return 53;
    case PTX_F32:
    case PTX_F32X2:
        return 24;
    case PTX_F16:
    case PTX_F16X2:
        return 11;
    case PTX_BF16:
    case PTX_BF16X2:
        return 8;
    default:
        return 0;
    }
}

static bool has_number(ptx_type type, ptx_val literal)
{
    if (type_is_integer(type))
        return integer_has(type, literal);
    if (!whole_bits(type) || literal.kind == VAL_REAL)
        return whole_bits(type);
    return (is_negative(literal) ? 0 - literal.bits : literal.bits) >> whole_bits(type) == 0;
}

bool val_settle(ptx_fn *f, ptx_val *v, ptx_type type, const char *what, ptx_place at)
{
    if (!val_is_literal(*v))
        return true;
    if (type == PTX_NONE) {
        fn_problem(f, at,
                   "%s is a plain number, and no other operand has a type: give it one, as in ptx_u32(1)",
                   what);
    } else if (!has_number(type, *v)) {
        fn_problem(f, at, "%s is %.17g, which does not fit %s", what, real_of(*v), ptx_type_name(type));
    } else {
        *v = type_is_integer(type) ? ptx_bits(type, v->bits) : ptx_number(type, real_of(*v));
        return true;
    }
    return false;
}

/* ---- the order of arguments ------------------------------------------------------------------------------------- */

void ptx_call_begins(ptx_fn *f)
{
    size_t *slot = list_add(f, &f->calls, sizeof *slot);
    *slot = f->body.count;
}

ptx_place call_place(ptx_fn *f, const char *file, int line)
{
    const size_t *lengths = f->calls.items;
    f->called_at = lengths[--f->calls.count];
    return (ptx_place){file, line};
}

bool vals_in_order(ptx_fn *f, int count, const ptx_val values[], ptx_place at)
{
    size_t first = 0;
    for (int i = 0; i < count; i++) {
        const bool is_register = values[i].kind == VAL_REGISTER && is_possible(f, values[i]);
        size_t born = is_register ? fn_reg(f, values[i].reg)->born : 0;
        if (born <= f->called_at)
            continue;
        if (first && born != first) {
            fn_problem(
                f, at,
                "two calls that emit are arguments of one call: C leaves their order open, name one first");
            return false;
        }
        first = born;
    }
    return true;
}
