/* Calls that must agree.
 * The function for a single head: compared with float64, at lengths near a tile's and at lengths for which published kernels
 * read stale keys. It gives the same bits as the family's own function, and refuses bad calls.
 * Sequences of a batch: each gives the same bits as on its own, with keys in rows, in slots or in pages. Memory after the last
 * row is unchanged, and a length above the maximum is cut.
 *
 * usage: attention_calls DRIVER
 */
#include "../../calls.h"

#include <math.h>

#include "sample.h"

enum { HEAD_DIM = 16, LONGEST = 100, NUMBERS = LONGEST * HEAD_DIM };

static float q[NUMBERS], k[NUMBERS], v[NUMBERS];
static CUdeviceptr at_q, at_k, at_v, at_out;

static void make_inputs(void)
{
    for (int i = 0; i < NUMBERS; i++) {
        q[i] = sinf((float)i);
        k[i] = cosf(0.7f * (float)i);
        v[i] = sinf(1.3f * (float)i + 1);
    }
    at_q = upload(q, sizeof q);
    at_k = upload(k, sizeof k);
    at_v = upload(v, sizeof v);
    at_out = upload(v, sizeof v);
}

static sample_attention_single_head_args single(uint32_t seq_len)
{
    return (sample_attention_single_head_args){.q = at_q,
                                               .k = at_k,
                                               .v = at_v,
                                               .out = at_out,
                                               .seq_len = seq_len,
                                               .scale = 0.25,
                                               .type = SAMPLE_ATTENTION_TYPE_F32,
                                               .head_dim = HEAD_DIM,
                                               .causal = 1};
}

/* Computes one row of O in float64. */
static void attend(uint32_t row, double *out)
{
    double sum = 0;
    memset(out, 0, HEAD_DIM * sizeof *out);
    for (uint32_t j = 0; j <= row; j++) {
        double score = 0;
        for (int d = 0; d < HEAD_DIM; d++)
            score += (double)q[row * HEAD_DIM + (uint32_t)d] * k[j * HEAD_DIM + (uint32_t)d];
        const double weight = exp(0.25 * score); /* the scores are at most 4 */
        sum += weight;
        for (int d = 0; d < HEAD_DIM; d++)
            out[d] += weight * v[j * HEAD_DIM + (uint32_t)d];
    }
    for (int d = 0; d < HEAD_DIM; d++)
        out[d] /= sum;
}

static void judge_at(bool is_right, const char *what, uint32_t seq_len, kiln_status status)
{
    char text[64];
    snprintf(text, sizeof text, "%s, seq_len %u", what, (unsigned)seq_len);
    judge(is_right, text, status);
    launched.count = 0;
}

/* Checks that all rows are right, and the memory after them is unchanged. */
static void check_values(uint32_t seq_len)
{
    static float out[NUMBERS];
    const sample_attention_single_head_args args = single(seq_len);
    upload_to(at_out, v, sizeof v);
    const kiln_status status = sample_attention_single_head(&loader, NULL, &args);
    download(out, at_out, sizeof out);
    bool is_right = status == KILN_OK && memcmp(out + seq_len * HEAD_DIM, v + seq_len * HEAD_DIM,
                                                (LONGEST - seq_len) * HEAD_DIM * sizeof *out) == 0;
    for (uint32_t row = 0; row < seq_len; row++) {
        double exact[HEAD_DIM];
        attend(row, exact);
        for (uint32_t d = 0; d < HEAD_DIM; d++)
            is_right &= fabs(out[row * HEAD_DIM + d] - exact[d]) <= 0x1p-20; /* for values up to 1 */
    }
    judge_at(is_right, "against float64", seq_len, status);
}

static void check_bits(uint32_t seq_len)
{
    static float out[NUMBERS], same[NUMBERS];
    const sample_attention_single_head_args a = single(seq_len);
    const sample_attention_args all = {.q = a.q,
                                       .k = a.k,
                                       .v = a.v,
                                       .out = a.out,
                                       .batch = 1,
                                       .q_heads = 1,
                                       .kv_heads = 1,
                                       .q_length = seq_len,
                                       .k_length = seq_len,
                                       .scale = a.scale,
                                       .q_row_stride = HEAD_DIM,
                                       .k_row_stride = HEAD_DIM,
                                       .v_row_stride = HEAD_DIM,
                                       .out_row_stride = HEAD_DIM,
                                       .type = a.type,
                                       .head_dim = a.head_dim,
                                       .causal = a.causal};
    upload_to(at_out, v, sizeof v);
    const kiln_status one = sample_attention_single_head(&loader, NULL, &a);
    download(out, at_out, sizeof out);
    upload_to(at_out, v, sizeof v);
    const kiln_status other = sample_attention(&loader, NULL, &all);
    download(same, at_out, sizeof same);
    const bool is_right = one == KILN_OK && other == KILN_OK && memcmp(out, same, sizeof out) == 0;
    judge_at(is_right, "the bits of the family's function", seq_len, other);
}

/* With an empty cache, K and V are null and O is zero. */
static void check_no_keys(void)
{
    static float out[NUMBERS], zero[NUMBERS];
    const sample_attention_single_head_args a = single(LONGEST);
    sample_attention_args all = {.q = a.q,
                                 .out = a.out,
                                 .batch = 1,
                                 .q_heads = 1,
                                 .kv_heads = 1,
                                 .q_length = LONGEST,
                                 .scale = a.scale,
                                 .q_row_stride = HEAD_DIM,
                                 .out_row_stride = HEAD_DIM,
                                 .type = a.type,
                                 .head_dim = a.head_dim,
                                 .causal = a.causal};
    upload_to(at_out, v, sizeof v);
    kiln_status status = sample_attention(&loader, NULL, &all);
    download(out, at_out, sizeof out);
    judge_at(status == KILN_OK && memcmp(out, zero, sizeof out) == 0, "no keys, K and V null", LONGEST,
             status);
    all.k_length = 1;
    status = sample_attention(&loader, NULL, &all);
    judge_at(status == KILN_ERROR_NULL_POINTER && launched.count == 0, "one key, K and V null", LONGEST,
             status);
}

static void expect_refused(const char *what, const sample_attention_single_head_args *args,
                           kiln_status wanted)
{
    expect(what, sample_attention_single_head(&loader, NULL, args), wanted, 0);
}

static void check_refused(void)
{
    sample_attention_single_head_args args = single(LONGEST);
    expect_refused("no arguments", NULL, KILN_ERROR_NULL_POINTER);
    args.k = 0;
    expect_refused("k is null", &args, KILN_ERROR_NULL_POINTER);
    args = single(LONGEST);
    args.v += 4;
    expect_refused("v is misaligned", &args, KILN_ERROR_MISALIGNED);
    args = single(LONGEST);
    args.head_dim = 208;
    expect_refused("no such head_dim", &args, KILN_ERROR_NO_VARIANT);
    static const double scales[] = {-1, NAN, INFINITY, -INFINITY, 1e39}; /* the last is infinity in f32 */
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        args = single(LONGEST);
        args.scale = scales[i];
        expect_refused("scale is negative, not finite or beyond f32", &args, KILN_ERROR_BAD_ARGUMENT);
    }
    args = single(0);
    expect_refused("nothing to do", &args, KILN_OK);
}

/* ---- sequences -------------------------------------------------------------------------------------------------- */

enum {
    BATCH = 5,
    HEADS = 4,
    KV_HEADS = 2,
    Q_ROWS = 77,
    K_ROWS = 172,
    UNUSED = 2, /* rows of O after the last sequence */
    MOST_DIM = 48,
    WORKSPACE = (Q_ROWS + UNUSED) * HEADS * 4 * (MOST_DIM + 8), /* floats for four parts */
    PAGE = 24,                                                  /* rows */
    PAGES = 16,
    COUNTERS = BATCH * HEADS * 8,
    TABLE = 4 /* entries per sequence; the last may have no page */
};

static const uint32_t q_lengths[BATCH] = {3, 0, 40, 1, 33}, q_offsets[BATCH + 1] = {0, 3, 3, 43, 44, 77};
static const uint32_t k_lengths[BATCH] = {70, 5, 0, 33, 64}, k_offsets[BATCH + 1] = {0, 70, 75, 75, 108, 172};
static const int32_t page_table[BATCH][TABLE] = {
    {9, 2, 14, -1}, {0, -1, -1, -1}, {-1, -1, -1, -1}, {7, 3, -1, -1}, {12, 5, 1, -1}};

typedef struct trial {
    uint32_t type, dim;
    bool is_causal, has_parts;
    uint32_t kv; /* 0: as type */
} trial;

/* O and the log-sum-exps, which have as many rows per head as O. */
typedef struct results {
    unsigned char out[(Q_ROWS + UNUSED) * HEADS * MOST_DIM * sizeof(float)];
    float lse[HEADS * (Q_ROWS + UNUSED)];
} results;

/* On the device: rows of Q, K and V; K and V in pages; offsets, lengths and the table. */
static struct {
    CUdeviceptr q, k, v, k_pages, v_pages, out, lse, workspace, tile_counters, q_offsets, k_offsets,
        k_lengths, page_table;
    CUdeviceptr scales, scale_pages; /* of K's and V's rows; the first two also serve as heads' scales */
} at;

static size_t element_size(const trial *t)
{
    return t->type == SAMPLE_ATTENTION_TYPE_F32 ? sizeof(float) : sizeof(uint16_t);
}

static size_t row_size(const trial *t, uint32_t heads)
{
    return heads * t->dim * element_size(t);
}

/* Returns the elements of a row of K and V. */
static size_t kv_row_size(const trial *t)
{
    return t->kv ? (size_t)KV_HEADS * t->dim : row_size(t, KV_HEADS);
}

/* Numbers between -1 and 1; bf16 ones are the upper halves of f32 numbers. */
static unsigned char *make_rows(const trial *t, uint32_t rows, uint32_t heads, double step)
{
    unsigned char *data = malloc(rows * row_size(t, heads));
    need(data, "malloc");
    for (uint32_t i = 0; i < rows * heads * t->dim; i++) {
        const float x = (float)sin(step * i + 0.1);
        const size_t size = element_size(t);
        memcpy(data + i * size, (const unsigned char *)&x + sizeof x - size, size);
    }
    return data;
}

/* All codes except e4m3's NaN. */
static unsigned char *make_keys(const trial *t, double step)
{
    if (!t->kv)
        return make_rows(t, K_ROWS, KV_HEADS, step);
    const size_t bytes = K_ROWS * kv_row_size(t);
    unsigned char *data = malloc(bytes);
    need(data, "malloc");
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(fmod(step * (double)i, 1) * 127) | (unsigned char)(i % 3 == 0 ? 0x80 : 0);
    return data;
}

/* Copies the rows to the table's pages; other pages are NaN. */
static CUdeviceptr upload_pages(const unsigned char *rows, size_t row)
{
    unsigned char *data = malloc(PAGES * PAGE * row);
    need(data, "malloc");
    memset(data, 0xff, PAGES * PAGE * row);
    for (uint32_t b = 0; b < BATCH; b++)
        for (uint32_t j = 0; j < k_lengths[b]; j++)
            memcpy(data + ((size_t)page_table[b][j / PAGE] * PAGE + j % PAGE) * row,
                   rows + (k_offsets[b] + j) * row, row);
    const CUdeviceptr address = upload(data, PAGES * PAGE * row);
    free(data);
    return address;
}

static void upload_all(const trial *t)
{
    unsigned char *q_rows = make_rows(t, Q_ROWS, HEADS, 0.7), *k_rows = make_keys(t, 0.9),
                  *v_rows = make_keys(t, 1.3);
    static float scales[K_ROWS][KV_HEADS];
    for (uint32_t i = 0; i < K_ROWS * KV_HEADS; i++)
        scales[i / KV_HEADS][i % KV_HEADS] = 0.001f * (float)(1 + i % 7);
    at.q = upload(q_rows, Q_ROWS * row_size(t, HEADS));
    at.k = upload(k_rows, K_ROWS * kv_row_size(t));
    at.v = upload(v_rows, K_ROWS * kv_row_size(t));
    at.k_pages = upload_pages(k_rows, kv_row_size(t));
    at.v_pages = upload_pages(v_rows, kv_row_size(t));
    at.scales = upload(scales, sizeof scales);
    at.scale_pages = upload_pages((const unsigned char *)scales, sizeof scales[0]);
    at.out = allocate(sizeof(results));
    at.lse = allocate(sizeof(results));
    at.workspace = allocate(sizeof(float) * WORKSPACE);
    at.tile_counters = allocate(sizeof(uint32_t) * COUNTERS);
    at.q_offsets = upload(q_offsets, sizeof q_offsets);
    at.k_offsets = upload(k_offsets, sizeof k_offsets);
    at.k_lengths = upload(k_lengths, sizeof k_lengths);
    at.page_table = upload(page_table, sizeof page_table);
    set(at.tile_counters, 0, sizeof(uint32_t) * COUNTERS);
    free(q_rows);
    free(k_rows);
    free(v_rows);
}

static void free_all(void)
{
    const CUdeviceptr all[] = {at.q,         at.k,         at.v,          at.k_pages,       at.v_pages,
                               at.out,       at.lse,       at.workspace,  at.tile_counters, at.q_offsets,
                               at.k_offsets, at.k_lengths, at.page_table, at.scales,        at.scale_pages};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        need(driver.mem_free(all[i]) == 0, "cuMemFree");
}

static void set_keys(const trial *t, sample_attention_args *args, CUdeviceptr of_k, CUdeviceptr of_v,
                     CUdeviceptr scales)
{
    const bool is_of_rows = t->kv == SAMPLE_ATTENTION_KV_INT8_TOKEN;
    *(t->kv ? &args->k_codes : &args->k) = of_k;
    *(t->kv ? &args->v_codes : &args->v) = of_v;
    if (t->kv) {
        *(is_of_rows ? &args->k_scales : &args->k_scale) = scales;
        *(is_of_rows ? &args->v_scales : &args->v_scale) = scales;
    }
    args->kv = t->kv;
}

static sample_attention_args all_sequences(const trial *t, uint32_t most_queries, uint32_t most_keys)
{
    sample_attention_args args = {.q = at.q,
                                  .out = at.out,
                                  .lse = at.lse,
                                  .batch = BATCH,
                                  .q_heads = HEADS,
                                  .kv_heads = KV_HEADS,
                                  .q_length = most_queries,
                                  .k_length = most_keys,
                                  .scale = 0.25,
                                  .q_row_stride = HEADS * t->dim,
                                  .k_row_stride = KV_HEADS * t->dim,
                                  .v_row_stride = KV_HEADS * t->dim,
                                  .out_row_stride = HEADS * t->dim,
                                  .q_head_stride = t->dim,
                                  .k_head_stride = t->dim,
                                  .v_head_stride = t->dim,
                                  .out_head_stride = t->dim,
                                  .workspace = at.workspace,
                                  .tile_counters = at.tile_counters,
                                  .workspace_size = t->has_parts ? WORKSPACE : 0,
                                  .sequences.q_offsets = at.q_offsets,
                                  .sequences.k_offsets = at.k_offsets,
                                  .sequences.q_rows = Q_ROWS + UNUSED,
                                  .sequences.k_rows = K_ROWS,
                                  .type = t->type,
                                  .head_dim = t->dim,
                                  .causal = t->is_causal,
                                  .scale_row_stride = KV_HEADS,
                                  .scale_head_stride = 1,
                                  .layout = SAMPLE_ATTENTION_LAYOUT_RAGGED};
    set_keys(t, &args, at.k, at.v, at.scales);
    return args;
}

static void run(const sample_attention_args *args, results *r, const char *what)
{
    uint32_t counters[COUNTERS], others = 0;
    set(at.out, 0xa5, sizeof r->out);
    set(at.lse, 0xa5, sizeof r->lse);
    const kiln_status status = sample_attention(&loader, NULL, args);
    download(r->out, at.out, sizeof r->out);
    download(r->lse, at.lse, sizeof r->lse);
    download(counters, at.tile_counters, sizeof counters);
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        others += counters[i] != 0;
    judge(status == KILN_OK && others == 0, what, status);
}

/* Compares a row of the batch with a row of `one`, whose log-sum-exps have `one_rows` rows per head. With a null `one`, checks
 * that the row is unchanged. */
static bool same_row(const trial *t, const results *all, uint32_t row, const results *one, uint32_t one_row,
                     uint32_t one_rows)
{
    unsigned char expected[HEADS * MOST_DIM * sizeof(float)];
    const size_t size = row_size(t, HEADS);
    bool is_same = true;
    memset(expected, 0xa5, sizeof expected);
    if (one)
        memcpy(expected, one->out + one_row * size, size);
    is_same &= memcmp(all->out + row * size, expected, size) == 0;
    for (uint32_t h = 0; h < HEADS; h++)
        is_same &=
            memcmp(&all->lse[h * (Q_ROWS + UNUSED) + row],
                   one ? (const void *)&one->lse[h * one_rows + one_row] : expected, sizeof(float)) == 0;
    return is_same;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Runs the sequence on its own: dense, or with a length on the device, because the maximum length decides the parts. */
static void run_alone(const trial *t, uint32_t b, uint32_t most_queries, uint32_t most_keys, results *one)
{
    sample_attention_args args =
        all_sequences(t, least(q_lengths[b], most_queries), least(k_lengths[b], most_keys));
    args.q += q_offsets[b] * row_size(t, HEADS);
    const size_t before = k_offsets[b] * kv_row_size(t);
    const bool is_of_rows = t->kv == SAMPLE_ATTENTION_KV_INT8_TOKEN;
    set_keys(t, &args, at.k + before, at.v + before,
             at.scales + (is_of_rows ? k_offsets[b] * KV_HEADS * sizeof(float) : 0));
    args.batch = 1;
    args.sequences.q_rows = args.q_length;
    args.sequences.q_offsets = args.sequences.k_offsets = 0;
    args.sequences.k_rows = 0;
    if (t->has_parts) {
        args.sequences.k_lengths = at.k_lengths + b * sizeof *k_lengths;
        args.k_length = most_keys;
    } else {
        args.layout = SAMPLE_ATTENTION_LAYOUT_DENSE;
    }
    run(&args, one, "a sequence by itself");
}

static void check_sequences(const trial *t, uint32_t most_queries, uint32_t most_keys)
{
    static results all, paged, one;
    sample_attention_args args = all_sequences(t, most_queries, most_keys);
    run(&args, &all, "sequences");
    set_keys(t, &args, at.k_pages, at.v_pages,
             t->kv == SAMPLE_ATTENTION_KV_INT8_TOKEN ? at.scale_pages : at.scales);
    args.scale_batch_stride = (uint64_t)PAGE * KV_HEADS;
    args.sequences.k_lengths = at.k_lengths;
    args.pages.table = at.page_table;
    args.pages.stride = TABLE;
    args.pages.entries = BATCH * TABLE;
    args.pages.count = PAGES;
    args.pages.size = PAGE;
    args.k_batch_stride = args.v_batch_stride = (uint64_t)PAGE * KV_HEADS * t->dim;
    args.layout = SAMPLE_ATTENTION_LAYOUT_PAGED;
    run(&args, &paged, "sequences in pages");
    judge(memcmp(&all, &paged, sizeof all) == 0, "pages have the bits of rows", KILN_OK);
    bool is_same = true;
    for (uint32_t b = 0; b < BATCH; b++) {
        const uint32_t made = least(q_lengths[b], most_queries);
        if (made > 0)
            run_alone(t, b, most_queries, most_keys, &one);
        for (uint32_t i = 0; i < q_lengths[b]; i++)
            is_same &= same_row(t, &all, q_offsets[b] + i, i < made ? &one : NULL, i, made);
    }
    for (uint32_t i = Q_ROWS; i < Q_ROWS + UNUSED; i++)
        is_same &= same_row(t, &all, i, NULL, 0, 0);
    judge(is_same, "each sequence has the bits that it has by itself, and no other row is touched", KILN_OK);
}

static void try_rows(sample_attention_args args, uint32_t rows, kiln_status expected)
{
    launched.count = 0;
    args.sequences.q_rows = rows;
    expect("rows of all queries", sample_attention(&loader, NULL, &args), expected, expected == KILN_OK);
}

/* Without offsets each sequence has q_length rows of Q. Key offsets that are all 0 still count as offsets. */
static void check_counts(const trial *t)
{
    static const uint32_t none[BATCH + 1];
    static results made, zero;
    sample_attention_args args = all_sequences(t, 15, 70);
    is_dry = true;
    try_rows(args, 14, KILN_ERROR_BAD_ARGUMENT);
    try_rows(args, 15, KILN_OK);
    args.sequences.q_offsets = 0;
    try_rows(args, BATCH * 15 - 1, KILN_ERROR_BAD_ARGUMENT);
    try_rows(args, BATCH * 15, KILN_OK);
    is_dry = false;
    args = all_sequences(t, 64, 70);
    args.sequences.k_offsets = upload(none, sizeof none);
    args.sequences.k_rows = 0;
    set_keys(t, &args, 0, 0, at.scales);
    run(&args, &made, "sequences without keys");
    judge(memcmp(made.out, zero.out, Q_ROWS * row_size(t, HEADS)) == 0, "rows without keys are 0", KILN_OK);
    need(driver.mem_free(args.sequences.k_offsets) == 0, "cuMemFree");
}

static void check_all_sequences(void)
{
    static const trial trials_of[] = {
        {SAMPLE_ATTENTION_TYPE_F32, 16, true, false, 0},
        {SAMPLE_ATTENTION_TYPE_F32, 40, false, true, 0},
        {SAMPLE_ATTENTION_TYPE_BF16, 24, true, true, 0},
        {SAMPLE_ATTENTION_TYPE_F32, 48, true, false, SAMPLE_ATTENTION_KV_E4M3},
        {SAMPLE_ATTENTION_TYPE_BF16, 32, true, false, SAMPLE_ATTENTION_KV_INT8_TOKEN}};
    for (size_t i = 0; i < sizeof trials_of / sizeof *trials_of; i++) {
        const trial *t = &trials_of[i];
        if (t->type == SAMPLE_ATTENTION_TYPE_BF16 && loader.device.sm < 80)
            continue;
        upload_all(t);
        check_sequences(t, 40, 70);
        check_sequences(t, 64, 72); /* more than any sequence has */
        check_sequences(t, 32, 60); /* cut */
        check_counts(t);
        free_all();
    }
}

int main(int argc, char **argv)
{
    static const uint32_t lengths[] = {1, 2, 31, 32, 33, 63, 64, 65, LONGEST};
    need(argc == 2, "attention_calls DRIVER");
    open_device(argv[1], &sample_bundle);
    make_inputs();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        check_values(lengths[i]);
        check_bits(lengths[i]);
    }
    check_no_keys();
    check_refused();
    check_all_sequences();
    return end_calls();
}
