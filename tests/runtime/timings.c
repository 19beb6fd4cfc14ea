/* Prints the cost of a lookup and of a typed call in nanoseconds: medians of five. Any time passes, because machines and
 * their load differ. The aims are for a release build on an idle machine. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mini.h"

enum { ROUNDS = 5 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* excludes other processes' time */
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int by_value(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Returns the median time of a call, over `count` calls in run(count). */
static double median(void (*run)(uint32_t), uint32_t count)
{
    double ns[ROUNDS];
    run(count / 4 + 1); /* warm */
    for (int i = 0; i < ROUNDS; i++) {
        const double begin = now();
        run(count);
        ns[i] = (now() - begin) / count;
    }
    qsort(ns, ROUNDS, sizeof *ns, by_value);
    return ns[ROUNDS / 2];
}

/* ---- lookup by key ------------------------------------------------------------------------------------------------ */

static kiln_index index_of_many;
static kiln_kernel *kernels_of_many;
static uint64_t *asked; /* keys in random order */
static uint32_t asked_count;

/* splitmix64 of Steele, Lea and Flood, 2014: as uniform as the keys, which are hashes. */
static uint64_t next_random(void)
{
    static uint64_t state;
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void *allocate(size_t count, size_t bytes)
{
    void *p = calloc(count, bytes);
    if (p == NULL)
        abort();
    return p;
}

/* Builds the table like the generator: at most half full. */
static void make_index(uint32_t count)
{
    uint32_t places = 2;
    while (places < 2 * count)
        places *= 2;
    kiln_kernel *const kernels = kernels_of_many = allocate(count, sizeof *kernels);
    const kiln_kernel **list = allocate(count, sizeof *list);
    uint32_t *table = allocate(places, sizeof *table);
    asked = allocate(count, sizeof *asked);
    asked_count = count;
    for (uint32_t i = 0; i < count; i++) {
        asked[i] = kernels[i].key = next_random();
        list[i] = &kernels[i];
        uint64_t at = kernels[i].key & (places - 1);
        while (table[at] != 0)
            at = (at + 1) & (places - 1);
        table[at] = i + 1;
    }
    for (uint32_t i = count - 1; i > 0; i--) {
        const uint32_t other = (uint32_t)(next_random() % (i + 1));
        const uint64_t key = asked[i];
        asked[i] = asked[other];
        asked[other] = key;
    }
    index_of_many = (kiln_index){.kernels = list, .table = table, .table_mask = places - 1};
}

static void free_index(void)
{
    free(kernels_of_many);
    free((void *)index_of_many.kernels);
    free((void *)index_of_many.table);
    free(asked);
}

static const kiln_kernel *find(uint64_t key)
{
    const kiln_kernel *found = kiln_find(&index_of_many, key);
    if (found == NULL)
        abort();
    return found;
}

static void look_up(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        (void)find(asked[i % asked_count]);
}

/* Each lookup depends on the previous one, so lookups do not overlap. If the kernels do not fit into the caches, most of the
 * time is memory latency. */
static void look_up_in_turn(uint32_t count)
{
    uint64_t zero = 0;
    for (uint32_t i = 0; i < count; i++)
        zero = find(asked[i % asked_count] ^ zero)->key ^ asked[i % asked_count];
}

/* ---- a typed call ------------------------------------------------------------------------------------------------- */

static kiln_driver driver;
static kiln_loader loader;
static kiln_slot slots[MINI_SLOTS];

static int get_number(int *number)
{
    *number = 12080;
    return 0;
}

static int get_current(CUcontext *context)
{
    *context = (CUcontext)(uintptr_t)0x1000;
    return 0;
}

static int get_attribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 1 << 16; /* sm_90 */
    return 0;
}

static int load(CUmodule *module, const void *image, unsigned count, int *options, void **values)
{
    (void)image, (void)count, (void)options, (void)values;
    *module = (CUmodule)(uintptr_t)0x2000;
    return 0;
}

static int unload(CUmodule module)
{
    return module == NULL;
}

static int get_function(CUfunction *function, CUmodule module, const char *name)
{
    (void)module, (void)name;
    *function = (CUfunction)(uintptr_t)0x3000;
    return 0;
}

static int set_attribute(CUfunction function, int attribute, int value)
{
    (void)function, (void)attribute, (void)value;
    return 0;
}

static int launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **params,
                  void **extra)
{
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared_bytes, (void)stream, (void)params, (void)extra;
    return 0;
}

static mini_axpy_args args = {.type = MINI_AXPY_TYPE_F32, .x = 256, .y = 512, .a = 2, .n = 1000};

static void call_driver(uint32_t count)
{
    float a = (float)args.a;
    for (uint32_t i = 0; i < count; i++) {
        void *params[] = {&args.x, &args.y, &a, &args.n};
        if (driver.launch_kernel((CUfunction)(uintptr_t)0x3000, 4, 1, 1, 256, 1, 1, 0, NULL, params, NULL) !=
            0)
            abort();
    }
}

static void call_variant(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (mini_axpy_f32(&loader, NULL, &args) != KILN_OK)
            abort();
}

static void call_family(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (mini_axpy(&loader, NULL, &args) != KILN_OK)
            abort();
}

int main(int count, char **words)
{
    const uint32_t calls = count > 1 ? (uint32_t)strtoul(words[1], NULL, 10) : 4000000;
    static const struct {
        uint32_t entries, aim;
    } lookups[] = {{1000, 15}, {60000, 40}};
    for (size_t i = 0; i < sizeof lookups / sizeof lookups[0]; i++) {
        make_index(lookups[i].entries);
        printf("lookup by key among %5" PRIu32 ": %6.1f ns   (aim: %" PRIu32
               "), %.1f ns when each waits for the last\n",
               lookups[i].entries, median(look_up, calls), lookups[i].aim, median(look_up_in_turn, calls));
        free_index();
    }

    driver = (kiln_driver){.driver_get_version = get_number,
                           .ctx_get_current = get_current,
                           .ctx_get_device = get_number,
                           .device_get_attribute = get_attribute,
                           .module_load_data_ex = load,
                           .module_unload = unload,
                           .module_get_function = get_function,
                           .func_set_attribute = set_attribute,
                           .launch_kernel = launch};
    if (kiln_open(&loader, &driver, &mini_bundle, slots, MINI_SLOTS, NULL) != KILN_OK)
        abort();
    const double bare = median(call_driver, calls);
    printf("bare driver call:          %6.1f ns\n", bare);
    printf("a variant's function:      %6.1f ns more   (aim: 60)\n", median(call_variant, calls) - bare);
    printf("a family's function:       %6.1f ns more   (aim: 60)\n", median(call_family, calls) - bare);
    return (int)kiln_close(&loader);
}
