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
 * Strides of arrays are omitted. The functions are static inline and not in the runtime library. They call only
 * functions of string.h, so real-time threads may call them.
 */
#ifndef KILN_TRACE_H
#define KILN_TRACE_H

#include <string.h>

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An integer that a launch passes. */
typedef struct kiln_size {
    const char *name; /* as in NAME.json: "m", "pages_size"; name_bytes long, without a NUL */
    int name_bytes;
    int is_signed;
    uint64_t value; /* signed values are sign-extended to 64 bits */
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

/* Finds a size by its name. Returns 1, or 0 if the kernel does not take it: then *value is unchanged. */
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

/* Counts all bytes of a line and keeps those that fit; private. */
typedef struct kiln_line {
    char *text;
    size_t bytes, length;
} kiln_line;

static inline void kiln_add_bytes(kiln_line *line, const char *text, size_t bytes)
{
    for (; bytes > 0; bytes--, text++, line->length++)
        if (line->length < line->bytes)
            line->text[line->length] = *text;
}

static inline void kiln_add_number(kiln_line *line, const char *before, uint64_t number, int is_signed)
{
    char digits[20];
    size_t at = sizeof digits;
    const int is_negative = is_signed && number >> 63 != 0;
    if (is_negative)
        number = 0 - number;
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    kiln_add_bytes(line, before, strlen(before));
    kiln_add_bytes(line, "-", (size_t)is_negative);
    kiln_add_bytes(line, digits + at, sizeof digits - at);
}

static inline void kiln_add_three(kiln_line *line, const char *before, uint64_t x, uint64_t y, uint64_t z)
{
    kiln_add_number(line, before, x, 0);
    if (y != 1 || z != 1)
        kiln_add_number(line, "x", y, 0);
    if (z != 1)
        kiln_add_number(line, "x", z, 0);
}

/* Writes the launch as one line, NUL-terminated and truncated to `bytes`: the family, the sizes, the grid and the block
 * without trailing ones ("4x2"), the bytes of dynamic shared memory and the variant's id; after a failed launch also
 * the driver's result. Returns the length of the whole line without its NUL, as snprintf does. */
static inline size_t kiln_describe_launch(const kiln_launch_event *event, char *text, size_t bytes)
{
    const char *id = event->kernel->id;
    const uint64_t *grid = event->grid;
    const uint32_t *block = event->block;
    kiln_line line = {text, text != NULL ? bytes : 0, 0};
    kiln_size size;
    kiln_add_bytes(&line, id, strcspn(id, "/"));
    for (const char *at = event->kernel->sizes; at != NULL;) {
        at = kiln_next_size(event, at, &size);
        kiln_add_bytes(&line, " ", 1);
        kiln_add_bytes(&line, size.name, (size_t)size.name_bytes);
        kiln_add_number(&line, "=", size.value, size.is_signed);
    }
    kiln_add_three(&line, " grid ", grid[0], grid[1], grid[2]);
    kiln_add_three(&line, " block ", block[0], block[1], block[2]);
    kiln_add_number(&line, " shared ", event->shared_bytes, 0);
    kiln_add_bytes(&line, " ", 1);
    kiln_add_bytes(&line, id, strlen(id));
    if (event->driver_result != 0)
        kiln_add_number(&line, ": driver result ", (uint64_t)(int64_t)event->driver_result, 1);
    if (line.bytes > 0)
        text[line.length < line.bytes ? line.length : line.bytes - 1] = '\0';
    return line.length;
}

#ifdef __cplusplus
}
#endif

#endif
