/* Whole files: read; written together, and only where bytes change. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_read(arena *a, const char *path, size_t limit, text *out, const char **why)
{
    *out = text_new(a);
    FILE *file = fopen(path, "rb");
    if (!file) {
        *why = strerror(errno);
        return false;
    }
    *why = NULL;
    char block[8192];
    size_t got;
    while (!*why && (got = fread(block, 1, sizeof block, file)) > 0) {
        if (got > limit - out->length)
            *why = arena_format(a, "more than %zu bytes", limit);
        else
            text_add_bytes(out, block, got);
    }
    if (ferror(file))
        *why = strerror(errno);
    fclose(file);
    return !*why;
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

file_output file_begin(arena *a, arena *piece, const char *path, spool *s)
{
    return (file_output){.path = path, .spool = s, .arena = piece, .text = text_new(piece), .kept = a};
}

static void flush_to(file_output *f, size_t rank)
{
    if (f->text.length > 0) {
        arena_push(f->kept, (void **)&f->ranges, &f->range_count, &f->range_capacity, sizeof *f->ranges);
        memmove(f->ranges + rank + 1, f->ranges + rank, (f->range_count - rank - 1) * sizeof *f->ranges);
        f->ranges[rank] = spool_add(f->spool, f->text.data, f->text.length);
    }
    arena_clear(f->arena);
    f->text = text_new(f->arena);
}

void file_flush(file_output *f)
{
    flush_to(f, f->range_count);
}

void file_flush_to_front(file_output *f)
{
    flush_to(f, 0);
}

void file_add(file_output *f, spool_range range)
{
    file_flush(f);
    *(spool_range *)arena_push(f->kept, (void **)&f->ranges, &f->range_count, &f->range_capacity,
                               sizeof *f->ranges) = range;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

typedef enum file_state { FILE_SAME, FILE_DIFFERS, FILE_BROKEN } file_state;

/* All of a file, in its order. */
static bool read_output(const file_output *f, spool_take *take, void *context)
{
    for (size_t i = 0; i < f->range_count; i++)
        if (!spool_read(f->spool, f->ranges[i], take, context))
            return false;
    return true;
}

static uint64_t bytes_of(const file_output *f)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < f->range_count; i++)
        bytes += f->ranges[i].bytes;
    return bytes;
}

static bool reads_as(void *file, const char *data, size_t bytes)
{
    char block[8192];
    while (bytes > 0) {
        const size_t wanted = bytes < sizeof block ? bytes : sizeof block;
        if (fread(block, 1, wanted, file) != wanted || memcmp(block, data, wanted) != 0)
            return false;
        data += wanted;
        bytes -= wanted;
    }
    return true;
}

/* Compares what is there with what is to be written. A missing file differs; what is no readable file is refused now,
 * before anything was replaced. */
static file_state compare(const file_output *f)
{
    struct stat status;
    if (stat(f->path, &status) != 0)
        return errno == ENOENT ? FILE_DIFFERS : FILE_BROKEN;
    if (!S_ISREG(status.st_mode)) { /* a rename would replace a device or a pipe */
        errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
        return FILE_BROKEN;
    }
    if (status.st_size < 0 || (uint64_t)status.st_size != bytes_of(f))
        return FILE_DIFFERS;
    FILE *file = fopen(f->path, "rb");
    if (!file)
        return FILE_DIFFERS;
    const bool same = read_output(f, reads_as, file) && fgetc(file) == EOF && !ferror(file);
    fclose(file);
    return same ? FILE_SAME : FILE_DIFFERS;
}

static bool write_all(void *descriptor, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t wrote = write(*(const int *)descriptor, data, bytes);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        data += wrote;
        bytes -= (size_t)wrote;
    }
    return true;
}

/* Writes a file that is not there yet; on failure nothing is left of it and errno says why. */
static bool write_new(const char *path, const file_output *f)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return false;
    bool ok = read_output(f, write_all, &descriptor);
    int error = errno;
    if (close(descriptor) != 0 && ok) {
        ok = false;
        error = errno;
    }
    if (!ok) {
        unlink(path);
        errno = error;
    }
    return ok;
}

static void report(diagnostics *d, const char *path)
{
    diagnose(d, (place){.file = path}, "cannot write: %s", strerror(errno));
}

typedef enum file_begin_is { BEGIN_EMPTY, BEGIN_MARKED, BEGIN_OTHER } file_begin_is;

/* A file that is not there, or cannot be read, is empty. */
static file_begin_is read_begin(const char *path, const char *mark)
{
    char begin[64];
    FILE *file = fopen(path, "rb");
    if (!file)
        return BEGIN_EMPTY;
    const size_t length = fread(begin, 1, sizeof begin, file), marked = strlen(mark);
    fclose(file);
    if (length == 0)
        return BEGIN_EMPTY;
    return length >= marked && memcmp(begin, mark, marked) == 0 ? BEGIN_MARKED : BEGIN_OTHER;
}

bool file_is_marked(const char *path, const char *mark)
{
    return read_begin(path, mark) == BEGIN_MARKED;
}

/* Signals that would end the program between a temporary file and its place wait until both are done. */
static void hold_signals(sigset_t *before)
{
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    sigaddset(&held, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &held, before);
}

static bool has_been_stopped(void)
{
    sigset_t waiting;
    return sigpending(&waiting) == 0 &&
           (sigismember(&waiting, SIGINT) == 1 || sigismember(&waiting, SIGTERM) == 1 ||
            sigismember(&waiting, SIGHUP) == 1);
}

static bool write_held(arena *a, const file_output *files, size_t count, diagnostics *d)
{
    const char **temporary = arena_alloc(a, count * sizeof *temporary);
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        if (!files[i].mark || read_begin(files[i].path, files[i].mark) != BEGIN_OTHER)
            continue;
        diagnose(d, (place){.file = files[i].path},
                 "this file is not one of kiln's, so it stays: choose another --output or bundle name");
        ok = false;
    }
    for (size_t i = 0; i < count && ok; i++) {
        file_state state = compare(&files[i]);
        if (state == FILE_SAME)
            continue;
        const char *name = arena_format(a, "%s.%ld.tmp", files[i].path, (long)getpid());
        ok = state == FILE_DIFFERS && write_new(name, &files[i]);
        if (ok)
            temporary[i] = name;
        else
            report(d, files[i].path);
        if (ok && has_been_stopped()) {
            diagnose(d, (place){.file = files[i].path}, "stopped by a signal: nothing is written");
            ok = false;
        }
    }
    for (size_t i = 0; i < count && ok; i++) {
        if (!temporary[i])
            continue;
        ok = rename(temporary[i], files[i].path) == 0;
        if (ok)
            temporary[i] = NULL;
        else
            report(d, files[i].path);
    }
    for (size_t i = 0; i < count; i++) /* what a failure left behind */
        if (temporary[i])
            unlink(temporary[i]);
    return ok;
}

bool files_write(arena *a, const file_output *files, size_t count, diagnostics *d)
{
    sigset_t before;
    hold_signals(&before);
    const bool ok = write_held(a, files, count, d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

bool folder_make(const char *path, bool *is_new, diagnostics *d)
{
    *is_new = mkdir(path, 0777) == 0;
    if (*is_new || errno == EEXIST)
        return true;
    diagnose(d, (place){.file = path}, "cannot make the folder: %s", strerror(errno));
    return false;
}

bool file_stamp(const char *path, diagnostics *d)
{
    FILE *file = fopen(path, "wb");
    const bool is_written = file && fputs("made\n", file) >= 0;
    const bool is_closed = file && fclose(file) == 0;
    if (!is_written || !is_closed)
        report(d, path);
    return is_written && is_closed;
}
