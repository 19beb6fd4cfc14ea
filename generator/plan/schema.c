/* A JSON Schema of configurations. Only kiln itself checks how a parameter's values depend on each other. */
#include "schema.h"

#include <stdlib.h>
#include <string.h>

#include "config_reader.h"
#include "external/external.h"
#include "family/family.h"
#include "support/json.h"
#include "support/words.h"
#include "target/target.h"

/* ---- parts -------------------------------------------------------------------------------------------------------- */

static void add_type(json *j, const char *type, const char *about)
{
    json_string_member(j, "type", type);
    if (about)
        json_string_member(j, "description", about);
}

/* "key": {"type": ..., "description": ...}, still open. */
static void begin_property(json *j, const char *key, const char *type, const char *about)
{
    json_key(j, key);
    json_begin_object(j);
    if (type)
        add_type(j, type, about);
    else if (about)
        json_string_member(j, "description", about);
}

static void add_property(json *j, const char *key, const char *type, const char *about)
{
    begin_property(j, key, type, about);
    json_end(j);
}

/* Words of digits may be numbers; for an integer they must be. */
static void add_enum(json *j, const char *words, bool are_integers)
{
    json_key(j, "enum");
    json_begin_inline_array(j);
    size_t length;
    for (const char *w; (w = words_next(&words, &length));) {
        const char *word = arena_string(j->out->arena, w, length);
        if (word_is_number(word))
            json_number(j, strtoull(word, NULL, 10));
        if (!are_integers || !word_is_number(word))
            json_string(j, word);
    }
    json_end(j);
}

static void add_string(json *j, const void *of)
{
    (void)of;
    json_string_member(j, "type", "string");
}

/* Either `add`'s schema, or an array of it. */
static void add_array(json *j, void (*add)(json *, const void *), const void *of, uint64_t most)
{
    add_type(j, "array", NULL);
    json_number_member(j, "minItems", 1);
    if (most)
        json_number_member(j, "maxItems", most);
    json_key(j, "items");
    json_begin_object(j);
    add(j, of);
    json_end(j);
}

static void add_one_or_more(json *j, void (*add)(json *, const void *), const void *of, uint64_t most)
{
    json_key(j, "anyOf");
    json_begin_array(j);
    json_begin_object(j);
    add(j, of);
    json_end(j);
    json_begin_object(j);
    add_array(j, add, of, most);
    json_end(j);
    json_end(j);
}

/* ---- a family ----------------------------------------------------------------------------------------------------- */

static void add_value(json *j, const void *of)
{
    const kiln_param *param = of;
    if (param->type == KILN_PARAM_BOOL) {
        json_string_member(j, "type", "boolean");
    } else if (param->words) {
        add_enum(j, param->words, param->type == KILN_PARAM_INT);
    } else {
        json_string_member(j, "type", "integer");
        json_number_member(j, "minimum", param->min);
        json_number_member(j, "maximum", param->max);
        if (param->step > 1 && param->min % param->step == 0)
            json_number_member(j, "multipleOf", param->step);
    }
}

static void add_default(json *j, const kiln_param *param)
{
    json_key(j, "default");
    if (param->type == KILN_PARAM_BOOL)
        json_boolean(j, strcmp(param->default_value, "true") == 0);
    else if (word_is_number(param->default_value))
        json_number(j, strtoull(param->default_value, NULL, 10));
    else
        json_string(j, param->default_value);
}

static void add_reference(json *j, const char *key, const char *name)
{
    json_key(j, key);
    json_begin_inline_object(j);
    json_string_member(j, "$ref", arena_format(j->out->arena, "#/$defs/%s", name));
    json_end(j);
}

/* A list of mappings from the family's sizes to values. */
static void add_shapes(json *j, const kiln_family *family)
{
    begin_property(j, "shapes", "array", "the calls to choose variants for; lists of numbers multiply");
    json_number_member(j, "minItems", 1);
    json_key(j, "items");
    json_begin_object(j);
    add_type(j, "object", NULL);
    json_boolean_member(j, "additionalProperties", false);
    json_key(j, "properties");
    json_begin_inline_object(j);
    for (const kiln_arg *arg = family->args; arg->name; arg++)
        if (arg_is_size(arg))
            add_reference(j, arg->name, "size");
    json_end(j);
    json_end(j);
    json_end(j);
}

/* {"if": the family's name, "then": its parameters and no other key} */
static void add_family(json *j, const kiln_family *family)
{
    json_begin_object(j);
    json_key(j, "if");
    json_begin_inline_object(j);
    json_key(j, "properties");
    json_begin_inline_object(j);
    json_key(j, "family");
    json_begin_inline_object(j);
    json_string_member(j, "const", family->name);
    json_end(j);
    json_end(j);
    json_words_member(j, "required", "family");
    json_end(j);
    json_key(j, "then");
    json_begin_object(j);
    json_string_member(j, "description", family->summary);
    json_boolean_member(j, "additionalProperties", false);
    json_key(j, "properties");
    json_begin_object(j);
    add_property(j, "family", NULL, NULL);
    begin_property(j, "combinations", NULL, "of the listed values: all, or only those that the family has");
    add_enum(j, "all legal", false);
    json_end(j);
    add_shapes(j, family);
    const char *words = shaped_keys;
    size_t length;
    for (const char *w; (w = words_next(&words, &length));) {
        const char *key = arena_string(j->out->arena, w, length);
        if (strcmp(key, "shapes") != 0)
            add_reference(j, key, key);
    }
    for (size_t i = 0; i < family_param_count(family); i++) {
        const kiln_param *param = &family->params[i];
        begin_property(j, param->name, NULL, summary_text(j->out->arena, param->summary));
        add_default(j, param);
        add_one_or_more(j, add_value, param, 0);
        json_end(j);
    }
    json_end(j);
    json_end(j);
    json_end(j);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------- */

static void add_number(json *j, const void *of)
{
    (void)of;
    json_string_member(j, "type", "integer");
    json_number_member(j, "minimum", 0);
}

/* 16, [1, 16], {from: 1, to: 512} or "q_heads * head_dim" */
static void add_size(json *j)
{
    json_key(j, "size");
    json_begin_object(j);
    json_string_member(j, "description",
                       "a number, a list of numbers, a range, or an expression over the other sizes and the "
                       "variant's parameters");
    json_key(j, "anyOf");
    json_begin_array(j);
    json_begin_object(j);
    add_number(j, NULL);
    json_end(j);
    json_begin_object(j);
    add_array(j, add_number, NULL, 0);
    json_end(j);
    json_begin_object(j);
    add_type(j, "object", NULL);
    json_words_member(j, "required", "from to");
    json_boolean_member(j, "additionalProperties", false);
    json_key(j, "properties");
    json_begin_object(j);
    begin_property(j, "from", NULL, NULL);
    add_number(j, NULL);
    json_end(j);
    begin_property(j, "to", NULL, NULL);
    add_number(j, NULL);
    json_end(j);
    json_end(j);
    json_end(j);
    json_begin_object(j);
    add_string(j, NULL);
    json_end(j);
    json_end(j);
    json_end(j);
}

/* Definitions for items of all families with `shapes`. */
static void add_definitions(json *j)
{
    json_key(j, "$defs");
    json_begin_object(j);
    add_size(j);
    begin_property(j, "devices", NULL,
                   "words of a device's name; default: each target's representative device");
    add_array(j, add_string, NULL, 0);
    json_end(j);
    begin_property(j, "workspace", NULL, "whether calls give one; default: allowed");
    add_enum(j, "allowed none", false);
    json_end(j);
    begin_property(j, "within", "number", "ratio to the best time at each shape and device; default: 1.10");
    json_number_member(j, "minimum", 1);
    json_number_member(j, "exclusiveMaximum", 100);
    json_end(j);
    begin_property(j, "max_variants", "integer", "of each combination of contract parameters; default: 8");
    json_number_member(j, "minimum", 1);
    json_number_member(j, "maximum", MOST_CHOSEN);
    json_end(j);
    add_property(j, "only_these_shapes", "boolean", "true: other calls need not be served; default: false");
    json_end(j);
}

/* combinations excludes shapes; the other keys need them. */
static void add_shapes_conditions(json *j)
{
    const char *words = shaped_keys;
    size_t length;
    json_key(j, "not");
    json_begin_inline_object(j);
    json_words_member(j, "required", "combinations shapes");
    json_end(j);
    json_key(j, "dependentRequired");
    json_begin_object(j);
    for (const char *w; (w = words_next(&words, &length));) {
        const char *key = arena_string(j->out->arena, w, length);
        if (strcmp(key, "shapes") == 0)
            continue;
        json_key(j, key);
        json_begin_inline_array(j);
        json_string(j, "shapes");
        json_end(j);
    }
    json_end(j);
}

/* ---- external PTX ------------------------------------------------------------------------------------------------- */

/* "n / 4" or 4 */
static void add_formula(json *j, const void *of)
{
    (void)of;
    json_key(j, "type");
    json_begin_inline_array(j);
    json_string(j, "string");
    json_string(j, "integer");
    json_end(j);
}

static void add_launch(json *j)
{
    begin_property(j, "grid", NULL, "thread blocks along x, y and z, over arguments");
    add_one_or_more(j, add_formula, NULL, 3);
    json_end(j);
    begin_property(j, "block", NULL, "threads along x, y and z");
    add_one_or_more(j, add_formula, NULL, 3);
    json_end(j);
    begin_property(j, "shared_bytes", NULL, "dynamic shared memory, over arguments");
    add_formula(j, NULL);
    json_end(j);
    begin_property(j, "max_shared_bytes", NULL, "the most that a launch may ask for");
    add_formula(j, NULL);
    json_end(j);
}

static void add_entry(json *j)
{
    add_property(j, "name", "string", "of the typed function; default: the entry's own");
    begin_property(j, "args", NULL,
                   "names in order, or a mapping from names to 'in f32[n]', a type or nothing");
    json_key(j, "type");
    json_begin_inline_array(j);
    json_string(j, "array");
    json_string(j, "object");
    json_end(j);
    json_end(j);
    begin_property(j, "rules", NULL, "conditions that hold at every launch");
    add_array(j, add_string, NULL, 0);
    json_end(j);
    add_launch(j);
}

static void add_variant(json *j, const void *of)
{
    (void)of;
    add_type(j, "object", NULL);
    json_words_member(j, "required", "file");
    json_boolean_member(j, "additionalProperties", false);
    json_key(j, "properties");
    json_begin_object(j);
    begin_property(j, "file", NULL,
                   "of external PTX, or one per target; paths begin where the configuration is");
    add_one_or_more(j, add_string, NULL, 0);
    json_end(j);
    add_property(j, "entry", "string", "the kernel; default: the only one of the file");
    add_property(j, "values", "object",
                 "the values that distinguish the variant; all variants have the same names");
    begin_property(j, "when", NULL,
                   "condition on a call, over arguments; dispatch takes the first variant that it holds for");
    add_formula(j, NULL);
    json_end(j);
    add_launch(j);
    json_end(j);
}

/* A file, a file per target, or variants. */
static void add_ptx(json *j)
{
    begin_property(j, "ptx", NULL,
                   "a file of external PTX, or one per target, or variants of one kernel; paths begin where "
                   "the configuration is");
    json_key(j, "anyOf");
    json_begin_array(j);
    json_begin_object(j);
    add_string(j, NULL);
    json_end(j);
    json_begin_object(j);
    add_array(j, add_string, NULL, 0);
    json_end(j);
    json_begin_object(j);
    add_array(j, add_variant, NULL, EXTERNAL_VARIANTS_MOST);
    json_end(j);
    json_end(j);
    json_end(j);
}

/* {"if": it has "ptx", "then": its keys} */
static void add_external(json *j)
{
    json_begin_object(j);
    json_key(j, "if");
    json_begin_inline_object(j);
    json_words_member(j, "required", "ptx");
    json_end(j);
    json_key(j, "then");
    json_begin_object(j);
    json_boolean_member(j, "additionalProperties", false);
    json_key(j, "properties");
    json_begin_object(j);
    add_ptx(j);
    add_property(j, "license", "string", "an SPDX expression; default: NOASSERTION");
    add_property(j, "line_info", "boolean",
                 "false removes .file and .loc, which name sources; default: true");
    begin_property(j, "entries", "object", "the kernels to embed; default: all of the file");
    json_key(j, "additionalProperties");
    json_begin_object(j);
    json_key(j, "type");
    json_begin_inline_array(j);
    json_string(j, "object");
    json_string(j, "null");
    json_end(j);
    json_boolean_member(j, "additionalProperties", false);
    json_key(j, "properties");
    json_begin_object(j);
    add_entry(j);
    json_end(j);
    json_end(j);
    json_end(j);
    add_entry(j); /* keys of variants are allowed, since there is one kernel */
    json_end(j);
    json_end(j);
    json_end(j);
}

/* ---- the whole ---------------------------------------------------------------------------------------------------- */

static void add_list(json *j, const char *key, const char *words, const char *about)
{
    begin_property(j, key, "array", about);
    json_number_member(j, "minItems", 1);
    json_boolean_member(j, "uniqueItems", true);
    json_key(j, "items");
    json_begin_object(j);
    add_enum(j, words, false);
    json_end(j);
    json_end(j);
}

static void add_bytes(json *j)
{
    json_string_member(j, "type", "integer");
    json_number_member(j, "minimum", 0);
}

static void add_max_bytes(json *j)
{
    begin_property(j, "max_bytes", NULL,
                   "of all images; or of families, each under its name, and of the bundle");
    json_key(j, "anyOf");
    json_begin_array(j);
    json_begin_object(j);
    add_bytes(j);
    json_end(j);
    json_begin_object(j);
    add_type(j, "object", NULL);
    json_key(j, "additionalProperties");
    json_begin_object(j);
    add_bytes(j);
    json_end(j);
    json_end(j);
    json_end(j);
    json_end(j);
}

static void add_kernels(json *j, family_list families)
{
    begin_property(j, "kernels", "array", "a list of values multiplies: every combination becomes a variant");
    json_number_member(j, "minItems", 1);
    json_key(j, "items");
    json_begin_object(j);
    add_type(j, "object", NULL);
    json_key(j, "oneOf");
    json_begin_inline_array(j);
    for (int i = 0; i < 2; i++) {
        json_begin_inline_object(j);
        json_words_member(j, "required", i == 0 ? "family" : "ptx");
        json_end(j);
    }
    json_end(j);
    add_shapes_conditions(j);
    json_key(j, "properties");
    json_begin_object(j);
    json_key(j, "family");
    json_begin_object(j);
    add_enum(j, family_names(j->out->arena, families), false);
    json_end(j);
    json_end(j);
    json_key(j, "allOf");
    json_begin_array(j);
    for (family_list f = families; *f; f++)
        add_family(j, *f);
    add_external(j);
    json_end(j);
    json_end(j);
    json_end(j);
}

void schema_print(text *out, family_list families)
{
    json j = json_new(out);
    json_begin_object(&j);
    json_string_member(&j, "$schema", "https://json-schema.org/draft/2020-12/schema");
    json_string_member(&j, "title", "kiln: the configuration of a bundle");
    add_type(&j, "object", NULL);
    json_words_member(&j, "required", "bundle targets kernels");
    json_boolean_member(&j, "additionalProperties", false);
    json_key(&j, "properties");
    json_begin_object(&j);
    begin_property(&j, "bundle", "string", "prefix of all generated names");
    json_string_member(&j, "pattern", "^[A-Za-z][A-Za-z0-9_]*$");
    json_number_member(&j, "maxLength", LONGEST_BUNDLE);
    json_end(&j);
    add_list(&j, "targets", target_names, "the targets of the images");
    add_list(&j, "images", image_formats, "ptx, which is the default, cubin, or both");
    begin_property(&j, "compress", NULL, "packs the images, which are expanded when they load");
    add_enum(&j, image_codecs, false);
    json_end(&j);
    add_kernels(&j, families);
    add_property(&j, "license", "string", "an SPDX expression, for the generated files");
    add_max_bytes(&j);
    begin_property(&j, "tuned", NULL,
                   "files of times that a program of kiln_add_tune measured, one per device");
    add_array(&j, add_string, NULL, 0);
    json_end(&j);
    add_property(&j, "max_driver", "number", "the CUDA version of a driver that must load every image: 12.2");
    json_end(&j);
    add_definitions(&j);
    json_end(&j);
    json_finish(&j);
}
