/* JSON is read as YAML 1.2, of which it is a part. */
#include "config_json.h"

#include <stdlib.h>
#include <string.h>

#include "plan/yaml.h"
#include "support/files.h"
#include "support/quote.h"
#include "support/words.h"

enum { MOST_BYTES = 1 << 20, MOST_DIGITS = 9 };

typedef struct reader {
    arena *arena;
    const yaml_node *root; /* or its text_config, of a model that sees and hears too */
    model_facts *m;
    diagnostics *d;
} reader;

/* ---- values ------------------------------------------------------------------------------------------------------- */

static bool is_true(const yaml_node *map, const char *key)
{
    const yaml_node *node = yaml_member(map, key);
    return node && node->kind == YAML_SCALAR && !node->quoted && strcmp(node->text, "true") == 0;
}

/* Null where there is none, or it is null. */
static const yaml_node *member(const reader *r, const char *key)
{
    const yaml_node *node = yaml_member(r->root, key);
    return node && !yaml_is_null(node) ? node : NULL;
}

static const char *word_of(const yaml_node *map, const char *key)
{
    const yaml_node *node = yaml_member(map, key);
    return node && node->kind == YAML_SCALAR ? node->text : "";
}

static bool refuse(const reader *r, const yaml_node *node, const char *key, const char *expected)
{
    diagnose(r->d, node->at, "expected %s for '%s', found %s", expected, key,
             node->kind == YAML_SCALAR ? arena_format(r->arena, "'%s'", quote_text(r->arena, node->text))
                                       : "a list or a mapping");
    return false;
}

/* A number from 1 on; a missing one is 0, or a diagnostic. */
static bool read_number(const reader *r, const char *key, bool is_needed, uint64_t *value)
{
    const yaml_node *node = member(r, key);
    *value = 0;
    if (!node && is_needed)
        diagnose(r->d, r->root->at, "expected '%s: NUMBER', found no such key", key);
    if (!node)
        return !is_needed;
    const size_t digits = node->kind == YAML_SCALAR && !node->quoted ? strspn(node->text, "0123456789") : 0;
    if (digits == 0 || digits > MOST_DIGITS || node->text[digits])
        return refuse(r, node, key, "a whole number of at most 9 digits");
    *value = strtoull(node->text, NULL, 10);
    return *value > 0 || !is_needed || refuse(r, node, key, "a number from 1 on");
}

static bool read_real(const reader *r, const char *key, double *value)
{
    const yaml_node *node = member(r, key);
    char *end;
    *value = 0;
    if (!node)
        return true;
    if (node->kind != YAML_SCALAR || node->quoted || node->text[strspn(node->text, "+-.0123456789eE")])
        return refuse(r, node, key, "a number");
    *value = strtod(node->text, &end);
    if (*end || end == node->text || !(*value >= 0 && *value <= 1e30))
        return refuse(r, node, key, "a number from 0 to 1e30");
    return true;
}

/* ---- formats ------------------------------------------------------------------------------------------------------ */

static const char own_formats[] = "nf4 nvfp4";

const char *model_formats(arena *a, family_list families)
{
    size_t index;
    const kiln_family *linear = family_find(families, "linear");
    if (!linear || !family_find_param(linear, "format", &index))
        return own_formats;
    return arena_format(a, "%s %s", linear->params[index].words, own_formats);
}

/* What quantization_config names: a format; or null, with a note or a diagnostic. */
static const char *format_of(const reader *r, family_list families)
{
    const yaml_node *q = member(r, "quantization_config");
    const char *method = word_of(q, "quant_method");
    if (!q) {
        diagnose(r->d, r->root->at,
                 "expected a quantization_config, found none: name the format of the weights, --format %s",
                 list_text(r->arena, model_formats(r->arena, families)));
        return NULL;
    }
    if (strcmp(word_of(q, "bnb_4bit_quant_type"), "nf4") == 0)
        return "nf4";
    if (strcmp(word_of(q, "quant_algo"), "NVFP4") == 0 ||
        strcmp(word_of(q, "format"), "nvfp4-pack-quantized") == 0)
        return "nvfp4";
    if (strcmp(method, "mxfp4") == 0)
        return "mxfp4";
    model_note(r->arena, r->m,
               "Products: kiln has none with weights of the method '%s'. It quantises to INT4 and back, and "
               "multiplies by %s.",
               quote_text(r->arena, method), list_text(r->arena, model_formats(r->arena, families)));
    return NULL;
}

static void set_format(const reader *r, family_list families, const char *asked, const char **format)
{
    *format = asked ? asked : format_of(r, families);
    r->m->family = !*format                        ? ""
                   : strcmp(*format, "nf4") == 0   ? "nf4_gemm"
                   : strcmp(*format, "nvfp4") == 0 ? "nvfp4_gemv"
                                                   : "linear";
    r->m->has_nested_scales = is_true(member(r, "quantization_config"), "bnb_4bit_use_double_quant");
    if (*format && strcmp(*format, "mxfp4") == 0)
        model_note(
            r->arena, r->m,
            "mxfp4: kiln reads GGUF's blocks, a scale and 16 bytes of codes; other files have scales apart.");
    if (words_contain(own_formats, *format ? *format : ""))
        model_note(r->arena, r->m,
                   "The head, norms and the gate's activation: kiln has them for GGUF's formats only.");
    if (strcmp(r->m->family, "nvfp4_gemv") == 0)
        model_note(r->arena, r->m, "Prompts: kiln multiplies NVFP4 weights by one row at a time.");
}

/* ---- the model ---------------------------------------------------------------------------------------------------- */

/* Models with what their config.json does not say; source: the model classes of the package transformers. */
static const char has_qkv_bias[] = "qwen2 qwen2_moe";
static const char has_head_norms[] = "qwen3 qwen3_moe olmo2 gemma3 gemma3_text";
static const char has_post_norms[] = "gemma2 gemma3 gemma3_text";
static const char has_joined_matrices[] = "phi3"; /* Q, K and V; gate and up */
static const char rotates_neighbours[] = "gptj cohere cohere2 glm glm4";
static const char has_layer_norm[] = "gpt2 gptj gpt_neox phi cohere cohere2 starcoder2 falcon bloom mpt opt";

static void set_matrices(const reader *r, const char *format, const char *type, uint64_t hidden,
                         uint64_t vocabulary)
{
    model_facts *m = r->m;
    const uint64_t q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
    const bool bias = is_true(r->root, "attention_bias") || words_contain(has_qkv_bias, type),
               mlp_bias = is_true(r->root, "mlp_bias");
    const bool is_joined = words_contain(has_joined_matrices, type);
    model_layer layer = {0};
    model_matrix *w = layer.matrices;
    if (is_joined) {
        w[MODEL_QKV] = (model_matrix){format, q + 2 * kv, m->width, bias};
        w[MODEL_UP] = (model_matrix){format, 2 * hidden, m->width, mlp_bias};
    } else {
        w[MODEL_Q] = (model_matrix){format, q, m->width, bias};
        w[MODEL_K] = w[MODEL_V] = (model_matrix){format, kv, m->width, bias};
        w[MODEL_GATE] = w[MODEL_UP] = (model_matrix){format, hidden, m->width, mlp_bias};
    }
    if (member(r, "num_local_experts") || member(r, "num_experts") || member(r, "n_routed_experts"))
        w[MODEL_GATE] = w[MODEL_UP] = (model_matrix){0};
    else
        w[MODEL_DOWN] = (model_matrix){format, m->width, hidden, mlp_bias};
    w[MODEL_OUTPUT] = (model_matrix){format, m->width, q, is_true(r->root, "attention_bias")};
    for (uint32_t i = 0; i < m->layer_count; i++)
        m->layers[i] = layer;
    if (strcmp(m->family, "linear") == 0)
        m->embedding = m->head = (model_matrix){format, vocabulary, m->width, false};
}

static bool read_sizes(const reader *r, uint64_t *hidden, uint64_t *vocabulary)
{
    model_facts *m = r->m;
    uint64_t layers = 0;
    double rotary = 0;
    const struct {
        const char *key;
        bool is_needed;
        uint64_t *value;
    } numbers[] = {
        {"hidden_size", true, &m->width},         {"num_hidden_layers", true, &layers},
        {"num_attention_heads", true, &m->heads}, {"intermediate_size", true, hidden},
        {"vocab_size", true, vocabulary},         {"num_key_value_heads", false, &m->kv_heads},
        {"head_dim", false, &m->head_dim},        {"max_position_embeddings", false, &m->context},
        {"sliding_window", false, &m->window},
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        ok = read_number(r, numbers[i].key, numbers[i].is_needed, numbers[i].value) && ok;
    ok = read_real(r, "rms_norm_eps", &m->eps) && ok;
    ok = read_real(r, "rope_theta", &m->rope_base) && ok;
    ok = read_real(r, "attn_logit_softcapping", &m->softcap) && ok;
    ok = read_real(r, "partial_rotary_factor", &rotary) && ok;
    if (ok && layers > MODEL_MOST_LAYERS)
        ok = refuse(r, member(r, "num_hidden_layers"), "num_hidden_layers", "at most 1024");
    if (!ok)
        return false;
    m->layer_count = (uint32_t)layers;
    m->kv_heads = m->kv_heads ? m->kv_heads : m->heads;
    m->head_dim = m->head_dim ? m->head_dim : m->width / m->heads;
    m->rotary_dim = rotary > 0 && rotary <= 1 ? (uint64_t)(rotary * (double)m->head_dim) : m->head_dim;
    if (yaml_member(r->root, "use_sliding_window") && !is_true(r->root, "use_sliding_window"))
        m->window = 0;
    return true;
}

static void note_needs(const reader *r, const char *type)
{
    static const struct {
        const char *key, *note;
    } needs[] = {
        {"num_local_experts", "experts: kiln has no product over chosen experts"},
        {"num_experts", "experts: kiln has no product over chosen experts"},
        {"n_routed_experts", "experts: kiln has no product over chosen experts"},
        {"kv_lora_rank", "latent attention (MLA), whose products are not derived here"},
        {"final_logit_softcapping", "logits become c * tanh(logit / c), which kiln lacks"},
        {"rope_scaling", "fill rope's frequencies accordingly"},
    };
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        if (member(r, needs[i].key))
            model_note(r->arena, r->m, "%s: %s.", needs[i].key, needs[i].note);
    if (words_contain(has_head_norms, type))
        model_note(r->arena, r->m, "A norm of each head of Q and K: kiln has no kernel for it.");
    if (member(r, "kv_lora_rank"))
        r->m->has_attention = false;
}

/* hidden_act: the gate's activation. */
static void set_gate(const reader *r)
{
    const char *name = word_of(r->root, member(r, "hidden_act") ? "hidden_act" : "hidden_activation");
    if (words_contain("silu swish", name))
        r->m->gate = "swiglu";
    else if (words_contain("gelu_pytorch_tanh gelu_new gelu_fast", name))
        r->m->gate = "geglu";
    else if (*name)
        model_note(r->arena, r->m, "hidden_act is %s: kiln's gates have SiLU, or GELU's tanh form.",
                   quote_text(r->arena, name));
}

static bool read_model(const reader *r, family_list families, const char *asked)
{
    model_facts *m = r->m;
    const char *type = quote_text(r->arena, word_of(r->root, "model_type")), *format;
    uint64_t hidden, vocabulary;
    const int before = r->d->count;
    model_set_architecture(r->arena, m, *type ? type : "unknown");
    if (m->rope_pairs)
        m->rope_pairs = words_contain(rotates_neighbours, type) ? "neighbours" : "halves";
    m->norm = words_contain(has_layer_norm, type) ? MODEL_NORM_LAYER : MODEL_NORM_RMS;
    m->has_attention_norm = m->has_ffn_norm = true;
    m->has_attention_post_norm = m->has_ffn_post_norm = words_contain(has_post_norms, type);
    if (!read_sizes(r, &hidden, &vocabulary))
        return false;
    set_format(r, families, asked, &format);
    if (r->d->count > before)
        return false;
    m->layers = arena_alloc(r->arena, m->layer_count * sizeof *m->layers);
    if (format)
        set_matrices(r, format, type, hidden, vocabulary);
    set_gate(r);
    note_needs(r, type);
    model_complete(r->arena, m);
    return true;
}

bool model_read_json(arena *a, family_list families, const char *path, const char *format, model_facts *m,
                     diagnostics *d)
{
    const char *why;
    text file = text_new(a);
    const int before = d->count;
    *m = (model_facts){.has_attention = true};
    if (!file_read(a, path, MOST_BYTES, &file, &why)) {
        diagnose(d, (place){.file = path}, "cannot read: %s", why);
        return false;
    }
    const yaml_node *root = yaml_parse(a, path, file.data, file.length, d);
    if (!root && d->count == before)
        diagnose(d, (place){.file = path}, "expected an object with the model's sizes, found an empty file");
    if (!root || d->count > before)
        return false;
    if (root->kind != YAML_MAP) {
        diagnose(d, root->at, "expected an object with the model's sizes, found no object");
        return false;
    }
    const yaml_node *text_config = yaml_member(root, "text_config");
    const reader r = {a, text_config && text_config->kind == YAML_MAP ? text_config : root, m, d};
    return read_model(&r, families, format);
}
