/* Checks UTF-8. */
#include "utf8.h"

size_t utf8_length(const unsigned char *at)
{
    /* First bytes up to `last` begin sequences of this length, with second bytes in this range. */
    static const struct {
        unsigned char last, length, least, most;
    } rows[] = {{0x7f, 1, 0, 0},       {0xc1, 0, 0, 0},       {0xdf, 2, 0x80, 0xbf}, {0xe0, 3, 0xa0, 0xbf},
                {0xec, 3, 0x80, 0xbf}, {0xed, 3, 0x80, 0x9f}, {0xef, 3, 0x80, 0xbf}, {0xf0, 4, 0x90, 0xbf},
                {0xf3, 4, 0x80, 0xbf}, {0xf4, 4, 0x80, 0x8f}, {0xff, 0, 0, 0}};
    size_t row = 0;
    while (*at > rows[row].last)
        row++;
    const size_t length = rows[row].length;
    if (length > 1 && (at[1] < rows[row].least || at[1] > rows[row].most))
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    return length;
}
