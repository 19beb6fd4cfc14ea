/* Writes the results as JUnit XML, which GitLab and Jenkins read. Format: github.com/testmoapp/junitxml */
#include "junit.h"

#include <inttypes.h>
#include <string.h>

#include "../support/files.h"
#include "../support/utf8.h"
#include "uncompared.h"

/* ---- XML --------------------------------------------------------------------------------------------------------- */

/* Returns the replacement of a character: an entity, or U+FFFD if XML 1.0 forbids it; null: no replacement. */
static const char *special(const unsigned char *at, size_t length)
{
    switch (*at) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\t':
        return "&#9;";
    case '\n':
        return "&#10;";
    case '\r':
        return "&#13;";
    default:
        return length == 0 || *at < 0x20 || memcmp(at, "\xef\xbf\xbe", length) == 0 ||
                       memcmp(at, "\xef\xbf\xbf", length) == 0
                   ? UTF8_REPLACEMENT
                   : NULL;
    }
}

/* Writes text for an attribute or between tags. */
static void write_text(FILE *out, const char *text)
{
    size_t length;
    for (const unsigned char *at = (const unsigned char *)text; *at; at += length ? length : 1) {
        length = utf8_length(at);
        const char *instead = special(at, length);
        if (instead)
            fputs(instead, out);
        else
            fwrite(at, 1, length, out);
    }
}

static void write_attribute(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s=\"", name);
    write_text(out, value);
    fputc('"', out);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* How a CI server shows a variant. */
typedef enum outcome { OUTCOME_PASSED, OUTCOME_SKIPPED, OUTCOME_FAILED, OUTCOMES } outcome;

static outcome outcome_of(const manifest_variant *v, const run_result *r)
{
    switch (r->verdict) {
    case RUN_OK:
        return OUTCOME_PASSED;
    case RUN_EXECUTED: /* also fails the run, unless it is listed */
        return is_listed_as_uncompared(v->family) ? OUTCOME_SKIPPED : OUTCOME_FAILED;
    case RUN_SKIPPED:
        return OUTCOME_SKIPPED;
    default:
        return OUTCOME_FAILED;
    }
}

/* Writes the attributes of a suite, or, with family null, of all suites. */
static void write_counts(FILE *out, const run_results *all, const char *family)
{
    size_t counts[OUTCOMES] = {0};
    double seconds = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (family && strcmp(all->variants[i]->family, family) != 0)
            continue;
        counts[outcome_of(all->variants[i], &all->results[i])]++;
        seconds += all->results[i].seconds;
    }
    fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\"",
            counts[OUTCOME_PASSED] + counts[OUTCOME_SKIPPED] + counts[OUTCOME_FAILED], counts[OUTCOME_FAILED],
            counts[OUTCOME_SKIPPED]);
    if (!all->lacks_times)
        fprintf(out, " time=\"%.3f\"", seconds);
}

static void write_outcome(FILE *out, const manifest_variant *v, const run_result *r)
{
    const outcome o = outcome_of(v, r);
    const char *why = r->detail[0] ? r->detail : run_verdicts[r->verdict];
    if (r->verdict == RUN_EXECUTED && o == OUTCOME_FAILED)
        why = "executed, not compared, and not listed as UNCOMPARED";
    if (o == OUTCOME_SKIPPED) {
        fputs("      <skipped", out);
        write_attribute(out, "message", why);
        fputs("/>\n", out);
    } else if (o == OUTCOME_FAILED) {
        fputs("      <failure", out);
        write_attribute(out, "message", why);
        write_attribute(out, "type", run_verdicts[r->verdict]);
        fputc('>', out);
        write_text(out, why);
        fputs("</failure>\n", out);
    }
}

static void write_case(FILE *out, const run_results *all, size_t i)
{
    const manifest_variant *v = all->variants[i];
    const run_result *r = &all->results[i];
    fputs("    <testcase classname=\"", out);
    write_text(out, all->facts[FACT_BUNDLE]);
    fputc('.', out);
    write_text(out, v->family);
    fputc('"', out);
    write_attribute(out, "name", v->id);
    if (!all->lacks_times)
        fprintf(out, " time=\"%.3f\"", r->seconds);
    fputs(">\n", out);
    write_outcome(out, v, r);
    fprintf(out,
            "      <system-out>%" PRIu64 " cases, %" PRIu64 " launches, %" PRIu64 " refused calls, %" PRIu64
            " elements compared",
            r->cases, r->launches, r->refusals, r->elements);
    if (r->elements && r->has_bounds)
        fprintf(out, ", largest error %.6g of its bound", r->worst_ratio);
    if (r->largest_elements) {
        fputs(", largest size ", out);
        write_text(out, r->largest);
    }
    fputs("</system-out>\n    </testcase>\n", out);
}

static void write_suite(FILE *out, const run_results *all, const char *family)
{
    fputs("  <testsuite", out);
    write_attribute(out, "name", family);
    write_counts(out, all, family);
    fputs(">\n    <properties>\n", out);
    for (size_t i = 0; i < RUN_FACTS; i++) {
        fputs("      <property", out);
        write_attribute(out, "name", results_fact_name((run_fact)i));
        write_attribute(out, "value", all->facts[i]);
        fputs("/>\n", out);
    }
    fputs("    </properties>\n", out);
    for (size_t i = 0; i < all->count; i++)
        if (strcmp(all->variants[i]->family, family) == 0)
            write_case(out, all, i);
    fputs("  </testsuite>\n", out);
}

const out_form junit_form = {"<?xml ", "\n<testsuites name=\"kiln-verify "};

bool junit_write(const run_results *all, const char *path)
{
    out_file f;
    if (!out_open(&f, path))
        return false;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", f.out);
    write_attribute(f.out, "name", all->facts[FACT_VERIFIER]);
    write_counts(f.out, all, NULL);
    fputs(">\n", f.out);
    for (size_t i = 0; i < all->count; i++)
        if (results_is_new_family(all, i))
            write_suite(f.out, all, all->variants[i]->family);
    fputs("</testsuites>\n", f.out);
    return out_close(&f);
}
