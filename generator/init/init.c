#include "init.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "choose/choose.h"
#include "config_json.h"
#include "items.h"
#include "plan/config.h"
#include "plan/lock.h"
#include "program.h"
#include "support/files.h"
#include "support/messages.h"
#include "support/quote.h"
#include "support/words.h"
#include "target/target.h"

static const char default_name[] = "appkernels", default_targets[] = "sm_80,sm_87,sm_90,sm_120";
static const char config_name[] = "kernels.yaml";
/* Names of targets in the project, in its kiln and in CMake. */
static const char other_targets[] =
    "app emulate verify emulator all clean help install test package edit_cache rebuild_cache m";

typedef struct project {
    arena *arena;
    family_list families;
    const init_options *options;
    diagnostics *d;
    const char *name, *targets; /* "sm_80, sm_90" */
    model_facts facts;
    init_items items;
    const plan *plan;
} project;

/* Reads the configuration and chooses variants. Null, with the diagnostics in *why, if it has errors. */
static const plan *try_read(const project *p, const char *config, const config_options *options,
                            const char **why)
{
    char *said = NULL;
    size_t bytes = 0;
    diagnostics d = {.out = open_memstream(&said, &bytes)};
    if (!d.out)
        internal_error("kiln init has no memory for diagnostics");
    const plan *made =
        config_read_text(p->arena, p->families, config_name, config, strlen(config), options, &d);
    fclose(d.out);
    *why = arena_string(p->arena, said, bytes);
    free(said);
    return d.count == 0 ? made : NULL;
}

/* "kernels.yaml:4:8: error: expected ...": the text after the first "error: ", to the end of the line. */
static const char *first_error(arena *a, const char *said)
{
    static const char mark[] = "error: ";
    const char *from = strstr(said, mark);
    from = from ? from + strlen(mark) : said;
    return arena_string(a, from, strcspn(from, "\n"));
}

/* ---- options ------------------------------------------------------------------------------------------------------ */

/* Checks the bundle's name and the targets, by reading a trial configuration of one item. */
static bool read_options(project *p)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const int before = p->d->count;
    const char *name = p->options->name ? p->options->name : default_name;
    const place at = {.file = "--name"};
    if (name[strspn(name, letters)])
        diagnose(p->d, at, message_bundle_not_identifier,
                 arena_format(p->arena, "'%s'", quote_text(p->arena, name)));
    else if (words_contain(other_targets, name))
        diagnose(p->d, at, "'%s' is a target of the project already; choose another name", name);
    p->d->has_usage = p->d->count > before;
    if (p->d->has_usage)
        return false;
    const char *trial = arena_format(p->arena, "bundle: %s\ntargets: [sm_80]\nkernels:\n  - family: %s\n",
                                     name, p->families[0]->name);
    const config_options asked = {.targets = p->options->targets ? p->options->targets : default_targets};
    const char *said;
    const plan *tried = try_read(p, trial, &asked, &said);
    for (; !tried && *said; said = strchr(said, '\n') + 1)
        diagnose(p->d, (place){.file = strncmp(said, "--targets", 9) == 0 ? "--targets" : "--name"}, "%s",
                 first_error(p->arena, said));
    p->d->has_usage = !tried;
    if (!tried)
        return false;
    text targets = text_new(p->arena);
    for (size_t i = 0; i < tried->target_count; i++)
        text_printf(&targets, "%s%s", i > 0 ? ", " : "", target_text(p->arena, tried->targets[i]));
    p->name = name;
    p->targets = targets.data;
    return true;
}

static bool ends_with(const char *s, const char *end)
{
    return strlen(s) >= strlen(end) && strcmp(s + strlen(s) - strlen(end), end) == 0;
}

static bool read_model(project *p)
{
    const char *model = p->options->model, *format = p->options->format;
    const place at = {.file = "--format"};
    const char *formats = model_formats(p->arena, p->families);
    const int before = p->d->count;
    if (format && (!model || !ends_with(model, ".json")))
        diagnose(p->d, at, "expected a config.json for --model beside it: a GGUF file has its formats");
    else if (format && !words_contain(formats, format))
        diagnose(p->d, at, "expected a format, found '%s'%s", quote_text(p->arena, format),
                 suggest_text(p->arena, format, formats));
    p->d->has_usage = p->d->count > before;
    if (p->d->has_usage)
        return false;
    if (!model) {
        items_of_example(p->arena, &p->items);
        return true;
    }
    if (!(ends_with(model, ".json") ? model_read_json(p->arena, p->families, model, format, &p->facts, p->d)
                                    : model_read_gguf(p->arena, model, &p->facts, p->d)))
        return false;
    items_of_model(p->arena, &p->facts, &p->items);
    return true;
}

/* ---- the configuration -------------------------------------------------------------------------------------------- */

/* Whether kiln rejects the item for a reason that no earlier item has. */
static bool is_first_refusal(const project *p, size_t i)
{
    const init_item *items = p->items.items;
    for (size_t k = 0; k < i && items[i].refusal; k++)
        if (items[k].refusal && strcmp(items[k].refusal, items[i].refusal) == 0)
            return false;
    return items[i].refusal != NULL;
}

/* "# - blk.0.attn_output; blk.0.ffn_down: linear: expected ...": the item, and the others that are rejected for the
 * same reason. */
static void add_refusal(const project *p, size_t i, text *out)
{
    const init_item *items = p->items.items;
    text_printf(out, "# - %s", items[i].calls[0].what);
    for (size_t k = i + 1; k < p->items.count; k++)
        if (items[k].refusal && strcmp(items[k].refusal, items[i].refusal) == 0)
            text_printf(out, "; %s", items[k].calls[0].what);
    text_printf(out, ": %s: %s\n", items[i].family, items[i].refusal);
}

static void add_head(const project *p, text *out)
{
    const model_facts *m = &p->facts;
    bool has_needs = false;
    text_add(
        out,
        "# Written by `kiln init`; it is yours to change. After a change of an item: kiln choose kernels.yaml\n");
    if (p->options->model)
        text_printf(
            out,
            "# A model of the architecture %s: %u layer%s of width %u, %u heads of %u elements over %u.\n",
            m->architecture, (unsigned)m->layer_count, m->layer_count == 1 ? "" : "s", (unsigned)m->width,
            (unsigned)m->heads, (unsigned)m->head_dim, (unsigned)m->kv_heads);
    for (size_t i = 0; i < p->items.count; i++)
        has_needs = has_needs || p->items.items[i].refusal;
    if (has_needs || m->note_count > 0)
        text_add(out, "#\n# What the model needs besides these kernels:\n");
    for (size_t i = 0; i < m->note_count; i++)
        text_printf(out, "# - %s\n", m->notes[i]);
    for (size_t i = 0; i < p->items.count; i++)
        if (is_first_refusal(p, i))
            add_refusal(p, i, out);
    text_printf(out, "bundle: %s\ntargets: [%s]\nkernels:\n", p->name, p->targets);
}

static const char *config_text(const project *p)
{
    text out = text_new(p->arena);
    add_head(p, &out);
    for (size_t i = 0; i < p->items.count; i++)
        if (!p->items.items[i].refusal)
            items_print(&out, &p->items.items[i]);
    return out.data;
}

static const plan *try_config(const project *p, const char *config, const char **why)
{
    const choose_options choose = {.ignores_lock = true};
    const config_options options = {.choose = choose_variants, .choose_context = &choose};
    return try_read(p, config, &options, why);
}

/* Null, or why kiln rejects an item. */
static const char *refusal_of(const project *p, const init_item *item)
{
    const char *why;
    text alone = text_new(p->arena);
    text_printf(&alone, "bundle: %s\ntargets: [%s]\nkernels:\n", p->name, p->targets);
    items_print(&alone, item);
    return try_config(p, alone.data, &why) ? NULL : first_error(p->arena, why);
}

/* Keeps an item's accepted calls; each of the others becomes a rejected item of its own. */
static void split_refused(project *p, size_t i)
{
    const init_item whole = p->items.items[i];
    init_item taken = whole;
    taken.calls = NULL;
    taken.call_count = taken.call_capacity = 0;
    taken.refusal = NULL;
    for (size_t k = 0; k < whole.call_count; k++) {
        init_item one = whole;
        one.calls = arena_copy(p->arena, &whole.calls[k], sizeof *whole.calls);
        one.call_count = one.call_capacity = 1;
        one.refusal = refusal_of(p, &one);
        init_items *all = &p->items;
        if (one.refusal)
            *(init_item *)arena_push(p->arena, (void **)&all->items, &all->count, &all->capacity,
                                     sizeof *all->items) = one;
        else
            *(init_call *)arena_push(p->arena, (void **)&taken.calls, &taken.call_count, &taken.call_capacity,
                                     sizeof *taken.calls) = whole.calls[k];
    }
    if (taken.call_count > 0 && taken.call_count < whole.call_count)
        p->items.items[i] = taken;
    else /* if all calls are rejected, or each is accepted alone, the item's reason stays */
        p->items.count -= whole.call_count - taken.call_count;
}

/* Turns items that kiln rejects into comments. */
static bool choose(project *p)
{
    const char *why;
    const size_t count = p->items.count;
    size_t left = count;
    p->plan = left > 0 ? try_config(p, config_text(p), &why) : NULL;
    if (p->plan)
        return true;
    for (size_t i = 0; i < count; i++) {
        p->items.items[i].refusal = refusal_of(p, &p->items.items[i]);
        if (p->items.items[i].refusal && p->items.items[i].call_count > 1)
            split_refused(p, i);
        if (p->items.items[i].refusal)
            left--;
    }
    if (left == 0) {
        diagnose(p->d, (place){.file = p->options->model ? p->options->model : "--targets"},
                 "expected a model and targets that kiln has kernels for; %s",
                 p->items.count > 0 ? p->items.items[0].refusal : "found no matrices");
        return false;
    }
    p->plan = try_config(p, config_text(p), &why);
    if (!p->plan)
        internal_error("kiln init wrote items that kiln refuses together: %s", first_error(p->arena, why));
    return true;
}

/* ---- files -------------------------------------------------------------------------------------------------------- */

bool init_make(arena *a, family_list families, const init_options *options, init_texts *made, diagnostics *d)
{
    project p = {.arena = a, .families = families, .options = options, .d = d};
    if (!read_options(&p) || !read_model(&p) || !choose(&p))
        return false;
    const program_options program = {p.name, options->is_cxx};
    for (int i = 0; i < INIT_FILES; i++)
        made->files[i] = text_new(a);
    text_add(&made->files[INIT_CONFIG], config_text(&p));
    lock_print(&made->files[INIT_LOCK], p.plan, p.plan->variants, p.plan->variant_count, 0);
    program_print_cmake(&made->files[INIT_CMAKE], &program);
    program_print(&made->files[INIT_PROGRAM], &p.items, options->model ? &p.facts : NULL, &program);
    made->variant_count = p.plan->variant_count;
    made->lacking_count = p.facts.note_count;
    for (size_t i = 0; i < p.items.count; i++)
        made->lacking_count += is_first_refusal(&p, i);
    return true;
}

static const char *file_path(arena *a, const init_options *options, int file)
{
    const char *const names[INIT_FILES] = {config_name, "kernels.lock.yaml", "CMakeLists.txt",
                                           options->is_cxx ? "main.cpp" : "main.c"};
    return options->folder ? arena_format(a, "%s/%s", options->folder, names[file]) : names[file];
}

/* Whether there is anything at the path, even a dangling link. */
static bool is_there(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0;
}

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* Whether the folder exists, or its parent does. */
static bool check_folder(arena *a, const init_options *options, diagnostics *d)
{
    if (!options->folder)
        return true;
    size_t length = strlen(options->folder);
    while (length > 1 && options->folder[length - 1] == '/')
        length--;
    const char *path = arena_string(a, options->folder, length), *parent = folder_of(a, path);
    const place at = {.file = *path ? path : "DIR"};
    const int before = d->count;
    if (!*path)
        diagnose(d, at, "expected the name of a folder, found an empty one");
    else if (strchr(path, ';'))
        diagnose(d, at, "expected a folder without ';' in its name, which ends an element of CMake's lists");
    else if (is_there(path) && !is_folder(path))
        diagnose(d, at, "expected a folder, found something else of this name");
    else if (!is_there(path) && !is_folder(parent))
        diagnose(d, at, "cannot make the folder: expected a folder '%s' to make it in, found none",
                 quote_text(a, parent));
    return d->count == before;
}

static bool are_new(arena *a, const init_options *options, diagnostics *d)
{
    const int before = d->count;
    for (int i = 0; i < INIT_FILES; i++)
        if (is_there(file_path(a, options, i)))
            diagnose(d, (place){.file = file_path(a, options, i)},
                     "expected no such file, found one: kiln init replaces none");
    return d->count == before;
}

/* Always false: files created after the check for existing files are not replaced either. */
static bool is_replaceable(const char *front, const char *mark)
{
    (void)front, (void)mark;
    return false;
}

static bool write_files(arena *a, const init_options *options, const init_texts *made, diagnostics *d)
{
    arena *piece = arena_new();
    file_output files[INIT_FILES];
    bool is_made = false;
    bool ok = !options->folder || folder_make(options->folder, &is_made, d);
    spool *s = ok ? spool_open(a, options->folder ? options->folder : ".", d) : NULL;
    for (int i = 0; i < INIT_FILES && s; i++) {
        files[i] = file_begin(a, piece, file_path(a, options, i), s);
        files[i].form = is_replaceable;
        files[i].mark = "";
        text_add_bytes(&files[i].text, made->files[i].data, made->files[i].length);
        file_flush(&files[i]);
    }
    ok = s && spool_is_whole(s, d) && files_write(a, files, INIT_FILES, false, d);
    if (s)
        spool_close(s);
    if (!ok && is_made)
        rmdir(options->folder);
    arena_free(piece);
    return ok;
}

/* ---- what to do next ---------------------------------------------------------------------------------------------- */

static const char from_sources[] = "-DKILN_SOURCE_DIR=KILN";

/* "-DCMAKE_PREFIX_PATH=PREFIX" of the running kiln, if it is installed. */
static const char *where_kiln_is(arena *a)
{
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    char *name = strrchr(path, '/');
    if (name)
        *name = 0;
    if (name && ends_with(path, "/bin")) {
        path[strlen(path) - strlen("/bin")] = 0;
        if (file_exists(arena_format(a, "%s/include/kiln/kiln.h", path)))
            return quote_shell(a, arena_format(a, "-DCMAKE_PREFIX_PATH=%s", path));
    }
    return from_sources;
}

static void print_next(arena *a, const init_options *options, const init_texts *made, FILE *out)
{
    const char *folder = options->folder ? options->folder : ".";
    const char *source = quote_shell(a, folder), *kiln = where_kiln_is(a);
    const char *build = quote_shell(a, options->folder ? arena_format(a, "%s/build", folder) : "build");
    for (int i = 0; i < INIT_FILES; i++)
        fprintf(out, "%s%s", i > 0 ? ", " : "wrote ", file_path(a, options, i));
    fprintf(out, ": %zu variants\n", made->variant_count);
    if (made->lacking_count > 0)
        fprintf(out, "the model needs more than these kernels: see the %zu line%s at the top of %s\n",
                made->lacking_count, made->lacking_count == 1 ? "" : "s", file_path(a, options, INIT_CONFIG));
    fprintf(
        out,
        "\nnext, without a GPU:\n  cmake -S %s -B %s %s\n  cmake --build %s\n  cmake --build %s --target emulate verify\n%s",
        source, build, kiln, build, build,
        strcmp(kiln, from_sources) == 0 ? "KILN is the folder of kiln's sources.\n" : "");
}

bool init_project(arena *a, family_list families, const init_options *options, FILE *out, diagnostics *d)
{
    init_texts made;
    if (!check_folder(a, options, d) || !are_new(a, options, d) ||
        !init_make(a, families, options, &made, d) || !write_files(a, options, &made, d))
        return false;
    if (out)
        print_next(a, options, &made, out);
    return true;
}
