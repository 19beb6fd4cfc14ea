/* FILE.journal: a line with the facts of the run, then a line for each variant that has run. */
#define _POSIX_C_SOURCE 200809L /* fdopen, ftruncate */
#define _DEFAULT_SOURCE         /* flock */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/files.h"

/* Returns whether the file has been removed: a run that ends removes it, and another run may have opened it
 * before. */
static bool is_removed(int file)
{
    struct stat about;
    return fstat(file, &about) == 0 && about.st_nlink == 0;
}

/* Opens and locks the file; the lock ends with the process. Does not lock where the file system cannot. */
static bool open_locked(journal *j)
{
    int file, locked;
    do {
        file = open(j->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (file < 0)
            return fail_write(j->path);
        locked = flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK ? -1 : 0;
    } while (is_removed(file) && close(file) == 0);
    if (locked != 0) {
        fprintf(stderr, "kiln-verify: another run is writing %s\n", j->path);
        close(file);
        return false;
    }
    j->out = fdopen(file, "a");
    return j->out || fail_write(j->path);
}

/* False after a message: the file exists but cannot be read. */
static bool read_file(run_results *all, results_text *from)
{
    from->text = file_read(all->memory, from->path, &from->length);
    if (from->text || errno == ENOENT)
        return true;
    fprintf(stderr, "kiln-verify: --resume: cannot read %s: %s\n", from->path, strerror(errno));
    return false;
}

/* Adds the results of a text that ends with a newline; an empty text has none. */
static bool read_results(run_results *all, results_text *from)
{
    char error[1024];
    from->whose = "this run's";
    if (from->length == 0 || results_read(all, from, error, sizeof error))
        return true;
    fprintf(stderr, "kiln-verify: --resume: %s; remove the file to begin anew\n", error);
    return false;
}

/* Drops the incomplete last line that a killed run left. */
static void drop_last_line(results_text *from)
{
    while (from->length && from->text[from->length - 1] != '\n')
        from->length--;
}

static bool write_again(journal *j, const run_results *all)
{
    results_write_facts(j->out, all);
    for (size_t i = 0; i < all->count; i++)
        if (all->results[i].has_run)
            results_write_line(j->out, all->variants[i], &all->results[i]);
    return fflush(j->out) == 0 || fail_write(j->path);
}

/* A journal begins with the facts of its run. */
static const out_form form = {"{\"bundle\": ", "\"verifier\": "};

bool journal_open(journal *j, const options *o, run_results *all)
{
    results_text lines = {.path = j->path, .is_journal = true}, whole = {.path = o->json};
    *j = (journal){NULL};
    if (!o->json || !is_plain_file(o->json))
        return true;
    if (snprintf(j->path, sizeof j->path, "%s.journal", o->json) >= (int)sizeof j->path) {
        errno = ENAMETOOLONG;
        return fail_write(o->json);
    }
    if (!open_locked(j))
        return false;
    bool is_read = !o->resumes || read_file(all, &lines);
    drop_last_line(&lines);
    if (is_read && lines.length == 0 && !o->replaces_all && !out_may_replace(j->path, &form)) {
        journal_close(j, false);
        return false;
    }
    if (is_read && o->resumes && lines.length == 0)
        is_read = read_file(all, &whole);
    if (!is_read || !read_results(all, &lines) || !read_results(all, &whole)) {
        journal_close(j, is_read && lines.length == 0);
        return false;
    }
    if (ftruncate(fileno(j->out), (off_t)lines.length) != 0)
        return fail_write(j->path);
    return lines.length > 0 || write_again(j, all);
}

bool journal_add(journal *j, const manifest_variant *v, const run_result *r)
{
    if (!j->out)
        return true;
    results_write_line(j->out, v, r);
    return fflush(j->out) == 0 || fail_write(j->path);
}

void journal_close(journal *j, bool is_written)
{
    if (!j->out)
        return;
    if (is_written)
        remove(j->path);
    fclose(j->out);
}
