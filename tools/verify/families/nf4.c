/* NF4: shared by the references of codes and of products. */
#include "nf4.h"

#include <math.h>

#include "groups.h"
#include "inputs.h"

/* QLoRA, appendix E; every entry is a float32. Intentionally a second copy. */
const double nf4_table[16] = {
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

/* ---- arithmetic ------------------------------------------------------------------------------------------------- */

double nf4_threshold(element_type arithmetic, int i)
{
    double midpoint = (nf4_table[i] + nf4_table[i + 1]) / 2;
    return arithmetic == ELEMENT_F64 ? midpoint : (double)(float)midpoint;
}

unsigned nf4_code(element_type arithmetic, double r)
{
    unsigned code = 0;
    for (int i = 0; i < 15; i++)
        code += r > nf4_threshold(arithmetic, i);
    return code;
}

/* ---- given scales ----------------------------------------------------------------------------------------------- */

enum { NESTED_SHARE = 256 /* scales with the same absmax */ };

double nf4_given_scale(problem *p, uint64_t i)
{
    argument *scale = problem_find(p, "scale"), *absmax = problem_find(p, "nested_absmax");
    if (scale)
        return element_get(scale->about->type, scale->host, i);
    const unsigned char *indices = problem_find(p, "scale_index")->host;
    const double code = element_get(ELEMENT_F32, problem_find(p, "nested_code")->host, indices[i]),
                 factor = element_get(ELEMENT_F32, absmax->host, i / NESTED_SHARE);
    const double offset = (double)(float)problem_find(p, "nested_offset")->real;
    return groups_add(ELEMENT_F32, groups_multiply(ELEMENT_F32, code, factor), offset);
}

void nf4_make_nested(problem *p, bool is_usual, random_stream s)
{
    argument *absmax = problem_find(p, "nested_absmax");
    for (uint64_t i = 0; i < absmax->count; i++)
        element_set(ELEMENT_F32, absmax->host, i, is_usual ? 0.5 + random_uniform(s, i) : i % 2 ? 0.5 : 1);
    problem_find(p, "nested_offset")->real = is_usual ? 0.0123 : 0;
}

/* ---- inputs of the products ---------------------------------------------------------------------------------------- */

double nf4_scale_between(int low, int high, random_stream s, uint64_t i)
{
    const uint64_t exponents = (uint64_t)(high - low);
    double magnitude =
        ldexp(1 + random_uniform(s, 2 * i), (int)random_below(random_fork(s, 1), i, exponents) + low);
    return random_below(random_fork(s, 2), i, 16) == 0 ? 0
           : random_bits(s, 2 * i + 1) & 1             ? -magnitude
                                                       : magnitude;
}

double nf4_usual_scale(random_stream s, uint64_t i)
{
    return fabs(random_normal(s, i)) + 0x1p-10;
}

double nf4_large(element_type type, random_stream s, uint64_t i)
{
    double most = type == ELEMENT_F16 ? number_largest(type) : 0x1p119;
    return (random_bits(s, i) & 1 ? -1 : 1) * most * (random_below(s, i + 1, 4) ? 1 : random_uniform(s, i));
}
