/* A file without a name: its name is removed right after it is opened. */
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 64 * 1024 };

struct spool {
    const char *folder;
    int descriptor;
    atomic_uint_fast64_t end;
    atomic_int error; /* errno of a failed addition */
};

const char *temporary_folder(void)
{
    const char *named = getenv("TMPDIR");
    return named && *named ? named : "/tmp";
}

static int open_nameless(arena *a, const char *folder)
{
    char *name = arena_format(a, "%s/kiln-XXXXXX", folder);
    const int descriptor = mkstemp(name);
    if (descriptor >= 0) {
        unlink(name);
        fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    }
    return descriptor;
}

spool *spool_open(arena *a, const char *folder, diagnostics *d)
{
    spool *s = arena_alloc(a, sizeof *s);
    s->folder = folder;
    s->descriptor = open_nameless(a, folder);
    if (s->descriptor < 0) {
        s->folder = temporary_folder();
        s->descriptor = open_nameless(a, s->folder);
    }
    if (s->descriptor >= 0)
        return s;
    diagnose(d, (place){.file = s->folder}, "cannot write: %s", strerror(errno));
    return NULL;
}

void spool_close(spool *s)
{
    close(s->descriptor);
}

spool_range spool_add(spool *s, const char *data, size_t bytes)
{
    const spool_range added = {atomic_fetch_add(&s->end, bytes), bytes};
    for (size_t done = 0; done < bytes;) {
        const ssize_t wrote = pwrite(s->descriptor, data + done, bytes - done, (off_t)(added.at + done));
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            atomic_store(&s->error, wrote < 0 ? errno : ENOSPC);
            break;
        }
        done += (size_t)wrote;
    }
    return added;
}

bool spool_read(spool *s, spool_range range, spool_take *take, void *context)
{
    char block[BLOCK_BYTES];
    while (range.bytes > 0) {
        const size_t wanted = range.bytes < sizeof block ? (size_t)range.bytes : sizeof block;
        const ssize_t got = pread(s->descriptor, block, wanted, (off_t)range.at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = EIO;
        if (got <= 0 || !take(context, block, (size_t)got))
            return false;
        range.at += (uint64_t)got;
        range.bytes -= (uint64_t)got;
    }
    return true;
}

bool spool_is_whole(const spool *s, diagnostics *d)
{
    const int error = atomic_load(&s->error);
    if (error)
        diagnose(d, (place){.file = s->folder}, "cannot write: %s", strerror(error));
    return !error;
}
