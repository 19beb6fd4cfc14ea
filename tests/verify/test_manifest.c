/* Reads a manifest: every fact is read, and each mistake is reported with its place. */
#include "test_verify.h"

#include <stdio.h>
#include <stdlib.h>

#include "manifest.h"

/* Returns the fixture's text with the first occurrence of `from` replaced; the caller frees it. */
static char *fixture_with(const char *from, const char *to)
{
    FILE *in = fopen(FIXTURE_MANIFEST, "rb");
    assert_non_null(in);
    char *text = calloc(1, 65536), *changed = calloc(1, 65536);
    assert_non_null(text);
    assert_non_null(changed);
    assert_true(fread(text, 1, 60000, in) > 1000);
    fclose(in);
    char *place = strstr(text, from);
    assert_non_null(place);
    snprintf(changed, 65536, "%.*s%s%s", (int)(place - text), text, to, place + strlen(from));
    free(text);
    return changed;
}

static void test_facts(void **state)
{
    (void)state;
    pool memory = {NULL};
    char error[512] = "", *text = fixture_with("", "");
    const manifest *m = manifest_read(&memory, text, strlen(text), error, sizeof error);
    assert_string_equal(error, "");
    assert_non_null(m);
    assert_string_equal(m->bundle, "verify_fixture");
    assert_int_equal(m->variant_count, 3);
    const manifest_variant *v = &m->variants[0];
    assert_string_equal(v->id, "nf4_quantize/type=f32,group=64,nibbles=low");
    assert_int_equal(v->key, UINT64_C(0xbd68b5aefb33a5b9));
    assert_string_equal(v->family_function, "verify_fixture_nf4_quantize");
    assert_string_equal(manifest_param_value(v, "group"), "64");
    assert_null(manifest_param_value(v, "grou"));
    assert_int_equal(v->struct_bytes, 48);
    assert_int_equal(v->block[0], 32);
    assert_string_equal(formula_text(v->grid[0]), "ceil_div(n, 2048)");
    assert_string_equal(v->rules[0].text, "n must be at most 2^40");
    assert_string_equal(formula_text(v->empty), "n == 0");
    assert_string_equal(formula_text(v->bytes_read), "4 * n");
    assert_string_equal(formula_text(v->elements), "n");
    const manifest_arg *packed = manifest_find_arg(v, "packed");
    assert_int_equal(packed->direction, DIRECTION_OUT);
    assert_int_equal(packed->type, ELEMENT_U8);
    assert_int_equal(packed->offset, 16);
    assert_int_equal(packed->dimension_count, 1);
    const manifest_arg *in = manifest_find_arg(v, "in");
    assert_int_equal(in->type, ELEMENT_F32);
    assert_int_equal(in->alignment, 4);
    pool_free(&memory);
    free(text);
}

/* The fields that select a variant follow the arguments; a word has the number beside it. */
static void test_selectors(void **state)
{
    (void)state;
    pool memory = {NULL};
    char error[512] = "", *text = fixture_with("", "");
    const manifest *m = manifest_read(&memory, text, strlen(text), error, sizeof error);
    assert_non_null(m);
    const manifest_variant *unpack = &m->variants[1];
    static const struct {
        const char *name;
        uint64_t offset, selector;
    } rows[] = {{"type", 32, 3}, {"group", 36, 64}, {"nibbles", 40, 2}};
    assert_int_equal(unpack->param_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(unpack->params[i].name, rows[i].name);
        assert_true(unpack->params[i].is_contract);
        assert_int_equal(unpack->params[i].offset, rows[i].offset);
        assert_int_equal(unpack->params[i].selector, rows[i].selector);
    }
    const manifest_variant *axpy = &m->variants[2];
    assert_null(axpy->empty);
    assert_int_equal(manifest_find_arg(axpy, "norm")->direction, DIRECTION_OPTIONAL_OUT);
    assert_int_equal(manifest_find_arg(axpy, "a")->struct_type, ELEMENT_F32);
    pool_free(&memory);
    free(text);
}

/* Reads the manifest of the generator's own tests. */
static void test_generated(void **state)
{
    (void)state;
    static char text[1 << 18];
    pool memory = {NULL};
    char error[512] = "";
    FILE *in = fopen(GENERATED_MANIFEST, "rb");
    assert_non_null(in);
    size_t length = fread(text, 1, sizeof text, in);
    fclose(in);
    const manifest *m = manifest_read(&memory, text, length, error, sizeof error);
    assert_string_equal(error, "");
    assert_non_null(m);
    assert_string_equal(m->bundle, "sample");
    const manifest_variant *blend = &m->variants[1];
    assert_string_equal(blend->id, "blend/type=f32,acc=f32,width=64,clamp=false,strategy=narrow");
    assert_int_equal(manifest_find_arg(blend, "x")->dimension_count, 2);
    assert_null(manifest_find_arg(blend, "limit"));
    assert_int_equal(blend->image_count, 2);
    assert_string_equal(blend->images[0].target, "sm_75");
    assert_string_equal(blend->images[1].target, "sm_90");
    assert_int_equal(manifest_find_arg(blend, "factor")->type, ELEMENT_F32);
    assert_int_equal(manifest_find_arg(blend, "factor")->struct_type, ELEMENT_F64);
    assert_int_equal(blend->params[2].selector, 64);
    assert_int_equal(blend->params[3].selector, 0);
    assert_false(blend->params[4].is_contract);
    pool_free(&memory);
}

static void test_mistakes(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        /* clang-format off */
        {"\"variants\"", "\"variant\"", "manifest: 'variants' is missing"},
        {"\"key\": \"bd68", "\"key\": \"xd68",
         "manifest, nf4_quantize/type=f32,group=64,nibbles=low: 'key' is 'xd68b5aefb33a5b9', no number"},
        {"\"grid\": [\"ceil_div(n, 2048)\"", "\"grid\": [\"ceil_div(n 2048)\"",
         "manifest, nf4_quantize/type=f32,group=64,nibbles=low: grid: 'ceil_div(n 2048)', character 12: expected ','"},
        {"\"block\": [32, 1, 1]", "\"block\": [32, 1]",
         "manifest, nf4_quantize/type=f32,group=64,nibbles=low: 'block' and 'grid' have three members"},
        {"\"args_bytes\": 48", "\"args_bytes\": 40",
         "manifest, nf4_quantize/type=f32,group=64,nibbles=low: 'nibbles' lies outside the argument struct"},
        {"\"direction\": \"inout\"", "\"direction\": \"both\"", NULL},
        {"\"family\": \"axpy\",\n", "\"family\": \"axpb\",\n", "manifest, axpy: no family 'axpb' is described"},
        {"\"words\": \"f32 f64", "\"words\": \"f16 f64",
         "manifest, nf4_quantize/type=f32,group=64,nibbles=low: 'f32' is not one of the parameter's words"},
        {"\"args_bytes\": 48,", "", NULL},
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pool memory = {NULL};
        char error[512] = "", *text = fixture_with(rows[i][0], rows[i][1]);
        const manifest *m = manifest_read(&memory, text, strlen(text), error, sizeof error);
        if (rows[i][2]) {
            assert_null(m);
            assert_string_equal(error, rows[i][2]);
        } else {
            assert_true(m == NULL || error[0] == '\0');
        }
        pool_free(&memory);
        free(text);
    }
}

static void test_no_json(void **state)
{
    (void)state;
    static const char *const texts[] = {"",         "{",  "[1, 2",    "{\"bundle\": }",
                                        "nonsense", "[]", "\"text\"", "{\"bundle\": 1}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        pool memory = {NULL};
        char error[512] = "";
        assert_null(manifest_read(&memory, texts[i], strlen(texts[i]), error, sizeof error));
        assert_int_equal(strncmp(error, "manifest", 8), 0);
        pool_free(&memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),    cmocka_unit_test(test_selectors), cmocka_unit_test(test_generated),
        cmocka_unit_test(test_mistakes), cmocka_unit_test(test_no_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
