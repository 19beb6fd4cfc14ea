/* Tests wgmma's fragments, and the descriptors of layouts, on the emulated device: exact products of small integers with a B that the
 * host has put into each layout.
 *
 *     device_descriptors_test DRIVER
 */
#include "../../generator/device/layout.h"
#include "emitted.h"

typedef struct test_case {
    layout of;
    uint32_t rows, units; /* of B, or with is_transposed of B's transpose */
    bool is_transposed;
    ptx_matrix matrix; /* swizzle, stride, leading bytes */
} test_case;

#define BY_ROW  .unit_bytes = 16, .turn_count = 3, .turns = {{0, 0}, {1, 1}, {2, 2}}
#define BY_TWO  .unit_bytes = 16, .turn_count = 2, .turns = {{1, 0}, {2, 1}}
#define BY_FOUR .unit_bytes = 16, .turn_count = 1, .turns = {{2, 0}}

static const test_case cases[] = {
    {{.row_bytes = 128, BY_ROW}, 64, 8, false, {128, 1024, 16}},
    {{.start = 1024, .row_bytes = 64, BY_TWO}, 48, 4, false, {64, 512, 16}},
    {{.start = 256, .row_bytes = 32, BY_FOUR}, 8, 2, false, {32, 256, 16}},
    {{.strip_bytes = 2048, .row_bytes = 32, BY_FOUR}, 64, 4, false, {32, 256, 16}},
    {{.row_bytes = 16, .unit_bytes = 512}, 32, 6, false, {0, 128, 512}},
    {{.row_bytes = 128, BY_ROW}, 32, 8, true, {128, 1024, 0}},
    {{.start = 512, .row_bytes = 64, BY_TWO}, 48, 4, true, {64, 512, 0}},
    {{.row_bytes = 32, BY_FOUR}, 16, 2, true, {32, 256, 0}},
    {{.strip_bytes = 1024, .row_bytes = 32, BY_FOUR}, 32, 8, true, {32, 256, 1024}},
    {{.row_bytes = 16, .unit_bytes = 768}, 48, 5, true, {0, 768, 128}},
};

enum {
    THREADS = 128,
    ROWS = 64,
    STEP = 16,
    UNIT = 8,
    A_WORDS = 4,
    MOST_STEPS = 4,
    MOST_N = 64,
    SHARED_BYTES = 16384
};

static uint32_t n_of(const test_case *c)
{
    return c->is_transposed ? UNIT * c->units : c->rows;
}

static uint32_t steps_of(const test_case *c)
{
    return (c->is_transposed ? c->rows : UNIT * c->units) / STEP;
}

/* Integers from -4 to 4: A's in a row, and B's in a column, at k. */
static int a_at(uint32_t row, uint32_t k)
{
    return (int)((row * 64 + k) * 2654435761U >> 20) % 9 - 4;
}

static int b_at(uint32_t column, uint32_t k)
{
    return (int)((column * 97 + k + 7) * 2246822519U >> 21) % 9 - 4;
}

static uint16_t half_of(int number)
{
    return (uint16_t)ptx_number(PTX_F16, number).bits;
}

/* a: the words of each thread, one step after the other; b: the bytes of shared memory; d: the sums of each thread. */
static void emit(ptx_fn *f, const test_case *c)
{
    const ptx_wgmma_form form = {
        .types = PTX_WGMMA_F16_F32, .n = (int)n_of(c), .transposes_b = c->is_transposed};
    const uint32_t sums_count = n_of(c) / 2;
    ptx_val a = ptx_param_ptr(f, PTX_B32, "a"), b = ptx_param_ptr(f, PTX_U32, "b"),
            d = ptx_param_ptr(f, PTX_F32, "d");
    ptx_val tid = ptx_tid_x(f), shared = ptx_shared_dynamic_aligned(f, PTX_U32, 1024),
            words[MOST_STEPS][A_WORDS];
    ptx_val sums[MOST_N / 2], own_a = ptx_at(f, a, ptx_mul(f, tid, A_WORDS * steps_of(c)));
    ptx_val own_d = ptx_at(f, d, ptx_mul(f, tid, sums_count));
    PTX_FOR (f, i, tid, SHARED_BYTES / 4, THREADS) {
        ptx_val word = ptx_load(f, ptx_at(f, b, i));
        ptx_store(f, ptx_at(f, shared, i), word);
    }
    ptx_fence_async(f);
    ptx_barrier(f);
    for (uint32_t step = 0; step < steps_of(c); step++)
        ptx_load_vec(f, A_WORDS, words[step], ptx_at_const(f, own_a, A_WORDS * step), PTX_PLAIN);
    for (uint32_t i = 0; i < sums_count; i++)
        sums[i] = ptx_declare(f, PTX_F32);
    ptx_val first = ptx_descriptor(f, ptx_at_bytes(f, shared, layout_byte(&c->of, 0, 0)), c->matrix);
    ptx_wgmma_fence(f);
    for (uint32_t step = 0; step < steps_of(c); step++) {
        const uint32_t byte =
            c->is_transposed ? layout_byte(&c->of, STEP * step, 0) : layout_byte(&c->of, 0, 2 * step);
        ptx_val at = ptx_add(f, first, (byte - layout_byte(&c->of, 0, 0)) / 16);
        ptx_wgmma(f, form, step > 0, sums, words[step], at);
    }
    ptx_wgmma_commit(f);
    ptx_wgmma_wait(f, 0);
    for (uint32_t i = 0; i < sums_count; i++)
        ptx_store(f, ptx_at_const(f, own_d, i), sums[i]);
}

static CUfunction load(const test_case *c, CUmodule *module)
{
    arena *a = arena_new();
    ptx_fn *f = ptx_new(a, "product", (target){90, TARGET_ARCH}, (const uint32_t[]){THREADS, 1, 1});
    emit(f, c);
    CUfunction function = load_emitted(a, f, "product", module);
    arena_free(a);
    return function;
}

static void fill_a(const test_case *c, uint16_t *a)
{
    for (uint32_t thread = 0; thread < THREADS; thread++)
        for (uint32_t step = 0; step < steps_of(c); step++)
            for (uint32_t i = 0; i < 2 * A_WORDS; i++) {
                const ptx_element e = ptx_wgmma_a(PTX_WGMMA_F16_F32, (int)thread, (int)i);
                a[(thread * steps_of(c) + step) * 2 * A_WORDS + i] =
                    half_of(a_at((uint32_t)e.row, STEP * step + (uint32_t)e.column));
            }
}

static void fill_b(const test_case *c, uint16_t *b)
{
    for (uint32_t row = 0; row < c->rows; row++)
        for (uint32_t element = 0; element < UNIT * c->units; element++)
            b[layout_byte(&c->of, row, element / UNIT) / 2 + element % UNIT] =
                half_of(c->is_transposed ? b_at(element, row) : b_at(row, element));
}

static int count_wrong(const test_case *c, const float *d)
{
    int wrong = 0;
    for (uint32_t thread = 0; thread < THREADS; thread++)
        for (uint32_t i = 0; i < n_of(c) / 2; i++) {
            const ptx_element e = ptx_wgmma_d(PTX_WGMMA_F16_F32, (int)thread, (int)i);
            int sum = 0;
            for (uint32_t k = 0; k < STEP * steps_of(c); k++)
                sum += a_at((uint32_t)e.row, k) * b_at((uint32_t)e.column, k);
            wrong += d[thread * n_of(c) / 2 + i] != (float)sum;
        }
    return wrong;
}

static int run(const test_case *c)
{
    static uint16_t a[THREADS * MOST_STEPS * 2 * A_WORDS], b[SHARED_BYTES / 2];
    static float d[ROWS * MOST_N];
    CUmodule module;
    CUfunction function = load(c, &module);
    fill_a(c, a);
    fill_b(c, b);
    CUdeviceptr at[] = {upload(a, sizeof a), upload(b, sizeof b), upload(d, sizeof d)};
    void *params[] = {&at[0], &at[1], &at[2]};
    need(driver.launch_kernel(function, 1, 1, 1, THREADS, 1, 1, SHARED_BYTES, NULL, params, NULL) == 0,
         "cuLaunchKernel");
    download(d, at[2], sizeof d);
    for (int i = 0; i < 3; i++)
        driver.mem_free(at[i]);
    driver.module_unload(module);
    return count_wrong(c, d);
}

static int check(const char *name, size_t number, const test_case *c)
{
    const int wrong = run(c);
    if (wrong)
        printf("%s %zu: %d wrong\n", name, number, wrong);
    return wrong;
}

int main(int argc, char **argv)
{
    int all = 0;
    if (argc != 2)
        return 2;
    open_driver(argv[1]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        all += check("case", i, &cases[i]);
    for (uint32_t units = 2; units <= 8; units *= 2)
        all += check("layout_of_matrices", units,
                     &(test_case){layout_of_matrices(units), MOST_N, units, false, layout_matrix(units)});
    printf("%d wrong\n", all);
    return all != 0;
}
