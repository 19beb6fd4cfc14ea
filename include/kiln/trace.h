/* For launch hooks (kiln_options.launch_hook in kiln.h): the integers of a launch by name, and one line of text.
 *
 *     static void print(void *context, const kiln_launch_event *event)
 *     {
 *         char line[512];
 *         (void)context;
 *         if (!event->is_after && kiln_describe_launch(event, line, sizeof line))
 *             puts(line); // axpy n=1000 grid 4 block 256 shared 0 axpy/type=f32
 *     }
 *
 * Strides of arrays are left out. These functions are in the program that includes this header, not in the runtime. They call
 * nothing but snprintf, strlen, memcpy and memcmp.
 */
#ifndef KILN_TRACE_H
#define KILN_TRACE_H

#include <stdio.h>
#include <string.h>

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An integer that a launch passes. */
typedef struct kiln_size {
    const char *name; /* as in NAME.json: "m", "pages_size"; name_bytes of it, without a NUL */
    int name_bytes;
    int is_signed;
    uint64_t value; /* a signed one is extended to 64 bits */
} kiln_size;

/* Reads one size and returns where the next one is, or null after the last. `at` is event->kernel->sizes (null: the kernel
 * takes no integers), then what the previous call returned. */
static inline const char *kiln_next_size(const kiln_launch_event *event, const char *at, kiln_size *size)
{
    uint32_t param = 0, bits = 0;
    for (; *at != ':'; at++)
        param = 10 * param + (uint32_t)(*at - '0');
    size->name = at + 1;
    size->name_bytes = (int)strcspn(size->name, ":");
    at = size->name + size->name_bytes + 1;
    size->is_signed = *at == 's';
    for (at++; *at >= '0' && *at <= '9'; at++)
        bits = 10 * bits + (uint32_t)(*at - '0');
    size->value = 0;
    memcpy(&size->value, event->params[param], bits / 8); /* every host with CUDA is little-endian */
    const uint64_t sign = (uint64_t)size->is_signed << (bits - 1);
    size->value = (size->value ^ sign) - sign;
    return *at == ' ' ? at + 1 : NULL;
}

/* Gives a size by its name. Returns 1, or 0 if the kernel does not take it: then *value stays as it is. */
static inline int kiln_find_size(const kiln_launch_event *event, const char *name, uint64_t *value)
{
    kiln_size size;
    for (const char *at = event->kernel->sizes; at != NULL;) {
        at = kiln_next_size(event, at, &size);
        if (strlen(name) == (size_t)size.name_bytes && memcmp(name, size.name, strlen(name)) == 0) {
            *value = size.value;
            return 1;
        }
    }
    return 0;
}

/* Writes the launch as one line, NUL-terminated and cut to `bytes`: the family, the sizes, the grid and the block without
 * trailing ones ("4x2"), the bytes of dynamic shared memory and the variant's id; after a launch that failed also the driver's
 * result. Returns the length of the whole line without its NUL, as snprintf does. */
static inline size_t kiln_describe_launch(const kiln_launch_event *event, char *text, size_t bytes)
{
    const char *id = event->kernel->id;
    size_t length = 0;
    kiln_size size;
    if (text == NULL)
        bytes = 0;
#define KILN_ADD(...)                                                                                        \
    (length += (size_t)snprintf(length < bytes ? text + length : NULL, length < bytes ? bytes - length : 0,  \
                                __VA_ARGS__))
    KILN_ADD("%.*s", (int)strcspn(id, "/"), id);
    for (const char *at = event->kernel->sizes; at != NULL;) {
        at = kiln_next_size(event, at, &size);
        KILN_ADD(size.is_signed ? " %.*s=%lld" : " %.*s=%llu", size.name_bytes, size.name,
                 (unsigned long long)size.value);
    }
    const uint64_t *grid = event->grid;
    const uint32_t *block = event->block;
    const char *const formats[] = {" %s %llu", " %s %llux%llu", " %s %llux%llux%llu"};
    KILN_ADD(formats[grid[2] != 1 ? 2 : grid[1] != 1], "grid", (unsigned long long)grid[0],
             (unsigned long long)grid[1], (unsigned long long)grid[2]);
    KILN_ADD(formats[block[2] != 1 ? 2 : block[1] != 1], "block", (unsigned long long)block[0],
             (unsigned long long)block[1], (unsigned long long)block[2]);
    KILN_ADD(" shared %lu %s", (unsigned long)event->shared_bytes, id);
    if (event->driver_result != 0)
        KILN_ADD(": driver result %d", event->driver_result);
#undef KILN_ADD
    return length;
}

#ifdef __cplusplus
}
#endif

#endif
