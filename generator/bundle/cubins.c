/* Runs ptxas with one input and one output file per cubin, and its messages in a third; they name a place in the PTX.
 * */
#define _DEFAULT_SOURCE /* wait4 */
#include "cubins.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/files.h"
#include "support/messages.h"
#include "target/target.h"

extern char **environ;

enum { LARGEST_BYTES = 64 * 1024 * 1024 };

/* ---- processes --------------------------------------------------------------------------------------------------- */

/* Starts a program from the PATH with its output in a file. 0 or an errno. */
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

static uint64_t microseconds_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

/* Waits for the process to end, and returns its processor time. */
static bool succeeds(pid_t process, uint64_t *microseconds)
{
    int status;
    struct rusage usage;
    while (wait4(process, &status, 0, &usage) < 0)
        if (errno != EINTR)
            return false;
    *microseconds = microseconds_of(usage.ru_utime) + microseconds_of(usage.ru_stime);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static const char *path_of(arena *a, const assembler *s, size_t i, const char *extension)
{
    return arena_format(a, "%s/%u.%s", s->folder, (unsigned)i, extension);
}

/* ---- the assembler ----------------------------------------------------------------------------------------------- */

/* "... release 13.0, V13.0.48" -> "13.0, V13.0.48"; empty if there is none */
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
    uint64_t microseconds;
    pid_t process;
    text said;
    const int result = start(&process, arguments, output);
    const bool is_told =
        result == 0 && succeeds(process, &microseconds) && file_read(a, output, LARGEST_BYTES, &said, &why);
    unlink(output); /* exists even if no program was found */
    if (result != 0)
        return strerror(result);
    s->version = is_told ? release_of(a, said.data) : "";
    s->min_driver = (uint32_t)strtoul(s->version, NULL, 10) * 1000;
    return s->min_driver ? NULL : "it prints no version";
}

bool assembler_open(assembler *s, arena *a, spool *ptx, const char *purpose, place at, diagnostics *d)
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
        diagnose(d, at, message_no_ptxas, purpose, why);
        assembler_close(s);
    }
    return !why;
}

void assembler_close(assembler *s)
{
    rmdir(s->folder);
}

/* ---- a variant --------------------------------------------------------------------------------------------------- */

/* The image for a target: its own, otherwise the one that a device would select. */
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
    if (!taken)
        internal_error("no PTX image for a listed target");
    return taken;
}

static bool write_piece(void *file, const char *data, size_t bytes)
{
    return fwrite(data, 1, bytes, file) == bytes;
}

/* Null, or the reason that it could not be started. */
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

/* The first line of ptxas' output, with the PTX in place of the temporary file. */
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

static void remove_files(const assembler *s, arena *a, size_t i)
{
    static const char *const extensions[] = {"ptx", "cubin", "txt"};
    for (size_t k = 0; k < 3; k++)
        unlink(path_of(a, s, i, extensions[k]));
}

static bool take_one(const assembler *s, arena *a, size_t i, pid_t process, assembly *w, diagnostics *d)
{
    text cubin = {0};
    const char *why = NULL;
    if (!succeeds(process, &w->microseconds)) {
        diagnose(d, w->variant->at, message_ptxas_refused, w->variant->id, target_text(a, w->target),
                 complaint(s, a, i));
        return false;
    }
    if (!s->is_timed && !file_read(a, path_of(a, s, i, "cubin"), LARGEST_BYTES, &cubin, &why)) {
        diagnose(d, w->variant->at, message_ptxas_not_run, w->variant->id, target_text(a, w->target), why);
        return false;
    }
    w->cubin = (image){.made_for = w->target,
                       .min_driver = s->min_driver,
                       .is_dependent = w->ptx->is_dependent,
                       .is_cubin = true,
                       .data = cubin.data,
                       .bytes = cubin.length,
                       .hash = image_hash_of(cubin.data, cubin.length),
                       .ptx_hash = w->ptx->hash};
    return true;
}

bool assemble(const assembler *s, arena *a, assembly *work, size_t count, diagnostics *d)
{
    pid_t *processes = arena_alloc(a, (count + 1) * sizeof *processes);
    size_t started = 0, taken = 0;
    bool ok = true;
    while (taken < count && (ok || taken < started)) {
        if (ok && started < count && started - taken < s->at_once) {
            assembly *w = &work[started];
            const char *why = start_one(s, a, started, w->ptx, w->target, &processes[started]);
            ok = !why;
            if (why)
                diagnose(d, w->variant->at, message_ptxas_not_run, w->variant->id, target_text(a, w->target),
                         why);
            if (why)
                remove_files(s, a, started);
            started += ok;
            continue;
        }
        ok = take_one(s, a, taken, processes[taken], &work[taken], d) && ok;
        remove_files(s, a, taken++);
    }
    return ok;
}

size_t assemble_variant(const assembler *s, arena *a, const plan *p, const variant *v, const image *images,
                        size_t count, image *cubins, diagnostics *d)
{
    assembly work[TARGETS_MOST];
    size_t wanted = 0;
    for (size_t i = 0; i < p->target_count; i++)
        if (v->runs_on >> i & 1u) {
            const image *ptx = image_for(images, count, p->targets[i]);
            work[wanted++] = (assembly){.variant = v, .ptx = ptx, .target = p->targets[i]};
        }
    if (!assemble(s, a, work, wanted, d))
        return 0;
    for (size_t i = 0; i < wanted; i++)
        cubins[i] = work[i].cubin;
    return wanted;
}
