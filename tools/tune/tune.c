/* Times a bundle's variants at the shapes of its configuration, or of a file, and writes a tuned file. */
#include "tune.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/clock.h"
#include "../support/options.h"
#include "../verify/progress.h"
#include "../verify/verify.h"
#include "results.h"
#include "shapes.h"
#include "stopwatch.h"
#include "subject.h"

enum { ATTRIBUTE_L2_BYTES = 38, EXIT_INTERRUPTED = 130, DEFAULT_REPEAT = 30 };

#define WARM_UP_US 20e3

/* Seconds between writes of the file, and between lines of progress where there is no terminal. */
#define SECONDS_UNWRITTEN 2.0
#define SECONDS_A_LINE    60.0

typedef struct job {
    const tune_shape *shape;
    const manifest_variant *variant;
} job;

typedef struct tune {
    const kiln_index *index;
    const manifest *manifest;
    const char *driver, *filter, *shapes_path, *output;
    uint64_t device_ordinal, repeat;
    bool wants_help, wants_template;
    pool memory;
    shape_list shapes;
    job *jobs;
    size_t job_count;
    results results;
    device device;
    driver_tools tools;
    stopwatch stopwatch;
    uint64_t l2_bytes;
    size_t measured, kept, ruled_out, failed;
    const job *reason_job; /* the first job with the pending reason; null: there is none */
    size_t reason_count;
    char reason[1024], reason_shape[1024];
    double start, written, told;
} tune;

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

/* Catches SIGINT and SIGTERM once: a second signal ends the program as usual. */
static void watch_interrupts(void)
{
    const struct sigaction once = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &once, NULL);
    sigaction(SIGTERM, &once, NULL);
}

/* ---- the command line --------------------------------------------------------------------------------------------- */

static void print_help(const char *program)
{
    printf(
        "usage: %s [SHAPES.yaml] -o TUNED.yaml [OPTION]...\n"
        "Times the bundle's variants on this machine's device, at the shapes of its configuration or of "
        "SHAPES.yaml, and\n"
        "writes a file for a configuration's 'tuned'. An interrupted run continues from TUNED.yaml.\n"
        "\n"
        "  -o, --output FILE   the tuned file\n"
        "  --template          print a shapes file to fill in\n"
        "  --filter TEXT       only variants whose id contains TEXT\n"
        "  --repeat N          samples per time, of which the median counts (default: %d; at most %d)\n"
        "  --driver PATH       this driver library (default: libcuda.so.1)\n"
        "  --device N          the driver's N-th device (default: 0)\n"
        "  --help              print this\n"
        "\n"
        "Exit status: 0 everything is measured, 1 something failed, 2 bad usage, 77 no driver or device (1 if\n"
        "--driver or --device asked for one), 130 interrupted.\n",
        program, DEFAULT_REPEAT, MOST_SAMPLES);
}

static bool complain(const char *what)
{
    fprintf(stderr, "kiln-tune: %s; see --help\n", what);
    return false;
}

static bool read_options(tune *t, int argc, char **argv)
{
    static const option_row rows[] = {
        {OPTION_ROW("output", OPTION_TEXT, tune, output), .letter = 'o'},
        {OPTION_ROW("template", OPTION_FLAG, tune, wants_template)},
        {OPTION_ROW("filter", OPTION_TEXT, tune, filter)},
        {OPTION_ROW("repeat", OPTION_NUMBER, tune, repeat), .least = 1, .most = MOST_SAMPLES},
        {OPTION_ROW("driver", OPTION_TEXT, tune, driver)},
        {OPTION_ROW("device", OPTION_NUMBER, tune, device_ordinal), .most = 1023},
        {OPTION_ROW("help", OPTION_FLAG, tune, wants_help)},
    };
    static const option_table table = {"kiln-tune", rows, sizeof rows / sizeof rows[0], 1};
    const int first = options_parse(&table, argc, argv, t, NULL);
    if (first == 0)
        return false;
    if (first < argc)
        t->shapes_path = argv[first];
    return t->wants_help || t->wants_template || t->output || complain("-o TUNED.yaml is missing");
}

/* ---- jobs --------------------------------------------------------------------------------------------------------- */

static bool read_shapes(tune *t)
{
    if (t->shapes_path)
        return shapes_read(&t->memory, t->shapes_path, t->manifest, &t->shapes);
    shapes_of_manifest(&t->memory, t->manifest, &t->shapes);
    return t->shapes.count > 0 ||
           complain("SHAPES.yaml is missing, since this bundle's configuration names no shapes");
}

/* Adds variants that compete for calls; a variant without a rival needs no tuning. */
static bool add_jobs(tune *t)
{
    size_t room = 1;
    for (size_t i = 0; i < t->shapes.count; i++)
        room += t->manifest->variant_count;
    t->jobs = pool_allocate(&t->memory, room * sizeof *t->jobs);
    for (size_t i = 0; i < t->shapes.count; i++)
        for (size_t k = 0; k < t->manifest->variant_count; k++) {
            const manifest_variant *v = &t->manifest->variants[k];
            if (shape_is_for(&t->shapes.items[i], v) && !v->why_not_launched &&
                shape_has_rival(t->manifest, v) && (!t->filter || strstr(v->id, t->filter)))
                t->jobs[t->job_count++] = (job){&t->shapes.items[i], v};
        }
    if (t->job_count == 0)
        fprintf(stderr, "kiln-tune: there is nothing to measure: %s\n",
                t->filter
                    ? "no variant of these families has --filter's text in its id, and another beside it"
                    : "these families have one variant for each call");
    return t->job_count > 0;
}

/* ---- progress ------------------------------------------------------------------------------------------------------ */

static void describe_time(double seconds, char text[32])
{
    const unsigned minutes = (unsigned)(seconds / 60);
    if (minutes == 0)
        snprintf(text, 32, "%u s left", (unsigned)seconds);
    else
        snprintf(text, 32, "%u:%02u h left", minutes / 60, minutes % 60);
}

static void show_progress(tune *t, size_t done, const char *id)
{
    char left[32] = "";
    const double now = seconds_now();
    const bool is_terminal = isatty(STDERR_FILENO) == 1;
    if (!is_terminal && now - t->told < SECONDS_A_LINE)
        return;
    if (t->measured > 0)
        describe_time((now - t->start) / (double)(done - t->kept) * (double)(t->job_count - done), left);
    fprintf(stderr, "%s%zu of %zu  %s%s%.80s%s", is_terminal ? "\r\033[K" : "", done, t->job_count, left,
            *left ? "  " : "", id, is_terminal ? "" : "\n");
    t->told = now;
}

/* Prints why variants were not measured: one line for all variants of a shape with the same reason. */
static void flush_reason(tune *t)
{
    const job *j = t->reason_job;
    if (!j)
        return;
    progress_clear();
    fprintf(stderr, "%s: %s", j->shape->place, j->variant->id);
    if (t->reason_count > 1)
        fprintf(stderr, " and %zu more", t->reason_count - 1);
    fprintf(stderr, " at {%s}: %s\n", t->reason_shape, t->reason);
    t->reason_job = NULL;
}

static void tell_reason(tune *t, const job *j, const char *shape, const char *why)
{
    if (t->reason_job && t->reason_job->shape == j->shape && strcmp(t->reason, why) == 0 &&
        strcmp(t->reason_shape, shape) == 0) {
        t->reason_count++;
        return;
    }
    flush_reason(t);
    t->reason_job = j;
    t->reason_count = 1;
    snprintf(t->reason, sizeof t->reason, "%s", why);
    snprintf(t->reason_shape, sizeof t->reason_shape, "%s", shape);
}

/* ---- measuring ----------------------------------------------------------------------------------------------------- */

/* Opens the stopwatch. False: the device accepts no more work. */
static bool open_stopwatch(tune *t)
{
    char error[256];
    static task plain, graph;
    const double warm_up_us = t->device.is_emulated ? 0 : WARM_UP_US;
    int result = stopwatch_open(&t->stopwatch, &t->tools, (unsigned)t->repeat, warm_up_us);
    if (result == 0)
        result = stopwatch_calibrate(&t->stopwatch, &t->device.driver, &plain, &graph);
    if (result == 0)
        return true;
    device_describe_result(&t->device, result, error, sizeof error);
    fprintf(stderr, "kiln-tune: %s\n", error);
    return false;
}

/* Makes a new context after a kernel failed. */
static bool recover(tune *t)
{
    char error[1024];
    stopwatch_close(&t->stopwatch);
    if (device_reopen(&t->device, error, sizeof error) == DEVICE_OK)
        return open_stopwatch(t);
    fprintf(stderr, "kiln-tune: %s\n", error);
    return false;
}

/* Measures a job. False: the device accepts no more work. */
static bool measure(tune *t, const job *j, const char *shape, problem *p)
{
    static task measured;
    char error[1024];
    subject s;
    const kiln_kernel *kernel = kiln_find(t->index, j->variant->key);
    if (!kernel || !kiln_usable(&t->device.loader, kernel)) {
        t->ruled_out++;
        return true;
    }
    if (!subject_open(&s, &t->device, &t->tools, kernel, p, t->l2_bytes, error, sizeof error)) {
        tell_reason(t, j, shape, error);
        *(s.is_too_large ? &t->ruled_out : &t->failed) += 1;
        return t->device.driver.ctx_synchronize() == 0 || recover(t);
    }
    measured = (task){.submit = subject_submit, .context = &s, .period = (unsigned)s.sets};
    const int result = stopwatch_measure(&t->stopwatch, &measured);
    if (result != 0)
        device_describe_failure(&t->device, kernel, result, error, sizeof error);
    subject_close(&s);
    const uint32_t nanoseconds = result == 0 ? stopwatch_median_ns(&measured, (unsigned)t->repeat) : 0;
    if (nanoseconds > 0) {
        results_add(&t->results, j->variant->family, shape, j->variant->id, nanoseconds);
        t->measured++;
        return true;
    }
    if (result == 0)
        snprintf(error, sizeof error,
                 "a launch takes more than 4.29 seconds, the longest time of a tuned file");
    tell_reason(t, j, shape, error);
    t->failed++;
    return t->device.driver.ctx_synchronize() == 0 || recover(t);
}

static bool run_job(tune *t, const job *j)
{
    char error[1024], shape[1024];
    problem p;
    if (!problem_open(&p, j->variant, &t->device.loader.device, error, sizeof error)) {
        tell_reason(t, j, "", error);
        t->failed++;
        return true;
    }
    const shape_fit fit = shape_apply(j->shape, &p, error, sizeof error);
    shape_describe(j->shape, t->manifest, &p, shape, sizeof shape);
    if (fit != SHAPE_FITS) {
        tell_reason(t, j, shape, error);
        *(fit == SHAPE_WRONG ? &t->failed : &t->ruled_out) += 1;
        return true;
    }
    if (results_find(&t->results, j->variant->family, shape, j->variant->id)) {
        t->kept++;
        return true;
    }
    return measure(t, j, shape, &p);
}

static int run_jobs(tune *t)
{
    bool is_alive = true, is_written = true;
    size_t done = 0;
    t->start = t->told = t->written = seconds_now();
    for (; is_alive && is_written && !is_interrupted && done < t->job_count; done++) {
        show_progress(t, done, t->jobs[done].variant->id);
        is_alive = run_job(t, &t->jobs[done]);
        if (t->reason_job && &t->jobs[done] > t->reason_job && t->jobs[done].shape != t->reason_job->shape)
            flush_reason(t);
        if (seconds_now() - t->written >= SECONDS_UNWRITTEN) {
            is_written = results_write(&t->results, t->output);
            t->written = seconds_now();
        }
    }
    flush_reason(t);
    progress_clear();
    if (is_written && t->results.count > 0)
        is_written = results_write(&t->results, t->output);
    printf("%zu measured, %zu measured before, %zu ruled out by rules or the device, %zu failed; %s\n",
           t->measured, t->kept, t->ruled_out, t->failed,
           t->results.count > 0 ? t->output : "nothing is written");
    if (is_interrupted && done < t->job_count) {
        printf("interrupted after %zu of %zu: the same command continues from there\n", done, t->job_count);
        return EXIT_INTERRUPTED;
    }
    return is_alive && is_written && t->failed == 0 && t->results.count > 0 ? VERIFY_EXIT_OK
                                                                            : VERIFY_EXIT_WRONG;
}

/* ---- main --------------------------------------------------------------------------------------------------------- */

static int run_device(tune *t)
{
    char error[1024];
    const device_status opened =
        device_open(&t->device, t->driver, t->device_ordinal, t->index, error, sizeof error);
    if (opened != DEVICE_OK) {
        fprintf(stderr, "kiln-tune: %s\n", error);
        return opened == DEVICE_NONE ? VERIFY_EXIT_NO_DEVICE : VERIFY_EXIT_WRONG;
    }
    const kiln_device *here = &t->device.loader.device;
    t->results = (results){.memory = &t->memory,
                           .device = t->device.name,
                           .sm = here->sm,
                           .multiprocessors = here->multiprocessors,
                           .is_emulated = t->device.is_emulated};
    int status = VERIFY_EXIT_WRONG, value = 0;
    watch_interrupts();
    const char *missing = driver_tools_load(&t->tools, &t->device.driver);
    printf("device   %s, sm_%u, %u multiprocessors, driver %d.%d\n", t->device.name, here->sm,
           here->multiprocessors, t->device.version / 1000, t->device.version % 1000 / 10);
    if (t->device.is_emulated)
        printf("its times do not predict a GPU\n");
    fflush(stdout);
    if (missing) {
        fprintf(stderr, "kiln-tune: the driver lacks %s\n", missing);
    } else if (results_may_write(t->output) && results_read(&t->results, t->output) && open_stopwatch(t)) {
        t->device.driver.device_get_attribute(&value, ATTRIBUTE_L2_BYTES, t->device.ordinal);
        t->l2_bytes = value > 0 && !t->device.is_emulated ? (uint64_t)value : 0;
        status = run_jobs(t);
        stopwatch_close(&t->stopwatch);
    }
    device_close(&t->device);
    return status;
}

static int run_program(tune *t, const char *manifest_text, size_t manifest_bytes)
{
    char error[1024];
    t->manifest = manifest_read(&t->memory, manifest_text, manifest_bytes, error, sizeof error);
    if (!t->manifest) {
        fprintf(stderr, "kiln-tune: %s\n", error);
        return VERIFY_EXIT_WRONG;
    }
    if (t->wants_template) {
        shapes_print_template(t->manifest);
        return VERIFY_EXIT_OK;
    }
    if (!read_shapes(t))
        return t->shapes_path ? VERIFY_EXIT_WRONG : VERIFY_EXIT_USAGE;
    if (!add_jobs(t))
        return VERIFY_EXIT_WRONG;
    return run_device(t);
}

int kiln_tune_main(int argc, char **argv, const kiln_index *index, const char *manifest_text,
                   size_t manifest_bytes)
{
    tune t = {.index = index, .device_ordinal = DEVICE_UNNAMED, .repeat = DEFAULT_REPEAT};
    if (!read_options(&t, argc, argv))
        return VERIFY_EXIT_USAGE;
    if (t.wants_help)
        print_help(argv[0]);
    int status = t.wants_help ? VERIFY_EXIT_OK : run_program(&t, manifest_text, manifest_bytes);
    pool_free(&t.memory);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "kiln-tune: cannot write standard output\n");
        status = VERIFY_EXIT_WRONG;
    }
    return status;
}
