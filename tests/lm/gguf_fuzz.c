/* Fuzzes the GGUF reader with arbitrary bytes: it refuses the file, or its contents can be used. */
#define _GNU_SOURCE
#include "chat.h"
#include "replay.h"
#include "tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

/* Checks the reader's promises; sanitizers check that the addresses are valid. */
static void use_tensors(const gguf_file *file, size_t file_bytes)
{
    gguf_error error;
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const gguf_tensor *tensor = gguf_tensor_at(file, i);
        unsigned char *bytes = malloc((size_t)tensor->bytes);
        if (tensor->offset + tensor->bytes > file_bytes || gguf_find_tensor(file, tensor->name) != tensor ||
            !bytes || !gguf_read(file, tensor, 0, bytes, (size_t)tensor->bytes, &error))
            abort();
        free(bytes);
    }
}

/* Reads keys of each type, which the seed files have. Returns a sum, so that the compiler keeps the reads. */
static unsigned use_keys(const gguf_file *file)
{
    static const char *const keys[] = {"test.u32",    "test.f32",          "test.bool",
                                       "test.string", "test.f32s",         "test.none",
                                       "test.i32",    "general.alignment", "tokenizer.ggml.token_type"};
    gguf_error error;
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        uint32_t u32;
        float f32;
        bool truth;
        gguf_string text;
        gguf_array items;
        sum += gguf_get_u32(file, keys[i], &u32, &error) ? u32 : 0;
        sum += gguf_get_f32(file, keys[i], &f32, &error) && f32 > 0;
        sum += gguf_get_bool(file, keys[i], &truth, &error) && truth;
        if (gguf_get_string(file, keys[i], &text, &error))
            for (size_t k = 0; k < text.size; k++)
                sum += (unsigned char)text.bytes[k];
        if (gguf_get_strings(file, keys[i], &items, &error))
            while (items.count > 0)
                sum += (unsigned)gguf_next_string(&items).size;
        if (gguf_get_f32s(file, keys[i], &items, &error) && items.count > 0)
            sum += gguf_f32_at(items, items.count - 1) > 0;
        if (gguf_get_i32s(file, keys[i], &items, &error) && items.count > 0)
            sum += (unsigned)gguf_i32_at(items, items.count - 1);
        sum += !gguf_has(file, keys[i]);
    }
    return sum;
}

static void show_keys(const gguf_file *file)
{
    char shown[16];
    for (uint64_t i = 0; i < gguf_key_count(file); i++) {
        if (gguf_key_at(file, i).size == 0)
            abort();
        gguf_show_value(file, i, shown, sizeof shown);
        for (const char *c = shown; *c; c++)
            if ((unsigned char)*c < ' ')
                abort();
    }
}

static volatile unsigned used;

static void use_tokenizer(const gguf_file *file, const uint8_t *data, size_t bytes)
{
    gguf_error error;
    tokenizer *t = tokenizer_open(file, &error);
    if (!t)
        return;
    /* Tokenizes the file itself as text. */
    int32_t *tokens = malloc(TOKENIZER_MOST_TOKENS(bytes) * sizeof *tokens);
    size_t count, total = 0, token_bytes;
    if (!tokens || !tokenizer_encode(t, (const char *)data, bytes, tokens, &count, &error) ||
        count > TOKENIZER_MOST_TOKENS(bytes))
        abort();
    for (size_t i = 0; i < count; i++) {
        const char *text = tokenizer_bytes(t, tokens[i], true, &token_bytes);
        for (size_t k = 0; k < token_bytes; k++)
            total += (unsigned char)text[k];
    }
    /* At most the text with three bytes for each invalid byte, and BOS and EOS. */
    if (total > 255 * (3 * bytes + 2 * bytes))
        abort();
    free(tokens);
    tokenizer_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char path[64];
    int descriptor = memfd_create("model", MFD_CLOEXEC);
    if (descriptor < 0 || write(descriptor, data, bytes) != (ssize_t)bytes)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    gguf_error error = {{0}};
    gguf_file *file = gguf_open(path, &error);
    if (file) {
        use_tensors(file, bytes);
        used = use_keys(file);
        show_keys(file);
        use_tokenizer(file, data, bytes);
        if (chat_find(file, &error) && bytes < 368)
            abort();
        gguf_close(file);
    } else if (error.text[0] == 0) {
        abort();
    }
    close(descriptor);
    return 0;
}
