#include "attention_layout.h"

#include "codes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the contract ----------------------------------------------------------------------------------------------- */

/* Returns element i of an integer array on the device; `otherwise` if the call has no such array. */
static uint64_t number_of(problem *p, const char *name, uint64_t i, uint64_t otherwise)
{
    const argument *a = problem_find(p, name);
    return a && a->count > 0 ? element_bits(a->about->type, a->host, i) : otherwise;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

attention_sequence attention_sequence_of(problem *p, uint64_t batch)
{
    uint64_t most_queries = problem_integer(p, "q_length"), most_keys = problem_integer(p, "k_length");
    attention_sequence s = {.batch = batch};
    s.q_first = number_of(p, "sequences_q_offsets", batch, batch * most_queries);
    s.q_length = number_of(p, "sequences_q_offsets", batch + 1, s.q_first + most_queries) - s.q_first;
    s.q_length = least(s.q_length, most_queries);
    s.k_first = number_of(p, "sequences_k_offsets", batch, 0);
    s.k_length = number_of(p, "sequences_k_offsets", batch + 1, s.k_first + most_keys) - s.k_first;
    s.k_length = least(number_of(p, "sequences_k_lengths", batch, s.k_length), most_keys);
    return s;
}

uint64_t attention_stride(problem *p, const char *matrix, const char *suffix)
{
    char name[32];
    snprintf(name, sizeof name, "%s%s", matrix, suffix);
    return problem_integer(p, name);
}

static bool is_dense(const problem *p)
{
    return problem_has_parameter(p, "layout", "dense");
}

static bool is_paged(const problem *p)
{
    return problem_has_parameter(p, "layout", "paged");
}

/* Returns whether offsets place the keys, rather than a batch stride or pages. */
static bool has_key_offsets(problem *p)
{
    const argument *a = problem_find(p, "sequences_k_offsets");
    return a && !a->is_null;
}

/* Returns the index in page_table of key j's page. */
static uint64_t entry_of(problem *p, uint64_t batch, uint64_t j)
{
    uint64_t even = batch * problem_integer(p, "pages_stride");
    return number_of(p, "pages_starts", batch, even) + j / problem_integer(p, "pages_size");
}

uint64_t attention_query_at(problem *p, const attention_sequence *s, const char *matrix, uint64_t head,
                            uint64_t i)
{
    uint64_t first = is_dense(p) ? s->batch * attention_stride(p, matrix, "_batch_stride")
                                 : s->q_first * attention_stride(p, matrix, "_row_stride");
    return first + head * attention_stride(p, matrix, "_head_stride") +
           i * attention_stride(p, matrix, "_row_stride");
}

uint64_t attention_key_at(problem *p, const attention_sequence *s, const char *matrix, uint64_t head,
                          uint64_t j)
{
    uint64_t first = has_key_offsets(p) ? s->k_first * attention_stride(p, matrix, "_row_stride")
                                        : s->batch * attention_stride(p, matrix, "_batch_stride");
    if (is_paged(p)) {
        first = number_of(p, "pages_table", entry_of(p, s->batch, j), 0) *
                attention_stride(p, matrix, "_batch_stride");
        j %= problem_integer(p, "pages_size");
    }
    return first + head * attention_stride(p, matrix, "_head_stride") +
           j * attention_stride(p, matrix, "_row_stride");
}

uint64_t attention_log_at(problem *p, const attention_sequence *s, uint64_t head, uint64_t i)
{
    if (is_dense(p))
        return (s->batch * problem_integer(p, "q_heads") + head) * problem_integer(p, "q_length") + i;
    return head * problem_integer(p, "sequences_q_rows") + s->q_first + i;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

enum { UNUSED_ROWS = 2, TOO_LONG = 3 };

/* Returns a length: from 0 to the most, and around the edges of tiles; the first sequence has the most. */
static uint64_t length_of(uint64_t number, uint64_t most, uint64_t edge)
{
    const uint64_t lengths[] = {most, 0, 1, most - (most > 0), most / 2 + 1, edge - 1, edge, edge + 1};
    return least(lengths[number % 8], most);
}

/* Returns the excess over q_length and k_length; the ninth sequence is longer and is cut to them. */
static uint64_t beyond_most(uint64_t batch)
{
    return batch % 16 == 8 ? TOO_LONG : 0;
}

static uint64_t queries_of(const problem *p, uint64_t most, uint64_t batch)
{
    return length_of(3 * batch, most, problem_parameter(p, "tile_q")) + beyond_most(batch);
}

static uint64_t keys_of(const problem *p, uint64_t most, uint64_t batch)
{
    return length_of(batch, most, problem_parameter(p, "tile_k")) + beyond_most(batch);
}

static uint64_t no_keys(const problem *p, uint64_t most, uint64_t batch)
{
    (void)p, (void)most, (void)batch;
    return 0;
}

/* Fills the batch's offsets; returns the end of the last sequence. A null array: only returns the end. */
static uint64_t make_offsets(problem *p, const char *name, const char *most,
                             uint64_t (*length)(const problem *, uint64_t, uint64_t), uint64_t unused)
{
    argument *a = problem_find(p, name);
    uint64_t end = 0, batches = problem_integer(p, "batch");
    for (uint64_t batch = 0; batch <= batches; batch++) {
        if (a->host && a->count > 0)
            element_set_bits(a->about->type, a->host, batch, end);
        end += batch < batches ? length(p, problem_integer(p, most), batch) + unused : 0;
    }
    return end;
}

static uint64_t unused_rows(problem *p)
{
    return problem_find(p, "sequences_k_lengths")->is_null ? 0 : UNUSED_ROWS;
}

static uint64_t pages_of(problem *p, uint64_t keys)
{
    const uint64_t size = problem_integer(p, "pages_size");
    return (keys + size - 1) / size;
}

/* Sets the strides of page_table: entries of a sequence adjacent, or as far apart as the longest sequence needs
 * plus one. */
static void plan_pages(problem *p, attention_lengths how)
{
    static const uint64_t sizes[] = {8, 24, 64, 40, 16, 72};
    uint64_t batches = problem_integer(p, "batch"), most = problem_integer(p, "k_length"), entries = 0;
    uint64_t number = problem_integer(p, "q_length") + most;
    problem_find(p, "pages_size")->integer = sizes[number % (sizeof sizes / sizeof *sizes)];
    problem_find(p, "sequences_k_lengths")->is_null = how == LENGTHS_ALL;
    problem_find(p, "pages_starts")->is_null = how == LENGTHS_ALL || how == LENGTHS_IN_SLOTS;
    const bool is_even = problem_find(p, "pages_starts")->is_null;
    problem_find(p, "pages_stride")->integer = is_even ? pages_of(p, most) + 1 : 0;
    for (uint64_t batch = 0; batch < batches; batch++)
        entries += pages_of(p, least(keys_of(p, most, batch), most));
    if (is_even)
        entries = batches * (pages_of(p, most) + 1);
    problem_find(p, "pages_entries")->integer = entries > pages_of(p, most) ? entries : pages_of(p, most);
    problem_find(p, "pages_count")->integer = entries + 2;
}

void attention_plan_layout(problem *p, attention_lengths how)
{
    if (is_dense(p))
        return;
    bool by_offsets = how == LENGTHS_BY_OFFSETS || how == LENGTHS_IN_PART || how == LENGTHS_NONE,
         has_keys = by_offsets && how != LENGTHS_NONE;
    uint64_t batches = problem_integer(p, "batch"), most = problem_integer(p, "q_length"),
             queries = batches * most;
    problem_find(p, "sequences_q_offsets")->is_null = !by_offsets;
    problem_find(p, "sequences_k_lengths")->is_null = how != LENGTHS_IN_PART && how != LENGTHS_IN_SLOTS;
    if (by_offsets)
        queries = make_offsets(p, "sequences_q_offsets", "q_length", queries_of, 0);
    problem_find(p, "sequences_q_rows")->integer = queries > most ? queries : most;
    if (is_paged(p)) {
        plan_pages(p, how);
        return;
    }
    problem_find(p, "sequences_k_offsets")->is_null = !by_offsets;
    problem_find(p, "sequences_k_rows")->integer =
        has_keys ? make_offsets(p, "sequences_k_offsets", "k_length", keys_of, unused_rows(p)) : 0;
}

uint64_t attention_query_rows(problem *p)
{
    return is_dense(p) ? problem_integer(p, "q_length") : problem_integer(p, "sequences_q_rows");
}

uint64_t attention_key_rows(problem *p)
{
    if (is_paged(p))
        return problem_integer(p, "pages_size");
    return has_key_offsets(p) ? problem_integer(p, "sequences_k_rows") : problem_integer(p, "k_length");
}

/* ---- inputs ----------------------------------------------------------------------------------------------------- */

/* Returns a step that visits every page once. */
static uint64_t step_through(uint64_t pages)
{
    for (uint64_t step = pages * 5 / 8 + 1;; step++) {
        uint64_t a = pages, b = step;
        while (b > 0) {
            uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return step;
    }
}

/* Scatters the pages of each sequence; the first page used is the cache's last. Entries after the last key are
 * invalid. */
static void make_pages(problem *p)
{
    argument *table = problem_find(p, "pages_table"), *starts = problem_find(p, "pages_starts");
    uint64_t most = problem_integer(p, "k_length"), pages = problem_integer(p, "pages_count");
    uint64_t step = step_through(pages), start = 0, used = 0;
    for (uint64_t i = 0; i < table->count; i++)
        element_set_bits(table->about->type, table->host, i, UINT64_MAX);
    for (uint64_t batch = 0; batch <= problem_integer(p, "batch"); batch++) {
        if (starts->count > 0)
            element_set_bits(starts->about->type, starts->host, batch, start);
        uint64_t keys = batch < problem_integer(p, "batch") ? attention_sequence_of(p, batch).k_length : 0;
        start += pages_of(p, least(keys, most));
        for (uint64_t j = 0; j < keys; j += problem_integer(p, "pages_size"))
            element_set_bits(table->about->type, table->host, entry_of(p, batch, j),
                             (pages - 1 + used++ * step) % pages);
    }
}

void attention_make_layout(problem *p)
{
    if (is_dense(p))
        return;
    argument *lengths = problem_find(p, "sequences_k_lengths");
    make_offsets(p, "sequences_q_offsets", "q_length", queries_of, 0);
    if (!is_paged(p))
        make_offsets(p, "sequences_k_offsets", "k_length",
                     problem_integer(p, "sequences_k_rows") > 0 ? keys_of : no_keys, unused_rows(p));
    for (uint64_t batch = 0; batch < lengths->count; batch++)
        element_set_bits(lengths->about->type, lengths->host, batch,
                         keys_of(p, problem_integer(p, "k_length"), batch));
    if (is_paged(p))
        make_pages(p);
}

/* Sets elements outside of sequences to NaN: the first `dim` of each row, with the strides of `matrix`. Signed bytes have
 * no NaN. */
static void poison(problem *p, argument *a, const char *matrix, uint64_t dim)
{
    unsigned char *is_seen = pool_allocate(&p->memory, (size_t)a->count + 1);
    for (uint64_t batch = 0; batch < problem_integer(p, "batch"); batch++) {
        attention_sequence s = attention_sequence_of(p, batch);
        for (uint64_t i = 0; i < problem_integer(p, "kv_heads") * s.k_length; i++)
            memset(is_seen + attention_key_at(p, &s, matrix, i / s.k_length, i % s.k_length), 1, (size_t)dim);
    }
    for (uint64_t i = 0; i < a->count; i++)
        if (!is_seen[i])
            element_set(a->about->type, a->host, i, a->about->type == ELEMENT_I8 ? CODES_E4M3_NAN : NAN);
}

void attention_poison(problem *p)
{
    if (is_dense(p))
        return;
    static const char *const names[] = {"k", "v"};
    for (int i = 0; i < 2; i++) {
        poison(p, attention_keys(p, names[i]), names[i], attention_dim(p, names[i]));
        if (attention_has_key_scales(p))
            poison(p, attention_scales(p, names[i]), "scale", 1);
    }
}
