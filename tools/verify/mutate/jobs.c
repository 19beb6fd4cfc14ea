/* Runs jobs in separate processes. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, PR_SET_PDEATHSIG */
#include "jobs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct crew {
    size_t at_once, running;
    struct worker {
        pid_t process;
        size_t job;
    } workers[256];
} crew;

static bool fail(const char *what)
{
    fprintf(stderr, "kiln-verify: %s: %s\n", what, strerror(errno));
    return false;
}

static bool start(crew *c, size_t i, job_function *job, void *context, void *result)
{
    const pid_t parent = getpid();
    fflush(NULL); /* otherwise the child would write it too */
    pid_t process = fork();
    if (process < 0)
        return fail("fork");
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            job(context, i, result);
        _exit(0);
    }
    c->workers[c->running++] = (struct worker){process, i};
    return true;
}

/* Waits for any child. */
static void reap(crew *c, job_end *ends)
{
    int status = 0;
    pid_t process = waitpid(-1, &status, 0);
    for (size_t i = 0; i < c->running; i++) {
        if (c->workers[i].process != process)
            continue;
        job_end *end = &ends[c->workers[i].job];
        end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        end->status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
        c->workers[i] = c->workers[--c->running];
        return;
    }
}

bool jobs_run(size_t count, size_t at_once, job_function *job, void *context, void *results,
              size_t result_bytes, job_end *ends)
{
    const size_t bytes = count * result_bytes;
    crew c = {.at_once = at_once < 256 ? at_once : 256};
    bool fine = true;
    if (count == 0)
        return true;
    unsigned char *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return fail("mmap");
    memset(ends, 0, count * sizeof *ends);
    for (size_t i = 0; fine && i < count; i++) {
        if (c.running == c.at_once)
            reap(&c, ends);
        fine = start(&c, i, job, context, shared + i * result_bytes);
    }
    while (c.running)
        reap(&c, ends);
    memcpy(results, shared, bytes);
    munmap(shared, bytes);
    return fine;
}
