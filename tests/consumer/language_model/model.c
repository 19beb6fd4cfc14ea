#include "model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256, PIECE_BYTES = 4 << 20, MOST_LAYERS = 1024, MOST_ROTARY = 256 };

/* Prints the error with the file's path. */
__attribute__((format(printf, 2, 3))) static bool refused(const gguf_file *file, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return failed("%s: %s", gguf_path(file), text);
}

/* ---- what the file says ---------------------------------------------------------------------------------------------- */

static bool is_llama(const gguf_file *file)
{
    gguf_string name;
    gguf_error error;
    if (!gguf_get_string(file, "general.architecture", &name, &error))
        return refused(file, "%s", error.text);
    return gguf_string_is(name, "llama") || refused(file, "general.architecture: expected llama, found %.*s",
                                                    (int)(name.size < 64 ? name.size : 64), name.bytes);
}

/* The keys that this program knows. Any other key of llama is refused, because it may change what the model computes; keys
 * outside llama are ignored, because converters add more of them over time. */
static const struct known_key {
    const char *name;
    const char
        *expected; /* the allowed values, separated by " or "; null: no effect, or the reader checks it */
    const char *why;
} known_keys[] = {
    {"general.quantization_version", "2", "blocks of another version are laid out differently"},
    {"general.type", "model", "this program runs whole models"},
    {"llama.attention.causal", "true", "each token sees only the tokens before it"},
    {"llama.attention.clamp_kqv", "0", "this program does not clamp Q, K and V"},
    {"llama.attention.head_count", NULL, NULL},
    {"llama.attention.head_count_kv", NULL, NULL},
    {"llama.attention.key_length", NULL, NULL},
    {"llama.attention.layer_norm_rms_epsilon", NULL, NULL},
    {"llama.attention.max_alibi_bias", "0", "this program adds no bias to scores"},
    {"llama.attention.sliding_window", "0", "each token sees all tokens before it"},
    {"llama.attention.value_length", NULL, NULL},
    {"llama.block_count", NULL, NULL},
    {"llama.context_length", NULL, NULL},
    {"llama.embedding_length", NULL, NULL},
    {"llama.expert_count", "0", "this program does not choose experts"},
    {"llama.expert_used_count", "0", "this program does not choose experts"},
    {"llama.feed_forward_length", NULL, NULL},
    {"llama.pooling_type", "0", "this program pools no embeddings"},
    {"llama.rope.dimension_count", NULL, NULL},
    {"llama.rope.freq_base", NULL, NULL},
    {"llama.rope.scale_linear", NULL, NULL},
    {"llama.rope.scaling.factor", NULL, NULL},
    {"llama.rope.scaling.finetuned", NULL, NULL},               /* describes the training */
    {"llama.rope.scaling.original_context_length", NULL, NULL}, /* linear scaling does not depend on it */
    {"llama.rope.scaling.type", "none or linear", "this program scales positions by a factor only"},
    {"llama.tensor_data_layout", "Meta AI original pth", "Q and K have rows in that order"},
    {"llama.use_parallel_residual", "false", "attention comes before the hidden layer"},
    {"llama.vocab_size", NULL, NULL}, /* the rows of token_embd.weight say it too */
    {"split.count", "0 or 1",
     "the file is one of several: merge them first, as llama-gguf-split --merge does"},
    {"tokenizer.ggml.suppress_tokens", "an array of 0 i32", "this program may choose any token"},
};

static const struct known_key *find_known_key(gguf_string name)
{
    for (size_t i = 0; i < sizeof known_keys / sizeof known_keys[0]; i++)
        if (gguf_string_is(name, known_keys[i].name))
            return &known_keys[i];
    return NULL;
}

/* Whether `found` is one of the values in "0 or 1". */
static bool is_expected(const char *expected, const char *found)
{
    const char *separator;
    const size_t length = strlen(found);
    for (; (separator = strstr(expected, " or ")); expected = separator + strlen(" or "))
        if ((size_t)(separator - expected) == length && memcmp(expected, found, length) == 0)
            return true;
    return strcmp(expected, found) == 0;
}

static bool is_plain(const gguf_file *file)
{
    char value[80];
    for (uint64_t i = 0; i < gguf_key_count(file); i++) {
        const gguf_string name = gguf_key_at(file, i);
        const struct known_key *known = find_known_key(name);
        const int shown = name.size < 128 ? (int)name.size : 128;
        gguf_show_value(file, i, value, sizeof value);
        if (!known && name.size > 6 && memcmp(name.bytes, "llama.", 6) == 0)
            return refused(file, "%.*s: expected no such key, found %s: it may change the model", shown,
                           name.bytes, value);
        if (known && known->expected && !is_expected(known->expected, value))
            return refused(file, "%s: expected %s, found %s: %s", known->name, known->expected, value,
                           known->why);
    }
    return !gguf_find_tensor(file, "rope_freqs.weight") ||
           refused(file,
                   "tensor rope_freqs.weight: this program does not have Llama 3's scaling of positions");
}

/* Reads a number from 1 to `most`. *value is the default of an optional key, or 0 if the key is required. */
static bool read_size(const gguf_file *file, const char *key, uint32_t most, uint32_t *value)
{
    gguf_error error;
    if (*value && !gguf_has(file, key))
        return true;
    if (!gguf_get_u32(file, key, value, &error))
        return refused(file, "%s", error.text);
    return (*value >= 1 && *value <= most) ||
           refused(file, "%s: expected 1 to %u, found %u", key, most, *value);
}

static bool read_factor(const gguf_file *file, const char *key, float least, float *value)
{
    gguf_error error;
    if (*value > 0 && !gguf_has(file, key))
        return true;
    if (!gguf_get_f32(file, key, value, &error))
        return refused(file, "%s", error.text);
    return (*value >= least && *value <= 1e30f) ||
           refused(file, "%s: expected %g to 1e30, found %g", key, (double)least, (double)*value);
}

static bool read_heads(model *m, const gguf_file *file)
{
    if (!read_size(file, "llama.attention.head_count", 1 << 16, &m->heads))
        return false;
    m->key_heads = m->heads;
    if (!read_size(file, "llama.attention.head_count_kv", m->heads, &m->key_heads))
        return false;
    if (m->heads % m->key_heads)
        return refused(file, "llama.attention.head_count: expected a multiple of head_count_kv, %u, found %u",
                       m->key_heads, m->heads);
    m->head_size = m->width / m->heads;
    if (m->head_size == 0)
        return refused(file, "llama.attention.head_count: expected at most embedding_length, %u, found %u",
                       m->width, m->heads);
    uint32_t of_values = m->head_size;
    if (!read_size(file, "llama.attention.key_length", 1 << 12, &m->head_size) ||
        !read_size(file, "llama.attention.value_length", 1 << 12, &of_values))
        return false;
    if (m->head_size != of_values)
        return refused(file, "llama.attention.value_length: expected that of keys, %u, found %u",
                       m->head_size, of_values);
    m->rotary = m->head_size;
    if (!read_size(file, "llama.rope.dimension_count", m->head_size, &m->rotary))
        return false;
    return (m->rotary % 2 == 0 && m->rotary <= MOST_ROTARY) ||
           refused(file, "llama.rope.dimension_count: expected an even number up to %d, found %u",
                   MOST_ROTARY, m->rotary);
}

/* llama.cpp scales by the factor unless the type is "none", and reads the older key if the newer one is absent. */
static bool read_scaling(model *m, const gguf_file *file)
{
    gguf_string type;
    gguf_error error;
    m->rope_factor = 1;
    if (gguf_get_string(file, "llama.rope.scaling.type", &type, &error) && gguf_string_is(type, "none"))
        return true;
    return read_factor(file, "llama.rope.scale_linear", 1, &m->rope_factor) &&
           read_factor(file, "llama.rope.scaling.factor", 1, &m->rope_factor);
}

static bool read_sizes(model *m, const gguf_file *file)
{
    m->rope_base = 10000;
    return read_size(file, "llama.block_count", MOST_LAYERS, &m->layer_count) &&
           read_size(file, "llama.context_length", 1u << 30, &m->context) &&
           read_size(file, "llama.embedding_length", 1 << 20, &m->width) &&
           read_size(file, "llama.feed_forward_length", 1 << 20, &m->hidden) && read_heads(m, file) &&
           read_factor(file, "llama.attention.layer_norm_rms_epsilon", 0, &m->norm_eps) &&
           read_factor(file, "llama.rope.freq_base", 1, &m->rope_base) && read_scaling(m, file);
}

/* ---- the bundle's formats ------------------------------------------------------------------------------------------- */

/* Whether a word of the bundle, "q4_1", is the file's name of a type, "Q4_1". */
static bool is_word(const char *word, const char *name)
{
    while (*word && *word == (*name >= 'A' && *name <= 'Z' ? *name - 'A' + 'a' : *name))
        word++, name++;
    return !*word && !*name;
}

static bool find_format(const gguf_file *file, const char *family_name, const gguf_tensor *tensor,
                        uint32_t *format)
{
    const kiln_index *index = &lm_kernels_index;
    const kiln_index_family *family = kiln_find_family(index, family_name);
    char known[256] = "";
    for (uint32_t i = 0; i < family->selector_count; i++) {
        const kiln_selector *selector = &index->selectors[family->first_selector + i];
        for (uint32_t w = 0; strcmp(index->texts + selector->text, "format") == 0 && w < selector->word_count;
             w++) {
            const kiln_word *word = &index->words[selector->first_word + w];
            if (is_word(index->texts + word->text, tensor->type->name)) {
                *format = word->number;
                return true;
            }
            const size_t length = strlen(known);
            snprintf(known + length, sizeof known - length, " %s", index->texts + word->text);
        }
    }
    return refused(
        file,
        "tensor %s: %s is not among the formats of %s that this program was built with, in kernels.yaml:%s",
        tensor->name, tensor->type->name, family_name, known);
}

/* ---- tensors --------------------------------------------------------------------------------------------------------- */

static bool place_tensors(model *m, const gguf_file *file)
{
    const uint64_t count = gguf_tensor_count(file);
    m->places = calloc(count ? count : 1, sizeof *m->places);
    if (!m->places)
        return failed("out of memory");
    for (uint64_t i = 0; i < count; i++) { /* cannot overflow: tensors do not overlap in the file */
        m->places[i].offset = m->weight_bytes;
        m->weight_bytes += (gguf_tensor_at(file, i)->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return true;
}

static const gguf_tensor *find_tensor(const model *m, const gguf_file *file, const char *name,
                                      CUdeviceptr *address)
{
    const gguf_tensor *tensor = gguf_find_tensor(file, name);
    if (!tensor) {
        refused(file, "tensor %s: there is none", name);
        return NULL;
    }
    place *of = &m->places[tensor - gguf_tensor_at(file, 0)];
    of->is_used = true;
    *address = m->weights + of->offset;
    return tensor;
}

static bool has_shape(const gguf_file *file, const gguf_tensor *t, uint64_t rows, uint64_t columns)
{
    return (t->dims[0] == columns && t->dims[1] == rows && t->dims[2] == 1 && t->dims[3] == 1) ||
           refused(file, "tensor %s: expected %llu x %llu elements, found %llu x %llu x %llu x %llu", t->name,
                   (unsigned long long)columns, (unsigned long long)rows, (unsigned long long)t->dims[0],
                   (unsigned long long)t->dims[1], (unsigned long long)t->dims[2],
                   (unsigned long long)t->dims[3]);
}

static bool find_vector(const model *m, const gguf_file *file, const char *name, CUdeviceptr *address)
{
    const gguf_tensor *t = find_tensor(m, file, name, address);
    if (!t || !has_shape(file, t, 1, m->width))
        return false;
    return t->type->number == GGUF_F32 ||
           refused(file, "tensor %s: expected F32, found %s", name, t->type->name);
}

static bool find_matrix(const model *m, const gguf_file *file, const char *name, uint64_t rows,
                        uint32_t columns, matrix *found)
{
    const gguf_tensor *t = find_tensor(m, file, name, &found->address);
    found->rows = (uint32_t)rows, found->columns = columns;
    return t && has_shape(file, t, rows, columns) && find_format(file, "linear", t, &found->format);
}

static bool find_layer(const model *m, const gguf_file *file, uint32_t index)
{
    layer *l = &m->layers[index];
    const uint32_t q_rows = m->heads * m->head_size, k_rows = m->key_heads * m->head_size;
    const struct {
        const char *name;
        uint32_t rows, columns;
        matrix *found;
    } matrices[] = {
        {"attn_q", q_rows, m->width, &l->q},         {"attn_k", k_rows, m->width, &l->k},
        {"attn_v", k_rows, m->width, &l->v},         {"attn_output", m->width, q_rows, &l->output},
        {"ffn_gate", m->hidden, m->width, &l->gate}, {"ffn_up", m->hidden, m->width, &l->up},
        {"ffn_down", m->width, m->hidden, &l->down},
    };
    char name[64];
    for (size_t i = 0; i < sizeof matrices / sizeof matrices[0]; i++) {
        snprintf(name, sizeof name, "blk.%u.%s.weight", index, matrices[i].name);
        if (!find_matrix(m, file, name, matrices[i].rows, matrices[i].columns, matrices[i].found))
            return false;
    }
    if (l->gate.format != l->up.format)
        return refused(
            file,
            "tensor blk.%u.ffn_gate.weight: expected the format of ffn_up: one kernel multiplies by both",
            index);
    snprintf(name, sizeof name, "blk.%u.attn_norm.weight", index);
    if (!find_vector(m, file, name, &l->attention_norm))
        return false;
    snprintf(name, sizeof name, "blk.%u.ffn_norm.weight", index);
    return find_vector(m, file, name, &l->hidden_norm);
}

/* Checks that the model uses each tensor of the file: another one, such as a bias, would change the results. */
static bool all_are_used(const model *m, const gguf_file *file)
{
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++)
        if (!m->places[i].is_used)
            return refused(file, "tensor %s: this program does not know what it is for",
                           gguf_tensor_at(file, i)->name);
    return true;
}

static bool find_tensors(model *m, const gguf_file *file)
{
    const gguf_tensor *embedding = gguf_find_tensor(file, "token_embd.weight");
    if (!embedding)
        return refused(file, "tensor token_embd.weight: there is none");
    if (embedding->dims[1] > 1 << 24)
        return refused(file, "tensor token_embd.weight: expected at most 2^24 tokens, found %llu",
                       (unsigned long long)embedding->dims[1]);
    m->vocabulary = (uint32_t)embedding->dims[1];
    if (!find_matrix(m, file, "token_embd.weight", m->vocabulary, m->width, &m->embedding) ||
        !find_format(file, "gguf_rows", embedding, &m->embedding_format) ||
        !find_vector(m, file, "output_norm.weight", &m->output_norm))
        return false;
    m->head = m->embedding;
    m->token_bytes = m->weight_bytes;
    if (gguf_find_tensor(file, "output.weight")) {
        m->token_bytes -= embedding->bytes;
        if (!find_matrix(m, file, "output.weight", m->vocabulary, m->width, &m->head))
            return false;
    }
    for (uint32_t i = 0; i < m->layer_count; i++)
        if (!find_layer(m, file, i))
            return false;
    return all_are_used(m, file);
}

/* ---- opening --------------------------------------------------------------------------------------------------------- */

bool model_open(model *m, const gguf_file *file)
{
    if (!is_plain(file) || !is_llama(file) || !read_sizes(m, file) || !place_tensors(m, file))
        return false;
    m->layers = calloc(m->layer_count, sizeof *m->layers);
    return m->layers ? find_tensors(m, file) : failed("out of memory");
}

void model_close(model *m)
{
    free(m->layers);
    free(m->places);
    *m = (model){0};
}

/* Uploads the rotation of each pair per position, base^(-2 i / rotary) / factor radians, in units of 2^-64 turns. */
static bool upload_frequencies(model *m, device *d)
{
    const long double two_pi = 6.283185307179586476925286766559005768L;
    uint64_t frequencies[MOST_ROTARY / 2];
    for (uint32_t i = 0; i < m->rotary / 2; i++)
        frequencies[i] = (uint64_t)roundl(ldexpl(
            powl((long double)m->rope_base, -2 * (long double)i / m->rotary) / m->rope_factor / two_pi, 64));
    const size_t bytes = m->rotary / 2 * sizeof *frequencies;
    return device_allocate(d, bytes, "frequencies", &m->frequencies) &&
           device_upload(d, m->frequencies, frequencies, bytes);
}

static bool upload_tensor(const model *m, gguf_file *file, device *d, uint64_t index, char *piece)
{
    const gguf_tensor *t = gguf_tensor_at(file, index);
    gguf_error error;
    for (uint64_t from = 0; from < t->bytes; from += PIECE_BYTES) {
        const size_t bytes = t->bytes - from < PIECE_BYTES ? (size_t)(t->bytes - from) : PIECE_BYTES;
        if (!gguf_read(file, t, from, piece, bytes, &error))
            return refused(file, "%s", error.text);
        if (!device_upload(d, m->weights + m->places[index].offset + from, piece, bytes))
            return false;
    }
    return true;
}

bool model_upload(model *m, gguf_file *file, device *d)
{
    if (!device_allocate(d, m->weight_bytes, "weights", &m->weights))
        return false;
    char *piece = malloc(PIECE_BYTES);
    bool ok = piece || failed("out of memory");
    for (uint64_t i = 0; ok && i < gguf_tensor_count(file); i++)
        ok = upload_tensor(m, file, d, i, piece);
    free(piece);
    return ok && upload_frequencies(m, d) && find_tensors(m, file); /* again, now with addresses */
}
