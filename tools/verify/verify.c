/* kiln-verify, for one bundle. */
#define _POSIX_C_SOURCE 200809L /* setenv, sigaction */
#include "verify.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "families/inputs.h"
#include "mutate/trial.h"
#include "report.h"
#include "uncompared.h"

typedef struct program {
    options options;
    const kiln_index *index;
    const manifest *manifest;
    pool memory;
    device device;
    const manifest_variant **variants; /* that were asked for */
    size_t variant_count;
} program;

static bool read_real_data(program *p)
{
    FILE *in = p->options.data ? fopen(p->options.data, "rb") : NULL;
    long bytes = -1;
    if (!p->options.data)
        return true;
    if (in && fseek(in, 0, SEEK_END) == 0)
        bytes = ftell(in);
    if (bytes > 0) {
        float *numbers = pool_allocate(&p->memory, (size_t)bytes);
        rewind(in);
        inputs_set_real(numbers, fread(numbers, sizeof *numbers, (size_t)bytes / sizeof *numbers, in));
    } else {
        fprintf(stderr, "kiln-verify: cannot read %s\n", p->options.data);
    }
    if (in)
        fclose(in);
    return bytes > 0;
}

static void choose_variants(program *p)
{
    const sample_share share = p->options.sample;
    uint64_t matches = 0;
    p->variants = pool_allocate(&p->memory, (p->manifest->variant_count + 1) * sizeof *p->variants);
    for (size_t i = 0; i < p->manifest->variant_count; i++) {
        const manifest_variant *v = &p->manifest->variants[i];
        if (p->options.filter && !strstr(v->id, p->options.filter))
            continue;
        if (matches++ % share.step == share.first)
            p->variants[p->variant_count++] = v;
    }
}

static bool has_own_image(const program *p, const manifest_variant *v)
{
    const kiln_device *here = &p->device.loader.device;
    const kiln_image *taken = kiln_select(here, kiln_find(p->index, v->key)->module);
    return taken && taken->sm == here->sm;
}

static void keep_own_images(program *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->variant_count; i++)
        if (has_own_image(p, p->variants[i]))
            p->variants[kept++] = p->variants[i];
    p->variant_count = kept;
}

static int list_variants(const program *p)
{
    for (size_t i = 0; i < p->variant_count; i++)
        printf("%016llx  %-9s  %s\n", (unsigned long long)p->variants[i]->key,
               family_find(p->variants[i]->family) ? "reference" : "-", p->variants[i]->id);
    return VERIFY_EXIT_OK;
}

/* Every kernel of the index is in the manifest, and the other way round. */
static bool check_manifest(const program *p)
{
    if (p->manifest->variant_count != p->index->bundle->kernel_count ||
        strcmp(p->manifest->bundle, p->index->bundle->name) != 0) {
        fprintf(stderr,
                "kiln-verify: the manifest is of bundle %s with %zu variants, the code of %s with %u\n",
                p->manifest->bundle, p->manifest->variant_count, p->index->bundle->name,
                p->index->bundle->kernel_count);
        return false;
    }
    for (size_t i = 0; i < p->manifest->variant_count; i++) {
        const manifest_variant *v = &p->manifest->variants[i];
        if (kiln_find(p->index, v->key) && kiln_find_name(p->index, v->id) == kiln_find(p->index, v->key))
            continue;
        fprintf(stderr, "kiln-verify: the bundle has no kernel %s\n", v->id);
        return false;
    }
    return true;
}

/* Whoever names a driver or a device wants it used: a mistyped name is no reason to skip. */
static bool wants_this_device(const options *o)
{
    return o->driver || o->device != DEVICE_UNNAMED;
}

static int fail_all_skipped(const program *p, size_t count)
{
    fprintf(stderr, "kiln-verify: nothing was verified: on %s %s skipped; the table says why\n",
            p->device.name, count == 1 ? "the only variant was" : "all variants were");
    return wants_this_device(&p->options) ? VERIFY_EXIT_WRONG : VERIFY_EXIT_NO_DEVICE;
}

/* The variant that runs, should a reference end the process. */
static const char *running = "no variant";

static void tell_death(int number)
{
    static const char before[] = "kiln-verify: this process dies while it runs ";
    if (write(STDERR_FILENO, before, sizeof before - 1) < 0 ||
        write(STDERR_FILENO, running, strlen(running)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
        return;
    raise(number);
}

static void watch_death(void)
{
    static const int deaths[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++)
        sigaction(deaths[i],
                  &(struct sigaction){.sa_handler = tell_death, .sa_flags = (int)SA_RESETHAND | SA_NODEFER},
                  NULL);
}

static int run_all(program *p)
{
    run_result *results = pool_allocate(&p->memory, (p->variant_count + 1) * sizeof *results);
    size_t done = 0;
    bool has_device = true;
    report_begin(p->manifest, &p->device, &p->options);
    watch_death();
    for (; has_device && done < p->variant_count; done++) {
        const manifest_variant *v = p->variants[done];
        running = v->id;
        has_device = run_variant(&p->device, p->manifest, v, kiln_find(p->index, v->key), &p->options.run,
                                 report_progress, &results[done]);
        report_variant(v, &results[done]);
    }
    int status = report_end(&p->device, p->variants, results, done);
    if (status == VERIFY_EXIT_NO_DEVICE)
        status = fail_all_skipped(p, done);
    if (p->options.json &&
        !report_write_json(p->options.json, p->manifest, &p->device, &p->options, p->variants, results, done))
        status = VERIFY_EXIT_WRONG;
    return status;
}

static int mutate_all(program *p)
{
    if (p->device.is_emulated)
        return mutants_run(&p->device, p->manifest, p->variants, p->variant_count, &p->options);
    fprintf(
        stderr,
        "kiln-verify: --mutate is for the emulated driver: on %s a wrong kernel may hang, or write where it "
        "must not\n",
        p->device.name);
    return VERIFY_EXIT_USAGE;
}

static int run_program(program *p, const char *manifest_text, size_t manifest_bytes)
{
    char error[1024];
    p->manifest = manifest_read(&p->memory, manifest_text, manifest_bytes, error, sizeof error);
    if (!p->manifest) {
        fprintf(stderr, "kiln-verify: %s\n", error);
        return VERIFY_EXIT_WRONG;
    }
    choose_variants(p);
    if (p->variant_count == 0) {
        fprintf(stderr, "kiln-verify: the bundle has no such variant; --list shows all\n");
        return VERIFY_EXIT_USAGE;
    }
    if (!check_manifest(p) || !references_check(p->manifest))
        return VERIFY_EXIT_WRONG;
    if (p->options.is_listing)
        return list_variants(p);
    if (!read_real_data(p) || !report_may_write(p->options.json))
        return VERIFY_EXIT_USAGE;
    setenv("KILN_EMU_CHECK", "all", 0); /* the emulated driver reads it when it is opened */
    const bool has_number = p->options.device != DEVICE_UNNAMED;
    device_status opened = device_open(&p->device, p->options.driver, has_number ? (int)p->options.device : 0,
                                       p->index, error, sizeof error);
    if (opened != DEVICE_OK) {
        fprintf(stderr, "kiln-verify: %s\n", error);
        bool may_skip = opened == DEVICE_NONE && !wants_this_device(&p->options);
        return may_skip ? VERIFY_EXIT_NO_DEVICE : VERIFY_EXIT_WRONG;
    }
    if (p->options.wants_own_images)
        keep_own_images(p);
    int status = VERIFY_EXIT_OK;
    if (p->variant_count == 0)
        printf("no image is for %s itself\n", p->device.name);
    else
        status = p->options.mutants ? mutate_all(p) : run_all(p);
    device_close(&p->device);
    return status;
}

int kiln_verify_main(int argc, char **argv, const kiln_index *index, const char *manifest_text,
                     size_t manifest_bytes)
{
    program p = {.index = index};
    if (!options_read(&p.options, argc, argv))
        return VERIFY_EXIT_USAGE;
    if (p.options.wants_help) {
        options_print_help();
        return VERIFY_EXIT_OK;
    }
    int status = run_program(&p, manifest_text, manifest_bytes);
    pool_free(&p.memory);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "kiln-verify: cannot write to standard output\n");
        return VERIFY_EXIT_WRONG;
    }
    return status;
}
