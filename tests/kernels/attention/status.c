/* Calls at the limit of attention's tile counters: the documented status. Nothing is launched.
 *
 *     attention_status DRIVER
 */
#include "../../calls.h"

#include "sample.h"

enum { DIM = 16, HEADS = 65535, MOST_TILES = 252645135 /* 2^32 / 17 */ };

/* With splits above 1 a tile has 17 counters, which the kernel numbers in 32 bits. */
static void try_most_tiles(uint32_t batch, uint32_t q_length, uint32_t splits, kiln_status expected)
{
    const CUdeviceptr any = 1 << 20;
    const kiln_kernel *picked = NULL;
    sample_attention_args a = {.q = any,
                               .k = any,
                               .v = any,
                               .out = any,
                               .workspace = any,
                               .tile_counters = any,
                               .batch = batch,
                               .q_heads = HEADS,
                               .kv_heads = HEADS,
                               .q_length = q_length,
                               .k_length = 1024,
                               .scale = 0.25f,
                               .q_row_stride = DIM,
                               .k_row_stride = DIM,
                               .v_row_stride = DIM,
                               .out_row_stride = DIM,
                               .q_head_stride = DIM,
                               .out_head_stride = DIM,
                               .out_batch_stride = DIM,
                               .workspace_size = UINT64_MAX,
                               .splits = splits,
                               .type = SAMPLE_ATTENTION_TYPE_F32,
                               .head_dim = DIM,
                               .causal = true};
    expect("the most tiles", sample_attention_pick(&loader, &a, &picked), expected, 0);
    judge(expected != KILN_OK || has(picked, "split_k=0") == (splits > 1), "parts of the keys", expected);
}

int main(int argc, char **argv)
{
    need(argc == 2, "usage: attention_status DRIVER");
    open_device(argv[1], &sample_bundle);
    enum { BATCH = MOST_TILES / HEADS };
    try_most_tiles(BATCH, 16, 2, KILN_OK);
    try_most_tiles(BATCH + 1, 16, 2, KILN_ERROR_BAD_ARGUMENT);
    try_most_tiles(BATCH / 2, 32, 2, KILN_OK);
    try_most_tiles(BATCH / 2 + 1, 32, 2, KILN_ERROR_BAD_ARGUMENT);
    try_most_tiles(BATCH + 1, 16, 1, KILN_OK);
    return end_calls();
}
