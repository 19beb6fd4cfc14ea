/* The back half of the generator: render everything, then write. */
#include "bundle.h"

#include <string.h>
#include <unistd.h>

#include "compress.h"
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
            own += v->images[k].stored_bytes;
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

/* Of a bundle's images, each once. */
typedef struct image_sums {
    unsigned long long count, bytes, stored_bytes;
} image_sums;

static image_sums sum_images(const bundle_model *m)
{
    image_sums sums = {0};
    for (size_t i = 0; i < m->variant_count; i++) {
        const bundle_variant *v = &m->variants[i];
        for (size_t k = 0; v->owner == v && k < v->image_count; k++, sums.count++) {
            sums.bytes += v->images[k].bytes;
            sums.stored_bytes += v->images[k].stored_bytes;
        }
    }
    return sums;
}

/* What the linker keeps of libkiln_zstd and Debian's libzstd 1.5.4, on x86-64. */
enum { DECODER_BYTES = 226120 };

/* A program then grows by more than it saves, even if it keeps every kernel. */
static void warn_below_break_even(const bundle_model *m, diagnostics *d)
{
    const image_sums sums = sum_images(m);
    if (sums.bytes < sums.stored_bytes + DECODER_BYTES)
        warn(d, m->plan->compress_at,
             "compressed images save %lld bytes, less than the %d of the code that expands them",
             (long long)(sums.bytes - sums.stored_bytes), DECODER_BYTES);
}

/* The bundle's files, one after another. */
typedef struct bundle_files {
    arena *arena, *piece;
    spool *spool;
    const char *folder;
    file_output items[SHARDS_MOST + 4];
    const char *paths[SHARDS_MOST + 4];
    size_t count;
} bundle_files;

static file_output *begin_file(bundle_files *all, const char *name, const char *extension)
{
    const char *path = path_in(all->arena, all->folder, name, extension);
    file_output *f = &all->items[all->count];
    *f = file_begin(all->arena, all->piece, path, all->spool);
    all->paths[all->count++] = path;
    return f;
}

static void make_files(bundle_files *all, const bundle_model *m, const char *stamp)
{
    const plan *p = m->plan;
    write_source(begin_file(all, p->bundle, "c"), m);
    write_header(begin_file(all, p->bundle, "h"), m);
    write_manifest(begin_file(all, p->bundle, "json"), m);
    for (uint32_t i = 0; i < p->shards; i++) {
        const char *name = arena_format(all->arena, "%s_%u", p->bundle, (unsigned)(i + 1));
        write_shard(begin_file(all, name, "c"), m, i);
    }
    const size_t outputs = all->count;
    write_depfile(begin_file(all, p->bundle, "d"), stamp ? &stamp : all->paths, stamp ? 1 : outputs,
                  p->inputs, p->input_count);
}

/* "app: 2 variants for sm_80 sm_90, 3 images of 41234 bytes; app.c, app.h and app.json in DIR" */
static void print_summary(FILE *out, const bundle_model *m, const char *folder)
{
    const image_sums sums = sum_images(m);
    char name[TARGET_NAME_BYTES];
    fprintf(out, "%s: %zu variant%s for", m->name, m->variant_count, m->variant_count == 1 ? "" : "s");
    for (size_t i = 0; i < m->plan->target_count; i++)
        fprintf(out, " %s", target_print(m->plan->targets[i], name));
    fprintf(out, ", %llu image%s of %llu bytes", sums.count, sums.count == 1 ? "" : "s", sums.bytes);
    if (m->plan->is_compressed)
        fprintf(out, ", %llu compressed", sums.stored_bytes);
    fprintf(out, "; %s.c, .h and .json in %s\n", m->name, folder);
}

static bool generate(arena *a, const plan *p, spool *s, diagnostics *d, const char *folder, const char *stamp,
                     FILE *summary)
{
    if (p->is_compressed && !compress_version()) {
        diagnose(d, p->compress_at, message_compress_missing);
        return false;
    }
    const bundle_model *m = model_build(a, p, s, d);
    if (!m || !are_within(m, d))
        return false;
    if (p->is_compressed)
        warn_below_break_even(m, d);
    bundle_files all = {.arena = a, .piece = arena_new(), .spool = s, .folder = folder};
    make_files(&all, m, stamp);
    arena_free(all.piece);
    const bool ok =
        spool_is_whole(s, d) && files_write(a, all.items, all.count, d) && (!stamp || file_stamp(stamp, d));
    if (ok && summary)
        print_summary(summary, m, folder);
    return ok;
}

/* Each image as a file: ENTRY.sm_80.ptx, ENTRY.sm_80.cubin. */
static bool export(arena *a, const plan *p, spool *s, diagnostics *d, const char *folder, FILE *summary)
{
    const bundle_model *m = model_build(a, p, s, d);
    if (!m)
        return false;
    size_t count = 0, room = 0;
    for (size_t i = 0; i < m->variant_count; i++)
        room += m->variants[i].image_count;
    file_output *files = arena_alloc(a, room * sizeof *files);
    arena *piece = arena_new(); /* of nothing: what the files have lies in the spool */
    for (size_t i = 0; i < m->variant_count; i++) {
        const bundle_variant *v = &m->variants[i];
        for (size_t k = 0; v->owner == v && k < v->image_count; k++) {
            const image *one = &v->images[k];
            const char *name = arena_format(a, "%s.%s", v->variant->entry, target_text(a, one->made_for));
            files[count] = file_begin(a, piece, path_in(a, folder, name, one->is_cubin ? "cubin" : "ptx"), s);
            file_add(&files[count++], one->plain);
        }
    }
    arena_free(piece);
    const bool ok = spool_is_whole(s, d) && files_write(a, files, count, d);
    if (ok && summary)
        fprintf(summary, "%s: %zu image%s in %s\n", m->name, count, count == 1 ? "" : "s", folder);
    return ok;
}

/* In a folder, with a spool there; a folder that is new goes again when that fails. */
static int make_in(arena *a, const plan *p, diagnostics *d, const char *folder, const char *stamp,
                   FILE *summary)
{
    bool is_new = false;
    spool *s = folder_make(folder, &is_new, d) ? spool_open(a, folder, d) : NULL;
    const bool ok = s && (p->is_exported ? export(a, p, s, d, folder, summary)
                                         : generate(a, p, s, d, folder, stamp, summary));
    if (s)
        spool_close(s);
    if (!ok && is_new)
        rmdir(folder);
    return ok ? 0 : EXIT_BAD_INPUT;
}

int bundle_generate(arena *a, const plan *p, diagnostics *d, const char *folder, const char *stamp,
                    FILE *summary)
{
    return make_in(a, p, d, folder, stamp, summary);
}

int bundle_export(arena *a, plan *p, diagnostics *d, const char *folder, FILE *summary)
{
    p->is_exported = true;
    p->is_compressed = false; /* the files are for others */
    return make_in(a, p, d, folder, NULL, summary);
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
    fputs(made.data, out);
    if (strcmp(needs, target_text(a, t)) != 0)
        fprintf(stderr, "kiln: .target %s is the lowest that this text needs; it runs on %s\n", needs,
                target_text(a, t));
    return true;
}
