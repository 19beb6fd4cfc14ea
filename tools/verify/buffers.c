/* The arrays of an execution in a device's memory. */
#include "buffers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 512, GUARD_VALUE = 0xC5 };

/* Poison for a kernel that reads before it waits: NaN, or an index far out of bounds. */
enum { NOT_MADE_YET = 0xFF };

/* Kept between executions: there are a million short ones, and an allocation for each would take longer than the
 * run. */
enum { ARENA_BYTES = 64 << 20 };

/* Alignment of allocations: 256 bytes (CUDA programming guide), and the emulated driver's pages. */
enum { DRIVER_ALIGNMENT = 256, EMULATED_ALIGNMENT = 4096 };

/* `multiple` is a power of two. */
static size_t round_up(size_t bytes, size_t multiple)
{
    return (bytes + multiple - 1) & ~(multiple - 1);
}

/* ---- an emulated device --------------------------------------------------------------------------------------------- */

static int allocate_apart(device *d, device_buffer *b)
{
    const size_t room = b->alignment > EMULATED_ALIGNMENT ? b->alignment : 0;
    const size_t total = b->shift + room + b->bytes;
    const int result = d->driver.mem_alloc(&b->base, total ? total : 1);
    b->address = b->made_from = round_up((size_t)b->base, b->alignment) + b->shift;
    return result;
}

/* ---- others --------------------------------------------------------------------------------------------------------- */

/* Returns the offset after the buffer, in a piece that begins at `base`. */
static size_t lay_out(device_buffer *b, CUdeviceptr base, size_t offset)
{
    b->first = offset;
    b->start = round_up((size_t)base + offset + GUARD_BYTES, b->alignment) - (size_t)base + b->shift;
    b->staged = b->start + b->bytes + GUARD_BYTES;
    b->end = round_up(b->is_made ? b->staged + b->bytes + GUARD_BYTES : b->staged, DRIVER_ALIGNMENT);
    b->address = base + b->start;
    b->made_from = base + b->staged;
    return b->end;
}

static size_t lay_out_all(device_buffer *buffers, size_t count, CUdeviceptr base)
{
    size_t offset = 0;
    for (size_t i = 0; i < count; i++)
        if (buffers[i].is_used)
            offset = lay_out(&buffers[i], base, offset);
    return offset;
}

/* Returns a size that suffices wherever the piece begins. */
static size_t bytes_of_all(device_buffer *buffers, size_t count)
{
    size_t most = 0;
    for (size_t i = 0; i < count; i++)
        if (buffers[i].is_used && buffers[i].alignment > most)
            most = buffers[i].alignment;
    return lay_out_all(buffers, count, 0) + most * count;
}

static int open_piece(device *d, size_t bytes)
{
    if (bytes > d->image_room) {
        free(d->image);
        d->image_room = bytes + bytes / 4;
        d->image = malloc(d->image_room);
    }
    if (!d->image) {
        fprintf(stderr, "kiln-verify: out of memory (%zu bytes)\n", d->image_room);
        exit(3);
    }
    if (bytes > ARENA_BYTES)
        return d->driver.mem_alloc(&d->piece, bytes);
    const int result = d->arena ? 0 : d->driver.mem_alloc(&d->arena, ARENA_BYTES);
    d->piece = d->arena;
    return result;
}

static int allocate_together(device *d, device_buffer *buffers, size_t count)
{
    const int result = open_piece(d, bytes_of_all(buffers, count));
    if (result != 0)
        return result;
    d->image_bytes = lay_out_all(buffers, count, d->piece);
    memset(d->image, GUARD_VALUE, d->image_bytes);
    return 0;
}

static bool is_guard(const unsigned char *bytes, size_t count)
{
    return count == 0 || (bytes[0] == GUARD_VALUE && memcmp(bytes, bytes + 1, count - 1) == 0);
}

/* ---- all ------------------------------------------------------------------------------------------------------------ */

int buffers_allocate(device *d, device_buffer *buffers, size_t count)
{
    int result = 0;
    if (!d->is_emulated)
        return allocate_together(d, buffers, count);
    for (size_t i = 0; result == 0 && i < count; i++)
        if (buffers[i].is_used)
            result = allocate_apart(d, &buffers[i]);
    return result;
}

int buffers_write(device *d, const device_buffer *b, const void *from)
{
    if (b->bytes == 0)
        return 0;
    if (d->is_emulated)
        return d->driver.memcpy_htod(b->address, from, b->bytes);
    if (b->is_made)
        memset(d->image + b->start, NOT_MADE_YET, b->bytes);
    memcpy(d->image + (b->is_made ? b->staged : b->start), from, b->bytes);
    return 0;
}

int buffers_fill(device *d, const device_buffer *b, unsigned char value)
{
    if (d->is_emulated)
        return b->bytes ? d->driver.memset_d8(b->address, value, b->bytes) : 0;
    memset(d->image + b->start, value, b->bytes);
    return 0;
}

int buffers_send(device *d)
{
    return d->image_bytes ? d->driver.memcpy_htod(d->piece, d->image, d->image_bytes) : 0;
}

int buffers_receive(device *d)
{
    return d->image_bytes ? d->driver.memcpy_dtoh(d->image, d->piece, d->image_bytes) : 0;
}

int buffers_read(device *d, const device_buffer *b, void *to, bool *intact)
{
    *intact = true;
    if (d->is_emulated)
        return b->bytes ? d->driver.memcpy_dtoh(to, b->address, b->bytes) : 0;
    const size_t end = b->start + b->bytes, copied = b->is_made ? b->bytes : 0;
    *intact = is_guard(d->image + b->first, b->start - b->first) &&
              is_guard(d->image + end, b->staged - end) &&
              is_guard(d->image + b->staged + copied, b->end - b->staged - copied);
    memcpy(to, d->image + b->start, b->bytes);
    return 0;
}

void buffers_free(device *d, device_buffer *buffers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (buffers[i].base)
            d->driver.mem_free(buffers[i].base);
    if (d->piece && d->piece != d->arena)
        d->driver.mem_free(d->piece);
    d->piece = 0;
    d->image_bytes = 0;
}
