/* Tokenizes texts for tokenizer_check.py. On standard input, a text is its length in bytes (u32) and the bytes. On standard output
 * its tokens are their number (u32) and the tokens. Both are little-endian.
 *
 * usage: tokenizer_encode MODEL.gguf [chat]     chat: wraps each text in the model's chat template */
#include "chat.h"
#include "tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool encode(const tokenizer *t, const char *text, size_t bytes, gguf_error *error)
{
    int32_t *tokens = malloc(TOKENIZER_MOST_TOKENS(bytes) * sizeof *tokens);
    size_t count = 0;
    bool ok = tokens && tokenizer_encode(t, text, bytes, tokens, &count, error);
    uint32_t written = (uint32_t)count;
    ok = ok && fwrite(&written, sizeof written, 1, stdout) == 1 &&
         fwrite(tokens, sizeof *tokens, count, stdout) == count;
    free(tokens);
    return ok;
}

int main(int argc, char **argv)
{
    gguf_error error = {{0}};
    gguf_file *file = argc == 2 || argc == 3 ? gguf_open(argv[1], &error) : NULL;
    tokenizer *t = file ? tokenizer_open(file, &error) : NULL;
    const chat_template *template = t && argc == 3 ? chat_find(file, &error) : NULL;
    gguf_close(file);
    bool ok = t && (argc == 2 || template);
    uint32_t bytes;
    while (ok && fread(&bytes, sizeof bytes, 1, stdin) == 1) {
        char *text = calloc((size_t)bytes + 1, 1), *wrapped = NULL;
        ok = text && fread(text, 1, bytes, stdin) == bytes;
        if (ok && template)
            ok = (wrapped = chat_wrap(template, text)) && encode(t, wrapped, strlen(wrapped), &error);
        else if (ok)
            ok = encode(t, text, bytes, &error);
        free(text);
        free(wrapped);
    }
    tokenizer_close(t);
    if (!ok)
        fprintf(stderr, "%s: %s\n", argc < 2 ? "usage: tokenizer_encode MODEL.gguf [chat]" : argv[1],
                error.text);
    return !ok;
}
