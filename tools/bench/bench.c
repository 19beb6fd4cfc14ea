/* kiln-bench: times variants of its bundle on the device and writes one line of JSON for each line of
 * standard input. tools/bench/gpu decides what to time and interprets the results. */
#define _POSIX_C_SOURCE 200809L /* getline, alarm */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/clock.h"
#include "../support/files.h"
#include "../support/json.h"
#include "../support/options.h"
#include "../tune/shapes.h"
#include "../tune/stopwatch.h"
#include "../tune/subject.h"
#include "../verify/device.h"
#include "../verify/manifest.h"
#include "../verify/verify.h"
#include "../verify/watch.h"

enum { ATTRIBUTE_L2_BYTES = 38, COPY_ALIGNMENT = 256 };

#define WARM_UP_US       5e3
#define LEAST_COPY_BYTES (UINT64_C(1) << 20)

typedef struct bench {
    const kiln_index *index;
    const manifest *manifest;
    const char *driver, *checked; /* a manifest to check plans against; null: a device times them */
    uint64_t device_ordinal, samples, copy_bytes, seconds, launch_seconds; /* seconds 0: no limit */
    bool is_listing, wants_help;
    device device;
    driver_tools tools;
    stopwatch stopwatch;
    uint64_t l2_bytes;
    CUdeviceptr copy_from, copy_to;
    pool memory;
} bench;

/* The device that --check assumes. */
static const kiln_device h100 = {.sm = 90,
                                 .driver_version = 13000,
                                 .multiprocessors = 132,
                                 .max_shared_bytes = 227 << 10,
                                 .multiprocessor_shared_bytes = 228 << 10,
                                 .multiprocessor_threads = 2048};

/* Identifies a plan line in its answer. */
typedef struct plan_line {
    uint64_t number; /* from 0 */
    const char *id;
} plan_line;

/* ---- the command line -------------------------------------------------------------------------------------------- */

static void print_help(void)
{
    printf(
        "usage: kiln-bench [OPTION]... < PLAN\n"
        "       kiln-bench verify [OPTION OF KILN-VERIFY]...\n"
        "Times kernels with device events. A line of PLAN is a variant's id and its sizes. A size is a number "
        "or an\n"
        "expression without spaces over the numbers, the variant's parameters, and expressions to its left:\n"
        "    attention/type=f16,head_dim=64 batch=1 q_heads=8 q_row_stride=q_heads*head_dim\n"
        "Sizes that buffers or the grid depend on must be named. Others default to the smallest value that the rules "
        "allow.\n"
        "The first line of output is JSON about the device, the empty kernel and copies. One line for each "
        "line of\n"
        "PLAN follows; \"line\" is the number of the plan line, from 0. `kiln-bench verify` is the bundle's "
        "kiln-verify.\n"
        "\n"
        "  --check MANIFEST    complete each line for another bundle's variants on an H100, and time nothing\n"
        "  --list              print each variant's id and the names of its sizes, and time nothing\n"
        "  --driver PATH       the driver library (default: libcuda.so.1)\n"
        "  --device N          the driver's N-th device (default: 0)\n"
        "  --samples N         samples of each time (default: 11; at most %d)\n"
        "  --copy-bytes N      bytes of the largest copy (default: 1073741824)\n"
        "  --seconds N         begin no line after N seconds\n"
        "  --launch-seconds N  give up when the device does not answer for N seconds\n"
        "  --help              print this\n"
        "\n"
        "Exit status: 0 done, 1 something failed, 2 bad usage, %d the device did not answer within "
        "--launch-seconds,\n"
        "%d a kernel failed and the context is lost; in both cases the last line of output names the plan "
        "line, and\n"
        "another run can continue after it. 77 no driver or device (1 if --driver or --device asked for one).\n",
        MOST_SAMPLES, VERIFY_EXIT_HUNG, VERIFY_EXIT_LOST);
}

static bool read_options(bench *b, int argc, char **argv)
{
    static const option_row rows[] = {
        {OPTION_ROW("check", OPTION_TEXT, bench, checked)},
        {OPTION_ROW("list", OPTION_FLAG, bench, is_listing)},
        {OPTION_ROW("driver", OPTION_TEXT, bench, driver)},
        {OPTION_ROW("device", OPTION_NUMBER, bench, device_ordinal), .most = 65535},
        {OPTION_ROW("samples", OPTION_NUMBER, bench, samples), .least = 1, .most = MOST_SAMPLES},
        {OPTION_ROW("copy-bytes", OPTION_NUMBER, bench, copy_bytes), .least = COPY_ALIGNMENT,
         .most = UINT64_C(1) << 36},
        {OPTION_ROW("seconds", OPTION_NUMBER, bench, seconds), .least = 1, .most = 86400},
        {OPTION_ROW("launch-seconds", OPTION_NUMBER, bench, launch_seconds), .least = 1, .most = 86400},
        {OPTION_ROW("help", OPTION_FLAG, bench, wants_help)},
    };
    static const option_table table = {"kiln-bench", rows, sizeof rows / sizeof rows[0], 0};
    return options_parse(&table, argc, argv, b, NULL) > 0;
}

static void list_variants(const bench *b)
{
    for (size_t i = 0; i < b->manifest->variant_count; i++) {
        problem p;
        char error[256];
        fputs(b->manifest->variants[i].id, stdout);
        if (problem_open(&p, &b->manifest->variants[i], NULL, error, sizeof error)) {
            for (size_t a = 0; a < p.arg_count; a++) {
                if (problem_is_size(&p.args[a]))
                    printf(" %s", p.args[a].about->name);
            }
        }
        putchar('\n');
    }
}

static void print_line_and_id(FILE *out, const plan_line *line)
{
    json_print(out, "{\"line\": %" PRIu64 ", \"id\": %s, ", line->number, line->id);
}

/* Prints why there is no time: an "error", or "skipped" if the shape or the device rules the line out. */
static void print_reason(const plan_line *line, const char *kind, const char *reason)
{
    print_line_and_id(stdout, line);
    json_print(stdout, "%s: %s}\n", kind, reason);
}

/* ---- a device that does not answer ------------------------------------------------------------------------------- */

/* Static: the driver's functions take no context. */
static struct {
    unsigned seconds;
    int (*record)(CUevent, CUstream), (*wait_for_event)(CUevent), (*wait_for_all)(void);
} watchdog;

/* Records an event and restarts the time limit, since a launch blocks while the queue is full. */
static int record_watched(CUevent event, CUstream stream)
{
    alarm(watchdog.seconds);
    return watchdog.record(event, stream);
}

static int wait_for_event_watched(CUevent event)
{
    alarm(watchdog.seconds);
    const int result = watchdog.wait_for_event(event);
    alarm(0);
    return result;
}

static int wait_for_all_watched(void)
{
    alarm(watchdog.seconds);
    const int result = watchdog.wait_for_all();
    alarm(0);
    return result;
}

static void watch_device(bench *b)
{
    watch_open(NULL, b->launch_seconds, true);
    if (b->launch_seconds == 0)
        return;
    watchdog.seconds = (unsigned)b->launch_seconds;
    watchdog.record = b->tools.event_record;
    watchdog.wait_for_event = b->tools.event_synchronize;
    watchdog.wait_for_all = b->device.driver.ctx_synchronize;
    b->tools.event_record = record_watched;
    b->tools.event_synchronize = wait_for_event_watched;
    b->device.driver.ctx_synchronize = wait_for_all_watched;
}

/* Formats the line that ends the output if the device does not answer; null: no plan line has been read. */
static void prepare_last_words(const plan_line *line)
{
    FILE *out = watch_open_text();
    if (!out)
        return;
    if (line)
        print_line_and_id(out, line);
    else
        fputc('{', out);
    fprintf(out, "\"error\": \"no end after %u s\", \"hung\": true}\n", watchdog.seconds);
    watch_close_text(out);
}

/* ---- the first line ---------------------------------------------------------------------------------------------- */

/* Prints a task as members of a JSON object. */
static void print_task(bench *b, const task *t)
{
    json_print(stdout, "\"batch\": %u, \"graph\": %c", t->batch, t->is_graph);
    if (t->graph_result != 0) {
        char error[1024];
        device_describe_failure(&b->device, NULL, t->graph_result, error, sizeof error);
        json_print(stdout, ", \"graph_error\": %s", error);
    }
    fputs(", \"us\": [", stdout);
    for (uint64_t i = 0; i < b->samples; i++)
        printf("%s%.4f", i ? ", " : "", t->samples_us[i]);
    putchar(']');
}

static int print_device(bench *b)
{
    size_t free_bytes = 0, total_bytes = 0;
    const kiln_device *about = &b->device.loader.device;
    int result = b->tools.mem_get_info(&free_bytes, &total_bytes);
    json_print(stdout,
               "\"device\": {\"name\": %s, \"sm\": %u, \"multiprocessors\": %u, \"l2_bytes\": %" PRIu64
               ", \"memory_bytes\": %zu, \"driver_version\": %d, \"emulated\": %c}",
               b->device.name, (unsigned)about->sm, (unsigned)about->multiprocessors, b->l2_bytes,
               total_bytes, b->device.version, b->device.is_emulated);
    return result;
}

/* Copies of `bytes` that rotate through `places` within the large buffers. */
typedef struct copy {
    const bench *bench;
    uint64_t bytes, places;
} copy;

static int submit_copy(void *context, CUstream stream, uint64_t iteration)
{
    const copy *c = context;
    const uint64_t at = iteration % c->places * c->bytes;
    return c->bench->tools.memcpy_dtod_async(c->bench->copy_to + at, c->bench->copy_from + at, c->bytes,
                                             stream);
}

/* Rotates through enough places to exceed twice the L2 cache, or through all places. */
static int run_copy(bench *b, uint64_t bytes, const char *gap)
{
    static task t;
    copy c = {b, bytes, 2 * b->l2_bytes / bytes + 1};
    if (c.places > b->copy_bytes / bytes)
        c.places = b->copy_bytes / bytes;
    t = (task){.submit = submit_copy, .context = &c, .period = (unsigned)c.places};
    const int result = stopwatch_measure(&b->stopwatch, &t);
    if (result != 0)
        return result;
    printf("%s{\"bytes\": %" PRIu64 ", ", gap, bytes);
    print_task(b, &t);
    putchar('}');
    return 0;
}

/* Copies 1 MiB, then four times as much, and so on; finally the bytes of --copy-bytes. */
static int run_copies(bench *b)
{
    const kiln_driver *d = &b->device.driver;
    int result = d->mem_alloc(&b->copy_from, b->copy_bytes);
    if (result == 0)
        result = d->mem_alloc(&b->copy_to, b->copy_bytes);
    if (result == 0)
        result = d->memset_d8(b->copy_from, 1, b->copy_bytes);
    if (result == 0)
        result = d->ctx_synchronize();
    const char *gap = "";
    for (uint64_t bytes = LEAST_COPY_BYTES; result == 0 && bytes < b->copy_bytes; bytes *= 4) {
        result = run_copy(b, bytes, gap);
        gap = ", ";
    }
    if (result == 0)
        result = run_copy(b, b->copy_bytes, gap);
    if (b->copy_from)
        d->mem_free(b->copy_from);
    if (b->copy_to)
        d->mem_free(b->copy_to);
    return result;
}

static int run_baselines(bench *b)
{
    static task plain, graph;
    int result = stopwatch_calibrate(&b->stopwatch, &b->device.driver, &plain, &graph);
    if (result != 0)
        return result;
    putchar('{');
    result = print_device(b);
    fputs(", \"empty_kernel\": {\"plain\": {", stdout);
    print_task(b, &plain);
    fputs("}, \"graph\": {", stdout);
    print_task(b, &graph);
    fputs("}}, \"copies\": [", stdout);
    if (result == 0)
        result = run_copies(b);
    fputs("]}\n", stdout);
    return result;
}

/* ---- a line of the plan ------------------------------------------------------------------------------------------ */

/* Returns the variant that the bundle's own dispatch launches for the same call; null if it launches none. */
static const char *find_pick(bench *b, const subject *s)
{
    const kiln_index_family *family = kiln_find_family(b->index, s->problem.variant->family);
    const kiln_kernel *picked = NULL;
    if (!family)
        return NULL;
    if (!family->pick)
        return s->kernel->id;
    return family->pick(&b->device.loader, s->arguments[0].bytes, &picked) == KILN_OK && picked ? picked->id
                                                                                                : NULL;
}

static void print_sizes(const problem *p)
{
    const char *gap = "";
    fputs("\"sizes\": {", stdout);
    for (size_t i = 0; i < p->arg_count; i++) {
        if (!problem_is_size(&p->args[i]))
            continue;
        printf("%s\"%s\": %" PRIu64, gap, p->args[i].about->name, p->args[i].integer);
        gap = ", ";
    }
    putchar('}');
}

static void print_row(bench *b, const plan_line *line, const subject *s, const task *t, double load_seconds,
                      double start)
{
    print_line_and_id(stdout, line);
    print_sizes(&s->problem);
    printf(", \"bytes_read\": %" PRIu64 ", \"bytes_written\": %" PRIu64, s->bytes_read, s->bytes_written);
    if (s->problem.variant->elements)
        printf(", \"elements\": %" PRIu64, s->elements);
    json_print(stdout, ", \"set_bytes\": %" PRIu64 ", \"sets\": %" PRIu64 ", \"pick\": %s, ", s->set_bytes,
               s->sets, find_pick(b, s));
    print_task(b, t);
    printf(", \"load_ms\": %.3f, \"seconds\": %.4f}\n", load_seconds * 1e3, seconds_now() - start);
}

static bool has_times(const bench *b, const task *t)
{
    for (uint64_t i = 0; i < b->samples; i++)
        if (!(t->samples_us[i] > 0))
            return false;
    return true;
}

/* Returns the driver's result, or -1; `error` then says why. */
static int measure(bench *b, subject *s, task *t, char *error, size_t error_bytes)
{
    *t = (task){.submit = subject_submit, .context = s, .period = (unsigned)s->sets};
    const int result = stopwatch_measure(&b->stopwatch, t);
    if (result != 0) {
        device_describe_failure(&b->device, s->kernel, result, error, error_bytes);
        return result;
    }
    if (has_times(b, t))
        return 0;
    snprintf(error, error_bytes, "the device's clock did not advance over a batch of %u", t->batch);
    return -1;
}

static void run_problem(bench *b, const plan_line *line, const kiln_kernel *kernel, problem *p, double start)
{
    static task t;
    char error[4096];
    const double before = seconds_now();
    if (kiln_preload(&b->device.loader, &kernel, 1) != KILN_OK) {
        device_describe_failure(&b->device, kernel, -1, error, sizeof error);
        print_reason(line, "error", error);
        return;
    }
    const double load_seconds = seconds_now() - before;
    subject s;
    if (!subject_open(&s, &b->device, &b->tools, kernel, p, b->l2_bytes, error, sizeof error)) {
        print_reason(line, s.is_too_large ? "skipped" : "error", error);
        return;
    }
    if (measure(b, &s, &t, error, sizeof error) == 0)
        print_row(b, line, &s, &t, load_seconds, start);
    else
        print_reason(line, "error", error);
    subject_close(&s);
}

/* Applies the line's sizes to the variant's problem. False after printing the answer. */
static bool complete(bench *b, const plan_line *line, const char *words, const manifest_variant *v,
                     const kiln_device *on, pool *memory, problem *p)
{
    static const char *const kinds[] = {
        [SHAPE_RULED_OUT] = "skipped", [SHAPE_INCOMPLETE] = "error", [SHAPE_WRONG] = "error"};
    char error[1024];
    tune_shape shape;
    if (!shape_parse(memory, b->manifest, v->family, words, &shape, error, sizeof error) ||
        !problem_open(p, v, on, error, sizeof error)) {
        print_reason(line, "error", error);
        return false;
    }
    const shape_fit fit = shape_apply(&shape, p, error, sizeof error);
    if (fit != SHAPE_FITS)
        print_reason(line, kinds[fit], error);
    return fit == SHAPE_FITS;
}

static void run_line(bench *b, const plan_line *line, const char *words, pool *memory)
{
    const double start = seconds_now();
    const kiln_kernel *kernel = b->checked ? NULL : kiln_find_name(b->index, line->id);
    const manifest_variant *v = manifest_find_variant(b->manifest, line->id);
    problem p;
    if (!v || (!kernel && !b->checked))
        print_reason(line, "error", "the bundle has no such variant");
    else if (v->why_not_launched)
        print_reason(line, "skipped", v->why_not_launched);
    else if (kernel && !kiln_usable(&b->device.loader, kernel))
        print_reason(line, "skipped", "no image of it fits this device and driver");
    else if (complete(b, line, words, v, b->checked ? &h100 : &b->device.loader.device, memory, &p)) {
        if (kernel) {
            run_problem(b, line, kernel, &p, start);
        } else {
            print_line_and_id(stdout, line);
            print_sizes(&p);
            fputs("}\n", stdout);
        }
    }
}

static int run_plan(bench *b)
{
    char *text = NULL;
    size_t room = 0;
    const double start = seconds_now();
    int status = VERIFY_EXIT_OK;
    for (uint64_t number = 0; status == VERIFY_EXIT_OK && getline(&text, &room, stdin) >= 0; number++) {
        if (b->seconds && seconds_now() - start >= (double)b->seconds)
            break;
        text[strcspn(text, "\r\n")] = '\0';
        if (*text == '\0')
            continue;
        char *words = text + strcspn(text, " ");
        if (*words)
            *words++ = '\0';
        const plan_line line = {number, text};
        pool memory = {NULL};
        prepare_last_words(&line);
        run_line(b, &line, words, &memory);
        pool_free(&memory);
        if (fflush(stdout) != 0)
            status = VERIFY_EXIT_WRONG;
        else if (!b->checked && b->device.driver.ctx_synchronize() != 0)
            status = VERIFY_EXIT_LOST;
    }
    free(text);
    return status;
}

/* ---- in and out -------------------------------------------------------------------------------------------------- */

static int prepare(bench *b)
{
    int value = 0,
        result = b->device.driver.device_get_attribute(&value, ATTRIBUTE_L2_BYTES, b->device.ordinal);
    b->l2_bytes = value > 0 ? (uint64_t)value : 0;
    watch_device(b);
    prepare_last_words(NULL);
    if (result == 0)
        result = stopwatch_open(&b->stopwatch, &b->tools, (unsigned)b->samples,
                                b->device.is_emulated ? 0 : WARM_UP_US);
    return result == 0 ? run_baselines(b) : result;
}

static int run_device(bench *b)
{
    char error[1024];
    device_status opened =
        device_open(&b->device, b->driver, b->device_ordinal, b->index, error, sizeof error);
    if (opened != DEVICE_OK) {
        fprintf(stderr, "kiln-bench: %s\n", error);
        return opened == DEVICE_NONE ? VERIFY_EXIT_NO_DEVICE : VERIFY_EXIT_WRONG;
    }
    const char *missing = driver_tools_load(&b->tools, &b->device.driver);
    if (missing) {
        fprintf(stderr, "kiln-bench: the driver lacks %s\n", missing);
        device_close(&b->device);
        return VERIFY_EXIT_WRONG;
    }
    static char output[1 << 20]; /* standard output's buffer; each line is flushed when it is complete */
    setvbuf(stdout, output, _IOFBF, sizeof output);
    int result = prepare(b), status = VERIFY_EXIT_WRONG;
    fflush(stdout);
    if (result == 0) {
        status = run_plan(b);
    } else {
        device_describe_result(&b->device, result, error, sizeof error);
        fprintf(stderr, "kiln-bench: %s\n", error);
    }
    stopwatch_close(&b->stopwatch);
    device_close(&b->device);
    return status;
}

static int run_program(bench *b, const char *manifest_text, size_t manifest_bytes)
{
    char error[1024];
    if (b->checked && !(manifest_text = file_read(&b->memory, b->checked, &manifest_bytes))) {
        fprintf(stderr, "kiln-bench: cannot read %s\n", b->checked);
        return VERIFY_EXIT_WRONG;
    }
    b->manifest = manifest_read(&b->memory, manifest_text, manifest_bytes, error, sizeof error);
    if (!b->manifest) {
        fprintf(stderr, "kiln-bench: %s\n", error);
        return VERIFY_EXIT_WRONG;
    }
    if (b->is_listing) {
        list_variants(b);
        return VERIFY_EXIT_OK;
    }
    return b->checked ? run_plan(b) : run_device(b);
}

int kiln_bench_main(int argc, char **argv, const kiln_index *index, const char *manifest_text,
                    size_t manifest_bytes);

int kiln_bench_main(int argc, char **argv, const kiln_index *index, const char *manifest_text,
                    size_t manifest_bytes)
{
    int status = VERIFY_EXIT_OK;
    bench b = {
        .index = index, .device_ordinal = DEVICE_UNNAMED, .samples = 11, .copy_bytes = UINT64_C(1) << 30};
    if (argc > 1 &&
        strcmp(argv[1], "verify") ==
            0) /* kiln-bench contains kiln-verify, since the bundle is most of the program's bytes */
        return kiln_verify_main(argc - 1, argv + 1, index, manifest_text, manifest_bytes);
    if (!read_options(&b, argc, argv))
        return VERIFY_EXIT_USAGE;
    if (b.wants_help)
        print_help();
    else
        status = run_program(&b, manifest_text, manifest_bytes);
    pool_free(&b.memory);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "kiln-bench: cannot write standard output\n");
        status = VERIFY_EXIT_WRONG;
    }
    return status;
}
