/* The templates of chat.h. */
#include "chat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    uint64_t size, hash; /* length and 64-bit FNV-1a hash of tokenizer.chat_template */
    chat_template template;
} known[] = {
    {368,
     0x45ec583d4d25bc3a,
     {"SmolLM2-Instruct",
      "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n<|im_start|>user\n",
      "<|im_end|>\n<|im_start|>assistant\n", "<|im_end|>"}},
};

static uint64_t fnv1a(gguf_string text)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (unsigned char)text.bytes[i]) * 0x100000001b3;
    return hash;
}

const chat_template *chat_find(const gguf_file *file, gguf_error *error)
{
    gguf_string text;
    gguf_error missing;
    if (!gguf_get_string(file, "tokenizer.chat_template", &text, &missing)) {
        snprintf(error->text, sizeof error->text, "%.300s; use --prompt without --chat", missing.text);
        return NULL;
    }
    uint64_t hash = fnv1a(text);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].size == text.size && known[i].hash == hash)
            return &known[i].template;
    snprintf(
        error->text, sizeof error->text,
        "key 'tokenizer.chat_template': expected that of %s, found another of %zu bytes (FNV-1a %016" PRIx64
        "); use --prompt without --chat, with the model's special tokens in the text",
        known[0].template.name, text.size, hash);
    return NULL;
}

char *chat_wrap(const chat_template *template, const char *prompt)
{
    size_t before = strlen(template->before), middle = strlen(prompt), after = strlen(template->after);
    char *text = malloc(before + middle + after + 1);
    if (!text)
        return NULL;
    memcpy(text, template->before, before);
    memcpy(text + before, prompt, middle);
    memcpy(text + before + middle, template->after, after);
    text[before + middle + after] = 0;
    return text;
}
