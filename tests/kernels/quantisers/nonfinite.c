/* Quantises NaNs, infinities, and numbers whose range or quotient overflows, and converts them back. The expected results follow
 * the rules of `kiln families` by hand. Groups of 64, in a tail and in a full tile, fused and step by step.
 *
 *     quantisers_nonfinite DRIVER
 */
#include <math.h>

#include "../../calls.h"

#include "sample.h"

enum { GROUP = 64, FEW = 3, FULL_TILE = 512 };

typedef enum coder { SYM, ASYM, NF4 } coder;

#define LEAST 1e-12f

/* A group: its first elements, the value of all others, and the results. */
typedef struct row {
    const char *name;
    coder coder;
    float few[FEW], rest;
    float scale, zero;
    unsigned few_codes[FEW], rest_code;
    float few_values[FEW], rest_value; /* unpacked */
} row;

/* clang-format off */
static const row rows[] = {
    /* name                  coder  elements                           scale        zero       codes          values */
    {"a NaN",                SYM,   {NAN, 7, -3.5f},            0,     1,           0,         {0, 15, 4}, 8,  {-8, 7, -4}, 0},
    {"a NaN",                ASYM,  {NAN, 15, 2.5f},            0,     1,           0,         {0, 15, 2}, 0,  {0, 15, 2}, 0},
    {"a NaN",                NF4,   {NAN, 2, -2},               0,     2,           0,         {0, 15, 0}, 7,  {-2, 2, -2}, 0},
    {"NaNs alone",           SYM,   {NAN, NAN, NAN},            NAN,   LEAST / 7,   0,         {0, 0, 0},  0,
     {-8 * (LEAST / 7), -8 * (LEAST / 7), -8 * (LEAST / 7)}, -8 * (LEAST / 7)},
    {"NaNs alone",           ASYM,  {NAN, NAN, NAN},            NAN,   LEAST / 15,  NAN,       {0, 0, 0},  0,  {NAN, NAN, NAN}, NAN},
    {"NaNs alone",           NF4,   {NAN, NAN, NAN},            NAN,   LEAST,       0,         {0, 0, 0},  0,
     {-LEAST, -LEAST, -LEAST}, -LEAST},
    {"infinities",           SYM,   {INFINITY, -INFINITY, 5},   -1,    INFINITY,    0,         {0, 0, 8},  8,
     {-INFINITY, -INFINITY, NAN}, NAN},
    {"infinities",           NF4,   {INFINITY, -INFINITY, 5},   -1,    INFINITY,    0,         {0, 0, 7},  7,
     {-INFINITY, -INFINITY, NAN}, NAN},
    {"infinities",           ASYM,  {INFINITY, -INFINITY, 5},   -1,    INFINITY,    NAN,       {0, 0, 0},  0,  {NAN, NAN, NAN}, NAN},
    {"infinity",             ASYM,  {INFINITY, 5, 0},           1,     INFINITY,    0,         {0, 0, 0},  0,  {NAN, NAN, NAN}, NAN},
    {"minus infinity",       ASYM,  {-INFINITY, 5, 0},          1,     INFINITY,    NAN,       {0, 0, 0},  0,  {NAN, NAN, NAN}, NAN},
    {"infinity alone",       SYM,   {INFINITY, INFINITY, INFINITY}, INFINITY, INFINITY, 0,     {0, 0, 0},  0,
     {-INFINITY, -INFINITY, -INFINITY}, -INFINITY},
    {"infinity alone",       NF4,   {INFINITY, INFINITY, INFINITY}, INFINITY, INFINITY, 0,     {0, 0, 0},  0,
     {-INFINITY, -INFINITY, -INFINITY}, -INFINITY},
    {"infinity alone",       ASYM,  {INFINITY, INFINITY, INFINITY}, INFINITY, LEAST / 15, -INFINITY, {0, 0, 0}, 0,
     {INFINITY, INFINITY, INFINITY}, INFINITY},
    {"minus infinity alone", ASYM,  {-INFINITY, -INFINITY, -INFINITY}, -INFINITY, LEAST / 15, INFINITY, {0, 0, 0}, 0,
     {-INFINITY, -INFINITY, -INFINITY}, -INFINITY},
    {"infinity and NaNs",    ASYM,  {NAN, INFINITY, NAN},       INFINITY, LEAST / 15, -INFINITY, {0, 0, 0}, 0,
     {INFINITY, INFINITY, INFINITY}, INFINITY},
    {"a range too large",    ASYM,  {3e38f, -3e38f, 5},         0,     INFINITY,    0,         {0, 0, 0},  0,  {NAN, NAN, NAN}, NAN},
    {"a quotient too large", ASYM,  {1e30f, 1e30f, 1e30f},      1e30f, LEAST / 15, -INFINITY,  {0, 0, 0},  0,
     {INFINITY, INFINITY, INFINITY}, INFINITY},
    {"as far as it goes",    ASYM,  {1e25f, -1e25f, 0},         0,     2e25f / 15,  7.5f,      {15, 0, 8}, 8,
     {7.5f * (2e25f / 15), -7.5f * (2e25f / 15), 0.5f * (2e25f / 15)}, 0.5f * (2e25f / 15)},
};
/* clang-format on */

static CUdeviceptr in, scale, zero, packed, out;

static void quantize(const row *r, uint64_t n, bool is_fused)
{
    uint32_t mode = r->coder == ASYM ? SAMPLE_INT4_PACK_MODE_ASYM : SAMPLE_INT4_PACK_MODE_SYM;
    kiln_status status[2] = {KILN_OK, KILN_OK};
    if (r->coder == NF4 && is_fused) {
        status[0] = sample_nf4_quantize(
            &loader, NULL, &(sample_nf4_quantize_args){.in = in, .scale = scale, .packed = packed, .n = n});
    } else if (r->coder == NF4) {
        status[0] =
            sample_nf4_scale(&loader, NULL, &(sample_nf4_scale_args){.in = in, .scale = scale, .n = n});
        status[1] = sample_nf4_pack(
            &loader, NULL, &(sample_nf4_pack_args){.in = in, .scale = scale, .packed = packed, .n = n});
    } else if (is_fused) {
        status[0] = sample_int4_quantize(
            &loader, NULL,
            &(sample_int4_quantize_args){
                .in = in, .scale = scale, .zero = zero, .packed = packed, .n = n, .mode = mode});
    } else {
        status[0] = sample_int4_scale(
            &loader, NULL,
            &(sample_int4_scale_args){.in = in, .scale = scale, .zero = zero, .n = n, .mode = mode});
        status[1] = sample_int4_pack(
            &loader, NULL,
            &(sample_int4_pack_args){
                .in = in, .scale = scale, .zero = zero, .packed = packed, .n = n, .mode = mode});
    }
    need(status[0] == KILN_OK && status[1] == KILN_OK, "a launch");
}

static void unpack(const row *r, uint64_t n)
{
    kiln_status status;
    if (r->coder == NF4)
        status = sample_nf4_unpack(
            &loader, NULL, &(sample_nf4_unpack_args){.packed = packed, .scale = scale, .out = out, .n = n});
    else
        status = sample_int4_unpack(&loader, NULL,
                                    &(sample_int4_unpack_args){.packed = packed,
                                                               .scale = scale,
                                                               .zero = zero,
                                                               .out = out,
                                                               .n = n,
                                                               .mode = r->coder == ASYM
                                                                           ? SAMPLE_INT4_UNPACK_MODE_ASYM
                                                                           : SAMPLE_INT4_UNPACK_MODE_SYM});
    need(status == KILN_OK, "unpack");
}

static bool is_same(float a, float b)
{
    return isnan(b) ? isnan(a) : a == b;
}

static bool is_right(const row *r, uint64_t n)
{
    float scales[FULL_TILE / GROUP], zeros[FULL_TILE / GROUP] = {0};
    unsigned char bytes[FULL_TILE / 2];
    download(scales, scale, n / GROUP * sizeof(float));
    download(bytes, packed, n / 2);
    if (r->coder == ASYM)
        download(zeros, zero, n / GROUP * sizeof(float));
    for (uint64_t g = 0; g < n / GROUP; g++) {
        if (!is_same(scales[g], r->scale) || !is_same(zeros[g], r->zero)) {
            printf("scale %g, expected %g; zero %g, expected %g; ", (double)scales[g], (double)r->scale,
                   (double)zeros[g], (double)r->zero);
            return false;
        }
    }
    for (uint64_t i = 0; i < n; i++) {
        unsigned code = bytes[i / 2] >> (i % 2 ? 4 : 0) & 15;
        unsigned expected = i % GROUP < FEW ? r->few_codes[i % GROUP] : r->rest_code;
        if (code != expected) {
            printf("code %llu is %u, expected %u; ", (unsigned long long)i, code, expected);
            return false;
        }
    }
    return true;
}

static bool comes_back(const row *r, uint64_t n)
{
    float values[FULL_TILE];
    unpack(r, n);
    download(values, out, n * sizeof(float));
    for (uint64_t i = 0; i < n; i++) {
        const float expected = i % GROUP < FEW ? r->few_values[i % GROUP] : r->rest_value;
        if (!is_same(values[i], expected)) {
            printf("value %llu is %g, expected %g; ", (unsigned long long)i, (double)values[i],
                   (double)expected);
            return false;
        }
    }
    return true;
}

static bool try_row(const row *r, uint64_t n, bool is_fused)
{
    static const char *const coders[] = {"int4 sym", "int4 asym", "nf4"};
    float elements[FULL_TILE];
    for (uint64_t i = 0; i < n; i++)
        elements[i] = i % GROUP < FEW ? r->few[i % GROUP] : r->rest;
    upload_to(in, elements, n * sizeof(float));
    quantize(r, n, is_fused);
    if (is_right(r, n) && comes_back(r, n))
        return true;
    printf("WRONG %s, %s, n=%llu, %s\n", coders[r->coder], r->name, (unsigned long long)n,
           is_fused ? "fused" : "step by step");
    return false;
}

int main(int argc, char **argv)
{
    enum { ROWS = sizeof rows / sizeof rows[0] };
    unsigned right = 0;
    if (argc != 2)
        return 2;
    open_device(argv[1], &sample_bundle);
    in = allocate(FULL_TILE * sizeof(float));
    scale = allocate(FULL_TILE / GROUP * sizeof(float));
    zero = allocate(FULL_TILE / GROUP * sizeof(float));
    packed = allocate(FULL_TILE / 2);
    out = allocate(FULL_TILE * sizeof(float));
    for (size_t i = 0; i < ROWS; i++) {
        for (int way = 0; way < 4; way++)
            right += try_row(&rows[i], way & 1 ? FULL_TILE : GROUP, way & 2);
    }
    printf("%u of %u right\n", right, 4 * ROWS);
    return kiln_close(&loader) != KILN_OK || right != 4 * ROWS;
}
