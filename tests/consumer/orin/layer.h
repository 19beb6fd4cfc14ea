/* Decoder layers in the manner of Llama 3: their sizes, their weights and cache on the device, and the launches of a token. */
#ifndef LAYER_H
#define LAYER_H

#include "device.h"

enum {
    LAYERS = 2,
    HEAD_DIM = 128,
    K_HEADS = 8,
    PAGE_ROWS = 16,
    BLOCK = 256,       /* weights of a Q4_K block */
    BLOCK_BYTES = 144, /* its bytes */
};

typedef struct sizes {
    uint32_t width;  /* of the residual stream */
    uint32_t hidden; /* of the feed-forward network */
    uint32_t q_heads;
    uint32_t context; /* tokens that the cache has room for; a multiple of PAGE_ROWS */
} sizes;

typedef struct matrix {
    unsigned char *blocks; /* the host's copy, for the reference */
    CUdeviceptr address;
    uint32_t rows, columns;
} matrix;

typedef struct layer {
    matrix q, k, v, output, gate, up, down;
    float *attention_gamma, *hidden_gamma; /* the host's */
    CUdeviceptr attention_norm, hidden_norm;
    CUdeviceptr k_cache, v_cache; /* f16[pages, PAGE_ROWS, K_HEADS, HEAD_DIM] */
    CUdeviceptr in, between,
        out; /* the residual stream before, after attention, and after the layer: f32[width] */
} layer;

/* What changes from token to token. Kernels read it from device memory, so one graph serves every token. */
typedef struct token {
    int64_t slot;      /* page * PAGE_ROWS + row that its key and value go to */
    uint32_t position; /* of the token */
    uint32_t length;   /* tokens in the cache, this one included */
} token;

typedef struct model {
    sizes size;
    layer layers[LAYERS];
    uint64_t frequencies[HEAD_DIM / 2]; /* turns per position, in fractions of 2^-64 */
    int32_t *pages;                     /* page of each PAGE_ROWS tokens: the host's */
    uint32_t page_count;
    CUdeviceptr frequency_table, page_table, token;
    CUdeviceptr q, k, v, rotated, attended, hidden; /* f16, shared by the layers */
    CUdeviceptr workspace, counters;
    uint64_t workspace_bytes;
} model;

/* Makes weights, caches with random keys and values, and buffers. */
bool model_open(model *m, const sizes *size, device *d);
void model_close(model *m);

/* Where the key and value of a position lie. */
int64_t model_slot(const model *m, uint32_t position);

/* Loads every kernel that model_launch launches. */
bool model_preload(const model *m, device *d);

/* Launches all layers for the token whose numbers are in m->token. */
bool model_launch(const model *m, device *d);

/* Compares each launch of the last layer with float64, computed from the launch's own inputs, and prints a line for each.
 * False when an element is outside its bound. */
bool model_check(const model *m, device *d, const token *now);

uint16_t half_from(double x);
double half_value(uint16_t bits);
/* Uniform in [-1, 1), the same on every machine. */
double random_unit(uint64_t *state);

#endif
