/* The expression language of manifests: precedence, lazy evaluation, words, and mistakes. */
#include "test_verify.h"

#include <math.h>

#include "formula.h"

typedef struct name_value {
    const char *name;
    uint64_t number;
    const char *word;
    bool is_float;
    double real;
} name_value;

static const name_value names[] = {{"n", 100, NULL, false, 0},
                                   {"zero", 0, NULL, false, 0},
                                   {"group", 64, NULL, false, 0},
                                   {"type", 0, "f16", false, 0},
                                   {"huge", UINT64_MAX, NULL, false, 0},
                                   {"below", UINT64_MAX - 2, NULL, false, 0}, /* -3 */
                                   {"half", 0, NULL, true, 0.5},
                                   {"minus", 0, NULL, true, -0.5},
                                   {"minus_zero", 0, NULL, true, -0.0},
                                   {"nan", 0, NULL, true, NAN},
                                   {"infinity", 0, NULL, true, INFINITY},
                                   {"minus_infinity", 0, NULL, true, -INFINITY},
                                   {"pointer", 0, NULL, false, 0},
                                   {"null", 0, NULL, false, 0}};

static bool look_up(const void *context, const char *name, size_t length, formula_value *value)
{
    (void)context;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i].name) != length || memcmp(names[i].name, name, length) != 0)
            continue;
        const name_value *found = &names[i];
        *value = (formula_value){.number = found->number,
                                 .word = found->word,
                                 .word_length = found->word ? strlen(found->word) : 0,
                                 .is_float = found->is_float,
                                 .real = found->real,
                                 .is_null = strcmp(found->name, "null") == 0};
        return true;
    }
    return false;
}

static void test_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t value;
    } rows[] = {
        /* clang-format off */
        {"12", 12}, {"0x10", 16}, {"18446744073709551615", UINT64_MAX}, {"0xFFFFffffFFFFffff", UINT64_MAX},
        {"n", 100}, {" n ", 100}, {"(n)", 100},
        {"1 + 2 * 3", 7}, {"(1 + 2) * 3", 9}, {"10 - 3 - 2", 5}, {"100 / 10 / 5", 2}, {"17 % 10 * 2", 14},
        {"1 + 2 < 4", 1}, {"1 < 2 == 1", 1}, {"2 == 2 && 3 > 4 || 1", 1}, {"1 || 0 && 0", 1}, {"(1 || 0) && 0", 0},
        {"!negative(below) || n < 4", 0}, {"negative(zero)", 0},
        {"!0 + 1", 2}, {"!(n == 100)", 0}, {"!!n", 1}, {"n != 100", 0}, {"n<=100", 1}, {"n>=101", 0}, {"n>99", 1},
        {"ceil_div(n, group)", 2}, {"ceil_div(0, 7)", 0}, {"ceil_div(huge, 2)", UINT64_C(1) << 63},
        {"min(n, group)", 64}, {"max(n, group)", 100}, {"select(n > 5, 1, 2)", 1}, {"select(n < 5, 1, 2)", 2},
        {"aligned(n, 4)", 1}, {"aligned(n, 8)", 0},
        {"given(pointer)", 1}, {"given(null)", 0}, {"!given(null) && n == 100", 1},
        {"type == f16", 1}, {"type == f32", 0}, {"type != f32", 1}, {"group == any", 0}, {"group != any", 1},
        {"n % group == 0", 0}, {"2 && 4", 1}, {"0 || 8", 1},
        {"negative(below)", 1}, {"negative(n)", 0}, {"negative(half)", 0}, {"negative(minus)", 1},
        {"negative(minus_zero)", 0}, {"negative(nan)", 1}, {"negative(infinity)", 0}, {"negative(minus_infinity)", 1},
        {"finite(half)", 1}, {"finite(minus)", 1}, {"finite(nan)", 0}, {"finite(infinity)", 0},
        {"finite(minus_infinity)", 0}, {"!negative(half) && finite(half)", 1},
        /* the unused side is not evaluated */
        {"zero != 0 && n / zero > 1", 0}, {"zero == 0 || n / zero > 1", 1}, {"select(zero, n / zero, 7)", 7},
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pool memory = {NULL};
        char error[256] = "";
        uint64_t value = 4711;
        formula *f = formula_parse(&memory, rows[i].text, error, sizeof error);
        assert_string_equal(error, "");
        assert_non_null(f);
        assert_true(formula_evaluate(f, look_up, NULL, &value, error, sizeof error));
        if (value != rows[i].value)
            print_error("%s\n", rows[i].text);
        assert_int_equal(value, rows[i].value);
        pool_free(&memory);
    }
}

static void test_parse_mistakes(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "'', character 1: expected a number, a name or '('"},
        {"1 +", "'1 +', character 4: expected a number, a name or '('"},
        {"(n", "'(n', character 3: expected ')'"},
        {"n n", "'n n', character 3: expected an operator or the end"},
        {"12a", "'12a', character 3: not a number"},
        {"0x", "'0x', character 3: not a number"},
        {"18446744073709551616", "'18446744073709551616', character 20: the number does not fit in 64 bits"},
        {"sqrt(4)", "'sqrt(4)', character 6: no such function"},
        {"min(1)", "'min(1)', character 6: expected ','"},
        {"select(1, 2, 3, 4)", "'select(1, 2, 3, 4)', character 15: expected ')'"},
        {"n = 3", "'n = 3', character 3: expected an operator or the end"},
        {"-1", "'-1', character 1: expected a number, a name or '('"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pool memory = {NULL};
        char error[256] = "";
        assert_null(formula_parse(&memory, rows[i][0], error, sizeof error));
        assert_string_equal(error, rows[i][1]);
        pool_free(&memory);
    }
}

static void test_depth(void **state)
{
    (void)state;
    pool memory = {NULL};
    char text[1001] = "", error[2048];
    memset(text, '(', 1000);
    assert_null(formula_parse(&memory, text, error, sizeof error));
    memset(text, '!', 1000);
    assert_null(formula_parse(&memory, text, error, sizeof error));
    pool_free(&memory);
}

static void test_evaluation_mistakes(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"n / zero", "'n / zero': division by zero"},
        {"n % zero", "'n % zero': division by zero"},
        {"ceil_div(n, zero)", "'ceil_div(n, zero)': division by zero"},
        {"group - n", "'group - n': the difference is below zero"},
        {"huge + 1", "'huge + 1': the sum passes 64 bits"},
        {"huge * 2", "'huge * 2': the product passes 64 bits"},
        {"type + 1", "'type + 1': f16 is no number"},
        {"unknown", "'unknown': unknown is no number"},
        {"half < 1", "'half < 1': only negative() and finite() take a float"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pool memory = {NULL};
        char error[256] = "";
        uint64_t value;
        formula *f = formula_parse(&memory, rows[i][0], error, sizeof error);
        assert_non_null(f);
        assert_false(formula_evaluate(f, look_up, NULL, &value, error, sizeof error));
        assert_string_equal(error, rows[i][1]);
        pool_free(&memory);
    }
}

static void test_mentions(void **state)
{
    (void)state;
    pool memory = {NULL};
    char error[256];
    formula *f = formula_parse(&memory, "ceil_div(rows * 2, select(k > 1, tile, 8))", error, sizeof error);
    assert_true(formula_mentions(f, "rows"));
    assert_true(formula_mentions(f, "tile"));
    assert_false(formula_mentions(f, "row"));
    assert_false(formula_mentions(f, "ceil_div"));
    f = formula_parse(&memory, "given(x) && x == 1 || !aligned(y, 16)", error, sizeof error);
    assert_non_null(f);
    assert_true(formula_mentions(f, "x"));
    assert_false(formula_aligns(f, "x"));
    assert_true(formula_aligns(f, "y"));
    pool_free(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),   cmocka_unit_test(test_parse_mistakes),
        cmocka_unit_test(test_depth),    cmocka_unit_test(test_evaluation_mistakes),
        cmocka_unit_test(test_mentions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
