/* Text for people that `kiln families` prints. */
#include "describe.h"

#include <string.h>

#include "constraints.h"
#include "dense.h"
#include "family.h"
#include "rule_text.h"
#include "support/wrap.h"

enum { WIDEST_COLUMN = 36 };

/* ---- tables ----------------------------------------------------------------------------------------------------- */

enum { MOST_COLUMNS = 5 };

/* Rows of cells: columns, except the last, are as wide as their widest cell. A cell wider than WIDEST_COLUMN moves the
 * rest of its row to the next line. */
typedef struct table {
    arena *arena;
    const char *(*rows)[MOST_COLUMNS];
    size_t count, capacity, columns;
    unsigned expressions; /* bit i: column i holds expressions; the others hold prose */
} table;

static const char **add_row(table *t)
{
    const char *(*row)[MOST_COLUMNS] =
        arena_push(t->arena, (void **)&t->rows, &t->count, &t->capacity, sizeof *t->rows);
    return *row;
}

static void print_row(text *out, const table *t, size_t row, const size_t widths[MOST_COLUMNS])
{
    wrapper w = {.out = out};
    for (size_t c = 0, start = 2; c < t->columns; start += widths[c++] + 2) {
        wrap_move(&w, start);
        if (t->expressions >> c & 1)
            wrap_expression(&w, t->rows[row][c]);
        else
            wrap_prose(&w, t->rows[row][c]);
    }
    text_add(out, "\n");
}

static void print_table(text *out, const table *t)
{
    size_t widths[MOST_COLUMNS] = {0};
    for (size_t r = 0; r < t->count; r++) {
        for (size_t c = 0; c + 1 < t->columns; c++) {
            size_t width = strlen(t->rows[r][c]);
            if (width > widths[c] && width <= WIDEST_COLUMN)
                widths[c] = width;
        }
    }
    for (size_t r = 0; r < t->count; r++)
        print_row(out, t, r, widths);
}

/* ---- families --------------------------------------------------------------------------------------------------- */

void describe_families(text *out, family_list families)
{
    table t = {.arena = out->arena, .columns = 2};
    for (family_list f = families; *f; f++) {
        const char **row = add_row(&t);
        row[0] = (*f)->name;
        row[1] = (*f)->summary;
    }
    print_table(out, &t);
}

static void describe_params(text *out, const kiln_family *family)
{
    table t = {.arena = out->arena, .columns = 5};
    size_t count = family_param_count(family);
    for (size_t i = 0; i < count; i++) {
        const kiln_param *p = &family->params[i];
        const char **row = add_row(&t);
        row[0] = p->name;
        row[1] = param_values_text(out->arena, p);
        row[2] = arena_format(out->arena, "[%s]", p->default_value);
        row[3] = p->role == KILN_ROLE_TUNING ? "tuning" : "contract";
        row[4] = summary_text(out->arena, p->summary);
    }
    text_add(out, count > 0 ? "\nparameters: values [default]\n" : "");
    print_table(out, &t);
}

/* "$type" as "<type>", "$type:f64:f32" as "f64 or f32". */
static const char *type_text(arena *a, const kiln_arg *arg)
{
    if (arg->type[0] != '$')
        return arg->type;
    const arg_type_choice choice = family_arg_type_choice(arg);
    return choice.word ? arena_format(a, "%.*s or %s", (int)choice.word_length, choice.word, choice.other)
                       : arena_format(a, "<%s>", arg->type + 1);
}

static void describe_args(text *out, const kiln_family *family)
{
    static const char *const kinds[] = {[KILN_ARG_VALUE] = "value",
                                        [KILN_ARG_IN] = "in",
                                        [KILN_ARG_OUT] = "out",
                                        [KILN_ARG_INOUT] = "inout",
                                        [KILN_ARG_OPTIONAL_IN] = "optional in",
                                        [KILN_ARG_OPTIONAL_OUT] = "optional out",
                                        [KILN_ARG_SCRATCH] = "scratch",
                                        [KILN_ARG_CONSTANT] = "in, constant"};
    table t = {.arena = out->arena, .columns = 5, .expressions = 1u << 3};
    for (const kiln_arg *arg = family->args; arg->name; arg++) {
        const char **row = add_row(&t);
        const char *shape = arg->shape ? dense_shape(out->arena, family, arg, NULL) : "";
        row[0] = arg->name;
        row[1] = kinds[arg->kind];
        const char *own = arg_variant_alignment(family, arg);
        row[2] = own ? own : arg->shape ? arena_format(out->arena, "%u", (unsigned)arg_alignment(arg)) : "";
        row[3] = arena_format(out->arena, "%s%s", type_text(out->arena, arg), shape);
        row[4] = summary_text(out->arena, arg->summary);
        if (arg->when)
            row[4] = arena_format(out->arena, "%s (where %s)", row[4], arg->when);
    }
    text_add(
        out,
        "\narguments: direction, alignment in bytes (an element's size if that is larger), type[elements]\n");
    print_table(out, &t);
}

static void describe_maps(text *out, const kiln_family *family)
{
    table t = {.arena = out->arena, .columns = 3};
    for (const kiln_map *map = family->maps; map && map->name; map++) {
        const char **row = add_row(&t);
        row[0] = map->name;
        row[1] = map->arg;
        row[2] = arena_format(out->arena, "boxes of %s, swizzle of %s bytes%s%s", map->box,
                              map->swizzle_bytes ? map->swizzle_bytes : "0", map->when ? ", where " : "",
                              map->when ? map->when : "");
    }
    text_add(out, t.count > 0 ? "\ntensor maps that the launcher encodes\n" : "");
    print_table(out, &t);
}

static void describe_calls(text *out, const kiln_family *family)
{
    table t = {.arena = out->arena, .columns = 3};
    for (const kiln_call *call = family->calls; call && call->name; call++) {
        const char **row = add_row(&t);
        text names = text_new(out->arena);
        for (const kiln_arg *arg = call->args; arg->name; arg++)
            text_printf(&names, "%s%s", names.length > 0 ? ", " : "", arg->name);
        row[0] = arena_format(out->arena, "%s_%s", family->name, call->name);
        row[1] = names.data;
        row[2] = call->summary;
    }
    text_add(out, t.count > 0 ? "\nfunctions with fewer arguments\n" : "");
    print_table(out, &t);
}

/* The rules' texts; in full with the checked expressions. */
static void describe_rules(text *out, const char *title, const kiln_family *family, const kiln_rule *rules,
                           bool in_full)
{
    table t = {.arena = out->arena, .columns = in_full ? 2 : 1, .expressions = in_full ? 1u << 0 : 0};
    for (const kiln_rule *r = rules; r && r->condition; r++) {
        const char **row = add_row(&t);
        row[0] = in_full ? r->condition : rule_text(out->arena, family, r, NULL);
        row[1] = r->text;
    }
    if (t.count > 0)
        text_printf(out, "\n%s\n", title);
    print_table(out, &t);
}

static void describe_time(text *out, const kiln_family *family)
{
    const struct {
        const char *name, *value;
    } rows[] = {{"length", family->time.length},           {"repeats", family->time.repeats},
                {"side_trips", family->time.side_trips},   {"wait", family->time.wait},
                {"block_bytes", family->time.block_bytes}, {"extra", family->time.extra}};
    table t = {.arena = out->arena, .columns = 2, .expressions = 1u << 1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!rows[i].value)
            continue;
        const char **row = add_row(&t);
        row[0] = rows[i].name;
        row[1] = rows[i].value;
    }
    if (t.count > 0)
        text_add(out, "\ntime, which dispatch estimates: of the main loop, in a thread block\n");
    print_table(out, &t);
}

static const char *dimensions(arena *a, const char *const dimension[3])
{
    return arena_format(a, "%s x %s x %s", dimension[0] ? dimension[0] : "1",
                        dimension[1] ? dimension[1] : "1", dimension[2] ? dimension[2] : "1");
}

static void describe_launch(text *out, const kiln_family *f)
{
    const char *const rows[][2] = {
        {"thread blocks", dimensions(out->arena, f->grid)},
        {"shared bytes", f->shared_bytes},
        {"numbers of a variant", f->numbers},
        {"nothing to do when", f->empty},
        {"bytes read", f->cost.bytes_read},
        {"bytes written", f->cost.bytes_written},
        {"elements", f->cost.elements},
    };
    table t = {.arena = out->arena, .columns = 2, .expressions = 1u << 1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!rows[i][1])
            continue;
        const char **row = add_row(&t);
        row[0] = rows[i][0];
        row[1] = rows[i][1];
    }
    text_add(out, "\nlaunch and cost\n");
    print_table(out, &t);
}

static void describe_constraints(text *out, const kiln_family *family)
{
    table t = {.arena = out->arena, .columns = 1};
    const constraints all = constraints_of(out->arena, family);
    for (size_t i = 0; i < all.count; i++)
        add_row(&t)[0] = all.items[i].text;
    text_add(out, t.count > 0 ? "\nrules of a combination\n" : "");
    print_table(out, &t);
}

/* Prints a text under a title, unless it is null. */
static void describe_prose(text *out, const char *title, const char *what)
{
    wrapper w = {.out = out};
    if (!what)
        return;
    wrap_prose(&w, title);
    wrap_move(&w, strlen(title));
    wrap_prose(&w, what);
    text_add(out, "\n");
}

static void describe_bounds(text *out, const kiln_bound *bounds)
{
    table t = {.arena = out->arena, .columns = 2};
    for (const kiln_bound *bound = bounds; bound && bound->where; bound++) {
        const char **row = add_row(&t);
        row[0] = bound->where;
        row[1] = bound->text;
    }
    print_table(out, &t);
}

void describe_family(text *out, const kiln_family *family, bool in_full)
{
    text_printf(out, "%s: %s\nsource: %s\n", family->name, family->summary, family->source);
    describe_prose(out, "accuracy: ", family->accuracy);
    describe_bounds(out, family->bounds);
    describe_prose(out, "NaN and infinity: ", family->nonfinite);
    text_printf(out, "needs sm_%u\n", family->min_sm);
    describe_params(out, family);
    describe_args(out, family);
    describe_maps(out, family);
    describe_calls(out, family);
    describe_rules(out, "rules of a launch", family, family->rules, in_full);
    describe_constraints(out, family);
    if (!in_full) {
        text_add(out, "\n--long: the rules' conditions, launch, cost and time\n");
        return;
    }
    describe_launch(out, family);
    describe_time(out, family);
}
