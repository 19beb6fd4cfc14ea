/* Which of its variants attention launches: tiles by the number of queries, parts of the keys where there are few queries
 * and a workspace, heads packed where they share K and V. Nothing runs: a launch is told by its grid and its shared memory.
 *
 *     attention_dispatch_test DRIVER
 */
#include "../calls.h"

#include "attention_dispatch.h"

enum { DIM = 64, TILE_K = 64, SOME_ADDRESS = 1 << 20 };

typedef enum of_heads { ALONE, PACKED } of_heads;

/* Heads of K: `m` for each multiprocessor, and `plus`; `group` of Q for each of them. Queries likewise. A workspace for so
 * many parts is given. */
typedef struct shape {
    const char *what;
    unsigned m, plus, group, queries, queries_m, keys, workspace_parts;
    unsigned tile, parts; /* 128 stands for 64 where there is no such tile: f32, and below sm_80 */
    of_heads heads;
} shape;

/* clang-format off */
static const shape shapes[] = {
    /*                                    heads         queries     keys  given | tile parts */
    {"one query",                         0,  1,  1,    1,    0,    100,    0,      32,  1, ALONE},
    {"one query of many heads",           4,  0,  1,    1,    0,    100,    0,      32,  1, ALONE},
    {"a small tile of queries",           4,  0,  1,    32,   0,    100,    0,      32,  1, ALONE},
    {"one more, for all multiprocessors", 1,  0,  1,    33,   0,    100,    0,      64,  1, ALONE},
    {"one more, for all but one",         1, -1U, 1,    33,   0,    100,    0,      32,  1, ALONE},
    {"a thousand of one head",            0,  1,  1,    1000, 0,    1000,   0,      32,  1, ALONE},
    {"511 of many heads",                 1,  0,  1,    511,  0,    511,    0,      64,  1, ALONE},
    {"512 of many heads",                 1,  0,  1,    512,  0,    512,    0,      128, 1, ALONE},
    {"64 for each multiprocessor",        0,  1,  1,    0,    64,   64,     0,      64,  1, ALONE},
    {"128 for each multiprocessor",       0,  1,  1,    0,    128,  64,     0,      128, 1, ALONE},
    {"2048 keys",                         0,  1,  1,    1,    0,    2048,   16,     32, 16, ALONE},
    {"2047 keys",                         0,  1,  1,    1,    0,    2047,   16,     32,  4, ALONE},
    {"511 keys",                          0,  1,  1,    1,    0,    511,    16,     32,  1, ALONE},
    {"2048 keys, a small workspace",      0,  1,  1,    1,    0,    2048,   4,      32,  4, ALONE},
    {"2048 keys, no workspace",           0,  1,  1,    1,    0,    2048,   0,      32,  1, ALONE},
    {"2048 keys, some heads",             0,  17, 1,    1,    0,    2048,   16,     32,  4, ALONE},
    {"2048 keys, many heads",             1,  0,  1,    1,    0,    2048,   16,     32,  1, ALONE},
    {"a group, 2048 keys",                0,  2,  8,    1,    0,    2048,   16,     32, 16, PACKED},
    {"a group, 512 keys",                 0,  2,  8,    1,    0,    512,    16,     32,  4, PACKED},
    {"a group, no workspace",             0,  2,  8,    1,    0,    2048,   0,      32,  1, PACKED},
    {"a group, 16 queries",               0,  2,  8,    16,   0,    100,    0,      32,  1, PACKED},
    {"a group, 17 queries",               0,  2,  8,    17,   0,    100,    0,      32,  1, ALONE},
    {"a group, many queries",             1,  0,  2,    600,  0,    600,    0,      128, 1, ALONE},
};
/* clang-format on */

enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static attention_dispatch_attention_args arguments(const shape *t, uint32_t type)
{
    uint32_t all = loader.device.multiprocessors, heads = t->m * all + t->plus;
    uint32_t queries = t->queries + t->queries_m * all;
    CUdeviceptr some = SOME_ADDRESS;
    return (attention_dispatch_attention_args){.q = some,
                                               .k = some,
                                               .v = some,
                                               .out = some,
                                               .workspace = some,
                                               .tile_counters = some,
                                               .batch = 1,
                                               .q_heads = heads * t->group,
                                               .kv_heads = heads,
                                               .q_length = queries,
                                               .k_length = t->keys,
                                               .scale = 1,
                                               .q_row_stride = DIM,
                                               .k_row_stride = DIM,
                                               .v_row_stride = DIM,
                                               .out_row_stride = DIM,
                                               .q_head_stride = (uint64_t)DIM * queries,
                                               .k_head_stride = (uint64_t)DIM * t->keys,
                                               .v_head_stride = (uint64_t)DIM * t->keys,
                                               .out_head_stride = (uint64_t)DIM * queries,
                                               .workspace_size = (uint64_t)heads * t->group * queries *
                                                                 t->workspace_parts * (DIM + 8),
                                               .type = type,
                                               .head_dim = DIM};
}

static uint32_t shared_bytes(uint32_t type, uint32_t tile)
{
    bool is_simt = type == ATTENTION_DISPATCH_ATTENTION_TYPE_F32;
    return is_simt ? (tile + TILE_K) * 144 + tile * TILE_K * 4 + 512 : (tile + 2 * TILE_K) * (2 * DIM + 16);
}

static void try_one(const shape *t, uint32_t type, uint32_t tile, uint32_t parts, of_heads heads)
{
    attention_dispatch_attention_args a = arguments(t, type);
    uint32_t rows = a.q_length * (heads == PACKED ? t->group : 1);
    uint32_t blocks = (rows + tile - 1) / tile * parts,
             rows_of_blocks = heads == PACKED ? a.kv_heads : a.q_heads;
    launched = (launch){0};
    kiln_status status = attention_dispatch_attention(&loader, NULL, &a);
    judge(status == KILN_OK && launched.count == 1 && launched.grid[0] == blocks &&
              launched.grid[1] == rows_of_blocks && launched.shared_bytes == shared_bytes(type, tile),
          t->what, status);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    is_dry = true;
    open_device(argv[1], &attention_dispatch_bundle);
    bool is_old = loader.device.sm < 80;
    for (int i = 0; i < SHAPES; i++) {
        const shape *t = &shapes[i];
        uint32_t no_128 = t->tile == 128 ? 64 : t->tile;
        try_one(t, ATTENTION_DISPATCH_ATTENTION_TYPE_F16, is_old ? no_128 : t->tile, t->parts, t->heads);
        try_one(t, ATTENTION_DISPATCH_ATTENTION_TYPE_F32, no_128, t->parts, t->heads);
        if (!is_old) /* of bf16 the bundle has tiles of 128 and 64 alone */
            try_one(t, ATTENTION_DISPATCH_ATTENTION_TYPE_BF16, t->tile == 32 ? 64 : t->tile, 1, ALONE);
    }
    return end_calls();
}
