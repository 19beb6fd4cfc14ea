/* Runs mutants. Each runs in its own process, with the changed text instead of the image's, so that damage to the
 * emulated driver ends with that process. Each variant first runs unchanged and must pass. */
#define _XOPEN_SOURCE 700 /* setenv, setrlimit, sysconf */
#include "trial.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../verify.h"
#include "jobs.h"
#include "ptxas.h"

/* Limits on how often a block may jump back before a mutant counts as endless: the first limit with which the
 * variant itself passes is used, plus a margin. A loop that repeats thousands of times more is wrong even if its
 * results are right. */
static const uint64_t jump_limits[] = {UINT64_C(1) << 9, UINT64_C(1) << 12, UINT64_C(1) << 15,
                                       UINT64_C(1) << 20, UINT64_C(1) << 30};
enum { JUMPS_OVER = 4 };

/* Limits of processor time. They also end a mutant that is slow without jumping back, long after the variant
 * itself would have ended. */
enum { LEAST_SECONDS = 30, SECONDS_OVER = 10 };

/* The result of an unchanged variant. */
typedef struct healthy_result {
    bool has_run;
    uint64_t jumps; /* the limit with which it passed */
    double seconds; /* processor time of that run */
    run_result result;
} healthy_result;

typedef struct session {
    device *device;
    const manifest *manifest;
    const options *options;
    run_options run;
    pool memory;
    subject *subjects;
    size_t subject_count;
    healthy_result *healthy; /* per subject */
    draw *draws;             /* per family */
    size_t draw_count;
    trial *trials;
    size_t trial_count;
    size_t begun; /* trials of earlier rounds */
    uint64_t drawn, redrawn;
    size_t *chosen; /* indices of the subjects or trials that the jobs run */
} session;

static size_t at_once(const session *s)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return s->options->jobs ? (size_t)s->options->jobs : processors > 0 ? (size_t)processors : 1;
}

/* ---- the unchanged variant ------------------------------------------------------------------------------------------- */

/* Sets the environment of a job: one thread, since there are many processes, and no report, since no one reads it. */
static void set_environment(uint64_t jumps)
{
    char limit[32];
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)jumps);
    setenv("KILN_EMU_THREADS", "1", 0);
    setenv("KILN_EMU_VERBOSE", "0", 0);
    setenv("KILN_EMU_JUMPS", limit, 0);
}

/* Returns whether the run failed only because a block jumped back too often. */
static bool has_timed_out(const run_result *r)
{
    return r->verdict == RUN_WRONG && strstr(r->detail, "CUDA_ERROR_LAUNCH_TIMEOUT") != NULL;
}

static void run_healthy(void *context, size_t i, void *result)
{
    session *s = context;
    const subject *of = &s->subjects[s->chosen[i]];
    healthy_result *h = result;
    const bool has_limit = getenv("KILN_EMU_JUMPS") != NULL;
    for (size_t k = 0; k < sizeof jump_limits / sizeof *jump_limits; k++) {
        h->jumps = jump_limits[k];
        set_environment(h->jumps);
        const clock_t start = clock();
        const bool has_context =
            run_variant(s->device, s->manifest, of->variant, of->kernel, &s->run, NULL, &h->result);
        h->seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (has_limit || !has_timed_out(&h->result) || (!has_context && !run_recover(s->device, &h->result)))
            break;
        unsetenv("KILN_EMU_JUMPS");
    }
    h->has_run = true;
}

/* ---- a mutant ---------------------------------------------------------------------------------------------------- */

static bool is_asked_for(const session *s, const trial *t)
{
    const char *at = s->options->only;
    char *end;
    for (; at; at = *end ? end + 1 : NULL)
        if (strtoull(at, &end, 10) == t->number)
            return true;
    return !s->options->only;
}

static void limit_seconds(const healthy_result *h)
{
    const rlim_t seconds = LEAST_SECONDS + (rlim_t)(SECONDS_OVER * h->seconds);
    setrlimit(RLIMIT_CPU, &(struct rlimit){.rlim_cur = seconds, .rlim_max = seconds});
}

static void run_mutant(void *context, size_t i, void *result)
{
    session *s = context;
    const trial *t = &s->trials[s->begun + i];
    const mutant *m = &t->mutant;
    const subject *of = &s->subjects[m->subject];
    const healthy_result *h = &s->healthy[m->subject];
    trial_result *r = result;
    run_result run;
    if (h->result.verdict == RUN_SKIPPED)
        return;
    device_replace_image(s->device, of->image, mutation_apply(&of->text, &m->change, &s->memory));
    r->fate = MUTANT_KILLED; /* in case this process dies */
    if (kiln_preload(&s->device->loader, &of->kernel, 1) != KILN_OK) {
        r->fate = MUTANT_INVALID;
        return;
    }
    if (!is_asked_for(s, t)) {
        r->fate = MUTANT_UNTRIED;
        return;
    }
    set_environment(JUMPS_OVER * h->jumps);
    limit_seconds(h);
    run_variant(s->device, s->manifest, of->variant, of->kernel, &s->run, NULL, &run);
    r->fate = run.verdict == RUN_WRONG ? MUTANT_KILLED : MUTANT_LIVES;
    snprintf(r->detail, sizeof r->detail, "%.*s", (int)sizeof r->detail - 1, run.detail);
}

static void note_end(trial_result *r, job_end end)
{
    if (end.signal == SIGXCPU || end.signal == SIGKILL) {
        snprintf(r->detail, sizeof r->detail, "it did not end within the processor time that it was given");
    } else if (end.signal) {
        r->has_crashed = true;
        snprintf(r->detail, sizeof r->detail, "the process that ran it died: %s", strsignal(end.signal));
    } else if (end.status) {
        r->has_crashed = true;
        snprintf(r->detail, sizeof r->detail, "the process that ran it ended with status %d", end.status);
    }
}

/* ---- machine code ------------------------------------------------------------------------------------------------ */

static void compare_code(void *context, size_t i, void *result)
{
    session *s = context;
    const mutant *m = &s->trials[s->chosen[i]].mutant;
    const ptx_text *text = &s->subjects[m->subject].text;
    *(code_comparison *)result = ptxas_compare(text->bytes, mutation_apply(text, &m->change, &s->memory));
}

static bool set_aside_same_code(session *s, trials *t)
{
    size_t count = 0;
    s->chosen = pool_allocate(&s->memory, (s->trial_count + 1) * sizeof *s->chosen);
    for (size_t i = 0; i < s->trial_count; i++)
        if (s->trials[i].result.fate == MUTANT_LIVES)
            s->chosen[count++] = i;
    if (count == 0 || !ptxas_find(t->ptxas, sizeof t->ptxas))
        return true;
    code_comparison *found = pool_allocate(&s->memory, count * sizeof *found);
    job_end *ends = pool_allocate(&s->memory, count * sizeof *ends);
    if (!jobs_run(count, at_once(s), compare_code, s, found, sizeof *found, ends))
        return false;
    for (size_t i = 0; i < count; i++)
        if (found[i] == CODE_SAME)
            s->trials[s->chosen[i]].result.fate = MUTANT_SAME_CODE;
    return true;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static void open_draws(session *s)
{
    const char **families = pool_allocate(&s->memory, (s->subject_count + 1) * sizeof *families);
    for (size_t i = 0; i < s->subject_count; i++) {
        size_t at = 0;
        while (at < s->draw_count && strcmp(families[at], s->subjects[i].variant->family) != 0)
            at++;
        families[at] = s->subjects[i].variant->family;
        s->draw_count += at == s->draw_count;
    }
    s->draws = pool_allocate(&s->memory, (s->draw_count + 1) * sizeof *s->draws);
    const uint64_t seed = s->options->run.seed, all = s->options->mutants;
    for (size_t i = 0; i < s->draw_count; i++) {
        uint64_t has_more = (i + seed % s->draw_count) % s->draw_count < all % s->draw_count;
        draw_open(&s->draws[i], families[i], s->subjects, s->subject_count, seed,
                  all / s->draw_count + has_more, &s->memory);
    }
}

static void note_trial(session *s, const mutant *m)
{
    s->trials = pool_grow(&s->memory, s->trials, s->trial_count, sizeof *s->trials);
    s->trials[s->trial_count++] = (trial){.mutant = *m, .number = ++s->drawn};
}

/* Runs unchanged variants that now have mutants and have not run before. False: one fails, or processes cannot be
 * created. */
static bool run_unchanged(session *s)
{
    size_t count = 0;
    s->chosen = pool_allocate(&s->memory, (s->trial_count + 1) * sizeof *s->chosen);
    for (size_t i = s->begun; i < s->trial_count; i++) {
        size_t of = s->trials[i].mutant.subject;
        if (!is_asked_for(s, &s->trials[i]))
            continue;
        if (!s->healthy[of].has_run)
            s->chosen[count++] = of;
        s->healthy[of].has_run = true;
    }
    healthy_result *results = pool_allocate(&s->memory, (count + 1) * sizeof *results);
    job_end *ends = pool_allocate(&s->memory, (count + 1) * sizeof *ends);
    if (!jobs_run(count, at_once(s), run_healthy, s, results, sizeof *results, ends))
        return false;
    bool fine = true;
    for (size_t i = 0; i < count; i++) {
        s->healthy[s->chosen[i]] = results[i];
        const bool passes = results[i].has_run && results[i].result.verdict != RUN_WRONG;
        if (passes && results[i].result.verdict == RUN_SKIPPED)
            fprintf(stderr, "kiln-verify: %s has no mutants: %s\n", s->subjects[s->chosen[i]].variant->id,
                    results[i].result.detail);
        if (!passes)
            fprintf(stderr, "kiln-verify: %s is wrong without a change: %s\n",
                    s->subjects[s->chosen[i]].variant->id,
                    results[i].has_run ? results[i].result.detail : "the process that ran it died");
        fine = fine && passes;
    }
    return fine;
}

static draw *draw_of(session *s, const mutant *m)
{
    size_t i = 0;
    while (strcmp(s->draws[i].family, s->subjects[m->subject].variant->family) != 0)
        i++;
    return &s->draws[i];
}

/* Runs mutants. Those that do not load are removed. */
static bool run_mutants(session *s)
{
    const size_t count = s->trial_count - s->begun;
    trial_result *results = pool_allocate(&s->memory, count * sizeof *results);
    job_end *ends = pool_allocate(&s->memory, count * sizeof *ends);
    if (!jobs_run(count, at_once(s), run_mutant, s, results, sizeof *results, ends))
        return false;
    s->trial_count = s->begun;
    for (size_t i = 0; i < count; i++) {
        trial t = s->trials[s->begun + i];
        t.result = results[i];
        note_end(&t.result, ends[i]);
        if (t.result.fate == MUTANT_INVALID) {
            draw_again(draw_of(s, &t.mutant), t.mutant.kind);
            s->redrawn++;
        } else if (t.result.fate != MUTANT_UNTRIED) {
            s->trials[s->trial_count++] = t;
        }
    }
    s->begun = s->trial_count;
    return true;
}

/* Runs rounds: each draws as many mutants as are still required, so the mutants depend neither on the number of
 * processes nor on their speed. */
static bool run_rounds(session *s)
{
    for (;;) {
        mutant m;
        for (size_t i = 0; i < s->draw_count; i++)
            while (draw_next(&s->draws[i], &m))
                note_trial(s, &m);
        if (s->trial_count == s->begun)
            return true;
        if (!run_unchanged(s) || !run_mutants(s))
            return false;
    }
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* Returns whether all mutants requested by number ran. */
static bool has_all_asked(const session *s)
{
    const char *at = s->options->only;
    char *end;
    for (; at; at = *end ? end + 1 : NULL) {
        const uint64_t number = strtoull(at, &end, 10);
        size_t i = 0;
        while (i < s->trial_count && s->trials[i].number != number)
            i++;
        if (i < s->trial_count)
            continue;
        fprintf(stderr,
                "kiln-verify: --mutants: %llu is none of the mutants that these options draw: numbers hold "
                "for one --mutate, "
                "--seed and --filter\n",
                (unsigned long long)number);
        return false;
    }
    return true;
}

static int judge(const trials *t, const options *o)
{
    const trial_tally all = trials_tally(t, NULL, MUTATION_KINDS);
    if (tally_net(all) < (double)o->least) {
        fprintf(stderr, "kiln-verify: %.1f %% of the mutants were killed; --mutate-least asks for %llu\n",
                tally_net(all), (unsigned long long)o->least);
        return VERIFY_EXIT_WRONG;
    }
    return all.crashed ? VERIFY_EXIT_WRONG : VERIFY_EXIT_OK;
}

/* Orders by variant, then by place in its text. */
static int by_place(const void *a, const void *b)
{
    const mutant *one = &((const trial *)a)->mutant, *other = &((const trial *)b)->mutant;
    if (one->subject != other->subject)
        return one->subject < other->subject ? -1 : 1;
    if (one->change.span.at != other->change.span.at)
        return one->change.span.at < other->change.span.at ? -1 : 1;
    return strcmp(one->change.text, other->change.text);
}

static int run_session(session *s)
{
    open_draws(s);
    trials t = {.subjects = s->subjects};
    if (!run_rounds(s))
        return VERIFY_EXIT_WRONG;
    if (!has_all_asked(s))
        return VERIFY_EXIT_USAGE;
    if (!set_aside_same_code(s, &t))
        return VERIFY_EXIT_WRONG;
    t.list = s->trials;
    t.count = s->trial_count;
    t.redrawn = s->redrawn;
    if (t.count)
        qsort(t.list, t.count, sizeof *t.list, by_place);
    trials_report(&t, s->options);
    if (s->options->json && !trials_write_json(&t, s->manifest, s->device, s->options))
        return VERIFY_EXIT_WRONG;
    if (t.count)
        return judge(&t, s->options);
    fprintf(stderr, "kiln-verify: nothing could be changed in what was asked for\n");
    return VERIFY_EXIT_WRONG;
}

int mutants_run(device *d, const manifest *m, const manifest_variant *const *variants, size_t count,
                const options *o)
{
    session s = {.device = d, .manifest = m, .options = o, .run = o->run};
    s.run.seed = DEFAULT_SEED;       /* --seed applies to mutants */
    setenv("KILN_EMU_FORK", "1", 1); /* each mutant runs in a child, with this process' modules */
    s.subjects = pool_allocate(&s.memory, (count + 1) * sizeof *s.subjects);
    for (size_t i = 0; i < count; i++)
        s.subject_count += subject_read(&s.subjects[s.subject_count], d, variants[i], &s.memory);
    s.healthy = pool_allocate(&s.memory, (count + 1) * sizeof *s.healthy);
    int status = run_session(&s);
    pool_free(&s.memory);
    return status;
}
