/* Where mutations are offered. */
#include "offers.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void offer(offers *o, text_span span, const char *format, ...)
{
    if (o->count++ != o->wanted)
        return;
    va_list list;
    va_start(list, format);
    o->kept->span = span;
    vsnprintf(o->kept->text, sizeof o->kept->text, format, list);
    va_end(list);
}

void offer_word(offers *o, text_span span, text_span other)
{
    if (other.length < sizeof o->kept->text && !ptx_text_same(o->text, span, other))
        offer(o, span, "%.*s", (int)other.length, o->text->bytes + other.at);
}

/* ---- opcodes ----------------------------------------------------------------------------------------------------- */

bool opcode_part(const offers *o, size_t number, text_span *part)
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

bool opcode_has(const offers *o, const char *word)
{
    text_span part;
    for (size_t i = 1; opcode_part(o, i, &part); i++)
        if (ptx_text_is(o->text, part, word))
            return true;
    return false;
}

text_span opcode_base(const offers *o)
{
    text_span base;
    opcode_part(o, 0, &base);
    return base;
}

/* Whether a word is one of those in a list, with spaces between. */
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

bool is_opcode_of(const offers *o, const char *list)
{
    return is_listed(o->text, opcode_base(o), list);
}

text_span opcode_last(const offers *o)
{
    text_span part, last = opcode_base(o);
    for (size_t i = 1; opcode_part(o, i, &part); i++)
        last = part;
    return last;
}

bool is_float_operation(const offers *o)
{
    return is_listed(o->text, opcode_last(o), "f16 f16x2 bf16 bf16x2 f32 f64 f32x2");
}

static void offer_others(offers *o, text_span word, const char *list)
{
    for (const char *at = list; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        offer(o, word, "%.*s", (int)length, at);
        at += length;
    }
}

void offer_row(offers *o, text_span word, const word_row *rows)
{
    for (; rows->word; rows++)
        if (ptx_text_is(o->text, word, rows->word))
            offer_others(o, word, rows->others);
}

void offer_rows(offers *o, size_t first_part, const word_row *rows)
{
    text_span part;
    for (size_t i = first_part; opcode_part(o, i, &part); i++)
        offer_row(o, part, rows);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

bool read_integer(const ptx_text *t, text_span word, int64_t *value)
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

void offer_integer(offers *o, text_span word)
{
    int64_t v;
    if (!read_integer(o->text, word, &v))
        return;
    offer(o, word, "%" PRId64, v + 1);
    if (v != 0)
        offer(o, word, "%" PRId64, v - 1);
    if (v > 1)
        offer(o, word, "%" PRId64, 2 * v);
    for (int bit = 1; bit < 32 && (int64_t)1 << bit <= 2 * v; bit++)
        if ((v ^ (int64_t)1 << bit) != v + 1 && (v ^ (int64_t)1 << bit) != v - 1)
            offer(o, word, "%" PRId64, v ^ (int64_t)1 << bit);
}
