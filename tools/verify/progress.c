/* Shows a run's progress and the remaining time. */
#define _POSIX_C_SOURCE 200809L /* isatty, clock_gettime */
#include "progress.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "../support/clock.h"

enum { MINUTE = 60, HOUR = 60 * MINUTE };

static progress now;

static bool is_terminal(void)
{
    return isatty(STDERR_FILENO) == 1;
}

void progress_describe(const progress *p, double seconds, char *text, size_t bytes)
{
    const int used = snprintf(text, bytes, "%zu of %zu variants", p->done, p->variants);
    if (used < 0 || (size_t)used >= bytes || p->weight_run == 0)
        return;
    const double left = seconds * (double)(p->weight - p->weight_run) / (double)p->weight_run;
    const bool is_long = left >= 2 * HOUR, is_short = left < 2 * MINUTE;
    snprintf(text + used, bytes - (size_t)used, ", about %.0f %s left",
             left / (is_long    ? HOUR
                     : is_short ? 1
                                : MINUTE),
             is_long    ? "h"
             : is_short ? "s"
                        : "min");
}

void progress_begin(const progress *p)
{
    now = *p;
    now.started = now.told = seconds_now();
}

void progress_case(const char *variant, uint64_t cases)
{
    const double time = seconds_now();
    char text[128];
    if (!is_terminal() && time - now.told < MINUTE)
        return;
    progress_describe(&now, time - now.started, text, sizeof text);
    if (is_terminal())
        fprintf(stderr, "\r\033[K%s; %" PRIu64 " cases of %.60s", text, cases, variant);
    else
        fprintf(stderr, "kiln-verify: %s\n", text);
    now.told = time;
}

void progress_variant(uint64_t weight)
{
    now.done++;
    now.weight_run += weight;
}

void progress_clear(void)
{
    if (is_terminal())
        fputs("\r\033[K", stderr);
}
