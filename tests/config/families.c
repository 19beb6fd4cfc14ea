/* Families for tests. Each shows a feature of descriptors. Their kernels are empty, and only kernels whose sole parameter
 * is n can be written. */
#include "../test_families.h"

static void emit_nothing(ptx_fn *f, const kiln_variant *v)
{
    (void)f;
    (void)v;
}

static void emit_n(ptx_fn *f, const kiln_variant *v)
{
    (void)v;
    ptx_param(f, PTX_U64, "n");
}

/* ---- axpy: every kind of parameter, argument and rule ------------------------------------------------------------ */

static const kiln_param axpy_params[] = {
    {.name = "type", .words = "f32 f64 f16 bf16", .default_value = "f32", .summary = "of x and y"},
    {.name = "strategy",
     .role = KILN_ROLE_TUNING,
     .words = "simt mma",
     .default_value = "simt",
     .summary = "how it is computed"},
    {.name = "tile",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_TUNING,
     .min = 32,
     .max = 256,
     .step = 32,
     .default_value = "128",
     .summary = "elements per thread block"},
    {.name = "masked", .type = KILN_PARAM_BOOL, .default_value = "false", .summary = "skips where mask is 0"},
    {0}};

static const kiln_arg axpy_args[] = {
    {.name = "n", .type = "u64", .summary = "elements"},
    {.name = "a", .type = "f32", .summary = "the factor"},
    {.name = "x", .kind = KILN_ARG_IN, .type = "$type", .shape = "n", .alignment = 16, .summary = "added"},
    {.name = "y",
     .kind = KILN_ARG_INOUT,
     .type = "$type",
     .shape = "n",
     .alignment = 16,
     .summary = "the sum"},
    {.name = "mask",
     .kind = KILN_ARG_IN,
     .type = "u8",
     .shape = "ceil_div(n, 8), 1",
     .alignment = 1,
     .when = "masked",
     .summary = "a bit per element"},
    {0}};

static const kiln_rule axpy_rules[] = {{"n % 2 == 0", "n must be even"},
                                       {"aligned(x, 32) || n < 64", "x must be aligned to 32 bytes"},
                                       {"!masked || type == f16 || n % 8 == 0", "n must be a multiple of 8"},
                                       {0}};

static void shape_axpy(kiln_shape *s, const kiln_variant *v)
{
    kiln_require(s, !kiln_is(v, "type", "f32") || kiln_is(v, "strategy", "simt"), "type strategy",
                 "f32 has no mma");
    kiln_require(s, !kiln_bool(v, "masked") || kiln_int(v, "tile") >= 64, "masked tile",
                 "a mask needs tiles of 64 or more");
    s->block[0] = kiln_int(v, "tile");
    s->shared_bytes = kiln_int(v, "tile") * (kiln_is(v, "type", "f64") ? 8 : 4);
    s->min_sm = kiln_is(v, "strategy", "mma") ? 80 : 75;
}

static const kiln_family axpy = {
    .name = "axpy",
    .summary = "y = a * x + y",
    .source = "BLAS saxpy",
    .accuracy = "an element of y is within u * |a * x| + u * |y| of the exact one, u being half an ulp of "
                "the type, where neither a * x nor the sum overflows",
    .params = axpy_params,
    .args = axpy_args,
    .shape = shape_axpy,
    .rules = axpy_rules,
    .empty = "n == 0",
    .grid = {"min(ceil_div(n, tile), multiprocessors * 8)"},
    .time = {.length = "n", .repeats = "ceil_div(n, tile)", .wait = "select(sm >= 80, 400, 600)"},
    .cost = {.bytes_read = "n * 8 + 4", .bytes_written = "n * 4", .elements = "n"},
    .min_sm = 75,
    .emit = emit_nothing,
};

/* ---- group: words that are numbers, integers from a list --------------------------------------------------------- */

static const kiln_param group_params[] = {
    {.name = "group", .words = "32 64 any", .default_value = "64", .summary = "elements per scale"},
    {.name = "threads",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_TUNING,
     .words = "64 128 256",
     .default_value = "128",
     .summary = "per thread block"},
    {0}};

static const kiln_arg group_args[] = {
    {.name = "n", .type = "u64", .summary = "elements"},
    {.name = "group_size", .type = "u32", .when = "group == any", .summary = "elements per scale"},
    {.name = "scale",
     .kind = KILN_ARG_OUT,
     .type = "f32",
     .shape = "ceil_div(n, select(group == any, group_size, group))",
     .alignment = 4,
     .summary = "the scales"},
    {.name = "most",
     .kind = KILN_ARG_OPTIONAL_OUT,
     .type = "f32",
     .shape = "1",
     .alignment = 4,
     .summary = "largest"},
    {0}};

static void shape_group(kiln_shape *s, const kiln_variant *v)
{
    s->block[0] = kiln_int(v, "threads");
}

static const kiln_family group = {
    .name = "group_scale",
    .summary = "a scale per group",
    .source = "none",
    .params = group_params,
    .args = group_args,
    .shape = shape_group,
    .grid = {"ceil_div(n, threads)"},
    .cost = {.bytes_read = "n * 4", .bytes_written = "0", .elements = "n"},
    .min_sm = 75,
    .emit = emit_nothing,
};

/* ---- hopper: runs on one architecture-specific target only -------------------------------------------------------- */

static const kiln_param hopper_params[] = {
    {.name = "wide", .type = KILN_PARAM_BOOL, .default_value = "true", .summary = "uses wgmma"}, {0}};

static const kiln_arg only_n[] = {{.name = "n", .type = "u64", .summary = "elements"}, {0}};

static void shape_hopper(kiln_shape *s, const kiln_variant *v)
{
    s->block[0] = 1;
    s->max_sm = kiln_bool(v, "wide") ? 90 : 0;
    s->is_specific = kiln_bool(v, "wide");
}

static const kiln_family hopper = {
    .name = "hopper",
    .summary = "needs what only sm_90a has",
    .source = "none",
    .params = hopper_params,
    .args = only_n,
    .cost = {.bytes_read = "0", .bytes_written = "0", .elements = "n"},
    .min_sm = 90,
    .shape = shape_hopper,
    .emit = emit_n,
};

/* ---- clash: different values, one entry name --------------------------------------------------------------------- */

static const kiln_param clash_params[] = {
    {.name = "p", .words = "x x_y", .numbers = "1 2", .default_value = "x", .summary = "first half"},
    {.name = "q", .words = "y_z z", .numbers = "1 2", .default_value = "z", .summary = "second half"},
    {0}};

static const kiln_family clash = {
    .name = "clash",
    .summary = "x + y_z and x_y + z",
    .source = "none",
    .params = clash_params,
    .args = only_n,
    .cost = {.bytes_read = "0", .bytes_written = "0", .elements = "n"},
    .min_sm = 75,
    .emit = emit_n,
};

/* ---- twin: two identities with one XXH3-64, found by a search for cycles ------------------------------------------ */

static const kiln_param twin_params[] = {{.name = "word",
                                          .words = "968952aaab3cd248 28eb84270c0b5bd6",
                                          .numbers = "1 2",
                                          .default_value = "968952aaab3cd248",
                                          .summary = "both give the key 6bc4d751fef5402e"},
                                         {0}};

static const kiln_family twin = {
    .name = "twin",
    .summary = "two identities, one key",
    .source = "none",
    .params = twin_params,
    .args = only_n,
    .cost = {.bytes_read = "0", .bytes_written = "0", .elements = "n"},
    .min_sm = 75,
    .emit = emit_n,
};

/* ---- wide: too many combinations ---------------------------------------------------------------------------------- */

#define DIGIT(letter)                                                                                        \
    {                                                                                                        \
        .name = letter, .type = KILN_PARAM_INT, .max = 4000000000, .step = 1, .default_value = "0",          \
        .summary = "any number"                                                                              \
    }

static const kiln_param wide_params[] = {DIGIT("a"), DIGIT("b"), DIGIT("c"), DIGIT("d"),
                                         DIGIT("e"), DIGIT("f"), {0}};

/* Texts that are longer than a line, for `kiln families`. */
static const kiln_rule wide_rules[] = {
    {"n % 2 == 0", "n must be even"},
    {"n % select(a == 0, 16, select(b == 0, 32, select(c == 0, 64, select(d == 0, 128, select(e == 0, 256, "
     "512))))) == 0 || n < 1024 && f == 0",
     "n must be what the parameters say that it has to be a multiple of, whatever they may say, or less than "
     "1024 when f is nothing"},
    {0},
};

static const kiln_family wide = {
    .name = "wide",
    .summary = "many combinations",
    .source = "none",
    .nonfinite = "there is neither a NaN nor an infinity in it, for it does nothing at all, however long the "
                 "sentence that says so may become; a second line is enough",
    .params = wide_params,
    .args = only_n,
    .rules = wide_rules,
    .cost = {.bytes_read =
                 "4 * n + select(a == 0, 4 * ceil_div(n, 32), 8 * ceil_div(n, 64)) * (b + 1) + (c + d) * n * "
                 "(e + select(f == 0, 1, 2))",
             .bytes_written =
                 "ceil_div(n, max(a * ceil_div(n, 1024 + 32 * b) + c, min(d * ceil_div(n, 4096 + 64 * e), "
                 "max(f, select(a == 0 || b == 0 || c == 0, 4, 8)))))",
             .elements = "n"},
    .min_sm = 75,
    .emit = emit_n,
};

/* ---- tall: a value with requirements for other values and for the device ------------------------------------------ */

static const kiln_param tall_params[] = {
    {.name = "shape",
     .words = "square tall",
     .numbers = "1 2",
     .default_value = "square",
     .summary = "of a tile"},
    {.name = "rows", .words = "8 32 64 104 256", .default_value = "8", .summary = "of a tile"},
    {.name = "columns", .words = "8 16", .default_value = "8", .summary = "of a tile"},
    {0}};

static void shape_tall(kiln_shape *s, const kiln_variant *v)
{
    const uint32_t rows = kiln_int(v, "rows"), columns = kiln_int(v, "columns");
    kiln_require(s, kiln_is(v, "shape", "square") || rows >= 32, "shape rows", "tall is from 32 rows on");
    kiln_require(s, rows == 8 || columns == 16, "rows columns", "from 32 rows on columns is 16");
    s->block[0] = 1;
    s->shared_bytes = rows * columns * (kiln_is(v, "shape", "tall") ? 96 : 104);
    kiln_require_shared_bytes(s, s->shared_bytes, 166912, "shape rows columns", "rows and columns");
    s->min_sm = rows == 64 ? 80 : 75;
}

static const kiln_family tall = {
    .name = "tall",
    .summary = "tiles, some of them tall",
    .source = "none",
    .params = tall_params,
    .args = only_n,
    .shape = shape_tall,
    .cost = {.bytes_read = "0", .bytes_written = "0", .elements = "n"},
    .min_sm = 75,
    .emit = emit_n,
};

/* ---- product: variants to choose from by shapes ------------------------------------------------------------------- */

static const kiln_param product_params[] = {
    {.name = "x", .words = "f32 f16", .default_value = "f32", .summary = "type of x"},
    {.name = "tile",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_TUNING,
     .words = "1 8 64",
     .default_value = "8",
     .summary = "rows of a thread block; 64 from sm_80 on"},
    {.name = "vector",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_TUNING,
     .words = "1 4",
     .default_value = "1",
     .summary = "columns of a thread"},
    {.name = "split_k",
     .type = KILN_PARAM_INT,
     .role = KILN_ROLE_TUNING,
     .words = "1 4",
     .default_value = "1",
     .summary = "thread blocks that share k"},
    {0}};

static const kiln_arg product_args[] = {
    {"m", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "rows"},
    {"n", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "columns"},
    {"k", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements of a row of x"},
    {"stride", KILN_ARG_VALUE, "u32", NULL, 0, NULL, "elements between rows of x"},
    {"offset", KILN_ARG_VALUE, "u32", NULL, 0, "x == f32", "added to y"},
    {"in", KILN_ARG_IN, "$x", "m, stride", 16, NULL, "x"},
    {"out", KILN_ARG_OUT, "f32", "m, n", 16, NULL, "y"},
    {"workspace", KILN_ARG_SCRATCH, "f32", "m, n, split_k", 16, "split_k != 1", "sums of the parts"},
    {"workspace_size", KILN_ARG_VALUE, "u64", NULL, 0, "split_k != 1", "elements of the workspace"},
    {"counters", KILN_ARG_INOUT, "u32", "ceil_div(m, tile)", 4, "split_k != 1", "zeros"},
    {0}};

static const kiln_rule product_rules[] = {
    {"k % 32 == 0", "k must be a multiple of 32"},
    {"m <= 65535", "m must be at most 65535"},
    {"stride >= k", "stride must be at least k"},
    {"vector == 1 || n % 4 == 0", "n must be a multiple of vector"},
    {"split_k == 1 || workspace_size >= m * n * split_k", "workspace_size must be at least m * n * split_k"},
    {0}};

static const kiln_rule product_advice[] = {{"x == f32 && m >= 256", "x: f16 is faster"}, {0}};
static const kiln_value product_usual[] = {{"stride", "k"}, {0}};
static const kiln_workspace product_workspace = {"workspace", "counters", "workspace_size", "m * n * split_k",
                                                 NULL};

static void shape_product(kiln_shape *s, const kiln_variant *v)
{
    kiln_require(s, kiln_int(v, "tile") < 64 || kiln_int(v, "split_k") == 1, "tile split_k",
                 "tiles of 64 rows do not share k");
    s->block[0] = 32;
    s->trip = 32;
    s->min_sm = kiln_int(v, "tile") == 64 ? 80 : 75;
}

static void emit_product(ptx_fn *f, const kiln_variant *v)
{
    const uint32_t stores = 1 + kiln_int(v, "tile") / 4;
    const bool is_split = kiln_int(v, "split_k") > 1;
    ptx_param(f, PTX_U32, "m");
    ptx_param(f, PTX_U32, "n");
    ptx_val k = ptx_param(f, PTX_U32, "k");
    ptx_param(f, PTX_U32, "stride");
    if (kiln_is(v, "x", "f32"))
        ptx_param(f, PTX_U32, "offset");
    ptx_param_ptr(f, kiln_type(v, "x"), "in");
    ptx_val out = ptx_param_ptr(f, PTX_F32, "out");
    if (is_split)
        out = ptx_param_ptr(f, PTX_F32, "workspace");
    if (is_split)
        ptx_param(f, PTX_U64, "workspace_size");
    if (is_split)
        ptx_param_ptr(f, PTX_U32, "counters");
    PTX_FOR (f, i, ptx_tid_x(f), k, 32) {
        ptx_main_loop(f);
        for (uint32_t n = 0; n < stores; n++)
            ptx_store(f, ptx_at(f, out, ptx_add(f, i, n)), 0);
    }
}

static const kiln_family product = {
    .name = "product",
    .summary = "y = x * W, of which there is none",
    .source = "none",
    .params = product_params,
    .args = product_args,
    .rules = product_rules,
    .shape = shape_product,
    .grid = {"ceil_div(m, tile)", "ceil_div(n, 32 * vector)", "split_k"},
    .time = {.length = "k / split_k", .wait = "400", .extra = "select(split_k == 1, 0, 2000)"},
    .cost = {.bytes_read = "m * k * 4", .bytes_written = "m * n * 4", .elements = "m * n"},
    .workspace = &product_workspace,
    .usual = product_usual,
    .advice = product_advice,
    .min_sm = 75,
    .emit = emit_product,
};

/* ---- maze: too many sets of variants ------------------------------------------------------------------------------ */

static const kiln_param maze_params[] = {{.name = "way",
                                          .type = KILN_PARAM_INT,
                                          .role = KILN_ROLE_TUNING,
                                          .max = 150,
                                          .step = 1,
                                          .default_value = "0",
                                          .summary = "which numbers it is fast for"},
                                         {0}};

/* Half of the variants serve each of two ranges of n. */
static const kiln_rule maze_rules[] = {{"way % 2 == 0 || n >= 64", "n must be at least 64"},
                                       {"way % 2 == 1 || n < 2147483648", "n must be less than 2^31"},
                                       {0}};

static void shape_maze(kiln_shape *s, const kiln_variant *v)
{
    (void)v;
    s->block[0] = 32;
    s->trip = 1;
}

static void emit_maze(ptx_fn *f, const kiln_variant *v)
{
    (void)v;
    ptx_val n = ptx_param(f, PTX_U64, "n");
    PTX_FOR (f, i, 0, n, 1)
        ptx_main_loop(f);
}

static const kiln_family maze = {
    .name = "maze",
    .summary = "each variant is fast for other numbers",
    .source = "none",
    .params = maze_params,
    .args = only_n,
    .rules = maze_rules,
    .shape = shape_maze,
    .grid = {"n"},
    .time = {.length = "1",
             .extra = "select((n * 31 + way * 17 + n * way * 7) % 101 < 12, 0, 1000000000000)"},
    .cost = {.bytes_read = "0", .bytes_written = "0", .elements = "n"},
    .min_sm = 75,
    .emit = emit_maze,
};

/* ---- plain: no parameters ---------------------------------------------------------------------------------------- */

static const kiln_family plain = {
    .name = "plain",
    .summary = "no parameters",
    .source = "none",
    .args = only_n,
    .cost = {.bytes_read = "0", .bytes_written = "0", .elements = "n"},
    .min_sm = 75,
    .emit = emit_n,
};

const kiln_family *const test_families[] = {&axpy, &group,   &hopper, &clash, &twin, &wide,
                                            &tall, &product, &maze,   &plain, NULL};
