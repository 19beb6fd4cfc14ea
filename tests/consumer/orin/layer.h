/* Decoder layers like Llama 3's: sizes, weights and cache on the device, and the launches of a token. */
#ifndef LAYER_H
#define LAYER_H

#include "device.h"

enum {
    LAYERS = 2,
    HEAD_DIM = 128,
    K_HEADS = 8,
    PAGE_ROWS = 16,
    BLOCK = 256,       /* weights of a Q4_K block */
    BLOCK_BYTES = 144, /* bytes of a Q4_K block */
};

typedef struct sizes {
    uint32_t width;  /* elements of the residual stream */
    uint32_t hidden; /* elements of the feed-forward network's hidden layer */
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
        out; /* f32[width]: the residual stream before the layer, after attention, and after the layer */
} layer;

/* Inputs that change with each token. Kernels read them from device memory, so one graph serves every token. */
typedef struct token {
    int64_t slot;      /* cache row of its key and value: page * PAGE_ROWS + row */
    uint32_t position; /* the token's position */
    uint32_t length;   /* tokens in the cache, this one included */
} token;

typedef struct model {
    sizes size;
    layer layers[LAYERS];
    uint64_t frequencies[HEAD_DIM / 2]; /* rotation per position, in units of 2^-64 turns */
    int32_t *pages;                     /* page of each PAGE_ROWS tokens, on the host */
    uint32_t page_count;
    CUdeviceptr frequency_table, page_table, token;
    CUdeviceptr q, k, v, rotated, attended, hidden; /* f16, shared by the layers */
    CUdeviceptr workspace, counters;
    uint64_t workspace_bytes;
} model;

/* Makes weights, caches with random keys and values, and buffers. */
bool model_open(model *m, const sizes *size, device *d);
void model_close(model *m);

/* Returns the cache row of a position. */
int64_t model_slot(const model *m, uint32_t position);

/* Loads every kernel that model_launch launches. */
bool model_preload(const model *m, device *d);

/* Launches all layers for the token in m->token. */
bool model_launch(const model *m, device *d);

/* Compares each launch of the last layer with float64, computed from the launch's own inputs, and prints a line for each.
 * Returns false if an element exceeds its bound. */
bool model_check(const model *m, device *d, const token *now);

uint16_t half_from(double x);
double half_value(uint16_t bits);
/* Returns a uniform random number in [-1, 1), the same on every machine. */
double random_unit(uint64_t *state);

#endif
