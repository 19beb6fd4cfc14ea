/* The switch of the checks: see check.h. */
#include "check.h"

#include <string.h>

static const struct {
    const char *name;
    unsigned checks;
} names[] = {
    {"memory", EMU_CHECK_MEMORY}, {"init", EMU_CHECK_INIT}, {"race", EMU_CHECK_RACE},
    {"sync", EMU_CHECK_SYNC},     {"all", EMU_CHECK_ALL},   {"none", 0},
};

unsigned emu_checks_from(const char *text, emu_text *bad)
{
    unsigned checks = 0;
    *bad = (emu_text){0};
    if (!text || !*text)
        return EMU_CHECK_MEMORY | EMU_CHECK_SYNC;
    while (*text) {
        emu_text word = {text, strcspn(text, ",")};
        size_t i = 0;
        while (i < sizeof names / sizeof *names && !emu_text_is(word, names[i].name))
            i++;
        if (i == sizeof names / sizeof *names)
            *bad = word;
        else
            checks |= names[i].checks;
        text += word.size + (text[word.size] == ',');
    }
    return checks;
}
