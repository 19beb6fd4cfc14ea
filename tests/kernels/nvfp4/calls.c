/* Calls of nvfp4_gemv's generated function on which published kernels fail: scales of 448, NaN scales, odd sizes. Products are
 * exact in f32. One launch fills the device. Refused calls launch and write nothing.
 *
 *     nvfp4_calls DRIVER          all tests, with every pair of two sizes
 *     nvfp4_calls DRIVER many     every combination of three sizes, and 65538 vectors
 */
#include "../../calls.h"

#include <math.h>

#include "families/nvfp4_gemv.h"
#include "number.h"
#include "sample.h"

enum {
    MOST_BYTES = 1 << 20, /* of each argument */
    GUARD = 256,          /* bytes after the output */
    POISON = 0xDA,
    C_F16 = SAMPLE_NVFP4_GEMV_C_F16,
    C_BF16 = SAMPLE_NVFP4_GEMV_C_BF16,
    C_F32 = SAMPLE_NVFP4_GEMV_C_F32,
    NO_SUCH_WORD = 99,
    SCALE_ONE = 0x38,
    SCALE_448 = 0x7e
};

typedef sample_nvfp4_gemv_args call;

static CUdeviceptr at[5];
static unsigned char a[MOST_BYTES], sfa[MOST_BYTES], b[MOST_BYTES], sfb[MOST_BYTES], out[MOST_BYTES];

/* Checks a call. */
static void judge_call(bool is_right, const char *what, const call *c, kiln_status status)
{
    judge(is_right, what, status);
    if (!is_right)
        printf("    m=%u k=%u l=%u b_rows=%u c=%u\n", c->m, c->k, c->l, c->b_rows, c->c);
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

static element_type type_of(const call *c)
{
    return c->c == C_F32 ? ELEMENT_F32 : c->c == C_F16 ? ELEMENT_F16 : ELEMENT_BF16;
}

static uint64_t vector_row(const call *c, uint64_t vector)
{
    return vector * (c->b_rows ? c->b_rows : 128);
}

/* Random codes with scales of 1/2 and 1 of both signs, so that sums are exact in f32. The padding of b is NaN. */
static void fill(const call *c, random_stream s)
{
    for (size_t i = 0; i < MOST_BYTES; i++) {
        a[i] = (unsigned char)random_bits(s, 4 * i);
        b[i] = (unsigned char)random_bits(s, 4 * i + 1);
        sfa[i] = (unsigned char)((random_bits(s, 4 * i + 2) & 0x88) | 0x30);
        sfb[i] = 0x7f;
    }
    for (uint64_t vector = 0; vector < c->l; vector++) {
        for (uint64_t i = 0; i < c->k / 16; i++) {
            uint64_t place = vector_row(c, vector) * (c->k / 16) + i;
            sfb[place] = (unsigned char)((random_bits(s, 4 * place + 3) & 0x88) | 0x30);
        }
    }
}

static double expected(const call *c, uint64_t row, uint64_t vector)
{
    double sum = 0;
    for (uint64_t i = 0; i < c->k; i++) {
        uint64_t in_a = (vector * c->m + row) * c->k + i, in_b = vector_row(c, vector) * c->k + i;
        unsigned shift = i % 2 ? 4 : 0;
        sum += nvfp4_code_value(a[in_a / 2] >> shift & 15) * nvfp4_scale_value(sfa[in_a / 16]) *
               nvfp4_code_value(b[in_b / 2] >> shift & 15) * nvfp4_scale_value(sfb[in_b / 16]);
    }
    return sum;
}

static bool is_same(element_type type, uint64_t got, double value)
{
    double read = number_decode(type, got);
    return isnan(value) ? isnan(read) : number_encode(type, value) == got || (value == 0 && read == 0);
}

/* Runs the call on the arrays above. Checks every element, and that nothing after them changed. */
static void try_product(const char *what, call c)
{
    const unsigned char *from[] = {a, sfa, b, sfb};
    uint64_t count = (uint64_t)c.m * c.l;
    size_t size = element_bytes(type_of(&c));
    bool is_right = count * c.k / 2 <= MOST_BYTES && count * size + GUARD <= MOST_BYTES &&
                    vector_row(&c, c.l) * c.k / 2 <= MOST_BYTES;
    need(is_right, "fitting the arrays");
    for (size_t i = 0; i < 4; i++)
        upload_to(at[i], from[i], MOST_BYTES);
    set(at[4], POISON, MOST_BYTES);
    c.a = at[0], c.sfa = at[1], c.b = at[2], c.sfb = at[3], c.out = at[4];
    kiln_status status = sample_nvfp4_gemv(&loader, NULL, &c);
    is_right = status == KILN_OK;
    download(out, at[4], MOST_BYTES);
    for (uint64_t i = 0; i < count; i++)
        is_right &= is_same(type_of(&c), element_bits(type_of(&c), out, i), expected(&c, i % c.m, i / c.m));
    for (size_t i = count * size; i < count * size + GUARD; i++)
        is_right &= out[i] == POISON;
    judge_call(is_right, what, &c, status);
}

/* The first 25 are every pair of two sizes, once. */
static void try_sizes(unsigned count)
{
    static const unsigned ms[] = {1, 3, 31, 33, 67}, ks[] = {16, 32, 48, 80, 96}, ls[] = {1, 3, 5, 7, 33};
    for (unsigned i = 0; i < count; i++) {
        unsigned m = i % 5, k = i / 5 % 5, l = (m + k + i / 25) % 5;
        call c = {.m = ms[m], .k = ks[k], .l = ls[l], .b_rows = 1 + i % 4, .c = C_F32};
        fill(&c, random_open(i, "sizes"));
        try_product("ragged sizes", c);
    }
    call padded = {.m = 9, .k = 48, .l = 5, .b_rows = 0, .c = C_F32};
    fill(&padded, random_open(1, "padded"));
    try_product("b padded to 128 rows", padded);
}

/* More vectors than a grid has rows of thread blocks. */
static void try_many(void)
{
    try_sizes(125);
    call c = {.m = 1, .k = 16, .l = 65535 + 3, .b_rows = 1, .c = C_F32};
    fill(&c, random_open(1, "many"));
    try_product("65538 vectors", c);
}

/* Sets block j of every row and every vector. */
static void set_block(const call *c, uint64_t j, unsigned char codes_a, unsigned char codes_b,
                      unsigned char scale_a, unsigned char scale_b)
{
    for (uint64_t row = 0; row < (uint64_t)c->m * c->l; row++) {
        memset(a + row * (c->k / 2) + 8 * j, codes_a, 8);
        sfa[row * (c->k / 16) + j] = scale_a;
    }
    for (uint64_t vector = 0; vector < c->l; vector++) {
        memset(b + vector_row(c, vector) * (c->k / 2) + 8 * j, codes_b, 8);
        sfb[vector_row(c, vector) * (c->k / 16) + j] = scale_b;
    }
}

static void try_largest(unsigned type)
{
    call c = {.m = 5, .k = 64, .l = 3, .b_rows = 2, .c = type};
    for (uint64_t j = 0; j < 4; j++)
        set_block(&c, j, 0x77, 0x77, SCALE_448, SCALE_448);
    try_product("everything as large as it gets", c);
    set_block(&c, 1, 0xff, 0x77, SCALE_448, SCALE_448);
    set_block(&c, 2, 0x44, 0x22, SCALE_ONE, SCALE_ONE); /* 32: exact in f32 when added to the large terms */
    set_block(&c, 3, 0x00, 0x77, SCALE_448, SCALE_448);
    try_product("a small sum of large terms", c);
}

static void try_nan(unsigned char scale)
{
    const call c = {.m = 37, .k = 48, .l = 3, .b_rows = 2, .c = C_F32};
    fill(&c, random_open(scale, "nan"));
    for (uint64_t j = 0; j < 3; j++) {
        unsigned char *of_a = &sfa[(1 * c.m + 20) * 3 + j], kept = *of_a;
        *of_a = scale;
        try_product("a NaN scale of a", c);
        memset(a + (1 * c.m + 20) * 24 + 8 * j, 0, 8);
        try_product("a NaN scale of zeros", c);
        *of_a = kept;
        unsigned char *of_b = &sfb[vector_row(&c, 2) * 3 + j], kept_b = *of_b;
        *of_b = scale;
        try_product("a NaN scale of b", c);
        *of_b = kept_b;
    }
}

/* ---- filling the device ------------------------------------------------------------------------------------------- */

/* Shapes that published kernels split over several streams. Here one launch has enough warps. */
static void try_filling(void)
{
    enum { WARPS = 6 }; /* warps per multiprocessor: with 4 KB each in flight, enough to saturate memory */
    static const unsigned shapes[][2] = {{7168, 16384}, {4096, 7168}, {7168, 2048}}, ls[] = {1, 4, 8};
    is_dry = true;
    for (unsigned i = 0; i < 9; i++) {
        call c = {.a = at[0], .sfa = at[1], .b = at[2], .sfb = at[3], .out = at[4], .c = C_F32};
        c.m = shapes[i / 3][0], c.k = shapes[i / 3][1], c.l = ls[i % 3];
        launched.count = 0;
        kiln_status status = sample_nvfp4_gemv(&loader, NULL, &c);
        uint64_t warps = (uint64_t)launched.grid[0] * launched.grid[1] * (launched.threads / 32);
        bool is_full = warps >= (uint64_t)WARPS * loader.device.multiprocessors;
        judge_call(status == KILN_OK && launched.count == 1 && is_full, "filling the device", &c, status);
    }
    is_dry = false;
}

/* ---- refusals ----------------------------------------------------------------------------------------------------- */

static void check(const char *what, const call *c, kiln_status status, kiln_status wanted, unsigned launches)
{
    download(out, at[4], MOST_BYTES);
    bool is_untouched = out[0] == POISON && memcmp(out, out + 1, MOST_BYTES - 1) == 0;
    judge_call(status == wanted && launched.count == launches && is_untouched == !launches, what, c, status);
    launched.count = 0;
    set(at[4], POISON, MOST_BYTES);
}

#define TRY(change, wanted, launches)                                                                        \
    do {                                                                                                     \
        call c = good;                                                                                       \
        c.change;                                                                                            \
        check(#change, &c, sample_nvfp4_gemv(&loader, NULL, &c), wanted, launches);                          \
    } while (0)

static void try_refusals(void)
{
    const call good = {.a = at[0],
                       .sfa = at[1],
                       .b = at[2],
                       .sfb = at[3],
                       .out = at[4],
                       .m = 8,
                       .k = 64,
                       .l = 2,
                       .b_rows = 1,
                       .c = C_F32};
    set(at[4], POISON, MOST_BYTES);
    launched.count = 0;
    TRY(k = 64, KILN_OK, 1);
    TRY(k = 48, KILN_OK, 1);
    TRY(k = 0, KILN_OK, 1); /* empty sums */
    TRY(m = 0, KILN_OK, 0);
    TRY(l = 0, KILN_OK, 0);
    TRY(k = 40, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(k = 17, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(m = 0x80000001, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(k = 0x80000010, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(l = 0x80000001, KILN_ERROR_BAD_ARGUMENT, 0);
    TRY(c = NO_SUCH_WORD, KILN_ERROR_NO_VARIANT, 0);
    TRY(a = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(sfa = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(b = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(sfb = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(out = 0, KILN_ERROR_NULL_POINTER, 0);
    TRY(a += 8, KILN_ERROR_MISALIGNED, 0);
    TRY(sfa += 8, KILN_ERROR_MISALIGNED, 0);
    TRY(b += 8, KILN_ERROR_MISALIGNED, 0);
    TRY(sfb += 1, KILN_ERROR_MISALIGNED, 0);
    TRY(out += 2, KILN_ERROR_MISALIGNED, 0);
    call narrow = good;
    narrow.k = 48;
    check("k = 48 of a variant for multiples of 32", &narrow,
          sample_nvfp4_gemv_f32_software_simt_32_4_1(&loader, NULL, &narrow), KILN_ERROR_BAD_ARGUMENT, 0);
    call empty = good; /* b_rows does not matter if vectors have no elements */
    empty.k = 0;
    empty.a = empty.sfa = empty.b = empty.sfb = 0;
    check("k = 0, inputs null", &empty, sample_nvfp4_gemv(&loader, NULL, &empty), KILN_OK, 1);
    empty.out = 0;
    check("k = 0, all null", &empty, sample_nvfp4_gemv(&loader, NULL, &empty), KILN_ERROR_NULL_POINTER, 0);
    check("no arguments", &good, sample_nvfp4_gemv(&loader, NULL, NULL), KILN_ERROR_NULL_POINTER, 0);
}

static void try_all(void)
{
    try_sizes(25);
    try_largest(C_F32);
    try_largest(C_F16);
    try_largest(C_BF16);
    try_nan(0x7f);
    try_nan(0xff);
    try_filling();
    try_refusals();
}

int main(int argc, char **argv)
{
    if (argc != 2 && argc != 3)
        return 2;
    open_device(argv[1], &sample_bundle);
    for (size_t i = 0; i < 5; i++)
        at[i] = allocate(MOST_BYTES);
    if (argc == 3)
        try_many();
    else
        try_all();
    return end_calls();
}
