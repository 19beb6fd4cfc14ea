/* Reads a Hugging Face config.json. JSON is a subset of YAML 1.2, so the YAML reader parses it. */
#include "config_json.h"

#include <stdlib.h>
#include <string.h>

#include "model/gguf.h"
#include "plan/yaml.h"
#include "support/files.h"
#include "support/quote.h"
#include "support/words.h"

enum { MOST_BYTES = 1 << 20, MOST_DIGITS = 9, MOST_LISTED = 6 };

/* What the model classes of the package transformers compute in addition to config.json. */
enum {
    IS_PERMUTED = 1 << 0, /* llama.cpp's GGUF files have the rows of Q and K permuted */
    IS_NEIGHBOURS = 1 << 1,
    IS_PARALLEL = 1 << 2, /* attention and the hidden layer read the same norm's output */
    HAS_QKV_BIAS = 1 << 3,
    HAS_ALL_BIASES = 1 << 4,
    HAS_NO_OUTPUT_BIAS = 1 << 5,
    HAS_HEAD_NORMS = 1 << 6,
    HAS_WHOLE_NORMS = 1 << 7, /* norms of Q and K are over all heads */
    HAS_POST_NORMS = 1 << 8,
    HAS_NO_PRE_NORMS = 1 << 9,
    HAS_LAYER_NORM = 1 << 10,
    HAS_JOINED_QKV = 1 << 11,
    HAS_JOINED_GATE = 1 << 12,
    HAS_NO_GATE = 1 << 13,
    HAS_GELU = 1 << 14, /* the tanh form, regardless of hidden_act */
    HAS_SCALED_EMBEDDING = 1 << 15,
    HAS_SHIFTED_NORMS = 1 << 16, /* a norm's weight is 1 + the file's value */
    HAS_SINKS = 1 << 17,
};

enum { IS_GEMMA = HAS_GELU | HAS_SCALED_EMBEDDING | HAS_SHIFTED_NORMS };

typedef struct model_type {
    const char *name;
    unsigned traits;
    uint32_t head_dim; /* if the file has none; 0: hidden_size / num_attention_heads */
} model_type;

static const model_type types[] = {
    {"llama", IS_PERMUTED, 0},
    {"mistral", IS_PERMUTED, 0},
    {"mixtral", IS_PERMUTED, 0},
    {"granite", IS_PERMUTED, 0},
    {"granitemoe", IS_PERMUTED, 0},
    {"smollm3", IS_PERMUTED, 0},
    {"qwen2", HAS_QKV_BIAS, 0},
    {"qwen2_moe", HAS_QKV_BIAS, 0},
    {"qwen3", HAS_HEAD_NORMS, 128},
    {"qwen3_moe", HAS_HEAD_NORMS, 0},
    {"phi", HAS_LAYER_NORM | HAS_ALL_BIASES | HAS_NO_GATE | IS_PARALLEL, 0},
    {"phi3", HAS_JOINED_QKV | HAS_JOINED_GATE, 0},
    {"gemma", IS_GEMMA, 256},
    {"gemma2", IS_GEMMA | HAS_POST_NORMS, 256},
    {"gemma3", IS_GEMMA | HAS_POST_NORMS | HAS_HEAD_NORMS, 256},
    {"gemma3_text", IS_GEMMA | HAS_POST_NORMS | HAS_HEAD_NORMS, 256},
    {"gpt_oss", HAS_SINKS, 64},
    {"olmo2", HAS_POST_NORMS | HAS_NO_PRE_NORMS | HAS_WHOLE_NORMS, 0},
    {"olmo3", HAS_POST_NORMS | HAS_NO_PRE_NORMS | HAS_WHOLE_NORMS, 0},
    {"glm", IS_NEIGHBOURS | HAS_JOINED_GATE | HAS_NO_OUTPUT_BIAS, 128},
    {"glm4", IS_NEIGHBOURS | HAS_JOINED_GATE | HAS_NO_OUTPUT_BIAS | HAS_POST_NORMS, 128},
    {"cohere", IS_NEIGHBOURS | HAS_LAYER_NORM | IS_PARALLEL, 0},
    {"cohere2", IS_NEIGHBOURS | HAS_LAYER_NORM | IS_PARALLEL, 0},
    {"stablelm", HAS_LAYER_NORM, 0},
    {"starcoder2", HAS_LAYER_NORM | HAS_NO_GATE, 0},
    {"minicpm", 0, 0},
    {"deepseek_v2", 0, 0},
    {"deepseek_v3", 0, 0},
};

typedef struct reader {
    arena *arena;
    const yaml_node *root; /* or its text_config, in a multimodal model */
    const yaml_node *top;
    model_facts *m;
    diagnostics *d;
    model_type type;
    const yaml_node **read; /* members of root that were read, or that repeat others */
    size_t read_count, read_capacity;
} reader;

/* ---- values ------------------------------------------------------------------------------------------------------- */

/* Null if there is none, or it is null. */
static const yaml_node *member(reader *r, const char *key)
{
    const yaml_node *node = yaml_member(r->root, key);
    if (!node)
        node = yaml_member(r->top, key);
    if (!node)
        return NULL;
    *(const yaml_node **)arena_push(r->arena, (void **)&r->read, &r->read_count, &r->read_capacity,
                                    sizeof *r->read) = node;
    return yaml_is_null(node) ? NULL : node;
}

static bool is_word(const yaml_node *node, const char *word)
{
    return node && node->kind == YAML_SCALAR && !node->quoted && strcmp(node->text, word) == 0;
}

static bool is_true(reader *r, const char *key)
{
    return is_word(member(r, key), "true");
}

static const char *word_of(const yaml_node *map, const char *key)
{
    const yaml_node *node = yaml_member(map, key);
    return node && node->kind == YAML_SCALAR && !yaml_is_null(node) ? node->text : "";
}

/* "12", "the text '12'", "null", "a list", "an object" */
static const char *found_text(arena *a, const yaml_node *node)
{
    if (node->kind != YAML_SCALAR)
        return node->kind == YAML_LIST ? "a list" : "an object";
    if (yaml_is_null(node))
        return "null";
    return arena_format(a, node->quoted ? "the text '%s'" : "'%s'", quote_text(a, node->text));
}

static bool refuse(const reader *r, const yaml_node *node, const char *key, const char *expected)
{
    diagnose(r->d, node->at, "expected %s for '%s', found %s", expected, key, found_text(r->arena, node));
    return false;
}

typedef enum presence { NEEDED, OPTIONAL, OPTIONAL_OR_ZERO } presence;

/* A missing number is 0, or a diagnostic. */
static bool read_number(reader *r, const char *key, presence is_there, uint64_t *value)
{
    const yaml_node *node = member(r, key);
    *value = 0;
    if (!node && is_there == NEEDED) {
        node = yaml_member(r->root, key);
        if (node)
            return refuse(r, node, key, "a number");
        diagnose(r->d, r->root->at, "expected '%s: NUMBER', found no such key", key);
    }
    if (!node)
        return is_there != NEEDED;
    const size_t digits = node->kind == YAML_SCALAR && !node->quoted ? strspn(node->text, "0123456789") : 0;
    if (digits == 0 || digits > MOST_DIGITS || node->text[digits])
        return refuse(r, node, key, "a whole number of at most 9 digits");
    *value = strtoull(node->text, NULL, 10);
    return *value > 0 || is_there == OPTIONAL_OR_ZERO || refuse(r, node, key, "a number from 1 on");
}

static bool take_real(const reader *r, const yaml_node *node, const char *key, bool may_be_zero,
                      double *value)
{
    char *end;
    if (!node)
        return true;
    if (node->kind != YAML_SCALAR || node->quoted || node->text[strspn(node->text, "+-.0123456789eE")])
        return refuse(r, node, key, "a number");
    *value = strtod(node->text, &end);
    if (*end || end == node->text || !(*value >= (may_be_zero ? 0 : 1e-30) && *value <= 1e30))
        return refuse(r, node, key,
                      may_be_zero ? "a number from 0 to 1e30" : "a number above 0, at most 1e30");
    return true;
}

static const char *value_text(arena *a, const yaml_node *node)
{
    size_t count = 0;
    for (const yaml_node *item = node->first; item; item = item->next)
        count++;
    if (node->kind == YAML_SCALAR)
        return quote_text(a, node->text);
    return node->kind == YAML_MAP ? "an object" : arena_format(a, "a list of %zu", count);
}

/* ---- formats ------------------------------------------------------------------------------------------------------ */

/* Formats of products in families other than linear. */
static const char own_formats[] = "nf4 nvfp4";

/* GGUF's formats in linear, and own_formats. */
const char *model_formats(arena *a, family_list families)
{
    text formats = text_new(a);
    size_t index, length;
    const kiln_family *linear = family_find(families, "linear");
    const char *words =
        linear && family_find_param(linear, "format", &index) ? linear->params[index].words : "";
    for (const char *word; (word = words_next(&words, &length)) != NULL;) {
        const char *name = arena_string(a, word, length);
        if (gguf_find_type(name) != NULL)
            text_printf(&formats, "%s ", name);
    }
    text_add(&formats, own_formats);
    return formats.data;
}

/* "bitsandbytes fp4", "compressed-tensors pack-quantized, int of 4 bits", "gptq of 4 bits" */
static const char *method_text(const reader *r, const yaml_node *q)
{
    const yaml_node *groups = yaml_member(q, "config_groups");
    const yaml_node *weights =
        groups && groups->kind == YAML_MAP ? yaml_member(groups->first, "weights") : NULL;
    const bool is_8bit = is_word(yaml_member(q, "load_in_8bit"), "true");
    const char *fp4 = is_word(yaml_member(q, "load_in_4bit"), "true") ? "fp4" : "";
    const char *bits = *word_of(weights, "num_bits") ? word_of(weights, "num_bits") : word_of(q, "bits");
    const char *words[] = {
        word_of(q, "quant_method"),
        word_of(q, "quant_algo"),
        word_of(q, "format"),
        is_8bit                              ? "LLM.int8()"
        : *word_of(q, "bnb_4bit_quant_type") ? word_of(q, "bnb_4bit_quant_type")
                                             : fp4,
        word_of(weights, "type"),
    };
    text t = text_new(r->arena);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (*words[i])
            text_printf(&t, "%s%s", t.length > 0 ? " " : "", quote_text(r->arena, words[i]));
    if (*bits)
        text_printf(&t, " of %s bits", quote_text(r->arena, bits));
    return t.data;
}

/* Whether linear's int4 takes the weights after they are rearranged once: not if elements are reordered, or a row is one group. */
static bool is_int4(const yaml_node *q)
{
    return words_contain("gptq awq", word_of(q, "quant_method")) && is_word(yaml_member(q, "bits"), "4") &&
           words_contain("32 64 128 256", word_of(q, "group_size")) &&
           !is_word(yaml_member(q, "desc_act"), "true");
}

/* quantization_config's format; or null, with a note or a diagnostic. */
static const char *format_of(reader *r, family_list families, const yaml_node *q)
{
    const char *formats = list_text(r->arena, model_formats(r->arena, families));
    const yaml_node *in_4bit = yaml_member(q, "load_in_4bit"), *in_8bit = yaml_member(q, "load_in_8bit");
    const bool is_bitsandbytes =
        strcmp(word_of(q, "quant_method"), "bitsandbytes") == 0 || in_4bit || in_8bit;
    const bool is_8bit = is_word(in_8bit, "true"), is_4bit = is_word(in_4bit, "true");
    const bool is_nothing = is_bitsandbytes && !is_8bit && in_4bit && !is_4bit;
    if (!q || is_nothing) {
        diagnose(r->d, q ? q->at : r->root->at,
                 "expected a quantization_config%s, found %s: name the format of the weights, --format %s",
                 q ? " that quantises" : "", q ? "load_in_4bit and load_in_8bit false" : "none", formats);
        return NULL;
    }
    if (!is_bitsandbytes && !*word_of(q, "quant_method") && !*word_of(q, "quant_algo") &&
        !*word_of(q, "format")) {
        diagnose(r->d, q->at, "expected 'quant_method: METHOD' in quantization_config, found no such key");
        return NULL;
    }
    if (!is_8bit && strcmp(word_of(q, "bnb_4bit_quant_type"), "nf4") == 0)
        return "nf4";
    if (strcmp(word_of(q, "quant_algo"), "NVFP4") == 0 ||
        strcmp(word_of(q, "format"), "nvfp4-pack-quantized") == 0)
        return "nvfp4";
    if (strcmp(word_of(q, "quant_method"), "mxfp4") == 0)
        return "mxfp4";
    if (is_int4(q)) {
        model_note(r->arena, r->m,
                   "Products: rearrange the weights for linear with 'format: int4' and 'group: %s' "
                   "(generator/kernels/gguf.md); they have no items here.",
                   word_of(q, "group_size"));
        return NULL;
    }
    model_note(r->arena, r->m,
               "Products: kiln has none with weights of %s; the weights have to be converted to one of: %s.",
               method_text(r, q), formats);
    return NULL;
}

static void set_format(reader *r, family_list families, const yaml_node *q, const char *asked,
                       const char **format)
{
    arena *a = r->arena;
    *format = asked ? asked : format_of(r, families, q);
    r->m->family = !*format                        ? ""
                   : strcmp(*format, "nf4") == 0   ? "nf4_gemm"
                   : strcmp(*format, "nvfp4") == 0 ? "fp4_gemm"
                                                   : "linear";
    r->m->has_nested_scales = is_word(yaml_member(q, "bnb_4bit_use_double_quant"), "true");
    if (*format && strcmp(*format, "mxfp4") == 0)
        model_note(
            a, r->m,
            "MXFP4: repack the weights into GGUF's blocks (a scale byte, then 16 bytes of codes); Hugging "
            "Face's files store scales separately, as fp4_gemm with 'format: mxfp4' reads them.");
    if (words_contain(own_formats, *format ? *format : ""))
        model_note(
            a, r->m,
            "The head and norms: no items here. kiln has no product with weights of 16 bits, and a norm only in "
            "linear, rmsnorm_q4k_gemv and q8_quantize.");
}

/* ---- modules that are not quantised ------------------------------------------------------------------------------- */

enum { HEAD = 1u << MODEL_ROLES, EMBEDDING = HEAD << 1, NO_ROLE = EMBEDDING << 1 };
enum {
    ATTENTION_ROLES = 1 << MODEL_QKV | 1 << MODEL_Q | 1 << MODEL_K | 1 << MODEL_V | 1 << MODEL_OUTPUT,
    HIDDEN_ROLES = 1 << MODEL_GATE | 1 << MODEL_UP | 1 << MODEL_DOWN,
};

/* The first one that occurs in a module's name. NO_ROLE: matrices that get no item. */
static const struct module {
    const char *part;
    unsigned roles;
} modules[] = {
    {"vis", NO_ROLE},
    {"audio", NO_ROLE},
    {"multi_modal", NO_ROLE},
    {"lm_head", HEAD},
    {"embed_tokens", EMBEDDING},
    {"gate_up_proj", 1 << MODEL_UP | 1 << MODEL_GATE},
    {"gate_proj", 1 << MODEL_GATE},
    {"up_proj", 1 << MODEL_UP},
    {"down_proj", 1 << MODEL_DOWN},
    {"router", NO_ROLE},
    {"gate", NO_ROLE},
    {"norm", NO_ROLE},
    {"qkv_proj", 1 << MODEL_QKV | 1 << MODEL_Q | 1 << MODEL_K | 1 << MODEL_V},
    {"q_proj", 1 << MODEL_Q},
    {"k_proj", 1 << MODEL_K},
    {"v_proj", 1 << MODEL_V},
    {"o_proj", 1 << MODEL_OUTPUT},
    {"attn", ATTENTION_ROLES},
    {"expert", NO_ROLE},
    {"mlp", HIDDEN_ROLES},
};

/* "re:.*layers\.3\.self_attn.*": the roles of attention in layer 3; 0: unknown. */
static unsigned roles_of(const reader *r, const char *name, uint32_t *from, uint32_t *to)
{
    static const char before_number[] = "layers.";
    text plain = text_new(r->arena);
    for (; *name; name++)
        if (*name != '\\')
            text_add_char(&plain, *name);
    const char *number = strstr(plain.length > 0 ? plain.data : "", before_number), *rest = "?";
    *from = 0;
    *to = r->m->layer_count;
    if (number) {
        char *end;
        number += strlen(before_number);
        const unsigned long layer = strtoul(number, &end, 10);
        if (*number >= '0' && *number <= '9') {
            *from = layer < *to ? (uint32_t)layer : *to;
            *to = *from < *to ? *from + 1 : *to;
            rest = end + strspn(end, ".*");
        } else if (*number != '*' && *number != '.') {
            return 0;
        }
    }
    for (size_t i = 0; i < sizeof modules / sizeof modules[0] && plain.length > 0; i++)
        if (strstr(plain.data, modules[i].part))
            return modules[i].roles;
    return *rest ? 0 : ATTENTION_ROLES | HIDDEN_ROLES; /* a whole layer */
}

static void drop_module(reader *r, const char *key, const char *name)
{
    uint32_t from, to;
    const unsigned roles = roles_of(r, name, &from, &to);
    if (roles == 0)
        model_note(r->arena, r->m,
                   "quantization_config.%s has '%s': kiln does not know which matrices these are.", key,
                   quote_text(r->arena, name));
    for (uint32_t layer = from; layer < to; layer++)
        for (unsigned role = 0; role < MODEL_ROLES; role++)
            if (roles & 1u << role)
                r->m->layers[layer].matrices[role].format = NULL;
    if (roles & HEAD)
        r->m->head.format = NULL;
    if (roles & EMBEDDING)
        r->m->embedding.format = NULL;
}

static void drop_modules(reader *r, const yaml_node *q, const char *format)
{
    static const char *const keys[] = {"modules_to_not_convert", "llm_int8_skip_modules", "ignore",
                                       "exclude_modules", "ignored_layers"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const yaml_node *list = yaml_member(q, keys[i]);
        text names = text_new(r->arena);
        size_t count = 0;
        for (const yaml_node *n = list && list->kind == YAML_LIST ? list->first : NULL; n; n = n->next) {
            if (n->kind != YAML_SCALAR || yaml_is_null(n))
                continue;
            if (count < MOST_LISTED)
                text_printf(&names, "%s%s", count > 0 ? ", " : "", quote_text(r->arena, n->text));
            count++;
            drop_module(r, keys[i], n->text);
        }
        if (count > 0)
            model_note(
                r->arena, r->m,
                "quantization_config.%s is %s%s: these matrices are not in %s, and have no items here.",
                keys[i], names.data, count > MOST_LISTED ? ", ..." : "", format);
    }
}

/* ---- sizes -------------------------------------------------------------------------------------------------------- */

typedef struct sizes {
    uint64_t layers, hidden, vocabulary;
    uint64_t experts, dense_layers, shared_experts, expert_hidden;
    uint64_t q_rank, kv_rank, head_nope, head_rope, head_v; /* latent attention */
    double rotary;
} sizes;

static bool divides(const reader *r, uint64_t whole, uint64_t part, const char *what, const char *key)
{
    if (whole % part == 0)
        return true;
    const yaml_node *node = yaml_member(r->root, key);
    diagnose(r->d, node ? node->at : r->root->at, "expected a divisor of %s %llu for '%s', found %llu", what,
             (unsigned long long)whole, key, (unsigned long long)part);
    return false;
}

static bool read_numbers(reader *r, sizes *s)
{
    model_facts *m = r->m;
    const struct {
        const char *key;
        presence is_there;
        uint64_t *value;
    } numbers[] = {
        {"hidden_size", NEEDED, &m->width},
        {"num_hidden_layers", NEEDED, &s->layers},
        {"num_attention_heads", NEEDED, &m->heads},
        {"intermediate_size", NEEDED, &s->hidden},
        {"vocab_size", NEEDED, &s->vocabulary},
        {"num_key_value_heads", OPTIONAL, &m->kv_heads},
        {"head_dim", OPTIONAL, &m->head_dim},
        {"max_position_embeddings", OPTIONAL, &m->context},
        {"sliding_window", OPTIONAL_OR_ZERO, &m->window},
        {"first_k_dense_replace", OPTIONAL_OR_ZERO, &s->dense_layers},
        {"n_shared_experts", OPTIONAL_OR_ZERO, &s->shared_experts},
        {"moe_intermediate_size", OPTIONAL_OR_ZERO, &s->expert_hidden},
        {"q_lora_rank", OPTIONAL_OR_ZERO, &s->q_rank},
        {"kv_lora_rank", OPTIONAL_OR_ZERO, &s->kv_rank},
        {"qk_nope_head_dim", OPTIONAL_OR_ZERO, &s->head_nope},
        {"qk_rope_head_dim", OPTIONAL_OR_ZERO, &s->head_rope},
        {"v_head_dim", OPTIONAL_OR_ZERO, &s->head_v},
    };
    const struct {
        const char *key;
        bool may_be_zero;
        double *value;
    } reals[] = {
        {"rms_norm_eps", false, &m->eps},
        {"layer_norm_eps", false, &m->eps},
        {"norm_epsilon", false, &m->eps},
        {"rope_theta", false, &m->rope_base},
        {"attn_logit_softcapping", true, &m->softcap},
        {"attention_multiplier", false, &m->scale},
        {"query_pre_attn_scalar", false, &m->query_scalar},
        {"partial_rotary_factor", false, &s->rotary},
    };
    bool ok = true;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        ok = read_number(r, numbers[i].key, numbers[i].is_there, numbers[i].value) && ok;
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
        ok = take_real(r, member(r, reals[i].key), reals[i].key, reals[i].may_be_zero, reals[i].value) && ok;
    if (ok && s->layers > MODEL_MOST_LAYERS)
        ok = refuse(r, member(r, "num_hidden_layers"), "num_hidden_layers", "at most 1024");
    return ok;
}

/* Rope's base and scaling: rope_theta and rope_scaling, or rope_parameters, which may depend on the type of layer. */
static bool read_rope(reader *r, sizes *s)
{
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const yaml_node *rope = member(r, keys[i]);
        if (!rope)
            continue;
        if (rope->kind != YAML_MAP)
            return refuse(r, rope, keys[i], "an object");
        const yaml_node *one = yaml_member(rope, "full_attention"),
                        *local = yaml_member(rope, "sliding_attention");
        if (local && one)
            model_note(r->arena, r->m, "%s: the layers with a window have their own base for rope, %s.",
                       keys[i],
                       *word_of(local, "rope_theta") ? quote_text(r->arena, word_of(local, "rope_theta"))
                                                     : "which is not given");
        one = one ? one : local ? local : rope;
        const char *type = word_of(one, *word_of(one, "rope_type") ? "rope_type" : "type");
        if (!words_contain("default", *type ? type : "default"))
            model_note(r->arena, r->m, "%s is %s: fill rope's frequencies and set its magnitude accordingly.",
                       keys[i], quote_text(r->arena, type));
        if (yaml_member(one, "mrope_section"))
            model_note(r->arena, r->m,
                       "%s has mrope_section: positions have three parts; in text they are equal.", keys[i]);
        if (!take_real(r, yaml_member(one, "rope_theta"), "rope_theta", false, &r->m->rope_base) ||
            !take_real(r, yaml_member(one, "partial_rotary_factor"), "partial_rotary_factor", false,
                       &s->rotary))
            return false;
    }
    return true;
}

/* "full_attention" and "sliding_attention" per layer. */
static void read_windows(reader *r)
{
    const yaml_node *kinds = member(r, "layer_types"), *uses = member(r, "use_sliding_window");
    uint64_t first = 0;
    bool is_sliding = !kinds || kinds->kind != YAML_LIST;
    for (const yaml_node *n = kinds ? kinds->first : NULL; n; n = n->next) {
        const char *kind = n->kind == YAML_SCALAR ? n->text : "";
        is_sliding = is_sliding || strcmp(kind, "sliding_attention") == 0;
        if (!words_contain("full_attention sliding_attention", kind))
            model_note(r->arena, r->m, "layer_types has '%s': kiln does not know what that changes.",
                       quote_text(r->arena, kind));
    }
    if ((uses && !is_word(uses, "true")) || !is_sliding)
        r->m->window = 0;
    const yaml_node *from = member(r, "max_window_layers");
    if (r->m->window > 0 && !kinds && from && from->kind == YAML_SCALAR &&
        read_number(r, "max_window_layers", OPTIONAL_OR_ZERO, &first))
        model_note(r->arena, r->m, "max_window_layers is %llu: layers from that one on have the window.",
                   (unsigned long long)first);
}

static bool read_sizes(reader *r, sizes *s)
{
    model_facts *m = r->m;
    if (!read_numbers(r, s) || !read_rope(r, s))
        return false;
    m->layer_count = (uint32_t)s->layers;
    m->kv_heads = m->kv_heads ? m->kv_heads : m->heads;
    if (s->kv_rank > 0) {
        m->head_dim = s->head_nope + s->head_rope;
    } else if (m->head_dim == 0) {
        m->head_dim = r->type.head_dim;
        if (m->head_dim == 0 && !divides(r, m->width, m->heads, "hidden_size", "num_attention_heads"))
            return false;
        m->head_dim = m->head_dim ? m->head_dim : m->width / m->heads;
    }
    if (!divides(r, m->heads, m->kv_heads, "num_attention_heads", "num_key_value_heads"))
        return false;
    m->head_dim_v = m->head_dim;
    if (s->rotary > 1) {
        diagnose(r->d, r->root->at, "expected at most 1 for 'partial_rotary_factor', found %.9g", s->rotary);
        return false;
    }
    m->rotary_dim = s->rotary > 0 ? (uint64_t)(s->rotary * (double)m->head_dim) : m->head_dim;
    m->context = m->context ? m->context : MODEL_USUAL_CONTEXT;
    read_windows(r);
    return true;
}

/* ---- matrices ----------------------------------------------------------------------------------------------------- */

static bool has_trait(const reader *r, unsigned trait)
{
    return (r->type.traits & trait) != 0;
}

static void set_hidden(reader *r, model_layer *layer, const char *format, uint64_t hidden, bool has_bias)
{
    const uint64_t width = r->m->width;
    model_matrix *w = layer->matrices;
    w[MODEL_DOWN] = (model_matrix){format, width, hidden, has_bias};
    w[MODEL_UP] =
        (model_matrix){format, has_trait(r, HAS_JOINED_GATE) ? 2 * hidden : hidden, width, has_bias};
    if (!has_trait(r, HAS_JOINED_GATE | HAS_NO_GATE))
        w[MODEL_GATE] = w[MODEL_UP];
}

/* Latent attention's products, except the output's, only get a note. */
static void set_latent(reader *r, const sizes *s, const char *format, model_layer *layer)
{
    model_facts *m = r->m;
    const unsigned long long width = m->width, heads = m->heads, q = heads * (s->head_nope + s->head_rope);
    const unsigned long long latent = s->kv_rank + s->head_rope;
    text shapes = text_new(r->arena);
    if (s->q_rank > 0)
        text_printf(&shapes, "q_a_proj %llu x %llu, q_b_proj %llu x %llu", (unsigned long long)s->q_rank,
                    width, q, (unsigned long long)s->q_rank);
    else
        text_printf(&shapes, "q_proj %llu x %llu", q, width);
    text_printf(&shapes, ", kv_a_proj_with_mqa %llu x %llu, kv_b_proj %llu x %llu", latent, width,
                heads * (s->head_nope + s->head_v), (unsigned long long)s->kv_rank);
    model_note(
        r->arena, m,
        "Latent attention: kiln's attention takes it with head_dim %llu and head_dim_v %llu, but its items "
        "are missing here, and those of its products (rows x columns): %s.",
        latent, (unsigned long long)s->kv_rank, shapes.data);
    m->has_attention = false;
    if (s->head_v > 0)
        layer->matrices[MODEL_OUTPUT] = (model_matrix){format, width, heads * s->head_v, false};
}

static void set_attention(reader *r, const char *format, model_layer *layer)
{
    const model_facts *m = r->m;
    const uint64_t q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
    const bool is_biased =
        is_true(r, "attention_bias") || has_trait(r, HAS_ALL_BIASES) || is_true(r, "use_bias");
    const bool bias = is_biased || has_trait(r, HAS_QKV_BIAS) || is_true(r, "use_qkv_bias");
    model_matrix *w = layer->matrices;
    if (has_trait(r, HAS_JOINED_QKV)) {
        w[MODEL_QKV] = (model_matrix){format, q + 2 * kv, m->width, bias};
    } else {
        w[MODEL_Q] = (model_matrix){format, q, m->width, bias};
        w[MODEL_K] = w[MODEL_V] = (model_matrix){format, kv, m->width, bias};
    }
    w[MODEL_OUTPUT] = (model_matrix){format, m->width, q, is_biased && !has_trait(r, HAS_NO_OUTPUT_BIAS)};
}

/* Reads all keys even without a format, so that none of them counts as unknown. */
static void set_matrices(reader *r, const sizes *s, const char *format, bool has_expert_format)
{
    model_facts *m = r->m;
    const bool mlp_bias = is_true(r, "mlp_bias") || has_trait(r, HAS_ALL_BIASES) || is_true(r, "use_bias");
    model_layer dense = {0}, sparse;
    if (s->kv_rank > 0)
        set_latent(r, s, format, &dense);
    else
        set_attention(r, format, &dense);
    sparse = dense;
    set_hidden(r, &dense, format, s->hidden, mlp_bias);
    if (s->shared_experts * s->expert_hidden > 0)
        set_hidden(r, &sparse, format, s->shared_experts * s->expert_hidden, mlp_bias);
    if (!format || has_expert_format)
        return;
    for (uint32_t i = 0; i < m->layer_count; i++)
        m->layers[i] = s->experts > 0 && i >= s->dense_layers ? sparse : dense;
    if (strcmp(m->family, "linear") == 0)
        m->embedding = m->head =
            (model_matrix){format, s->vocabulary, m->width, has_trait(r, HAS_ALL_BIASES)};
}

/* ---- facts besides matrices --------------------------------------------------------------------------------------- */

static bool read_experts(reader *r, sizes *s)
{
    static const char *const keys[] = {"num_local_experts", "num_experts", "n_routed_experts"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        uint64_t count;
        if (!read_number(r, keys[i], OPTIONAL_OR_ZERO, &count))
            return false;
        if (count == 0)
            continue;
        s->experts = count;
        model_note(
            r->arena, r->m,
            "Experts (%s is %llu): their products are missing here; kiln has no kernel that chooses experts.",
            keys[i], (unsigned long long)count);
    }
    if (s->experts > 0 && s->shared_experts * s->expert_hidden > 0)
        model_note(
            r->arena, r->m,
            "Shared experts (n_shared_experts is %llu): the hidden layer's matrices, except in the first %llu "
            "layer%s, are theirs.",
            (unsigned long long)s->shared_experts, (unsigned long long)s->dense_layers,
            s->dense_layers == 1 ? "" : "s");
    return true;
}

/* Adds a note if the value is not the usual one. */
static const struct need {
    const char *key, *usual, *note;
} needs[] = {
    {"final_logit_softcapping", "0", "logits become c * tanh(logit / c), which kiln lacks"},
    {"logit_scale", "1", "logits are multiplied by it"},
    {"logits_scaling", "1", "logits are divided by it"},
    {"embedding_multiplier", "1", "the embedding's rows are multiplied by it"},
    {"residual_multiplier", "1",
     "the results of attention and of the hidden layer are multiplied by it before the sum with the state"},
    {"scale_depth", "0",
     "the results of attention and of the hidden layer are multiplied by it and divided by the root of the number "
     "of layers, before the sum with the state"},
    {"scale_emb", "1", "the embedding's rows are multiplied by it"},
    {"moe_layer_freq", "1", "only each layer whose number is a multiple of it has experts"},
    {"clip_qkv", "0", "Q, K and V are clamped, which kiln lacks"},
    {"rope_local_base_freq", "0", "the layers with a window have this base for rope"},
    {"swiglu_limit", "0", "gate and up are clamped, and the gate is not plain SiLU: kiln lacks both"},
    {"use_parallel_residual", "false", "attention and the hidden layer read the same state"},
    {"use_qk_norm", "false", "a norm of each head of Q and K: kiln has no kernel for it"},
    {"qk_layernorm", "false", "a norm of each head of Q and K: kiln has no kernel for it"},
    {"no_rope_layers", "", "layers with a 0 do not rotate Q and K"},
    {"sliding_window_pattern", "", "each layer whose number is a multiple of it has no window"},
};

/* Keys that change no kernel; or the choice of experts, whose products have a note. */
static const char harmless_keys[] =
    "architectures transformers_version torch_dtype dtype _name_or_path auto_map bos_token_id eos_token_id "
    "pad_token_id unk_token_id sep_token_id cls_token_id mask_token_id decoder_start_token_id image_token_id "
    "attention_dropout hidden_dropout resid_pdrop embd_pdrop attn_pdrop embedding_dropout residual_dropout "
    "classifier_dropout hidden_dropout_prob attention_probs_dropout_prob initializer_range initializer_factor "
    "use_cache tie_word_embeddings pretraining_tp output_router_logits router_aux_loss_coef router_jitter_noise "
    "aux_loss_alpha seq_aux output_attentions output_hidden_states return_dict torchscript use_bfloat16 "
    "gradient_checkpointing cache_implementation _attn_implementation _attn_implementation_autoset "
    "attn_implementation original_max_position_embeddings initial_context_length no_rope_layer_interval id2label "
    "label2id num_labels problem_type chunk_size_feed_forward is_decoder is_encoder_decoder tokenizer_class "
    "task_specific_params finetuning_task prefix max_length min_length do_sample temperature top_k top_p "
    "unsloth_version unsloth_fixed _unsloth_fixed num_experts_per_tok num_experts_per_token experts_per_token "
    "norm_topk_prob topk_method scoring_func n_group topk_group routed_scaling_factor ep_size pad_token "
    "max_window_layers text_config model_type";

static bool are_alike(const char *x, const char *y)
{
    char *x_end, *y_end;
    const double p = strtod(x, &x_end), q = strtod(y, &y_end);
    return strcmp(x, y) == 0 || (x_end != x && y_end != y && !*x_end && !*y_end && p == q);
}

static void note_needs(reader *r)
{
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        const yaml_node *node = member(r, needs[i].key);
        if (!node || (node->kind == YAML_SCALAR && are_alike(node->text, needs[i].usual)))
            continue;
        if (words_contain("residual_multiplier scale_depth", needs[i].key))
            r->m->has_scaled_results = true;
        model_note(r->arena, r->m, "%s is %s: %s.", needs[i].key, value_text(r->arena, node), needs[i].note);
    }
}

static const struct {
    unsigned trait;
    const char *note;
} trait_notes[] = {
    {HAS_HEAD_NORMS, "A norm of each head of Q and K: kiln has no kernel for it."},
    {HAS_WHOLE_NORMS, "A norm of the whole Q and of the whole K: kiln has no kernel for it."},
    {HAS_NO_PRE_NORMS, "The products of attention and of the hidden layer read the state without a norm."},
    {HAS_SHIFTED_NORMS, "Norms: the file stores each weight minus 1; add 1 for gamma."},
    {HAS_SINKS, "Sinks, learned for each head: set attention's argument sinks."},
};

static void note_traits(reader *r, const char *format)
{
    for (size_t i = 0; i < sizeof trait_notes / sizeof trait_notes[0]; i++)
        if (has_trait(r, trait_notes[i].trait))
            model_note(r->arena, r->m, "%s", trait_notes[i].note);
    if (has_trait(r, IS_PERMUTED) && format && strcmp(r->m->family, "linear") == 0)
        model_note(
            r->arena, r->m,
            "rope: Q and K are in the order of Hugging Face; a GGUF file of llama.cpp needs 'pairs: neighbours'.");
}

/* Members that were not read: each may change the model. */
static void note_unknown(reader *r)
{
    for (const yaml_node *n = r->root->first; n; n = n->next) {
        bool is_read = yaml_is_null(n) || is_word(n, "false") || words_contain(harmless_keys, n->key) ||
                       (n->kind != YAML_SCALAR && !n->first);
        for (size_t i = 0; i < r->read_count && !is_read; i++)
            is_read = r->read[i] == n;
        if (!is_read)
            model_note(r->arena, r->m, "%s is %s: kiln does not know what that changes.",
                       quote_text(r->arena, n->key), value_text(r->arena, n));
    }
    if (r->top != r->root)
        model_note(r->arena, r->m, "These kernels are only for the language model, text_config.");
}

static void note_bfloat16(reader *r, const yaml_node *q)
{
    const yaml_node *dtype = member(r, "torch_dtype") ? member(r, "torch_dtype") : member(r, "dtype");
    const bool is_own = dtype && dtype->kind == YAML_SCALAR && strcmp(dtype->text, "bfloat16") == 0;
    if (is_own || strcmp(word_of(q, "bnb_4bit_compute_dtype"), "bfloat16") == 0)
        model_note(
            r->arena, r->m,
            "The model computes in bfloat16, these items in f16, whose largest number is 65504. To change "
            "that, write bf16 for f16 in each item, and convert the program's numbers.");
}

/* hidden_act: the gate's activation. */
static void set_gate(reader *r)
{
    const yaml_node *act = member(r, "hidden_act"), *activation = member(r, "hidden_activation");
    act = activation || has_trait(r, HAS_GELU) ? activation : act;
    const char *name = act && act->kind == YAML_SCALAR ? act->text
                       : has_trait(r, HAS_GELU)        ? "gelu_pytorch_tanh"
                                                       : "silu";
    if (words_contain("silu swish", name))
        r->m->gate = "swiglu";
    else if (words_contain("gelu_pytorch_tanh gelu_new gelu_fast", name))
        r->m->gate = "geglu";
    else
        model_note(r->arena, r->m, "hidden_act is %s: kiln's gates have SiLU, or GELU's tanh form.",
                   quote_text(r->arena, name));
    if (member(r, "swiglu_limit"))
        r->m->gate = NULL;
}

static void set_type(reader *r)
{
    const yaml_node *node = member(r, "model_type");
    const char *name = node && node->kind == YAML_SCALAR && *node->text ? node->text : "unknown";
    model_facts *m = r->m;
    r->type.name = quote_text(r->arena, name);
    bool is_known = false;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, name) == 0) {
            r->type = types[i];
            is_known = true;
        }
    if (!is_known)
        model_note(
            r->arena, m,
            "The architecture '%s' is unknown to kiln: a block like Llama's is assumed, RMSNorm before separate "
            "Q, K and V, and before a hidden layer with a gate; rope rotates halves of heads.",
            r->type.name);
    m->architecture = r->type.name;
    m->rope_pairs = has_trait(r, IS_NEIGHBOURS) ? "neighbours" : "halves";
    m->norm = has_trait(r, HAS_LAYER_NORM) ? MODEL_NORM_LAYER : MODEL_NORM_RMS;
    m->has_attention_norm = !has_trait(r, HAS_NO_PRE_NORMS);
    m->has_ffn_norm = !has_trait(r, HAS_NO_PRE_NORMS | IS_PARALLEL);
    m->has_attention_post_norm = m->has_ffn_post_norm = has_trait(r, HAS_POST_NORMS);
    m->has_scaled_embedding = has_trait(r, HAS_SCALED_EMBEDDING);
}

static bool read_model(reader *r, family_list families, const char *asked)
{
    model_facts *m = r->m;
    const char *format;
    sizes s = {0};
    const int before = r->d->count;
    const yaml_node *q = member(r, "quantization_config");
    if (q && q->kind != YAML_MAP)
        return refuse(r, q, "quantization_config", "an object");
    note_bfloat16(r, q);
    set_type(r);
    if (!read_sizes(r, &s) || !read_experts(r, &s))
        return false;
    set_format(r, families, q, asked, &format);
    if (r->d->count > before)
        return false;
    m->layers = arena_alloc(r->arena, m->layer_count * sizeof *m->layers);
    /* With MXFP4 in the file only experts have that format; for other weights the user passes --format. */
    const bool has_expert_format = !asked && format && strcmp(format, "mxfp4") == 0;
    set_matrices(r, &s, format, has_expert_format);
    if (has_expert_format)
        model_note(r->arena, m, "Only the experts are in MXFP4: the other matrices have no items here.");
    if (format && !asked)
        drop_modules(r, q, format);
    set_gate(r);
    note_traits(r, format);
    note_needs(r);
    note_unknown(r);
    return r->d->count == before;
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
    const bool has_text = text_config && text_config->kind == YAML_MAP;
    reader r = {.arena = a, .root = has_text ? text_config : root, .top = root, .m = m, .d = d};
    return read_model(&r, families, format);
}
