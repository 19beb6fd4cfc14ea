#include "quote.h"

#include <string.h>

#include "diagnostics.h"
#include "words.h"

enum { SHOWN_CHARACTERS = 40, SHOWN_CANDIDATES_BYTES = 200 };

const char *quote_text(arena *a, const char *from)
{
    text t = text_new(a);
    int characters = 0;
    for (const char *c = from; *c; c++) {
        bool begins = ((unsigned char)*c & 0xc0) != 0x80; /* else it continues a UTF-8 sequence */
        characters += begins;
        if (begins && characters > SHOWN_CHARACTERS) {
            text_add(&t, "...");
            break;
        }
        bool control = (unsigned char)*c < 0x20 || *c == 0x7f;
        text_add_bytes(&t, control ? "?" : c, 1);
    }
    return t.data;
}

const char *quote_shell(arena *a, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./,:+@%";
    text out = text_new(a);
    if (*word && !word[strspn(word, plain)])
        return word;
    text_add_char(&out, '\'');
    for (; *word; word++)
        if (*word == '\'')
            text_add(&out, "'\\''");
        else
            text_add_char(&out, *word);
    text_add_char(&out, '\'');
    return out.data;
}

const char *list_text(arena *a, const char *words)
{
    text t = text_new(a);
    size_t length;
    for (const char *w; (w = words_next(&words, &length));) {
        text_add(&t, t.length > 0 ? ", " : "");
        text_add_bytes(&t, w, length);
    }
    return t.data;
}

const char *suggest_text(arena *a, const char *written, const char *candidates)
{
    char buffer[64];
    const char *nearest = nearest_word(written, candidates, buffer, sizeof buffer);
    if (nearest)
        return arena_format(a, "; did you mean '%s'?", nearest);
    if (!*candidates || strlen(candidates) > SHOWN_CANDIDATES_BYTES)
        return "";
    return arena_format(a, "; there %s %s", strchr(candidates, ' ') ? "are" : "is", list_text(a, candidates));
}

/* The names that contain the word, if there are few. */
static const char *containing_text(arena *a, const char *written, const char *candidates)
{
    text t = text_new(a);
    size_t length;
    for (const char *w; strlen(written) >= 3 && (w = words_next(&candidates, &length));) {
        const char *word = arena_string(a, w, length);
        if (strstr(word, written))
            text_printf(&t, "%s%s", t.length > 0 ? ", " : "", word);
    }
    return t.length <= SHOWN_CANDIDATES_BYTES ? t.data : "";
}

const char *suggest_listed_text(arena *a, const char *written, const char *candidates, const char *command)
{
    const char *suggested = suggest_text(a, written, candidates);
    if (*suggested || !*candidates)
        return suggested;
    const char *some = containing_text(a, written, candidates);
    return *some ? arena_format(a, "; there are %s, and others that `%s` lists", some, command)
                 : arena_format(a, "; `%s` lists them", command);
}
