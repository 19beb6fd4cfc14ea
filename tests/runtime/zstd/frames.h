/* Frames as the generator writes them. */
#ifndef FRAMES_H
#define FRAMES_H

#include <kiln/zstd.h>

/* Packs a text as one frame into `frame`: with its size, and with its checksum unless that is left out. Its bytes. */
size_t pack(void *frame, size_t capacity, const void *text, size_t bytes, int has_checksum);

/* The scratch of a bundle whose largest image has so many bytes. */
#define SCRATCH_BYTES(bytes) (KILN_ZSTD_CONTEXT_BYTES + ((bytes) | 15) + 1)

#endif
