/* The arrays of an execution in a device's memory. */
#ifndef VERIFY_BUFFERS_H
#define VERIFY_BUFFERS_H

#include "device.h"

/* First what the caller asks for. `bytes` may be 0: the address is then valid and nothing may be accessed there. The address
 * lies `shift` bytes, which nobody may touch, behind a multiple of `alignment`, a power of two from 2 on. */
typedef struct device_buffer {
    bool is_used;
    bool is_made; /* the launch in front of the kernel writes it: writer.h */
    size_t bytes, alignment, shift;
    CUdeviceptr address;   /* from here on set by buffers_allocate */
    CUdeviceptr made_from; /* where that launch reads what it writes */
    CUdeviceptr base;      /* of its own memory, on an emulated device */
    size_t first, start, staged,
        end; /* else places in the image: of its room, itself, its copy, the next one's room */
} device_buffer;

/* On an emulated device, which checks bounds by itself, each buffer is exact, and has memory of its own. On others all lie in one
 * piece, between guards, and its image on the host goes there and back in one copy each: buffers_write and _fill change the
 * image, buffers_read looks into it. One set at a time.
 *
 * All return a result of the driver; 0 is success. */
int buffers_allocate(device *d, device_buffer *buffers, size_t count);
int buffers_write(device *d, const device_buffer *b, const void *from);
int buffers_fill(device *d, const device_buffer *b, unsigned char value);
int buffers_send(device *d);
int buffers_receive(device *d);
/* `intact` gets whether what lies around the buffer is as it was. */
int buffers_read(device *d, const device_buffer *b, void *to, bool *intact);
void buffers_free(device *d, device_buffer *buffers, size_t count);

#endif
