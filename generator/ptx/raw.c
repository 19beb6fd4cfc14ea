/* Instructions that the builder lacks, as text with typed operands. The manifest lists each use. */
#include <string.h>

#include "ir.h"

enum { MOST_VALUES = 24 };

int raw_number(const char **s)
{
    const char *digit = *s + 1;
    int number = -1;
    for (; *digit >= '0' && *digit <= '9' && number < MOST_VALUES; digit++)
        number = (number < 0 ? 0 : number * 10) + (*digit - '0');
    *s = digit - 1;
    return number;
}

/* Null if the text names every value, and no other. */
static const char *text_trouble(const char *written, int values)
{
    uint32_t named = 0;
    if (!written || !text_is_ptx(written))
        return "the text is printable ASCII on one line";
    if (strchr(written, ';') || strstr(written, "//") || strstr(written, "/*"))
        return "the text is one instruction, without a semicolon or a comment";
    for (const char *s = strchr(written, '$'); s; s = strchr(s + 1, '$')) {
        int number = raw_number(&s);
        if (number < 0 || number >= values)
            return "the text names a value that is not there";
        named |= 1u << number;
    }
    return named == (1u << values) - 1 ? NULL : "the text does not name every value";
}

static bool raw_fits(ptx_fn *f, const ptx_raw_form *form, int results, const ptx_type types[], int operands,
                     const ptx_val values[], ptx_place at)
{
    char what[32];
    const char *trouble = results < 0 || operands < 0 || results + operands > MOST_VALUES
                              ? "too many values"
                              : text_trouble(form->text, results + operands);
    for (int i = 0; !trouble && i < results; i++)
        trouble = types[i] == PTX_PTR ? "a result cannot be a pointer: take an address"
                  : types[i] != PTX_PRED && ptx_type_bytes(types[i]) == 0 ? "a result has no type"
                                                                          : NULL;
    if (!trouble && form->kind && form->kind != 'a' && form->kind != 'f')
        trouble = "the kind of target is not 0, 'a' or 'f'";
    if (trouble) {
        fn_problem(f, at, "ptx_raw: %s", trouble);
        return false;
    }
    for (int i = 0; i < operands; i++) {
        snprintf(what, sizeof what, "ptx_raw: operand %d", i + 1);
        if (!val_usable(f, values[i], what, at))
            return false;
    }
    return true;
}

void ptx_raw_at(ptx_fn *f, ptx_raw_form form, int results, const ptx_type types[], ptx_val out[],
                int operands, const ptx_val values[], const char *file, int line)
{
    ptx_place at = {file, line};
    ptx_val ready[MOST_VALUES];
    if (!raw_fits(f, &form, results, types, operands, values, at)) {
        for (int i = 0; i < results && i < MOST_VALUES; i++)
            out[i] = val_poison;
        return;
    }
    for (int i = 0; i < operands; i++)
        ready[i] = val_in_register(f, values[i], at);
    const target_kind kind = form.kind == 'a' ? TARGET_ARCH : form.kind == 'f' ? TARGET_FAMILY : TARGET_BASE;
    ptx_inst *inst = inst_append(f, INST_OP, results, operands, at);
    inst->row = op_first(PTX_OP_RAW);
    inst->symbol = arena_format(f->arena, "%s", form.text);
    inst->needs = requirement_join(requirement_lowest, (ptx_requirement){form.version, {form.sm, kind}});
    inst->whole_warp = form.whole_warp;
    for (int i = 0; i < operands; i++)
        inst->operands[i] = ready[i];
    for (int i = 0; i < results; i++)
        out[i] = inst->results[i] = val_born(f, types[i]);
}

/* ---- for the manifest ------------------------------------------------------------------------------------------- */

static bool is_raw(const ptx_inst *inst)
{
    return inst->kind == INST_OP && inst->row->op == PTX_OP_RAW;
}

size_t ptx_raw_count(const ptx_fn *f)
{
    size_t count = 0;
    for (size_t i = 0; i < f->body.count; i++)
        count += is_raw(fn_inst(&f->body, i));
    return count;
}

const char *ptx_raw_text(const ptx_fn *f, size_t number)
{
    for (size_t i = 0; i < f->body.count; i++)
        if (is_raw(fn_inst(&f->body, i)) && number-- == 0)
            return fn_inst(&f->body, i)->symbol;
    return NULL;
}
