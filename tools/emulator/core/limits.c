/* See limits.h. */
#include "limits.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_THREADS 256

/* Backward jumps of each warp without progress, after which a wait counts as endless. */
#define IDLE_JUMPS (UINT64_C(1) << 26)

static bool is_number(const char *text, size_t size, uint64_t least, uint64_t most, uint64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && end == text + size && !errno && *value >= least && *value <= most;
}

static bool number_from(const char *name, uint64_t least, uint64_t most, uint64_t *value)
{
    const char *text = getenv(name);
    uint64_t n;
    if (!text || !*text)
        return true;
    if (!is_number(text, strlen(text), least, most, &n)) {
        fprintf(stderr, "kiln emulator: %s=%s: expected a number from %llu to %llu\n", name, text,
                (unsigned long long)least, (unsigned long long)most);
        return false;
    }
    *value = n;
    return true;
}

/* Applies one of two limits: the given one, to all jumps, or the default, to jumps without progress. */
static bool jumps_from(const char *name, emu_limits *l)
{
    uint64_t given = UINT64_MAX;
    l->jumps = UINT64_MAX;
    l->idle_jumps = IDLE_JUMPS;
    const char *text = getenv(name);
    if (!text || !*text)
        return true;
    l->idle_jumps = UINT64_MAX;
    if (!number_from(name, 0, UINT64_MAX, &given))
        return false;
    l->jumps = given ? given : UINT64_MAX;
    return true;
}

static bool blocks_from(const char *name, uint64_t *first, uint64_t *last)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return true;
    size_t size = strcspn(text, "-");
    if (text[size] == '-' && is_number(text, size, 0, UINT64_MAX - 1, first) &&
        is_number(text + size + 1, strlen(text + size + 1), *first, UINT64_MAX - 1, last))
        return true;
    fprintf(stderr, "kiln emulator: %s=%s: expected FIRST-LAST, two numbers of blocks\n", name, text);
    return false;
}

static bool order_from(const char *name, emu_order *order)
{
    static const char *const words[] = {
        [EMU_FORWARD] = "forward", [EMU_REVERSE] = "reverse", [EMU_SHUFFLE] = "shuffle"};
    const char *text = getenv(name);
    if (!text || !*text)
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0) {
            *order = (emu_order)i;
            return true;
        }
    fprintf(stderr, "kiln emulator: %s=%s: expected forward, reverse or shuffle\n", name, text);
    return false;
}

static uint64_t processors;

/* Called once: counting reads a file, which is too slow for every launch. */
static void count_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    processors = n < 1 ? 1 : n > MOST_THREADS ? MOST_THREADS : (uint64_t)n;
}

bool emu_read_limits(emu_limits *l)
{
    static pthread_once_t counted = PTHREAD_ONCE_INIT;
    pthread_once(&counted, count_processors);
    uint64_t flag; /* only checked here; read where it is used */
    *l = (emu_limits){.threads = processors, .last_block = UINT64_MAX - 1, .verbose = 1};
    return number_from("KILN_EMU_THREADS", 1, MOST_THREADS, &l->threads) && jumps_from("KILN_EMU_JUMPS", l) &&
           number_from("KILN_EMU_VERBOSE", 0, 2, &l->verbose) &&
           blocks_from("KILN_EMU_BLOCKS", &l->first_block, &l->last_block) &&
           order_from("KILN_EMU_ORDER", &l->order) && number_from("KILN_EMU_FORK", 0, 1, &flag) &&
           number_from("KILN_EMU_REPORT_LINES", 0, 1, &flag);
}
