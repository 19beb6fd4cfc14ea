/* The CRC-32 of zlib (ISO 3309), as computed by Python's binascii.crc32. */
#ifndef BUNDLE_CRC32_H
#define BUNDLE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc`, 0 at first, with more bytes. */
uint32_t crc32_add(uint32_t crc, const char *data, size_t bytes);

#endif
