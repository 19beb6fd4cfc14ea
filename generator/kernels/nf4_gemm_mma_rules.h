/* What the descriptor of nf4_gemm says of strategy mma: shapes, what is refused, what it executes, when it is picked. */
#ifndef KERNELS_NF4_GEMM_MMA_RULES_H
#define KERNELS_NF4_GEMM_MMA_RULES_H
/* clang-format off */

#define IS_SIMT "strategy == simt"
#define SIMT(condition) "strategy == mma || (" condition ")"
#define MMA(condition)  IS_SIMT " || (" condition ")"

/* ---- shapes; see open_shape ------------------------------------------------------------------------------------- */

#define MMA_WIDE         "(tile_n > 32)"
#define MMA_GROUPS       "min(2, tile_n / 16)"
#define MMA_THREADS      "(32 * k_warps * max(1, tile_n / 32))"
#define MMA_CHUNK        "(32 - 16 * (tile_n == 128 && table == compact))"
#define MMA_DEPTH        "(4 - 2 * (tile_m > select(tile_n > 32, 16, 4)))"
#define MMA_TURN         "(k_warps * " MMA_DEPTH ")"

#define MMA_TABLE  "select(table == aligned, 66560 + 16 * (split_k != 1), 32768)"
#define MMA_COPIES                                                                                                     \
    MMA_TABLE " + tile_n * (8 * " MMA_CHUNK " + 16) + stages * tile_m * (128 * k_warps * select(" MMA_WIDE ", 1, "      \
    MMA_DEPTH ") + 16)"
#define MMA_SUMS   "k_warps * max(8, tile_m) * (4 * tile_n + 16)"
#define MMA_SHARED "max(" MMA_COPIES ", " MMA_SUMS ")"
#define MMA_MIN_SM "select(a == bf16 || " MMA_SHARED " > 65536, 80, 75)"

#define MMA_REFUSALS                                                                                                   \
    {SIMT("stages == 2 && split_k == 1"), "stages and split_k are for strategy mma"},                                    \
    {MMA("a != f32"), "there are no products of f32 for strategy mma"},                                                \
    {MMA("tile_n > 32 || (tile_m <= 8 && k_warps == 8)"),                                                               \
     "strategy mma with tile_n 16 and 32 takes tile_m up to 8, k_warps 8"},                                             \
    {MMA("tile_n <= 32 || (tile_m >= 8 && tile_m >= tile_n / 8)"),                                                     \
     "strategy mma with tile_n 64 takes tile_m from 8, with 128 from 16"},                                             \
    {MMA("tile_n <= 32 || (" MMA_THREADS " >= 128 && " MMA_THREADS " <= 256)"),                                        \
     "strategy mma with tile_n 64 takes k_warps 2 and 4, with tile_n 128 k_warps 1 and 2"},                              \
    {MMA("stages == 2 || (tile_n > 32 && tile_m <= 16)"), "stages 4 takes tile_n from 64 and tile_m up to 16"},        \
    {MMA(MMA_SHARED " <= select(table == aligned, 166912, 101376)"),                                                    \
     "tile_m, tile_n, k_warps and stages need more shared memory than devices have (compact: 99 KB; aligned: 163 KB)"}

/* ---- thread instructions ---------------------------------------------------------------------------------------- */

/* Counted, within 1 %; tiles that are not full count as full. Below sm_80 a product takes half as much of K, and copies go
 * through registers. */
#define MMA_OLD          "(sm < 80)"
#define MMA_STAGE_BLOCKS "select(" MMA_WIDE ", 1, " MMA_DEPTH ")"
/* A thread block's places, table, first loads, sums. */
#define MMA_FIXED                                                                                                      \
    "(" MMA_THREADS " * (103 + 4 * stages + " MMA_GROUPS " * (12 + max(8, tile_m)) + 4 * " MMA_DEPTH " * (1 + "         \
    MMA_GROUPS ") + 11 * (" MMA_THREADS " < 256) + 31 * (split_k > 1) + 3 * (tile_m * tile_n < " MMA_THREADS "))"       \
    " + 4096 + 3 * tile_n * " MMA_CHUNK " + 24 * tile_m * k_warps * " MMA_STAGE_BLOCKS                                  \
    " + tile_m * tile_n * (2 * k_warps + (split_k > 1)) + 5 * max(" MMA_THREADS ", tile_m * tile_n))"
/* An iteration of all warps; a chunk of scales; a block of 64. */
#define MMA_ITERATION                                                                                                  \
    "(" MMA_THREADS " * (3 * " MMA_DEPTH " + " MMA_DEPTH " / " MMA_STAGE_BLOCKS " * (5 - 2 * " MMA_OLD ") + 8 + 4 * "  \
    MMA_GROUPS " - 2 * " MMA_WIDE " + 4 * (" MMA_TURN " != " MMA_CHUNK ")))"
#define MMA_COPY   "(" MMA_THREADS " * (2 - " MMA_OLD " - " MMA_WIDE ") + tile_n * " MMA_CHUNK " * (2 + " MMA_OLD " + " MMA_WIDE "))"
#define MMA_BLOCK                                                                                                      \
    "(32 * max(1, tile_n / 32) * (" MMA_GROUPS " * select(table == aligned, 34, 50) + max(1, tile_m / 8) * (2 + "       \
    MMA_GROUPS " * (8 + 4 * " MMA_OLD ")) - 1 - 2 * " MMA_WIDE " + (tile_m == 64)) + tile_m * (16 + 48 * " MMA_OLD ") + "               \
    MMA_OLD " * tile_n)"
/* How many of `blocks` of 64 each all parts together take; some parts have one more than the others. */
#define MMA_TURNS(blocks)                                                                                              \
    "(k / 64 % split_k * ceil_div(k / 64 / split_k + 1, " blocks ") + (split_k - k / 64 % split_k)"                        \
    " * ceil_div(k / 64 / split_k, " blocks "))"
#define MMA_INSTRUCTIONS                                                                                               \
    "ceil_div(m, tile_m) * ceil_div(n, tile_n) * (split_k * " MMA_FIXED " + " MMA_TURNS(MMA_TURN) " * " MMA_ITERATION   \
    " + " MMA_TURNS(MMA_CHUNK) " * " MMA_COPY " + k / 64 * " MMA_BLOCK ")"

/* ---- which one -------------------------------------------------------------------------------------------------- */

/* With a workspace, parts until every multiprocessor has a thread block. */
#define MMA_PARTS(rows, columns, parts)                                                                                \
    "ceil_div(m, " rows ") * ceil_div(n, " columns ") * " parts " < 2 * multiprocessors && "                           \
    "workspace_size >= ceil_div(m, " rows ") * ceil_div(n, " columns ") * " parts " * " rows " * " columns

#define MMA_TILE(rows, columns, shape) "strategy=mma,tile_m=" rows ",tile_n=" columns shape
#define MMA_SPLIT(condition, rows, columns, shape)                                                                     \
    {condition " && k >= 2048 && " MMA_PARTS(rows, columns, "4"), MMA_TILE(rows, columns, shape) ",split_k=4"},         \
    {condition " && k >= 1024 && " MMA_PARTS(rows, columns, "2"), MMA_TILE(rows, columns, shape) ",split_k=2"},         \
    {condition, MMA_TILE(rows, columns, shape) ",split_k=1"}

/* Few columns: tiles of 16, so that there are more of them. The aligned table where two thread blocks with one have room on a
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
