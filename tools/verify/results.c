/* A run's results, written as JSON and read again. */
#include "results.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../support/files.h"
#include "../support/json.h"
#include "reader.h"
#include "uncompared.h"

const char *const run_verdicts[] = {[RUN_OK] = "ok",
                                    [RUN_EXECUTED] = "executed, not compared",
                                    [RUN_SKIPPED] = "skipped",
                                    [RUN_WRONG] = "WRONG"};

static const struct fact_row {
    const char *name;
    bool is_text; /* otherwise a number or a bool */
} fact_rows[RUN_FACTS] = {
    [FACT_BUNDLE] = {"bundle", true},
    [FACT_GENERATOR] = {"generator", true},
    [FACT_MANIFEST] = {"manifest_xxh3_128", true},
    [FACT_VERIFIER] = {"verifier", true},
    [FACT_DEVICE] = {"device", true},
    [FACT_SM] = {"sm", false},
    [FACT_MULTIPROCESSORS] = {"multiprocessors", false},
    [FACT_DRIVER_VERSION] = {"driver_version", false},
    [FACT_EMULATED] = {"emulated", false},
    [FACT_CHECKS] = {"checks", true},
    [FACT_ORDER] = {"order", true},
    [FACT_SEED] = {"seed", false},
    [FACT_INPUTS] = {"inputs", false},
    [FACT_OPTIONS] = {"options", true},
    [FACT_VARIANTS] = {"run_variants", false},
    [FACT_PART] = {"part", true},
    [FACT_PART_VARIANTS] = {"part_variants", false},
};

/* ---- facts ------------------------------------------------------------------------------------------------------- */

static void set_fact(run_results *all, run_fact fact, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void set_fact(run_results *all, run_fact fact, const char *format, ...)
{
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int length = vsnprintf(NULL, 0, format, list);
    char *text = pool_allocate(all->memory, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(list);
    all->facts[fact] = text;
}

void results_open(run_results *all, pool *memory, const manifest *m, const manifest_variant *const *variants,
                  size_t count)
{
    *all = (run_results){.memory = memory, .manifest = m, .count = count};
    all->variants = pool_allocate(memory, (count + 1) * sizeof *all->variants);
    all->results = pool_allocate(memory, (count + 1) * sizeof *all->results);
    memcpy(all->variants, variants, count * sizeof *variants);
    qsort(all->variants, count, sizeof *all->variants, manifest_compare_ids);
    set_fact(all, FACT_BUNDLE, "%s", m->bundle);
    set_fact(all, FACT_GENERATOR, "%s", m->generator);
    set_fact(all, FACT_MANIFEST, "%s", m->hash);
    set_fact(all, FACT_VERIFIER, "kiln-verify %s", KILN_VERSION);
}

static int compare_targets(const char *a, const char *b)
{
    const unsigned long a_sm = strtoul(a + strlen("sm_"), NULL, 10),
                        b_sm = strtoul(b + strlen("sm_"), NULL, 10);
    return a_sm != b_sm ? (a_sm < b_sm ? -1 : 1) : strcmp(a, b);
}

static void add_target(target_list *list, const char *name)
{
    size_t at = 0;
    while (at < list->count && compare_targets(list->names[at], name) < 0)
        at++;
    if (list->count == MOST_TARGETS || (at < list->count && strcmp(list->names[at], name) == 0))
        return;
    memmove(list->names[at + 1], list->names[at], (list->count - at) * sizeof list->names[0]);
    snprintf(list->names[at], sizeof list->names[at], "%s", name);
    list->count++;
}

/* Notes the targets whose images an emulated device does not load, because it loads other images of the same kernels. Leaves out
 * cubins, and images that need a newer driver. A GPU gets no such note: it cannot run other GPUs' targets. */
static void note_targets(run_results *all, const device *d)
{
    for (size_t i = 0; d->is_emulated && i < all->count; i++) {
        const kiln_module *module = kiln_find(d->index, all->variants[i]->key)->module;
        const kiln_image *taken = kiln_select(&d->loader.device, module);
        for (const kiln_image *image = module->images; image < module->images + module->image_count;
             image++) {
            char name[TARGET_BYTES];
            device_describe_target(image, name, sizeof name);
            if (image != taken && image->format != KILN_IMAGE_CUBIN &&
                image->min_driver <= d->loader.device.driver_version)
                add_target(&all->not_run, name);
        }
    }
}

void results_describe(run_results *all, const device *d, const options *o, size_t chosen)
{
    set_fact(all, FACT_DEVICE, "%s", d->name);
    set_fact(all, FACT_SM, "%u", d->loader.device.sm);
    set_fact(all, FACT_MULTIPROCESSORS, "%u", d->loader.device.multiprocessors);
    set_fact(all, FACT_DRIVER_VERSION, "%d", d->version);
    set_fact(all, FACT_EMULATED, "%s", d->is_emulated ? "true" : "false");
    set_fact(all, FACT_CHECKS, "%s", d->is_emulated ? getenv("KILN_EMU_CHECK") : "guards");
    set_fact(all, FACT_ORDER, "%s", d->has_order ? getenv("KILN_EMU_ORDER") : d->is_emulated ? "two" : "any");
    set_fact(all, FACT_SEED, "%" PRIu64, o->run.seed);
    set_fact(all, FACT_INPUTS, "%" PRIu64, o->run.inputs);
    all->facts[FACT_OPTIONS] = options_describe(o, all->memory);
    set_fact(all, FACT_VARIANTS, "%zu", chosen);
    set_fact(all, FACT_PART, "%" PRIu64 "/%" PRIu64, o->part.number, o->part.of);
    set_fact(all, FACT_PART_VARIANTS, "%zu", all->count);
    all->lacks_times = o->wants_no_times;
    note_targets(all, d);
}

const char *results_fact_name(run_fact fact)
{
    return fact_rows[fact].name;
}

void results_drop_missing(run_results *all)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (!all->results[i].has_run)
            continue;
        all->variants[kept] = all->variants[i];
        if (kept < i)
            all->results[kept] = all->results[i];
        kept++;
    }
    all->count = kept;
}

/* ---- by family --------------------------------------------------------------------------------------------------- */

bool results_is_new_family(const run_results *all, size_t i)
{
    for (size_t before = 0; before < i; before++) {
        if (strcmp(all->variants[before]->family, all->variants[i]->family) == 0)
            return false;
    }
    return true;
}

family_tally results_tally(const run_results *all, const char *family)
{
    family_tally t = {.worst = family};
    for (size_t i = 0; i < all->count; i++) {
        const run_result *r = &all->results[i];
        if (strcmp(all->variants[i]->family, family) != 0)
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
            t.worst = all->variants[i]->id;
        }
    }
    return t;
}

const char *results_next_uncompared(const run_results *all, size_t *i)
{
    for (; *i < all->count; ++*i) {
        const char *family = all->variants[*i]->family;
        bool is_first = all->results[*i].verdict == RUN_EXECUTED;
        for (size_t before = 0; is_first && before < *i; before++)
            is_first = all->results[before].verdict != RUN_EXECUTED ||
                       strcmp(all->variants[before]->family, family) != 0;
        if (is_first)
            return family;
    }
    return NULL;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void write_facts(FILE *out, const run_results *all, const char *between)
{
    for (size_t i = 0; i < RUN_FACTS; i++) {
        fprintf(out, "%s\"%s\": ", i ? between : "", fact_rows[i].name);
        if (fact_rows[i].is_text)
            json_string(out, all->facts[i]);
        else
            fputs(all->facts[i], out);
    }
}

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
    json_print(out, ", \"largest\": %s, \"largest_elements\": %" PRIu64, r->largest, r->largest_elements);
}

static void write_ranges(FILE *out, const manifest_variant *v, const run_result *r)
{
    const char *between = "";
    fprintf(out, ", \"sizes\": %" PRIu64 ", \"ranges\": {", r->sizes);
    for (size_t i = 0; r->sizes && i < v->arg_count && i < MAX_ARGS; i++) {
        const element_type type = v->args[i].type;
        const value_range range = r->ranges[i];
        if (!manifest_is_integer(&v->args[i]))
            continue;
        fputs(between, out);
        json_print(out,
                   element_is_signed(type) ? "%s: [%" PRId64 ", %" PRId64 "]"
                                           : "%s: [%" PRIu64 ", %" PRIu64 "]",
                   v->args[i].name, range.least, range.most);
        between = ", ";
    }
    fputc('}', out);
}

static void write_limits(FILE *out, const manifest_variant *v, const run_result *r)
{
    const char *between = "";
    fputs(", \"limits\": {", out);
    for (size_t i = 0; i < v->arg_count && i < MAX_ARGS; i++) {
        if (r->limits[i] <= (r->sizes ? r->ranges[i].most : 0))
            continue;
        fputs(between, out);
        json_print(out, "%s: %" PRIu64, v->args[i].name, r->limits[i]);
        between = ", ";
    }
    fprintf(out, "}, \"excluded_pairs\": %" PRIu64, r->excluded_pairs);
    if (r->excluded[0])
        json_print(out, ", \"excluded\": %s", r->excluded);
}

static void write_result(FILE *out, const manifest_variant *v, const run_result *r)
{
    json_print(out,
               "\"id\": %s, \"result\": %s, \"cases\": %" PRIu64 ", \"launches\": %" PRIu64
               ", \"refusals\": %" PRIu64 ", \"elements\": %" PRIu64
               ", \"has_bounds\": %c, \"worst_error_over_bound\": ",
               v->id, run_verdicts[r->verdict], r->cases, r->launches, r->refusals, r->elements,
               r->has_bounds);
    write_ratio(out, r->elements, r->worst_ratio);
    write_largest(out, r);
    write_ranges(out, v, r);
    write_limits(out, v, r);
    if (r->detail[0])
        json_print(out, ", \"detail\": %s", r->detail);
}

void results_write_facts(FILE *out, const run_results *all)
{
    fputc('{', out);
    write_facts(out, all, ", ");
    fputs("}\n", out);
}

void results_write_line(FILE *out, const manifest_variant *v, const run_result *r)
{
    fputc('{', out);
    write_result(out, v, r);
    fprintf(out, ", \"seconds\": %.3f}\n", r->seconds);
}

static void write_variants(FILE *out, const run_results *all)
{
    fputs("  \"variants\": [", out);
    for (size_t i = 0; i < all->count; i++) {
        fputs(i ? ",\n    {" : "\n    {", out);
        write_result(out, all->variants[i], &all->results[i]);
        fputc('}', out);
    }
    fputs(all->count ? "\n  ],\n" : "],\n", out);
}

static void write_families(FILE *out, const run_results *all)
{
    fputs("  \"families\": [", out);
    for (size_t i = 0; i < all->count; i++) {
        const char *family = all->variants[i]->family;
        if (!results_is_new_family(all, i))
            continue;
        const family_tally t = results_tally(all, family);
        fputs(i > 0 ? ",\n    {" : "\n    {", out);
        json_print(out,
                   "\"family\": %s, \"variants\": %zu, \"ok\": %zu, \"elements\": %" PRIu64
                   ", \"worst_error_over_bound\": ",
                   family, t.variants, t.right, t.elements);
        write_ratio(out, t.elements, t.worst_ratio);
        if (t.worst_ratio > 0)
            json_print(out, ", \"worst\": %s", t.worst);
        if (t.largest)
            write_largest(out, t.largest);
        fputc('}', out);
    }
    fputs(all->count ? "\n  ],\n" : "],\n", out);
}

static void write_uncompared(FILE *out, const run_results *all)
{
    const char *family, *before = "\n    {";
    fputs("  \"uncompared\": [", out);
    for (size_t i = 0; (family = results_next_uncompared(all, &i)); i++) {
        fputs(before, out);
        json_print(out, "\"family\": %s, \"is_listed\": %c}", family, is_listed_as_uncompared(family));
        before = ",\n    {";
    }
    fputs(*before == ',' ? "\n  ],\n" : "],\n", out);
}

static void write_not_run(FILE *out, const target_list *targets)
{
    fputs("  \"targets_not_run\": [", out);
    for (size_t i = 0; i < targets->count; i++)
        fprintf(out, "%s\"%s\"", i ? ", " : "", targets->names[i]);
    fputc(']', out);
}

/* Writes times last, so that everything before them is the same in every run. */
static void write_times(FILE *out, const run_results *all)
{
    fputs(",\n  \"times\": {", out);
    for (size_t i = 0; i < all->count; i++) {
        fputs(i ? ",\n    " : "\n    ", out);
        json_print(out, "%s: %.3f", all->variants[i]->id, all->results[i].seconds);
    }
    fputs(all->count ? "\n  }" : "}", out);
}

const out_form results_form = {"{\n  \"bundle\": ", "\n  \"verifier\": "};

bool results_write(const run_results *all, const char *path)
{
    out_file f;
    if (!out_open(&f, path))
        return false;
    fputs("{\n  ", f.out);
    write_facts(f.out, all, ",\n  ");
    fputs(",\n", f.out);
    write_variants(f.out, all);
    write_families(f.out, all);
    write_uncompared(f.out, all);
    write_not_run(f.out, &all->not_run);
    if (!all->lacks_times)
        write_times(f.out, all);
    fputs("\n}\n", f.out);
    return out_close(&f);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

run_result *results_slot(const run_results *all, const char *id)
{
    const manifest_variant key = {.id = id}, *wanted = &key;
    const manifest_variant **found =
        bsearch(&wanted, all->variants, all->count, sizeof *all->variants, manifest_compare_ids);
    return found ? &all->results[found - all->variants] : NULL;
}

static run_verdict read_verdict(reader *r, fy_node *node)
{
    const char *text = reader_get_text_member(r, node, "result");
    for (run_verdict v = RUN_OK; v <= RUN_WRONG; v++)
        if (strcmp(text, run_verdicts[v]) == 0)
            return v;
    reader_refuse(r, "no such result: '%s'", text);
}

static double read_real(reader *r, const char *text, const char *name)
{
    char *end;
    const double value = strtod(text, &end);
    if (!*text || *end || !(value >= 0))
        reader_refuse(r, "'%s' is '%s', no number from 0 on", name, text);
    return value;
}

static uint64_t read_edge(reader *r, fy_node *range, int which, const manifest_arg *a)
{
    const char *text = reader_get_text(r, fy_node_sequence_get_by_index(range, which), a->name);
    const bool is_negative = *text == '-' && element_is_signed(a->type);
    const uint64_t value = reader_parse_number(r, text + is_negative, a->name, 10);
    return is_negative ? -value : value;
}

static void read_ranges(reader *r, fy_node *node, const manifest_variant *v, run_result *result)
{
    fy_node *ranges = reader_get_member(r, node, "ranges");
    result->sizes = reader_get_number_member(r, node, "sizes");
    for (size_t i = 0; result->sizes && i < v->arg_count && i < MAX_ARGS; i++) {
        const manifest_arg *a = &v->args[i];
        if (!manifest_is_integer(a))
            continue;
        fy_node *range = reader_get_member(r, ranges, a->name);
        if (reader_get_count(r, range, a->name) != 2)
            reader_refuse(r, "'%s' is no range of two numbers", a->name);
        result->ranges[i] = (value_range){read_edge(r, range, 0, a), read_edge(r, range, 1, a)};
    }
}

static void read_limits(reader *r, fy_node *node, const manifest_variant *v, run_result *result)
{
    fy_node *limits = reader_get_member(r, node, "limits");
    result->excluded_pairs = reader_get_number_member(r, node, "excluded_pairs");
    const char *excluded = reader_find_text(r, node, "excluded");
    snprintf(result->excluded, sizeof result->excluded, "%s", excluded ? excluded : "");
    for (size_t i = 0; i < v->arg_count && i < MAX_ARGS; i++)
        if (reader_find_member(r, limits, v->args[i].name))
            result->limits[i] = reader_get_number_member(r, limits, v->args[i].name);
}

static void read_result(reader *r, fy_node *node, const run_results *all)
{
    const char *id = r->where = reader_get_text_member(r, node, "id");
    run_result *result = results_slot(all, id);
    if (!result)
        reader_refuse(r, "this run has no such variant");
    if (result->has_run)
        reader_refuse(r, "a second result of this variant");
    *result = (run_result){.verdict = read_verdict(r, node), .has_run = true};
    result->cases = reader_get_number_member(r, node, "cases");
    result->launches = reader_get_number_member(r, node, "launches");
    result->refusals = reader_get_number_member(r, node, "refusals");
    result->elements = reader_get_number_member(r, node, "elements");
    result->has_bounds = strcmp(reader_get_text_member(r, node, "has_bounds"), "true") == 0;
    const char *ratio = reader_find_text(r, node, "worst_error_over_bound");
    if (ratio)
        result->worst_ratio = read_real(r, ratio, "worst_error_over_bound");
    else if (result->elements)
        result->worst_ratio = INFINITY;
    if (result->verdict == RUN_OK && result->worst_ratio > 1)
        reader_refuse(r, "result is \"ok\", but worst_error_over_bound is %s, not at most 1",
                      ratio ? ratio : "null");
    result->largest_elements = reader_get_number_member(r, node, "largest_elements");
    snprintf(result->largest, sizeof result->largest, "%s", reader_get_text_member(r, node, "largest"));
    read_ranges(r, node, all->variants[result - all->results], result);
    read_limits(r, node, all->variants[result - all->results], result);
    const char *detail = reader_find_text(r, node, "detail"), *seconds = reader_find_text(r, node, "seconds");
    snprintf(result->detail, sizeof result->detail, "%s", detail ? detail : "");
    result->seconds = seconds ? read_real(r, seconds, "seconds") : 0;
    r->where = "";
}

static void read_facts(reader *r, fy_node *root, run_results *all, results_text *from)
{
    for (size_t i = 0; i < RUN_FACTS; i++) {
        const char *text = reader_get_text_member(r, root, fact_rows[i].name);
        if (i == FACT_PART)
            from->part = text;
        else if (i == FACT_PART_VARIANTS)
            from->stated = reader_parse_number(r, text, fact_rows[i].name, 10);
        else if (!all->facts[i])
            all->facts[i] = text;
        if (all->facts[i] && strcmp(all->facts[i], text) != 0)
            reader_refuse(r, "%s is \"%s\", %s is \"%s\"", fact_rows[i].name, text, from->whose,
                          all->facts[i]);
    }
}

static void read_targets(reader *r, fy_node *list, run_results *all)
{
    const size_t count = reader_get_count(r, list, "targets_not_run");
    for (size_t i = 0; i < count; i++) {
        const char *name = reader_get_text(r, fy_node_sequence_get_by_index(list, (int)i), "targets_not_run");
        if (strncmp(name, "sm_", 3) != 0 || strlen(name) >= TARGET_BYTES)
            reader_refuse(r, "'%s' is no target", name);
        add_target(&all->not_run, name);
    }
}

/* Reads times; null: there are none. */
static void read_times(reader *r, fy_node *times, run_results *all)
{
    void *iterator = NULL;
    all->lacks_times = all->lacks_times || !times;
    for (struct fy_node_pair *pair; times && (pair = fy_node_mapping_iterate(times, &iterator));) {
        const char *id = reader_get_text(r, fy_node_pair_key(pair), "times");
        run_result *result = results_slot(all, id);
        if (result)
            result->seconds = read_real(r, reader_get_text(r, fy_node_pair_value(pair), "times"), "times");
    }
}

static void read_whole(reader *r, fy_node *root, run_results *all, results_text *from)
{
    read_facts(r, root, all, from);
    fy_node *variants = reader_get_member(r, root, "variants");
    from->found = reader_get_count(r, variants, "variants");
    void *iterator = NULL;
    for (fy_node *v; (v = fy_node_sequence_iterate(variants, &iterator));)
        read_result(r, v, all);
    read_targets(r, reader_get_member(r, root, "targets_not_run"), all);
    read_times(r, reader_find_member(r, root, "times"), all);
}

/* Reads a line of a journal: the facts, or a result. */
static void read_line(reader *r, fy_node *root, run_results *all, results_text *from)
{
    if (from->part)
        read_result(r, root, all);
    else
        read_facts(r, root, all, from);
}

static bool read_text(reader *r, const char *text, size_t length, run_results *all, results_text *from)
{
    volatile bool fine = false;
    if (!reader_open(r, text, length))
        return false;
    if (setjmp(r->failed) == 0) {
        fy_node *root = fy_document_root(r->document);
        if (!root)
            reader_refuse(r, "it is empty");
        (from->is_journal ? read_line : read_whole)(r, root, all, from);
        fine = true;
    }
    reader_close(r);
    return fine;
}

bool results_read(run_results *all, results_text *from, char *error, size_t error_bytes)
{
    reader r = {
        .memory = all->memory, .what = from->path, .where = "", .error = error, .error_bytes = error_bytes};
    from->part = NULL;
    if (!from->is_journal)
        return read_text(&r, from->text, from->length, all, from);
    for (const char *line = from->text, *end; line < from->text + from->length; line = end + 1) {
        end = memchr(line, '\n', from->length - (size_t)(line - from->text));
        r.line++;
        if (!read_text(&r, line, (size_t)(end - line), all, from))
            return false;
    }
    return true;
}
