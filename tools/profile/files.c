/* Fatal errors, files, other programs, and the temporary folder. */
#include "profile.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/files.h"

void die(int status, const char *format, ...)
{
    va_list values;
    fputs("kiln-profile: ", stderr);
    va_start(values, format);
    vfprintf(stderr, format, values);
    va_end(values);
    fputs("\n", stderr);
    exit(status);
}

char *read_file(profile *p, const char *path, size_t *length)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        die(1, "cannot read %s: %s", path, strerror(errno));
    char *text = file_read_all(&p->memory, f, SIZE_MAX, length);
    if (!text)
        die(1, "cannot read %s: %s", path, strerror(errno));
    fclose(f);
    return text;
}

char *run_program(profile *p, const char *const argv[], bool with_errors, int *status)
{
    int ends[2];
    size_t length;
    if (pipe(ends) != 0)
        die(3, "no pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        die(3, "no process: %s", strerror(errno));
    if (child == 0) {
        dup2(ends[1], 1);
        if (with_errors)
            dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(ends[1]);
    FILE *f = fdopen(ends[0], "r");
    if (!f)
        die(3, "no stream: %s", strerror(errno));
    char *text = file_read_all(&p->memory, f, SIZE_MAX, &length);
    if (!text)
        die(3, "cannot read a pipe: %s", strerror(errno));
    fclose(f);
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        ;
    *status = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128;
    return text;
}

/* ---- the temporary folder -------------------------------------------------------------------------------------- */

static volatile sig_atomic_t worker;

static void pass_on(int number)
{
    if (worker > 0)
        kill((pid_t)worker, number);
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about, (void)kind, (void)where;
    return remove(path);
}

void make_folder(profile *p)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    int status = 0;
    sigset_t held, usual; /* signals wait until a process exists that removes the folder */
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&held, signals[i]);
    sigprocmask(SIG_BLOCK, &held, &usual);
    const char *place = getenv("TMPDIR");
    place = place && *place ? place : "/tmp";
    int n = snprintf(p->folder, sizeof p->folder, "%s/kiln-profile-XXXXXX", place);
    if (n < 0 || (size_t)n >= sizeof p->folder || !mkdtemp(p->folder))
        die(3, "no folder in %s: %s", place, strerror(errno));
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t child = fork();
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &usual, NULL);
        return;
    }
    worker = (sig_atomic_t)child;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], pass_on);
    sigprocmask(SIG_SETMASK, &usual, NULL);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    while (wait(NULL) > 0 || errno == EINTR)
        ; /* waits for a generator that outlives the worker, since it may still write there */
    if (nftw(p->folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS) != 0)
        fprintf(stderr, "kiln-profile: %s remains: %s\n", p->folder, strerror(errno));
    if (child < 0)
        die(3, "no process: %s", strerror(errno));
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}
