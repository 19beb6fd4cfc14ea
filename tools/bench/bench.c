/* kiln-bench: times variants of its bundle on the device, one line of JSON for each line of standard input. What to
 * time, and what the numbers mean, is tools/bench/gpu's business. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../tune/stopwatch.h"
#include "../tune/subject.h"
#include "../verify/device.h"
#include "../verify/manifest.h"
#include "../verify/verify.h"

enum { LINE_BYTES = 1024, ATTRIBUTE_L2_BYTES = 38, COPY_ALIGNMENT = 256 };

/* A device that idled takes a while to raise its clocks. */
#define FIRST_WARM_UP_US 300e3
#define WARM_UP_US       20e3

/* In front of every kernel's time lies what a launch of nothing takes. */
static const char empty_ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry empty() { ret; }\n";

typedef struct bench {
    const kiln_index *index;
    const manifest *manifest;
    const char *driver;
    uint64_t device_ordinal, samples, copy_bytes, seconds; /* seconds 0: no limit */
    bool is_listing, wants_help;
    device device;
    driver_tools tools;
    stopwatch stopwatch;
    uint64_t l2_bytes;
    CUdeviceptr copy_from, copy_to;
    pool memory;
} bench;

/* ---- the command line -------------------------------------------------------------------------------------------- */

static void print_help(void)
{
    fputs("usage: kiln-bench [OPTION]... < PLAN\n"
          "       kiln-bench verify [OPTION OF KILN-VERIFY]...\n"
          "Times kernels with device events. A line of PLAN is a variant's id and its sizes:\n"
          "    nf4_quantize/type=f32,group=64,nibbles=low n=67108864\n"
          "The first line of output is JSON about the device, a copy and the empty kernel; then comes one "
          "per line of "
          "PLAN. With verify it is the bundle's kiln-verify.\n"
          "\n"
          "  --list            print each variant's id and the names of its sizes, and time nothing\n"
          "  --driver PATH     this driver library (default: libcuda.so.1)\n"
          "  --device N        the driver's N-th device (default: 0)\n"
          "  --samples N       of each time (default: 30; at most 1000)\n"
          "  --copy-bytes N    what the large copy copies (default: 1073741824)\n"
          "  --seconds N       begin no line after this time\n"
          "  --help            print this\n"
          "\n"
          "Exit status: 0 done, 1 something failed, 2 bad usage, 77 no driver or device to run on, unless "
          "--driver or\n"
          "--device asked for one: that is 1.\n",
          stdout);
}

static bool read_number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    char *end;
    *value = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && *value >= least && *value <= most)
        return true;
    fprintf(stderr, "kiln-bench: %s: '%s' is no number from %" PRIu64 " to %" PRIu64 "\n", option, text,
            least, most);
    return false;
}

static bool read_options(bench *b, int argc, char **argv)
{
    const struct {
        const char *name;
        uint64_t *value, least, most;
    } numbers[] = {{"--device", &b->device_ordinal, 0, 65535},
                   {"--samples", &b->samples, 1, MOST_SAMPLES},
                   {"--copy-bytes", &b->copy_bytes, COPY_ALIGNMENT, UINT64_C(1) << 36},
                   {"--seconds", &b->seconds, 1, 86400}};
    for (int i = 1; i < argc; i++) {
        size_t row = 0, rows = sizeof numbers / sizeof numbers[0];
        while (row < rows && strcmp(argv[i], numbers[row].name) != 0)
            row++;
        if (strcmp(argv[i], "--list") == 0)
            b->is_listing = true;
        else if (strcmp(argv[i], "--help") == 0)
            b->wants_help = true;
        else if (strcmp(argv[i], "--driver") == 0 && i + 1 < argc)
            b->driver = argv[++i];
        else if (row < rows && i + 1 < argc) {
            if (!read_number(numbers[row].name, argv[++i], numbers[row].least, numbers[row].most,
                             numbers[row].value))
                return false;
        } else {
            fprintf(stderr, "kiln-bench: '%s' is no option, or lacks its value; --help lists them\n",
                    argv[i]);
            return false;
        }
    }
    return true;
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

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void print_string(const char *name, const char *text)
{
    printf("\"%s\": \"", name);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            printf("\\u%04x", (unsigned)*text);
        else
            putchar(*text);
    }
    putchar('"');
}

static void print_samples(const bench *b, const char *name, const task *t)
{
    printf("\"%s\": {\"batch\": %u, \"us\": [", name, t->batch);
    for (uint64_t i = 0; i < b->samples; i++)
        printf("%s%.4f", i ? ", " : "", t->samples_us[i]);
    fputs("]}", stdout);
}

/* Why there is no time: an "error", or the line was "skipped", because this device cannot run it. */
static void print_reason(const char *id, const char *kind, const char *reason)
{
    putchar('{');
    print_string("id", id);
    fputs(", ", stdout);
    print_string(kind, reason);
    fputs("}\n", stdout);
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

/* `bytes` at a time, from place to place within the large buffers. */
typedef struct copy {
    const bench *bench;
    uint64_t bytes;
} copy;

static int submit_copy(void *context, CUstream stream, uint64_t iteration)
{
    const copy *c = context;
    uint64_t step = (c->bytes + COPY_ALIGNMENT - 1) / COPY_ALIGNMENT * COPY_ALIGNMENT;
    uint64_t places = c->bench->copy_bytes / step, at = places ? iteration % places * step : 0;
    return c->bench->tools.memcpy_dtod_async(c->bench->copy_to + at, c->bench->copy_from + at, c->bytes,
                                             stream);
}

typedef struct empty_kernel {
    const kiln_driver *driver;
    CUmodule module;
    CUfunction function;
} empty_kernel;

static int submit_empty(void *context, CUstream stream, uint64_t iteration)
{
    const empty_kernel *e = context;
    (void)iteration;
    return e->driver->launch_kernel(e->function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
}

static int load_empty(empty_kernel *e)
{
    int result = e->driver->module_load_data_ex(&e->module, empty_ptx, 0, NULL, NULL);
    return result == 0 ? e->driver->module_get_function(&e->function, e->module, "empty") : result;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static void describe_failure(bench *b, const kiln_kernel *kernel, int result, char *error, size_t error_bytes)
{
    kiln_error details;
    if (result >= 0) {
        device_describe_result(&b->device, result, error, error_bytes);
        return;
    }
    kiln_last_error(&b->device.loader, &details);
    kiln_describe_error(&b->device.loader, &details, kernel, error, error_bytes);
}

static int print_device(bench *b)
{
    size_t free_bytes = 0, total_bytes = 0;
    const kiln_device *about = &b->device.loader.device;
    int result = b->tools.mem_get_info(&free_bytes, &total_bytes);
    fputs("{\"device\": {", stdout);
    print_string("name", b->device.name);
    printf(", \"sm\": %u, \"multiprocessors\": %u, \"l2_bytes\": %" PRIu64
           ", \"memory_bytes\": %zu, \"driver_version\": %d, \"emulated\": %s}",
           (unsigned)about->sm, (unsigned)about->multiprocessors, b->l2_bytes, total_bytes, b->device.version,
           b->device.is_emulated ? "true" : "false");
    return result;
}

/* The first line: the device, the large copy, and the empty kernel. */
static int run_baselines(bench *b)
{
    static task tasks[2];
    copy large = {b, b->copy_bytes};
    empty_kernel empty = {.driver = &b->device.driver};
    tasks[0] = (task){.submit = submit_copy, .context = &large};
    tasks[1] = (task){.submit = submit_empty, .context = &empty};
    int result = load_empty(&empty);
    if (result == 0)
        result = stopwatch_measure(&b->stopwatch, tasks, 2);
    if (result == 0)
        result = print_device(b);
    b->stopwatch.warm_up_us = WARM_UP_US;
    if (result == 0) {
        printf(", \"copy_bytes\": %" PRIu64 ", ", b->copy_bytes);
        print_samples(b, "copy", &tasks[0]);
        fputs(", ", stdout);
        print_samples(b, "empty_kernel", &tasks[1]);
        fputs("}\n", stdout);
    }
    if (empty.module)
        b->device.driver.module_unload(empty.module);
    return result;
}

static void print_subject(const bench *b, const subject *s, const task *tasks)
{
    putchar('{');
    print_string("id", s->problem.variant->id);
    fputs(", \"sizes\": {", stdout);
    const char *gap = "";
    for (size_t i = 0; i < s->problem.arg_count; i++) {
        if (problem_is_size(&s->problem.args[i])) {
            printf("%s\"%s\": %" PRIu64, gap, s->problem.args[i].about->name, s->problem.args[i].integer);
            gap = ", ";
        }
    }
    printf("}, \"bytes_read\": %" PRIu64 ", \"bytes_written\": %" PRIu64 ", \"set_bytes\": %" PRIu64
           ", \"sets\": %" PRIu64 ", ",
           s->bytes_read, s->bytes_written, s->set_bytes, s->sets);
    print_samples(b, "kernel", &tasks[0]);
    fputs(", ", stdout);
    print_samples(b, "copy", &tasks[1]);
    fputs("}\n", stdout);
}

/* False: the context takes no more work. A copy that moves as many bytes reads half and writes half. */
static bool run_subject(bench *b, subject *s)
{
    static task tasks[2];
    char error[1024];
    copy same = {b, (s->bytes_read + s->bytes_written) / 2};
    const char *id = s->problem.variant->id;
    if (same.bytes > b->copy_bytes) {
        print_reason(id, "skipped", "it moves more than twice the bytes of --copy-bytes");
        return true;
    }
    tasks[0] = (task){.submit = subject_submit, .context = s};
    tasks[1] = (task){.submit = submit_copy, .context = &same};
    int result = stopwatch_measure(&b->stopwatch, tasks, 2);
    if (result == 0) {
        print_subject(b, s, tasks);
        return true;
    }
    describe_failure(b, s->kernel, result, error, sizeof error);
    print_reason(id, "error", error);
    return result < 0;
}

static bool run_line(bench *b, char *line)
{
    char error[1024], *shape = line + strcspn(line, " ");
    if (*shape)
        *shape++ = '\0';
    const kiln_kernel *kernel = kiln_find_name(b->index, line);
    const manifest_variant *v = NULL;
    for (size_t i = 0; i < b->manifest->variant_count && !v; i++)
        v = strcmp(b->manifest->variants[i].id, line) == 0 ? &b->manifest->variants[i] : NULL;
    if (!kernel || !v) {
        print_reason(line, "error", "the bundle has no such variant");
        return true;
    }
    if (!kiln_usable(&b->device.loader, kernel)) {
        print_reason(line, "skipped", "no image of it fits this device and driver");
        return true;
    }
    subject s;
    if (!subject_open(&s, &b->device, &b->tools, v, kernel, shape, b->l2_bytes, error, sizeof error)) {
        print_reason(line, s.is_too_large ? "skipped" : "error", error);
        return true;
    }
    bool is_alive = run_subject(b, &s);
    subject_close(&s);
    return is_alive;
}

static int run_plan(bench *b)
{
    char line[LINE_BYTES];
    time_t start = time(NULL);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (b->seconds && difftime(time(NULL), start) >= (double)b->seconds)
            break;
        bool is_alive = line[0] == '\0' || run_line(b, line);
        fflush(stdout);
        if (!is_alive)
            return VERIFY_EXIT_WRONG;
    }
    return VERIFY_EXIT_OK;
}

/* ---- in and out -------------------------------------------------------------------------------------------------- */

static int prepare(bench *b)
{
    const kiln_driver *d = &b->device.driver;
    int value = 0, result = d->device_get_attribute(&value, ATTRIBUTE_L2_BYTES, b->device.ordinal);
    b->l2_bytes = value > 0 ? (uint64_t)value : 0;
    if (result == 0)
        result = stopwatch_open(&b->stopwatch, &b->tools, (unsigned)b->samples, FIRST_WARM_UP_US);
    if (result == 0)
        result = d->mem_alloc(&b->copy_from, b->copy_bytes);
    if (result == 0)
        result = d->mem_alloc(&b->copy_to, b->copy_bytes);
    if (result == 0)
        result = d->memset_d8(b->copy_from, 1, b->copy_bytes);
    return result == 0 ? run_baselines(b) : result;
}

static int run_device(bench *b)
{
    char error[1024];
    device_status opened =
        device_open(&b->device, b->driver, (int)b->device_ordinal, b->index, error, sizeof error);
    if (opened != DEVICE_OK) {
        fprintf(stderr, "kiln-bench: %s\n", error);
        bool is_named = b->driver || b->device_ordinal > 0;
        return opened == DEVICE_NONE && !is_named ? VERIFY_EXIT_NO_DEVICE : VERIFY_EXIT_WRONG;
    }
    const char *missing = driver_tools_load(&b->tools, &b->device.driver);
    if (missing) {
        fprintf(stderr, "kiln-bench: the driver lacks %s\n", missing);
        device_close(&b->device);
        return VERIFY_EXIT_WRONG;
    }
    int result = prepare(b), status = VERIFY_EXIT_WRONG;
    fflush(stdout);
    if (result == 0) {
        status = run_plan(b);
    } else {
        device_describe_result(&b->device, result, error, sizeof error);
        fprintf(stderr, "kiln-bench: %s\n", error);
    }
    stopwatch_close(&b->stopwatch);
    if (b->copy_from)
        b->device.driver.mem_free(b->copy_from);
    if (b->copy_to)
        b->device.driver.mem_free(b->copy_to);
    device_close(&b->device);
    return status;
}

int kiln_bench_main(int argc, char **argv, const kiln_index *index, const char *manifest_text,
                    size_t manifest_bytes);

int kiln_bench_main(int argc, char **argv, const kiln_index *index, const char *manifest_text,
                    size_t manifest_bytes)
{
    char error[1024];
    int status = VERIFY_EXIT_OK;
    bench b = {.index = index, .samples = 30, .copy_bytes = UINT64_C(1) << 30};
    if (argc > 1 && strcmp(argv[1], "verify") == 0) /* in one program, for the bundle is most of its bytes */
        return kiln_verify_main(argc - 1, argv + 1, index, manifest_text, manifest_bytes);
    if (!read_options(&b, argc, argv))
        return VERIFY_EXIT_USAGE;
    if (b.wants_help) {
        print_help();
        return VERIFY_EXIT_OK;
    }
    b.manifest = manifest_read(&b.memory, manifest_text, manifest_bytes, error, sizeof error);
    if (!b.manifest) {
        fprintf(stderr, "kiln-bench: %s\n", error);
        status = VERIFY_EXIT_WRONG;
    } else if (b.is_listing) {
        list_variants(&b);
    } else {
        status = run_device(&b);
    }
    pool_free(&b.memory);
    if (fflush(stdout) != 0)
        status = VERIFY_EXIT_WRONG;
    return status;
}
