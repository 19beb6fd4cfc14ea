/* Shared by families over GGUF's formats: the parameter `format`, and the sizes of its blocks as expressions. */
#ifndef KERNELS_GGUF_H
#define KERNELS_GGUF_H

#include "descriptor.h"
#include "device/format.h"

#define GGUF_PARAM(what)                                                                                     \
    PARAM(WORD, CONTRACT, "format", FORMAT_WORDS, "q4_k", what, .numbers = FORMAT_NUMBERS)

/* Bytes of 256 elements, and elements of a block. kiln_number cannot set them, since Python and kiln-verify compute sizes of
 * arrays before a variant is chosen. */
#define GGUF_BYTES_OF(name, number, elements, bytes)    "(format == " #name ") * " #bytes
#define GGUF_BYTES_NEXT(...)                            " + " GGUF_BYTES_OF(__VA_ARGS__)
#define GGUF_BYTES                                      "(" GGUF_FORMATS(GGUF_BYTES_OF, GGUF_BYTES_NEXT) ")"
#define GGUF_ELEMENTS_OF(name, number, elements, bytes) "(format == " #name ") * " #elements
#define GGUF_ELEMENTS_NEXT(...)                         " + " GGUF_ELEMENTS_OF(__VA_ARGS__)
#define GGUF_ELEMENTS                                   "(" GGUF_FORMATS(GGUF_ELEMENTS_OF, GGUF_ELEMENTS_NEXT) ")"

static inline const weight_format *gguf_format(const kiln_variant *v)
{
    return format_at(kiln_word_index(v, "format"));
}

#endif
