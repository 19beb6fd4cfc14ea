/* The configuration reader on any bytes: no crash, no leak, and a plan exactly when there was no diagnostic. */
#include <stdio.h>
#include <stdlib.h>

#include "../test_families.h"
#include "plan/config.h"
#include "replay.h"

const char *__lsan_default_suppressions(void);

/* libfyaml 0.7.12 loses its own memory after scalars of very many pieces (a '' x 9); kiln reads one file per process. */
const char *__lsan_default_suppressions(void)
{
    return "leak:fy_atom_iter_grow_chunk\n";
}

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
    const plan *p = config_read_text(a, test_families, "fuzz.yaml", (const char *)data, bytes, NULL, &d);
    if ((p != NULL) != (d.count == 0) || (p && (p->variant_count == 0 || p->target_count == 0 || !p->bundle)))
        abort();
    arena_free(a);
    return 0;
}
