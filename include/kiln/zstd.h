/* The codec of bundles with `compress: zstd`: libkiln_zstd.a, and behind it libzstd.a. Generated code alone names it. */
#ifndef KILN_ZSTD_H
#define KILN_ZSTD_H

#include <kiln/bundle.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a bundle's scratch has for libzstd's context, beside its largest image. libzstd 1.5.4 takes 95,992 bytes; the rest
 * is room for other versions, as the one that decodes need not be the one that packed. */
#define KILN_ZSTD_CONTEXT_BYTES (160 * 1024)

/* A kiln_codec of Zstandard frames (RFC 8878): the image is one frame, with its size and its checksum. It allocates
 * nothing. CORRUPT_IMAGE for anything else; SCRATCH_TOO_SMALL. Stack: at most 2048 bytes (x86-64, libzstd 1.5.4), beside
 * what kiln.h states. */
kiln_status kiln_zstd(const kiln_image *image, void *scratch, size_t scratch_bytes);

#ifdef __cplusplus
}
#endif

#endif
