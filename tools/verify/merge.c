/* kiln-verify merge: joins the results of a run's parts. */
#include "merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../support/files.h"
#include "../support/options.h"
#include "junit.h"
#include "report.h"
#include "results.h"
#include "verify.h"

enum { MOST_MISTAKES = 20 }; /* more are counted, not printed */

typedef struct merging {
    char **paths; /* of the parts */
    size_t path_count;
    const char *output; /* null: none */
    const char *junit;  /* null: none */
    bool wants_no_times, replaces_all;
    size_t parts;      /* of the whole run; 0: not known yet */
    const char **seen; /* the file of each part; null: not read yet */
    size_t mistakes;
    run_results all;
} merging;

static void complain(merging *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void complain(merging *m, const char *format, ...)
{
    va_list list;
    fputs("kiln-verify: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    m->mistakes++;
}

static bool read_arguments(merging *m, int argc, char **argv)
{
    static const option_row rows[] = {
        {OPTION_ROW("output", OPTION_TEXT, merging, output), .least = 1, .letter = 'o'},
        {OPTION_ROW("junit", OPTION_TEXT, merging, junit), .least = 1},
        {OPTION_ROW("no-times", OPTION_FLAG, merging, wants_no_times)},
        {OPTION_ROW("force", OPTION_FLAG, merging, replaces_all)}};
    static const option_table table = {"kiln-verify: merge", rows, sizeof rows / sizeof rows[0], SIZE_MAX};
    const int first = options_parse(&table, argc, argv, m, NULL);
    m->paths = argv + first;
    m->path_count = (size_t)(argc - first);
    if (first == argc)
        complain(
            m,
            "merge: no parts are named; it is called as kiln-verify merge PART.json... [-o FILE] [--junit FILE]");
    return first > 0 && first < argc;
}

/* Checks the output against the inputs: a pattern such as *.json may match the output, too. */
static void check_output(merging *m, const char *option, const char *path, const out_form *form)
{
    const size_t mistakes = m->mistakes;
    for (size_t i = 0; path && is_plain_file(path) && i < m->path_count; i++)
        if (is_same_file(path, m->paths[i]))
            complain(m, "merge: %s %s would overwrite the part %s", option, path, m->paths[i]);
    if (path && m->mistakes == mistakes)
        m->mistakes += !out_may_open(path, m->replaces_all ? NULL : form);
}

/* Parses "3/16". */
static part_share parse_part(const char *text)
{
    char *end;
    part_share part = {strtoull(text, &end, 10), 0};
    if (*end == '/')
        part.of = strtoull(end + 1, &end, 10);
    return *end == '\0' && part.number >= 1 && part.number <= part.of && part.of <= MOST_PARTS
               ? part
               : (part_share){0, 0};
}

/* False after a message. */
static bool note_part(merging *m, const char *path, const char *text)
{
    const part_share part = parse_part(text);
    const size_t mistakes = m->mistakes;
    if (m->parts == 0 && part.of) {
        m->parts = (size_t)part.of;
        m->seen = pool_allocate(m->all.memory, m->parts * sizeof *m->seen);
    }
    if (part.of == 0)
        complain(m, "%s: '%s' is no part", path, text);
    else if (part.of != m->parts)
        complain(m, "%s: part %s, where the first file has one of %zu", path, text, m->parts);
    else if (m->seen[part.number - 1])
        complain(m, "%s: part %s, as %s has", path, text, m->seen[part.number - 1]);
    else
        m->seen[part.number - 1] = path;
    return m->mistakes == mistakes;
}

static void read_part(merging *m, const char *path)
{
    char error[1024], whose[4200];
    results_text from = {.path = path, .whose = whose};
    from.text = file_read(m->all.memory, path, &from.length);
    if (!from.text) {
        complain(m, "cannot read %s: %s", path, strerror(errno));
        return;
    }
    snprintf(whose, sizeof whose, "that of %s", m->all.facts[FACT_DEVICE] ? m->paths[0] : "this program");
    const bool is_read = results_read(&m->all, &from, error, sizeof error);
    if (from.part && !note_part(m, path, from.part))
        return;
    if (!is_read)
        complain(m, "%s", error);
    else if (from.found != from.stated)
        complain(m, "%s: part_variants is %" PRIu64 ", found %zu; run this part again with --resume", path,
                 from.stated, from.found);
}

/* Prints "parts 2, 7-9 of 16 are missing". */
static void check_missing(merging *m)
{
    size_t missing = 0;
    for (size_t i = 0; i < m->parts; i++)
        missing += !m->seen[i];
    if (missing == 0)
        return;
    fprintf(stderr, "kiln-verify: %s", missing == 1 ? "part " : "parts ");
    const char *between = "";
    for (size_t i = 0, end; i < m->parts; i = end + 1) {
        for (end = i; end < m->parts && !m->seen[end];)
            end++;
        if (end == i)
            continue;
        fprintf(stderr, "%s%zu", between, i + 1);
        if (end > i + 1)
            fprintf(stderr, "-%zu", end);
        between = ", ";
    }
    fprintf(stderr, " of %zu %s missing\n", m->parts, missing == 1 ? "is" : "are");
    m->mistakes++;
}

/* Checks that the parts together have as many variants as the run. */
static void check_whole(merging *m)
{
    char found[32];
    results_drop_missing(&m->all);
    snprintf(found, sizeof found, "%zu", m->all.count);
    if (strcmp(found, m->all.facts[FACT_VARIANTS]) != 0)
        complain(m, "run_variants is %s, found %s in all parts", m->all.facts[FACT_VARIANTS], found);
    m->all.facts[FACT_PART] = "1/1";
    m->all.facts[FACT_PART_VARIANTS] = m->all.facts[FACT_VARIANTS];
}

static int report(merging *m, size_t variant_count)
{
    report_begin(&m->all, variant_count, m->output, m->junit);
    report_merged(&m->all, m->parts);
    int status = report_end(&m->all);
    if (status == VERIFY_EXIT_NO_DEVICE) {
        if (m->all.count == 0)
            report_no_own_image(m->all.facts[FACT_DEVICE]);
        else
            fprintf(stderr, "kiln-verify: nothing was verified: on %s all variants were skipped\n",
                    m->all.facts[FACT_DEVICE]);
        status = VERIFY_EXIT_WRONG;
    }
    const bool is_written = !m->output || results_write(&m->all, m->output);
    const bool is_told = !m->junit || junit_write(&m->all, m->junit);
    return is_written && is_told ? status : VERIFY_EXIT_WRONG;
}

int merge_main(int argc, char **argv, const manifest *m, pool *memory)
{
    merging g = {NULL};
    const manifest_variant **variants = pool_allocate(memory, (m->variant_count + 1) * sizeof *variants);
    for (size_t i = 0; i < m->variant_count; i++)
        variants[i] = &m->variants[i];
    results_open(&g.all, memory, m, variants, m->variant_count);
    if (!read_arguments(&g, argc, argv))
        return VERIFY_EXIT_USAGE;
    check_output(&g, "-o", g.output, &results_form);
    check_output(&g, "--junit", g.junit, &junit_form);
    if (g.output && g.junit && is_same_output(g.output, g.junit))
        complain(&g, "merge: -o and --junit name the same file");
    for (size_t i = 0; i < g.path_count && g.mistakes < MOST_MISTAKES; i++)
        read_part(&g, g.paths[i]);
    if (g.mistakes == 0)
        check_missing(&g);
    if (g.mistakes == 0)
        check_whole(&g);
    if (g.mistakes)
        return VERIFY_EXIT_USAGE;
    g.all.lacks_times = g.all.lacks_times || g.wants_no_times;
    return report(&g, m->variant_count);
}
