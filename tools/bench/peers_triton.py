"""Attention in Triton, after its tutorial: FlashAttention's forward pass, one block of queries per program.

Lengths must be multiples of the tiles. The memory order is batch, row, head, dim."""
import triton
import triton.language as tl

TILE_Q = 128
TILES = {64: (128, 4, 3), 128: (64, 8, 3)}  # head_dim: keys of a tile, warps, stages


@triton.jit
def visit_keys(query, k, v, row_stride, first_query, begin, end, highest, total, sums, scale,
               HEAD_DIM: tl.constexpr, MASKED: tl.constexpr, TILE_Q: tl.constexpr, TILE_K: tl.constexpr):
    """Online softmax over keys begin to end, in base 2."""
    i = first_query + tl.arange(0, TILE_Q)
    d = tl.arange(0, HEAD_DIM)
    for first_key in range(begin, end, TILE_K):
        j = first_key + tl.arange(0, TILE_K)
        keys = tl.load(k + j[None, :] * row_stride + d[:, None])
        scores = tl.dot(query, keys) * scale
        if MASKED:
            scores = tl.where(i[:, None] >= j[None, :], scores, -float("inf"))
        new_highest = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp2(scores - new_highest[:, None])
        rescale = tl.exp2(highest - new_highest)
        values = tl.load(v + j[:, None] * row_stride + d[None, :])
        sums = tl.dot(weights.to(values.dtype), values, sums * rescale[:, None])
        total = total * rescale + tl.sum(weights, 1)
        highest = new_highest
    return highest, total, sums


@triton.jit
def forward(q, k, v, out, length, heads, scale, HEAD_DIM: tl.constexpr, CAUSAL: tl.constexpr,
            TILE_Q: tl.constexpr, TILE_K: tl.constexpr):
    tile = tl.num_programs(0) - 1 - tl.program_id(0)  # with a causal mask the last tiles take longest
    row_stride = heads * HEAD_DIM
    start = tl.program_id(2).to(tl.int64) * length * row_stride + tl.program_id(1) * HEAD_DIM
    first_query = tile * TILE_Q
    at = start + (first_query + tl.arange(0, TILE_Q))[:, None] * row_stride + tl.arange(0, HEAD_DIM)[None, :]
    query = tl.load(q + at)
    highest = tl.full([TILE_Q], -float("inf"), tl.float32)
    total = tl.zeros([TILE_Q], tl.float32)
    sums = tl.zeros([TILE_Q, HEAD_DIM], tl.float32)
    unmasked = first_query if CAUSAL else length
    highest, total, sums = visit_keys(query, k + start, v + start, row_stride, first_query, 0, unmasked,
                                      highest, total, sums, scale, HEAD_DIM, False, TILE_Q, TILE_K)
    if CAUSAL:
        highest, total, sums = visit_keys(query, k + start, v + start, row_stride, first_query, first_query,
                                          first_query + TILE_Q, highest, total, sums, scale, HEAD_DIM, True, TILE_Q, TILE_K)
    tl.store(out + at, (sums / total[:, None]).to(out.dtype.element_ty))


def attend(q, k, v, out, is_causal):
    batch, length, heads, head_dim = q.shape
    tile_k, warps, stages = TILES[head_dim]
    scale = head_dim ** -0.5 * 1.44269504  # log2(e), for exp2
    forward[(length // TILE_Q, heads, batch)](q, k, v, out, length, heads, scale, HEAD_DIM=head_dim, CAUSAL=is_causal,
                                              TILE_Q=TILE_Q, TILE_K=tile_k, num_warps=warps, num_stages=stages)
