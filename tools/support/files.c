/* Files, read whole, and written whole or not at all. */
#define _XOPEN_SOURCE 700 /* realpath, fdopen */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MOST_BYTES = 1 << 28 };

char *file_read_all(pool *p, FILE *in, size_t most, size_t *length)
{
    size_t room = 1 << 16;
    char *text = pool_allocate(p, room + 1);
    *length = 0;
    for (; (*length += fread(text + *length, 1, room - *length, in)) == room; room *= 2) {
        if (room >= most) {
            errno = EFBIG;
            *length = 0;
            return NULL;
        }
        char *wider = pool_allocate(p, 2 * room + 1);
        memcpy(wider, text, room);
        text = wider;
    }
    if (!ferror(in)) /* fails for a folder */
        return text;
    *length = 0;
    return NULL;
}

char *file_read(pool *p, const char *path, size_t *length)
{
    FILE *in = fopen(path, "rb");
    *length = 0;
    if (!in)
        return NULL;
    char *text = file_read_all(p, in, MOST_BYTES, length);
    const int why = errno;
    fclose(in);
    errno = why;
    return text;
}

void file_hash(const void *bytes, size_t length, char digits[HASH_DIGITS + 1])
{
    const XXH128_hash_t hash = XXH3_128bits(bytes, length);
    snprintf(digits, HASH_DIGITS + 1, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

/* Follows symbolic links; one that points nowhere, or to a deleted file, has no name to write to. */
bool is_plain_file(const char *path)
{
    struct stat about;
    if (strcmp(path, "-") == 0)
        return false;
    if (lstat(path, &about) != 0)
        return true;
    char *real = realpath(path, NULL);
    const bool is_plain = real && stat(real, &about) == 0 && S_ISREG(about.st_mode);
    free(real);
    return is_plain;
}

bool is_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* True for "x" and "./x", also before the file exists. */
static bool is_same_name(const char *a, const char *b)
{
    const char *after_a = strrchr(a, '/'), *after_b = strrchr(b, '/');
    if (strcmp(after_a ? after_a + 1 : a, after_b ? after_b + 1 : b) != 0)
        return false;
    char *folder_a = after_a ? strndup(a, (size_t)(after_a - a) + 1) : strdup(".");
    char *folder_b = after_b ? strndup(b, (size_t)(after_b - b) + 1) : strdup(".");
    const bool is_same = folder_a && folder_b && is_same_file(folder_a, folder_b);
    free(folder_a);
    free(folder_b);
    return is_same;
}

bool is_same_output(const char *a, const char *b)
{
    return strcmp(a, b) == 0 || (is_plain_file(a) && (is_same_file(a, b) || is_same_name(a, b)));
}

bool fail_write(const char *path)
{
    fprintf(stderr, "error: cannot write %s: %s\n", path, strerror(errno));
    return false;
}

/* Creates a file beside the one at `place`, with a name that no file has. Null on failure, with errno. */
static FILE *open_beside(out_file *f, const char *place)
{
    for (long number = getpid();; number++) {
        const int length = snprintf(f->temporary, sizeof f->temporary, "%s.%ld.tmp", place, number);
        const bool fits = length < (int)sizeof f->temporary;
        const int file = fits ? open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
        f->place_length = strlen(place);
        if (file >= 0)
            return fdopen(file, "w");
        if (!fits)
            errno = ENAMETOOLONG;
        if (errno != EEXIST)
            return NULL;
    }
}

bool out_open(out_file *f, const char *path)
{
    *f = (out_file){.out = stdout, .path = path};
    if (strcmp(path, "-") == 0)
        return true;
    if (is_plain_file(path)) {
        char *real = realpath(path, NULL); /* null: the file is new */
        f->out = open_beside(f, real ? real : path);
        free(real);
    } else {
        f->out = fopen(path, "w");
    }
    return f->out || fail_write(path);
}

bool out_close(out_file *f)
{
    errno = EIO; /* in case an earlier call failed */
    bool is_written = !ferror(f->out) && fflush(f->out) == 0;
    if (f->out != stdout)
        is_written = fclose(f->out) == 0 && is_written;
    if (is_written && f->temporary[0]) {
        char place[sizeof f->temporary];
        snprintf(place, sizeof place, "%.*s", (int)f->place_length, f->temporary);
        is_written = rename(f->temporary, place) == 0;
    }
    if (is_written)
        return true;
    fail_write(f->path);
    if (f->temporary[0])
        remove(f->temporary);
    return false;
}

static bool is_of_form(const char *path, const out_form *form)
{
    char front[4096 + 1];
    FILE *in = is_plain_file(path) ? fopen(path, "rb") : NULL;
    if (!in)
        return true; /* nothing would be lost */
    front[fread(front, 1, sizeof front - 1, in)] = '\0';
    const bool is_empty = ftell(in) == 0;
    fclose(in);
    return is_empty ||
           (strncmp(front, form->begins, strlen(form->begins)) == 0 && strstr(front, form->holds));
}

bool out_may_replace(const char *path, const out_form *form)
{
    if (is_of_form(path, form))
        return true;
    fprintf(stderr,
            "error: cannot write %s: kiln-verify did not write this file, so it stays: write elsewhere, or "
            "replace it with --force\n",
            path);
    return false;
}

bool out_may_open(const char *path, const out_form *form)
{
    out_file f;
    if ((form && !out_may_replace(path, form)) || !out_open(&f, path))
        return false;
    if (f.out != stdout)
        fclose(f.out);
    if (f.temporary[0])
        remove(f.temporary);
    return true;
}
