/* kiln-profile: runs one variant of a configuration on the emulated driver and prints what it counted, by argument. The
   generator beside this program makes the PTX and the manifest; the emulated driver writes its report to a temporary file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kiln/kiln.h>
#include <libfyaml.h>

#include "../verify/families/families.h"
#include "../verify/manifest.h"
#include "../verify/problem.h"

typedef struct profile {
    const char *config, *variant, *target, *args, *driver_path;
    bool json;
    char bin[1024], folder[64], report[96];
    pool memory;
    problem problem;
    kiln_driver driver;
    uint64_t bytes_read, bytes_written, elements;
} profile;

_Noreturn static void die(int status, const char *what, const char *detail)
{
    fprintf(stderr, "kiln-profile: %s%s%s\n", what, detail ? ": " : "", detail ? detail : "");
    exit(status);
}

static char *read_all(profile *p, FILE *f, size_t *length)
{
    size_t room = 1 << 16, used = 0;
    char *text = malloc(room), *copy;
    while (text && (used += fread(text + used, 1, room - used, f)) == room)
        text = realloc(text, room *= 2);
    if (!text)
        die(3, "out of memory", NULL);
    copy = pool_copy(&p->memory, text, used);
    free(text);
    *length = used;
    return copy;
}

static char *read_file(profile *p, const char *path, size_t *length)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        die(1, "cannot read", path);
    char *text = read_all(p, f, length);
    fclose(f);
    return text;
}

/* Words of the command line go to a shell in quotes, so none may hold one. */
static void check_word(const char *word)
{
    if (strchr(word, '\''))
        die(2, "a quote is not allowed in", word);
}

static const manifest_variant *find_variant(profile *p, char **ptx)
{
    char command[4096], path[256], error[512];
    size_t length;
    check_word(p->config);
    check_word(p->variant);
    check_word(p->target);
    snprintf(command, sizeof command, "'%s/kiln' generate '%s' --output '%s' && ls '%s'/*.json", p->bin,
             p->config, p->folder, p->folder);
    FILE *f = popen(command, "r");
    if (!f || !fgets(path, sizeof path, f) || pclose(f) != 0)
        die(1, "the generator failed on", p->config);
    path[strcspn(path, "\n")] = '\0';
    char *text = read_file(p, path, &length);
    const manifest *m = manifest_read(&p->memory, text, length, error, sizeof error);
    if (!m)
        die(1, path, error);
    snprintf(command, sizeof command, "'%s/kiln' show '%s' '%s' --target '%s'", p->bin, p->config, p->variant,
             p->target);
    f = popen(command, "r");
    *ptx = f ? read_all(p, f, &length) : NULL;
    if (!f || pclose(f) != 0)
        die(1, "the generator has no such variant for this target", p->variant);
    for (size_t i = 0; i < m->variant_count; i++)
        if (strcmp(m->variants[i].id, p->variant) == 0)
            return &m->variants[i];
    die(1, "the manifest has no variant", p->variant);
}

static void read_args(profile *p)
{
    char name[64], *end;
    for (const char *at = p->args; *at; at = *end ? end + 1 : end) {
        size_t n = strcspn(at, "=");
        snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), at);
        argument *a = problem_find(&p->problem, name);
        if (!a || at[n] != '=' || manifest_is_pointer(a->about))
            die(2, "--args: no scalar argument of this name", name);
        if (problem_is_size(a))
            a->integer = strtoull(at + n + 1, &end, 0);
        else
            a->real = strtod(at + n + 1, &end);
        if (*end && *end != ',')
            die(2, "--args: no number", at);
    }
}

static uint64_t evaluate(profile *p, const formula *f)
{
    char error[512];
    uint64_t value = 0;
    if (f && !problem_evaluate(&p->problem, f, &value, error, sizeof error))
        die(1, formula_text(f), error);
    return value;
}

static void try(const char *what, int result)
{
    char text[32];
    snprintf(text, sizeof text, "error %d", result);
    if (result != 0)
        die(1, what, text);
}

static void launch(profile *p, const char *ptx)
{
    kiln_driver *d = &p->driver;
    const manifest_variant *v = p->problem.variant;
    CUcontext context;
    CUmodule module;
    CUfunction f;
    CUdeviceptr addresses[MAX_ARGS] = {0};
    uint64_t scalars[MAX_ARGS] = {0};
    void *params[MAX_ARGS + 1] = {0};
    unsigned grid[3];
    int device;
    setenv("KILN_EMU_DEVICE", p->target, 1);
    setenv("KILN_EMU_REPORT", p->report, 1);
    if (kiln_driver_load(d, p->driver_path, NULL) != KILN_OK)
        die(1, "cannot load the driver", p->driver_path);
    try("cuInit", d->init(0));
    try("cuDeviceGet", d->device_get(&device, 0));
    try("cuDevicePrimaryCtxRetain", d->device_primary_ctx_retain(&context, device));
    try("cuCtxSetCurrent", d->ctx_set_current(context));
    try("cuModuleLoadDataEx", d->module_load_data_ex(&module, ptx, 0, NULL, NULL));
    try("cuModuleGetFunction", d->module_get_function(&f, module, v->entry));
    for (size_t i = 0; i < p->problem.arg_count; i++) {
        argument *a = &p->problem.args[i];
        params[i] = &scalars[i];
        if (manifest_is_pointer(a->about)) {
            try("cuMemAlloc", d->mem_alloc(&addresses[i], a->bytes ? a->bytes : 1));
            try("cuMemcpyHtoD", a->bytes ? d->memcpy_htod(addresses[i], a->host, a->bytes) : 0);
            params[i] = &addresses[i];
        } else if (problem_is_size(a))
            element_set_bits(a->about->type, &scalars[i], 0, a->integer);
        else
            element_set(a->about->type, &scalars[i], 0, a->real);
    }
    for (int i = 0; i < 3; i++)
        grid[i] = (unsigned)evaluate(p, v->grid[i]);
    unsigned shared = (unsigned)evaluate(p, v->shared_bytes);
    if (shared)
        try("cuFuncSetAttribute", d->func_set_attribute(f, 8, (int)shared));
    try("cuLaunchKernel", d->launch_kernel(f, grid[0], grid[1], grid[2], v->block[0], v->block[1],
                                           v->block[2], shared, NULL, params, NULL));
    try("the kernel", d->ctx_synchronize());
}

/* ---- what is printed ----------------------------------------------------------------------------------------------- */

static unsigned long long get(struct fy_node *n, const char *path)
{
    unsigned long long value = 0;
    char format[128];
    snprintf(format, sizeof format, "%s %%llu", path);
    fy_node_scanf(n, format, &value);
    return value;
}

static double ratio(unsigned long long a, unsigned long long b)
{
    return b ? (double)a / (double)b : 0;
}

static void print_argument(const profile *p, struct fy_node *row, int index)
{
    static const char *const kinds[] = {"read", "write", "atomic"};
    for (int k = 0; k < 3; k++) {
        char path[64];
        snprintf(path, sizeof path, "/%s", kinds[k]);
        struct fy_node *n = fy_node_by_path(row, path, FY_NT, FYNWF_DONT_FOLLOW);
        unsigned long long sectors = n ? get(n, "/sectors") : 0, used = n ? get(n, "/bytes_used") : 0;
        if (!sectors)
            continue;
        printf("%-12s %-6s %12llu %12llu %12llu %12llu %8.3f %8.3f\n",
               index < 0 ? "(table)" : p->problem.args[index].about->name, kinds[k], get(n, "/requests"),
               sectors, get(n, "/distinct_sectors"), used, ratio(used, 32 * sectors),
               index < 0 ? 0 : ratio(32 * sectors, p->problem.args[index].bytes));
    }
}

static void print_table(profile *p, struct fy_node *root)
{
    static const char *const counters[] = {"thread_instructions", "lane_slots", "warp_instructions"};
    printf("%s on %s, %s\n\n", p->variant, p->target, p->args);
    for (int i = 0; i < 3; i++) {
        char path[64];
        snprintf(path, sizeof path, "/%s", counters[i]);
        printf("%-20s %14llu %10.4f per element\n", counters[i], get(root, path),
               ratio(get(root, path), p->elements));
    }
    printf("branches %llu, divergent %llu; barriers %llu; multiply-adds %llu\n", get(root, "/branches/warp"),
           get(root, "/branches/divergent"), get(root, "/barriers/warp"), get(root, "/tensor/multiply_adds"));
    printf("cost: %llu bytes read, %llu written, %llu thread instructions\n\n",
           (unsigned long long)p->bytes_read, (unsigned long long)p->bytes_written,
           (unsigned long long)evaluate(p, p->problem.variant->instructions));
    printf("%-12s %-6s %12s %12s %12s %12s %8s %8s\n", "argument", "", "requests", "sectors", "distinct",
           "bytes used", "use", "moved/c.");
    struct fy_node *rows = fy_node_by_path(root, "/allocations", FY_NT, FYNWF_DONT_FOLLOW), *row;
    void *at = NULL;
    while ((row = fy_node_sequence_iterate(rows, &at))) {
        struct fy_node *positions = fy_node_by_path(row, "/parameters", FY_NT, FYNWF_DONT_FOLLOW);
        struct fy_node *first = fy_node_sequence_get_by_index(positions, 0);
        int index = first ? atoi(fy_node_get_scalar0(first)) : -1;
        print_argument(p, row, index);
    }
}

/* ---- roofline ------------------------------------------------------------------------------------------------------ */

/* An estimate from PTX, not from machine code: one warp instruction per scheduler and clock, four schedulers. */
static const struct gpu {
    const char *name;
    double gigabytes; /* per second */
    unsigned multiprocessors;
    double megahertz;
    unsigned float_lanes; /* per multiprocessor */
    const char *source;
} gpus[] = {
    {"T4", 320, 40, 1590, 64, "NVIDIA T4 data sheet; Turing white paper"},
    {"A100 SXM 80GB", 2039, 108, 1410, 64, "A100 data sheet; Ampere white paper"},
    {"Jetson AGX Orin", 204.8, 16, 1300, 128, "Jetson AGX Orin technical brief"},
    {"L4", 300, 58, 2040, 128, "L4 data sheet; Ada white paper"},
    {"RTX 4090", 1008, 128, 2520, 128, "Ada white paper"},
    {"H100 SXM", 3350, 132, 1980, 128, "H100 data sheet; highest clock that the driver reports"},
    {"H200", 4300, 132, 1980, 128, "copy bandwidth as measured; H200 data sheet"},
    {"B200", 8000, 148, 1965, 128, "Blackwell data sheet"},
    {"RTX 5090", 1792, 170, 2407, 128, "RTX Blackwell white paper"},
};

static double distinct_bytes(struct fy_node *root)
{
    struct fy_node *rows = fy_node_by_path(root, "/allocations", FY_NT, FYNWF_DONT_FOLLOW), *row;
    double sectors = 0;
    void *at = NULL;
    while ((row = fy_node_sequence_iterate(rows, &at)))
        sectors += (double)(get(row, "/read/distinct_sectors") + get(row, "/write/distinct_sectors") +
                            get(row, "/atomic/distinct_sectors"));
    return 32 * sectors;
}

static void print_roofline(struct fy_node *root)
{
    double wavefronts =
        (double)(get(root, "/shared/read/wavefronts") + get(root, "/shared/write/wavefronts") +
                 get(root, "/shared/atomic/wavefronts"));
    printf("\n%-16s %10s %10s %10s %10s %10s  limit (us, estimates)\n", "", "memory", "issue", "float",
           "special", "shared");
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        static const char *const limits[] = {"memory", "issue", "float", "special", "shared"};
        const struct gpu *g = &gpus[i];
        double clocks = g->multiprocessors * g->megahertz; /* per microsecond, all multiprocessors */
        double us[] = {distinct_bytes(root) / g->gigabytes / 1e3,
                       (double)get(root, "/warp_instructions") / 4 / clocks,
                       (double)get(root, "/classes/float/thread") / g->float_lanes / clocks,
                       (double)get(root, "/classes/special/thread") / 16 / clocks, wavefronts / clocks};
        int most = 0;
        printf("%-16s", g->name);
        for (int k = 0; k < 5; k++) {
            printf(" %10.2f", us[k]);
            most = us[k] > us[most] ? k : most;
        }
        printf("  %s; %s\n", limits[most], g->source);
    }
}

static void print_json(profile *p, const char *report)
{
    printf("{\"variant\":\"%s\",\"target\":\"%s\",\"bytes_read\":%llu,\"bytes_written\":%llu,", p->variant,
           p->target, (unsigned long long)p->bytes_read, (unsigned long long)p->bytes_written);
    printf("\"cost_instructions\":%llu,\"elements\":%llu,\"args\":[",
           (unsigned long long)evaluate(p, p->problem.variant->instructions),
           (unsigned long long)p->elements);
    for (size_t i = 0; i < p->problem.arg_count; i++)
        printf("%s\"%s\"", i ? "," : "", p->problem.args[i].about->name);
    printf("],\"report\":%s}\n", report);
}

static void read_options(profile *p, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char **to = strcmp(argv[i], "--variant") == 0  ? &p->variant
                          : strcmp(argv[i], "--target") == 0 ? &p->target
                          : strcmp(argv[i], "--args") == 0   ? &p->args
                          : strcmp(argv[i], "--driver") == 0 ? &p->driver_path
                                                             : NULL;
        if (to && i + 1 < argc)
            *to = argv[++i];
        else if (strcmp(argv[i], "--json") == 0)
            p->json = true;
        else if (argv[i][0] != '-' && !p->config)
            p->config = argv[i];
        else
            p->config = NULL, i = argc;
    }
    if (!p->config || !p->variant)
        die(2,
            "usage: kiln-profile CONFIG --variant ID [--target T] [--args n=1048576,...] [--driver PATH] "
            "[--json]",
            NULL);
}

static void remove_folder(const profile *p)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", p->folder);
    if (system(command) != 0)
        fprintf(stderr, "kiln-profile: %s remains\n", p->folder);
}

int main(int argc, char **argv)
{
    static profile p = {.target = "sm_90", .args = "", .folder = "/tmp/kiln-profile-XXXXXX"};
    static kiln_device device = {.multiprocessors = 132, .max_shared_bytes = 232448};
    char driver[1100], error[512], *ptx;
    size_t length;
    read_options(&p, argc, argv);
    device.sm = (uint32_t)strtoul(p.target + strcspn(p.target, "0123456789"), NULL, 10);
    ssize_t n = readlink("/proc/self/exe", p.bin, sizeof p.bin - 1);
    if (n <= 0 || !mkdtemp(p.folder))
        die(3, "no temporary folder", NULL);
    *strrchr(p.bin, '/') = '\0';
    snprintf(driver, sizeof driver, "%s/../lib/emulator/libcuda.so.1", p.bin);
    p.driver_path = p.driver_path ? p.driver_path : driver;
    snprintf(p.report, sizeof p.report, "%s/report", p.folder);
    const manifest_variant *v = find_variant(&p, &ptx);
    if (!problem_open(&p.problem, v, &device, error, sizeof error))
        die(1, v->id, error);
    read_args(&p);
    if (problem_measure(&p.problem, NULL, error, sizeof error) != PROBLEM_LEGAL)
        die(1, "these arguments break a rule or launch nothing", p.args);
    problem_allocate(&p.problem);
    uint64_t sizes[MAX_ARGS];
    const family_row *family = family_find(v->family);
    for (size_t i = 0; i < p.problem.arg_count; i++)
        sizes[i] = p.problem.args[i].integer;
    if (family)
        family->make(&p.problem, &family->patterns[0], random_open(1, v->id));
    else
        generic_make(&p.problem, &generic_patterns[0], random_open(1, v->id));
    for (size_t i = 0; i < p.problem.arg_count; i++)
        p.problem.args[i].integer = sizes[i];
    p.bytes_read = evaluate(&p, v->bytes_read);
    p.bytes_written = evaluate(&p, v->bytes_written);
    for (size_t i = 0; i < p.problem.arg_count; i++)
        if (manifest_is_pointer(p.problem.args[i].about) && p.problem.args[i].count > p.elements)
            p.elements = p.problem.args[i].count; /* of the largest buffer */
    launch(&p, ptx);
    char *report = read_file(&p, p.report, &length);
    report[strcspn(report, "\n")] = '\0';
    struct fy_document *document = fy_document_build_from_string(NULL, report, strlen(report));
    if (!document)
        die(3, "the report is no JSON", NULL);
    if (p.json)
        print_json(&p, report);
    if (!p.json) {
        print_table(&p, fy_document_root(document));
        print_roofline(fy_document_root(document));
    }
    fy_document_destroy(document);
    remove_folder(&p);
    problem_close(&p.problem);
    pool_free(&p.memory);
    return 0;
}
