/* One variant at one shape, ready to be launched again and again on buffers that rotate past the L2 cache. */
#include "subject.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../verify/reference.h"

enum { ALIGNMENT = 256, MOST_SETS = 4096, FEWEST_SETS = 2, TILE_ELEMENTS = 1 << 18, SEED = 1 };

static uint64_t align_up(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- the shape --------------------------------------------------------------------------------------------------- */

static bool set_size(problem *p, const char *word, size_t length, bool is_said[MAX_ARGS], char *error,
                     size_t error_bytes)
{
    char name[64], *end;
    size_t name_length = strcspn(word, "=");
    snprintf(name, sizeof name, "%.*s", (int)name_length, word);
    argument *a = name_length < length ? problem_find(p, name) : NULL;
    if (a && problem_is_size(a)) {
        a->integer = strtoull(word + name_length + 1, &end, 10);
        if (end == word + length && end > word + name_length + 1)
            return is_said[a - p->args] = true;
    }
    snprintf(error, error_bytes, "'%.*s' is no size of this kernel", (int)length, word);
    return false;
}

static bool read_shape(problem *p, const char *shape, char *error, size_t error_bytes)
{
    bool is_said[MAX_ARGS] = {false};
    for (shape += strspn(shape, " "); *shape; shape += strspn(shape, " ")) {
        size_t length = strcspn(shape, " ");
        if (!set_size(p, shape, length, is_said, error, error_bytes))
            return false;
        shape += length;
    }
    for (size_t i = 0; i < p->arg_count; i++) {
        if (problem_is_size(&p->args[i]) && !is_said[i]) {
            snprintf(error, error_bytes, "the shape does not say %s", p->args[i].about->name);
            return false;
        }
    }
    return true;
}

static bool measure(problem *p, char *error, size_t error_bytes)
{
    const manifest_rule *broken = NULL;
    problem_status status = problem_measure(p, &broken, error, error_bytes);
    if (status == PROBLEM_ILLEGAL)
        snprintf(error, error_bytes, "a rule forbids the shape: %s", broken->text);
    if (status == PROBLEM_EMPTY)
        snprintf(error, error_bytes, "the shape is empty: there is nothing to launch");
    return status == PROBLEM_LEGAL;
}

static bool evaluate_cost(subject *s, char *error, size_t error_bytes)
{
    const manifest_variant *v = s->problem.variant;
    if (v->bytes_read && v->bytes_written)
        return problem_evaluate(&s->problem, v->bytes_read, &s->bytes_read, error, error_bytes) &&
               problem_evaluate(&s->problem, v->bytes_written, &s->bytes_written, error, error_bytes);
    snprintf(error, error_bytes, "the manifest states no cost in bytes");
    return false;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static argument *largest_size(problem *p, const bool is_kept[MAX_ARGS])
{
    argument *largest = NULL;
    for (size_t i = 0; i < p->arg_count; i++) {
        argument *a = &p->args[i];
        if (problem_is_size(a) && !is_kept[i] && a->integer > 1 &&
            (!largest || a->integer > largest->integer))
            largest = a;
    }
    return largest;
}

/* Halves the largest size that the rules let, so that making the data on the host takes no time. */
static void shrink(problem *p)
{
    bool is_kept[MAX_ARGS] = {false};
    char error[256];
    while (problem_elements(p) > TILE_ELEMENTS) {
        argument *largest = largest_size(p, is_kept);
        if (!largest)
            return;
        uint64_t old = largest->integer;
        largest->integer = old / 2;
        if (problem_measure(p, NULL, error, sizeof error) == PROBLEM_LEGAL)
            continue;
        largest->integer = old;
        is_kept[largest - p->args] = true;
        problem_measure(p, NULL, error, sizeof error);
    }
}

/* Random data of the family's own making, for a smaller problem of the same kind. */
static bool make_tiles(problem *small, char *error, size_t error_bytes)
{
    const family_row *row = family_find(small->variant->family);
    const input_pattern *pattern = family_patterns(row);
    char mistake[MISTAKE_BYTES];
    shrink(small);
    problem_allocate(small);
    while (pattern[1].name && !(pattern->flags & PATTERN_RANDOM))
        pattern++;
    if (reference_make(row, small, pattern, random_open(SEED, small->variant->family), mistake))
        return true;
    snprintf(error, error_bytes, "%s", mistake);
    return false;
}

/* Fills `bytes` with copies of the tile. */
static int spread(const subject *s, CUdeviceptr to, uint64_t bytes, const void *tile, uint64_t tile_bytes)
{
    uint64_t done = tile_bytes < bytes ? tile_bytes : bytes;
    int result = s->device->driver.memcpy_htod(to, tile, done);
    while (result == 0 && done < bytes) {
        uint64_t more = done < bytes - done ? done : bytes - done;
        result = s->tools->memcpy_dtod_async(to + done, to, more, NULL);
        done += more;
    }
    return result;
}

static int fill_first_set(subject *s, problem *small)
{
    CUdeviceptr at = s->memory;
    int result = s->device->driver.memset_d8(s->memory, 0, s->set_bytes);
    for (size_t i = 0; result == 0 && i < s->problem.arg_count; i++) {
        argument *a = &s->problem.args[i], *tile = &small->args[i];
        if (!manifest_is_pointer(a->about)) {
            a->real = tile->real;
            continue;
        }
        if (tile->bytes && manifest_is_input(a->about))
            result = spread(s, at, a->bytes, tile->host, tile->bytes);
        at += align_up(a->bytes);
    }
    return result;
}

static int fill_other_sets(subject *s)
{
    int result = 0;
    for (uint64_t set = 1; result == 0 && set < s->sets; set++)
        result = s->tools->memcpy_dtod_async(s->memory + set * s->set_bytes, s->memory, s->set_bytes, NULL);
    return result == 0 ? s->device->driver.ctx_synchronize() : result;
}

static void fill_arguments(subject *s)
{
    s->arguments = pool_allocate(&s->pool, s->sets * sizeof *s->arguments);
    for (uint64_t set = 0; set < s->sets; set++) {
        CUdeviceptr addresses[MAX_ARGS] = {0}, at = s->memory + set * s->set_bytes;
        for (size_t i = 0; i < s->problem.arg_count; i++) {
            const argument *a = &s->problem.args[i];
            if (!manifest_is_pointer(a->about))
                continue;
            addresses[i] = a->is_null ? 0 : at;
            at += align_up(a->bytes);
        }
        argument_struct_fill(&s->arguments[set], &s->problem, addresses);
    }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void plan_sets(subject *s, uint64_t l2_bytes)
{
    for (size_t i = 0; i < s->problem.arg_count; i++)
        s->set_bytes +=
            manifest_is_pointer(s->problem.args[i].about) ? align_up(s->problem.args[i].bytes) : 0;
    s->sets = 2 * l2_bytes / s->set_bytes + 1;
    if (s->sets < FEWEST_SETS)
        s->sets = FEWEST_SETS;
    if (s->sets > MOST_SETS)
        s->sets = MOST_SETS;
}

static bool prepare_memory(subject *s, char *error, size_t error_bytes)
{
    problem small = s->problem;
    int result = s->device->driver.mem_alloc(&s->memory, s->sets * s->set_bytes);
    if (result != 0) {
        s->memory = 0;
        s->is_too_large = true;
        snprintf(error, error_bytes, "%" PRIu64 " bytes of device memory are not to be had",
                 s->sets * s->set_bytes);
        return false;
    }
    const bool is_made = make_tiles(&small, error, error_bytes);
    if (is_made)
        result = fill_first_set(s, &small);
    problem_close(&small);
    if (!is_made)
        return false;
    if (result == 0)
        result = fill_other_sets(s);
    if (result != 0)
        device_describe_result(s->device, result, error, error_bytes);
    fill_arguments(s);
    return result == 0;
}

/* ---- in and out -------------------------------------------------------------------------------------------------- */

bool subject_open(subject *s, device *d, const driver_tools *tools, const manifest_variant *v,
                  const kiln_kernel *kernel, const char *shape, uint64_t l2_bytes, char *error,
                  size_t error_bytes)
{
    *s = (subject){.device = d, .tools = tools, .kernel = kernel};
    if (!problem_open(&s->problem, v, &d->loader.device, error, error_bytes) ||
        !read_shape(&s->problem, shape, error, error_bytes) || !measure(&s->problem, error, error_bytes) ||
        !evaluate_cost(s, error, error_bytes))
        return false;
    plan_sets(s, l2_bytes);
    if (prepare_memory(s, error, error_bytes))
        return true;
    subject_close(s);
    return false;
}

void subject_close(subject *s)
{
    if (s->memory)
        s->device->driver.mem_free(s->memory);
    s->memory = 0;
    problem_close(&s->problem);
    pool_free(&s->pool);
}

int subject_submit(void *context, CUstream stream, uint64_t iteration)
{
    subject *s = context;
    return s->kernel->launch(&s->device->loader, stream, s->arguments[iteration % s->sets].bytes) == KILN_OK
               ? 0
               : -1;
}
