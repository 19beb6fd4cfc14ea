/* tuned: files of measured times -> the shapes of a plan. Skips a time of a variant that the bundle lacks, so that a
 * bundle may have fewer variants than the measured one; a name that no variant can have is an error. */
#include "tuned.h"

#include <stdlib.h>
#include <string.h>

#include "config_reader.h"
#include "support/files.h"
#include "support/messages.h"
#include "support/quote.h"
#include "support/words.h"

enum { LARGEST_FILE_BYTES = 64 * 1024 * 1024, MOST_MULTIPROCESSORS = 65535 };

typedef struct tuned_reader {
    reader *r;
    tuned_file *file;
} tuned_reader;

/* ---- values ------------------------------------------------------------------------------------------------------- */

/* "9.0" */
static bool read_capability(const reader *r, const yaml_node *node, uint32_t *sm)
{
    if (!reader_is_kind(r, node, YAML_SCALAR, "compute_capability", "a compute capability"))
        return false;
    const size_t major = strspn(node->text, "0123456789");
    const char *dot = node->text + major;
    if (major >= 1 && major <= 2 && dot[0] == '.' && dot[1] >= '0' && dot[1] <= '9' && !dot[2]) {
        *sm = 10 * (uint32_t)strtoul(node->text, NULL, 10) + (uint32_t)(dot[1] - '0');
        return true;
    }
    diagnose(r->d, node->at, message_tuned_capability, reader_quote(r, node));
    return false;
}

/* ---- families and variants ---------------------------------------------------------------------------------------- */

/* Finds a family of the bundle, including external PTX; otherwise a family of the generator; otherwise null. */
static const kiln_family *find_family(const reader *r, const char *name)
{
    const kiln_family *family = reader_find_family(r, name);
    return family ? family : family_find(r->plan->families, name);
}

static bool is_external(const plan *p, const kiln_family *family)
{
    return family_find(p->families, family->name) != family;
}

/* Why "tile_m=3" cannot be part of an id of the family; null: it can. */
static const char *why_no_part(arena *a, const kiln_family *family, const char *part)
{
    size_t index;
    const size_t length = strcspn(part, "=");
    const char *name = arena_string(a, part, length), *value = part + length + (part[length] == '=');
    if (!family_find_param(family, name, &index))
        return arena_format(a, "%s has no parameter '%s'%s", family->name, quote_text(a, name),
                            suggest_text(a, name, family_param_names(a, family)));
    if (param_has_value(&family->params[index], value))
        return NULL;
    return arena_format(a, "%s is never '%s'; it is %s", name, quote_text(a, value),
                        param_values_text(a, &family->params[index]));
}

/* Why no variant of the family can have this id; null: one could. */
static const char *why_no_id(arena *a, const kiln_family *family, const char *id)
{
    const size_t length = strlen(family->name);
    const char *part = id + length + 1, *end;
    if (strncmp(id, family->name, length) != 0 || (id[length] && id[length] != '/'))
        return arena_format(a, "it begins with '%s/'", family->name);
    if (!id[length])
        return family_param_count(family) > 0 ? "it has no parameters" : NULL;
    do {
        end = part + strcspn(part, ",");
        const char *why = why_no_part(a, family, arena_string(a, part, (size_t)(end - part)));
        if (why)
            return why;
        part = end + 1;
    } while (*end);
    return NULL;
}

/* Whether a variant of the family can have this id; otherwise a diagnostic. */
static bool check_id(const reader *r, const kiln_family *family, const yaml_node *node)
{
    const char *why = is_external(r->plan, family) ? NULL : why_no_id(r->arena, family, node->key);
    if (why)
        diagnose(r->d, node->key_at, message_tuned_variant, family->name, quote_text(r->arena, node->key),
                 why);
    return !why;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------- */

/* The plan's shape with these sizes on this device, possibly from another file. */
static tuned_shape *shape_of(const tuned_reader *t, const kiln_family *family, uint64_t *sizes)
{
    plan *p = t->r->plan;
    for (size_t i = 0; i < p->tuned_shape_count; i++) {
        tuned_shape *s = &p->tuned_shapes[i];
        if (s->family == family && s->file->sm == t->file->sm &&
            s->file->multiprocessors == t->file->multiprocessors &&
            memcmp(s->sizes, sizes, family_arg_count(family) * sizeof *sizes) == 0)
            return s;
    }
    tuned_shape *s = arena_push(t->r->arena, (void **)&p->tuned_shapes, &p->tuned_shape_count,
                                &p->tuned_shape_capacity, sizeof *s);
    *s = (tuned_shape){.file = t->file, .family = family, .sizes = sizes};
    return s;
}

static void add_time(const tuned_reader *t, tuned_shape *s, const char *id, uint32_t nanoseconds, place at)
{
    for (size_t i = 0; i < s->time_count; i++)
        if (strcmp(s->times[i].id, id) == 0) {
            const place first = s->times[i].at;
            diagnose(t->r->d, at, message_tuned_time_twice, id, first.file, first.line);
            return;
        }
    tuned_time *time =
        arena_push(t->r->arena, (void **)&s->times, &s->time_count, &s->time_capacity, sizeof *time);
    *time = (tuned_time){.id = id, .nanoseconds = nanoseconds, .at = at};
}

static void read_times(tuned_reader *t, const kiln_family *family, uint64_t *sizes, const yaml_node *map)
{
    if (!reader_is_kind(t->r, map, YAML_MAP, "nanoseconds", "a mapping from variants to times"))
        return;
    for (const yaml_node *node = map->first; node; node = node->next) {
        uint64_t nanoseconds = 0;
        const bool is_id = check_id(t->r, family, node);
        if (reader_number(t->r, node, node->key, 1, UINT32_MAX, &nanoseconds) && is_id)
            add_time(t, shape_of(t, family, sizes), node->key, (uint32_t)nanoseconds, node->key_at);
    }
}

/* {family: ..., shape: {...}, nanoseconds: {...}} */
static void read_entry(tuned_reader *t, const yaml_node *item)
{
    static const char keys[] = "family shape nanoseconds";
    static const char *const examples[] = {"NAME", "{n: 4096}", "{ID: 1000}"};
    const reader *r = t->r;
    const yaml_node *members[3];
    const char *words = keys;
    size_t length;
    if (!reader_is_kind(r, item, YAML_MAP, "times", "a mapping with 'family', 'shape' and 'nanoseconds'"))
        return;
    bool ok = reader_check_keys(r, item, keys, "a measured shape");
    for (size_t i = 0; i < 3; i++) {
        const char *word = words_next(&words, &length), *key = arena_string(r->arena, word, length);
        members[i] = yaml_member(item, key);
        ok = ok && members[i];
        if (!members[i])
            diagnose(r->d, item->at, message_missing_key, key, examples[i]);
    }
    if (!ok || !reader_is_kind(r, members[0], YAML_SCALAR, "family", "the name of a family"))
        return;
    const kiln_family *family = find_family(r, members[0]->text);
    if (!family) {
        diagnose(r->d, members[0]->at, message_family_unknown, reader_quote(r, members[0]),
                 suggest_listed_text(r->arena, members[0]->text, family_names(r->arena, r->plan->families),
                                     "kiln families"));
        return;
    }
    shape_list shapes = {0};
    if (reader_read_shape(r, family, NULL, members[1], &shapes))
        read_times(t, family, shapes.items[0].sizes, members[2]);
}

/* ---- files -------------------------------------------------------------------------------------------------------- */

static void read_root(tuned_reader *t, const yaml_node *root)
{
    static const char emulated[] = "kiln emulated "; /* prefix of tools/emulator's device names */
    const reader *r = t->r;
    uint64_t multiprocessors = 0;
    const yaml_node *capability = yaml_member(root, "compute_capability"),
                    *count = yaml_member(root, "multiprocessors"), *times = yaml_member(root, "times"),
                    *device = yaml_member(root, "device");
    bool ok = reader_check_keys(r, root, "device compute_capability multiprocessors times", "a tuned file");
    if (!capability)
        diagnose(r->d, root->at, message_missing_key, "compute_capability", "9.0");
    if (!count)
        diagnose(r->d, root->at, message_missing_key, "multiprocessors", "132");
    if (!times)
        diagnose(r->d, root->at, message_missing_key, "times", "[...]");
    ok = capability && read_capability(r, capability, &t->file->sm) && ok;
    ok = count && reader_number(r, count, "multiprocessors", 1, MOST_MULTIPROCESSORS, &multiprocessors) && ok;
    t->file->multiprocessors = (uint32_t)multiprocessors;
    if (device && reader_is_kind(r, device, YAML_SCALAR, "device", "the name of a device"))
        t->file->device = device->text;
    if (ok && t->file->device && strncmp(t->file->device, emulated, strlen(emulated)) == 0)
        warn(r->d, device->at, message_tuned_emulated, (unsigned)t->file->sm);
    if (!ok || !times || !reader_is_kind(r, times, YAML_LIST, "times", "a list of measured shapes"))
        return;
    for (const yaml_node *item = times->first; item; item = item->next)
        read_entry(t, item);
}

static void read_file(reader *r, const yaml_node *node)
{
    text data;
    const char *why, *path = reader_path(r, node->text);
    if (!file_read(r->arena, path, LARGEST_FILE_BYTES, &data, &why)) {
        diagnose(r->d, node->at, message_tuned_unreadable, quote_text(r->arena, node->text), why);
        return;
    }
    reader_add_input(r, path);
    const int before = r->d->count;
    const yaml_node *root = yaml_parse(r->arena, path, data.data, data.length, r->d);
    tuned_reader t = {.r = r, .file = arena_alloc(r->arena, sizeof *t.file)};
    *t.file = (tuned_file){
        .asked = node->text, .at = node->at, .path = path, .data = data.data, .bytes = data.length};
    *(const tuned_file **)arena_push(r->arena, (void **)&r->plan->tuned, &r->plan->tuned_count,
                                     &r->plan->tuned_capacity, sizeof t.file) = t.file;
    if (!root && r->d->count == before)
        diagnose(r->d, (place){path, 1, 1}, message_tuned_empty);
    if (root &&
        reader_is_kind(r, root, YAML_MAP, path, "a tuned file (compute_capability, multiprocessors, times)"))
        read_root(&t, root);
}

void reader_read_tuned(reader *r, const yaml_node *list)
{
    if (!reader_is_kind(r, list, YAML_LIST, "tuned", "a list of tuned files"))
        return;
    for (const yaml_node *node = list->first; node; node = node->next) {
        if (!reader_is_path(r, node, "tuned", "the name of a tuned file"))
            continue;
        const yaml_node *first = reader_earlier(list, node);
        if (first)
            diagnose(r->d, node->at, message_tuned_twice, quote_text(r->arena, node->text), first->at.line);
        else
            read_file(r, node);
    }
}

/* ---- variants ----------------------------------------------------------------------------------------------------- */

static bool is_shaped(const plan *p, const kiln_family *family)
{
    for (size_t i = 0; i < p->shaped_count; i++)
        if (p->shaped[i].request.family == family)
            return true;
    return false;
}

/* Binds the times of one file; returns the number of variants that the bundle lacks, and the first. */
static size_t bind_file(plan *p, const name_table *ids, const tuned_file *file, const tuned_time **first)
{
    size_t lacking = 0;
    for (size_t i = 0; i < p->tuned_shape_count; i++) {
        tuned_shape *s = &p->tuned_shapes[i];
        for (size_t k = 0; k < s->time_count; k++) {
            tuned_time *time = &s->times[k];
            const size_t found = names_find(ids, time->id, strlen(time->id));
            if (strcmp(time->at.file, file->path) != 0)
                continue;
            time->variant = found == NAME_NONE ? NULL : p->variants[found];
            if (!time->variant && !is_shaped(p, s->family) && lacking++ == 0)
                *first = time;
        }
    }
    return lacking;
}

void tuned_bind(arena *a, plan *p, diagnostics *d)
{
    name_table ids = {0};
    for (size_t i = 0; i < p->variant_count; i++)
        names_add(a, &ids, p->variants[i]->id, i);
    for (size_t i = 0; i < p->tuned_count; i++) {
        const tuned_time *first = NULL;
        const size_t lacking = bind_file(p, &ids, p->tuned[i], &first);
        if (lacking > 0)
            warn(d, first->at, message_tuned_lacking, lacking, lacking == 1 ? "" : "s", first->id);
    }
}

/* ---- what was measured of a choice -------------------------------------------------------------------------------- */

uint32_t tuned_nanoseconds(const tuned_shape *s, const variant *v)
{
    for (size_t i = 0; i < s->time_count; i++)
        if (strcmp(s->times[i].id, v->id) == 0)
            return s->times[i].nanoseconds;
    return 0;
}

static bool has_time(const tuned_shape *s, const variant *const *variants, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (s->family == variants[i]->family && tuned_nanoseconds(s, variants[i]))
            return true;
    return false;
}

tuned_choice tuned_choice_of(arena *a, const plan *p, const variant *const *variants, size_t count)
{
    const size_t arg_count = count > 0 ? family_arg_count(variants[0]->family) : 0;
    tuned_choice c = {.shapes = arena_alloc(a, (p->tuned_shape_count + 1) * sizeof *c.shapes),
                      .args = arena_alloc(a, (arg_count + 1) * sizeof *c.args)};
    for (size_t i = 0; i < p->tuned_shape_count; i++)
        if (has_time(&p->tuned_shapes[i], variants, count))
            c.shapes[c.shape_count++] = &p->tuned_shapes[i];
    for (size_t k = 0; k < arg_count; k++) {
        bool is_named = false;
        for (size_t i = 0; i < c.shape_count && !is_named; i++)
            is_named = c.shapes[i]->sizes[k] != TUNED_ANY_SIZE;
        if (is_named)
            c.args[c.arg_count++] = k;
    }
    return c;
}
