/* Writes the argument struct of NAME.h: each member's meaning in this bundle, in as few lines as possible.
 *
 * Members and offsets are the family's, so members that this bundle does not read keep their places: each run of them
 * is packed under a comment. Adjacent members with equal type and text share a line, and so do selectors with one value
 * each. */
#include <string.h>

#include "c_text.h"
#include "family/dense.h"
#include "family/family.h"
#include "support/words.h"
#include "write.h"

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* "$type" is the type that the parameter names: its only value in this bundle, or the parameter's own name. */
static const char *type_text(arena *a, const bundle_family *f, const kiln_arg *arg)
{
    if (arg->type[0] != '$')
        return arg->type;
    const arg_type_choice choice = family_arg_type_choice(arg);
    const char *name = arena_string(a, arg->type + 1, choice.name_length);
    size_t index;
    if (!family_find_param(f->family, name, &index))
        return name;
    const char **values;
    size_t count = family_values(a, f, index, &values);
    bool is_one = true;
    for (size_t i = 1; i < count; i++)
        is_one &= strcmp(arg_type_for(choice, values[i]), arg_type_for(choice, values[0])) == 0;
    if (is_one)
        return arg_type_for(choice, values[0]);
    return choice.word ? arena_format(a, "%.*s or %s", (int)choice.word_length, choice.word, choice.other)
                       : name;
}

static bool is_in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* An expression's text with arguments in C's form: "pages_size" is "pages.size". */
static const char *with_members(arena *a, const bundle_family *f, const char *s)
{
    text out = text_new(a);
    while (*s) {
        size_t length = 0;
        while (is_in_name(s[length]))
            length++;
        const char *word = arena_string(a, s, length ? length : 1);
        for (size_t i = 0; i < f->field_count; i++)
            if (strcmp(f->fields[i].name, word) == 0)
                word = f->fields[i].member;
        text_add(&out, word);
        s += length ? length : 1;
    }
    return out.data;
}

/* A condition with the bundle's values substituted; null: it always holds. */
static const char *condition_text(arena *a, const bundle_family *f, const char *condition, bool is_c)
{
    uint64_t value;
    text out = text_new(a);
    const expression *bound = condition ? bind_text(a, f->family, condition, f->common) : NULL;
    if (!bound || expression_is_constant(bound, &value))
        return NULL;
    expression_print(&out, bound);
    return is_c ? with_members(a, f, out.data) : out.data;
}

static const char *shape_text(arena *a, const bundle_family *f, const kiln_arg *arg, bool is_c)
{
    const char *shape = dense_shape(a, f->family, arg, f->common);
    return is_c ? with_members(a, f, shape) : shape;
}

/* Prints an alignment larger than the element's size. */
static void add_alignment(arena *a, text *out, const bundle_family *f, const kiln_arg *arg)
{
    uint32_t least = UINT32_MAX, most = 0, element = UINT32_MAX;
    for (size_t i = 0; i < f->variant_count; i++) {
        const variant *v = f->variants[i]->variant;
        if (!variant_has_arg(v, arg))
            continue;
        const uint32_t bytes = variant_arg_alignment(a, v, arg), own = variant_element_bytes(a, v, arg);
        least = bytes < least ? bytes : least;
        most = bytes > most ? bytes : most;
        element = own < element ? own : element;
    }
    const char *own = arg_variant_alignment(f->family, arg);
    if (most > least && own)
        text_printf(out, ", aligned to %s bytes, %u to %u", own, (unsigned)least, (unsigned)most);
    else if (most > 0 && least > element)
        text_printf(out, ", aligned to %u bytes", (unsigned)least);
}

const char *arg_about(arena *a, const bundle_family *f, const kiln_arg *arg, bool is_c)
{
    static const char *const directions[] = {
        [KILN_ARG_IN] = "in, ",
        [KILN_ARG_OUT] = "out, ",
        [KILN_ARG_INOUT] = "in and out, ",
        [KILN_ARG_OPTIONAL_IN] = "in, may be null, ",
        [KILN_ARG_OPTIONAL_OUT] = "out, may be null, ",
        [KILN_ARG_SCRATCH] = "scratch, ",
        [KILN_ARG_CONSTANT] = "in, constant, ",
    };
    text out = text_new(a);
    const bool is_of_workspace =
        workspace_has(f->workspace, arg); /* NAME_FAMILY_workspace returns its size */
    const char *when = is_of_workspace ? NULL : condition_text(a, f, arg->when, is_c);
    const char *type = type_text(a, f, arg);
    if (arg->kind == KILN_ARG_VALUE && arg->shape) {
        text_printf(&out, "%s bytes", arg->shape);
    } else if (arg->kind == KILN_ARG_VALUE && is_c && arg->type[0] == '$') {
        text_add(&out, strcmp(type, "f64") == 0 ? "" : arena_format(a, "%s, passed as double", type));
    } else if (arg->kind == KILN_ARG_VALUE) {
        text_add(&out, is_c && arg->summary ? "" : type); /* the member's comment has the type */
    } else {
        text_printf(&out, "%s%s%s", directions[arg->kind], type,
                    arg->shape && !is_of_workspace ? shape_text(a, f, arg, is_c) : "");
        add_alignment(a, &out, f, arg);
    }
    if (when)
        text_printf(&out, "%sonly when %s", out.length > 0 ? ", " : "", when);
    return out.data;
}

static const char *arg_comment(arena *a, const bundle_family *f, const kiln_arg *arg)
{
    const char *about = arg_about(a, f, arg, true);
    return arg->summary ? arena_format(a, "%s%s%s", about, *about ? ": " : "", summary_line(a, arg->summary))
                        : about;
}

static const char *zero_text(const bundle_field *field)
{
    return field->when_zero ? field->when_zero : "none of them";
}

/* Whether 0 and the bundle's only value of a selector mean the same. */
static bool is_settled(arena *a, const bundle_family *f, const bundle_field *field)
{
    const char **values;
    return field->param && family_values(a, f, field->param_index, &values) == 1 &&
           (field->param->type != KILN_PARAM_BOOL || strcmp(values[0], "false") == 0);
}

static const char *param_comment(arena *a, const bundle_family *f, const bundle_field *field)
{
    const kiln_param *param = field->param;
    const char **values;
    const size_t count = family_values(a, f, field->param_index, &values);
    text out = text_new(a);
    text_add(&out, summary_line(a, param->summary ? param->summary : param->name));
    if (param->type == KILN_PARAM_BOOL) {
        text_add(&out, count > 1 ? "; 0 or 1" : values[0][0] == 't' ? "; must be 1" : "; must be 0");
        return out.data;
    }
    text_add(&out, ":");
    for (size_t i = 0; i < count; i++)
        text_printf(&out, " %s", values[i]);
    text_printf(&out, "; 0 is %s", zero_text(field));
    return out.data;
}

/* "0, or the bundle's only values: bf16, 128" */
static const char *settled_comment(arena *a, const bundle_field *fields, size_t count)
{
    text out = text_new(a);
    text_add(&out, "0, or the bundle's only values: ");
    for (size_t i = 0; i < count; i++)
        text_printf(&out, "%s%s", i > 0 ? ", " : "",
                    fields[i].param->type == KILN_PARAM_BOOL ? "0" : zero_text(&fields[i]));
    return out.data;
}

static const char *comment_of(arena *a, const bundle_family *f, const bundle_field *field)
{
    return field->arg ? arg_comment(a, f, field->arg) : param_comment(a, f, field);
}

/* ---- declarations ------------------------------------------------------------------------------------------------ */

static const char *own_name(const bundle_field *field)
{
    return field->group_length > 0 ? field->member + field->group_length + 1 : field->name;
}

/* "n", "range[24] __attribute__((aligned(8)))" */
static const char *declarator(arena *a, const bundle_field *field)
{
    if (field->elements)
        return arena_format(a, "%s[%u] __attribute__((aligned(%u)))", own_name(field),
                            (unsigned)field->elements, (unsigned)field->alignment);
    return own_name(field);
}

static bool in_one_group(const bundle_field *x, const bundle_field *y)
{
    return x->group_length == y->group_length && strncmp(x->name, y->name, x->group_length) == 0;
}

/* End of the entry at `i`: a member, or a whole group. */
static size_t end_of_entry(const bundle_family *f, size_t i)
{
    size_t end = i + 1;
    while (f->fields[i].group_length > 0 && end < f->field_count &&
           in_one_group(&f->fields[i], &f->fields[end]))
        end++;
    return end;
}

/* "uint32_t left, right; uint64_t far;" */
static void add_declarators(arena *a, text *out, const bundle_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const bool goes_on = i > 0 && !fields[i].elements && !fields[i - 1].elements &&
                             strcmp(fields[i].c_type, fields[i - 1].c_type) == 0;
        if (goes_on)
            text_printf(out, ", %s", declarator(a, &fields[i]));
        else
            text_printf(out, "%s%s %s", i > 0 ? "; " : "", fields[i].c_type, declarator(a, &fields[i]));
    }
    text_add(out, ";");
}

static void add_group(arena *a, text *out, const bundle_field *fields, size_t count)
{
    text_add(out, "struct { ");
    add_declarators(a, out, fields, count);
    text_printf(out, " } %.*s;", (int)fields->group_length, fields->name);
}

/* Members and whole groups, on as few lines as they need. */
static const char *packed(arena *a, const bundle_family *f, size_t first, size_t end)
{
    text out = text_new(a);
    const bool is_inside = first > 0 && f->fields[first].group_length > 0 &&
                           in_one_group(&f->fields[first - 1], &f->fields[first]);
    for (size_t i = first, next; i < end; i = next) {
        const bool is_group = f->fields[i].group_length > 0 && !is_inside && end_of_entry(f, i) <= end;
        next = is_group ? end_of_entry(f, i) : i + 1;
        while (!is_group && next < end &&
               (is_inside || f->fields[next].group_length == f->fields[i].group_length))
            next++;
        text_add(&out, i > first ? " " : "");
        (is_group ? add_group : add_declarators)(a, &out, &f->fields[i], next - i);
    }
    return out.data;
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

typedef struct lines {
    arena *arena;
    text *out;
    const bundle_family *f;
    int column; /* of comments beside members */
} lines;

static bool fits(const char *indent, const char *declared, const char *comment)
{
    return strlen(indent) + strlen(declared) + strlen(comment) + strlen(" /*  */") <= C_COLUMNS;
}

/* Puts the comment beside the declaration, or above it if the line would be too long. */
static void write_line(const lines *l, const char *indent, const char *declared, const char *comment)
{
    text *out = l->out;
    const int width = (int)(strlen(indent) + strlen(declared));
    text_add(out, indent);
    if (width < l->column || fits(indent, declared, comment)) {
        text_printf(out, "%s%*s", declared, width < l->column ? l->column - width : 1, "");
        c_add_comment(out, width < l->column ? l->column : width + 1, comment);
    } else {
        c_add_comment(out, (int)strlen(indent), comment);
        text_add(out, "\n");
        c_add_statements(out, indent, declared);
    }
    text_add(out, "\n");
}

static bool is_unread(const bundle_family *f, size_t first, size_t end, bool is_ignored)
{
    for (size_t i = first; i < end; i++)
        if (f->fields[i].is_read || f->fields[i].is_ignored != is_ignored)
            return false;
    return true;
}

/* End of the run of entries from `i` on that are not read; `i` if the first is read. */
static size_t end_of_unread(const bundle_family *f, size_t i, size_t end, bool is_inside)
{
    const bool is_ignored = f->fields[i].is_ignored;
    for (size_t next; i < end; i = next) {
        next = is_inside ? i + 1 : end_of_entry(f, i);
        if (!is_unread(f, i, next, is_ignored))
            break;
    }
    return i;
}

/* End of the run of members from `i` on with the type and text of the first. */
static size_t end_of_same(const lines *l, size_t i, size_t end)
{
    const bundle_family *f = l->f;
    size_t next = i + 1;
    while (next < end && !f->fields[i].elements && f->fields[next].is_read && f->fields[next].arg &&
           f->fields[i].arg && in_one_group(&f->fields[i], &f->fields[next]) &&
           strcmp(f->fields[i].c_type, f->fields[next].c_type) == 0 &&
           strcmp(comment_of(l->arena, f, &f->fields[i]), comment_of(l->arena, f, &f->fields[next])) == 0)
        next++;
    return next;
}

static size_t end_of_settled(const lines *l, size_t i, size_t end)
{
    while (i < end && is_settled(l->arena, l->f, &l->f->fields[i]))
        i++;
    return i;
}

static void write_members(const lines *l, size_t first, size_t end, const char *indent, bool is_inside);

static void write_group(const lines *l, size_t first, size_t end, const char *indent)
{
    const bundle_field *field = &l->f->fields[first];
    if (end_of_same(l, first, end) == end) {
        write_line(l, indent, packed(l->arena, l->f, first, end), comment_of(l->arena, l->f, field));
        return;
    }
    text_printf(l->out, "%sstruct {\n", indent);
    write_members(l, first, end, arena_format(l->arena, "%s    ", indent), true);
    text_printf(l->out, "%s} %.*s;\n", indent, (int)field->group_length, field->name);
}

static void write_members(const lines *l, size_t first, size_t end, const char *indent, bool is_inside)
{
    arena *a = l->arena;
    const bundle_family *f = l->f;
    for (size_t i = first, next; i < end; i = next) {
        const bundle_field *field = &f->fields[i];
        const char *comment;
        if ((next = end_of_unread(f, i, end, is_inside)) > i) {
            comment =
                field->is_ignored ? "not read by this bundle: ignored" : "not read by this bundle: leave 0";
        } else if (!is_inside && field->group_length > 0) {
            write_group(l, i, next = end_of_entry(f, i), indent);
            continue;
        } else if ((next = end_of_settled(l, i, end)) > i + 1) {
            comment = settled_comment(a, field, next - i);
        } else {
            next = end_of_same(l, i, end);
            comment = comment_of(a, f, field);
        }
        write_line(l, indent, packed(a, f, i, next), comment);
    }
}

/* Comments stand after the widest member that has a line to itself. */
static int column_of(arena *a, const bundle_family *f)
{
    size_t widest = 0;
    for (size_t i = 0; i < f->field_count; i++) {
        const bundle_field *field = &f->fields[i];
        const size_t width = strlen(field->c_type) + strlen(declarator(a, field)) + strlen(" ; ") +
                             (field->group_length > 0 ? 4 : 0);
        if (field->is_read && width > widest)
            widest = width;
    }
    return 4 + (int)widest;
}

void write_args_struct(arena *a, text *out, const bundle_family *f)
{
    const lines l = {a, out, f, column_of(a, f)};
    text_printf(out, "typedef struct %s {\n", f->args_struct);
    if (f->field_count == 0) /* C has no empty struct */
        text_add(out, "    char nothing;\n");
    write_members(&l, 0, f->field_count, "    ", false);
    text_printf(out, "} %s;\n", f->args_struct);
}
