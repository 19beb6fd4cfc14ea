#include "decoder.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { F16 = 2, F32 = 4 }; /* bytes */

/* Inputs that change with each step. Kernels read them on the device, so one graph serves every token. */
typedef struct inputs {
    int64_t slots[CHUNK];      /* cache rows for the tokens' keys and values */
    uint32_t positions[CHUNK]; /* the tokens' positions */
    int32_t tokens[CHUNK];
    uint32_t length; /* tokens in the cache, including these */
    uint32_t reserved;
} inputs;

/* ---- launches; load_kernels calls these too, to load the kernels --------------------------------------------------- */

#define LAUNCH(family)                                                                                       \
    static bool launch_##family(decoder *n, const lm_kernels_##family##_args *args)                          \
    {                                                                                                        \
        device *d = n->device;                                                                               \
        const kiln_kernel *kernel = NULL;                                                                    \
        n->launches++;                                                                                       \
        if (!n->is_loading)                                                                                  \
            return device_launched(d, lm_kernels_##family(&d->loader, d->stream, args));                     \
        return device_launched(d, lm_kernels_##family##_pick(&d->loader, args, &kernel)) &&                  \
               device_launched(d, kiln_preload(&d->loader, &kernel, 1));                                     \
    }
LAUNCH(gguf_rows)
LAUNCH(q8_quantize)
LAUNCH(linear)
LAUNCH(rope)
LAUNCH(attention)
#undef LAUNCH

/* ---- one layer ----------------------------------------------------------------------------------------------------- */

/* The arguments of a product of one token's row, or of a few, on CUDA cores. With a gamma, `in` is f32 and is normalised,
 * else it is f16. */
static lm_kernels_linear_args product_of_rows(const decoder *n, CUdeviceptr in, CUdeviceptr gamma,
                                              uint32_t rows, uint32_t width)
{
    return (lm_kernels_linear_args){.in = in,
                                    .gamma = gamma,
                                    .m = rows,
                                    .k = width,
                                    .eps = n->model->norm_eps,
                                    .norm = gamma ? LM_KERNELS_LINEAR_NORM_RMS : LM_KERNELS_LINEAR_NORM_NONE,
                                    .activation = LM_KERNELS_LINEAR_ACTIVATION_EXACT,
                                    .x = gamma ? LM_KERNELS_LINEAR_X_F32 : LM_KERNELS_LINEAR_X_F16,
                                    .y = gamma ? LM_KERNELS_LINEAR_Y_F16 : LM_KERNELS_LINEAR_Y_F32};
}

/* The same arguments; a prompt's rows are first made codes and scales, which tensor cores multiply. */
static bool prepare_product(decoder *n, CUdeviceptr in, CUdeviceptr gamma, uint32_t rows, uint32_t width,
                            lm_kernels_linear_args *args)
{
    *args = product_of_rows(n, in, gamma, rows, width);
    if (rows == 1)
        return true;
    args->in = n->codes;
    args->in_scale = n->scales;
    args->norm = LM_KERNELS_LINEAR_NORM_NONE;
    args->activation = LM_KERNELS_LINEAR_ACTIVATION_Q8;
    args->x = LM_KERNELS_LINEAR_X_S8;
    return launch_q8_quantize(
        n, &(lm_kernels_q8_quantize_args){
               .in = in,
               .gamma = gamma,
               .codes = n->codes,
               .scale = n->scales,
               .m = rows,
               .k = width,
               .eps = n->model->norm_eps,
               .type = gamma ? LM_KERNELS_Q8_QUANTIZE_TYPE_F32 : LM_KERNELS_Q8_QUANTIZE_TYPE_F16,
               .norm = gamma ? LM_KERNELS_Q8_QUANTIZE_NORM_RMS : LM_KERNELS_Q8_QUANTIZE_NORM_NONE});
}

/* Q, K and V: one launch if all three have the same format. */
static bool project(decoder *n, const layer *l, uint32_t rows)
{
    const matrix *weights[3] = {&l->q, &l->k, &l->v};
    const CUdeviceptr outs[3] = {n->q, n->k, n->v};
    lm_kernels_linear_args args;
    if (!prepare_product(n, n->state, l->attention_norm, rows, n->model->width, &args))
        return false;
    if (l->q.format == l->k.format && l->q.format == l->v.format) {
        args.format = l->q.format, args.matrices = 3;
        args.w = l->q.address, args.w_2 = l->k.address, args.w_3 = l->v.address;
        args.n = l->q.rows, args.n_2 = l->k.rows, args.n_3 = l->v.rows;
        args.out = n->q, args.out_2 = n->k, args.out_3 = n->v;
        return launch_linear(n, &args);
    }
    for (int i = 0; i < 3; i++) {
        args.format = weights[i]->format, args.w = weights[i]->address, args.n = weights[i]->rows;
        args.out = outs[i];
        if (!launch_linear(n, &args))
            return false;
    }
    return true;
}

/* state += in * weights^T */
static bool add_product(decoder *n, CUdeviceptr in, const matrix *weights, uint32_t rows)
{
    lm_kernels_linear_args args;
    if (!prepare_product(n, in, 0, rows, weights->columns, &args))
        return false;
    args.format = weights->format, args.w = weights->address, args.n = weights->rows;
    args.residual = args.out = n->state;
    args.epilogue = LM_KERNELS_LINEAR_EPILOGUE_RESIDUAL;
    return launch_linear(n, &args);
}

static bool add_hidden_layer(decoder *n, const layer *l, uint32_t rows)
{
    lm_kernels_linear_args args;
    if (!prepare_product(n, n->state, l->hidden_norm, rows, n->model->width, &args))
        return false;
    args.format = l->up.format, args.w = l->up.address, args.gate = l->gate.address, args.n = l->up.rows;
    args.epilogue = LM_KERNELS_LINEAR_EPILOGUE_SWIGLU;
    args.out = n->hidden;
    return launch_linear(n, &args) && add_product(n, n->hidden, &l->down, rows);
}

/* Returns the elements of one layer in each cache. */
static uint64_t cache_elements(const decoder *n)
{
    return (uint64_t)n->context * n->model->key_heads * n->model->head_size;
}

static bool rotate_and_append(decoder *n, uint32_t index, uint32_t rows)
{
    const model *m = n->model;
    const uint64_t q_row = (uint64_t)m->heads * m->head_size, k_row = (uint64_t)m->key_heads * m->head_size;
    return launch_rope(
        n, &(lm_kernels_rope_args){
               .q = n->q,
               .k = n->k,
               .v = n->v,
               .frequencies = m->frequencies,
               .positions = n->inputs + offsetof(inputs, positions),
               .slots = n->inputs + offsetof(inputs, slots),
               .q_out = n->q,
               .k_cache = n->k_cache + index * cache_elements(n) * F16,
               .v_cache = n->v_cache + index * cache_elements(n) * F16,
               .n = rows,
               .q_heads = m->heads,
               .k_heads = m->key_heads,
               .v_heads = m->key_heads,
               .rotary_dim = m->rotary,
               .magnitude = 1,
               .pages = 1,
               .page_size = n->context,
               .q_row_stride = q_row,
               .q_head_stride = m->head_size,
               .k_row_stride = k_row,
               .k_head_stride = m->head_size,
               .v_row_stride = k_row,
               .v_head_stride = m->head_size,
               .out_row_stride = q_row,
               .out_head_stride = m->head_size,
               .cache_row_stride = k_row,
               .cache_head_stride = m->head_size,
               .head_dim = m->head_size,
               .pairs = LM_KERNELS_ROPE_PAIRS_NEIGHBOURS, /* llama's files store rows in this order */
           });
}

/* The cache has room for `context` tokens; the kernel reads their current number on the device. */
static lm_kernels_attention_args attention_args(const decoder *n, uint32_t index, uint32_t rows)
{
    const model *m = n->model;
    const uint32_t q_row = m->heads * m->head_size, k_row = m->key_heads * m->head_size;
    return (lm_kernels_attention_args){
        .q = n->q,
        .k = n->k_cache + index * cache_elements(n) * F16,
        .v = n->v_cache + index * cache_elements(n) * F16,
        .out = n->attended,
        .batch = 1,
        .q_heads = m->heads,
        .kv_heads = m->key_heads,
        .q_length = rows,
        .k_length = n->context,
        .scale = 1 / sqrt(m->head_size),
        .q_row_stride = q_row,
        .q_head_stride = m->head_size,
        .k_row_stride = k_row,
        .k_head_stride = m->head_size,
        .v_row_stride = k_row,
        .v_head_stride = m->head_size,
        .out_row_stride = q_row,
        .out_head_stride = m->head_size,
        .workspace = n->workspace,
        .tile_counters = n->counters,
        .workspace_size = n->workspace_bytes / sizeof(float),
        .sequences = {.k_lengths = n->inputs + offsetof(inputs, length), .q_rows = rows},
        .head_dim = m->head_size,
        .causal = 1,
        .layout = LM_KERNELS_ATTENTION_LAYOUT_RAGGED,
    };
}

static bool attend(decoder *n, uint32_t index, uint32_t rows)
{
    const lm_kernels_attention_args args = attention_args(n, index, rows);
    return launch_attention(n, &args);
}

bool decoder_layer(decoder *n, uint32_t index, uint32_t count)
{
    const layer *l = &n->model->layers[index];
    return project(n, l, count) && rotate_and_append(n, index, count) && attend(n, index, count) &&
           add_product(n, n->attended, &l->output, count) && add_hidden_layer(n, l, count);
}

/* ---- before and after the layers ----------------------------------------------------------------------------------- */

static bool look_up(decoder *n, uint32_t count)
{
    const matrix *embedding = &n->model->embedding;
    return launch_gguf_rows(n, &(lm_kernels_gguf_rows_args){.packed = embedding->address,
                                                            .index = n->inputs + offsetof(inputs, tokens),
                                                            .out = n->state,
                                                            .tensor_rows = embedding->rows,
                                                            .n = count,
                                                            .k = embedding->columns,
                                                            .format = n->model->embedding_format});
}

/* Sets the inputs for `count` tokens after the last one in the cache. */
static bool set_inputs(decoder *n, const int32_t *tokens, uint32_t count)
{
    inputs in = {.length = n->length + count};
    for (uint32_t i = 0; i < count; i++) {
        in.tokens[i] = tokens[i];
        in.positions[i] = n->length + i;
        in.slots[i] = n->length + i;
    }
    return device_upload(n->device, n->inputs, &in, sizeof in);
}

bool decoder_embed(decoder *n, const int32_t *tokens, uint32_t count)
{
    if (count > CHUNK || count > n->context - n->length)
        return failed("%u tokens more do not fit a context of %u, which has %u", count, n->context,
                      n->length);
    return set_inputs(n, tokens, count) && look_up(n, count);
}

bool decoder_head(decoder *n, uint32_t count)
{
    const model *m = n->model;
    const uint32_t rows = n->options.has_all_logits ? count : 1;
    const uint64_t first = (uint64_t)(count - rows) * m->width * F32;
    lm_kernels_linear_args args = product_of_rows(n, n->state + first, m->output_norm, rows, m->width);
    args.format = m->head.format, args.w = m->head.address, args.n = m->head.rows;
    args.y = LM_KERNELS_LINEAR_Y_F32;
    args.out = n->logits;
    return launch_linear(n, &args);
}

/* Runs all layers, or stops before the next one when `is_stopped` is set. */
static bool run_layers(decoder *n, uint32_t count, const volatile sig_atomic_t *is_stopped)
{
    for (uint32_t i = 0; i < n->model->layer_count && !(is_stopped && *is_stopped); i++)
        if (!decoder_layer(n, i, count))
            return false;
    return true;
}

bool decoder_read(decoder *n, const int32_t *tokens, uint32_t count)
{
    if (!decoder_embed(n, tokens, count) || !run_layers(n, count, n->is_stopped) || !decoder_head(n, count))
        return false;
    n->length += count;
    return true;
}

/* Launches everything for `count` tokens whose inputs are on the device. */
static bool launch_all(decoder *n, uint32_t count)
{
    return look_up(n, count) && run_layers(n, count, NULL) && decoder_head(n, count);
}

bool decoder_step(decoder *n, int32_t token)
{
    if (n->length == n->context)
        return failed("the context of %u tokens is full", n->context);
    if (!set_inputs(n, &token, 1) || !(n->options.has_no_graph ? launch_all(n, 1) : device_replay(n->device)))
        return false;
    n->length++;
    return true;
}

uint64_t decoder_token_bytes(const decoder *n, uint32_t length)
{
    const model *m = n->model;
    const uint64_t of_token = (uint64_t)m->layer_count * 2 * m->key_heads * m->head_size * F16;
    return m->token_bytes + (length + 1) * of_token;
}

/* ---- opening ------------------------------------------------------------------------------------------------------- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool allocate_buffers(decoder *n)
{
    const model *m = n->model;
    const uint64_t q_row = (uint64_t)m->heads * m->head_size, k_row = (uint64_t)m->key_heads * m->head_size;
    const uint64_t cache = m->layer_count * cache_elements(n) * F16,
                   widest = larger(larger(m->width, q_row), m->hidden);
    const struct {
        CUdeviceptr *address;
        uint64_t bytes;
        const char *what;
    } buffers[] = {
        {&n->k_cache, cache, "keys"},
        {&n->v_cache, cache, "values"},
        {&n->state, (uint64_t)CHUNK * m->width * F32, "state"},
        {&n->q, CHUNK * q_row * F16, "queries"},
        {&n->k, CHUNK * k_row * F16, "new keys"},
        {&n->v, CHUNK * k_row * F16, "new values"},
        {&n->attended, CHUNK * q_row * F16, "attention's output"},
        {&n->hidden, (uint64_t)CHUNK * m->hidden * F16, "the hidden layer"},
        {&n->codes, CHUNK * widest, "a product's input as codes"},
        {&n->scales, CHUNK * widest / 32 * F32, "their scales"},
        {&n->logits, (uint64_t)(n->options.has_all_logits ? CHUNK : 1) * m->vocabulary * F32, "logits"},
        {&n->inputs, sizeof(inputs), "inputs"},
    };
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        if (!device_allocate(n->device, buffers[i].bytes, buffers[i].what, buffers[i].address))
            return false;
    return true;
}

static bool allocate_workspace(decoder *n)
{
    const lm_kernels_attention_args args = attention_args(n, 0, CHUNK);
    device *d = n->device;
    uint64_t counter_bytes;
    if (!device_launched(
            d, lm_kernels_attention_workspace_max(&d->loader, &args, &n->workspace_bytes, &counter_bytes)))
        return false;
    if (n->workspace_bytes && !device_allocate(d, n->workspace_bytes, "attention's parts", &n->workspace))
        return false;
    /* kernels leave the counters as they find them: zeros */
    return !counter_bytes || (device_allocate(d, counter_bytes, "counters", &n->counters) &&
                              device_zero(d, n->counters, counter_bytes));
}

/* Loads the kernels for every number of tokens, so that nothing is compiled while the answer is written. */
static bool load_kernels(decoder *n)
{
    bool ok = true;
    n->is_loading = true;
    for (uint32_t count = CHUNK; ok && count > 0; count--) {
        n->launches = 0;
        ok = launch_all(n, count);
    }
    n->launches_per_token = n->launches;
    n->is_loading = false;
    return ok;
}

static bool record_token(decoder *n)
{
    return device_record(n->device) && launch_all(n, 1) && device_recorded(n->device);
}

bool decoder_open(decoder *n, const model *m, device *d, uint32_t context, decoder_options options)
{
    *n = (decoder){.device = d, .model = m, .options = options, .context = context};
    return allocate_buffers(n) && allocate_workspace(n) && load_kernels(n) &&
           (options.has_no_graph || record_token(n));
}
