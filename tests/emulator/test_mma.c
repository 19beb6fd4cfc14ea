/* Every form of mma.sync. The test finds the forms that the emulator's decoder accepts by trying all words, and compares
   them with the ISA's list. It then executes each form on every device that has it, on values whose sums are exact, so
   often that no two elements of A, of B or of C have the same values in all runs. */
#include "mma_form.h"

enum { MOST_FORMS = 512, MOST_WORDS = 16 };

static const char header_120[] = ".version 9.1\n.target sm_120f";

/* The ISA's syntax (9.7.14.5.14) without what is refused by name: .sp. ptxas 13.0 takes the same forms with .block_scale, except
   .scale_vec::4X with .ue8m0, which is of PTX 9.1. */
static const char *const isa_forms[] = {
    "m8n8k4 row|col row|col f16|f32 f16 f16 f16|f32",
    "m16n8k8|m16n8k16 row col f16|f32 f16 f16 f16|f32",
    "m16n8k4|m16n8k8 row col f32 tf32 tf32 f32",
    "m16n8k8|m16n8k16 row col f32 bf16 bf16 f32",
    "m16n8k16|m16n8k32 row col f16|f32 e4m3|e5m2 e4m3|e5m2 f16|f32",
    "m16n8k32 row col kind::f8f6f4 f16|f32 e4m3|e5m2|e3m2|e2m3|e2m1 e4m3|e5m2|e3m2|e2m3|e2m1 f16|f32",
    "m16n8k32 row col kind::mxf8f6f4 block_scale f32 e4m3|e5m2|e3m2|e2m3|e2m1 e4m3|e5m2|e3m2|e2m3|e2m1 f32 ue8m0",
    "m16n8k32 row col kind::mxf8f6f4 block_scale scale_vec::1X f32 e4m3|e5m2|e3m2|e2m3|e2m1 e4m3|e5m2|e3m2|e2m3|e2m1 f32 ue8m0",
    "m16n8k64 row col kind::mxf4 block_scale f32 e2m1 e2m1 f32 ue8m0",
    "m16n8k64 row col kind::mxf4 block_scale scale_vec::2X f32 e2m1 e2m1 f32 ue8m0",
    "m16n8k64 row col kind::mxf4nvf4 block_scale scale_vec::2X f32 e2m1 e2m1 f32 ue8m0",
    "m16n8k64 row col kind::mxf4nvf4 block_scale scale_vec::4X f32 e2m1 e2m1 f32 ue8m0|ue4m3",
    "m8n8k4|m16n8k4|m16n8k8|m16n8k16 row col f64 f64 f64 f64",
    "m8n8k4|m16n8k4|m16n8k8|m16n8k16 row col rn|rz|rm|rp f64 f64 f64 f64",
    "m8n8k16|m16n8k16|m16n8k32 row col s32 s8|u8 s8|u8 s32",
    "m8n8k16|m16n8k16|m16n8k32 row col satfinite s32 s8|u8 s8|u8 s32",
    "m8n8k32|m16n8k32|m16n8k64 row col s32 s4|u4 s4|u4 s32",
    "m8n8k32|m16n8k32|m16n8k64 row col satfinite s32 s4|u4 s4|u4 s32",
    "m8n8k128|m16n8k128|m16n8k256 row col s32 b1 b1 s32 xor|and popc",
};

/* Every word that a form of mma has or could have. */
/* clang-format off */
static const char *const words[] = {
    "m8n8k4", "m8n8k8", "m8n8k16", "m8n8k32", "m8n8k64", "m8n8k128", "m8n8k256", "m16n8k4", "m16n8k8",
    "m16n8k16", "m16n8k32", "m16n8k64", "m16n8k128", "m16n8k256", "m16n16k16", "row", "col", "f16", "bf16",
    "tf32", "f32", "f64", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "s8", "u8", "s4", "u4", "b1", "s32",
    "u32", "f16x2", "satfinite", "rn", "rz", "rm", "rp", "rna", "relu", "ftz", "sat", "xor", "and", "or",
    "popc", "kind::f8f6f4", "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4", "kind::f16", "kind::tf32",
    "kind::i8", "block_scale", "scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "ue8m0", "ue4m3", "sp",
    "sp::ordered_metadata", "trans", "aligned", "sync",
};
/* clang-format on */

typedef struct form_list {
    char names[MOST_FORMS][96];
    int count;
} form_list;

static form_list isa, taken;

static void add_form(form_list *list, const char *name)
{
    assert_true(list->count < MOST_FORMS);
    snprintf(list->names[list->count++], sizeof list->names[0], "%s", name);
}

static bool is_listed(const form_list *list, const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return true;
    return false;
}

/* "Specific shapes have type restrictions": D has the type of C; with m8n8k4, C may be f16 if D is f32. */
static bool types_agree(const char *name)
{
    mma_form f;
    assert_true(parse_form(name, &f));
    return f.d == f.c || (f.products == 4 && f.d->bits == 32);
}

static void expand(const char *pattern, const char *prefix)
{
    if (!*pattern) {
        if (types_agree(prefix))
            add_form(&isa, prefix);
        return;
    }
    size_t size = strcspn(pattern, " ");
    const char *end = pattern + size, *rest = *end ? end + 1 : end;
    while (pattern < end) {
        size_t length = strcspn(pattern, "| ");
        char longer[96];
        snprintf(longer, sizeof longer, "%s%s%.*s", prefix, *prefix ? "." : "", (int)length, pattern);
        expand(rest, longer);
        pattern += length + 1;
    }
}

typedef enum answer { NO_SUCH_WORD, NEEDS_MORE, REFUSED, COMPLETE } answer;

static answer ask_decoder(const char *name)
{
    char body[256];
    CUmodule module;
    snprintf(body, sizeof body, "mma.sync.aligned%s%s %%a, %%b, %%c, %%d%s;", *name ? "." : "", name,
             strstr(name, "block_scale") ? ", %e, %f, %g, %h" : "");
    if (load_body(header_120, body, &module) == CUDA_SUCCESS) /* a module without the kernel */
        assert_contains(test_log, "kernel 'k' is refused");
    if (strstr(test_log, "is not a modifier that"))
        return NO_SUCH_WORD;
    if (strstr(test_log, "needs one more modifier"))
        return NEEDS_MORE;
    if (strstr(test_log, "is not emulated") || strstr(test_log, "the types of D and C must be the same"))
        return REFUSED;
    assert_contains(test_log, "a vector");
    return COMPLETE;
}

/* The order of words in the ISA: shape, layouts, kind and similar, types, operation. ptxas and the emulator accept other
   orders too: see orders.txt. */
static int rank_of(const char *word)
{
    static const char *const types =
        " f16 bf16 tf32 f32 f64 e4m3 e5m2 e3m2 e2m3 e2m1 s8 u8 s4 u4 b1 s32 u32 f16x2 ue8m0 ue4m3 ";
    char quoted[40];
    snprintf(quoted, sizeof quoted, " %s ", word);
    if (strstr(" row col ", quoted))
        return 1;
    if (strstr(types, quoted))
        return 5;
    if (strstr(" xor and or ", quoted))
        return 6;
    return word[0] == 'm'                          ? 0
           : strcmp(word, "popc") == 0             ? 7
           : strcmp(word, "block_scale") == 0      ? 3
           : strncmp(word, "scale_vec::", 11) == 0 ? 4
                                                   : 2;
}

/* Depth-first over all words; a word that is refused ends its branch. */
static void enumerate(const char *name, int depth, int rank)
{
    assert_true(depth < MOST_WORDS);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (rank_of(words[i]) < rank)
            continue;
        char longer[96];
        snprintf(longer, sizeof longer, "%s%s%s", name, *name ? "." : "", words[i]);
        answer a = ask_decoder(longer);
        if (a == COMPLETE)
            add_form(&taken, longer);
        if (a == COMPLETE || a == NEEDS_MORE)
            enumerate(longer, depth + 1, rank_of(words[i]));
    }
}

static void test_forms_are_the_isas(void **state)
{
    (void)state;
    enumerate("", 0, 0);
    for (int i = 0; i < taken.count; i++)
        if (!is_listed(&isa, taken.names[i]))
            fail_msg("mma.sync.aligned.%s is taken, and the ISA does not have it", taken.names[i]);
    for (int i = 0; i < isa.count; i++)
        if (!is_listed(&taken, isa.names[i]))
            fail_msg("mma.sync.aligned.%s is not taken", isa.names[i]);
    assert_int_equal(taken.count, isa.count);
    print_message("%d forms\n", taken.count);
}

/* The rules are a bijection: each element of a matrix is in one place (with four products, also each element of C). */
static void test_layouts_cover(void **state)
{
    (void)state;
    for (int n = 0; n < isa.count; n++) {
        static matrices m;
        mma_form f;
        assert_true(parse_form(isa.names[n], &f));
        memset(&m, 0, sizeof m);
        int counts[4] = {f.rule->a, f.rule->b, f.rule->c, f.rule->c};
        int elements_of[4] = {f.m * f.k, f.k * 8, f.m * 8, f.m * 8};
        for (int v = 0; v < 4; v++) {
            assert_int_equal(32 * counts[v], f.products * elements_of[v]);
            for (int lane = 0; lane < 32; lane++)
                for (int i = 0; i < counts[v]; i++) {
                    place p = place_of(&f, "ABCD"[v], lane, i);
                    assert_in_range(p.row, 0, v == 1 ? f.k - 1 : f.m - 1);
                    assert_in_range(p.column, 0, v ? 7 : f.k - 1);
                    double *x = value_at(&m, "ABCD"[v], p);
                    if (*x != 0)
                        fail_msg("%s: %c[%d][%d] is in two places", f.name, "ABCD"[v], p.row, p.column);
                    *x = 1;
                }
        }
    }
}

/* Integers that the type can represent and whose sums are exact: few bits for f16 results and narrow floats. */
static int usable_values(const mma_form *f, const element *t, double values[256])
{
    int limit = f->d->bits == 16 || t->bits <= 8 ? 7 : 127, count = 0;
    if (!t->exponent) {
        for (uint64_t bits = 0; bits <= low_bits(t->bits); bits++)
            values[count++] = element_value(t, bits);
        return count;
    }
    for (int v = -limit; v <= limit; v++)
        if (element_value(t, element_bits(t, v)) == v)
            values[count++] = v;
    return count;
}

/* The element's index in the number system whose base is the number of values: its digit `run`. */
static double value_for(const double *values, int count, int index, int run)
{
    while (run--)
        index /= count;
    return values[index % count];
}

static int runs_needed(int count, int elements_of_matrix)
{
    int runs = 1;
    for (int reach = count; reach < elements_of_matrix; reach *= count)
        runs++;
    return runs;
}

/* C has distinct values; as integers, values near the ends of the range, so that half of the sums overflow. */
static double c_for(const mma_form *f, int index)
{
    if (f->c->exponent)
        return f->c->bits == 16 || f->a->bits <= 8 ? index - 64 : 1000 * index - 77777;
    return index % 3 == 0   ? 2147483647.0 - index
           : index % 3 == 1 ? index - 2147483648.0
                            : 7654321.0 * (index - 60);
}

/* From 1/2 to 4, with few bits. */
static uint8_t scale_for(const mma_form *f, int index)
{
    return (uint8_t)(f->is_ue4m3 ? 0x30 + index * 5 % 25 : 126 + index * 3 % 4);
}

static void fill(const mma_form *f, matrices *m, int run)
{
    double a[256], b[256];
    int a_count = usable_values(f, f->a, a), b_count = usable_values(f, f->b, b);
    for (int q = 0; q < f->products; q++) {
        for (int i = 0; i < f->m; i++)
            for (int k = 0; k < f->k; k++)
                m->a[q][i][k] = value_for(a, a_count, (q * f->m + i) * f->k + k, run);
        for (int k = 0; k < f->k; k++)
            for (int j = 0; j < 8; j++) /* in reverse order, so that A and B differ */
                m->b[q][k][j] =
                    value_for(b, b_count, f->products * f->k * 8 - 1 - ((q * f->k + k) * 8 + j), run);
        for (int i = 0; i < f->m; i++)
            for (int j = 0; j < 8; j++)
                m->c[q][i][j] = c_for(f, q * 64 % 128 + i * 8 + j);
    }
    for (int n = 0; n < 16 * 4; n++)
        m->scale_a[n / 4][n % 4] = scale_for(f, n / (run + 1));
    for (int n = 0; n < 8 * 4; n++)
        m->scale_b[n / 4][n % 4] = scale_for(f, 31 - n + run);
}

static double scale_of(const mma_form *f, const matrices *m, int i, int j, int k)
{
    int chunk = k * f->chunks / f->k;
    return f->chunks ? scale_value(f, m->scale_a[i][chunk]) * scale_value(f, m->scale_b[j][chunk]) : 1;
}

static double times(const mma_form *f, double a, double b)
{
    return f->bit_operation == 'x' ? (double)(a != b) : a * b; /* AND of bits is their product */
}

/* Sums are integers below 2^53. An s32 wraps without .satfinite. */
static double expected(const mma_form *f, const matrices *m, int q, int i, int j)
{
    double sum = m->c[q][i][j];
    for (int k = 0; k < f->k; k++)
        sum += times(f, m->a[q][i][k], m->b[q][k][j]) * scale_of(f, m, i, j, k);
    if (f->d->exponent)
        return sum;
    if (f->saturates)
        return fmin(fmax(sum, -2147483648.0), 2147483647.0);
    return element_value(f->d, (uint64_t)(int64_t)sum & UINT32_MAX);
}

static void check_product(const char *header, const mma_form *f, int run)
{
    static matrices m;
    fill(f, &m, run);
    run_form(header, f, &m);
    for (int q = 0; q < f->products; q++)
        for (int i = 0; i < f->m; i++)
            for (int j = 0; j < 8; j++)
                if (m.d[q][i][j] != expected(f, &m, q, i, j))
                    fail_msg("%s, run %d: D[%d][%d] of product %d is %.17g, not %.17g, with\n%s", f->name,
                             run, i, j, q, m.d[q][i][j], expected(f, &m, q, i, j), header);
}

static bool device_has(const mma_form *f, int device)
{
    if (strstr(f->name, "kind"))
        return device == 120;
    if (f->a->bits == 8 && f->a->exponent)
        return device >= 89;
    if (f->a->bits == 64)
        return device >= (f->m == 16 ? 90 : 80);
    bool is_old = f->m == 8 || (f->k == 8 && strcmp(f->a->name, "f16") == 0);
    return device >= 80 || (is_old && f->bit_operation != 'a');
}

/* The selectors of the scales that the ISA defines. */
static int count_selectors(const mma_form *f)
{
    int bytes = f->chunks ? 4 / f->chunks : 1;
    return f->chunks ? bytes * bytes * 2 * 4 : 1;
}

/* As constants, and in every third run in registers. */
static void set_selectors(mma_form *f, int run)
{
    int bytes = f->chunks ? 4 / f->chunks : 1;
    f->byte[0] = run % bytes * f->chunks;
    f->byte[1] = run / bytes % bytes * f->chunks;
    f->thread[0] = run / bytes / bytes % 2;
    f->thread[1] = run / bytes / bytes / 2 % 4;
    f->has_register_selectors = run % 3 == 0;
}

static const int devices[] = {120, 100, 90, 89, 80, 75};

static void test_products(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        char header[64];
        CUcontext context;
        int executed = 0;
        snprintf(header, sizeof header, ".version 9.1\n.target sm_%d%s", devices[d], d ? "" : "f");
        assert_int_equal(cuCtxCreate_v2(&context, 0, (CUdevice)d), CUDA_SUCCESS);
        for (int n = 0; n < isa.count; n++) {
            mma_form f;
            double values[256];
            assert_true(parse_form(isa.names[n], &f));
            if (!device_has(&f, devices[d])) {
                CUmodule module;
                if (load_body(header, mma_body(&f), &module) == CUDA_SUCCESS)
                    fail_msg("%s is taken for sm_%d", f.name, devices[d]);
                continue;
            }
            int of_a = runs_needed(usable_values(&f, f.a, values), f.products * f.m * f.k);
            int of_scales = strstr(f.name, "e2m1.e2m1") ? count_selectors(&f) : 1;
            int of_b = runs_needed(usable_values(&f, f.b, values), f.products * f.k * 8);
            for (int run = 0; run < of_a || run < of_b || run < of_scales; run++, executed++) {
                set_selectors(&f, run);
                check_product(header, &f, run);
            }
        }
        print_message("sm_%d: %d products\n", devices[d], executed);
        assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
    }
}

/* Block scaling that ptxas 13.0 refuses too. */
#define MXF4   "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
#define NVF4   "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale"
#define D_TO_C " {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3}"

static const struct {
    const char *target, *body, *message;
} refused[] = {
    {"sm_120", MXF4 D_TO_C ", %r6, {0, 0}, %r7, {0, 0};", "needs one of the targets 120f 121f"},
    {"sm_120f", NVF4 ".scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0" D_TO_C ", %r6, {0, 0}, %r7, {0, 0};",
     "'mma' needs .version 9.1"},
    {"sm_120f", MXF4 D_TO_C ";", "'mma' takes 8 operands, 4 are given"},
    {"sm_120f", MXF4 D_TO_C ", %r6, {0, 0}, %r7;", "'mma' takes 8 operands, 7 are given"},
    {"sm_120f", NVF4 ".f32.e2m1.e2m1.f32.ue4m3" D_TO_C ", %r6, {0, 0}, %r7, {0, 0};",
     "'mma' needs one more modifier: scale_vec::4X"},
    {"sm_120f", NVF4 ".scale_vec::2X.f32.e2m1.e2m1.f32.ue4m3" D_TO_C ", %r6, {0, 0}, %r7, {0, 0};",
     "'.ue4m3' is not a modifier"},
    {"sm_120f", MXF4 D_TO_C ", %r6, {1, 0}, %r7, {0, 0};", "the first byte of the scales is 0 or 2 here"},
    {"sm_120f", MXF4 D_TO_C ", %r6, {0, 2}, %r7, {0, 0};", "the threads with the scales are 0 to 1 here"},
    {"sm_120f", MXF4 D_TO_C ", %r6, {0, 0}, %r7, {0, 4};", "the threads with the scales are 0 to 3 here"},
    {"sm_120f", NVF4 ".scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3" D_TO_C ", %r6, {0, 0}, %r7, {2, 0};",
     "the first byte of the scales is 0 here"},
    {"sm_120f", MXF4 D_TO_C ", 127, {0, 0}, %r7, {0, 0};", "scales are a register of 32 bits"},
    {"sm_120f", MXF4 D_TO_C ", %h0, {0, 0}, %r7, {0, 0};", "'%h0' is .u16; expected .b32"},
    {"sm_120f", MXF4 D_TO_C ", %r6, 0, %r7, {0, 0};", "expected a vector of 2 elements"},
    {"sm_120f", MXF4 D_TO_C ", %r6, {%r7, 0}, %r7, {0, 0};", "expected .u16"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof refused / sizeof *refused; n++) {
        char header[64], body[512];
        CUmodule module;
        snprintf(header, sizeof header, ".version 9.0\n.target %s", refused[n].target);
        snprintf(body, sizeof body, ".reg .b32 %%r<8>; .reg .f32 %%f<4>; .reg .u16 %%h<2>;\n%s ret;",
                 refused[n].body);
        if (load_body(header, body, &module) == CUDA_SUCCESS)
            fail_msg("this was taken: %s", refused[n].body);
        assert_contains(test_log, refused[n].message);
    }
}

/* Selectors in registers, which are known only when the product runs. */
static void test_selectors(void **state)
{
    (void)state;
    static const struct {
        const char *value, *message;
    } rows[] = {
        {"cvt.u16.u32 %h0, %laneid;", "gives other selectors of A's scales than the warp's first lane"},
        {"mov.u16 %h0, 1;", "selects A's scales by {1, 0}, which are undefined"},
    };
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        char body[1024];
        CUcontext context;
        assert_int_equal(cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
        snprintf(
            body, sizeof body,
            ".reg .b32 %%r<8>; .reg .f32 %%f<4>; .reg .u16 %%h<2>;\n"
            "mov.b32 %%r0, 0; mov.b32 %%r1, 0; mov.b32 %%r2, 0; mov.b32 %%r3, 0; mov.b32 %%r4, 0; mov.b32 %%r5, 0;\n"
            "mov.b32 %%r6, 127; mov.b32 %%r7, 127; mov.f32 %%f0, 0.0; mov.f32 %%f1, 0.0; mov.f32 %%f2, 0.0;\n"
            "mov.f32 %%f3, 0.0; %s\n" MXF4 "%s, %%r6, {%%h0, 0}, %%r7, {0, 0}; ret;",
            rows[n].value, D_TO_C);
        CUfunction f = kernel_of(".version 9.0\n.target sm_120f", body);
        capture_stderr();
        CUresult r = launch(f, 1, 32, 0, 0, 0);
        assert_contains(captured_stderr(), rows[n].message);
        assert_int_equal(r, CUDA_ERROR_LAUNCH_FAILED);
        assert_int_equal(cuCtxDestroy_v2(context), CUDA_SUCCESS);
    }
}

static int begin_devices(void **state)
{
    setenv("KILN_EMU_DEVICE", "sm_120,sm_100,sm_90,sm_89,sm_80,sm_75", 1);
    for (size_t i = 0; i < sizeof isa_forms / sizeof *isa_forms; i++)
        expand(isa_forms[i], "");
    return begin_context(state);
}

/* With the argument "forms" it only looks for forms that the ISA lacks, which takes 20 seconds. */
int main(int argc, char **argv)
{
    const struct CMUnitTest forms[] = {cmocka_unit_test(test_forms_are_the_isas)};
    const struct CMUnitTest products[] = {
        cmocka_unit_test(test_layouts_cover),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_selectors),
    };
    return argc == 2 && strcmp(argv[1], "forms") == 0
               ? cmocka_run_group_tests(forms, begin_devices, end_context)
               : cmocka_run_group_tests(products, begin_devices, end_context);
}
