/* What follows from a model's architecture and sizes. */
#include "facts.h"

#include <string.h>

#include "support/words.h"

enum { MOST_NOTES = 40 };

const char *const model_role_names[MODEL_ROLES] = {
    [MODEL_QKV] = "attn_qkv", [MODEL_Q] = "attn_q",           [MODEL_K] = "attn_k",
    [MODEL_V] = "attn_v",     [MODEL_OUTPUT] = "attn_output", [MODEL_GATE] = "ffn_gate",
    [MODEL_UP] = "ffn_up",    [MODEL_DOWN] = "ffn_down",
};

/* Source: llama_model_rope_type and the graphs of llama.cpp; names with '_' are those of config.json. */
static const char rotates_neighbours[] =
    "llama llama4 deci baichuan starcoder internlm2 minicpm xverse command-r cohere2 olmo arctic deepseek deepseek2 "
    "chatglm glm4 granite granitemoe smollm3 ernie4_5 arcee";
static const char rotates_halves[] =
    "falcon grok dbrx stablelm bitnet qwen qwen2 qwen2moe qwen3 qwen3moe olmo2 olmoe phi2 phi3 phimoe plamo gemma "
    "gemma2 gemma3 starcoder2 openelm gptneox orion nemotron exaone exaone4 minicpm3 gpt-oss "
    "mistral mixtral phi gemma3_text qwen2_moe qwen3_moe gpt_neox";
static const char rotates_nothing[] = "gpt2 mpt bloom refact jais";
static const char has_gelu_gate[] = "gemma gemma2 gemma3 gemma3_text";

void model_note(arena *a, model_facts *m, const char *format, ...)
{
    va_list arguments;
    text t = text_new(a);
    va_start(arguments, format);
    text_vprintf(&t, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < m->note_count; i++)
        if (strcmp(m->notes[i], t.data) == 0)
            return;
    if (m->note_count > MOST_NOTES)
        return;
    *(const char **)arena_push(a, (void **)&m->notes, &m->note_count, &m->note_capacity, sizeof *m->notes) =
        m->note_count == MOST_NOTES ? "There is more that kiln does not know." : t.data;
}

void model_set_architecture(arena *a, model_facts *m, const char *name)
{
    m->architecture = name;
    m->gate = words_contain(has_gelu_gate, name) ? "geglu" : "swiglu";
    m->rope_pairs = words_contain(rotates_neighbours, name) ? "neighbours" : "halves";
    if (words_contain(rotates_nothing, name))
        m->rope_pairs = NULL;
    else if (!words_contain(rotates_neighbours, name) && !words_contain(rotates_halves, name))
        model_note(
            a, m,
            "The architecture '%s' is unknown to kiln: a SiLU gate and rotated halves of heads are assumed.",
            name);
    if (strncmp(name, "gemma", 5) == 0)
        model_note(a, m, "The embedding's rows are multiplied by sqrt(%s): kiln has no kernel for it.",
                   "embedding_length");
}

static uint64_t rows_of(const model_facts *m, model_role role)
{
    return m->layer_count > 0 && m->layers[0].matrices[role].format ? m->layers[0].matrices[role].rows : 0;
}

/* The size of a head from a matrix of `heads` heads; where the keys say another, the matrix is right. */
static void set_head_dim(arena *a, model_facts *m, uint64_t *head_dim, uint64_t rows, uint64_t heads,
                         const char *what)
{
    if (rows == 0 || heads == 0)
        return;
    if (rows % heads != 0) {
        model_note(a, m,
                   "%s has %llu rows, which are no multiple of its %llu heads: there is no attention here.",
                   what, (unsigned long long)rows, (unsigned long long)heads);
        m->has_attention = false;
    } else {
        *head_dim = rows / heads;
    }
}

void model_complete(arena *a, model_facts *m)
{
    m->has_attention = m->has_attention && m->heads > 0;
    if (m->kv_heads == 0)
        m->kv_heads = m->heads;
    if (m->head_dim == 0 && m->heads > 0)
        m->head_dim = m->width / m->heads;
    if (m->head_dim_v == 0)
        m->head_dim_v = m->head_dim;
    set_head_dim(a, m, &m->head_dim, rows_of(m, MODEL_Q), m->heads, "attn_q");
    if (m->head_dim > 0 && rows_of(m, MODEL_K) % m->head_dim == 0 && rows_of(m, MODEL_K) > 0)
        m->kv_heads = rows_of(m, MODEL_K) / m->head_dim;
    set_head_dim(a, m, &m->head_dim_v, rows_of(m, MODEL_V), m->kv_heads, "attn_v");
    if (m->rotary_dim == 0 || m->rotary_dim > m->head_dim)
        m->rotary_dim = m->head_dim;
    if (m->kv_heads == 0 || m->heads % m->kv_heads != 0 || m->head_dim == 0 || m->head_dim_v == 0)
        m->has_attention = false;
    if (m->context == 0)
        m->context = 2048;
}
