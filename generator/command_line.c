/* The command line of a generator. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/kiln.h>

#include "bundle/bundle.h"
#include "bundle/diff.h"
#include "bundle/explain.h"
#include "family/describe.h"
#include "family/family.h"
#include "plan/config.h"
#include "support/quote.h"
#include "support/words.h"
#include "target/devices.h"
#include "target/target.h"

typedef struct command_line {
    family_list families;
    arena *arena;
    diagnostics diagnostics;
    const char *names[KILN_MAX_ARGS + KILN_MAX_PARAMS +
                      2]; /* what stands without an option: CONFIG and ID, or NAME */
    size_t name_count;
    const char *output, *target, *targets, *shards, *jobs, *stamp, *device; /* values of options, or null */
    bool ir, json, in_full;
} command_line;

/* ---- verbs ------------------------------------------------------------------------------------------------------ */

static int fail(const char *what)
{
    fprintf(stderr, "kiln: error: %s\n", what);
    return EXIT_BAD_INPUT;
}

/* The folder that a path is in, as it can be written before "/NAME". */
static const char *folder_of(arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return ".";
    return arena_string(a, path, slash == path ? 1 : (size_t)(slash - path));
}

static plan *read_plan(command_line *c)
{
    plan *p = config_read(c->arena, c->families, c->names[0], c->targets, &c->diagnostics);
    diagnostics_finish(&c->diagnostics);
    return p;
}

/* "1" to "99", or the option is not there: 0. False after a message. */
static bool read_count(const command_line *c, const char *option, const char *word, uint32_t *count)
{
    *count = 0;
    if (!word)
        return true;
    const size_t digits = strspn(word, "0123456789");
    *count = word[digits] || digits > 2 ? 0 : (uint32_t)strtoul(word, NULL, 10);
    if (*count == 0)
        fail(arena_format(c->arena, "expected a number from 1 to %d after %s, found '%s'", SHARDS_MOST,
                          option, quote_text(c->arena, word)));
    return *count > 0;
}

static int run_generate(command_line *c)
{
    uint32_t shards, jobs;
    if (!read_count(c, "--shards", c->shards, &shards) || !read_count(c, "--jobs", c->jobs, &jobs))
        return EXIT_BAD_USAGE;
    plan *p = config_read(c->arena, c->families, c->names[0], c->targets, &c->diagnostics);
    int status = EXIT_BAD_INPUT;
    if (p) {
        p->shards = shards;
        p->jobs = jobs;
        const char *folder = c->output ? c->output : folder_of(c->arena, c->names[0]);
        status = bundle_generate(c->arena, p, &c->diagnostics, folder, c->stamp);
    }
    diagnostics_finish(&c->diagnostics);
    return status;
}

static int run_list(command_line *c)
{
    const plan *p = read_plan(c);
    if (!p)
        return EXIT_BAD_INPUT;
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

/* By canonical id, or by key in 16 hex digits. */
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

/* "; there are X, Y and 7 more": the variants whose ids begin so, as with a family's name; empty where none does. */
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
                             *begun ? begun : suggest_text(c->arena, c->names[1], ids.data)));
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
    return fail(arena_format(c->arena, "%s does not list the target %s; it lists %s", c->names[0], c->target,
                             listed.data));
}

static int run_show(command_line *c)
{
    target t;
    if (!c->target || !target_parse(c->target, &t)) {
        fail(arena_format(c->arena, "show needs --target T, T one of %s", list_text(c->arena, target_names)));
        return EXIT_BAD_USAGE;
    }
    const plan *p = read_plan(c);
    if (!p)
        return EXIT_BAD_INPUT;
    const variant *v = find_variant(p, c->names[1]);
    if (!v)
        return fail_variant(c, p);
    if (!lists_target(p, t))
        return fail_target(c, p);
    if (c->ir && v->external)
        return fail(arena_format(c->arena, "%s is external PTX, which has no IR", v->id));
    if (!bundle_show(c->arena, p, v, t, c->ir, stdout))
        return fail(arena_format(c->arena, "%s does not run on %s", v->id, c->target));
    return 0;
}

static int run_families(command_line *c)
{
    const kiln_family *family = c->name_count > 0 ? family_find(c->families, c->names[0]) : NULL;
    if (c->name_count > 0 && !family)
        return fail(arena_format(c->arena, "no family '%s'%s", c->names[0],
                                 suggest_text(c->arena, c->names[0], family_names(c->arena, c->families))));
    text out = text_new(c->arena);
    if (c->json)
        describe_json(&out, family ? (const kiln_family *[]){family, NULL} : c->families);
    else if (family)
        describe_family(&out, family, c->in_full);
    else
        describe_families(&out, c->families);
    fwrite(out.data, 1, out.length, stdout);
    return 0;
}

/* The device that is asked for; false after a message. */
static bool find_device(const command_line *c, kiln_device *device, const char **name)
{
    target t = {0, TARGET_BASE};
    if (!c->device && !(c->target && target_parse(c->target, &t))) {
        fail(arena_format(c->arena, "explain needs --target T, T one of %s, or --device D, D one of %s",
                          list_text(c->arena, target_names), device_names(c->arena)));
        return false;
    }
    *name = device_find(t.sm, c->device, device);
    if (!*name)
        fail(arena_format(c->arena, "no device '%s'; there are %s", c->device ? c->device : c->target,
                          device_names(c->arena)));
    return *name;
}

static int run_explain(command_line *c)
{
    kiln_device device;
    const char *device_name;
    if (!find_device(c, &device, &device_name))
        return EXIT_BAD_USAGE;
    const plan *p = read_plan(c);
    if (!p)
        return EXIT_BAD_INPUT;
    const kiln_family *family = family_find(c->families, c->names[1]);
    if (!family)
        return fail(arena_format(c->arena, "no family '%s'%s", c->names[1],
                                 suggest_text(c->arena, c->names[1], family_names(c->arena, c->families))));
    text out = text_new(c->arena);
    text_printf(&out, "%s on %s, sm_%u, %u multiprocessors: ", family->name, device_name, (unsigned)device.sm,
                (unsigned)device.multiprocessors);
    const char *wrong = explain_call(&out, p, family, &device, c->names + 2, c->name_count - 2);
    if (wrong)
        return fail(arena_format(c->arena, "%s: %s", family->name, wrong));
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
/*    verb        names  options           what stands after it */
static const struct {
    const char *verb;
    size_t least, most;
    const char *options;
    int (*run)(command_line *);
    const char *usage;
} verbs[] = {
    {"generate", 1, 1, "--output --targets --shards --jobs --stamp",
                                        run_generate, "CONFIG [--output DIR]         write the bundle; default: beside CONFIG\n"
                 "                        [--targets T,...]      for these targets, not the configuration's\n"
                 "                        [--shards N]           with the families in N files that compile in parallel\n"
                 "                        [--jobs N]             with N threads, which change no byte; default: one per processor\n"
                 "                        [--stamp FILE]         and then FILE, which stands for it in the depfile"},
    {"list",     1, 1, "--targets",     run_list,     "CONFIG [--targets T,...]      key, id and targets of each variant"},
    {"show",     2, 2, "--target --ir", run_show,     "CONFIG ID --target T [--ir]   print a variant, by id or key"},
    {"diff",     2, 2, "",              run_diff,     "OLD NEW                       what changed between two manifests"},
    {"explain",  2, KILN_MAX_ARGS + KILN_MAX_PARAMS + 2, "--target --device",
                                        run_explain,  "CONFIG FAMILY --target T [NAME=VALUE ...]\n"
                 "                                               which variant a call would launch, with the estimates\n"
                 "                        [--device D]           on this device, not the one that stands for the target"},
    {"families", 0, 1, "--long --json", run_families, "[NAME] [--long | --json]      what can be asked for; --long: and what follows from it"},
};
/* clang-format on */
enum { VERB_COUNT = sizeof verbs / sizeof verbs[0] };

static void print_usage(FILE *out)
{
    fputs("kiln bakes GPU kernels as PTX into C.\n\nusage:\n", out);
    for (size_t i = 0; i < VERB_COUNT; i++)
        fprintf(out, "  kiln %-9s %s\n", verbs[i].verb, verbs[i].usage);
    fputs(
        "  kiln --help | --version\n\nexit status: 0, 1 bad input, 2 bad usage, 3 a mistake in a family, or "
        "inside kiln, 4 diff found a difference\n",
        out);
}

static int bad_usage(const char *what, const char *word, const char *near)
{
    fprintf(stderr, "kiln: error: %s '%s'%s\nkiln --help shows how it is used\n", what, word, near);
    return EXIT_BAD_USAGE;
}

/* Takes the option at argv[*i] and its value; 0 or an exit status. */
static int take_option(command_line *c, const char *options, int argc, char **argv, int *i)
{
    const char *option = argv[*i];
    const struct {
        const char *name, **value;
    } valued[] = {{"--output", &c->output}, {"--target", &c->target}, {"--targets", &c->targets},
                  {"--shards", &c->shards}, {"--jobs", &c->jobs},     {"--stamp", &c->stamp},
                  {"--device", &c->device}};
    const char **value = NULL;
    for (size_t k = 0; k < sizeof valued / sizeof valued[0]; k++)
        if (strcmp(option, valued[k].name) == 0)
            value = valued[k].value;
    if (!words_contain(options, option))
        return bad_usage("unknown option", option, suggest_text(c->arena, option, options));
    if (value && (*i + 1 == argc || argv[*i + 1][0] == '\0'))
        return bad_usage("a value is missing after", option, "");
    if (value)
        *value = argv[++*i];
    c->ir |= strcmp(option, "--ir") == 0;
    c->json |= strcmp(option, "--json") == 0;
    c->in_full |= strcmp(option, "--long") == 0;
    return 0;
}

static int run_verb(command_line *c, size_t verb, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        if (argv[i][0] == '-' && argv[i][1]) {
            int status = take_option(c, verbs[verb].options, argc, argv, &i);
            if (status != 0)
                return status;
        } else if (c->name_count == verbs[verb].most) {
            return bad_usage("one argument too many:", argv[i], "");
        } else {
            c->names[c->name_count++] = argv[i];
        }
    }
    if (c->name_count < verbs[verb].least)
        return bad_usage("an argument is missing after", argv[argc - 1], "");
    return verbs[verb].run(c);
}

static int run(command_line *c, int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_BAD_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("kiln " KILN_VERSION);
        return 0;
    }
    families_validate(c->families);
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (strcmp(argv[1], verbs[i].verb) == 0)
            return run_verb(c, i, argc, argv);
    return bad_usage(
        "unknown verb", argv[1],
        suggest_text(c->arena, argv[1], "generate list show explain diff families --help --version"));
}

int kiln_main(int argc, char **argv, const kiln_family *const *families)
{
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error, which is reported below */
    command_line c = {.families = families, .arena = arena_new(), .diagnostics = {.out = stderr}};
    int status = run(&c, argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fail(arena_format(c.arena, "cannot write the output: %s", strerror(errno)));
        status = status == 0 || status == EXIT_DIFFERENT ? EXIT_BAD_INPUT : status;
    }
    arena_free(c.arena);
    return status;
}
