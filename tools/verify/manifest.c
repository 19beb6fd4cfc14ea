/* Reads a manifest. Stops at the first mistake, since a program wrote the manifest. */
#include "manifest.h"

#include <stdlib.h>
#include <string.h>

#include "reader.h"

static formula *parse_formula(reader *r, fy_node *node, const char *name)
{
    char why[256];
    formula *f = formula_parse(r->memory, reader_get_text(r, node, name), why, sizeof why);
    if (!f)
        reader_refuse(r, "%s: %s", name, why);
    return f;
}

static formula *find_formula(reader *r, fy_node *object, const char *name)
{
    fy_node *node = reader_find_member(r, object, name);
    return node ? parse_formula(r, node, name) : NULL;
}

/* Returns the next member of an object, and its name; null: no more. */
static fy_node *next_member(reader *r, fy_node *object, void **iterator, const char **name)
{
    struct fy_node_pair *pair = fy_node_mapping_iterate(object, iterator);
    if (!pair)
        return NULL;
    *name = reader_get_text(r, fy_node_pair_key(pair), "a member's name");
    return fy_node_pair_value(pair);
}

static size_t count_members(reader *r, fy_node *object, const char *name)
{
    if (!fy_node_is_mapping(object))
        reader_refuse(r, "'%s' is not an object", name);
    return (size_t)fy_node_mapping_item_count(object);
}

/* ---- arguments -------------------------------------------------------------------------------------------------- */

static manifest_direction get_direction(reader *r, fy_node *object)
{
    static const char *const names[] = {"value",       "in",           "out",    "inout",
                                        "optional_in", "optional_out", "scratch"};
    const char *text = reader_get_text_member(r, object, "direction");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) == 0)
            return (manifest_direction)i;
    }
    reader_refuse(r, "no such direction: '%s'", text);
}

static void read_shape(reader *r, fy_node *node, manifest_arg *arg)
{
    arg->dimension_count = reader_get_count(r, node, "shape");
    if (arg->dimension_count > MAX_DIMENSIONS)
        reader_refuse(r, "%s has more than %d dimensions", arg->name, MAX_DIMENSIONS);
    for (size_t i = 0; i < arg->dimension_count; i++)
        arg->shape[i] = parse_formula(r, fy_node_sequence_get_by_index(node, (int)i), "shape");
}

/* Maps PTX's names: s32 is i32; b32, raw bits, is read as u32. */
static element_type read_type(const char *name)
{
    char spelled[8];
    if (strcmp(name, "bf16") == 0 || (name[0] != 's' && name[0] != 'b'))
        return element_parse(name);
    snprintf(spelled, sizeof spelled, "%c%s", name[0] == 's' ? 'i' : 'u', name + 1);
    return element_parse(spelled);
}

/* Finds an argument's offset in the struct from the family's own declaration; a scalar whose type depends on the
 * variant is a double there. */
static void place_arg(reader *r, fy_node *family_args, manifest_arg *arg)
{
    void *iterator = NULL;
    for (fy_node *a; (a = fy_node_sequence_iterate(family_args, &iterator));) {
        if (strcmp(reader_get_text_member(r, a, "name"), arg->name) != 0)
            continue;
        const char *type = reader_get_text_member(r, a, "type");
        arg->struct_type = type[0] == '$'                 ? ELEMENT_F64
                           : strcmp(type, "address") == 0 ? ELEMENT_U64
                                                          : read_type(type);
        arg->offset = reader_get_number_member(r, a, "offset");
        return;
    }
    reader_refuse(r, "the family has no argument '%s'", arg->name);
}

static void read_arg(reader *r, fy_node *node, fy_node *family_args, manifest_variant *v, manifest_arg *arg)
{
    arg->name = reader_get_text_member(r, node, "name");
    arg->direction = get_direction(r, node);
    arg->is_constant = reader_find_member(r, node, "constant") != NULL;
    arg->type_name = reader_get_text_member(r, node, "type");
    arg->type = read_type(arg->type_name);
    arg->alignment = 1;
    if (reader_find_member(r, node, "alignment"))
        arg->alignment = reader_get_number_member(r, node, "alignment");
    if (arg->alignment == 0)
        arg->alignment = 1;
    fy_node *shape = reader_find_member(r, node, "shape");
    if (shape)
        read_shape(r, shape, arg);
    place_arg(r, family_args, arg);
    uint64_t bytes = manifest_is_pointer(arg) ? 8 : element_bytes(arg->struct_type);
    if (bytes == 0)
        reader_refuse(r, "scalar '%s' is of an unknown type", arg->name);
    if (arg->offset + bytes > v->struct_bytes)
        reader_refuse(r, "'%s' lies outside the argument struct", arg->name);
}

/* ---- parameters ------------------------------------------------------------------------------------------------- */

/* Returns the number of a word in "f32 f64 f16", from the list with a number for each. */
static uint32_t word_number(reader *r, fy_node *declared, const char *word)
{
    const char *words = reader_get_text_member(r, declared, "words");
    fy_node *numbers = reader_get_member(r, declared, "numbers");
    const size_t count = reader_get_count(r, numbers, "numbers"), length = strlen(word);
    for (size_t i = 0; i < count && *words; i++) {
        const size_t this_length = strcspn(words, " ");
        if (this_length == length && memcmp(words, word, length) == 0) {
            const char *number =
                reader_get_text(r, fy_node_sequence_get_by_index(numbers, (int)i), "numbers");
            return (uint32_t)reader_parse_number(r, number, "numbers", 10);
        }
        words += this_length + (words[this_length] == ' ');
    }
    reader_refuse(r, "'%s' is not one of the parameter's words", word);
}

static uint32_t selector_of(reader *r, fy_node *declared, const char *value)
{
    const char *type = reader_get_text_member(r, declared, "type");
    if (strcmp(type, "word") == 0)
        return word_number(r, declared, value);
    if (strcmp(type, "bool") == 0)
        return strcmp(value, "true") == 0;
    return (uint32_t)reader_parse_number(r, value, "value", 10);
}

static void read_params(reader *r, fy_node *values, fy_node *family, manifest_variant *v)
{
    fy_node *declared = reader_get_member(r, family, "params");
    v->param_count = reader_get_count(r, declared, "params");
    v->params = pool_allocate(r->memory, (v->param_count + 1) * sizeof *v->params);
    for (size_t i = 0; i < v->param_count; i++) {
        manifest_param *param = &v->params[i];
        fy_node *p = fy_node_sequence_get_by_index(declared, (int)i);
        param->name = reader_get_text_member(r, p, "name");
        param->value = reader_get_text_member(r, values, param->name);
        param->words = reader_find_text(r, p, "words");
        param->is_contract = strcmp(reader_get_text_member(r, p, "role"), "contract") == 0;
        if (!param->is_contract)
            continue;
        param->selector = selector_of(r, p, param->value);
        param->offset = reader_get_number_member(r, p, "offset");
        if (param->offset + sizeof param->selector > v->struct_bytes)
            reader_refuse(r, "'%s' lies outside the argument struct", param->name);
    }
}

/* ---- variants --------------------------------------------------------------------------------------------------- */

static void read_block(reader *r, fy_node *node, manifest_variant *v)
{
    fy_node *block = reader_get_member(r, node, "block"), *grid = reader_get_member(r, node, "grid");
    if (reader_get_count(r, block, "block") != 3 || reader_get_count(r, grid, "grid") != 3)
        reader_refuse(r, "'block' and 'grid' have three members");
    for (int i = 0; i < 3; i++) {
        const char *threads = reader_get_text(r, fy_node_sequence_get_by_index(block, i), "block");
        v->block[i] = (uint32_t)reader_parse_number(r, threads, "block", 10);
    }
}

static void read_launch(reader *r, fy_node *node, manifest_variant *v)
{
    fy_node *grid = reader_get_member(r, node, "grid");
    for (int i = 0; i < 3; i++)
        v->grid[i] = parse_formula(r, fy_node_sequence_get_by_index(grid, i), "grid");
    v->shared_bytes = parse_formula(r, reader_get_member(r, node, "shared_bytes"), "shared_bytes");
    v->max_shared_bytes = reader_get_number_member(r, node, "max_shared_bytes");
    if (reader_find_member(r, node, "static_shared_bytes")) /* absent in older manifests */
        v->static_shared_bytes = reader_get_number_member(r, node, "static_shared_bytes");
}

static void read_rules(reader *r, fy_node *node, manifest_variant *v)
{
    v->rule_count = reader_get_count(r, node, "rules");
    v->rules = pool_allocate(r->memory, (v->rule_count + 1) * sizeof *v->rules);
    for (size_t i = 0; i < v->rule_count; i++) {
        fy_node *rule = fy_node_sequence_get_by_index(node, (int)i);
        v->rules[i].condition = parse_formula(r, reader_get_member(r, rule, "condition"), "rule");
        v->rules[i].text = reader_get_text_member(r, rule, "text");
    }
}

/* Reads the rows of the family's "dense", each of which has strides. */
static void read_strides(reader *r, fy_node *rows, manifest_variant *v)
{
    size_t count = 0;
    const char *name;
    void *iterator = NULL;
    for (fy_node *row; (row = fy_node_sequence_iterate(rows, &iterator));)
        count += count_members(r, reader_get_member(r, row, "strides"), "strides");
    v->strides = pool_allocate(r->memory, (count + 1) * sizeof *v->strides);
    iterator = NULL;
    for (fy_node *row; (row = fy_node_sequence_iterate(rows, &iterator));) {
        void *members = NULL;
        formula *when = find_formula(r, row, "when");
        for (fy_node *value; (value = next_member(r, reader_get_member(r, row, "strides"), &members, &name));)
            v->strides[v->stride_count++] = (manifest_stride){name, parse_formula(r, value, name), when};
    }
}

static fy_node *find_family(reader *r, fy_node *families, const char *name)
{
    void *iterator = NULL;
    for (fy_node *f; (f = fy_node_sequence_iterate(families, &iterator));) {
        if (strcmp(reader_get_text_member(r, f, "name"), name) == 0)
            return f;
    }
    reader_refuse(r, "no family '%s' is described", name);
}

static void read_hash(reader *r, const char *digits, manifest_image *image)
{
    if (strlen(digits) != 32)
        reader_refuse(r, "'xxh3_128' has 32 digits");
    image->hash_high = reader_parse_number(r, pool_copy(r->memory, digits, 16), "xxh3_128", 16);
    image->hash_low = reader_parse_number(r, digits + 16, "xxh3_128", 16);
}

static void read_cubin(reader *r, fy_node *image, manifest_variant *v)
{
    const char *target = reader_get_text_member(r, image, "target");
    char *kind = "";
    const unsigned long sm = strncmp(target, "sm_", 3) == 0 ? strtoul(target + 3, &kind, 10) : 0;
    if (sm == 0 || sm > UINT16_MAX)
        reader_refuse(r, "no target is called '%s'", target);
    v->cubins[v->cubin_count] = (manifest_cubin){target, reader_get_text_member(r, image, "ptx_xxh3_128")};
    v->cubin_images[v->cubin_count++] =
        (kiln_image){.sm = (uint16_t)sm,
                     .kind = *kind == 'a'   ? KILN_TARGET_ARCH
                             : *kind == 'f' ? KILN_TARGET_FAMILY
                                            : KILN_TARGET_BASE,
                     .min_driver = (uint32_t)reader_get_number_member(r, image, "min_driver"),
                     .format = KILN_IMAGE_CUBIN};
}

/* Cubins have a "format". */
static void read_images(reader *r, fy_node *images, manifest_variant *v)
{
    size_t count = images ? reader_get_count(r, images, "images") : 0;
    v->images = pool_allocate(r->memory, (count + 1) * sizeof *v->images);
    v->cubins = pool_allocate(r->memory, (count + 1) * sizeof *v->cubins);
    v->cubin_images = pool_allocate(r->memory, (count + 1) * sizeof *v->cubin_images);
    for (size_t i = 0; i < count; i++) {
        fy_node *image = fy_node_sequence_get_by_index(images, (int)i);
        if (reader_find_member(r, image, "format")) {
            read_cubin(r, image, v);
            continue;
        }
        manifest_image *read = &v->images[v->image_count++];
        read->target = reader_get_text_member(r, image, "target");
        read->bytes = reader_get_number_member(r, image, "bytes");
        read_hash(r, reader_get_text_member(r, image, "xxh3_128"), read);
        read->is_compressed = reader_find_member(r, image, "stored_bytes") != NULL;
    }
}

static void read_call(reader *r, fy_node *node, fy_node *family, manifest_variant *v)
{
    fy_node *args = reader_get_member(r, node, "args");
    v->arg_count = reader_get_count(r, args, "args");
    v->args = pool_allocate(r->memory, (v->arg_count + 1) * sizeof *v->args);
    for (size_t i = 0; i < v->arg_count; i++)
        read_arg(r, fy_node_sequence_get_by_index(args, (int)i), reader_get_member(r, family, "args"), v,
                 &v->args[i]);
    read_launch(r, reader_get_member(r, node, "launch"), v);
    read_rules(r, reader_get_member(r, node, "rules"), v);
    fy_node *dense = reader_find_member(r, family, "dense");
    if (dense)
        read_strides(r, dense, v);
    v->empty = find_formula(r, node, "empty");
    fy_node *cost = reader_find_member(r, node, "cost");
    if (cost) {
        v->bytes_read = find_formula(r, cost, "bytes_read");
        v->bytes_written = find_formula(r, cost, "bytes_written");
        v->elements = find_formula(r, cost, "elements");
    }
}

static void read_variant(reader *r, fy_node *node, fy_node *families, manifest_variant *v)
{
    v->id = r->where = reader_get_text_member(r, node, "id");
    v->key = reader_parse_number(r, reader_get_text_member(r, node, "key"), "key", 16);
    v->family = reader_get_text_member(r, node, "family");
    v->entry = reader_get_text_member(r, node, "entry");
    fy_node *family = find_family(r, families, v->family);
    v->family_function = reader_get_text_member(r, family, "function");
    v->struct_bytes = reader_get_number_member(r, family, "args_bytes");
    read_params(r, reader_get_member(r, node, "params"), family, v);
    read_images(r, reader_find_member(r, node, "images"), v);
    v->module = reader_find_text(r, node, "module");
    v->why_not_launched = reader_find_text(r, node, "not_launched");
    read_block(r, reader_get_member(r, node, "launch"), v);
    if (!v->why_not_launched)
        read_call(r, node, family, v);
}

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

static void read_contract(reader *r, fy_node *object, manifest_shape *shape)
{
    void *iterator = NULL;
    const char *name;
    shape->contract =
        pool_allocate(r->memory, (count_members(r, object, "contract") + 1) * sizeof *shape->contract);
    for (fy_node *values; (values = next_member(r, object, &iterator, &name));) {
        manifest_contract *c = &shape->contract[shape->contract_count++];
        c->param = name;
        c->value_count = reader_get_count(r, values, name);
        c->values = pool_allocate(r->memory, (c->value_count + 1) * sizeof *c->values);
        for (size_t i = 0; i < c->value_count; i++)
            c->values[i] = reader_get_text(r, fy_node_sequence_get_by_index(values, (int)i), name);
    }
}

static void read_sizes(reader *r, fy_node *object, bool are_usual, manifest_shape *shape)
{
    void *iterator = NULL;
    const char *name;
    for (fy_node *value; (value = next_member(r, object, &iterator, &name));) {
        manifest_size *size = &shape->sizes[shape->size_count++];
        *size = (manifest_size){.name = name, .is_usual = are_usual};
        if (fy_node_get_style(value) == FYNS_DOUBLE_QUOTED)
            size->formula = parse_formula(r, value, name);
        else
            size->number = reader_parse_number(r, reader_get_text(r, value, name), name, 10);
    }
}

static void read_shape_of_item(reader *r, fy_node *node, manifest_shape *shape)
{
    fy_node *sizes = reader_get_member(r, node, "sizes"), *usual = reader_find_member(r, node, "usual");
    const size_t count = count_members(r, sizes, "sizes") + (usual ? count_members(r, usual, "usual") : 0);
    shape->family = reader_get_text_member(r, node, "family");
    read_contract(r, reader_get_member(r, node, "contract"), shape);
    shape->sizes = pool_allocate(r->memory, (count + 1) * sizeof *shape->sizes);
    read_sizes(r, sizes, false, shape);
    if (usual)
        read_sizes(r, usual, true, shape);
}

static void read_shapes(reader *r, fy_node *shapes, manifest *m)
{
    void *iterator = NULL;
    const size_t count = reader_get_count(r, shapes, "shapes");
    r->where = "shapes";
    m->shapes = pool_allocate(r->memory, (count + 1) * sizeof *m->shapes);
    for (fy_node *node; (node = fy_node_sequence_iterate(shapes, &iterator));)
        read_shape_of_item(r, node, &m->shapes[m->shape_count++]);
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

static manifest *read_document(reader *r)
{
    fy_node *root = fy_document_root(r->document);
    manifest *m = pool_allocate(r->memory, sizeof *m);
    if (!root)
        reader_refuse(r, "it is empty");
    m->bundle = reader_get_text_member(r, root, "bundle");
    m->generator = reader_get_text_member(r, root, "generator");
    m->ptxas = reader_find_text(r, root, "ptxas");
    fy_node *families = reader_get_member(r, root, "families"),
            *variants = reader_get_member(r, root, "variants");
    reader_get_count(r, families, "families");
    m->variant_count = reader_get_count(r, variants, "variants");
    m->variants = pool_allocate(r->memory, (m->variant_count + 1) * sizeof *m->variants);
    void *iterator = NULL;
    for (size_t i = 0; i < m->variant_count; i++)
        read_variant(r, fy_node_sequence_iterate(variants, &iterator), families, &m->variants[i]);
    fy_node *shapes = reader_find_member(r, root, "shapes");
    if (shapes)
        read_shapes(r, shapes, m);
    return m;
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

const manifest *manifest_read(pool *p, const char *text, size_t length, char *error, size_t error_bytes)
{
    reader r = {.memory = p, .what = "manifest", .where = "", .error = error, .error_bytes = error_bytes};
    manifest *volatile m = NULL;
    if (!reader_open(&r, text, length))
        return NULL;
    if (setjmp(r.failed) == 0)
        m = read_document(&r);
    reader_close(&r);
    if (m)
        file_hash(text, length, m->hash);
    return m;
}

const manifest_variant *manifest_find_variant(const manifest *m, const char *id)
{
    for (size_t i = 0; i < m->variant_count; i++)
        if (strcmp(m->variants[i].id, id) == 0)
            return &m->variants[i];
    return NULL;
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

static bool has_value(const manifest_contract *c, const char *value)
{
    for (size_t i = 0; value && i < c->value_count; i++)
        if (strcmp(c->values[i], value) == 0)
            return true;
    return false;
}

bool manifest_is_for(const manifest_shape *shape, const manifest_variant *v)
{
    bool is_for = strcmp(shape->family, v->family) == 0;
    for (size_t i = 0; i < shape->contract_count && is_for; i++)
        is_for = has_value(&shape->contract[i], manifest_param_value(v, shape->contract[i].param));
    return is_for;
}

int manifest_compare_ids(const void *left, const void *right)
{
    const manifest_variant *const *a = left, *const *b = right;
    return strcmp((*a)->id, (*b)->id);
}

bool manifest_is_pointer(const manifest_arg *a)
{
    return a->direction != DIRECTION_VALUE;
}

bool manifest_is_integer(const manifest_arg *a)
{
    return !manifest_is_pointer(a) && a->type != ELEMENT_NONE && !element_is_float(a->type);
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
