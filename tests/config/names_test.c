/* Names and order of variants, the accessors that emit may call, and targets. Identities and keys never change, because
 * deployed programs look up variants by them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../test_families.h"
#include "death.h"
#include "external/mangled.h"
#include "family/family.h"
#include "plan/config.h"
#include "target/target.h"

static const plan *read_config(arena *a, const char *kernels)
{
    const char *config = arena_format(a,
                                      "bundle: b\n"
                                      "targets: [sm_120f, sm_80, sm_75, sm_90a]\n"
                                      "kernels: [%s]\n",
                                      kernels);
    diagnostics d = {.out = stderr};
    const plan *p = config_read_text(a, test_families, "test.yaml", config, strlen(config), NULL, &d);
    assert_non_null(p);
    return p;
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *id, *entry;
        uint64_t key;
        uint32_t runs_on;
    } expected[] = {
        {"axpy/type=f32,strategy=simt,tile=128,masked=false", "axpy_f32_simt_128_nomasked",
         UINT64_C(0xc641b15b1a4d6dd4), 15},
        {"axpy/type=bf16,strategy=mma,tile=64,masked=true", "axpy_bf16_mma_64_masked",
         UINT64_C(0x3cfdbd4f5a06bcbf), 14},
        {"axpy/type=bf16,strategy=mma,tile=64,masked=false", "axpy_bf16_mma_64_nomasked",
         UINT64_C(0x3713f957020eae8a), 14},
        {"axpy/type=f64,strategy=mma,tile=64,masked=true", "axpy_f64_mma_64_masked",
         UINT64_C(0xaa844193a63509cf), 14},
        {"axpy/type=f64,strategy=mma,tile=64,masked=false", "axpy_f64_mma_64_nomasked",
         UINT64_C(0x685fb41db546ac46), 14},
        {"group_scale/group=any,threads=256", "group_scale_any_256", UINT64_C(0x66bc07da96207085), 15},
        {"plain", "plain", UINT64_C(0x6b9653d41b66c850), 15},
    };
    arena *a = arena_new();
    const plan *p =
        read_config(a, "{family: axpy}, {masked: [true, false], family: axpy, tile: 64, strategy: mma, "
                       "type: [bf16, f64]}, {family: group_scale, group: any, threads: 256}, "
                       "{family: plain}");
    assert_int_equal(p->variant_count, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < p->variant_count; i++) {
        assert_string_equal(p->variants[i]->id, expected[i].id);
        assert_string_equal(p->variants[i]->entry, expected[i].entry);
        assert_int_equal(p->variants[i]->key, expected[i].key);
        assert_int_equal(p->variants[i]->runs_on, expected[i].runs_on);
    }
    assert_string_equal(p->bundle, "b");
    assert_string_equal(p->config_path, "test.yaml");
    assert_int_equal(p->variants[0]->at.line, 3);
    assert_int_equal(p->variants[0]->at.column, 11);
    arena_free(a);
}

static void test_order_of_targets(void **state)
{
    (void)state;
    arena *a = arena_new();
    const plan *p = read_config(a, "{family: plain}");
    static const char *const expected[] = {"sm_75", "sm_80", "sm_90a", "sm_120f"};
    char name[TARGET_NAME_BYTES];
    assert_int_equal(p->target_count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(target_print(p->targets[i], name), expected[i]);
    arena_free(a);
}

/* Exactly the allowed number. */
static void test_most_variants(void **state)
{
    (void)state;
    arena *a = arena_new();
    static const char ten[] = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    const plan *p = read_config(
        a, arena_format(a, "{family: wide, a: %s, b: %s, c: %s, d: %s, e: %s}", ten, ten, ten, ten, ten));
    assert_int_equal(p->variant_count, 100000);
    assert_string_equal(p->variants[0]->id, "wide/a=0,b=0,c=0,d=0,e=0,f=0");
    assert_string_equal(p->variants[12345]->id, "wide/a=1,b=2,c=3,d=4,e=5,f=0");
    assert_string_equal(p->variants[99999]->entry, "wide_9_9_9_9_9_0");
    arena_free(a);
}

/* ---- accessors -------------------------------------------------------------------------------------------------- */

typedef struct question {
    char what;
    const char *param, *word;
    const kiln_variant *variant;
} question;

static void ask(const void *argument)
{
    const question *q = argument;
    switch (q->what) {
    case 'i':
        kiln_int(q->variant, q->param);
        break;
    case 'b':
        kiln_bool(q->variant, q->param);
        break;
    case 'w':
        kiln_is(q->variant, q->param, q->word);
        break;
    case 'x':
        kiln_word_index(q->variant, q->param);
        break;
    case 't':
        kiln_type(q->variant, q->param);
        break;
    case 'n':
        kiln_number(&(kiln_shape){0}, q->variant, q->param, 1);
        break;
    default:
        kiln_has_sm(q->variant, 80);
        break;
    }
}

static void test_accessors(void **state)
{
    (void)state;
    arena *a = arena_new();
    const plan *p =
        read_config(a, "{family: axpy}, {family: axpy, type: f16, strategy: mma, tile: 96, masked: true}, "
                       "{family: group_scale, group: 32}, {family: group_scale, group: any}");
    target_range alike = {0, UINT32_MAX};
    const kiln_variant views[] = {{p->variants[1], {90, TARGET_ARCH}, &alike},
                                  {p->variants[2], {75, TARGET_BASE}, NULL},
                                  {p->variants[3], {75, TARGET_BASE}, NULL}};
    const kiln_variant *axpy = &views[0], *group = &views[1], *any = &views[2];
    assert_int_equal(kiln_int(axpy, "tile"), 96);
    assert_int_equal(kiln_int(group, "group"), 32);
    assert_true(kiln_bool(axpy, "masked"));
    assert_true(kiln_is(axpy, "strategy", "mma"));
    assert_false(kiln_is(axpy, "strategy", "simt"));
    assert_int_equal(kiln_word_index(axpy, "strategy"), 1);
    assert_int_equal(kiln_type(axpy, "type"), PTX_F16);
    assert_true(kiln_has_sm(axpy, 90));
    assert_true(kiln_has_sm(axpy, 80));
    assert_false(kiln_has_sm(axpy, 110));
    assert_false(kiln_has_sm(axpy, 100));
    assert_int_equal(alike.from, 90);
    assert_int_equal(alike.below, 100);

    const struct {
        question question;
        const char *expected;
    } mistakes[] = {
        {{'i', "tiles", NULL, axpy},
         "family axpy: emit asks for a parameter 'tiles' that it does not declare"},
        {{'i', "type", NULL, axpy}, "family axpy: emit asks for an integer, but 'type' is a word"},
        {{'x', "tile", NULL, axpy}, "family axpy: emit asks for a word, but 'tile' is an integer"},
        {{'i', "masked", NULL, axpy}, "family axpy: emit asks for an integer, but 'masked' is a boolean"},
        {{'i', "group", NULL, any}, "family group_scale: emit asks for an integer, but 'group' is a word"},
        {{'b', "tile", NULL, axpy}, "family axpy: emit asks for a boolean, but 'tile' is an integer"},
        {{'w', "tile", "96", axpy}, "family axpy: emit asks for a word, but 'tile' is an integer"},
        {{'w', "type", "f8", axpy}, "family axpy: emit compares 'type' with 'f8', which it never is"},
        {{'t', "strategy", NULL, axpy}, "family axpy: emit asks for a type, but 'strategy' is 'mma'"},
        {{'t', "tile", NULL, axpy}, "family axpy: emit asks for a type, but 'tile' is '96'"},
        {{'n', "tile", NULL, axpy}, "family axpy: shape gives a number 'tile' that it does not list"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        assert_family_error(ask, &mistakes[i].question, mistakes[i].expected);
    arena_free(a);
}

/* ---- targets ---------------------------------------------------------------------------------------------------- */

static void test_targets(void **state)
{
    (void)state;
    arena *a = arena_new();
    char name[TARGET_NAME_BYTES];
    target last = {0, TARGET_BASE}, t;
    size_t count = 0, length;
    for (const char *c = target_names; *c; c += length + (c[length] == ' '), count++) {
        length = strcspn(c, " ");
        const char *word = arena_string(a, c, length);
        assert_true(target_parse(word, &t));
        assert_string_equal(target_print(t, name), word);
        assert_true(target_compare(last, t) < 0 && target_compare(t, last) > 0 && target_compare(t, t) == 0);
        last = t;
    }
    assert_int_equal(count, 22);
    assert_true(count <= TARGETS_MOST);
    assert_false(target_parse("sm_9", &t));
    assert_false(target_parse("sm_90 sm_100", &t));
    assert_false(target_parse("", &t));
    arena_free(a);
}

static void test_which_target_serves(void **state)
{
    (void)state;
    static const struct {
        target has, wanted;
        bool serves;
    } rows[] = {
        {{75, TARGET_BASE}, {121, TARGET_FAMILY}, true},   {{90, TARGET_BASE}, {90, TARGET_ARCH}, true},
        {{90, TARGET_BASE}, {89, TARGET_BASE}, false},     {{90, TARGET_ARCH}, {90, TARGET_BASE}, false},
        {{90, TARGET_ARCH}, {90, TARGET_ARCH}, true},      {{100, TARGET_FAMILY}, {103, TARGET_ARCH}, true},
        {{100, TARGET_FAMILY}, {103, TARGET_BASE}, false}, {{103, TARGET_FAMILY}, {100, TARGET_ARCH}, false},
        {{100, TARGET_FAMILY}, {110, TARGET_ARCH}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(target_serves(rows[i].has, rows[i].wanted), rows[i].serves);
    const target best_first[] = {{103, TARGET_ARCH},   {103, TARGET_FAMILY}, {100, TARGET_ARCH},
                                 {100, TARGET_FAMILY}, {103, TARGET_BASE},   {75, TARGET_BASE}};
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < 6; k++)
            assert_int_equal(target_is_preferred(best_first[i], best_first[k]), i < k);
}

static void test_plain_names(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"plain", "plain"},
        {"_Z3foo1A1B", "foo"}, /* foo(A, B) */
        {"_Z4tmplIN1SI1AE2InEEvT_", "tmpl"},
        {"_Z3litILb1ELc120ELy99EEvi", "lit"},
        {"_ZN2ns4fillIfLi3EEEvPT_", "fill"},
        {"_ZN2ns4fillI3BigLin7EEEvPT_", "fill"},
        {"_ZN2ns4packIJifEEEvDpT_", "pack"},
        {"_ZN2ns2fnIPFi1AEEEvT_", "fn"},
        {"_ZN2ns2in4deepEP1A", "deep"},
        {"_ZN36_GLOBAL__N__8cc653f7_4_m_cu__Z3foo1A6hiddenEi", "hidden"},
        {"_ZN2ns4modeIL4Mode1EEEvPi", "mode"},
        {"_ZN2ns2fnIN1SIA3_iE2InEEEvT_", "fn"},
        {"_ZSt4swapIiEvRT_S1_", "swap"},
        /* from nvcc 13.0: substitutions, closures, members and functions as arguments, anonymous namespaces */
        {"_Z8internalPi", "internal"},
        {"_Z6halvesP6__halfS0_P7__half2", "halves"},
        {"c_name", "c_name"},
        {"_Z4ptrsPPiPKPKiPA4_i6float4yPFiifE", "ptrs"},
        {"_Z8constantIiLi3EEvPT_", "constant"},
        {"_Z8constantIbLb1EEvPT_", "constant"},
        {"_Z3refIiEvPKT_RS0_", "ref"},
        {"_ZN1a5upperEPNS_1b1SES2_", "upper"},
        {"_ZN1a5outerIiEEvT_PNS_1b3VecIS1_EES5_", "outer"},
        {"_ZN1a1b5plainEPNS0_1SES2_", "plain"},
        {"_ZN1a1b4deepIfEEvPT_S3_NS0_1SEPS4_", "deep"},
        {"_ZN1a1b4deepINS0_1SEEEvPT_S4_S2_PS2_", "deep"},
        {"_ZN1a1b4intsILi4ELb1EEEvPNS0_1SE", "ints"},
        {"_ZN1a1b4intsILin7ELb0EEEvPNS0_1SE", "ints"},
        {"_ZN1a1b3twoIfNS0_1SEEEvPT_PT0_S4_", "two"},
        {"_ZN1a1b3twoINS0_1SENS2_2InIiEEEEvPT_PT0_S6_", "two"},
        {"_ZN1a1b4packIJifNS0_1SEEEEvDpT_", "pack"},
        {"_ZN1a1b4packIJEEEvDpT_", "pack"},
        {"_ZN1a1b7by_enumILNS0_1EE1EEEvPi", "by_enum"},
        {"_ZN1a1b11of_templateINS0_3VecEiEEvT_IT0_E", "of_template"},
        {"_ZN1a1b11nested_argsIfEEvPNS0_3VecINS2_IT_EEEERKS4_", "nested_args"},
        {"_ZN1a1b3funI7FunctorEEvT_Pi", "fun"},
        {"_ZN1a1b3funIN36_GLOBAL__N__efe9d9b0_4_k_cu_77507adb6HiddenEEEvT_Pi", "fun"},
        {"_ZN1a1b9by_memberIXadL_ZNS0_1S1xEEEEEvPS2_", "by_member"},
        {"_ZN1a1b11by_functionIXadL_ZNS0_5twiceEiEEEEvPi", "by_function"},
        {"_ZN1a1b8negativeILxn5EEEvPi", "negative"},
        {"_ZN1a1b9signatureIPFiiNS0_1SEEEEvT_Pi", "signature"},
        {"_ZN1a1b9signatureIMNS0_1SEFiiEEEvT_Pi", "signature"},
        {"_ZN1a1b5autovILj7EEEvPi", "autov"},
        {"_ZN1a1b5autovILc99EEEvPi", "autov"},
        {"_ZN1a1b9signatureIA3_hEEvT_Pi", "signature"},
        {"_ZN1a1b9signatureIPVKiEEvT_Pi", "signature"},
        {"_ZN1a1b3funIZ3usevEUliE_EEvT_Pi", "fun"},
        {"_ZN1a1b3twoIdNS0_1SEEEvPT_PT0_S4_", "two"},
        {"_ZN1a1b9signatureINS0_3VecINS2_IMNS0_1SEiEEEEEEvT_Pi", "signature"},
        {"_ZN1a1b36_GLOBAL__N__efe9d9b0_4_k_cu_77507adb6hiddenEPNS0_1SE", "hidden"},
        {"_ZN1a1b2v19versionedENS0_1SEPi", "versioned"},
        {"_ZN36_GLOBAL__N__efe9d9b0_4_k_cu_77507adb6anon_tINS_6HiddenEEEvT_Pi", "anon_t"},
        /* expressions: the configuration has to name it */
        {"_Z5countIiEvPT_DTcl3sumfp_EE", "count"},
        {"_ZN2ns5countIXplT_Li1EEEEvPi", "_ZN2ns5countIXplT_Li1EEEEvPi"},
        /* not a compiler's name */
        {"_Z", "_Z"},
        {"_Z9saxpy", "_Z9saxpy"},
        {"_Z99999999999999999999saxpy", "_Z99999999999999999999saxpy"},
        {"_ZN5saxpy", "_ZN5saxpy"},
        {"_ZN5saxpyI", "_ZN5saxpyI"},
        {"_ZNE", "_ZNE"},
        {"_ZN1aIZ", "_ZN1aIZ"},
        {"_ZN1aIS", "_ZN1aIS"},
        {"_ZN1aIX", "_ZN1aIX"},
        {"_ZN1aID", "_ZN1aID"},
        {"_ZN1aIPPPPP", "_ZN1aIPPPPP"},
    };
    arena *a = arena_new();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(plain_name(a, rows[i][0]), rows[i][1]);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_names),         cmocka_unit_test(test_names),
        cmocka_unit_test(test_order_of_targets),    cmocka_unit_test(test_most_variants),
        cmocka_unit_test(test_accessors),           cmocka_unit_test(test_targets),
        cmocka_unit_test(test_which_target_serves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
