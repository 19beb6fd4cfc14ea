/* attention on tensor cores: f16 from sm_75 on, bf16 from sm_80 on.
 *
 * A warp makes a block of 16 rows of O. It makes two if registers allow, so that a fragment of K or V serves 32 rows: with
 * one, fragment loads keep the multiprocessor's shared memory as busy as the products keep its tensor cores. Exceptions:
 * tile_q 32, which would have only one warp, and tile_q 64 with more than 32 keys, which would have too few. All warps of
 * a thread block process the keys together, in tiles of tile_k.
 *
 * SHARED MEMORY. An element of Q takes 2 bytes, one of K and V 2 or 1. Strips of 16 columns have gaps (attention_copy.h). A wait
 * includes a barrier.
 *
 *               bytes, without gaps                       copied                             waited for
 *     Q, then O tile_q * 2 * max(head_dim, head_dim_v)    once                               before the first tile
 *     K         tile_k * head_dim * 2 or 1                the next tile's during product 2   before product 1
 *     V         tile_k * head_dim_v * 2 or 1              during product 1                   before product 2
 *     scales    8 * tile_k, if each key has its own       the next tile's after product 2    before product 1
 *
 * MASK AND BOUNDS. Keys that no query of the tile sees, and rows of Q past the last, are zeros in shared memory. In tiles
 * with masked scores, these become -inf after the product.
 *
 * INSTRUCTIONS. Besides the products, a score takes at least 4.5: a maximum, an fma, an exponential, an addition and half of
 * a conversion. Rescaling O would add head_dim / 64, so it is done only when a row's maximum has grown enough.
 */
#include "attention_warp.h"

typedef attention_warp warp;

/* ---- geometry ------------------------------------------------------------------------------------------------------ */

/* Two blocks of rows fit into registers up to some head_dim. Decoded codes, scales of keys and elements of a mask need some
 * too. */
static warp geometry(attention *a)
{
    enum { MOST_BESIDE_OTHERS = 64 };
    const bool has_warps = a->tile_q == 128 || (a->tile_q == 64 && a->tile_k == 32);
    const bool is_short = a->kv == ATTENTION_SAME || (a->tile_k == 32 && a->kv != ATTENTION_INT8_TOKEN);
    const uint32_t most = is_short && a->shaping != ATTENTION_MASK ? MOST_SMALL : MOST_BESIDE_OTHERS;
    const uint32_t blocks = has_warps && a->head_dim <= most && a->head_dim_v <= most ? 2 : 1;
    warp m = attention_warp_geometry(a, a->tile_q / BLOCK_ROWS / blocks, blocks, a->tile_k);
    attention_lay_out(&m, false, false);
    return m;
}

/* ---- the kernel ---------------------------------------------------------------------------------------------------- */

static void shape(kiln_shape *s, attention *a)
{
    const warp m = geometry(a);
    attention_warp_shape(s, &m);
}

static void emit(attention *a)
{
    warp m = geometry(a);
    attention_warp_init(&m);
    m.row_warp = m.warp;
    attention_init_panels(&m, &m.copier, m.shared);
    attention_init_operands(&m, m.shared);
    attention_start_copies(&m);
    attention_wait_for_copies(&m);
    attention_add_tiles(&m, NULL, attention_add_tile);
    attention_find_before(a);
    ptx_val first = attention_first_row(&m);
    ptx_val column = ptx_mul(a->f, attention_lane_t(&m), m.rows.o.width);
    attention_finish(a, &m.rows, first, column, m.copier.tid, attention_store_results, &m);
}

const attention_strategy attention_strategy_mma = {shape, emit};
