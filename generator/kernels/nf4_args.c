/* Products with NF4 weights. */
#include "nf4_args.h"

#include "device/tail.h"

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

ptx_val nf4_blocks(ptx_fn *f, const nf4_args *args)
{
    return ptx_shr(f, args->k, NF4_BLOCK_K_LOG2);
}

ptx_val nf4_has_aligned_scales(ptx_fn *f, const nf4_args *args, ptx_val blocks)
{
    ptx_val scale = ptx_cvt(f, PTX_U32, ptx_address(f, args->scale));
    ptx_val odd = ptx_or(f, scale, ptx_shl(f, blocks, 2));
    return ptx_eq(f, ptx_and(f, odd, 15), 0);
}

/* ---- a lane's codes on tensor cores -------------------------------------------------------------------------------- */

ptx_val nf4_codes_at(ptx_fn *f, const nf4_args *args, ptx_val column, ptx_val column_bytes, ptx_val byte)
{
    ptx_val in_bounds = tail_clamp(f, column, args->n);
    ptx_val start = ptx_at(f, args->packed, ptx_mul_wide(f, in_bounds, column_bytes));
    return ptx_cast_ptr(f, ptx_at(f, start, byte), PTX_U32);
}

void nf4_load_words(ptx_fn *f, uint32_t count, ptx_val words[], ptx_val from, int hints)
{
    ptx_val loaded[4];
    ptx_load_vec(f, (int)count, loaded, from, hints);
    for (uint32_t i = 0; i < count; i++)
        ptx_set(f, words[i], loaded[i]);
}

/* ---- tiles ----------------------------------------------------------------------------------------------------------- */

/* Neighbouring tiles have the same columns, so that several rows of tiles read the weights from the L2 cache. */
void nf4_make_stretch(ptx_fn *f, const nf4_args *args, uint32_t tile_m, uint32_t tile_n,
                      void (*make)(void *kernel, const nf4_tile *tile), void *kernel)
{
    ptx_val blocks = nf4_blocks(f, args);
    ptx_val rows = ptx_div(f, ptx_add(f, args->m, tile_m - 1), tile_m);
    ptx_val columns = ptx_div(f, ptx_add(f, args->n, tile_n - 1), tile_n);
    const split_stretch of = split_find_stretch(f, ptx_mul(f, rows, columns), blocks);
    ptx_val at = ptx_var(f, of.first);
    PTX_IF (f, ptx_lt(f, at, of.end)) {
        PTX_LOOP (f) {
            nf4_tile t = {.stretch = &of, .at = at, .number = ptx_div(f, at, blocks)};
            t.first_block = ptx_sub(f, at, ptx_mul(f, t.number, blocks));
            ptx_val left = ptx_sub(f, blocks, t.first_block);
            t.block_count = ptx_min(f, left, ptx_sub(f, of.end, at));
            t.first_row = ptx_mul(f, ptx_rem(f, t.number, rows), tile_m);
            t.first_column = ptx_mul(f, ptx_div(f, t.number, rows), tile_n);
            make(kernel, &t);
            ptx_barrier(f); /* all have read the sums */
            ptx_add_to(f, at, t.block_count);
            ptx_repeat_if(f, ptx_lt(f, at, of.end));
        }
    }
}

ptx_val nf4_is_first(ptx_fn *f, const nf4_tile *tile)
{
    return ptx_eq(f, tile->at, tile->stretch->first);
}

void nf4_fill_table(const nf4_pairs *table, const nf4_tile *tile, ptx_val tid)
{
    if (!tile->stretch) {
        nf4_pairs_fill(table, tid);
        return;
    }
    PTX_IF (table->f, tile->is_first) {
        nf4_pairs_fill(table, tid);
    }
}

ptx_val nf4_add_parts(ptx_fn *f, const nf4_args *args, const nf4_tile *tile, ptx_val tid, uint32_t threads,
                      ptx_val sums[], uint32_t count)
{
    split s = {.f = f,
               .type = args->wide,
               .parts = args->split_k,
               .threads = threads,
               .workspace = args->workspace,
               .tile_counters = args->tile_counters,
               .tid = tid};
    if (args->split_k == 0) {
        s.tile = tile->number;
        return split_add_stretch(&s, tile->stretch, sums, count);
    }
    ptx_val column = ptx_ctaid_x(f), row = ptx_ctaid_y(f);
    s.tile = ptx_mad(f, row, ptx_nctaid_x(f), column);
    s.part = ptx_ctaid_z(f);
    return split_add(&s, sums, count);
}
