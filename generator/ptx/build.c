/* Operations: how they are checked and appended; the kernel's parameters and arrays. */
#include "ir.h"

#include <stdio.h>

/* ---- appending -------------------------------------------------------------------------------------------------- */

ptx_inst *inst_append(ptx_fn *f, inst_kind kind, int results, int operands, ptx_place at)
{
    ptx_inst *inst = arena_alloc(f->arena, sizeof *inst);
    size_t values = (size_t)results + (size_t)operands;
    inst->kind = kind;
    inst->results = values ? arena_alloc(f->arena, values * sizeof(ptx_val)) : NULL;
    inst->operands = values ? inst->results + results : NULL;
    inst->result_count = (uint8_t)results;
    inst->operand_count = (uint8_t)operands;
    inst->guard = f->guard;
    inst->within = f->current;
    inst->at = fn_place(f, at);
    inst->needs = requirement_lowest;
    if (fn_scope(f, f->current)->repeated && kind == INST_OP)
        fn_problem(f, at, "ptx_repeat_if must be the last call of its PTX_LOOP");
    ptx_inst **slot = list_add(f, &f->body, sizeof(ptx_inst *));
    *slot = inst;
    return inst;
}

static bool is_bits(ptx_type type)
{
    switch (type) {
    case PTX_F16:
    case PTX_BF16:
    case PTX_F32:
    case PTX_F64:
    case PTX_PTR:
        return false;
    default:
        return true;
    }
}

/* The unsigned integer of a width. */
static ptx_type unsigned_as(ptx_type type)
{
    switch (ptx_type_bytes(type)) {
    case 2:
        return PTX_U16;
    case 4:
        return PTX_U32;
    case 8:
        return PTX_U64;
    default:
        return PTX_NONE;
    }
}

/* The type of a result or a literal under a signature letter. */
static ptx_type letter_type(char letter, ptx_type type, ptx_type from)
{
    switch (letter) {
    case 's':
    case 'z':
        return from;
    case 'p':
        return PTX_PRED;
    case 'w':
        return type_wide(type);
    case 'b':
        return unsigned_as(type);
    case 'u':
    case 'm':
    case 'i':
        return PTX_U32;
    case 'f':
        return PTX_F32;
    default:
        return type;
    }
}

/* The operand kind of a signature letter, in words; null if v is of that kind. */
static const char *letter_expects(char letter, ptx_val v, ptx_type type, ptx_type from)
{
    ptx_type is = (ptx_type)v.type, exact = letter_type(letter, type, from);
    switch (letter) {
    case 't':
    case 'v':
    case 'g':
    case 's':
    case 'z':
    case 'p':
    case 'w':
    case 'f':
        return is == exact ? NULL : ptx_type_name(exact);
    case 'a':
        return is == PTX_PTR ? NULL : "a pointer";
    case 'u':
    case 'm':
        return is_bits(is) && ptx_type_bytes(is) == 4 ? NULL : "u32";
    case 'k':
        return is_bits(is) && ptx_type_bytes(is) == 8 ? NULL : "b64";
    case 'i':
        return v.kind == VAL_IMMEDIATE && is == PTX_U32 ? NULL : "a u32 immediate";
    case 'b':
        return is_bits(is) && ptx_type_bytes(is) == ptx_type_bytes(type) &&
                       (is == PTX_PRED) == (type == PTX_PRED)
                   ? NULL
                   : type_bits_name(type);
    default:
        return NULL;
    }
}

/* Whether a letter stands for several operands or results. */
static bool is_several(char letter)
{
    return letter == 'v' || letter == 'z' || letter == 'g';
}

/* Expands a signature to one letter per operand: v, z and g are repeated, x is an address and several numbers. */
static void spread_signature(const char *signature, int vector, char letters[40])
{
    int n = 0;
    for (const char *s = signature; *s; s++) {
        const bool is_box = *s == 'x';
        const int times = is_several(*s) || is_box ? vector : 1;
        char letter = *s;
        if (is_box) {
            letters[n++] = 'a';
            letter = 'u';
        }
        for (int i = 0; i < times && n < 39; i++)
            letters[n++] = letter;
    }
    letters[n] = '\0';
}

static const char *operands_of(const op_row *row)
{
    const char *s = row->signature;
    while (*s != ':')
        s++;
    return s + 1;
}

/* Takes the types from the operands if the caller leaves them open; literals have none. */
static void deduce_types(const char *letters, const ptx_val operands[], ptx_type *type, ptx_type *from)
{
    for (int i = 0; letters[i]; i++) {
        if (val_is_literal(operands[i]))
            continue;
        bool typed = letters[i] == 't' || letters[i] == 'v' || letters[i] == 'g';
        bool source = letters[i] == 's' || letters[i] == 'z';
        if (typed && *type == PTX_NONE)
            *type = (ptx_type)operands[i].type;
        if (source && *from == PTX_NONE)
            *from = (ptx_type)operands[i].type;
    }
}

static bool settle_literals(ptx_fn *f, const op_row *row, const char *letters, ptx_type type, ptx_type from,
                            ptx_val operands[], ptx_place at)
{
    char name[24], what[48];
    for (int i = 0; letters[i]; i++) {
        if (!val_is_literal(operands[i]))
            continue;
        snprintf(what, sizeof what, "%s: operand %d", op_mnemonic(row, name), i + 1);
        if (!val_settle(f, &operands[i], letter_type(letters[i], type, from), what, at))
            return false;
    }
    return true;
}

static ptx_type only_type(uint32_t types)
{
    int type = 0;
    if (types & (types - 1))
        return PTX_NONE;
    while (types && !(types & 1u << type))
        type++;
    return (ptx_type)type;
}

static bool operands_given(ptx_fn *f, const op_row *row, int count, const ptx_val operands[], ptx_place at)
{
    char name[24], what[48];
    for (int i = 0; i < count; i++) {
        if (val_is_fine(f, operands[i]))
            continue;
        snprintf(what, sizeof what, "%s: operand %d", op_mnemonic(row, name), i + 1);
        if (!val_given(f, operands[i], what, at))
            return false;
    }
    return true;
}

static bool operands_fit(ptx_fn *f, const op_row *row, const char *letters, ptx_type type, ptx_type from,
                         const ptx_val operands[], ptx_place at)
{
    char name[24], what[48];
    for (int i = 0; letters[i]; i++) {
        const char *expected = letter_expects(letters[i], operands[i], type, from);
        if (!expected && val_is_fine(f, operands[i]))
            continue;
        snprintf(what, sizeof what, "%s: operand %d", op_mnemonic(row, name), i + 1);
        if (!val_usable(f, operands[i], what, at))
            return false;
        if (expected) {
            fn_problem(f, at, "%s is %s, expected %s", what, ptx_type_name((ptx_type)operands[i].type),
                       expected);
            return false;
        }
    }
    return true;
}

ptx_val val_in_register(ptx_fn *f, ptx_val v, ptx_place at)
{
    if (v.kind != VAL_IMMEDIATE || !type_needs_register((ptx_type)v.type))
        return v;
    return inst_apply(f, PTX_OP_MOV, PTX_NONE, 1, &v, at);
}

ptx_val val_born(ptx_fn *f, ptx_type type)
{
    ptx_val v = val_register(f, type);
    ptx_reg *r = fn_reg(f, v.reg);
    r->born = f->body.count;
    return v;
}

static void make_results(ptx_fn *f, ptx_inst *inst, const char *signature)
{
    int n = 0;
    for (const char *s = signature; *s != ':'; s++) {
        int times = *s == '|' ? 0 : is_several(*s) ? inst->vector : 1;
        for (int i = 0; i < times; i++)
            inst->results[n++] = val_born(f, letter_type(*s, inst->type, inst->from));
    }
}

static int count_results(const char *signature, int vector)
{
    int n = 0;
    for (const char *s = signature; *s != ':'; s++)
        n += *s == '|' ? 0 : is_several(*s) ? vector : 1;
    return n;
}

ptx_inst *inst_build(ptx_fn *f, ptx_op op, ptx_type type, ptx_type from, int vector, int count,
                     const ptx_val given[], ptx_place at)
{
    const op_row *first = op_first(op);
    ptx_val operands[40];
    char letters[40], name[24];
    spread_signature(operands_of(first), vector, letters);
    if (!operands_given(f, first, count, given, at))
        return NULL;
    for (int i = 0; i < count; i++)
        operands[i] = given[i];
    deduce_types(letters, operands, &type, &from);
    if (type == PTX_NONE && first->types)
        type = only_type(first->types);
    if (!settle_literals(f, first, letters, type, from, operands, at))
        return NULL;
    const op_row *row = op_find(op, type, from);
    if (!row) {
        op_mnemonic(first, name);
        if (from == PTX_NONE)
            fn_problem(f, at, "%s: there is no form for %s", name, ptx_type_name(type));
        else
            fn_problem(f, at, "%s: there is no form from %s to %s", name, ptx_type_name(from),
                       ptx_type_name(type));
        return NULL;
    }
    if (!operands_fit(f, row, letters, type, from, operands, at))
        return NULL;
    for (int i = 0; i < count && op != PTX_OP_MOV; i++)
        operands[i] = val_in_register(f, operands[i], at);
    ptx_inst *inst = inst_append(f, INST_OP, count_results(row->signature, vector), count, at);
    inst->row = row;
    inst->type = type;
    inst->from = from;
    inst->vector = vector;
    for (int i = 0; i < count; i++)
        inst->operands[i] = operands[i];
    make_results(f, inst, row->signature);
    facts_note(f, inst);
    return inst;
}

ptx_val inst_apply(ptx_fn *f, ptx_op op, ptx_type type, int count, const ptx_val operands[], ptx_place at)
{
    ptx_inst *inst = inst_build(f, op, type, PTX_NONE, 1, count, operands, at);
    return inst && inst->result_count ? inst->results[0] : val_poison;
}

void ptx_note_at(ptx_fn *f, const char *comment, const char *file, int line)
{
    ptx_place at = {file, line};
    if (comment && text_is_ptx(comment))
        inst_append(f, INST_NOTE, 0, 0, at)->symbol = arena_format(f->arena, "%s", comment);
    else
        fn_problem(f, at, "ptx_note: the text is printable ASCII on one line");
}

/* ---- parameters: their loads stand in `top` --------------------------------------------------------------------- */

/* Appends at the top of the kernel and in its scope, even while a block is open. */
static ptx_inst *append_top(ptx_fn *f, ptx_op op, ptx_type type, ptx_val result, const char *symbol,
                            ptx_place at)
{
    ptx_inst *inst = arena_alloc(f->arena, sizeof *inst);
    inst->row = op_first(op);
    inst->type = type;
    inst->symbol = symbol;
    inst->result_count = 1;
    inst->results = arena_copy(f->arena, &result, sizeof result);
    inst->at = fn_place(f, at);
    inst->needs = requirement_lowest;
    fn_reg(f, result.reg)->scope = 0;
    ptx_inst **slot = list_add(f, &f->top, sizeof(ptx_inst *));
    *slot = inst;
    return inst;
}

static void list_param(ptx_fn *f, ptx_type type, ptx_type element, const char *name)
{
    kernel_param *p = list_add(f, &f->params, sizeof *p);
    p->name = arena_format(f->arena, "%s", name);
    p->type = type;
    p->element = element;
}

static ptx_val add_param(ptx_fn *f, ptx_type type, ptx_type element, const char *name, ptx_place at)
{
    list_param(f, type, element, name);
    ptx_val v = val_register(f, type);
    append_top(f, PTX_OP_LOAD_PARAM, type == PTX_PTR ? PTX_U64 : type, v,
               arena_format(f->arena, "[param_%s]", name), at);
    return v;
}

bool ptx_require_at(ptx_fn *f, bool holds, const char *what, const char *file, int line)
{
    if (!holds)
        fn_problem(f, (ptx_place){file, line}, "%s", what);
    return holds;
}

bool ptx_is_immediate(ptx_val v, uint64_t *value)
{
    *value = v.bits;
    return v.kind == VAL_IMMEDIATE;
}

ptx_val ptx_param_at_line(ptx_fn *f, ptx_type type, const char *name, const char *file, int line)
{
    ptx_place at = {file, line};
    if (type != PTX_PTR && op_find(PTX_OP_LOAD_PARAM, type, PTX_NONE))
        return add_param(f, type, PTX_NONE, name, at);
    fn_problem(f, at, "parameter %s: a parameter cannot be of type %s", name, ptx_type_name(type));
    return val_poison;
}

enum { PARAM_ALIGN = 256 }; /* CUDA's allocators give this; a family's rules may state less */

ptx_val ptx_param_ptr_at_line(ptx_fn *f, ptx_type element, const char *name, const char *file, int line)
{
    ptx_place at = {file, line};
    if (!element_fits(f, "ptx_param_ptr", element, at))
        return val_poison;
    ptx_val v = add_param(f, PTX_PTR, element, name, at);
    v.element = (uint8_t)element;
    v.space = PTX_GLOBAL;
    fn_reg(f, v.reg)->space = PTX_GLOBAL;
    fn_reg(f, v.reg)->align = PARAM_ALIGN;
    return v;
}

/* The value is the map's generic address. */
ptx_val ptx_tensor_map_at(ptx_fn *f, const char *name, const char *file, int line)
{
    list_param(f, PTX_PTR, PTX_NONE, name);
    ptx_val v = val_register(f, PTX_PTR);
    append_top(f, PTX_OP_TENSOR_MAP, PTX_U64, v, arena_format(f->arena, "param_%s", name),
               (ptx_place){file, line});
    return v;
}

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

static ptx_val add_symbol(ptx_fn *f, memory_array s, ptx_place at)
{
    static const char *const words[] = {
        [PTX_SHARED] = "shared", [PTX_CONST] = "const", [PTX_GLOBAL] = "global", [PTX_LOCAL] = "local"};
    const char *word = words[s.space];
    bool is_kernels = s.space == PTX_SHARED || s.space == PTX_LOCAL;
    unsigned number = (unsigned)f->symbols.count + 1;
    s.name = s.dynamic    ? dynamic_name
             : is_kernels ? arena_format(f->arena, "%s_%u", word, number)
                          : arena_format(f->arena, "%s_%s_%u", f->entry, word, number);
    memory_array *slot = list_add(f, &f->symbols, sizeof *slot);
    *slot = s;
    ptx_val v = val_register(f, PTX_PTR);
    v.element = (uint8_t)s.element;
    v.space = (uint8_t)s.space;
    append_top(f, PTX_OP_SYMBOL, s.space == PTX_SHARED ? PTX_U32 : PTX_U64, v, s.name, at);
    fn_reg(f, v.reg)->space = (uint8_t)s.space;
    fn_reg(f, v.reg)->align = s.align;
    return v;
}

enum { MOST_ALIGN = 65536, MOST_DYNAMIC_ALIGN = 1024 };

static bool align_fits(ptx_fn *f, uint32_t align, uint32_t most, const char *what, ptx_place at)
{
    if (align > 0 && align <= most && (align & (align - 1)) == 0)
        return true;
    fn_problem(f, at, "%s: an alignment of %u, expected a power of two up to %u", what, align, most);
    return false;
}

static bool array_fits(ptx_fn *f, ptx_type element, uint32_t count, uint32_t align, uint32_t *used,
                       uint32_t limit, const char *what, ptx_place at)
{
    if (!element_fits(f, what, element, at) || !align_fits(f, align, MOST_ALIGN, what, at))
        return false;
    if (count == 0) {
        fn_problem(f, at, "%s: no elements", what);
        return false;
    }
    uint64_t end = (*used + (uint64_t)align - 1) / align * align + (uint64_t)count * ptx_type_bytes(element);
    *used = end > UINT32_MAX ? UINT32_MAX : (uint32_t)end;
    if (end <= limit)
        return true;
    fn_problem(f, at, "%s: %u bytes with the arrays before it, the limit is %u", what, *used, limit);
    return false;
}

ptx_val ptx_shared_at(ptx_fn *f, ptx_type element, uint32_t count, uint32_t align, const char *file, int line)
{
    ptx_place at = {file, line};
    if (!array_fits(f, element, count, align, &f->shared_bytes, 48 * 1024, "shared array", at))
        return val_poison;
    return add_symbol(
        f, (memory_array){.space = PTX_SHARED, .element = element, .count = count, .align = align}, at);
}

ptx_val ptx_local_at(ptx_fn *f, ptx_type element, uint32_t count, uint32_t align, const char *file, int line)
{
    ptx_place at = {file, line};
    if (!array_fits(f, element, count, align, &f->local_bytes, 512 * 1024, "local array", at))
        return val_poison;
    return add_symbol(
        f, (memory_array){.space = PTX_LOCAL, .element = element, .count = count, .align = align}, at);
}

/* All are one array, printed with the largest alignment. */
ptx_val ptx_shared_dynamic_at(ptx_fn *f, ptx_type element, uint32_t align, const char *file, int line)
{
    ptx_place at = {file, line};
    memory_array s = {.space = PTX_SHARED, .element = element, .align = SHARED_ALIGN, .dynamic = true};
    if (!element_fits(f, "dynamic shared array", element, at) ||
        (align > 0 && !align_fits(f, align, MOST_DYNAMIC_ALIGN, "dynamic shared array", at)))
        return val_poison;
    s.align = align > SHARED_ALIGN ? align : SHARED_ALIGN;
    f->dynamic_align = s.align > f->dynamic_align ? s.align : f->dynamic_align;
    return add_symbol(f, s, at);
}

ptx_val ptx_table_at(ptx_fn *f, ptx_space space, ptx_type element, uint32_t count, const uint64_t bits[],
                     const char *file, int line)
{
    ptx_place at = {file, line};
    uint32_t align = ptx_type_bytes(element), global_bytes = 0;
    const bool is_const = space == PTX_CONST;
    if (!array_fits(f, element, count, align, is_const ? &f->const_bytes : &global_bytes,
                    is_const ? 64 * 1024 : UINT32_MAX, is_const ? "constant table" : "table", at))
        return val_poison;
    if (!bits) {
        fn_problem(f, at, "%s: no elements", is_const ? "constant table" : "table");
        return val_poison;
    }
    memory_array s = {.space = space, .element = element, .count = count, .align = align};
    s.bits = arena_copy(f->arena, bits, count * sizeof *bits);
    return add_symbol(f, s, at);
}
