/* Chooses the sizes of attention: lengths around the edges of tiles, parts and windows, in every layout of rows
 * and heads. */
#include "attention_sizes.h"

#include <stdio.h>
#include <string.h>

#include "../design.h"
#include "attention_inputs.h"
#include "attention_layout.h"

enum {
    MOST_GROUPED = 16,  /* parts joined at once */
    MOST_BLOCKS = 512,  /* a call without splits has more than one part per tile if it has fewer blocks */
    HEADS_TOGETHER = 16 /* heads whose causal tiles begin together */
};

typedef enum layout {
    HEADS_FIRST, /* batch, head, row */
    ROWS_FIRST,  /* batch, row, head */
    GAPS,        /* Q, K and V with gaps between rows, heads and batches */
    ONE_KV,      /* all batches share K and V */
    NO_KEYS,     /* every sequence has no keys, by its offsets */
    OVERLAPPING, /* rows of K or V begin a few elements apart: few elements, many rows */
    FAR_QUERIES, /* OVERLAPPING, with rows of Q far apart */
    ONE_VALUE,   /* FAR_QUERIES, with one row of V for all keys */
    ONE_ROW,     /* ONE_VALUE, with one row of K too */
    COUNTED,     /* OVERLAPPING, with inputs in which each key has weight */
    MANY_PAGES   /* OVERLAPPING, with more than 2^16 pages, which overlap too */
} layout;

typedef struct lengths {
    uint64_t batch, q_heads, kv_heads, q, k;
} lengths;

typedef struct sight {
    uint64_t left, right, first; /* window_left, window_right, first_keys */
    int64_t offset;
    bool has_sinks;
} sight;

static void set(size_plan *plan, const char *prefix, const char *suffix, uint64_t value)
{
    char name[32];
    snprintf(name, sizeof name, "%s%s", prefix, suffix);
    problem_find(plan->problem, name)->integer = value;
}

static void set_strides(size_plan *plan, const char *prefix, uint64_t heads, uint64_t rows, layout where,
                        uint64_t gap)
{
    uint64_t dim = attention_dim(plan->problem, prefix), row = dim + gap, head;
    if (where >= OVERLAPPING)
        row = gap;
    head = where == ROWS_FIRST ? dim : rows * row + 3 * gap;
    set(plan, prefix, "_row_stride", where == ROWS_FIRST ? heads * dim : row);
    set(plan, prefix, "_head_stride", head);
    const uint64_t batch = heads * (where == ROWS_FIRST ? rows * dim : head) + 5 * gap;
    set(plan, prefix, "_batch_stride",
        where == ONE_KV ? 0
        : batch         ? batch
                        : dim); /* legal if there are no rows */
}

/* Returns the workspace records of the parts that a call without splits may have, or of its splits. */
static uint64_t records(problem *p, uint64_t rows)
{
    uint64_t tile_k = problem_parameter(p, "tile_k"), splits = problem_integer(p, "splits");
    uint64_t tiles = (problem_integer(p, "k_length") + 2 * tile_k - 1) / (2 * tile_k);
    uint64_t most = rows * (tiles < 1 ? 1 : tiles < ATTENTION_MOST_PARTS ? tiles : ATTENTION_MOST_PARTS);
    uint64_t few = MOST_BLOCKS * problem_parameter(p, "tile_q"), asked = splits > 1 ? rows * splits : 0;
    most = most < few ? most : few;
    return most > asked ? most : asked;
}

/* Sets a mask's strides: odd rows; one matrix for all heads if there are several batches. */
static void set_mask(size_plan *plan, lengths n)
{
    uint64_t row = n.k | 1, head = n.batch > 1 ? 0 : n.q * row;
    set(plan, "mask", "_row_stride", row);
    set(plan, "mask", "_head_stride", head);
    set(plan, "mask", "_batch_stride", n.q * row);
}

/* Sets the strides of keys' scales, contiguous or apart. */
static void set_scale_strides(size_plan *plan, uint64_t heads, uint64_t rows, layout where)
{
    const bool by_rows = where == ROWS_FIRST;
    const uint64_t row = where == GAPS ? 3 : 1, head = rows * row + (where == GAPS ? 1 : 0);
    if (!attention_has_key_scales(plan->problem))
        return;
    set(plan, "scale", "_row_stride", by_rows ? heads : row);
    set(plan, "scale", "_head_stride", by_rows ? 1 : head);
    set(plan, "scale", "_batch_stride", where == ONE_KV ? 0 : heads * (by_rows ? rows : head));
}

/* Adds pages: a sequence's first page is the last of the cache. */
static void set_many_pages(size_plan *plan, uint64_t apart)
{
    problem_find(plan->problem, "pages_count")->integer += ATTENTION_MANY_PAGES;
    set(plan, "k", "_batch_stride", apart);
    set(plan, "v", "_batch_stride", apart);
    if (attention_has_key_scales(plan->problem))
        set(plan, "scale", "_batch_stride", 1);
}

static void set_scalars(size_plan *plan, const lengths *about, layout where, const sight *seen)
{
    static const struct {
        uint64_t q, k, v;
    } gaps[] = {[GAPS] = {8, 8, 16},
                [OVERLAPPING] = {8, 8, 16},
                [FAR_QUERIES] = {ATTENTION_APART, 8, 16},
                [ONE_VALUE] = {ATTENTION_APART, 8, 0},
                [ONE_ROW] = {ATTENTION_APART, 0, 0},
                [COUNTED] = {ATTENTION_COUNTED_GAP, 8, 16},
                [MANY_PAGES] = {8, 8, 16}};
    static const attention_lengths lengths_by[] = {
        [HEADS_FIRST] = LENGTHS_BY_OFFSETS, [ROWS_FIRST] = LENGTHS_IN_PART,
        [GAPS] = LENGTHS_IN_SLOTS,          [ONE_KV] = LENGTHS_ALL,
        [NO_KEYS] = LENGTHS_NONE,           [OVERLAPPING] = LENGTHS_BY_OFFSETS,
        [FAR_QUERIES] = LENGTHS_BY_OFFSETS, [ONE_VALUE] = LENGTHS_BY_OFFSETS,
        [ONE_ROW] = LENGTHS_BY_OFFSETS,     [COUNTED] = LENGTHS_BY_OFFSETS,
        [MANY_PAGES] = LENGTHS_BY_OFFSETS};
    layout of_q = where == ONE_KV                                                   ? HEADS_FIRST
                  : where == OVERLAPPING || where == COUNTED || where == MANY_PAGES ? GAPS
                                                                                    : where;
    lengths n = *about;
    n.batch = size_plan_value(plan, "batch", n.batch);
    n.q_heads = size_plan_value(plan, "q_heads", n.q_heads);
    n.kv_heads = size_plan_value(plan, "kv_heads", n.kv_heads);
    n.q = size_plan_value(plan, "q_length", n.q);
    n.k = size_plan_value(plan, "k_length", n.k);
    set(plan, "batch", "", n.batch);
    set(plan, "q_heads", "", n.q_heads);
    set(plan, "kv_heads", "", n.kv_heads);
    set(plan, "q_length", "", n.q);
    set(plan, "k_length", "", n.k);
    set(plan, "window_left", "", seen->left);
    set(plan, "window_right", "", seen->right);
    set(plan, "first_keys", "", seen->first);
    set(plan, "causal_offset", "", (uint64_t)seen->offset);
    problem_find(plan->problem, "sinks")->is_null = !seen->has_sinks;
    if (problem_find(plan->problem, "mask"))
        set_mask(plan, n);
    attention_plan_layout(plan->problem, lengths_by[where]);
    n.q = attention_query_rows(plan->problem);
    n.k = attention_key_rows(plan->problem);
    set_strides(plan, "q", n.q_heads, n.q, of_q, gaps[where].q);
    const uint64_t wider =
        attention_has_codes(plan->problem) && gaps[where].k == 8 ? 2 : 1; /* multiples of the codes' unit */
    set_strides(plan, "k", n.kv_heads, n.k, where, wider * gaps[where].k);
    set_strides(plan, "v", n.kv_heads, n.k, where, gaps[where].v);
    set_scale_strides(plan, n.kv_heads, n.k, where);
    if (where == MANY_PAGES)
        set_many_pages(plan, wider * gaps[where].k);
    set_strides(plan, "out", n.q_heads, n.q, where == ROWS_FIRST || where == GAPS ? where : HEADS_FIRST,
                where == GAPS ? 24 : 0);
    uint64_t split_k = problem_parameter(plan->problem, "split_k"),
             batches = problem_has_parameter(plan->problem, "layout", "dense") ? n.batch : 1,
             rows = batches * n.q_heads * n.q, dim = attention_dim(plan->problem, "out");
    set(plan, "workspace_size", "",
        (split_k == 0  ? records(plan->problem, rows)
         : split_k > 1 ? rows * split_k
                       : 0) *
            (dim + 8));
}

static void add_size(size_plan *plan, lengths n, layout where, const sight *seen, bool is_always)
{
    set_scalars(plan, &n, where, seen);
    (is_always ? size_plan_add_always : size_plan_add)(plan);
}

static void add(size_plan *plan, lengths n, layout where)
{
    add_size(plan, n, where, &(sight){0}, false);
}

/* Adds a size in spite of limits: few elements, except O's, that run most of a kernel's code. */
static void add_always(size_plan *plan, lengths n, layout where)
{
    add_size(plan, n, where, &(sight){0}, true);
}

/* Adds more keys than tensor cores add at once, in every part: one query tile, and both rows of its lanes. */
static void add_long(size_plan *plan)
{
    const problem *p = plan->problem;
    uint64_t split_k = problem_parameter(p, "split_k"), tile_k = problem_parameter(p, "tile_k");
    uint64_t group = problem_has_parameter(p, "pack_gqa", "true") ? 3 : 1, parts = split_k ? split_k : 1;
    const bool is_wide = attention_dim(p, "k") > 256 || attention_dim(p, "v") > 256;
    const uint64_t rows = is_wide                                ? 57
                          : problem_parameter(p, "tile_q") >= 64 ? 27
                                                                 : 9; /* rows in all blocks of a warp */
    lengths n = {1, group, 1, rows / group, parts * attention_key_warps(p) * ATTENTION_CHUNK + tile_k + 3};
    set(plan, "splits", "", !split_k);
    if (attention_is_mma(p))
        split_k > 4 ? add(plan, n, ONE_ROW) : add_always(plan, n, split_k > 1 ? ONE_ROW : ONE_VALUE);
    set(plan, "splits", "", 0);
}

static void add_parts(size_plan *plan)
{
    const problem *p = plan->problem;
    uint64_t split_k = problem_parameter(p, "split_k"), tile_k = problem_parameter(p, "tile_k");
    for (uint64_t i = 1; i <= 2; i++) /* a part has one key, or none */
        add_always(plan, (lengths){1, 2, 1, 5, (split_k - i) * tile_k + 1}, OVERLAPPING);
    add_always(plan, (lengths){1, 3, 1, 3, 128 * split_k + 5}, OVERLAPPING);
}

/* Adds sizes with splits. The last part of a group to end combines the group's parts. Groups have one part, some, or all;
 * some parts have no keys. Half of the sizes have sinks. Two tiles whose groups are combined always run once, since tiles
 * have their own counters. All other sizes leave splits open. */
static void add_splits(size_plan *plan)
{
    static const uint64_t splits[] = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 64, 65, 256};
    uint64_t tile_q = problem_parameter(plan->problem, "tile_q"),
             tile_k = problem_parameter(plan->problem, "tile_k");
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        set(plan, "splits", "", splits[i]);
        add_size(plan, (lengths){1, 2, 1, 3, splits[i] * tile_k - 1}, OVERLAPPING,
                 &(sight){.has_sinks = i % 2}, true);
        add_size(plan, (lengths){2, 2, 1, 2, 3 * tile_k + 1}, ROWS_FIRST, &(sight){0},
                 splits[i] == MOST_GROUPED + 1);
    }
    /* One part: its first keys end just after a tile's first key, and its window begins just before a tile's last
     * key. */
    set(plan, "splits", "", 1);
    add_size(plan, (lengths){1, 1, 1, tile_q, tile_q + 3 * tile_k - 6}, COUNTED,
             &(sight){.left = tile_k - 4, .first = 1}, true);
    set(plan, "splits", "", 0);
}

/* Adds sizes for pack_gqa: a tile's rows, one more, and a head's queries in two tiles; 768 rows of 128 heads,
 * which show division by an inexact reciprocal of the heads. */
static void add_packed(size_plan *plan)
{
    const problem *p = plan->problem;
    uint64_t tile_q = problem_parameter(p, "tile_q"), tile_k = problem_parameter(p, "tile_k");
    add_always(plan, (lengths){1, tile_q / 4, 1, 4, tile_k + 3}, OVERLAPPING);
    add(plan, (lengths){1, 2 * (tile_q / 3 + 1), 2, 3, 10}, ROWS_FIRST);
    add_always(plan, (lengths){1, 3, 1, tile_q / 2 + 1, tile_q}, OVERLAPPING);
    add(plan, (lengths){1, 3, 1, tile_q / 2 + 1, tile_q}, GAPS);
    set_scalars(plan, &(lengths){1, 128, 1, 6, 5}, HEADS_FIRST, &(sight){0});
    size_plan_add_far(plan, 1 << 19);
}

/* Adds edges of visibility (first keys, and the length) at each key of a tile, so that every comparison with a key's
 * number matters in some problem. With mma a lane has pairs of keys in each octet, and each edge separates two of
 * its keys. */
static void add_edges(size_plan *plan)
{
    const problem *p = plan->problem;
    const uint64_t tile_k = problem_parameter(p, "tile_k");
    const bool is_mma = attention_is_mma(p);
    enum { ROWS = 27 };
    for (uint64_t n = 0; n < tile_k / (is_mma ? 4 : 16); n++) {
        const uint64_t edge = is_mma ? n / 2 * 8 + (n % 2 ? 6 : 3) : n * 16 + (n % 2 ? 14 : 3);
        add_size(plan, (lengths){1, 1, 1, ROWS, 2 * tile_k + edge}, COUNTED,
                 &(sight){.left = 1, .first = edge}, true);
    }
}

/* Adds edges of windows, which move with the rows: a lane's rows are eight apart. There are no first keys. */
static void add_moving_edges(size_plan *plan)
{
    const problem *p = plan->problem;
    const uint64_t tile_q = problem_parameter(p, "tile_q");
    const bool is_causal = problem_has_parameter(p, "causal", "true");
    for (uint64_t ahead = 0; ahead < 32; ahead += 8) {
        const uint64_t rows = ahead == 0 ? 2 * tile_q + 3 : tile_q;
        add_size(plan, (lengths){1, 1, 1, rows, rows + ahead}, COUNTED,
                 &(sight){.left = 4, .right = is_causal ? 0 : 3}, true);
    }
}

/* Adds windows of one key, and around a tile; first keys that fill a tile or do not; a gap of a tile between first
 * keys and window; queries before the first key, queries that see only a sink, and queries after the last key. */
static void add_windows(size_plan *plan)
{
    const problem *p = plan->problem;
    const uint64_t tile_q = problem_parameter(p, "tile_q"), tile_k = problem_parameter(p, "tile_k"),
                   parts = problem_parameter(p, "split_k");
    const bool is_causal = problem_has_parameter(p, "causal", "true");
    const uint64_t few = 9, long_k = (parts + 5) * tile_k + 7;
    const struct {
        lengths n;
        sight seen;
    } rows[] = {
        {{1, 3, 1, few, long_k}, {.left = (parts + 2) * tile_k + 1, .first = 3, .has_sinks = true}},
        {{1, 1, 1, few, 4 * tile_k + 1},
         {.left = tile_k, .first = tile_k + 1}}, /* the last query does not see a tile's first key */
        {{1, 1, 1, few, 3 * tile_k}, {.left = 2, .first = tile_k}},
        {{1, 2, 1, few, tile_k + 3}, {.right = 1, .offset = -(int64_t)tile_k - 6, .has_sinks = true}},
        {{1, 1, 1, few, tile_k + 3}, {.left = 8, .offset = 5}},
        {{1, 1, 1, few, tile_k + 3}, {.left = 4, .first = 2, .offset = 1 << 29}},
        {{1, 1, 1, tile_q + 1, 2 * tile_k - 1},
         {.left = 7, .right = is_causal ? 1 : tile_k + 2, .offset = -2}},
        {{1, 2, 1, tile_q + 1, 5}, {.has_sinks = true}}, /* a sink for each of a lane's rows */
        {{2, 2, 1, few, tile_k + 3}, {.right = is_causal ? 0 : 2}},
        {{1, 1, 1, 27, 9}, {.right = 1}}, /* 18 of a tile's queries see nothing */
        {{1, 1, 1, 27, tile_k + 3}, {.left = tile_k, .first = tile_k}}, /* first keys within the window */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        add_size(plan, rows[i].n, rows[i].seen.has_sinks ? OVERLAPPING : COUNTED, &rows[i].seen, true);
}

/* Adds batches, heads and rows whose offsets need more than 20 bits. */
static void add_far(size_plan *plan)
{
    enum { FAR = (1 << 20) + 24, FAR_ROWS = (1 << 19) + 16, MOST = 6 * FAR };
    static const struct {
        lengths n;
        const char *stride;
        uint64_t apart;
    } rows[] = {{{2, 1, 1, 2, 5}, "_batch_stride", FAR},
                {{1, 2, 2, 2, 5}, "_head_stride", FAR},
                {{1, 1, 1, 3, 3}, "_row_stride", FAR_ROWS}};
    static const char *const matrices[] = {"q", "k", "v", "out"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t m = 0; m < sizeof matrices / sizeof *matrices; m++) {
            set_scalars(plan, &rows[i].n, HEADS_FIRST, &(sight){0});
            set(plan, matrices[m], rows[i].stride, rows[i].apart);
            size_plan_add_far(plan, MOST);
        }
}

/* Adds window limits that need more bits than the lengths, up to the rules' bounds; then more than 2048 queries;
 * then keys whose numbers need 17 bits. */
static void add_large_limits(size_plan *plan)
{
    static const sight rows[] = {
        {.left = (1 << 16) + 2},       {.left = 1 << 29},     {.left = 1, .first = (1 << 16) + 1},
        {.left = 1, .first = 1 << 30}, {.offset = INT32_MAX}, {.left = 3, .offset = INT32_MAX},
        {.offset = INT32_MIN},         {.first = 3}}; /* the last has no effect without a window */
    plan->is_brief = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        add_size(plan, (lengths){1, 1, 1, 2, 60}, COUNTED, &rows[i], true);
    plan->is_brief = false;
    set_scalars(plan, &(lengths){1, 1, 1, 2100, 2100}, OVERLAPPING, &(sight){.left = 8});
    size_plan_add_far(plan, 1 << 21);
    set_scalars(plan, &(lengths){1, 1, 1, 2, (1 << 16) + 70}, OVERLAPPING, &(sight){.left = 40});
    size_plan_add_far(plan, 1 << 21);
}

/* Adds more pages than 16 bits can number, a few elements apart. */
static void add_many_pages(size_plan *plan)
{
    enum { MOST = 1 << 21 };
    set_scalars(plan, &(lengths){2, 1, 1, 2, 75}, MANY_PAGES, &(sight){0});
    size_plan_add_far(plan, MOST);
}

/* Adds batches of sequences of every length, with rows by offsets and in slots. */
static void add_sequences(size_plan *plan)
{
    const problem *p = plan->problem;
    uint64_t tile_q = problem_parameter(p, "tile_q"), tile_k = problem_parameter(p, "tile_k");
    const uint64_t parts = problem_parameter(p, "split_k"), tiles = 4 * (parts > 0 ? parts : 3);
    const sight window = {.left = tile_k / 2, .right = 1, .first = 3, .has_sinks = true};
    const sight gap = {.left = tiles * tile_k + tile_k / 2, .right = 1, .first = 3 * tile_k + 3};
    enum { ALL_LENGTHS = 9 };
    add_always(plan, (lengths){ALL_LENGTHS, 1, 1, tile_q + 5, 2 * tile_k + 5}, OVERLAPPING);
    add_size(plan, (lengths){ALL_LENGTHS, 3, 1, 3, 4 * tile_k + 9}, OVERLAPPING, &window, true);
    add(plan, (lengths){ALL_LENGTHS, 2, 1, 5, tile_k + 1}, ROWS_FIRST);
    add(plan, (lengths){ALL_LENGTHS, 2, 2, 2, tile_k + 1}, GAPS);
    set_scalars(plan, &(lengths){2 * ALL_LENGTHS, 1, 1, 2, 9}, GAPS,
                &(sight){0}); /* an even number of page entries */
    size_plan_add_far(plan, 1 << 21);
    if (problem_has_parameter(p, "layout", "ragged"))
        add_always(plan, (lengths){2, 2, 1, 3, 9}, NO_KEYS);
    for (uint64_t i = 0; i < 2; i++) /* later tiles of a part come after the gap, in pages of two sizes */
        add_size(plan, (lengths){1, 3, 1, 3, (tiles + 7) * tile_k + 7 + i}, OVERLAPPING, &gap, true);
}

/* ---- models ------------------------------------------------------------------------------------------------------- */

/* Head counts of published models, from their config.json. Each variant runs the first six, and a third of the
 * others. */
static const struct {
    const char *model;
    uint64_t q_heads, kv_heads;
} models[] = {
    {"Llama 3.1 70B, Qwen2.5 72B, gpt-oss 120B", 64, 8},
    {"Llama 2 13B", 40, 40},
    {"Falcon 7B", 71, 1},
    {"Qwen2.5 32B", 40, 8},
    {"Qwen2.5 0.5B", 14, 2},
    {"Qwen2.5 1.5B", 12, 2},
    {"Llama 3.1 8B, Mistral 7B, Qwen3 8B", 32, 8},
    {"Qwen2.5 7B", 28, 4},
    {"Gemma 3 27B", 32, 16},
    {"Qwen2.5 3B", 16, 2},
    {"Phi-4", 40, 10},
    {"GLM-4 9B", 32, 2},
    {"SmolLM2 135M", 9, 3},
    {"SmolLM2 360M", 15, 5},
    {"Command R+", 96, 8},
    {"GPT-2", 12, 12},
    {"Gemma 3 1B", 4, 1},
    {"Qwen3 235B", 64, 4},
    {"Phi-3 mini", 32, 32},
    {"StarCoder 15B", 48, 1},
    {"Gemma 2 2B", 8, 4},
    {"DeepSeek V3, with its latent key", 128, 1},
    {"Llama 3.1 405B", 128, 8},
};

/* Adds head counts with one or two queries and few keys: the grouping of heads does not depend on lengths. */
static void add_models(size_plan *plan)
{
    enum { COUNT = sizeof models / sizeof *models, FIRST = 6, IN_TURN = 3 };
    const uint64_t turn = random_below(random_open(0, plan->problem->variant->id), 0, IN_TURN);
    plan->is_brief = true;
    for (size_t i = 0; i < COUNT; i++)
        if (i < FIRST || i % IN_TURN == turn || plan->limits.is_full)
            add_size(plan, (lengths){1, models[i].q_heads, models[i].kv_heads, 1 + i % 2, 5 + i},
                     i % 3 ? HEADS_FIRST : OVERLAPPING, &(sight){.has_sinks = i % 2}, true);
    plan->is_brief = false;
}

/* ---- the design --------------------------------------------------------------------------------------------------- */

static void set_design(size_plan *plan, const uint64_t v[MOST_AXES])
{
    static const layout layouts[] = {OVERLAPPING, HEADS_FIRST, ROWS_FIRST, GAPS, ONE_KV};
    const bool is_causal = problem_has_parameter(plan->problem, "causal", "true");
    const sight seen = {.left = v[5],
                        .right = is_causal ? 0
                                 : v[5]    ? 3
                                           : 0,
                        .first = v[6],
                        .has_sinks = v[7] & 1};
    const lengths n = {v[0], v[1] * v[2], v[2], v[3], v[4]};
    set(plan, "splits", "", 0);
    set_scalars(plan, &n, layouts[v[7]], &seen);
}

/* Adds the design; larger numbers of heads are in add_models. */
static void add_design(size_plan *plan)
{
    enum {
        MOST_WORK = 1 << 14,
        MOST_BATCH = 17,
        MOST_RATIO = 17,
        MOST_KV_HEADS = 17,
        MOST_SEEN = 65,
        LAYOUTS = 5
    };
    static const size_axis axes[] = {
        {.name = "batch", .unit = 1, .most = MOST_BATCH},
        {.name = "q_heads / kv_heads", .unit = 1, .most = MOST_RATIO},
        {.name = "kv_heads", .unit = 1, .most = MOST_KV_HEADS},
        {.name = "q_length", .unit = 1},
        {.name = "k_length", .unit = 1},
        {.name = "window_left", .unit = 1, .most = MOST_SEEN, .kind = AXIS_OPTION},
        {.name = "first_keys", .unit = 1, .most = MOST_SEEN, .kind = AXIS_OPTION},
        {.name = "layout", .unit = 1, .most = LAYOUTS - 1, .kind = AXIS_CHOICE}};
    size_plan_cover(plan, axes, sizeof axes / sizeof *axes, set_design, MOST_WORK);
}

/* Adds lengths around every edge of tiles, of queries and keys together; whole tiles in every layout; heads and
 * batches at small lengths. */
void attention_plan(size_plan *plan)
{
    const problem *p = plan->problem;
    uint64_t tile_q = problem_parameter(p, "tile_q"), tile_k = problem_parameter(p, "tile_k"),
             dim = problem_parameter(p, "head_dim");
    static const uint64_t few[][2] = {{0, 2}, {1, 1}, {2, 2}, {5, 0}, {5, 1}};
    for (size_t i = 0; i < sizeof few / sizeof *few; i++)
        add(plan, (lengths){1, 1, 1, few[i][0], few[i][1]}, HEADS_FIRST);
    for (uint64_t i = 0; i <= 2; i++)
        add_always(plan, (lengths){1, 1, 1, tile_q - 1 + i, tile_k - 1 + i}, OVERLAPPING);
    for (uint64_t k = tile_k - 1; k <= tile_k + 1; k++)
        add(plan, (lengths){1, 1, 1, 5, k}, HEADS_FIRST);
    for (uint64_t i = tile_q - 1; i <= tile_q + 1; i++)
        add(plan, (lengths){1, 1, 1, i, i + (i & 1)}, OVERLAPPING);
    add(plan, (lengths){1, 2, 1, tile_q, 2 * tile_k}, ROWS_FIRST);
    add(plan, (lengths){1, 2, 2, tile_q, 2 * tile_k}, GAPS);
    add(plan, (lengths){2, 1, 1, tile_q, 2 * tile_k}, ONE_KV);
    add_edges(plan);
    add_always(plan, (lengths){1, 1, 1, tile_q + 3, 2 * tile_k + 11},
               OVERLAPPING); /* causal: 8 beyond the diagonal */
    add_always(plan, (lengths){1, 1, 1, 19, 5 * tile_k - 3}, FAR_QUERIES);
    add(plan, (lengths){1, 1, 1, 100, 100}, HEADS_FIRST);
    if (problem_has_parameter(p, "causal", "true")) {
        add_always(plan, (lengths){1, 1, 1, 5, tile_k + 3},
                   COUNTED); /* query 0 does not see a tile's last key */
        add_always(plan, (lengths){1, 1, 1, 70, 33}, OVERLAPPING); /* 37 queries see nothing */
        set_scalars(plan, &(lengths){1, 2 * HEADS_TOGETHER + 5, 1, tile_q + 1, 3}, OVERLAPPING, &(sight){0});
        if (problem_parameter(p, "split_k") == 1) /* the last group of HEADS_TOGETHER has 5 heads */
            size_plan_add_far(plan, 1 << 21);
        if (problem_parameter(p, "split_k") == 1 && dim * tile_q <= 4096) /* tiles begin in a special order */
            add_size(plan, (lengths){1, HEADS_TOGETHER + 2, HEADS_TOGETHER + 2, tile_q + 1, 3}, OVERLAPPING,
                     &(sight){.offset = (int64_t)tile_q}, true);
    }
    add(plan, (lengths){1, 1, 1, 3, 1000}, OVERLAPPING);
    add_windows(plan);
    add_moving_edges(plan);
    add_long(plan);
    if (problem_parameter(p, "split_k") > 1)
        add_parts(plan);
    if (problem_parameter(p, "split_k") == 0)
        add_splits(plan);
    add_always(plan, (lengths){2, 4, 2, 1, 3}, OVERLAPPING); /* heads and batches at little cost */
    add(plan, (lengths){2, 6, 2, 9, 21}, ROWS_FIRST);
    add(plan, (lengths){2, 3, 3, 5, 18}, GAPS);
    add(plan, (lengths){3, 2, 1, 4, 7}, ONE_KV);
    if (problem_has_parameter(p, "pack_gqa", "true"))
        add_packed(plan);
    if (!problem_has_parameter(p, "layout", "dense"))
        add_sequences(plan);
    if (problem_has_parameter(p, "layout", "paged"))
        add_many_pages(plan);
    add_models(plan);
    add_large_limits(plan);
    add_far(plan);
    add_design(plan);
    add(plan, (lengths){0, 2, 1, 4, 7}, HEADS_FIRST);
    add(plan, (lengths){1, 0, 1, 4, 7}, HEADS_FIRST);
    if (dim <= 16 || plan->limits.is_full)
        add(plan, (lengths){1, 1, 1, 1000, 1000}, HEADS_FIRST);
}
