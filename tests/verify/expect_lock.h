/* KILN_LOCK names a file that must be locked exactly while a kernel runs. */
#ifndef VERIFY_EXPECT_LOCK_H
#define VERIFY_EXPECT_LOCK_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

static void expect_lock(int is_held)
{
    const char *path = getenv("KILN_LOCK");
    const int file = path ? open(path, O_RDWR) : -1;
    if (!path)
        return;
    if ((flock(file, LOCK_EX | LOCK_NB) != 0) != is_held) {
        fprintf(stderr, "the lock is %s\n", is_held ? "free while a kernel runs" : "held while none runs");
        _exit(9);
    }
    close(file);
}

#endif
