/* Reports on mutants: tables by family and kind, survivors, and JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../support/files.h"
#include "../../support/json.h"
#include "trial.h"

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static const subject *subject_of(const trials *t, size_t i)
{
    return &t->subjects[t->list[i].mutant.subject];
}

trial_tally trials_tally(const trials *t, const char *family, mutation_kind kind)
{
    trial_tally tally = {0};
    for (size_t i = 0; i < t->count; i++) {
        const trial *one = &t->list[i];
        if ((family && strcmp(subject_of(t, i)->variant->family, family) != 0) ||
            (kind != MUTATION_KINDS && one->mutant.kind != kind))
            continue;
        tally.drawn++;
        tally.killed += one->result.fate == MUTANT_KILLED;
        tally.same_code += one->result.fate == MUTANT_SAME_CODE;
        tally.crashed += one->result.has_crashed;
    }
    return tally;
}

static double percent(uint64_t part, uint64_t all)
{
    return all ? 100 * (double)part / (double)all : 100;
}

/* Returns the score over all mutants drawn. */
static double tally_raw(trial_tally t)
{
    return percent(t.killed, t.drawn);
}

double tally_net(trial_tally t)
{
    return percent(t.killed, t.drawn - t.same_code);
}

/* Returns the family of trial i, if no earlier trial has it; otherwise null. */
static const char *new_family(const trials *t, size_t i)
{
    const char *family = subject_of(t, i)->variant->family;
    for (size_t before = 0; before < i; before++)
        if (strcmp(subject_of(t, before)->variant->family, family) == 0)
            return NULL;
    return family;
}

/* ---- a mutant ---------------------------------------------------------------------------------------------------- */

static const char *const fates[] = {
    [MUTANT_KILLED] = "killed", [MUTANT_LIVES] = "lives", [MUTANT_SAME_CODE] = "same code"};

enum { STATEMENT_BYTES = 240 };

/* Writes the statement on one line, without surrounding space. */
static void write_statement(const char *from, size_t length, char *text)
{
    size_t used = 0;
    for (size_t i = 0; i < length && used < STATEMENT_BYTES - 1; i++)
        text[used++] = from[i] == '\n' || from[i] == '\t' ? ' ' : from[i];
    text[used] = '\0';
}

typedef struct described {
    char target[16], before[STATEMENT_BYTES], after[STATEMENT_BYTES];
    size_t line;
} described;

static described describe(const trials *t, size_t i)
{
    const mutant *m = &t->list[i].mutant;
    const subject *s = subject_of(t, i);
    pool scratch = {NULL};
    described d = {.line = ptx_text_line(&s->text, m->statement.at)};
    const char *changed = mutation_apply(&s->text, &m->change, &scratch);
    device_describe_target(s->image, d.target, sizeof d.target);
    write_statement(s->text.bytes + m->statement.at, m->statement.length, d.before);
    write_statement(changed + m->statement.at,
                    m->statement.length + strlen(m->change.text) - m->change.span.length, d.after);
    pool_free(&scratch);
    return d;
}

/* ---- the tables -------------------------------------------------------------------------------------------------- */

static void print_row(FILE *out, trial_tally t, const char *name)
{
    char killed[48];
    snprintf(killed, sizeof killed, "%" PRIu64 " of %" PRIu64, t.killed, t.drawn);
    fprintf(out, "%15s %8.1f %10" PRIu64 " %8.1f  %s\n", killed, tally_raw(t), t.same_code, tally_net(t),
            name);
}

static void print_head(FILE *out, const char *of)
{
    fprintf(out, "\n%15s %8s %10s %8s  %s\n", "killed", "%", "same code", "net %", of);
}

static void print_tables(FILE *out, const trials *t)
{
    print_head(out, "family");
    for (size_t i = 0; i < t->count; i++)
        if (new_family(t, i))
            print_row(out, trials_tally(t, new_family(t, i), MUTATION_KINDS), new_family(t, i));
    print_head(out, "kind of change");
    for (mutation_kind kind = 0; kind < MUTATION_KINDS; kind++) {
        const trial_tally of_kind = trials_tally(t, NULL, kind);
        if (of_kind.drawn)
            print_row(out, of_kind, mutation_name(kind));
    }
}

/* Lists survivors, or crashes. */
static void print_mutants(FILE *out, const trials *t, bool are_crashes)
{
    size_t printed = 0;
    for (size_t i = 0; i < t->count; i++) {
        const trial *one = &t->list[i];
        if (are_crashes ? !one->result.has_crashed : one->result.fate != MUTANT_LIVES)
            continue;
        if (printed++ == 0)
            fputs(are_crashes ? "\nthese ended the process that ran them, which no kernel may:\n"
                              : "\nthese live:\n",
                  out);
        const described d = describe(t, i);
        fprintf(out, "%" PRIu64 ": %s\n  %s line %zu, %s: %s\n%*s-> %s\n", one->number,
                subject_of(t, i)->variant->id, d.target, d.line, mutation_name(one->mutant.kind), d.before, 8,
                "", d.after[0] ? d.after : "(nothing)");
        if (are_crashes)
            fprintf(out, "%*s%s\n", 8, "", one->result.detail);
    }
}

void trials_report(const trials *t, const options *o)
{
    FILE *out = o->json && strcmp(o->json, "-") == 0 ? stderr : stdout;
    const trial_tally all = trials_tally(t, NULL, MUTATION_KINDS);
    print_tables(out, t);
    print_mutants(out, t, false);
    print_mutants(out, t, true);
    fprintf(out, "\n%" PRIu64 " of %" PRIu64 " mutants killed, %.1f %%", all.killed, all.drawn,
            tally_raw(all));
    if (t->ptxas[0])
        fprintf(out, "; without %" PRIu64 " of the same machine code, by ptxas %s, %.1f %%", all.same_code,
                t->ptxas, tally_net(all));
    else if (all.killed < all.drawn)
        fputs("; there is no ptxas on the PATH, to tell those that are the same machine code", out);
    fprintf(out, "; %" PRIu64 " more did not load\n", t->redrawn);
    if (all.drawn < o->mutants && !o->only)
        fprintf(out, "%" PRIu64 " were asked for: there are no others\n", o->mutants);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void write_tally(FILE *out, trial_tally t)
{
    fprintf(out,
            "\"drawn\": %" PRIu64 ", \"killed\": %" PRIu64 ", \"same_code\": %" PRIu64
            ", \"crashed\": %" PRIu64 ", \"raw_percent\": %.2f, \"net_percent\": %.2f",
            t.drawn, t.killed, t.same_code, t.crashed, tally_raw(t), tally_net(t));
}

static void write_row(FILE *out, const char *of, const char *name, trial_tally t, bool is_first)
{
    json_print(out, is_first ? "\n    {%s: %s, " : ",\n    {%s: %s, ", of, name);
    write_tally(out, t);
    fputc('}', out);
}

static void write_mutant(FILE *out, const trials *t, size_t i)
{
    const described d = describe(t, i);
    const trial *one = &t->list[i];
    fputs(i ? ",\n    {" : "\n    {", out);
    json_print(out,
               "\"number\": %" PRIu64
               ", \"line\": %zu, \"id\": %s, \"target\": %s, \"kind\": %s, \"before\": %s, "
               "\"after\": %s, \"result\": %s, \"detail\": %s, \"crashed\": %c}",
               one->number, d.line, subject_of(t, i)->variant->id, d.target, mutation_name(one->mutant.kind),
               d.before, d.after, fates[one->result.fate], one->result.detail, one->result.has_crashed);
}

static void write_all(FILE *out, const trials *t, const manifest *m, const device *d, const options *o)
{
    bool is_first = true;
    json_print(out,
               "{\n  \"bundle\": %s,\n  \"device\": %s,\n  \"sm\": %u,\n  \"seed\": %" PRIu64
               ",\n  \"asked\": %" PRIu64 ",\n  \"not_loaded\": %" PRIu64 ",\n  \"ptxas\": %s,\n  ",
               m->bundle, d->name, d->loader.device.sm, o->run.seed, o->mutants, t->redrawn, t->ptxas);
    write_tally(out, trials_tally(t, NULL, MUTATION_KINDS));
    fputs(",\n  \"families\": [", out);
    for (size_t i = 0; i < t->count; i++)
        if (new_family(t, i))
            write_row(out, "family", new_family(t, i), trials_tally(t, new_family(t, i), MUTATION_KINDS),
                      i == 0);
    fputs("\n  ],\n  \"kinds\": [", out);
    for (mutation_kind kind = 0; kind < MUTATION_KINDS; kind++) {
        const trial_tally of_kind = trials_tally(t, NULL, kind);
        if (of_kind.drawn)
            write_row(out, "kind", mutation_name(kind), of_kind, is_first);
        is_first = is_first && of_kind.drawn == 0;
    }
    fputs("\n  ],\n  \"mutants\": [", out);
    for (size_t i = 0; i < t->count; i++)
        write_mutant(out, t, i);
    fputs("\n  ]\n}\n", out);
}

const out_form trials_form = {"{\n  \"bundle\": ", "\n  \"not_loaded\": "};

bool trials_write_json(const trials *t, const manifest *m, const device *d, const options *o)
{
    out_file f;
    if (!out_open(&f, o->json))
        return false;
    write_all(f.out, t, m, d, o);
    return out_close(&f);
}
