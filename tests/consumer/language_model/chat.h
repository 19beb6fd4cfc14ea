/* Wraps a question as a model's own chat template does.
 * A template is a program in the model file (Jinja); here each is known by its exact text, by its length and FNV-1a hash. */
#ifndef CHAT_H
#define CHAT_H

#include "gguf.h"

typedef struct chat_template {
    const char *name;
    const char *before, *after; /* of the user's text, with special tokens by their texts */
    const char *end; /* the text of the token that ends an answer, besides those of tokenizer_is_end */
} chat_template;

/* The template of tokenizer.chat_template; NULL where the file has none or one that is not known, which is an error that
 * names --prompt. */
const chat_template *chat_find(const gguf_file *file, gguf_error *error);

/* `prompt` with what comes before and after, to be freed. NULL: out of memory. Texts of special tokens in `prompt` become
 * such tokens, as in llama.cpp. */
char *chat_wrap(const chat_template *template, const char *prompt);

#endif
