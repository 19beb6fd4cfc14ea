/* A second family: halves numbers, `vector` at a time. The pointers' alignment depends on the variant. */
#include <kiln/author/family.h>

static const kiln_param params[] = {{.name = "vector",
                                     .type = KILN_PARAM_INT,
                                     .role = KILN_ROLE_TUNING,
                                     .words = "1 2 4",
                                     .default_value = "4",
                                     .summary = "numbers that a thread takes at once"},
                                    {0}};

static const kiln_arg args[] = {
    {.name = "x", .kind = KILN_ARG_IN, .type = "f32", .shape = "n", .summary = "what is halved"},
    {.name = "y", .kind = KILN_ARG_OUT, .type = "f32", .shape = "n", .summary = "the halves"},
    {.name = "n", .type = "u32", .summary = "numbers"},
    {0}};

static const kiln_alignment alignments[] = {{"x", "4 * vector"}, {"y", "4 * vector"}, {0}};

static const kiln_rule rules[] = {
    {"n % vector == 0", "n must be a multiple of vector"},
    {"n <= 1073741824", "n must be at most 2^30"},
    {"aligned(y, 64) || n < 1000", "y must be aligned to 64 bytes for 1000 numbers or more"},
    {0}};

static void emit(ptx_fn *f, const kiln_variant *v)
{
    const uint32_t vector = kiln_int(v, "vector");
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x");
    ptx_val y = ptx_param_ptr(f, PTX_F32, "y");
    ptx_val n = ptx_param(f, PTX_U32, "n");
    ptx_val thread = ptx_global_thread_x(f);
    ptx_val i = ptx_mul(f, thread, vector);
    PTX_IF (f, ptx_lt(f, i, n)) {
        ptx_val values[4];
        ptx_val from = ptx_at(f, x, i), to = ptx_at(f, y, i);
        if (vector == 1)
            values[0] = ptx_load(f, from);
        else
            ptx_load_vec(f, (int)vector, values, from, PTX_PLAIN);
        for (uint32_t k = 0; k < vector; k++)
            values[k] = ptx_mul(f, values[k], 0.5f);
        if (vector == 1)
            ptx_store(f, to, values[0]);
        else
            ptx_store_vec(f, (int)vector, to, values, PTX_PLAIN);
    }
}

static void shape(kiln_shape *s, const kiln_variant *v)
{
    (void)v;
    s->block[0] = 128;
}

const kiln_family halve_family = {
    .name = "halve",
    .summary = "y = x / 2",
    .source = "arithmetic",
    .params = params,
    .args = args,
    .alignments = alignments,
    .shape = shape,
    .rules = rules,
    .empty = "n == 0",
    .grid = {"ceil_div(n, 128 * vector)"},
    .cost = {.bytes_read = "4 * n", .bytes_written = "4 * n", .elements = "n"},
    .min_sm = 75,
    .emit = emit,
};
