/* How this program ends when it cannot do what it is asked for. */
#include "profile.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void die(int status, const char *format, ...)
{
    va_list values;
    fputs("kiln-profile: ", stderr);
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputs("\n", stderr);
    exit(status);
}
