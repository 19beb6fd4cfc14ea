/* What kiln-verify knows about a kernel family beyond the manifest: a reference, difficult inputs, relevant sizes.
 * One file per family. Shares nothing with the generator: tables and formulas are derived anew from the contract. */
#ifndef VERIFY_FAMILIES_H
#define VERIFY_FAMILIES_H

#include "../problem.h"
#include "../random.h"
#include "../sizes.h"

enum {
    PATTERN_RANDOM = KILN_PATTERN_RANDOM, /* random data: bounds hold with sqrt(L) for L */
    PATTERN_LARGE = KILN_PATTERN_LARGE,
    PATTERN_NONFINITE = KILN_PATTERN_NONFINITE
};

/* The same type for kiln's own families and for registered ones. */
typedef kiln_pattern input_pattern;
typedef kiln_reference family_row;

/* Kiln's own families with a reference. */
#define VERIFY_FAMILIES(ROW)                                                                                 \
    ROW(int4_scale)                                                                                          \
    ROW(int4_pack)                                                                                           \
    ROW(int4_quantize)                                                                                       \
    ROW(int4_unpack)                                                                                         \
    ROW(nf4_scale)                                                                                           \
    ROW(nf4_pack)                                                                                            \
    ROW(nf4_quantize)                                                                                        \
    ROW(nf4_unpack)                                                                                          \
    ROW(nf4_gemm)                                                                                            \
    ROW(nf4_gemm_transposed)                                                                                 \
    ROW(gguf_dequantize)                                                                                     \
    ROW(gguf_rows)                                                                                           \
    ROW(q4k_dequantize)                                                                                      \
    ROW(rmsnorm_q4k_gemv)                                                                                    \
    ROW(linear)                                                                                              \
    ROW(nvfp4_gemv)                                                                                          \
    ROW(fp4_gemm)                                                                                            \
    ROW(fp4_quantize)                                                                                        \
    ROW(q8_quantize)                                                                                         \
    ROW(rope)                                                                                                \
    ROW(attention)

#define VERIFY_DECLARE_ROW(name) extern const family_row name##_row;
VERIFY_FAMILIES(VERIFY_DECLARE_ROW)

/* Returns kiln's own reference, or one of KILN_REFERENCE; null: there is none. */
const family_row *family_find(const char *name);

/* Returns the i-th reference of KILN_REFERENCE, null after the last. */
const family_row *family_registered(size_t i);

/* Returns kiln's own reference; null: there is none. */
const family_row *family_find_own(const char *name);

/* Returns the row's patterns; if it is null or has none, those for an unknown kernel. */
const input_pattern *family_patterns(const family_row *row);

/* Random values of each type, for a kernel without a reference. */
extern const input_pattern generic_patterns[];
void generic_make(problem *p, const input_pattern *pattern, random_stream s);

#endif
