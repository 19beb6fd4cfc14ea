/* kernels: items with PTX files: the files, and the configuration of their entries. */
#include <stddef.h>
#include <string.h>

#include "config_reader.h"
#include "external/external.h"
#include "external/line_info.h"
#include "support/files.h"
#include "support/messages.h"
#include "support/quote.h"
#include "support/words.h"
#include "target/target.h"

/* ---- files ------------------------------------------------------------------------------------------------------- */

static ptx_file *read_file(reader *r, const char *path, const char *asked, place at)
{
    ptx_file *file = ptx_file_read(r->arena, path, asked, at, r->d);
    if (file)
        reader_add_input(r, path);
    return file;
}

static ptx_file *read_listed_file(reader *r, const yaml_node *node)
{
    if (!reader_is_path(r, node, "ptx", "the name of a PTX file"))
        return NULL;
    return read_file(r, reader_path(r, node->text), node->text, node->at);
}

/* Keeps files in the order of their targets. */
static void insert_file(reader *r, external_module *m, ptx_file *file, size_t *capacity)
{
    arena_push(r->arena, (void **)&m->files, &m->file_count, capacity, sizeof file);
    size_t i = m->file_count - 1;
    for (; i > 0 && target_compare(file->made_for, m->files[i - 1]->made_for) < 0; i--)
        m->files[i] = m->files[i - 1];
    m->files[i] = file;
}

/* The modules that an item, or a variant, embeds. */
typedef struct module_list {
    external_module *items;
    size_t count, capacity;
} module_list;

static bool check_targets(reader *r, const external_module *const *modules, size_t count, place at)
{
    return external_check_targets(r->arena, modules, count, r->plan->targets, r->plan->target_count, at,
                                  r->d);
}

static external_module *add_module(const reader *r, module_list *list)
{
    return arena_push(r->arena, (void **)&list->items, &list->count, &list->capacity, sizeof *list->items);
}

/* The file of an item, or its list of files for different targets. */
static bool read_module(reader *r, const yaml_node *node, module_list *list)
{
    const bool is_list = node->kind == YAML_LIST && !node->refused;
    if (is_list && !reader_is_kind(r, node, YAML_LIST, "ptx", "a PTX file or a list of them"))
        return false;
    external_module *m = add_module(r, list);
    size_t capacity = 0;
    bool ok = true;
    for (const yaml_node *n = is_list ? node->first : node; n; n = is_list ? n->next : NULL) {
        ptx_file *file = read_listed_file(r, n);
        ok = ok && file;
        if (file)
            insert_file(r, m, file, &capacity);
    }
    return ok && external_check_module(r->arena, m, node->at, r->d);
}

/* "NAME=a,b": the module of files a and b. The bundle's text about a file does not depend on its folder. */
static bool read_given_module(reader *r, const char *name, const char *files, place at, module_list *list)
{
    external_module *m = add_module(r, list);
    size_t capacity = 0;
    bool ok = true;
    for (const char *w = files, *end = files; *w; w = end + (*end == ',')) {
        end = w + strcspn(w, ",");
        const char *path = arena_string(r->arena, w, (size_t)(end - w)), *slash = strrchr(path, '/');
        const char *file_name = file_is_stream(path) ? "-" : slash ? slash + 1 : path;
        ptx_file *file = read_file(r, path, arena_format(r->arena, "%s/%s", name, file_name), at);
        ok = ok && file;
        if (file)
            insert_file(r, m, file, &capacity);
    }
    return ok && external_check_module(r->arena, m, at, r->d);
}

/* The modules of a --ptx name, or of the files that an item lists. False after a diagnostic. */
static bool read_modules(reader *r, const yaml_node *node, module_list *list)
{
    bool is_given = false, ok = true;
    for (size_t i = 0; node->kind == YAML_SCALAR && i < r->options->ptx_count; i++) {
        const char *given = r->options->ptx[i];
        const size_t length = strcspn(given, "=");
        if (strncmp(given, node->text, length) != 0 || node->text[length])
            continue;
        is_given = r->is_ptx_used[i] = true;
        ok = read_given_module(r, node->text, given + length + 1, node->at, list) && ok;
    }
    if (!is_given)
        return read_module(r, node, list);
    *(const char **)arena_push(r->arena, (void **)&r->plan->ptx_names, &r->plan->ptx_name_count,
                               &r->plan->ptx_name_capacity, sizeof node->text) = node->text;
    return ok;
}

void reader_check_ptx_names(const reader *r)
{
    for (size_t i = 0; i < r->options->ptx_count; i++)
        if (!r->is_ptx_used[i])
            diagnose(r->d, (place){.file = "--ptx (PTX in CMake)"}, message_ptx_unused,
                     quote_text(r->arena, arena_string(r->arena, r->options->ptx[i],
                                                       strcspn(r->options->ptx[i], "="))));
}

/* ---- the description of an entry ------------------------------------------------------------------------------------ */

static bool read_text(const reader *r, const yaml_node *node, const char *key, const char *expected,
                      external_text *out)
{
    *out = (external_text){node->text, node->at};
    return reader_is_kind(r, node, YAML_SCALAR, key, expected);
}

/* Reads up to three elements, or one value as the first. */
static bool read_three(const reader *r, const yaml_node *node, const char *key, const char *expected,
                       external_text out[3])
{
    memset(out, 0, 3 * sizeof *out);
    if (node->kind != YAML_LIST || node->refused)
        return read_text(r, node, key, expected, &out[0]);
    size_t count = 0;
    bool ok = reader_is_kind(r, node, YAML_LIST, key, expected);
    for (const yaml_node *n = node->first; n && ok; n = n->next, count++) {
        if (count == 3)
            diagnose(r->d, n->at, message_entry_dimensions, key);
        ok = count < 3 && read_text(r, n, key, expected, &out[count]);
    }
    return ok;
}

static const struct {
    const char *key, *expected;
    size_t offset; /* of the text, or of the first of three, in external_launch */
    bool is_three;
} launch_members[] = {
    {"grid", "a number of thread blocks", offsetof(external_launch, grid), true},
    {"block", "a number of threads", offsetof(external_launch, block), true},
    {"shared_bytes", "a number of bytes", offsetof(external_launch, shared_bytes), false},
    {"max_shared_bytes", "a number of bytes", offsetof(external_launch, max_shared_bytes), false},
};

/* Missing keys leave `out` unchanged. */
static bool read_launch(const reader *r, const yaml_node *map, external_launch *out)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof launch_members / sizeof launch_members[0]; i++) {
        const char *key = launch_members[i].key, *expected = launch_members[i].expected;
        const yaml_node *node = yaml_member(map, key);
        external_text *member = (external_text *)(void *)((char *)out + launch_members[i].offset);
        if (!node)
            continue;
        if (member == out->block)
            out->block_at = node->at;
        ok = (launch_members[i].is_three ? read_three(r, node, key, expected, member)
                                         : read_text(r, node, key, expected, member)) &&
             ok;
    }
    return ok;
}

/* Reads a list of names, or a mapping from names to descriptions. */
static bool read_args(const reader *r, const yaml_node *node, external_request *q)
{
    q->has_args = true;
    q->args_at = node->at;
    const bool is_map = node->kind == YAML_MAP && !node->refused;
    q->has_descriptions = is_map;
    bool ok = is_map || reader_is_kind(r, node, YAML_LIST, "args", "a list of names");
    for (const yaml_node *n = ok ? node->first : NULL; n; n = n->next) {
        external_arg *arg =
            arena_push(r->arena, (void **)&q->args, &q->arg_count, &q->arg_capacity, sizeof *arg);
        *arg = (external_arg){.name = {n->key, n->key_at}};
        if (!is_map)
            ok = read_text(r, n, "args", "a name", &arg->name) && ok;
        else if (!yaml_is_null(n))
            ok = read_text(r, n, n->key, "'in f32[n]', a type or nothing", &arg->about) && ok;
    }
    return ok;
}

static bool read_rules(const reader *r, const yaml_node *node, external_request *q)
{
    bool ok = reader_is_kind(r, node, YAML_LIST, "rules", "a list of conditions");
    for (const yaml_node *n = ok ? node->first : NULL; n; n = n->next) {
        external_text *rule =
            arena_push(r->arena, (void **)&q->rules, &q->rule_count, &q->rule_capacity, sizeof *rule);
        ok = read_text(r, n, "rules", "a condition", rule) && ok;
    }
    return ok;
}

static bool read_name(const reader *r, const yaml_node *node, external_request *q)
{
    return read_text(r, node, "name", "a name", &q->name);
}

static const char entry_keys[] = "name args rules grid block shared_bytes max_shared_bytes";
static const struct {
    const char *key;
    bool (*read)(const reader *, const yaml_node *, external_request *);
} entry_readers[] = {{"name", read_name}, {"args", read_args}, {"rules", read_rules}};

/* Reads a kernel's keys; `launch` gets the defaults of its variants. */
static bool read_kernel(const reader *r, const yaml_node *map, external_request *q, external_launch *launch)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof entry_readers / sizeof entry_readers[0]; i++) {
        const yaml_node *value = yaml_member(map, entry_readers[i].key);
        if (value)
            ok = entry_readers[i].read(r, value, q) && ok;
    }
    return read_launch(r, map, launch) && ok;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static const char *entry_names(const reader *r, const module_list *list)
{
    text names = text_new(r->arena);
    for (size_t m = 0; m < list->count; m++)
        for (size_t i = 0; i < list->items[m].files[0]->entry_count; i++)
            text_printf(&names, "%s%s", names.length ? " " : "", list->items[m].files[0]->entries[i].name);
    return names.data;
}

/* False after a diagnostic. */
static bool find_entry(const reader *r, const module_list *list, const char *name, place at,
                       external_variant *out)
{
    for (size_t i = 0; i < list->count; i++) {
        out->module = &list->items[i];
        out->entry = ptx_file_find(out->module->files[0], name);
        if (out->entry)
            return true;
    }
    const char *names = diagnostics_show_more(r->d) ? entry_names(r, list) : "";
    diagnose(r->d, at, message_entry_unknown, list->items[0].files[0]->asked, quote_text(r->arena, name),
             suggest_text(r->arena, name, names));
    return false;
}

/* Entries of one file need their names to tell them apart: they share a line. */
static bool is_new(reader *r, const variant *v)
{
    const size_t other = names_add(r->arena, &r->family_names, v->family->name, r->plan->variant_count);
    if (other != NAME_NONE)
        diagnose(r->d, v->at, message_entry_twice, v->family->name, r->plan->variants[other]->symbol,
                 v->symbol);
    return other == NAME_NONE;
}

static void add_kernel(reader *r, const external_request *q)
{
    plan *p = r->plan;
    variant *all = external_make(r->arena, q, p->families, p->targets, p->target_count, r->d);
    if (!all || !is_new(r, &all[0]))
        return;
    for (size_t i = 0; i < q->variant_count; i++)
        *(variant **)arena_push(r->arena, (void **)&p->variants, &p->variant_count, &p->variant_capacity,
                                sizeof all) = &all[i];
}

static bool read_entry(const reader *r, const yaml_node *node, external_request *q, external_launch *launch)
{
    const bool is_known = reader_check_keys(r, node, entry_keys, "an entry");
    return read_kernel(r, node, q, launch) && is_known;
}

static void read_entries(reader *r, const yaml_node *node, const module_list *list)
{
    static const char expected[] = "a mapping from entries to what they are";
    if (!reader_is_kind(r, node, YAML_MAP, "entries", expected))
        return;
    if (!node->first)
        diagnose(r->d, node->at, message_wrong_kind, expected, "entries", "an empty one");
    for (const yaml_node *n = node->first; n; n = n->next) {
        external_variant only = {.at = n->key_at};
        external_request q = {.at = n->key_at, .variants = &only, .variant_count = 1};
        if (!find_entry(r, list, n->key, n->key_at, &only))
            continue;
        if (yaml_is_null(n) ||
            (reader_is_kind(r, n, YAML_MAP, n->key, "a mapping") && read_entry(r, n, &q, &only.launch)))
            add_kernel(r, &q);
    }
}

/* Takes all entries as the PTX has them. */
static void take_entries(reader *r, const module_list *list, place at)
{
    for (size_t m = 0; m < list->count; m++) {
        const ptx_file *file = list->items[m].files[0];
        for (size_t i = 0; i < file->entry_count; i++) {
            external_variant only = {.module = &list->items[m], .entry = &file->entries[i], .at = at};
            add_kernel(r, &(external_request){.at = at, .variants = &only, .variant_count = 1});
        }
    }
}

/* ---- variants of one kernel -------------------------------------------------------------------------------------- */

static bool same_files(const yaml_node *x, const yaml_node *y)
{
    if (x->kind == YAML_SCALAR || y->kind == YAML_SCALAR)
        return x->kind == y->kind && strcmp(x->text, y->text) == 0;
    for (x = x->first, y = y->first; x && y && same_files(x, y);)
        x = x->next, y = y->next;
    return !x && !y;
}

/* Variants that name the same files share a module. */
static bool read_variant_files(reader *r, const yaml_node *first, const yaml_node *node, module_list *lists,
                               size_t i)
{
    const yaml_node *files = yaml_member(node, "file"), *before = first;
    if (!files) {
        diagnose(r->d, node->at, message_missing_key, "file", "FILE.ptx");
        return false;
    }
    for (size_t k = 0; k < i; k++, before = before->next)
        if (yaml_member(before, "file") && same_files(yaml_member(before, "file"), files)) {
            lists[i] = lists[k];
            return lists[i].count > 0;
        }
    module_list list = {0};
    if (!read_modules(r, files, &list))
        return false;
    lists[i] = list;
    return true;
}

/* The only entry, or the named one. */
static bool read_variant_entry(const reader *r, const yaml_node *node, const module_list *list,
                               external_variant *out)
{
    const yaml_node *name = yaml_member(node, "entry");
    if (name)
        return reader_is_kind(r, name, YAML_SCALAR, "entry", "the name of an .entry") &&
               find_entry(r, list, name->text, name->at, out);
    out->module = &list->items[0];
    out->entry = &out->module->files[0]->entries[0];
    if (list->count == 1 && out->module->files[0]->entry_count == 1)
        return true;
    diagnose(r->d, node->at, message_missing_key, "entry", "NAME");
    return false;
}

/* Takes the parameters from the first variant's values. */
static bool read_params(const reader *r, const yaml_node *values, external_request *q)
{
    for (const yaml_node *n = values->first; n; n = n->next) {
        if (q->param_count == KILN_MAX_PARAMS) {
            diagnose(r->d, n->key_at, message_variant_params, KILN_MAX_PARAMS);
            return false;
        }
        q->params[q->param_count++] = (external_text){n->key, n->key_at};
    }
    return true;
}

static bool read_each_value(const reader *r, const yaml_node *values, const external_request *q,
                            external_text *out)
{
    text names = text_new(r->arena);
    for (size_t k = 0; k < q->param_count; k++)
        text_printf(&names, "%s%s", k > 0 ? " " : "", q->params[k].text);
    bool ok = reader_check_keys(r, values, names.data, "the first variant's values");
    for (size_t k = 0; k < q->param_count; k++) {
        const char *name = q->params[k].text;
        const yaml_node *value = yaml_member(values, name);
        if (!value)
            diagnose(r->d, values->at, message_missing_key, name, "VALUE");
        ok = value && read_text(r, value, name, "a value", &out[k]) && ok;
    }
    return ok;
}

/* A single variant needs no values. */
static bool read_values(const reader *r, const yaml_node *node, bool is_first, external_request *q,
                        external_variant *out)
{
    static const char expected[] = "a mapping from parameters to values";
    const yaml_node *values = yaml_member(node, "values");
    if (!values && is_first && !node->next)
        return true;
    if (!values) {
        diagnose(r->d, node->at, message_missing_key, "values", "{NAME: VALUE, ...}");
        return false;
    }
    if (!reader_is_kind(r, values, YAML_MAP, "values", expected))
        return false;
    if (is_first && !values->first)
        diagnose(r->d, values->at, message_wrong_kind, expected, "values", "an empty one");
    if (is_first && !read_params(r, values, q))
        return false;
    out->values = arena_alloc(r->arena, (q->param_count + 1) * sizeof *out->values);
    return q->param_count > 0 && /* else the first variant's are wrong, which is already reported */
           read_each_value(r, values, q, out->values);
}

static bool read_variant(reader *r, const yaml_node *list, const yaml_node *node, module_list *lists,
                         const external_launch *common, external_request *q)
{
    static const char variant_keys[] = "file entry values when grid block shared_bytes max_shared_bytes";
    const size_t i = q->variant_count;
    external_variant *v =
        arena_push(r->arena, (void **)&q->variants, &q->variant_count, &q->variant_capacity, sizeof *v);
    *v = (external_variant){.at = node->at, .launch = *common};
    const yaml_node *when = yaml_member(node, "when");
    bool ok = reader_check_keys(r, node, variant_keys, "a variant");
    ok =
        read_variant_files(r, list->first, node, lists, i) && read_variant_entry(r, node, &lists[i], v) && ok;
    ok = read_values(r, node, node == list->first, q, v) && ok;
    ok = (!when || read_text(r, when, "when", "a condition", &v->when)) && ok;
    return read_launch(r, node, &v->launch) && ok;
}

/* Checks that each variant serves a target, and together they serve all. */
static bool check_variants(reader *r, const yaml_node *item, const yaml_node *list, const external_request *q)
{
    const external_module *modules[EXTERNAL_VARIANTS_MOST];
    for (size_t i = 0; i < q->variant_count; i++) {
        const external_variant *v = &q->variants[i];
        modules[i] = v->module;
        if (q->name.text || strcmp(v->entry->name, q->variants[0].entry->name) == 0)
            continue;
        diagnose(r->d, item->at, message_missing_key, "name", "NAME");
        return false;
    }
    return check_targets(r, modules, q->variant_count, list->at);
}

static void read_module_members(reader *r, const yaml_node *item, module_list *lists, size_t count);

static void read_variants(reader *r, const yaml_node *item, const yaml_node *list)
{
    external_request q = {.at = item->at};
    external_launch common = {0};
    module_list lists[EXTERNAL_VARIANTS_MOST] = {{0}};
    const char *keys = arena_format(r->arena, "ptx license line_info %s", entry_keys);
    bool ok = reader_check_keys(r, item, keys, "an item with variants");
    ok = read_kernel(r, item, &q, &common) && ok;
    for (const yaml_node *n = list->first; n; n = n->next) {
        if (q.variant_count == EXTERNAL_VARIANTS_MOST) {
            diagnose(r->d, n->at, message_variants_many, EXTERNAL_VARIANTS_MOST);
            return;
        }
        ok = reader_is_kind(r, n, YAML_MAP, "ptx", "a variant") &&
             read_variant(r, list, n, lists, &common, &q) && ok;
    }
    read_module_members(r, item, lists, q.variant_count);
    if (ok && check_variants(r, item, list, &q))
        add_kernel(r, &q);
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

/* Whether to keep line information; false after a diagnostic, so that the warning does not name the key again. */
static bool keeps_line_info(const reader *r, const yaml_node *node)
{
    if (!node)
        return true;
    if (!reader_is_kind(r, node, YAML_SCALAR, "line_info", "true or false"))
        return false;
    if (!node->quoted && words_contain("true false", node->text))
        return strcmp(node->text, "true") == 0;
    diagnose(r->d, node->at, message_line_info, reader_quote(r, node), reader_suggest_boolean(r, node->text));
    return false;
}

static void read_line_info(const reader *r, bool is_kept, const external_module *m)
{
    for (size_t i = 0; i < m->file_count; i++) {
        place at = m->files[i]->debug_at;
        if (at.line > 0)
            warn(r->d, at, message_ptx_debug);
        const char *path = line_info_absolute_path(r->arena, m->files[i], &at);
        if (!is_kept)
            line_info_leave_out(r->arena, m->files[i]);
        else if (path)
            warn(r->d, at, message_ptx_absolute_path, quote_text(r->arena, path));
    }
}

/* Reads the keys that apply to all files of an item. A list may share another list's module. */
static void read_module_members(reader *r, const yaml_node *item, module_list *lists, size_t count)
{
    const yaml_node *license_node = yaml_member(item, "license");
    const char *license = license_node ? reader_license(r, license_node) : NULL;
    const bool is_kept = keeps_line_info(r, yaml_member(item, "line_info"));
    for (size_t i = 0; i < count; i++) {
        size_t first = 0;
        while (lists[first].items != lists[i].items)
            first++;
        for (size_t m = 0; first == i && m < lists[i].count; m++) {
            lists[i].items[m].license = license;
            read_line_info(r, is_kept, &lists[i].items[m]);
        }
    }
}

void reader_read_ptx(reader *r, const yaml_node *item)
{
    const yaml_node *entries = yaml_member(item, "entries"), *ptx = yaml_member(item, "ptx");
    module_list list = {0};
    if (ptx->kind == YAML_LIST && ptx->first && ptx->first->kind == YAML_MAP) {
        read_variants(r, item, ptx);
        return;
    }
    if (!reader_check_keys(r, item, "ptx license line_info entries", "an item with 'ptx'") ||
        !read_modules(r, ptx, &list))
        return;
    bool ok = true;
    for (size_t i = 0; i < list.count; i++)
        ok = check_targets(r, &(const external_module *){&list.items[i]}, 1, ptx->at) && ok;
    if (!ok)
        return;
    read_module_members(r, item, &list, 1);
    if (entries)
        read_entries(r, entries, &list);
    else
        take_entries(r, &list, item->at);
}
