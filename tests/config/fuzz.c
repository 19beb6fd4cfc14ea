/* Fuzzes the readers of configurations and lock files: no crash, no leak, and a plan or lock exactly if there was no
 * diagnostic. */
#include <stdio.h>
#include <stdlib.h>

#include "../test_families.h"
#include "plan/config.h"
#include "plan/lock.h"
#include "replay.h"

const char *__lsan_default_suppressions(void);

/* libfyaml 0.7.12 leaks memory after scalars with very many pieces (a '' x 9); kiln reads one file per process. */
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

static void read_lock(const uint8_t *data, size_t bytes, FILE *nowhere)
{
    static const char config[] = "bundle: app\ntargets: [sm_75, sm_90a]\nkernels: [{family: plain}]\n";
    arena *a = arena_new();
    diagnostics d = {.out = nowhere};
    lock l = {0};
    plan *p = config_read_text(a, test_families, "fuzz.yaml", config, sizeof config - 1, NULL, &d);
    const bool is_read = lock_read_text(a, p, "fuzz.lock.yaml", (const char *)data, bytes, &l, &d);
    if (is_read != (d.count == 0) || (is_read && !l.asked))
        abort();
    arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static FILE *nowhere;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    arena *a = arena_new();
    diagnostics d = {.out = nowhere};
    const plan *p = config_read_text(a, test_families, "fuzz.yaml", (const char *)data, bytes, NULL, &d);
    if ((p != NULL) != (d.count == 0) ||
        (p && (p->variant_count + p->shaped_count == 0 || p->target_count == 0 || !p->bundle)))
        abort();
    read_lock(data, bytes, nowhere);
    arena_free(a);
    return 0;
}
