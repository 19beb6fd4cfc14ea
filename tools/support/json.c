/* Writes JSON. */
#include "json.h"

#include <stdarg.h>
#include <string.h>

#include "utf8.h"

void json_string(FILE *out, const char *text)
{
    size_t length;
    if (!text) {
        fputs("null", out);
        return;
    }
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

void json_print(FILE *out, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    for (char directive[16]; *format; format++) {
        if (*format != '%') {
            fputc(*format, out);
            continue;
        }
        const size_t length = strcspn(format, "scdufg");
        snprintf(directive, sizeof directive, "%.*s", (int)length + 1, format);
        format += length;
        if (*format == 's')
            json_string(out, va_arg(list, const char *));
        else if (*format == 'c')
            fputs(va_arg(list, int) ? "true" : "false", out);
        else if (*format == 'f' || *format == 'g')
            fprintf(out, directive, va_arg(list, double));
        else if (strstr(directive, "ll"))
            fprintf(out, directive, va_arg(list, long long));
        else if (strchr(directive, 'l'))
            fprintf(out, directive, va_arg(list, long));
        else if (strchr(directive, 'z'))
            fprintf(out, directive, va_arg(list, size_t));
        else
            fprintf(out, directive, va_arg(list, int));
    }
    va_end(list);
}
