/* Files, read whole, and written whole or not at all. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { MOST_BYTES = 1 << 28 };
#define ENDING ".tmp" /* of the temporary file that replaces the file */

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

bool is_same_output(const char *a, const char *b)
{
    return strcmp(a, b) == 0 || (is_plain_file(a) && is_same_file(a, b));
}

bool fail_write(const char *path)
{
    fprintf(stderr, "error: cannot write %s: %s\n", path, strerror(errno));
    return false;
}

bool out_open(out_file *f, const char *path)
{
    *f = (out_file){.out = stdout, .path = path};
    if (strcmp(path, "-") == 0)
        return true;
    if (is_plain_file(path)) {
        char *real = realpath(path, NULL); /* null: the file is new */
        const int length = snprintf(f->temporary, sizeof f->temporary, "%s" ENDING, real ? real : path);
        free(real);
        if (length >= (int)sizeof f->temporary) {
            errno = ENAMETOOLONG;
            return fail_write(path);
        }
    }
    f->out = fopen(f->temporary[0] ? f->temporary : path, "w");
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
        snprintf(place, sizeof place, "%.*s", (int)(strlen(f->temporary) - strlen(ENDING)), f->temporary);
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

bool out_may_open(const char *path, const out_form *form)
{
    out_file f;
    if (form && !is_of_form(path, form)) {
        fprintf(
            stderr,
            "error: cannot write %s: kiln-verify did not write this file, so it stays: write elsewhere, or "
            "replace it with --force\n",
            path);
        return false;
    }
    if (!out_open(&f, path))
        return false;
    if (f.out != stdout)
        fclose(f.out);
    if (f.temporary[0])
        remove(f.temporary);
    return true;
}
