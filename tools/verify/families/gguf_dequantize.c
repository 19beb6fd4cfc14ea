/* References of gguf_dequantize and gguf_rows: each element in float64, rounded to f32, then to the type. */
#include "gguf_dequantize.h"

#include "../design.h"
#include <math.h>

/* ---- references --------------------------------------------------------------------------------------------------- */

/* Expects `count` elements of whole blocks from block `first` on, in `out` from `at` on. */
static void expect_blocks(const gguf_format *f, const argument *packed, uint64_t first, argument *out,
                          uint64_t at, uint64_t count)
{
    const unsigned char *bytes = (const unsigned char *)packed->host + first * f->bytes;
    gguf_block b;
    for (uint64_t i = 0; i < count; i++) {
        if (i % f->elements == 0)
            gguf_read(f, &b, bytes + i / f->elements * f->bytes);
        uint64_t bits = number_encode(ELEMENT_F32, gguf_value(&b, (unsigned)(i % f->elements)));
        element_set(out->about->type, out->expected_bits, at + i, number_decode(ELEMENT_F32, bits));
    }
}

void gguf_expect(const gguf_format *f, problem *p)
{
    argument *out = problem_find(p, "out");
    expect_bits(p, out);
    expect_blocks(f, problem_find(p, "packed"), 0, out, 0, out->count);
}

static void expect_all(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    gguf_expect(gguf_of(p), p);
}

static void expect_rows(problem *p, const input_pattern *pattern)
{
    (void)pattern;
    const gguf_format *f = gguf_of(p);
    argument *out = problem_find(p, "out"), *index = problem_find(p, "index");
    uint64_t k = problem_integer(p, "k"), rows = problem_integer(p, "tensor_rows");
    expect_bits(p, out);
    for (uint64_t row = 0; row < index->count; row++) {
        uint64_t from = element_bits(ELEMENT_U32, index->host, row);
        if (from < rows)
            expect_blocks(f, problem_find(p, "packed"), from * (k / f->elements), out, row * k, k);
        else
            for (uint64_t i = 0; i < k; i++)
                element_set(out->about->type, out->expected_bits, row * k + i, (double)NAN);
    }
}

/* ---- inputs ------------------------------------------------------------------------------------------------------- */

static void make_all(problem *p, const input_pattern *pattern, random_stream s)
{
    gguf_fill(gguf_of(p), problem_find(p, "packed"), pattern->number, s);
}

/* Makes row indices. Except for random weights, one index in eight is beyond the last row, by as little or as much
 * as possible; the last row is included. */
static void make_rows(problem *p, const input_pattern *pattern, random_stream s)
{
    argument *index = problem_find(p, "index");
    uint64_t rows = problem_integer(p, "tensor_rows");
    const bool is_usual = pattern->number == GGUF_RANDOM;
    make_all(p, pattern, s);
    for (uint64_t i = 0; i < index->count; i++) {
        uint64_t turn = is_usual ? 2 : random_below(random_fork(s, 3), i, 16);
        uint64_t row = rows > 0 ? random_below(random_fork(s, 4), i, rows) : 0;
        if (turn < 2 || rows == 0)
            row = turn == 0 ? rows : UINT32_MAX;
        else if (turn == 3 || i % 8 == 0)
            row = rows - 1;
        element_set_bits(ELEMENT_U32, index->host, i, row);
    }
}

/* ---- sizes -------------------------------------------------------------------------------------------------------- */

/* Tries sizes around every edge of tiles (2048 elements) and thread blocks (8 tiles), and each number below the
 * first edge. */
enum { MOST_WORK = 1 << 20 };

static void plan_all(size_plan *plan)
{
    const uint64_t elements = gguf_of(plan->problem)->elements;
    argument *n = problem_find(plan->problem, "n");
    edge_list blocks = {{0}, 0};
    const size_axis axes[] = {{.name = "n", .unit = elements}};
    size_plan_cover(plan, axes, sizeof axes / sizeof *axes, NULL, MOST_WORK);
    for (uint64_t i = 0; i <= 10; i++)
        edges_add(&blocks, i);
    for (uint64_t edge = 2048; edge <= 32768; edge *= 2)
        edges_add_around(&blocks, edge / elements);
    edges_add(&blocks, plan->limits.max_elements / 2 / elements);
    edges_add(&blocks, plan->limits.big / elements);
    for (size_t i = 0; i < blocks.count; i++) {
        n->integer = blocks.values[i] * elements;
        size_plan_add(plan);
    }
    n->integer = ((1 << 20) / elements + 3) * elements;
    size_plan_add_far(plan, 1 << 22);
}

/* Tries rows shorter than a tile, of one tile and longer. A row's number decides its offset from a multiple of 16 bytes, so
 * all offsets occur. */
static void plan_rows(size_plan *plan)
{
    const uint64_t elements = gguf_of(plan->problem)->elements;
    const uint64_t lengths[] = {
        0, 1, 2, 3, 5, 2048 / elements - 1, 2048 / elements, 2048 / elements + 1, 4096 / elements + 3};
    const uint64_t counts[] = {1, 3, 8, 9, 17, 0};
    argument *k = problem_find(plan->problem, "k"), *n = problem_find(plan->problem, "n");
    argument *rows = problem_find(plan->problem, "tensor_rows");
    const size_axis axes[] = {
        {.name = "n", .unit = 1}, {.name = "k", .unit = elements}, {.name = "tensor_rows", .unit = 1}};
    size_plan_cover(plan, axes, sizeof axes / sizeof *axes, NULL, MOST_WORK);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            k->integer = lengths[i] * elements;
            n->integer = counts[c];
            rows->integer = (3 * i + 5 * c) % 19;
            size_plan_add(plan);
        }
    }
    k->integer = 3 * elements;
    n->integer = plan->limits.max_elements / 8 / k->integer;
    rows->integer = n->integer;
    size_plan_add(plan);
    k->integer = elements; /* as many rows as a vocabulary: row numbers need more than 16 bits */
    n->integer = 9;
    rows->integer = (1 << 16) + 11;
    size_plan_add_far(plan, 1 << 24);
}

/* clang-format off */
static const input_pattern patterns[] = {
    {"random",    PATTERN_RANDOM | PATTERN_LARGE, GGUF_RANDOM},
    {"ties",      PATTERN_LARGE,                  GGUF_TIES},
    {"denormal",  PATTERN_RANDOM,                 GGUF_DENORMAL},
    {"largest",   PATTERN_RANDOM,                 GGUF_LARGEST},
    {"zero",      0,                              GGUF_ZERO},
    {"any-bits",  PATTERN_RANDOM | PATTERN_LARGE, GGUF_ANY_BITS},
    {"nonfinite", PATTERN_NONFINITE,              GGUF_NONFINITE},
    {NULL,        0,                              0},
};
/* clang-format on */

const family_row gguf_dequantize_row = {.name = "gguf_dequantize",
                                        .args = "packed out n",
                                        .patterns = patterns,
                                        .plan = plan_all,
                                        .make = make_all,
                                        .expect = expect_all,
                                        .expects_nonfinite = true};

const family_row gguf_rows_row = {.name = "gguf_rows",
                                  .args = "packed index out tensor_rows n k",
                                  .patterns = patterns,
                                  .plan = plan_rows,
                                  .make = make_rows,
                                  .expect = expect_rows,
                                  .expects_nonfinite = true};
