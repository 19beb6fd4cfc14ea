/* Any bytes as a model file: `kiln init` refuses them, or makes a configuration that kiln takes (it exits with status 3
 * otherwise), whose texts are one language's and have no control characters. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kiln/author/families.h>

#include "init/init.h"
#include "replay.h"

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
    const bool is_made = init_make(a, families, &options, &made, &d);
    fclose(d.out);
    if (is_made != (d.count == 0) || (!is_made && said_bytes == 0))
        abort();
    if (is_made)
        judge(&made);
    free(said);
    arena_free(a);
    close(descriptor);
    unlink(path);
    return 0;
}
