/* Text to tokens and back, for GGUF files with tokenizer.ggml.model = gpt2 (byte-level BPE) and tokenizer.ggml.pre = smollm.
 * Gives the tokens that llama.cpp gives. Any other tokenizer is refused by name.
 *
 * A tokenizer does not change once it is open: threads may share it. It copies what it needs, the file may be closed.
 */
#ifndef TOKENIZER_H
#define TOKENIZER_H

#include "gguf.h"

typedef struct tokenizer tokenizer;

/* NULL on error. Reads tokenizer.ggml.{model,pre,tokens,token_type,merges,*_token_id,add_bos_token,add_eos_token}. */
tokenizer *tokenizer_open(const gguf_file *file, gguf_error *error);
void tokenizer_close(tokenizer *tokenizer);

/* Tokens have the numbers 0 to this - 1. */
uint32_t tokenizer_size(const tokenizer *tokenizer);

/* At most this many tokens come from a text of this many bytes: the tokens of three bytes for each invalid one, and BOS and EOS. */
#define TOKENIZER_MOST_TOKENS(text_bytes) (3 * (size_t)(text_bytes) + 2)

/* The tokens of `text`, which need not be valid UTF-8: what is not becomes U+FFFD. The texts of control and user-defined
 * tokens (<|im_start|>) become those tokens, wherever they stand. BOS and EOS are added where the file says so.
 * `tokens` has room for TOKENIZER_MOST_TOKENS(bytes). The one error is that memory for the work ran out. */
bool tokenizer_encode(const tokenizer *tokenizer, const char *text, size_t bytes, int32_t *tokens,
                      size_t *count, gguf_error *error);

/* The bytes that a token stands for: of a control token none, unless `special`. They live as long as the tokenizer and may
 * be a part of a character: text_stream puts it together. `token` is any number; outside the vocabulary there are no bytes. */
const char *tokenizer_bytes(const tokenizer *tokenizer, int32_t token, bool special, size_t *bytes);

/* The token whose text in the vocabulary this is ("<|im_end|>"), or -1. */
int32_t tokenizer_find(const tokenizer *tokenizer, const char *text);

/* Generation ends at this token: the file names it in a key, such as eos_token_id, or it is special and llama.cpp knows its
 * text as an end. */
bool tokenizer_is_end(const tokenizer *tokenizer, int32_t token);

#endif
