/* The device's part of attention: the cache and the launches. */
#include "attend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPARE = 24, MOST_SPLITS = 16 };

/* ---- the cache --------------------------------------------------------------------------------------------------- */

/* K or V: its address, and the strides of row, head and sequence in elements. */
typedef struct strided {
    CUdeviceptr first;
    uint32_t row;
    uint64_t head, batch;
} strided;

/* K is stored by head, V by row: both kinds of caches exist. */
typedef struct cache {
    strided k, v;
    element_type type;
    uint32_t count; /* rows of a head in the cache */
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
    const uint32_t capacity = context_keys(c) + SPARE, all = capacity * KV_HEADS * HEAD;
    const size_t bytes = (size_t)c->batch * all * element_bytes(type);
    return (cache){.k = {new_nans(bytes), HEAD, (uint64_t)capacity * HEAD, all},
                   .v = {new_nans(bytes), KV_HEADS * HEAD, HEAD, all},
                   .type = type};
}

static void write_row(const strided *to, uint32_t batch, uint32_t head, uint32_t row, const float *values,
                      element_type type)
{
    const uint64_t at = batch * to->batch + head * to->head + (uint64_t)row * to->row;
    elements_write(to->first + at * element_bytes(type), values, HEAD, type);
}

static void cache_append(cache *to, const context *c, const tensors *t, uint32_t count)
{
    const uint32_t keys = context_keys(c);
    for (uint32_t i = 0; i < c->batch * KV_HEADS * count; i++) {
        const uint32_t row = to->count + i % count, head = i / count % KV_HEADS, batch = i / count / KV_HEADS;
        const size_t from = (((size_t)batch * KV_HEADS + head) * keys + row) * HEAD;
        write_row(&to->k, batch, head, row, t->k + from, to->type);
        write_row(&to->v, batch, head, row, t->v + from, to->type);
    }
    to->count += count;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* Shared by all launches. */
typedef struct layer {
    const context *c;
    cache kv;
    CUdeviceptr q, out, workspace, tile_counters;
    size_t workspace_size, tile_counters_size;
} layer;

static const uint32_t types[] = {[F32] = LAYER_KERNELS_ATTENTION_TYPE_F32,
                                 [F16] = LAYER_KERNELS_ATTENTION_TYPE_F16,
                                 [BF16] = LAYER_KERNELS_ATTENTION_TYPE_BF16};

/* Runs queries first to first + count - 1 of each sequence and head, with all keys in the cache. */
static void launch(const layer *l, uint32_t first, uint32_t count, bool is_causal, CUdeviceptr log)
{
    const uint32_t queries = context_queries(l->c);
    const size_t skipped = (size_t)first * QUERY_ROW * element_bytes(l->kv.type);
    const layer_kernels_attention_args args = {
        .q = l->q + skipped,
        .k = l->kv.k.first,
        .v = l->kv.v.first,
        .out = l->out + skipped,
        .lse = log,
        .batch = l->c->batch,
        .q_heads = QUERY_HEADS,
        .kv_heads = KV_HEADS,
        .q_length = count,
        .k_length = l->kv.count,
        .scale = 1 / sqrt(HEAD),
        .q_row_stride = QUERY_ROW,
        .q_head_stride = HEAD,
        .q_batch_stride = (uint64_t)queries * QUERY_ROW,
        .k_row_stride = l->kv.k.row,
        .k_head_stride = l->kv.k.head,
        .k_batch_stride = l->kv.k.batch,
        .v_row_stride = l->kv.v.row,
        .v_head_stride = l->kv.v.head,
        .v_batch_stride = l->kv.v.batch,
        .out_row_stride = QUERY_ROW,
        .out_head_stride = HEAD,
        .out_batch_stride = (uint64_t)queries * QUERY_ROW,
        .workspace = l->workspace,
        .tile_counters = l->tile_counters,
        .workspace_size = l->workspace_size,
        .type = types[l->kv.type],
        .head_dim = HEAD,
        .causal = is_causal,
    };
    device_need(layer_kernels_attention(&device_loader, NULL, &args));
}

/* Runs the same, and copies the log-sum-exps to their places. */
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
    l.tile_counters_size = heads;
    l.workspace = device_new(l.workspace_size * sizeof(float), NULL);
    l.tile_counters = device_new(l.tile_counters_size * sizeof(uint32_t), NULL);
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

/* Copies O back. Returns whether thread blocks split the keys as expected, by the workspace, and left it ready for other launches. */
static bool layer_close(layer *l, const tensors *t, bool should_share, results *r)
{
    elements_take(r->out, l->out, t->q_count, l->kv.type);
    const bool are_shared = has_bits(l->workspace, l->workspace_size);
    const bool is_left = has_bits(l->tile_counters, l->tile_counters_size);
    device_free(l->kv.k.first);
    device_free(l->kv.v.first);
    device_free(l->q);
    if (are_shared != should_share)
        printf("WRONG: thread blocks %s the keys of a query\n", are_shared ? "shared" : "did not share");
    if (is_left)
        puts("WRONG: tile_counters are not all zero after the launches");
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
