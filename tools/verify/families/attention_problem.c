#include "attention_problem.h"

#include <string.h>

uint64_t attention_dim(const problem *p, const char *matrix)
{
    uint64_t of_v = problem_parameter(p, "head_dim_v");
    bool is_of_v = strcmp(matrix, "v") == 0 || strcmp(matrix, "out") == 0;
    return is_of_v && of_v > 0 ? of_v : problem_parameter(p, "head_dim");
}

bool attention_has_codes(const problem *p)
{
    return !problem_has_parameter(p, "kv", "same");
}

bool attention_has_e4m3(const problem *p)
{
    return problem_has_parameter(p, "kv", "e4m3");
}

bool attention_has_key_scales(const problem *p)
{
    return problem_has_parameter(p, "kv", "int8_token");
}

argument *attention_keys(problem *p, const char *matrix)
{
    const bool is_k = matrix[0] == 'k';
    if (!attention_has_codes(p))
        return problem_find(p, matrix);
    return problem_find(p, is_k ? "k_codes" : "v_codes");
}

argument *attention_scales(problem *p, const char *matrix)
{
    const bool is_k = matrix[0] == 'k';
    if (attention_has_key_scales(p))
        return problem_find(p, is_k ? "k_scales" : "v_scales");
    return attention_has_codes(p) ? problem_find(p, is_k ? "k_scale" : "v_scale") : NULL;
}

bool attention_is_mma(const problem *p)
{
    return problem_has_parameter(p, "strategy", "mma");
}

uint64_t attention_key_warps(const problem *p)
{
    return problem_parameter(p, "tile_q") == 16 ? 4 : 1;
}

uint64_t attention_parts(problem *p)
{
    uint64_t split_k = problem_parameter(p, "split_k"), splits = problem_integer(p, "splits");
    uint64_t two = 2 * problem_parameter(p, "tile_k"),
             most = (problem_integer(p, "k_length") + two - 1) / two;
    if (split_k > 0)
        return split_k;
    return splits > 0 ? splits : most < 1 ? 1 : most < ATTENTION_MOST_PARTS ? most : ATTENTION_MOST_PARTS;
}

bool attention_is_long(problem *p)
{
    return attention_is_mma(p) &&
           problem_integer(p, "k_length") > attention_parts(p) * attention_key_warps(p) * ATTENTION_CHUNK;
}
