/* libFuzzer's mutation of PTX, by statement, so that most texts still load. It replaces operands by others of their class, and
   words of an opcode by others of their family. It deletes, repeats, moves and guards statements, and copies statements from
   another text, snippets.ptx or hopper.ptx, with their names replaced by names of the text. */
#include "fuzz.h"
#include "view.h"
#include "words.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_bytes, const uint8_t *two, size_t two_bytes,
                                 uint8_t *out, size_t most, unsigned seed);

/* A target that wants few invalid texts defines this. Returns whether the text loads. */
bool fuzz_is_loadable(const uint8_t *data, size_t bytes) __attribute__((weak));

static view here, there; /* the text being changed, and the text that statements are copied from */

/* Replaces the span by the text, and returns the new size. Changes nothing if there is no room. */
static size_t splice(uint8_t *data, size_t bytes, size_t most, span where, const char *text, size_t size)
{
    if (bytes - where.size + size > most)
        return bytes;
    memmove(data + where.at + size, data + where.at + where.size, bytes - where.at - where.size);
    if (size)
        memcpy(data + where.at, text, size);
    return bytes - where.size + size;
}

static span random_statement(const view *v, unsigned *seed)
{
    return v->statement_count ? v->statements[next_random(seed) % v->statement_count] : (span){0, 0};
}

/* The opcode, which follows the guard. */
static span opcode_of(const uint8_t *data, span s)
{
    span word = view_word(data, s.at + s.size, s.at);
    return s.size && data[s.at] == '@' ? view_word(data, s.at + s.size, word.at + word.size) : word;
}

static span random_operand(const uint8_t *data, span s, unsigned *seed)
{
    span opcode = opcode_of(data, s), found = {0, 0};
    unsigned seen = 0;
    for (span w = view_word(data, s.at + s.size, opcode.at + opcode.size); w.size;
         w = view_word(data, s.at + s.size, w.at + w.size))
        if (next_random(seed) % ++seen == 0)
            found = w;
    return found;
}

static bool has_word(const char *words, const char *word, size_t size)
{
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == size && memcmp(at, word, size) == 0)
            return true;
    return false;
}

static size_t random_word(const char *words, unsigned *seed, char out[64])
{
    unsigned seen = 0;
    size_t size = 0;
    for (const char *at = words; *at; at += strcspn(at, " "), at += *at == ' ')
        if (next_random(seed) % ++seen == 0 && strcspn(at, " ") < 64) {
            size = strcspn(at, " ");
            memcpy(out, at, size);
        }
    return size;
}

static size_t random_number(const uint8_t *data, span w, unsigned *seed, char out[64])
{
    bool single = w.size == 10 && data[w.at + 1] == 'f', wide = w.size == 18 && data[w.at + 1] == 'd';
    return random_word(single ? single_values : wide ? double_values : integer_values, seed, out);
}

/* Picks another word of a family that contains this one. Returns its size; 0: there is none. */
static size_t relative_of(const char *word, size_t size, unsigned *seed, char out[64])
{
    unsigned seen = 0;
    const char *found = NULL;
    for (size_t i = 0; families[i]; i++)
        if (has_word(families[i], word, size) && next_random(seed) % ++seen == 0)
            found = families[i];
    return found ? random_word(found, seed, out) : 0;
}

static size_t change_operand(uint8_t *data, size_t bytes, size_t most, unsigned *seed)
{
    char text[64];
    span w = random_operand(data, random_statement(&here, seed), seed);
    if (!w.size)
        return bytes;
    char class = view_class(&here, w);
    bool is_number = data[w.at] >= '0' && data[w.at] <= '9';
    size_t size = class       ? view_random_name(&here, class, seed, text)
                  : is_number ? random_number(data, w, seed, text)
                              : relative_of((const char *)data + w.at, w.size, seed, text);
    return size ? splice(data, bytes, most, w, text, size) : bytes;
}

/* One of the words between the dots of an opcode. */
static span random_piece(const uint8_t *data, span opcode, unsigned *seed)
{
    span found = {opcode.at, 0};
    unsigned seen = 0;
    for (size_t at = opcode.at, end = opcode.at + opcode.size; at < end;) {
        size_t size = 0;
        while (at + size < end && data[at + size] != '.')
            size++;
        if (size && next_random(seed) % ++seen == 0)
            found = (span){at, size};
        at += size + 1;
    }
    return found;
}

static size_t change_opcode(uint8_t *data, size_t bytes, size_t most, unsigned *seed)
{
    char text[64];
    span opcode = opcode_of(data, random_statement(&here, seed));
    for (int tries = 0; opcode.size && tries < 8; tries++) {
        span piece = random_piece(data, opcode, seed);
        size_t size = relative_of((const char *)data + piece.at, piece.size, seed, text);
        if (size && (size != piece.size || memcmp(text, data + piece.at, size) != 0))
            return splice(data, bytes, most, piece, text, size);
    }
    return bytes;
}

/* Adds or deletes a modifier. */
static size_t change_modifier(uint8_t *data, size_t bytes, size_t most, unsigned *seed)
{
    char text[65] = ".";
    span opcode = opcode_of(data, random_statement(&here, seed));
    span piece = random_piece(data, opcode, seed);
    if (!piece.size)
        return bytes;
    if (piece.at > opcode.at && next_random(seed) % 2)
        return splice(data, bytes, most, (span){piece.at - 1, piece.size + 1}, NULL, 0);
    size_t size = random_word(modifiers, seed, text + 1);
    return splice(data, bytes, most, (span){piece.at + piece.size, 0}, text, size + 1);
}

static size_t change_guard(uint8_t *data, size_t bytes, size_t most, unsigned *seed)
{
    char text[80], predicate[64];
    span s = random_statement(&here, seed);
    if (!s.size)
        return bytes;
    if (data[s.at] == '@' && next_random(seed) % 2)
        return splice(data, bytes, most, (span){s.at, opcode_of(data, s).at - s.at}, NULL, 0);
    size_t size = view_random_name(&here, 'p', seed, predicate);
    if (!size || data[s.at] == '@')
        return bytes;
    predicate[size] = '\0';
    int n = snprintf(text, sizeof text, "@%s%s ", next_random(seed) % 2 ? "!" : "", predicate);
    return splice(data, bytes, most, (span){s.at, 0}, text, (size_t)n);
}

static size_t move_statement(uint8_t *data, size_t bytes, size_t most, unsigned *seed)
{
    char text[512];
    span from = random_statement(&here, seed), to = random_statement(&here, seed);
    if (!from.size || from.size + 1 > sizeof text)
        return bytes;
    memcpy(text, data + from.at, from.size);
    text[from.size] = '\n';
    unsigned how = next_random(seed) % 3; /* 0: repeats the statement, 1: deletes it, 2: moves it */
    if (how != 0)
        bytes = splice(data, bytes, most, from, NULL, 0);
    if (how == 2 && to.at > from.at)
        to.at -= from.size;
    return how == 1 ? bytes : splice(data, bytes, most, (span){to.at, 0}, text, from.size + 1);
}

/* Copies the statement with names of this text; the same name is always replaced by the same one. Returns 0 if a name has
   no counterpart. */
static size_t translate(span s, unsigned names_seed, char *out, size_t room)
{
    size_t used = 0, at = s.at, end = s.at + s.size;
    while (at < end) {
        char text[64];
        span w = view_word(there.data, end, at);
        size_t before = (w.size ? w.at : end) - at, size = w.size;
        const char *word = (const char *)there.data + w.at;
        char class = w.size ? view_class(&there, w) : 0;
        if (class) {
            unsigned seed = names_seed;
            for (size_t i = 0; i < w.size; i++)
                seed = seed * 31 + there.data[w.at + i];
            next_random(&seed);
            size = view_random_name(&here, class, &seed, text);
            word = text;
            if (!size)
                return 0;
        }
        if (used + before + size + 2 > room)
            return 0;
        memcpy(out + used, there.data + at, before);
        memcpy(out + used + before, word, size);
        used += before + size;
        at = w.size ? w.at + w.size : end;
    }
    out[used++] = '\n';
    return used;
}

/* Copies up to six consecutive statements of the other text. */
static size_t transplant(uint8_t *data, size_t bytes, size_t most, unsigned *seed)
{
    char text[4096];
    size_t used = 0;
    if (!there.statement_count || !here.statement_count)
        return bytes;
    unsigned first = next_random(seed) % there.statement_count, count = 1 + next_random(seed) % 6;
    unsigned names_seed = next_random(seed);
    for (unsigned i = first; i < first + count && i < there.statement_count; i++)
        used += translate(there.statements[i], names_seed, text + used, sizeof text - used);
    return splice(data, bytes, most, (span){random_statement(&here, seed).at, 0}, text, used);
}

/* Copies statements from a file of instructions. */
static size_t insert_snippet(uint8_t *data, size_t bytes, size_t most, unsigned *seed)
{
    static const char *const paths[] = {FUZZ_SNIPPETS};
    static struct {
        uint8_t bytes[32768];
        size_t size;
    } texts[sizeof paths / sizeof *paths];
    unsigned n = next_random(seed) % (sizeof paths / sizeof *paths);
    if (!texts[n].size) {
        FILE *file = fopen(paths[n], "rb");
        texts[n].size = file ? fread(texts[n].bytes, 1, sizeof texts[n].bytes, file) : 0;
        if (!texts[n].size || fclose(file) != 0)
            abort();
    }
    view_text(&there, texts[n].bytes, texts[n].size);
    return transplant(data, bytes, most, seed);
}

/* Changes the launch line, see execute.c. */
static size_t change_launch(uint8_t *data, size_t bytes, size_t most, unsigned *seed)
{
    static const unsigned threads[] = {1, 2, 31, 32, 33, 63, 64, 65, 96, 127, 128, 160};
    char line[96], letters[8] = "";
    span old = {0, 0};
    if (bytes > 10 && memcmp(data, "// launch ", 10) == 0) {
        uint8_t *end = memchr(data, '\n', bytes);
        old.size = end ? (size_t)(end - data) + 1 : bytes;
        sscanf((const char *)data, "// launch %*u %*u %*u %7[a-z]", letters);
    }
    for (size_t i = 0; letters[i]; i++)
        if (next_random(seed) % 8 == 0)
            letters[i] = "abcdnmt"[next_random(seed) % 7];
    int n = snprintf(line, sizeof line, "// launch %u %u %u %s\n", 1 + next_random(seed) % 3,
                     threads[next_random(seed) % 12], next_random(seed) % 4 ? 0 : 4096,
                     letters[0] ? letters : "abcn");
    return splice(data, bytes, most, old, line, (size_t)n);
}

typedef size_t change(uint8_t *data, size_t bytes, size_t most, unsigned *seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed)
{
    static change *const changes[] = {change_operand, change_operand,  change_opcode,  change_opcode,
                                      change_guard,   move_statement,  insert_snippet, insert_snippet,
                                      change_operand, change_modifier, change_launch,  move_statement};
    unsigned blind_one_in = fuzz_is_loadable ? 64 : 8;
    if (!bytes || next_random(&seed) % blind_one_in == 0)
        return LLVMFuzzerMutate(data, bytes, most);
    uint8_t *before = malloc(bytes);
    size_t bytes_before = bytes;
    if (!before)
        return bytes;
    memcpy(before, data, bytes);
    for (unsigned left = 1 + next_random(&seed) % 3; left; left--) {
        view_text(&here, data, bytes);
        bytes = changes[next_random(&seed) % (sizeof changes / sizeof *changes)](data, bytes, most, &seed);
        if (!fuzz_is_loadable || fuzz_is_loadable(data, bytes) || next_random(&seed) % 16 == 0)
            continue;
        memcpy(data, before, bytes_before);
        bytes = bytes_before;
    }
    free(before);
    return bytes;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_bytes, const uint8_t *two, size_t two_bytes,
                                 uint8_t *out, size_t most, unsigned seed)
{
    if (one_bytes > most)
        return 0;
    if (one_bytes)
        memcpy(out, one, one_bytes);
    view_text(&here, out, one_bytes);
    view_text(&there, two, two_bytes);
    size_t bytes = transplant(out, one_bytes, most, &seed);
    return !fuzz_is_loadable || fuzz_is_loadable(out, bytes) || next_random(&seed) % 16 == 0 ? bytes : 0;
}
