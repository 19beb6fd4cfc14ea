/* Executes a problem once on a device. */
#include "execute.h"

#include <stdio.h>
#include <string.h>

#include "watch.h"
#include "writer.h"

/* ---- the argument struct ----------------------------------------------------------------------------------------- */

void argument_struct_fill(argument_struct *s, const problem *p, const CUdeviceptr addresses[MAX_ARGS])
{
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < p->arg_count; i++) {
        const argument *a = &p->args[i];
        unsigned char *field = s->bytes + a->about->offset;
        if (manifest_is_pointer(a->about))
            memcpy(field, &addresses[i], sizeof addresses[i]);
        else if (problem_is_size(a))
            element_set_bits(a->about->struct_type, field, 0, a->integer);
        else
            element_set(a->about->struct_type, field, 0, a->real);
    }
    for (size_t i = 0; i < p->variant->param_count; i++) {
        const manifest_param *param = &p->variant->params[i];
        if (param->is_contract)
            memcpy(s->bytes + param->offset, &param->selector, sizeof param->selector);
    }
}

/* ---- one execution ----------------------------------------------------------------------------------------------- */

typedef struct attempt {
    device *device;
    problem *problem;
    const execution *how;
    bool is_empty;
    bool has_writer; /* the preceding launch writes the inputs */
    device_buffer buffers[MAX_ARGS];
    CUdeviceptr addresses[MAX_ARGS];
    char *error;
    size_t error_bytes;
} attempt;

static execute_status fail_driver(attempt *t, const char *what, int result)
{
    char text[256];
    device_describe_result(t->device, result, text, sizeof text);
    snprintf(t->error, t->error_bytes, "%s: %s", what, text);
    return EXECUTE_LOST;
}

static bool is_left_out(const attempt *t, const argument *a)
{
    return a->is_null || (a->about->direction == DIRECTION_OPTIONAL_OUT && t->how->without_optional) ||
           (a->bytes == 0 && t->how->without_empty);
}

/* Returns whether the array's contents before the launch are undefined. */
static bool is_poisoned(const argument *a)
{
    return !manifest_is_input(a->about);
}

/* Allocates all buffers and fills them with their contents before the launch. */
static execute_status prepare_buffers(attempt *t)
{
    problem *p = t->problem;
    uint64_t alignments[MAX_ARGS];
    _Static_assert((int)MAX_ARGS <= (int)WRITER_MOST_BUFFERS, "each may be made");
    problem_least_alignments(p, alignments);
    t->has_writer = !t->is_empty && writer_is_needed(t->device, t->how->kernel);
    for (size_t i = 0; i < p->arg_count; i++) {
        const argument *a = &p->args[i];
        const size_t alignment = (size_t)alignments[i];
        const bool is_used = manifest_is_pointer(a->about) && !is_left_out(t, a);
        t->buffers[i] = (device_buffer){.is_used = is_used,
                                        .is_made = is_used && t->has_writer && !a->about->is_constant &&
                                                   !is_poisoned(a) && a->bytes > 0,
                                        .bytes = a->bytes,
                                        .alignment = 2 * alignment,
                                        .shift = t->how->is_least_aligned ? alignment : 0};
    }
    int result = buffers_allocate(t->device, t->buffers, p->arg_count);
    if (result != 0)
        return fail_driver(t, "allocating buffers", result);
    for (size_t i = 0; result == 0 && i < p->arg_count; i++) {
        argument *a = &t->problem->args[i];
        const device_buffer *b = &t->buffers[i];
        if (!b->is_used)
            continue;
        t->addresses[i] = a->integer = b->address;
        if (!is_poisoned(a))
            result = buffers_write(t->device, b, a->host);
        else if (!t->how->is_unpoisoned || a->is_gap)
            result = buffers_fill(t->device, b, t->how->poison);
    }
    if (result == 0)
        result = buffers_send(t->device);
    return result == 0 ? EXECUTE_OK : fail_driver(t, "filling buffers", result);
}

static execute_status check_geometry(attempt *t)
{
    const launch_record *r = launch_record_read();
    const manifest_variant *v = t->problem->variant;
    uint64_t expected = t->is_empty ? 0 : 1, grid[3], shared_bytes;
    if (r->count != expected) {
        snprintf(t->error, t->error_bytes, "%llu launches; expected %llu", (unsigned long long)r->count,
                 (unsigned long long)expected);
        return EXECUTE_WRONG;
    }
    if (t->is_empty || t->how->launch != t->how->kernel->launch)
        return EXECUTE_OK;
    if (t->has_writer && !r->overlaps) {
        snprintf(t->error, t->error_bytes,
                 "it waits itself for the preceding launch, but was launched after it");
        return EXECUTE_WRONG;
    }
    if (!problem_evaluate(t->problem, v->shared_bytes, &shared_bytes, t->error, t->error_bytes))
        return EXECUTE_WRONG;
    for (int i = 0; i < 3; i++) {
        if (!problem_evaluate(t->problem, v->grid[i], &grid[i], t->error, t->error_bytes))
            return EXECUTE_WRONG;
        if (grid[i] == r->grid[i] && v->block[i] == r->block[i] && shared_bytes == r->shared_bytes)
            continue;
        snprintf(t->error, t->error_bytes,
                 "launched with grid.%c %u, block.%c %u, %u shared bytes; the manifest says "
                 "%llu, %u, %llu",
                 "xyz"[i], r -> grid[i], "xyz"[i], r -> block[i], r -> shared_bytes,
                 (unsigned long long)grid[i], v -> block[i], (unsigned long long)shared_bytes);
        return EXECUTE_WRONG;
    }
    return EXECUTE_OK;
}

/* The emulated driver returns this for valid PTX that it does not implement. */
enum { ERROR_NOT_SUPPORTED = 801 };

/* Finds the reason in the log of the module's load. The log has a line for each refused kernel, then the reason;
 * for a module that is refused as a whole, only the reason. */
static void describe_lack(attempt *t)
{
    char line[512];
    snprintf(line, sizeof line, "kernel '%s' is refused:\n", t->how->kernel->entry);
    const char *found = strstr(t->device->log, line);
    const char *reason = found ? found + strlen(line) : t->device->log;
    snprintf(t->error, t->error_bytes, "the emulated driver cannot execute it: %.*s",
             (int)strcspn(reason, "\n"), reason);
}

static execute_status launch(attempt *t)
{
    argument_struct arguments;
    argument_struct_fill(&arguments, t->problem, t->addresses);
    device_order_blocks(t->device, t->how->order);
    if (t->has_writer) /* a load between the two launches would separate them; if it fails, the launch reports it */
        kiln_preload(&t->device->loader, &t->how->kernel, 1);
    const int made = writer_launch(t->device, t->buffers, t->problem->arg_count);
    if (made != 0) {
        watch_end();
        return fail_driver(t, "the preceding launch failed", made);
    }
    launch_record_clear();
    kiln_status status = t->how->launch(&t->device->loader, NULL, arguments.bytes);
    const int result = status == KILN_OK ? t->device->driver.ctx_synchronize() : 0;
    watch_end();
    if (status != KILN_OK) {
        kiln_error details;
        kiln_last_error(&t->device->loader, &details);
        if (t->device->is_emulated && status == KILN_ERROR_LOAD &&
            details.driver_result == ERROR_NOT_SUPPORTED) {
            describe_lack(t);
            return EXECUTE_LACKS;
        }
        device_describe_failure(t->device, t->how->kernel, -1, t->error, t->error_bytes);
        return status == KILN_ERROR_LAUNCH || status == KILN_ERROR_DRIVER ? EXECUTE_LOST : EXECUTE_WRONG;
    }
    if (result != 0)
        return fail_driver(t, "the kernel failed", result);
    return check_geometry(t);
}

static execute_status check_input(attempt *t, size_t i, const unsigned char *seen)
{
    const argument *a = &t->problem->args[i];
    if (a->bytes == 0 || memcmp(seen, a->host, a->bytes) == 0)
        return EXECUTE_OK;
    size_t at = 0;
    while (seen[at] == ((const unsigned char *)a->host)[at])
        at++;
    snprintf(t->error, t->error_bytes, "the kernel changed its input %s, first at byte %zu", a->about->name,
             at);
    return EXECUTE_WRONG;
}

static execute_status check_untouched(attempt *t, size_t i, const unsigned char *seen)
{
    const argument *a = &t->problem->args[i];
    for (size_t at = 0; at < a->bytes; at++) {
        if (seen[at] == t->how->poison)
            continue;
        snprintf(t->error, t->error_bytes, "there was nothing to do, yet %s changed at byte %zu",
                 a->about->name, at);
        return EXECUTE_WRONG;
    }
    return EXECUTE_OK;
}

/* Checks that gaps are unchanged by the launch, then sets them to zero for the comparisons. */
static execute_status check_gaps(attempt *t, const argument *a, unsigned char *seen)
{
    const size_t bytes = element_bytes(a->about->type);
    for (size_t at = 0; at < a->bytes; at++) {
        if (!a->is_gap[at / bytes])
            continue;
        if (seen[at] != t->how->poison) {
            snprintf(t->error, t->error_bytes, "the kernel wrote into a gap of %s, first at element %zu",
                     a->about->name, at / bytes);
            return EXECUTE_WRONG;
        }
        seen[at] = 0;
    }
    return EXECUTE_OK;
}

static execute_status collect_buffer(attempt *t, size_t i, outcome *o)
{
    const argument *a = &t->problem->args[i];
    unsigned char *seen = pool_allocate(&o->memory, a->bytes);
    bool intact;
    int result = buffers_read(t->device, &t->buffers[i], seen, &intact);
    if (result != 0)
        return fail_driver(t, "reading a buffer back", result);
    if (!intact) {
        snprintf(t->error, t->error_bytes, "the kernel wrote outside %s", a->about->name);
        return EXECUTE_WRONG;
    }
    if (manifest_is_output(a->about))
        o->outputs[i] = seen;
    if (a->is_gap && !t->is_empty)
        return check_gaps(t, a, seen);
    if (a->about->direction == DIRECTION_IN || (t->is_empty && !is_poisoned(a)))
        return check_input(t, i, seen);
    return t->is_empty && !t->how->is_unpoisoned ? check_untouched(t, i, seen) : EXECUTE_OK;
}

static execute_status run_attempt(attempt *t, outcome *o)
{
    execute_status status = prepare_buffers(t);
    if (status == EXECUTE_OK)
        status = launch(t);
    const int result = status == EXECUTE_OK ? buffers_receive(t->device) : 0;
    if (result != 0)
        return fail_driver(t, "reading buffers back", result);
    for (size_t i = 0; status == EXECUTE_OK && i < t->problem->arg_count; i++) {
        if (t->buffers[i].is_used)
            status = collect_buffer(t, i, o);
    }
    return status;
}

execute_status execute(device *d, problem *p, const execution *e, bool is_empty, outcome *o, char *error,
                       size_t error_bytes)
{
    attempt t = {.device = d,
                 .problem = p,
                 .how = e,
                 .is_empty = is_empty,
                 .error = error,
                 .error_bytes = error_bytes};
    *o = (outcome){.outputs = {NULL}};
    execute_status status = run_attempt(&t, o);
    buffers_free(d, t.buffers, p->arg_count);
    problem_forget_addresses(p);
    return status;
}

void outcome_free(outcome *o)
{
    pool_free(&o->memory);
}
