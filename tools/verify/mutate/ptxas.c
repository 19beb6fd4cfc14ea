/* Compares the machine code of two PTX texts. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp, posix_spawnp */
#include "ptxas.h"

#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../support/files.h"

extern char **environ;

enum { FOLDER_BYTES = 512, PATH_BYTES = FOLDER_BYTES + 16 };

/* ---- running it -------------------------------------------------------------------------------------------------- */

/* Runs ptxas, with its output to a file or discarded. */
static bool run_ptxas(char *const *arguments, const char *printed)
{
    posix_spawn_file_actions_t actions;
    pid_t process;
    int status = -1;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return false;
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, printed, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0600);
    bool runs = posix_spawnp(&process, arguments[0], &actions, NULL, arguments, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return runs && waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "wb");
    bool written = out && fwrite(text, 1, strlen(text), out) == strlen(text);
    return (!out || fclose(out) == 0) && written;
}

static bool make_folder(char *path)
{
    const char *base = getenv("TMPDIR");
    snprintf(path, FOLDER_BYTES, "%s/kiln-verify-XXXXXX", base && *base ? base : "/tmp");
    return mkdtemp(path) != NULL;
}

bool ptxas_find(char *version, size_t bytes)
{
    char folder[FOLDER_BYTES], path[PATH_BYTES], program[] = "ptxas", asked[] = "--version";
    char *const arguments[] = {program, asked, NULL};
    pool memory = {NULL};
    size_t length = 0;
    if (!make_folder(folder))
        return false;
    snprintf(path, sizeof path, "%s/version", folder);
    const char *said = run_ptxas(arguments, path) ? file_read(&memory, path, &length) : NULL;
    const char *release = said ? strstr(said, "release ") : NULL;
    if (release)
        snprintf(version, bytes, "%.*s", (int)strcspn(release, "\n"), release);
    remove(path);
    rmdir(folder);
    pool_free(&memory);
    return release != NULL;
}

/* Finds "sm_90a" in ".target sm_90a". */
static bool find_target(const char *text, char *target, size_t bytes)
{
    const char *found = strstr(text, ".target");
    if (!found)
        return false;
    found += strlen(".target");
    found += strspn(found, " \t");
    snprintf(target, bytes, "%.*s", (int)strcspn(found, " \t,\r\n"), found);
    return true;
}

/* Compiles the text. Null: ptxas refuses it. */
static char *compile(const char *folder, const char *text, size_t *bytes, pool *memory)
{
    char source[PATH_BYTES], result[PATH_BYTES], target[32], program[] = "ptxas", arch[] = "-arch",
                                                             out[] = "-o";
    char *const arguments[] = {program, arch, target, source, out, result, NULL};
    snprintf(source, sizeof source, "%s/text.ptx", folder);
    snprintf(result, sizeof result, "%s/code.cubin", folder);
    bool compiles = find_target(text, target, sizeof target) && write_file(source, text) &&
                    run_ptxas(arguments, "/dev/null");
    char *code = compiles ? file_read(memory, result, bytes) : NULL;
    remove(source);
    remove(result);
    return code;
}

/* ---- machine code ------------------------------------------------------------------------------------------------ */

typedef struct sections {
    const char *file;
    size_t bytes;
    Elf64_Ehdr head;
    Elf64_Shdr names;
} sections;

static bool read_section(const sections *s, size_t i, Elf64_Shdr *section)
{
    size_t at = s->head.e_shoff + i * sizeof *section;
    if (i >= s->head.e_shnum || at > s->bytes || s->bytes - at < sizeof *section)
        return false;
    memcpy(section, s->file + at, sizeof *section);
    return section->sh_type == SHT_NOBITS ||
           (section->sh_offset <= s->bytes && section->sh_size <= s->bytes - section->sh_offset);
}

static bool open_sections(sections *s, const char *file, size_t bytes)
{
    *s = (sections){.file = file, .bytes = bytes};
    if (bytes < sizeof s->head)
        return false;
    memcpy(&s->head, file, sizeof s->head);
    return memcmp(s->head.e_ident, ELFMAG, SELFMAG) == 0 && s->head.e_ident[EI_CLASS] == ELFCLASS64 &&
           s->head.e_shentsize == sizeof(Elf64_Shdr) && read_section(s, s->head.e_shstrndx, &s->names);
}

static const char *name_of(const sections *s, const Elf64_Shdr *section)
{
    return section->sh_name < s->names.sh_size ? s->file + s->names.sh_offset + section->sh_name : "";
}

/* Returns whether the section holds code, or data that code reads. */
static bool is_code(const char *name)
{
    static const char *const begins[] = {".text", ".nv.constant", ".nv.global", ".nv.shared", ".rel"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return strstr(name, ".debug") == NULL;
    return false;
}

static bool same_section(const sections *a, const sections *b, size_t i)
{
    Elf64_Shdr one, other;
    if (!read_section(a, i, &one) || !read_section(b, i, &other) ||
        strcmp(name_of(a, &one), name_of(b, &other)) != 0)
        return false;
    if (!is_code(name_of(a, &one)))
        return true;
    return one.sh_type == other.sh_type && one.sh_size == other.sh_size &&
           (one.sh_type == SHT_NOBITS ||
            memcmp(a->file + one.sh_offset, b->file + other.sh_offset, one.sh_size) == 0);
}

static bool same_code(const char *one, size_t one_bytes, const char *other, size_t other_bytes)
{
    sections a, b;
    if (!open_sections(&a, one, one_bytes) || !open_sections(&b, other, other_bytes) ||
        a.head.e_shnum != b.head.e_shnum)
        return false;
    for (size_t i = 1; i < a.head.e_shnum; i++)
        if (!same_section(&a, &b, i))
            return false;
    return true;
}

code_comparison ptxas_compare(const char *one, const char *other)
{
    char folder[FOLDER_BYTES];
    pool memory = {NULL};
    size_t one_bytes = 0, other_bytes = 0;
    if (!make_folder(folder))
        return CODE_REFUSED;
    const char *a = compile(folder, one, &one_bytes, &memory),
               *b = a ? compile(folder, other, &other_bytes, &memory) : NULL;
    code_comparison result = CODE_REFUSED;
    if (a && b)
        result = same_code(a, one_bytes, b, other_bytes) ? CODE_SAME : CODE_DIFFERS;
    rmdir(folder);
    pool_free(&memory);
    return result;
}
