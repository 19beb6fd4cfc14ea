#include "layer.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ------------------------------------------------------------------------------------------------------- */

double random_unit(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15; /* SplitMix64 */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return (double)(int64_t)(x ^ x >> 31) * 0x1p-63;
}

uint16_t half_from(double x)
{
    int exponent;
    const double fraction = frexp(fabs(x), &exponent);
    const long normal = (exponent + 14L) * 1024 + lrint(ldexp(fraction, 11)) - 1024;
    const long bits = fraction > 0 && exponent > -14 ? normal : lrint(ldexp(fabs(x), 24));
    return (uint16_t)(bits | (signbit(x) ? 0x8000 : 0));
}

double half_value(uint16_t bits)
{
    const int exponent = bits >> 10 & 31;
    const double size = exponent ? ldexp(1024 + (bits & 1023), exponent - 25) : ldexp(bits & 1023, -24);
    return bits & 0x8000 ? -size : size;
}

/* ---- weights and buffers ------------------------------------------------------------------------------------------- */

/* Makes random Q4_K blocks whose weights have a mean of about 0 and a standard deviation of about 1 / sqrt(columns). */
static bool make_matrix(device *d, matrix *w, uint32_t rows, uint32_t columns, uint64_t *random)
{
    const size_t count = (size_t)rows * (columns / BLOCK);
    const double scale = 1 / (190 * sqrt(columns));
    const uint16_t head[2] = {half_from(scale), half_from(7.5 * scale)}; /* of the scales, of the minima */
    *w = (matrix){.blocks = malloc(count * BLOCK_BYTES), .rows = rows, .columns = columns};
    if (!w->blocks)
        return failed("out of memory");
    for (unsigned char *at = w->blocks; at < w->blocks + count * BLOCK_BYTES; at += BLOCK_BYTES) {
        memcpy(at, head, sizeof head);
        for (size_t i = sizeof head; i < BLOCK_BYTES; i++)
            at[i] = (unsigned char)(128 + 127 * random_unit(random));
    }
    w->address = device_allocate(d, w->blocks, count * BLOCK_BYTES);
    return w->address != 0;
}

static bool make_norm(device *d, float **gamma, CUdeviceptr *address, uint32_t count, uint64_t *random)
{
    *gamma = malloc(count * sizeof **gamma);
    if (!*gamma)
        return failed("out of memory");
    for (uint32_t i = 0; i < count; i++)
        (*gamma)[i] = (float)(1 + random_unit(random) / 4);
    *address = device_allocate(d, *gamma, count * sizeof **gamma);
    return *address != 0;
}

/* Makes random keys or values of the earlier tokens, which the token continues. */
static bool make_cache(device *d, CUdeviceptr *address, uint32_t context, uint64_t *random)
{
    const size_t count = (size_t)context * K_HEADS * HEAD_DIM;
    uint16_t *rows = malloc(count * sizeof *rows);
    if (!rows)
        return failed("out of memory");
    for (size_t i = 0; i < count; i++)
        rows[i] = half_from(random_unit(random));
    *address = device_allocate(d, rows, count * sizeof *rows);
    free(rows);
    return *address != 0;
}

static bool make_layer(const model *m, device *d, layer *l, uint64_t *random)
{
    const uint32_t width = m->size.width, hidden = m->size.hidden, context = m->size.context;
    const uint32_t q_row = m->size.q_heads * HEAD_DIM, k_row = K_HEADS * HEAD_DIM;
    return make_matrix(d, &l->q, q_row, width, random) && make_matrix(d, &l->k, k_row, width, random) &&
           make_matrix(d, &l->v, k_row, width, random) && make_matrix(d, &l->output, width, q_row, random) &&
           make_matrix(d, &l->gate, hidden, width, random) && make_matrix(d, &l->up, hidden, width, random) &&
           make_matrix(d, &l->down, width, hidden, random) &&
           make_norm(d, &l->attention_gamma, &l->attention_norm, width, random) &&
           make_norm(d, &l->hidden_gamma, &l->hidden_norm, width, random) &&
           make_cache(d, &l->k_cache, context, random) && make_cache(d, &l->v_cache, context, random);
}

/* Shuffles the pages of the cache, like a server that has freed and reused pages. */
static bool make_pages(model *m, device *d)
{
    m->page_count = m->size.context / PAGE_ROWS;
    m->pages = malloc(m->page_count * sizeof *m->pages);
    if (!m->pages)
        return failed("out of memory");
    for (uint32_t i = 0; i < m->page_count; i++)
        m->pages[i] = (int32_t)(m->page_count - 1 - i);
    m->page_table = device_allocate(d, m->pages, m->page_count * sizeof *m->pages);
    return m->page_table != 0;
}

/* Llama 3's angles: base 500000. */
static bool make_frequencies(model *m, device *d)
{
    for (int i = 0; i < HEAD_DIM / 2; i++)
        m->frequencies[i] =
            (uint64_t)(pow(500000, -2.0 * i / HEAD_DIM) / (2 * 3.14159265358979323846) * 0x1p64);
    m->frequency_table = device_allocate(d, m->frequencies, sizeof m->frequencies);
    return m->frequency_table != 0;
}

static bool make_buffers(model *m, device *d)
{
    const size_t q_bytes = m->size.q_heads * HEAD_DIM * sizeof(uint16_t);
    const size_t k_bytes = K_HEADS * HEAD_DIM * sizeof(uint16_t), x_bytes = m->size.width * sizeof(float);
    const struct {
        CUdeviceptr *address;
        size_t bytes;
    } buffers[] = {{&m->token, sizeof(token)},
                   {&m->q, q_bytes},
                   {&m->k, k_bytes},
                   {&m->v, k_bytes},
                   {&m->rotated, q_bytes},
                   {&m->attended, q_bytes},
                   {&m->hidden, m->size.hidden * sizeof(uint16_t)},
                   {&m->layers[0].in, x_bytes}};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        if (!(*buffers[i].address = device_allocate(d, NULL, buffers[i].bytes)))
            return false;
    for (int i = 0; i < LAYERS; i++) {
        layer *l = &m->layers[i];
        if (i > 0)
            l->in = m->layers[i - 1].out;
        l->between = device_allocate(d, NULL, x_bytes);
        l->out = device_allocate(d, NULL, x_bytes);
        if (!l->between || !l->out)
            return false;
    }
    return true;
}

int64_t model_slot(const model *m, uint32_t position)
{
    return (int64_t)m->pages[position / PAGE_ROWS] * PAGE_ROWS + position % PAGE_ROWS;
}

/* ---- the launches of a token --------------------------------------------------------------------------------------- */

static orin_linear_args project_args(const model *m, const layer *l)
{
    return (orin_linear_args){.in = l->in,
                              .gamma = l->attention_norm,
                              .w = l->q.address,
                              .w_2 = l->k.address,
                              .w_3 = l->v.address,
                              .out = m->q,
                              .out_2 = m->k,
                              .out_3 = m->v,
                              .m = 1,
                              .n = l->q.rows,
                              .n_2 = l->k.rows,
                              .n_3 = l->v.rows,
                              .k = l->q.columns,
                              .eps = 1e-5F,
                              .norm = ORIN_LINEAR_NORM_RMS,
                              .x = ORIN_LINEAR_X_F32,
                              .y = ORIN_LINEAR_Y_F16,
                              .matrices = 3};
}

static orin_rope_args rotate_args(const model *m, const layer *l)
{
    orin_rope_args args = {.q = m->q,
                           .k = m->k,
                           .v = m->v,
                           .frequencies = m->frequency_table,
                           .positions = m->token + offsetof(token, position),
                           .slots = m->token + offsetof(token, slot),
                           .q_out = m->rotated,
                           .k_cache = l->k_cache,
                           .v_cache = l->v_cache,
                           .n = 1,
                           .q_heads = m->size.q_heads,
                           .k_heads = K_HEADS,
                           .v_heads = K_HEADS,
                           .rotary_dim = HEAD_DIM,
                           .magnitude = 1,
                           .pages = m->page_count,
                           .page_size = PAGE_ROWS};
    orin_rope_set_contiguous(&args);
    return args;
}

static orin_attention_args attend_args(const model *m, const layer *l)
{
    orin_attention_args args = {.q = m->rotated,
                                .k = l->k_cache,
                                .v = l->v_cache,
                                .out = m->attended,
                                .batch = 1,
                                .q_heads = m->size.q_heads,
                                .kv_heads = K_HEADS,
                                .q_length = 1,
                                .k_length = m->size.context,
                                .scale = 1 / sqrt(HEAD_DIM),
                                .workspace = m->workspace,
                                .tile_counters = m->counters,
                                .workspace_size = m->workspace_bytes / sizeof(float),
                                .sequences = {.k_lengths = m->token + offsetof(token, length), .q_rows = 1},
                                .pages = {.table = m->page_table,
                                          .entries = m->page_count,
                                          .count = m->page_count,
                                          .size = PAGE_ROWS},
                                .causal = 1};
    orin_attention_set_contiguous(&args);
    return args;
}

/* out = residual + in * w^T */
static orin_linear_args add_args(CUdeviceptr in, const matrix *w, CUdeviceptr residual, CUdeviceptr out)
{
    return (orin_linear_args){.in = in,
                              .w = w->address,
                              .residual = residual,
                              .out = out,
                              .m = 1,
                              .n = w->rows,
                              .k = w->columns,
                              .norm = ORIN_LINEAR_NORM_NONE,
                              .x = ORIN_LINEAR_X_F16,
                              .y = ORIN_LINEAR_Y_F32,
                              .epilogue = ORIN_LINEAR_EPILOGUE_RESIDUAL,
                              .matrices = 1};
}

static orin_linear_args gate_args(const model *m, const layer *l)
{
    return (orin_linear_args){.in = l->between,
                              .gamma = l->hidden_norm,
                              .w = l->up.address,
                              .gate = l->gate.address,
                              .out = m->hidden,
                              .m = 1,
                              .n = l->up.rows,
                              .k = l->up.columns,
                              .eps = 1e-5F,
                              .norm = ORIN_LINEAR_NORM_RMS,
                              .x = ORIN_LINEAR_X_F32,
                              .y = ORIN_LINEAR_Y_F16,
                              .epilogue = ORIN_LINEAR_EPILOGUE_SWIGLU,
                              .matrices = 1};
}

typedef struct calls {
    orin_linear_args project, add_attended, gate, add_hidden;
    orin_rope_args rotate;
    orin_attention_args attend;
} calls;

static calls layer_calls(const model *m, const layer *l)
{
    return (calls){.project = project_args(m, l),
                   .rotate = rotate_args(m, l),
                   .attend = attend_args(m, l),
                   .add_attended = add_args(m->attended, &l->output, l->in, l->between),
                   .gate = gate_args(m, l),
                   .add_hidden = add_args(m->hidden, &l->down, l->between, l->out)};
}

bool model_preload(const model *m, device *d)
{
    enum { LAUNCHES = 6 };
    const kiln_kernel *kernels[LAUNCHES];
    const calls c = layer_calls(m, &m->layers[0]); /* layers differ only in addresses */
    return device_launched(d, orin_linear_pick(&d->loader, &c.project, &kernels[0])) &&
           device_launched(d, orin_rope_pick(&d->loader, &c.rotate, &kernels[1])) &&
           device_launched(d, orin_attention_pick(&d->loader, &c.attend, &kernels[2])) &&
           device_launched(d, orin_linear_pick(&d->loader, &c.add_attended, &kernels[3])) &&
           device_launched(d, orin_linear_pick(&d->loader, &c.gate, &kernels[4])) &&
           device_launched(d, orin_linear_pick(&d->loader, &c.add_hidden, &kernels[5])) &&
           device_launched(d, kiln_preload(&d->loader, kernels, LAUNCHES));
}

bool model_launch(const model *m, device *d)
{
    for (int i = 0; i < LAYERS; i++) {
        const calls c = layer_calls(m, &m->layers[i]);
        if (!device_launched(d, orin_linear(&d->loader, d->stream, &c.project)) ||
            !device_launched(d, orin_rope(&d->loader, d->stream, &c.rotate)) ||
            !device_launched(d, orin_attention(&d->loader, d->stream, &c.attend)) ||
            !device_launched(d, orin_linear(&d->loader, d->stream, &c.add_attended)) ||
            !device_launched(d, orin_linear(&d->loader, d->stream, &c.gate)) ||
            !device_launched(d, orin_linear(&d->loader, d->stream, &c.add_hidden)))
            return false;
    }
    return true;
}

/* ---- opening and closing ------------------------------------------------------------------------------------------- */

static bool make_workspace(model *m, device *d)
{
    const orin_attention_args args = attend_args(m, &m->layers[0]);
    uint64_t counter_bytes;
    if (!device_launched(d, orin_attention_workspace(&d->loader, &args, &m->workspace_bytes, &counter_bytes)))
        return false;
    m->workspace = device_allocate(d, NULL, m->workspace_bytes);
    m->counters = device_allocate(d, NULL, counter_bytes); /* zeros; each launch resets them to zero */
    return m->workspace && m->counters;
}

bool model_open(model *m, const sizes *size, device *d)
{
    uint64_t random = 1;
    *m = (model){.size = *size};
    for (int i = 0; i < LAYERS; i++)
        if (!make_layer(m, d, &m->layers[i], &random))
            return false;
    return make_pages(m, d) && make_frequencies(m, d) && make_buffers(m, d) && make_workspace(m, d);
}

void model_close(model *m)
{
    for (int i = 0; i < LAYERS; i++) {
        layer *l = &m->layers[i];
        void *const blocks[] = {l->q.blocks,      l->k.blocks,        l->v.blocks,
                                l->output.blocks, l->gate.blocks,     l->up.blocks,
                                l->down.blocks,   l->attention_gamma, l->hidden_gamma};
        for (size_t j = 0; j < sizeof blocks / sizeof blocks[0]; j++)
            free(blocks[j]);
    }
    free(m->pages);
}
