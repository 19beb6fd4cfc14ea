/* kernels: items that name PTX files: which, and what the configuration adds to their entries. */
#include <stdlib.h>
#include <string.h>

#include "config_reader.h"
#include "external/external.h"
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

static const ptx_file *read_file(reader *r, const yaml_node *node)
{
    if (!reader_is_kind(r, node, YAML_SCALAR, "ptx", "the name of a PTX file"))
        return NULL;
    const char *path = path_of(r, node->text);
    const ptx_file *file = ptx_file_read(r->arena, path, node->text, node->at, r->d);
    if (file)
        *(const char **)arena_push(r->arena, (void **)&r->plan->inputs, &r->plan->input_count,
                                   &r->plan->input_capacity, sizeof path) = path;
    return file;
}

/* Keeps files in the order of their targets. */
static void insert_file(reader *r, external_module *m, const ptx_file *file, size_t *capacity)
{
    arena_push(r->arena, (void **)&m->files, &m->file_count, capacity, sizeof file);
    size_t i = m->file_count - 1;
    for (; i > 0 && target_compare(file->made_for, m->files[i - 1]->made_for) < 0; i--)
        m->files[i] = m->files[i - 1];
    m->files[i] = file;
}

/* Null after a diagnostic. */
static const external_module *read_module(reader *r, const yaml_node *node)
{
    const bool is_list = node->kind == YAML_LIST && !node->refused;
    if (is_list && !reader_is_kind(r, node, YAML_LIST, "ptx", "a PTX file or a list of them"))
        return NULL;
    external_module *m = arena_alloc(r->arena, sizeof *m);
    size_t capacity = 0;
    bool ok = true;
    for (const yaml_node *n = is_list ? node->first : node; n; n = is_list ? n->next : NULL) {
        const ptx_file *file = read_file(r, n);
        ok = ok && file;
        if (file)
            insert_file(r, m, file, &capacity);
    }
    return ok && external_check_module(r->arena, m, r->plan->targets, r->plan->target_count, node->at, r->d)
               ? m
               : NULL;
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

static const char *entry_names(const reader *r, const ptx_file *file)
{
    text names = text_new(r->arena);
    for (size_t i = 0; i < file->entry_count; i++)
        text_printf(&names, "%s%s", i > 0 ? " " : "", file->entries[i].name);
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
        diagnose(r->d, v->at, message_entry_twice, v->family->name, other->external->symbol,
                 v->external->symbol);
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

static void read_entries(reader *r, const yaml_node *node, const external_module *m)
{
    static const char expected[] = "a mapping from entries to what they are";
    if (!reader_is_kind(r, node, YAML_MAP, "entries", expected))
        return;
    if (!node->first)
        diagnose(r->d, node->at, message_wrong_kind, expected, "entries", "an empty one");
    for (const yaml_node *n = node->first; n; n = n->next) {
        const ptx_file *file = m->files[0];
        external_request q = {.entry = ptx_file_find(file, n->key), .module = m, .at = n->key_at};
        if (!q.entry)
            diagnose(r->d, n->key_at, message_entry_unknown, file->asked, quote_text(r->arena, n->key),
                     suggest_text(r->arena, n->key, entry_names(r, file)));
        else if (yaml_is_null(n) ||
                 (reader_is_kind(r, n, YAML_MAP, n->key, "a mapping") && read_entry(r, n, &q)))
            add_kernel(r, &q);
    }
}

void reader_read_ptx(reader *r, const yaml_node *item)
{
    const yaml_node *entries = yaml_member(item, "entries");
    if (!reader_check_keys(r, item, "ptx entries", "an item with 'ptx'"))
        return;
    const external_module *m = read_module(r, yaml_member(item, "ptx"));
    if (!m)
        return;
    if (entries) {
        read_entries(r, entries, m);
        return;
    }
    for (size_t i = 0; i < m->files[0]->entry_count; i++) {
        const external_request q = {.entry = &m->files[0]->entries[i], .module = m, .at = item->at};
        add_kernel(r, &q);
    }
}
