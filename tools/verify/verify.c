/* The program kiln-verify for one bundle. */
#define _POSIX_C_SOURCE 200809L /* getline, setenv, sigaction */
#include "verify.h"

#include <errno.h>
#include <fenv.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/files.h"
#include "families/inputs.h"
#include "journal.h"
#include "junit.h"
#include "merge.h"
#include "mutate/trial.h"
#include "progress.h"
#include "report.h"
#include "shipped.h"
#include "uncompared.h"
#include "watch.h"

typedef struct program {
    options options;
    const kiln_index *index;
    const manifest *manifest;
    const manifest *shipped; /* manifest of the shipped cubins; null: the same images run and ship */
    pool memory;
    device device;
    const manifest_variant **variants; /* requested by the command line */
    size_t variant_count;
    size_t chosen_count; /* in all parts */
    uint64_t *weights;   /* of the variants */
} program;

/* Reads the file of --data; its hash then stands for it in the results. */
static bool read_real_data(program *p)
{
    size_t bytes = 0;
    char *digits = pool_allocate(&p->memory, HASH_DIGITS + 1),
         *numbers = p->options.data ? file_read(&p->memory, p->options.data, &bytes) : NULL;
    if (!p->options.data)
        return true;
    if (bytes == 0) {
        fprintf(stderr, "kiln-verify: cannot read %s: %s\n", p->options.data,
                numbers ? "it is empty" : strerror(errno));
        return false;
    }
    if (bytes % sizeof(float) != 0) {
        fprintf(stderr, "kiln-verify: cannot read %s: it has %zu bytes, no whole number of float32\n",
                p->options.data, bytes);
        return false;
    }
    inputs_set_real((float *)(void *)numbers, bytes / sizeof(float));
    file_hash(numbers, bytes, digits);
    p->options.data = digits;
    return true;
}

/* Returns an fnmatch pattern for the ids to run. A whole id matches only itself, even if it is a prefix of others. */
static const char *id_pattern(program *p)
{
    const char *filter = p->options.filter ? p->options.filter : "";
    if (manifest_find_variant(p->manifest, filter))
        return filter;
    const size_t bytes = strlen(filter) + sizeof "**";
    char *pattern = pool_allocate(&p->memory, bytes);
    snprintf(pattern, bytes, "*%s*", filter);
    return pattern;
}

static void choose_variants(program *p)
{
    const char *pattern = id_pattern(p);
    p->variants = pool_allocate(&p->memory, (p->manifest->variant_count + 1) * sizeof *p->variants);
    for (size_t i = 0; i < p->manifest->variant_count; i++) {
        const manifest_variant *v = &p->manifest->variants[i];
        if (fnmatch(pattern, v->id, 0) == 0)
            p->variants[p->variant_count++] = v;
    }
}

static bool has_own_image(const program *p, const manifest_variant *v)
{
    kiln_device here = p->device.loader.device;
    kiln_module images = *kiln_find(p->index, v->key)->module;
    if (p->shipped && shipped_images(p->shipped, v->id, &images))
        here.ptx_only = 0;
    const kiln_image *taken = kiln_select(&here, &images);
    return taken && taken->sm == here.sm;
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

/* Checks that the index and the manifest have the same kernels. */
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

/* No variant ran: --own-images left none, or all `count` were skipped. */
static int fail_nothing_ran(const program *p, size_t count)
{
    if (count == 0)
        report_no_own_image(p->device.name);
    else
        fprintf(stderr, "kiln-verify: nothing was verified: on %s %s skipped; the table says why\n",
                p->device.name, count == 1 ? "the only variant was" : "all variants were");
    return p->device.is_named ? VERIFY_EXIT_WRONG : VERIFY_EXIT_NO_DEVICE;
}

/* The current variant, for the message if a reference ends the process. */
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

/* Sorts the variants by id, weighs them, and keeps this run's part. */
static void choose_part(program *p)
{
    size_t kept = 0;
    qsort(p->variants, p->variant_count, sizeof *p->variants, manifest_compare_ids);
    p->weights = pool_allocate(&p->memory, (p->variant_count + 1) * sizeof *p->weights);
    bool *in_part = pool_allocate(&p->memory, p->variant_count + 1);
    for (size_t i = 0; i < p->variant_count; i++) {
        const manifest_variant *v = p->variants[i];
        running = v->id;
        p->weights[i] = run_weigh(&p->device, p->manifest, v, kiln_find(p->index, v->key), &p->options.run);
    }
    part_choose(p->options.part, p->weights, p->variant_count, in_part);
    p->chosen_count = p->variant_count;
    for (size_t i = 0; i < p->variant_count; i++) {
        p->variants[kept] = p->variants[i];
        p->weights[kept] = p->weights[i];
        kept += in_part[i];
    }
    p->variant_count = kept;
}

static void begin_progress(const program *p, const run_results *all)
{
    progress begin = {.variants = all->count};
    for (size_t i = 0; i < all->count; i++) {
        begin.done += all->results[i].has_run;
        begin.weight += all->results[i].has_run ? 0 : p->weights[i];
    }
    progress_begin(&begin);
}

/* Runs one variant. False: no more can run. */
static bool run_one(program *p, size_t i, run_result *result)
{
    const manifest_variant *v = p->variants[i];
    running = v->id;
    watch_variant(v->id);
    const bool has_context = run_variant(&p->device, p->manifest, v, kiln_find(p->index, v->key),
                                         &p->options.run, progress_case, result);
    progress_variant(p->weights[i]);
    return has_context || run_recover(&p->device, result);
}

/* Runs the variants that have not run before. False: the journal cannot be written. */
static bool run_variants(program *p, run_results *all, journal *j)
{
    bool has_device = true;
    begin_progress(p, all);
    for (size_t i = 0; i < all->count; i++) {
        run_result *result = &all->results[i];
        const bool is_new = has_device && !result->has_run;
        if (is_new)
            has_device = run_one(p, i, result);
        if (is_new && !journal_add(j, all->variants[i], result))
            return false;
        if (result->has_run)
            report_variant(all->variants[i], result);
    }
    return true;
}

static int run_all(program *p)
{
    const char *json = p->options.json, *junit = p->options.junit;
    run_results all;
    journal j;
    results_open(&all, &p->memory, p->manifest, p->variants, p->variant_count);
    results_describe(&all, &p->device, &p->options, p->chosen_count);
    if (!journal_open(&j, &p->options, &all))
        return VERIFY_EXIT_USAGE;
    report_begin(&all, p->manifest->variant_count, json, junit);
    if (p->shipped)
        report_shipped(p->shipped);
    report_run(&all, p->chosen_count, &p->options);
    if (!run_variants(p, &all, &j))
        return VERIFY_EXIT_WRONG;
    results_drop_missing(&all);
    int status = report_end(&all);
    if (p->shipped && p->chosen_count == 0) {
        fprintf(stderr, "kiln-verify: nothing was verified: the bundle ships no image for %s\n",
                p->device.name);
        status = VERIFY_EXIT_WRONG;
    }
    if (status == VERIFY_EXIT_NO_DEVICE)
        status = p->options.part.of > 1 ? VERIFY_EXIT_OK : fail_nothing_ran(p, all.count);
    const bool is_written = !json || results_write(&all, json);
    journal_close(&j, is_written);
    const bool is_told = !junit || junit_write(&all, junit);
    return is_written && is_told ? status : VERIFY_EXIT_WRONG;
}

/* --queue: runs variants whose ids come on standard input. Writes a journal's lines to standard output: the facts of the
 * run, then one flushed line per id, the last one for a variant that destroyed the context. */
static int run_queue(program *p)
{
    run_results all;
    char *line = NULL;
    size_t room = 0;
    bool has_context = true;
    results_open(&all, &p->memory, p->manifest, p->variants, p->variant_count);
    results_describe(&all, &p->device, &p->options, all.count);
    results_write_facts(stdout, &all);
    while (has_context && fflush(stdout) == 0 && getline(&line, &room, stdin) > 0) {
        line[strcspn(line, "\r\n")] = '\0';
        const run_result *slot = results_slot(&all, line);
        const manifest_variant *v = slot ? all.variants[slot - all.results] : NULL;
        run_result result = {.verdict = RUN_WRONG,
                             .detail = "no such variant: the bundle lacks it, or --filter or --own-images "
                                       "leaves it out"};
        if (v) {
            running = v->id;
            watch_variant(v->id);
            has_context = run_variant(&p->device, p->manifest, v, kiln_find(p->index, v->key),
                                      &p->options.run, NULL, &result);
        }
        results_write_line(stdout, v ? v : &(manifest_variant){.id = line}, &result);
    }
    free(line);
    if (fflush(stdout) != 0)
        return VERIFY_EXIT_WRONG;
    return has_context ? VERIFY_EXIT_OK : VERIFY_EXIT_LOST;
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

static int run_on_device(program *p)
{
    if (p->options.wants_own_images)
        keep_own_images(p);
    if (p->options.mutants && p->variant_count == 0)
        return fail_nothing_ran(p, 0);
    if (p->options.mutants)
        return mutate_all(p);
    watch_death();
    if (p->options.overlaps && !device_overlap(&p->device))
        fprintf(stderr, "kiln-verify: --overlap does nothing on %s: launches overlap from sm_90 on\n",
                p->device.name);
    if (p->options.is_queue)
        return run_queue(p);
    choose_part(p);
    return p->options.is_listing ? list_variants(p) : run_all(p);
}

static bool may_write(const options *o)
{
    const out_form *json = o->mutants ? &trials_form : &results_form;
    return (!o->json || out_may_open(o->json, o->replaces_all ? NULL : json)) &&
           (!o->junit || out_may_open(o->junit, o->replaces_all ? NULL : &junit_form));
}

/* Adds a name to the list, unless it is there or there is no room. */
static void add_name(char *list, size_t bytes, const char *name)
{
    char padded[256];
    const size_t used = strlen(list);
    snprintf(padded, sizeof padded, " %s,", name);
    if (!strstr(list, padded))
        snprintf(list + used, bytes - used, "%s", padded);
}

static bool refuse_name(const char *what, const char *found, char *list)
{
    const size_t length = strlen(list);
    list[length - (length > 0)] = '\0';
    fprintf(stderr, "kiln-verify: %s: no variant has '%s'; there are%s\n", what, found, list);
    return false;
}

/* Returns whether some variant has this integer argument. */
static bool has_size(const program *p, const char *name)
{
    for (size_t i = 0; i < p->variant_count; i++)
        for (size_t k = 0; k < p->variants[i]->arg_count; k++)
            if (manifest_is_integer(&p->variants[i]->args[k]) &&
                strcmp(p->variants[i]->args[k].name, name) == 0)
                return true;
    return false;
}

/* Checks that some variant has the arguments of --size and the input of --input. */
static bool check_names(const program *p)
{
    const asked_sizes *only = &p->options.run.limits.only;
    const char *input = p->options.run.input;
    char sizes[2048] = "", inputs[2048] = "";
    bool has_input = !input;
    for (size_t i = 0; i < p->variant_count; i++) {
        const manifest_variant *v = p->variants[i];
        for (size_t k = 0; k < v->arg_count; k++)
            if (manifest_is_integer(&v->args[k]))
                add_name(sizes, sizeof sizes, v->args[k].name);
        for (const input_pattern *n = family_patterns(family_find(v->family)); n->name; n++) {
            has_input = has_input || strcmp(n->name, input) == 0;
            add_name(inputs, sizeof inputs, n->name);
        }
    }
    for (size_t i = 0; i < only->count; i++)
        if (!has_size(p, only->items[i].name))
            return refuse_name("--size", only->items[i].name, sizes);
    return has_input || refuse_name("--input", input, inputs);
}

static int run_program(program *p)
{
    char error[1024];
    choose_variants(p);
    if (p->variant_count == 0) {
        fprintf(stderr, "kiln-verify: the bundle has no such variant; --list shows all\n");
        return VERIFY_EXIT_USAGE;
    }
    if (!check_manifest(p) || (p->shipped && !shipped_check(p->shipped, p->index)) ||
        !references_check(p->manifest))
        return VERIFY_EXIT_WRONG;
    const bool needs_device = p->options.part.of > 1 || p->options.wants_own_images;
    if (p->options.is_listing && !needs_device)
        return list_variants(p);
    if (!read_real_data(p) || !check_names(p) || !may_write(&p->options) ||
        !watch_open(p->options.launch_lock, p->options.launch_seconds, p->options.is_queue))
        return VERIFY_EXIT_USAGE;
    setenv("KILN_EMU_CHECK", "all,same", 0); /* the emulated driver reads it when it is loaded */
    const device_status opened =
        device_open(&p->device, p->options.driver, p->options.device, p->index, error, sizeof error);
    if (opened != DEVICE_OK) {
        fprintf(stderr, "kiln-verify: %s\n", error);
        return opened == DEVICE_NONE ? VERIFY_EXIT_NO_DEVICE : VERIFY_EXIT_WRONG;
    }
    const int status = run_on_device(p);
    device_close(&p->device);
    return status;
}

static int run_command(program *p, int argc, char **argv, const char *manifest_text, size_t manifest_bytes)
{
    const bool is_merge = argc > 1 && strcmp(argv[1], "merge") == 0;
    char error[1024];
    if (!is_merge && !options_read(&p->options, argc, argv))
        return VERIFY_EXIT_USAGE;
    if (p->options.wants_help) {
        options_print_help();
        return VERIFY_EXIT_OK;
    }
    p->manifest = manifest_read(&p->memory, manifest_text, manifest_bytes, error, sizeof error);
    if (p->manifest && kiln_verify_shipped)
        p->shipped =
            manifest_read(&p->memory, kiln_verify_shipped, strlen(kiln_verify_shipped), error, sizeof error);
    p->options.run.shipped = p->shipped;
    if (!p->manifest || (kiln_verify_shipped && !p->shipped)) {
        fprintf(stderr, "kiln-verify: %s\n", error);
        return VERIFY_EXIT_WRONG;
    }
    return is_merge ? merge_main(argc - 1, argv + 1, p->manifest, &p->memory) : run_program(p);
}

int kiln_verify_main(int argc, char **argv, const kiln_index *index, const char *manifest_text,
                     size_t manifest_bytes)
{
    program p = {.index = index};
    fesetenv(
        FE_DFL_ENV); /* a program linked with -ffast-math would flush subnormal numbers, in references too */
    const int status = run_command(&p, argc, argv, manifest_text, manifest_bytes);
    pool_free(&p.memory);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "kiln-verify: cannot write to standard output\n");
        return VERIFY_EXIT_WRONG;
    }
    return status;
}
