/* Tests without a real model: the reader's values and tensors, tokens of a small vocabulary, sampling, the UTF-8 writer, the chat
 * template, and running out of memory at each allocation.
 *
 * usage: tokenizer_test VALID.gguf     a file of gguf_files.py, which it copies to VALID.gguf.cut */
#define _POSIX_C_SOURCE 200809L
#include "chat.h"
#include "sample.h"
#include "text_stream.h"
#include "tokenizer.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *valid, *cut;

/* ---- Out of memory: the linker redirects the tested files' allocations to these ---- */

static long allocations_left = -1; /* -1: all succeed */
static long live;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void __real_free(void *old);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void __wrap_free(void *old);

static bool runs_out(void)
{
    if (allocations_left < 0)
        return false;
    return allocations_left == 0 || allocations_left-- == 0;
}

static void *counted(void *made, bool is_new)
{
    live += made && is_new;
    return made;
}

void *__wrap_malloc(size_t bytes)
{
    return runs_out() ? NULL : counted(__real_malloc(bytes), true);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return runs_out() ? NULL : counted(__real_calloc(count, bytes), true);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return runs_out() ? NULL : counted(__real_realloc(old, bytes), old == NULL);
}

void __wrap_free(void *old)
{
    live -= old != NULL;
    __real_free(old);
}

/* ---- Failing reads: each in turn ---- */

static enum { READS_ERROR, READS_END, READS_INTERRUPTED } read_result;
static long reads_left = -1; /* reads until one returns read_result; -1: all succeed */

ssize_t __real_pread(int descriptor, void *into, size_t bytes, off_t at);
ssize_t __wrap_pread(int descriptor, void *into, size_t bytes, off_t at);

ssize_t __wrap_pread(int descriptor, void *into, size_t bytes, off_t at)
{
    if (reads_left < 0 || reads_left-- > 0)
        return __real_pread(descriptor, into, bytes < 1000 ? bytes : 1000, at);
    errno = read_result == READS_INTERRUPTED ? EINTR : EIO;
    reads_left = read_result == READS_INTERRUPTED ? -1 : 0; /* the other results repeat */
    return read_result == READS_END ? 0 : -1;
}

static void test_reads(void **state)
{
    (void)state;
    static const struct {
        int result;
        const char *header, *tensor; /* messages; NULL: none */
    } rows[] = {
        {READS_ERROR, "byte 1000: expected key 'tokenizer.ggml.tokens', found Input/output error",
         "tensor 'a.weight': expected 72 bytes at byte 5056, found 0: Input/output error"},
        {READS_END,
         "byte 1000: expected key 'tokenizer.ggml.tokens', found that the file was shortened while it was read",
         "tensor 'a.weight': expected 72 bytes at byte 5056, found 0: the file was shortened after it was opened"},
        {READS_INTERRUPTED, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gguf_error error = {{0}};
        reads_left = 1;
        read_result = rows[i].result;
        gguf_file *file = gguf_open(valid, &error);
        assert_string_equal(error.text, rows[i].header ? rows[i].header : "");
        reads_left = -1;
        if (!file)
            file = gguf_open(valid, &error);
        unsigned char bytes[72];
        reads_left = 0;
        read_result = rows[i].result;
        bool ok = gguf_read(file, gguf_find_tensor(file, "a.weight"), 0, bytes, sizeof bytes, &error);
        reads_left = -1;
        assert_int_equal(ok, rows[i].tensor == NULL);
        if (!ok)
            assert_string_equal(error.text, rows[i].tensor);
        gguf_close(file);
    }
}

/* ---- The reader ---- */

static gguf_file *open_valid(void)
{
    gguf_error error = {{0}};
    gguf_file *file = gguf_open(valid, &error);
    assert_string_equal(error.text, "");
    return file;
}

static void test_values(void **state)
{
    (void)state;
    gguf_file *file = open_valid();
    gguf_error error;
    uint32_t u32;
    float f32;
    bool truth;
    gguf_string text;
    gguf_array items;
    assert_true(gguf_has(file, "test.u32"));
    assert_false(gguf_has(file, "test.u3") || gguf_has(file, "test.u322") || gguf_has(file, "zzz") ||
                 gguf_has(file, ""));
    assert_true(gguf_get_u32(file, "test.u32", &u32, &error) && u32 == 70000);
    assert_true(gguf_get_f32(file, "test.f32", &f32, &error) && f32 == 0.5f);
    assert_true(gguf_get_bool(file, "test.bool", &truth, &error) && truth);
    assert_true(gguf_get_string(file, "test.string", &text, &error) && gguf_string_is(text, "na\xc3\xafve"));
    assert_false(gguf_string_is(text, "na") || gguf_string_is(text, "native"));
    assert_true(gguf_get_f32s(file, "test.f32s", &items, &error) && items.count == 2);
    assert_true(gguf_f32_at(items, 0) == 1.5f && gguf_f32_at(items, 1) == -2.0f);
    assert_true(gguf_get_i32s(file, "tokenizer.ggml.token_type", &items, &error) &&
                gguf_i32_at(items, 3) == 4);
    assert_true(gguf_get_strings(file, "test.none", &items, &error) && items.count == 0);
    assert_true(gguf_get_strings(file, "tokenizer.ggml.merges", &items, &error) && items.count == 6);
    assert_true(gguf_string_is(gguf_next_string(&items), "h e") &&
                gguf_string_is(gguf_next_string(&items), "l l"));
    assert_int_equal(items.count, 4);
    gguf_close(file);
}

static void test_shown_values(void **state)
{
    (void)state;
    static const struct {
        const char *key, *shown;
    } rows[] = {
        {"test.bool", "true"},
        {"test.bools", "an array of 2 bool"},
        {"test.f32", "0.5"},
        {"test.f32s", "an array of 2 f32"},
        {"test.f64", "0.25"},
        {"test.i16", "-300"},
        {"test.i32", "-70000"},
        {"test.i64", "-1099511627776"},
        {"test.i8", "-3"},
        {"test.none", "an array of 0 string"},
        {"test.string", "na\xc3\xafve"},
        {"test.u16", "60000"},
        {"test.u32", "70000"},
        {"test.u64", "1099511627776"},
        {"test.u8", "200"},
    };
    gguf_file *file = open_valid();
    uint64_t at = 0;
    char shown[32], cut_to[4];
    while (!gguf_string_is(gguf_key_at(file, at), rows[0].key))
        at++;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++, at++) {
        assert_true(gguf_string_is(gguf_key_at(file, at), rows[i].key));
        gguf_show_value(file, at, shown, sizeof shown);
        assert_string_equal(shown, rows[i].shown);
        gguf_show_value(file, at, cut_to, sizeof cut_to);
        assert_memory_equal(cut_to, shown, strlen(cut_to));
    }
    assert_true(gguf_string_is(gguf_key_at(file, at), "tokenizer.chat_template"));
    gguf_close(file);
}

static void test_wrong_types(void **state)
{
    (void)state;
    gguf_file *file = open_valid();
    gguf_error error;
    uint32_t u32;
    float f32;
    bool truth;
    gguf_string text;
    gguf_array items;
#define REFUSED(call, message)                                                                               \
    do {                                                                                                     \
        assert_false(call);                                                                                  \
        assert_string_equal(error.text, message);                                                            \
    } while (0)
    REFUSED(gguf_get_u32(file, "test.i32", &u32, &error), "key 'test.i32': expected u32, found i32");
    REFUSED(gguf_get_u32(file, "test.u64", &u32, &error), "key 'test.u64': expected u32, found u64");
    REFUSED(gguf_get_u32(file, "none", &u32, &error), "key 'none': expected u32, found no such key");
    REFUSED(gguf_get_f32(file, "test.f64", &f32, &error), "key 'test.f64': expected f32, found f64");
    REFUSED(gguf_get_bool(file, "test.u8", &truth, &error), "key 'test.u8': expected bool, found u8");
    REFUSED(gguf_get_string(file, "test.bools", &text, &error),
            "key 'test.bools': expected string, found an array of bool");
    REFUSED(gguf_get_strings(file, "test.string", &items, &error),
            "key 'test.string': expected an array of string, found string");
    REFUSED(gguf_get_f32s(file, "test.none", &items, &error),
            "key 'test.none': expected an array of f32, found an array of string");
    REFUSED(gguf_get_i32s(file, "no.such", &items, &error),
            "key 'no.such': expected an array of i32, found no such key");
#undef REFUSED
    gguf_close(file);
}

static void test_tensors(void **state)
{
    (void)state;
    gguf_file *file = open_valid();
    gguf_error error = {{0}};
    assert_int_equal(gguf_tensor_count(file), 3);
    assert_string_equal(gguf_tensor_at(file, 0)->name, "a.weight");
    assert_null(gguf_find_tensor(file, "a.weigh"));
    const gguf_tensor *tensor = gguf_find_tensor(file, "b.weight");
    assert_string_equal(tensor->type->name, "Q6_K");
    assert_int_equal(tensor->dim_count, 4);
    assert_true(tensor->dims[0] == 256 && tensor->dims[1] == 1 && tensor->dims[3] == 2);
    assert_int_equal(tensor->bytes, 420);
    assert_int_equal(tensor->offset % 64, 0);
    unsigned char bytes[420];
    assert_true(gguf_read(file, tensor, 20, bytes, 400, &error));
    for (unsigned i = 0; i < 400; i++)
        assert_int_equal(bytes[i], (128 + 20 + i) % 251);
    gguf_close(file);
}

/* Truncating an open file causes an error, not a crash. */
static void test_shortened(void **state)
{
    (void)state;
    FILE *from = fopen(valid, "rb"), *to = fopen(cut, "wb");
    for (int byte; (byte = fgetc(from)) != EOF;)
        fputc(byte, to);
    fclose(from);
    long size = ftell(to);
    fclose(to);
    gguf_error error = {{0}};
    gguf_file *file = gguf_open(cut, &error);
    const gguf_tensor *tensor = gguf_find_tensor(file, "c.bias");
    unsigned char bytes[12];
    assert_true(gguf_read(file, tensor, 0, bytes, 12, &error));
    assert_int_equal(truncate(cut, size - 5), 0);
    assert_false(gguf_read(file, tensor, 0, bytes, 12, &error));
    char expected[sizeof error.text];
    snprintf(
        expected, sizeof expected,
        "tensor 'c.bias': expected 12 bytes at byte %llu, found 7: the file was shortened after it was opened",
        (unsigned long long)tensor->offset);
    assert_string_equal(error.text, expected);
    gguf_close(file);
    remove(cut);
}

/* ---- Tokens ---- */

/* Tokens 0 to 5 are special, byte b has token 6 + b, then come "he", "ll", "hell", "hello" and " hello",
 * then "<|fim_pad|>" and other texts that end a generation where the token is special. */
enum {
    IM_START = 1,
    IM_END,
    TOOL,
    TOOLS,
    UNUSED_TOKEN,
    BYTES,
    HE = BYTES + 255,
    LL,
    HELL,
    HELLO,
    SPACE_HELLO,
    FIM_PAD,      /* control */
    EOT,          /* user-defined */
    TEXT_EOS,     /* normal */
    FIM_PREFIX,   /* control */
    DEEPSEEK_END, /* control */
    COUNT
};

static void test_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int32_t tokens[12]; /* after BOS, up to EOS */
        size_t count;
    } rows[] = {
        {"", {0}, 0},
        {"hello hello", {HELLO, SPACE_HELLO}, 2},
        {"hellllo", {HELL, LL, BYTES + 'o'}, 3},
        {"<|im_start|>he<|im_end|>", {IM_START, HE, IM_END}, 3},
        {"<tool>>he<tool>", {TOOLS, HE, TOOL}, 3},
        {"<|im_end|><|im_end",
         {IM_END, BYTES + '<', BYTES + '|', BYTES + 'i', BYTES + 'm', BYTES + '_', BYTES + 'e', BYTES + 'n',
          BYTES + 'd'},
         9},
        {"<unused>",
         {BYTES + '<', BYTES + 'u', BYTES + 'n', BYTES + 'u', BYTES + 's', BYTES + 'e', BYTES + 'd',
          BYTES + '>'},
         8},
        {"\xc3\xbf", {BYTES + 0xc3, BYTES + 0xbf}, 2},
        {"\xff", {BYTES + 0xef, BYTES + 0xbf, BYTES + 0xbd}, 3},
        {"\xf4\x90\x80\x80",
         {BYTES + 0xef, BYTES + 0xbf, BYTES + 0xbd, BYTES + 0xef, BYTES + 0xbf, BYTES + 0xbd, BYTES + 0xef,
          BYTES + 0xbf, BYTES + 0xbd, BYTES + 0xef, BYTES + 0xbf, BYTES + 0xbd},
         12},
    };
    gguf_file *file = open_valid();
    gguf_error error = {{0}};
    tokenizer *t = tokenizer_open(file, &error);
    gguf_close(file);
    assert_string_equal(error.text, "");
    assert_int_equal(tokenizer_size(t), COUNT);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int32_t tokens[TOKENIZER_MOST_TOKENS(40)];
        size_t count;
        assert_true(tokenizer_encode(t, rows[i].text, strlen(rows[i].text), tokens, &count, &error));
        assert_int_equal(count, rows[i].count + 2);
        assert_int_equal(tokens[0], IM_START);
        assert_int_equal(tokens[count - 1], IM_END);
        assert_memory_equal(tokens + 1, rows[i].tokens, rows[i].count * sizeof *tokens);
    }
    size_t bytes;
    assert_memory_equal(tokenizer_bytes(t, SPACE_HELLO, false, &bytes), " hello", 6);
    assert_int_equal(bytes, 6);
    assert_memory_equal(tokenizer_bytes(t, BYTES + 0xc3, false, &bytes), "\xc3", 1);
    assert_memory_equal(tokenizer_bytes(t, TOOL, false, &bytes), "<tool>", 6);
    assert_memory_equal(tokenizer_bytes(t, IM_END, true, &bytes), "<|im_end|>", 10);
    static const int32_t without_bytes[] = {IM_END, UNUSED_TOKEN, -1, COUNT, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof without_bytes / sizeof *without_bytes; i++) {
        assert_non_null(tokenizer_bytes(t, without_bytes[i], false, &bytes));
        assert_int_equal(bytes, 0);
    }
    assert_int_equal(tokenizer_find(t, "<|im_end|>"), IM_END);
    assert_int_equal(tokenizer_find(t, "<|im_end|"), -1);
    static const int32_t ends[] = {0,       IM_END, TOOLS,
                                   FIM_PAD, EOT,    DEEPSEEK_END}; /* fim_sep_token_id: TOOLS */
    for (int32_t token = -1, end = 0; token <= COUNT; token++) {
        const bool is_end = end < (int32_t)(sizeof ends / sizeof *ends) && token == ends[end];
        end += is_end;
        assert_int_equal(tokenizer_is_end(t, token), is_end);
    }
    assert_false(tokenizer_encode(t, "", (size_t)1 << 29, NULL, &bytes, &error));
    assert_string_equal(error.text, "text: expected at most 268435456 bytes, found 536870912");
    tokenizer_close(t);
}

/* ---- The next token ---- */

enum { LOGITS = 5 };

static void test_best_token(void **state)
{
    (void)state;
    static const struct {
        float logits[LOGITS];
        bool is_chosen;
        uint32_t token;
        uint64_t nan_count;
    } rows[] = {
        {{1, 3, 2, 3, 0}, true, 1, 0},
        {{NAN, 1, 3, NAN, 2}, true, 2, 2},
        {{NAN, NAN, NAN, NAN, -5}, true, 4, 4},
        {{-INFINITY, NAN, -2, -3, -4}, true, 2, 1},
        {{NAN, NAN, NAN, NAN, NAN}, false, 0, 5},
        {{NAN, 1, INFINITY, 0, 0}, false, 0, 1},
        {{-INFINITY, -INFINITY, NAN, -INFINITY, -INFINITY}, false, 0, 1},
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        uint32_t order[LOGITS], token;
        float logits[LOGITS];
        sampler s = {.temperature = (float)(i % 2), .top_k = 1, .top_p = 1, .order = order};
        memcpy(logits, rows[i / 2].logits, sizeof logits);
        assert_int_equal(sample(&s, logits, LOGITS, &token), rows[i / 2].is_chosen);
        assert_int_equal(s.nan_count, rows[i / 2].nan_count);
        if (rows[i / 2].is_chosen)
            assert_int_equal(token, rows[i / 2].token);
    }
}

static void test_drawn_tokens(void **state)
{
    (void)state;
    enum { DRAWS = 10000 };
    static const double odds[LOGITS] = {0, 0.09003057, 0.66524096, 0,
                                        0.24472847}; /* e^1, e^3, e^2 over their sum */
    uint32_t order[LOGITS], token, drawn[LOGITS] = {0};
    sampler s = {.temperature = 1, .top_p = 1, .random = 1, .order = order};
    for (int i = 0; i < DRAWS; i++) {
        float logits[LOGITS] = {NAN, 1, 3, -INFINITY, 2};
        assert_true(sample(&s, logits, LOGITS, &token));
        drawn[token]++;
    }
    assert_int_equal(s.nan_count, DRAWS);
    for (int i = 0; i < LOGITS; i++) { /* four standard deviations */
        const double expected = DRAWS * odds[i], farthest = 4 * sqrt(expected * (1 - odds[i]));
        assert_true(fabs(drawn[i] - expected) <= farthest);
    }
}

/* ---- Memory ---- */

/* Does everything that a program does before its first token, with the n-th allocation failing, for every n. */
static bool prepare(gguf_error *error)
{
    gguf_file *file = gguf_open(valid, error);
    tokenizer *t = file ? tokenizer_open(file, error) : NULL;
    gguf_close(file);
    static const chat_template template = {"test", "<|im_start|>", "<|im_end|>", "<|im_end|>"};
    char *text = t ? chat_wrap(&template, "hello hellllo") : NULL;
    if (t && !text)
        snprintf(error->text, sizeof error->text, "out of memory");
    int32_t tokens[TOKENIZER_MOST_TOKENS(40)];
    size_t count;
    bool ok = text && tokenizer_encode(t, text, strlen(text), tokens, &count, error);
    free(text);
    tokenizer_close(t);
    return ok;
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    long failed = 0;
    bool ok = false;
    while (!ok) {
        gguf_error error = {{0}};
        live = 0;
        allocations_left = failed;
        ok = prepare(&error);
        allocations_left = -1;
        assert_int_equal(live, 0);
        assert_true(ok ? error.text[0] == 0 : strstr(error.text, "out of memory") != NULL);
        failed += !ok;
    }
    assert_true(failed >= 15);
    printf("%ld allocations, each failing once\n", failed);
}

/* ---- The writer ---- */

static void test_stream(void **state)
{
    (void)state;
#define BAD "\xef\xbf\xbd"
    static const struct {
        const char *pieces[6], *written[6]; /* after each piece */
        const char *end;                    /* after the end */
    } rows[] = {
        {{"abc", ""}, {"abc", ""}, ""},
        {{"\xc3", "\xa9"}, {"", "\xc3\xa9"}, ""},
        {{"a\xe2\x82", "\xac"
                       "b"},
         {"a", "\xe2\x82\xac"
               "b"},
         ""},
        {{"\xf0", "\x9f", "\x98", "\x80!"}, {"", "", "", "\xf0\x9f\x98\x80!"}, ""},
        {{"\xf0\x9f\x98"}, {""}, BAD},
        {{"\xf0\x9f", "x"}, {"", BAD "x"}, ""},
        {{"\xc3\xc3", "\xa9"}, {BAD, "\xc3\xa9"}, ""},
        {{"\x80\xff\xc0\xaf"}, {BAD BAD BAD BAD}, ""},
        {{"\xe0\x80", "\xed\xa0\x80"}, {BAD BAD, BAD BAD BAD}, ""},
        {{"\xf4\x90", "\xf0\x8f"}, {BAD BAD, BAD BAD}, ""},
        {{"\xf4\x8f\xbf", "\xbf", "\xed\x9f\xbf"}, {"", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"}, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *written = NULL, expected[64] = "";
        size_t bytes = 0, wanted = 0;
        text_stream stream = {.out = open_memstream(&written, &bytes)};
        for (size_t k = 0; k < 6 && rows[i].pieces[k]; k++) {
            assert_true(text_stream_write(&stream, rows[i].pieces[k], strlen(rows[i].pieces[k])));
            wanted += (size_t)snprintf(expected + wanted, sizeof expected - wanted, "%s", rows[i].written[k]);
            assert_int_equal(bytes, strlen(expected));
            assert_memory_equal(written, expected, bytes);
        }
        snprintf(expected + wanted, sizeof expected - wanted, "%s", rows[i].end);
        assert_true(text_stream_end(&stream) && text_stream_end(&stream));
        assert_string_equal(written, expected);
        fclose(stream.out);
        __real_free(written);
    }
#undef BAD
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        text_stream stream = {.out = full};
        assert_false(text_stream_write(&stream, "x", 1));
        assert_true(text_stream_write(&stream, "\xc3", 1));
        assert_false(text_stream_end(&stream));
        fclose(full);
    }
}

/* ---- The chat template ---- */

static void test_chat(void **state)
{
    (void)state;
    gguf_file *file = open_valid();
    gguf_error error;
    assert_null(chat_find(file, &error));
    assert_string_equal(
        error.text,
        "key 'tokenizer.chat_template': expected that of SmolLM2-Instruct, found another of 13 bytes "
        "(FNV-1a 2f12ddf9f09bcfee); use --prompt without --chat, with the model's special tokens in the text");
    gguf_close(file);
}

int main(int argc, char **argv)
{
    static char path[4096];
    if (argc != 2)
        return 2;
    valid = argv[1];
    snprintf(path, sizeof path, "%s.cut", valid);
    cut = path;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),     cmocka_unit_test(test_wrong_types),
        cmocka_unit_test(test_tensors),    cmocka_unit_test(test_shortened),
        cmocka_unit_test(test_tokens),     cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_stream),     cmocka_unit_test(test_chat),
        cmocka_unit_test(test_best_token), cmocka_unit_test(test_drawn_tokens),
        cmocka_unit_test(test_reads),      cmocka_unit_test(test_shown_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
