/* The back half of the generator: render everything, then write. */
#include "bundle.h"

#include <string.h>

#include "external/external.h"
#include "family/family.h"
#include "family/shape.h"
#include "support/files.h"
#include "support/messages.h"
#include "target/target.h"
#include "write.h"

static const char *path_in(arena *a, const char *folder, const char *name, const char *extension)
{
    const size_t length = strlen(folder);
    const char *slash = length == 0 || folder[length - 1] == '/' ? "" : "/";
    return arena_format(a, "%s%s%s.%s", folder, slash, name, extension);
}

/* Whether the images of what a budget is for are within it; else after a diagnostic. */
static bool is_within(const bundle_model *m, const budget *b, diagnostics *d)
{
    unsigned long long bytes = 0, most = 0;
    const char *largest = "";
    for (size_t i = 0; i < m->variant_count; i++) {
        const bundle_variant *v = &m->variants[i];
        unsigned long long own = 0;
        for (size_t k = 0; k < v->image_count; k++)
            own += v->images[k].bytes;
        if (b->family ? v->variant->family != b->family : v->owner != v)
            continue;
        bytes += own;
        largest = own > most ? v->variant->id : largest;
        most = own > most ? own : most;
    }
    if (bytes <= b->max_bytes)
        return true;
    diagnose(d, b->at, message_over_budget, (unsigned long long)b->max_bytes,
             b->family ? b->family->name : "the bundle", bytes, largest, most);
    return false;
}

static bool are_within(const bundle_model *m, diagnostics *d)
{
    bool ok = true;
    for (size_t i = 0; i < m->plan->budget_count; i++)
        ok = is_within(m, &m->plan->budgets[i], d) && ok;
    return ok;
}

static void add_file(file_output *files, size_t *count, const char *path, text content)
{
    files[(*count)++] = (file_output){path, content};
}

int bundle_generate(arena *a, const plan *p, diagnostics *d, const char *output_dir, const char *stamp)
{
    const bundle_model *m = model_build(a, p, d);
    if (!m || !are_within(m, d))
        return EXIT_BAD_INPUT;
    file_output files[SHARDS_MOST + 4];
    const char *outputs[SHARDS_MOST + 3];
    size_t count = 0;
    add_file(files, &count, path_in(a, output_dir, p->bundle, "c"), write_source(a, m));
    add_file(files, &count, path_in(a, output_dir, p->bundle, "h"), write_header(a, m));
    add_file(files, &count, path_in(a, output_dir, p->bundle, "json"), write_manifest(a, m));
    for (uint32_t i = 0; i < p->shards; i++) {
        const char *name = arena_format(a, "%s_%u", p->bundle, (unsigned)(i + 1));
        add_file(files, &count, path_in(a, output_dir, name, "c"), write_shard(a, m, i));
    }
    for (size_t i = 0; i < count; i++)
        outputs[i] = files[i].path;
    const text depfile =
        write_depfile(a, stamp ? &stamp : outputs, stamp ? 1 : count, p->inputs, p->input_count);
    add_file(files, &count, path_in(a, output_dir, p->bundle, "d"), depfile);
    return folder_make(output_dir, d) && files_write(a, files, count, d) && (!stamp || file_stamp(stamp, d))
               ? 0
               : EXIT_BAD_INPUT;
}

bool bundle_show(arena *a, const plan *p, const variant *v, target t, bool ir, FILE *out)
{
    (void)p;
    if (v->external) {
        const ptx_file *file = external_file_for(v->external->module, t);
        if (!file || ir)
            return false;
        fwrite(file->ptx, 1, file->bytes, out);
        if (target_compare(file->made_for, t) != 0)
            fprintf(stderr, "kiln: %s is for %s, and runs on %s\n", file->asked,
                    target_text(a, file->made_for), target_text(a, t));
        return true;
    }
    if (!variant_runs_on(v, t))
        return false;
    const ptx_fn *kernel = build_kernel(a, v, t);
    if (ir) {
        ptx_dump(kernel, out);
        return true;
    }
    const image made = print_kernel(a, kernel, t);
    const char *needs = target_text(a, made.needs.target);
    fputs(made.ptx, out);
    if (strcmp(needs, target_text(a, t)) != 0)
        fprintf(stderr, "kiln: .target %s is the lowest that this text needs; it runs on %s\n", needs,
                target_text(a, t));
    return true;
}
