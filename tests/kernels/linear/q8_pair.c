/* Quantises x with q8_quantize, multiplies its codes with linear, and compares with the float64 product of x: each type and norm
 * with every format. The bound is linear's with activation q8. One row of x has a NaN, one is all zeros. Kernels with overlap
 * read W before q8_quantize has ended, and the codes after it.
 *
 * usage: linear_q8_pair DRIVER
 */
#include "../../calls.h"

#include <math.h>

#include "families/gguf_blocks.h"
#include "number.h"
#include "sample.h"

enum { M = 7, N = 37, K = 768, BLOCK = 32, NAN_ROW = 2, ZERO_ROW = 3 };

static const float eps = 1e-5f;

typedef struct buffers {
    CUdeviceptr in, gamma, codes, scale, w, out;
} buffers;

/* h, and the bound on the rounding of each code. */
static double h[M][K], rounding[M][K];
static float gamma_of[K];

static element_type type_of(const kiln_kernel *kernel)
{
    return has(kernel, "type=f16") ? ELEMENT_F16 : has(kernel, "type=bf16") ? ELEMENT_BF16 : ELEMENT_F32;
}

static void make_x(const kiln_kernel *kernel, const buffers *b)
{
    static double room[M * K]; /* bytes of the widest type */
    const element_type type = type_of(kernel);
    const random_stream s = random_open(1, kernel->id);
    for (unsigned i = 0; i < M * K; i++) {
        const unsigned row = i / K, at = i % K;
        const double x = row == ZERO_ROW                 ? 0
                         : row == NAN_ROW && at == K / 2 ? NAN
                                                         : random_normal(s, i) * ldexp(1, (int)row - 2);
        element_set(type, room, i, x);
        h[row][at] = element_get(type, room, i);
    }
    upload_to(b->in, room, M * K * element_bytes(type));
}

/* Applies the norm to h, and computes the rounding. */
static void make_h(bool has_norm)
{
    for (unsigned row = 0; row < M; row++) {
        double sum = 0;
        for (unsigned i = 0; i < K; i++)
            sum += h[row][i] * h[row][i];
        const double factor = 1 / sqrt(sum / K + (double)eps);
        for (unsigned i = 0; i < K && has_norm; i++)
            h[row][i] *= factor * (double)gamma_of[i];
        for (unsigned first = 0; first < K; first += BLOCK) {
            double most = 0;
            for (unsigned i = first; i < first + BLOCK; i++)
                most = fmax(most, fabs(h[row][i]));
            for (unsigned i = first; i < first + BLOCK; i++)
                rounding[row][i] = most / 127 / 2 * (1 + 0x1p-9);
        }
    }
}

static kiln_status quantize(const kiln_kernel *kernel, const buffers *b)
{
    const sample_q8_quantize_args args = {
        .in = b->in, .gamma = b->gamma, .codes = b->codes, .scale = b->scale, .m = M, .k = K, .eps = eps};
    return kernel->launch(&loader, NULL, &args);
}

static double value_of(const gguf_format *format, const unsigned char *row, unsigned i, double *size)
{
    static gguf_block block;
    const unsigned in_block = i % format->elements, sub = in_block / GGUF_SUB_ELEMENTS;
    if (in_block == 0)
        gguf_read(format, &block, row + i / format->elements * format->bytes);
    const double minimum = block.has_minimum ? block.minimum[sub] : 0,
                 product = block.scale[sub] * block.code[in_block];
    *size = fabs(product) + fabs(minimum);
    return product + minimum;
}

/* Checks the documented bound, with k_warps 2 or 4 and a norm of one trip. */
static bool is_right(const gguf_format *format, const unsigned char *w, const float *out, bool has_norm)
{
    const double chain = 32 * K / 256.0 + 4, norm = has_norm ? 0x1p-22 + (17 / 2.0 + 4) * 0x1p-24 : 0;
    bool fine = true;
    for (unsigned n = 0; n < N; n++) {
        double r[M] = {0}, off[M] = {0}, size, weight;
        for (unsigned i = 0; i < K; i++) {
            weight = value_of(format, w + (size_t)n * K / format->elements * format->bytes, i, &size);
            for (unsigned row = 0; row < M; row++) {
                r[row] += weight * h[row][i];
                off[row] += rounding[row][i] * fabs(weight) + (chain + 8) * 0x1p-24 * size * fabs(h[row][i]);
            }
        }
        for (unsigned row = 0; row < M; row++) {
            const double y = (double)out[row * N + n], bound = off[row] + (norm + 0x1p-24) * fabs(r[row]);
            fine &= row == NAN_ROW ? isnan(y) : fabs(y - r[row]) <= bound;
            fine &= row != ZERO_ROW || y == 0;
        }
    }
    return fine;
}

static void check(const kiln_kernel *quantizer, const kiln_kernel *kernel, const buffers *b)
{
    static unsigned char w[N * K * 2];
    static float out[M * N];
    char name[32] = "", what[256];
    sscanf(strstr(kernel->id, "format="), "format=%31[^,]", name);
    const gguf_format *format = NULL;
    for (size_t i = 0; gguf_at(i); i++)
        format = strcmp(gguf_at(i)->name, name) == 0 ? gguf_at(i) : format;
    need(format, "the format");
    argument packed = {.host = w, .bytes = (size_t)N * K / format->elements * format->bytes};
    packed.count = packed.bytes;
    gguf_fill(format, &packed, GGUF_RANDOM, random_open(2, kernel->id));
    upload_to(b->w, w, packed.bytes);
    set(b->out, 0xee, sizeof out);
    set(b->codes, 0x55, M * K); /* a product that does not wait would read this */
    const sample_linear_args args = {
        .in = b->codes, .in_scale = b->scale, .w = b->w, .out = b->out, .m = M, .n = N, .k = K};
    kiln_status status = quantize(quantizer, b);
    need(status == KILN_OK, "q8_quantize");
    status = kernel->launch(&loader, NULL, &args);
    download(out, b->out, sizeof out);
    snprintf(what, sizeof what, "%s then %s", quantizer->id, kernel->id);
    judge(status == KILN_OK && is_right(format, w, out, has(quantizer, "norm=rms")), what, status);
}

static void open_overlapping(void)
{
    static kiln_slot slots[SAMPLE_SLOTS];
    const kiln_options options = {.overlap_launches = 1};
    need(kiln_close(&loader) == KILN_OK, "kiln_close");
    need(kiln_open(&loader, &driver, &sample_bundle, slots, SAMPLE_SLOTS, &options) == KILN_OK, "kiln_open");
}

int main(int argc, char **argv)
{
    need(argc == 2, "linear_q8_pair DRIVER");
    open_device(argv[1], &sample_bundle);
    open_overlapping();
    for (unsigned i = 0; i < K; i++)
        gamma_of[i] = (float)(random_uniform(random_open(3, "gamma"), i) + 0.5);
    const buffers b = {.in = allocate(M * K * 4),
                       .gamma = upload(gamma_of, sizeof gamma_of),
                       .codes = allocate(M * K),
                       .scale = allocate(M * K / BLOCK * 4),
                       .w = allocate(N * K * 2),
                       .out = allocate(M * N * 4)};
    for (uint32_t i = 0; i < sample_index.bundle->kernel_count; i++) {
        const kiln_kernel *quantizer = sample_index.kernels[i];
        if (!has(quantizer, "q8_quantize/"))
            continue;
        make_x(quantizer, &b);
        make_h(has(quantizer, "norm=rms"));
        for (uint32_t j = 0; j < sample_index.bundle->kernel_count; j++) {
            const kiln_kernel *kernel = sample_index.kernels[j];
            if (has(kernel, "x=s8,y=f32,epilogue=none") && !has(kernel, "format=int4") &&
                kiln_usable(&loader, kernel))
                check(quantizer, kernel, &b);
        }
    }
    return end_calls();
}
