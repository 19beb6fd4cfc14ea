/* Mutations of operands. */
#include "offers.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static text_span operand(const offers *o, size_t i)
{
    return o->statement->operands[i];
}

/* Two words in each other's place, and what is between them. */
static void offer_swap(offers *o, text_span a, text_span b)
{
    const char *text = o->text->bytes;
    const text_span both = {a.at, b.at + b.length - a.at};
    if (both.length < sizeof o->kept->text && !ptx_text_same(o->text, a, b))
        offer(o, both, "%.*s%.*s%.*s", (int)b.length, text + b.at, (int)(b.at - a.at - a.length),
              text + a.at + a.length, (int)a.length, text + a.at);
}

/* Neighbours in "{%r1, %r2, %r3}". */
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

/* "%tid.x" */
static void offer_dimensions(offers *o, text_span word)
{
    static const word_row dimensions[] = {{"x", "y"}, {"y", "x z"}, {"z", "x"}, {NULL, NULL}};
    const char *text = o->text->bytes + word.at;
    if (word.length > 2 && text[0] == '%' && text[word.length - 2] == '.')
        offer_row(o, (text_span){word.at + word.length - 1, 1}, dimensions);
}

/* Another parameter, as long as the names have one beginning. */
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

void list_operands(offers *o)
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

enum { REGISTERS_FROM = 12 }; /* instructions before it whose registers may stand in the place of one */

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

void list_registers(offers *o)
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

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* "0f3F800000" or "0d...": the sign, a bit of the exponent, one of the upper half of the fraction, and twice as much.
 * The last place is not offered: a result that is right within a bound need not show it. */
static bool offer_float(offers *o, text_span word)
{
    const char *text = o->text->bytes + word.at;
    const bool is_double = word.length == 18 && tolower((unsigned char)text[1]) == 'd';
    if (text[0] != '0' || !(is_double || (word.length == 10 && tolower((unsigned char)text[1]) == 'f')))
        return false;
    const int digits = is_double ? 16 : 8, exponent = is_double ? 52 : 23, sign = is_double ? 63 : 31;
    const uint64_t bits = strtoull(text + 2, NULL, 16), one = 1;
    const uint64_t unit = (one << (sign - exponent - 1)) - 1; /* of 1.0: the exponent */
    const int flipped[] = {sign, exponent, exponent - 1, exponent - 4, exponent - 8};
    if (bits << (64 - sign) == 0) { /* minus zero is as good as zero, and so are the least numbers */
        offer(o, word, "0%c%0*" PRIX64, text[1], digits, unit << exponent);
        return true;
    }
    const uint64_t largest = is_double ? 2046 : 254, has = bits >> exponent & (largest + 1);
    if (has > largest && bits << (64 - exponent)) { /* one NaN is as good as another */
        offer(o, word, "0%c%0*" PRIX64, text[1], digits, bits ^ one << exponent);
        return true;
    }
    for (size_t i = 0; i < sizeof flipped / sizeof *flipped; i++)
        offer(o, word, "0%c%0*" PRIX64, text[1], digits, bits ^ one << flipped[i]);
    if (has > 0 && has < largest && (bits >> exponent & 1))
        offer(o, word, "0%c%0*" PRIX64, text[1], digits, bits + (one << exponent));
    return true;
}

void list_immediates(offers *o)
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

/* Bytes that an access has: ".v4.u32" 16. */
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

void list_addresses(offers *o)
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
