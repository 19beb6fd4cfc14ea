/* Arguments of the products with NF4 weights. */
#include "nf4_args.h"

nf4_args nf4_declare_args(ptx_fn *f, const kiln_variant *v, bool is_nested, bool is_strided)
{
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
    return (nf4_pairs){.f = f,
                       .type = type,
                       .is_high_first = kiln_is(v, "nibbles", "high"),
                       .is_aligned = kiln_is(v, "table", "aligned"),
                       .reserved = reserved};
}

ptx_val nf4_has_aligned_scales(ptx_fn *f, const nf4_args *args, ptx_val blocks)
{
    ptx_val scale = ptx_cvt(f, PTX_U32, ptx_address(f, args->scale));
    ptx_val odd = ptx_or(f, scale, ptx_shl(f, blocks, 2));
    return ptx_eq(f, ptx_and(f, odd, 15), 0);
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

ptx_val nf4_add_stretch(ptx_fn *f, const nf4_args *args, ptx_val tid, const split_stretch *of, ptx_val tile,
                        ptx_val sums[], uint32_t count)
{
    const split s = {.f = f,
                     .type = args->wide,
                     .workspace = args->workspace,
                     .tile_counters = args->tile_counters,
                     .tile = tile,
                     .tid = tid};
    return split_add_stretch(&s, of, sums, count);
}

nf4_stretch nf4_find_stretch(ptx_fn *f, const nf4_args *args, uint32_t tile_m, uint32_t tile_n)
{
    nf4_stretch s = {.blocks = ptx_shr(f, args->k, 6), .tile_m = tile_m, .tile_n = tile_n};
    s.rows = ptx_div(f, ptx_add(f, args->m, tile_m - 1), tile_m);
    ptx_val columns = ptx_div(f, ptx_add(f, args->n, tile_n - 1), tile_n);
    s.of = split_find_stretch(f, ptx_mul(f, s.rows, columns), s.blocks);
    return s;
}

/* Neighbouring tiles have the same columns, so that the weights of several rows of tiles come out of the L2 cache. */
nf4_tile nf4_stretch_tile(ptx_fn *f, const nf4_stretch *s, ptx_val at)
{
    nf4_tile t = {.number = ptx_div(f, at, s->blocks)};
    t.first_block = ptx_sub(f, at, ptx_mul(f, t.number, s->blocks));
    ptx_val left = ptx_sub(f, s->blocks, t.first_block);
    t.block_count = ptx_min(f, left, ptx_sub(f, s->of.end, at));
    t.first_row = ptx_mul(f, ptx_rem(f, t.number, s->rows), s->tile_m);
    t.first_column = ptx_mul(f, ptx_div(f, t.number, s->rows), s->tile_n);
    return t;
}
