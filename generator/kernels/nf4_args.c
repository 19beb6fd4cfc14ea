/* Products with NF4 weights. */
#include "nf4_args.h"

#include "device/shared.h"

const kiln_value nf4_example[] = {{"m", "16"}, {"n", "256"}, {"k", "512"}, {.arg = NULL}};

nf4_args nf4_declare_args(ptx_fn *f, const kiln_variant *v, bool is_transposed)
{
    const bool is_nested = !is_transposed && kiln_is(v, "scale_type", "nested");
    const bool is_strided = !is_transposed && kiln_is(v, "rows", "strided");
    nf4_args a = {.type = kiln_type(v, "a"),
                  .wide = kiln_type(v, "acc"),
                  .split_k = kiln_int(v, "split_k"),
                  .is_nested = is_nested};
    a.in = ptx_param_ptr(f, a.type, "in");
    a.packed = ptx_param_ptr(f, PTX_U8, "packed");
    if (is_nested)
        a.nested = nf4_nested_pointers(f);
    else
        a.scale = ptx_param_ptr(f, PTX_F32, "scale");
    a.out = ptx_param_ptr(f, a.type, "out");
    if (a.split_k != 1) {
        a.workspace = ptx_param_ptr(f, a.wide, "workspace");
        a.tile_counters = ptx_param_ptr(f, PTX_U32, "tile_counters");
    }
    a.m = ptx_param(f, PTX_U32, "m");
    a.n = ptx_param(f, PTX_U32, "n");
    a.k = ptx_param(f, PTX_U32, "k");
    a.a_stride = is_strided ? ptx_param(f, PTX_U32, "a_stride") : a.k;
    a.c_stride = is_strided ? ptx_param(f, PTX_U32, "c_stride") : a.n;
    if (is_nested)
        nf4_nested_offset(&a.nested);
    ptx_param(f, PTX_U64, "workspace_size"); /* for the rules and dispatch */
    return a;
}

nf4_pairs nf4_table(ptx_fn *f, const kiln_variant *v, ptx_type type, uint32_t reserved)
{
    return nf4_pairs_plan(
        (nf4_pairs){.f = f,
                    .type = type,
                    .is_high_first = kiln_is(v, "nibbles", "high"),
                    .is_aligned = kiln_is(v, "table", "aligned"),
                    .reserved = (reserved + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES});
}

ptx_val nf4_add_parts(ptx_fn *f, const nf4_args *args, ptx_val tid, uint32_t threads, ptx_val sums[],
                      uint32_t count)
{
    split s = {.f = f,
               .type = args->wide,
               .parts = args->split_k,
               .threads = threads,
               .workspace = args->workspace,
               .tile_counters = args->tile_counters,
               .tid = tid};
    ptx_val column = ptx_ctaid_x(f), row = ptx_ctaid_y(f);
    s.tile = ptx_mad(f, row, ptx_nctaid_x(f), column);
    s.part = ptx_ctaid_z(f);
    return split_add(&s, sums, count);
}
