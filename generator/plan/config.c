/* The configuration: YAML -> plan. One function per key; each reports what it expected and continues. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/driver.h>

#include "config_reader.h"
#include "family/family.h"
#include "support/files.h"
#include "support/messages.h"
#include "support/quote.h"
#include "support/words.h"
#include "target/target.h"
#include "variants.h"

enum { LARGEST_FILE_BYTES = 16 * 1024 * 1024, DIGITS_OF_BYTES = 18 };

/* ---- bundle ----------------------------------------------------------------------------------------------------- */

static bool is_identifier(const char *s)
{
    for (const char *c = s; *c; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
        if (!letter && !(*c >= '0' && *c <= '9' && c > s))
            return false;
    }
    return *s != '\0';
}

/* Why names of generated files or functions would collide; null: they do not. */
static const char *owner_of(const char *name)
{
    if (name[0] == '_')
        return "which C keeps for itself";
    if (strcmp(name, "kiln") == 0)
        return "which the runtime's names begin with";
    if (words_contain("check launch", name))
        return "with which names of generated static functions begin";
    if (strcmp(name, "cuda") == 0)
        return "the CUDA driver's header";
    return words_contain(c_headers, name) ? "a header of the C library" : NULL;
}

static void read_bundle(reader *r, const yaml_node *node)
{
    if (!reader_is_kind(r, node, YAML_SCALAR, "bundle", "a C identifier"))
        return;
    const bool is_old_boolean = !node->quoted && words_contain("yes no on off", node->text);
    if (!is_identifier(node->text))
        diagnose(r->d, node->at, message_bundle_not_identifier, reader_quote(r, node));
    else if (is_old_boolean)
        diagnose(r->d, node->at, message_bundle_old_boolean, reader_quote(r, node),
                 reader_old_boolean(node->text));
    else if (words_contain(c_keywords, node->text))
        diagnose(r->d, node->at, message_bundle_keyword, reader_quote(r, node));
    else if (owner_of(node->text))
        diagnose(r->d, node->at, message_bundle_reserved, reader_quote(r, node), owner_of(node->text));
    else if (strlen(node->text) > LONGEST_BUNDLE)
        diagnose(r->d, node->at, message_bundle_too_long, LONGEST_BUNDLE, strlen(node->text));
    r->plan->bundle = node->text;
}

static void read_license(reader *r, const yaml_node *node)
{
    r->plan->license = reader_license(r, node);
}

/* ---- targets and images ----------------------------------------------------------------------------------------- */

/* Keeps targets sorted, regardless of the file's order. */
static void insert_target(reader *r, target t, place at)
{
    size_t i = r->plan->target_count++;
    for (; i > 0 && target_compare(t, r->plan->targets[i - 1]) < 0; i--) {
        r->plan->targets[i] = r->plan->targets[i - 1];
        r->target_places[i] = r->target_places[i - 1];
    }
    r->plan->targets[i] = t;
    r->target_places[i] = at;
}

static void add_target(reader *r, const char *word, const char *quoted, place at)
{
    target t;
    if (!target_parse(word, &t)) {
        diagnose(r->d, at, message_target_unknown, quoted, target_suggest_text(r->arena, word));
        r->has_wrong_target = true;
        return;
    }
    for (size_t i = 0; i < r->plan->target_count; i++)
        if (target_compare(t, r->plan->targets[i]) == 0) {
            const int line = r->target_places[i].line;
            diagnose(r->d, at, message_target_twice, word,
                     line > 0 ? arena_format(r->arena, "; the first is on line %d", line) : "");
            return;
        }
    insert_target(r, t, at);
}

/* Reads the words of --targets, which replace the configuration's. */
static void read_target_option(reader *r, const char *words)
{
    const int before = r->d->count;
    r->plan->target_option = words;
    r->plan->target_count = 0;
    const char *w = words, *end;
    do {
        end = w + strcspn(w, ",");
        const char *word = arena_string(r->arena, w, (size_t)(end - w));
        const char *quoted = arena_format(r->arena, "'%s'", quote_text(r->arena, word));
        add_target(r, word, quoted, (place){.file = "--targets (TARGETS in CMake)"});
        w = end + 1;
    } while (*end);
    r->d->has_usage = r->d->count > before;
}

static void read_targets(reader *r, const yaml_node *list)
{
    if (!reader_is_kind(r, list, YAML_LIST, "targets", "a list of targets"))
        return;
    for (const yaml_node *node = list->first; node; node = node->next)
        if (reader_is_kind(r, node, YAML_SCALAR, "targets", "a target"))
            add_target(r, node->text, reader_quote(r, node), node->at);
    if (r->options->targets)
        read_target_option(r, r->options->targets);
}

const char image_formats[] = "ptx cubin";

static void add_image_format(reader *r, const char *word, const char *quoted, place at, const char *first)
{
    bool *has = strcmp(word, "cubin") == 0 ? &r->plan->has_cubins : &r->plan->has_ptx;
    if (!words_contain(image_formats, word))
        diagnose(r->d, at, message_image_unknown, quoted, suggest_text(r->arena, word, image_formats));
    else if (*has)
        diagnose(r->d, at, message_image_twice, word, first);
    else
        *has = true;
}

static void read_images(reader *r, const yaml_node *list)
{
    if (!reader_is_kind(r, list, YAML_LIST, "images", "a list of image formats"))
        return;
    r->plan->images_at = list->at;
    r->plan->has_ptx = false;
    for (const yaml_node *node = list->first; node; node = node->next) {
        if (!reader_is_kind(r, node, YAML_SCALAR, "images", "an image format"))
            continue;
        const yaml_node *first = reader_earlier(list, node);
        add_image_format(r, node->text, reader_quote(r, node), node->at,
                         first ? arena_format(r->arena, "; the first is on line %d", first->at.line) : "");
    }
}

/* Reads the words of --images, which replace the configuration's. */
static void read_image_option(reader *r, const char *words)
{
    const place at = {.file = "--images (IMAGES in CMake)"};
    const int before = r->d->count;
    r->plan->image_option = words;
    r->plan->images_at = at;
    r->plan->has_ptx = r->plan->has_cubins = false;
    const char *w = words, *end;
    do {
        end = w + strcspn(w, ",");
        const char *word = arena_string(r->arena, w, (size_t)(end - w));
        add_image_format(r, word, arena_format(r->arena, "'%s'", quote_text(r->arena, word)), at, "");
        w = end + 1;
    } while (*end);
    r->d->has_usage = r->d->has_usage || r->d->count > before;
}

const char image_codecs[] = "zstd";

static void read_compress(reader *r, const yaml_node *node)
{
    if (!reader_is_kind(r, node, YAML_SCALAR, "compress", image_codecs))
        return;
    if (!words_contain(image_codecs, node->text))
        diagnose(r->d, node->at, message_compress_unknown, reader_quote(r, node),
                 suggest_text(r->arena, node->text, image_codecs));
    r->plan->is_compressed = true;
    r->plan->compress_at = node->at;
}

/* ---- values of parameters --------------------------------------------------------------------------------------- */

static bool is_digits(const char *s)
{
    return *s && s[strspn(s, "0123456789")] == '\0' && (s[0] != '0' || !s[1]);
}

/* Each reports why the node is not a value of the parameter, or returns true. */

static bool take_word(const reader *r, const kiln_param *param, const yaml_node *node)
{
    if (param_has_value(param, node->text))
        return true;
    diagnose(r->d, node->at, message_value_unknown, param->name, reader_quote(r, node),
             suggest_text(r->arena, node->text, param->words));
    return false;
}

static bool take_boolean(const reader *r, const kiln_param *param, const yaml_node *node)
{
    bool is_value = param_has_value(param, node->text);
    if (is_value && node->quoted)
        diagnose(r->d, node->at, message_value_quoted, "true or false", param->name, reader_quote(r, node));
    else if (!is_value)
        diagnose(r->d, node->at, message_value_not_boolean, param->name, reader_quote(r, node),
                 reader_suggest_boolean(r, node->text));
    return is_value && !node->quoted;
}

static bool take_integer(const reader *r, const kiln_param *param, const yaml_node *node)
{
    if (!is_digits(node->text)) {
        diagnose(r->d, node->at, message_value_not_integer, param->name, reader_quote(r, node));
    } else if (node->quoted) {
        diagnose(r->d, node->at, message_value_quoted, "an integer", param->name, reader_quote(r, node));
    } else if (!param_has_value(param, node->text)) {
        const char *values = param_values_text(r->arena, param);
        diagnose(r->d, node->at, message_value_out_of_range,
                 param->words ? arena_format(r->arena, "one of %s", list_text(r->arena, values)) : values,
                 param->name, reader_quote(r, node));
    } else {
        return true;
    }
    return false;
}

static bool take_value(const reader *r, const kiln_param *param, const yaml_node *node)
{
    static bool (*const take[])(const reader *, const kiln_param *, const yaml_node *) = {
        [KILN_PARAM_WORD] = take_word, [KILN_PARAM_INT] = take_integer, [KILN_PARAM_BOOL] = take_boolean};
    static const char *const expected[] = {
        [KILN_PARAM_WORD] = "a word", [KILN_PARAM_INT] = "an integer", [KILN_PARAM_BOOL] = "true or false"};
    return reader_is_kind(r, node, YAML_SCALAR, param->name, expected[param->type]) &&
           take[param->type](r, param, node);
}

static void add_value(const reader *r, request *q, size_t index, const yaml_node *node)
{
    param_value *value = arena_push(r->arena, (void **)&q->values[index].items, &q->values[index].count,
                                    &q->values[index].capacity, sizeof *value);
    *value = param_value_of(r->arena, &q->family->params[index], node->text);
}

/* One value, or a list of them; false after a diagnostic. */
static bool read_values(const reader *r, request *q, size_t index, const yaml_node *node)
{
    const kiln_param *param = &q->family->params[index];
    if (node->kind != YAML_LIST || node->refused) {
        bool ok = take_value(r, param, node);
        if (ok)
            add_value(r, q, index, node);
        return ok;
    }
    bool all = reader_is_kind(r, node, YAML_LIST, param->name, "a value or a list of values");
    for (const yaml_node *item = node->first; item; item = item->next) {
        const yaml_node *first = NULL;
        bool ok = take_value(r, param, item);
        if (ok && (first = reader_earlier(node, item)))
            diagnose(r->d, item->at, message_value_twice, param->name, item->text, first->at.line);
        if (ok && !first)
            add_value(r, q, index, item);
        all = all && ok && !first;
    }
    return all;
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

static const kiln_family *read_family(const reader *r, const yaml_node *item)
{
    const yaml_node *node = yaml_member(item, "family");
    if (!node) {
        diagnose(r->d, item->at, message_missing_key, "family", "NAME");
        return NULL;
    }
    if (!reader_is_kind(r, node, YAML_SCALAR, "family", "the name of a family"))
        return NULL;
    const kiln_family *family = family_find(r->plan->families, node->text);
    if (!family)
        diagnose(r->d, node->at, message_family_unknown, reader_quote(r, node),
                 suggest_listed_text(r->arena, node->text, family_names(r->arena, r->plan->families),
                                     "kiln families"));
    return family;
}

/* "legal": skips combinations that break a constraint. */
static bool read_combinations(const reader *r, request *q, const yaml_node *node)
{
    if (!reader_is_kind(r, node, YAML_SCALAR, "combinations", "all or legal"))
        return false;
    q->is_legal_only = strcmp(node->text, "legal") == 0;
    if (words_contain("all legal", node->text))
        return true;
    diagnose(r->d, node->at, message_combinations_unknown, reader_quote(r, node),
             suggest_text(r->arena, node->text, "all legal"));
    return false;
}

void reader_read_kernel(reader *r, const yaml_node *item)
{
    if (!reader_is_kind(r, item, YAML_MAP, "kernels", "a mapping with 'family' or 'ptx'"))
        return;
    if (yaml_member(item, "ptx") && !yaml_member(item, "family")) {
        reader_read_ptx(r, item);
        return;
    }
    request q = {.family = read_family(r, item), .at = item->at, .takes_stranded = r->takes_stranded};
    if (!q.family)
        return;
    const bool is_shaped = yaml_member(item, "shapes") != NULL;
    bool ok = true;
    for (const yaml_node *node = item->first; node; node = node->next) {
        char nearest[64];
        size_t index;
        if (strcmp(node->key, "family") == 0)
            continue;
        if (strcmp(node->key, "combinations") == 0 && !is_shaped) {
            ok = read_combinations(r, &q, node) && ok;
            continue;
        }
        if (words_contain(shaped_keys, node->key) || strcmp(node->key, "combinations") == 0) {
            ok = ok && is_shaped && strcmp(node->key, "combinations") != 0;
            if (is_shaped && strcmp(node->key, "combinations") == 0)
                diagnose(r->d, node->key_at, message_shapes_combinations);
            else if (!is_shaped)
                diagnose(r->d, node->key_at, message_shapes_needed, node->key);
            continue;
        }
        if (family_find_param(q.family, node->key, &index)) {
            ok = read_values(r, &q, index, node) && ok;
            continue;
        }
        ok = false;
        const char *names = family_param_names(r->arena, q.family);
        const char *close = nearest_word(node->key,
                                         "combinations shapes devices workspace within max_variants "
                                         "only_these_shapes",
                                         nearest, sizeof nearest);
        diagnose(r->d, node->key_at, message_param_unknown, q.family->name,
                 arena_format(r->arena, "'%s'", quote_text(r->arena, node->key)),
                 suggest_listed_text(r->arena, node->key, close ? close : names,
                                     arena_format(r->arena, "kiln families %s", q.family->name)));
    }
    if (ok && is_shaped)
        reader_read_shaped(r, item, &q);
    else if (ok)
        request_expand(r->arena, &q, r->plan, r->d);
}

static void read_kernels(reader *r, const yaml_node *list)
{
    if (!reader_is_kind(r, list, YAML_LIST, "kernels", "a list of kernels"))
        return;
    for (const yaml_node *item = list->first; item; item = item->next)
        reader_read_kernel(r, item);
    for (size_t i = 0; i < r->plan->variant_count; i++)
        names_add(r->arena, &r->family_names, r->plan->variants[i]->family->name, i);
}

/* ---- limits ------------------------------------------------------------------------------------------------------- */

static void read_budget(reader *r, const kiln_family *family, const yaml_node *node)
{
    if (!reader_is_kind(r, node, YAML_SCALAR, "max_bytes", "a number of bytes"))
        return;
    if (node->quoted || !is_digits(node->text) || strlen(node->text) > DIGITS_OF_BYTES) {
        diagnose(r->d, node->at, message_bytes_not_integer, reader_quote(r, node));
        return;
    }
    budget *b = arena_push(r->arena, (void **)&r->plan->budgets, &r->plan->budget_count, &r->budget_capacity,
                           sizeof *b);
    *b = (budget){family, strtoull(node->text, NULL, 10), node->at};
}

/* The keys that max_bytes may have: bundle, and the families of the variants. */
static const char *budget_names(const reader *r)
{
    text names = text_new(r->arena);
    text_add(&names, "bundle");
    for (size_t i = 0; i < r->plan->variant_count; i++) {
        const char *name = r->plan->variants[i]->family->name;
        if (names_find(&r->family_names, name, strlen(name)) == i)
            text_printf(&names, " %s", name);
    }
    for (size_t i = 0; i < r->plan->shaped_count; i++)
        if (!words_contain(names.data, r->plan->shaped[i].request.family->name))
            text_printf(&names, " %s", r->plan->shaped[i].request.family->name);
    return names.data;
}

/* A number for the bundle, or a mapping from families and `bundle` to numbers. */
static void read_max_bytes(reader *r, const yaml_node *node)
{
    if (node->kind != YAML_MAP || node->refused) {
        read_budget(r, NULL, node);
        return;
    }
    const char *names = budget_names(r);
    for (const yaml_node *item = node->first; item; item = item->next) {
        const kiln_family *family = reader_find_family(r, item->key);
        if (family || strcmp(item->key, "bundle") == 0)
            read_budget(r, family, item);
        else
            diagnose(r->d, item->key_at, message_budget_unknown,
                     arena_format(r->arena, "'%s'", quote_text(r->arena, item->key)),
                     suggest_text(r->arena, item->key, diagnostics_show_more(r->d) ? names : ""));
    }
}

/* "12.2" */
static void read_max_driver(reader *r, const yaml_node *node)
{
    enum { OLDEST_CUDA = KILN_OLDEST_DRIVER / 1000, NEWEST_CUDA = 99 };
    char *end;
    if (!reader_is_kind(r, node, YAML_SCALAR, "max_driver", "a version of CUDA"))
        return;
    const char *dot = strchr(node->text, '.');
    const unsigned long major = strtoul(node->text, &end, 10);
    const bool is_version = !node->quoted && dot && end == dot && *node->text >= '0' && *node->text <= '9' &&
                            is_digits(dot + 1) && strlen(dot + 1) == 1;
    if (!is_version || major < OLDEST_CUDA || major > NEWEST_CUDA) {
        diagnose(r->d, node->at, message_driver_not_version, reader_quote(r, node));
        return;
    }
    r->plan->max_driver = (uint32_t)(major * 1000 + (unsigned long)(dot[1] - '0') * 10);
    r->plan->max_driver_at = node->at;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

/* In reading order: kernels needs the targets. */
static const struct {
    const char *key;
    void (*read)(reader *, const yaml_node *);
    const char *example; /* null: optional */
} keys[] = {
    /* clang-format off */
    {"bundle",     read_bundle,       "NAME"},
    {"targets",    read_targets,      "[sm_80, ...]"},
    {"license",    read_license,      NULL},
    {"images",     read_images,       NULL},
    {"compress",   read_compress,     NULL},
    {"kernels",    read_kernels,      "[...]"},
    {"max_bytes",  read_max_bytes,    NULL},
    {"max_driver", read_max_driver,   NULL},
    {"tuned",      reader_read_tuned, NULL},
    /* clang-format on */
};

static const char known_keys[] = "bundle license targets images compress kernels max_bytes max_driver tuned";

static void read_root(reader *r, const yaml_node *root)
{
    reader_check_keys(r, root, known_keys, "the configuration");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const yaml_node *node = yaml_member(root, keys[i].key);
        if (node)
            keys[i].read(r, node);
        else if (keys[i].example)
            diagnose(r->d, root->at, message_missing_key, keys[i].key, keys[i].example);
    }
    if (r->options->images)
        read_image_option(r, r->options->images);
    reader_check_ptx_names(r);
    if (r->d->count == 0 && r->options->choose)
        r->options->choose(r->arena, r->plan, r->d, r->options->choose_context);
    if (r->d->count == 0) /* skips the check if an item had an error, since its variants are missing */
        tuned_bind(r->arena, r->plan, r->d);
    plan_check(r->arena, r->plan, r->target_places, r->d);
}

plan *config_read_text(arena *a, family_list families, const char *path, const char *data, size_t bytes,
                       const config_options *options, diagnostics *d)
{
    int before = d->count;
    const yaml_node *root = yaml_parse(a, path, data, bytes, d);
    if (!root) {
        if (d->count == before)
            diagnose(d, (place){path, 1, 1}, message_file_empty);
        return NULL;
    }
    reader r = {.arena = a, .d = d, .plan = arena_alloc(a, sizeof(plan))};
    static const config_options none;
    r.options = options ? options : &none;
    r.is_ptx_used = arena_alloc(a, r.options->ptx_count + 1);
    r.plan->families = families;
    r.plan->has_ptx = true;
    r.plan->config_path = file_is_stream(path) ? "-" : path;
    r.plan->config = data;
    r.plan->config_bytes = bytes;
    reader_add_input(&r, path);
    r.plan->targets = arena_alloc(a, TARGETS_MOST * sizeof(target));
    r.target_places = arena_alloc(a, TARGETS_MOST * sizeof(place));
    if (reader_is_kind(&r, root, YAML_MAP, path, "a configuration (bundle, targets, kernels)"))
        read_root(&r, root);
    return d->count == before ? r.plan : NULL;
}

plan *config_read(arena *a, family_list families, const char *path, const config_options *options,
                  diagnostics *d)
{
    text data;
    const char *why;
    if (!file_read(a, path, LARGEST_FILE_BYTES, &data, &why)) {
        diagnose(d, (place){.file = path}, message_file_unreadable, why);
        return NULL;
    }
    return config_read_text(a, families, path, data.data, data.length, options, d);
}
