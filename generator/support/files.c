/* Reads whole files, and writes several together: only those whose bytes change, and only over files that kiln wrote.
 * */
#define _XOPEN_SOURCE 700 /* realpath */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_read(arena *a, const char *path, size_t limit, text *out, const char **why)
{
    *out = text_new(a);
    const bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
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
    if (!is_stdin)
        fclose(file);
    return !*why;
}

bool file_is_stream(const char *path)
{
    struct stat status;
    return strcmp(path, "-") == 0 || strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0 ||
           (stat(path, &status) == 0 && !S_ISREG(status.st_mode));
}

const char *folder_of(arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ".";
    return arena_string(a, path, slash == path ? 1 : (size_t)(slash - path));
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

/* Reads all of a file, in order. */
static bool read_output(const file_output *f, spool_take *take, void *context)
{
    for (size_t i = 0; i < f->range_count; i++)
        if (!spool_read(f->spool, f->ranges[i], take, context))
            return false;
    return true;
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

/* Opens a new file beside `path`. Skips names that another run uses or that a killed run left. */
static int open_beside(arena *a, const char *path, const char **name)
{
    for (long number = getpid();; number++) {
        *name = arena_format(a, "%s.%ld.tmp", path, number);
        const int descriptor = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST)
            return descriptor;
    }
}

/* Writes the contents of `f` to a new file and returns its name. Null on failure, with errno; no file is left. */
static const char *write_beside(arena *a, const file_output *f)
{
    const char *name;
    int descriptor = open_beside(a, f->path, &name);
    if (descriptor < 0)
        return NULL;
    bool ok = read_output(f, write_all, &descriptor);
    int error = errno;
    if (close(descriptor) != 0 && ok) {
        ok = false;
        error = errno;
    }
    if (ok)
        return name;
    unlink(name);
    errno = error;
    return NULL;
}

static void report(diagnostics *d, const char *path)
{
    diagnose(d, (place){.file = path}, "cannot write: %s", strerror(errno));
}

/* ---- existing files ---------------------------------------------------------------------------------------------- */

bool file_begins(const char *front, const char *mark)
{
    return strncmp(front, mark, strlen(mark)) == 0;
}

bool file_has_line(const char *front, const char *mark)
{
    const char *line = front;
    while (!file_begins(line + strspn(line, " \t"), mark)) {
        line = strchr(line, '\n');
        if (!line)
            return false;
        line++;
    }
    return true;
}

/* Null if there is no regular file at the path. Does not block if the path becomes a pipe meanwhile. */
static FILE *open_regular(const char *path, bool follows_links)
{
    struct stat status;
    if ((follows_links ? stat : lstat)(path, &status) != 0 || !S_ISREG(status.st_mode))
        return NULL;
    const int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | (follows_links ? 0 : O_NOFOLLOW));
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "rb") : NULL;
    if (descriptor >= 0 && !file)
        close(descriptor);
    return file;
}

bool file_is(const char *path, file_form *form, const char *mark)
{
    enum { FRONT_BYTES = 64 * 1024 };
    FILE *file = open_regular(path, false);
    if (!file)
        return false;
    char front[FRONT_BYTES + 1];
    front[fread(front, 1, FRONT_BYTES, file)] = '\0';
    fclose(file);
    return form(front, mark);
}

static bool has_these_bytes(const file_output *f, bool follows_links)
{
    FILE *file = open_regular(f->path, follows_links);
    if (!file)
        return false;
    const bool same = read_output(f, reads_as, file) && fgetc(file) == EOF && !ferror(file);
    fclose(file);
    return same;
}

/* False for a link, which is to be replaced. */
static bool is_written(const file_output *f)
{
    return has_these_bytes(f, false);
}

bool file_is_current(const file_output *f)
{
    return has_these_bytes(f, true);
}

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

/* Whether the system made the link, such as /dev/stdout and /proc/self/fd/1, whatever its target. */
static bool is_system_link(arena *a, const char *path)
{
    char *folder = realpath(folder_of(a, path), NULL);
    const bool is_system = folder && (strcmp(folder, "/dev") == 0 || strcmp(folder, "/proc") == 0 ||
                                      file_begins(folder, "/proc/"));
    free(folder);
    return is_system;
}

/* The kind of file at the path if it is neither a regular file nor a link to one; null: there is none. Replacing a
 * dangling link loses nothing. */
static const char *other_kind(arena *a, const char *path, const struct stat *own)
{
    struct stat end;
    if (S_ISREG(own->st_mode))
        return NULL;
    if (!S_ISLNK(own->st_mode))
        return kind_of(own->st_mode);
    if (is_system_link(a, path))
        return "a link of the system";
    return stat(path, &end) != 0 || S_ISREG(end.st_mode)
               ? NULL
               : arena_format(a, "a link to %s", kind_of(end.st_mode));
}

/* Whether the file may be replaced; otherwise a diagnostic. Replacing an empty file or a link to a file loses nothing.
 * */
static bool may_write(arena *a, const file_output *f, bool replaces_all, diagnostics *d)
{
    struct stat status;
    if (lstat(f->path, &status) != 0)
        return true; /* writing reports a path that leads nowhere */
    const char *other = other_kind(a, f->path, &status);
    if (other)
        diagnose(d, (place){.file = f->path}, "cannot write: %s is in its place", other);
    else if (S_ISLNK(status.st_mode) || replaces_all || !f->form || status.st_size == 0 ||
             file_is(f->path, f->form, f->mark) || is_written(f))
        return true;
    else
        diagnose(d, (place){.file = f->path},
                 "kiln did not write this file, so it stays: write elsewhere, or replace it with --force");
    return false;
}

static bool is_same_file(const struct stat *x, const struct stat *y)
{
    return x->st_dev == y->st_dev && x->st_ino == y->st_ino;
}

bool files_spare_inputs(arena *a, const file_output *files, size_t count, const char *const *inputs,
                        size_t input_count, diagnostics *d)
{
    struct stat *all = arena_alloc(a, (2 * input_count + 1) * sizeof *all), status;
    size_t known = 0; /* the link and its file */
    bool ok = true;
    for (size_t i = 0; i < input_count; i++) {
        known += stat(inputs[i], &all[known]) == 0;
        known += lstat(inputs[i], &all[known]) == 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (lstat(files[i].path, &status) != 0)
            continue;
        for (size_t k = 0; k < known; k++) {
            if (!is_same_file(&status, &all[k]))
                continue;
            diagnose(d, (place){.file = files[i].path}, "kiln reads this file, so it does not write it");
            ok = false;
            break;
        }
    }
    return ok;
}

bool paths_are_one(arena *a, const char *x, const char *y)
{
    struct stat of_x, of_y;
    const char *slash_x = strrchr(x, '/'), *slash_y = strrchr(y, '/');
    return strcmp(slash_x ? slash_x + 1 : x, slash_y ? slash_y + 1 : y) == 0 &&
           stat(folder_of(a, x), &of_x) == 0 && stat(folder_of(a, y), &of_y) == 0 &&
           is_same_file(&of_x, &of_y);
}

/* ---- writing together -------------------------------------------------------------------------------------------- */

/* Blocks signals that would end the program until every temporary file is renamed or removed. */
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

static bool write_held(arena *a, const file_output *files, size_t count, bool replaces_all, diagnostics *d)
{
    const char **temporary = arena_alloc(a, count * sizeof *temporary);
    bool ok = true;
    for (size_t i = 0; i < count; i++)
        ok = may_write(a, &files[i], replaces_all, d) && ok;
    for (size_t i = 0; i < count && ok; i++) {
        if (is_written(&files[i]) && !files[i].is_stamp)
            continue;
        temporary[i] = write_beside(a, &files[i]);
        ok = temporary[i] != NULL;
        if (!ok)
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
    for (size_t i = 0; i < count; i++) /* left by a failure */
        if (temporary[i])
            unlink(temporary[i]);
    return ok;
}

bool files_write(arena *a, const file_output *files, size_t count, bool replaces_all, diagnostics *d)
{
    sigset_t before;
    hold_signals(&before);
    const bool ok = write_held(a, files, count, replaces_all, d);
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

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}
