#include "family_code.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diagnostics.h"

enum { MOST_THREADS_AT_ONCE = 128, LONGEST_NAME = 1024, SIGNAL_STACK_BYTES = 64 * 1024 };

/* A family's function that is running. An interrupt may be handled in any thread, so all threads share this table, whose texts
 * outlive threads and arenas. */
typedef struct call {
    atomic_bool is_used;
    char name[LONGEST_NAME];
} call;

static call calls[MOST_THREADS_AT_ONCE];
static _Thread_local call *own; /* null: no function runs in this thread */

static const struct watched {
    int number;
    const char *before, *after; /* text before and after the function's name */
    bool is_crash;              /* names only this thread's function, otherwise those of all threads */
} watched[] = {
    {SIGSEGV, "error: ", " crashed (SIGSEGV)\n", true},  {SIGBUS, "error: ", " crashed (SIGBUS)\n", true},
    {SIGFPE, "error: ", " crashed (SIGFPE)\n", true},    {SIGILL, "error: ", " crashed (SIGILL)\n", true},
    {SIGABRT, "error: ", " called abort\n", true},       {SIGINT, "interrupted: ", " was running\n", false},
    {SIGTERM, "interrupted: ", " was running\n", false}, {SIGQUIT, "interrupted: ", " was running\n", false},
};
enum { WATCHED_COUNT = sizeof watched / sizeof watched[0] };
static struct sigaction usual[WATCHED_COUNT];

/* Gives the handler a stack of its own, since an overflowed stack has no room. Sanitizers have already set one. */
static void set_signal_stack(void)
{
    static _Thread_local char bytes[SIGNAL_STACK_BYTES];
    stack_t current;
    if (sigaltstack(NULL, &current) == 0 && current.ss_flags & SS_DISABLE)
        sigaltstack(&(stack_t){.ss_sp = bytes, .ss_size = sizeof bytes}, NULL);
}

void family_code_begin(const char *function, const char *id, const char *target)
{
    set_signal_stack();
    for (call *c = calls; !own && c < calls + MOST_THREADS_AT_ONCE; c++)
        if (!atomic_exchange(&c->is_used, true))
            own = c;
    if (own)
        snprintf(own->name, sizeof own->name, "%s for %s: its %s", id, target, function);
}

void family_code_end(void)
{
    if (own)
        atomic_store(&own->is_used, false);
    own = NULL;
}

static void check_exit(void)
{
    if (!own)
        return;
    fprintf(stderr, "kiln: error: %s ended the program\n", own->name);
    _Exit(EXIT_BAD_KILN);
}

/* Calls only what is safe in a signal handler. */
static void print(const char *text)
{
    const ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static void report(int number)
{
    const struct watched *w = watched;
    while (w->number != number)
        w++;
    for (call *c = calls; c < calls + MOST_THREADS_AT_ONCE; c++) {
        if (!atomic_load(&c->is_used) || (w->is_crash && c != own))
            continue;
        print("kiln: ");
        print(w->before);
        print(c->name);
        print(w->after);
    }
    sigaction(number, &usual[w - watched], NULL);
    raise(number);
}

void family_code_watch(void)
{
    atexit(check_exit);
    for (int i = 0; i < WATCHED_COUNT; i++) {
        struct sigaction watch = {.sa_handler = report, .sa_flags = SA_ONSTACK};
        if (sigaction(watched[i].number, NULL, &usual[i]) == 0 && usual[i].sa_handler != SIG_IGN)
            sigaction(watched[i].number, &watch, NULL);
    }
}
