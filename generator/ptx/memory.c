/* Addresses, loads and stores. */
#include "ir.h"

/* ---- addresses -------------------------------------------------------------------------------------------------- */

static bool usable_pointer(ptx_fn *f, ptx_val pointer, const char *what, ptx_place at)
{
    if (!val_given(f, pointer, what, at))
        return false;
    if (pointer.type == PTX_PTR)
        return val_usable(f, pointer, what, at);
    fn_problem(f, at, "%s is %s, expected a pointer", what, ptx_type_name((ptx_type)pointer.type));
    return false;
}

ptx_val ptx_at_byte_count(ptx_fn *f, ptx_val pointer, int64_t bytes, const char *file, int line)
{
    ptx_place at = {file, line};
    if (!usable_pointer(f, pointer, "ptx_at: the pointer", at))
        return val_poison;
    const bool is_near = bytes <= UINT32_MAX && bytes >= -(int64_t)UINT32_MAX; /* the sum does not overflow */
    int64_t offset = is_near ? pointer.offset + bytes : INT64_MAX;
    if (offset > INT32_MAX || offset < INT32_MIN) {
        fn_problem(f, at, "ptx_at: a constant offset beyond 2 GB: use a u64 index");
        return val_poison;
    }
    pointer.offset = (int32_t)offset;
    return pointer;
}

ptx_val ptx_at_elements(ptx_fn *f, ptx_val pointer, int64_t elements, const char *file, int line)
{
    int64_t bytes = ptx_type_bytes((ptx_type)pointer.element);
    bytes = elements > UINT32_MAX || elements < -(int64_t)UINT32_MAX ? INT64_MAX : elements * bytes;
    return ptx_at_byte_count(f, pointer, bytes, file, line);
}

ptx_val ptx_cast_ptr_at(ptx_fn *f, ptx_val pointer, ptx_type element, const char *file, int line)
{
    ptx_place at = {file, line};
    if (!usable_pointer(f, pointer, "ptx_cast_ptr: the value", at) ||
        !element_fits(f, "ptx_cast_ptr", element, at))
        return val_poison;
    pointer.element = (uint8_t)element;
    return pointer;
}

/* The register of a pointer as a number of a type, without its folded offset. */
static ptx_val base_as(ptx_val pointer, ptx_type type)
{
    return (ptx_val){.kind = VAL_REGISTER, .type = (uint8_t)type, .reg = pointer.reg};
}

/* A pointer like `like`, in the register of an address. */
static ptx_val pointer_in(ptx_fn *f, ptx_val address, ptx_val like)
{
    if (address.kind == VAL_POISON)
        return val_poison;
    ptx_reg *r = fn_reg(f, address.reg);
    r->type = PTX_PTR;
    r->space = like.space;
    r->align = fn_reg(f, like.reg)->align;
    r->derived = true;
    like.reg = address.reg;
    return like;
}

static int log2_of(uint32_t size)
{
    int n = 0;
    while (1u << n < size)
        n++;
    return n;
}

/* Lowers `align` of a pointer that is a multiple of 1 << zeros elements away from an aligned one. */
static ptx_val with_step(ptx_fn *f, ptx_val pointer, int zeros)
{
    if (pointer.kind == VAL_POISON)
        return pointer;
    ptx_reg *r = fn_reg(f, pointer.reg);
    zeros += log2_of(ptx_type_bytes((ptx_type)pointer.element));
    if (zeros < 31 && r->align > 1u << zeros)
        r->align = 1u << zeros;
    return pointer;
}

/* base + index * size, where addresses are as wide as the index: one mad, or shl and add, which take less SASS. */
static ptx_val scale_and_add(ptx_fn *f, ptx_val base, ptx_val index, uint32_t size, bool prefer_mad,
                             ptx_place at)
{
    ptx_type type = (ptx_type)index.type;
    if (size == 1)
        return inst_apply(f, PTX_OP_ADD, PTX_NONE, 2, (ptx_val[]){index, base}, at);
    if (prefer_mad || (size & (size - 1)) != 0)
        return inst_apply(f, PTX_OP_MAD, PTX_NONE, 3, (ptx_val[]){index, ptx_bits(type, size), base}, at);
    ptx_val scaled = ptx_op2(f, PTX_OP_SHL, index, ptx_u32((uint32_t)log2_of(size)), at.file, at.line);
    return inst_apply(f, PTX_OP_ADD, PTX_NONE, 2, (ptx_val[]){scaled, base}, at);
}

static ptx_val wrong_index(ptx_fn *f, ptx_type type, bool narrow, ptx_place at)
{
    fn_problem(f, at, "ptx_at: the index is %s, expected %s", ptx_type_name(type),
               narrow ? "u32 or s32" : "u32, s32, u64 or s64");
    return val_poison;
}

static ptx_val add_index(ptx_fn *f, ptx_val pointer, ptx_val index, ptx_place at)
{
    ptx_type type = (ptx_type)index.type;
    uint32_t size = ptx_type_bytes((ptx_type)pointer.element);
    bool narrow = pointer.space == PTX_SHARED;
    if (narrow && (type == PTX_U32 || type == PTX_S32))
        return scale_and_add(f, base_as(pointer, type), index, size, true, at);
    if (!narrow && (type == PTX_U64 || type == PTX_S64))
        return scale_and_add(f, base_as(pointer, type), index, size, false, at);
    if (!narrow && (type == PTX_U32 || type == PTX_S32)) {
        ptx_val operands[] = {index, ptx_bits(type, size), base_as(pointer, type_wide(type))};
        return inst_apply(f, PTX_OP_MAD_WIDE, PTX_NONE, 3, operands, at);
    }
    return wrong_index(f, type, narrow, at);
}

static ptx_val at_immediate(ptx_fn *f, ptx_val pointer, ptx_val index, ptx_place at)
{
    switch (index.type) {
    case PTX_U32:
        return ptx_at_elements(f, pointer, (uint32_t)index.bits, at.file, at.line);
    case PTX_S32:
        return ptx_at_elements(f, pointer, (int32_t)(uint32_t)index.bits, at.file, at.line);
    case PTX_U64:
        return ptx_at_elements(f, pointer, index.bits > INT64_MAX ? INT64_MAX : (int64_t)index.bits, at.file,
                               at.line);
    case PTX_S64:
        return ptx_at_elements(f, pointer, (int64_t)index.bits, at.file, at.line);
    default:
        return wrong_index(f, (ptx_type)index.type, false, at);
    }
}

ptx_val ptx_ordered_at(ptx_fn *f, ptx_val pointer, ptx_val index, const char *file, int line)
{
    ptx_place at = call_place(f, file, line);
    if (!val_given(f, index, "ptx_at: the index", at) ||
        !usable_pointer(f, pointer, "ptx_at: the pointer", at) ||
        !val_usable(f, index, "ptx_at: the index", at) ||
        !vals_in_order(f, 2, (ptx_val[]){pointer, index}, at))
        return val_poison;
    if (!val_settle(f, &index, PTX_S64, "ptx_at: the index", at))
        return val_poison;
    if (index.kind == VAL_IMMEDIATE)
        return at_immediate(f, pointer, index, at);
    int zeros = val_zeros(f, index);
    return with_step(f, pointer_in(f, add_index(f, pointer, index, at), pointer), zeros);
}

ptx_val ptx_ordered_with_policy(ptx_fn *f, ptx_val pointer, ptx_val policy, const char *file, int line)
{
    ptx_place at = call_place(f, file, line);
    if (!usable_pointer(f, pointer, "ptx_with_policy: the pointer", at) ||
        !val_usable(f, policy, "ptx_with_policy: the policy", at) ||
        !vals_in_order(f, 2, (ptx_val[]){pointer, policy}, at))
        return val_poison;
    if (policy.kind != VAL_REGISTER || policy.type != PTX_B64 || pointer.space != PTX_GLOBAL) {
        fn_problem(f, at, "ptx_with_policy: expected a pointer to global memory and a policy in b64");
        return val_poison;
    }
    pointer.bits = policy.reg;
    return pointer;
}

ptx_val pointer_policy(ptx_val pointer)
{
    if (pointer.kind != VAL_REGISTER || pointer.type != PTX_PTR || !pointer.bits)
        return val_poison;
    return (ptx_val){.kind = VAL_REGISTER, .type = PTX_B64, .reg = (uint32_t)pointer.bits};
}

ptx_val ptx_address_at(ptx_fn *f, ptx_val pointer, const char *file, int line)
{
    ptx_place at = {file, line};
    if (!usable_pointer(f, pointer, "ptx_address: the value", at))
        return val_poison;
    ptx_type type = pointer.space == PTX_SHARED ? PTX_U32 : PTX_U64;
    ptx_val base = base_as(pointer, type);
    if (!pointer.offset)
        return base;
    uint64_t bits = (uint64_t)(int64_t)pointer.offset;
    return ptx_op2(f, PTX_OP_ADD, base, ptx_bits(type, type == PTX_U32 ? (uint32_t)bits : bits), file, line);
}

ptx_val ptx_pointer_at(ptx_fn *f, ptx_space space, ptx_type element, ptx_val address, const char *file,
                       int line)
{
    ptx_place at = {file, line};
    if (!val_usable(f, address, "ptx_pointer: the address", at))
        return val_poison;
    if ((unsigned)space > PTX_LOCAL) {
        fn_problem(f, at, "ptx_pointer: the space is not a ptx_space");
        return val_poison;
    }
    if (!element_fits(f, "ptx_pointer", element, at))
        return val_poison;
    ptx_type expected = space == PTX_SHARED ? PTX_U32 : PTX_U64;
    if (address.kind != VAL_REGISTER || address.type != expected) {
        fn_problem(f, at, "ptx_pointer: the address is %s, expected %s in a register",
                   ptx_type_name((ptx_type)address.type), ptx_type_name(expected));
        return val_poison;
    }
    address.type = PTX_PTR;
    address.space = (uint8_t)space;
    address.element = (uint8_t)element;
    return address;
}

/* ---- what a load or store may be -------------------------------------------------------------------------------- */

static int bits_set(int word, int mask)
{
    int n = 0;
    for (word &= mask; word; word &= word - 1)
        n++;
    return n;
}

/* Loads, stores and copies take hints or an order, atomics and fences only an order, or neither. */
static const char *hint_trouble(int takes, int hints, bool global)
{
    int orders = bits_set(hints, HINT_ORDERS), scopes = bits_set(hints, HINT_SCOPES);
    int only_orders = HINT_ORDERS | HINT_SCOPES, known = 0;
    for (size_t i = 0; i < hint_row_count; i++)
        known |= (int)hint_rows[i].bit;
    if (hints & ~known)
        return "a number that is not a ptx_hint";
    for (size_t i = 0; i < hint_row_count; i++)
        if ((hints & hint_rows[i].bit) && !(hint_rows[i].takes & takes))
            return hints & only_orders ? "an order, scope or hint that it does not take"
                                       : "a cache hint that it does not take";
    if (takes == TAKE_MEMBAR)
        return scopes == 1 ? NULL : "expected one scope";
    if (orders || scopes)
        return orders == 1 && scopes == 1 && !(hints & ~only_orders) ? NULL
                                                                     : "expected one order and one scope";
    if (takes == TAKE_FENCE)
        return "expected one order and one scope";
    if (hints && !global && hints != PTX_VOLATILE)
        return "cache hints are for global memory";
    if (bits_set(hints, HINT_OPERATORS | HINT_LEVEL1) > 1 || bits_set(hints, HINT_LEVEL2 | HINT_POLICY) > 1 ||
        bits_set(hints, HINT_PREFETCH) > 1)
        return "cache hints that exclude each other";
    if ((hints & PTX_VOLATILE) && hints != PTX_VOLATILE)
        return "volatile takes no cache hint";
    return NULL;
}

bool hints_fit(ptx_fn *f, const char *what, int takes, int hints, bool global, ptx_place at)
{
    const char *trouble = hint_trouble(takes, hints, global);
    if (trouble)
        fn_problem(f, at, "%s: %s", what, trouble);
    return !trouble;
}

enum { MOST_ELEMENTS = 16 }; /* of a vector */

/* At most 16 bytes, or 32 in global memory, which need sm_100. */
static bool vector_fits(ptx_fn *f, const char *what, int count, ptx_val pointer, ptx_place at)
{
    uint32_t size = ptx_type_bytes((ptx_type)pointer.element), bytes = size * (uint32_t)count;
    bool small = (count == 1 || count == 2 || count == 4) && bytes <= 16;
    bool wide = bytes == 32 && size >= 4 && pointer.space == PTX_GLOBAL;
    if (count > 0 && count <= MOST_ELEMENTS && size > 0 && (small || wide))
        return true;
    fn_problem(f, at, "%s: no vector of %d %s there", what, count, ptx_type_name((ptx_type)pointer.element));
    return false;
}

static bool aligned(ptx_fn *f, const char *what, uint32_t bytes, ptx_val pointer, ptx_place at)
{
    const ptx_reg *base = fn_reg(f, pointer.reg);
    if (base->align && base->align < bytes && !base->derived) {
        fn_problem(f, at, "%s: %u bytes at once, but the array is aligned to %u", what, bytes, base->align);
        return false;
    }
    uint32_t known = base->align < bytes ? base->align : bytes;
    if (!known || pointer.offset % (int32_t)known == 0)
        return true;
    fn_problem(f, at, "%s: an offset of %d bytes is not a multiple of %u", what, (int)pointer.offset, known);
    return false;
}

bool pointer_fits(ptx_fn *f, const char *what, ptx_val pointer, uint32_t spaces, uint32_t bytes, ptx_place at)
{
    char operand[48];
    snprintf(operand, sizeof operand, "%s: the pointer", what);
    if (!usable_pointer(f, pointer, operand, at))
        return false;
    if (spaces & 1u << pointer.space)
        return aligned(f, what, bytes, pointer, at);
    fn_problem(f, at, "%s is not to %s memory", operand,
               spaces == 1u << PTX_SHARED   ? "shared"
               : spaces == 1u << PTX_GLOBAL ? "global"
               : spaces & 1u << PTX_LOCAL   ? "writable"
                                            : "global or shared");
    return false;
}

static bool access_fits(ptx_fn *f, const char *what, int count, ptx_val pointer, int hints, int takes,
                        ptx_place at)
{
    enum {
        WRITABLE = 1 << PTX_GENERIC | 1 << PTX_GLOBAL | 1 << PTX_SHARED | 1 << PTX_LOCAL,
        ANYWHERE = WRITABLE | 1 << PTX_CONST
    };
    char operand[48];
    snprintf(operand, sizeof operand, "%s: the pointer", what);
    if (!usable_pointer(f, pointer, operand, at) || !vector_fits(f, what, count, pointer, at))
        return false;
    uint32_t bytes = ptx_type_bytes((ptx_type)pointer.element) * (uint32_t)count;
    if ((hints & HINT_LEVEL2) && bytes != 32) {
        fn_problem(f, at, "%s: evict_first and evict_last of L2 take 32 bytes at once", what);
        return false;
    }
    if (pointer_policy(pointer).kind == VAL_REGISTER)
        hints |= HINT_POLICY;
    return hints_fit(f, what, takes, hints, pointer.space == PTX_GLOBAL, at) &&
           pointer_fits(f, what, pointer, takes == TAKE_STORE ? WRITABLE : ANYWHERE, bytes, at);
}

void inst_describe(ptx_inst *inst, ptx_val pointer, int hints)
{
    if (pointer_policy(pointer).kind == VAL_REGISTER)
        hints |= HINT_POLICY;
    inst->space = (ptx_space)pointer.space;
    inst->hints = hints;
    for (size_t i = 0; i < hint_row_count; i++)
        if (hints & hint_rows[i].bit)
            inst->needs = requirement_join(inst->needs, hint_rows[i].needs);
    if (ptx_type_bytes(inst->type) * (uint32_t)inst->vector == 32)
        inst->needs = requirement_join(inst->needs, (ptx_requirement){88, {100, TARGET_BASE}});
}

/* ---- loads ------------------------------------------------------------------------------------------------------ */

static ptx_type loaded_type(ptx_type element)
{
    switch (element) {
    case PTX_B8:
    case PTX_U8:
        return PTX_U32;
    case PTX_S8:
        return PTX_S32;
    default:
        return element;
    }
}

static bool load(ptx_fn *f, ptx_type into, int count, ptx_val out[], ptx_val pointer, int hints, ptx_place at)
{
    for (int i = 0; i < count && i < MOST_ELEMENTS; i++)
        out[i] = val_poison;
    if (!access_fits(f, "load", count, pointer, hints, TAKE_LOAD, at))
        return false;
    ptx_type element = (ptx_type)pointer.element;
    if (into == PTX_NONE)
        into = loaded_type(element);
    else if (!type_is_integer(element) || !type_is_integer(into) ||
             ptx_type_bytes(into) < ptx_type_bytes(element)) {
        fn_problem(f, at, "load: %s does not widen to %s", ptx_type_name(element), ptx_type_name(into));
        return false;
    }
    ptx_val operands[] = {pointer, pointer_policy(pointer)};
    bool policy = operands[1].kind == VAL_REGISTER;
    ptx_inst *inst = inst_build(f, policy ? PTX_OP_LOAD_POLICY : PTX_OP_LOAD, element, PTX_NONE, count,
                                policy ? 2 : 1, operands, at);
    if (!inst)
        return false;
    inst_describe(inst, pointer, hints);
    for (int i = 0; i < count; i++) {
        fn_reg(f, inst->results[i].reg)->type = (uint8_t)into;
        out[i] = inst->results[i] = val_retyped(inst->results[i], into);
    }
    return true;
}

ptx_val ptx_load_at(ptx_fn *f, ptx_type type, ptx_val pointer, int hints, const char *file, int line)
{
    ptx_val v;
    load(f, type, 1, &v, pointer, hints, (ptx_place){file, line});
    return v;
}

/* ---- stores ----------------------------------------------------------------------------------------------------- */

/* 8 and 16-bit integers may be stored from wider registers. */
static bool stores_as(ptx_type value, ptx_type element)
{
    return value == element ||
           (ptx_type_bytes(element) <= 2 && type_is_integer(element) && type_is_integer(value) &&
            ptx_type_bytes(value) >= 2 && ptx_type_bytes(value) > ptx_type_bytes(element));
}

static bool values_fit(ptx_fn *f, int count, const ptx_val values[], ptx_type element, ptx_place at)
{
    char what[24];
    for (int i = 0; i < count; i++) {
        ptx_type is = (ptx_type)values[i].type;
        bool is_stored = stores_as(is, element);
        if (is_stored && val_is_fine(f, values[i]))
            continue;
        snprintf(what, sizeof what, "store: value %d", i + 1);
        if (!val_given(f, values[i], what, at))
            return false;
        if (!is_stored) {
            fn_problem(f, at, "%s is %s, expected %s", what, ptx_type_name(is), ptx_type_name(element));
            return false;
        }
    }
    return true;
}

static void store(ptx_fn *f, int count, ptx_val pointer, const ptx_val values[], int hints, ptx_place at)
{
    enum { MOST = 8 };
    ptx_val operands[MOST + 2];
    ptx_type element = (ptx_type)pointer.element;
    if (!access_fits(f, "store", count, pointer, hints, TAKE_STORE, at) ||
        !values_fit(f, count, values, element, at))
        return;
    operands[0] = pointer;
    for (int i = 0; i < count; i++)
        operands[i + 1] = val_retyped(values[i], element);
    operands[count + 1] = pointer_policy(pointer);
    bool policy = operands[count + 1].kind == VAL_REGISTER;
    ptx_inst *inst = inst_build(f, policy ? PTX_OP_STORE_POLICY : PTX_OP_STORE, element, PTX_NONE, count,
                                count + (policy ? 2 : 1), operands, at);
    if (inst)
        inst_describe(inst, pointer, hints);
}

void ptx_ordered_store(ptx_fn *f, ptx_val pointer, ptx_val value, int hints, const char *file, int line)
{
    ptx_place at = call_place(f, file, line);
    if (usable_pointer(f, pointer, "store: the pointer", at) &&
        vals_in_order(f, 2, (ptx_val[]){pointer, value}, at) &&
        val_settle(f, &value, (ptx_type)pointer.element, "store: value 1", at))
        store(f, 1, pointer, &value, hints, at);
}

void ptx_prefetch_at(ptx_fn *f, ptx_op op, ptx_val pointer, const char *file, int line)
{
    ptx_place at = {file, line};
    if (pointer_fits(f, "prefetch", pointer, 1u << PTX_GLOBAL, 1, at))
        inst_apply(f, op, PTX_NONE, 1, &pointer, at);
}

void ptx_prefetch_bytes_at(ptx_fn *f, ptx_val pointer, ptx_val bytes, const char *file, int line)
{
    ptx_place at = {file, line};
    const ptx_val operands[] = {pointer, bytes};
    if (pointer_fits(f, "prefetch", pointer, 1u << PTX_GLOBAL, 1, at))
        inst_apply(f, PTX_OP_PREFETCH_L2_BULK, PTX_NONE, 2, operands, at);
}

/* ---- vectors ----------------------------------------------------------------------------------------------------
 *
 * PTX has none of more than four narrow elements: 8 or 16 of 8 or 16 bits are vectors of 32-bit words, taken apart and put
 * together. */

enum { MOST_WORDS = 4, BYTES_OF_WORD = 4 };

static bool is_narrow(int count, ptx_val pointer)
{
    if (pointer.kind != VAL_REGISTER || pointer.type != PTX_PTR)
        return false;
    uint32_t size = ptx_type_bytes((ptx_type)pointer.element);
    return (count == 8 && (size == 1 || size == 2)) || (count == 16 && size == 1);
}

static int words_of(int count, ptx_val pointer)
{
    return count * (int)ptx_type_bytes((ptx_type)pointer.element) / BYTES_OF_WORD;
}

static ptx_val apply3(ptx_fn *f, ptx_op op, ptx_val a, ptx_val b, ptx_val c, ptx_place at)
{
    return inst_apply(f, op, PTX_NONE, 3, (ptx_val[]){a, b, c}, at);
}

static void load_narrow(ptx_fn *f, int count, ptx_val out[], ptx_val pointer, int hints, ptx_place at)
{
    ptx_type element = (ptx_type)pointer.element;
    bool is_bytes = ptx_type_bytes(element) == 1;
    ptx_val words[MOST_WORDS], as_words = pointer;
    for (int i = 0; i < count; i++)
        out[i] = val_poison;
    as_words.element = (uint8_t)(!is_bytes ? PTX_B32 : element == PTX_S8 ? PTX_S32 : PTX_U32);
    int parts = count / words_of(count, pointer);
    load(f, PTX_NONE, words_of(count, pointer), words, as_words, hints, at);
    for (int i = 0; i < count && words[0].kind != VAL_POISON; i++) {
        uint32_t position = (uint32_t)(i % parts) * 8;
        if (is_bytes)
            out[i] = apply3(f, PTX_OP_BFE, words[i / parts], ptx_u32(position), ptx_u32(8), at);
        else if (i % parts == 0)
            ptx_unpack_at(f, element, 2, &out[i], words[i / parts], at.file, at.line);
    }
}

/* A value whose low bits are stored, as 32 bits; its other bits do not matter. */
static ptx_val in_word(ptx_fn *f, ptx_val v, ptx_place at)
{
    ptx_type is = (ptx_type)v.type;
    if (v.kind == VAL_IMMEDIATE)
        return ptx_u32((uint32_t)v.bits);
    if (ptx_type_bytes(is) == 8)
        return ptx_cvt_at(f, PTX_OP_CVT, PTX_U32, val_retyped(v, PTX_U64), at.file, at.line);
    if (ptx_type_bytes(is) == 2)
        return ptx_cvt_at(f, PTX_OP_CVT, PTX_U32, val_retyped(v, PTX_U16), at.file, at.line);
    return val_retyped(v, PTX_U32);
}

static ptx_val joined(ptx_fn *f, ptx_val low, ptx_val high, uint32_t selector, ptx_place at)
{
    return apply3(f, PTX_OP_PRMT, val_retyped(low, PTX_B32), val_retyped(high, PTX_B32), ptx_u32(selector),
                  at);
}

/* Packs two 16-bit values, or the low halves of wider ones. */
static ptx_val pair(ptx_fn *f, const ptx_val values[], ptx_place at)
{
    if (ptx_type_bytes((ptx_type)values[0].type) == 2 && values[0].type == values[1].type)
        return ptx_pack_at(f, PTX_B32, 2, values, at.file, at.line);
    ptx_val low = in_word(f, values[0], at);
    return joined(f, low, in_word(f, values[1], at), 0x5410, at);
}

static ptx_val quad(ptx_fn *f, const ptx_val values[], ptx_place at)
{
    ptx_val word[4];
    for (int i = 0; i < 4; i++)
        word[i] = in_word(f, values[i], at);
    ptx_val low = joined(f, word[0], word[1], 0x0040, at);
    ptx_val high = joined(f, word[2], word[3], 0x0040, at);
    return joined(f, low, high, 0x5410, at);
}

static void store_narrow(ptx_fn *f, int count, ptx_val pointer, const ptx_val values[], int hints,
                         ptx_place at)
{
    ptx_val words[MOST_WORDS] = {{0}}, as_words = pointer;
    int parts = count / words_of(count, pointer);
    for (int i = 0; i < words_of(count, pointer); i++)
        words[i] = (parts == 2 ? pair : quad)(f, &values[i * parts], at);
    as_words.element = PTX_B32;
    store(f, words_of(count, pointer), as_words, words, hints, at);
}

void ptx_load_vec_at(ptx_fn *f, int count, ptx_val out[], ptx_val pointer, int hints, const char *file,
                     int line)
{
    ptx_place at = {file, line};
    if (is_narrow(count, pointer))
        load_narrow(f, count, out, pointer, hints, at);
    else
        load(f, PTX_NONE, count, out, pointer, hints, at);
}

void ptx_store_vec_at(ptx_fn *f, int count, ptx_val pointer, const ptx_val values[], int hints,
                      const char *file, int line)
{
    ptx_place at = {file, line};
    if (!is_narrow(count, pointer))
        store(f, count, pointer, values, hints, at);
    else if (values_fit(f, count, values, (ptx_type)pointer.element, at))
        store_narrow(f, count, pointer, values, hints, at);
}
