/* Measures one launch on the emulated driver, whose report gives the counters, and registers by ptxas. */
#include "profile.h"

#include <libfyaml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the launch -------------------------------------------------------------------------------------------------- */

/* CUdevice_attribute: ..._COUNT, MAX_THREADS_PER_..., MAX_SHARED_MEMORY_PER_..., ..._PER_BLOCK_OPTIN */
enum {
    MULTIPROCESSORS = 16,
    MULTIPROCESSOR_THREADS = 39,
    MULTIPROCESSOR_SHARED_BYTES = 81,
    MAX_SHARED_BYTES = 97
};
enum { MAX_DYNAMIC_SHARED_BYTES = 8 }; /* CUfunction_attribute */

static void check_result(kiln_driver *d, const char *what, int result)
{
    const char *name = NULL;
    if (result == 0)
        return;
    if (d->get_error_name)
        d->get_error_name(result, &name);
    die(1, "%s: %s", what, name ? name : "an unknown error");
}

/* Returns 0 if the manifest has no such formula. */
static uint64_t evaluate(const profile *p, const formula *f)
{
    char error[512];
    uint64_t value = 0;
    if (f && !problem_evaluate(&p->problem, f, &value, error, sizeof error))
        die(1, "%s: %s", formula_text(f), error);
    return value;
}

static const char *report_path(const profile *p, char path[1100])
{
    snprintf(path, 1100, "%s/report", p->folder);
    return path;
}

static uint32_t attribute(kiln_driver *d, int number, int device)
{
    int value = 0;
    check_result(d, "cuDeviceGetAttribute", d->device_get_attribute(&value, number, device));
    return (uint32_t)value;
}

/* Finds the emulated driver relative to this program: in the build folder, otherwise where it is installed. */
static const char *own_driver(const profile *p, char path[1200])
{
    snprintf(path, 1200, "%s/../lib/emulator/libcuda.so.1", p->bin);
    if (access(path, R_OK) != 0)
        snprintf(path, 1200, "%s/" KILN_EMULATOR_FROM_BIN "/libcuda.so.1", p->bin);
    return path;
}

void open_device(profile *p)
{
    kiln_driver *d = &p->driver;
    CUcontext context;
    char own[1200], name[16], report[1100];
    int device;
    p->device.sm = (uint32_t)strtoul(p->target + 3, NULL, 10);
    snprintf(name, sizeof name, "sm_%u", (unsigned)p->device.sm);
    setenv("KILN_EMU_DEVICE", name, 1);
    setenv("KILN_EMU_REPORT", report_path(p, report), 1);
    setenv("KILN_EMU_REPORT_LINES", p->lines ? "1" : "0", 1);
    if (!p->driver_path)
        unsetenv("CUDA_VISIBLE_DEVICES"); /* it names devices of the host */
    const char *path = p->driver_path ? p->driver_path : own_driver(p, own);
    if (kiln_driver_load(d, path, NULL) != KILN_OK)
        die(1, "cannot load the driver %s", path);
    if (d->init(0) != 0 || d->device_get(&device, 0) != 0)
        die(1, "the driver %s has no device for %s", path, p->target);
    check_result(d, "cuDevicePrimaryCtxRetain", d->device_primary_ctx_retain(&context, device));
    check_result(d, "cuCtxSetCurrent", d->ctx_set_current(context));
    p->device.multiprocessors = attribute(d, MULTIPROCESSORS, device);
    p->device.max_shared_bytes = attribute(d, MAX_SHARED_BYTES, device);
    p->device.multiprocessor_shared_bytes = attribute(d, MULTIPROCESSOR_SHARED_BYTES, device);
    p->device.multiprocessor_threads = attribute(d, MULTIPROCESSOR_THREADS, device);
}

/* Fills the kernel's parameters; pointers get device memory with the problem's bytes. */
static void upload(profile *p, kiln_driver *d, uint64_t values[MAX_ARGS], void *params[MAX_ARGS])
{
    for (size_t i = 0; i < p->problem.arg_count; i++) {
        argument *a = &p->problem.args[i];
        params[i] = &values[i];
        if (manifest_is_pointer(a->about)) {
            CUdeviceptr address;
            check_result(d, "cuMemAlloc", d->mem_alloc(&address, a->bytes ? a->bytes : 1));
            check_result(d, "cuMemcpyHtoD", a->bytes ? d->memcpy_htod(address, a->host, a->bytes) : 0);
            values[i] = a->is_null ? 0 : address;
        } else if (problem_is_size(a)) {
            element_set_bits(a->about->type, &values[i], 0, a->integer);
        } else {
            element_set(a->about->type, &values[i], 0, a->real);
        }
    }
}

static void launch(profile *p)
{
    kiln_driver *d = &p->driver;
    const manifest_variant *v = p->problem.variant;
    CUmodule module;
    CUfunction f;
    uint64_t values[MAX_ARGS] = {0};
    void *params[MAX_ARGS] = {0};
    char path[1100];
    size_t length;
    check_result(d, "cuModuleLoadDataEx", d->module_load_data_ex(&module, p->ptx, 0, NULL, NULL));
    check_result(d, "cuModuleGetFunction", d->module_get_function(&f, module, v->entry));
    upload(p, d, values, params);
    unsigned shared = (unsigned)evaluate(p, v->shared_bytes), grid[3];
    for (int i = 0; i < 3; i++)
        grid[i] = (unsigned)evaluate(p, v->grid[i]);
    const unsigned needs = shared + (unsigned)v->static_shared_bytes;
    if (needs > p->device.max_shared_bytes)
        die(1, "%s takes %u bytes of shared memory, %s has %u", v->id, needs, p->target,
            (unsigned)p->device.max_shared_bytes);
    if (shared)
        check_result(d, "cuFuncSetAttribute",
                     d->func_set_attribute(f, MAX_DYNAMIC_SHARED_BYTES, (int)shared));
    check_result(d, "cuLaunchKernel",
                 d->launch_kernel(f, grid[0], grid[1], grid[2], v->block[0], v->block[1], v->block[2], shared,
                                  NULL, params, NULL));
    check_result(d, "the kernel", d->ctx_synchronize());
    if (access(report_path(p, path), R_OK) != 0)
        die(1, "the driver wrote no report: it is not the emulated one");
    char *report = read_file(p, path, &length);
    report[strcspn(report, "\n")] = '\0';
    p->report = report;
}

/* ---- the emulated driver's report -------------------------------------------------------------------------------- */

const char *const access_kind_names[ACCESS_KINDS] = {"read", "write", "atomic"};
const char *const bulk_kind_names[BULK_KINDS] = {"load", "store", "reduction"};
const char *const wavefront_user_names[WAVEFRONT_USERS] = {"threads", "products", "bulk"};

static struct fy_node *find_node(struct fy_node *n, const char *path)
{
    return n ? fy_node_by_path(n, path, FY_NT, FYNWF_DONT_FOLLOW) : NULL;
}

static uint64_t number_at(struct fy_node *n, const char *path)
{
    struct fy_node *found = find_node(n, path);
    const char *text = found ? fy_node_get_scalar0(found) : NULL;
    return text ? strtoull(text, NULL, 10) : 0;
}

static const char *copy_text(profile *p, const char *text)
{
    return pool_copy(&p->memory, text, strlen(text));
}

static void read_accesses(struct fy_node *n, access_counts by[ACCESS_KINDS])
{
    for (int k = 0; k < ACCESS_KINDS; k++) {
        struct fy_node *kind = find_node(n, access_kind_names[k]);
        by[k] = (access_counts){.requests = number_at(kind, "requests"),
                                .sectors = number_at(kind, "sectors"),
                                .distinct_sectors = number_at(kind, "distinct_sectors"),
                                .bytes = number_at(kind, "bytes"),
                                .bytes_used = number_at(kind, "bytes_used"),
                                .wavefronts = number_at(kind, "wavefronts"),
                                .ideal_wavefronts = number_at(kind, "ideal_wavefronts")};
    }
}

static void read_classes(profile *p, struct fy_node *classes)
{
    counters *c = &p->counters;
    struct fy_node_pair *pair;
    void *at = NULL;
    while ((pair = fy_node_mapping_iterate(classes, &at)) && c->class_count < MAX_CLASSES) {
        struct fy_node *value = fy_node_pair_value(pair);
        c->classes[c->class_count++] =
            (class_count){copy_text(p, fy_node_get_scalar0(fy_node_pair_key(pair))),
                          number_at(value, "thread"), number_at(value, "warp")};
    }
}

static void read_shapes(profile *p, struct fy_node *rows)
{
    counters *c = &p->counters;
    struct fy_node *row;
    void *at = NULL;
    while ((row = fy_node_sequence_iterate(rows, &at)) && c->shape_count < MAX_SHAPES)
        c->shapes[c->shape_count++] =
            (shape_count){copy_text(p, fy_node_get_scalar0(find_node(row, "name"))),
                          number_at(row, "products"), number_at(row, "multiply_adds"),
                          number_at(row, "shared/bytes"), number_at(row, "shared/wavefronts")};
}

static void read_bulk(counters *c, struct fy_node *root)
{
    for (int k = 0; k < BULK_KINDS; k++) {
        struct fy_node *kind = find_node(find_node(root, "bulk"), bulk_kind_names[k]);
        c->bulk[k] = (bulk_count){number_at(kind, "copies"), number_at(kind, "global_bytes"),
                                  number_at(kind, "shared_bytes")};
    }
    c->tests = number_at(root, "waits/tests");
    c->passed_tests = number_at(root, "waits/passed");
    c->group_waits = number_at(root, "waits/groups");
    for (int k = 0; k < WAVEFRONT_USERS; k++)
        c->wavefronts[k] = number_at(find_node(root, "wavefronts"), wavefront_user_names[k]);
}

static void read_allocations(profile *p, struct fy_node *rows)
{
    counters *c = &p->counters;
    struct fy_node *row;
    void *at = NULL;
    while ((row = fy_node_sequence_iterate(rows, &at)) && c->allocation_count < MAX_ALLOCATIONS) {
        allocation_counts *a = &c->allocations[c->allocation_count++];
        struct fy_node *parameter = fy_node_sequence_get_by_index(find_node(row, "parameters"), 0);
        struct fy_node *name = find_node(row, "name");
        size_t index = parameter ? strtoull(fy_node_get_scalar0(parameter), NULL, 10) : SIZE_MAX;
        a->is_argument = index < p->problem.arg_count;
        a->name = a->is_argument ? p->problem.args[index].about->name
                  : name         ? copy_text(p, fy_node_get_scalar0(name))
                                 : "(unnamed)";
        a->bytes = a->is_argument ? p->problem.args[index].bytes : number_at(row, "bytes");
        read_accesses(row, a->by);
    }
}

static void read_counters(profile *p)
{
    counters *c = &p->counters;
    struct fy_document *document = fy_document_build_from_string(NULL, p->report, strlen(p->report));
    struct fy_node *root = document ? fy_document_root(document) : NULL;
    if (!root)
        die(3, "the driver's report is no JSON");
    c->thread_instructions = number_at(root, "thread_instructions");
    c->warp_instructions = number_at(root, "warp_instructions");
    c->lane_slots = number_at(root, "lane_slots");
    c->branches = number_at(root, "branches/warp");
    c->divergent_branches = number_at(root, "branches/divergent");
    c->barriers = number_at(root, "barriers/warp");
    c->products = number_at(root, "tensor/products");
    c->multiply_adds = number_at(root, "tensor/multiply_adds");
    read_classes(p, find_node(root, "classes"));
    read_shapes(p, find_node(root, "tensor/shapes"));
    read_bulk(c, root);
    read_accesses(find_node(root, "shared"), c->shared);
    read_accesses(find_node(root, "local"), c->local);
    read_allocations(p, find_node(root, "allocations"));
    fy_document_destroy(document);
}

/* ---- registers --------------------------------------------------------------------------------------------------- */

/* Writes the image for ptxas, which compiles it for the image's own target. Returns its path. */
static const char *write_image(profile *p)
{
    char path[1100];
    snprintf(path, sizeof path, "%s/image.ptx", p->folder);
    FILE *f = fopen(path, "w");
    if (!f || fputs(p->ptx, f) < 0 || fclose(f) != 0)
        die(3, "cannot write %s", path);
    return pool_copy(&p->memory, path, strlen(path));
}

static uint64_t number_before(const char *text, const char *words)
{
    const char *at = strstr(text, words);
    while (at && at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return at ? strtoull(at, NULL, 10) : 0;
}

static void read_registers(profile *p)
{
    char arch[32];
    int status;
    snprintf(arch, sizeof arch, "-arch=%s", p->image->target);
    const char *const argv[] = {"ptxas", "-v", arch, "-o", "/dev/null", write_image(p), NULL};
    const char *said = run_program(p, argv, true, &status);
    const char *used = strstr(said, "Used ");
    if (status == 127)
        p->registers.missing = "no ptxas on the PATH";
    else if (status != 0 || !used)
        p->registers.missing = "ptxas does not take the image";
    else
        p->registers = (registers){.count = strtoull(used + strlen("Used "), NULL, 10),
                                   .stack_bytes = number_before(said, " bytes stack frame"),
                                   .spill_store_bytes = number_before(said, " bytes spill stores"),
                                   .spill_load_bytes = number_before(said, " bytes spill loads")};
}

void measure(profile *p)
{
    const manifest_variant *v = p->problem.variant;
    p->bytes_read = evaluate(p, v->bytes_read);
    p->bytes_written = evaluate(p, v->bytes_written);
    p->elements = evaluate(p, v->elements);
    launch(p);
    read_counters(p);
    read_registers(p);
}
