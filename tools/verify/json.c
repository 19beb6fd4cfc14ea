/* JSON, as far as the reports need it. */
#include "json.h"

static void write_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(out, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

void json_member(FILE *out, const char *name, const char *text)
{
    fprintf(out, "\"%s\": ", name);
    write_string(out, text);
}
