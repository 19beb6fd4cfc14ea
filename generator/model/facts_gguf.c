/* Reads facts from a GGUF header: from the keys, then from the tensors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "gguf.h"
#include "support/words.h"

enum { MOST_SHOWN = 64, MOST_SIZE = 1 << 20 };

typedef struct reader {
    arena *arena;
    const gguf_file *file;
    model_facts *m;
    diagnostics *d;
} reader;

__attribute__((format(printf, 2, 3))) static bool refuse(const reader *r, const char *format, ...)
{
    va_list arguments;
    text t = text_new(r->arena);
    va_start(arguments, format);
    text_vprintf(&t, format, arguments);
    va_end(arguments);
    diagnose(r->d, (place){.file = gguf_path(r->file)}, "key '%s.%s", r->m->architecture, t.data);
    return false;
}

/* ---- architectures ------------------------------------------------------------------------------------------------ */

/* Source: llama_model_rope_type and the graphs of llama.cpp. */
static const char rotates_neighbours[] =
    "llama llama4 deci baichuan starcoder internlm2 minicpm xverse command-r cohere2 olmo arctic deepseek deepseek2 "
    "chatglm glm4 granite granitemoe smollm3 ernie4_5 arcee";
static const char rotates_halves[] =
    "falcon grok dbrx stablelm bitnet qwen qwen2 qwen2moe qwen3 qwen3moe olmo2 olmoe phi2 phi3 phimoe plamo gemma "
    "gemma2 gemma3 starcoder2 openelm gptneox orion nemotron exaone exaone4 minicpm3 gpt-oss";
static const char rotates_nothing[] = "gpt2 mpt bloom refact jais";
static const char has_gelu_gate[] = "gemma gemma2 gemma3";

static void set_architecture(const reader *r, const char *name)
{
    model_facts *m = r->m;
    m->architecture = name;
    m->gate = words_contain(has_gelu_gate, name) ? "geglu" : "swiglu";
    m->rope_pairs = words_contain(rotates_neighbours, name) ? "neighbours" : "halves";
    m->has_scaled_embedding = words_contain(has_gelu_gate, name);
    if (words_contain(rotates_nothing, name))
        m->rope_pairs = NULL;
    else if (!words_contain(rotates_neighbours, name) && !words_contain(rotates_halves, name))
        model_note(
            r->arena, m,
            "The architecture '%s' is unknown to kiln: a SiLU gate and rotated halves of heads are assumed.",
            name);
}

/* ---- keys --------------------------------------------------------------------------------------------------------- */

typedef enum effect {
    NUMBER,  /* one of the facts, at `place`, from `least` to `most` */
    REAL,    /* like NUMBER, but a float; least 1: above 0 */
    NOTHING, /* changes no kernel; a number from `least` to `most`, unless that is 0 */
    NEEDED,  /* if the value is not `usual`, adds the note, and sets the bool at `place` unless that is 0 */
} effect;

/* Keys that begin with the architecture's name. Any other such key adds a note, since it may change the model. */
static const struct known_key {
    const char *name;
    effect effect;
    size_t place;
    uint32_t least, most;
    const char *usual, *note;
} known_keys[] = {
    {"attention.head_count", NUMBER, offsetof(model_facts, heads), 1, MOST_SIZE, NULL, NULL},
    {"attention.head_count_kv", NUMBER, offsetof(model_facts, kv_heads), 1, MOST_SIZE, NULL, NULL},
    {"attention.key_length", NUMBER, offsetof(model_facts, head_dim), 1, MOST_SIZE, NULL, NULL},
    {"attention.value_length", NUMBER, offsetof(model_facts, head_dim_v), 1, MOST_SIZE, NULL, NULL},
    {"attention.sliding_window", NUMBER, offsetof(model_facts, window), 0, UINT32_MAX, NULL, NULL},
    {"context_length", NUMBER, offsetof(model_facts, context), 1, UINT32_MAX, NULL, NULL},
    {"embedding_length", NUMBER, offsetof(model_facts, width), 1, MOST_SIZE, NULL, NULL},
    {"rope.dimension_count", NUMBER, offsetof(model_facts, rotary_dim), 1, MOST_SIZE, NULL, NULL},
    {"attention.layer_norm_rms_epsilon", REAL, offsetof(model_facts, eps), 1, 0, NULL, NULL},
    {"attention.layer_norm_epsilon", REAL, offsetof(model_facts, eps), 1, 0, NULL, NULL},
    {"attention.scale", REAL, offsetof(model_facts, scale), 1, 0, NULL, NULL},
    {"attn_logit_softcapping", REAL, offsetof(model_facts, softcap), 0, 0, NULL, NULL},
    {"rope.freq_base", REAL, offsetof(model_facts, rope_base), 1, 0, NULL, NULL},
    {"block_count", NOTHING, 0, 1, MODEL_MOST_LAYERS, NULL, NULL},
    {"feed_forward_length", NOTHING, 0, 0, 0, NULL, NULL},
    {"vocab_size", NOTHING, 0, 0, 0, NULL, NULL},
    {"tensor_data_layout", NOTHING, 0, 0, 0, NULL, NULL},
    {"rope.scaling.original_context_length", NOTHING, 0, 0, 0, NULL, NULL},
    {"rope.scaling.finetuned", NOTHING, 0, 0, 0, NULL, NULL},
    {"expert_count", NOTHING, 0, 0, 0, NULL, NULL}, /* its tensors add a note */
    {"expert_used_count", NOTHING, 0, 0, 0, NULL, NULL},
    {"logit_scale", NEEDED, 0, 0, 0, "1", "logits are multiplied by it"},
    {"embedding_scale", NEEDED, 0, 0, 0, "1", "the embedding's rows are multiplied by it"},
    {"residual_scale", NEEDED, offsetof(model_facts, has_scaled_results), 0, 0, "1",
     "the results of attention and of the hidden layer are multiplied by it before the sum with the state"},
    {"use_parallel_residual", NEEDED, 0, 0, 0, "false", "attention and the hidden layer read the same state"},
    {"final_logit_softcapping", NEEDED, 0, 0, 0, "0", "logits become c * tanh(logit / c), which kiln lacks"},
    {"attention.max_alibi_bias", NEEDED, 0, 0, 0, "0", "ask attention for 'score: alibi'"},
    {"attention.clamp_kqv", NEEDED, 0, 0, 0, "0", "Q, K and V are clamped, which kiln lacks"},
    {"attention.causal", NEEDED, 0, 0, 0, "true", "ask attention for 'causal: false'"},
    {"rope.scaling.type", NEEDED, 0, 0, 0, "none",
     "fill rope's frequencies and set its magnitude accordingly"},
    {"rope.scaling.factor", NEEDED, 0, 0, 0, "1",
     "fill rope's frequencies and set its magnitude accordingly"},
    {"rope.scale_linear", NEEDED, 0, 0, 0, "1", "fill rope's frequencies and set its magnitude accordingly"},
};

/* Truncates to MOST_SHOWN bytes; every byte outside printable ASCII becomes '?', so no line end reaches the
 * configuration. */
static const char *printable(const reader *r, const char *s, size_t size)
{
    char *copy = arena_string(r->arena, s, size < MOST_SHOWN ? size : MOST_SHOWN);
    for (char *c = copy; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return copy;
}

static bool take_number(const reader *r, const struct known_key *known, const char *key)
{
    gguf_error error;
    uint32_t value;
    if (!gguf_get_u32(r->file, key, &value, &error)) { /* an array: the value differs between layers */
        model_note(r->arena, r->m, "%s; only the tensors are read.", error.text);
        return true;
    }
    if (value < known->least || value > known->most)
        return refuse(r, "%s': expected a number from %u to %u, found %u", known->name,
                      (unsigned)known->least, (unsigned)known->most, (unsigned)value);
    if (known->effect == NUMBER)
        *(uint64_t *)((char *)r->m + known->place) = value;
    return true;
}

static bool take_real(const reader *r, const struct known_key *known, const char *key)
{
    gguf_error error;
    float value;
    if (!gguf_get_f32(r->file, key, &value, &error)) {
        model_note(r->arena, r->m, "%s.", error.text);
        return true;
    }
    if (!(value >= (known->least > 0 ? 1e-30f : 0) && value <= 1e30f))
        return refuse(r, "%s': expected a number %s, at most 1e30, found %.9g", known->name,
                      known->least > 0 ? "above 0" : "from 0 on", (double)value);
    *(double *)((char *)r->m + known->place) = (double)value;
    return true;
}

static bool read_key(const reader *r, const char *key, const char *name, uint64_t index)
{
    char value[MOST_SHOWN];
    gguf_show_value(r->file, index, value, sizeof value);
    for (size_t i = 0; i < sizeof known_keys / sizeof known_keys[0]; i++) {
        const struct known_key *known = &known_keys[i];
        if (strcmp(known->name, name) != 0)
            continue;
        if (known->effect == REAL)
            return take_real(r, known, key);
        if (known->most > 0)
            return take_number(r, known, key);
        const bool is_needed = known->effect == NEEDED && strcmp(value, known->usual) != 0;
        if (is_needed && known->place > 0)
            *(bool *)((char *)r->m + known->place) = true;
        if (is_needed)
            model_note(r->arena, r->m, "%s is %s: %s.", key, printable(r, value, strlen(value)), known->note);
        return true;
    }
    model_note(r->arena, r->m, "%s is %s: kiln does not know what that changes.", key,
               printable(r, value, strlen(value)));
    return true;
}

/* A note for a file with a part of the tensors. */
static void note_split(const reader *r, const gguf_string *name, uint64_t index)
{
    char value[MOST_SHOWN];
    if (!gguf_string_is(*name, "split.count"))
        return;
    gguf_show_value(r->file, index, value, sizeof value);
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        model_note(r->arena, r->m,
                   "split.count is %s: the file is one of several, and only its own tensors are read.",
                   printable(r, value, strlen(value)));
}

static bool read_keys(const reader *r)
{
    gguf_string architecture;
    gguf_error error;
    if (!gguf_get_string(r->file, "general.architecture", &architecture, &error)) {
        diagnose(r->d, (place){.file = gguf_path(r->file)}, "%s", error.text);
        return false;
    }
    set_architecture(r, printable(r, architecture.bytes, architecture.size));
    bool ok = true;
    const size_t length = strlen(r->m->architecture);
    for (uint64_t i = 0; i < gguf_key_count(r->file); i++) {
        const gguf_string name = gguf_key_at(r->file, i);
        note_split(r, &name, i);
        if (name.size <= length + 1 || name.bytes[length] != '.' ||
            memcmp(name.bytes, r->m->architecture, length) != 0)
            continue;
        const char *key = printable(r, name.bytes, name.size);
        ok = read_key(r, key, strlen(key) > length ? key + length + 1 : "", i) && ok;
    }
    return ok;
}

/* ---- tensors ------------------------------------------------------------------------------------------------------ */

typedef enum tensor_kind {
    MATRIX,
    BIAS,
    NORM,       /* sets the bool at `place` */
    NORM_SHIFT, /* LayerNorm's beta */
    NEEDS,      /* adds the note */
    NO_ATTENTION,
} tensor_kind;

static const char experts[] =
    "Experts (ffn_gate_inp, ffn_*_exps): their products are missing here; kiln has no kernel that chooses experts.";
static const char latent[] =
    "Latent attention (attn_q_a, attn_kv_a_mqa, attn_kv_b): kiln's attention takes it with head_dim 576 and "
    "head_dim_v 512, but its items are not derived here.";
static const char head_norm[] = "A norm of Q and of K (attn_q_norm, attn_k_norm): kiln has no kernel for it.";

/* Tensors of a layer, after "blk.N.". */
static const struct known_tensor {
    const char *name;
    tensor_kind kind;
    size_t place; /* model_role, or offset of a bool */
    const char *note;
} layer_tensors[] = {
    {"attn_qkv.weight", MATRIX, MODEL_QKV, NULL},
    {"attn_q.weight", MATRIX, MODEL_Q, NULL},
    {"attn_k.weight", MATRIX, MODEL_K, NULL},
    {"attn_v.weight", MATRIX, MODEL_V, NULL},
    {"attn_output.weight", MATRIX, MODEL_OUTPUT, NULL},
    {"ffn_gate.weight", MATRIX, MODEL_GATE, NULL},
    {"ffn_up.weight", MATRIX, MODEL_UP, NULL},
    {"ffn_down.weight", MATRIX, MODEL_DOWN, NULL},
    {"attn_qkv.bias", BIAS, MODEL_QKV, NULL},
    {"attn_q.bias", BIAS, MODEL_Q, NULL},
    {"attn_k.bias", BIAS, MODEL_K, NULL},
    {"attn_v.bias", BIAS, MODEL_V, NULL},
    {"attn_output.bias", BIAS, MODEL_OUTPUT, NULL},
    {"ffn_gate.bias", BIAS, MODEL_GATE, NULL},
    {"ffn_up.bias", BIAS, MODEL_UP, NULL},
    {"ffn_down.bias", BIAS, MODEL_DOWN, NULL},
    {"attn_norm.weight", NORM, offsetof(model_facts, has_attention_norm), NULL},
    {"ffn_norm.weight", NORM, offsetof(model_facts, has_ffn_norm), NULL},
    {"post_attention_norm.weight", NORM, offsetof(model_facts, has_attention_post_norm), NULL},
    {"post_ffw_norm.weight", NORM, offsetof(model_facts, has_ffn_post_norm), NULL},
    {"attn_norm.bias", NORM_SHIFT, 0, NULL},
    {"ffn_norm.bias", NORM_SHIFT, 0, NULL},
    {"attn_q_norm.weight", NEEDS, 0, head_norm},
    {"attn_k_norm.weight", NEEDS, 0, head_norm},
    {"attn_sinks.weight", NEEDS, 0, "Sinks (attn_sinks): set attention's argument sinks."},
    {"ffn_gate_inp.weight", NEEDS, 0, experts},
    {"ffn_gate_exps.weight", NEEDS, 0, experts},
    {"ffn_up_exps.weight", NEEDS, 0, experts},
    {"ffn_down_exps.weight", NEEDS, 0, experts},
    {"ffn_gate_shexp.weight", NEEDS, 0, experts},
    {"ffn_up_shexp.weight", NEEDS, 0, experts},
    {"ffn_down_shexp.weight", NEEDS, 0, experts},
    {"attn_q_a.weight", NO_ATTENTION, 0, latent},
    {"attn_q_b.weight", NO_ATTENTION, 0, latent},
    {"attn_kv_a_mqa.weight", NO_ATTENTION, 0, latent},
    {"attn_kv_b.weight", NO_ATTENTION, 0, latent},
    {"attn_k_b.weight", NO_ATTENTION, 0, latent},
    {"attn_v_b.weight", NO_ATTENTION, 0, latent},
};

static const char *lower_case(arena *a, const char *name)
{
    char *copy = arena_string(a, name, strlen(name));
    for (char *c = copy; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    return copy;
}

static void take_matrix(const reader *r, const gguf_tensor *t, model_matrix *matrix)
{
    if (t->dims[2] != 1 || t->dims[3] != 1) {
        model_note(r->arena, r->m, "%s has more than two dimensions: kiln does not know what it is for.",
                   t->name);
        return;
    }
    matrix->format = lower_case(r->arena, t->type->name);
    matrix->rows = t->dims[1];
    matrix->columns = t->dims[0];
}

/* "blk.7.attn_q.weight": 7, and the text after it; null: not a layer's tensor. */
static const char *layer_of(const char *name, uint32_t *layer)
{
    char *end;
    if (strncmp(name, "blk.", 4) != 0 || name[4] < '0' || name[4] > '9')
        return NULL;
    const unsigned long number = strtoul(name + 4, &end, 10);
    *layer = number < MODEL_MOST_LAYERS ? (uint32_t)number : MODEL_MOST_LAYERS;
    return *end == '.' ? end + 1 : NULL;
}

/* Names are printable ASCII. */
static void read_layer_tensor(const reader *r, const gguf_tensor *t, uint32_t layer, const char *name)
{
    for (size_t i = 0; i < sizeof layer_tensors / sizeof layer_tensors[0]; i++) {
        const struct known_tensor *known = &layer_tensors[i];
        if (strcmp(known->name, name) != 0)
            continue;
        switch (known->kind) {
        case MATRIX:
            take_matrix(r, t, &r->m->layers[layer].matrices[known->place]);
            break;
        case BIAS:
            r->m->layers[layer].matrices[known->place].has_bias = true;
            break;
        case NORM:
            *(bool *)((char *)r->m + known->place) = true;
            break;
        case NORM_SHIFT:
            r->m->norm = MODEL_NORM_LAYER;
            break;
        case NO_ATTENTION:
            r->m->has_attention = false; /* fallthrough */
        case NEEDS:
            model_note(r->arena, r->m, "%s", known->note);
            break;
        }
        return;
    }
    model_note(r->arena, r->m, "blk.*.%s: kiln does not know what this tensor is for.", name);
}

static void read_tensor(const reader *r, const gguf_tensor *t)
{
    uint32_t layer;
    const char *name = layer_of(t->name, &layer);
    if (name && layer < MODEL_MOST_LAYERS)
        read_layer_tensor(r, t, layer, name);
    else if (name)
        model_note(r->arena, r->m, "Layers from %d on are left out.", MODEL_MOST_LAYERS);
    else if (strcmp(t->name, "token_embd.weight") == 0)
        take_matrix(r, t, &r->m->embedding);
    else if (strcmp(t->name, "output.weight") == 0)
        take_matrix(r, t, &r->m->head);
    else if (strcmp(t->name, "output.bias") == 0)
        r->m->head.has_bias = true;
    else if (strcmp(t->name, "output_norm.bias") == 0)
        r->m->norm = MODEL_NORM_LAYER;
    else if (strncmp(t->name, "rope_", 5) == 0)
        model_note(r->arena, r->m, "%s: divide rope's frequencies by its elements.", t->name);
    else if (strcmp(t->name, "output_norm.weight") != 0)
        model_note(r->arena, r->m, "%s: kiln does not know what this tensor is for.", t->name);
}

static void read_tensors(const reader *r)
{
    uint32_t layer;
    for (uint64_t i = 0; i < gguf_tensor_count(r->file); i++)
        if (layer_of(gguf_tensor_at(r->file, i)->name, &layer) && layer < MODEL_MOST_LAYERS &&
            layer >= r->m->layer_count)
            r->m->layer_count = layer + 1;
    r->m->layers = arena_alloc(r->arena, (r->m->layer_count + 1) * sizeof *r->m->layers);
    for (uint64_t i = 0; i < gguf_tensor_count(r->file); i++)
        read_tensor(r, gguf_tensor_at(r->file, i));
}

/* ---- heads -------------------------------------------------------------------------------------------------------- */

static uint64_t rows_of(const model_facts *m, model_role role)
{
    return m->layer_count > 0 && m->layers[0].matrices[role].format ? m->layers[0].matrices[role].rows : 0;
}

/* The size of a head from a matrix of `heads` heads; if the keys differ, the matrix is right. */
static bool set_head_dim(const reader *r, uint64_t *head_dim, uint64_t rows, uint64_t heads, const char *what,
                         const char *key)
{
    if (rows == 0 || heads == 0)
        return true;
    if (rows % heads != 0)
        return refuse(r, "%s': expected a divisor of %s %llu, found %llu", key, what,
                      (unsigned long long)rows, (unsigned long long)heads);
    *head_dim = rows / heads;
    return true;
}

/* Fills in sizes of heads from matrices. llama.cpp scales the scores of the largest Gemma 2 and 3 by their width. */
static bool complete(const reader *r)
{
    static const char heads_key[] = "attention.head_count", kv_heads_key[] = "attention.head_count_kv";
    model_facts *m = r->m;
    m->context = m->context ? m->context : MODEL_USUAL_CONTEXT;
    if (m->heads == 0)
        m->has_attention = false;
    if (!m->has_attention)
        return true;
    m->kv_heads = m->kv_heads ? m->kv_heads : m->heads;
    if (!set_head_dim(r, &m->head_dim, m->head_dim || rows_of(m, MODEL_Q) ? 0 : m->width, m->heads,
                      "embedding_length", heads_key) ||
        !set_head_dim(r, &m->head_dim, rows_of(m, MODEL_Q), m->heads, "attn_q's rows,", heads_key))
        return false;
    m->head_dim_v = m->head_dim_v ? m->head_dim_v : m->head_dim;
    if (m->head_dim > 0 && rows_of(m, MODEL_K) % m->head_dim == 0 && rows_of(m, MODEL_K) > 0)
        m->kv_heads = rows_of(m, MODEL_K) / m->head_dim;
    if (!set_head_dim(r, &m->head_dim_v, rows_of(m, MODEL_V), m->kv_heads, "attn_v's rows,", kv_heads_key))
        return false;
    if (m->heads % m->kv_heads != 0)
        return refuse(r, "%s': expected a divisor of the %llu heads of Q, found %llu", kv_heads_key,
                      (unsigned long long)m->heads, (unsigned long long)m->kv_heads);
    if (m->head_dim == 0 || m->head_dim_v == 0)
        return refuse(
            r,
            "embedding_length': expected a width, or tensors, to derive the size of a head from, found neither");
    if (m->rotary_dim > m->head_dim)
        return refuse(r, "rope.dimension_count': expected at most the %llu elements of a head, found %llu",
                      (unsigned long long)m->head_dim, (unsigned long long)m->rotary_dim);
    m->rotary_dim = m->rotary_dim ? m->rotary_dim : m->head_dim;
    if ((strcmp(m->architecture, "gemma2") == 0 && m->layer_count == 46) ||
        (strcmp(m->architecture, "gemma3") == 0 && m->layer_count == 62))
        m->query_scalar = (double)m->width / (double)m->heads;
    return true;
}

bool model_read_gguf(arena *a, const char *path, model_facts *m, diagnostics *d)
{
    gguf_error error;
    gguf_file *file = gguf_open(path, &error);
    *m = (model_facts){.family = "linear", .has_attention = true};
    if (!file) {
        diagnose(d, (place){.file = path}, "%s", error.text);
        return false;
    }
    const reader r = {a, file, m, d};
    bool ok = read_keys(&r);
    if (ok) {
        const char *layer_norm = arena_format(a, "%s.attention.layer_norm_epsilon", m->architecture);
        m->norm = gguf_has(file, layer_norm) ? MODEL_NORM_LAYER : MODEL_NORM_RMS;
        read_tensors(&r);
        if (!m->head.format) { /* the embedding's rows are the head's */
            const bool has_bias = m->head.has_bias;
            m->head = m->embedding;
            m->head.has_bias = has_bias;
        }
        ok = complete(&r);
    }
    gguf_close(file);
    return ok;
}
