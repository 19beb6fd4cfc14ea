/* JSON, as far as the reports write it. */
#include "json.h"

#include "utf8.h"

void json_string(FILE *out, const char *text)
{
    size_t length;
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at; at += length ? length : 1) {
        length = utf8_length(at);
        if (length == 0)
            fputs(UTF8_REPLACEMENT, out);
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
