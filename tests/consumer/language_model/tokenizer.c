/* Implements tokenizer.h: cuts special tokens out of the text, splits the rest into words by GPT-2's pattern, and merges the
 * bytes of each word pair by pair, lowest rank first. */
#include "tokenizer.h"
#include "unicode_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints a message. Returns false. */
#define FAIL(error, ...) (snprintf((error)->text, sizeof(error)->text, __VA_ARGS__), false)

/* tokenizer.ggml.token_type; source: llama.h. */
enum { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE };

enum { MOST_TOKENS = 1 << 24, MOST_TEXT_BYTES = 1 << 28 };

/* Texts of special tokens that end a generation, and keys that name such a token; source: llama.cpp's llama-vocab.cpp.
 * llama.cpp also ends at a normal token with such a text. Here it is ordinary text, which a model may write: "</s>" in HTML. */
static const char *const end_texts[] = {
    "<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>",
    "<|call|>", "<|calls|>", "<|flush|>", "<end_of_turn>", "<turn|>", "<|tool_response>",
    "<end_of_utterance>", "<eos>", "</s>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "[e~[",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
    /* fill in the middle: padding, the next repository, the next file */
    "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>",
    "<REPO>", "<reponame>", "<|file_sep|>"};
static const char *const end_keys[] = {"tokenizer.ggml.eos_token_id",     "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id",     "tokenizer.ggml.fim_pad_token_id",
                                       "tokenizer.ggml.fim_rep_token_id", "tokenizer.ggml.fim_sep_token_id"};
enum { END_TEXTS = sizeof end_texts / sizeof *end_texts, END_KEYS = sizeof end_keys / sizeof *end_keys };

typedef struct token_row {
    uint32_t text, text_bytes;   /* in texts: the file's text, in which a character stands for a byte */
    uint32_t bytes, bytes_count; /* in bytes: the decoded bytes */
    int32_t type;
} token_row;

typedef struct merge_row {
    int32_t left, right; /* tokens; left = -1: an empty slot */
    uint32_t rank;
    int32_t product;
} merge_row;

struct tokenizer {
    uint32_t count;
    token_row *tokens;
    char *texts, *bytes;
    uint32_t *text_slots; /* hash table of tokens + 1 by text; 0: empty */
    uint32_t text_mask;
    merge_row *merge_slots; /* hash table of merges by both tokens */
    uint32_t merge_mask;
    int32_t byte_tokens[256]; /* -1: not in the vocabulary, and the byte is dropped */
    int32_t *specials;        /* control, user-defined and unknown tokens, the longest text first */
    uint32_t special_count;
    int32_t ends[END_TEXTS + END_KEYS];
    uint32_t end_count;
    int32_t bos, eos; /* -1: not added */
};

static bool check_kind(const gguf_file *file, gguf_error *error);
static bool read_tokens(tokenizer *t, const gguf_file *file, gguf_error *error);
static bool read_merges(tokenizer *t, const gguf_file *file, gguf_error *error);
static bool list_specials(tokenizer *t, gguf_error *error);
static bool find_ends(tokenizer *t, const gguf_file *file, gguf_error *error);
static bool find_added(tokenizer *t, const gguf_file *file, gguf_error *error);

tokenizer *tokenizer_open(const gguf_file *file, gguf_error *error)
{
    tokenizer *t = calloc(1, sizeof *t);
    bool ok = t != NULL || FAIL(error, "out of memory for the tokenizer");
    if (ok && check_kind(file, error) && read_tokens(t, file, error) && read_merges(t, file, error) &&
        list_specials(t, error) && find_ends(t, file, error) && find_added(t, file, error))
        return t;
    /* Prints a line of printable characters; the message may quote the file's texts. */
    for (char *c = error->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    tokenizer_close(t);
    return NULL;
}

void tokenizer_close(tokenizer *t)
{
    if (!t)
        return;
    free(t->tokens);
    free(t->texts);
    free(t->bytes);
    free(t->text_slots);
    free(t->merge_slots);
    free(t->specials);
    free(t);
}

uint32_t tokenizer_size(const tokenizer *t)
{
    return t->count;
}

static bool check_kind(const gguf_file *file, gguf_error *error)
{
    static const char *const needed[][2] = {{"tokenizer.ggml.model", "gpt2"},
                                            {"tokenizer.ggml.pre", "smollm"}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        gguf_string found;
        if (!gguf_get_string(file, needed[i][0], &found, error))
            return false;
        if (!gguf_string_is(found, needed[i][1]))
            return FAIL(error, "key '%s': expected '%s', found '%.*s'", needed[i][0], needed[i][1],
                        found.size < 60 ? (int)found.size : 60, found.bytes);
    }
    return true;
}

/* ---- UTF-8, as llama.cpp reads and writes it ---- */

enum { REPLACEMENT = 0xfffd };

/* Returns the character at *at, and moves *at past it. Accepts overlong forms and surrogates; of other invalid UTF-8 one
 * byte becomes U+FFFD. So does a number above U+10FFFF, at which llama.cpp aborts. */
static uint32_t next_code(const char *text, size_t end, size_t *at)
{
    const unsigned char *s = (const unsigned char *)text + *at;
    unsigned more = s[0] < 0x80   ? 0
                    : s[0] < 0xc0 ? 4
                    : s[0] < 0xe0 ? 1
                    : s[0] < 0xf0 ? 2
                    : s[0] < 0xf8 ? 3
                                  : 4;
    uint32_t code = more ? s[0] & (0x3fU >> more) : s[0];
    bool whole = more < 4 && more < end - *at;
    for (unsigned i = 1; whole && i <= more; i++) {
        whole = (s[i] & 0xc0) == 0x80;
        code = code << 6 | (s[i] & 0x3f);
    }
    whole = whole && code <= 0x10ffff;
    *at += whole ? more + 1 : 1;
    return whole ? code : REPLACEMENT;
}

/* Writes at most four bytes. */
static unsigned write_utf8(uint32_t code, unsigned char *out)
{
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    unsigned more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    for (unsigned i = more; i > 0; i--, code >>= 6)
        out[i] = (unsigned char)(0x80 | (code & 0x3f));
    out[0] = (unsigned char)(leads[more] | code);
    return more + 1;
}

/* GPT-2's table: the character that stands for a byte in a vocabulary's texts. Printable bytes of Latin-1 stand for
 * themselves, the others map to U+0100 and up. */
static bool is_itself(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}

static uint32_t code_of_byte(unsigned byte)
{
    uint32_t others = 0;
    for (unsigned before = 0; before < byte; before++)
        others += !is_itself(before);
    return is_itself(byte) ? byte : 0x100 + others;
}

/* ---- Tables ---- */

static uint32_t hash_text(const char *text, size_t bytes)
{
    uint32_t hash = 0x811c9dc5; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x01000193;
    return hash ^ hash >> 15;
}

/* Returns a mask: a power of two, at least twice the rows, minus 1. Half of the slots stay empty. */
static uint32_t mask_for(uint64_t rows)
{
    uint32_t slots = 16;
    while (slots < 2 * rows)
        slots *= 2;
    return slots - 1;
}

/* Returns the text's slot, or the empty slot for it. */
static uint32_t *text_slot(const tokenizer *t, const char *text, size_t bytes)
{
    for (uint32_t i = hash_text(text, bytes);; i++) {
        uint32_t *slot = &t->text_slots[i & t->text_mask];
        const token_row *row = *slot ? &t->tokens[*slot - 1] : NULL;
        if (!row || (row->text_bytes == bytes && memcmp(t->texts + row->text, text, bytes) == 0))
            return slot;
    }
}

static int32_t find_text(const tokenizer *t, const char *text, size_t bytes)
{
    return (int32_t)*text_slot(t, text, bytes) - 1;
}

static merge_row *merge_slot(const tokenizer *t, int32_t left, int32_t right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    for (uint32_t i = (uint32_t)(pair * 0x9e3779b97f4a7c15 >> 32);; i++) {
        merge_row *slot = &t->merge_slots[i & t->merge_mask];
        if (slot->left < 0 || (slot->left == left && slot->right == right))
            return slot;
    }
}

/* Decodes the texts of normal tokens: each character stands for a byte. */
static bool decode_text(tokenizer *t, token_row *row, const int16_t *byte_of_code)
{
    for (size_t at = row->text, end = at + row->text_bytes; at < end;) {
        uint32_t code = next_code(t->texts, end, &at);
        if (code >= 0x200 || byte_of_code[code] < 0)
            return false;
        t->bytes[row->bytes + row->bytes_count++] = (char)byte_of_code[code];
    }
    return true;
}

static bool read_tokens(tokenizer *t, const gguf_file *file, gguf_error *error)
{
    gguf_array texts, types;
    if (!gguf_get_strings(file, "tokenizer.ggml.tokens", &texts, error) ||
        !gguf_get_i32s(file, "tokenizer.ggml.token_type", &types, error))
        return false;
    if (texts.count == 0 || texts.count > MOST_TOKENS)
        return FAIL(error, "key 'tokenizer.ggml.tokens': expected 1 to %d, found %llu", MOST_TOKENS,
                    (unsigned long long)texts.count);
    if (types.count != texts.count)
        return FAIL(error, "key 'tokenizer.ggml.token_type': expected as many as tokens, %llu, found %llu",
                    (unsigned long long)texts.count, (unsigned long long)types.count);
    t->count = (uint32_t)texts.count;
    uint64_t bytes = 0;
    gguf_array rest = texts;
    for (uint32_t i = 0; i < t->count; i++)
        bytes += gguf_next_string(&rest).size;
    if (bytes > UINT32_MAX)
        return FAIL(error, "key 'tokenizer.ggml.tokens': expected texts of at most 4 GB, found %llu bytes",
                    (unsigned long long)bytes);
    t->text_mask = mask_for(t->count);
    t->tokens = calloc(t->count, sizeof *t->tokens);
    t->texts = malloc((size_t)bytes + 1);
    t->bytes = malloc((size_t)bytes + 1);
    t->text_slots = calloc((size_t)t->text_mask + 1, sizeof *t->text_slots);
    if (!t->tokens || !t->texts || !t->bytes || !t->text_slots)
        return FAIL(error, "out of memory for %u tokens", (unsigned)t->count);

    int16_t byte_of_code[0x200];
    memset(byte_of_code, -1, sizeof byte_of_code);
    for (unsigned byte = 0; byte < 256; byte++)
        byte_of_code[code_of_byte(byte)] = (int16_t)byte;
    uint32_t at = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        gguf_string text = gguf_next_string(&texts);
        token_row *row = &t->tokens[i];
        *row = (token_row){at, (uint32_t)text.size, at, 0, gguf_i32_at(types, i)};
        memcpy(t->texts + at, text.bytes, text.size);
        at += row->text_bytes;
        uint32_t *slot = text_slot(t, text.bytes, text.size);
        int shown = text.size < 60 ? (int)text.size : 60;
        if (*slot != 0)
            return FAIL(error, "token %u: expected a text of its own, found '%.*s' of token %u", (unsigned)i,
                        shown, text.bytes, (unsigned)*slot - 1);
        *slot = i + 1;
        if (row->type < NORMAL || row->type > BYTE)
            return FAIL(error, "token %u: expected a type of 1 to 6, found %d", (unsigned)i, (int)row->type);
        if (row->type == NORMAL && !decode_text(t, row, byte_of_code))
            return FAIL(error, "token %u: expected characters that stand for bytes, found '%.*s'",
                        (unsigned)i, shown, text.bytes);
        if (row->type == CONTROL || row->type == USER_DEFINED || row->type == UNKNOWN) {
            memcpy(t->bytes + row->bytes, text.bytes, text.size);
            row->bytes_count = row->text_bytes;
        }
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        unsigned char text[4];
        t->byte_tokens[byte] = find_text(t, (char *)text, write_utf8(code_of_byte(byte), text));
    }
    return true;
}

static bool read_merges(tokenizer *t, const gguf_file *file, gguf_error *error)
{
    gguf_array merges;
    if (!gguf_get_strings(file, "tokenizer.ggml.merges", &merges, error))
        return false;
    if (merges.count > MOST_TOKENS)
        return FAIL(error, "key 'tokenizer.ggml.merges': expected at most %d, found %llu", MOST_TOKENS,
                    (unsigned long long)merges.count);
    t->merge_mask = mask_for(merges.count);
    t->merge_slots = malloc(((size_t)t->merge_mask + 1) * sizeof *t->merge_slots);
    if (!t->merge_slots)
        return FAIL(error, "out of memory for %llu merges", (unsigned long long)merges.count);
    for (size_t i = 0; i <= t->merge_mask; i++)
        t->merge_slots[i] = (merge_row){-1, -1, 0, -1};
    /* the merged token's text: both texts without the space between them */
    char *both = NULL;
    size_t room = 0;
    bool ok = true;
    for (uint32_t rank = 0; ok && merges.count > 0; rank++) {
        gguf_string text = gguf_next_string(&merges);
        if (room < text.size) {
            char *grown = realloc(both, 2 * text.size);
            if (!grown) {
                ok = FAIL(error, "out of memory for merge %u", (unsigned)rank);
                break;
            }
            both = grown;
            room = 2 * text.size;
        }
        const char *space = text.size > 1 ? memchr(text.bytes + 1, ' ', text.size - 1) : NULL;
        size_t left_bytes = space ? (size_t)(space - text.bytes) : 0;
        merge_row row = {-1, -1, rank, -1};
        if (space) {
            size_t right_bytes = text.size - left_bytes - 1;
            memcpy(both, text.bytes, left_bytes);
            memcpy(both + left_bytes, space + 1, right_bytes);
            row.left = find_text(t, both, left_bytes);
            row.right = find_text(t, both + left_bytes, right_bytes);
            row.product = find_text(t, both, left_bytes + right_bytes);
        }
        if (row.left < 0 || row.right < 0 || row.product < 0) {
            ok = FAIL(
                error,
                "merge %u: expected the texts of two tokens whose joint text is a token too, found '%.*s'",
                (unsigned)rank, text.size < 60 ? (int)text.size : 60, text.bytes);
            break;
        }
        merge_row *slot = merge_slot(t, row.left, row.right);
        if (slot->left < 0) /* of two equal merges the first counts, as in llama.cpp */
            *slot = row;
    }
    free(both);
    return ok;
}

static bool is_special(const token_row *row)
{
    return row->type == CONTROL || row->type == USER_DEFINED || row->type == UNKNOWN;
}

/* Sorted by insertion: special tokens are few, and those of equal length keep their order. */
static bool list_specials(tokenizer *t, gguf_error *error)
{
    enum { MOST_SPECIALS = 4096 };
    for (uint32_t i = 0; i < t->count; i++)
        t->special_count += is_special(&t->tokens[i]) && t->tokens[i].text_bytes > 0;
    if (t->special_count > MOST_SPECIALS)
        return FAIL(error, "key 'tokenizer.ggml.token_type': expected at most %d special tokens, found %u",
                    MOST_SPECIALS, (unsigned)t->special_count);
    t->specials = calloc((size_t)t->special_count + 1, sizeof *t->specials);
    if (!t->specials)
        return FAIL(error, "out of memory for %u special tokens", (unsigned)t->special_count);
    uint32_t listed = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        if (!is_special(&t->tokens[i]) || t->tokens[i].text_bytes == 0)
            continue;
        uint32_t place = listed++;
        for (; place > 0 && t->tokens[t->specials[place - 1]].text_bytes < t->tokens[i].text_bytes; place--)
            t->specials[place] = t->specials[place - 1];
        t->specials[place] = (int32_t)i;
    }
    return true;
}

/* Returns the token that a key names, or -1 if the key is absent. */
static bool get_token(const tokenizer *t, const gguf_file *file, const char *key, int32_t *token,
                      gguf_error *error)
{
    uint32_t number;
    *token = -1;
    if (!gguf_has(file, key))
        return true;
    if (!gguf_get_u32(file, key, &number, error))
        return false;
    if (number >= t->count)
        return FAIL(error, "key '%s': expected a token below %u, found %u", key, (unsigned)t->count,
                    (unsigned)number);
    *token = (int32_t)number;
    return true;
}

static bool find_ends(tokenizer *t, const gguf_file *file, gguf_error *error)
{
    int32_t token;
    for (size_t i = 0; i < END_KEYS; i++) {
        if (!get_token(t, file, end_keys[i], &token, error))
            return false;
        if (token >= 0)
            t->ends[t->end_count++] = token;
    }
    for (size_t i = 0; i < END_TEXTS; i++) {
        token = tokenizer_find(t, end_texts[i]);
        if (token >= 0 && is_special(&t->tokens[token]))
            t->ends[t->end_count++] = token;
    }
    return true;
}

static bool find_added(tokenizer *t, const gguf_file *file, gguf_error *error)
{
    const struct {
        const char *add, *id;
        int32_t *token;
    } rows[] = {{"tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id", &t->bos},
                {"tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id", &t->eos}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool add = false;
        if (!get_token(t, file, rows[i].id, rows[i].token, error) ||
            (gguf_has(file, rows[i].add) && !gguf_get_bool(file, rows[i].add, &add, error)))
            return false;
        if (add && *rows[i].token < 0)
            return FAIL(error, "key '%s': expected one beside '%s', which is true, found no such key",
                        rows[i].id, rows[i].add);
        if (!add)
            *rows[i].token = -1;
    }
    return true;
}

int32_t tokenizer_find(const tokenizer *t, const char *text)
{
    return find_text(t, text, strlen(text));
}

bool tokenizer_is_end(const tokenizer *t, int32_t token)
{
    for (uint32_t i = 0; i < t->end_count; i++)
        if (t->ends[i] == token)
            return true;
    return false;
}

const char *tokenizer_bytes(const tokenizer *t, int32_t token, bool special, size_t *bytes)
{
    const token_row *row = token >= 0 && (uint32_t)token < t->count ? &t->tokens[token] : NULL;
    bool shown = row && (special || (row->type != CONTROL && row->type != UNKNOWN));
    *bytes = shown ? row->bytes_count : 0;
    return shown ? t->bytes + row->bytes : "";
}

/* ---- Words: GPT-2's pattern, each number by itself ----
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * As in llama.cpp, numbers are split off first, and a number ends the text before it. So the last of several spaces begins
 * a word before a letter, but not before a digit. */

typedef enum { END, LETTER, SPACE, OTHER, NUMBER } class;

static bool is_in(const unicode_range *ranges, size_t count, uint32_t code)
{
    size_t from = 0, to = count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (code < ranges[middle].first)
            to = middle;
        else if (code > ranges[middle].last)
            from = middle + 1;
        else
            return true;
    }
    return false;
}

static class class_of(uint32_t code)
{
    if (code == ' ' || (code >= '\t' && code <= '\r') || code == 0x85 || code == 0xa0 || code == 0x1680 ||
        (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f ||
        code == 0x205f || code == 0x3000)
        return SPACE;
    if (is_in(unicode_letters, unicode_count_of_letters, code))
        return LETTER;
    return is_in(unicode_numbers, unicode_count_of_numbers, code) ? NUMBER : OTHER;
}

/* Returns the class of the character at `at`, the character, and the start of the next one. */
static class class_at(const char *text, size_t end, size_t at, uint32_t *code, size_t *next)
{
    *next = at;
    *code = at < end ? next_code(text, end, next) : 0;
    return at < end ? class_of(*code) : END;
}

/* Returns the end of 's 't 'm 'd 're 've 'll whose apostrophe is before `at`; 0 if there is no such suffix. */
static size_t contraction_end(const char *text, size_t at, size_t end)
{
    uint32_t first, second;
    size_t next, after;
    class_at(text, end, at, &first, &next);
    class_at(text, end, next, &second, &after);
    if (first == 's' || first == 't' || first == 'm' || first == 'd')
        return next;
    return (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                   (first == 'l' && second == 'l')
               ? after
               : 0;
}

/* Returns the end of the word that begins at `at`; at < end. */
static size_t word_end(const char *text, size_t at, size_t end)
{
    uint32_t code, unused;
    size_t next, after;
    class first = class_at(text, end, at, &code, &next);
    if (first == NUMBER)
        return next;
    if (code == '\'' && contraction_end(text, next, end))
        return contraction_end(text, next, end);
    if (code == ' ') {
        class second = class_at(text, end, next, &unused, &after);
        if (second == LETTER || second == OTHER) {
            first = second;
            next = after;
        }
    }
    size_t last = at; /* start of the run's last character */
    class following;
    while ((following = class_at(text, end, next, &unused, &after)) == first) {
        last = next;
        next = after;
    }
    return first == SPACE && last > at && (following == LETTER || following == OTHER) ? last : next;
}

/* ---- Merges ---- */

typedef struct symbol {
    int32_t token; /* -1: a byte that the vocabulary lacks */
    int32_t previous, next;
} symbol;

typedef struct pair {
    uint32_t rank;
    int32_t left, left_token, right_token, product; /* left: a symbol */
} pair;

/* The memory for encoding, which grows to the longest word. */
typedef struct work {
    const tokenizer *t;
    symbol *symbols;
    pair *heap; /* lowest rank first; among equal ranks the leftmost */
    size_t room, heap_count;
    int32_t *tokens;
    size_t token_count;
} work;

static bool is_before(const pair *a, const pair *b)
{
    return a->rank < b->rank || (a->rank == b->rank && a->left < b->left);
}

static void push_pair(work *w, int32_t left)
{
    int32_t right = left < 0 ? -1 : w->symbols[left].next;
    if (right < 0 || w->symbols[left].token < 0 || w->symbols[right].token < 0)
        return;
    const merge_row *merge = merge_slot(w->t, w->symbols[left].token, w->symbols[right].token);
    if (merge->left < 0)
        return;
    pair added = {merge->rank, left, merge->left, merge->right, merge->product};
    size_t at = w->heap_count++;
    for (; at > 0 && is_before(&added, &w->heap[(at - 1) / 2]); at = (at - 1) / 2)
        w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = added;
}

static pair pop_pair(work *w)
{
    pair least = w->heap[0], last = w->heap[--w->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < w->heap_count; at = child) {
        child += child + 1 < w->heap_count && is_before(&w->heap[child + 1], &w->heap[child]);
        if (!is_before(&w->heap[child], &last))
            break;
        w->heap[at] = w->heap[child];
    }
    w->heap[at] = last;
    return least;
}

static bool reserve(work *w, size_t symbols)
{
    if (symbols <= w->room)
        return true;
    /* Each merge removes one pair and adds up to two, so there are at most two pairs per symbol. */
    free(w->symbols);
    free(w->heap);
    w->room = 2 * symbols;
    w->symbols = malloc(w->room * sizeof *w->symbols);
    w->heap = malloc(2 * w->room * sizeof *w->heap);
    return w->symbols && w->heap;
}

static bool encode_word(work *w, const char *text, size_t at, size_t end)
{
    if (!reserve(w, 3 * (end - at)))
        return false;
    int32_t count = 0;
    while (at < end) {
        unsigned char bytes[4];
        unsigned byte_count = write_utf8(next_code(text, end, &at), bytes);
        for (unsigned i = 0; i < byte_count; i++, count++)
            w->symbols[count] = (symbol){w->t->byte_tokens[bytes[i]], count - 1, count + 1};
    }
    w->symbols[count - 1].next = -1;
    w->heap_count = 0;
    for (int32_t i = 0; i < count; i++)
        push_pair(w, i);
    while (w->heap_count > 0) {
        pair merge = pop_pair(w);
        symbol *left = &w->symbols[merge.left];
        symbol *right = left->next < 0 ? NULL : &w->symbols[left->next];
        /* Symbols only grow: a symbol with the same token has not been merged since. */
        if (!right || left->token != merge.left_token || right->token != merge.right_token)
            continue;
        left->token = merge.product;
        left->next = right->next;
        right->token = -1;
        if (left->next >= 0)
            w->symbols[left->next].previous = merge.left;
        push_pair(w, left->previous);
        push_pair(w, merge.left);
    }
    for (int32_t i = 0; i >= 0; i = w->symbols[i].next)
        if (w->symbols[i].token >= 0)
            w->tokens[w->token_count++] = w->symbols[i].token;
    return true;
}

/* ---- Texts ---- */

/* Marks the special tokens of the text: marks[i] is 1 + the token that begins at byte i, -1 inside a token, 0 elsewhere.
 * Searches the whole text for the longest token first. */
static void mark_specials(const tokenizer *t, const char *text, size_t bytes, int32_t *marks)
{
    for (uint32_t k = 0; k < t->special_count; k++) {
        const token_row *row = &t->tokens[t->specials[k]];
        const char *wanted = t->texts + row->text;
        for (size_t i = 0; i + row->text_bytes <= bytes;) {
            const char *found = memchr(text + i, wanted[0], bytes - row->text_bytes + 1 - i);
            if (!found)
                break;
            i = (size_t)(found - text);
            bool is_free = memcmp(found, wanted, row->text_bytes) == 0;
            for (uint32_t j = 0; is_free && j < row->text_bytes; j++)
                is_free = marks[i + j] == 0;
            if (!is_free) {
                i++;
                continue;
            }
            for (uint32_t j = 0; j < row->text_bytes; j++)
                marks[i + j] = -1;
            marks[i] = t->specials[k] + 1;
            i += row->text_bytes;
        }
    }
}

bool tokenizer_encode(const tokenizer *t, const char *text, size_t bytes, int32_t *tokens, size_t *count,
                      gguf_error *error)
{
    work w = {.t = t, .tokens = tokens};
    if (bytes > MOST_TEXT_BYTES)
        return FAIL(error, "text: expected at most %d bytes, found %zu", MOST_TEXT_BYTES, bytes);
    int32_t *marks = calloc(bytes + 1, sizeof *marks);
    bool ok = marks != NULL;
    if (ok)
        mark_specials(t, text, bytes, marks);
    if (t->bos >= 0)
        tokens[w.token_count++] = t->bos;
    for (size_t at = 0, end; ok && at < bytes; at = end) {
        if (marks[at] > 0) {
            tokens[w.token_count++] = marks[at] - 1;
            end = at + t->tokens[marks[at] - 1].text_bytes;
            continue;
        }
        for (end = at; end < bytes && marks[end] == 0;)
            end++;
        for (size_t word = at, next; ok && word < end; word = next) {
            next = word_end(text, word, end);
            ok = encode_word(&w, text, word, next);
        }
    }
    if (t->eos >= 0)
        tokens[w.token_count++] = t->eos;
    free(marks);
    free(w.symbols);
    free(w.heap);
    *count = w.token_count;
    return ok || FAIL(error, "out of memory for a text of %zu bytes", bytes);
}
