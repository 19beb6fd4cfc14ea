/* When nf4_gemm picks strategy mma. */
#ifndef KERNELS_NF4_GEMM_MMA_RULES_H
#define KERNELS_NF4_GEMM_MMA_RULES_H
/* clang-format off */

#define IS_SIMT "strategy == simt"

/* ---- which one -------------------------------------------------------------------------------------------------- */

/* With a workspace, as many parts as it takes until every multiprocessor has a thread block. */
#define MMA_PARTS(rows, columns, parts)                                                                                \
    "ceil_div(m, " rows ") * ceil_div(n, " columns ") * " parts " < 2 * multiprocessors && "                           \
    "workspace_size >= ceil_div(m, " rows ") * ceil_div(n, " columns ") * " parts " * " rows " * " columns

#define MMA_TILE(rows, columns, shape) "strategy=mma,tile_m=" rows ",tile_n=" columns shape
#define MMA_SPLIT(condition, rows, columns, shape)                                                                     \
    {condition " && k >= 2048 && " MMA_PARTS(rows, columns, "4"), MMA_TILE(rows, columns, shape) ",split_k=4"},         \
    {condition " && k >= 1024 && " MMA_PARTS(rows, columns, "2"), MMA_TILE(rows, columns, shape) ",split_k=2"},         \
    {condition, MMA_TILE(rows, columns, shape) ",split_k=1"}

/* For few columns, tiles of 16, so that there are more of them. The aligned table where two thread blocks with one fit on a
 * multiprocessor. */
#define MMA_HAS_ROOM "max_shared_bytes >= 166912"
#define MMA_IS_FEW   "n < 32 * multiprocessors && workspace_size == 0"
#define MMA_NARROW(condition, rows)                                                                                    \
    {condition " && " MMA_HAS_ROOM " && " MMA_IS_FEW, MMA_TILE(rows, "16", ",table=aligned,split_k=1")},                 \
    MMA_SPLIT(condition " && " MMA_HAS_ROOM, rows, "32", ",table=aligned"),                                             \
    {condition " && " MMA_IS_FEW, MMA_TILE(rows, "16", ",table=compact,split_k=1")},                                       \
    MMA_SPLIT(condition, rows, "32", ",table=compact")
#define MMA_DISPATCH                                                                                                   \
    MMA_NARROW("m <= 1", "1"),                                                                                         \
    MMA_NARROW("m <= 2", "2"),                                                                                         \
    MMA_NARROW("m <= 4", "4"),                                                                                         \
    MMA_NARROW("m <= 8", "8"),                                                                                         \
    {"m <= 8", "strategy=mma,tile_m=8,tile_n=64,k_warps=2,table=compact,split_k=1"},                                        \
    MMA_SPLIT("sm >= 80 && m > 32 && " MMA_HAS_ROOM, "64", "128", ",k_warps=2,table=aligned"),                           \
    MMA_SPLIT("sm >= 80 && m > 32", "64", "128", ",k_warps=2,table=compact"),                                              \
    MMA_SPLIT("sm >= 80 && m > 16", "32", "64", ",k_warps=4,table=compact"),                                               \
    MMA_SPLIT("sm >= 80 && m > 8", "16", "64", ",k_warps=4,table=compact"),                                                \
    {"m > 8", "strategy=mma,tile_m=16,tile_n=64,k_warps=2,table=compact,split_k=1"}

/* clang-format on */
#endif
