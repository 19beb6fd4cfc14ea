/* Fuzzes `kiln init` with arbitrary bytes as a model file: it refuses them, or writes a configuration that kiln accepts
 * (otherwise it exits with status 3). Texts in it are valid UTF-8 without control characters. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kiln/author/families.h>

#include "init/config_json.h"
#include "init/init.h"
#include "init/program.h"
#include "replay.h"

const char *__lsan_default_suppressions(void);

/* libfyaml 0.7.12 leaks memory after scalars with very many pieces (a '' x 9); kiln reads one file per process. */
const char *__lsan_default_suppressions(void)
{
    return "leak:fy_atom_iter_grow_chunk\n";
}

/* The first inputs, this many, and then one in as many, include the choice of variants. */
enum { WHOLE_INPUTS = 64 };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

static void judge(const init_texts *made)
{
    if (made->variant_count == 0)
        abort();
    for (int i = 0; i < INIT_FILES; i++) {
        const text *t = &made->files[i];
        if (t->length == 0 || strlen(t->data) != t->length || strstr(t->data, "@ROWS@") ||
            strstr(t->data, "@NAME@"))
            abort();
        for (size_t k = 0; k < t->length; k++)
            if ((unsigned char)t->data[k] < ' ' && t->data[k] != '\n')
                abort();
    }
}

/* Runs without the choice of variants, which takes most of the time. */
static bool make_texts(arena *a, family_list families, const char *path, bool is_gguf, diagnostics *d)
{
    model_facts m;
    init_items items = {0};
    text out = text_new(a);
    if (!(is_gguf ? model_read_gguf(a, path, &m, d) : model_read_json(a, families, path, NULL, &m, d)))
        return false;
    items_of_model(a, &m, &items);
    for (size_t i = 0; i < items.count; i++)
        items_print(&out, &items.items[i]);
    program_print(&out, &items, &m, &(program_options){.name = "app"});
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const kiln_family *const families[] = {KILN_FAMILIES, 0};
    char path[] = "/tmp/init_fuzz.XXXXXX.json", *said = NULL;
    size_t said_bytes;
    const bool is_gguf = bytes > 0 && data[0] == 'G';
    if (is_gguf)
        *strrchr(path, '.') = 0;
    const int descriptor = mkstemps(path, is_gguf ? 0 : (int)strlen(".json"));
    if (descriptor < 0 || write(descriptor, data, bytes) != (ssize_t)bytes)
        abort();
    arena *a = arena_new();
    diagnostics d = {.out = open_memstream(&said, &said_bytes)};
    init_texts made;
    const init_options options = {.targets = "sm_80", .model = path};
    static unsigned inputs;
    const bool is_whole = inputs < WHOLE_INPUTS || inputs % WHOLE_INPUTS == 0;
    const bool is_made =
        is_whole ? init_make(a, families, &options, &made, &d) : make_texts(a, families, path, is_gguf, &d);
    inputs++;
    fclose(d.out);
    if (is_made != (d.count == 0) || (!is_made && said_bytes == 0))
        abort();
    if (is_made && is_whole)
        judge(&made);
    free(said);
    arena_free(a);
    close(descriptor);
    unlink(path);
    return 0;
}
