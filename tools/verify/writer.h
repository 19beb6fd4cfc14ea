/* The launch in front of a kernel, which writes what the kernel reads. */
#ifndef VERIFY_WRITER_H
#define VERIFY_WRITER_H

#include "buffers.h"

enum { WRITER_MOST_BUFFERS = 64 };

/* Whether this kernel is launched so that it may begin before the launch in front of it has ended. */
bool writer_is_needed(const device *d, const kiln_kernel *kernel);

/* Launches a kernel that writes the buffers that are made, which holds for at most WRITER_MOST_BUFFERS of them, for the next launch to wait
 * for. It lets that one begin at once, and writes later. Without such buffers nothing is launched. A result of the driver. */
int writer_launch(device *d, const device_buffer *buffers, size_t count);

#endif
