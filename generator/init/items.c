#include "items.h"

#include <string.h>

enum { DECODED_ROWS = 8, LEAST_PROMPT = 16, MOST_PROMPT = 512, MOST_KEYS = 8192 };

typedef struct maker {
    arena *arena;
    model_facts *m;
    init_items *items;
    uint64_t prompt; /* tokens per chunk of a prompt; 0: the context is too short for prompts */
} maker;

/* ---- items and calls ---------------------------------------------------------------------------------------------- */

static bool are_alike(const init_word *x, const init_word *y)
{
    for (; x->name && y->name; x++, y++)
        if (strcmp(x->name, y->name) != 0 || strcmp(x->value, y->value) != 0)
            return false;
    return !x->name && !y->name;
}

static void copy_words(init_word to[INIT_MOST_WORDS], const init_word *from)
{
    size_t count = 0;
    for (; from[count].name && count < INIT_MOST_WORDS - 1; count++)
        to[count] = from[count];
}

static const char *number(const maker *k, uint64_t value)
{
    text t = text_new(k->arena);
    text_add_decimal(&t, value);
    return t.data;
}

/* "1", or "{from: 1, to: 8}" */
static const char *range(const maker *k, uint64_t from, uint64_t to)
{
    return from >= to ? number(k, from)
                      : arena_format(k->arena, "{from: %s, to: %s}", number(k, from), number(k, to));
}

/* "{m: {from: 1, to: 8}, n: 576, k: 576}": `first`, then the sizes without it. */
static const char *shape_text(const maker *k, init_word first, const init_word *sizes)
{
    text t = text_new(k->arena);
    text_printf(&t, "{%s: %s", first.name, first.value);
    for (; sizes->name; sizes++)
        if (strcmp(sizes->name, first.name) != 0)
            text_printf(&t, ", %s: %s", sizes->name, sizes->value);
    text_add(&t, "}");
    return t.data;
}

/* Adds a call to the item with these parameters, and creates the item if needed. `first`: the size that varies. */
static void add_call(const maker *k, const char *family, const char *comment, const init_word *params,
                     const char *what, uint32_t times, init_word first, const init_word *sizes)
{
    init_items *all = k->items;
    init_item *item = NULL;
    for (size_t i = 0; i < all->count && !item; i++)
        if (strcmp(all->items[i].family, family) == 0 && are_alike(all->items[i].params, params))
            item = &all->items[i];
    if (!item) {
        item = arena_push(k->arena, (void **)&all->items, &all->count, &all->capacity, sizeof *item);
        *item = (init_item){.family = family, .comment = comment};
        copy_words(item->params, params);
    } else if (!strstr(item->comment, comment)) {
        item->comment = arena_format(k->arena, "%s; %s", item->comment, comment);
    }
    for (size_t i = 0; i < item->call_count; i++)
        if (are_alike(item->calls[i].sizes, sizes)) {
            item->calls[i].times += times;
            return;
        }
    init_call *call =
        arena_push(k->arena, (void **)&item->calls, &item->call_count, &item->call_capacity, sizeof *call);
    *call = (init_call){.what = what, .times = times, .shape = shape_text(k, first, sizes)};
    copy_words(call->sizes, sizes);
}

void items_print(text *out, const init_item *item)
{
    text_printf(out, "  # %s\n  - family: %s\n", item->comment, item->family);
    for (const init_word *w = item->params; w->name; w++)
        text_printf(out, "    %s: %s\n", w->name, w->value);
    text_add(out, "    shapes:\n");
    for (size_t i = 0; i < item->call_count; i++)
        text_printf(out, "      - %s\n", item->calls[i].shape);
}

/* ---- products ----------------------------------------------------------------------------------------------------- */

/* Matrices of one format and width that one launch multiplies. */
typedef struct product {
    const char *what, *comment;
    const model_matrix *matrices[3];
    const char *names[3]; /* "blk.0.attn_q" of each */
    size_t count;
    bool reads_state; /* its input is f32 */
    bool is_normed;   /* after a norm */
    const char *y, *epilogue;
} product;

static bool has_bias(const product *p)
{
    return p->matrices[0]->has_bias;
}

static const char *epilogue_of(const product *p)
{
    const bool is_residual = strcmp(p->epilogue, "residual") == 0;
    return !has_bias(p) ? p->epilogue : is_residual ? "bias_residual" : "bias";
}

static const char *norm_of(const maker *k, const product *p)
{
    return p->is_normed && k->m->norm == MODEL_NORM_RMS ? "rms" : "none";
}

/* "n: 576, n_2: 192, k: 576" after m */
static void fill_sizes(const maker *k, const product *p, uint64_t m, init_word sizes[INIT_MOST_WORDS])
{
    static const char *const names[] = {"n", "n_2", "n_3"};
    size_t count = 0;
    sizes[count++] = (init_word){"m", number(k, m)};
    for (size_t i = 0; i < p->count; i++)
        sizes[count++] = (init_word){names[i], number(k, p->matrices[i]->rows)};
    sizes[count++] = (init_word){"k", number(k, p->matrices[0]->columns)};
    sizes[count] = (init_word){0};
}

/* Adds products with GGUF weights: `activation: exact` for up to 8 tokens, activations in 8 bits (x: s8) for prompts. */
static void add_linear(const maker *k, const product *p, bool is_in_prompts)
{
    const model_matrix *first = p->matrices[0];
    const char *matrices = number(k, p->count);
    const uint64_t decoded = is_in_prompts ? DECODED_ROWS : 1;
    init_word sizes[INIT_MOST_WORDS];
    fill_sizes(k, p, 1, sizes);
    add_call(k, "linear", p->comment,
             (init_word[]){{"format", first->format},
                           {"norm", norm_of(k, p)},
                           {"activation", "exact"},
                           {"x", p->reads_state ? "f32" : "f16"},
                           {"y", p->y},
                           {"epilogue", epilogue_of(p)},
                           {"matrices", matrices},
                           {0}},
             p->what, 1, (init_word){"m", range(k, 1, decoded)}, sizes);
    if (!is_in_prompts || k->prompt == 0)
        return;
    const init_word rows = {"m", range(k, LEAST_PROMPT, k->prompt)};
    const init_word quantised[] = {{"m", number(k, LEAST_PROMPT)}, {"k", number(k, first->columns)}, {0}};
    add_call(k, "q8_quantize", "activations in 8 bits, which products for a prompt read",
             (init_word[]){{"type", p->reads_state ? "f32" : "f16"}, {"norm", norm_of(k, p)}, {0}},
             arena_format(k->arena, "%s: input", p->what), 1, rows, quantised);
    fill_sizes(k, p, LEAST_PROMPT, sizes);
    add_call(k, "linear", arena_format(k->arena, "%s, for a prompt", p->comment),
             (init_word[]){{"format", first->format},
                           {"norm", "none"},
                           {"activation", "q8"},
                           {"x", "s8"},
                           {"y", p->y},
                           {"epilogue", epilogue_of(p)},
                           {"matrices", matrices},
                           {0}},
             arena_format(k->arena, "%s: prompt", p->what), 1, rows, sizes);
}

static void add_nf4(const maker *k, const char *what, const model_matrix *w)
{
    const init_word sizes[] = {{"m", "1"}, {"n", number(k, w->rows)}, {"k", number(k, w->columns)}, {0}};
    add_call(k, "nf4_gemm", "every product; weights as bitsandbytes has them, in blocks of 64",
             (init_word[]){{"a", "f16"},
                           {"nibbles", "high"},
                           {"scale_type", k->m->has_nested_scales ? "nested" : "f32"},
                           {0}},
             what, 1, (init_word){"m", range(k, 1, k->prompt ? k->prompt : 1)}, sizes);
}

static void add_nvfp4(const maker *k, const product *p, const char *what, const model_matrix *w)
{
    const init_word sizes[] = {{"m", "1"}, {"n", number(k, w->rows)}, {"k", number(k, w->columns)}, {0}};
    add_call(k, "fp4_gemm", p->comment,
             (init_word[]){{"x", "f16"}, {"y", p->y}, {"epilogue", epilogue_of(p)}, {0}}, what, 1,
             (init_word){"m", range(k, 1, k->prompt ? k->prompt : 1)}, sizes);
}

static bool has_family(const maker *k, const char *name)
{
    return strcmp(k->m->family, name) == 0;
}

/* Notes an operation that nf4_gemm lacks and linear has. */
static void note_nf4(const maker *k, const char *what, const char *epilogue)
{
    model_note(k->arena, k->m,
               "%s: not in nf4_gemm, but in linear with 'format: nf4', 'nibbles: high' and 'epilogue: %s'%s.",
               what, epilogue, k->m->has_nested_scales ? ", which takes scales in f32, not nested" : "");
}

static void add_product(const maker *k, const product *p, bool is_in_prompts)
{
    if (has_bias(p) && has_family(k, "nf4_gemm"))
        note_nf4(k, "Biases", "bias");
    else if (has_bias(p) && strcmp(p->y, "f32") != 0)
        model_note(
            k->arena, k->m,
            "Biases: a product reads them in the type of its result, here f16; convert those of the file.");
    if (has_family(k, "linear"))
        add_linear(k, p, is_in_prompts);
    for (size_t i = 0; i < p->count; i++)
        if (has_family(k, "nf4_gemm"))
            add_nf4(k, p->names[i], p->matrices[i]);
        else if (has_family(k, "fp4_gemm"))
            add_nvfp4(k, p, p->names[i], p->matrices[i]);
}

/* ---- a layer ------------------------------------------------------------------------------------------------------ */

static bool are_multiplied_at_once(const model_matrix *x, const model_matrix *y)
{
    return strcmp(x->format, y->format) == 0 && x->columns == y->columns && x->has_bias == y->has_bias;
}

/* Adds the products of these roles; matrices that can share a launch become one product. */
static void add_roles(const maker *k, uint32_t layer, const model_role *roles, size_t count,
                      const product *like)
{
    const model_matrix *matrices = k->m->layers[layer].matrices;
    bool is_done[MODEL_ROLES] = {false};
    for (size_t i = 0; i < count; i++) {
        product p = *like;
        const char *names = "";
        for (size_t j = i; j < count; j++) {
            const model_matrix *w = &matrices[roles[j]];
            if (is_done[j] || !w->format || (p.count > 0 && !are_multiplied_at_once(p.matrices[0], w)))
                continue;
            is_done[j] = true;
            names = arena_format(k->arena, "%s%s%s", names, p.count ? ", " : "", model_role_names[roles[j]]);
            p.names[p.count] =
                arena_format(k->arena, "blk.%u.%s", (unsigned)layer, model_role_names[roles[j]]);
            p.matrices[p.count++] = w;
        }
        if (p.count == 0)
            continue;
        p.what = arena_format(k->arena, "blk.%u.%s", (unsigned)layer, names);
        p.comment = arena_format(k->arena, "%s%s", names, like->comment);
        add_product(k, &p, true);
    }
}

/* Gate and up, with the activation if one launch has both. */
static void add_hidden(const maker *k, uint32_t layer)
{
    const model_matrix *all = k->m->layers[layer].matrices, *gate = &all[MODEL_GATE], *up = &all[MODEL_UP],
                       *down = &all[MODEL_DOWN];
    const product like = {.reads_state = true,
                          .is_normed = k->m->has_ffn_norm,
                          .y = "f16",
                          .epilogue = "none",
                          .comment = ": the hidden layer"};
    const bool is_both =
        up->format && !gate->format && down->format && up->rows % 2 == 0 && down->columns == up->rows / 2;
    const bool is_pair =
        gate->format && up->format && are_multiplied_at_once(gate, up) && gate->rows == up->rows;
    if (!has_family(k, "nf4_gemm") && k->m->gate && !up->has_bias && (is_both || is_pair)) {
        model_matrix *half = arena_copy(k->arena, up, sizeof *up);
        half->rows = is_both ? up->rows / 2 : up->rows;
        product p = like;
        p.matrices[0] = half;
        p.count = 1;
        p.epilogue = k->m->gate;
        p.what = p.names[0] = arena_format(k->arena, "blk.%u.%s", (unsigned)layer,
                                           is_both ? "ffn_up (gate, then up)" : "ffn_gate, ffn_up");
        p.comment = is_both ? "ffn_up, whose first half is the gate" : "ffn_gate, ffn_up";
        add_product(k, &p, true);
        return;
    }
    if (has_family(k, "nf4_gemm")) {
        if (k->m->gate && gate->format)
            note_nf4(k, strcmp(k->m->gate, "geglu") == 0 ? "GELU(gate) * up" : "SiLU(gate) * up", k->m->gate);
    } else if (gate->format || up->format) {
        model_note(
            k->arena, k->m,
            "The activation of the hidden layer: kiln has it only in a product of gate and up that have one "
            "format and no biases.");
    }
    add_roles(k, layer, (model_role[]){MODEL_GATE, MODEL_UP}, 2, &like);
}

/* A product whose result is added to the state, if nothing changes it before. */
static void add_last(const maker *k, uint32_t layer, model_role role, bool is_changed)
{
    const product like = {.y = "f32",
                          .epilogue = is_changed ? "none" : "residual",
                          .comment = is_changed ? "" : ": added to the state"};
    add_roles(k, layer, &role, 1, &like);
}

static void add_layer(const maker *k, uint32_t layer)
{
    const product in = {.reads_state = true,
                        .is_normed = k->m->has_attention_norm,
                        .y = "f16",
                        .epilogue = "none",
                        .comment = ""};
    add_roles(k, layer, (model_role[]){MODEL_QKV, MODEL_Q, MODEL_K, MODEL_V}, 4, &in);
    add_last(k, layer, MODEL_OUTPUT, k->m->has_attention_post_norm || k->m->has_scaled_results);
    add_hidden(k, layer);
    add_last(k, layer, MODEL_DOWN, k->m->has_ffn_post_norm || k->m->has_scaled_results);
}

/* ---- what is not a product ---------------------------------------------------------------------------------------- */

static void add_embedding(const maker *k)
{
    const model_matrix *w = &k->m->embedding;
    if (k->m->has_scaled_embedding)
        model_note(k->arena, k->m,
                   "The embedding's rows are multiplied by sqrt(%s): kiln has no kernel for it.",
                   number(k, k->m->width));
    if (!has_family(k, "linear")) {
        model_note(k->arena, k->m, "The embedding's rows: kiln looks up rows of GGUF's formats only.");
        return;
    }
    if (!w->format)
        return;
    const init_word sizes[] = {
        {"tensor_rows", number(k, w->rows)}, {"n", "1"}, {"k", number(k, w->columns)}, {0}};
    add_call(k, "gguf_rows", "the embedding", (init_word[]){{"format", w->format}, {"type", "f32"}, {0}},
             "token_embd", 1, (init_word){"n", range(k, 1, k->prompt ? k->prompt : 1)}, sizes);
}

static void add_head(const maker *k)
{
    if (!k->m->head.format)
        return;
    const product p = {.what = "output",
                       .comment = "the head",
                       .matrices = {&k->m->head},
                       .count = 1,
                       .reads_state = true,
                       .is_normed = true,
                       .y = "f32",
                       .epilogue = "none"};
    add_product(k, &p, false);
}

static void add_rotation(const maker *k)
{
    const model_facts *m = k->m;
    const bool has_equal_rows = m->head_dim == m->head_dim_v;
    if (!m->rope_pairs) {
        model_note(
            k->arena, k->m,
            "Positions are not rotated: append K and V to the cache with rope and rotary_dim 0, or by a copy.");
        return;
    }
    if (m->rotary_dim % 16 != 0) {
        model_note(k->arena, k->m,
                   "Positions: kiln's rope rotates a multiple of 16 elements of a head, not %s.",
                   number(k, m->rotary_dim));
        return;
    }
    if (!has_equal_rows)
        model_note(k->arena, k->m, "Rows of V are longer or shorter than those of K: rope appends K only.");
    const init_word sizes[] = {{"n", "1"},
                               {"q_heads", number(k, m->heads)},
                               {"k_heads", number(k, m->kv_heads)},
                               {"v_heads", has_equal_rows ? number(k, m->kv_heads) : "0"},
                               {0}};
    add_call(
        k, "rope", "rotates Q and K, appends K and V to the cache",
        (init_word[]){{"type", "f16"}, {"head_dim", number(k, m->head_dim)}, {"pairs", m->rope_pairs}, {0}},
        "rope", m->layer_count, (init_word){"n", range(k, 1, k->prompt ? k->prompt : 1)}, sizes);
}

static void add_attention(const maker *k)
{
    const model_facts *m = k->m;
    const uint64_t keys = m->context < MOST_KEYS ? m->context : MOST_KEYS;
    const char *head_dim_v = m->head_dim == m->head_dim_v ? "0" : number(k, m->head_dim_v);
    const init_word sizes[] = {
        {"batch", "1"},    {"q_heads", number(k, m->heads)}, {"kv_heads", number(k, m->kv_heads)},
        {"q_length", "1"}, {"k_length", number(k, keys)},    {0}};
    if (m->window > 0)
        model_note(
            k->arena, k->m,
            "A sliding window: set 'window.left' to %s in the layers that have it (the query's own key counts).",
            number(k, m->window));
    add_call(
        k, "attention", "a token, or a prompt, over the cache",
        (init_word[]){{"type", "f16"},
                      {"head_dim", number(k, m->head_dim)},
                      {"causal", "true"},
                      {"score", m->softcap > 0 ? "softcap" : "plain"},
                      {"layout", "ragged"},
                      {"head_dim_v", head_dim_v},
                      {0}},
        "attention", m->layer_count,
        (init_word){"q_length", k->prompt ? arena_format(k->arena, "[1, %s]", number(k, k->prompt)) : "1"},
        sizes);
}

void items_of_model(arena *a, model_facts *m, init_items *items)
{
    const uint64_t prompt = m->context < MOST_PROMPT ? m->context : MOST_PROMPT;
    const maker k = {a, m, items, prompt >= LEAST_PROMPT ? prompt : 0};
    if (m->norm == MODEL_NORM_LAYER)
        model_note(a, m, "LayerNorm: kiln has only RMSNorm. Apply LayerNorm before these products.");
    if (m->has_attention_post_norm || m->has_ffn_post_norm)
        model_note(a, m, "A norm between a product and its sum with the state: kiln has no kernel for it.");
    if (m->has_attention_norm && !m->has_ffn_norm && !m->has_ffn_post_norm)
        model_note(a, m,
                   "The hidden layer has no norm of its own: it reads what the products of attention read.");
    add_embedding(&k);
    for (uint32_t layer = 0; layer < m->layer_count; layer++)
        add_layer(&k, layer);
    add_head(&k);
    if (m->has_attention) {
        add_rotation(&k);
        add_attention(&k);
    } else if (m->heads == 0) {
        model_note(a, m, "Attention: the file does not say how many heads it has.");
    }
}

void items_of_example(arena *a, init_items *items)
{
    const maker k = {a, NULL, items, 0};
    const init_word elements[] = {{"n", "262144"}, {0}},
                    sizes[] = {{"m", "1"}, {"n", "512"}, {"k", "512"}, {0}};
    add_call(&k, "nf4_quantize", "f32 weights to NF4: codes of 4 bits, and a scale for each 64",
             (init_word[]){{"type", "f32"}, {"group", "64"}, {0}}, "nf4_quantize", 1, elements[0], elements);
    add_call(&k, "nf4_gemm", "C[m, n] = A[m, k] * B[k, n], B in NF4", (init_word[]){{"a", "f16"}, {0}},
             "nf4_gemm", 1, (init_word){"m", "[1, 16, 128]"}, sizes);
}
