/* A generator's command line. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kiln/kiln.h>

#include "bundle/bundle.h"
#include "bundle/diff.h"
#include "bundle/explain.h"
#include "choose/choose.h"
#include "family/describe.h"
#include "family/family.h"
#include "init/init.h"
#include "plan/config.h"
#include "plan/lock.h"
#include "plan/schema.h"
#include "support/family_code.h"
#include "support/files.h"
#include "support/quote.h"
#include "support/words.h"
#include "target/devices.h"
#include "target/target.h"

typedef enum option_name {
    OPTION_OUTPUT,
    OPTION_TARGET,
    OPTION_TARGETS,
    OPTION_DEVICE,
    OPTION_IMAGES,
    OPTION_PTX,
    OPTION_SHARDS,
    OPTION_JOBS,
    OPTION_LOCK,
    OPTION_DIFF,
    OPTION_CANDIDATES,
    OPTION_NAME,
    OPTION_MODEL,
    OPTION_FORMAT,
    OPTION_CXX,
    OPTION_STAMP,
    OPTION_CHECK,
    OPTION_TIMES,
    OPTION_FORCE,
    OPTION_QUIET,
    OPTION_IR,
    OPTION_SOURCE,
    OPTION_CONTIGUOUS,
    OPTION_LONG,
    OPTION_JSON,
    OPTION_HELP,
    OPTION_COUNT
} option_name;

typedef struct command_line {
    family_list families;
    arena *arena;
    diagnostics diagnostics;
    const char *const *names; /* arguments that are not options: CONFIG and ID, or NAME */
    size_t name_count;
    const char *command;
    const char *line;                  /* all words, quoted for a shell */
    const char *options[OPTION_COUNT]; /* the value, empty if it has none; null: not given */
    const char **ptx;                  /* each value of --ptx */
    size_t ptx_count, ptx_capacity;
} command_line;

/* ---- commands --------------------------------------------------------------------------------------------------- */

static int fail(const char *what)
{
    fprintf(stderr, "kiln: error: %s\n", what);
    return EXIT_BAD_INPUT;
}

static int fail_usage(const char *what)
{
    fail(what);
    return EXIT_BAD_USAGE;
}

static int bad_status(const command_line *c)
{
    return c->diagnostics.has_usage ? EXIT_BAD_USAGE : EXIT_BAD_INPUT;
}

static plan *read_config(command_line *c, const choose_options *choose)
{
    const config_options options = {
        c->options[OPTION_TARGETS], c->options[OPTION_IMAGES], c->ptx, c->ptx_count, choose_variants, choose};
    return config_read(c->arena, c->families, c->names[0], &options, &c->diagnostics);
}

static plan *read_plan(command_line *c)
{
    plan *p = read_config(c, &(choose_options){.lock = c->options[OPTION_LOCK]});
    diagnostics_finish(&c->diagnostics);
    return p;
}

static const char *option_word(option_name option);

/* Reads "1" to "99"; 0 if the option is not given. False after a message. */
static bool read_count(const command_line *c, option_name option, uint32_t *count)
{
    const char *word = c->options[option];
    *count = 0;
    if (!word)
        return true;
    const size_t digits = strspn(word, "0123456789");
    *count = word[digits] || digits > 2 ? 0 : (uint32_t)strtoul(word, NULL, 10);
    if (*count == 0)
        fail(arena_format(c->arena, "expected a number from 1 to %d after --%s, found '%s'", SHARDS_MOST,
                          option_word(option), quote_text(c->arena, word)));
    return *count > 0;
}

static int run_generate(command_line *c)
{
    uint32_t shards, jobs;
    const bool is_check = c->options[OPTION_CHECK], is_timed = c->options[OPTION_TIMES];
    if (is_check && is_timed)
        return fail_usage("give --check or --times: a check writes and times nothing");
    if (!read_count(c, OPTION_SHARDS, &shards) || !read_count(c, OPTION_JOBS, &jobs))
        return EXIT_BAD_USAGE;
    plan *p = read_config(c, &(choose_options){.lock = c->options[OPTION_LOCK]});
    int status = bad_status(c);
    if (p) {
        p->shards = shards;
        p->jobs = jobs;
        p->replaces_all = c->options[OPTION_FORCE] != NULL;
        p->is_timed = is_timed;
        const bundle_output out = {.folder = c->options[OPTION_OUTPUT] ? c->options[OPTION_OUTPUT]
                                                                       : folder_of(c->arena, p->config_path),
                                   .stamp = c->options[OPTION_STAMP],
                                   .is_quiet = c->options[OPTION_QUIET]};
        status = (is_check ? bundle_check : bundle_generate)(c->arena, p, &c->diagnostics, &out);
    }
    diagnostics_finish(&c->diagnostics);
    return status;
}

static int run_init(command_line *c)
{
    const init_options options = {.folder = c->name_count > 0 ? c->names[0] : NULL,
                                  .name = c->options[OPTION_NAME],
                                  .targets = c->options[OPTION_TARGETS],
                                  .model = c->options[OPTION_MODEL],
                                  .format = c->options[OPTION_FORMAT],
                                  .is_cxx = c->options[OPTION_CXX] != NULL};
    const bool ok = init_project(c->arena, c->families, &options, c->options[OPTION_QUIET] ? NULL : stdout,
                                 &c->diagnostics);
    diagnostics_finish(&c->diagnostics);
    return ok ? 0 : bad_status(c);
}

static int run_export(command_line *c)
{
    uint32_t jobs;
    if (!c->options[OPTION_OUTPUT])
        return fail_usage("export needs --output DIR");
    if (!read_count(c, OPTION_JOBS, &jobs))
        return EXIT_BAD_USAGE;
    plan *p = read_plan(c);
    if (!p)
        return bad_status(c);
    p->jobs = jobs;
    p->replaces_all = c->options[OPTION_FORCE] != NULL;
    const bundle_output out = {.folder = c->options[OPTION_OUTPUT], .is_quiet = c->options[OPTION_QUIET]};
    const int status = bundle_export(c->arena, p, &c->diagnostics, &out);
    diagnostics_finish(&c->diagnostics);
    return status;
}

static bool has_id(variant *const *variants, size_t from, size_t to, const char *id)
{
    for (size_t i = from; i < to; i++)
        if (strcmp(variants[i]->id, id) == 0)
            return true;
    return false;
}

static bool is_chosen(const plan *p, const variant *v)
{
    for (size_t i = 0; i < p->shaped_count; i++)
        if (v->at.line == p->shaped[i].request.at.line && v->at.column == p->shaped[i].request.at.column &&
            strcmp(v->at.file, p->shaped[i].request.at.file) == 0)
            return true;
    return false;
}

/* The index of a plan's chosen variants: those of its items with shapes come last. */
static size_t first_chosen(const plan *p)
{
    size_t i = p->variant_count;
    while (i > 0 && is_chosen(p, p->variants[i - 1]))
        i--;
    return i;
}

static int write_lock(command_line *c, const plan *p, const char *path, const text *summary,
                      uint32_t candidates)
{
    static const char mark[] = "# Made by `kiln choose ";
    arena *piece = arena_new();
    spool *s = spool_open(c->arena, folder_of(c->arena, path), &c->diagnostics);
    bool ok = false;
    const size_t first = first_chosen(p);
    if (s) {
        file_output f = file_begin(c->arena, piece, path, s);
        f.form = file_begins;
        f.mark = mark;
        lock_print(&f.text, p, p->variants + first, p->variant_count - first, candidates);
        file_flush(&f);
        ok = spool_is_whole(s, &c->diagnostics) &&
             files_spare_inputs(c->arena, &f, 1, p->inputs, p->input_count, &c->diagnostics) &&
             files_write(c->arena, &f, 1, c->options[OPTION_FORCE] != NULL, &c->diagnostics);
        spool_close(s);
    }
    arena_free(piece);
    if (ok && !c->options[OPTION_QUIET])
        printf("%s%s: %zu variant%s\n", summary->data, path, p->variant_count - first,
               p->variant_count - first == 1 ? "" : "s");
    return ok ? 0 : EXIT_BAD_INPUT;
}

/* "+ ID" and "- ID": changes in a new lock. */
static int print_lock_diff(command_line *c, plan *p, const char *path)
{
    lock old = {0};
    const size_t first = first_chosen(p);
    char hash[LOCK_HASH_BYTES];
    if (!lock_read(c->arena, p, path, &old, &c->diagnostics))
        return bad_status(c);
    lock_hash(c->arena, p, hash);
    bool differs = strcmp(hash, old.asked) != 0 || old.is_edited;
    if (differs)
        printf("%s\n", old.is_edited ? "the lock was changed after `kiln choose` wrote it"
                                     : "the lock was made for other items, limits, targets or tuned files");
    for (size_t i = 0; i < old.count; i++)
        if (!has_id(p->variants, 0, p->variant_count, old.variants[i]->id)) {
            printf("- %s\n", old.variants[i]->id);
            differs = true;
        }
    for (size_t i = first; i < p->variant_count; i++)
        if (!has_id(old.variants, 0, old.count, p->variants[i]->id)) {
            printf("+ %s\n", p->variants[i]->id);
            differs = true;
        }
    return differs ? EXIT_DIFFERENT : 0;
}

static int run_choose(command_line *c)
{
    uint32_t candidates;
    text summary = text_new(c->arena);
    if (!read_count(c, OPTION_CANDIDATES, &candidates))
        return EXIT_BAD_USAGE;
    if (candidates > 0 && !c->options[OPTION_OUTPUT] && !c->options[OPTION_DIFF])
        return fail_usage(
            "choose --candidates needs --output FILE: the lock beside the configuration is for the bundle that ships");
    plan *p = read_config(
        c, &(choose_options){.ignores_lock = true, .candidates = candidates, .summary = &summary});
    int status = p ? 0 : bad_status(c);
    if (p && p->shaped_count == 0) {
        fail(
            arena_format(c->arena, "%s has no item with shapes, so there is nothing to choose", c->names[0]));
        status = EXIT_BAD_INPUT;
    } else if (p) {
        const char *path = c->options[OPTION_OUTPUT] ? c->options[OPTION_OUTPUT] : lock_path(c->arena, p);
        if (!path)
            status = fail_usage(
                "choose needs --output FILE: a configuration from a pipe has no lock file beside it");
        else if (c->options[OPTION_DIFF])
            status = print_lock_diff(c, p, path);
        else
            status = write_lock(c, p, path, &summary, candidates);
    }
    diagnostics_finish(&c->diagnostics);
    return status;
}

static int run_list(command_line *c)
{
    const plan *p = read_plan(c);
    if (!p)
        return bad_status(c);
    char name[TARGET_NAME_BYTES];
    for (size_t i = 0; i < p->variant_count; i++) {
        const variant *v = p->variants[i];
        printf("%016llx %s ", (unsigned long long)v->key, v->id);
        const char *separator = "";
        for (size_t t = 0; t < p->target_count; t++) {
            if (!(v->runs_on >> t & 1))
                continue;
            printf("%s%s", separator, target_print(p->targets[t], name));
            separator = ",";
        }
        putchar('\n');
    }
    return 0;
}

/* Finds it by canonical id, or by key in 16 hex digits. */
static const variant *find_variant(const plan *p, const char *wanted)
{
    char key[17];
    for (size_t i = 0; i < p->variant_count; i++) {
        const variant *v = p->variants[i];
        snprintf(key, sizeof key, "%016llx", (unsigned long long)v->key);
        if (strcmp(v->id, wanted) == 0 || strcmp(key, wanted) == 0)
            return v;
    }
    return NULL;
}

/* "; there are X, Y and 7 more": the variants whose ids have this prefix, such as a family's name; empty if none. */
static const char *begun_text(arena *a, const plan *p, const char *begin)
{
    enum { SHOWN = 3 };
    text out = text_new(a);
    size_t count = 0;
    for (size_t i = 0; i < p->variant_count; i++) {
        if (strncmp(p->variants[i]->id, begin, strlen(begin)) != 0)
            continue;
        if (count++ < SHOWN)
            text_printf(&out, "%s%s", count == 1 ? "; there is " : ", ", p->variants[i]->id);
    }
    if (count > SHOWN)
        text_printf(&out, " and %u more", (unsigned)(count - SHOWN));
    return out.data;
}

static int fail_variant(const command_line *c, const plan *p)
{
    text ids = text_new(c->arena);
    for (size_t i = 0; i < p->variant_count; i++)
        text_printf(&ids, "%s%s", i > 0 ? " " : "", p->variants[i]->id);
    const char *begun = begun_text(c->arena, p, c->names[1]);
    return fail(arena_format(c->arena, "%s has no variant '%s'%s", c->names[0], c->names[1],
                             *begun ? begun
                                    : suggest_listed_text(c->arena, c->names[1], ids.data,
                                                          arena_format(c->arena, "kiln list %s",
                                                                       quote_shell(c->arena, c->names[0])))));
}

static bool lists_target(const plan *p, target t)
{
    for (size_t i = 0; i < p->target_count; i++)
        if (target_compare(p->targets[i], t) == 0)
            return true;
    return false;
}

static int fail_target(const command_line *c, const plan *p)
{
    char name[TARGET_NAME_BYTES];
    text listed = text_new(c->arena);
    for (size_t i = 0; i < p->target_count; i++)
        text_printf(&listed, "%s%s", i > 0 ? ", " : "", target_print(p->targets[i], name));
    return fail(arena_format(c->arena, "%s does not list the target %s; it lists %s", c->names[0],
                             c->options[OPTION_TARGET], listed.data));
}

/* Reads --target. False after a message, which ends with the alternative. */
static bool read_target(const command_line *c, target *t, const char *or_else)
{
    const char *word = c->options[OPTION_TARGET];
    if (!word)
        fail(arena_format(c->arena, "%s needs --target T, T one of %s%s", c->command,
                          list_text(c->arena, target_names), or_else));
    else if (!target_parse(word, t))
        fail(arena_format(c->arena, "no target '%s'%s", quote_text(c->arena, word),
                          target_suggest_text(c->arena, word)));
    else
        return true;
    return false;
}

static int run_show(command_line *c)
{
    target t;
    if (!read_target(c, &t, ""))
        return EXIT_BAD_USAGE;
    const plan *p = read_plan(c);
    if (!p)
        return bad_status(c);
    const variant *v = find_variant(p, c->names[1]);
    if (!v)
        return fail_variant(c, p);
    if (!lists_target(p, t))
        return fail_target(c, p);
    const show_form form = c->options[OPTION_IR]       ? SHOW_IR
                           : c->options[OPTION_SOURCE] ? SHOW_SOURCE
                                                       : SHOW_PTX;
    if (form != SHOW_PTX && v->kind == VARIANT_EXTERNAL)
        return fail(arena_format(c->arena, "%s is external PTX, which has no %s", v->id,
                                 form == SHOW_IR ? "IR" : "kernel source"));
    if (!bundle_show(c->arena, p, v, t, form, stdout))
        return fail(arena_format(c->arena, "%s does not run on %s", v->id, c->options[OPTION_TARGET]));
    return 0;
}

static int run_families(command_line *c)
{
    const kiln_family *family = c->name_count > 0 ? family_find(c->families, c->names[0]) : NULL;
    if (c->name_count > 0 && !family)
        return fail(arena_format(c->arena, "no family '%s'%s", c->names[0],
                                 suggest_listed_text(c->arena, c->names[0],
                                                     family_names(c->arena, c->families), "kiln families")));
    text out = text_new(c->arena);
    if (c->options[OPTION_JSON])
        describe_json(&out, family ? (const kiln_family *[]){family, NULL} : c->families);
    else if (family)
        describe_family(&out, family, c->options[OPTION_LONG] != NULL);
    else
        describe_families(&out, c->families);
    fwrite(out.data, 1, out.length, stdout);
    return 0;
}

/* The device of one of the configuration's tuned files: the target's representative, with the measured multiprocessors.
 * Null if there is no such file, or no representative. */
static const char *find_tuned_device(const plan *p, const char *word, kiln_device *device)
{
    for (size_t i = 0; i < p->tuned_count; i++) {
        const tuned_file *file = p->tuned[i];
        if (strcmp(file->asked, word) != 0 || !device_find(file->sm, NULL, device))
            continue;
        device->multiprocessors = file->multiprocessors;
        return file->device ? file->device : file->asked;
    }
    return NULL;
}

/* Finds the requested device; false after a message. */
static bool find_device(const command_line *c, target t, const plan *p, kiln_device *device,
                        const char **name)
{
    const char *word = c->options[OPTION_DEVICE];
    *name = device_find(t.sm, word, device);
    if (!*name && word)
        *name = find_tuned_device(p, word, device);
    if (*name)
        return true;
    const char *called = word ? device_names(c->arena, word) : "";
    fail(arena_format(c->arena, *called ? "several devices match '%s': %s" : "no device '%s'; there are %s",
                      quote_text(c->arena, word ? word : c->options[OPTION_TARGET]),
                      *called ? called : device_names(c->arena, NULL)));
    return false;
}

/* A family of the generator, or of external PTX in the configuration; null after a message. */
static const kiln_family *find_planned_family(const command_line *c, const plan *p, const char *name)
{
    const kiln_family *family = family_find(c->families, name);
    text names = text_new(c->arena);
    text_add(&names, family_names(c->arena, c->families));
    for (size_t i = 0; i < p->variant_count && !family; i++) {
        const kiln_family *own = p->variants[i]->family;
        if (strcmp(own->name, name) == 0)
            family = own;
        else if (!words_contain(names.data, own->name))
            text_printf(&names, " %s", own->name);
    }
    if (!family)
        fail(arena_format(c->arena, "no family '%s'%s", name,
                          suggest_listed_text(c->arena, name, names.data, "kiln families")));
    return family;
}

static int run_explain(command_line *c)
{
    kiln_device device;
    const char *device_name;
    target t = {0, TARGET_BASE};
    if (c->options[OPTION_DEVICE] && c->options[OPTION_TARGET]) {
        fail("give --target or --device: a device has its target");
        return EXIT_BAD_USAGE;
    }
    if (!c->options[OPTION_DEVICE] &&
        !read_target(c, &t, "; or --device D, words of a device's name, such as 'orin nano'"))
        return EXIT_BAD_USAGE;
    const plan *p = read_plan(c);
    if (!p)
        return bad_status(c);
    if (!find_device(c, t, p, &device, &device_name))
        return EXIT_BAD_USAGE;
    const kiln_family *family = find_planned_family(c, p, c->names[1]);
    if (!family)
        return EXIT_BAD_INPUT;
    text out = text_new(c->arena);
    text_printf(&out, "%s on %s, sm_%u, %u multiprocessors: ", family->name, device_name, (unsigned)device.sm,
                (unsigned)device.multiprocessors);
    const explain_options options = {.command = c->line,
                                     .device_mhz = device_mhz(device_name),
                                     .is_contiguous = c->options[OPTION_CONTIGUOUS] != NULL,
                                     .is_long = c->options[OPTION_LONG] != NULL};
    const bool is_launched =
        explain_call(&out, p, family, &device, c->names + 2, c->name_count - 2, &options, &c->diagnostics);
    if (diagnostics_finish(&c->diagnostics))
        fwrite(out.data, 1, out.length, stdout);
    return is_launched ? 0 : EXIT_BAD_INPUT;
}

static int run_schema(command_line *c)
{
    text out = text_new(c->arena);
    schema_print(&out, c->families);
    fwrite(out.data, 1, out.length, stdout);
    return 0;
}

static int run_diff(command_line *c)
{
    text out = text_new(c->arena);
    bool is_alike = false;
    const bool is_read = diff_manifests(c->arena, c->names[0], c->names[1], &out, &is_alike, &c->diagnostics);
    diagnostics_finish(&c->diagnostics);
    if (!is_read)
        return EXIT_BAD_INPUT;
    fwrite(out.data, 1, out.length, stdout);
    return is_alike ? 0 : EXIT_DIFFERENT;
}

/* ---- the command line ------------------------------------------------------------------------------------------- */

/* clang-format off */
static const struct {
    const char *name;
    char letter; /* 0: none */
    const char *value, *about;
} options[OPTION_COUNT] = {
    [OPTION_OUTPUT]  = {"output",  'o', "PATH",  "write to this folder (choose: to this file); default for generate and choose: beside CONFIG"},
    [OPTION_TARGET]  = {"target",  't', "T",     "sm_80, sm_90a, ..."},
    [OPTION_TARGETS] = {"targets",  0,  "T,...", "these targets, not the configuration's or init's default"},
    [OPTION_DEVICE]  = {"device",  'd', "D",     "a device, by words of its name such as 'orin nano', or of a tuned file; an unknown name lists all"},
    [OPTION_IMAGES]  = {"images",   0,  "F,...", "these formats, not the configuration's: ptx, cubin, or ptx,cubin"},
    [OPTION_PTX]     = {"ptx",      0,  "NAME=FILE,...", "the files that 'ptx: NAME' embeds, of one source; may be repeated"},
    [OPTION_SHARDS]  = {"shards",   0,  "N",     "split the families over N files, which compile in parallel"},
    [OPTION_JOBS]    = {"jobs",    'j', "N",     "use N threads, with the same output; default: one per processor, or one to take times"},
    [OPTION_LOCK]    = {"lock",     0,  "FILE",  "the variants chosen for items with shapes; default: NAME.lock.yaml beside CONFIG"},
    [OPTION_DIFF]    = {"diff",     0,  NULL,    "write nothing; print what would change"},
    [OPTION_CANDIDATES] = {"candidates", 0, "N", "also keep the N fastest of each contract, for a bundle to measure"},
    [OPTION_NAME]    = {"name",     0,  "NAME",  "the bundle's name; default: appkernels"},
    [OPTION_MODEL]   = {"model",    0,  "FILE",  "for this model: a GGUF file, or a config.json"},
    [OPTION_FORMAT]  = {"format",   0,  "F",     "the weights' format, if a config.json has no quantization_config: q4_k, nf4, ..."},
    [OPTION_CXX]     = {"cxx",      0,  NULL,    "in C++: main.cpp, not main.c"},
    [OPTION_STAMP]   = {"stamp",    0,  "FILE",  "write FILE last; the depfile names it, not the bundle's files"},
    [OPTION_CHECK]   = {"check",    0,  NULL,    "write nothing; print which files are missing, differ or are left over"},
    [OPTION_TIMES]   = {"times",    0,  NULL,    "print the processor time of the PATH's ptxas for each PTX image"},
    [OPTION_FORCE]   = {"force",   'f', NULL,    "replace files that kiln did not write too"},
    [OPTION_QUIET]   = {"quiet",   'q', NULL,    "print nothing but errors, warnings, stale files and the rows of times"},
    [OPTION_IR]      = {"ir",       0,  NULL,    "print the builder's IR instead of PTX"},
    [OPTION_SOURCE]  = {"source",   0,  NULL,    "append the source line that emitted each instruction"},
    [OPTION_CONTIGUOUS] = {"contiguous", 0, NULL, "set omitted strides to those of contiguous arrays"},
    [OPTION_LONG]    = {"long",    'l', NULL,    "print whole ids, and the expressions for rules, launch, cost and time"},
    [OPTION_JSON]    = {"json",     0,  NULL,    "print JSON, for programs"},
    [OPTION_HELP]    = {"help",    'h', NULL,    "print this"},
};

static const char *option_word(option_name option)
{
    return options[option].name;
}

#define BIT(option) (1u << OPTION_##option)
static const struct {
    const char *name;
    size_t least, most; /* names */
    unsigned options;   /* bits */
    int (*run)(command_line *);
    const char *synopsis, *about;
} commands[] = {
    {"init",     0, 1, BIT(NAME) | BIT(TARGETS) | BIT(MODEL) | BIT(FORMAT) | BIT(CXX) | BIT(QUIET), run_init,
     "[DIR]",                          "write a new project: kernels.yaml, its lock, CMakeLists.txt, a program"},
    {"generate", 1, 1, BIT(OUTPUT) | BIT(TARGETS) | BIT(IMAGES) | BIT(PTX) | BIT(LOCK) | BIT(SHARDS) | BIT(JOBS) | BIT(STAMP) | BIT(CHECK) | BIT(TIMES) | BIT(FORCE) | BIT(QUIET), run_generate,
     "CONFIG",                         "write a configuration's bundle"},
    {"choose",   1, 1, BIT(OUTPUT) | BIT(TARGETS) | BIT(PTX) | BIT(DIFF) | BIT(CANDIDATES) | BIT(FORCE) | BIT(QUIET), run_choose,
     "CONFIG",                         "choose variants for items with shapes: CONFIG's lock file"},
    {"export",   1, 1, BIT(OUTPUT) | BIT(TARGETS) | BIT(IMAGES) | BIT(PTX) | BIT(LOCK) | BIT(JOBS) | BIT(FORCE) | BIT(QUIET), run_export,
     "CONFIG -o DIR",                  "write each image as a file: ENTRY.sm_80.ptx"},
    {"list",     1, 1, BIT(TARGETS) | BIT(PTX) | BIT(LOCK), run_list,
     "CONFIG",                         "print key, id and targets of each variant"},
    {"show",     2, 2, BIT(TARGET) | BIT(PTX) | BIT(LOCK) | BIT(IR) | BIT(SOURCE), run_show,
     "CONFIG ID -t T",                 "print a variant's kernel; ID is its id or key"},
    {"explain",  2, KILN_MAX_ARGS + KILN_MAX_PARAMS + 2, BIT(TARGET) | BIT(DEVICE) | BIT(PTX) | BIT(LOCK) | BIT(CONTIGUOUS) | BIT(LONG), run_explain,
     "CONFIG FAMILY -t T|-d D NAME=VALUE...", "print which variant a call launches, and the estimates"},
    {"diff",     2, 2, 0, run_diff,
     "OLD NEW",                        "print what changed between two manifests"},
    {"families", 0, 1, BIT(LONG) | BIT(JSON), run_families,
     "[FAMILY]",                       "print the families and their parameters"},
    {"schema",   0, 0, 0, run_schema,
     "",                               "print a JSON Schema of configurations, for editors"},
};
/* clang-format on */
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static const char about_status[] =
    "\nexit status: 0, 1 bad input, or explain finds nothing to launch, 2 bad usage (a command, an option or its\n"
    "value), 3 a mistake in a family, or inside kiln, 4 diff found a difference, or generate --check a stale file\n";

static void print_usage(FILE *out)
{
    fputs("kiln writes GPU kernels as PTX inside C source files.\n\nusage:\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  kiln %-8s %-38s %s\n", commands[i].name, commands[i].synopsis, commands[i].about);
    fprintf(out, "  kiln %-47s %s\n", "help COMMAND", "print a command's options");
    fprintf(out, "  kiln --help | --version\n%s", about_status);
}

/* The last line of --help: the emulated driver's path, in the build folder or installed with this program; otherwise
 * nothing. */
static void print_emulator(arena *a)
{
    static const char *const folders[] = {"../lib/emulator", KILN_EMULATOR_FROM_BIN};
    char program[4096];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0)
        return;
    program[length] = '\0';
    *strrchr(program, '/') = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char *driver = realpath(arena_format(a, "%s/%s/libcuda.so.1", program, folders[i]), NULL);
        if (driver) {
            printf("\nemulated driver: %s\n", driver);
            free(driver);
            return;
        }
    }
}

static void print_options(unsigned set)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (!(set >> i & 1))
            continue;
        char letter[] = {'-', options[i].letter, ',', ' ', '\0'};
        char name[32];
        snprintf(name, sizeof name, "--%s%s%s", options[i].name, options[i].value ? "=" : "",
                 options[i].value ? options[i].value : "");
        printf("  %s%-19s %s\n", options[i].letter ? letter : "    ", name, options[i].about);
    }
}

static int print_help(size_t command)
{
    const unsigned set = commands[command].options | BIT(HELP);
    printf("usage: kiln %s [OPTION]...%s%s\n%s\n\n", commands[command].name,
           *commands[command].synopsis ? " " : "", commands[command].synopsis, commands[command].about);
    print_options(set);
    return 0;
}

static int bad_usage(const command_line *c, const char *what, const char *word, const char *suggestion)
{
    fprintf(stderr, "kiln: error: %s '%s'%s\nkiln help%s%s shows how it is used\n", what, word, suggestion,
            c->command ? " " : "", c->command ? c->command : "");
    return EXIT_BAD_USAGE;
}

/* Reports what getopt_long rejected: the word before optind, or a letter of it. */
static int bad_option(const command_line *c, unsigned set, int found, char **argv)
{
    text known = text_new(c->arena);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (set >> i & 1)
            text_printf(&known, "%s--%s", known.length ? " " : "", options[i].name);
    const char *word = argv[optind - 1];
    const char letter[] = {'-', (char)optopt, '\0'};
    const bool is_letter = optopt != 0 && strncmp(word, "--", 2) != 0;
    if (found == ':')
        return bad_usage(c, "a value is missing after", is_letter ? letter : word, "");
    if (is_letter)
        return bad_usage(c, "unknown option", letter, "");
    if (optopt != 0)
        return bad_usage(c, "no value is expected:", word, "");
    return bad_usage(c, "unknown option", word, suggest_text(c->arena, word, known.data));
}

/* Reads all options, which getopt_long moves before the names. 0 or an exit status. */
static int take_options(command_line *c, unsigned set, int argc, char **argv)
{
    struct option rows[OPTION_COUNT + 1] = {0};
    text letters = text_new(c->arena);
    size_t count = 0;
    text_add(&letters, ":");
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (!(set >> i & 1))
            continue;
        rows[count++] = (struct option){options[i].name, options[i].value != NULL, NULL, 1000 + i};
        if (options[i].letter)
            text_printf(&letters, "%c%s", options[i].letter, options[i].value ? ":" : "");
    }
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, letters.data, rows, NULL)) != -1;) {
        if (found == '?' || found == ':')
            return bad_option(c, set, found, argv);
        int i = found - 1000;
        for (int k = 0; found < 1000 && k < OPTION_COUNT; k++)
            if (options[k].letter == found && (set >> k & 1))
                i = k;
        const char *name = arena_format(c->arena, "--%s", options[i].name);
        if (options[i].value && !*optarg)
            return bad_usage(c, "a value is missing after", name, "");
        if (i == OPTION_PTX) {
            if (!strchr(optarg, '=') || *optarg == '=' || !strchr(optarg, '=')[1])
                return bad_usage(c, "expected NAME=FILE after --ptx, found", quote_text(c->arena, optarg),
                                 "");
            *(const char **)arena_push(c->arena, (void **)&c->ptx, &c->ptx_count, &c->ptx_capacity,
                                       sizeof optarg) = optarg;
            continue;
        }
        if (options[i].value && c->options[i])
            return bad_usage(c, "given twice:", name, "");
        c->options[i] = options[i].value ? optarg : "";
    }
    return 0;
}

/* argv[0] is the command. */
static int run_command(command_line *c, size_t command, int argc, char **argv)
{
    c->command = commands[command].name;
    const int status = take_options(c, commands[command].options | BIT(HELP), argc, argv);
    if (status != 0)
        return status;
    if (c->options[OPTION_HELP])
        return print_help(command);
    c->names = (const char *const *)argv + optind;
    c->name_count = (size_t)(argc - optind);
    if (c->name_count > commands[command].most)
        return bad_usage(c, "one argument too many:", c->names[commands[command].most], "");
    const char *synopsis = commands[command].synopsis;
    for (size_t i = 0, length; i < commands[command].least; i++) {
        const char *name = words_next(&synopsis, &length);
        if (i == c->name_count)
            return bad_usage(c, arena_format(c->arena, "%.*s is missing after", (int)length, name),
                             argv[argc - 1], "");
        if (!*c->names[i])
            return bad_usage(c, arena_format(c->arena, "expected %.*s, found", (int)length, name), "", "");
    }
    return commands[command].run(c);
}

static bool is_one_of(const char *word, const char *x, const char *y, const char *z)
{
    return strcmp(word, x) == 0 || strcmp(word, y) == 0 || strcmp(word, z) == 0;
}

static const char *line_text(arena *a, int argc, char **argv)
{
    text out = text_new(a);
    for (int i = 0; i < argc; i++)
        text_printf(&out, "%s%s", i > 0 ? " " : "", quote_shell(a, argv[i]));
    return out.data;
}

static int run(command_line *c, int argc, char **argv)
{
    const char *word = argc < 2 ? "" : argv[1];
    const bool is_help = is_one_of(word, "--help", "-h", "help");
    if (argc < 2 || (is_help && argc == 2)) {
        print_usage(argc < 2 ? stderr : stdout);
        if (is_help)
            print_emulator(c->arena);
        return argc < 2 ? EXIT_BAD_USAGE : 0;
    }
    if (is_one_of(word, "--version", "-V", "version")) {
        puts("kiln " KILN_VERSION);
        return 0;
    }
    families_validate(c->families);
    c->line = line_text(c->arena, argc, argv);
    text known = text_new(c->arena);
    const char *wanted = is_help ? argv[2] : word;
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(wanted, commands[i].name) == 0)
            return is_help ? print_help(i) : run_command(c, i, argc - 1, argv + 1);
        text_printf(&known, "%s ", commands[i].name);
    }
    text_add(&known, "help --help --version");
    return bad_usage(c, "unknown command", wanted, suggest_text(c->arena, wanted, known.data));
}

int kiln_main(int argc, char **argv, const kiln_family *const *families)
{
    command_line c = {.families = families, .arena = arena_new(), .diagnostics = {.out = stderr}};
    family_code_watch();
    int status = run(&c, argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fail(arena_format(c.arena, "cannot write the output: %s", strerror(errno)));
        status = status == 0 || status == EXIT_DIFFERENT ? EXIT_BAD_INPUT : status;
    }
    arena_free(c.arena);
    return status;
}
