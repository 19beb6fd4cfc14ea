/* Runs a model: tokens in, logits out. decoder_open allocates the KV cache and all buffers. */
#ifndef LM_DECODER_H
#define LM_DECODER_H

#include <signal.h>

#include "model.h"

enum { CHUNK = 256 }; /* most tokens of a prompt that pass through the layers at once */

typedef struct decoder_options {
    bool has_all_logits; /* logits of each token, not only of the last; for tests */
    bool has_no_graph;   /* decoder_step launches each kernel by itself */
} decoder_options;

typedef struct decoder {
    device *device;
    const model *model;
    decoder_options options;
    uint32_t context;                      /* tokens that the cache has room for */
    uint32_t length;                       /* tokens that are in it */
    CUdeviceptr state;                     /* f32[CHUNK, width]: the residual stream */
    CUdeviceptr q, k, v, attended, hidden; /* f16[CHUNK, ...] */
    CUdeviceptr codes, scales;       /* s8[CHUNK, k] and f32[CHUNK, k / 32]: a prompt's rows, for a product */
    CUdeviceptr logits;              /* f32[vocabulary] for the last token, or [CHUNK, vocabulary] for all */
    CUdeviceptr k_cache, v_cache;    /* f16[layers, context, key_heads, head_size] */
    CUdeviceptr workspace, counters; /* attention's workspace */
    uint64_t workspace_bytes;
    CUdeviceptr inputs; /* inputs that change with each step: struct inputs of decoder.c */
    /* When nonzero, decoder_read ends before the next layer without logits. May be null. */
    const volatile sig_atomic_t *is_stopped;
    bool is_loading;   /* kernels are loaded instead of launched */
    uint32_t launches; /* kernel launches since load_kernels set it to 0 */
    uint32_t launches_per_token;
} decoder;

/* Allocates, loads all kernels, and records the graph of one token. There is no close: the device owns memory and graph. */
bool decoder_open(decoder *n, const model *m, device *d, uint32_t context, decoder_options options);

/* Appends up to CHUNK tokens. Leaves the logits of the last token, or of all, on the device. */
bool decoder_read(decoder *n, const int32_t *tokens, uint32_t count);

/* Appends one token: launches the graph if there is one, else each kernel. Ignores is_stopped. */
bool decoder_step(decoder *n, int32_t token);

/* Returns the bytes of weights, keys and values that a token reads after `length` others. */
uint64_t decoder_token_bytes(const decoder *n, uint32_t length);

/* The steps of decoder_read, for programs that inspect the values between them. */
bool decoder_embed(decoder *n, const int32_t *tokens, uint32_t count);
bool decoder_layer(decoder *n, uint32_t index, uint32_t count);
bool decoder_head(decoder *n, uint32_t count);

#endif
