/* References of Q4_K: the layout, dequantize, and inputs with random fields and with quantised numbers. */
#include "q4k.h"

#include "../design.h"
#include <math.h>
#include <string.h>

#include "gguf_dequantize.h"
#include "inputs.h"

/* ---- the format ------------------------------------------------------------------------------------------------- */

void q4k_read(q4k_block *b, const unsigned char bytes[Q4K_BLOCK_BYTES])
{
    const unsigned char *s = bytes + 4, *codes = bytes + 16;
    b->d = (uint16_t)(bytes[0] | bytes[1] << 8);
    b->dmin = (uint16_t)(bytes[2] | bytes[3] << 8);
    for (int j = 0; j < 4; j++) {
        b->scale[j] = s[j] & 63;
        b->minimum[j] = s[j + 4] & 63;
        b->scale[j + 4] = (unsigned char)((s[j + 8] & 15) | s[j] >> 6 << 4);
        b->minimum[j + 4] = (unsigned char)(s[j + 8] >> 4 | s[j + 4] >> 6 << 4);
    }
    for (int i = 0; i < Q4K_BLOCK_ELEMENTS; i++)
        b->code[i] = codes[i / 64 * 32 + i % 32] >> (i / 32 % 2 ? 4 : 0) & 15;
}

void q4k_write(const q4k_block *b, unsigned char bytes[Q4K_BLOCK_BYTES])
{
    unsigned char *s = bytes + 4, *codes = bytes + 16;
    memset(bytes, 0, Q4K_BLOCK_BYTES);
    for (int i = 0; i < 2; i++) {
        bytes[i] = (unsigned char)(b->d >> 8 * i);
        bytes[2 + i] = (unsigned char)(b->dmin >> 8 * i);
    }
    for (int j = 0; j < 4; j++) {
        s[j] = (unsigned char)(b->scale[j] | b->scale[j + 4] >> 4 << 6);
        s[j + 4] = (unsigned char)(b->minimum[j] | b->minimum[j + 4] >> 4 << 6);
        s[j + 8] = (unsigned char)((b->scale[j + 4] & 15) | (b->minimum[j + 4] & 15) << 4);
    }
    for (int i = 0; i < Q4K_BLOCK_ELEMENTS; i++) {
        unsigned char *byte = &codes[i / 64 * 32 + i % 32];
        *byte = (unsigned char)(*byte | b->code[i] << (i / 32 % 2 ? 4 : 0));
    }
}

double q4k_value(const q4k_block *b, unsigned i)
{
    unsigned j = i / Q4K_SUB_ELEMENTS;
    double d = number_decode(ELEMENT_F16, b->d), dmin = number_decode(ELEMENT_F16, b->dmin);
    return d * b->scale[j] * b->code[i] - dmin * b->minimum[j];
}

static unsigned char nearest(double x, double most)
{
    double rounded = nearbyint(x);
    return (unsigned char)(rounded > most ? most : rounded > 0 ? rounded : 0);
}

/* Quantises: first the two f16 numbers from the largest step and the largest offset; then each sub-block with its
 * step and offset as multiples of these. */
void q4k_quantize(q4k_block *b, const double x[Q4K_BLOCK_ELEMENTS])
{
    double step[Q4K_SUB_BLOCKS], offset[Q4K_SUB_BLOCKS], largest_step = 0, largest_offset = 0;
    for (int j = 0; j < Q4K_SUB_BLOCKS; j++) {
        double least = 0, most = x[j * Q4K_SUB_ELEMENTS];
        for (int i = j * Q4K_SUB_ELEMENTS; i < (j + 1) * Q4K_SUB_ELEMENTS; i++) {
            least = fmin(least, x[i]);
            most = fmax(most, x[i]);
        }
        offset[j] = -least;
        step[j] = fmax(most - least, 0) / 15;
        largest_step = fmax(largest_step, step[j]);
        largest_offset = fmax(largest_offset, offset[j]);
    }
    b->d = (uint16_t)number_encode(ELEMENT_F16, largest_step / 63);
    b->dmin = (uint16_t)number_encode(ELEMENT_F16, largest_offset / 63);
    double d = number_decode(ELEMENT_F16, b->d), dmin = number_decode(ELEMENT_F16, b->dmin);
    for (int j = 0; j < Q4K_SUB_BLOCKS; j++) {
        b->scale[j] = d > 0 ? nearest(step[j] / d, 63) : 0;
        b->minimum[j] = dmin > 0 ? nearest(offset[j] / dmin, 63) : 0;
        double size = d * b->scale[j], below = dmin * b->minimum[j];
        for (int i = j * Q4K_SUB_ELEMENTS; i < (j + 1) * Q4K_SUB_ELEMENTS; i++)
            b->code[i] = size > 0 ? nearest((x[i] + below) / size, 15) : 0;
    }
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

static void expect_dequantize(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    gguf_expect(gguf_find("q4_k"), p);
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

/* Fills with quantised numbers of a kind of inputs.h. */
static void fill_quantized(argument *packed, input_kind kind, random_stream s)
{
    const manifest_arg about = {.type = ELEMENT_F32};
    argument x = {.about = &about, .count = packed->bytes / Q4K_BLOCK_BYTES * Q4K_BLOCK_ELEMENTS};
    pool memory = {0};
    x.bytes = (size_t)x.count * sizeof(float);
    x.host = pool_allocate(&memory, x.bytes);
    inputs_fill(&x, kind, s);
    for (uint64_t first = 0; first < x.count; first += Q4K_BLOCK_ELEMENTS) {
        double values[Q4K_BLOCK_ELEMENTS];
        q4k_block b;
        for (unsigned i = 0; i < Q4K_BLOCK_ELEMENTS; i++)
            values[i] = element_get(ELEMENT_F32, x.host, first + i);
        q4k_quantize(&b, values);
        q4k_write(&b, (unsigned char *)packed->host + first / Q4K_BLOCK_ELEMENTS * Q4K_BLOCK_BYTES);
    }
    pool_free(&memory);
}

void q4k_fill(argument *packed, int kind, random_stream s)
{
    if (kind >= Q4K_NUMBERS)
        fill_quantized(packed, (input_kind)(kind - Q4K_NUMBERS), s);
    else
        gguf_fill(gguf_find("q4_k"), packed, kind, s);
}

/* Returns the number of bits from the lowest set bit to the highest. */
static int bits_of(unsigned number)
{
    int bits = 0;
    for (; number % 2 == 0 && number > 0;)
        number /= 2;
    for (; number > 0; number /= 2)
        bits++;
    return bits;
}

/* Returns the first of a few random numbers whose product with the factor is half-way between two elements, that
 * is, has one bit more. */
static unsigned char tied_code(unsigned factor, unsigned most, int bits, random_stream s, uint64_t i)
{
    enum { ATTEMPTS = 8 };
    unsigned number = 0;
    for (uint64_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        number = 1 + (unsigned)random_below(random_fork(s, attempt), i, most);
        if (bits_of(factor * number) == bits)
            break;
    }
    return (unsigned char)number;
}

/* Makes a super-block whose elements are half-way between two numbers of the type, except for minima below half an
 * ulp of the f32 in which they are computed: so the rounding of the minimum shows. With f32 elements it always
 * shows. */
static void make_hard_block(q4k_block *b, element_type type, random_stream s)
{
    const int bits = type == ELEMENT_BF16 ? 9 : 12;
    const unsigned factor = 1 + 2 * (unsigned)random_below(s, 0, 32);
    b->d = (uint16_t)number_encode(ELEMENT_F16, random_below(s, 1, 2) ? factor : -(double)factor);
    b->dmin = (uint16_t)(1 + random_below(s, 2, 8) + (random_below(s, 3, 2) ? 0x8000 : 0)); /* subnormal */
    for (unsigned j = 0; j < Q4K_SUB_BLOCKS; j++) {
        b->scale[j] = (unsigned char)(1 + 2 * random_below(s, 4 + j, 32));
        b->minimum[j] = (unsigned char)(1 + random_below(s, 16 + j, 63));
    }
    for (unsigned i = 0; i < Q4K_BLOCK_ELEMENTS; i++)
        b->code[i] = tied_code(factor * b->scale[i / Q4K_SUB_ELEMENTS], 15, bits, random_fork(s, 1), i);
}

/* Makes the blocks. Two super-blocks of three are hard, chosen at random, since a kernel processes a tile's
 * super-blocks at the same place with the same instructions. */
static void make(problem *p, const input_pattern *pattern, random_stream s)
{
    argument *packed = problem_find(p, "packed");
    const element_type type = problem_find(p, "out")->about->type;
    q4k_fill(packed, pattern->number, s);
    for (uint64_t block = 0; block < packed->bytes / Q4K_BLOCK_BYTES; block++) {
        q4k_block b;
        if (random_below(random_fork(s, 7), block, 3) == 0)
            continue;
        make_hard_block(&b, type, random_fork(random_fork(s, 8), block));
        q4k_write(&b, (unsigned char *)packed->host + block * Q4K_BLOCK_BYTES);
    }
}

/* Tries sizes around every edge of tiles (8 super-blocks) and thread blocks, and each number below the first edge. */
static void plan_sizes(size_plan *plan)
{
    enum { MOST_WORK = 1 << 20, MANY = 4099 };
    static const size_axis axes[] = {{.name = "n", .unit = Q4K_BLOCK_ELEMENTS}};
    size_plan_cover(plan, axes, sizeof axes / sizeof *axes, NULL, MOST_WORK);
    argument *n = problem_find(plan->problem, "n");
    edge_list tiles = {{0}, 0}, blocks = {{0}, 0};
    edges_add_tiles(&tiles, plan->problem, n);
    for (uint64_t i = 0; i <= 10; i++)
        edges_add(&blocks, i);
    for (uint64_t i = 16; i <= 64; i *= 2)
        edges_add_around(&blocks, i);
    for (size_t i = 0; i < tiles.count; i++)
        edges_add_around(&blocks, tiles.values[i] / Q4K_BLOCK_ELEMENTS);
    edges_add(&blocks, plan->limits.max_elements / 2 / Q4K_BLOCK_ELEMENTS);
    edges_add(&blocks, plan->limits.big / Q4K_BLOCK_ELEMENTS);
    for (size_t i = 0; i < blocks.count; i++) {
        n->integer = blocks.values[i] * Q4K_BLOCK_ELEMENTS;
        size_plan_add(plan);
    }
    n->integer = MANY * Q4K_BLOCK_ELEMENTS;
    size_plan_add_far(plan, 2 * MANY * Q4K_BLOCK_ELEMENTS);
}

/* clang-format off */
static const input_pattern patterns[] = {
    {"random",    PATTERN_RANDOM | PATTERN_LARGE, GGUF_RANDOM},
    {"real",      PATTERN_LARGE,                  Q4K_NUMBERS + INPUT_REAL},
    {"normal",    PATTERN_RANDOM,                 Q4K_NUMBERS + INPUT_NORMAL},
    {"huge-tiny", 0,                              Q4K_NUMBERS + INPUT_HUGE_TINY},
    {"equal",     0,                              Q4K_NUMBERS + INPUT_EQUAL},
    {"ties",      PATTERN_LARGE,                  GGUF_TIES},
    {"denormal",  PATTERN_RANDOM,                 GGUF_DENORMAL},
    {"largest",   PATTERN_RANDOM,                 GGUF_LARGEST},
    {"zero",      0,                              GGUF_ZERO},
    {"any-bits",  PATTERN_RANDOM | PATTERN_LARGE, GGUF_ANY_BITS},
    {"nonfinite", PATTERN_NONFINITE,              GGUF_NONFINITE},
    {NULL,        0,                              0},
};
/* clang-format on */

const family_row q4k_dequantize_row = {.name = "q4k_dequantize",
                                       .args = "packed out n",
                                       .patterns = patterns,
                                       .plan = plan_sizes,
                                       .make = make,
                                       .expect = expect_dequantize,
                                       .expects_nonfinite = true};
