/* What kiln-verify prints: a table for people, and JSON. */
#define _POSIX_C_SOURCE 200809L /* isatty */
#include "report.h"

#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "uncompared.h"
#include "verify.h"

/* Where the table goes: standard output, unless that is taken by JSON. */
static FILE *people;

static const char *const verdicts[] = {[RUN_OK] = "ok",
                                       [RUN_EXECUTED] = "executed, not compared",
                                       [RUN_SKIPPED] = "skipped",
                                       [RUN_WRONG] = "WRONG"};

/* ---- families ---------------------------------------------------------------------------------------------------- */

typedef struct family_tally {
    size_t variants, right, executed;
    uint64_t elements;
    bool has_bounds;
    double worst_ratio;
    const char *worst;         /* the id of the variant that it is of, or the family's name: all is exact */
    const run_result *largest; /* with the largest size; null: none ran */
} family_tally;

/* Null: the family was there before. */
static const char *new_family(const manifest_variant *const *variants, size_t i)
{
    for (size_t before = 0; before < i; before++) {
        if (strcmp(variants[before]->family, variants[i]->family) == 0)
            return NULL;
    }
    return variants[i]->family;
}

static family_tally tally_family(const char *family, const manifest_variant *const *variants,
                                 const run_result *results, size_t count)
{
    family_tally t = {.worst = family};
    for (size_t i = 0; i < count; i++) {
        const run_result *r = &results[i];
        if (strcmp(variants[i]->family, family) != 0)
            continue;
        t.variants++;
        t.right += r->verdict == RUN_OK;
        t.executed += r->verdict == RUN_EXECUTED;
        t.elements += r->elements;
        t.has_bounds = t.has_bounds || r->has_bounds;
        if (r->largest_elements > (t.largest ? t.largest->largest_elements : 0))
            t.largest = r;
        if (r->worst_ratio > t.worst_ratio) {
            t.worst_ratio = r->worst_ratio;
            t.worst = variants[i]->id;
        }
    }
    return t;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static bool is_terminal(void)
{
    return isatty(STDERR_FILENO) == 1;
}

static void clear_progress(void)
{
    if (is_terminal())
        fputs("\r\033[K", stderr);
}

void report_begin(const manifest *m, const device *d, const options *o)
{
    people = o->json && strcmp(o->json, "-") == 0 ? stderr : stdout;
    fprintf(people, "bundle   %s, %zu variants, made by %s\n", m->bundle, m->variant_count, m->generator);
    fprintf(people, "device   %s, sm_%u, driver %d.%d\n", d->name, d->loader.device.sm, d->version / 1000,
            d->version % 1000 / 10);
    if (d->is_emulated)
        fprintf(people, "checks   exact buffers; KILN_EMU_CHECK: %s; every case twice, the second time %s\n",
                getenv("KILN_EMU_CHECK"), d->has_order ? "alike" : "with thread blocks in another order");
    else
        fprintf(people, "checks   guard bytes around every buffer; every case twice\n");
    fprintf(people, "seed     %" PRIu64 "\n\n", o->run.seed);
    fprintf(people, "%6s %8s %12s %7s %8s  %s\n", "cases", "refused", "elements", "worst", "seconds",
            "variant");
    fflush(people); /* a reference that dies takes nothing of it along */
}

void report_progress(const char *variant, uint64_t cases)
{
    if (is_terminal())
        fprintf(stderr, "\r\033[K%6" PRIu64 " cases  %.90s", cases, variant);
}

static void write_worst(char *text, size_t bytes, uint64_t elements, bool has_bounds, double ratio)
{
    if (elements == 0 || (ratio == 0 && !has_bounds))
        snprintf(text, bytes, elements ? "exact" : "-");
    else
        snprintf(text, bytes, ratio < 1000 ? "%.3f" : "%.3g", ratio);
}

void report_variant(const manifest_variant *v, const run_result *r)
{
    char worst[16];
    clear_progress();
    write_worst(worst, sizeof worst, r->elements, r->has_bounds, r->worst_ratio);
    fprintf(people, "%6" PRIu64 " %8" PRIu64 " %12" PRIu64 " %7s %8.2f  %s: %s\n", r->cases, r->refusals,
            r->elements, worst, r->seconds, v->id, verdicts[r->verdict]);
    if (r->detail[0])
        fprintf(people, "      %s\n", r->detail);
    fflush(people);
}

static void report_families(const manifest_variant *const *variants, const run_result *results, size_t count)
{
    fprintf(people, "\n%15s %12s %7s  %s\n", "right", "elements", "worst",
            "family, or its variant with the worst");
    for (size_t i = 0; i < count; i++) {
        const char *family = new_family(variants, i);
        char worst[16], right[32];
        if (!family)
            continue;
        const family_tally t = tally_family(family, variants, results, count);
        if (t.executed == t.variants)
            snprintf(right, sizeof right, "not compared");
        else
            snprintf(right, sizeof right, "%zu of %zu", t.right, t.variants);
        write_worst(worst, sizeof worst, t.elements, t.has_bounds, t.worst_ratio);
        fprintf(people, "%15s %12" PRIu64 " %7s  %s\n", right, t.elements, worst, t.worst);
        if (t.largest)
            fprintf(people, "%37s largest size: %s, %" PRIu64 " elements in all buffers\n", "",
                    t.largest->largest, t.largest->largest_elements);
    }
}

/* The families that ran without being compared: the next from variants[*i] on, whose index is left in *i; null: no more.
 * results[i] is of variants[i]; a family comes once. */
static const char *next_uncompared(const manifest_variant *const *variants, const run_result *results,
                                   size_t count, size_t *i)
{
    for (; *i < count; ++*i) {
        const char *family = variants[*i]->family;
        bool is_first = results[*i].verdict == RUN_EXECUTED;
        for (size_t before = 0; is_first && before < *i; before++)
            is_first =
                results[before].verdict != RUN_EXECUTED || strcmp(variants[before]->family, family) != 0;
        if (is_first)
            return family;
    }
    return NULL;
}

/* Returns how many of them are not excused. */
static size_t report_uncompared(const manifest_variant *const *variants, const run_result *results,
                                size_t count)
{
    const char *title = "\nrun under all checks, and not compared:\n", *family;
    size_t missing = 0;
    for (size_t i = 0; (family = next_uncompared(variants, results, count, &i)); i++) {
        const bool is_listed = is_listed_as_uncompared(family);
        fprintf(people, "%s  %s%s\n", title, family, is_listed ? "" : ", which is not listed as UNCOMPARED");
        title = "";
        missing += !is_listed;
    }
    fflush(people);
    if (missing)
        fprintf(stderr,
                "kiln-verify: %zu %s not compared: write a reference of %s (kiln/reference.h) and give it to "
                "kiln_add_verify as REFERENCES, or list %s there as UNCOMPARED\n",
                missing, missing == 1 ? "kernel was" : "kernels were", missing == 1 ? "it" : "each",
                missing == 1 ? "it" : "them");
    return missing;
}

/* Of kernels that this device does not run. */
static void report_unused(const manifest_variant *const *variants, const run_result *results, size_t count)
{
    const family_row *row;
    for (size_t i = 0; (row = family_registered(i)); i++) {
        size_t chosen = 0, skipped = 0;
        for (size_t k = 0; k < count; k++) {
            const bool is_own = strcmp(variants[k]->family, row->name) == 0;
            chosen += is_own;
            skipped += is_own && results[k].verdict == RUN_SKIPPED;
        }
        if (chosen && skipped == chosen)
            fprintf(people, "\nits reference, at %s:%d, compared nothing, as it was skipped: %s\n", row->file,
                    row->line, row->name);
    }
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

enum { MOST_TARGETS = 64, TARGET_BYTES = 16 };

typedef struct not_run {
    char targets[MOST_TARGETS][TARGET_BYTES]; /* "sm_100f" */
    unsigned sm;                              /* of the first */
    size_t count;
} not_run;

/* The targets of images that an emulated device did not load, as it took others of the same kernels. A cubin is none of
 * its images. On a GPU this is empty: the targets of other GPUs cannot be run there. */
static not_run find_not_run(const device *d, const manifest_variant *const *variants, size_t count)
{
    not_run found = {0};
    for (size_t i = 0; d->is_emulated && i < count; i++) {
        const kiln_module *module = kiln_find(d->index, variants[i]->key)->module;
        const kiln_image *taken = kiln_select(&d->loader.device, module);
        for (const kiln_image *image = module->images; image < module->images + module->image_count;
             image++) {
            char name[TARGET_BYTES];
            size_t k = 0;
            if (image == taken || image->format == KILN_IMAGE_CUBIN)
                continue;
            snprintf(name, sizeof name, "sm_%u%s", image->sm, (const char *[]){"", "a", "f"}[image->kind]);
            while (k < found.count && strcmp(found.targets[k], name) != 0)
                k++;
            if (k < found.count || k == MOST_TARGETS)
                continue;
            memcpy(found.targets[found.count++], name, sizeof name);
            if (found.count == 1)
                found.sm = image->sm;
        }
    }
    return found;
}

static void report_not_run(const not_run *n)
{
    if (n->count == 0)
        return;
    fputs("not run   images for ", people);
    for (size_t i = 0; i < n->count; i++)
        fprintf(people, "%s%s", i ? ", " : "", n->targets[i]);
    fprintf(people, ": KILN_EMU_DEVICE=sm_%u runs those for %s\n", n->sm, n->targets[0]);
}

int report_end(const device *d, const manifest_variant *const *variants, const run_result *results,
               size_t count)
{
    size_t tally[4] = {0};
    uint64_t elements = 0, launches = 0;
    double seconds = 0;
    report_families(variants, results, count);
    for (size_t i = 0; i < count; i++) {
        tally[results[i].verdict]++;
        elements += results[i].elements;
        launches += results[i].launches;
        seconds += results[i].seconds;
    }
    fprintf(people,
            "\n%zu variant%s: %zu right, %zu executed but not compared, %zu skipped, %zu wrong; %" PRIu64
            " launches, %" PRIu64 " elements compared, %.1f s\n",
            count, count == 1 ? "" : "s", tally[RUN_OK], tally[RUN_EXECUTED], tally[RUN_SKIPPED],
            tally[RUN_WRONG], launches, elements, seconds);
    const not_run others = find_not_run(d, variants, count);
    report_not_run(&others);
    report_unused(variants, results, count);
    const size_t missing = report_uncompared(variants, results, count);
    if (tally[RUN_WRONG] || missing)
        return VERIFY_EXIT_WRONG;
    return tally[RUN_SKIPPED] == count ? VERIFY_EXIT_NO_DEVICE : VERIFY_EXIT_OK;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* JSON has no infinity. */
static void write_ratio(FILE *out, uint64_t elements, double ratio)
{
    if (elements && ratio <= DBL_MAX)
        fprintf(out, "%.6g", ratio);
    else
        fputs("null", out);
}

static void write_largest(FILE *out, const run_result *r)
{
    fputs(", ", out);
    json_member(out, "largest", r->largest);
    fprintf(out, ", \"largest_elements\": %" PRIu64, r->largest_elements);
}

static void write_result(FILE *out, const manifest_variant *v, const run_result *r)
{
    fputs("    {", out);
    json_member(out, "id", v->id);
    fputs(", ", out);
    json_member(out, "result", verdicts[r->verdict]);
    fprintf(out,
            ", \"cases\": %" PRIu64 ", \"launches\": %" PRIu64 ", \"refusals\": %" PRIu64
            ", \"elements\": %" PRIu64 ", \"worst_error_over_bound\": ",
            r->cases, r->launches, r->refusals, r->elements);
    write_ratio(out, r->elements, r->worst_ratio);
    fprintf(out, ", \"seconds\": %.3f", r->seconds);
    write_largest(out, r);
    if (r->detail[0]) {
        fputs(", ", out);
        json_member(out, "detail", r->detail);
    }
    fputc('}', out);
}

static void write_families(FILE *out, const manifest_variant *const *variants, const run_result *results,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *family = new_family(variants, i);
        if (!family)
            continue;
        const family_tally t = tally_family(family, variants, results, count);
        fputs(i > 0 ? ",\n    {" : "    {", out);
        json_member(out, "family", family);
        fprintf(out,
                ", \"variants\": %zu, \"ok\": %zu, \"elements\": %" PRIu64 ", \"worst_error_over_bound\": ",
                t.variants, t.right, t.elements);
        write_ratio(out, t.elements, t.worst_ratio);
        if (t.worst_ratio > 0) {
            fputs(", ", out);
            json_member(out, "worst", t.worst);
        }
        if (t.largest)
            write_largest(out, t.largest);
        fputc('}', out);
    }
    if (count)
        fputc('\n', out);
}

static void write_uncompared(FILE *out, const manifest_variant *const *variants, const run_result *results,
                             size_t count)
{
    const char *family, *before = "\n    {";
    fputs("  \"uncompared\": [", out);
    for (size_t i = 0; (family = next_uncompared(variants, results, count, &i)); i++) {
        fputs(before, out);
        json_member(out, "family", family);
        fprintf(out, ", \"is_listed\": %s}", is_listed_as_uncompared(family) ? "true" : "false");
        before = ",\n    {";
    }
    fputs(*before == ',' ? "\n  ],\n" : "],\n", out);
}

static void write_not_run(FILE *out, const device *d, const manifest_variant *const *variants, size_t count)
{
    const not_run n = find_not_run(d, variants, count);
    fputs("  \"targets_not_run\": [", out);
    for (size_t i = 0; i < n.count; i++)
        fprintf(out, "%s\"%s\"", i ? ", " : "", n.targets[i]);
    fputs("]\n}\n", out);
}

bool report_may_write(const char *path)
{
    FILE *out = path && strcmp(path, "-") != 0 ? fopen(path, "a") : stdout;
    if (out && out != stdout)
        fclose(out);
    if (!out)
        fprintf(stderr, "kiln-verify: cannot write %s\n", path);
    return out != NULL;
}

bool report_write_json(const char *path, const manifest *m, const device *d, const options *o,
                       const manifest_variant *const *variants, const run_result *results, size_t count)
{
    bool is_stdout = strcmp(path, "-") == 0;
    FILE *out = is_stdout ? stdout : fopen(path, "w");
    if (!out) {
        fprintf(stderr, "kiln-verify: cannot write %s\n", path);
        return false;
    }
    fputs("{\n  ", out);
    json_member(out, "bundle", m->bundle);
    fputs(",\n  ", out);
    json_member(out, "device", d->name);
    fprintf(out, ",\n  \"sm\": %u,\n  \"driver_version\": %d,\n  \"emulated\": %s,\n  ", d->loader.device.sm,
            d->version, d->is_emulated ? "true" : "false");
    json_member(out, "checks", d->is_emulated ? getenv("KILN_EMU_CHECK") : "guards");
    fprintf(out, ",\n  \"seed\": %" PRIu64 ",\n  \"variants\": [\n", o->run.seed);
    for (size_t i = 0; i < count; i++) {
        write_result(out, variants[i], &results[i]);
        fputs(i + 1 < count ? ",\n" : "\n", out);
    }
    fputs("  ],\n  \"families\": [\n", out);
    write_families(out, variants, results, count);
    fputs("  ],\n", out);
    write_uncompared(out, variants, results, count);
    write_not_run(out, d, variants, count);
    bool written = !ferror(out);
    if (!is_stdout)
        written = fclose(out) == 0 && written;
    if (!written)
        fprintf(stderr, "kiln-verify: cannot write %s\n", path);
    return written;
}
