/* The reference of nf4_product, in float64. Weights are NF4's values rounded to f16. The bound is one rounding to f16, and tensor
 * cores' truncation per 16 products and one rounding of f32 per group, relative to the sum of the products' sizes. */
#include <math.h>

#include <kiln/reference.h>

static const double levels[16] = {
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
};

enum { GROUP = 64, EDGES = 5 };

/* One size at a time is at or next to the edge of a tile. The others are beyond an edge, except m: blocks do not share rows. */
static void plan(kiln_size_plan *sizes)
{
    static const struct {
        const char *name;
        uint64_t usual, edges[EDGES];
    } rows[] = {{"m", 5, {1, 127, 128, 130, 257}},
                {"n", 132, {4, 124, 128, 136, 260}},
                {"k", 192, {0, 64, 128, 256, 576}}};
    for (int varied = 0; varied < 3; varied++)
        for (int edge = 0; edge < EDGES; edge++) {
            for (int i = 0; i < 3; i++)
                kiln_set_size(sizes, rows[i].name, i == varied ? rows[i].edges[edge] : rows[i].usual);
            kiln_add_sizes(sizes);
        }
}

static void expect(kiln_problem *p, const kiln_pattern *pattern)
{
    const uint64_t n = kiln_get_integer(p, "n"), k = kiln_get_integer(p, "k");
    kiln_argument *x = kiln_get_argument(p, "x"), *codes = kiln_get_argument(p, "codes"),
                  *scales = kiln_get_argument(p, "scales"), *y = kiln_get_argument(p, "y");
    (void)pattern;
    for (uint64_t i = 0; i < kiln_get_count(y); i++) {
        double exact = 0, size = 0;
        for (uint64_t j = 0; j < k; j++) {
            const uint64_t weight = i % n * k + j;
            const unsigned byte = (unsigned)kiln_get_value(codes, weight / 2);
            const double term = kiln_get_value(x, i / n * k + j) *
                                kiln_round(x, levels[byte >> weight % 2 * 4 & 15]) *
                                kiln_get_value(scales, weight / GROUP);
            exact += term;
            size += fabs(term);
        }
        kiln_expect_value(y, i, exact,
                          kiln_get_unit(y) * fabs(exact) + kiln_get_smallest(y) +
                              ((double)k / 16 + 8) * 0x1p-23 * size);
    }
}

KILN_REFERENCE(nf4_product, .plan = plan, .expect = expect);
