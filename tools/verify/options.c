/* The command line of kiln-verify. */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every element is also kept and computed on the host. */
#define MOST_BIG (UINT64_C(1) << 32)

enum { DEFAULT_SEED = 1, DEFAULT_ELEMENTS = 1 << 18, DEFAULT_PROBLEMS = 400, FULL_PROBLEMS = 5000 };

void options_print_help(void)
{
    fputs("usage: kiln-verify [OPTION]...\n"
          "Runs every kernel of a bundle at the sizes around its edges, on inputs that hurt, and compares "
          "what comes out\n"
          "with a float64 reference.\n"
          "\n"
          "  --list              print the variants and whether they have a reference, and run nothing\n"
          "  --filter TEXT       only variants whose id contains TEXT\n"
          "  --driver PATH       this driver library (default: libcuda.so.1)\n"
          "  --device N          the driver's N-th device (default: 0)\n"
          "  --seed N            of the random inputs (default: 1)\n"
          "  --max-elements N    skip problems with more elements in all buffers together (default: 262144)\n"
          "  --big N             one more size near N, whatever --max-elements says\n"
          "  --full              every input at every size, and more sizes\n"
          "  --data FILE         raw little-endian float32 numbers of a real model, as one more input\n"
          "  --json FILE         write the results as JSON too; - is standard output\n"
          "  --help              print this\n"
          "\n"
          "Exit status: 0 all right, 1 something is wrong, 2 bad usage, 77 no driver or device to run on,\n"
          "unless --driver or --device asked for one: that is 1.\n",
          stdout);
}

static bool read_number(const char *option, const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 0);
    if (*text >= '0' && *text <= '9' && !*end && !errno)
        return true;
    fprintf(stderr, "kiln-verify: %s: '%s' is no number\n", option, text);
    return false;
}

/* Options with a value. */
static bool read_value(options *o, const char *option, const char *value, bool *known)
{
    uint64_t number;
    *known = true;
    if (strcmp(option, "--filter") == 0)
        o->filter = value;
    else if (strcmp(option, "--driver") == 0)
        o->driver = value;
    else if (strcmp(option, "--json") == 0)
        o->json = value;
    else if (strcmp(option, "--data") == 0)
        o->data = value;
    else if (strcmp(option, "--seed") == 0)
        return read_number(option, value, &o->run.seed);
    else if (strcmp(option, "--max-elements") == 0)
        return read_number(option, value, &o->run.limits.max_elements);
    else if (strcmp(option, "--big") == 0) {
        if (!read_number(option, value, &o->run.limits.big))
            return false;
        if (o->run.limits.big <= MOST_BIG)
            return true;
        fprintf(stderr, "kiln-verify: --big %s: at most %llu\n", value, (unsigned long long)MOST_BIG);
        return false;
    } else if (strcmp(option, "--device") == 0) {
        if (!read_number(option, value, &number))
            return false;
        o->device = (int)(number & 0xffff);
    } else {
        *known = false;
    }
    return true;
}

static bool read_flag(options *o, const char *option)
{
    if (strcmp(option, "--list") == 0)
        o->is_listing = true;
    else if (strcmp(option, "--full") == 0)
        o->run.is_full = true;
    else if (strcmp(option, "--help") == 0)
        o->wants_help = true;
    else
        return false;
    return true;
}

bool options_read(options *o, int argc, char **argv)
{
    *o = (options){.run = {.seed = DEFAULT_SEED, .limits = {DEFAULT_ELEMENTS, DEFAULT_PROBLEMS, 0}}};
    for (int i = 1; i < argc; i++) {
        bool known = false;
        if (read_flag(o, argv[i]))
            continue;
        if (!read_value(o, argv[i], i + 1 < argc ? argv[i + 1] : "", &known))
            return false;
        if (!known) {
            fprintf(stderr, "kiln-verify: unknown option '%s'; --help lists them\n", argv[i]);
            return false;
        }
        if (++i == argc) {
            fprintf(stderr, "kiln-verify: %s needs a value\n", argv[i - 1]);
            return false;
        }
    }
    if (o->run.is_full)
        o->run.limits.max_problems = FULL_PROBLEMS;
    return true;
}
