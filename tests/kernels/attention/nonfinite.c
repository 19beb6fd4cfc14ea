/* A NaN in one element of K or Q makes O and the log-sum-exp NaN in the rows that see it, and changes no bit of other rows: at each
 * key and query, for every type, strategy and mask, with split keys and packed heads. Each NaN's place is a batch of one
 * launch.
 *
 *     attention_nonfinite DRIVER
 */
#include "../../calls.h"

#include <math.h>

#include "sample.h"

typedef sample_attention_args attention_args;

enum { KEYS = 70, QUERIES = 3, HEADS = 2, BATCHES = 1 + KEYS + QUERIES, MOST_SPLITS = 16 };

typedef struct trial {
    uint32_t type, dim;
    bool is_causal;
} trial;

typedef unsigned char bytes;

#define TYPE(name) SAMPLE_ATTENTION_TYPE_##name

/* All variants of the bundle except rows of 256. */
static const trial all[] = {
    {TYPE(F32), 16, true},  {TYPE(F32), 72, false},   {TYPE(F32), 128, true},  {TYPE(F32), 40, false},
    {TYPE(F32), 24, true},  {TYPE(F64), 24, true},    {TYPE(F64), 16, true},   {TYPE(F16), 40, true},
    {TYPE(F16), 24, true},  {TYPE(F16), 128, true},   {TYPE(F16), 64, false},  {TYPE(BF16), 40, true},
    {TYPE(BF16), 16, true}, {TYPE(BF16), 128, false}, {TYPE(BF16), 16, false}, {TYPE(BF16), 32, true},
};

static size_t size_of(uint32_t type)
{
    return type == TYPE(F64) ? 8 : type == TYPE(F32) ? 4 : 2;
}

/* Stores x; for f16, x is in [2^-14, 2) and exact in ten bits of fraction. */
static void put(uint32_t type, bytes *to, size_t i, float x)
{
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    uint16_t f16 =
        (uint16_t)(isnan(x) ? 0x7e00
                            : (word >> 31 << 15 | (((word >> 23 & 255) - 112) << 10) | (word >> 13 & 1023)));
    uint16_t half = type == TYPE(F16) ? f16 : (uint16_t)(word >> 16);
    double number = (double)x;
    if (type == TYPE(F64))
        memcpy(to + 8 * i, &number, sizeof number);
    else if (type == TYPE(F32))
        memcpy(to + 4 * i, &x, sizeof x);
    else
        memcpy(to + 2 * i, &half, sizeof half);
}

static bool is_nan(uint32_t type, const bytes *from, size_t i)
{
    double number;
    float single;
    uint16_t half;
    if (type == TYPE(F64))
        return memcpy(&number, from + 8 * i, sizeof number), isnan(number);
    if (type == TYPE(F32))
        return memcpy(&single, from + 4 * i, sizeof single), isnan(single);
    memcpy(&half, from + 2 * i, sizeof half);
    return (half & 0x7fff) > (type == TYPE(F16) ? 0x7c00 : 0x7f80);
}

/* Fills the rows of all batches with numbers from 1/2 to 1 of either sign. */
static bytes *make(const trial *t, uint32_t rows, uint32_t seed)
{
    bytes *data = malloc((size_t)BATCHES * rows * t->dim * size_of(t->type));
    need(data, "malloc");
    for (uint32_t b = 0; b < BATCHES; b++) {
        for (uint32_t i = 0; i < rows * t->dim; i++) {
            uint32_t mixed = (i + seed) * 2654435761U;
            float x = 0.5F + (float)(mixed >> 26) / 128;
            put(t->type, data, (size_t)b * rows * t->dim + i, mixed & 1 << 20 ? x : -x);
        }
    }
    return data;
}

/* Checks every row of O and its log-sum-exp. */
typedef struct results {
    bytes *out, *lse;
} results;

static bool row_is_right(const trial *t, const results *r, uint32_t batch, uint32_t row, bool sees)
{
    size_t row_bytes = t->dim * size_of(t->type), log_bytes = t->type == TYPE(F64) ? 8 : 4;
    uint32_t log_type = t->type == TYPE(F64) ? TYPE(F64) : TYPE(F32);
    size_t here = (size_t)batch * HEADS * QUERIES + row;
    if (!sees)
        return memcmp(r->out + here * row_bytes, r->out + row * row_bytes, row_bytes) == 0 &&
               memcmp(r->lse + here * log_bytes, r->lse + row * log_bytes, log_bytes) == 0 &&
               !is_nan(log_type, r->lse, here);
    bool is_lost = is_nan(log_type, r->lse, here);
    for (uint32_t d = 0; d < t->dim; d++)
        is_lost &= is_nan(t->type, r->out, here * t->dim + d);
    return is_lost;
}

static void check_rows(const trial *t, const results *r)
{
    unsigned lost = 0;
    for (uint32_t batch = 0; batch < BATCHES; batch++) {
        for (uint32_t row = 0; row < HEADS * QUERIES; row++) {
            uint32_t query = row % QUERIES, key = batch - 1;
            bool is_key = batch >= 1 && batch <= KEYS;
            bool sees = is_key ? !t->is_causal || key <= query + KEYS - QUERIES
                               : batch > KEYS && query == batch - KEYS - 1;
            lost += !row_is_right(t, r, batch, row, sees);
        }
    }
    if (lost)
        printf("type %u, head_dim %u, causal %d: %u rows of %u\n", t->type, t->dim, t->is_causal, lost,
               BATCHES * HEADS * QUERIES);
    judge(lost == 0, "a NaN goes where it is seen", KILN_OK);
}

static void try_one(const trial *t)
{
    size_t size = size_of(t->type), wide = t->type == TYPE(F64) ? 8 : 4,
           rows = (size_t)BATCHES * HEADS * QUERIES;
    bytes *q = make(t, HEADS * QUERIES, 1), *k = make(t, KEYS, 1000), *v = make(t, KEYS, 5000);
    for (uint32_t key = 0; key < KEYS; key++)
        put(t->type, k, ((size_t)(1 + key) * KEYS + key) * t->dim + key * 7 % t->dim, NAN);
    for (uint32_t i = 0; i < HEADS * QUERIES; i++)
        put(t->type, q, ((size_t)(1 + KEYS + i % QUERIES) * HEADS * QUERIES + i) * t->dim + i * 5 % t->dim,
            NAN);
    results r = {malloc(rows * t->dim * size), malloc(rows * wide)};
    need(r.out && r.lse, "malloc");
    uint64_t q_batch = (uint64_t)HEADS * QUERIES * t->dim, k_batch = (uint64_t)KEYS * t->dim;
    attention_args a = {.q = upload(q, rows * t->dim * size),
                        .k = upload(k, BATCHES * k_batch * size),
                        .v = upload(v, BATCHES * k_batch * size),
                        .out = upload(q, rows * t->dim * size),
                        .lse = allocate(rows * wide),
                        .workspace = allocate(rows * MOST_SPLITS * (t->dim + 8) * wide),
                        .tile_counters = allocate(rows * 4),
                        .batch = BATCHES,
                        .q_heads = HEADS,
                        .kv_heads = 1,
                        .q_length = QUERIES,
                        .k_length = KEYS,
                        .scale = 0.25,
                        .q_row_stride = t->dim,
                        .k_row_stride = t->dim,
                        .v_row_stride = t->dim,
                        .out_row_stride = t->dim,
                        .q_batch_stride = q_batch,
                        .q_head_stride = (uint64_t)QUERIES * t->dim,
                        .k_batch_stride = k_batch,
                        .v_batch_stride = k_batch,
                        .out_batch_stride = q_batch,
                        .out_head_stride = (uint64_t)QUERIES * t->dim,
                        .workspace_size = rows * MOST_SPLITS * (t->dim + 8),
                        .type = t->type,
                        .head_dim = t->dim,
                        .causal = t->is_causal};
    set(a.tile_counters, 0, rows * 4);
    kiln_status status = sample_attention(&loader, NULL, &a);
    judge(status == KILN_OK, "NaN in K and Q", status);
    download(r.out, a.out, rows * t->dim * size);
    download(r.lse, a.lse, rows * wide);
    check_rows(t, &r);
    const CUdeviceptr buffers[] = {a.q, a.k, a.v, a.out, a.lse, a.workspace, a.tile_counters};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        need(driver.mem_free(buffers[i]) == 0, "cuMemFree");
    bytes *const host[] = {q, k, v, r.out, r.lse};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
}

/* f32 and f64 have images for sm_75 only, bf16 for sm_80 only; bf16 with rows of 40 has both. */
static bool has_own_image(const trial *t)
{
    return loader.device.sm >= 80 ? size_of(t->type) == 2 : t->type != TYPE(BF16) || t->dim == 40;
}

int main(int argc, char **argv)
{
    need(argc == 2, "attention_nonfinite DRIVER");
    open_device(argv[1], &sample_bundle);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (has_own_image(&all[i]))
            try_one(&all[i]);
    return end_calls();
}
