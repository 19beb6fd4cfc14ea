/* The codec of bundles with `compress: zstd`: link libkiln_zstd.a, then libzstd.a. Only generated code refers to it. */
#ifndef KILN_ZSTD_H
#define KILN_ZSTD_H

#include <kiln/bundle.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The scratch bytes for libzstd's context, in addition to the largest image. libzstd 1.5.4 takes 95,992 bytes; the rest
 * is for other versions, since the decoder's version may differ from the packer's. */
#define KILN_ZSTD_CONTEXT_BYTES (160 * 1024)

/* Decodes Zstandard frames (RFC 8878), as a kiln_codec: the image is one frame, with its size and its checksum. It
 * allocates nothing. CORRUPT_IMAGE for anything else; SCRATCH_TOO_SMALL. Stack: at most 2048 bytes (x86-64, libzstd
 * 1.5.4), in addition to kiln.h's. */
kiln_status kiln_zstd(const kiln_image *image, void *scratch, size_t scratch_bytes);

#ifdef __cplusplus
}
#endif

#endif
