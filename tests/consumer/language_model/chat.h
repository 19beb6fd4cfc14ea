/* Wraps a question as the model's chat template does.
 * A template is a Jinja program in the model file. This program recognises known templates by length and FNV-1a hash. */
#ifndef CHAT_H
#define CHAT_H

#include "gguf.h"

typedef struct chat_template {
    const char *name;
    const char *before, *after; /* texts around the user's text, with special tokens as text */
    const char *end;            /* text of the token that ends an answer, in addition to tokenizer_is_end */
} chat_template;

/* Returns the template of tokenizer.chat_template. NULL if the file has no template or an unknown one; the error message
 * names --prompt. */
const chat_template *chat_find(const gguf_file *file, gguf_error *error);

/* Returns `prompt` with the texts before and after it; the caller frees it. NULL if out of memory. Special tokens written
 * as text in `prompt` become special tokens, as in llama.cpp. */
char *chat_wrap(const chat_template *template, const char *prompt);

#endif
