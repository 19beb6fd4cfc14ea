/* The CRC-32 of zlib, ISO 3309: what Python's binascii.crc32 gives of the same bytes. */
#ifndef BUNDLE_CRC32_H
#define BUNDLE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Of what gave `crc`, 0 to begin with, and these bytes behind. */
uint32_t crc32_add(uint32_t crc, const char *data, size_t bytes);

#endif
