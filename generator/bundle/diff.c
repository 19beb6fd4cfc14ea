/* Manifests are JSON, which the YAML reader parses; they are compared as trees, so that new members need no code here.
 * */
#include "diff.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan/yaml.h"
#include "support/files.h"
#include "support/messages.h"
#include "support/words.h"

enum { LARGEST_FILE_BYTES = 256 * 1024 * 1024 };

typedef struct manifest {
    const yaml_node *root, *variants;
} manifest;

typedef struct tally {
    size_t added, removed, changed, moved, alike;
} tally;

/* ---- trees ------------------------------------------------------------------------------------------------------- */

/* The text of a member; "" if there is none. */
static const char *text_of(const yaml_node *map, const char *key)
{
    const yaml_node *node = yaml_member(map, key);
    return node && node->kind == YAML_SCALAR ? node->text : "";
}

static bool has_same(const yaml_node *x, const yaml_node *y, const char *key)
{
    return strcmp(text_of(x, key), text_of(y, key)) == 0;
}

static bool is_same(const yaml_node *x, const yaml_node *y)
{
    if (!x || !y || x->kind != y->kind)
        return x == y;
    if (x->kind == YAML_SCALAR)
        return x->quoted == y->quoted && strcmp(x->text, y->text) == 0;
    const yaml_node *i = x->first, *k = y->first;
    for (; i && k; i = i->next, k = k->next)
        if ((x->kind == YAML_MAP && strcmp(i->key, k->key) != 0) || !is_same(i, k))
            return false;
    return !i && !k;
}

/* The element of a list that has this text as its `key`. */
static const yaml_node *element(const yaml_node *list, const char *key, const char *wanted)
{
    for (const yaml_node *node = list ? list->first : NULL; node; node = node->next)
        if (strcmp(text_of(node, key), wanted) == 0)
            return node;
    return NULL;
}

/* The image of the same target and format. */
static const yaml_node *same_image(const yaml_node *images, const yaml_node *wanted)
{
    for (const yaml_node *node = images ? images->first : NULL; node; node = node->next)
        if (has_same(node, wanted, "target") && has_same(node, wanted, "format"))
            return node;
    return NULL;
}

/* The image with the same bytes for a new target, if this image's target is gone. Null: there is none. */
static const yaml_node *moved_image(const yaml_node *images, const yaml_node *image, const yaml_node *others)
{
    for (const yaml_node *node = others ? others->first : NULL; node && !same_image(others, image);
         node = node->next)
        if (has_same(node, image, "xxh3_128") && has_same(node, image, "format") && !same_image(images, node))
            return node;
    return NULL;
}

static const char *stored_bytes(const yaml_node *image)
{
    return text_of(image, *text_of(image, "stored_bytes") ? "stored_bytes" : "bytes");
}

/* Kernels of one PTX file share its images: the first kernel has them, and the others name it. */
static uint64_t bytes_of_images(const yaml_node *variant)
{
    uint64_t bytes = 0;
    if (*text_of(variant, "module") && strcmp(text_of(variant, "module"), text_of(variant, "id")) != 0)
        return 0;
    const yaml_node *images = yaml_member(variant, "images");
    for (const yaml_node *image = images ? images->first : NULL; image; image = image->next)
        bytes += strtoull(stored_bytes(image), NULL, 10);
    return bytes;
}

static uint64_t bytes_of_all(const manifest *m)
{
    uint64_t bytes = 0;
    for (const yaml_node *v = m->variants->first; v; v = v->next)
        bytes += bytes_of_images(v);
    return bytes;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool expect(bool is_so, const yaml_node *node, const char *wanted, diagnostics *d)
{
    if (!is_so)
        diagnose(d, node->at, "expected %s in a manifest", wanted);
    return is_so;
}

static bool is_number(const yaml_node *map, const char *key)
{
    const yaml_node *node = yaml_member(map, key);
    return node && node->kind == YAML_SCALAR && !node->quoted && node->text[0] && strlen(node->text) <= 18 &&
           node->text[strspn(node->text, "0123456789")] == '\0';
}

static bool check_variant(const yaml_node *variants, const yaml_node *v, diagnostics *d)
{
    const char *id = text_of(v, "id");
    const yaml_node *images = yaml_member(v, "images");
    if (!expect(*id, v, "a variant with an 'id'", d) ||
        !expect(element(variants, "id", id) == v, v, "each variant once", d) ||
        !expect(images && images->kind == YAML_LIST, v, "a variant with 'images'", d))
        return false;
    for (const yaml_node *i = images->first; i; i = i->next)
        if (!expect(*text_of(i, "target") && *text_of(i, "xxh3_128") && is_number(i, "bytes"), i,
                    "an image with 'target', 'bytes' and 'xxh3_128'", d) ||
            !expect(!yaml_member(i, "stored_bytes") || is_number(i, "stored_bytes"), i,
                    "a number for 'stored_bytes'", d) ||
            !expect(same_image(images, i) == i, i, "each image once", d))
            return false;
    return true;
}

/* Checks that the members with lines of their own exist; all other members are compared generically. */
static bool check_manifest(const manifest *m, diagnostics *d)
{
    const yaml_node *targets = yaml_member(m->root, "targets");
    if (!expect(is_number(m->root, "layout_version"), m->root, "the number 'layout_version'", d) ||
        !expect(targets && targets->kind == YAML_LIST, m->root, "a list 'targets'", d))
        return false;
    for (const yaml_node *v = m->variants->first; v; v = v->next)
        if (!check_variant(m->variants, v, d))
            return false;
    return true;
}

static bool read_manifest(arena *a, const char *path, manifest *m, diagnostics *d)
{
    text data;
    const char *why;
    const int before = d->count;
    if (!file_read(a, path, LARGEST_FILE_BYTES, &data, &why)) {
        diagnose(d, (place){.file = path}, message_file_unreadable, why);
        return false;
    }
    m->root = yaml_parse(a, path, data.data, data.length, d);
    m->variants = yaml_member(m->root, "variants");
    const bool is_manifest = m->variants && m->variants->kind == YAML_LIST && *text_of(m->root, "generator");
    if (!is_manifest && d->count == before)
        diagnose(d, (place){.file = path}, "expected a bundle's manifest, NAME.json, found something else");
    return d->count == before && check_manifest(m, d);
}

/* ---- differences ------------------------------------------------------------------------------------------------- */

static void add_value(text *out, const yaml_node *node)
{
    if (!node || node->kind == YAML_SCALAR) {
        text_add(out, node ? node->text : "nothing");
        return;
    }
    text_add(out, "[");
    for (const yaml_node *i = node->first; i; i = i->next) {
        add_value(out, i);
        text_add(out, i->next ? ", " : "");
    }
    text_add(out, "]");
}

/* " n=4096 type=f16,bf16": the members of a map, including nested ones. */
static void add_named_values(text *out, const yaml_node *map)
{
    for (const yaml_node *i = map->first; i; i = i->next) {
        if (i->kind == YAML_MAP) {
            add_named_values(out, i);
            continue;
        }
        text_printf(out, " %s=", i->key);
        if (i->kind == YAML_SCALAR)
            text_add(out, i->text);
        for (const yaml_node *k = i->kind == YAML_LIST ? i->first : NULL; k; k = k->next)
            text_printf(out, "%s%s", k->text ? k->text : "", k->next ? "," : "");
    }
}

/* Elements of one list that the other lacks, one line for each of the first few. */
static void add_lacking(text *out, char sign, const yaml_node *list, const yaml_node *other)
{
    enum { SHOWN = 12 };
    size_t count = 0;
    for (const yaml_node *i = list ? list->first : NULL; i; i = i->next) {
        const yaml_node *same = other ? other->first : NULL;
        while (same && !is_same(i, same))
            same = same->next;
        if (same || count++ >= SHOWN)
            continue;
        text_printf(out, "%c shape", sign);
        add_named_values(out, i);
        text_add(out, "\n");
    }
    if (count > SHOWN)
        text_printf(out, "%c and %zu more shapes\n", sign, count - SHOWN);
}

static void add_key(text *out, const char *key, const yaml_node *before, const yaml_node *after)
{
    if (strcmp(key, "shapes") == 0) {
        add_lacking(out, '-', before, after);
        add_lacking(out, '+', after, before);
        return;
    }
    const bool has_lines = strcmp(key, "families") == 0 || strcmp(key, "variants") == 0;
    const bool is_of_layout = strcmp(key, "structs") == 0; /* reported by layout_version */
    if (has_lines || is_of_layout || is_same(before, after))
        return;
    text_printf(out, "%s: ", key);
    add_value(out, before);
    text_add(out, " -> ");
    add_value(out, after);
    text_add(out, "\n");
}

/* Differences of the whole bundle, except families and variants, which have their own lines. */
static void add_bundle(text *out, const manifest *old, const manifest *new)
{
    for (const yaml_node *i = old->root->first; i; i = i->next)
        add_key(out, i->key, i, yaml_member(new->root, i->key));
    for (const yaml_node *i = new->root->first; i; i = i->next)
        if (!yaml_member(old->root, i->key))
            add_key(out, i->key, NULL, i);
}

/* "; other rules, cost": the names of members that differ, except images. */
static void add_members(text *out, const yaml_node *old, const yaml_node *new)
{
    const char *separator = "; other ";
    for (int turn = 0; turn < 2; turn++) {
        const yaml_node *all = turn == 0 ? old : new, *others = turn == 0 ? new : old;
        for (const yaml_node *i = all->first; i; i = i->next) {
            const yaml_node *other = yaml_member(others, i->key);
            const bool is_told = strcmp(i->key, "images") == 0 || (turn == 1 && other);
            if (is_told || is_same(i, other))
                continue;
            text_printf(out, "%s%s", separator, i->key);
            separator = ", ";
        }
    }
}

/* ---- numbers of words -------------------------------------------------------------------------------------------- */

/* The number of a word in argument structs; "": it has none. */
static const char *number_of(const yaml_node *param, const char *word, size_t length)
{
    const yaml_node *numbers = yaml_member(param, "numbers"), *number = numbers ? numbers->first : NULL;
    const char *words = text_of(param, "words");
    size_t bytes;
    for (const char *w; number && (w = words_next(&words, &bytes)); number = number->next)
        if (bytes == length && memcmp(w, word, length) == 0)
            return number->kind == YAML_SCALAR ? number->text : "";
    return "";
}

/* The meaning of 0 in an argument struct: the bundle's only value, otherwise the default if the bundle has it; "": 0
 * has no meaning. */
static const char *zero_of(const manifest *m, const char *family, const yaml_node *param)
{
    const char *name = text_of(param, "name"), *wanted = text_of(param, "default"), *only = NULL;
    bool has_wanted = false, has_others = false;
    for (const yaml_node *v = m->variants->first; v; v = v->next) {
        if (strcmp(text_of(v, "family"), family) != 0)
            continue;
        const char *value = text_of(yaml_member(v, "params"), name);
        has_wanted = has_wanted || strcmp(value, wanted) == 0;
        has_others = has_others || (only && strcmp(value, only) != 0);
        only = value;
    }
    return only && !has_others ? only : has_wanted ? wanted : "";
}

/* Numbers that callers compiled with the old header use, and that the new bundle lacks or gives another meaning. */
static void add_param_numbers(text *out, const char *family, const manifest *old, const manifest *new,
                              const yaml_node *before, const yaml_node *after)
{
    const char *name = text_of(after, "name"), *words = text_of(after, "words");
    const char *zero = zero_of(old, family, before), *zero_now = zero_of(new, family, after);
    size_t length;
    for (const char *w; (w = words_next(&words, &length));) {
        const char *was = number_of(before, w, length), *is = number_of(after, w, length);
        if (*was && strcmp(was, is) != 0)
            text_printf(out, "; %s: %.*s was %s, is %s", name, (int)length, w, was, *is ? is : "none");
    }
    if (*zero && strcmp(zero, zero_now) != 0)
        text_printf(out, "; %s: 0 was %s, is %s", name, zero, *zero_now ? zero_now : "none");
}

static void add_numbers(text *out, const manifest *old, const manifest *new, const yaml_node *before,
                        const yaml_node *after)
{
    const char *family = text_of(after, "name");
    const yaml_node *params = yaml_member(after, "params");
    text changes = text_new(out->arena);
    for (const yaml_node *p = params ? params->first : NULL; p; p = p->next) {
        const yaml_node *was = element(yaml_member(before, "params"), "name", text_of(p, "name"));
        const bool is_field =
            strcmp(text_of(p, "role"), "contract") == 0 && strcmp(text_of(p, "type"), "bool") != 0;
        if (was && is_field)
            add_param_numbers(&changes, family, old, new, was, p);
    }
    if (changes.length)
        text_printf(out, "word numbers changed: %s%s\n", family, changes.data);
}

/* Differences shared by a family's variants; the affected variants have their own lines. */
static void add_families(text *out, const manifest *old, const manifest *new)
{
    const yaml_node *before = yaml_member(old->root, "families"), *after = yaml_member(new->root, "families");
    for (const yaml_node *f = before ? before->first : NULL; f; f = f->next)
        if (!element(after, "name", text_of(f, "name")))
            text_printf(out, "- family %s\n", text_of(f, "name"));
    for (const yaml_node *f = after ? after->first : NULL; f; f = f->next) {
        const yaml_node *was = element(before, "name", text_of(f, "name"));
        if (was)
            add_numbers(out, old, new, was, f);
        if (is_same(was, f))
            continue;
        text_printf(out, "%c family %s", was ? '~' : '+', text_of(f, "name"));
        if (was)
            add_members(out, was, f);
        text_add(out, "\n");
    }
}

/* Differences of images with the same bytes: "needs another driver: 12.0 -> 13.0". */
static void add_needs(text *out, const yaml_node *old, const yaml_node *new)
{
    const char *separator = "";
    for (const yaml_node *i = old->first; i; i = i->next) {
        const char *was = i->text, *is = text_of(new, i->key);
        if (strcmp(i->key, "target") == 0 || !was || strcmp(was, is) == 0)
            continue;
        const unsigned long from = strtoul(was, NULL, 10), to = strtoul(is, NULL, 10);
        if (strcmp(i->key, "min_driver") == 0)
            text_printf(out, "%sneeds another driver: %lu.%lu -> %lu.%lu", separator, from / 1000,
                        from % 1000 / 10, to / 1000, to % 1000 / 10);
        else
            text_printf(out, "%shas other %s: %s -> %s", separator, i->key, was, is);
        separator = ", ";
    }
}

/* "; sm_80 5012 -> 5100 bytes", or that the image is new, gone, packed differently, or needs another driver. Skips
 * moved images. */
static void add_image(text *out, const yaml_node *old, const yaml_node *new)
{
    text_printf(out, "; %s%s ", text_of(new ? new : old, "target"),
                *text_of(new ? new : old, "format") ? " cubin" : "");
    if (!old)
        text_printf(out, "is new, %s bytes", text_of(new, "bytes"));
    else if (!new)
        text_printf(out, "is gone, %s bytes", text_of(old, "bytes"));
    else if (!has_same(old, new, "xxh3_128"))
        text_printf(out, "has other bytes, %s -> %s bytes", text_of(old, "bytes"), text_of(new, "bytes"));
    else if (!has_same(old, new, "stored_xxh3_128"))
        text_printf(out, "is recompressed, %s -> %s bytes", stored_bytes(old), stored_bytes(new));
    else
        add_needs(out, old, new);
}

static bool is_same_but_target(const yaml_node *x, const yaml_node *y)
{
    const yaml_node *i = x->first, *k = y->first;
    for (; i && k; i = i->next, k = k->next)
        if (strcmp(i->key, k->key) != 0 || (strcmp(i->key, "target") != 0 && !is_same(i, k)))
            return false;
    return !i && !k;
}

static void add_images(text *out, const yaml_node *old, const yaml_node *new)
{
    for (const yaml_node *i = old ? old->first : NULL; i; i = i->next) {
        const yaml_node *now = same_image(new, i), *moved = moved_image(old, i, new);
        if (moved)
            text_printf(out, "; %s%s moved to %s, %s bytes", text_of(i, "target"),
                        *text_of(i, "format") ? " cubin" : "", text_of(moved, "target"), text_of(i, "bytes"));
        if (moved && !is_same_but_target(i, moved)) {
            text_add(out, ", ");
            add_needs(out, i, moved);
        } else if (!moved && !is_same(i, now))
            add_image(out, i, now);
    }
    for (const yaml_node *i = new ? new->first : NULL; i; i = i->next)
        if (!same_image(old, i) && !moved_image(new, i, old))
            add_image(out, NULL, i);
}

/* Whether only the targets of its images differ. */
static bool has_moved(arena *a, const yaml_node *old, const yaml_node *new)
{
    const yaml_node *was = yaml_member(old, "images"), *is = yaml_member(new, "images");
    text members = text_new(a);
    add_members(&members, old, new);
    bool ok = members.length == 0;
    for (const yaml_node *i = was->first; i && ok; i = i->next) {
        const yaml_node *now = same_image(is, i), *moved = moved_image(was, i, is);
        ok = now ? is_same(i, now) : moved && is_same_but_target(i, moved);
    }
    for (const yaml_node *i = is->first; i && ok; i = i->next)
        ok = same_image(was, i) || moved_image(is, i, was);
    return ok;
}

static void add_changed(text *out, const yaml_node *old, const yaml_node *new)
{
    text_printf(out, "~ %s", text_of(new, "id"));
    add_images(out, yaml_member(old, "images"), yaml_member(new, "images"));
    add_members(out, old, new);
    text_add(out, "\n");
}

static void add_variants(text *out, const manifest *old, const manifest *new, tally *count)
{
    for (const yaml_node *v = old->variants->first; v; v = v->next) {
        if (element(new->variants, "id", text_of(v, "id")))
            continue;
        count->removed++;
        text_printf(out, "- %s; %" PRIu64 " bytes\n", text_of(v, "id"), bytes_of_images(v));
    }
    for (const yaml_node *v = new->variants->first; v; v = v->next) {
        const yaml_node *before = element(old->variants, "id", text_of(v, "id"));
        if (!before) {
            count->added++;
            text_printf(out, "+ %s; %" PRIu64 " bytes\n", text_of(v, "id"), bytes_of_images(v));
        } else if (!is_same(before, v)) {
            *(has_moved(out->arena, before, v) ? &count->moved : &count->changed) += 1;
            add_changed(out, before, v);
        } else {
            count->alike++;
        }
    }
}

bool diff_manifests(arena *a, const char *old_path, const char *new_path, text *out, bool *is_alike,
                    diagnostics *d)
{
    manifest old, new;
    tally count = {0};
    const bool has_old = read_manifest(a, old_path, &old, d), has_new = read_manifest(a, new_path, &new, d);
    if (!has_old || !has_new)
        return false;
    add_bundle(out, &old, &new);
    add_families(out, &old, &new);
    add_variants(out, &old, &new, &count);
    *is_alike = is_same(old.root, new.root);
    if (!*is_alike && out->length == 0)
        text_add(out, "the order of families or variants\n");
    text_printf(out, "%zu added, %zu removed, %zu changed, ", count.added, count.removed, count.changed);
    if (count.moved)
        text_printf(out, "%zu moved, ", count.moved);
    text_printf(out, "%zu alike; images %" PRIu64 " -> %" PRIu64 " bytes\n", count.alike, bytes_of_all(&old),
                bytes_of_all(&new));
    return true;
}
