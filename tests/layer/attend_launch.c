/* The device's part of attention: the cache, and what is launched. */
#include "attend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        .k_row_stride = HEAD,
        .v_row_stride = HEAD,
        .k_head_stride = (uint64_t)l->kv.capacity * HEAD,
        .v_head_stride = (uint64_t)l->kv.capacity * HEAD,
        .k_batch_stride = (uint64_t)l->kv.capacity * HEAD * KV_HEADS,
        .v_batch_stride = (uint64_t)l->kv.capacity * HEAD * KV_HEADS,
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

/* ---- all launches of a context ------------------------------------------------------------------------------------- */

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

bool attend_stream(const context *c, const tensors *t, element_type type, results *r)
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

bool attend_together(const context *c, const tensors *t, element_type type, results *r)
{
    layer l = layer_new(c, t, type);
    cache_append(&l.kv, c, t, context_keys(c));
    attend(&l, 0, context_queries(c), true, r);
    return layer_close(&l, t, false, r);
}

/* ---- one head ----------------------------------------------------------------------------------------------------- */

void attend_head(const float *q, const float *k, const float *v, float *out, uint32_t length, double scale,
                 element_type type)
{
    const size_t count = (size_t)length * HEAD;
    const layer_kernels_attention_args args = {.q = elements_upload(q, count, type),
                                               .k = elements_upload(k, count, type),
                                               .v = elements_upload(v, count, type),
                                               .out = device_new(count * element_bytes(type), NULL),
                                               .batch = 1,
                                               .q_heads = 1,
                                               .kv_heads = 1,
                                               .q_length = length,
                                               .k_length = length,
                                               .scale = scale,
                                               .q_row_stride = HEAD,
                                               .k_row_stride = HEAD,
                                               .v_row_stride = HEAD,
                                               .out_row_stride = HEAD,
                                               .type = types[type],
                                               .causal = true};
    device_need(layer_kernels_attention(&device_loader, NULL, &args));
    elements_take(out, args.out, count, type);
    device_free(args.q);
    device_free(args.k);
    device_free(args.v);
}
