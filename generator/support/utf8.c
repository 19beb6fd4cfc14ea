/* Checks UTF-8. */
#include "utf8.h"

size_t utf8_sequence(const char *text, size_t bytes)
{
    const unsigned char *s = (const unsigned char *)text;
    static const struct {
        unsigned char first, last, second_low, second_high;
        size_t length;
    } rows[] = {
        {0x01, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        if (s[0] < rows[r].first || s[0] > rows[r].last)
            continue;
        if (bytes < rows[r].length)
            return 0;
        if (rows[r].length > 1 && (s[1] < rows[r].second_low || s[1] > rows[r].second_high))
            return 0;
        for (size_t i = 2; i < rows[r].length; i++)
            if (s[i] < 0x80 || s[i] > 0xbf)
                return 0;
        return rows[r].length;
    }
    return 0;
}
