/* What the tests of rules share: how many reports were printed, and ptxas. */
#ifndef RULES_TEST_H
#define RULES_TEST_H

#include "emu_test.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static inline unsigned reports_in(const char *text)
{
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, "kiln emulator: ")) != NULL; at++)
        count++;
    return count;
}

/* Its exit status; what it prints goes to the log. */
static inline int run_ptxas(const char *argument, const char *log)
{
    char *const arguments[] = {"ptxas", "-O0", "-arch=sm_90a", "-o", "/dev/null", (char *)(uintptr_t)argument,
                               NULL};
    posix_spawn_file_actions_t to;
    pid_t process;
    int status = -1;
    posix_spawn_file_actions_init(&to);
    posix_spawn_file_actions_addopen(&to, 1, log, O_WRONLY | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&to, 1, 2);
    if (posix_spawnp(&process, arguments[0], &to, NULL, arguments, environ) == 0)
        waitpid(process, &status, 0);
    posix_spawn_file_actions_destroy(&to);
    return status;
}

#endif
