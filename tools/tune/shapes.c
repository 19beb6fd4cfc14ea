/* Chooses what to measure. */
#include "shapes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "yaml.h"

enum { MOST_VALUES = 256, MOST_SHAPES = 100000, NAMES_BYTES = 2048 };
#define LARGEST_SIZE (UINT64_C(1) << 40) /* the largest size tried for a size that the shape does not name */

/* ---- families ------------------------------------------------------------------------------------------------------ */

static const manifest_variant *first_of(const manifest *m, const char *family)
{
    for (size_t i = 0; i < m->variant_count; i++)
        if (strcmp(m->variants[i].family, family) == 0)
            return &m->variants[i];
    return NULL;
}

static bool is_size(const manifest_arg *arg)
{
    return !manifest_is_pointer(arg) && arg->type != ELEMENT_NONE && !element_is_float(arg->type);
}

static bool is_size_of(const manifest *m, const char *family, const char *name)
{
    for (size_t i = 0; i < m->variant_count; i++) {
        const manifest_variant *v = &m->variants[i];
        const manifest_arg *arg = strcmp(v->family, family) == 0 ? manifest_find_arg(v, name) : NULL;
        if (arg && is_size(arg))
            return true;
    }
    return false;
}

static void add_name(char *names, const char *name)
{
    const size_t length = strlen(names);
    snprintf(names + length, NAMES_BYTES - length, "%s%s", length ? ", " : "", name);
}

static const char *family_names(const manifest *m, char names[NAMES_BYTES])
{
    names[0] = '\0';
    for (size_t i = 0; i < m->variant_count; i++)
        if (first_of(m, m->variants[i].family) == &m->variants[i])
            add_name(names, m->variants[i].family);
    return names;
}

static const char *size_names(const manifest_variant *v, char names[NAMES_BYTES])
{
    names[0] = '\0';
    for (size_t i = 0; i < v->arg_count; i++)
        if (is_size(&v->args[i]))
            add_name(names, v->args[i].name);
    return names;
}

/* Returns whether the launch's grid or the cost depends on the size. */
static bool is_counted(const manifest_variant *v, const char *name)
{
    const formula *const all[] = {v->grid[0], v->grid[1], v->grid[2], v->bytes_read, v->bytes_written};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] && formula_mentions(all[i], name))
            return true;
    return false;
}

/* Returns whether a shape must name the size: if the grid, the cost, or the size of an input or an output depends
 * on it. Arguments that are read and written, such as counters, do not count: they belong to the workspace. */
static bool is_asked_for(const manifest_variant *v, const char *name)
{
    for (size_t i = 0; i < v->arg_count; i++) {
        const manifest_arg *arg = &v->args[i];
        for (size_t k = 0; k < arg->dimension_count; k++)
            if ((arg->direction == DIRECTION_IN || arg->direction == DIRECTION_OUT) &&
                formula_mentions(arg->shape[k], name))
                return true;
    }
    return is_counted(v, name);
}

/* Returns whether a call can choose between the two. */
static bool serve_same_calls(const manifest_variant *v, const manifest_variant *other)
{
    bool are_same = strcmp(other->family, v->family) == 0;
    for (size_t k = 0; are_same && k < v->param_count; k++)
        are_same = !v->params[k].is_contract || strcmp(v->params[k].value, other->params[k].value) == 0;
    return are_same;
}

bool shape_has_rival(const manifest *m, const manifest_variant *v)
{
    for (size_t i = 0; i < m->variant_count; i++)
        if (&m->variants[i] != v && serve_same_calls(v, &m->variants[i]))
            return true;
    return false;
}

/* Returns whether the grid or the cost of the variant, or of a rival, depends on the size. */
static bool is_counted_by_some(const manifest *m, const manifest_variant *v, const char *name)
{
    for (size_t i = 0; i < m->variant_count; i++)
        if (is_counted(&m->variants[i], name) && serve_same_calls(v, &m->variants[i]))
            return true;
    return false;
}

/* ---- the file ------------------------------------------------------------------------------------------------------ */

typedef struct shape_reader {
    pool *memory;
    const manifest *manifest;
    shape_list *out;
} shape_reader;

typedef struct size_values {
    const char *name;
    uint64_t *numbers;
    size_t count;
    formula *formula;
} size_values;

static void add_number(size_values *out, uint64_t number)
{
    for (size_t i = 0; i < out->count; i++)
        if (out->numbers[i] == number)
            return;
    if (out->count < MOST_VALUES)
        out->numbers[out->count++] = number;
}

static int compare_numbers(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* Adds t and t + 1 for each number t that a tuning parameter can have: t rows fill a tile, one more begins the
 * next. */
static void add_tile_edges(const manifest_variant *v, uint64_t from, uint64_t to, size_values *out)
{
    for (size_t i = 0; i < v->param_count; i++) {
        const char *words = v->params[i].is_contract ? NULL : v->params[i].words;
        for (; words && *words; words += strcspn(words, " "), words += strspn(words, " ")) {
            const uint64_t edge = strtoull(words, NULL, 10);
            if (edge >= from && edge <= to)
                add_number(out, edge);
            if (edge > 0 && edge + 1 >= from && edge + 1 <= to)
                add_number(out, edge + 1);
        }
    }
}

/* Reads {from: 1, to: 512}. */
static bool read_range(const manifest_variant *v, const yaml_node *map, size_values *out)
{
    unsigned long long from, to;
    const yaml_node *first = yaml_member(map, "from"), *last = yaml_member(map, "to");
    if (!yaml_check_keys(map, "from to", "a range of sizes"))
        return false;
    if (!first || !last || !yaml_number(first, &from) || !yaml_number(last, &to) || from > to) {
        yaml_complain(
            map, "expected {from: NUMBER, to: NUMBER} for '%s', the lower number first, found something else",
            map->key);
        return false;
    }
    add_number(out, from);
    for (uint64_t power = 1; power <= to; power *= 2)
        if (power >= from)
            add_number(out, power);
    add_tile_edges(v, from, to, out);
    add_number(out, to);
    qsort(out->numbers, out->count, sizeof *out->numbers, compare_numbers);
    return true;
}

static bool read_values(const shape_reader *r, const manifest_variant *v, const yaml_node *node,
                        size_values *out)
{
    char why[256];
    unsigned long long number;
    out->name = node->key;
    if (node->kind == YAML_SCALAR && !yaml_number(node, &number)) {
        out->count = 1;
        out->formula = formula_parse(r->memory, node->text, why, sizeof why);
        if (!out->formula)
            yaml_complain(node,
                          "expected a number, a list of numbers or an expression for '%s', found '%s': %s",
                          node->key, node->text, why);
        return out->formula;
    }
    const bool is_list = node->kind == YAML_LIST;
    out->numbers = pool_allocate(r->memory, MOST_VALUES * sizeof *out->numbers);
    if (node->kind == YAML_MAP)
        return read_range(v, node, out);
    for (const yaml_node *n = is_list ? node->first : node; n; n = is_list ? n->next : NULL) {
        if (out->count == MOST_VALUES) {
            yaml_complain(node, "expected at most %d numbers, found more", MOST_VALUES);
            return false;
        }
        if (!yaml_number(n, &number)) {
            yaml_complain(n, "expected a number in the list for '%s', found %s%s%s", node->key,
                          n->kind == YAML_SCALAR ? "'" : "",
                          n->kind == YAML_SCALAR ? n->text : "more than that",
                          n->kind == YAML_SCALAR ? "'" : "");
            return false;
        }
        out->numbers[out->count++] = number;
    }
    return true;
}

static void add_shape(shape_reader *r, const tune_shape *s)
{
    r->out->items = pool_grow(r->memory, r->out->items, r->out->count, sizeof *s);
    r->out->items[r->out->count++] = *s;
}

/* Adds every combination; the last size changes fastest. */
static void add_combinations(shape_reader *r, const tune_shape *like, const size_values *values,
                             size_t combinations)
{
    for (size_t number = 0; number < combinations; number++) {
        tune_shape s = *like;
        size_t left = number;
        s.sizes = pool_allocate(r->memory, (s.size_count + 1) * sizeof *s.sizes);
        for (size_t i = s.size_count; i-- > 0; left /= values[i].count)
            s.sizes[i] =
                (manifest_size){.name = values[i].name,
                                .number = values[i].formula ? 0 : values[i].numbers[left % values[i].count],
                                .formula = values[i].formula};
        add_shape(r, &s);
    }
}

static bool is_stride(const manifest_variant *v, const char *name)
{
    for (size_t i = 0; i < v->stride_count; i++)
        if (strcmp(v->strides[i].arg, name) == 0)
            return true;
    return false;
}

/* Returns a size that the variant needs and the mapping does not name; null: there is none. */
static const char *missing_size(const manifest_variant *v, const yaml_node *map)
{
    for (size_t i = 0; i < v->arg_count; i++) {
        const manifest_arg *arg = &v->args[i];
        if (is_size(arg) && is_asked_for(v, arg->name) && !is_stride(v, arg->name) &&
            !yaml_member(map, arg->name))
            return arg->name;
    }
    return NULL;
}

/* Returns whether the mapping names all sizes of some variant. */
static bool is_enough(const shape_reader *r, const char *family, const yaml_node *map)
{
    const char *missing = NULL;
    for (size_t i = 0; i < r->manifest->variant_count; i++) {
        const manifest_variant *v = &r->manifest->variants[i];
        const char *of_this = strcmp(v->family, family) == 0 ? missing_size(v, map) : "";
        if (!of_this)
            return true;
        missing = missing ? missing : *of_this ? of_this : NULL;
    }
    yaml_complain(map, "expected '%s: NUMBER' in the shape of %s, found no such key", missing, family);
    return false;
}

static bool read_item(shape_reader *r, const yaml_node *item)
{
    char names[NAMES_BYTES];
    if (!yaml_is_kind(item, YAML_MAP, "a mapping with 'family' and 'shape'") ||
        !yaml_check_keys(item, "family shape nanoseconds", "a shape"))
        return false;
    const yaml_node *family = yaml_member(item, "family"), *map = yaml_member(item, "shape");
    if (!family || !map) {
        yaml_complain(item, "expected '%s', found no such key", family ? "shape: {n: 4096}" : "family: NAME");
        return false;
    }
    if (!yaml_is_kind(family, YAML_SCALAR, "a family") ||
        !yaml_is_kind(map, YAML_MAP, "a mapping from sizes to values"))
        return false;
    const manifest_variant *v = first_of(r->manifest, family->text);
    if (!v) {
        yaml_complain(family, "expected a family of the bundle, found '%s'; there are %s", family->text,
                      family_names(r->manifest, names));
        return false;
    }
    size_values values[MAX_ARGS] = {{0}};
    tune_shape like = {.family = v->family};
    size_t combinations = 1;
    bool ok = true;
    for (const yaml_node *node = map->first; node && like.size_count < MAX_ARGS; node = node->next) {
        size_values *these = &values[like.size_count++];
        if (!is_size_of(r->manifest, v->family, node->key)) {
            yaml_complain(node, "expected an integer argument of %s, found '%s'; there are %s", v->family,
                          node->key, size_names(v, names));
            ok = false;
        } else if (!read_values(r, v, node, these)) {
            ok = false;
        } else if ((combinations *= these->count) > MOST_SHAPES) {
            yaml_complain(map, "expected at most %d shapes, found more", MOST_SHAPES);
            return false;
        }
    }
    ok = ok && is_enough(r, v->family, map);
    snprintf(names, sizeof names, "%s:%d", item->file, item->line);
    like.place = pool_copy(r->memory, names, strlen(names));
    if (ok)
        add_combinations(r, &like, values, combinations);
    return ok;
}

bool shapes_read(pool *p, const char *path, const manifest *m, shape_list *out)
{
    shape_reader r = {.memory = p, .manifest = m, .out = out};
    const yaml_node *root = yaml_read(p, path, NULL);
    if (!root)
        return false;
    /* A tuned file is also a list of shapes: its times are measured again. */
    const yaml_node *list =
        root->kind == YAML_MAP && yaml_member(root, "times") ? yaml_member(root, "times") : root;
    if (!yaml_is_kind(list, YAML_LIST, "a list of shapes"))
        return false;
    bool ok = true;
    for (const yaml_node *item = list->first; item; item = item->next)
        ok = read_item(&r, item) && ok;
    return ok;
}

void shapes_of_manifest(pool *p, const manifest *m, shape_list *out)
{
    out->items = pool_allocate(p, (m->shape_count + 1) * sizeof *out->items);
    for (size_t i = 0; i < m->shape_count; i++) {
        const manifest_shape *item = &m->shapes[i];
        out->items[out->count++] = (tune_shape){item->family, m->bundle, item->sizes, item->size_count, item};
    }
}

bool shape_is_for(const tune_shape *s, const manifest_variant *v)
{
    return s->item ? manifest_is_for(s->item, v) : strcmp(s->family, v->family) == 0;
}

/* ---- a line -------------------------------------------------------------------------------------------------------- */

/* Parses "m=1" or "stride=m*n", of this length. */
static bool parse_size(pool *p, const char *word, size_t length, manifest_size *out, char *error,
                       size_t error_bytes)
{
    char why[256], *end;
    const size_t name_length = strcspn(word, "= ");
    if (name_length == 0 || name_length + 1 >= length) {
        snprintf(error, error_bytes, "expected SIZE=VALUE, found '%.*s'", (int)length, word);
        return false;
    }
    out->name = pool_copy(p, word, name_length);
    const char *value = pool_copy(p, word + name_length + 1, length - name_length - 1);
    errno = 0;
    if (*value >= '0' && *value <= '9') {
        out->number = strtoull(value, &end, 10);
        if (!*end && errno == 0)
            return true;
    }
    out->formula = formula_parse(p, value, why, sizeof why);
    if (!out->formula)
        snprintf(error, error_bytes, "expected a number or an expression for '%s', found '%s': %s", out->name,
                 value, why);
    return out->formula;
}

static const manifest_size *find_size(const tune_shape *s, const char *name);

bool shape_parse(pool *p, const manifest *m, const char *family, const char *words, tune_shape *out,
                 char *error, size_t error_bytes)
{
    *out = (tune_shape){.family = family, .sizes = pool_allocate(p, MAX_ARGS * sizeof *out->sizes)};
    for (words += strspn(words, " "); *words; words += strspn(words, " ")) {
        const size_t length = strcspn(words, " ");
        manifest_size size = {0};
        if (!parse_size(p, words, length, &size, error, error_bytes))
            return false;
        const char *mistake = !is_size_of(m, family, size.name) ? "no variant of the family has a size"
                              : find_size(out, size.name)       ? "the shape repeats"
                              : out->size_count == MAX_ARGS     ? "there are too many sizes, with"
                                                                : NULL;
        if (mistake) {
            snprintf(error, error_bytes, "%s '%s'", mistake, size.name);
            return false;
        }
        out->sizes[out->size_count++] = size;
        words += length;
    }
    return true;
}

/* ---- a shape for a variant ----------------------------------------------------------------------------------------- */

/* Returns how many broken rules mention the size. Rules that cannot be evaluated count. */
static size_t broken_rules(const problem *p, const char *name)
{
    size_t broken = 0;
    for (size_t i = 0; i < p->variant->rule_count; i++) {
        uint64_t holds = 0;
        const formula *condition = p->variant->rules[i].condition;
        if (formula_mentions(condition, name))
            broken += !problem_evaluate(p, condition, &holds, NULL, 0) || !holds;
    }
    return broken;
}

/* Sets the smallest value that breaks the fewest rules, by doubling and then bisecting: rules say "at least". */
static void set_least(problem *p, argument *a)
{
    const char *name = a->about->name;
    uint64_t high = 1, low = 0;
    a->integer = 0;
    const size_t at_zero = broken_rules(p, name);
    if (at_zero == 0)
        return;
    for (a->integer = high; broken_rules(p, name) > 0 && high < LARGEST_SIZE; a->integer = high *= 2)
        low = high;
    if (broken_rules(p, name) > 0) {
        a->integer = 0;
        return;
    }
    while (high - low > 1) {
        a->integer = low + (high - low) / 2;
        if (broken_rules(p, name) > 0)
            low = a->integer;
        else
            high = a->integer;
    }
    a->integer = high;
}

static const manifest_size *find_size(const tune_shape *s, const char *name)
{
    for (size_t i = 0; i < s->size_count; i++)
        if (strcmp(s->sizes[i].name, name) == 0)
            return &s->sizes[i];
    return NULL;
}

/* Sets named sizes: numbers first, so that expressions see all of them. */
static bool set_named(const tune_shape *s, problem *p, char *error, size_t error_bytes)
{
    char why[200];
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < s->size_count; i++) {
            const manifest_size *size = &s->sizes[i];
            argument *a = problem_find(p, size->name);
            if (!a || (size->formula != NULL) != (turn == 1))
                continue;
            a->integer = size->number;
            if (size->formula && !problem_evaluate(p, size->formula, &a->integer, why, sizeof why)) {
                snprintf(error, error_bytes, "%s: %s", size->name, why);
                return false;
            }
            if (element_bytes(a->about->type) < sizeof(uint64_t) && a->integer > UINT32_MAX) {
                snprintf(error, error_bytes, "%s is a 32-bit number", size->name);
                return false;
            }
        }
    return true;
}

/* Sets a stride that the shape does not name to that of arrays without gaps; false: the argument is not a stride. */
static bool set_dense(problem *p, argument *a)
{
    for (size_t i = 0; i < p->variant->stride_count; i++) {
        const manifest_stride *stride = &p->variant->strides[i];
        uint64_t holds = 1;
        if (strcmp(stride->arg, a->about->name) == 0 &&
            (!stride->when || problem_evaluate(p, stride->when, &holds, NULL, 0)) && holds &&
            problem_evaluate(p, stride->value, &a->integer, NULL, 0))
            return true;
    }
    return false;
}

/* Leaves out optional inputs: their lengths and offsets would be those of a smaller problem. */
static void leave_out_optional_inputs(problem *p)
{
    for (size_t i = 0; i < p->arg_count; i++)
        p->args[i].is_null = p->args[i].about->direction == DIRECTION_OPTIONAL_IN;
}

static bool fits_shared_memory(const problem *p, char *error, size_t error_bytes)
{
    uint64_t bytes = 0;
    const manifest_variant *v = p->variant;
    if (v->shared_bytes && !problem_evaluate(p, v->shared_bytes, &bytes, error, error_bytes))
        return false;
    if (bytes + v->static_shared_bytes <= p->device->max_shared_bytes)
        return true;
    snprintf(error, error_bytes, "the device has less shared memory than this needs");
    return false;
}

shape_fit shape_apply(const tune_shape *s, problem *p, char *error, size_t error_bytes)
{
    const manifest_rule *broken = NULL;
    if (!set_named(s, p, error, error_bytes))
        return SHAPE_WRONG;
    leave_out_optional_inputs(p);
    for (size_t i = 0; i < p->arg_count; i++) {
        argument *a = &p->args[i];
        if (!problem_is_size(a) || find_size(s, a->about->name) || set_dense(p, a))
            continue;
        if (!s->item && is_asked_for(p->variant, a->about->name)) {
            snprintf(error, error_bytes, "the shape does not give %s", a->about->name);
            return SHAPE_INCOMPLETE;
        }
        set_least(p, a);
    }
    switch (problem_measure(p, &broken, error, error_bytes)) {
    case PROBLEM_LEGAL:
        return fits_shared_memory(p, error, error_bytes) ? SHAPE_FITS : SHAPE_RULED_OUT;
    case PROBLEM_ILLEGAL:
        snprintf(error, error_bytes, "%s", broken->text);
        return SHAPE_RULED_OUT;
    case PROBLEM_EMPTY:
        snprintf(error, error_bytes, "there is nothing to launch");
        return SHAPE_WRONG;
    case PROBLEM_BROKEN:
        break;
    }
    return SHAPE_WRONG;
}

/* Computes a size for the problem's variant, or the value it would have if the variant had it. */
static bool value_of(const manifest_size *size, problem *p, uint64_t *value)
{
    const argument *a = problem_find(p, size->name);
    *value = a ? a->integer : size->number;
    return a || !size->formula || problem_evaluate(p, size->formula, value, NULL, 0);
}

void shape_describe(const tune_shape *s, const manifest *m, problem *p, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < s->size_count && used < bytes; i++) {
        const manifest_size *size = &s->sizes[i];
        uint64_t value;
        const bool is_named =
            !size->is_usual && (!size->formula || is_counted_by_some(m, p->variant, size->name));
        if (is_named && value_of(size, p, &value))
            used += (size_t)snprintf(text + used, bytes - used, "%s%s: %" PRIu64, used ? ", " : "",
                                     size->name, value);
    }
}

/* Prints each size that some variant of the family needs, once. */
static void print_sizes(const manifest *m, const char *family)
{
    enum { COLUMNS = 110 };
    char seen[NAMES_BYTES] = ",";
    int column = printf("  shape: {");
    const char *gap = "";
    for (size_t i = 0; i < m->variant_count; i++) {
        const manifest_variant *v = &m->variants[i];
        for (size_t k = 0; strcmp(v->family, family) == 0 && k < v->arg_count; k++) {
            char name[128];
            snprintf(name, sizeof name, ",%s,", v->args[k].name);
            if (!is_size(&v->args[k]) || !is_asked_for(v, v->args[k].name) || is_stride(v, v->args[k].name) ||
                strstr(seen, name))
                continue;
            snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s", name + 1);
            if (column > COLUMNS) {
                column = printf(",\n          ") - 2;
                gap = "";
            }
            column += printf("%s%s: 1", gap, v->args[k].name);
            gap = ", ";
        }
    }
    fputs("}\n", stdout);
}

static bool has_choice(const manifest *m, const char *family)
{
    for (size_t i = 0; i < m->variant_count; i++)
        if (strcmp(m->variants[i].family, family) == 0 && shape_has_rival(m, &m->variants[i]))
            return true;
    return false;
}

void shapes_print_template(const manifest *m)
{
    fputs(
        "# Shapes to measure, instead of those of the configuration. A value is a number; a list of numbers, each of\n"
        "# which makes a shape; a range, {from: 1, to: 512}; or an expression over the other sizes and the parameters of\n"
        "# a variant, such as head_dim * q_heads.\n",
        stdout);
    for (size_t i = 0; i < m->variant_count; i++) {
        const char *family = m->variants[i].family;
        if (first_of(m, family) != &m->variants[i])
            continue;
        if (!has_choice(m, family)) {
            printf("# %s: no variants to choose from\n", family);
            continue;
        }
        printf("- family: %s\n", family);
        print_sizes(m, family);
    }
}
