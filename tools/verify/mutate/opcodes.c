/* Mutations of an opcode. */
#include "offers.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- operation, comparison, rounding ----------------------------------------------------------------------------- */

static const word_row operations[] = {
    {"add", "sub"},    {"sub", "add"},    {"min", "max"}, {"max", "min"},  {"and", "or xor"},
    {"or", "and xor"}, {"xor", "and or"}, {"shl", "shr"}, {"shr", "shl"},  {"div", "rem"},
    {"rem", "div"},    {"abs", "neg"},    {"neg", "abs"}, {"popc", "clz"}, {"clz", "popc"},
    {"addc", "subc"},  {"subc", "addc"},  {NULL, NULL},
};
static const word_row float_operations[] = {
    {"add", "sub mul"}, {"sub", "add mul"}, {"mul", "add sub div"}, {"div", "mul"}, {"min", "max"},
    {"max", "min"},     {"abs", "neg"},     {"neg", "abs"},         {"ex2", "lg2"}, {"lg2", "ex2"},
    {"sqrt", "rsqrt"},  {"rsqrt", "sqrt"},  {"rcp", "sqrt"},        {"sin", "cos"}, {"cos", "sin"},
    {"tanh", "ex2"},    {NULL, NULL},
};
/* What atomics, votes and predicates are joined by. */
static const word_row reductions[] = {
    {"add", "max exch"}, {"min", "max"},    {"max", "min"},     {"and", "or xor"},
    {"or", "and xor"},   {"xor", "and or"}, {"inc", "dec add"}, {"dec", "inc"},
    {"exch", "add"},     {"any", "all"},    {"all", "any"},     {NULL, NULL},
};

/* "mul.lo" and "add" are each other's; the part .lo comes and goes. */
static void offer_integer_product(offers *o)
{
    text_span base = opcode_base(o), part;
    if (ptx_text_is(o->text, base, "mul") && opcode_part(o, 1, &part) && ptx_text_is(o->text, part, "lo"))
        offer(o, (text_span){base.at, part.at + part.length - base.at}, "add");
    else if (ptx_text_is(o->text, base, "add") && opcode_part(o, 1, &part) &&
             !ptx_text_is(o->text, part, "cc"))
        offer(o, base, "mul.lo");
}

void list_operations(offers *o)
{
    text_span part;
    bool is_float = is_float_operation(o);
    offer_row(o, opcode_base(o), is_float ? float_operations : operations);
    if (!is_float)
        offer_integer_product(o);
    if (is_opcode_of(o, "atom red redux vote bar barrier"))
        offer_rows(o, 1, reductions);
    if (is_opcode_of(o, "setp set") && opcode_part(o, 2, &part))
        offer_row(o, part, reductions);
}

static const word_row comparisons[] = {
    {"eq", "ne"},
    {"ne", "eq"},
    {"lt", "le ge"},
    {"le", "lt gt"},
    {"gt", "ge le"},
    {"ge", "gt lt"},
    {"lo", "ls hs"},
    {"ls", "lo hi"},
    {"hi", "hs ls"},
    {"hs", "hi lo"},
    {"equ", "eq neu"},
    {"neu", "ne equ"},
    {"ltu", "lt leu geu"},
    {"leu", "le ltu gtu"},
    {"gtu", "gt geu leu"},
    {"geu", "ge gtu ltu"},
    {"num", "nan"},
    {"nan", "num"},
    {"finite", "infinite notanumber"},
    {"infinite", "finite notanumber"},
    {"number", "notanumber"},
    {"notanumber", "number"},
    {"normal", "subnormal"},
    {"subnormal", "normal"},
    {NULL, NULL},
};
/* They differ where one side is a NaN. */
static const word_row float_comparisons[] = {
    {"eq", "equ"}, {"ne", "neu"}, {"lt", "ltu"}, {"le", "leu"}, {"gt", "gtu"}, {"ge", "geu"}, {NULL, NULL},
};

void list_comparisons(offers *o)
{
    if (!is_opcode_of(o, "setp set testp"))
        return;
    offer_rows(o, 1, comparisons);
    if (is_float_operation(o))
        offer_rows(o, 1, float_comparisons);
}

static const word_row roundings[] = {
    {"rn", "rz rm rp"},     {"rz", "rn"},       {"rm", "rn rp"},    {"rp", "rn rm"},    {"rna", "rn rz"},
    {"rni", "rzi rmi rpi"}, {"rzi", "rni rmi"}, {"rmi", "rpi rni"}, {"rpi", "rmi rni"}, {NULL, NULL},
};

void list_roundings(offers *o)
{
    offer_rows(o, 1, roundings);
}

/* ---- lanes, qualifiers ------------------------------------------------------------------------------------------- */

/* The last operand is the mask of the lanes that take part. */
static void offer_fewer_lanes(offers *o)
{
    const size_t count = o->statement->operand_count;
    int64_t mask;
    if (count && read_integer(o->text, o->statement->operands[count - 1], &mask))
        offer(o, o->statement->operands[count - 1], "0x%" PRIx32, (uint32_t)(mask & (mask - 1)));
}

/* Lanes that already have one another's values are as good as each other, so that more bits than one in the distance of
 * a butterfly may give the same. */
static void offer_distances(offers *o, text_span word)
{
    int64_t v;
    if (!opcode_has(o, "bfly"))
        offer_integer(o, word);
    else if (read_integer(o->text, word, &v) && v > 0) {
        offer(o, word, "%" PRId64, v - 1);
        offer(o, word, "%" PRId64, 2 * v);
    }
}

/* Lanes of segments, or all of them: bounds that no lane reads beyond can be others. */
static void offer_all_lanes(offers *o, text_span word)
{
    enum { ALL = 31, ALL_UP = 0 };
    const int64_t all = opcode_has(o, "up") ? ALL_UP : ALL;
    int64_t v;
    if (read_integer(o->text, word, &v) && v != all)
        offer(o, word, "%" PRId64, all);
}

void list_lanes(offers *o)
{
    /* From a butterfly down is the same for the lane that has the sum in the end. */
    static const word_row modes[] = {
        {"up", "down idx"}, {"down", "up idx"}, {"bfly", "up idx"}, {"idx", "bfly"}, {NULL, NULL},
    };
    if (is_opcode_of(o, "shfl") && o->statement->operand_count > 3) {
        offer_rows(o, 1, modes);
        offer_distances(o, o->statement->operands[2]);
        offer_all_lanes(o, o->statement->operands[3]);
    }
    if (is_opcode_of(o, "shfl vote match redux") || (is_opcode_of(o, "bar") && opcode_has(o, "warp")))
        offer_fewer_lanes(o);
}

static const word_row orders[] = {
    {"acq_rel", "acquire release relaxed"},
    {"acquire", "relaxed"},
    {"release", "relaxed"},
    {"volatile", "weak"},
    {"gpu", "cta"},
    {"sys", "cta"},
    {"cluster", "cta"},
    {NULL, NULL},
};
static const word_row signs[] = {
    {"u8", "s8"},   {"s8", "u8"},   {"u16", "s16"}, {"s16", "u16"}, {"u32", "s32"},
    {"s32", "u32"}, {"u64", "s64"}, {"s64", "u64"}, {NULL, NULL},
};
static const word_row signs_lost[] = {
    {"s8", "u8"}, {"s16", "u16"}, {"s32", "u32"}, {"s64", "u64"}, {NULL, NULL},
};
static const word_row widths[] = {
    {"u8", "u16"}, {"u16", "u8"}, {"s8", "s16"}, {"s16", "s8"}, {NULL, NULL},
};
static const word_row halves[] = {{"lo", "hi"}, {"hi", "lo"}, {NULL, NULL}};
static const word_row shifts[] = {
    {"l", "r"}, {"r", "l"}, {"wrap", "clamp"}, {"clamp", "wrap"}, {NULL, NULL},
};

static void offer_without(offers *o, const char *word)
{
    text_span part;
    for (size_t i = 1; opcode_part(o, i, &part); i++)
        if (ptx_text_is(o->text, part, word))
            offer(o, (text_span){part.at - 1, part.length + 1}, "%s", "");
}

/* Saturation comes, in front of the type, and goes. Flushing does not: it shows in numbers under 2^-126 alone, which most
 * results do not come from. */
static void offer_saturation(offers *o)
{
    const text_span last = opcode_last(o);
    offer_without(o, "sat");
    if (is_opcode_of(o, "add sub mul fma") && is_float_operation(o) && !opcode_has(o, "sat") &&
        !opcode_has(o, "f64"))
        offer(o, last, "sat.%.*s", (int)last.length, o->text->bytes + last.at);
}

/* A narrow load is extended, by its type, in a register that is wider. */
static bool is_extended(const offers *o)
{
    const ptx_statement *s = o->statement;
    text_span name, type = opcode_last(o);
    const ptx_registers *declared = NULL;
    if (!is_opcode_of(o, "ld") || opcode_has(o, "param") || s->operand_count == 0)
        return false;
    const size_t at = s->operands[0].at;
    if (ptx_text_next_name(o->text, at, at + s->operands[0].length, &name))
        declared = ptx_text_register(o->text, o->function, name);
    if (!declared || declared->type.length < 2)
        return false;
    const char *wide = o->text->bytes + declared->type.at + 2, *narrow = o->text->bytes + type.at + 1;
    return strtol(wide, NULL, 10) > strtol(narrow, NULL, 10);
}

/* Nobody sees the sign of a type where both give the same bits, and of an index or a length only where it is 2^31 or
 * more: then a type that has a sign was chosen for it. */
static void offer_signs(offers *o)
{
    const bool is_float = opcode_has(o, "f16") || opcode_has(o, "f32") || opcode_has(o, "f64");
    if (is_opcode_of(o, "bfe dp4a dp2a") || (is_opcode_of(o, "cvt") && is_float) || is_extended(o))
        offer_rows(o, 1, signs);
    else if (is_opcode_of(o, "setp set min max shr div rem cvt bfind sad") ||
             (is_opcode_of(o, "mul mad") && !opcode_has(o, "lo")))
        offer_rows(o, 1, signs_lost);
}

void list_qualifiers(offers *o)
{
    offer_signs(o);
    if (is_opcode_of(o, "ld") && !opcode_has(o, "param"))
        offer_rows(o, 1, widths);
    if (is_opcode_of(o, "mul mad") && !is_float_operation(o))
        offer_rows(o, 1, halves);
    if (is_opcode_of(o, "shf"))
        offer_rows(o, 1, shifts);
    if (is_opcode_of(o, "ld st atom red"))
        offer_rows(o, 1, orders);
    offer_without(o, "trans");
    offer_saturation(o);
}
