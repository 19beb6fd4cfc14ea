/* Quantises tensors larger than memory, with elements beyond 2^32.
 *
 *     quantisers_far DRIVER MANIFEST [WORD]
 *
 * The emulated driver allocates memory when it is touched, and KILN_EMU_BLOCKS leaves out all thread blocks except those of
 * a window. The reference computes the window as a small tensor. The kernel gets the same elements far out in a large
 * tensor, and must give the same bits. One window is around byte 2^32 of the tensor, one around element 2^32, one around
 * byte 2^32 of the codes. All end with the tensor, at an odd element. Scales are at the end of their arrays; with groups
 * of one element, the index of a scale exceeds 2^32 too.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "execute.h"
#include "families/families.h"

extern const kiln_index QUANT_INDEX; /* the bundle's names; the build defines them */

enum {
    ELEMENTS_BEFORE = 4096,
    ELEMENTS_AFTER = 1001,
    MOST_OUTPUT_BYTES = 1 << 20,
    MOST_SHELVES = 128,
    POISON = 0xA5
};

typedef struct window {
    uint64_t first, n;    /* the window's first element, and elements of the large tensor */
    uint64_t group;       /* group size of the large tensor, if it is an argument */
    uint64_t near_group;  /* group size of the small tensor */
    uint64_t first_group; /* of the window */
} window;

typedef struct trial {
    device device;
    const manifest_variant *variant;
    problem near, far;
    CUdeviceptr addresses[MAX_ARGS];
    uint64_t elements; /* number of compared bytes */
    char error[1024];
} trial;

static bool fail(trial *t, const char *what, int result)
{
    char text[256];
    device_describe_result(&t->device, result, text, sizeof text);
    snprintf(t->error, sizeof t->error, "%s: %s", what, text);
    return false;
}

/* ---- the two problems -------------------------------------------------------------------------------------------- */

static void set_sizes(problem *p, uint64_t n, uint64_t group)
{
    argument *size = problem_find(p, "group_size");
    problem_find(p, "n")->integer = n;
    if (size)
        size->integer = group;
}

static bool measure(trial *t, problem *p)
{
    char why[256] = "a rule is broken";
    if (problem_measure(p, NULL, why, sizeof why) == PROBLEM_LEGAL)
        return true;
    snprintf(t->error, sizeof t->error, "%s", why);
    return false;
}

/* The inputs and results of the small problem, and the sizes of the large one. */
static bool open_problems(trial *t, const window *w)
{
    const family_row *row = family_find(t->variant->family);
    const input_pattern *pattern = row->patterns;
    char why[256];
    if (!problem_open(&t->near, t->variant, &t->device.loader.device, why, sizeof why) ||
        !problem_open(&t->far, t->variant, &t->device.loader.device, why, sizeof why))
        return fail(t, why, 0);
    set_sizes(&t->near, w->n - w->first, w->near_group);
    set_sizes(&t->far, w->n, w->group);
    if (!measure(t, &t->near) || !measure(t, &t->far))
        return false;
    while (strcmp(pattern->name, "uniform") != 0) /* given scales that the elements do not determine */
        pattern++;
    problem_allocate(&t->near);
    row->make(&t->near, pattern, random_open(1, t->variant->id));
    row->expect(&t->near, pattern);
    return true;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static uint64_t window_offset(const argument *a, const window *w)
{
    uint64_t element = element_bytes(a->about->type);
    if (strcmp(a->about->name, "packed") == 0)
        return w->first / 2;
    bool is_number = strcmp(a->about->name, "scale") == 0 || strcmp(a->about->name, "zero") == 0;
    return (is_number ? w->first_group : w->first) * element;
}

/* Allocates exactly this size, and keeps it for the next launch, because the emulated driver never reuses an address. */
static struct shelf {
    uint64_t bytes;
    CUdeviceptr address;
    bool is_taken;
} shelves[MOST_SHELVES];

static int take_memory(trial *t, uint64_t bytes, CUdeviceptr *address)
{
    struct shelf *s = shelves;
    while (s->bytes && (s->is_taken || s->bytes != bytes)) {
        if (++s == shelves + MOST_SHELVES)
            return 1;
    }
    int result = s->bytes ? 0 : t->device.driver.mem_alloc(&s->address, bytes);
    if (result != 0)
        return result;
    s->bytes = bytes;
    s->is_taken = true;
    *address = s->address;
    return 0;
}

static void give_memory_back(void)
{
    for (size_t i = 0; i < MOST_SHELVES; i++)
        shelves[i].is_taken = false;
}

static bool fill(trial *t, const window *w)
{
    for (size_t i = 0; i < t->near.arg_count; i++) {
        const argument *near = &t->near.args[i], *far = &t->far.args[i];
        if (!manifest_is_pointer(near->about))
            continue;
        int result = take_memory(t, far->bytes, &t->addresses[i]);
        if (result != 0)
            return fail(t, "cuMemAlloc", result);
        CUdeviceptr at = t->addresses[i] + window_offset(near, w);
        result = manifest_is_output(near->about) ? t->device.driver.memset_d8(at, POISON, near->bytes)
                                                 : t->device.driver.memcpy_htod(at, near->host, near->bytes);
        if (result != 0)
            return fail(t, "filling the window", result);
    }
    return true;
}

static bool compare(trial *t, const window *w)
{
    static unsigned char seen[MOST_OUTPUT_BYTES];
    for (size_t i = 0; i < t->near.arg_count; i++) {
        const argument *a = &t->near.args[i];
        if (!manifest_is_pointer(a->about) || !manifest_is_output(a->about))
            continue;
        uint64_t offset = window_offset(a, w), wrong = 0;
        int result = a->bytes > sizeof seen
                         ? 1
                         : t->device.driver.memcpy_dtoh(seen, t->addresses[i] + offset, a->bytes);
        if (result != 0)
            return fail(t, "reading the window", result);
        while (wrong < a->bytes && seen[wrong] == ((unsigned char *)a->expected_bits)[wrong])
            wrong++;
        t->elements += a->count;
        if (wrong == a->bytes)
            continue;
        snprintf(t->error, sizeof t->error, "%s differs at byte %llu", a->about->name,
                 (unsigned long long)(offset + wrong));
        return false;
    }
    return true;
}

/* ---- one launch -------------------------------------------------------------------------------------------------- */

/* Returns the thread blocks of the large problem for its first n elements. */
static uint64_t blocks_for(trial *t, uint64_t n)
{
    char why[256];
    uint64_t blocks = 0;
    argument *size = problem_find(&t->far, "n");
    uint64_t kept = size->integer;
    size->integer = n;
    if (!problem_evaluate(&t->far, t->variant->grid[0], &blocks, why, sizeof why))
        fail(t, why, 0);
    size->integer = kept;
    return blocks;
}

static bool launch(trial *t, const window *w)
{
    argument_struct arguments;
    char blocks[64];
    uint64_t last = blocks_for(t, w->n) - 1;
    snprintf(blocks, sizeof blocks, "%llu-%llu", (unsigned long long)(blocks_for(t, w->first + 1) - 1),
             (unsigned long long)last);
    setenv("KILN_EMU_BLOCKS", blocks, 1);
    argument_struct_fill(&arguments, &t->far, t->addresses);
    launch_record_clear();
    const kiln_kernel *kernel = kiln_find(t->device.index, t->variant->key);
    kiln_status status = kernel->launch(&t->device.loader, NULL, arguments.bytes);
    if (status != KILN_OK) {
        snprintf(t->error, sizeof t->error, "%s", kiln_status_string(status));
        return false;
    }
    if (launch_record_read()->grid[0] != last + 1) {
        snprintf(t->error, sizeof t->error, "launched %u blocks, not %llu", launch_record_read()->grid[0],
                 (unsigned long long)last + 1);
        return false;
    }
    int result = t->device.driver.ctx_synchronize();
    return result == 0 || fail(t, "the kernel failed", result);
}

static bool try_window(trial *t, const window *w)
{
    memset(t->addresses, 0, sizeof t->addresses);
    bool fine = open_problems(t, w) && fill(t, w) && launch(t, w) && compare(t, w);
    give_memory_back();
    problem_close(&t->near);
    problem_close(&t->far);
    if (!fine)
        printf("WRONG %s, n=%llu group_size=%llu: %s\n", t->variant->id, (unsigned long long)w->n,
               (unsigned long long)w->group, t->error);
    return fine;
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* Returns a window around an element, with `group` elements per scale. */
static window window_around(uint64_t element, uint64_t group)
{
    window w = {.group = group, .near_group = group, .n = element + ELEMENTS_AFTER};
    w.first_group = (element - ELEMENTS_BEFORE) / group;
    w.first_group -= w.first_group * group % 2; /* at a whole byte of codes */
    w.first = w.first_group * group;
    return w;
}

/* A group of more than 2^32 elements ends in the window. */
static window window_of_large_group(void)
{
    window w = {.group = (UINT64_C(1) << 32) + 6, .near_group = ELEMENTS_BEFORE};
    w.first = w.group - w.near_group;
    w.n = w.group + ELEMENTS_AFTER;
    return w;
}

static bool try_variant(trial *t)
{
    static const uint64_t groups[] = {1, 100, 5000};
    element_type type = manifest_find_arg(t->variant, "scale")->type;
    const manifest_arg *tensor = manifest_find_arg(t->variant, "in");
    if (!tensor)
        tensor = manifest_find_arg(t->variant, "out");
    const uint64_t around[] = {(UINT64_C(1) << 32) / element_bytes(tensor->type), UINT64_C(1) << 32,
                               UINT64_C(1) << 33};
    bool is_any = manifest_find_arg(t->variant, "group_size"), fine = true;
    uint64_t fixed = is_any ? 1 : strtoull(manifest_param_value(t->variant, "group"), NULL, 10);
    for (size_t i = 0; i < 3; i++) {
        window w = window_around(around[i], fixed);
        fine = fine && (is_any || try_window(t, &w));
        for (size_t g = 0; is_any && g < 3; g++) {
            w = window_around(around[i], groups[g]);
            /* 2^33 elements with 8-byte scales and zeros exceed any device's memory */
            bool fits = groups[g] > 1 || i < 2 || type != ELEMENT_F64;
            fine = fine && (!fits || try_window(t, &w));
        }
    }
    window large = window_of_large_group();
    bool is_by_tile = strstr(t->variant->family,
                             "pack"); /* others have whole groups per thread block: far too many elements */
    return fine && (!is_any || !is_by_tile || try_window(t, &large));
}

/* ---- command line ------------------------------------------------------------------------------------------------ */

static char manifest_text[1 << 22];

int main(int argc, char **argv)
{
    static trial t;
    pool memory = {0};
    char error[1024];
    size_t variants = 0, wrong = 0;
    if (argc < 3) {
        fputs("usage: quantisers_far DRIVER MANIFEST [WORD]\n", stderr);
        return 2;
    }
    FILE *in = fopen(argv[2], "rb");
    size_t bytes = in ? fread(manifest_text, 1, sizeof manifest_text, in) : 0;
    if (in)
        fclose(in);
    const manifest *m = manifest_read(&memory, manifest_text, bytes, error, sizeof error);
    if (!m || device_open(&t.device, argv[1], 0, &QUANT_INDEX, error, sizeof error) != DEVICE_OK) {
        fprintf(stderr, "quantisers_far: %s\n", error);
        return 1;
    }
    for (size_t i = 0; i < m->variant_count; i++) {
        t.variant = &m->variants[i];
        /* Nested scales: the window does not begin at a group of 256 scales. */
        bool is_quantiser = manifest_param_value(t.variant, "group") && manifest_find_arg(t.variant, "scale");
        if (!is_quantiser || (argc > 3 && !strstr(t.variant->id, argv[3])))
            continue;
        variants++;
        if (!try_variant(&t) && ++wrong && device_reopen(&t.device, error, sizeof error) != DEVICE_OK)
            break;
    }
    printf("%zu of %zu kernels right beyond 2^32: %llu numbers compared, bit for bit\n", variants - wrong,
           variants, (unsigned long long)t.elements);
    device_close(&t.device);
    pool_free(&memory);
    return wrong || !variants;
}
