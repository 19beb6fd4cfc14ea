/* Your own family: y = a * x + y, in f32 or f64. */
#include <kiln/author/family.h>

static const kiln_param params[] = {{.name = "type",
                                     .type = KILN_PARAM_WORD,
                                     .role = KILN_ROLE_CONTRACT,
                                     .words = "f32 f64",
                                     .default_value = "f32",
                                     .summary = "element type of x and y"},
                                    {0}};

static const kiln_arg args[] = {
    {.name = "a", .type = "$type", .summary = "the factor"},
    {.name = "x", .kind = KILN_ARG_IN, .type = "$type", .shape = "n", .summary = "what is added"},
    {.name = "y", .kind = KILN_ARG_INOUT, .type = "$type", .shape = "n", .summary = "the sum"},
    {.name = "n", .type = "u32", .summary = "elements"},
    {0}};

static const kiln_rule rules[] = {{"n <= 1073741824", "n must be at most 2^30"}, {0}};

/* The parameters in the order of `args`, then the thread's code. */
static void emit(ptx_fn *f, const kiln_variant *v)
{
    const ptx_type type = kiln_type(v, "type");
    ptx_val a = ptx_param(f, type, "a");
    ptx_val x = ptx_param_ptr(f, type, "x");
    ptx_val y = ptx_param_ptr(f, type, "y");
    ptx_val n = ptx_param(f, PTX_U32, "n");
    ptx_val i = ptx_global_thread_x(f);
    PTX_IF (f, ptx_lt(f, i, n)) {
        ptx_val xi = ptx_load(f, ptx_at(f, x, i));
        ptx_val at = ptx_at(f, y, i);
        ptx_val yi = ptx_load(f, at);
        ptx_store(f, at, ptx_fma(f, a, xi, yi));
    }
}

static void shape(kiln_shape *s, const kiln_variant *v)
{
    (void)v;
    s->block[0] = 256;
}

const kiln_family saxpy_family = {
    .name = "saxpy",
    .summary = "y = a*x + y",
    .source = "BLAS",
    .params = params,
    .args = args,
    .shape = shape,
    .rules = rules,
    .empty = "n == 0",
    .grid = {"ceil_div(n, 256)"},
    .cost = {.bytes_read = "2 * n * select(type == f64, 8, 4)",
             .bytes_written = "n * select(type == f64, 8, 4)",
             .elements = "n"},
    .min_sm = 75,
    .emit = emit,
};
