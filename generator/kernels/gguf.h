/* Shared by families over GGUF's formats: the parameter `format`, and the sizes of its blocks as expressions. */
#ifndef KERNELS_GGUF_H
#define KERNELS_GGUF_H

#include "descriptor.h"
#include "device/format.h"

#define GGUF_PARAM(what)                                                                                     \
    PARAM(WORD, CONTRACT, "format", FORMAT_WORDS, "q4_k", what, .numbers = "1 2 3 4 5 6 7 8 9 10 11 12 13 14")

/* Bytes of 256 elements, eight blocks in formats with blocks of 32; and elements of a block. Verification compares them with
 * device/format.c. kiln_number cannot set them, since Python and kiln-verify compute sizes of arrays before a variant is chosen. */
/* clang-format off */
#define GGUF_BYTES                                                        \
    "select(format == q4_0 || format == q4_k || format == iq4_nl, 144, "  \
    "select(format == iq4_xs || format == mxfp4, 136, "                   \
    "select(format == q5_0 || format == q5_k, 176, "                      \
    "select(format == q8_0, 272, "                                        \
    "select(format == q6_k, 210, "                                        \
    "select(format == q4_1, 160, "                                        \
    "select(format == q5_1, 192, "                                        \
    "select(format == q3_k, 110, "                                        \
    "select(format == q2_k, 84, "                                         \
    "66)))))))))" /* tq2_0 */
/* clang-format on */
#define GGUF_ELEMENTS                                                                                        \
    "select(format == q2_k || format == q3_k || format == q4_k || format == q5_k || format == q6_k || "      \
    "format == iq4_xs || format == tq2_0, 256, 32)"

static inline const weight_format *gguf_format(const kiln_variant *v)
{
    uint32_t i = 0;
    while (!kiln_is(v, "format", format_at(i)->name))
        i++;
    return format_at(i);
}

#endif
