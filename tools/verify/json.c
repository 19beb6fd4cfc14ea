/* JSON, as far as the reports write it. */
#include "json.h"

#include <stddef.h>

/* The bytes of the UTF-8 sequence that begins here; 0: none does. What is too long, or no code point, passes. */
static size_t sequence_length(const unsigned char *at)
{
    const size_t length = *at < 0x80   ? 1
                          : *at < 0xc2 ? 0
                          : *at < 0xe0 ? 2
                          : *at < 0xf0 ? 3
                          : *at < 0xf5 ? 4
                                       : 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

void json_string(FILE *out, const char *text)
{
    size_t length;
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at; at += length ? length : 1) {
        length = sequence_length(at);
        if (length == 0)
            fputs("\xef\xbf\xbd", out);
        else if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (*at < 0x20)
            fprintf(out, "\\u%04x", (unsigned)*at);
        else
            fwrite(at, 1, length, out);
    }
    fputc('"', out);
}

void json_member(FILE *out, const char *name, const char *text)
{
    fprintf(out, "\"%s\": ", name);
    json_string(out, text);
}
