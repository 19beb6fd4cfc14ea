#include "devices.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "support/words.h"

static const struct {
    const char *name;
    uint32_t sm, multiprocessors, shared_kb, multiprocessor_shared_kb, threads, mhz, gb_per_s, mma, s8, fp4;
} rows[] = {
#define DEVICE(name, sm, multiprocessors, shared_kb, multiprocessor_shared_kb, threads, blocks, mhz,         \
               gb_per_s, mma, s8, fp4)                                                                       \
    {name, sm, multiprocessors, shared_kb, multiprocessor_shared_kb, threads, mhz, gb_per_s, mma, s8, fp4},
#include "devices.def"
#undef DEVICE
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* Whether a device has these words in its name, in order: "Jetson Nano". */
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

/* The device with the words in its name, if every other such device's name contains the whole name of it: "agx orin" is
 * the Jetson AGX Orin, not the Jetson AGX Orin 32GB. ROWS: none. */
static size_t find_row(const char *name)
{
    for (size_t i = 0; i < ROWS; i++) {
        bool is_one = is_called(rows[i].name, name);
        for (size_t k = 0; k < ROWS && is_one; k++)
            is_one = !is_called(rows[k].name, name) || is_called(rows[k].name, rows[i].name);
        if (is_one)
            return i;
    }
    return ROWS;
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
            .mma_s8_cycles = rows[i].s8,
            .mma_fp4_cycles = rows[i].fp4,
        };
        return rows[i].name;
    }
    return NULL;
}

uint32_t device_mhz(const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].mhz;
    return 0;
}

const char *device_names(arena *a, const char *name)
{
    text out = text_new(a);
    for (size_t i = 0; i < ROWS; i++)
        if (!name || is_called(rows[i].name, name))
            text_printf(&out, "%s%s", out.length ? ", " : "", rows[i].name);
    return out.data;
}
