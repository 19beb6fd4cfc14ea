/* Checks that a launcher rejects bad calls: with the right status, and without a launch. */
#include <math.h>
#include <stdio.h>

#include "execute.h"
#include "run.h"

typedef struct trial {
    device *device;
    problem *problem;
    const kiln_kernel *kernel;
    uint64_t refused;
    char *detail;
    size_t detail_bytes;
} trial;

/* Sets the problem's pointers to addresses with every alignment. Nothing is launched, so they are never accessed. */
static void set_addresses(const trial *t, CUdeviceptr addresses[MAX_ARGS])
{
    for (size_t i = 0; i < MAX_ARGS; i++)
        addresses[i] = t->problem->args[i].is_null ? 0 : UINT64_C(0x100000) * (i + 1);
}

static void expect_either(trial *t, const CUdeviceptr addresses[MAX_ARGS], kiln_status expected,
                          kiln_status other, const char *what)
{
    argument_struct arguments;
    char sizes[SIZES_BYTES];
    if (t->detail[0])
        return;
    argument_struct_fill(&arguments, t->problem, addresses);
    launch_record_clear();
    kiln_status status = t->kernel->launch(&t->device->loader, NULL, arguments.bytes);
    uint64_t launches = launch_record_read()->count;
    if ((status == expected || status == other) && launches == 0) {
        t->refused++;
        return;
    }
    problem_describe(t->problem, sizes, sizeof sizes);
    snprintf(t->detail, t->detail_bytes, "%s (%s): got \"%s\" and %llu launches; expected \"%s\" and none",
             what, sizes, kiln_status_string(status), (unsigned long long)launches,
             kiln_status_string(expected));
}

static void expect_status(trial *t, const CUdeviceptr addresses[MAX_ARGS], kiln_status expected,
                          const char *what)
{
    expect_either(t, addresses, expected, expected, what);
}

/* Returns whether null is allowed; runs of such sizes show that it works. */
static bool may_be_null(const argument *a)
{
    return a->about->direction == DIRECTION_OPTIONAL_IN || a->about->direction == DIRECTION_OPTIONAL_OUT ||
           a->bytes == 0;
}

/* Returns the rule that the i-th argument's address breaks; null: none. */
static const manifest_rule *broken_at(trial *t, size_t i, CUdeviceptr address)
{
    const manifest_rule *broken = NULL;
    argument *a = &t->problem->args[i];
    const bool is_null = a->is_null;
    a->integer = address;
    a->is_null = false;
    problem_measure(t->problem, &broken, NULL, 0);
    a->integer = 0;
    a->is_null = is_null;
    return broken;
}

static void try_pointers(trial *t)
{
    for (size_t i = 0; i < t->problem->arg_count; i++) {
        const manifest_arg *a = t->problem->args[i].about;
        CUdeviceptr addresses[MAX_ARGS];
        char what[128];
        if (!manifest_is_pointer(a))
            continue;
        set_addresses(t, addresses);
        if (!may_be_null(&t->problem->args[i])) {
            addresses[i] = 0;
            snprintf(what, sizeof what, "%s null", a->name);
            expect_status(t, addresses, KILN_ERROR_NULL_POINTER, what);
        }
        for (uint64_t by = 1; by < a->alignment; by *= 2) {
            set_addresses(t, addresses);
            addresses[i] += by;
            snprintf(what, sizeof what, "%s misaligned by %llu", a->name, (unsigned long long)by);
            const bool breaks = broken_at(t, i, addresses[i]) != NULL; /* a rule may be checked first */
            expect_either(t, addresses, KILN_ERROR_MISALIGNED,
                          breaks ? KILN_ERROR_BAD_ARGUMENT : KILN_ERROR_MISALIGNED, what);
        }
    }
}

/* Returns whether the problem is empty: then a launcher may succeed before it checks every rule. */
static bool is_empty(const problem *p)
{
    uint64_t empty = 0;
    return p->variant->empty && problem_evaluate(p, p->variant->empty, &empty, NULL, 0) && empty;
}

/* Returns the highest bit of a size's type. */
static unsigned top_bit(const argument *a)
{
    const element_type type = a->about->struct_type;
    const bool is_signed =
        type == ELEMENT_I8 || type == ELEMENT_I16 || type == ELEMENT_I32 || type == ELEMENT_I64;
    return 8 * (unsigned)element_bytes(type) - 1 - is_signed;
}

/* Returns the i-th value to try for a size: all small values, then those around powers of two. False: no more. */
static bool candidate(const argument *a, uint64_t i, uint64_t *value)
{
    enum { SMALL = 300 };
    *value = i;
    if (i < SMALL)
        return true;
    uint64_t power = 9 + (i - SMALL) / 3;
    *value = (UINT64_C(1) << power % 64) + (i - SMALL) % 3 - 1;
    return power < top_bit(a);
}

/* Tries addresses that the i-th argument's declaration allows and a rule forbids at these sizes. Returns how many. */
static int try_addresses(trial *t, size_t i)
{
    const manifest_arg *a = t->problem->args[i].about;
    CUdeviceptr addresses[MAX_ARGS];
    char what[512];
    int tried = 0;
    for (uint64_t by = a->alignment; by < MOST_ALIGNMENT; by *= 2) {
        set_addresses(t, addresses);
        addresses[i] += by;
        const manifest_rule *broken = broken_at(t, i, addresses[i]);
        if (!broken)
            continue;
        snprintf(what, sizeof what, "rule \"%s\" broken, with %s aligned to %llu bytes", broken->text,
                 a->name, (unsigned long long)by);
        expect_status(t, addresses, KILN_ERROR_BAD_ARGUMENT, what);
        tried++;
    }
    return tried;
}

/* Tries addresses that break a rule for each pointer in rules, at the first size where a rule can be broken:
 * "aligned(x, 16) || n < 100". */
static void try_aligned_rules(trial *t)
{
    problem *p = t->problem;
    for (size_t i = 0; i < p->arg_count; i++) {
        if (!manifest_is_pointer(p->args[i].about) || !problem_has_alignment_rule(p, &p->args[i]) ||
            try_addresses(t, i))
            continue;
        int tried = 0;
        for (size_t s = 0; s < p->arg_count && tried == 0; s++) {
            argument *size = &p->args[s];
            uint64_t kept = size->integer, value;
            for (uint64_t c = 0; problem_is_size(size) && tried == 0 && candidate(size, c, &value); c++) {
                size->integer = value;
                if (problem_measure(p, NULL, NULL, 0) == PROBLEM_LEGAL)
                    tried = try_addresses(t, i);
            }
            size->integer = kept;
        }
    }
}

/* Tries values of each size in turn that break a rule. */
static void try_rules(trial *t)
{
    enum { MOST_PER_SIZE = 60 };
    CUdeviceptr addresses[MAX_ARGS];
    char what[512];
    set_addresses(t, addresses);
    for (size_t i = 0; i < t->problem->arg_count; i++) {
        argument *a = &t->problem->args[i];
        uint64_t kept = a->integer, value, tried = 0;
        for (uint64_t c = 0; problem_is_size(a) && tried < MOST_PER_SIZE && candidate(a, c, &value); c++) {
            const manifest_rule *broken = NULL;
            a->integer = value;
            if (problem_measure(t->problem, &broken, NULL, 0) != PROBLEM_ILLEGAL || is_empty(t->problem))
                continue;
            tried++;
            snprintf(what, sizeof what, "rule \"%s\" broken", broken->text);
            expect_status(t, addresses, KILN_ERROR_BAD_ARGUMENT, what);
        }
        a->integer = kept;
    }
}

/* Tries floats that break a rule, and floats that the kernel's type cannot represent. */
static void try_floats(trial *t)
{
    static const double values[] = {NAN, -NAN, -1, INFINITY, -INFINITY, 0x1p1000, -0x1p1000};
    CUdeviceptr addresses[MAX_ARGS];
    char what[512];
    set_addresses(t, addresses);
    for (size_t i = 0; i < t->problem->arg_count; i++) {
        argument *a = &t->problem->args[i];
        const double kept = a->real;
        const bool is_float = !manifest_is_pointer(a->about) && element_is_float(a->about->type);
        const bool is_narrowed = a->about->type != a->about->struct_type;
        for (size_t v = 0; is_float && v < sizeof values / sizeof values[0]; v++) {
            const manifest_rule *broken = NULL;
            const bool is_beyond = is_narrowed && fabs(values[v]) == 0x1p1000;
            a->real = values[v];
            if (problem_measure(t->problem, &broken, NULL, 0) == PROBLEM_ILLEGAL)
                snprintf(what, sizeof what, "rule \"%s\" broken", broken->text);
            else if (is_beyond)
                snprintf(what, sizeof what, "%s beyond its type", a->about->name);
            else
                continue;
            expect_status(t, addresses, KILN_ERROR_BAD_ARGUMENT, what);
        }
        a->real = kept;
    }
}

/* Tries the first size, by doubling, whose grid is larger than a launch may have. */
static void try_grid(trial *t)
{
    static const uint64_t most[3] = {0x7fffffff, 0xffff, 0xffff};
    CUdeviceptr addresses[MAX_ARGS];
    set_addresses(t, addresses);
    for (size_t i = 0; i < t->problem->arg_count; i++) {
        argument *a = &t->problem->args[i];
        uint64_t kept = a->integer;
        uint64_t top = UINT64_C(1) << (problem_is_size(a) && top_bit(a) < 52 ? top_bit(a) : 52);
        for (uint64_t value = 1024; problem_is_size(a) && value <= top; value *= 2) {
            bool is_too_large = false;
            a->integer = value;
            if (problem_measure(t->problem, NULL, NULL, 0) != PROBLEM_LEGAL)
                continue;
            for (int d = 0; d < 3; d++) {
                uint64_t blocks;
                if (problem_evaluate(t->problem, t->problem->variant->grid[d], &blocks, NULL, 0))
                    is_too_large = is_too_large || blocks > most[d];
            }
            if (!is_too_large)
                continue;
            expect_status(t, addresses, KILN_ERROR_GRID_TOO_LARGE, "too large a grid");
            break;
        }
        a->integer = kept;
    }
}

uint64_t run_refusals(device *d, problem *p, const kiln_kernel *kernel, char *detail, size_t detail_bytes)
{
    trial t = {d, p, kernel, 0, detail, detail_bytes};
    launch_hold_back(true);
    try_pointers(&t);
    try_aligned_rules(&t);
    try_rules(&t);
    try_floats(&t);
    try_grid(&t);
    launch_record_clear();
    if (!t.detail[0] && kernel->launch(&d->loader, NULL, NULL) != KILN_ERROR_NULL_POINTER)
        snprintf(detail, detail_bytes, "null arguments are not refused");
    else if (!t.detail[0])
        t.refused++;
    launch_hold_back(false);
    return t.refused;
}
