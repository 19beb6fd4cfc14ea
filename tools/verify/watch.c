/* A lock and a time limit for launches. */
#define _XOPEN_SOURCE   700 /* fmemopen, sigaction */
#define _DEFAULT_SOURCE     /* flock */
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "../support/files.h"
#include "../support/json.h"
#include "verify.h"

/* Static: a signal handler reads it, and a process has one device. */
static struct {
    int lock; /* a file descriptor; -1: none */
    unsigned seconds;
    bool has_begun;
    int out; /* where the handler writes the text */
    char text[10240];
    size_t length;
} watch = {.lock = -1};

static void end_process(int number)
{
    (void)number;
    for (size_t at = 0; at < watch.length;) {
        const ssize_t written = write(watch.out, watch.text + at, watch.length - at);
        if (written <= 0)
            break;
        at += (size_t)written;
    }
    _exit(VERIFY_EXIT_HUNG);
}

bool watch_open(const char *lock_path, uint64_t seconds, bool has_lines)
{
    watch.seconds = (unsigned)seconds;
    watch.out = has_lines ? STDOUT_FILENO : STDERR_FILENO;
    if (seconds)
        sigaction(SIGALRM, &(struct sigaction){.sa_handler = end_process}, NULL);
    if (!lock_path)
        return true;
    watch.lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return watch.lock >= 0 || fail_write(lock_path);
}

FILE *watch_open_text(void)
{
    return watch.seconds ? fmemopen(watch.text, sizeof watch.text, "w") : NULL;
}

void watch_close_text(FILE *text)
{
    fclose(text);
    watch.length = strlen(watch.text);
}

void watch_variant(const char *id)
{
    FILE *text = watch_open_text();
    if (!text)
        return;
    fflush(stdout);
    if (watch.out == STDOUT_FILENO)
        json_print(
            text,
            "{\"id\": %s, \"result\": \"hung\", \"worst_error_over_bound\": null, \"elements\": 0, \"launches\": 0, "
            "\"detail\": \"no end after %u s\"}\n",
            id, watch.seconds);
    else
        fprintf(text, "kiln-verify: %s: a launch has not ended after %u s\n", id, watch.seconds);
    watch_close_text(text);
}

void watch_begin(void)
{
    if (watch.has_begun)
        return;
    watch.has_begun = true;
    while (watch.lock >= 0 && flock(watch.lock, LOCK_EX) != 0 && errno == EINTR)
        ;
    alarm(watch.seconds);
}

void watch_end(void)
{
    if (!watch.has_begun)
        return;
    watch.has_begun = false;
    alarm(0);
    if (watch.lock >= 0)
        flock(watch.lock, LOCK_UN);
}
