/* Reads a manifest. The first mistake ends the reading: a manifest is written by a program. */
#include "manifest.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libfyaml.h>

typedef struct fy_node fy_node;

typedef struct reader {
    pool *memory;
    struct fy_document *document;
    const char *where; /* which family or variant is being read */
    char *error;
    size_t error_bytes;
    jmp_buf failed;
} reader;

_Noreturn static void refuse(reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

_Noreturn static void refuse(reader *r, const char *format, ...)
{
    char what[512];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    snprintf(r->error, r->error_bytes, "manifest%s%s: %s", r->where[0] ? ", " : "", r->where, what);
    longjmp(r->failed, 1);
}

/* ---- members of objects ----------------------------------------------------------------------------------------- */

/* Null when it is not there, or null. */
static fy_node *find_member(reader *r, fy_node *object, const char *name)
{
    if (!fy_node_is_mapping(object))
        refuse(r, "expected an object with '%s'", name);
    fy_node *member = fy_node_mapping_lookup_by_string(object, name, strlen(name));
    size_t length = 0;
    const char *text = member && fy_node_is_scalar(member) ? fy_node_get_scalar(member, &length) : NULL;
    bool is_null = text && length == 4 && memcmp(text, "null", 4) == 0;
    return is_null ? NULL : member;
}

static fy_node *get_member(reader *r, fy_node *object, const char *name)
{
    fy_node *member = find_member(r, object, name);
    if (!member)
        refuse(r, "'%s' is missing", name);
    return member;
}

static const char *get_text(reader *r, fy_node *node, const char *name)
{
    size_t length = 0;
    const char *text = fy_node_is_scalar(node) ? fy_node_get_scalar(node, &length) : NULL;
    if (!text)
        refuse(r, "'%s' is not a text", name);
    return pool_copy(r->memory, text, length);
}

static const char *get_text_member(reader *r, fy_node *object, const char *name)
{
    return get_text(r, get_member(r, object, name), name);
}

/* Null when it is not there, or null. */
static const char *find_text(reader *r, fy_node *object, const char *name)
{
    fy_node *member = find_member(r, object, name);
    return member ? get_text(r, member, name) : NULL;
}

static uint64_t parse_number(reader *r, const char *text, const char *name, int base)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, base);
    if (!*text || *end || *text == '-' || errno)
        refuse(r, "'%s' is '%s', no number", name, text);
    return value;
}

static uint64_t get_number_member(reader *r, fy_node *object, const char *name)
{
    return parse_number(r, get_text_member(r, object, name), name, 10);
}

static size_t get_count(reader *r, fy_node *array, const char *name)
{
    if (!fy_node_is_sequence(array))
        refuse(r, "'%s' is not an array", name);
    return (size_t)fy_node_sequence_item_count(array);
}

static formula *parse_formula(reader *r, fy_node *node, const char *name)
{
    char why[256];
    formula *f = formula_parse(r->memory, get_text(r, node, name), why, sizeof why);
    if (!f)
        refuse(r, "%s: %s", name, why);
    return f;
}

static formula *find_formula(reader *r, fy_node *object, const char *name)
{
    fy_node *node = find_member(r, object, name);
    return node ? parse_formula(r, node, name) : NULL;
}

/* ---- arguments -------------------------------------------------------------------------------------------------- */

static manifest_direction get_direction(reader *r, fy_node *object)
{
    static const char *const names[] = {"value",       "in",           "out",    "inout",
                                        "optional_in", "optional_out", "scratch"};
    const char *text = get_text_member(r, object, "direction");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0)
            return (manifest_direction)i;
    }
    refuse(r, "no such direction: '%s'", text);
}

static void read_shape(reader *r, fy_node *node, manifest_arg *arg)
{
    arg->dimension_count = get_count(r, node, "shape");
    if (arg->dimension_count > MAX_DIMENSIONS)
        refuse(r, "%s has more than %d dimensions", arg->name, MAX_DIMENSIONS);
    for (size_t i = 0; i < arg->dimension_count; i++)
        arg->shape[i] = parse_formula(r, fy_node_sequence_get_by_index(node, (int)i), "shape");
}

/* PTX's names: s32 is i32, b32 bits, which are as good as u32. */
static element_type read_type(const char *name)
{
    char spelled[8];
    if (strcmp(name, "bf16") == 0 || (name[0] != 's' && name[0] != 'b'))
        return element_parse(name);
    snprintf(spelled, sizeof spelled, "%c%s", name[0] == 's' ? 'i' : 'u', name + 1);
    return element_parse(spelled);
}

/* The family's own declaration of an argument says where it lies in the struct; a scalar whose type depends on the
 * variant is a double there. */
static void place_arg(reader *r, fy_node *family_args, manifest_arg *arg)
{
    void *iterator = NULL;
    for (fy_node *a; (a = fy_node_sequence_iterate(family_args, &iterator));) {
        if (strcmp(get_text_member(r, a, "name"), arg->name) != 0)
            continue;
        const char *type = get_text_member(r, a, "type");
        arg->struct_type = type[0] == '$'                 ? ELEMENT_F64
                           : strcmp(type, "address") == 0 ? ELEMENT_U64
                                                          : read_type(type);
        arg->offset = get_number_member(r, a, "offset");
        return;
    }
    refuse(r, "the family has no argument '%s'", arg->name);
}

static void read_arg(reader *r, fy_node *node, fy_node *family_args, manifest_variant *v, manifest_arg *arg)
{
    arg->name = get_text_member(r, node, "name");
    arg->direction = get_direction(r, node);
    arg->is_constant = find_member(r, node, "constant") != NULL;
    arg->type_name = get_text_member(r, node, "type");
    arg->type = read_type(arg->type_name);
    arg->alignment = 1;
    if (find_member(r, node, "alignment"))
        arg->alignment = get_number_member(r, node, "alignment");
    if (arg->alignment == 0)
        arg->alignment = 1;
    fy_node *shape = find_member(r, node, "shape");
    if (shape)
        read_shape(r, shape, arg);
    place_arg(r, family_args, arg);
    uint64_t bytes = manifest_is_pointer(arg) ? 8 : element_bytes(arg->struct_type);
    if (bytes == 0)
        refuse(r, "scalar '%s' is of an unknown type", arg->name);
    if (arg->offset + bytes > v->struct_bytes)
        refuse(r, "'%s' lies outside the argument struct", arg->name);
}

/* ---- parameters ------------------------------------------------------------------------------------------------- */

/* Of "f32 f64 f16" and as many numbers. */
static uint32_t word_number(reader *r, fy_node *declared, const char *word)
{
    const char *words = get_text_member(r, declared, "words");
    fy_node *numbers = get_member(r, declared, "numbers");
    const size_t count = get_count(r, numbers, "numbers"), length = strlen(word);
    for (size_t i = 0; i < count && *words; i++) {
        const size_t this_length = strcspn(words, " ");
        if (this_length == length && memcmp(words, word, length) == 0) {
            const char *number = get_text(r, fy_node_sequence_get_by_index(numbers, (int)i), "numbers");
            return (uint32_t)parse_number(r, number, "numbers", 10);
        }
        words += this_length + (words[this_length] == ' ');
    }
    refuse(r, "'%s' is not one of the parameter's words", word);
}

static uint32_t selector_of(reader *r, fy_node *declared, const char *value)
{
    const char *type = get_text_member(r, declared, "type");
    if (strcmp(type, "word") == 0)
        return word_number(r, declared, value);
    if (strcmp(type, "bool") == 0)
        return strcmp(value, "true") == 0;
    return (uint32_t)parse_number(r, value, "value", 10);
}

static void read_params(reader *r, fy_node *values, fy_node *family, manifest_variant *v)
{
    fy_node *declared = get_member(r, family, "params");
    v->param_count = get_count(r, declared, "params");
    v->params = pool_allocate(r->memory, (v->param_count + 1) * sizeof *v->params);
    for (size_t i = 0; i < v->param_count; i++) {
        manifest_param *param = &v->params[i];
        fy_node *p = fy_node_sequence_get_by_index(declared, (int)i);
        param->name = get_text_member(r, p, "name");
        param->value = get_text_member(r, values, param->name);
        param->is_contract = strcmp(get_text_member(r, p, "role"), "contract") == 0;
        if (!param->is_contract)
            continue;
        param->selector = selector_of(r, p, param->value);
        param->offset = get_number_member(r, p, "offset");
        if (param->offset + sizeof param->selector > v->struct_bytes)
            refuse(r, "'%s' lies outside the argument struct", param->name);
    }
}

/* ---- variants --------------------------------------------------------------------------------------------------- */

static void read_block(reader *r, fy_node *node, manifest_variant *v)
{
    fy_node *block = get_member(r, node, "block"), *grid = get_member(r, node, "grid");
    if (get_count(r, block, "block") != 3 || get_count(r, grid, "grid") != 3)
        refuse(r, "'block' and 'grid' have three members");
    for (int i = 0; i < 3; i++) {
        const char *threads = get_text(r, fy_node_sequence_get_by_index(block, i), "block");
        v->block[i] = (uint32_t)parse_number(r, threads, "block", 10);
    }
}

static void read_launch(reader *r, fy_node *node, manifest_variant *v)
{
    fy_node *grid = get_member(r, node, "grid");
    for (int i = 0; i < 3; i++)
        v->grid[i] = parse_formula(r, fy_node_sequence_get_by_index(grid, i), "grid");
    v->shared_bytes = parse_formula(r, get_member(r, node, "shared_bytes"), "shared_bytes");
    v->max_shared_bytes = get_number_member(r, node, "max_shared_bytes");
    if (find_member(r, node, "static_shared_bytes")) /* a manifest from before it was there lacks it */
        v->static_shared_bytes = get_number_member(r, node, "static_shared_bytes");
}

static void read_rules(reader *r, fy_node *node, manifest_variant *v)
{
    v->rule_count = get_count(r, node, "rules");
    v->rules = pool_allocate(r->memory, (v->rule_count + 1) * sizeof *v->rules);
    for (size_t i = 0; i < v->rule_count; i++) {
        fy_node *rule = fy_node_sequence_get_by_index(node, (int)i);
        v->rules[i].condition = parse_formula(r, get_member(r, rule, "condition"), "rule");
        v->rules[i].text = get_text_member(r, rule, "text");
    }
}

static fy_node *find_family(reader *r, fy_node *families, const char *name)
{
    void *iterator = NULL;
    for (fy_node *f; (f = fy_node_sequence_iterate(families, &iterator));) {
        if (strcmp(get_text_member(r, f, "name"), name) == 0)
            return f;
    }
    refuse(r, "no family '%s' is described", name);
}

static void read_hash(reader *r, const char *digits, manifest_image *image)
{
    if (strlen(digits) != 32)
        refuse(r, "'xxh3_128' has 32 digits");
    image->hash_high = parse_number(r, pool_copy(r->memory, digits, 16), "xxh3_128", 16);
    image->hash_low = parse_number(r, digits + 16, "xxh3_128", 16);
}

/* Of PTX; cubins have a "format". */
static void read_images(reader *r, fy_node *images, manifest_variant *v)
{
    size_t count = images ? get_count(r, images, "images") : 0;
    v->images = pool_allocate(r->memory, (count + 1) * sizeof *v->images);
    for (size_t i = 0; i < count; i++) {
        fy_node *image = fy_node_sequence_get_by_index(images, (int)i);
        if (find_member(r, image, "format"))
            continue;
        manifest_image *read = &v->images[v->image_count++];
        read->target = get_text_member(r, image, "target");
        read->bytes = get_number_member(r, image, "bytes");
        read_hash(r, get_text_member(r, image, "xxh3_128"), read);
        read->is_compressed = find_member(r, image, "stored_bytes") != NULL;
    }
}

static void read_call(reader *r, fy_node *node, fy_node *family, manifest_variant *v)
{
    fy_node *args = get_member(r, node, "args");
    v->arg_count = get_count(r, args, "args");
    v->args = pool_allocate(r->memory, (v->arg_count + 1) * sizeof *v->args);
    for (size_t i = 0; i < v->arg_count; i++)
        read_arg(r, fy_node_sequence_get_by_index(args, (int)i), get_member(r, family, "args"), v,
                 &v->args[i]);
    read_launch(r, get_member(r, node, "launch"), v);
    read_rules(r, get_member(r, node, "rules"), v);
    v->empty = find_formula(r, node, "empty");
    fy_node *cost = find_member(r, node, "cost");
    if (cost) {
        v->bytes_read = find_formula(r, cost, "bytes_read");
        v->bytes_written = find_formula(r, cost, "bytes_written");
        v->elements = find_formula(r, cost, "elements");
    }
}

static void read_variant(reader *r, fy_node *node, fy_node *families, manifest_variant *v)
{
    v->id = r->where = get_text_member(r, node, "id");
    v->key = parse_number(r, get_text_member(r, node, "key"), "key", 16);
    v->family = get_text_member(r, node, "family");
    v->entry = get_text_member(r, node, "entry");
    fy_node *family = find_family(r, families, v->family);
    v->family_function = get_text_member(r, family, "function");
    v->struct_bytes = get_number_member(r, family, "args_bytes");
    read_params(r, get_member(r, node, "params"), family, v);
    read_images(r, find_member(r, node, "images"), v);
    v->module = find_text(r, node, "module");
    v->why_not_launched = find_text(r, node, "not_launched");
    read_block(r, get_member(r, node, "launch"), v);
    if (!v->why_not_launched)
        read_call(r, node, family, v);
}

static const manifest *read_document(reader *r)
{
    fy_node *root = fy_document_root(r->document);
    manifest *m = pool_allocate(r->memory, sizeof *m);
    if (!root)
        refuse(r, "it is empty");
    m->bundle = get_text_member(r, root, "bundle");
    m->generator = get_text_member(r, root, "generator");
    fy_node *families = get_member(r, root, "families"), *variants = get_member(r, root, "variants");
    get_count(r, families, "families");
    m->variant_count = get_count(r, variants, "variants");
    m->variants = pool_allocate(r->memory, (m->variant_count + 1) * sizeof *m->variants);
    void *iterator = NULL;
    for (size_t i = 0; i < m->variant_count; i++)
        read_variant(r, fy_node_sequence_iterate(variants, &iterator), families, &m->variants[i]);
    return m;
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

static struct fy_document *parse_json(const char *text, size_t length, char *error, size_t error_bytes)
{
    struct fy_diag_cfg diag_configuration;
    fy_diag_cfg_default(&diag_configuration);
    struct fy_diag *diag = fy_diag_create(&diag_configuration);
    if (!diag) {
        snprintf(error, error_bytes, "manifest: no memory to read it");
        return NULL;
    }
    fy_diag_set_collect_errors(diag, true);
    struct fy_parse_cfg configuration = {.flags = FYPCF_QUIET | FYPCF_JSON_FORCE, .diag = diag};
    struct fy_document *document = fy_document_build_from_string(&configuration, text, length);
    if (!document) {
        void *iterator = NULL;
        const struct fy_diag_error *first = fy_diag_errors_iterate(diag, &iterator);
        snprintf(error, error_bytes, "manifest, line %d: %s", first ? first->line : 0,
                 first ? first->msg : "not JSON");
    }
    fy_diag_destroy(diag);
    return document;
}

const manifest *manifest_read(pool *p, const char *text, size_t length, char *error, size_t error_bytes)
{
    reader r = {.memory = p, .where = "", .error = error, .error_bytes = error_bytes};
    const manifest *volatile m = NULL;
    r.document = parse_json(text, length, error, error_bytes);
    if (!r.document)
        return NULL;
    if (setjmp(r.failed) == 0)
        m = read_document(&r);
    fy_document_destroy(r.document);
    return m;
}

const manifest_arg *manifest_find_arg(const manifest_variant *v, const char *name)
{
    for (size_t i = 0; i < v->arg_count; i++) {
        if (strcmp(v->args[i].name, name) == 0)
            return &v->args[i];
    }
    return NULL;
}

const char *manifest_param_value(const manifest_variant *v, const char *name)
{
    for (size_t i = 0; i < v->param_count; i++) {
        if (strcmp(v->params[i].name, name) == 0)
            return v->params[i].value;
    }
    return NULL;
}

bool manifest_is_pointer(const manifest_arg *a)
{
    return a->direction != DIRECTION_VALUE;
}

bool manifest_is_input(const manifest_arg *a)
{
    return a->direction == DIRECTION_IN || a->direction == DIRECTION_INOUT ||
           a->direction == DIRECTION_OPTIONAL_IN;
}

bool manifest_is_output(const manifest_arg *a)
{
    return a->direction == DIRECTION_OUT || a->direction == DIRECTION_INOUT ||
           a->direction == DIRECTION_OPTIONAL_OUT;
}
