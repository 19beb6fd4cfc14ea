/* The tokens of texts, for tokenizer.py: on standard input a text is a u32 of its bytes and these; on standard output its
 * tokens are a u32 of their number and these, little endian both.
 *
 * usage: tokenizer_encode MODEL.gguf */
#include "tokenizer.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    gguf_error error = {{0}};
    gguf_file *file = argc == 2 ? gguf_open(argv[1], &error) : NULL;
    tokenizer *t = file ? tokenizer_open(file, &error) : NULL;
    gguf_close(file);
    int failed = t == NULL;
    uint32_t bytes;
    while (!failed && fread(&bytes, sizeof bytes, 1, stdin) == 1) {
        char *text = malloc((size_t)bytes + 1);
        int32_t *tokens = malloc(TOKENIZER_MOST_TOKENS(bytes) * sizeof *tokens);
        size_t count = 0;
        failed = !text || !tokens || fread(text, 1, bytes, stdin) != bytes ||
                 !tokenizer_encode(t, text, bytes, tokens, &count, &error);
        uint32_t written = (uint32_t)count;
        fwrite(&written, sizeof written, 1, stdout);
        if (!failed)
            fwrite(tokens, sizeof *tokens, count, stdout);
        free(text);
        free(tokens);
    }
    tokenizer_close(t);
    if (failed)
        fprintf(stderr, "%s: %s\n", argc == 2 ? argv[1] : "usage: tokenizer_encode MODEL.gguf", error.text);
    return failed;
}
