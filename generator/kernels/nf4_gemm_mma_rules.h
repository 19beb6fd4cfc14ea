/* What the descriptor of nf4_gemm says of strategy mma: shapes, what is refused, what it executes, when it is picked. */
#ifndef KERNELS_NF4_GEMM_MMA_RULES_H
#define KERNELS_NF4_GEMM_MMA_RULES_H
/* clang-format off */

#define IS_SIMT "strategy == simt"
#define SIMT(condition) "strategy == mma || (" condition ")"
#define MMA(condition)  IS_SIMT " || (" condition ")"

/* ---- shapes; see open_shape ------------------------------------------------------------------------------------- */

#define MMA_STAGED       "(tile_n > 32)"
#define MMA_GROUPS       "select(tile_n == 16, 1, 2)"
#define MMA_COLUMN_WARPS "select(tile_n <= 32, 1, tile_n / 32)"
#define MMA_THREADS      "(32 * slices * " MMA_COLUMN_WARPS ")"
#define MMA_CHUNK        "select(tile_n == 128, 16, 32)"
#define MMA_DEPTH        "select(tile_n <= 32, 32 / slices, select(tile_m <= 16, 4, 2))"
#define MMA_TURN         "(slices * " MMA_DEPTH ")"

#define MMA_TABLE  "select(table == window, 66560 + 16 * (splits != 1), 32768)"
#define MMA_COPIES                                                                                                     \
    MMA_TABLE " + tile_n * (8 * " MMA_CHUNK " + 16) + " MMA_STAGED " * stages * tile_m * (128 * slices + 16)"
#define MMA_SUMS   "slices * tile_m * (4 * tile_n + 16)"
#define MMA_SHARED "max(" MMA_COPIES ", " MMA_SUMS ")"
#define MMA_MIN_SM "select(a == bf16 || " MMA_SHARED " > 65536, 80, 75)"

#define MMA_REFUSALS                                                                                                   \
    {SIMT("stages == 2 && splits == 1"), "stages and splits are for strategy mma"},                                    \
    {MMA("a != f32"), "there are no products of f32 for strategy mma"},                                                \
    {MMA("tile_m >= 8"), "strategy mma takes tile_m from 8"},                                                          \
    {MMA("tile_n > 32 || (tile_m == 8 && slices >= 4)"),                                                               \
     "strategy mma takes tile_n from 64 for tile_m over 8 or slices below 4"},                                         \
    {MMA("tile_n <= 32 || tile_m >= tile_n / 8"), "tile_n is too wide for tile_m"},                                    \
    {MMA("tile_n <= 32 || (slices * 4 <= " MMA_CHUNK " && " MMA_THREADS " >= 128)"),                                   \
     "strategy mma with tile_n 64 takes slices 2 4 8, with tile_n 128 slices 1 2 4"},                                  \
    {MMA("stages == 2 || (tile_n > 32 && tile_m <= 16)"), "stages 4 takes tile_n from 64 and tile_m up to 16"},        \
    {MMA(MMA_SHARED " <= select(table == window, 166912, 101376)"),                                                    \
     "tile_m, tile_n, slices and stages need more shared memory than devices have (near: 99 KB; window: 163 KB)"}

/* ---- thread instructions ---------------------------------------------------------------------------------------- */

#define MMA_INSTRUCTIONS "0"

/* ---- which one -------------------------------------------------------------------------------------------------- */

/* With a workspace, parts until every multiprocessor has a thread block. */
#define MMA_PARTS(rows, columns, parts)                                                                                \
    "ceil_div(m, " rows ") * ceil_div(n, " columns ") * " parts " < 2 * multiprocessors && "                           \
    "workspace_size >= ceil_div(m, " rows ") * ceil_div(n, " columns ") * " parts " * " rows " * " columns

#define MMA_SPLIT(condition, rows, columns, shape)                                                                     \
    {condition " && k >= 2048 && " MMA_PARTS(rows, columns, "4"), "strategy=mma,tile_m=" rows ",tile_n=" columns shape ",splits=4"}, \
    {condition " && k >= 1024 && " MMA_PARTS(rows, columns, "2"), "strategy=mma,tile_m=" rows ",tile_n=" columns shape ",splits=2"}, \
    {condition, "strategy=mma,tile_m=" rows ",tile_n=" columns shape ",splits=1"}

/* Few columns: tiles of 16, so that there are more of them. The window where two thread blocks with one have room on a
 * multiprocessor. */
#define MMA_HAS_ROOM "max_shared_bytes >= 166912"
#define MMA_IS_FEW   "n < 32 * multiprocessors"
#define MMA_DISPATCH                                                                                                   \
    MMA_SPLIT("m <= 8 && " MMA_HAS_ROOM " && !(" MMA_IS_FEW " && workspace_size == 0)", "8", "32", ",slices=8,table=window"), \
    {"m <= 8 && " MMA_HAS_ROOM, "strategy=mma,tile_m=8,tile_n=16,table=window,splits=1"},                              \
    MMA_SPLIT("m <= 8 && !(" MMA_IS_FEW " && workspace_size == 0)", "8", "32", ",slices=8,table=near"),                \
    {"m <= 8", "strategy=mma,tile_m=8,tile_n=16,table=near,splits=1"},                                                 \
    {"m <= 8", "strategy=mma,tile_m=8,tile_n=32,table=near,splits=1"},                                                 \
    MMA_SPLIT("sm >= 80 && m > 32 && " MMA_HAS_ROOM, "64", "128", ",slices=2,table=window"),                           \
    MMA_SPLIT("sm >= 80 && m > 32", "64", "128", ",slices=2,table=near"),                                              \
    MMA_SPLIT("sm >= 80 && m > 16", "32", "64", ",slices=4,table=near"),                                               \
    MMA_SPLIT("sm >= 80 && m > 8", "16", "64", ",slices=4,table=near"),                                                \
    {"m > 8", "strategy=mma,tile_m=16,tile_n=64,slices=2,table=near,splits=1"}

/* clang-format on */
#endif
