/* Expressions: mistakes, values, both printed forms, binding. */
#include "../test_families.h"
#include "expression/expression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "death.h"
#include "family/family.h"
#include "plan/plan.h"

#define ROWS(table) (sizeof(table) / sizeof(table)[0])

typedef struct question {
    const char *family, *text;
} question;

/* Returns a variant of a family with these values, separated by spaces. */
static variant *variant_of(arena *a, const char *family, const char *values)
{
    variant *v = arena_alloc(a, sizeof *v);
    v->family = family_find(test_families, family);
    assert_non_null(v->family);
    for (size_t i = 0; i < family_param_count(v->family); i++) {
        size_t length = strcspn(values, " ");
        v->values[i] = param_value_of(a, &v->family->params[i], arena_string(a, values, length));
        assert_true(param_has_value(&v->family->params[i], v->values[i].text));
        values += length;
        values += *values == ' ';
    }
    return v;
}

/* ---- mistakes --------------------------------------------------------------------------------------------------- */

static void parse(const void *argument)
{
    const question *q = argument;
    expression_parse(arena_new(), family_find(test_families, q->family), q->text);
}

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        question question;
        const char *expected;
    } rows[] = {
        {{"axpy", ""}, "expected a value at its end"},
        {{"axpy", "n +"}, "expected a value at its end"},
        {{"axpy", "n n"}, "unexpected \"n\""},
        {{"axpy", "(n"}, "expected ')' at \"\""},
        {{"axpy", "n)"}, "unexpected \")\""},
        {{"axpy", "n & 1"}, "unexpected \"& 1\""},
        {{"axpy", "n = 1"}, "unexpected \"= 1\""},
        {{"axpy", "n << 1"}, "expected a value at \"< 1\""},
        {{"axpy", "-1"}, "expected a value at \"-1\""},
        {{"axpy", "n ? 1 : 2"}, "unexpected \"? 1 : 2\""},
        {{"axpy", "n\t+ 1"}, "unexpected \"\t+ 1\""},
        {{"axpy", "12a"}, "'12a' is not a number"},
        {{"axpy", "0x"}, "'0x' is not a number"},
        {{"axpy", "0xg"}, "'0xg' is not a number"},
        {{"axpy", "18446744073709551616"}, "'18446744073709551616' does not fit 64 bits"},
        {{"axpy", "0x10000000000000000"}, "'0x10000000000000000' does not fit 64 bits"},
        {{"axpy", "m"}, "'m' is no parameter, argument or fact"},
        {{"axpy", "f16"}, "'f16' is no parameter, argument or fact"},
        {{"axpy", "x"}, "'x' is a pointer; only aligned() and given() take one"},
        {{"axpy", "a"}, "'a' is of type f32; expressions take u8, u16, u32 and u64"},
        {{"axpy", "type == f8"}, "'f8' is no value of type"},
        {{"axpy", "type == (f16)"}, "'(f16)' is no value of type"},
        {{"axpy", "f16 == type"}, "'f16' is no parameter, argument or fact"},
        {{"axpy", "type"}, "the words of 'type' are not numbers"},
        {{"axpy", "type < f16"}, "'f16' is no parameter, argument or fact"},
        {{"axpy", "n + type"}, "the words of 'type' are not numbers"},
        {{"group_scale", "group == 128"}, "'128' is no value of group"},
        {{"axpy", "ceil_div(n)"}, "expected ',' at \")\""},
        {{"axpy", "min(n, 1, 2)"}, "expected ')' at \", 2)\""},
        {{"axpy", "floor(n)"}, "'floor' is no function"},
        {{"axpy", "min"}, "'min' is no parameter, argument or fact"},
        {{"axpy", "aligned(n, 16)"}, "aligned() takes a pointer argument first, not 'n'"},
        {{"axpy", "negative(n)"}, "negative() takes a scalar argument that is not unsigned, not 'n'"},
        {{"axpy", "negative(x)"}, "negative() takes a scalar argument that is not unsigned, not 'x'"},
        {{"axpy", "negative(a + 1)"}, "expected ')' at \"+ 1)\""},
        {{"axpy", "finite(n)"}, "finite() takes a scalar argument of a float type, not 'n'"},
        {{"axpy", "finite(x)"}, "finite() takes a scalar argument of a float type, not 'x'"},
        {{"axpy", "a < 1"}, "'a' is of type f32; expressions take u8, u16, u32 and u64"},
        {{"axpy", "given(n)"}, "given() takes a pointer argument, not 'n'"},
        {{"axpy", "given(x, 16)"}, "expected ')' at \", 16)\""},
        {{"axpy", "aligned(16, 16)"}, "aligned() takes a pointer argument first, not '16'"},
    };
    arena *a = arena_new();
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_family_error(parse, &rows[i].question,
                            arena_format(a, "family %s: expression \"%s\": %s", rows[i].question.family,
                                         rows[i].question.text, rows[i].expected));
    char deep[201] = {0};
    memset(deep, '(', sizeof deep - 1);
    const question too_deep = {"axpy", deep};
    assert_family_error(parse, &too_deep,
                        arena_format(a, "family axpy: expression \"%s\": nested deeper than 64", deep));
    arena_free(a);
}

static void evaluate(const void *argument)
{
    const question *q = argument;
    arena *a = arena_new();
    const kiln_family *family = family_find(test_families, q->family);
    expression_value(expression_parse(a, family, q->text), variant_of(a, "axpy", "f32 simt 64 true"));
}

static void test_mistakes_of_values(void **state)
{
    (void)state;
    static const struct {
        question question;
        const char *expected;
    } rows[] = {
        {{"axpy", "1 - 2"}, "subtraction below zero"},
        {{"axpy", "tile - 65"}, "subtraction below zero"},
        {{"axpy", "1 / 0"}, "division by zero"},
        {{"axpy", "tile % (tile - 64)"}, "division by zero"},
        {{"axpy", "ceil_div(1, !masked)"}, "division by zero"},
        {{"axpy", "n"}, "its value depends on more than parameters"},
        {{"axpy", "sm"}, "its value depends on more than parameters"},
        {{"axpy", "sm"}, "its value depends on more than parameters"},
        {{"axpy", "aligned(x, 16)"}, "its value depends on more than parameters"},
    };
    arena *a = arena_new();
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_family_error(
            evaluate, &rows[i].question,
            arena_format(a, "family axpy: expression \"%s\": %s", rows[i].question.text, rows[i].expected));
    arena_free(a);
}

static void print_unbound(const void *argument)
{
    arena *a = arena_new();
    text out = text_new(a);
    expression_print_c(&out, expression_parse(a, family_find(test_families, "axpy"), argument), "a->", "d->");
}

static void test_unbound_in_c(void **state)
{
    (void)state;
    assert_internal_error(print_unbound, "n * tile",
                          "family axpy: expression \"n * tile\": 'tile' is printed as C before it is bound");
    assert_internal_error(
        print_unbound, "type == f16",
        "family axpy: expression \"type == f16\": 'type' is printed as C before it is bound");
    assert_internal_error(
        print_unbound, "threads",
        "family axpy: expression \"threads\": 'threads' is printed as C before it is bound");
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

static void test_values(void **state)
{
    (void)state;
    static const struct {
        const char *family, *values, *text;
        uint64_t expected;
    } rows[] = {
        {"axpy", "f32 simt 64 true", "1 + 2 * 3", 7},
        {"axpy", "f32 simt 64 true", "(1 + 2) * 3", 9},
        {"axpy", "f32 simt 64 true", "10 - 3 - 2", 5},
        {"axpy", "f32 simt 64 true", "100 / 10 / 5", 2},
        {"axpy", "f32 simt 64 true", "7 % 4 * 2", 6},
        {"axpy", "f32 simt 64 true", "1 + 1 == 2", 1},
        {"axpy", "f32 simt 64 true", "1 < 2 == 1", 1},
        {"axpy", "f32 simt 64 true", "3 > 2 > 1", 0},
        {"axpy", "f32 simt 64 true", "1 || 0 && 0", 1},
        {"axpy", "f32 simt 64 true", "(1 || 0) && 0", 0},
        {"axpy", "f32 simt 64 true", "!0 + 1", 2},
        {"axpy", "f32 simt 64 true", "!5 == 0", 1},
        {"axpy", "f32 simt 64 true", "!!5", 1},
        {"axpy", "f32 simt 64 true", "5 && 7", 1},
        {"axpy", "f32 simt 64 true", "2 <= 2 && 2 >= 2 && 2 != 3", 1},
        {"axpy", "f32 simt 64 true", "0x1F + 0XaB", 202},
        {"axpy", "f32 simt 64 true", "18446744073709551615", UINT64_MAX},
        {"axpy", "f32 simt 64 true", "0xffffffffffffffff / 2", UINT64_MAX / 2},
        {"axpy", "f32 simt 64 true", "4294967295 * 4294967297", UINT64_MAX},
        {"axpy", "f32 simt 64 true", "ceil_div(9, 4) * 10 + ceil_div(8, 4)", 32},
        {"axpy", "f32 simt 64 true", "ceil_div(18446744073709551615, 2)", UINT64_C(1) << 63},
        {"axpy", "f32 simt 64 true", "min(3, max(1, 2))", 2},
        {"axpy", "f32 simt 64 true", "select(tile > 32, 1, 1 / 0)", 1},
        {"axpy", "f32 simt 64 true", "select(0, 0 - 1, 4)", 4},
        {"axpy", "f32 simt 64 true", "0 && 1 / 0", 0},
        {"axpy", "f32 simt 64 true", "1 || 1 / 0", 1},
        {"axpy", "f32 simt 64 true", "tile * 4 + masked", 257},
        {"axpy", "f16 mma 96 false", "type == f16", 1},
        {"axpy", "f16 mma 96 false", "type != f16 || strategy != mma", 0},
        {"axpy", "f16 mma 96 false", "(type == f16) + (strategy == mma) * 2 + tile", 99},
        {"axpy", "f16 mma 96 false", "masked == false && !masked && masked != true && masked == 0", 1},
        {"group_scale", "32 128", "group", 32},
        {"group_scale", "64 128", "group == 64 && group != any", 1},
        {"group_scale", "64 128", "select(group == any, 1, group) + threads", 192},
        {"group_scale", "any 256", "select(group == any, 1, group) + threads", 257},
    };
    arena *a = arena_new();
    for (size_t i = 0; i < ROWS(rows); i++) {
        const variant *v = variant_of(a, rows[i].family, rows[i].values);
        const expression *e = expression_parse(a, v->family, rows[i].text);
        if (expression_value(e, v) != rows[i].expected)
            fail_msg("%s: expected %llu, found %llu", rows[i].text, (unsigned long long)rows[i].expected,
                     (unsigned long long)expression_value(e, v));
        uint64_t bound = 0; /* binding folds to the same value */
        assert_true(expression_is_constant(expression_bind(a, e, v), &bound));
        assert_int_equal(bound, rows[i].expected);
    }
    arena_free(a);
}

static void test_shape_facts(void **state)
{
    (void)state;
    arena *a = arena_new();
    variant *v = variant_of(a, "hopper", "true");
    const expression *e = expression_parse(a, v->family, "threads * 1000 + shared_bytes * 10 + image_blocks");
    v->shape = (kiln_shape){.block = {32, 2, 1}, .shared_bytes = 48, .blocks_per_multiprocessor = 3};
    assert_int_equal(expression_value(e, v), 64483);
    const blocks_step steps[] = {{75, 2}, {90, 3}};
    v->blocks = steps;
    v->blocks_count = 2;
    text printed = text_new(a);
    expression_print(&printed,
                     expression_bind(a, expression_parse(a, v->family, "blocks_per_multiprocessor"), v));
    assert_string_equal(printed.data, "max(1, min(min(select(sm >= 90, 3, 2), multiprocessor_threads / 64), "
                                      "multiprocessor_shared_bytes / 1072))");
    arena_free(a);
}

static void test_uses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int kinds; /* bit for each name_kind */
    } rows[] = {
        {"1", 0},
        {"n", 1 << NAME_ARG},
        {"aligned(x, 16)", 1 << NAME_ARG},
        {"given(x)", 1 << NAME_ARG},
        {"negative(a)", 1 << NAME_ARG},
        {"finite(a)", 1 << NAME_ARG},
        {"tile", 1 << NAME_PARAM},
        {"type == f16", 1 << NAME_PARAM | 1 << NAME_WORD},
        {"min(1, select(0, sm, n))", 1 << NAME_DEVICE | 1 << NAME_ARG},
        {"!threads", 1 << NAME_SHAPE},
    };
    arena *a = arena_new();
    for (size_t i = 0; i < ROWS(rows); i++) {
        const expression *e = expression_parse(a, family_find(test_families, "axpy"), rows[i].text);
        for (int kind = NAME_PARAM; kind <= NAME_SHAPE; kind++)
            assert_int_equal(expression_uses(e, (name_kind)kind), rows[i].kinds >> kind & 1);
    }
    arena_free(a);
}

/* ---- null pointers ---------------------------------------------------------------------------------------------- */

#define POINTER(dimensions)                                                                                  \
    {                                                                                                        \
        .name = "p", .kind = KILN_ARG_IN, .type = "u8", .shape = dimensions, .summary = "s"                  \
    }

/* The shape decides whether an array has elements. Conditions in `empty` were tested before. */
static void test_has_elements(void **state)
{
    (void)state;
    static const kiln_param params[] = {
        {.name = "tile", .type = KILN_PARAM_INT, .words = "16 32"},
        {.name = "extra", .type = KILN_PARAM_INT, .min = 0, .max = 4, .step = 1},
        {.name = "group", .words = "64 any"},
        {0}};
    static const struct {
        const char *empty, *shape, *expected;
    } rows[] = {
        {NULL, "n", "n != 0"},
        {NULL, "4", "1"},
        {NULL, "n, m, tile", "n != 0 && m != 0"},
        {"n == 0", "n, m", "m != 0"},
        {"n == 0 || m == 0", "n, m", "1"},
        {"n * m == 0", "n, m", "1"},
        {"ceil_div(n, 256) == 0", "n, m / 2", "m >= 2"},
        {"n < 1", "n", "n != 0"}, /* equal, but written differently: both are printed */
        {NULL, "ceil_div(n, select(group == any, m, group))", "n != 0"},
        {NULL, "n / 256 * 144", "n >= 256"},
        {NULL, "n + m", "n != 0 || m != 0"},
        {NULL, "n + 1", "1"},
        {NULL, "n * 0", "0"},
        {NULL, "min(n, m), 3", "n != 0 && m != 0"},
        {NULL, "max(n, m)", "n != 0 || m != 0"},
        {NULL, "n - m", "n - m != 0"},
        {NULL, "n % 8", "n % 8 != 0"},
        {NULL, "n > 4", "n > 4"},
        {NULL, "select(n == 0, 128, n)", "1"},
        {NULL, "select(n == 0, 0, m + 8)", "n != 0"},
        {NULL, "select(n < m, 0, tile)", "n >= m"},
        {NULL, "select(!(n < m), n, 0)", "n >= m && n != 0"},
        {NULL, "select(n < m, n, m)", "select(n < m, n, m) != 0"},
        {NULL, "n * extra", "n != 0 && extra != 0"},
        {NULL, "n, group == any", "n != 0 && group == any"},
        {NULL, "n * (n == 0)", "0"},
    };
    arena *a = arena_new();
    for (size_t i = 0; i < ROWS(rows); i++) {
        const kiln_arg args[] = {{.name = "n", .type = "u64", .summary = "s"},
                                 {.name = "m", .type = "u32", .summary = "s"},
                                 POINTER(rows[i].shape),
                                 {0}};
        const kiln_family family = {.name = "f", .params = params, .args = args, .empty = rows[i].empty};
        text out = text_new(a);
        expression_print(&out, expression_has_elements(a, &family, &args[2]));
        assert_string_equal(out.data, rows[i].expected);
    }
    arena_free(a);
}

/* ---- printing and binding --------------------------------------------------------------------------------------- */

static void test_print(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"((n))", "n"},
        {"0x10", "16"},
        {"(n*2)+1", "n * 2 + 1"},
        {"n*(2+1)", "n * (2 + 1)"},
        {"n-(2-1)", "n - (2 - 1)"},
        {"(n-2)-1", "n - 2 - 1"},
        {"n*(2/1)", "n * (2 / 1)"},
        {"(n<2)==(n<3)", "n < 2 == n < 3"},
        {"(n==2)<3", "(n == 2) < 3"},
        {"!(n==2)", "!(n == 2)"},
        {"!n==2", "!n == 2"},
        {"(n||1)&&2", "(n || 1) && 2"},
        {"n||(1&&2)", "n || 1 && 2"},
        {"type==f16&&!masked", "type == f16 && !masked"},
        {"(type==f16)*2", "(type == f16) * 2"},
        {"min( n ,max(1,2) )", "min(n, max(1, 2))"},
        {"select((n),(1+2),(3))", "select(n, 1 + 2, 3)"},
        {"aligned(x,16)||0", "aligned(x, 16) || 0"},
        {"!given( x )||n", "!given(x) || n"},
        {"! negative( a )&&n", "!negative(a) && n"},
        {"finite( a )||negative(a)", "finite(a) || negative(a)"},
    };
    arena *a = arena_new();
    for (size_t i = 0; i < ROWS(rows); i++) {
        text once = text_new(a), twice = text_new(a);
        expression_print(&once, expression_parse(a, family_find(test_families, "axpy"), rows[i][0]));
        assert_string_equal(once.data, rows[i][1]);
        expression_print(&twice, expression_parse(a, family_find(test_families, "axpy"), once.data));
        assert_string_equal(twice.data, once.data);
    }
    arena_free(a);
}

static void test_bind(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"n * tile + 2 * 3", "n * 64 + 6"},
        {"select(type == f64, 8, 4) * n", "4 * n"},
        {"n + (tile - 64)", "n"},
        {"0 + n", "n"},
        {"n - 0", "n"},
        {"n * 0", "0"},
        {"1 * n", "n"},
        {"ceil_div(n, masked)", "n"},
        {"n / 1 % 1", "0"},
        {"min(n, 0) + max(0, n)", "n"},
        {"n >= 0", "1"},
        {"n < 0", "0"},
        {"0 <= n && 0 > n", "0"},
        {"masked && n < 4", "n < 4"},
        {"masked && n", "1 && n"},
        {"n < 4 && masked", "n < 4"},
        {"n < 4 && !masked", "0"},
        {"!masked && n < 4", "0"},
        {"n < 4 || masked", "1"},
        {"!masked || n < 4", "n < 4"},
        {"masked || n / 0", "1"},
        {"n || 0", "n || 0"},
        {"select(n, tile, tile / 2)", "select(n, 64, 32)"},
        {"aligned(x, masked)", "1"},
        {"!!negative(a)", "negative(a)"},
        {"!!n", "!!n"},
        {"aligned(x, tile / 4)", "aligned(x, 16)"},
        {"!(masked && n < 4)", "!(n < 4)"},
        {"sm >= 80 && type == f32", "sm >= 80"},
    };
    arena *a = arena_new();
    const variant *v = variant_of(a, "axpy", "f32 simt 64 true");
    for (size_t i = 0; i < ROWS(rows); i++) {
        text out = text_new(a);
        expression_print(&out, expression_bind(a, expression_parse(a, v->family, rows[i][0]), v));
        if (strcmp(out.data, rows[i][1]) != 0)
            fail_msg("%s: expected %s, found %s", rows[i][0], rows[i][1], out.data);
    }
    text out = text_new(a);
    expression_print(&out, expression_bind(a, expression_parse(a, v->family, "n * (2 + 3) * tile"), NULL));
    assert_string_equal(out.data, "n * 5 * tile");
    arena_free(a);
}

static void test_print_c(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"7", "UINT64_C(7)"},
        {"n * 2 + 1", "a->n * 2 + 1"},
        {"group_size * 2", "(uint64_t)a->group_size * 2"},
        {"n / 4294967296", "a->n / UINT64_C(4294967296)"},
        {"2147483647 * n", "2147483647 * a->n"},
        {"n - (group_size - 1)", "a->n - ((uint64_t)a->group_size - 1)"},
        {"sm >= 80", "(uint64_t)loader->device.sm >= 80"},
        {"(n < 4) * 2", "(uint64_t)(a->n < 4) * 2"},
        {"n < 4 == 1", "(uint64_t)(a->n < 4) == 1"},
        {"!n + 1", "(uint64_t)!(a->n != 0) + 1"},
        {"n && group_size", "a->n != 0 && (uint64_t)a->group_size != 0"},
        {"n == 1 && n < 2 || n > 3", "(a->n == 1 && a->n < 2) || a->n > 3"},
        {"n == 1 && (n < 2 || n > 3)", "a->n == 1 && (a->n < 2 || a->n > 3)"},
        {"select(n < 4, 1, n) * 2", "(a->n < 4 ? UINT64_C(1) : a->n) * 2"},
        {"select(n, n < 2, 0)", "(a->n != 0 ? (uint64_t)(a->n < 2) : UINT64_C(0))"},
        {"min(ceil_div(n, 4), max(n, multiprocessors * 8))",
         "minimum(ceil_div(a->n, 4), maximum(a->n, (uint64_t)loader->device.multiprocessors * 8))"},
        {"aligned(scale, 16) || n < 4", "(a->scale % 16 == 0) || a->n < 4"},
        {"given(scale) || n < 4", "(a->scale != 0) || a->n < 4"},
        {"!given(scale) && n", "!(a->scale != 0) && a->n != 0"},
        {"!aligned(scale, group_size)", "!(a->scale % (uint64_t)a->group_size == 0)"},
    };
    arena *a = arena_new();
    for (size_t i = 0; i < ROWS(rows); i++) {
        text out = text_new(a);
        expression_print_c(&out, expression_parse(a, family_find(test_families, "group_scale"), rows[i][0]),
                           "a->", "loader->device.");
        if (strcmp(out.data, rows[i][1]) != 0)
            fail_msg("%s: expected %s, found %s", rows[i][0], rows[i][1], out.data);
    }
    arena_free(a);
}

/* Doubles do not wrap around: the result is at least the value, and nothing truncates. */
static void test_print_c_double(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"7", "7.0"},
        {"n * group_size + 1", "(double)a->n * (double)a->group_size + 1.0"},
        {"(max(n, 1) - 1) * group_size", "(larger((double)a->n, 1.0) - 1.0) * (double)a->group_size"},
        {"min(n, 4294967296)", "smaller((double)a->n, 4294967296.0)"},
        {"n / 256 * 144", "(double)a->n / 256.0 * 144.0"},
        {"n / group_size", "(double)a->n / (double)a->group_size"},
        {"ceil_div(n + 1, group_size + 2)", "(((double)a->n + 1.0) / ((double)a->group_size + 2.0) + 1.0)"},
        {"n % group_size", "smaller((double)a->n, (double)a->group_size)"},
        {"select(n * group_size == 0, 0, n)",
         "((double)a->n * (double)a->group_size == 0.0 ? 0.0 : (double)a->n)"},
        {"select(n && aligned(scale, 16), 1, n)",
         "((double)a->n != 0 && (a->scale % 16 == 0) ? 1.0 : (double)a->n)"},
        {"(n < 4) * 2", "(double)((double)a->n < 4.0) * 2.0"},
        {"multiprocessors * n", "(double)(uint64_t)loader->device.multiprocessors * (double)a->n"},
    };
    arena *a = arena_new();
    for (size_t i = 0; i < ROWS(rows); i++) {
        text out = text_new(a);
        expression_print_c_double(&out,
                                  expression_parse(a, family_find(test_families, "group_scale"), rows[i][0]),
                                  "a->", "loader->device.");
        if (strcmp(out.data, rows[i][1]) != 0)
            fail_msg("%s: expected %s, found %s", rows[i][0], rows[i][1], out.data);
    }
    arena_free(a);
}

/* Bounds of arguments, by index: n at most 1000, group_size at most 8. */
static void test_most(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        double most;
    } rows[] = {
        {"12", 12},
        {"n * group_size + 1", 8001},
        {"n - group_size", 1000},
        {"n / 4", 250},
        {"n / group_size", 1000},
        {"ceil_div(n, 4)", 251},
        {"n % 16", 16},
        {"n % group_size", 8},
        {"min(n, group_size)", 8},
        {"max(n, 5000)", 5000},
        {"select(n == 0, 0, n * group_size)", 8000},
        {"n < 4 || group_size", 1},
        {"n * n * n * n * n * n * n", 1e21},
        {"multiprocessors", 4294967295.0},
    };
    static const double most_of_args[] = {1000, 8, 0};
    arena *a = arena_new();
    for (size_t i = 0; i < ROWS(rows); i++) {
        const expression *e = expression_parse(a, family_find(test_families, "group_scale"), rows[i].source);
        if (expression_most(e, most_of_args) != rows[i].most)
            fail_msg("%s: expected %g, found %g", rows[i].source, rows[i].most,
                     expression_most(e, most_of_args));
    }
    arena_free(a);
}

/* Comparisons that are always true or false for a u32; compilers warn about them. */
static void test_settled_comparisons(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"group_size <= 4294967295 && n <= 4294967295", "n <= 4294967295"},
        {"group_size > 4294967295 || group_size < 4294967295", "group_size < 4294967295"},
        {"group_size < 4294967296 && !(group_size >= 4294967296) && n < 1", "n < 1"},
    };
    arena *a = arena_new();
    for (size_t i = 0; i < ROWS(rows); i++) {
        text out = text_new(a);
        expression_print(
            &out, expression_bind(
                      a, expression_parse(a, family_find(test_families, "group_scale"), rows[i][0]), NULL));
        assert_string_equal(out.data, rows[i][1]);
    }
    arena_free(a);
}

static void test_list(void **state)
{
    (void)state;
    arena *a = arena_new();
    const expression *const *list;
    assert_int_equal(
        expression_parse_list(a, family_find(test_families, "axpy"), "n, ceil_div(n, 2) , 3", &list), 3);
    text out = text_new(a);
    for (size_t i = 0; i < 3; i++) {
        expression_print(&out, list[i]);
        text_add(&out, ";");
    }
    assert_string_equal(out.data, "n;ceil_div(n, 2);3;");
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_mistakes_of_values),
        cmocka_unit_test(test_unbound_in_c),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_shape_facts),
        cmocka_unit_test(test_uses),
        cmocka_unit_test(test_has_elements),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_bind),
        cmocka_unit_test(test_print_c),
        cmocka_unit_test(test_print_c_double),
        cmocka_unit_test(test_most),
        cmocka_unit_test(test_settled_comparisons),
        cmocka_unit_test(test_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
