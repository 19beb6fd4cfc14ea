/* Families that exercise the writers: every kind of parameter, argument, rule and row. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../test_families.h"

/* ---- axpy: no parameters, so the variant's function is the family's ---------------------------------------------- */

/* On sm_90 it reads x before it waits for the preceding launch, because x is constant. */
static void emit_axpy(ptx_fn *f, const kiln_variant *v)
{
    ptx_val n = ptx_param(f, PTX_U64, "n");
    ptx_val a = ptx_param(f, PTX_F32, "a");
    ptx_val x = ptx_param_ptr(f, PTX_F32, "x");
    ptx_val y = ptx_param_ptr(f, PTX_F32, "y");
    ptx_val i = ptx_global_thread_x64(f);
    ptx_val in_bounds = ptx_lt(f, i, n), xi = ptx_var(f, ptx_f32(0));
    PTX_IF (f, in_bounds) {
        ptx_set(f, xi, ptx_load(f, ptx_at(f, x, i)));
    }
    if (kiln_has_sm(v, 90))
        ptx_grid_wait(f);
    PTX_IF (f, in_bounds) {
        ptx_val at = ptx_at(f, y, i);
        ptx_val yi = ptx_load(f, at);
        ptx_store(f, at, ptx_fma(f, a, xi, yi));
    }
}

static const kiln_arg axpy_args[] = {
    {.name = "n", .type = "u64", .summary = "elements"},
    {.name = "a", .type = "f32", .summary = "factor"},
    {.name = "x",
     .kind = KILN_ARG_CONSTANT,
     .type = "f32",
     .shape = "n",
     .alignment = 4,
     .summary = "what is added"},
    {.name = "y", .kind = KILN_ARG_INOUT, .type = "f32", .shape = "n", .alignment = 4, .summary = "the sum"},
    {0}};

static void shape_axpy(kiln_shape *s, const kiln_variant *v)
{
    (void)v;
    s->block[0] = 256;
}

static const kiln_family axpy = {
    .name = "axpy",
    .summary = "y[i] = a*x[i] + y[i]",
    .source = "BLAS saxpy",
    .args = axpy_args,
    .empty = "n == 0",
    .shape = shape_axpy,
    .grid = {"ceil_div(n, 256)"},
    .cost = {.bytes_read = "8 * n", .bytes_written = "4 * n", .elements = "n"},
    .min_sm = 75,
    .emit = emit_axpy,
};

/* ---- blend: everything else -------------------------------------------------------------------------------------- */

static const kiln_param blend_params[] = {{.name = "type",
                                           .type = KILN_PARAM_WORD,
                                           .role = KILN_ROLE_CONTRACT,
                                           .words = "f32 f64 f16",
                                           .default_value = "f32",
                                           .summary = "element type of x and y"},
                                          {.name = "acc",
                                           .type = KILN_PARAM_WORD,
                                           .role = KILN_ROLE_CONTRACT,
                                           .words = "f32 f64",
                                           .default_value = "f32",
                                           .summary = "type of the arithmetic"},
                                          {.name = "width",
                                           .type = KILN_PARAM_INT,
                                           .role = KILN_ROLE_CONTRACT,
                                           .min = 16,
                                           .max = 256,
                                           .step = 16,
                                           .default_value = "64",
                                           .summary = "elements of a row"},
                                          {.name = "clamp",
                                           .type = KILN_PARAM_BOOL,
                                           .role = KILN_ROLE_CONTRACT,
                                           .default_value = "false",
                                           .summary = "whether rows have limits"},
                                          {.name = "strategy",
                                           .type = KILN_PARAM_WORD,
                                           .role = KILN_ROLE_TUNING,
                                           .words = "narrow wide",
                                           .default_value = "narrow",
                                           .summary = "how much a thread does"},
                                          {0}};

static const kiln_arg blend_args[] = {
    {.name = "x",
     .kind = KILN_ARG_IN,
     .type = "$type",
     .shape = "rows, max(width, stride)",
     .alignment = 16,
     .summary = "rows to blend"},
    {.name = "y",
     .kind = KILN_ARG_OUT,
     .type = "$type",
     .shape = "rows, stride",
     .alignment = 16,
     .summary = "result"},
    {.name = "limit",
     .kind = KILN_ARG_IN,
     .type = "f32",
     .shape = "rows",
     .alignment = 4,
     .when = "clamp",
     .summary = "the most that a row's elements may be"},
    {.name = "norm",
     .kind = KILN_ARG_OPTIONAL_OUT,
     .type = "f32",
     .shape = "ceil_div(rows, 2)",
     .summary = "norms of pairs of rows, which are only there to check that long comments are wrapped well"},
    {.name = "factor", .type = "$acc", .summary = "multiplies x"},
    {.name = "rows", .type = "u32", .summary = "rows"},
    {.name = "stride", .type = "u64", .summary = "elements from one row to the next"},
    {0}};

static const kiln_rule blend_rules[] = {
    {"stride % 8 == 0", "stride must be a multiple of 8"},
    {"stride >= width", "stride must be at least \"width\""},
    {"strategy != wide || stride % 16 == 0", "with strategy wide stride must be a multiple of 16"},
    {0}};

static const kiln_alignment blend_alignments[] = {{"norm", "select(strategy == wide, 16, 4)"}, {0}};
static const kiln_arg blend_one_args[] = {{.name = "x",
                                           .kind = KILN_ARG_IN,
                                           .type = "$type",
                                           .shape = "width",
                                           .alignment = 16,
                                           .summary = "the row"},
                                          {.name = "y",
                                           .kind = KILN_ARG_OUT,
                                           .type = "$type",
                                           .shape = "copies, width",
                                           .alignment = 16,
                                           .summary = "result"},
                                          {.name = "copies", .type = "u32", .summary = "how often"},
                                          {.name = "factor", .type = "$acc", .summary = "multiplies x"},
                                          {0}};

static const kiln_value blend_one_values[] = {{"rows", "max(copies, 1)"}, {"stride", "width * 2"}, {0}};

static const kiln_call blend_calls[] = {{"one", "a row by itself", blend_one_args, blend_one_values}, {0}};

/* Newer targets have another body, so a variant has two images. Wide variants do not run on sm_75. */
static void emit_blend(ptx_fn *f, const kiln_variant *v)
{
    const ptx_type type = kiln_type(v, "type"), acc = kiln_type(v, "acc");
    ptx_val x = ptx_param_ptr(f, type, "x");
    ptx_val y = ptx_param_ptr(f, type, "y");
    if (kiln_bool(v, "clamp"))
        ptx_param_ptr(f, PTX_F32, "limit");
    ptx_param_ptr(f, PTX_F32, "norm");
    ptx_param(f, acc, "factor");
    ptx_val rows = ptx_param(f, PTX_U32, "rows");
    ptx_param(f, PTX_U64, "stride");
    ptx_note(f, kiln_has_sm(v, 90) ? "for sm_90 \\ and \"newer\""
                                   : "for all, what?"
                                     "?!");
    ptx_val i = ptx_global_thread_x(f);
    PTX_IF (f, ptx_lt(f, i, rows)) {
        ptx_val xi = ptx_load(f, ptx_at(f, x, i));
        ptx_val at = ptx_at(f, y, i);
        ptx_store(f, at, xi);
    }
}

static void shape_blend(kiln_shape *s, const kiln_variant *v)
{
    const bool is_wide = kiln_is(v, "strategy", "wide");
    s->block[0] = is_wide ? 256 : 64;
    s->block[1] = 2;
    s->shared_bytes = is_wide ? 131072 : kiln_int(v, "width") * 4;
    s->least_shared_bytes = is_wide ? 256 : s->shared_bytes;
    s->min_sm = is_wide ? 80 : 75;
}

static const kiln_family blend = {
    .name = "blend",
    .summary = "y = factor*x, row by row",
    .source = "no paper",
    .accuracy =
        "an element of y is within 2^-24 of its magnitude, for factors from 2^-100 to 2^100; norm is exact",
    .params = blend_params,
    .args = blend_args,
    .rules = blend_rules,
    .empty = "rows == 0",
    .shape = shape_blend,
    .grid = {"min(ceil_div(rows, width), 4 * multiprocessors)", "ceil_div(stride, 2048)"},
    .alignments = blend_alignments,
    .shared_bytes = "select(strategy == wide, min(stride, 8192) * 16, width * 4)",
    .time =
        {.extra =
             "select(strategy == wide, select(rows >= 1024 || multiprocessors < 8, 0, 2000000), 1000000)"},
    .calls = blend_calls,
    .cost = {.bytes_read = "rows * stride", .bytes_written = "rows * stride", .elements = "rows * width"},
    .min_sm = 75,
    .emit = emit_blend,
};

/* ---- parts: a pointer that only some variants have, with a rule for its size -------------------------------------- */

static const kiln_param parts_params[] = {{.name = "split_k",
                                           .type = KILN_PARAM_INT,
                                           .role = KILN_ROLE_TUNING,
                                           .words = "1 2",
                                           .default_value = "1",
                                           .summary = "thread blocks that share a tile"},
                                          {0}};

static const kiln_arg parts_args[] = {
    {.name = "n", .type = "u64", .summary = "elements"},
    {.name = "workspace",
     .kind = KILN_ARG_SCRATCH,
     .type = "f32",
     .shape = "workspace_size",
     .alignment = 4,
     .when = "split_k != 1",
     .summary = "sums of parts"},
    {.name = "tile_counters",
     .kind = KILN_ARG_INOUT,
     .type = "u32",
     .shape = "workspace_size / 8 * 2",
     .alignment = 4,
     .when = "split_k != 1",
     .summary = "a pair for each 8 numbers"},
    {.name = "workspace_size", .type = "u64", .summary = "numbers that workspace holds"},
    {0}};

static const kiln_workspace parts_workspace = {"workspace", "tile_counters", "workspace_size",
                                               "ceil_div(n, 16) * 16 * split_k", NULL};

static const kiln_rule parts_rules[] = {{"split_k == 1 || workspace_size >= ceil_div(n, 16) * 16 * split_k",
                                         "workspace_size must be at least ceil_div(n, 16) * 16 * split_k"},
                                        {0}};

static void emit_parts(ptx_fn *f, const kiln_variant *v)
{
    ptx_param(f, PTX_U64, "n");
    if (kiln_int(v, "split_k") != 1)
        ptx_param_ptr(f, PTX_F32, "workspace");
    if (kiln_int(v, "split_k") != 1)
        ptx_param_ptr(f, PTX_U32, "tile_counters");
    ptx_param(f, PTX_U64, "workspace_size");
}

static const kiln_family parts = {
    .name = "parts",
    .summary = "nothing, in parts",
    .source = "this file",
    .params = parts_params,
    .args = parts_args,
    .workspace = &parts_workspace,
    .rules = parts_rules,
    .cost = {.bytes_read = "0", .bytes_written = "0", .elements = "n"},
    .min_sm = 75,
    .emit = emit_parts,
};

/* ---- broken: its kernel's parameter contradicts the descriptor ---------------------------------------------------- */

static void emit_broken(ptx_fn *f, const kiln_variant *v)
{
    (void)v;
    ptx_param(f, PTX_U32, "n");
}

static const kiln_arg broken_args[] = {{.name = "n", .type = "u64", .summary = "elements"}, {0}};

static const kiln_family broken = {
    .name = "broken",
    .summary = "nothing",
    .source = "this file",
    .args = broken_args,
    .cost = {.bytes_read = "0", .bytes_written = "0"},
    .min_sm = 75,
    .emit = emit_broken,
};

/* ---- boxes: tensor maps, of rows with a stride and without ---------------------------------------------------------- */

enum { BOX_ROWS = 8, BOX_COLUMNS = 32, BOX_BYTES = 4 * BOX_ROWS * BOX_COLUMNS };

/* One thread copies a box. */
static void emit_boxes(ptx_fn *f, const kiln_variant *v)
{
    static const char *const names[] = {"x", "y"};
    (void)v;
    for (int i = 0; i < 2; i++)
        ptx_param_ptr(f, PTX_F32, names[i]);
    ptx_param(f, PTX_U32, "rows");
    ptx_param(f, PTX_U32, "n");
    ptx_param(f, PTX_U64, "stride");
    ptx_val from = ptx_tensor_map(f, "from"), to = ptx_tensor_map(f, "to"), tid = ptx_tid_x(f), first[2];
    ptx_val box = ptx_shared(f, PTX_F32, BOX_ROWS * BOX_COLUMNS, 128), full = ptx_shared(f, PTX_B64, 1, 8);
    first[0] = ptx_mul(f, ptx_ctaid_x(f), BOX_COLUMNS);
    first[1] = ptx_mul(f, ptx_ctaid_y(f), BOX_ROWS);
    PTX_IF (f, ptx_eq(f, tid, 0)) {
        ptx_prefetch_map(f, from);
        ptx_mbarrier_init(f, full, 1);
        ptx_fence_mbarrier_init(f);
        ptx_mbarrier_arrive_bytes(f, full, BOX_BYTES);
        ptx_tensor_load(f, 2, box, from, first, full);
        PTX_LOOP (f) {
            ptx_val is_full = ptx_mbarrier_try_parity(f, full, 0);
            ptx_repeat_if(f, ptx_not(f, is_full));
        }
        ptx_tensor_store(f, 2, to, first, box);
        ptx_bulk_commit(f);
        ptx_bulk_wait(f, 0);
    }
}

static void shape_boxes(kiln_shape *s, const kiln_variant *v)
{
    (void)v;
    s->block[0] = 32;
}

static const kiln_arg boxes_args[] = {{.name = "x",
                                       .kind = KILN_ARG_IN,
                                       .type = "f32",
                                       .shape = "rows, stride",
                                       .alignment = 16,
                                       .summary = "read"},
                                      {.name = "y",
                                       .kind = KILN_ARG_OUT,
                                       .type = "f32",
                                       .shape = "rows, n",
                                       .alignment = 16,
                                       .summary = "its copy"},
                                      {.name = "rows", .type = "u32", .summary = "rows"},
                                      {.name = "n", .type = "u32", .summary = "elements of a row of y"},
                                      {.name = "stride", .type = "u64", .summary = "elements of a row of x"},
                                      {0}};

static const kiln_map boxes_maps[] = {
    {.name = "from", .arg = "x", .strides = "stride", .box = "8, 32", .swizzle_bytes = "128"},
    {.name = "to", .arg = "y", .box = "8, 32", .swizzle_bytes = "128"},
    {0}};

static const kiln_rule boxes_rules[] = {
    {"n % 4 == 0 && stride % 4 == 0", "n and stride must be multiples of 4"},
    {"rows <= 524280 && n <= 65536 && stride >= n && stride <= 65536", "n and stride are at most 65536"},
    {0}};

static const kiln_family boxes = {
    .name = "boxes",
    .summary = "y = x",
    .source = "this file",
    .args = boxes_args,
    .maps = boxes_maps,
    .rules = boxes_rules,
    .shape = shape_boxes,
    .empty = "rows == 0 || n == 0",
    .grid = {"ceil_div(n, 32)", "ceil_div(rows, 8)"},
    .cost = {.bytes_read = "8 * rows * n", .bytes_written = "4 * rows * n", .elements = "rows * n"},
    .min_sm = 90,
    .emit = emit_boxes,
};

/* ---- untimed and untimed_side: state the time of a loop that their kernels lack ------------------------------------ */

static void emit_untimed(ptx_fn *f, const kiln_variant *v)
{
    (void)v;
    ptx_param(f, PTX_U64, "n");
}

static const kiln_family untimed = {
    .name = "untimed",
    .summary = "nothing",
    .source = "this file",
    .args = broken_args,
    .time = {.length = "n"},
    .cost = {.bytes_read = "0", .bytes_written = "0"},
    .min_sm = 75,
    .emit = emit_untimed,
};

static const kiln_family untimed_side = {
    .name = "untimed_side",
    .summary = "nothing",
    .source = "this file",
    .args = broken_args,
    .time = {.side_trips = "n"},
    .cost = {.bytes_read = "0", .bytes_written = "0"},
    .min_sm = 75,
    .emit = emit_untimed,
};

/* ---- unmapped: its kernel does not declare the tensor map ----------------------------------------------------------- */

static void emit_unmapped(ptx_fn *f, const kiln_variant *v)
{
    (void)v;
    ptx_param_ptr(f, PTX_F32, "x");
}

static const kiln_arg unmapped_args[] = {
    {.name = "x", .kind = KILN_ARG_IN, .type = "f32", .shape = "64", .alignment = 16, .summary = "read"},
    {0}};

static const kiln_map unmapped_maps[] = {{.name = "m", .arg = "x", .box = "64"}, {0}};

static const kiln_family unmapped = {
    .name = "unmapped",
    .summary = "nothing",
    .source = "this file",
    .args = unmapped_args,
    .maps = unmapped_maps,
    .cost = {.bytes_read = "0", .bytes_written = "0"},
    .min_sm = 75,
    .emit = emit_unmapped,
};

/* ---- lacking: a rule names an argument that its variant lacks ------------------------------------------------------ */

static const kiln_param lacking_params[] = {{.name = "matrices",
                                             .type = KILN_PARAM_INT,
                                             .role = KILN_ROLE_CONTRACT,
                                             .words = "1 2",
                                             .default_value = "1",
                                             .summary = "matrices"},
                                            {0}};

static const kiln_arg lacking_args[] = {
    {.name = "n", .type = "u64", .summary = "elements"},
    {.name = "n_2", .type = "u64", .when = "matrices == 2", .summary = "elements of another"},
    {0}};

static const kiln_rule lacking_rules[] = {{"n >= matrices * n_2", "n must be at least matrices * n_2"}, {0}};

static const kiln_family lacking = {
    .name = "lacking",
    .summary = "nothing",
    .source = "this file",
    .params = lacking_params,
    .args = lacking_args,
    .rules = lacking_rules,
    .cost = {.bytes_read = "0", .bytes_written = "0"},
    .min_sm = 75,
    .emit = emit_untimed,
};

/* ---- leaving: its emit ends the program, as if it had succeeded ------------------------------------------------------ */

static void emit_leaving(ptx_fn *f, const kiln_variant *v)
{
    emit_untimed(f, v);
    exit(0);
}

static const kiln_family leaving = {
    .name = "leaving",
    .summary = "nothing",
    .source = "this file",
    .args = broken_args,
    .min_sm = 75,
    .emit = emit_leaving,
};

/* ---- straying: its emit does not return ------------------------------------------------------------------------------- */

static int recurse(volatile int *depth)
{
    volatile char frame[4096] = {0};
    return *depth < 0 ? frame[0] : ++*depth + recurse(depth) + frame[0];
}

static void emit_straying(ptx_fn *f, const kiln_variant *v)
{
    volatile int depth = 0;
    emit_untimed(f, v);
    if (kiln_is(v, "way", "fault"))
        raise(SIGSEGV);
    if (kiln_is(v, "way", "overflow"))
        recurse(&depth);
    if (kiln_is(v, "way", "abort"))
        abort();
    if (kiln_is(v, "way", "loop"))
        fputs("looping\n", stderr);
    while (depth == 0)
        pause();
}

static const kiln_param straying_params[] = {{.name = "way",
                                              .type = KILN_PARAM_WORD,
                                              .role = KILN_ROLE_TUNING,
                                              .words = "fault overflow abort loop",
                                              .default_value = "loop",
                                              .summary = "what emit does"},
                                             {0}};

static const kiln_family straying = {
    .name = "straying",
    .summary = "nothing",
    .source = "this file",
    .params = straying_params,
    .args = broken_args,
    .min_sm = 75,
    .emit = emit_straying,
};

/* ---- cramped: uses dynamic shared memory that its shape does not have --------------------------------------------------- */

static void emit_cramped(ptx_fn *f, const kiln_variant *v)
{
    emit_untimed(f, v);
    ptx_store(f, ptx_shared_dynamic(f, PTX_F32), 1);
}

static const kiln_family cramped = {
    .name = "cramped",
    .summary = "nothing",
    .source = "this file",
    .args = broken_args,
    .min_sm = 75,
    .emit = emit_cramped,
};

/* ---- uncosted: states no bytes, which are then 0 -------------------------------------------------------------------------- */

static void emit_uncosted(ptx_fn *f, const kiln_variant *v)
{
    emit_untimed(f, v);
    ptx_address(f, ptx_shared_dynamic(f, PTX_F32)); /* of which the shape has none: no instruction reads it */
}

static const kiln_param uncosted_params[] = {{.name = "tile",
                                              .type = KILN_PARAM_INT,
                                              .role = KILN_ROLE_TUNING,
                                              .words = "1 2",
                                              .default_value = "1",
                                              .summary = "no effect"},
                                             {0}};

static const kiln_family uncosted = {
    .name = "uncosted",
    .summary = "nothing",
    .source = "this file",
    .params = uncosted_params,
    .args = broken_args,
    .min_sm = 75,
    .emit = emit_uncosted,
};

const kiln_family *const test_families[] = {&axpy,         &blend,   &parts,    &broken,   &untimed,
                                            &untimed_side, &lacking, &boxes,    &unmapped, &leaving,
                                            &straying,     &cramped, &uncosted, NULL};
