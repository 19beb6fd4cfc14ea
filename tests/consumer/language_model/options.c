#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: kiln-lm MODEL.gguf --prompt TEXT [-n N] [option ...]\n"
    "  --prompt TEXT    the text that the model continues\n"
    "  -n N             write at most N tokens; at least 1 [128]\n"
    "  --chat           TEXT is a question; put it into the model's chat template\n"
    "  --temperature T  0: always take the likeliest token [0]\n"
    "  --top-k K        draw from the K likeliest tokens; 0: from all [40]\n"
    "  --top-p P        of these, only the likeliest, whose probabilities add up to P [0.95]\n"
    "  --seed S         seed of the draws [0]\n"
    "  --context N      make room for N tokens; 0: for prompt and answer [0]\n"
    "  --driver PATH    the CUDA driver [libcuda.so.1]\n"
    "  --quiet          print only the answer\n"
    "  --bench          print rates and N token ids as JSON instead of the answer\n"
    "  --no-graphs      launch kernels one by one, without CUDA graphs\n";

static bool misused(const char *option, const char *expected, const char *found)
{
    fprintf(stderr, "kiln-lm: %s: expected %s, found %s%s%s\n%s", option, expected, found ? "'" : "",
            found ? found : "nothing", found ? "'" : "", usage);
    return false;
}

static bool read_count(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    char expected[96], *end;
    errno = 0;
    const uint64_t read = text ? strtoull(text, &end, 10) : 0;
    if (text && *text >= '0' && *text <= '9' && !*end && !errno && read >= least && read <= most) {
        *value = read;
        return true;
    }
    snprintf(expected, sizeof expected, "a whole number from %llu to %llu", (unsigned long long)least,
             (unsigned long long)most);
    return misused(option, expected, text);
}

static bool read_u32(const char *option, const char *text, uint32_t least, uint32_t most, uint32_t *value)
{
    uint64_t read;
    if (!read_count(option, text, least, most, &read))
        return false;
    *value = (uint32_t)read;
    return true;
}

static bool read_float(const char *option, const char *text, float most, float *value)
{
    char expected[96], *end;
    const float read = text ? strtof(text, &end) : 0;
    if (text && *text && !*end && read >= 0 && read <= most) {
        *value = read;
        return true;
    }
    snprintf(expected, sizeof expected, "a number from 0 to %g", (double)most);
    return misused(option, expected, text);
}

static bool read_text(const char *option, const char *text, bool may_be_empty, const char **value)
{
    *value = text;
    return (text && (may_be_empty || *text)) || misused(option, "a text", text);
}

/* Reads the option argv[0] with the value argv[1], which is null after the last argument. */
static bool read_option(options *o, char **argv)
{
    const char *name = argv[0], *value = argv[1];
    if (strcmp(name, "--prompt") == 0)
        return read_text(name, value, true, &o->prompt);
    if (strcmp(name, "--driver") == 0)
        return read_text(name, value, false, &o->driver);
    if (strcmp(name, "-n") == 0)
        return read_u32(name, value, 1, 1u << 20, &o->count);
    if (strcmp(name, "--context") == 0)
        return read_u32(name, value, 0, 1u << 24, &o->context);
    if (strcmp(name, "--temperature") == 0)
        return read_float(name, value, 100, &o->sampler.temperature);
    if (strcmp(name, "--top-k") == 0)
        return read_u32(name, value, 0, UINT32_MAX, &o->sampler.top_k);
    if (strcmp(name, "--top-p") == 0)
        return read_float(name, value, 1, &o->sampler.top_p);
    if (strcmp(name, "--seed") == 0)
        return read_count(name, value, 0, UINT64_MAX, &o->sampler.random);
    fprintf(stderr, "kiln-lm: %s: %s\n%s", name,
            name[0] == '-' ? "there is no such option" : "there is one model only", usage);
    return false;
}

/* Options without a value. */
static bool *find_flag(options *o, const char *name)
{
    const struct {
        const char *name;
        bool *is_set;
    } flags[] = {
        {"--chat", &o->is_chat},
        {"--quiet", &o->is_quiet},
        {"--bench", &o->is_bench},
        {"--no-graphs", &o->has_no_graphs},
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(name, flags[i].name) == 0)
            return flags[i].is_set;
    return NULL;
}

bool read_options(options *o, int argc, char **argv)
{
    *o = (options){.count = 128, .sampler = {.top_k = 40, .top_p = 0.95f}};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            o->is_help = true;
            fputs(usage, stdout);
            return true;
        }
        bool *flag = find_flag(o, argv[i]);
        if (flag)
            *flag = true;
        else if (argv[i][0] != '-' && !o->model)
            o->model = argv[i];
        else if (!read_option(o, &argv[i]))
            return false;
        else
            i++;
    }
    if (!o->model)
        return misused("MODEL.gguf", "a file", NULL);
    if (o->is_bench && o->is_quiet)
        return misused("--quiet", "an answer to print", "--bench");
    return o->prompt || misused("--prompt", "a text", NULL);
}
