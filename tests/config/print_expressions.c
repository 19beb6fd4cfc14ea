/* Writes a C program that compares expressions printed as C with the generator's evaluation.
 *
 * Each name is declared twice: as a parameter, so that the generator can evaluate it, and as an argument, so that it is
 * printed as C. Expressions are random with a fixed seed; divisors and subtractions are always legal. Expressions over
 * floats are compared with values computed by hand. */
#include <inttypes.h>
#include <stdio.h>

#include "expression/expression.h"
#include "plan/plan.h"

enum { EXPRESSIONS = 600, ASSIGNMENTS = 8, NAMES = 4, DEEPEST = 4 };

/* clang-format off */
#define PARAM(letter) {.name = letter, .type = KILN_PARAM_INT, .max = UINT32_MAX, .step = 1, .default_value = "0"}
static const kiln_param params[] = {PARAM("b"), PARAM("h"), PARAM("w"), PARAM("q"), {0}};
static const kiln_arg args[] = {
    {.name = "b", .type = "u8"}, {.name = "h", .type = "u16"}, {.name = "w", .type = "u32"}, {.name = "q", .type = "u64"},
    {.name = "d", .type = "s32"}, {.name = "f", .type = "f32"}, {.name = "g", .type = "f64"}, {0}};
static const uint32_t assignments[ASSIGNMENTS][NAMES] = {
    {0, 0, 0, 0},             {1, 1, 1, 1},           {255, 65535, 4294967295, 4294967295}, {3, 1000, 65536, 7},
    {200, 60000, 4000000000, 1}, {0, 7, 2147483648, 4096}, {16, 0, 2147483647, 255},          {128, 32768, 1, 2147483648}};
/* clang-format on */
static const kiln_family as_params = {.name = "as_params", .params = params};
static const kiln_family as_args = {.name = "as_args", .args = args};

static uint64_t state = 20240229;

static unsigned draw(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

static const char *make(arena *a, int depth)
{
    static const char *const literals[] = {"0",     "1",          "2",          "3",         "255",
                                           "65536", "2147483648", "0xffffffff", "4294967296"};
    static const char *const forms[] = {"(%s) + (%s)",
                                        "(%s) * (%s)",
                                        "(%s) / max(%s, 1)",
                                        "(%s) %% ((%s) + 1 + (w == w))",
                                        "ceil_div(%s, max(%s, 3))",
                                        "min(%s, %s)",
                                        "max(%s, %s)",
                                        "(%s) == (%s)",
                                        "(%s) != (%s)",
                                        "(%s) < (%s)",
                                        "(%s) <= (%s)",
                                        "(%s) > (%s)",
                                        "(%s) >= (%s)",
                                        "(%s) && (%s)",
                                        "(%s) || (%s)",
                                        "!(%s) + (%s)",
                                        "!((%s) && (%s))"};
    static const char *const names[NAMES] = {"b", "h", "w", "q"};
    if (depth == DEEPEST || draw(6) == 0)
        return draw(3) == 0 ? literals[draw(sizeof literals / sizeof literals[0])] : names[draw(NAMES)];
    const char *x = make(a, depth + 1);
    const char *y = make(a, depth + 1);
    unsigned form = draw(sizeof forms / sizeof forms[0] + 2);
    if (form == sizeof forms / sizeof forms[0])
        return arena_format(a, "select(%s, %s, %s)", make(a, depth + 1), x, y);
    if (form > sizeof forms / sizeof forms[0])
        return arena_format(a, "max(%s, %s) - min(%s, %s)", x, y, x, y);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    return arena_format(a, forms[form], x, y);
#pragma GCC diagnostic pop
}

/* Writes a row: the values of one expression for every assignment. */
static void print_values(arena *a, const char *source)
{
    const expression *e = expression_parse(a, &as_params, source);
    for (int i = 0; i < ASSIGNMENTS; i++) {
        variant v = {.family = &as_params};
        for (int n = 0; n < NAMES; n++)
            v.values[n] = (param_value){"", assignments[i][n]};
        v.values[0].number &= 0xff; /* b and h are narrow */
        v.values[1].number &= 0xffff;
        printf("%sUINT64_C(%" PRIu64 ")", i > 0 ? ", " : "", expression_value(e, &v));
    }
}

/* In a wrong family a divisor may be 0: the result is 0, without a signal. */
static void print_divisions_by_zero(arena *a)
{
    static const char *const rows[] = {"w / q", "w % q", "7 / q", "w / (q * 3)", "ceil_div(w, q)"};
    puts("    x.w = 5;");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        text c = text_new(a);
        expression_print_c(&c, expression_parse(a, &as_args, rows[i]), "a->", "");
        printf("    wrong += (%s) != 0;\n", c.data);
    }
}

/* Writes a function that counts wrong answers, for each question and each number. */
static void print_questions(arena *a)
{
    static const char *const numbers[] = {"1", "-0.0", "-1", "NAN", "INFINITY", "-INFINITY"};
    static const struct {
        const char *text, *truths; /* for each number */
    } rows[] = {{"negative(f)", "001101"},
                {"negative(g)", "001101"},
                {"!negative(g)", "110010"},
                {"finite(f)", "111000"},
                {"finite(g)", "111000"},
                {"!finite(f)", "000111"},
                {"!(!negative(f) && finite(f))", "001111"}};
    puts("static int wrong_answers(void)\n{\n    int wrong = 0;\n    struct args x = {0}, *a = &x;\n"
         "    x.d = -3;");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        text c = text_new(a);
        const expression *e = expression_parse(a, &as_args, rows[i].text);
        expression_print_c(&c, expression_bind(a, e, NULL), "a->", "");
        for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
            printf("    x.f = (float)(x.g = %s);\n    wrong += (%s) != %c;\n", numbers[n], c.data,
                   rows[i].truths[n]);
    }
    text c = text_new(a);
    expression_print_c(&c, expression_parse(a, &as_args, "negative(d)"), "a->", "");
    printf("    wrong += (%s) != 1;\n", c.data);
    print_divisions_by_zero(a);
    puts("    return wrong;\n}");
}

int main(void)
{
    arena *a = arena_new();
    puts("#include <inttypes.h>\n#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n"
         "struct args { uint8_t b; uint16_t h; uint32_t w; uint64_t q; int32_t d; float f; double g; };");
    for (const expression_function *f = expression_functions; f->name; f++)
        printf("static inline uint64_t %s(uint64_t a, uint64_t b) { return %s; }\n", f->name, f->value);
    const char **sources = arena_alloc(a, EXPRESSIONS * sizeof *sources);
    for (int i = 0; i < EXPRESSIONS; i++) {
        sources[i] = make(a, 0);
        text c = text_new(a);
        const expression *e = expression_parse(a, &as_args, sources[i]);
        expression_print_c(&c, expression_bind(a, e, NULL), "a->", "");
        printf("static uint64_t e%d(const struct args *a) { (void)a; return (uint64_t)(%s); }\n", i, c.data);
    }
    printf("static uint64_t (*const expressions[])(const struct args *) = {");
    for (int i = 0; i < EXPRESSIONS; i++)
        printf("e%d, ", i);
    printf("};\nstatic const uint64_t expected[][%d] = {\n", ASSIGNMENTS);
    for (int i = 0; i < EXPRESSIONS; i++) {
        printf("    {");
        print_values(a, sources[i]);
        puts("},");
    }
    puts("};\nstatic const struct args assignments[] = {");
    for (int i = 0; i < ASSIGNMENTS; i++)
        printf("    {%u, %u, %" PRIu32 "u, %" PRIu32 "u, 0, 0, 0},\n", assignments[i][0] & 0xffu,
               assignments[i][1] & 0xffffu, assignments[i][2], assignments[i][3]);
    puts("};");
    print_questions(a);
    printf(
        "int main(void)\n{\n    int failed = wrong_answers() != 0;\n    for (int e = 0; e < %d; e++)\n"
        "        for (int i = 0; i < %d; i++) {\n            uint64_t found = "
        "expressions[e](&assignments[i]);\n"
        "            if (found == expected[e][i])\n                continue;\n"
        "            printf(\"e%%d, assignment %%d: expected %%\" PRIu64 \", found %%\" PRIu64 \"\\n\", e, i,"
        " expected[e][i], found);\n            failed = 1;\n        }\n    return failed;\n}\n",
        EXPRESSIONS, ASSIGNMENTS);
    arena_free(a);
    return 0;
}
