/* A model of the architecture "llama": the parameters in its GGUF file, and its weights on the device. */
#ifndef LM_MODEL_H
#define LM_MODEL_H

#include "device.h"
#include "gguf.h"

/* Quantised weights on the device: rows of blocks, as in the file. */
typedef struct matrix {
    CUdeviceptr address;
    uint32_t rows, columns;
    uint32_t format; /* LM_KERNELS_LINEAR_FORMAT_... */
} matrix;

typedef struct layer {
    CUdeviceptr attention_norm, hidden_norm; /* f32[width] */
    matrix q, k, v, output;                  /* output: attention's output projection */
    matrix gate, up, down;                   /* feed-forward network */
} layer;

/* A tensor's offset. */
typedef struct place {
    uint64_t offset; /* in the memory of all weights; a multiple of 256 */
    bool is_used;
} place;

typedef struct model {
    uint32_t width; /* elements of the residual stream */
    uint32_t heads, key_heads, head_size;
    uint32_t hidden;     /* elements of the feed-forward network's hidden layer */
    uint32_t vocabulary; /* tokens */
    uint32_t context;    /* context length of the training, in tokens */
    float norm_eps;
    float rope_base;
    float rope_factor;         /* positions are divided by it */
    uint32_t rotary;           /* elements of a head that rope rotates */
    CUdeviceptr frequencies;   /* u64[rotary / 2], as kiln's rope takes them */
    matrix embedding, head;    /* the same matrix if the file has no output.weight */
    uint32_t embedding_format; /* LM_KERNELS_GGUF_ROWS_FORMAT_... */
    CUdeviceptr output_norm;   /* f32[width] */
    uint32_t layer_count;
    layer *layers;
    place *places; /* for each tensor of the file, in the file's order */
    CUdeviceptr weights;
    uint64_t weight_bytes, token_bytes; /* bytes of all weights, and of those that each token reads whole */
} model;

/* Reads and checks the file's parameters. Returns false if this program cannot run the model, and prints why. `m` must be
 * all zeros; call model_close even after a failure. */
bool model_open(model *m, const gguf_file *file);
/* Copies the tensors to the device, in pieces. */
bool model_upload(model *m, gguf_file *file, device *d);
void model_close(model *m);

#endif
