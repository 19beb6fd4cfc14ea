/* Text to tokens and back, for GGUF files with tokenizer.ggml.model = gpt2 (byte-level BPE) and tokenizer.ggml.pre = smollm.
 * Gives the tokens that llama.cpp gives. Any other tokenizer is refused by name.
 *
 * A tokenizer does not change after it is opened, so threads may share it. It copies its data: the file may be closed.
 */
#ifndef TOKENIZER_H
#define TOKENIZER_H

#include "gguf.h"

typedef struct tokenizer tokenizer;

/* Returns NULL on error. Reads tokenizer.ggml.{model,pre,tokens,token_type,merges,*_token_id,add_bos_token,add_eos_token}. */
tokenizer *tokenizer_open(const gguf_file *file, gguf_error *error);
void tokenizer_close(tokenizer *tokenizer);

/* Returns the number of tokens, which are numbered from 0. */
uint32_t tokenizer_size(const tokenizer *tokenizer);

/* The most tokens of a text with this many bytes: three for each invalid byte, and BOS and EOS. */
#define TOKENIZER_MOST_TOKENS(text_bytes) (3 * (size_t)(text_bytes) + 2)

/* Encodes `text`; invalid UTF-8 becomes U+FFFD. The texts of control and user-defined tokens (<|im_start|>) become those
 * tokens anywhere in the text. BOS and EOS are added if the file says so. `tokens` has room for
 * TOKENIZER_MOST_TOKENS(bytes). The only error is running out of memory. */
bool tokenizer_encode(const tokenizer *tokenizer, const char *text, size_t bytes, int32_t *tokens,
                      size_t *count, gguf_error *error);

/* Returns the bytes of a token; a control token has bytes only if `special`. They live as long as the tokenizer and may be
 * part of a character: text_stream joins them. `token` may be any number; outside the vocabulary it has no bytes. */
const char *tokenizer_bytes(const tokenizer *tokenizer, int32_t token, bool special, size_t *bytes);

/* Returns the token with this text in the vocabulary ("<|im_end|>"), or -1. */
int32_t tokenizer_find(const tokenizer *tokenizer, const char *text);

/* Whether generation ends at this token: a key of the file names it, such as eos_token_id, or it is special and its text is
 * in llama.cpp's list. */
bool tokenizer_is_end(const tokenizer *tokenizer, int32_t token);

#endif
