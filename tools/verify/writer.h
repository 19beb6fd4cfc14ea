/* The launch before a kernel, which writes the kernel's inputs. */
#ifndef VERIFY_WRITER_H
#define VERIFY_WRITER_H

#include "buffers.h"

enum { WRITER_MOST_BUFFERS = 64 };

/* Returns whether this kernel is launched so that it may begin before the preceding launch has ended. */
bool writer_is_needed(const device *d, const kiln_kernel *kernel);

/* Launches a kernel that writes the buffers with is_made, at most WRITER_MOST_BUFFERS. It lets the next
 * launch begin at once and writes later. Launches nothing if there are no such buffers. Returns the driver's
 * result. */
int writer_launch(device *d, const device_buffer *buffers, size_t count);

#endif
