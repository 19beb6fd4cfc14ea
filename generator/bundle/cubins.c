/* One file in and one out per cubin, and what ptxas says in a third: its messages name a place in the PTX. */
#include "cubins.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/files.h"
#include "support/messages.h"
#include "target/target.h"

extern char **environ;

enum { LARGEST_BYTES = 64 * 1024 * 1024 };

/* ---- processes --------------------------------------------------------------------------------------------------- */

/* Its output goes to a file. 0 or an errno; the program is looked for on the PATH. */
static int start(pid_t *process, const char *const *arguments, const char *output)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    const int why =
        posix_spawnp(process, arguments[0], &actions, NULL, (char *const *)(uintptr_t)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return why;
}

static bool succeeds(pid_t process)
{
    int status;
    while (waitpid(process, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static const char *path_of(arena *a, const assembler *s, size_t i, const char *extension)
{
    return arena_format(a, "%s/%u.%s", s->folder, (unsigned)i, extension);
}

/* ---- the assembler ----------------------------------------------------------------------------------------------- */

/* "... release 13.0, V13.0.48" -> "13.0, V13.0.48"; empty where there is none */
static const char *release_of(arena *a, const char *said)
{
    static const char mark[] = "release ";
    const char *release = strstr(said, mark);
    return release ? arena_string(a, release + strlen(mark), strcspn(release + strlen(mark), "\n")) : "";
}

static const char *ask_version(arena *a, assembler *s)
{
    static const char *const arguments[] = {"ptxas", "--version", NULL};
    const char *output = path_of(a, s, 0, "txt"), *why;
    pid_t process;
    text said;
    const int result = start(&process, arguments, output);
    if (result != 0)
        return strerror(result);
    if (!succeeds(process) || !file_read(a, output, LARGEST_BYTES, &said, &why))
        return "it does not tell its version";
    s->version = release_of(a, said.data);
    s->min_driver = (uint32_t)strtoul(s->version, NULL, 10) * 1000;
    return s->min_driver ? NULL : "it does not tell its version";
}

bool assembler_open(assembler *s, arena *a, spool *ptx, place at, diagnostics *d)
{
    const char *parent = temporary_folder();
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    *s = (assembler){.spool = ptx, .at_once = processors > 1 ? (size_t)processors : 1};
    s->folder = arena_format(a, "%s/kiln-XXXXXX", parent);
    if (!mkdtemp(s->folder)) {
        diagnose(d, at, message_no_folder, parent, strerror(errno));
        return false;
    }
    const char *why = ask_version(a, s);
    if (why) {
        diagnose(d, at, message_no_ptxas, why);
        assembler_close(s);
    }
    return !why;
}

void assembler_close(assembler *s)
{
    static const char *const extensions[] = {"ptx", "cubin", "txt"};
    arena *a = arena_new();
    for (size_t i = 0; i < TARGETS_MOST; i++)
        for (size_t k = 0; k < 3; k++)
            unlink(path_of(a, s, i, extensions[k]));
    arena_free(a);
    rmdir(s->folder);
}

/* ---- a variant --------------------------------------------------------------------------------------------------- */

/* The image that a target takes: its own, else that which a device would prefer. */
static const image *image_for(const image *images, size_t count, target t)
{
    const image *taken = NULL;
    for (size_t i = 0; i < count; i++) {
        if (target_compare(images[i].made_for, t) == 0)
            return &images[i];
        if (target_serves(images[i].made_for, t) &&
            (!taken || target_is_preferred(images[i].made_for, taken->made_for)))
            taken = &images[i];
    }
    return taken;
}

static bool write_piece(void *file, const char *data, size_t bytes)
{
    return fwrite(data, 1, bytes, file) == bytes;
}

/* Null, or why it could not be started. */
static const char *start_one(const assembler *s, arena *a, size_t i, const image *ptx, target t,
                             pid_t *process)
{
    const char *in = path_of(a, s, i, "ptx"), *out = path_of(a, s, i, "cubin");
    const char *const arguments[] = {"ptxas", arena_format(a, "-arch=%s", target_text(a, t)), "-o", out, in,
                                     NULL};
    FILE *file = fopen(in, "wb");
    const bool is_written = file && spool_read(s->spool, ptx->plain, write_piece, file);
    const bool is_closed = file && fclose(file) == 0;
    if (!is_written || !is_closed)
        return strerror(errno);
    const int why = start(process, arguments, path_of(a, s, i, "txt"));
    return why ? strerror(why) : NULL;
}

/* The first line of what ptxas said, with the PTX in place of the file that it was given. */
static const char *complaint(const assembler *s, arena *a, size_t i)
{
    text said;
    const char *why, *file = path_of(a, s, i, "ptx");
    if (!file_read(a, path_of(a, s, i, "txt"), LARGEST_BYTES, &said, &why) || said.length == 0)
        return "nothing";
    const char *line = arena_string(a, said.data, strcspn(said.data, "\n")), *at = strstr(line, file);
    if (!at)
        return line;
    return arena_format(a, "%sthe PTX%s", arena_string(a, line, (size_t)(at - line)), at + strlen(file));
}

static bool take_one(const assembler *s, arena *a, size_t i, pid_t process, target t, const variant *v,
                     const image *ptx, image *made, diagnostics *d)
{
    text cubin;
    const char *why = NULL;
    if (!succeeds(process)) {
        diagnose(d, v->at, message_ptxas_refused, v->id, target_text(a, t), complaint(s, a, i));
        return false;
    }
    if (!file_read(a, path_of(a, s, i, "cubin"), LARGEST_BYTES, &cubin, &why)) {
        diagnose(d, v->at, message_ptxas_not_run, v->id, target_text(a, t), why);
        return false;
    }
    *made = (image){.made_for = t,
                    .min_driver = s->min_driver,
                    .is_dependent = ptx->is_dependent,
                    .is_cubin = true,
                    .data = cubin.data,
                    .bytes = cubin.length,
                    .hash = image_hash_of(cubin.data, cubin.length)};
    return true;
}

size_t assemble_variant(const assembler *s, arena *a, const plan *p, const variant *v, const image *images,
                        size_t count, image *cubins, diagnostics *d)
{
    target targets[TARGETS_MOST];
    pid_t processes[TARGETS_MOST];
    size_t wanted = 0, started = 0, taken = 0;
    bool ok = true;
    for (size_t i = 0; i < p->target_count; i++)
        if (v->runs_on >> i & 1u)
            targets[wanted++] = p->targets[i];
    while (taken < wanted && (ok || taken < started)) {
        if (ok && started < wanted && started - taken < s->at_once) {
            const image *ptx = image_for(images, count, targets[started]);
            const char *why = start_one(s, a, started, ptx, targets[started], &processes[started]);
            ok = !why;
            if (why)
                diagnose(d, v->at, message_ptxas_not_run, v->id, target_text(a, targets[started]), why);
            started += ok;
            continue;
        }
        const image *ptx = image_for(images, count, targets[taken]);
        ok = take_one(s, a, taken, processes[taken], targets[taken], v, ptx, &cubins[taken], d) && ok;
        taken++;
    }
    return ok ? wanted : 0;
}
