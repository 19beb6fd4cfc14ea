/* Fuzzes the reader of external PTX: no crash, no leak, and entries exactly if there was no diagnostic. */
#include <stdio.h>
#include <stdlib.h>

#include "external/ptx_file.h"
#include "replay.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static FILE *nowhere;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    arena *a = arena_new();
    diagnostics d = {.out = nowhere};
    const char *copy = arena_string(a, (const char *)data, bytes);
    const ptx_file *file = ptx_file_read_text(a, "fuzz.ptx", "fuzz.ptx", copy, bytes, &d);
    if ((file != NULL) != (d.count == 0) || (file && (file->entry_count == 0 || file->min_driver == 0)))
        abort();
    arena_free(a);
    return 0;
}
