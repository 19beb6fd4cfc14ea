/* What the strategies of nf4_gemm_transposed start and end with: their arguments, and the sums over parts of n. */
#include "device/split.h"
#include "nf4_gemm_transposed.h"

transposed_args transposed_declare_args(ptx_fn *f, const kiln_variant *v)
{
    transposed_args a = {.wide = kiln_type(v, "acc"), .split_k = kiln_int(v, "split_k")};
    ptx_type type = kiln_type(v, "a");
    a.in = ptx_param_ptr(f, type, "in");
    a.packed = ptx_param_ptr(f, PTX_U8, "packed");
    a.scale = ptx_param_ptr(f, PTX_F32, "scale");
    a.out = ptx_param_ptr(f, type, "out");
    if (a.split_k > 1) {
        a.workspace = ptx_param_ptr(f, a.wide, "workspace");
        a.tile_counters = ptx_param_ptr(f, PTX_U32, "tile_counters");
    }
    a.m = ptx_param(f, PTX_U32, "m");
    a.n = ptx_param(f, PTX_U32, "n");
    a.k = ptx_param(f, PTX_U32, "k");
    ptx_param(f, PTX_U64, "workspace_size"); /* for the rules and dispatch, like the next */
    ptx_param(f, PTX_U32, "normal_scales");
    return a;
}

ptx_val transposed_add_parts(ptx_fn *f, const transposed_args *given, uint32_t threads, ptx_val sums[],
                             uint32_t count)
{
    split s = {.f = f,
               .type = given->wide,
               .parts = given->split_k,
               .threads = threads,
               .block_threads = threads,
               .workspace = given->workspace,
               .tile_counters = given->tile_counters};
    ptx_val column = ptx_ctaid_x(f), row = ptx_ctaid_y(f);
    s.tile = ptx_mad(f, row, ptx_nctaid_x(f), column);
    s.part = ptx_ctaid_z(f);
    s.tid = ptx_tid_x(f);
    return split_add(&s, sums, count);
}
