/* Parses text into a tree. One function per level of grammar, tightest last; names are resolved during the parse. */
#include "expression.h"

#include <string.h>

#include "family/family.h"
#include "node.h"
#include "support/diagnostics.h"
#include "support/words.h"

typedef struct parser {
    arena *arena;
    const expression_source *source;
    const char *at;
    int depth;
} parser;

enum { DEEPEST = 64, LONGEST_TRIED = 1000, BINARY_LOOSEST = 2, BINARY_TIGHTEST = 7 };

static const expression *parse_binary(parser *p, int precedence);

/* ---- mistakes and characters ------------------------------------------------------------------------------------ */

#define MISTAKE(p, ...) expression_fail((p)->source, arena_format((p)->arena, __VA_ARGS__))

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip_spaces(parser *p)
{
    while (*p->at == ' ')
        p->at++;
}

static bool accept(parser *p, const char *token)
{
    skip_spaces(p);
    size_t length = strlen(token);
    if (strncmp(p->at, token, length) != 0)
        return false;
    p->at += length;
    return true;
}

static void expect(parser *p, const char *token)
{
    if (!accept(p, token))
        MISTAKE(p, "expected '%s' at \"%s\"", token, p->at);
}

/* Takes a run of letters, digits and underscores: a name, a number or a word. Null if there is none here. */
static const char *take_run(parser *p)
{
    skip_spaces(p);
    size_t length = 0;
    while (is_letter(p->at[length]) || is_digit(p->at[length]))
        length++;
    if (length == 0)
        return NULL;
    const char *run = arena_string(p->arena, p->at, length);
    p->at += length;
    return run;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static expression *new_node(parser *p, operation op)
{
    expression *e = arena_alloc(p->arena, sizeof *e);
    e->operation = op;
    e->source = p->source;
    return e;
}

static int digit_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

static const expression *number(parser *p, const char *run)
{
    bool is_hex = run[0] == '0' && (run[1] == 'x' || run[1] == 'X');
    uint64_t base = is_hex ? 16 : 10, value = 0;
    const char *digits = run + (is_hex ? 2 : 0);
    if (!*digits)
        MISTAKE(p, "'%s' is not a number", run);
    for (const char *c = digits; *c; c++) {
        uint64_t digit = (uint64_t)digit_value(*c);
        if (digit >= base)
            MISTAKE(p, "'%s' is not a number", run);
        if (value > (UINT64_MAX - digit) / base)
            MISTAKE(p, "'%s' does not fit 64 bits", run);
        value = value * base + digit;
    }
    expression *e = new_node(p, OPERATION_LITERAL);
    e->value = value;
    return e;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    name_kind kind;
} facts[] = {
    {"multiprocessors", NAME_DEVICE},
    {"max_shared_bytes", NAME_DEVICE},
    {"multiprocessor_shared_bytes", NAME_DEVICE},
    {"multiprocessor_threads", NAME_DEVICE},
    {"sm", NAME_DEVICE},
    {"threads", NAME_SHAPE},
    {"shared_bytes", NAME_SHAPE},
    {"image_blocks", NAME_SHAPE},  /* operands of blocks_per_multiprocessor, */
    {"image_threads", NAME_SHAPE}, /* under names that parameters cannot have */
};

static bool find_arg(const kiln_family *family, const char *name, size_t *index)
{
    for (const kiln_arg *arg = family->args; arg && arg->name; arg++) {
        if (strcmp(arg->name, name) == 0) {
            *index = (size_t)(arg - family->args);
            return true;
        }
    }
    return false;
}

/* Thread blocks that fit, by the image's registers and by the device; the system reserves 1 KB of shared memory per
 * block. */
static const expression *blocks_per_multiprocessor(parser *p)
{
    parser inner = *p;
    inner.depth++;
    inner.at = arena_format(p->arena,
                            "max(1, min(min(image_blocks, multiprocessor_threads / image_threads), "
                            "multiprocessor_shared_bytes / (%s + 1024)))",
                            family_shared_bytes(p->source->family));
    return parse_binary(&inner, BINARY_LOOSEST);
}

static const expression *name(parser *p, const char *run)
{
    expression *e = new_node(p, OPERATION_NAME);
    e->name = run;
    const kiln_family *family = p->source->family;
    if (family_find_param(family, run, &e->index)) {
        e->kind = NAME_PARAM;
        return e;
    }
    if (find_arg(family, run, &e->index)) {
        e->kind = NAME_ARG;
        const kiln_arg *arg = &family->args[e->index];
        if (arg->kind != KILN_ARG_VALUE)
            MISTAKE(p, "'%s' is a pointer; only aligned() and given() take one", run);
        const bool is_external = !family->emit; /* then a rule is added: not negative */
        if (!words_contain("u8 u16 u32 u64", arg->type) &&
            !(is_external && words_contain("s8 s16 s32 s64", arg->type)))
            MISTAKE(p, "'%s' is of type %s; expressions take %s", run, arg->type,
                    is_external ? "integers" : "u8, u16, u32 and u64");
        return e;
    }
    if (strcmp(run, "blocks_per_multiprocessor") == 0)
        return blocks_per_multiprocessor(p);
    if (family_find_number(family, run, &e->index)) {
        e->kind = NAME_NUMBER;
        return e;
    }
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        if (strcmp(run, facts[i].name) == 0) {
            e->kind = facts[i].kind;
            return e;
        }
    }
    MISTAKE(p, "'%s' is no parameter, argument or fact", run);
}

static const expression *pointer(parser *p, operation op)
{
    const char *run = take_run(p);
    expression *e = new_node(p, OPERATION_NAME);
    e->kind = NAME_ARG;
    e->name = run;
    if (!run || !find_arg(p->source->family, run, &e->index) ||
        p->source->family->args[e->index].kind == KILN_ARG_VALUE)
        MISTAKE(p, "%s() takes a pointer argument%s, not '%s'", expression_operations[op].text,
                op == OPERATION_ALIGNED ? " first" : "", run ? run : p->at);
    return e;
}

/* The operand of negative() and finite(), which is valid nowhere else; finite() takes only floats. */
static const expression *real(parser *p, operation op)
{
    const char *illegal =
        op == OPERATION_FINITE ? "u8 u16 u32 u64 i8 i16 i32 i64 s8 s16 s32 s64" : "u8 u16 u32 u64";
    const char *run = take_run(p);
    expression *e = new_node(p, OPERATION_NAME);
    e->kind = NAME_ARG;
    e->name = run;
    if (run && find_arg(p->source->family, run, &e->index) &&
        p->source->family->args[e->index].kind == KILN_ARG_VALUE &&
        !words_contain(illegal, p->source->family->args[e->index].type))
        return e;
    if (op == OPERATION_FINITE)
        MISTAKE(p, "finite() takes a scalar argument of a float type, not '%s'", run ? run : p->at);
    MISTAKE(p, "negative() takes a scalar argument that is not unsigned, not '%s'", run ? run : p->at);
}

/* ---- grammar ---------------------------------------------------------------------------------------------------- */

static const expression *call(parser *p, operation op)
{
    expression *e = new_node(p, op);
    for (int i = 0; i < expression_operations[op].operands; i++) {
        if (i > 0)
            expect(p, ",");
        if (i == 0 && (op == OPERATION_ALIGNED || op == OPERATION_GIVEN))
            e->operands[i] = pointer(p, op);
        else
            e->operands[i] = op == OPERATION_NEGATIVE || op == OPERATION_FINITE
                                 ? real(p, op)
                                 : parse_binary(p, BINARY_LOOSEST);
    }
    expect(p, ")");
    return e;
}

static const expression *parse_primary(parser *p)
{
    if (accept(p, "(")) {
        const expression *e = parse_binary(p, BINARY_LOOSEST);
        expect(p, ")");
        return e;
    }
    const char *run = take_run(p);
    if (!run)
        MISTAKE(p, *p->at ? "expected a value at \"%s\"" : "expected a value at its end%s", p->at);
    if (is_digit(run[0]))
        return number(p, run);
    if (!accept(p, "("))
        return name(p, run);
    for (operation o = OPERATION_CEIL_DIV; o < OPERATION_COUNT; o++)
        if (strcmp(run, expression_operations[o].text) == 0)
            return call(p, o);
    MISTAKE(p, "'%s' is no function", run);
}

static const expression *parse_unary(parser *p)
{
    if (++p->depth > DEEPEST)
        MISTAKE(p, "nested deeper than %d", DEEPEST);
    const expression *result;
    if (accept(p, "!")) {
        expression *e = new_node(p, OPERATION_NOT);
        e->operands[0] = parse_unary(p);
        result = e;
    } else {
        result = parse_primary(p);
    }
    p->depth--;
    return result;
}

/* Takes the operator of this precedence; OPERATION_COUNT if there is none. Among rows that begin with the same
 * character the longer text comes first. */
static operation take_operator(parser *p, int precedence)
{
    for (operation o = OPERATION_MULTIPLY; o <= OPERATION_OR; o++) {
        const operation_row *row = &expression_operations[o];
        if (row->precedence != precedence)
            continue;
        const char *token = row->text + 1; /* between spaces */
        size_t length = strlen(token) - 1;
        skip_spaces(p);
        if (strncmp(p->at, token, length) == 0) {
            p->at += length;
            return o;
        }
    }
    return OPERATION_COUNT;
}

static const kiln_param *param_of(const expression *e)
{
    bool is_param = e->operation == OPERATION_NAME && e->kind == NAME_PARAM;
    return is_param ? &e->source->family->params[e->index] : NULL;
}

/* A word of the parameter, or true or false, after == or !=. */
static const expression *compare_word(parser *p, operation op, const expression *left)
{
    const kiln_param *param = param_of(left);
    const char *word = take_run(p);
    if (!word || !param_has_value(param, word))
        MISTAKE(p, "'%s' is no value of %s", word ? word : p->at, param->name);
    expression *e = new_node(p, op == OPERATION_EQUAL ? OPERATION_IS_WORD : OPERATION_IS_NOT_WORD);
    e->name = left->name;
    e->index = left->index;
    e->word = word;
    return e;
}

static bool is_comparison_with_word(parser *p, operation op, const expression *left)
{
    const kiln_param *param = param_of(left);
    if (!param || (op != OPERATION_EQUAL && op != OPERATION_NOT_EQUAL))
        return false;
    skip_spaces(p);
    bool truth_word = strncmp(p->at, "true", 4) == 0 || strncmp(p->at, "false", 5) == 0;
    return param->type == KILN_PARAM_WORD || (param->type == KILN_PARAM_BOOL && truth_word);
}

static const expression *parse_binary(parser *p, int precedence)
{
    if (precedence > BINARY_TIGHTEST)
        return parse_unary(p);
    const expression *left = parse_binary(p, precedence + 1);
    for (operation o; (o = take_operator(p, precedence)) != OPERATION_COUNT;) {
        if (is_comparison_with_word(p, o, left)) {
            left = compare_word(p, o, left);
            continue;
        }
        expression *e = new_node(p, o);
        e->operands[0] = left;
        e->operands[1] = parse_binary(p, precedence + 1);
        left = e;
    }
    return left;
}

/* ---- entry points ----------------------------------------------------------------------------------------------- */

/* Rejects a parameter with words that are not numbers, unless a comparison with a word guards it. */
static void check_words(parser *p, const expression *e)
{
    const kiln_param *param = param_of(e);
    if (param && param->type == KILN_PARAM_WORD && !words_have_number(param->words))
        MISTAKE(p, "the words of '%s' are not numbers", param->name);
    for (int i = 0; i < expression_operations[e->operation].operands; i++)
        check_words(p, e->operands[i]);
}

static parser begin(arena *a, const kiln_family *family, const char *source_text)
{
    expression_source *source = arena_alloc(a, sizeof *source);
    *source = (expression_source){family, source_text, NULL};
    return (parser){.arena = a, .source = source, .at = source_text};
}

static const expression *parse_one(parser *p)
{
    const expression *e = parse_binary(p, BINARY_LOOSEST);
    check_words(p, e);
    skip_spaces(p);
    return e;
}

const expression *expression_parse(arena *a, const kiln_family *family, const char *source_text)
{
    parser p = begin(a, family, source_text);
    const expression *e = parse_one(&p);
    if (*p.at)
        MISTAKE(&p, "unexpected \"%s\"", p.at);
    return e;
}

size_t expression_parse_list(arena *a, const kiln_family *family, const char *source_text,
                             const expression *const **list)
{
    parser p = begin(a, family, source_text);
    const expression **items = NULL;
    size_t count = 0, capacity = 0;
    do {
        const expression *e = parse_one(&p);
        const expression **item = arena_push(a, (void **)&items, &count, &capacity, sizeof *items);
        *item = e;
    } while (accept(&p, ","));
    if (*p.at)
        MISTAKE(&p, "unexpected \"%s\"", p.at);
    *list = items;
    return count;
}

/* Whether a divisor is not a literal, so that it may be zero. */
static bool divides_by_name(const expression *e)
{
    const bool divides = e->operation == OPERATION_DIVIDE || e->operation == OPERATION_REMAINDER ||
                         e->operation == OPERATION_CEIL_DIV || e->operation == OPERATION_ALIGNED;
    if (divides && e->operands[1]->operation != OPERATION_LITERAL)
        return true;
    for (int i = 0; i < expression_operations[e->operation].operands; i++)
        if (divides_by_name(e->operands[i]))
            return true;
    return false;
}

/* Whether an aligned() requires an alignment that no pointer can have. */
static bool aligns_oddly(const expression *e)
{
    const uint64_t bytes = e->operation == OPERATION_ALIGNED ? e->operands[1]->value : 1;
    if (bytes == 0 || (bytes & (bytes - 1)) != 0)
        return true;
    for (int i = 0; i < expression_operations[e->operation].operands; i++)
        if (aligns_oddly(e->operands[i]))
            return true;
    return false;
}

static void try_all(parser *p, const variant *v, bool is_list)
{
    do {
        const expression *e = expression_bind(p->arena, parse_one(p), NULL);
        if (expression_uses(e, NAME_SHAPE))
            MISTAKE(p, "threads, shared_bytes and blocks_per_multiprocessor are for families");
        if (divides_by_name(expression_bind(p->arena, e, v)))
            MISTAKE(p, "a divisor has to be a number, so that it is not zero");
        if (aligns_oddly(expression_bind(p->arena, e, v)))
            MISTAKE(p, "aligned() takes a power of two");
    } while (is_list && accept(p, ","));
    if (*p->at)
        MISTAKE(p, "unexpected \"%s\"", p->at);
}

/* Rejects long text: a long chain of operators nests deeply even without brackets. */
const char *expression_try(arena *a, const variant *v, const char *source_text, bool is_list)
{
    if (strlen(source_text) > LONGEST_TRIED)
        return arena_format(a, "longer than %d characters", LONGEST_TRIED);
    expression_trap *trap = arena_alloc(a, sizeof *trap);
    expression_source source = {v->family, source_text, trap};
    parser p = {.arena = a, .source = &source, .at = source_text};
    if (setjmp(trap->back) == 0)
        try_all(&p, v, is_list);
    return trap->why;
}

static bool is_word_comparison(const expression *e)
{
    return e->operation == OPERATION_IS_WORD || e->operation == OPERATION_IS_NOT_WORD;
}

bool expression_counts_with(const expression *e, size_t index)
{
    if (e->operation == OPERATION_NEGATIVE || e->operation == OPERATION_GIVEN)
        return false;
    if (e->operation == OPERATION_NAME)
        return e->kind == NAME_ARG && e->index == index;
    for (int i = e->operation == OPERATION_ALIGNED; i < expression_operations[e->operation].operands; i++)
        if (expression_counts_with(e->operands[i], index))
            return true;
    return false;
}

void expression_note_counted(const expression *e, bool *args)
{
    if (e->operation == OPERATION_NEGATIVE)
        return;
    if (e->operation == OPERATION_NAME) {
        if (e->kind == NAME_ARG)
            args[e->index] = true;
        return;
    }
    for (int i = e->operation == OPERATION_ALIGNED; i < expression_operations[e->operation].operands; i++)
        expression_note_counted(e->operands[i], args);
}

bool expression_uses_param(const expression *e, size_t index)
{
    if (e->operation == OPERATION_NAME && e->kind == NAME_NUMBER)
        return true; /* the family's shape may compute it from any parameter */
    if (is_word_comparison(e) || (e->operation == OPERATION_NAME && e->kind == NAME_PARAM))
        return e->index == index;
    for (int i = 0; i < expression_operations[e->operation].operands; i++)
        if (expression_uses_param(e->operands[i], index))
            return true;
    return false;
}

bool expression_only_grows(const expression *e)
{
    switch (e->operation) {
    case OPERATION_ADD:
    case OPERATION_MULTIPLY:
    case OPERATION_MIN:
    case OPERATION_MAX:
        return expression_only_grows(e->operands[0]) && expression_only_grows(e->operands[1]);
    case OPERATION_DIVIDE:
    case OPERATION_CEIL_DIV:
        return expression_only_grows(e->operands[0]) && !expression_uses(e->operands[1], NAME_ARG);
    case OPERATION_SELECT:
        return !expression_uses(e->operands[0], NAME_ARG) && expression_only_grows(e->operands[1]) &&
               expression_only_grows(e->operands[2]);
    case OPERATION_NAME:
        return true;
    default:
        return !expression_uses(e, NAME_ARG);
    }
}

bool expression_uses(const expression *e, name_kind kind)
{
    if (is_word_comparison(e) && (kind == NAME_WORD || kind == NAME_PARAM))
        return true;
    if (e->operation == OPERATION_NAME && (e->kind == NAME_NUMBER ? kind == NAME_PARAM : e->kind == kind))
        return true;
    for (int i = 0; i < expression_operations[e->operation].operands; i++)
        if (expression_uses(e->operands[i], kind))
            return true;
    return false;
}
