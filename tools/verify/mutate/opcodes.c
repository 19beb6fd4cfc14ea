/* Mutations of an opcode. */
#include "offers.h"

#include <inttypes.h>

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

/* The lowest five bits say where lanes are held. */
static void offer_clamps(offers *o, text_span word)
{
    int64_t v;
    for (int bit = 0; bit < 5 && read_integer(o->text, word, &v); bit++)
        offer(o, word, "0x%" PRIx64, v ^ (int64_t)1 << bit);
}

void list_lanes(offers *o)
{
    static const word_row modes[] = {
        {"up", "down idx"}, {"down", "up bfly"}, {"bfly", "down idx"}, {"idx", "bfly"}, {NULL, NULL},
    };
    if (is_opcode_of(o, "shfl") && o->statement->operand_count > 3) {
        offer_rows(o, 1, modes);
        offer_distances(o, o->statement->operands[2]);
        offer_clamps(o, o->statement->operands[3]);
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

/* Flushing and saturation come, in front of the type, and go. */
static void offer_float_qualifiers(offers *o)
{
    const text_span last = opcode_last(o);
    offer_without(o, "ftz");
    offer_without(o, "sat");
    if (!is_opcode_of(o, "add sub mul fma min max abs neg ex2 rcp sqrt rsqrt div") || !is_float_operation(o))
        return;
    if (!opcode_has(o, "ftz") && !opcode_has(o, "f64"))
        offer(o, last, "ftz.%.*s", (int)last.length, o->text->bytes + last.at);
    if (!opcode_has(o, "sat") && is_opcode_of(o, "add sub mul fma"))
        offer(o, last, "sat.%.*s", (int)last.length, o->text->bytes + last.at);
}

/* Nobody sees the sign of a type where both give the same bits, and of an index or a length only where it is 2^31 or
 * more: then a type that has a sign was chosen for it. */
static void offer_signs(offers *o)
{
    const bool is_narrow =
        opcode_has(o, "u8") || opcode_has(o, "s8") || opcode_has(o, "u16") || opcode_has(o, "s16");
    const bool is_float = opcode_has(o, "f16") || opcode_has(o, "f32") || opcode_has(o, "f64");
    if (is_opcode_of(o, "bfe dp4a dp2a") || (is_opcode_of(o, "cvt") && is_float) ||
        (is_opcode_of(o, "ld") && !opcode_has(o, "param") && is_narrow))
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
    offer_float_qualifiers(o);
}
