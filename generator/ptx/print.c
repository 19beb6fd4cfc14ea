/* The one printer: from the IR to PTX text. */
#include <string.h>

#include "ir.h"

/* ---- register names --------------------------------------------------------------------------------------------- */

/* A prefix for names, which must not end in a digit, and the declared type: bits, so that a register may be read as another
 * type. */
typedef struct reg_class {
    const char *prefix, *declared;
} reg_class;
enum { CLASS_PRED, CLASS_8, CLASS_16, CLASS_32, CLASS_F32, CLASS_64, CLASS_F64, CLASS_COUNT };
static const reg_class classes[CLASS_COUNT] = {
    [CLASS_PRED] = {"%p", ".pred"}, [CLASS_8] = {"%b", ".b8"},    [CLASS_16] = {"%h", ".b16"},
    [CLASS_32] = {"%r", ".b32"},    [CLASS_F32] = {"%f", ".b32"}, [CLASS_64] = {"%rd", ".b64"},
    [CLASS_F64] = {"%fd", ".b64"},
};

static int class_of(const ptx_reg *r)
{
    switch (r->type) {
    case PTX_PRED:
        return CLASS_PRED;
    case PTX_F32:
        return CLASS_F32;
    case PTX_F64:
        return CLASS_F64;
    case PTX_PTR:
        return r->space == PTX_SHARED ? CLASS_32 : CLASS_64;
    default:
        break;
    }
    switch (ptx_type_bytes((ptx_type)r->type)) {
    case 1:
        return CLASS_8;
    case 2:
        return CLASS_16;
    case 4:
        return CLASS_32;
    default:
        return CLASS_64;
    }
}

static void mark_used(bool *used, const ptx_inst *inst)
{
    for (int i = 0; i < inst->operand_count; i++)
        if (inst->operands[i].kind == VAL_REGISTER)
            used[inst->operands[i].reg] = true;
    if (inst->guard.kind == VAL_REGISTER)
        used[inst->guard.reg] = true;
}

static void number_results(names *n, const ptx_inst *inst)
{
    for (int i = 0; i < inst->result_count; i++) {
        uint32_t reg = inst->results[i].reg;
        if (!n->number[reg])
            n->number[reg] = ++n->used[class_of(fn_reg(n->f, reg))];
    }
}

/* Numbers follow the order of first results. Unread parameters and array addresses get none. */
names names_make(const ptx_fn *f)
{
    names n = {.f = f,
               .number = arena_alloc(f->arena, f->regs.count * sizeof(uint32_t)),
               .used = arena_alloc(f->arena, CLASS_COUNT * sizeof(uint32_t))};
    bool *used = arena_alloc(f->arena, f->regs.count);
    for (size_t i = 0; i < f->body.count; i++)
        mark_used(used, fn_inst(&f->body, i));
    for (size_t i = 0; i < f->top.count; i++)
        if (used[fn_inst(&f->top, i)->results[0].reg])
            number_results(&n, fn_inst(&f->top, i));
    for (size_t i = 0; i < f->body.count; i++)
        number_results(&n, fn_inst(&f->body, i));
    return n;
}

bool names_has(const names *n, const ptx_inst *inst)
{
    return n->number[inst->results[0].reg] != 0;
}

/* Whether an instruction reads the address of dynamic shared memory: a kernel may declare it and leave it to other variants. */
static bool uses_dynamic(const ptx_fn *f)
{
    const names n = names_make(f);
    for (size_t i = 0; i < f->top.count; i++) {
        const ptx_inst *inst = fn_inst(&f->top, i);
        if (strcmp(inst->symbol, dynamic_name) == 0 && names_has(&n, inst))
            return true;
    }
    return false;
}

uint32_t ptx_dynamic_bytes(const ptx_fn *f)
{
    return f->dynamic_align && !f->dynamic_bytes ? uses_dynamic(f) : f->dynamic_bytes;
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

static void print_signed(text *out, int64_t value)
{
    if (value < 0)
        text_add_char(out, '-');
    text_add_decimal(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void print_mask(text *out, uint64_t bits, int digits)
{
    text_add(out, "0x");
    text_add_hex(out, bits, digits, false);
}

static void print_float(text *out, const char *prefix, uint64_t bits, int digits)
{
    text_add(out, prefix);
    text_add_hex(out, bits, digits, true);
}

static void print_immediate(text *out, ptx_type type, uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    switch (type) {
    case PTX_U8:
        text_add_decimal(out, bits & 0xff);
        break;
    case PTX_U16:
        text_add_decimal(out, bits & 0xffff);
        break;
    case PTX_U32:
        low > UINT16_MAX ? print_mask(out, low, 8) : text_add_decimal(out, low);
        break;
    case PTX_U64:
        text_add_decimal(out, bits);
        break;
    case PTX_S8:
        print_signed(out, (int8_t)(uint8_t)bits);
        break;
    case PTX_S16:
        print_signed(out, (int16_t)(uint16_t)bits);
        break;
    case PTX_S32:
        print_signed(out, (int32_t)low);
        break;
    case PTX_S64:
        print_signed(out, (int64_t)bits);
        break;
    case PTX_F32:
        print_float(out, "0f", low, 8);
        break;
    case PTX_F64:
        print_float(out, "0d", bits, 16);
        break;
    case PTX_B64:
    case PTX_F32X2:
        print_mask(out, bits, 16);
        break;
    default:
        print_mask(out, bits, ptx_type_bytes(type) == 4 ? 8 : 4);
    }
}

static void print_register(text *out, const names *n, uint32_t reg)
{
    text_add(out, classes[class_of(fn_reg(n->f, reg))].prefix);
    text_add_decimal(out, n->number[reg]);
}

void print_value(text *out, const names *n, ptx_val v)
{
    if (v.kind == VAL_IMMEDIATE) {
        print_immediate(out, (ptx_type)v.type, v.bits);
    } else if (v.type != PTX_PTR) {
        print_register(out, n, v.reg);
    } else {
        text_add_char(out, '[');
        print_register(out, n, v.reg);
        if (v.offset) { /* ptxas takes +-4, not -4 */
            text_add_char(out, '+');
            print_signed(out, v.offset);
        }
        text_add_char(out, ']');
    }
}

/* ---- instructions ----------------------------------------------------------------------------------------------- */

static void print_hints(text *out, int hints, int which)
{
    for (size_t i = 0; i < hint_row_count; i++)
        if (hints & which & hint_rows[i].bit)
            text_add(out, hint_rows[i].text);
}

static void print_escape(text *out, const ptx_inst *inst, char escape)
{
    static const char *const spaces[] = {"", ".global", ".shared", ".const", ".local"};
    enum { ORDERS = HINT_ORDERS | HINT_SCOPES | PTX_VOLATILE };
    switch (escape) {
    case 't':
        text_add(out, ptx_type_name(inst->type));
        break;
    case 'b':
        text_add(out, type_bits_name(inst->type));
        break;
    case 'm':
        text_add(out, type_memory_name(inst->type));
        break;
    case 's':
        text_add(out, ptx_type_name(inst->from));
        break;
    case 'S':
        print_hints(out, inst->hints, ORDERS);
        text_add(out, spaces[inst->space]);
        break;
    case 'O':
        print_hints(out, inst->hints, ORDERS);
        break;
    case 'G':
        text_add(out, inst->hints & PTX_CTA ? "cta" : inst->hints & PTX_GPU ? "gl" : "sys");
        break;
    case 'H':
        print_hints(out, inst->hints, ~ORDERS);
        break;
    case 'C':
        text_add(out, inst->hints & PTX_CG ? ".cg" : ".ca");
        break;
    case 'L':
        print_hints(out, inst->hints, ~(ORDERS | HINT_OPERATORS));
        break;
    case 'M':
        text_add(out, inst->symbol);
        break;
    case 'N':
        text_printf(out, "%d", inst->vector);
        break;
    case 'V':
        if (inst->vector > 1)
            text_printf(out, ".v%d", inst->vector);
        break;
    default:
        break;
    }
}

static void print_name(text *out, const ptx_inst *inst)
{
    for (const char *s = inst->row->text; *s; s++) {
        if (*s == '$')
            print_escape(out, inst, *++s);
        else
            text_add_char(out, *s);
    }
}

/* Results are registers, even pointers. */
static void print_result(text *out, const names *n, ptx_val v)
{
    print_register(out, n, v.reg);
}

static void print_group(text *out, const names *n, const ptx_val values[], int count, bool braces,
                        bool results)
{
    if (braces)
        text_add_char(out, '{');
    for (int i = 0; i < count; i++) {
        if (i)
            text_add(out, ", ");
        (results ? print_result : print_value)(out, n, values[i]);
    }
    if (braces)
        text_add_char(out, '}');
}

/* "[%rd1, {%r1, %r2}]" */
static void print_box(text *out, const names *n, const ptx_val values[], int count)
{
    text_add_char(out, '[');
    print_register(out, n, values[0].reg);
    text_add(out, ", ");
    print_group(out, n, &values[1], count - 1, true, false);
    text_add_char(out, ']');
}

/* Prints one operand or result of the signature, or several. */
static void print_letter(text *out, const names *n, const ptx_inst *inst, char letter, const ptx_val values[],
                         int count, bool results)
{
    if (letter == 'y' || letter == 'r')
        text_add(out, inst->symbol);
    else if (letter == 'x')
        print_box(out, n, values, count);
    else
        print_group(out, n, values, count, letter != 'j' && (count > 1 || letter == 'g'), results);
}

/* Walks the signature: each letter is one operand, except v, z and g (a vector in braces), j (several numbers) and x (a map and
 * coordinates). */
static void print_list(text *out, const names *n, const ptx_inst *inst)
{
    const ptx_val *next = inst->results;
    const uint8_t *groups = inst->groups;
    const char *separator = " ";
    bool results = true;
    for (const char *s = inst->row->signature; *s; s++) {
        if (*s == ':') {
            results = false;
            next = inst->operands;
        } else if (*s == '|') {
            separator = "|";
        } else {
            bool several = *s == 'v' || *s == 'z' || *s == 'g', grouped = groups && (*s == 'g' || *s == 'j');
            int count = grouped ? *groups++ : several ? inst->vector : *s == 'x' ? 1 + inst->vector : 1;
            if (*s == 'j' && count == 0)
                continue;
            text_add(out, separator);
            print_letter(out, n, inst, *s, next, count, results);
            if (count > 0 && *s != 'y' && *s != 'r') /* there may be no operands to step over */
                next += count;
            separator = ", ";
        }
    }
}

/* The text of ptx_raw, with values for $0, $1 ... */
static void print_raw(text *out, const names *n, const ptx_inst *inst)
{
    for (const char *s = inst->symbol; *s; s++) {
        if (*s != '$') {
            text_add_char(out, *s);
            continue;
        }
        int number = raw_number(&s);
        if (number < inst->result_count)
            print_result(out, n, inst->results[number]);
        else
            print_value(out, n, inst->operands[number - inst->result_count]);
    }
}

void print_instruction(text *out, const names *n, const ptx_inst *inst)
{
    if (inst->guard.kind == VAL_REGISTER) {
        text_add_char(out, '@');
        print_register(out, n, inst->guard.reg);
        text_add_char(out, ' ');
    }
    if (inst->row->op == PTX_OP_RAW) {
        print_raw(out, n, inst);
    } else {
        print_name(out, inst);
        print_list(out, n, inst);
    }
    text_add_char(out, ';');
}

/* ---- control ---------------------------------------------------------------------------------------------------- */

static void print_branch(text *out, const names *n, const char *condition, ptx_val predicate)
{
    text_printf(out, "\t%s", condition);
    print_register(out, n, predicate.reg);
    text_add(out, " bra ");
}

static void end_line(text *out, const names *n, const ptx_inst *inst)
{
    if (n->has_places)
        text_printf(out, " // %s:%d", inst->at.file, inst->at.line);
    text_add_char(out, '\n');
}

/* Prints an instruction, or the branches and labels of a control instruction. Blocks are not indented: in a bundle of
 * deep loops that would be a twentieth of its bytes. */
static void print_item(text *out, const names *n, const ptx_inst *inst)
{
    const scope *s = fn_scope(n->f, inst->scope);
    switch (inst->kind) {
    case INST_OP:
        text_add_char(out, '\t');
        print_instruction(out, n, inst);
        break;
    case INST_NOTE:
        text_printf(out, "\t// %s", inst->symbol);
        break;
    case INST_IF:
        print_branch(out, n, "@!", inst->operands[0]);
        text_printf(out, "IF_%u_%s;", s->label, s->has_else ? "ELSE" : "END");
        break;
    case INST_ELSE:
        text_printf(out, "\tbra IF_%u_END;", s->label);
        end_line(out, n, inst);
        text_printf(out, "IF_%u_ELSE:", s->label);
        break;
    case INST_END_IF:
        text_printf(out, "IF_%u_END:", s->label);
        break;
    case INST_LOOP:
        text_printf(out, "LOOP_%u:", s->label);
        break;
    case INST_BREAK:
        print_branch(out, n, "@", inst->operands[0]);
        text_printf(out, "LOOP_%u_END;", s->label);
        break;
    case INST_END_LOOP:
        print_branch(out, n, "@", inst->operands[0]);
        text_printf(out, "LOOP_%u;", s->label);
        if (s->has_break) {
            end_line(out, n, inst);
            text_printf(out, "LOOP_%u_END:", s->label);
        }
        break;
    }
    end_line(out, n, inst);
}

/* ---- the kernel ------------------------------------------------------------------------------------------------- */

void ptx_print_header(text *out, ptx_requirement needs)
{
    char name[TARGET_NAME_BYTES];
    text_printf(out, ".version %u.%u\n.target %s\n.address_size 64\n", needs.version / 10u,
                needs.version % 10u, target_print(needs.target, name));
}

static void print_symbol(text *out, const memory_array *s, uint32_t align)
{
    static const char *const words[] = {
        [PTX_SHARED] = "shared", [PTX_CONST] = "const", [PTX_GLOBAL] = "global", [PTX_LOCAL] = "local"};
    text_printf(out, "%s.%s .align %u .%s %s[", s->dynamic ? ".extern " : "", words[s->space], align,
                type_bits_name(s->element), s->name);
    if (!s->dynamic)
        text_printf(out, "%u", s->count);
    text_add(out, "]");
    for (uint32_t i = 0; s->bits && i < s->count; i++) {
        text_add(out, i ? ", " : " = {");
        print_immediate(out, s->element, s->bits[i]);
    }
    text_add(out, s->bits ? "};\n" : ";\n");
}

/* Constants and dynamic shared memory belong to the module, static shared and local arrays to the kernel. */
static void print_symbols(text *out, const ptx_fn *f, bool module)
{
    const memory_array *s = f->symbols.items;
    bool dynamic_done = false;
    for (size_t i = 0; i < f->symbols.count; i++) {
        bool is_kernels = s[i].space == PTX_LOCAL || (s[i].space == PTX_SHARED && !s[i].dynamic);
        if (is_kernels == module || (s[i].dynamic && dynamic_done))
            continue;
        dynamic_done |= s[i].dynamic;
        text_add(out, module ? "" : "\t");
        print_symbol(out, &s[i], s[i].dynamic ? f->dynamic_align : s[i].align);
    }
}

static void print_signature(text *out, const ptx_fn *f)
{
    const kernel_param *p = f->params.items;
    text_printf(out, ".visible .entry %s(", f->entry);
    for (size_t i = 0; i < f->params.count; i++) {
        const bool is_map = p[i].type == PTX_PTR && p[i].element == PTX_NONE;
        text_printf(out, "%s\n\t.param .%s param_%s%s", i ? "," : "",
                    is_map ? "align 64 .b8" : type_memory_name(p[i].type), p[i].name, is_map ? "[128]" : "");
    }
    text_printf(out, "\n)\n.maxntid %u, %u, %u\n", f->block[0], f->block[1], f->block[2]);
    if (f->min_blocks)
        text_printf(out, ".minnctapersm %u\n", f->min_blocks);
}

void ptx_print_body(text *out, const ptx_fn *f, bool has_places)
{
    names n = names_make(f);
    n.has_places = has_places;
    text_add(out, "\n");
    print_symbols(out, f, true);
    print_signature(out, f);
    text_add(out, "{\n");
    for (int c = 0; c < CLASS_COUNT; c++)
        if (n.used[c])
            text_printf(out, "\t.reg %s %s<%u>;\n", classes[c].declared, classes[c].prefix, n.used[c] + 1);
    print_symbols(out, f, false);
    text_add(out, "\n");
    for (size_t i = 0; i < f->top.count; i++)
        if (names_has(&n, fn_inst(&f->top, i)))
            print_item(out, &n, fn_inst(&f->top, i));
    for (size_t i = 0; i < f->body.count; i++)
        print_item(out, &n, fn_inst(&f->body, i));
    text_add(out, "\tret;\n}\n");
}
