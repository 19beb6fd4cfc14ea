#include "lock.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "config_reader.h"
#include "support/files.h"
#include "support/messages.h"
#include "support/quote.h"
#include "support/words.h"

enum { LARGEST_FILE_BYTES = 16 * 1024 * 1024, HASH_DIGITS = LOCK_HASH_BYTES - 1 };

/* ---- what was asked ----------------------------------------------------------------------------------------------- */

typedef struct line_list {
    const char **lines;
    size_t count, capacity;
} line_list;

static int compare_lines(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Adds the lines, sorted and without duplicates. */
static void add_sorted(text *out, line_list *list)
{
    if (list->count > 0)
        qsort(list->lines, list->count, sizeof *list->lines, compare_lines);
    for (size_t i = 0; i < list->count; i++)
        if (i == 0 || strcmp(list->lines[i], list->lines[i - 1]) != 0)
            text_printf(out, "%s\n", list->lines[i]);
}

static void add_line(arena *a, line_list *list, const char *line)
{
    *(const char **)arena_push(a, (void **)&list->lines, &list->count, &list->capacity, sizeof line) = line;
}

static const char *item_text(arena *a, const shaped_item *item)
{
    const request *q = &item->request;
    text out = text_new(a);
    line_list words = {0};
    text_printf(&out, "family %s within %u most %u workspace %u only %u\n", q->family->name,
                (unsigned)item->within, (unsigned)item->max_variants, item->has_workspace, item->only_shapes);
    for (size_t i = 0; i < family_param_count(q->family); i++)
        for (size_t k = 0; k < q->values[i].count; k++)
            add_line(a, &words,
                     arena_format(a, "param %s=%s", q->family->params[i].name, q->values[i].items[k].text));
    for (size_t i = 0; i < item->shape_count; i++)
        add_line(a, &words, arena_format(a, "shape %s", call_shape_text(a, q->family, &item->shapes[i])));
    for (size_t i = 0; i < item->device_count; i++)
        add_line(a, &words, arena_format(a, "device %s", item->devices[i].name));
    add_sorted(&out, &words);
    return out.data;
}

static void write_hash(arena *a, const text *of, char hash[LOCK_HASH_BYTES])
{
    const XXH128_hash_t value = XXH3_128bits(of->data, of->length);
    text out = text_new(a);
    text_add_hex(&out, value.high64, HASH_DIGITS / 2, false);
    text_add_hex(&out, value.low64, HASH_DIGITS / 2, false);
    memcpy(hash, out.data, LOCK_HASH_BYTES);
}

void lock_hash(arena *a, const plan *p, char hash[LOCK_HASH_BYTES])
{
    text all = text_new(a);
    line_list items = {0};
    for (size_t i = 0; i < p->shaped_count; i++)
        add_line(a, &items, item_text(a, &p->shaped[i]));
    add_sorted(&all, &items);
    for (size_t i = 0; i < p->target_count; i++)
        text_printf(&all, "target %s\n", target_text(a, p->targets[i]));
    line_list rest = {0};
    for (size_t i = 0; i < p->budget_count; i++)
        add_line(a, &rest,
                 arena_format(a, "max_bytes %s %llu",
                              p->budgets[i].family ? p->budgets[i].family->name : "bundle",
                              (unsigned long long)p->budgets[i].max_bytes));
    for (size_t i = 0; i < p->tuned_count; i++)
        add_line(a, &rest,
                 arena_format(a, "tuned %016llx",
                              (unsigned long long)XXH3_64bits(p->tuned[i]->data, p->tuned[i]->bytes)));
    if (p->is_compressed)
        add_line(a, &rest, "compress");
    add_sorted(&all, &rest);
    write_hash(a, &all, hash);
}

/* ---- files -------------------------------------------------------------------------------------------------------- */

const char *lock_path(arena *a, const plan *p)
{
    static const char extension[] = ".yaml";
    const size_t length = strlen(p->config_path), own = sizeof extension - 1;
    const bool has_extension = length > own && strcmp(p->config_path + length - own, extension) == 0;
    if (file_is_stream(p->config_path))
        return NULL;
    return arena_format(a, "%s.lock.yaml",
                        arena_string(a, p->config_path, has_extension ? length - own : length));
}

static bool read_hash(const reader *r, const yaml_node *node)
{
    if (!reader_is_kind(r, node, YAML_SCALAR, node->key, "a hash"))
        return false;
    if (strspn(node->text, "0123456789abcdef") == HASH_DIGITS && !node->text[HASH_DIGITS])
        return true;
    diagnose(r->d, node->at, message_lock_hash, node->key, reader_quote(r, node));
    return false;
}

/* Hashes the variants' ids; their order does not matter. */
static void hash_variants(arena *a, variant *const *variants, size_t count, char hash[LOCK_HASH_BYTES])
{
    line_list ids = {0};
    text all = text_new(a);
    for (size_t i = 0; i < count; i++)
        add_line(a, &ids, variants[i]->id);
    add_sorted(&all, &ids);
    write_hash(a, &all, hash);
}

static void read_items(reader *r, const yaml_node *list)
{
    for (const yaml_node *item = list->first; item; item = item->next) {
        const yaml_node *odd = item->kind == YAML_MAP ? item->first : NULL;
        while (odd && !words_contain("ptx combinations", odd->key) && !words_contain(shaped_keys, odd->key))
            odd = odd->next;
        if (odd)
            diagnose(r->d, odd->key_at, message_lock_shapes, odd->key);
        else
            reader_read_kernel(r, item);
    }
}

bool lock_read(arena *a, plan *p, const char *path, lock *out, diagnostics *d)
{
    text data;
    const char *why;
    if (file_read(a, path, LARGEST_FILE_BYTES, &data, &why))
        return lock_read_text(a, p, path, data.data, data.length, out, d);
    diagnose(d, (place){.file = path}, message_lock_unreadable, quote_text(a, path), why);
    return false;
}

bool lock_read_text(arena *a, plan *p, const char *path, const char *data, size_t bytes, lock *out,
                    diagnostics *d)
{
    static const config_options none;
    const int before = d->count;
    plan read = *p; /* gets only the lock's variants */
    read.variants = NULL;
    read.variant_count = read.variant_capacity = 0;
    reader r = {.arena = a, .d = d, .plan = &read, .options = &none, .takes_stranded = true};
    const yaml_node *root = yaml_parse(a, path, data, bytes, d);
    if (!root && d->count == before)
        diagnose(d, (place){path, 1, 1}, message_lock_empty);
    if (!root || !reader_is_kind(&r, root, YAML_MAP, path, "a lock file (asked, chosen, kernels)") ||
        !reader_check_keys(&r, root, "asked chosen kernels", "a lock file"))
        return false;
    const yaml_node *asked = yaml_member(root, "asked"), *chosen = yaml_member(root, "chosen"),
                    *kernels = yaml_member(root, "kernels");
    if (!asked || !kernels)
        diagnose(d, root->at, message_missing_key, asked ? "kernels" : "asked", asked ? "[...]" : "HASH");
    if (!asked || !kernels || !read_hash(&r, asked) || (chosen && !read_hash(&r, chosen)) ||
        !reader_is_kind(&r, kernels, YAML_LIST, "kernels", "a list of variants"))
        return false;
    out->at = asked->at;
    out->asked = asked->text;
    read_items(&r, kernels);
    char hash[LOCK_HASH_BYTES];
    hash_variants(a, read.variants, read.variant_count, hash);
    out->is_edited = chosen && strcmp(hash, chosen->text) != 0;
    r.plan = p;
    reader_add_input(&r, path);
    p->lock_path = path;
    p->lock = data;
    p->lock_bytes = bytes;
    out->variants = read.variants;
    out->count = 0;
    for (size_t i = 0; i < read.variant_count; i++)
        if (read.variants[i]->runs_on)
            out->variants[out->count++] = read.variants[i];
    return d->count == before;
}

void lock_print(text *out, const plan *p, variant *const *variants, size_t count, uint32_t candidates)
{
    char hash[LOCK_HASH_BYTES];
    arena *a = out->arena;
    const char *slash = strrchr(p->config_path, '/'),
               *config = quote_shell(a, slash ? slash + 1 : p->config_path);
    if (candidates > 0)
        text_printf(out, "# Made by `kiln choose %s --candidates %u`: variants to measure.\n", config,
                    (unsigned)candidates);
    else
        text_printf(
            out,
            "# Made by `kiln choose %s`, which chose these variants. `kiln generate` takes them from here, so\n"
            "# commit this file.\n",
            config);
    lock_hash(a, p, hash);
    text_printf(out, "asked: %s\n", hash);
    hash_variants(a, variants, count, hash);
    text_printf(out, "chosen: %s\nkernels:\n", hash);
    for (size_t i = 0; i < count; i++) {
        const variant *v = variants[i];
        text_printf(out, "  - {family: %s", v->family->name);
        for (size_t k = 0; k < family_param_count(v->family); k++)
            text_printf(out, ", %s: %s", v->family->params[k].name, v->values[k].text);
        text_add(out, "}\n");
    }
}
