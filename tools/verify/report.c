/* Prints kiln-verify's table for people. */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "progress.h"
#include "uncompared.h"
#include "verify.h"

/* The table's stream: standard output, unless results go there. */
static FILE *people;

/* ---- the table --------------------------------------------------------------------------------------------------- */

static bool is_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

void report_begin(const run_results *all, size_t bundle_variants, const char *json, const char *junit)
{
    const char *const *facts = all->facts;
    const long version = strtol(facts[FACT_DRIVER_VERSION], NULL, 10);
    people = is_stdout(json) || is_stdout(junit) ? stderr : stdout;
    fprintf(people, "bundle   %s, %zu variants, made by %s\n", facts[FACT_BUNDLE], bundle_variants,
            facts[FACT_GENERATOR]);
    fprintf(people, "device   %s, sm_%s, driver %ld.%ld\n", facts[FACT_DEVICE], facts[FACT_SM],
            version / 1000, version % 1000 / 10);
    if (strcmp(facts[FACT_EMULATED], "true") == 0)
        fprintf(people, "checks   exact buffers; KILN_EMU_CHECK: %s; every case twice, the second time %s\n",
                facts[FACT_CHECKS],
                strcmp(facts[FACT_ORDER], "two") == 0 ? "with thread blocks in another order" : "alike");
    else
        fprintf(people, "checks   guard bytes around every buffer; every case twice\n");
    fprintf(people, "seed     %s\n", facts[FACT_SEED]);
}

void report_shipped(const manifest *cubins)
{
    size_t count = 0;
    for (size_t i = 0; i < cubins->variant_count; i++)
        count += cubins->variants[i].cubin_count;
    fprintf(people, "ships    %zu cubins of ptxas %s, made of the PTX that runs here\n", count,
            cubins->ptxas);
}

static void print_head(void)
{
    fprintf(people, "\n%6s %8s %12s %7s %8s  %s\n", "cases", "refused", "elements", "worst", "seconds",
            "variant");
}

void report_run(const run_results *all, size_t chosen, const options *o)
{
    size_t resumed = 0;
    for (size_t i = 0; i < all->count; i++)
        resumed += all->results[i].has_run;
    if (o->part.of > 1)
        fprintf(people, "part     %s: %zu of %zu variants\n", all->facts[FACT_PART], all->count, chosen);
    if (o->resumes)
        fprintf(people, "resumed  %zu of %zu variants have run before\n", resumed, all->count);
    print_head();
    fflush(people); /* a reference that crashes loses none of it */
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
    progress_clear();
    write_worst(worst, sizeof worst, r->elements, r->has_bounds, r->worst_ratio);
    fprintf(people, "%6" PRIu64 " %8" PRIu64 " %12" PRIu64 " %7s %8.2f  %s: %s\n", r->cases, r->refusals,
            r->elements, worst, r->seconds, v->id, run_verdicts[r->verdict]);
    if (r->detail[0])
        fprintf(people, "      %s\n", r->detail);
    fflush(people);
}

void report_merged(const run_results *all, size_t parts)
{
    bool is_first = true;
    fprintf(people, "merged   %zu part%s\n", parts, parts == 1 ? "" : "s");
    for (size_t i = 0; i < all->count; i++) {
        if (all->results[i].verdict != RUN_WRONG)
            continue;
        if (is_first)
            print_head();
        is_first = false;
        report_variant(all->variants[i], &all->results[i]);
    }
}

/* ---- tried values ----------------------------------------------------------------------------------------------- */

typedef struct tried {
    const manifest_arg *about;
    value_range range;
    uint64_t limit;
} tried;

/* Collects the integer arguments of a family's variants, by name. */
static size_t collect_tried(const run_results *all, const char *family, tried list[MAX_ARGS])
{
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        const manifest_variant *v = all->variants[i];
        const run_result *r = &all->results[i];
        for (size_t n = 0; n < v->arg_count && r->sizes && strcmp(v->family, family) == 0; n++) {
            const manifest_arg *a = &v->args[n];
            size_t at = 0;
            while (at < count && strcmp(list[at].about->name, a->name) != 0)
                at++;
            if (!manifest_is_integer(a) || at == MAX_ARGS)
                continue;
            if (at == count)
                list[count++] = (tried){a, r->ranges[n], r->limits[n]};
            if (number_is_less(a->type, r->ranges[n].least, list[at].range.least))
                list[at].range.least = r->ranges[n].least;
            if (number_is_less(a->type, list[at].range.most, r->ranges[n].most))
                list[at].range.most = r->ranges[n].most;
            if (list[at].limit < r->limits[n])
                list[at].limit = r->limits[n];
        }
    }
    return count;
}

static void print_tried(const tried *t, const char *before)
{
    if (element_is_signed(t->about->type))
        fprintf(people, "%s%s %" PRId64 " to %" PRId64, before, t->about->name, (int64_t)t->range.least,
                (int64_t)t->range.most);
    else
        fprintf(people, "%s%s %" PRIu64 " to %" PRIu64, before, t->about->name, t->range.least,
                t->range.most);
    if (t->limit > t->range.most)
        fprintf(people, " of %" PRIu64, t->limit);
}

/* Prints each argument's range, the rules' limit beyond it, and the pairs of values that did not run together. */
static void report_tried(const run_results *all, const char *family)
{
    enum { IN_LINE = 5 };
    tried list[MAX_ARGS];
    const size_t count = collect_tried(all, family, list);
    uint64_t pairs = 0;
    const char *first = NULL;
    for (size_t i = 0; i < count; i++) {
        if (i % IN_LINE == 0)
            fprintf(people, "%s%37s %s", i ? ",\n" : "", "", i ? "  " : "tried: ");
        print_tried(&list[i], i % IN_LINE ? ", " : "");
    }
    fputs(count ? "\n" : "", people);
    for (size_t i = 0; i < all->count; i++) {
        const run_result *r = &all->results[i];
        if (strcmp(all->variants[i]->family, family) != 0 || r->excluded_pairs == 0)
            continue;
        pairs += r->excluded_pairs;
        first = first ? first : r->excluded;
    }
    if (pairs)
        fprintf(people, "%37s not tried together: %" PRIu64 " pairs of values; the first: %.*s\n", "", pairs,
                (int)strcspn(first, ";"), first);
}

static void report_families(const run_results *all)
{
    fprintf(people, "\n%15s %12s %7s  %s\n", "right", "elements", "worst",
            "family, or its variant with the worst");
    for (size_t i = 0; i < all->count; i++) {
        const char *family = all->variants[i]->family;
        char worst[16], right[32];
        if (!results_is_new_family(all, i))
            continue;
        const family_tally t = results_tally(all, family);
        if (t.executed == t.variants)
            snprintf(right, sizeof right, "not compared");
        else
            snprintf(right, sizeof right, "%zu of %zu", t.right, t.variants);
        write_worst(worst, sizeof worst, t.elements, t.has_bounds, t.worst_ratio);
        fprintf(people, "%15s %12" PRIu64 " %7s  %s\n", right, t.elements, worst, t.worst);
        if (t.largest)
            fprintf(people, "%37s largest size: %s, %" PRIu64 " elements in all buffers\n", "",
                    t.largest->largest, t.largest->largest_elements);
        report_tried(all, family);
    }
}

/* Reports families that were not compared. Returns how many of them are not excused. */
static size_t report_uncompared(const run_results *all)
{
    const char *title = "\nrun under all checks, and not compared:\n", *family;
    size_t missing = 0;
    for (size_t i = 0; (family = results_next_uncompared(all, &i)); i++) {
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

/* Reports kernels that this device does not run. */
static void report_unused(const run_results *all)
{
    const family_row *row;
    for (size_t i = 0; (row = family_registered(i)); i++) {
        size_t chosen = 0, skipped = 0;
        for (size_t k = 0; k < all->count; k++) {
            const bool is_own = strcmp(all->variants[k]->family, row->name) == 0;
            chosen += is_own;
            skipped += is_own && all->results[k].verdict == RUN_SKIPPED;
        }
        if (chosen && skipped == chosen)
            fprintf(people, "\nits reference, at %s:%d, compared nothing, as it was skipped: %s\n", row->file,
                    row->line, row->name);
    }
}

static void report_not_run(const target_list *n)
{
    if (n->count == 0)
        return;
    fputs("not run   images for ", people);
    for (size_t i = 0; i < n->count; i++)
        fprintf(people, "%s%s", i ? ", " : "", n->names[i]);
    fprintf(people, ": KILN_EMU_DEVICE=sm_%lu runs those for %s\n",
            strtoul(n->names[0] + strlen("sm_"), NULL, 10), n->names[0]);
}

/* Returns whether the shape's numbers lie in the ranges of the variant's sizes that passed. */
static bool is_in_ranges(const manifest_shape *s, const manifest_variant *v, const run_result *r)
{
    for (size_t i = 0; i < v->arg_count && r->sizes; i++)
        for (size_t k = 0; k < s->size_count; k++) {
            const manifest_size *size = &s->sizes[k];
            const bool is_named =
                strcmp(size->name, v->args[i].name) == 0 && !size->formula && !size->is_usual;
            if (is_named && (size->number < r->ranges[i].least || size->number > r->ranges[i].most))
                return false;
        }
    return r->sizes > 0;
}

typedef struct shape_tally {
    size_t within, all;
} shape_tally;

/* Counts the configuration's shapes that apply to some variant, of one family or, if null, of all. */
static shape_tally tally_shapes(const run_results *all, const char *family)
{
    shape_tally t = {0, 0};
    for (size_t i = 0; i < all->manifest->shape_count; i++) {
        const manifest_shape *s = &all->manifest->shapes[i];
        bool is_served = false, is_within = false;
        for (size_t k = 0; k < all->count && (!family || strcmp(family, s->family) == 0); k++) {
            const bool is_for = manifest_is_for(s, all->variants[k]);
            is_served = is_served || is_for;
            is_within = is_within || (is_for && is_in_ranges(s, all->variants[k], &all->results[k]));
        }
        t.all += is_served;
        t.within += is_within;
    }
    return t;
}

/* Compares the sizes that ran with the configured shapes; by family if a shape is outside. */
static void report_shapes(const run_results *all)
{
    const shape_tally t = tally_shapes(all, NULL);
    const char *gap = ": ";
    if (t.all == 0)
        return;
    fprintf(people, "shapes   %zu of %zu of the configuration are within the sizes that ran", t.within,
            t.all);
    for (size_t i = 0; i < all->count; i++) {
        const char *family = all->variants[i]->family;
        const shape_tally own =
            results_is_new_family(all, i) ? tally_shapes(all, family) : (shape_tally){0, 0};
        if (own.within == own.all)
            continue;
        fprintf(people, "%s%s %zu of %zu", gap, family, own.within, own.all);
        gap = ", ";
    }
    fputs(t.within < t.all ? "; --size runs others\n" : "\n", people);
}

void report_no_own_image(const char *name)
{
    fprintf(stderr,
            "kiln-verify: nothing was verified: no chosen variant has an image for %s itself; without "
            "--own-images they run images of lower targets\n",
            name);
}

int report_end(const run_results *all)
{
    size_t tally[4] = {0};
    uint64_t elements = 0, launches = 0;
    double seconds = 0;
    report_families(all);
    for (size_t i = 0; i < all->count; i++) {
        const run_result *r = &all->results[i];
        tally[r->verdict]++;
        elements += r->elements;
        launches += r->launches;
        seconds += r->seconds;
    }
    fprintf(people,
            "\n%zu variant%s: %zu right, %zu executed but not compared, %zu skipped, %zu wrong; %" PRIu64
            " launches, %" PRIu64 " elements compared",
            all->count, all->count == 1 ? "" : "s", tally[RUN_OK], tally[RUN_EXECUTED], tally[RUN_SKIPPED],
            tally[RUN_WRONG], launches, elements);
    if (seconds > 0)
        fprintf(people, ", %.1f s", seconds);
    fputc('\n', people);
    report_shapes(all);
    report_not_run(&all->not_run);
    report_unused(all);
    const size_t missing = report_uncompared(all);
    if (tally[RUN_WRONG] || missing)
        return VERIFY_EXIT_WRONG;
    return tally[RUN_SKIPPED] == all->count ? VERIFY_EXIT_NO_DEVICE : VERIFY_EXIT_OK;
}
