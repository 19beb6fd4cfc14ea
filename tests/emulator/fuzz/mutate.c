/* libFuzzer's mutation of PTX by words: a word takes the place of another one of the same text, a number changes, a line
   goes, comes twice, or changes places. One time in four the bytes are mutated blindly. */
#include "fuzz.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed);

typedef struct span {
    size_t at, size;
} span;

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 8;
}

static bool is_word(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '%' || c == '.' || c == '$';
}

static span word_at(const uint8_t *data, size_t bytes, size_t at)
{
    while (at < bytes && !is_word(data[at]))
        at++;
    while (at > 0 && at < bytes && is_word(data[at - 1]))
        at--;
    span s = {at, 0};
    while (at + s.size < bytes && is_word(data[at + s.size]))
        s.size++;
    return s;
}

static span line_at(const uint8_t *data, size_t bytes, size_t at)
{
    while (at > 0 && data[at - 1] != '\n')
        at--;
    span s = {at, 0};
    while (at + s.size < bytes && data[at + s.size] != '\n')
        s.size++;
    s.size += at + s.size < bytes;
    return s;
}

/* Puts the text in place of the span; the size as before when there is no room. */
static size_t splice(uint8_t *data, size_t bytes, size_t most, span where, const uint8_t *text, size_t size)
{
    if (bytes - where.size + size > most)
        return bytes;
    memmove(data + where.at + size, data + where.at + where.size, bytes - where.at - where.size);
    if (size)
        memcpy(data + where.at, text, size);
    return bytes - where.size + size;
}

static char kind_of(const uint8_t *data, span s)
{
    uint8_t c = s.size ? data[s.at] : 0;
    if (c == '%' && s.size > 1) /* %rd1 and %r1 are different kinds, %r1 and %r22 the same */
        return (char)(0x80 | data[s.at + 1] | (s.size > 2 && data[s.at + 2] > '9' ? 0 : 1));
    return c >= '0' && c <= '9' ? '0' : c == '.' ? '.' : c == '$' ? '$' : 'a';
}

static size_t replace_word(uint8_t *data, size_t bytes, size_t most, unsigned *seed)
{
    uint8_t text[64];
    span to = word_at(data, bytes, next_random(seed) % bytes);
    for (int tries = 0; tries < 50; tries++) {
        span from = word_at(data, bytes, next_random(seed) % bytes);
        if (from.size && from.size <= sizeof text && kind_of(data, from) == kind_of(data, to)) {
            memcpy(text, data + from.at, from.size);
            return splice(data, bytes, most, to, text, from.size);
        }
    }
    return bytes;
}

static size_t replace_number(uint8_t *data, size_t bytes, size_t most, unsigned *seed)
{
    static const char *const numbers[] = {"0",
                                          "1",
                                          "-1",
                                          "2",
                                          "3",
                                          "4",
                                          "7",
                                          "8",
                                          "16",
                                          "31",
                                          "32",
                                          "33",
                                          "63",
                                          "64",
                                          "65",
                                          "127",
                                          "128",
                                          "255",
                                          "256",
                                          "1024",
                                          "4096",
                                          "65535",
                                          "65536",
                                          "2147483647",
                                          "-2147483648",
                                          "4294967295",
                                          "4294967296",
                                          "9223372036854775807",
                                          "18446744073709551615",
                                          "0f7F800000",
                                          "0fFF800000",
                                          "0f7FFFFFFF",
                                          "0d7FF0000000000000",
                                          "0f00000001",
                                          "0f80000000"};
    for (int tries = 0; tries < 50; tries++) {
        span to = word_at(data, bytes, next_random(seed) % bytes);
        if (kind_of(data, to) != '0')
            continue;
        const char *text = numbers[next_random(seed) % (sizeof numbers / sizeof *numbers)];
        return splice(data, bytes, most, to, (const uint8_t *)text, strlen(text));
    }
    return bytes;
}

static size_t move_line(uint8_t *data, size_t bytes, size_t most, unsigned *seed)
{
    uint8_t text[256];
    span from = line_at(data, bytes, next_random(seed) % bytes);
    if (from.size > sizeof text)
        return bytes;
    memcpy(text, data + from.at, from.size);
    unsigned how = next_random(seed) % 3;
    if (how != 0) /* 0: the line comes twice, 1: it goes, 2: it moves */
        bytes = splice(data, bytes, most, from, NULL, 0);
    if (how == 1 || !bytes)
        return bytes;
    span to = line_at(data, bytes, next_random(seed) % bytes);
    to.size = 0;
    return splice(data, bytes, most, to, text, from.size);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed)
{
    unsigned changes = 1 + next_random(&seed) % 3;
    if (!bytes || next_random(&seed) % 4 == 0)
        return LLVMFuzzerMutate(data, bytes, most);
    while (changes-- && bytes) {
        unsigned how = next_random(&seed) % 5;
        bytes = how < 2   ? replace_word(data, bytes, most, &seed)
                : how < 4 ? replace_number(data, bytes, most, &seed)
                          : move_line(data, bytes, most, &seed);
    }
    return bytes;
}
