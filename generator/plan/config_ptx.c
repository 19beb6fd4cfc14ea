/* kernels: items that name PTX files: which, and what the configuration adds to their entries. */
#include <stdlib.h>
#include <string.h>

#include "config_reader.h"
#include "external/external.h"
#include "external/line_info.h"
#include "support/messages.h"
#include "support/quote.h"
#include "target/target.h"

enum { LONGEST_COUNT = 6, LARGEST_COUNT = 999999 };

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Paths are relative to the configuration's folder. */
static const char *path_of(const reader *r, const char *asked)
{
    const char *slash = strrchr(r->plan->config_path, '/');
    if (!slash || asked[0] == '/')
        return asked;
    const size_t folder = (size_t)(slash - r->plan->config_path) + 1;
    return arena_format(r->arena, "%s%s", arena_string(r->arena, r->plan->config_path, folder), asked);
}

static ptx_file *read_file(reader *r, const char *path, const char *asked, place at)
{
    ptx_file *file = ptx_file_read(r->arena, path, asked, at, r->d);
    if (file)
        *(const char **)arena_push(r->arena, (void **)&r->plan->inputs, &r->plan->input_count,
                                   &r->plan->input_capacity, sizeof path) = path;
    return file;
}

static ptx_file *read_listed_file(reader *r, const yaml_node *node)
{
    if (!reader_is_kind(r, node, YAML_SCALAR, "ptx", "the name of a PTX file"))
        return NULL;
    return read_file(r, path_of(r, node->text), node->text, node->at);
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

/* What an item embeds. */
typedef struct module_list {
    external_module *items;
    size_t count, capacity;
} module_list;

static bool check_module(reader *r, const external_module *m, place at)
{
    return external_check_module(r->arena, m, r->plan->targets, r->plan->target_count, at, r->d);
}

/* The file of an item, or its list of files for different targets. */
static bool read_module(reader *r, const yaml_node *node, module_list *list)
{
    const bool is_list = node->kind == YAML_LIST && !node->refused;
    if (is_list && !reader_is_kind(r, node, YAML_LIST, "ptx", "a PTX file or a list of them"))
        return false;
    external_module *m =
        arena_push(r->arena, (void **)&list->items, &list->count, &list->capacity, sizeof *m);
    size_t capacity = 0;
    bool ok = true;
    for (const yaml_node *n = is_list ? node->first : node; n; n = is_list ? n->next : NULL) {
        ptx_file *file = read_listed_file(r, n);
        ok = ok && file;
        if (file)
            insert_file(r, m, file, &capacity);
    }
    return ok && check_module(r, m, node->at);
}

/* "NAME=a,b": the module of files a and b. What the bundle says of a file does not depend on the folder that it is in. */
static bool read_given_module(reader *r, const char *name, const char *files, place at, module_list *list)
{
    external_module *m =
        arena_push(r->arena, (void **)&list->items, &list->count, &list->capacity, sizeof *m);
    size_t capacity = 0;
    bool ok = true;
    for (const char *w = files, *end = files; *w; w = end + (*end == ',')) {
        end = w + strcspn(w, ",");
        const char *path = arena_string(r->arena, w, (size_t)(end - w)), *slash = strrchr(path, '/');
        ptx_file *file =
            read_file(r, path, arena_format(r->arena, "%s/%s", name, slash ? slash + 1 : path), at);
        ok = ok && file;
        if (file)
            insert_file(r, m, file, &capacity);
    }
    return ok && check_module(r, m, at);
}

/* The modules that --ptx gives a name, or the files that an item lists. False after a diagnostic. */
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
            diagnose(r->d, (place){"--ptx", 1, 1}, message_ptx_unused,
                     quote_text(r->arena, arena_string(r->arena, r->options->ptx[i],
                                                       strcspn(r->options->ptx[i], "="))));
}

/* ---- what is said of an entry ------------------------------------------------------------------------------------ */

static bool read_text(const reader *r, const yaml_node *node, const char *key, const char *expected,
                      external_text *out)
{
    *out = (external_text){node->text, node->at};
    return reader_is_kind(r, node, YAML_SCALAR, key, expected);
}

/* Up to three elements, or one value that is the first. */
static bool read_three(const reader *r, const yaml_node *node, const char *key, const char *expected,
                       external_text out[3])
{
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

/* 0 after a diagnostic. */
static uint32_t read_count(const reader *r, external_text t, const char *key)
{
    const size_t length = strlen(t.text);
    if (length > 0 && length <= LONGEST_COUNT && t.text[0] != '0' && strspn(t.text, "0123456789") == length)
        return (uint32_t)strtoul(t.text, NULL, 10);
    diagnose(r->d, t.at, message_entry_count, LARGEST_COUNT, key, quote_text(r->arena, t.text));
    return 0;
}

static bool read_block(const reader *r, const yaml_node *node, external_request *q)
{
    external_text words[3] = {{0}};
    q->block_at = node->at;
    bool ok = read_three(r, node, "block", "a number of threads", words);
    for (int i = 0; i < 3 && ok; i++) {
        q->block[i] = words[i].text ? read_count(r, words[i], "block") : 1;
        ok = q->block[i] > 0;
    }
    return ok;
}

/* A list of names, or a mapping from names to what they are. */
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

static bool read_grid(const reader *r, const yaml_node *node, external_request *q)
{
    return read_three(r, node, "grid", "a number of thread blocks", q->grid);
}

static bool read_shared(const reader *r, const yaml_node *node, external_request *q)
{
    return read_text(r, node, "shared_bytes", "a number of bytes", &q->shared_bytes);
}

static bool read_most_shared(const reader *r, const yaml_node *node, external_request *q)
{
    external_text bytes;
    if (!read_text(r, node, "max_shared_bytes", "a number of bytes", &bytes))
        return false;
    q->max_shared_at = bytes.at;
    q->max_shared_bytes = read_count(r, bytes, "max_shared_bytes");
    return q->max_shared_bytes > 0;
}

static const char entry_keys[] = "name args rules grid block shared_bytes max_shared_bytes";
static const struct {
    const char *key;
    bool (*read)(const reader *, const yaml_node *, external_request *);
} entry_readers[] = {
    {"name", read_name},
    {"args", read_args},
    {"rules", read_rules},
    {"grid", read_grid},
    {"block", read_block},
    {"shared_bytes", read_shared},
    {"max_shared_bytes", read_most_shared},
};

static bool read_entry(const reader *r, const yaml_node *node, external_request *q)
{
    bool ok = reader_check_keys(r, node, entry_keys, "an entry");
    for (size_t i = 0; i < sizeof entry_readers / sizeof entry_readers[0]; i++) {
        const yaml_node *value = yaml_member(node, entry_readers[i].key);
        if (value)
            ok = entry_readers[i].read(r, value, q) && ok;
    }
    return ok;
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

static const char *entry_names(const reader *r, const module_list *list)
{
    text names = text_new(r->arena);
    for (size_t m = 0; m < list->count; m++)
        for (size_t i = 0; i < list->items[m].files[0]->entry_count; i++)
            text_printf(&names, "%s%s", names.length ? " " : "", list->items[m].files[0]->entries[i].name);
    return names.data;
}

/* Two of one file are told apart better by their own names than by line. */
static bool is_new(const reader *r, const variant *v)
{
    const plan *p = r->plan;
    for (size_t i = 0; i < p->variant_count; i++) {
        const variant *other = p->variants[i];
        if (!other->external || strcmp(other->family->name, v->family->name) != 0)
            continue;
        diagnose(r->d, v->at, message_entry_twice, v->family->name, other->symbol, v->symbol);
        return false;
    }
    return true;
}

static void add_kernel(reader *r, const external_request *q)
{
    plan *p = r->plan;
    variant *v = external_make(r->arena, q, p->families, p->target_count, r->d);
    if (v && is_new(r, v))
        *(variant **)arena_push(r->arena, (void **)&p->variants, &p->variant_count, &r->variant_capacity,
                                sizeof v) = v;
}

static void read_entries(reader *r, const yaml_node *node, const module_list *list)
{
    static const char expected[] = "a mapping from entries to what they are";
    if (!reader_is_kind(r, node, YAML_MAP, "entries", expected))
        return;
    if (!node->first)
        diagnose(r->d, node->at, message_wrong_kind, expected, "entries", "an empty one");
    for (const yaml_node *n = node->first; n; n = n->next) {
        external_request q = {.at = n->key_at};
        for (size_t i = 0; i < list->count && !q.entry; i++) {
            q.module = &list->items[i];
            q.entry = ptx_file_find(q.module->files[0], n->key);
        }
        if (!q.entry)
            diagnose(r->d, n->key_at, message_entry_unknown, list->items[0].files[0]->asked,
                     quote_text(r->arena, n->key), suggest_text(r->arena, n->key, entry_names(r, list)));
        else if (yaml_is_null(n) ||
                 (reader_is_kind(r, n, YAML_MAP, n->key, "a mapping") && read_entry(r, n, &q)))
            add_kernel(r, &q);
    }
}

/* Whether to keep line information; true after a diagnostic. */
static bool keeps_line_info(const reader *r, const yaml_node *node)
{
    if (!node || !reader_is_kind(r, node, YAML_SCALAR, "line_info", "true or false"))
        return true;
    const bool is_no = strcmp(node->text, "false") == 0;
    if (node->quoted || (!is_no && strcmp(node->text, "true") != 0))
        diagnose(r->d, node->at, message_line_info, reader_quote(r, node));
    return !is_no;
}

static void read_line_info(const reader *r, const yaml_node *node, const external_module *m)
{
    const bool is_kept = keeps_line_info(r, node);
    for (size_t i = 0; i < m->file_count; i++) {
        place at;
        const char *path = line_info_absolute_path(r->arena, m->files[i], &at);
        if (!is_kept)
            line_info_leave_out(r->arena, m->files[i]);
        else if (path)
            warn(r->d, at, message_ptx_absolute_path, quote_text(r->arena, path));
    }
}

void reader_read_ptx(reader *r, const yaml_node *item)
{
    const yaml_node *entries = yaml_member(item, "entries");
    module_list list = {0};
    if (!reader_check_keys(r, item, "ptx license line_info entries", "an item with 'ptx'") ||
        !read_modules(r, yaml_member(item, "ptx"), &list))
        return;
    const yaml_node *license = yaml_member(item, "license");
    for (size_t i = 0; license && i < list.count; i++)
        list.items[i].license = reader_license(r, license);
    for (size_t i = 0; i < list.count; i++)
        read_line_info(r, yaml_member(item, "line_info"), &list.items[i]);
    if (entries) {
        read_entries(r, entries, &list);
        return;
    }
    for (size_t m = 0; m < list.count; m++) {
        const ptx_file *file = list.items[m].files[0];
        for (size_t i = 0; i < file->entry_count; i++) {
            const external_request q = {.entry = &file->entries[i], .module = &list.items[m], .at = item->at};
            add_kernel(r, &q);
        }
    }
}
