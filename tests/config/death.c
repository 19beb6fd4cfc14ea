#include "death.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/arena.h"

/* Runs in a child process whose standard error is a pipe. */
static pid_t start(void (*do_it)(const void *), const void *argument, int pipe_ends[2])
{
    assert_int_equal(pipe(pipe_ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(pipe_ends[1], STDERR_FILENO);
        do_it(argument);
        _exit(0);
    }
    close(pipe_ends[1]);
    return child;
}

static void assert_dies(void (*do_it)(const void *), const void *argument, const char *kind,
                        const char *expected)
{
    int pipe_ends[2], status = 0;
    pid_t child = start(do_it, argument, pipe_ends);
    char said[4096];
    size_t length = 0;
    for (ssize_t got; (got = read(pipe_ends[0], said + length, sizeof said - 1 - length)) > 0;)
        length += (size_t)got;
    said[length] = '\0';
    close(pipe_ends[0]);
    waitpid(child, &status, 0);

    arena *a = arena_new();
    assert_string_equal(said, arena_format(a, "kiln: %s: %s\n", kind, expected));
    arena_free(a);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
}

void assert_internal_error(void (*do_it)(const void *), const void *argument, const char *expected)
{
    assert_dies(do_it, argument, "internal error", expected);
}

void assert_family_error(void (*do_it)(const void *), const void *argument, const char *expected)
{
    assert_dies(do_it, argument, "error", expected);
}
