#include "devices.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "support/words.h"

/* clang-format off */
/* Source: NVIDIA's data sheets and white papers; CUDA programming guide, technical specifications per compute capability. Jetson: the
 * data sheets of the modules AGX Orin 64GB and 32GB, Orin NX 16GB and Orin Nano 8GB (both with the clocks of JetPack 6.2's Super
 * modes), T5000 and T4000. mma is kiln_device.mma_cycles. The first of a target stands for it.
 *
 *   name                      sm   multiprocessors  shared/block  /SM  threads  MHz   GB/s  mma */
static const struct {
    const char *name;
    uint32_t sm, multiprocessors, shared_kb, multiprocessor_shared_kb, threads, mhz, gb_per_s, mma;
} rows[] = {
    {"T4",                     75,  40,  64,  64, 1024, 1590,  320, 2},
    {"A100",                   80, 108, 163, 164, 2048, 1410, 1555, 1},
    {"RTX 3090",               86,  82,  99, 100, 1536, 1695,  936, 4},
    {"Jetson AGX Orin",        87,  16, 163, 164, 1536, 1300,  204, 1},
    {"Jetson AGX Orin 32GB",   87,  14, 163, 164, 1536,  930,  204, 1},
    {"Jetson Orin NX",         87,   8, 163, 164, 1536, 1173,  102, 1},
    {"Jetson Orin Nano",       87,   8, 163, 164, 1536, 1020,  102, 1},
    {"RTX 4090",               89, 128,  99, 100, 1536, 2520, 1008, 4},
    {"L4",                     89,  58,  99, 100, 1536, 2040,  300, 2},
    {"H100",                   90, 132, 227, 228, 2048, 1980, 3352, 1},
    {"B200",                  100, 148, 227, 228, 2048, 1965, 8000, 1},
    {"B300",                  103, 148, 227, 228, 2048, 1920, 8000, 1},
    {"Jetson Thor",           110,  20, 227, 228, 1536, 1575,  273, 1},
    {"Jetson T4000",          110,  12, 227, 228, 1536, 1530,  273, 1},
    {"RTX 5090",              120, 170,  99, 100, 1536, 2407, 1792, 4},
    {"GB10",                  121,  48,  99, 100, 1536, 2418,  273, 4},
};
/* clang-format on */

enum { ROWS = sizeof rows / sizeof rows[0] };

/* By words of its name, in their order: "Jetson Nano". */
static bool is_called(const char *device, const char *name)
{
    size_t wanted, length;
    const char *word = words_next(&name, &wanted);
    if (!word)
        return false;
    for (const char *own; word && (own = words_next(&device, &length));)
        if (length == wanted && strncasecmp(own, word, length) == 0)
            word = words_next(&name, &wanted);
    return !word;
}

/* A whole name comes before words of a longer one. ROWS: there is none, or there are several. */
static size_t find_row(const char *name)
{
    size_t found = ROWS, count = 0;
    for (size_t i = 0; i < ROWS; i++) {
        if (strcasecmp(rows[i].name, name) == 0)
            return i;
        if (is_called(rows[i].name, name)) {
            found = i;
            count++;
        }
    }
    return count == 1 ? found : ROWS;
}

const char *device_find(uint32_t sm, const char *name, kiln_device *out)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (name ? i != find_row(name) : rows[i].sm != sm)
            continue;
        *out = (kiln_device){
            .sm = rows[i].sm,
            .driver_version = UINT32_MAX,
            .multiprocessors = rows[i].multiprocessors,
            .max_shared_bytes = rows[i].shared_kb * 1024,
            .multiprocessor_shared_bytes = rows[i].multiprocessor_shared_kb * 1024,
            .multiprocessor_threads = rows[i].threads,
            .memory_cycles = (uint32_t)(((uint64_t)rows[i].mhz << 20) / (1000 * rows[i].gb_per_s)),
            .mma_cycles = rows[i].mma,
        };
        return rows[i].name;
    }
    return NULL;
}

const char *device_names(arena *a, const char *name)
{
    text out = text_new(a);
    for (size_t i = 0; i < ROWS; i++)
        if (!name || is_called(rows[i].name, name))
            text_printf(&out, "%s%s", out.length ? ", " : "", rows[i].name);
    return out.data;
}
