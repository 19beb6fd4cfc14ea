/* The properties of a model that its kernels depend on, read from a model file. Files are untrusted: readers bound every value
 * that they store here. Other code decides whether kiln has a kernel for it. */
#ifndef MODEL_FACTS_H
#define MODEL_FACTS_H

#include "support/arena.h"
#include "support/diagnostics.h"

typedef enum model_role {
    MODEL_QKV, /* Q, K and V in one matrix */
    MODEL_Q,
    MODEL_K,
    MODEL_V,
    MODEL_OUTPUT, /* of attention */
    MODEL_GATE,
    MODEL_UP,
    MODEL_DOWN,
    MODEL_ROLES
} model_role;

/* "attn_q": a role's name in labels, as GGUF files have it. */
extern const char *const model_role_names[MODEL_ROLES];

/* Weights; rows: outputs. */
typedef struct model_matrix {
    const char *format; /* "q4_k", "f16"; null: the model has no such matrix */
    uint64_t rows, columns;
    bool has_bias;
} model_matrix;

typedef struct model_layer {
    model_matrix matrices[MODEL_ROLES];
} model_layer;

typedef enum model_norm { MODEL_NORM_NONE, MODEL_NORM_RMS, MODEL_NORM_LAYER } model_norm;

enum { MODEL_MOST_LAYERS = 1024, MODEL_USUAL_CONTEXT = 2048 };

/* A number is 0 if the file does not give it. */
typedef struct model_facts {
    const char *architecture; /* "llama", printable */
    const char *
        family; /* family of its products: "linear" for GGUF's formats, "nf4_gemm", "fp4_gemm", or "": none */
    bool has_nested_scales; /* nf4_gemm: bitsandbytes' double quantisation */
    model_layer *layers;
    uint32_t layer_count;
    model_matrix embedding, head;
    uint64_t width, heads, kv_heads, head_dim, head_dim_v, rotary_dim, context, window;
    double eps, rope_base;
    double softcap, scale,
        query_scalar;       /* attention's scores are multiplied by scale, or 1 / sqrt(query_scalar) */
    const char *rope_pairs; /* "halves" or "neighbours"; null: positions are not rotated */
    const char *gate;       /* "swiglu" or "geglu"; null: none that kiln has */
    model_norm norm;
    bool has_attention_norm, has_ffn_norm;           /* before the products */
    bool has_attention_post_norm, has_ffn_post_norm; /* before the sum with the state */
    bool has_scaled_embedding;                       /* its rows are multiplied by sqrt(width) */
    bool has_scaled_results; /* of attention and the hidden layer, before the sum with the state */
    bool has_attention;      /* false: none that kiln's attention computes */
    const char **notes;      /* requirements of the model beyond these: a line each, printable */
    size_t note_count, note_capacity;
} model_facts;

/* Adds a line, unless it is already there. */
__attribute__((format(printf, 3, 4))) void model_note(arena *a, model_facts *m, const char *format, ...);

/* Reads a GGUF file's header; tensors override keys. False after a diagnostic. */
bool model_read_gguf(arena *a, const char *path, model_facts *m, diagnostics *d);

#endif
