/* The IR, for people: structured, with types, and a mark on values that differ between threads. */
#include "ir.h"

static void dump_results(text *out, const names *n, const divergence *d, const ptx_inst *inst)
{
    static const char *const marks[] = {
        [LEVEL_BLOCK] = "", [LEVEL_GROUP] = "~g", [LEVEL_WARP] = "~w", [LEVEL_LANE] = "~"};
    for (int i = 0; i < inst->result_count; i++) {
        ptx_val v = inst->results[i];
        ptx_type type = (ptx_type)v.type;
        v.type = PTX_NONE; /* a pointer without its brackets */
        text_add(out, i ? ", " : "");
        print_value(out, n, v);
        text_printf(out, ":%s%s", ptx_type_name(type), marks[d->reg[v.reg]]);
    }
    text_add(out, inst->result_count ? "  <-  " : "");
}

static void dump_predicate(text *out, const names *n, const char *word, ptx_val predicate)
{
    text_add(out, word);
    if (predicate.kind == VAL_REGISTER)
        print_value(out, n, predicate);
    else
        text_add(out, "?");
}

static int dump_control(text *out, const names *n, const ptx_inst *inst)
{
    switch (inst->kind) {
    case INST_IF:
        dump_predicate(out, n, "if ", inst->operands[0]);
        return 1;
    case INST_ELSE:
        text_add(out, "else");
        return 0;
    case INST_END_IF:
        text_add(out, "end");
        return -1;
    case INST_LOOP:
        text_add(out, "loop");
        return 1;
    case INST_END_LOOP:
        dump_predicate(out, n, "again if ", inst->operands[0]);
        return -1;
    case INST_BREAK:
        dump_predicate(out, n, "break if ", inst->operands[0]);
        return 0;
    case INST_NOTE:
        text_printf(out, "// %s", inst->symbol);
        return 0;
    case INST_OP:
        break;
    }
    return 0;
}

static int dump_item(text *out, const names *n, const divergence *d, const ptx_inst *inst, int depth)
{
    bool outdent = inst->kind == INST_ELSE || inst->kind == INST_END_IF || inst->kind == INST_END_LOOP;
    text_printf(out, "%s:%d\t", inst->at.file ? inst->at.file : "", inst->at.line);
    for (int i = 0; i < depth - outdent; i++)
        text_add(out, "  ");
    if (inst->kind == INST_OP) {
        dump_results(out, n, d, inst);
        print_instruction(out, n, inst);
    } else {
        depth += dump_control(out, n, inst);
    }
    text_add(out, "\n");
    return depth;
}

void ptx_dump(const ptx_fn *f, FILE *out)
{
    names n = names_make(f);
    divergence d = divergence_make(f);
    text t = text_new(f->arena);
    int depth = 0;
    text_printf(
        &t,
        "%s: ~ marks what may differ between lanes of a warp, ~w only between warps, ~g only between warpgroups\n",
        f->entry);
    for (size_t i = 0; i < f->top.count; i++)
        if (names_has(&n, fn_inst(&f->top, i)))
            dump_item(&t, &n, &d, fn_inst(&f->top, i), depth);
    for (size_t i = 0; i < f->body.count; i++)
        depth = dump_item(&t, &n, &d, fn_inst(&f->body, i), depth);
    fputs(t.data, out);
}
