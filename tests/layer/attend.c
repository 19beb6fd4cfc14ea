/* Attention of a layer with grouped heads: a prompt at once, then token by token against a cache that grows.
 *
 * The cache is longer than the sequence, and NaNs fill what is not there yet. A prompt goes through the causal kernel.
 * Each token after it appends a row to K and V, and its one query, which sees all keys and needs no mask, goes through the
 * kernel that shares the keys among thread blocks. That happens twice, the second time from the last thread block on, and
 * must give the same bits. Then prompt and tokens go through the causal kernel together, as if all had been there at once.
 */
#include "attend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lengths that no tile divides; two sequences at once; a cache that holds much already. */
static const context contexts[] = {
    {.batch = 2, .cached = 0, .prompt = 77, .steps = 3},
    {.batch = 1, .cached = 0, .prompt = 200, .steps = 3},
    {.batch = 1, .cached = 523, .prompt = 9, .steps = 2},
};

enum { SPARE = 24, MOST_SPLITS = 16 };

/* ---- the cache --------------------------------------------------------------------------------------------------- */

/* K and V by sequence, head and row. */
typedef struct cache {
    CUdeviceptr k, v;
    element_type type;
    uint32_t capacity, rows; /* rows of a head: that there is room for, that are there */
} cache;

static CUdeviceptr new_nans(size_t bytes)
{
    void *ones = host_new(bytes, 1);
    memset(ones, 0xff, bytes);
    const CUdeviceptr address = device_new(bytes, ones);
    free(ones);
    return address;
}

static cache cache_new(const context *c, element_type type)
{
    const uint32_t capacity = context_keys(c) + SPARE;
    const size_t bytes = (size_t)c->batch * KV_HEADS * capacity * HEAD * element_bytes(type);
    return (cache){new_nans(bytes), new_nans(bytes), type, capacity, 0};
}

static void cache_append(cache *to, const context *c, const tensors *t, uint32_t rows)
{
    for (uint32_t i = 0; i < c->batch * KV_HEADS; i++) {
        const size_t from = ((size_t)i * context_keys(c) + to->rows) * HEAD;
        const size_t at = ((size_t)i * to->capacity + to->rows) * HEAD * element_bytes(to->type);
        elements_write(to->k + at, t->k + from, (size_t)rows * HEAD, to->type);
        elements_write(to->v + at, t->v + from, (size_t)rows * HEAD, to->type);
    }
    to->rows += rows;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* O like Q, and the logarithms by sequence, head and query. */
typedef struct results {
    float *out, *log;
} results;

static results results_new(const context *c)
{
    const size_t rows = (size_t)c->batch * context_queries(c) * QUERY_HEADS;
    return (results){host_new(rows * HEAD, sizeof(float)), host_new(rows, sizeof(float))};
}

static void results_free(results *r)
{
    free(r->out);
    free(r->log);
}

static bool results_agree(const context *c, const results *a, const results *b)
{
    const size_t rows = (size_t)c->batch * context_queries(c) * QUERY_HEADS;
    return memcmp(a->out, b->out, rows * HEAD * sizeof(float)) == 0 &&
           memcmp(a->log, b->log, rows * sizeof(float)) == 0;
}

/* What launches share. */
typedef struct layer {
    const context *c;
    cache kv;
    CUdeviceptr q, out, workspace, arrivals;
    size_t workspace_size, arrivals_size;
} layer;

static const uint32_t types[] = {[F32] = LAYER_KERNELS_ATTENTION_TYPE_F32,
                                 [F16] = LAYER_KERNELS_ATTENTION_TYPE_F16,
                                 [BF16] = LAYER_KERNELS_ATTENTION_TYPE_BF16};

/* Queries first to first + count - 1 of each sequence and head, against all keys in the cache. */
static void launch(const layer *l, uint32_t first, uint32_t count, bool is_causal, CUdeviceptr log)
{
    const uint32_t queries = context_queries(l->c);
    const size_t skipped = (size_t)first * QUERY_ROW * element_bytes(l->kv.type);
    const layer_kernels_attention_args args = {
        .q = l->q + skipped,
        .k = l->kv.k,
        .v = l->kv.v,
        .out = l->out + skipped,
        .lse = log,
        .batch = l->c->batch,
        .q_heads = QUERY_HEADS,
        .kv_heads = KV_HEADS,
        .q_length = count,
        .k_length = l->kv.rows,
        .scale = 1 / sqrt(HEAD),
        .q_row_stride = QUERY_ROW,
        .q_head_stride = HEAD,
        .q_batch_stride = (uint64_t)queries * QUERY_ROW,
        .kv_row_stride = HEAD,
        .kv_head_stride = (uint64_t)l->kv.capacity * HEAD,
        .kv_batch_stride = (uint64_t)l->kv.capacity * HEAD * KV_HEADS,
        .out_row_stride = QUERY_ROW,
        .out_head_stride = HEAD,
        .out_batch_stride = (uint64_t)queries * QUERY_ROW,
        .workspace = l->workspace,
        .arrivals = l->arrivals,
        .workspace_size = l->workspace_size,
        .type = types[l->kv.type],
        .head_dim = HEAD,
        .causal = is_causal,
    };
    device_need(layer_kernels_attention(&device_loader, NULL, &args));
}

/* The same, and the logarithms into their places. */
static void attend(const layer *l, uint32_t first, uint32_t count, bool is_causal, results *r)
{
    const uint32_t heads = l->c->batch * QUERY_HEADS;
    float *log = host_new((size_t)heads * count, sizeof *log);
    const CUdeviceptr to = device_new((size_t)heads * count * sizeof *log, NULL);
    launch(l, first, count, is_causal, to);
    device_take(log, to, (size_t)heads * count * sizeof *log);
    for (uint32_t head = 0; head < heads; head++)
        memcpy(r->log + (size_t)head * context_queries(l->c) + first, log + (size_t)head * count,
               count * sizeof *log);
    free(log);
}

/* ---- the job ----------------------------------------------------------------------------------------------------- */

static layer layer_new(const context *c, const tensors *t, element_type type)
{
    const uint32_t heads = c->batch * QUERY_HEADS;
    layer l = {.c = c, .kv = cache_new(c, type)};
    l.q = elements_upload(t->q, t->q_count, type);
    l.out = device_new(t->q_count * element_bytes(type), NULL);
    l.workspace_size = (size_t)heads * MOST_SPLITS * (HEAD + 8);
    l.arrivals_size = heads;
    l.workspace = device_new(l.workspace_size * sizeof(float), NULL);
    l.arrivals = device_new(l.arrivals_size * sizeof(uint32_t), NULL);
    return l;
}

static bool has_bits(CUdeviceptr from, size_t words)
{
    uint32_t *bits = host_new(words, sizeof *bits), any = 0;
    device_take(bits, from, words * sizeof *bits);
    for (size_t i = 0; i < words; i++)
        any |= bits[i];
    free(bits);
    return any != 0;
}

/* Takes O. Whether thread blocks shared keys as they should, by the workspace, and left it fit for other launches. */
static bool layer_close(layer *l, const tensors *t, bool should_share, results *r)
{
    elements_take(r->out, l->out, t->q_count, l->kv.type);
    const bool are_shared = has_bits(l->workspace, l->workspace_size);
    const bool is_left = has_bits(l->arrivals, l->arrivals_size);
    device_free(l->kv.k);
    device_free(l->kv.v);
    device_free(l->q);
    if (are_shared != should_share)
        printf("WRONG: thread blocks %s the keys of a query\n", are_shared ? "shared" : "did not share");
    if (is_left)
        puts("WRONG: arrivals are not all zero after the launches");
    return are_shared == should_share && !is_left;
}

/* The sequences as they come. */
static bool stream(const context *c, const tensors *t, element_type type, results *r)
{
    layer l = layer_new(c, t, type);
    cache_append(&l.kv, c, t, c->cached + c->prompt);
    attend(&l, 0, c->prompt, true, r);
    for (uint32_t i = c->prompt; i < context_queries(c); i++) {
        cache_append(&l.kv, c, t, 1);
        attend(&l, i, 1, false, r);
    }
    return layer_close(&l, t, true, r);
}

static bool attend_together(const context *c, const tensors *t, element_type type, results *r)
{
    layer l = layer_new(c, t, type);
    cache_append(&l.kv, c, t, context_keys(c));
    attend(&l, 0, context_queries(c), true, r);
    return layer_close(&l, t, false, r);
}

/* ---- beside float64 ---------------------------------------------------------------------------------------------- */

typedef struct findings {
    comparison prefill, decoding, together, beside, log;
} findings;

/* Of one query of one head. */
static void compare_row(findings *f, const exact_row *exact, const exact_row *ideal, const float *streamed,
                        const float *whole, bool is_decoded)
{
    for (uint32_t d = 0; d < HEAD; d++) {
        const double one = (double)streamed[d], other = (double)whole[d];
        compare(is_decoded ? &f->decoding : &f->prefill, one, exact->out[d], exact->bound[d], ideal->out[d]);
        compare(&f->together, other, exact->out[d], exact->bound[d], ideal->out[d]);
        if (is_decoded)
            compare(&f->beside, one, other, 2 * exact->bound[d], ideal->out[d]);
    }
}

/* `given` is what the device was given, `ideal` the same before it was rounded to the type. */
static findings compare_all(const context *c, const tensors *given, const tensors *ideal, element_type type,
                            const results *streamed, const results *whole)
{
    const uint32_t queries = context_queries(c);
    findings f = {0};
    for (uint32_t n = 0; n < c->batch * QUERY_HEADS * queries; n++) {
        const uint32_t batch = n / queries / QUERY_HEADS, head = n / queries % QUERY_HEADS, i = n % queries;
        const size_t at = ((size_t)batch * queries + i) * QUERY_ROW + (size_t)head * HEAD;
        exact_row row, ideal_row;
        attend_exactly(given, c, batch, i, head, type, &row);
        attend_exactly(ideal, c, batch, i, head, type, &ideal_row);
        compare_row(&f, &row, &ideal_row, streamed->out + at, whole->out + at, i >= c->prompt);
        compare(&f.log, (double)streamed->log[n], row.log, row.log_bound, ideal_row.log);
        compare(&f.log, (double)whole->log[n], row.log, row.log_bound, ideal_row.log);
    }
    return f;
}

static bool report_all(const context *c, const char *type, const findings *f)
{
    const uint32_t heads = c->batch * QUERY_HEADS, prompt = heads * c->prompt, steps = heads * c->steps;
    const uint32_t keys = context_keys(c);
    const struct {
        const char *what;
        uint32_t rows, columns, keys;
        const comparison *found;
    } lines[] = {
        {"prefill", prompt, HEAD, c->cached + c->prompt, &f->prefill},
        {"decoding", steps, HEAD, keys, &f->decoding},
        {"prefill of all", prompt + steps, HEAD, keys, &f->together},
        {"decoding / prefill", steps, HEAD, keys, &f->beside},
        {"log-sum-exp", 2 * (prompt + steps), 1, keys, &f->log},
    };
    bool fine = true;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char title[64];
        snprintf(title, sizeof title, "%s, %s", lines[i].what, type);
        fine &= report(title, lines[i].rows, lines[i].columns, lines[i].keys, lines[i].found);
    }
    return fine;
}

static bool attend_in(const context *c, const tensors *ideal, element_type type, const char *name)
{
    tensors given = tensors_round(ideal, type);
    results streamed = results_new(c), again = results_new(c), whole = results_new(c);
    bool fine = stream(c, &given, type, &streamed);
    device_reverse_blocks(true);
    fine &= stream(c, &given, type, &again);
    device_reverse_blocks(false);
    fine &= attend_together(c, &given, type, &whole);
    const findings f = compare_all(c, &given, ideal, type, &streamed, &whole);
    fine &= report_all(c, name, &f);
    if (!results_agree(c, &streamed, &again)) {
        puts("WRONG: two runs differ");
        fine = false;
    }
    results_free(&streamed);
    results_free(&again);
    results_free(&whole);
    tensors_free(&given);
    return fine;
}

bool attend_sequences(const matrix *real)
{
    static const char *const names[] = {[F32] = "f32", [F16] = "f16", [BF16] = "bf16"};
    bool fine = true;
    for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++) {
        const context *c = &contexts[i];
        tensors ideal = tensors_make(real, c);
        bool here = true;
        for (int type = F32; type <= BF16; type++)
            here &= attend_in(c, &ideal, (element_type)type, names[type]);
        tensors_free(&ideal);
        printf("%u x (%u tokens in the cache, %u prefilled, %u decoded); %s\n\n", c->batch, c->cached,
               c->prompt, c->steps, here ? "two runs agree bit by bit" : "WRONG");
        fine &= here;
    }
    return fine;
}
