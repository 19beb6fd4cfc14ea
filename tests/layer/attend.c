/* Attention of a layer with grouped heads: the whole prompt, then token by token with a growing cache.
 *
 * The cache is longer than the sequence; NaNs fill the rest. The prompt uses the causal kernel. Each token after it appends a
 * row to K and V; its query sees all keys without a mask, and uses the kernel that splits the keys over thread blocks. It runs
 * twice, the second time with thread blocks in reverse order, and must give the same bits. Then the causal kernel processes
 * prompt and tokens together. Last, a single head with contiguous rows, which is the case that most attention kernels handle.
 */
#include "attend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lengths that are not multiples of a tile, two sequences at once, and a cache with many keys. */
static const context contexts[] = {
    {.batch = 2, .cached = 0, .prompt = 77, .steps = 3},
    {.batch = 1, .cached = 0, .prompt = 200, .steps = 3},
    {.batch = 1, .cached = 523, .prompt = 9, .steps = 2},
};

/* ---- results ----------------------------------------------------------------------------------------------------- */

static results results_new(const context *c)
{
    const size_t rows = (size_t)c->batch * context_queries(c) * QUERY_HEADS;
    return (results){host_new(rows * HEAD, sizeof(float)), host_new(rows, sizeof(float))};
}

static void results_free(results *r)
{
    free(r->out);
    free(r->log);
}

static bool results_agree(const context *c, const results *a, const results *b)
{
    const size_t rows = (size_t)c->batch * context_queries(c) * QUERY_HEADS;
    return memcmp(a->out, b->out, rows * HEAD * sizeof(float)) == 0 &&
           memcmp(a->log, b->log, rows * sizeof(float)) == 0;
}

/* ---- comparison with float64 ------------------------------------------------------------------------------------- */

typedef struct findings {
    comparison prefill, decoding, together, beside, log;
} findings;

/* Compares one query of one head. */
static void compare_row(comparison *c, const float *got, const exact_row *exact, const exact_row *ideal)
{
    for (uint32_t d = 0; d < HEAD; d++)
        compare(c, (double)got[d], exact->out[d], exact->bound[d], ideal->out[d]);
}

/* `given` is the device's input, `ideal` the same before rounding to the type. */
static findings compare_all(const context *c, const tensors *given, const tensors *ideal, element_type type,
                            const results *streamed, const results *whole)
{
    const uint32_t queries = context_queries(c);
    findings f = {0};
    for (uint32_t n = 0; n < c->batch * QUERY_HEADS * queries; n++) {
        const uint32_t batch = n / queries / QUERY_HEADS, head = n / queries % QUERY_HEADS, i = n % queries;
        const size_t at = ((size_t)batch * queries + i) * QUERY_ROW + (size_t)head * HEAD;
        exact_row row, ideal_row;
        attend_exactly(given, c, batch, i, head, type, &row);
        attend_exactly(ideal, c, batch, i, head, type, &ideal_row);
        const bool is_decoded = i >= c->prompt;
        compare_row(is_decoded ? &f.decoding : &f.prefill, streamed->out + at, &row, &ideal_row);
        compare_row(&f.together, whole->out + at, &row, &ideal_row);
        for (uint32_t d = 0; is_decoded && d < HEAD; d++)
            compare(&f.beside, (double)streamed->out[at + d], (double)whole->out[at + d], 2 * row.bound[d],
                    ideal_row.out[d]);
        compare(&f.log, (double)streamed->log[n], row.log, row.log_bound, ideal_row.log);
        compare(&f.log, (double)whole->log[n], row.log, row.log_bound, ideal_row.log);
    }
    return f;
}

static bool report_all(const context *c, const char *type, const findings *f)
{
    const uint32_t heads = c->batch * QUERY_HEADS, prompt = heads * c->prompt, steps = heads * c->steps;
    const uint32_t keys = context_keys(c);
    const struct {
        const char *what;
        uint32_t rows, columns, keys;
        const comparison *found;
    } lines[] = {
        {"prefill", prompt, HEAD, c->cached + c->prompt, &f->prefill},
        {"decoding", steps, HEAD, keys, &f->decoding},
        {"prefill of all", prompt + steps, HEAD, keys, &f->together},
        {"decoding / prefill", steps, HEAD, keys, &f->beside},
        {"log-sum-exp", 2 * (prompt + steps), 1, keys, &f->log},
    };
    bool fine = true;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char title[64];
        snprintf(title, sizeof title, "%s, %s", lines[i].what, type);
        fine &= report(title, lines[i].rows, lines[i].columns, lines[i].keys, lines[i].found);
    }
    return fine;
}

static bool attend_in(const context *c, const tensors *ideal, element_type type, const char *name)
{
    tensors given = tensors_round(ideal, type);
    results streamed = results_new(c), again = results_new(c), whole = results_new(c);
    bool fine = attend_stream(c, &given, type, &streamed);
    device_reverse_blocks(true);
    fine &= attend_stream(c, &given, type, &again);
    device_reverse_blocks(false);
    fine &= attend_together(c, &given, type, &whole);
    const findings f = compare_all(c, &given, ideal, type, &streamed, &whole);
    fine &= report_all(c, name, &f);
    const bool agree = results_agree(c, &streamed, &again);
    printf("two runs, %s: %s\n", name, agree ? "the same bits" : "WRONG, they differ");
    results_free(&streamed);
    results_free(&again);
    results_free(&whole);
    tensors_free(&given);
    return fine && agree;
}

/* ---- one head ---------------------------------------------------------------------------------------------------- */

/* Runs the last query head, with the last head of K and V. */
static bool attend_alone(const context *c, const tensors *ideal, element_type type, const char *name)
{
    const uint32_t head = QUERY_HEADS - 1, length = c->prompt;
    const size_t count = (size_t)length * HEAD, kv = head / GROUP * count;
    tensors given = tensors_round(ideal, type);
    float *q = host_new(count, sizeof *q), *out = host_new(count, sizeof *out);
    comparison found = {0};
    char title[64];
    for (uint32_t i = 0; i < length; i++)
        memcpy(q + (size_t)i * HEAD, given.q + (size_t)i * QUERY_ROW + head * HEAD, HEAD * sizeof *q);
    attend_head(q, given.k + kv, given.v + kv, out, length, 1 / sqrt(HEAD), type);
    for (uint32_t i = 0; i < length; i++) {
        exact_row row, ideal_row;
        attend_exactly(&given, c, 0, i, head, type, &row);
        attend_exactly(ideal, c, 0, i, head, type, &ideal_row);
        compare_row(&found, out + (size_t)i * HEAD, &row, &ideal_row);
    }
    free(q);
    free(out);
    tensors_free(&given);
    snprintf(title, sizeof title, "one head, %s", name);
    return report(title, length, HEAD, length, &found);
}

/* ---- the job ----------------------------------------------------------------------------------------------------- */

static bool attend_types(const matrix *real, const context *c,
                         bool (*attend)(const context *, const tensors *, element_type, const char *))
{
    static const char *const names[] = {[F32] = "f32", [F16] = "f16", [BF16] = "bf16"};
    tensors ideal = tensors_make(real, c);
    bool fine = true;
    for (int type = F32; type <= BF16; type++)
        fine &= attend(c, &ideal, (element_type)type, names[type]);
    tensors_free(&ideal);
    printf("%u x (%u tokens in the cache, %u prefilled, %u decoded)%s\n\n", c->batch, c->cached, c->prompt,
           c->steps, fine ? "" : " WRONG");
    return fine;
}

bool attend_sequences(const matrix *real)
{
    static const context alone = {.batch = 1, .prompt = 100};
    bool fine = true;
    for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++)
        fine &= attend_types(real, &contexts[i], attend_in);
    return attend_types(real, &alone, attend_alone) && fine;
}
