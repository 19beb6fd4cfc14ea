/* The families that have a reference, and what is done without one. */
#include "families.h"

#include <string.h>

#include "attention.h"
#include "inputs.h"
#include "int4.h"
#include "nf4.h"
#include "nf4_gemm.h"
#include "nf4_gemm_transposed.h"
#include "nvfp4_gemv.h"
#include "q4k.h"
#include "rmsnorm_q4k.h"

static const family_row *const rows[] = {
    &int4_scale_row,          &int4_pack_row,      &int4_quantize_row,
    &int4_unpack_row,         &nf4_scale_row,      &nf4_pack_row,
    &nf4_quantize_row,        &nf4_unpack_row,     &nf4_gemm_row,
    &nf4_gemm_transposed_row, &q4k_dequantize_row, &rmsnorm_q4k_gemv_row,
    &nvfp4_gemv_row,          &attention_row,
};

const family_row *family_find(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i];
    }
    return NULL;
}

const input_pattern generic_patterns[] = {
    {"normal", PATTERN_RANDOM | PATTERN_LARGE, INPUT_NORMAL},
    {"uniform", PATTERN_RANDOM, INPUT_UNIFORM},
    {NULL, 0, 0},
};

void generic_make(problem *p, const input_pattern *pattern, random_stream s)
{
    for (size_t i = 0; i < p->arg_count; i++) {
        argument *a = &p->args[i];
        bool is_float = element_is_float(a->about->type);
        if (!manifest_is_pointer(a->about))
            a->real = is_float ? 1 : 0;
        else if (is_float)
            inputs_fill(a, (input_kind)pattern->number, random_fork(s, i));
        else
            inputs_fill_bytes(a, random_fork(s, i));
    }
}
