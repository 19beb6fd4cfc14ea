/* The arrays of an execution in a device's memory. */
#ifndef VERIFY_BUFFERS_H
#define VERIFY_BUFFERS_H

#include "device.h"

/* The caller fills in the first members. `bytes` may be 0: the address is then valid and nothing may be
 * accessed there. The address lies `shift` bytes after a multiple of `alignment`, a power of two of at least
 * 2; these `shift` bytes must not be accessed. */
typedef struct device_buffer {
    bool is_used;
    bool is_made; /* the preceding launch writes it: writer.h */
    size_t bytes, alignment, shift;
    CUdeviceptr address;   /* this and the rest: set by buffers_allocate */
    CUdeviceptr made_from; /* copied from here by the preceding launch */
    CUdeviceptr base;      /* its own allocation, on an emulated device */
    size_t first, start, staged,
        end; /* otherwise offsets in the image: start of its room, buffer, copy, end of the room */
} device_buffer;

/* On an emulated device, which checks bounds itself, each buffer is a separate allocation of exactly its size. On
 * other devices all buffers lie in one allocation, separated by guard bytes, and each copy moves all of them at once:
 * buffers_write and buffers_fill change an image on the host, buffers_read reads the image. One set at a time.
 *
 * All return a result of the driver; 0 is success. */
int buffers_allocate(device *d, device_buffer *buffers, size_t count);
int buffers_write(device *d, const device_buffer *b, const void *from);
int buffers_fill(device *d, const device_buffer *b, unsigned char value);
int buffers_send(device *d);
int buffers_receive(device *d);
/* Sets `intact`: the guard bytes around the buffer are unchanged. */
int buffers_read(device *d, const device_buffer *b, void *to, bool *intact);
void buffers_free(device *d, device_buffer *buffers, size_t count);

#endif
