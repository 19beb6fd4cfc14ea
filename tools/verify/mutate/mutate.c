/* Mutations, one row of a table for each kind: a function that offers every change of an instruction. Changes that
 * no result can show are not offered: swapped operands of a sum, the sign of an addition's type, cache hints,
 * which barrier number is used, another label at the same place. Roundings of f32 and f64 arithmetic and the low
 * bits of constants are not offered either: contracts allow errors of that size. */
#include "mutate.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counts an instruction's changes of one kind, and keeps the wanted-th. */
typedef struct offers {
    const ptx_text *text;
    const ptx_function *function;
    const ptx_statement *statement;
    size_t count, wanted;
    mutation *kept;
} offers;

static void offer(offers *o, text_span span, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void offer(offers *o, text_span span, const char *format, ...)
{
    if (o->count++ != o->wanted)
        return;
    va_list list;
    va_start(list, format);
    o->kept->span = span;
    vsnprintf(o->kept->text, sizeof o->kept->text, format, list);
    va_end(list);
}

/* Offers another word of the text as a replacement, unless it is equal. */
static void offer_word(offers *o, text_span span, text_span other)
{
    if (other.length < sizeof o->kept->text && !ptx_text_same(o->text, span, other))
        offer(o, span, "%.*s", (int)other.length, o->text->bytes + other.at);
}

/* ---- opcodes ----------------------------------------------------------------------------------------------------- */

/* Finds the number-th part of "setp.lt.and.f32", without its dot; "shared::cta" is one part. */
static bool opcode_part(const offers *o, size_t number, text_span *part)
{
    const text_span all = o->statement->opcode;
    size_t at = all.at, end = all.at + all.length;
    for (;; number--) {
        size_t stop = at;
        while (stop < end && o->text->bytes[stop] != '.')
            stop++;
        *part = (text_span){at, stop - at};
        while (part->length && isspace((unsigned char)o->text->bytes[at + part->length - 1]))
            part->length--;
        if (number == 0)
            return true;
        if (stop == end)
            return false;
        at = stop + 1;
    }
}

/* Returns whether a part after the first is this word. */
static bool opcode_has(const offers *o, const char *word)
{
    text_span part;
    for (size_t i = 1; opcode_part(o, i, &part); i++)
        if (ptx_text_is(o->text, part, word))
            return true;
    return false;
}

static text_span opcode_base(const offers *o)
{
    text_span base;
    opcode_part(o, 0, &base);
    return base;
}

/* Returns whether a word is in a list separated by spaces. */
static bool is_listed(const ptx_text *t, text_span word, const char *list)
{
    for (const char *at = list; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (length == word.length && memcmp(at, t->bytes + word.at, length) == 0)
            return true;
        at += length;
    }
    return false;
}

/* Returns whether the opcode's first part is in a list separated by spaces. */
static bool is_opcode_of(const offers *o, const char *list)
{
    return is_listed(o->text, opcode_base(o), list);
}

/* Returns the opcode's last part, which is its type if it has one. */
static text_span opcode_last(const offers *o)
{
    text_span part, last = opcode_base(o);
    for (size_t i = 1; opcode_part(o, i, &part); i++)
        last = part;
    return last;
}

static bool is_float_operation(const offers *o)
{
    return is_listed(o->text, opcode_last(o), "f16 f16x2 bf16 bf16x2 f32 f64 f32x2");
}

/* Replacements of a word, separated by spaces; an empty row ends a table. */
typedef struct word_row {
    const char *word, *others;
} word_row;

static void offer_others(offers *o, text_span word, const char *list)
{
    for (const char *at = list; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        offer(o, word, "%.*s", (int)length, at);
        at += length;
    }
}

static void offer_row(offers *o, text_span word, const word_row *rows)
{
    for (; rows->word; rows++)
        if (ptx_text_is(o->text, word, rows->word))
            offer_others(o, word, rows->others);
}

/* Offers the rows for each part of the opcode from the first_part-th on. */
static void offer_rows(offers *o, size_t first_part, const word_row *rows)
{
    text_span part;
    for (size_t i = first_part; opcode_part(o, i, &part); i++)
        offer_row(o, part, rows);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* Reads "12", "0x1f" or "-1". */
static bool read_integer(const ptx_text *t, text_span word, int64_t *value)
{
    char digits[24], *end;
    if (word.length == 0 || word.length >= sizeof digits)
        return false;
    memcpy(digits, t->bytes + word.at, word.length);
    digits[word.length] = '\0';
    if (word.length > 1 && toupper((unsigned char)digits[word.length - 1]) == 'U')
        digits[word.length - 1] = '\0';
    *value = (int64_t)strtoull(digits, &end, 0);
    return *end == '\0' && (isdigit((unsigned char)digits[0]) || digits[0] == '-');
}

/* Returns a byte of prmt's result: its value if it comes from a constant, otherwise a number that stands for the
 * register's byte. */
static int permuted_byte(const int64_t operands[2], const bool is_constant[2], int selector)
{
    enum { SIGN = 8, OF_REGISTER = 256 };
    const int source = selector >> 2 & 1;
    if (!is_constant[source])
        return OF_REGISTER + selector;
    const int byte = (int)(operands[source] >> 8 * (selector & 3) & 255);
    return !(selector & SIGN) ? byte : byte & 128 ? 255 : 0;
}

/* Returns whether prmt gives the same result if one of its operands becomes this value. */
static bool permutes_alike(const offers *o, const text_span words[3], size_t changed, int64_t value)
{
    int64_t was[3] = {0}, is[3];
    bool is_constant[3];
    for (size_t i = 0; i < 3; i++)
        is_constant[i] = read_integer(o->text, words[i], &was[i]);
    memcpy(is, was, sizeof is);
    is[changed] = value;
    bool is_alike = is_constant[2];
    for (int at = 0; at < 16 && is_alike; at += 4)
        is_alike = permuted_byte(was, is_constant, (int)(was[2] >> at & 15)) ==
                   permuted_byte(is, is_constant, (int)(is[2] >> at & 15));
    return is_alike;
}

/* Takes the bits as bf16 if the text has that type anywhere, else as f16. */
static bool is_nan_of_16_bits(const offers *o, int64_t bits)
{
    const int64_t infinity = strstr(o->text->bytes, "bf16") ? 0x7f80 : 0x7c00;
    return (bits & 0x7fff) > infinity && bits <= 0xffff;
}

/* Returns whether the instruction does the same with this number instead of the word. */
static bool is_as_good(const offers *o, text_span word, int64_t value)
{
    const ptx_statement *s = o->statement;
    int64_t was;
    for (size_t i = 1; i < 4 && s->operand_count == 4 && is_opcode_of(o, "prmt"); i++)
        if (s->operands[i].at == word.at)
            return permutes_alike(o, s->operands + 1, i - 1, value);
    return is_opcode_of(o, "mov") && opcode_has(o, "b16") && read_integer(o->text, word, &was) &&
           is_nan_of_16_bits(o, was) && is_nan_of_16_bits(o, value);
}

static void offer_value(offers *o, text_span word, int64_t value)
{
    if (!is_as_good(o, word, value))
        offer(o, word, "%" PRId64, value);
}

/* Offers the integer plus and minus one, with a bit flipped, and doubled. */
static void offer_integer(offers *o, text_span word)
{
    int64_t v;
    if (!read_integer(o->text, word, &v))
        return;
    offer_value(o, word, v + 1);
    if (v != 0)
        offer_value(o, word, v - 1);
    if (v > 1)
        offer_value(o, word, 2 * v);
    for (int bit = 1; bit < 32 && (int64_t)1 << bit <= 2 * v; bit++)
        if ((v ^ (int64_t)1 << bit) != v + 1 && (v ^ (int64_t)1 << bit) != v - 1)
            offer_value(o, word, v ^ (int64_t)1 << bit);
}

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
/* Operations of atomics, votes and predicates. */
static const word_row reductions[] = {
    {"add", "max exch"}, {"min", "max"},    {"max", "min"},     {"and", "or xor"},
    {"or", "and xor"},   {"xor", "and or"}, {"inc", "dec add"}, {"dec", "inc"},
    {"exch", "add"},     {"any", "all"},    {"all", "any"},     {NULL, NULL},
};

/* Offers "mul.lo" for "add" and the reverse, with .lo added or removed. */
static void offer_integer_product(offers *o)
{
    text_span base = opcode_base(o), part;
    if (ptx_text_is(o->text, base, "mul") && opcode_part(o, 1, &part) && ptx_text_is(o->text, part, "lo"))
        offer(o, (text_span){base.at, part.at + part.length - base.at}, "add");
    else if (ptx_text_is(o->text, base, "add") && opcode_part(o, 1, &part) &&
             !ptx_text_is(o->text, part, "cc"))
        offer(o, base, "mul.lo");
}

/* Returns whether the instruction adds or subtracts the constant 0. */
static bool has_zero_term(const offers *o)
{
    const ptx_statement *s = o->statement;
    int64_t term;
    return is_opcode_of(o, "add sub") && s->operand_count == 3 &&
           read_integer(o->text, s->operands[2], &term) && term == 0;
}

static void list_operations(offers *o)
{
    text_span part;
    bool is_float = is_float_operation(o);
    if (is_float || !has_zero_term(o))
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
/* Ordered and unordered comparisons differ if an operand is a NaN. */
static const word_row float_comparisons[] = {
    {"eq", "equ"}, {"ne", "neu"}, {"lt", "ltu"}, {"le", "leu"}, {"gt", "gtu"}, {"ge", "geu"}, {NULL, NULL},
};

static void list_comparisons(offers *o)
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

/* Returns whether the only instruction that writes the register clears all bits above the lowest `bits`. */
static bool is_masked(const offers *o, text_span name, int bits)
{
    const ptx_function *f = o->function;
    size_t writers = 0, masks = 0;
    int64_t mask;
    for (size_t i = 0; i < f->statement_count; i++) {
        const ptx_statement *s = &f->statements[i];
        if (s->operand_count == 0 || !ptx_text_same(o->text, s->operands[0], name))
            continue;
        writers++;
        masks += ptx_text_is(o->text, s->opcode, "and.b32") && s->operand_count == 3 &&
                 read_integer(o->text, s->operands[2], &mask) && mask >= 0 && mask >> bits == 0;
    }
    return writers == 1 && masks == 1;
}

/* Returns whether the floating-point type represents exactly every integer that the conversion meets. */
static bool is_exact_conversion(const offers *o)
{
    return is_opcode_of(o, "cvt") && o->statement->operand_count == 2 &&
           ((opcode_has(o, "f32") && is_masked(o, o->statement->operands[1], 24)) ||
            (opcode_has(o, "f64") && is_listed(o->text, opcode_last(o), "u32 s32")) ||
            is_listed(o->text, opcode_last(o), "u8 s8"));
}

/* Offers roundings of conversions, quotients, roots, and arithmetic in 16 bits, whose errors exceed the bounds. */
static void list_roundings(offers *o)
{
    const bool is_last_place =
        is_opcode_of(o, "add sub mul fma mad") && is_listed(o->text, opcode_last(o), "f32 f64 f32x2");
    if (!is_last_place && !is_exact_conversion(o))
        offer_rows(o, 1, roundings);
}

/* ---- lanes, qualifiers ------------------------------------------------------------------------------------------- */

/* Offers masks with fewer lanes; the mask is the last operand. */
static void offer_fewer_lanes(offers *o)
{
    const size_t count = o->statement->operand_count;
    int64_t mask;
    if (count && read_integer(o->text, o->statement->operands[count - 1], &mask))
        offer(o, o->statement->operands[count - 1], "0x%" PRIx32, (uint32_t)(mask & (mask - 1)));
}

/* Offers other butterfly distances. Lanes that already have one another's values are equivalent, so several bits
 * of the distance may give the same result. */
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

/* Offers all lanes instead of a segment. Other bounds are not offered: if no lane reads beyond them, they are
 * equivalent. */
static void offer_all_lanes(offers *o, text_span word)
{
    enum { ALL = 31, ALL_UP = 0 };
    const int64_t all = opcode_has(o, "up") ? ALL_UP : ALL;
    int64_t v;
    if (read_integer(o->text, word, &v) && v != all)
        offer(o, word, "%" PRId64, all);
}

static void list_lanes(offers *o)
{
    /* For the lane that has the final sum, butterfly and down are equivalent. */
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

/* Adds saturation before the type, or removes it. Does not change flushing: it affects only numbers below 2^-126,
 * which most results do not depend on. */
static void offer_saturation(offers *o)
{
    const text_span last = opcode_last(o);
    offer_without(o, "sat");
    if (is_opcode_of(o, "add sub mul fma") && is_float_operation(o) && !opcode_has(o, "sat") &&
        !opcode_has(o, "f64"))
        offer(o, last, "sat.%.*s", (int)last.length, o->text->bytes + last.at);
}

/* Returns whether the statement, which reads the register, uses only its lowest `bits`. */
static bool reads_low(const ptx_text *t, const ptx_statement *s, text_span name, int bits)
{
    int64_t number;
    if (ptx_text_is(t, s->opcode, "and.b32"))
        return s->operand_count == 3 && read_integer(t, s->operands[2], &number) && number >> bits == 0;
    if (!ptx_text_is(t, s->opcode, "prmt.b32") || s->operand_count != 4 ||
        !read_integer(t, s->operands[3], &number))
        return false;
    for (int at = 0; at < 16; at += 4) {
        const int byte = (int)(number >> at & 3), source = number >> at & 4 ? 2 : 1;
        if (ptx_text_same(t, s->operands[source], name) && 8 * byte >= bits)
            return false;
    }
    return true;
}

/* Returns whether statements read the register, and all of them use only its lowest `bits`. */
static bool is_read_low(const offers *o, text_span name, int bits)
{
    const ptx_function *f = o->function;
    bool is_read = false;
    for (size_t i = 0; i < f->statement_count; i++) {
        const ptx_statement *s = &f->statements[i];
        const size_t first = s->operand_count ? s->operands[0].at + s->operands[0].length : s->whole.at;
        text_span read;
        for (size_t at = first; ptx_text_next_name(o->text, at, s->whole.at + s->whole.length, &read);
             at = read.at + read.length) {
            if (!ptx_text_same(o->text, read, name))
                continue;
            if (!reads_low(o->text, s, name, bits))
                return false;
            is_read = true;
        }
    }
    return is_read;
}

/* Returns whether a narrow load is extended to a wider register, and some statement reads the bits that its sign
 * fills. */
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
    const int bits = (int)strtol(narrow, NULL, 10);
    return strtol(wide, NULL, 10) > bits && !is_read_low(o, name, bits);
}

/* Offers the type with the other sign. No result shows the sign of a type if both give the same bits; for an index
 * or a length it shows only from 2^31 on, so a signed type was chosen on purpose. */
static void offer_signs(offers *o)
{
    const bool is_float = opcode_has(o, "f16") || opcode_has(o, "f32") || opcode_has(o, "f64");
    if (is_opcode_of(o, "bfe") || (is_opcode_of(o, "cvt") && is_float) || is_extended(o))
        offer_rows(o, 1, signs);
    else if (is_opcode_of(o, "setp set min max shr div rem cvt bfind sad dp4a dp2a") ||
             (is_opcode_of(o, "mul mad") && !opcode_has(o, "lo")))
        offer_rows(o, 1, signs_lost);
}

static void list_qualifiers(offers *o)
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

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static text_span operand(const offers *o, size_t i)
{
    return o->statement->operands[i];
}

/* Offers to swap two words, keeping the text between them. */
static void offer_swap(offers *o, text_span a, text_span b)
{
    const char *text = o->text->bytes;
    const text_span both = {a.at, b.at + b.length - a.at};
    if (both.length < sizeof o->kept->text && !ptx_text_same(o->text, a, b))
        offer(o, both, "%.*s%.*s%.*s", (int)b.length, text + b.at, (int)(b.at - a.at - a.length),
              text + a.at + a.length, (int)a.length, text + a.at);
}

/* Offers to swap neighbours in "{%r1, %r2, %r3}". */
static void offer_vector_swaps(offers *o, text_span vector)
{
    text_span last = {0, 0}, name;
    size_t at = vector.at, end = vector.at + vector.length;
    while (ptx_text_next_name(o->text, at, end, &name)) {
        if (last.length)
            offer_swap(o, last, name);
        last = name;
        at = name.at + name.length;
    }
}

/* Offers other dimensions of "%tid.x". */
static void offer_dimensions(offers *o, text_span word)
{
    static const word_row dimensions[] = {{"x", "y"}, {"y", "x z"}, {"z", "x"}, {NULL, NULL}};
    const char *text = o->text->bytes + word.at;
    if (word.length > 2 && text[0] == '%' && text[word.length - 2] == '.')
        offer_row(o, (text_span){word.at + word.length - 1, 1}, dimensions);
}

/* Offers another parameter whose name has the same prefix. */
static void offer_params(offers *o, text_span bracket)
{
    text_span name, other;
    if (!opcode_has(o, "param") ||
        !ptx_text_next_name(o->text, bracket.at, bracket.at + bracket.length, &name))
        return;
    for (size_t i = 0; i < o->function->statement_count && i < 16; i++) {
        const ptx_statement *s = &o->function->statements[i];
        if (s != o->statement && s->operand_count == 2 &&
            ptx_text_same(o->text, s->opcode, o->statement->opcode) &&
            ptx_text_next_name(o->text, s->operands[1].at, s->whole.at + s->whole.length, &other))
            offer_word(o, name, other);
    }
}

static void list_operands(offers *o)
{
    const ptx_statement *s = o->statement;
    const bool is_symmetric = is_opcode_of(o, "add mul min max and or xor add24 mul24") ||
                              opcode_has(o, "eq") || opcode_has(o, "ne") || opcode_has(o, "num") ||
                              opcode_has(o, "nan");
    const bool is_product = is_opcode_of(o, "mad fma mad24");
    for (size_t i = 0; i < s->operand_count; i++) {
        text_span word = operand(o, i);
        char first = word.length ? o->text->bytes[word.at] : '\0';
        if (first == '{')
            offer_vector_swaps(o, word);
        if (first == '[' && i == 1 && s->operand_count == 2)
            offer_params(o, word);
        offer_dimensions(o, word);
    }
    if (s->operand_count < 3 || is_opcode_of(o, "call shfl bar barrier vote red atom cp"))
        return;
    for (size_t i = 1; i + 1 < s->operand_count && i < 4; i++)
        if (!(is_symmetric || (is_product && i == 1)) && operand(o, i).at != operand(o, i + 1).at)
            offer_swap(o, operand(o, i), operand(o, i + 1));
}

/* ---- registers --------------------------------------------------------------------------------------------------- */

enum { REGISTERS_FROM = 12 }; /* the number of preceding instructions whose registers may replace one */

static void offer_registers_of(offers *o, text_span name, text_span type, const ptx_statement *from)
{
    text_span other;
    size_t at = from->whole.at, end = at + from->whole.length;
    for (; ptx_text_next_name(o->text, at, end, &other); at = other.at + other.length) {
        const ptx_registers *declared = ptx_text_register(o->text, o->function, other);
        if (declared && ptx_text_same(o->text, declared->type, type))
            offer_word(o, name, other);
    }
}

static void list_registers(offers *o)
{
    const ptx_statement *s = o->statement, *all = o->function->statements;
    size_t at = s->whole.at, end = s->whole.at + s->whole.length;
    text_span name;
    for (; ptx_text_next_name(o->text, at, end, &name); at = name.at + name.length) {
        const ptx_registers *declared = ptx_text_register(o->text, o->function, name);
        for (const ptx_statement *from = s; declared && from > all && s - from < REGISTERS_FROM; from--)
            offer_registers_of(o, name, declared->type, from - 1);
    }
}

/* ---- immediates -------------------------------------------------------------------------------------------------- */

/* Changes "0f3F800000" or "0d...": the sign, a bit of the exponent, a bit of the upper half of the fraction, and
 * twice the value. A number between 2^23 and 2^24 (f64: 2^52 and 2^53) is added in order to round; of its fraction
 * only the last bit is flipped. */
static bool offer_float(offers *o, text_span word)
{
    const char *text = o->text->bytes + word.at;
    const bool is_double = word.length == 18 && tolower((unsigned char)text[1]) == 'd';
    if (text[0] != '0' || !(is_double || (word.length == 10 && tolower((unsigned char)text[1]) == 'f')))
        return false;
    const int digits = is_double ? 16 : 8, exponent = is_double ? 52 : 23, sign = is_double ? 63 : 31;
    const uint64_t bits = strtoull(text + 2, NULL, 16), one = 1;
    const uint64_t unit = (one << (sign - exponent - 1)) - 1; /* the exponent of 1.0 */
    if (bits << (64 - sign) == 0) { /* minus zero is equivalent to zero, and so are the smallest numbers */
        offer(o, word, "0%c%0*" PRIX64, text[1], digits, unit << exponent);
        return true;
    }
    const uint64_t largest = is_double ? 2046 : 254, has = bits >> exponent & (largest + 1);
    const bool rounds = has == unit + (uint64_t)exponent;
    const int flipped[] = {sign, exponent, rounds ? 0 : exponent - 1, exponent - 4, exponent - 8};
    if (has > largest && bits << (64 - exponent)) { /* all NaNs are equivalent */
        offer(o, word, "0%c%0*" PRIX64, text[1], digits, bits ^ one << exponent);
        return true;
    }
    for (size_t i = 0; i < (rounds ? 3 : sizeof flipped / sizeof *flipped); i++)
        offer(o, word, "0%c%0*" PRIX64, text[1], digits, bits ^ one << flipped[i]);
    if (has > 0 && has < largest && (bits >> exponent & 1))
        offer(o, word, "0%c%0*" PRIX64, text[1], digits, bits + (one << exponent));
    return true;
}

static void list_immediates(offers *o)
{
    if (is_opcode_of(o, "shfl bar barrier membar fence cp call vote match activemask redux bra"))
        return;
    for (size_t i = 0; i < o->statement->operand_count; i++) {
        text_span word = operand(o, i);
        if (word.length && !offer_float(o, word))
            offer_integer(o, word);
    }
}

/* ---- addresses --------------------------------------------------------------------------------------------------- */

/* Returns the bytes of an access: 16 for ".v4.u32". */
static int64_t access_bytes(const offers *o)
{
    int64_t bytes = 0, times = 1;
    text_span part;
    for (size_t i = 1; opcode_part(o, i, &part); i++) {
        const char *text = o->text->bytes + part.at;
        if (part.length == 2 && text[0] == 'v')
            times = text[1] - '0';
        else if (strchr("busf", text[0]) && part.length > 1 && isdigit((unsigned char)text[1]))
            bytes = strtol(text + 1, NULL, 10) / 8;
    }
    return bytes ? times * bytes : 16;
}

static void list_addresses(offers *o)
{
    const ptx_text *t = o->text;
    if (opcode_has(o, "param") || is_opcode_of(o, "call prefetch prefetchu"))
        return;
    int64_t bytes = access_bytes(o);
    for (size_t i = 0; i < o->statement->operand_count; i++) {
        text_span word = operand(o, i);
        if (word.length < 3 || t->bytes[word.at] != '[')
            continue;
        size_t plus = word.at, end = word.at + word.length - 1;
        int64_t offset = 0;
        while (plus < end && t->bytes[plus] != '+')
            plus++;
        size_t digits = plus + 1;
        while (digits < end && t->bytes[digits] == ' ')
            digits++;
        if (plus < end && !read_integer(t, (text_span){digits, end - digits}, &offset))
            continue;
        const text_span tail = {plus, end - plus};
        offer(o, tail, "+%" PRId64, offset + bytes);
        offer(o, tail, "+%" PRId64, offset - bytes);
        if (offset != 0) {
            offer(o, tail, "%s", "");
            offer(o, tail, "+%" PRId64, 2 * offset);
        }
    }
}

/* ---- guards and branches ----------------------------------------------------------------------------------------- */

static void offer_guards(offers *o)
{
    const text_span guard = o->statement->guard;
    if (guard.length == 0)
        return;
    const char *text = o->text->bytes + guard.at;
    if (memchr(text, '!', guard.length))
        offer(o, guard, "@%.*s", (int)(text + guard.length - strchr(text, '!') - 1), strchr(text, '!') + 1);
    else
        offer(o, guard, "@!%.*s", (int)guard.length - 1, text + 1);
    offer(o, guard, "%s", "");
}

static void list_guards(offers *o)
{
    if (!is_opcode_of(o, "bra"))
        offer_guards(o);
}

/* Returns the label's place in the text; for an unknown label, the end of the function. */
static size_t label_at(const offers *o, text_span name)
{
    const ptx_function *f = o->function;
    for (size_t i = 0; i < f->label_count; i++)
        if (ptx_text_same(o->text, f->labels[i], name))
            return f->labels[i].at;
    return f->body.at + f->body.length;
}

/* Returns the index of the first statement executed from this place on, after following unconditional branches. */
static size_t place_from(const offers *o, size_t at)
{
    const ptx_function *f = o->function;
    for (size_t followed = 0;; followed++) {
        size_t i = 0;
        while (i < f->statement_count && f->statements[i].whole.at < at)
            i++;
        const ptx_statement *s = &f->statements[i];
        if (i == f->statement_count || followed == f->label_count || s == o->statement || s->guard.length ||
            s->operand_count != 1 || !is_listed(o->text, s->opcode, "bra bra.uni"))
            return i;
        at = label_at(o, s->operands[0]);
    }
}

static void list_branches(offers *o)
{
    if (!is_opcode_of(o, "bra") || o->statement->operand_count != 1)
        return;
    const ptx_function *f = o->function;
    const size_t place = place_from(o, label_at(o, o->statement->operands[0]));
    if (place != place_from(o, o->statement->whole.at + o->statement->whole.length)) {
        offer_guards(o);
        offer(o, o->statement->whole, "%s", "");
    }
    for (size_t i = 0; i < f->label_count; i++)
        if (place_from(o, f->labels[i].at) != place)
            offer_word(o, o->statement->operands[0], f->labels[i]);
}

/* ---- whole instructions ------------------------------------------------------------------------------------------- */

static const char barriers[] = "bar barrier mbarrier", fences[] = "membar fence";

/* Without them a kernel is slower, but still correct. */
static const char hints[] = "prefetch prefetchu discard applypriority nanosleep pmevent";

static void list_barriers(offers *o)
{
    if (is_opcode_of(o, barriers))
        offer(o, o->statement->whole, "%s", "");
}

static void list_fences(offers *o)
{
    static const word_row scopes[] = {
        {"gl", "cta"}, {"sys", "cta"}, {"gpu", "cta"}, {"cluster", "cta"}, {NULL, NULL},
    };
    if (!is_opcode_of(o, fences))
        return;
    offer(o, o->statement->whole, "%s", "");
    offer_rows(o, 1, scopes);
}

/* Returns whether it is "cp.async.wait_group 1" or similar. */
static bool is_wait(const offers *o)
{
    static const char *const words[] = {"wait_group", "wait_all", "commit_group", "commit_async"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (opcode_has(o, words[i]))
            return true;
    return is_opcode_of(o, "wgmma tcgen05") && (opcode_has(o, "fence") || opcode_has(o, "wait"));
}

static void list_waits(offers *o)
{
    int64_t groups;
    if (!is_wait(o))
        return;
    offer(o, o->statement->whole, "%s", "");
    if (o->statement->operand_count == 1 && read_integer(o->text, o->statement->operands[0], &groups))
        offer(o, o->statement->operands[0], "%" PRId64, groups + 1);
}

/* Returns whether it is the last instruction: a function ends after it, with or without a return. */
static bool is_last_return(const offers *o)
{
    const ptx_function *f = o->function;
    return o->statement + 1 == f->statements + f->statement_count && is_opcode_of(o, "ret exit");
}

static void list_drops(offers *o)
{
    if (!is_opcode_of(o, barriers) && !is_opcode_of(o, fences) && !is_wait(o) && !is_opcode_of(o, "bra") &&
        !is_last_return(o))
        offer(o, o->statement->whole, "%s", "");
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const struct kind_row {
    const char *name;
    void (*list)(offers *o);
} kinds[MUTATION_KINDS] = {
    [MUTATE_OPERATION] = {"operation", list_operations},
    [MUTATE_COMPARISON] = {"comparison", list_comparisons},
    [MUTATE_OPERAND] = {"operand", list_operands},
    [MUTATE_REGISTER] = {"register", list_registers},
    [MUTATE_IMMEDIATE] = {"immediate", list_immediates},
    [MUTATE_ADDRESS] = {"address", list_addresses},
    [MUTATE_GUARD] = {"guard", list_guards},
    [MUTATE_DROP] = {"dropped", list_drops},
    [MUTATE_BARRIER] = {"barrier", list_barriers},
    [MUTATE_FENCE] = {"fence", list_fences},
    [MUTATE_WAIT] = {"wait", list_waits},
    [MUTATE_LANES] = {"lanes", list_lanes},
    [MUTATE_ROUNDING] = {"rounding", list_roundings},
    [MUTATE_QUALIFIER] = {"qualifier", list_qualifiers},
    [MUTATE_BRANCH] = {"branch", list_branches},
};

const char *mutation_name(mutation_kind kind)
{
    return kinds[kind].name;
}

static size_t list_kind(offers o, mutation_kind kind)
{
    if (!is_opcode_of(&o, hints))
        kinds[kind].list(&o);
    return o.count;
}

size_t mutation_count(const ptx_text *t, const ptx_function *f, const ptx_statement *s, mutation_kind kind)
{
    return list_kind((offers){.text = t, .function = f, .statement = s, .wanted = SIZE_MAX}, kind);
}

mutation mutation_at(const ptx_text *t, const ptx_function *f, const ptx_statement *s, mutation_kind kind,
                     size_t wanted)
{
    mutation m = {.text = ""};
    list_kind((offers){.text = t, .function = f, .statement = s, .wanted = wanted, .kept = &m}, kind);
    return m;
}

char *mutation_apply(const ptx_text *t, const mutation *m, pool *memory)
{
    size_t inserted = strlen(m->text), behind = m->span.at + m->span.length;
    char *text = pool_allocate(memory, t->length - m->span.length + inserted + 1);
    memcpy(text, t->bytes, m->span.at);
    memcpy(text + m->span.at, m->text, inserted);
    memcpy(text + m->span.at + inserted, t->bytes + behind, t->length - behind);
    return text;
}
