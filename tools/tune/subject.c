/* One variant at one shape, ready to be launched again and again on buffers that rotate past the L2 cache. */
#include "subject.h"

#include <inttypes.h>
#include <stdio.h>

#include "../verify/reference.h"
#include "indices.h"

/* cuda.h: CUDA_ERROR_OUT_OF_MEMORY */
enum { ERROR_OUT_OF_MEMORY = 2 };

enum { ALIGNMENT = 256, FEWEST_SETS = 2, TILE_ELEMENTS = 1 << 16, SEED = 1 };

static uint64_t align_up(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- the cost ----------------------------------------------------------------------------------------------------- */

static bool evaluate_cost(subject *s, char *error, size_t error_bytes)
{
    const manifest_variant *v = s->problem.variant;
    if (v->bytes_read && v->bytes_written)
        return problem_evaluate(&s->problem, v->bytes_read, &s->bytes_read, error, error_bytes) &&
               problem_evaluate(&s->problem, v->bytes_written, &s->bytes_written, error, error_bytes) &&
               (!v->elements || problem_evaluate(&s->problem, v->elements, &s->elements, error, error_bytes));
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

/* Halves the largest size that the rules allow to halve, so that making the data on the host takes little time. */
static void shrink(problem *p)
{
    bool is_kept[MAX_ARGS] = {false};
    while (problem_elements(p) > TILE_ELEMENTS) {
        argument *largest = largest_size(p, is_kept);
        if (!largest)
            return;
        uint64_t old = largest->integer;
        largest->integer = old / 2;
        if (problem_measure(p, NULL, NULL, 0) == PROBLEM_LEGAL)
            continue;
        largest->integer = old;
        is_kept[largest - p->args] = true;
        problem_measure(p, NULL, NULL, 0);
    }
}

/* Random data that the family makes for a smaller problem of the same kind. It has no extreme values: those
 * of verification send whole tiles through a quantiser's slow path. */
static bool make_tiles(problem *small, char *error, size_t error_bytes)
{
    const family_row *row = family_find(small->variant->family);
    const input_pattern *pattern = family_patterns(row);
    char mistake[MISTAKE_BYTES];
    shrink(small);
    problem_allocate(small);
    small->is_plain = true;
    while (pattern[1].name && !(pattern->flags & PATTERN_RANDOM))
        pattern++;
    if (reference_make(row, small, pattern, random_open(SEED, small->variant->family), mistake))
        return true;
    snprintf(error, error_bytes, "%s", mistake);
    return false;
}

/* Repeats the first `done` of `bytes`, doubling the copied part each time. */
static int repeat(const subject *s, CUdeviceptr at, uint64_t bytes, uint64_t done)
{
    int result = 0;
    for (uint64_t more; result == 0 && done < bytes; done += more) {
        more = done < bytes - done ? done : bytes - done;
        result = s->tools->memcpy_dtod_async(at + done, at, more, NULL);
    }
    return result;
}

static int spread(const subject *s, CUdeviceptr to, uint64_t bytes, const void *tile, uint64_t tile_bytes)
{
    const uint64_t first = tile_bytes < bytes ? tile_bytes : bytes;
    const int result = s->device->driver.memcpy_htod(to, tile, first);
    return result == 0 ? repeat(s, to, bytes, first) : result;
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
        const void *indices = a->bytes ? indices_make(&s->pool, &s->problem, a) : NULL;
        if (indices)
            result = s->device->driver.memcpy_htod(at, indices, a->bytes);
        else if (tile->bytes && manifest_is_input(a->about))
            result = spread(s, at, a->bytes, tile->host, tile->bytes);
        at += align_up(a->bytes);
    }
    return result;
}

static int fill_other_sets(subject *s)
{
    const int result = repeat(s, s->memory, s->sets * s->set_bytes, s->set_bytes);
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

/* Plans how many sets of buffers fit; 0: not even one. */
static void plan_sets(subject *s, uint64_t l2_bytes, uint64_t room)
{
    for (size_t i = 0; i < s->problem.arg_count; i++)
        s->set_bytes +=
            manifest_is_pointer(s->problem.args[i].about) ? align_up(s->problem.args[i].bytes) : 0;
    if (s->set_bytes == 0)
        s->set_bytes = ALIGNMENT;
    const uint64_t fitting = room / s->set_bytes;
    s->sets = 2 * l2_bytes / s->set_bytes + 1;
    if (s->sets < FEWEST_SETS)
        s->sets = FEWEST_SETS;
    if (s->sets > MOST_SETS)
        s->sets = MOST_SETS;
    if (s->sets > fitting)
        s->sets = fitting;
}

/* Allocates the sets. Leaves some memory free, which the driver needs for modules and graphs. */
static bool allocate(subject *s, uint64_t l2_bytes, char *error, size_t error_bytes)
{
    size_t free_bytes = 0, total_bytes = 0;
    int result = s->tools->mem_get_info(&free_bytes, &total_bytes);
    const uint64_t kept = total_bytes / 64, room = free_bytes > kept ? free_bytes - kept : 0;
    plan_sets(s, l2_bytes, room);
    s->is_too_large = result == 0 && s->sets == 0;
    if (s->is_too_large) {
        snprintf(error, error_bytes, "it needs %" PRIu64 " bytes of device memory; %" PRIu64 " are free",
                 s->set_bytes, room);
        return false;
    }
    if (result == 0)
        result = s->device->driver.mem_alloc(&s->memory, s->sets * s->set_bytes);
    if (result == 0)
        return true;
    s->memory = 0;
    s->is_too_large = result == ERROR_OUT_OF_MEMORY;
    device_describe_result(s->device, result, error, error_bytes);
    return false;
}

static bool prepare_memory(subject *s, uint64_t l2_bytes, char *error, size_t error_bytes)
{
    problem small = s->problem;
    int result = 0;
    if (!allocate(s, l2_bytes, error, error_bytes))
        return false;
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

bool subject_open(subject *s, device *d, const driver_tools *tools, const kiln_kernel *kernel, problem *p,
                  uint64_t l2_bytes, char *error, size_t error_bytes)
{
    *s = (subject){.device = d, .tools = tools, .kernel = kernel, .problem = *p};
    *p = (problem){0};
    if (!evaluate_cost(s, error, error_bytes))
        return false;
    if (prepare_memory(s, l2_bytes, error, error_bytes))
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
