/* Reads options with getopt_long. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "distance.h"

enum { MOST_OPTIONS = 64, FIRST_CODE = 1000 };

/* Returns the option as "--json", or as "-o" if it has a letter. */
static const char *spelled(const option_row *row, char text[64])
{
    if (row->letter)
        snprintf(text, 64, "-%c", row->letter);
    else
        snprintf(text, 64, "--%s", row->name);
    return text;
}

bool option_refuse(const option_table *t, const option_row *row, const char *text, const char *why)
{
    char name[64];
    fprintf(stderr, "%s: %s: '%s' %s\n", t->program, spelled(row, name), text, why);
    return false;
}

int number_base(const char *text)
{
    return strncmp(text, "0x", 2) == 0 ? 16 : 10;
}

bool option_number(const option_table *t, const option_row *row, const char *text, uint64_t *value)
{
    char *end, why[96];
    errno = 0;
    *value = strtoull(text, &end, number_base(text));
    if (*text < '0' || *text > '9' || *end || errno)
        return option_refuse(t, row, text, "is no number");
    snprintf(why, sizeof why, "is not from %llu to %llu", (unsigned long long)row->least,
             (unsigned long long)row->most);
    return (*value >= row->least && *value <= row->most) || option_refuse(t, row, text, why);
}

/* Returns the nearest option; null if none is near. */
static const char *nearest(const option_table *t, const char *name)
{
    const char *best = NULL;
    size_t least = strlen(name) / 3 + 1;
    for (size_t i = 0; i < t->count; i++) {
        const size_t distance = text_distance(name, t->rows[i].name, "=");
        if (distance < least) {
            least = distance;
            best = t->rows[i].name;
        }
    }
    return best;
}

/* Reports an option that getopt_long rejected: a letter, or the word before optind. */
static void complain(const option_table *t, int found, const char *word)
{
    const char letter[] = {'-', (char)optopt, '\0'};
    if (optopt > 0 && optopt < FIRST_CODE && word[1] != '-')
        word = letter;
    const char *name = optopt || word == letter ? NULL : nearest(t, word + 2);
    if (found == ':')
        fprintf(stderr, "%s: %s needs a value\n", t->program, word);
    else if (optopt && word != letter)
        fprintf(stderr, "%s: %s: no value is expected\n", t->program, word);
    else if (name)
        fprintf(stderr, "%s: unknown option '%s'; did you mean '--%s'?\n", t->program, word, name);
    else
        fprintf(stderr, "%s: unknown option '%s'; --help lists them\n", t->program, word);
}

/* Stores an option's value. False after a message. */
static bool take(const option_table *t, const option_row *row, void *place, bool is_given)
{
    char name[64];
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)place = true;
        return true;
    case OPTION_NUMBER:
        return option_number(t, row, optarg, place);
    case OPTION_OTHER:
        return row->read(t, row, optarg, place);
    default:
        if (is_given)
            fprintf(stderr, "%s: %s is given twice\n", t->program, spelled(row, name));
        else if (strlen(optarg) < row->least)
            fprintf(stderr, "%s: %s needs a value\n", t->program, spelled(row, name));
        else
            memcpy(place, &optarg, sizeof optarg);
        return !is_given && strlen(optarg) >= row->least;
    }
}

int options_parse(const option_table *t, int argc, char **argv, void *into, uint64_t *given)
{
    struct option rows[MOST_OPTIONS + 1] = {0};
    char letters[2 * MOST_OPTIONS + 2] = ":";
    for (size_t i = 0; i < t->count; i++) {
        const option_row *row = &t->rows[i];
        rows[i] = (struct option){row->name, row->kind != OPTION_FLAG, NULL, FIRST_CODE + (int)i};
        if (row->letter)
            memcpy(letters + strlen(letters), (const char[]){row->letter, ':', '\0'}, 3);
    }
    uint64_t seen = 0;
    opterr = optind = 0;
    for (int found; (found = getopt_long(argc, argv, letters, rows, NULL)) != -1;) {
        size_t i = 0;
        if (found == '?' || found == ':') {
            complain(t, found, argv[optind - 1]);
            return 0;
        }
        while (found != t->rows[i].letter && found != FIRST_CODE + (int)i)
            i++;
        const uint64_t bit = UINT64_C(1) << i;
        if (!take(t, &t->rows[i], (char *)into + t->rows[i].place, seen & bit))
            return 0;
        seen |= bit;
    }
    if (given)
        *given = seen;
    for (int i = optind; i < argc; i++)
        if (!*argv[i]) {
            fprintf(stderr, "%s: an argument is empty\n", t->program);
            return 0;
        }
    if ((size_t)(argc - optind) <= t->most_operands)
        return optind;
    fprintf(stderr, "%s: '%s' is one argument too many\n", t->program,
            argv[(size_t)optind + t->most_operands]);
    return 0;
}
