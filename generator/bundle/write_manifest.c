/* NAME.json: the bundle as data, for tools and for comparison with a rebuild. */
#include "write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/kiln.h>

#include "compress.h"
#include "external/ptx_file.h"
#include "family/dense.h"
#include "family/describe.h"
#include "family/family.h"
#include "family/word_number.h"
#include "maps.h"
#include "support/json.h"
#include "support/words.h"

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

/* An argument that the expression names and the variant lacks, or null. Variants of external PTX have all arguments,
 * possibly more than KILN_MAX_ARGS. */
static const kiln_arg *missing_arg(const expression *e, const variant *v)
{
    bool is_named[KILN_MAX_ARGS] = {false};
    if (v->kind == VARIANT_EXTERNAL)
        return NULL;
    expression_mark_args(e, is_named);
    for (const kiln_arg *arg = v->family->args; arg->name; arg++)
        if (is_named[arg - v->family->args] && !variant_has_arg(v, arg))
            return arg;
    return NULL;
}

static const char *bound(arena *a, const kiln_family *family, const char *expression_text, const variant *v)
{
    if (!expression_text)
        return NULL;
    text out = text_new(a);
    const expression *e = bind_text(a, family, expression_text, v);
    const kiln_arg *missing = v ? missing_arg(e, v) : NULL;
    if (missing) /* readers of the manifest could not evaluate it */
        family_error("%s: '%s' names %s, which the variant lacks", v->id, expression_text, missing->name);
    expression_print(&out, e);
    return out.data;
}

/* The number of each word in argument structs. */
static void add_numbers(arena *a, json *j, const kiln_param *param)
{
    const char *words = param->words;
    size_t length;
    json_key(j, "numbers");
    json_begin_inline_array(j);
    for (const char *w; (w = words_next(&words, &length));)
        json_number(j, word_number(a, param, arena_string(a, w, length)));
    json_end(j);
}

static void add_param(arena *a, json *j, const bundle_family *f, const kiln_param *param)
{
    static const char *const types[] = {
        [KILN_PARAM_WORD] = "word", [KILN_PARAM_INT] = "int", [KILN_PARAM_BOOL] = "bool"};
    json_begin_inline_object(j);
    json_string_member(j, "name", param->name);
    json_string_member(j, "type", types[param->type]);
    json_string_member(j, "role", param->role == KILN_ROLE_CONTRACT ? "contract" : "tuning");
    if (param->words) {
        json_string_member(j, "words", param->words);
        if (param->role == KILN_ROLE_CONTRACT && param->type == KILN_PARAM_WORD)
            add_numbers(a, j, param);
    } else if (param->type == KILN_PARAM_INT) {
        json_number_member(j, "min", param->min);
        json_number_member(j, "max", param->max);
        json_number_member(j, "step", param->step);
    }
    json_string_member(j, "default", param->default_value);
    for (size_t i = 0; i < f->field_count; i++)
        if (f->fields[i].param == param)
            json_number_member(j, "offset", f->fields[i].offset);
    if (param->summary)
        json_string_member(j, "summary", summary_text(a, param->summary));
    json_end(j);
}

static void add_shape(arena *a, json *j, const kiln_family *family, const char *shape, const variant *v)
{
    const expression *const *dimensions;
    const size_t count = expression_parse_list(a, family, shape, &dimensions);
    json_key(j, "shape");
    json_begin_inline_array(j);
    for (size_t i = 0; i < count; i++) {
        text out = text_new(a);
        expression_print(&out, expression_bind(a, dimensions[i], v));
        json_string(j, out.data);
    }
    json_end(j);
}

/* v null: the argument as the family declares it; otherwise as the variant has it. */
static void add_arg(arena *a, json *j, const bundle_family *f, const bundle_field *field, const variant *v)
{
    const kiln_arg *arg = field->arg;
    json_begin_inline_object(j);
    json_string_member(j, "name", arg->name);
    json_string_member(j, "type", v ? variant_arg_type(v, arg) : arg->type);
    json_string_member(j, "direction", arg_direction(arg->kind));
    if (arg->kind == KILN_ARG_CONSTANT)
        json_boolean_member(j, "constant", true);
    if (arg->shape)
        add_shape(a, j, f->family, arg->shape, v);
    if (arg->kind != KILN_ARG_VALUE)
        json_number_member(j, "alignment", v ? variant_arg_alignment(a, v, arg) : arg_alignment(arg));
    const char *own = v ? NULL : arg_variant_alignment(f->family, arg);
    if (own)
        json_string_member(j, "variant_alignment", bound(a, f->family, own, NULL));
    if (!v) {
        json_string_member(j, "c_type", field->c_type);
        if (field->elements)
            json_number_member(j, "bytes", field->elements);
        json_number_member(j, "offset", field->offset);
    }
    if (!v && field->group_length > 0)
        json_string_member(j, "member", field->member);
    if (!v && arg->when)
        json_string_member(j, "when", arg->when);
    if (!v && !field->is_read)
        json_boolean_member(j, field->is_ignored ? "ignored" : "unread", true);
    if (!v)
        json_string_member(j, "about", arg_about(a, f, arg, false));
    if (!v && arg->summary)
        json_string_member(j, "summary", summary_text(a, arg->summary));
    json_end(j);
}

static void add_maps(arena *a, json *j, const variant *v)
{
    tensor_map maps[KILN_MAX_MAPS];
    const size_t count = maps_of(a, v, maps);
    if (count == 0)
        return;
    json_key(j, "maps");
    json_begin_array(j);
    for (size_t i = 0; i < count; i++) {
        const tensor_map *m = &maps[i];
        json_begin_inline_object(j);
        json_string_member(j, "name", m->row->name);
        json_string_member(j, "arg", m->arg->name);
        if (m->row->strides)
            json_string_member(j, "strides", m->row->strides);
        json_key(j, "box");
        json_begin_inline_array(j);
        for (size_t k = 0; k < m->dimensions; k++)
            json_number(j, m->box[k]);
        json_end(j);
        json_number_member(j, "swizzle_bytes", m->swizzle_bytes);
        json_end(j);
    }
    json_end(j);
}

static void add_rule(json *j, const char *condition, const char *words)
{
    json_begin_inline_object(j);
    json_string_member(j, "condition", condition);
    json_string_member(j, "text", words);
    json_end(j);
}

static void add_cost(arena *a, json *j, const kiln_family *family, const variant *v)
{
    json_key(j, "cost");
    json_begin_inline_object(j);
    json_string_member(j, "bytes_read", bound(a, family, family->cost.bytes_read, v));
    json_string_member(j, "bytes_written", bound(a, family, family->cost.bytes_written, v));
    json_string_member(j, "elements", bound(a, family, family->cost.elements, v));
    json_end(j);
}

/* Functions with fewer arguments: their arguments, and the values of the family's others. */
static void add_calls(arena *a, json *j, const bundle_family *f)
{
    json_key(j, "calls");
    json_begin_array(j);
    for (size_t i = 0; i < f->call_count; i++) {
        const bundle_family *call = &f->calls[i];
        json_begin_object(j);
        json_string_member(j, "name", call->call->name);
        json_string_member(j, "summary", call->call->summary);
        json_string_member(j, "function", call->function);
        json_key(j, "args");
        json_begin_array(j);
        for (size_t k = 0; k < call->field_count && call->fields[k].arg; k++)
            add_arg(a, j, call, &call->fields[k], NULL);
        json_end(j);
        json_key(j, "params");
        json_begin_inline_object(j);
        for (size_t k = 0; k < call->field_count; k++)
            if (call->fields[k].param)
                json_number_member(j, call->fields[k].name, call->fields[k].offset);
        json_end(j);
        json_number_member(j, "args_bytes", call->args_bytes);
        json_key(j, "values");
        json_begin_object(j);
        for (const kiln_value *v = call->call->values; v && v->arg; v++)
            json_string_member(j, v->arg, v->value);
        json_end(j);
        json_end(j);
    }
    json_end(j);
}

/* Strides of contiguous arrays: those that NAME_FAMILY_set_contiguous fills, and their values. */
static void add_dense(arena *a, json *j, const bundle_family *f)
{
    json_key(j, "dense");
    json_begin_array(j);
    for (const kiln_dense *row = f->family->dense; row->args; row++) {
        const dense_stride *strides;
        const size_t count =
            dense_applies(a, f->family, row, f->common) ? dense_strides(a, f->family, row, &strides) : 0;
        if (count == 0)
            continue;
        json_begin_inline_object(j);
        json_string_member(j, "args", row->args);
        add_shape(a, j, f->family, row->dims, NULL);
        json_key(j, "strides");
        json_begin_inline_object(j);
        for (size_t i = 0; i < count; i++)
            json_string_member(j, strides[i].arg, bound(a, f->family, strides[i].value, NULL));
        json_end(j);
        if (row->when)
            json_string_member(j, "when", row->when);
        json_end(j);
    }
    json_end(j);
}

/* ---- families ---------------------------------------------------------------------------------------------------- */

static void add_family(arena *a, json *j, const bundle_family *f)
{
    const kiln_family *family = f->family;
    json_begin_object(j);
    describe_json_words(j, family);
    json_string_member(j, "function", f->function);
    json_key(j, "params");
    json_begin_array(j);
    for (const kiln_param *param = family->params; param && param->name; param++)
        add_param(a, j, f, param);
    json_end(j);
    json_key(j, "args");
    json_begin_array(j);
    for (size_t i = 0; i < f->field_count && f->fields[i].arg; i++)
        add_arg(a, j, f, &f->fields[i], NULL);
    json_end(j);
    json_number_member(j, "args_bytes", f->args_bytes);
    json_key(j, "rules");
    json_begin_array(j);
    for (const kiln_rule *rule = family->rules; rule && rule->condition; rule++)
        if (family_asks_rule(a, f, rule))
            add_rule(j, rule->condition, rule->text);
    json_end(j);
    json_string_member(j, "empty", family->empty);
    if (f->workspace) {
        json_key(j, "workspace");
        json_begin_inline_object(j);
        json_string_member(j, "arg", f->workspace->arg);
        json_string_member(j, "counters", f->workspace->counters);
        json_string_member(j, "size", f->workspace->size);
        json_end(j);
    }
    json_key(j, "time");
    json_begin_inline_object(j);
    json_string_member(j, "length", family->time.length);
    json_string_member(j, "repeats", family->time.repeats);
    json_string_member(j, "side_trips", family->time.side_trips);
    json_string_member(j, "wait", family->time.wait);
    json_string_member(j, "block_bytes", family->time.block_bytes);
    json_string_member(j, "extra", family->time.extra);
    json_end(j);
    add_cost(a, j, family, NULL);
    if (f->has_strides)
        add_dense(a, j, f);
    if (f->call_count > 0)
        add_calls(a, j, f);
    json_end(j);
}

/* ---- variants ---------------------------------------------------------------------------------------------------- */

/* The numbers that the shape sets for the family's expressions, such as its time. */
static void add_shape_numbers(arena *a, json *j, const variant *v)
{
    const char *cursor = v->family->numbers;
    size_t length, i = 0;
    if (!cursor)
        return;
    json_key(j, "numbers");
    json_begin_inline_object(j);
    for (const char *w; (w = words_next(&cursor, &length)); i++)
        json_number_member(j, arena_string(a, w, length), v->shape.numbers[i]);
    json_end(j);
}

static void add_launch(arena *a, json *j, const bundle_variant *bv)
{
    const kiln_family *family = bv->variant->family;
    json_key(j, "launch");
    json_begin_inline_object(j);
    json_key(j, "block");
    json_begin_inline_array(j);
    for (int i = 0; i < 3; i++)
        json_number(j, bv->block[i]);
    json_end(j);
    if (bv->block[0] == 0) {
        json_key(j, "block_given");
        json_begin_inline_array(j);
        for (int i = 0; i < 3; i++)
            json_string(j, bound(a, family, bv->variant->given_block[i], bv->variant));
        json_end(j);
    }
    json_string_member(j, "shared_bytes", bound(a, family, family_shared_bytes(family), bv->variant));
    json_number_member(j, "max_shared_bytes", bv->max_shared_bytes);
    json_number_member(j, "min_shared_bytes", bv->min_shared_bytes);
    json_number_member(j, "static_shared_bytes", bv->static_shared_bytes);
    json_key(j, "grid");
    json_begin_inline_array(j);
    for (int i = 0; i < 3; i++)
        json_string(j, bound(a, family, family->grid[i] ? family->grid[i] : "1", bv->variant));
    json_end(j);
    json_end(j);
    add_shape_numbers(a, j, bv->variant);
}

/* Whether a rule names arguments that the variant lacks. A rule without parameters may: it is checked in every call
 * before a variant is chosen. */
static bool is_of_others(arena *a, const kiln_rule *rule, const variant *v)
{
    const expression *e = expression_parse(a, v->family, rule->condition);
    return !expression_uses(e, NAME_PARAM) && missing_arg(e, v);
}

static void add_rules(arena *a, json *j, const bundle_family *f, const variant *v)
{
    json_key(j, "rules");
    json_begin_array(j);
    for (const kiln_rule *rule = v->family->rules; rule && rule->condition; rule++) {
        uint64_t value;
        const expression *e = bind_text(a, v->family, rule->condition, v);
        const bool is_settled = expression_is_constant(e, &value) && value;
        if (!is_settled && !is_of_others(a, rule, v) && family_asks_rule(a, f, rule))
            add_rule(j, bound(a, v->family, rule->condition, v), rule->text);
    }
    json_end(j);
}

static const char *hash_text(arena *a, image_hash hash)
{
    return arena_format(a, "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
}

static void add_image(arena *a, json *j, const image *i, bool is_compressed)
{
    json_begin_inline_object(j);
    json_string_member(j, "target", target_text(a, i->made_for));
    if (i->is_cubin) {
        json_string_member(j, "format", "cubin");
        json_string_member(j, "ptx_xxh3_128", hash_text(a, i->ptx_hash));
    } else {
        json_string_member(j, "ptx_target", target_text(a, i->needs.target));
        json_string_member(j, "ptx_version",
                           arena_format(a, "%u.%u", i->needs.version / 10u, i->needs.version % 10u));
    }
    json_number_member(j, "min_driver", i->min_driver);
    if (i->is_dependent)
        json_boolean_member(j, "dependent", true);
    json_number_member(j, "bytes", i->bytes);
    json_string_member(j, "xxh3_128", hash_text(a, i->hash));
    if (is_compressed) {
        json_number_member(j, "stored_bytes", i->stored_bytes);
        json_string_member(j, "stored_xxh3_128", hash_text(a, i->stored_hash));
    }
    json_end(j);
}

/* Adds a number as a number, a word as a word. */
static void add_param_value(json *j, const kiln_param *param, param_value value)
{
    if (param->type == KILN_PARAM_INT)
        json_number(j, value.number);
    else if (param->type == KILN_PARAM_BOOL)
        json_boolean(j, value.text[0] == 't');
    else
        json_string(j, value.text);
}

/* A kernel of external PTX: the kernel that has its images, their files, and why a tool cannot launch it. */
static void add_external(json *j, const bundle_variant *bv)
{
    const external_module *module = bv->variant->module;
    json_string_member(j, "module", bv->owner->variant->id);
    json_key(j, "files");
    json_begin_inline_array(j);
    for (size_t i = 0; i < module->file_count; i++)
        json_string(j, module->files[i]->asked);
    json_end(j);
    if (bv->variant->why_not_launched)
        json_string_member(j, "not_launched", bv->variant->why_not_launched);
}

static void add_variant(arena *a, json *j, const bundle_variant *bv, bool is_compressed)
{
    const variant *v = bv->variant;
    const bundle_family *f = bv->family;
    json_begin_object(j);
    json_string_member(j, "id", v->id);
    json_string_member(j, "key", arena_format(a, "%016" PRIx64, v->key));
    json_string_member(j, "family", v->family->name);
    json_key(j, "params");
    json_begin_inline_object(j);
    for (size_t i = 0; v->family->params && v->family->params[i].name; i++) {
        json_key(j, v->family->params[i].name);
        add_param_value(j, &v->family->params[i], v->values[i]);
    }
    json_end(j);
    json_string_member(j, "entry", v->symbol);
    json_string_member(j, "function", bv->function);
    if (v->kind == VARIANT_EXTERNAL)
        add_external(j, bv);
    json_key(j, "args");
    json_begin_array(j);
    for (size_t i = 0; i < f->field_count && f->fields[i].arg; i++)
        if (variant_has_arg(v, f->fields[i].arg))
            add_arg(a, j, f, &f->fields[i], v);
    json_end(j);
    add_maps(a, j, v);
    add_launch(a, j, bv);
    add_rules(a, j, f, v);
    json_string_member(j, "empty", bound(a, v->family, v->family->empty, v));
    add_cost(a, j, v->family, v);
    json_key(j, "images");
    json_begin_array(j);
    for (size_t i = 0; i < bv->image_count; i++)
        add_image(a, j, &bv->images[i], is_compressed);
    json_end(j);
    json_end(j);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------- */

typedef struct shape_row {
    const request *asked;
    const char *contract; /* "format=q4_k x=bf16,f16" */
    const call_shape *shape;
    const char *text; /* of the shape */
} shape_row;

static const char *contract_text(arena *a, const request *asked)
{
    text out = text_new(a);
    for (size_t i = 0; i < family_param_count(asked->family); i++) {
        if (asked->family->params[i].role != KILN_ROLE_CONTRACT)
            continue;
        text_printf(&out, " %s=", asked->family->params[i].name);
        for (size_t k = 0; k < asked->values[i].count; k++)
            text_printf(&out, "%s,", asked->values[i].items[k].text);
    }
    return out.data;
}

/* Orders by family, contract and sizes: 0 if all are equal. */
static int compare_shapes(const void *x, const void *y)
{
    const shape_row *a = x, *b = y;
    const kiln_family *family = a->asked->family;
    int order = strcmp(family->name, b->asked->family->name);
    order = order ? order : strcmp(a->contract, b->contract);
    for (size_t i = 0; order == 0 && family->args[i].name; i++)
        if (a->shape->sizes[i] != b->shape->sizes[i])
            order = a->shape->sizes[i] < b->shape->sizes[i] ? -1 : 1;
    return order ? order : strcmp(a->text, b->text);
}

static size_t sorted_shapes(arena *a, const plan *p, shape_row **rows)
{
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < p->shaped_count; i++)
        count += p->shaped[i].shape_count;
    *rows = arena_alloc(a, (count + 1) * sizeof **rows);
    count = 0;
    for (size_t i = 0; i < p->shaped_count; i++) {
        const shaped_item *item = &p->shaped[i];
        const char *contract = contract_text(a, &item->request);
        for (size_t k = 0; k < item->shape_count; k++)
            (*rows)[count++] = (shape_row){&item->request, contract, &item->shapes[k],
                                           call_shape_text(a, item->request.family, &item->shapes[k])};
    }
    if (count > 0)
        qsort(*rows, count, sizeof **rows, compare_shapes);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_shapes(&(*rows)[i], &(*rows)[i - 1]) != 0)
            (*rows)[kept++] = (*rows)[i];
    return kept;
}

static bool names_size(const call_shape *shape, size_t arg)
{
    return shape->sizes[arg] != SHAPE_ANY_SIZE || shape->expressions[arg];
}

/* The sizes that the shape names, and the family's usual values for the others. */
static void add_sizes(json *j, const kiln_family *family, const call_shape *shape)
{
    json_key(j, "sizes");
    json_begin_inline_object(j);
    for (size_t i = 0; family->args[i].name; i++) {
        if (shape->expressions[i])
            json_string_member(j, family->args[i].name, shape->expressions[i]);
        else if (names_size(shape, i))
            json_number_member(j, family->args[i].name, shape->sizes[i]);
    }
    json_end(j);
    if (!family->usual)
        return;
    json_key(j, "usual");
    json_begin_inline_object(j);
    for (const kiln_value *v = family->usual; v->arg; v++)
        if (!names_size(shape, (size_t)(arg_find(family->args, v->arg) - family->args)))
            json_string_member(j, v->arg, v->value);
    json_end(j);
}

static void add_contract(json *j, const request *asked)
{
    json_key(j, "contract");
    json_begin_inline_object(j);
    for (size_t i = 0; i < family_param_count(asked->family); i++) {
        const kiln_param *param = &asked->family->params[i];
        if (param->role != KILN_ROLE_CONTRACT)
            continue;
        json_key(j, param->name);
        json_begin_inline_array(j);
        for (size_t k = 0; k < asked->values[i].count; k++)
            add_param_value(j, param, asked->values[i].items[k]);
        json_end(j);
    }
    json_end(j);
}

/* The configuration's shapes, whatever the order of its items. */
static void add_shapes(arena *a, json *j, const plan *p)
{
    shape_row *rows;
    const size_t count = sorted_shapes(a, p, &rows);
    json_key(j, "shapes");
    json_begin_array(j);
    for (size_t i = 0; i < count; i++) {
        json_begin_inline_object(j);
        json_string_member(j, "family", rows[i].asked->family->name);
        add_contract(j, rows[i].asked);
        add_sizes(j, rows[i].asked->family, rows[i].shape);
        json_end(j);
    }
    json_end(j);
}

/* ---- the whole ---------------------------------------------------------------------------------------------------- */

static void add_input(arena *a, json *j, const char *file, const char *data, size_t bytes)
{
    json_string_member(j, "file", file);
    json_number_member(j, "bytes", bytes);
    json_string_member(j, "xxh3_128", hash_text(a, image_hash_of(data, bytes)));
}

static void add_tuned(arena *a, json *j, const plan *p)
{
    json_key(j, "tuned");
    json_begin_array(j);
    for (size_t i = 0; i < p->tuned_count; i++) {
        const tuned_file *file = p->tuned[i];
        json_begin_inline_object(j);
        add_input(a, j, file->asked, file->data, file->bytes);
        if (file->device)
            json_string_member(j, "device", file->device);
        json_string_member(j, "compute_capability", arena_format(a, "%u.%u", file->sm / 10u, file->sm % 10u));
        json_number_member(j, "multiprocessors", file->multiprocessors);
        json_end(j);
    }
    json_end(j);
}

/* A file's name without its folder. */
static void add_config(arena *a, json *j, const char *key, const char *path, const char *data, size_t bytes)
{
    const char *slash = strrchr(path, '/');
    json_key(j, key);
    json_begin_inline_object(j);
    add_input(a, j, slash ? slash + 1 : path, data, bytes);
    json_end(j);
}

/* The bundle's inputs: files as named, with the hashes of their bytes. */
static void add_provenance(arena *a, json *j, const bundle_model *m)
{
    const plan *p = m->plan;
    if (p->license)
        json_string_member(j, "license", p->license);
    add_config(a, j, "config", p->config_path, p->config, p->config_bytes);
    if (p->lock)
        add_config(a, j, "lock", p->lock_path, p->lock, p->lock_bytes);
    if (p->tuned_count > 0)
        add_tuned(a, j, p);
    if (m->ptxas)
        json_string_member(j, "ptxas", m->ptxas);
    bool has_external = false;
    for (size_t i = 0; i < m->variant_count; i++) {
        const bundle_variant *v = &m->variants[i];
        const external_module *module = v->variant->module;
        for (size_t k = 0; v->owner == v && k < module->file_count; k++) {
            if (!has_external) {
                json_key(j, "external_files");
                json_begin_array(j);
                has_external = true;
            }
            json_begin_inline_object(j);
            add_input(a, j, module->files[k]->asked, module->files[k]->source,
                      module->files[k]->source_bytes);
            json_string_member(j, "license", external_license(module));
            json_end(j);
        }
    }
    if (has_external)
        json_end(j);
}

void write_manifest(file_output *f, const bundle_model *m)
{
    json j = json_new(&f->text);
    json_begin_object(&j);
    json_string_member(&j, "bundle", m->name);
    json_string_member(&j, "generator", "kiln " KILN_VERSION);
    json_number_member(&j, "layout_version", KILN_LAYOUT_VERSION);
    add_provenance(f->arena, &j, m);
    json_key(&j, "targets");
    json_begin_inline_array(&j);
    for (size_t i = 0; i < m->plan->target_count; i++)
        json_string(&j, target_text(f->arena, m->plan->targets[i]));
    json_end(&j);
    json_number_member(&j, "min_driver", m->min_driver);
    write_structs(&j);
    if (m->plan->shaped_count > 0)
        add_shapes(f->arena, &j, m->plan);
    if (m->plan->is_compressed) {
        json_string_member(&j, "compress", "zstd");
        json_string_member(&j, "libzstd", compress_version());
        json_number_member(&j, "scratch_bytes", m->scratch_bytes);
    }
    json_key(&j, "families");
    json_begin_array(&j);
    for (size_t i = 0; i < m->family_count; i++) {
        add_family(f->arena, &j, &m->families[i]);
        file_flush(f);
    }
    json_end(&j);
    json_key(&j, "variants");
    json_begin_array(&j);
    for (size_t i = 0; i < m->variant_count; i++) {
        add_variant(f->arena, &j, &m->variants[i], m->plan->is_compressed);
        file_flush(f);
    }
    json_end(&j);
    json_end(&j);
    json_finish(&j);
    file_flush(f);
}
